//! The numbers that the papers print for plain and counting Bloom filters, from the plans.
//!
//! Bonomi et al., "An improved construction for counting Bloom filters" (ESA 2006), here `002`;
//! Rottenstreich et al., "The variable-increment counting Bloom filter", here `004`.

use sidon::{
    plan,
    set::{Overflow, Spread, bloom, counting},
};
use sidon_kit::rate::assert_close;

fn cbf(counters: u64, hashes: u32) -> counting::Shape {
    counting::Shape {
        counters,
        hashes,
        width: 4,
        overflow: Overflow::Refuse,
        spread: Spread::Anywhere,
    }
}

#[test]
fn bloom_filters_of_002() {
    // 002.bf.n10_k7: "when n/m = 10 and k = 7 the false positive probability is just over 0.008".
    let large = bloom::Shape { bits: 10_000_000_000, hashes: 7 };
    assert_close(plan::bloom::rate(large, 1_000_000_000), 0.008_193_722_065_86, 1e-6);
    // 001.dbf.sign, with the minus sign that the paper lost: m = 10000, n = 1000, k = 7.
    let shape = bloom::Shape { bits: 10_000, hashes: 7 };
    assert_close(plan::bloom::rate(shape, 1000), 0.008_195_702_596_76, 1e-6);
}

#[test]
fn counting_filters_of_002() {
    // 002.cbf.fpr_13_5 and 002.cbf.bits: 663,552 counters for 49,152 elements.
    let shape = cbf(663_552, 9);
    assert_close(plan::counting::rate(shape, 49_152), 0.001_529_021_178_43, 1e-6);
    assert_eq!(shape.counters * u64::from(shape.width), 2_654_208);
}

#[test]
fn counting_filters_of_004() {
    // 004.fig5.cbf.30 and .50, equation 7 at the best integer k.
    for (counters, hashes, expected) in
        [(7_680, 5, 0.027_282_463_132_1), (12_800, 9, 0.002_471_995_640_37)]
    {
        assert_close(plan::counting::rate(cbf(counters, hashes), 1024), expected, 1e-6);
    }
    // 004.table1.cbf.main: the least table for 2000 elements at 10^-3.
    let shape = plan::counting::shape(plan::Target::new(2000, 0.001)).unwrap();
    assert_eq!((shape.counters, shape.hashes), (28_756, 10));
    let kilobytes = shape.counters as f64 * 4.0 / 8.0 / 1024.0;
    assert!((kilobytes - 14.041).abs() < 0.005);
}

#[test]
fn a_simulated_filter_of_002_has_the_false_positives_of_the_formula() {
    // 002.sim.cbf_fpr, one slice: 49,152 elements, churned once over, then 3 million strangers.
    use sidon::{Seed, set::Counting};
    let mut filter = Counting::new(cbf(663_552, 9), Seed(7)).unwrap();
    let keys: Vec<u64> = sidon_kit::Keys::seeded(8).take(2 * 49_152).collect();
    filter.insert_batch(&keys[..49_152], &mut |_, why| panic!("{why}"));
    filter.remove_batch(&keys[..49_152], &mut |_, why| panic!("{why}"));
    filter.insert_batch(&keys[49_152..], &mut |_, why| panic!("{why}"));
    let n = sidon_kit::trials(0.001_529, 0.10);
    let strangers: Vec<u64> = sidon_kit::Keys::seeded(9).take(n).collect();
    let mut found = vec![false; n];
    filter.contains_batch(&strangers, &mut found);
    let hits = found.into_iter().filter(|&found| found).count();
    sidon_kit::assert_rate(hits, n, plan::counting::rate(filter.shape(), 49_152));
    assert!(filter.stats().largest <= 12);
}
