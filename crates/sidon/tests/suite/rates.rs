//! Planned rates are those measured, to six sigma.

use sidon::{
    Certainty, Lookup, Seed, plan,
    set::{
        Bh, Blocked, Bloom, Counting, Decode, Filter, Increments, Multilayer, Overflow, Removes,
        Set, Spread, Variable, bh, blocked, bloom, counting, variable,
    },
    state::{
        Cells, Direct, Fingerprint, Map, State, Stateful, direct,
        stateful::{self, Keeping},
    },
};
use sidon_kit::{
    FiveTuples, assert_rate,
    rate::{assert_close, sigmas},
    trials,
};

fn strangers_that_pass<B: Filter>(filter: &Set<B>, strangers: &mut FiveTuples, n: usize) -> usize {
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
        let p = filter.certainty().error();
        let n = trials(p, 0.05);
        assert_rate(strangers_that_pass(&filter, &mut tuples, n), n, p);
        // The fill is the planned one; its own deviation is some parts in a thousand.
        assert_close(p, plan::bloom::rate(shape, keys as u64), 0.15);
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
        let p = filter.certainty().error();
        let n = trials(p, 0.05).min(40_000_000);
        assert_rate(strangers_that_pass(&filter, &mut tuples, n), n, p);
        assert_close(p, plan::blocked::rate(shape, keys as u64), 0.05);
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
    assert_eq!(filter.len(), 10_000);
    let p = filter.certainty().error();
    let n = trials(p, 0.05);
    assert_rate(strangers_that_pass(&filter, &mut tuples, n), n, p);
    assert_close(p, plan::counting::rate(shape, 10_000), 0.05);
    // Removing all keys empties every counter.
    filter.remove_batch(&keys[50_000..], &mut |_, why| panic!("{why}"));
    assert_eq!((filter.len(), filter.stats().load), (0, 0.0));
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
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
        let p = filter.certainty().error();
        // The plan is of an average table: this one's own lines differ by about two per cent.
        assert_close(p, plan::counting::rate(shape, 41_000), 0.08);
        let n = trials(p, 0.05);
        assert_rate(strangers_that_pass(&filter, &mut tuples, n), n, p);
    }
}

/// Fills, churns once over, asks: the rate is the filter's own, to six sigma, and the plan's, to
/// `spread`; at the end everything leaves.
fn held_to_its_rate<B: Removes>(mut filter: Set<B>, keys: usize, plan: f64, spread: f64) {
    let mut tuples = FiveTuples::seeded(31);
    let all: Vec<_> = tuples.by_ref().take(2 * keys).collect();
    filter.insert_batch(&all[..keys], &mut |_, why| panic!("{why}"));
    for i in keys..all.len() {
        filter.remove(&all[i - keys]).unwrap();
        filter.insert(&all[i]).unwrap();
    }
    let p = filter.certainty().error();
    let n = trials(p, 0.05).min(10_000_000);
    assert_rate(strangers_that_pass(&filter, &mut tuples, n), n, p);
    assert_close(p, plan, spread);
    filter.remove_batch(&all[keys..], &mut |_, why| panic!("{why}"));
    assert_eq!(filter.certainty(), Certainty::Certain);
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn strangers_pass_variable_increments_as_often_as_planned() {
    for (values, width, hashes) in [
        (&[4, 5, 6, 7][..], 7, 6),
        (&[8, 12, 14, 15], 8, 7),
        (&[1, 4, 13, 15], 9, 5),
        (&[6, 7, 9], 7, 6),
        (&[21, 27, 30, 31], 9, 6),
    ] {
        let shape = variable::Shape {
            counters: 60_000,
            hashes,
            width,
            increments: Increments::set(values).unwrap(),
            overflow: Overflow::Refuse,
            spread: Spread::Anywhere,
        };
        let plan = plan::variable::rate(shape, 13_000).unwrap();
        let filter = Variable::new(shape, Seed(2)).unwrap();
        held_to_its_rate(filter, 13_000, plan, 0.05);
    }
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn strangers_pass_variable_increments_in_few_lines_as_often_as_planned() {
    for (lines, hashes) in [(1, 5), (2, 8), (3, 6)] {
        let shape = variable::Shape {
            counters: 96_000,
            hashes,
            width: 8,
            increments: Increments::of([8, 12, 14, 15]),
            overflow: Overflow::Refuse,
            spread: Spread::Lines(lines),
        };
        let plan = plan::variable::rate(shape, 18_000).unwrap();
        let filter = Variable::new(shape, Seed(2)).unwrap();
        // The plan is of an average table: 1500 lines differ by some per cent.
        held_to_its_rate(filter, 18_000, plan, 0.10);
    }
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn strangers_pass_pairs_of_counters_as_often_as_planned() {
    for (decode, keys_bits, sum_bits) in
        [(Decode::Basic, 4, 8), (Decode::Improved(15), 4, 8), (Decode::Improved(6), 6, 10)]
    {
        let shape = bh::Shape {
            cells: 40_000,
            hashes: 6,
            keys_bits,
            sum_bits,
            increments: Increments::of([1, 4, 13, 15]),
            decode,
            centred: false,
            overflow: Overflow::Refuse,
            spread: Spread::Anywhere,
        };
        let plan = plan::bh::rate(shape, 11_000).unwrap();
        let filter = Bh::new(shape, Seed(2)).unwrap();
        held_to_its_rate(filter, 11_000, plan, 0.05);
    }
}

#[test]
fn cells_leave_their_range_as_often_as_planned() {
    for (keys_bits, sum_bits, centred) in [(4, 6, false), (3, 5, false), (4, 6, true)] {
        let shape = bh::Shape {
            cells: 300_000,
            hashes: 5,
            keys_bits,
            sum_bits,
            increments: Increments::of([1, 4, 13, 15]),
            decode: Decode::Improved(15),
            centred,
            overflow: Overflow::Pin,
            spread: Spread::Anywhere,
        };
        let mut filter = Bh::new(shape, Seed(5)).unwrap();
        for key in FiveTuples::seeded(6).take(100_000) {
            filter.insert(&key).unwrap();
        }
        let p = plan::bh::overflow(shape, 100_000).unwrap();
        assert_rate(filter.stats().at_ceiling as usize, 300_000, p);
        assert_close(filter.certainty().error(), plan::bh::rate(shape, 100_000).unwrap(), 0.05);
    }
}

#[test]
fn layers_keep_their_rate_as_planned() {
    let target = plan::Target::new(20_000, 0.001);
    let shape = plan::multilayer::shape(target).unwrap();
    let plan = plan::multilayer::rate(shape, 20_000).unwrap();
    assert!(plan <= 0.001);
    let filter = Multilayer::new(shape, Seed(2)).unwrap();
    held_to_its_rate(filter, 20_000, plan, 0.08);
    // Both layers are smaller than one of the same increments, and not refused for it.
    let one = plan::variable::shape(target).unwrap();
    let bits = one.counters * u64::from(one.width);
    assert!(Multilayer::planned_bytes(shape) * 8 < bits * 9 / 10, "{shape:?} {one:?}");
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
    let mean = f64::from(shape.hashes) * 100_000.0 / shape.counters as f64;
    let p = sidon_kit::poisson::poisson_at_least(mean, 7);
    assert_rate(filter.stats().at_ceiling as usize, 200_000, p);
    assert_close(plan::counting::overflow(shape, 100_000), 200_000.0 * 1.0967e-3, 1e-3);
}

#[test]
fn certainty_is_the_rate_and_an_empty_filter_is_certain() {
    let mut filter = Blocked::new(blocked::Shape { lines: 10_000, hashes: 8 }, Seed(1)).unwrap();
    assert_eq!(filter.certainty(), Certainty::Certain);
    filter.extend(0..200_000u64);
    // The filter is one draw, the plan the mean of all draws. The rates of lines have a standard
    // deviation of about twice their mean: 2 % over 10,000 lines.
    let rate = filter.certainty().error();
    assert_close(rate, plan::blocked::rate(filter.shape(), 200_000), 0.12);
    let mut filter = Bloom::new(bloom::Shape { bits: 999, hashes: 3 }, Seed(1)).unwrap();
    assert_eq!(filter.certainty(), Certainty::Certain);
    filter.insert(&1u64).unwrap();
    assert_close(filter.certainty().error(), (3.0f64 / 999.0).powi(3), 1e-12);
}

/// Compares `certainty` of a map with the share of keys never inserted that it does not call absent.
fn never_above<B: Cells>(mut map: Map<B>, states: u64) {
    assert_eq!(map.certainty(), Certainty::Certain);
    for key in 0..2_000 {
        map.insert(&key, (key % states) as State).unwrap();
    }
    let rate = map.certainty().error();
    let n = trials(rate, 0.05);
    let hits = (2_000..).take(n).filter(|key| map.lookup(key) != Lookup::Absent).count();
    let (off, share) = (sigmas(hits, n, rate), hits as f64 / n as f64);
    assert!(off <= 6.0, "{share} of the keys pass, and the map says {rate}: {off:.1} sigma");
    // Cells of more than one state let fewer keys pass than are counted here.
    assert!(states > 1 || off >= -6.0, "{share} of the keys pass, and the map says {rate}");
}

#[test]
fn a_map_is_as_certain_as_it_says() {
    for states in [1, 4] {
        let shape = direct::Shape { cells: 20_000, hashes: 5, states, counter: 4, timed: false };
        never_above(Direct::new(shape, Seed(1)).unwrap(), states.into());
        let keeping = Keeping::Counted(4);
        let shape = stateful::Shape { cells: 20_000, hashes: 5, states, keeping };
        never_above(Stateful::new(shape, Seed(1)).unwrap(), states.into());
        let wish = plan::States { flows: 2_000, states, error: 0.01 };
        let shape = plan::fingerprint::shape(wish, plan::Prefer::Speed).unwrap();
        let map = Fingerprint::new(shape, Seed(1)).unwrap();
        never_above(map, states.into());
    }
}
