//! The numbers that the papers print for plain and counting Bloom filters, from the plans.
//!
//! Bonomi et al., "An improved construction for counting Bloom filters" (ESA 2006), here `002`;
//! Rottenstreich et al., "The variable-increment counting Bloom filter", here `004`.

use sidon::{
    member::{Overflow, Spread, bloom, counting},
    plan,
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
    // 002.bf.bits_for_1pct: "less than 10 bits per element are required for 1 %".
    assert!((plan::bloom_bits_per_key(0.01) - 9.585_058_377_37).abs() < 1e-3);
    // 002.bf.base: 0.6185 ^ (bits per element).
    let base = (-1.0 / plan::bloom_bits_per_key((-1f64).exp())).exp();
    assert!((base - 0.618_503_137_802).abs() < 5e-5);
    // 002.bf.n10_k7: "when n/m = 10 and k = 7 the false positive probability is just over 0.008".
    assert_close(plan::bloom_rate_limit(10.0, 7), 0.008_193_722_065_86, 1e-6);
    // 001.dbf.sign, with the minus sign that the paper lost: m = 10000, n = 1000, k = 7.
    let shape = bloom::Shape { bits: 10_000, hashes: 7 };
    assert_close(plan::bloom_rate(shape, 1000), 0.008_195_702_596_76, 1e-6);
}

#[test]
fn counting_filters_of_002() {
    // 002.cmp.cbf9_k6: nine counters an element, six hash functions.
    assert_close(plan::bloom_rate_limit(9.0, 6), 0.013_272_139_955_3, 1e-6);
    // 002.cbf.fpr_13_5 and 002.cbf.bits: 663,552 counters for 49,152 elements.
    let shape = cbf(663_552, 9);
    assert_close(plan::counting_rate(shape, 49_152), 0.001_529_021_178_43, 1e-6);
    assert_eq!(shape.counters * u64::from(shape.width), 2_654_208);
    // 002.cbf.counter16: a counter that 16 elements hash to, at the best k.
    let sixteen = plan::poisson(std::f64::consts::LN_2, 16);
    assert_close(sixteen, 6.785_123_974_38e-17, 1e-6);
    // 002.cbf.max12_trials and max13_trials: of 10,000 trials of 2^20 steps, those in which some
    // counter reaches 12 or 13; the paper saw 17 and 1.
    let reached = |level| 1e4 * plan::counting_raises(shape, 49_152, 49_152 + (1 << 20), level);
    assert_close(reached(12), 14.690_887_370_8, 1e-3);
    assert_close(reached(13), 0.816_160_409_487, 1e-3);
}

#[test]
fn counting_filters_of_004() {
    // 004.fig5.cbf.30 and .50, equation 7 at the best integer k.
    for (counters, hashes, expected) in
        [(7_680, 5, 0.027_282_463_132_1), (12_800, 9, 0.002_471_995_640_37)]
    {
        assert_eq!(plan::bloom_best_hashes(counters, 1024), hashes);
        assert_close(plan::counting_rate(cbf(counters, hashes), 1024), expected, 1e-6);
    }
    // 004.table1.cbf.main: the least table for 2000 elements at 10^-3.
    let shape = plan::counting(plan::Target { keys: 2000, false_positives: 0.001 }).unwrap();
    assert_eq!((shape.counters, shape.hashes), (28_756, 10));
    let kilobytes = shape.counters as f64 * 4.0 / 8.0 / 1024.0;
    assert!((kilobytes - 14.041).abs() < 0.005);
    // 004.eq8: the overflow bound of 4-bit counters, a counter, at kn/m = ln 2.
    let keys = 1_000_000;
    let shape = cbf((f64::from(10u32) * keys as f64 / std::f64::consts::LN_2) as u64, 10);
    let bound = plan::counting_overflow_bound(shape, keys) / shape.counters as f64;
    assert_close(bound, 1.367_726_824_77e-15, 1e-6);
    assert!(plan::counting_overflow(shape, keys) < plan::counting_overflow_bound(shape, keys));
}

#[test]
fn a_simulated_filter_of_002_has_the_false_positives_of_the_formula() {
    // 002.sim.cbf_fpr, one slice: 49,152 elements, churned once over, then 3 million strangers.
    use sidon::{Seed, member::Counting};
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
    sidon_kit::assert_rate(hits, n, plan::counting_rate(filter.shape(), 49_152));
    assert!(filter.largest() <= 12);
}
