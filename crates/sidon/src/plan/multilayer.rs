//! Two layers: how many counters overflow to the second, and the smallest pair of layers.
//!
//! The first layer has as many counters as one layer would. A binomial number of them reaches the
//! ceiling. The second layer has room for six standard deviations more than their mean, at a load at
//! which two choices do not overflow.

use super::{
    Target,
    fluid::Fluid,
    increments::{Cell, exactly, least_cells},
    variable::{OVERFLOWS, SETS},
};
use crate::{
    Infeasible,
    member::{Increments, Overflow, Spread, code::Sums, multilayer::Shape},
};
use std::sync::OnceLock;

/// Cells of a bucket of the second layer.
const BUCKET: u32 = 8;
/// Counters of ten bits hold every sum that matters.
const WIDE: u64 = (1 << 10) - 1;

/// The smallest pair of layers that meets the target and refuses a key as rarely as a filter of
/// [`variable`](super::variable) increments.
///
/// ```
/// use sidon::{member::Multilayer, plan::{Target, multilayer, variable}};
///
/// let target = Target::new(20_000, 0.001);
/// let shape = multilayer::shape(target)?;
/// let single = variable::shape(target)?;
/// assert!(multilayer::rate(shape, 20_000)? <= 0.001);
/// // Two layers take less than 90 % of the memory of one.
/// assert!(Multilayer::planned_bytes(shape) * 80 < single.counters * u64::from(single.width) * 9);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: Target) -> Result<Shape, Infeasible> {
    target.check_fixed()?;
    let mut best: Option<(u64, Shape)> = None;
    for set in SETS.into_iter().chain([Increments::UNIT]) {
        let table = least(target, set)?;
        for first in 2..=6 {
            let Ok(shape) = layers(target, set, first, table) else { continue };
            let bytes = shape.bytes();
            if best.is_none_or(|(least, _)| bytes < least) {
                best = Some((bytes, shape));
            }
        }
    }
    let (_, best) = best.ok_or(Infeasible::Memory { bytes: u64::MAX })?;
    // The equation chooses the best set. The exact rate of that set then gives the size.
    exact(target, best.increments, best.first)
}

/// The smallest pair of layers of these increments and this first width.
fn exact(target: Target, increments: Increments, first: u32) -> Result<Shape, Infeasible> {
    let (fpr, wide, keys) = (target.false_positives, cell(increments, WIDE)?, target.keys as f64);
    let table = exactly(fpr, &wide, keys, least(target, increments)?);
    layers(target, increments, first, table.ok_or(Infeasible::Memory { bytes: u64::MAX })?)
}

/// The counters and hashes of a table without ceilings.
fn least(target: Target, increments: Increments) -> Result<(u64, u32), Infeasible> {
    target.check()?;
    let wide = cell(increments, WIDE)?;
    let least = least_cells(target.false_positives, &wide, target.keys as f64);
    least.ok_or(Infeasible::Memory { bytes: u64::MAX })
}

fn layers(
    target: Target,
    increments: Increments,
    first: u32,
    (counters, hashes): (u64, u32),
) -> Result<Shape, Infeasible> {
    Infeasible::unless_within("first", first.into(), 1, 8)?;
    // Where one key can fill a counter, layers save nothing.
    let top = (1u64 << first) - 1;
    Infeasible::unless_within("first", first.into(), u64::from(increments.most().ilog2()) + 1, 8)?;
    let keys = target.keys as f64;
    let above = |level: u64| {
        let cell = cell(increments, level)?;
        Ok::<_, Infeasible>(counters as f64 * cell.overflow(counters as f64, hashes, keys))
    };
    let spilled = above(top)?;
    let (most, mut rest) = (spilled + 6.0 * spilled.sqrt() + 6.0, 1);
    while rest < 10 && above(top + (1 << rest) - 1)? > OVERFLOWS {
        rest += 1;
    }
    let buckets = buckets(most);
    let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
    Ok(Shape { counters, hashes, first, rest, buckets, increments, overflow, spread })
}

/// Buckets of each half that hold `most` counters, while counters are added and removed.
fn buckets(most: f64) -> u64 {
    // Keys a bucket, and the share of buckets that would need a ninth cell: made once.
    static SHARES: OnceLock<[(f64, f64); 6]> = OnceLock::new();
    let shares = SHARES.get_or_init(|| {
        let share = |load| (load, Fluid::steady(2, load, 24).at_least(BUCKET + 1));
        [6.0, 5.5, 5.0, 4.5, 4.0, 3.5].map(share)
    });
    let fits = |(load, share): &&(f64, f64)| most / load * share <= OVERFLOWS;
    let load = shares.iter().find(fits).map_or(2.0, |(load, _)| *load);
    (most / load / 2.0).ceil() as u64
}

/// The false-positive rate of both layers while they hold `keys` keys. `Infeasible` for counters in
/// lines, which have no formula.
///
/// ```
/// use sidon::{member::{Increments, Overflow, Spread, multilayer::Shape}, plan::multilayer};
///
/// // Layers hold the same counters as one layer. With increments of 1, that is a counting filter:
/// // (1 - (1 - 1/10000)^7000)^7.
/// let shape = Shape {
///     counters: 10_000,
///     hashes: 7,
///     first: 2,
///     rest: 4,
///     buckets: 100,
///     increments: Increments::of([1]),
///     overflow: Overflow::Refuse,
///     spread: Spread::Anywhere,
/// };
/// assert!((multilayer::rate(shape, 1_000)? - 0.008_195_702_596_8).abs() < 1e-12);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn rate(shape: Shape, keys: u64) -> Result<f64, Infeasible> {
    if shape.spread != Spread::Anywhere {
        let must = "be Anywhere for this formula";
        return Err(Infeasible::conflict("spread", &shape.spread, must));
    }
    let cell = cell(shape.increments, shape.ceiling().min(WIDE))?;
    Ok(cell.rate(shape.counters as f64, shape.hashes, keys as f64))
}

/// A counter that is pinned at `ceiling`.
fn cell(increments: Increments, ceiling: u64) -> Result<Cell, Infeasible> {
    Ok(Cell::walk(&Sums::new(increments, ceiling, Overflow::Pin)?, ceiling as usize + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, member::Multilayer};
    use sidon_kit::{FiveTuples, assert_rate};

    #[test]
    fn as_many_counters_overflow_as_planned() {
        let shape = shape(Target::new(20_000, 0.001)).unwrap();
        let first = cell(shape.increments, (1 << shape.first) - 1).unwrap();
        let share = first.overflow(shape.counters as f64, shape.hashes, 20_000.0);
        let mut filter = Multilayer::new(shape, Seed(2)).unwrap();
        for key in FiveTuples::seeded(8).take(20_000) {
            filter.insert(&key).unwrap();
        }
        assert_rate(filter.stats().overflowed as usize, shape.counters as usize, share);
        assert!(layers(Target::new(1000, 0.01), Increments::of([4, 5, 6, 7]), 2, (1, 1)).is_err());
    }
}
