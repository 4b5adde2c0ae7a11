//! Counting Bloom filters: the rate of a Bloom filter, and how high the counters go.
//!
//! A counter is raised by a Poisson number of keys, `kn/m` on average: `ln 2` at the best `k`.
//! Four bits then overflow in 6.8e-17 of the counters, so a table of a million keeps clear of it
//! for 10^10 snapshots. Bonomi et al., ESA 2006, section 5.1; Rottenstreich et al., equation 8.

use super::{Target, bloom, tail};
use crate::{
    Infeasible,
    member::{Overflow, counting},
};

/// The width that four papers of five take.
const WIDTH: u32 = 4;

/// The smallest table of 4-bit counters that meets the target.
pub fn counting(target: Target) -> Result<counting::Shape, Infeasible> {
    let (counters, hashes) = bloom::least_cells(target)?;
    Ok(counting::Shape { counters, hashes, width: WIDTH, overflow: Overflow::Refuse })
}

/// The false-positive rate of a table that holds `keys` keys.
pub fn counting_rate(shape: counting::Shape, keys: u64) -> f64 {
    bloom::rate(shape.counters as f64, shape.hashes, keys as f64)
}

/// The chance that a given counter is at `level` or above while `keys` keys are stored.
pub fn counting_at_least(shape: counting::Shape, keys: u64, level: u64) -> f64 {
    tail::poisson_at_least(mean(shape, keys), level)
}

/// How many counters would be above their ceiling while `keys` keys are stored, on average. While
/// it is small, this is the chance that storing them overflows at all.
pub fn counting_overflow(shape: counting::Shape, keys: u64) -> f64 {
    shape.counters as f64 * counting_at_least(shape, keys, 1 << shape.width)
}

/// The classic upper bound of the same: `m (e k n / (level m))^level`.
pub fn counting_overflow_bound(shape: counting::Shape, keys: u64) -> f64 {
    let level = f64::from(1u32 << shape.width);
    let base = std::f64::consts::E * mean(shape, keys) / level;
    shape.counters as f64 * base.powf(level)
}

/// How often some counter is raised to exactly `level` in the course of `insertions` insertions
/// into a table that always holds `keys` keys, on average.
pub fn counting_raises(shape: counting::Shape, keys: u64, insertions: u64, level: u64) -> f64 {
    let Some(below) = level.checked_sub(1) else { return 0.0 };
    insertions as f64 * f64::from(shape.hashes) * tail::poisson(mean(shape, keys), below)
}

fn mean(shape: counting::Shape, keys: u64) -> f64 {
    f64::from(shape.hashes) * keys as f64 / shape.counters as f64
}
