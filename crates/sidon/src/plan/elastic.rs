//! D-left filters whose remainders change their length ([`Elastic`](crate::set::Elastic)): buckets and bits.
//!
//! A key never inserted passes with probability `n / (buckets * 2^r)` while all remainders have `r` bits.
//! Tables of two subtables fill to 90 per cent by moving keys.

use super::Target;
use crate::{
    Infeasible,
    set::{Moves, elastic::Shape},
};

/// The share of cells that may be in use. Keys that find no room move others.
const LOAD_MAX: f64 = 0.9;
/// Cells that small tables have beyond that.
const SPARE: f64 = 24.0;

/// The smallest filter that holds `keys` keys at the target's rate. In the same memory it holds
/// `keys * 2^growth` keys, with shorter remainders and a higher rate.
///
/// ```
/// use sidon::{plan::{self, Target}, set::Elastic};
///
/// let target = Target { deletes: true, growth: 1, ..Target::new(100_000, 0.002) };
/// let shape = plan::elastic::shape(target)?;
/// // Twice the keys need cells of half the width.
/// assert!(Elastic::planned_bytes(shape) < 240_000);
/// assert!(plan::elastic::rate(shape, 100_000) <= 0.002);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: Target) -> Result<Shape, Infeasible> {
    target.check()?;
    let (keys, p) = (target.keys as f64, target.false_positives);
    let peak = keys * 2f64.powi(target.growth.min(64) as i32);
    let buckets = |keys: f64, cells: u32| ((keys / LOAD_MAX + SPARE) / f64::from(2 * cells)).ceil();
    let mut best: Option<Shape> = None;
    for remainder in 1..=30 {
        let of = |least, buckets| Shape {
            subtables: 2,
            buckets,
            line: 32,
            least,
            remainder,
            counter: 1,
            moves: Moves::Search(256),
            narrows: target.growth > 0,
        };
        let cells = |bits| Shape { remainder: bits, ..of(1, 1) }.cells().max(1);
        let most = (1..=remainder).map(cells).max().unwrap_or(1);
        let needed = buckets(keys, cells(remainder)).max(buckets(peak, most));
        let needed = needed.max((keys / p / 2f64.powi(remainder as i32)).ceil()) as u64;
        // The longest remainders that have cells enough for all keys.
        let enough = |bits: &u32| buckets(peak, cells(*bits)) <= needed as f64;
        let Some(least) = (1..=remainder).rev().find(enough) else { continue };
        let shape = of(least, needed);
        let smaller = best.is_none_or(|best| shape.bytes() < best.bytes());
        if smaller && shape.check().is_ok() && rate(shape, target.keys) <= p {
            best = Some(shape);
        }
    }
    best.ok_or(Infeasible::Rate { name: "false_positives", got: p, least: 1e-9, most: 1.0 })
}

/// The false-positive rate of a filter with `keys` keys, all with remainders of the shape's length. 1 for a
/// shape that cannot be built.
pub fn rate(shape: Shape, keys: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    let all = shape.buckets as f64 * 2f64.powi(shape.remainder as i32);
    -(keys as f64 * (-1.0 / all).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, set::Elastic};
    use sidon_kit::Keys;

    #[test]
    fn a_planned_filter_holds_its_keys_and_narrows_for_more() {
        for (keys, p, growth) in
            [(1u64, 0.5, 0), (300, 0.01, 1), (20_000, 2e-3, 1), (5_000, 1e-5, 0)]
        {
            let target = Target { growth, ..Target::new(keys, p) };
            let shape = shape(target).unwrap();
            let mut filter = Elastic::new(shape, Seed(1)).unwrap();
            let members: Vec<u64> = Keys::seeded(2).take((keys << growth) as usize).collect();
            let (first, more) = members.split_at(keys as usize);
            first.iter().for_each(|key| filter.insert(key).unwrap());
            assert_eq!(filter.shape(), shape, "{keys} keys fit without narrowing");
            assert!(filter.certainty().error() <= p * (1.0 + 1e-9));
            let bytes = filter.memory_bytes();
            more.iter().for_each(|key| filter.insert(key).unwrap());
            assert_eq!((filter.memory_bytes(), bytes), (Elastic::planned_bytes(shape), bytes));
            assert!(members.iter().all(|key| filter.contains(key)));
        }
        // More buckets than fingerprints of this length can have.
        assert!(shape(Target::new(1 << 45, 0.01)).is_err());
    }
}
