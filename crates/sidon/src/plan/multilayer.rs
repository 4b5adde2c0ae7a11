//! Two layers: how many counters go on in the second, and the smallest pair of layers.
//!
//! The first layer has as many counters as one layer would. Those that reach its ceiling are a
//! binomial number, and the second layer has room for six standard deviations more than their mean,
//! at a load that the fluid limit of two choices keeps from overflowing.

use super::{
    Fluid, OVERFLOWS, SETS, Target,
    increments::{Cell, exactly, least_cells},
};
use crate::{
    Infeasible,
    member::{Increments, Overflow, Spread, code::Sums, multilayer},
};
use std::sync::OnceLock;

/// Cells of a bucket of the second layer.
const BUCKET: u32 = 8;
/// Counters of so many bits hold every sum that matters.
const WIDE: u64 = (1 << 10) - 1;

/// The smallest pair of layers that meets the target and refuses a key as rarely as
/// [`variable`](super::variable) does.
pub fn multilayer(target: Target) -> Result<multilayer::Shape, Infeasible> {
    let mut best: Option<(u64, multilayer::Shape)> = None;
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
    multilayer_of(target, best.increments, best.first)
}

/// The smallest pair of layers of these increments and this first width.
pub fn multilayer_of(
    target: Target,
    increments: Increments,
    first: u32,
) -> Result<multilayer::Shape, Infeasible> {
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
) -> Result<multilayer::Shape, Infeasible> {
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
    Ok(multilayer::Shape { counters, hashes, first, rest, buckets, increments, overflow, spread })
}

/// Buckets of each half that hold so many positions, as they come and go.
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

/// The false-positive rate of both layers while they hold `keys` keys.
pub fn multilayer_rate(shape: multilayer::Shape, keys: u64) -> Result<f64, Infeasible> {
    if shape.spread != Spread::Anywhere {
        let must = "be Anywhere for this formula";
        return Err(Infeasible::conflict("spread", &shape.spread, must));
    }
    let cell = cell(shape.increments, shape.ceiling().min(WIDE))?;
    Ok(cell.rate(shape.counters as f64, shape.hashes, keys as f64))
}

/// How many counters go on in the second layer while it holds `keys` keys, on average.
pub fn multilayer_spilled(shape: multilayer::Shape, keys: u64) -> Result<f64, Infeasible> {
    let cell = cell(shape.increments, (1 << shape.first.min(8)) - 1)?;
    let share = cell.overflow(shape.counters as f64, shape.hashes, keys as f64);
    Ok(shape.counters as f64 * share)
}

/// A counter that is pinned at `ceiling`.
fn cell(increments: Increments, ceiling: u64) -> Result<Cell, Infeasible> {
    Ok(Cell::walk(&Sums::new(increments, ceiling, Overflow::Pin)?, ceiling as usize + 1))
}
