//! Layers: how many counters overflow to each layer after the first, and the smallest stack of
//! layers.
//!
//! The first layer has as many counters as one layer would. A binomial number of them reaches the
//! ceiling. The next layer has room for six standard deviations more than their mean, at a load at
//! which two choices do not overflow.

use super::{
    Target,
    fluid::Fluid,
    increments::{Cell, exactly, least_cells},
    variable::{OVERFLOWS, SETS},
};
use crate::{
    Infeasible,
    set::{Increments, Overflow, Spread, increment_code::Sums, multilayer::Shape},
};
use std::{collections::HashMap, sync::OnceLock};

/// Cells of a bucket of the second layer.
const BUCKET: u32 = 8;
/// Counters of ten bits hold every sum that matters.
const WIDE: u64 = (1 << 10) - 1;
/// The most layers after the first that a plan has. The fifth would hold less than one counter.
const FURTHER: usize = 3;

/// The smallest layers, two to four, that meet the target and refuse a key as rarely as a filter of
/// [`variable`](super::variable) increments.
///
/// ```
/// use sidon::{set::Multilayer, plan::{Target, multilayer, variable}};
///
/// let target = Target::new(20_000, 0.001);
/// let shape = multilayer::shape(target)?;
/// let single = variable::shape(target)?;
/// assert!(multilayer::rate(shape, 20_000)? <= 0.001);
/// // Layers take less than 90 % of the memory of a single one.
/// assert!(Multilayer::planned_bytes(shape) * 80 < single.counters * u64::from(single.width) * 9);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: Target) -> Result<Shape, Infeasible> {
    target.check_fixed()?;
    let mut best: Option<(u64, Shape)> = None;
    for set in SETS.into_iter().chain([Increments::UNIT]) {
        let table = least(target, set)?;
        for first in 2..=6 {
            let Ok(shape) = layers(target, set, first, table, 1) else { continue };
            let bytes = shape.bytes();
            if best.is_none_or(|(least, _)| bytes < least) {
                best = Some((bytes, shape));
            }
        }
    }
    let (_, best) = best.ok_or(Infeasible::Memory { bytes: u64::MAX })?;
    // The equation and two layers choose the best set. The exact rate of that set then gives the
    // size, and all numbers of layers are compared.
    exact(target, best.increments, best.first)
}

/// The smallest layers of these increments and this first width.
fn exact(target: Target, increments: Increments, first: u32) -> Result<Shape, Infeasible> {
    let (fpr, wide, keys) = (target.false_positives, cell(increments, WIDE)?, target.keys as f64);
    let table = exactly(fpr, &wide, keys, least(target, increments)?);
    let table = table.ok_or(Infeasible::Memory { bytes: u64::MAX })?;
    layers(target, increments, first, table, FURTHER)
}

/// The counters and hashes of a table without ceilings.
fn least(target: Target, increments: Increments) -> Result<(u64, u32), Infeasible> {
    target.check()?;
    let wide = cell(increments, WIDE)?;
    let least = least_cells(target.false_positives, &wide, target.keys as f64);
    least.ok_or(Infeasible::Memory { bytes: u64::MAX })
}

/// The smallest layers, at most `further` after the first.
fn layers(
    target: Target,
    increments: Increments,
    first: u32,
    (counters, hashes): (u64, u32),
    further: usize,
) -> Result<Shape, Infeasible> {
    // Where one key can fill a counter, layers save nothing.
    Infeasible::unless_within("first", first.into(), u64::from(increments.most().ilog2()) + 1, 8)?;
    let (keys, mut known) = (target.keys as f64, HashMap::new());
    let mut above = |level: u64| {
        if let Some(&above) = known.get(&level) {
            return Ok(above);
        }
        let cell = cell(increments, level)?;
        let above = counters as f64 * cell.overflow(counters as f64, hashes, keys);
        known.insert(level, above);
        Ok(above)
    };
    let (rest, buckets) = ([0; 7], [0; 7]);
    let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
    let start = Shape { counters, hashes, first, rest, buckets, increments, overflow, spread };
    deeper(start, 0, further, &mut above)
}

/// The smallest shape with the first `depth` further layers of `start` and at most `left` others.
fn deeper(
    start: Shape,
    depth: usize,
    left: usize,
    above: &mut impl FnMut(u64) -> Result<f64, Infeasible>,
) -> Result<Shape, Infeasible> {
    let spilled = above(start.ceiling())?;
    let most = spilled + 6.0 * spilled.sqrt() + 6.0;
    let mut best: Option<Shape> = None;
    for bits in 1..=10 {
        let mut shape = start;
        (shape.rest[depth], shape.buckets[depth]) = (bits, buckets(most));
        let ends = bits == 10 || above(shape.ceiling())? <= OVERFLOWS;
        if !ends {
            if left == 1 {
                continue;
            }
            shape = deeper(shape, depth + 1, left - 1, above)?;
        }
        if best.is_none_or(|best| shape.bytes() < best.bytes()) {
            best = Some(shape);
        }
        if ends {
            break;
        }
    }
    best.ok_or(Infeasible::Memory { bytes: u64::MAX })
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

/// The false-positive rate of all layers while they hold `keys` keys. `Infeasible` for counters in
/// lines, which have no formula.
///
/// ```
/// use sidon::{set::{Increments, Overflow, Spread, multilayer::Shape}, plan::multilayer};
///
/// // Layers hold the same counters as a single layer. With increments of 1, that is a counting filter:
/// // (1 - (1 - 1/10000)^7000)^7.
/// let shape = Shape {
///     counters: 10_000,
///     hashes: 7,
///     first: 2,
///     rest: [4, 0, 0, 0, 0, 0, 0],
///     buckets: [100, 0, 0, 0, 0, 0, 0],
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
    use crate::{Seed, set::Multilayer};
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
        assert!(
            layers(Target::new(1000, 0.01), Increments::of([4, 5, 6, 7]), 2, (1, 1), 1).is_err()
        );
    }
}
