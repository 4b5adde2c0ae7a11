//! Bloom filters: bits, hashes and rate.
//!
//! With `n` keys of `k` bits each in a table of `m` bits, a bit is still zero with probability
//! `(1 - 1/m)^(kn)`. A key never inserted is found with probability `(1 - (1 - 1/m)^(kn))^k`: equation
//! 7 of Rottenstreich et al. Small tables need the exact rate instead. The best `k` is near
//! `(m/n) ln 2`, where half the bits are set and the rate is `0.6185^(m/n)`: Bonomi et al., ESA 2006,
//! section 2.1.

use super::{Target, draws};
use crate::{Infeasible, key::spread, set::bloom::Shape};

/// The smallest table that meets the target. Keys cannot leave it, and it cannot grow.
///
/// ```
/// use sidon::plan::{Target, bloom};
///
/// // (1 - (1 - 1/m)^(7 * 1000))^7 is at most 0.01 from m = 9,594 on.
/// let shape = bloom::shape(Target::new(1_000, 0.01))?;
/// assert_eq!((shape.bits, shape.hashes), (9_594, 7));
/// assert!(bloom::shape(Target { deletes: true, ..Target::new(1_000, 0.01) }).is_err());
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: Target) -> Result<Shape, Infeasible> {
    target.check_permanent()?;
    let (bits, hashes) = least_cells(target)?;
    Ok(Shape { bits, hashes })
}

/// The false-positive rate of a table that holds `keys` keys.
///
/// ```
/// use sidon::{set::bloom::Shape, plan::bloom};
///
/// // (1 - (1 - 1/10000)^7000)^7
/// let rate = bloom::rate(Shape { bits: 10_000, hashes: 7 }, 1_000);
/// assert!((rate - 0.008_195_702_596_8).abs() < 1e-12);
/// ```
pub fn rate(shape: Shape, keys: u64) -> f64 {
    rate_of(shape.bits as f64, shape.hashes, keys as f64)
}

/// Whether equation 7 is more than half a per cent below the truth, for rates of any use. It assumes that
/// the bits of a key are independent, and is off by about `0.15 k (k - 1) / m` of itself.
pub(super) fn is_small(cells: f64, hashes: u32) -> bool {
    hashes <= spread::MAX && cells < 32.0 * f64::from(hashes) * (f64::from(hashes) - 1.0)
}

/// The rate of `cells` bits with `hashes` bits per key.
pub(super) fn rate_of(cells: f64, hashes: u32, keys: f64) -> f64 {
    if cells < 1.0 {
        return 1.0;
    }
    if is_small(cells, hashes) {
        return draws::all_met_before(cells, hashes, f64::from(hashes) * keys);
    }
    let hashes = f64::from(hashes);
    let draws = hashes * keys;
    // A draw from one cell leaves no cell out, and the logarithm has no product with zero draws.
    let set = if draws > 0.0 { -(draws * (-1.0 / cells).ln_1p()).exp_m1() } else { 0.0 };
    set.powf(hashes)
}

/// The least cells, and the hashes that go with them, for a scattered filter of this target.
pub(super) fn least_cells(target: Target) -> Result<(u64, u32), Infeasible> {
    target.check()?;
    let keys = target.keys as f64;
    let cells_for = |hashes| {
        let meets = |cells| rate_of(cells as f64, hashes, keys) <= target.false_positives;
        (least(CELLS_MAX, meets), hashes)
    };
    let best = (1..=spread::MAX).map(cells_for).min();
    Ok(best.unwrap_or((1, 1)))
}

/// More cells or lines than any target needs.
pub(super) const CELLS_MAX: u64 = 1 << 58;

/// The least number from 1 to `most` that meets a condition which all larger numbers meet too;
/// `most` if none does.
pub(super) fn least(most: u64, meets: impl Fn(u64) -> bool) -> u64 {
    let (mut fails, mut holds) = (0, 1);
    while holds < most && !meets(holds) {
        (fails, holds) = (holds, holds * 2);
    }
    while holds - fails > 1 {
        let middle = fails + (holds - fails) / 2;
        if meets(middle) { holds = middle } else { fails = middle }
    }
    holds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planned_table_is_the_smallest_that_meets_the_target() {
        for keys in [1, 10, 1000, 1_000_000] {
            for false_positives in [0.3, 0.01, 1e-4, 1e-8] {
                let planned = shape(Target::new(keys, false_positives)).unwrap();
                assert!(rate(planned, keys) <= false_positives);
                for hashes in 1..=spread::MAX {
                    let smaller = Shape { bits: planned.bits - 1, hashes };
                    assert!(planned.bits == 1 || rate(smaller, keys) > false_positives);
                }
            }
        }
    }

    #[test]
    fn impossible_targets_say_so() {
        for false_positives in [0.0, 1.0, -0.1, f64::NAN, 1e-13] {
            assert!(shape(Target::new(10, false_positives)).is_err());
        }
        assert!(shape(Target::new(0, 0.1)).is_err());
        assert!(shape(Target::new(u64::MAX, 0.1)).is_err());
        assert!(shape(Target { growth: 1, ..Target::new(10, 0.1) }).is_err());
    }
}
