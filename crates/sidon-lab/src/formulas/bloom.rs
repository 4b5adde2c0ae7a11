//! Bloom filters and counting filters: limits, bounds and the levels of counters.

use sidon::{
    plan,
    set::{bloom, counting},
};
use sidon_kit::poisson::{poisson, poisson_at_least};
use std::f64::consts::{E, LN_2};

/// The most hashes of a filter.
const HASHES_MAX: u32 = 32;

/// The rate of a very large table: `(1 - e^(-k/c))^k` for `c` cells per key.
pub fn rate_limit(cells_per_key: f64, hashes: u32) -> f64 {
    let hashes = f64::from(hashes);
    (-(-hashes / cells_per_key).exp_m1()).powf(hashes)
}

/// The bits per key of a rate if `k` need not be an integer: `ln(1/rate) / (ln 2)^2`.
pub fn bits_per_key(false_positives: f64) -> f64 {
    -false_positives.ln() / (LN_2 * LN_2)
}

/// The number of hashes with the least rate for `cells` cells and `keys` keys.
pub fn best_hashes(cells: u64, keys: u64) -> u32 {
    let rate =
        |hashes: &u32| plan::bloom::rate(bloom::Shape { bits: cells, hashes: *hashes }, keys);
    let best = (1..=HASHES_MAX).min_by(|a, b| rate(a).total_cmp(&rate(b)));
    best.unwrap_or(1)
}

/// The chance that a given counter is at `level` or above while `keys` keys are stored anywhere.
pub fn counter_at_least(shape: counting::Shape, keys: u64, level: u64) -> f64 {
    poisson_at_least(mean(shape, keys), level)
}

/// How often some counter is incremented to exactly `level` during `insertions` insertions into a table
/// that always holds `keys` keys, on average.
pub fn counter_raises(shape: counting::Shape, keys: u64, insertions: u64, level: u64) -> f64 {
    let Some(below) = level.checked_sub(1) else { return 0.0 };
    insertions as f64 * f64::from(shape.hashes) * poisson(mean(shape, keys), below)
}

/// The classic upper bound of the counters that overflow: `m (e k n / (level m))^level`.
pub fn overflow_bound(shape: counting::Shape, keys: u64) -> f64 {
    let level = 2f64.powi(shape.width.min(64) as i32);
    let base = E * mean(shape, keys) / level;
    shape.counters as f64 * base.powf(level)
}

fn mean(shape: counting::Shape, keys: u64) -> f64 {
    f64::from(shape.hashes) * keys as f64 / shape.counters as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::set::{Overflow, Spread};
    use sidon_kit::rate::assert_close;

    fn table(counters: u64, hashes: u32) -> counting::Shape {
        let (width, overflow, spread) = (4, Overflow::Refuse, Spread::Anywhere);
        counting::Shape { counters, hashes, width, overflow, spread }
    }

    #[test]
    fn bloom_filters_of_002() {
        // 002.bf.bits_for_1pct: "less than 10 bits per element are required for 1 %".
        assert!((bits_per_key(0.01) - 9.585_058_377_37).abs() < 1e-3);
        // 002.bf.base: 0.6185 ^ (bits per element).
        let base = (-1.0 / bits_per_key((-1f64).exp())).exp();
        assert!((base - 0.618_503_137_802).abs() < 5e-5);
        // 002.bf.n10_k7 and 002.cmp.cbf9_k6.
        assert_close(rate_limit(10.0, 7), 0.008_193_722_065_86, 1e-6);
        assert_close(rate_limit(9.0, 6), 0.013_272_139_955_3, 1e-6);
        // 004.fig5.cbf.30 and .50.
        assert_eq!([7_680, 12_800].map(|cells| best_hashes(cells, 1024)), [5, 9]);
    }

    #[test]
    fn levels_of_counters_of_002() {
        // 002.cbf.max12_trials and max13_trials: of 10,000 trials of 2^20 steps, those in which some
        // counter reaches 12 or 13; the paper saw 17 and 1.
        let shape = table(663_552, 9);
        let reached = |level| 1e4 * counter_raises(shape, 49_152, 49_152 + (1 << 20), level);
        assert_close(reached(12), 14.690_887_370_8, 1e-3);
        assert_close(reached(13), 0.816_160_409_487, 1e-3);
        assert_eq!(counter_raises(shape, 49_152, 1, 0), 0.0);
        let overflow = shape.counters as f64 * counter_at_least(shape, 49_152, 16);
        assert_close(overflow, plan::counting::overflow(shape, 49_152), 1e-12);
    }

    #[test]
    fn the_bound_of_equation_8_is_above_the_truth() {
        // 004.eq8: the bound of 4-bit counters, per counter, at kn/m = ln 2.
        let keys = 1_000_000;
        let shape = table((10.0 * keys as f64 / LN_2) as u64, 10);
        let bound = overflow_bound(shape, keys);
        assert_close(bound / shape.counters as f64, 1.367_726_824_77e-15, 1e-6);
        assert!(plan::counting::overflow(shape, keys) < bound);
    }
}
