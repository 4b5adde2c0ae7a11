//! What is planned is what is measured, to six sigma.

use sidon::{
    Seed,
    member::{Blocked, Bloom, Counting, Overflow, Spread, blocked, bloom, counting},
    ops::{Contains, Insert, Remove},
    plan,
};
use sidon_kit::{FiveTuples, assert_rate, rate::assert_close, trials};

fn strangers_that_pass<F: Contains<[u8; 13]>>(
    filter: &F,
    strangers: &mut FiveTuples,
    n: usize,
) -> usize {
    let strangers: Vec<_> = strangers.by_ref().take(n).collect();
    let mut found = vec![false; n];
    filter.contains_batch(&strangers, &mut found);
    found.into_iter().filter(|&found| found).count()
}

#[test]
fn strangers_pass_a_bloom_filter_as_often_as_its_fill_predicts() {
    // At k = 20 and one in 10^4, double hashing would be off by a third of the rate.
    for (bits, hashes, keys) in [(20_000, 7, 2_000), (1_000_003, 3, 100_000), (40_000, 20, 2_600)] {
        let mut tuples = FiveTuples::seeded(bits);
        let shape = bloom::Shape { bits, hashes };
        let mut filter = Bloom::new(shape, Seed(2)).unwrap();
        for key in tuples.by_ref().take(keys) {
            filter.insert(&key).unwrap();
        }
        let p = filter.false_positive_rate();
        let n = trials(p, 0.05);
        assert_rate(strangers_that_pass(&filter, &mut tuples, n), n, p);
        // And the fill is the planned one: its own spread is some parts in a thousand.
        assert_close(p, plan::bloom_rate(shape, keys as u64), 0.15);
    }
}

#[test]
fn strangers_pass_a_blocked_filter_as_often_as_its_bits_and_its_plan_predict() {
    for hashes in [1, 3, 7, 8, 10, 16] {
        let shape = blocked::Shape { lines: 4_001, hashes };
        let keys = 4_001 * if hashes < 4 { 100 } else { 40 };
        let mut tuples = FiveTuples::seeded(hashes.into());
        let mut filter = Blocked::new(shape, Seed(2)).unwrap();
        for key in tuples.by_ref().take(keys) {
            filter.insert(&key).unwrap();
        }
        let p = filter.false_positive_rate();
        let n = trials(p, 0.05).min(40_000_000);
        assert_rate(strangers_that_pass(&filter, &mut tuples, n), n, p);
        assert_close(p, plan::blocked_rate(shape, keys as u64), 0.05);
    }
}

#[test]
fn strangers_pass_a_churned_counting_filter_as_often_as_a_fresh_one() {
    let shape = counting::Shape {
        counters: 135_000,
        hashes: 9,
        width: 4,
        overflow: Overflow::Refuse,
        spread: Spread::Anywhere,
    };
    let mut filter = Counting::new(shape, Seed(2)).unwrap();
    let mut tuples = FiveTuples::seeded(3);
    let keys: Vec<_> = tuples.by_ref().take(60_000).collect();
    filter.insert_batch(&keys[..10_000], &mut |_, why| panic!("{why}"));
    for i in 10_000..keys.len() {
        filter.remove(&keys[i - 10_000]).unwrap();
        filter.insert(&keys[i]).unwrap();
    }
    assert_eq!(filter.stored(), 10_000);
    let p = filter.false_positive_rate();
    let n = trials(p, 0.05);
    assert_rate(strangers_that_pass(&filter, &mut tuples, n), n, p);
    assert_close(p, plan::counting_rate(shape, 10_000), 0.05);
    // All that left took everything along.
    filter.remove_batch(&keys[50_000..], &mut |_, why| panic!("{why}"));
    assert_eq!((filter.stored(), filter.fill()), (0, 0.0));
}

#[test]
fn strangers_pass_counters_in_few_lines_as_often_as_planned() {
    for (lines, hashes, counters) in
        [(1, 6, 640_000), (2, 10, 640_000), (3, 9, 640_000), (4, 8, 400_000)]
    {
        let spread = Spread::Lines(lines);
        let overflow = Overflow::Refuse;
        let shape = counting::Shape { counters, hashes, width: 4, overflow, spread };
        let mut filter = Counting::new(shape, Seed(20)).unwrap();
        let mut tuples = FiveTuples::seeded(21);
        let keys: Vec<_> = tuples.by_ref().take(41_000).collect();
        filter.insert_batch(&keys, &mut |_, why| panic!("{why}"));
        let p = filter.false_positive_rate();
        assert_close(p, plan::counting_rate(shape, 41_000), 1e-12);
        // The plan is of an average table: this one's own lines differ by about two per cent.
        let n = trials(p, 0.05);
        let passed = strangers_that_pass(&filter, &mut tuples, n);
        assert_close(passed as f64 / n as f64, p, 0.08);
    }
}

#[test]
fn counters_rise_as_the_plan_says() {
    // kn/m = 2: a 3-bit counter passes its ceiling in 1.1e-3 of the cells, under Pin.
    let shape = counting::Shape {
        counters: 200_000,
        hashes: 4,
        width: 3,
        overflow: Overflow::Pin,
        spread: Spread::Anywhere,
    };
    let mut filter = Counting::new(shape, Seed(5)).unwrap();
    for key in FiveTuples::seeded(6).take(100_000) {
        filter.insert(&key).unwrap();
    }
    let p = plan::counting_at_least(shape, 100_000, 7);
    assert_rate(filter.at_ceiling() as usize, 200_000, p);
    assert_close(plan::counting_overflow(shape, 100_000), 200_000.0 * 1.0967e-3, 1e-3);
}

#[test]
fn certainty_is_the_rate_and_an_empty_filter_is_certain() {
    let mut filter = Blocked::new(blocked::Shape { lines: 10, hashes: 8 }, Seed(1)).unwrap();
    assert_eq!(Contains::<u64>::certainty(&filter), sidon::Certainty::Certain);
    for key in 0..100u64 {
        filter.insert(&key).unwrap();
    }
    let rate = Contains::<u64>::certainty(&filter).error();
    assert_close(rate, plan::blocked_rate(filter.shape(), 100), 1e-12);
    let mut filter = Bloom::new(bloom::Shape { bits: 999, hashes: 3 }, Seed(1)).unwrap();
    assert_eq!(Contains::<u64>::certainty(&filter), sidon::Certainty::Certain);
    filter.insert(&1u64).unwrap();
    assert_close(Contains::<u64>::certainty(&filter).error(), (3.0f64 / 999.0).powi(3), 1e-12);
}
