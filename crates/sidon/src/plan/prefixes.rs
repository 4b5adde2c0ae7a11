//! Tables of prefixes: five levels in a given memory, or for a given distance of the bounds.

use crate::{
    Infeasible,
    count::{
        Prefixes,
        prefixes::{AMOUNTS_MAX, LEVELS, Shape},
    },
};

/// The parts of the memory that the levels get. A level receives only evicted amounts of the one before, so
/// each needs less than the one before.
const PARTS: [u64; LEVELS] = [6, 4, 3, 2, 1];
/// The entries of a full bucket beside one prefix.
const OTHERS: f64 = 7.0;

/// The largest table in `bytes` bytes, for `amounts` amounts per prefix: 1 to 4.
///
/// ```
/// use sidon::{count::Prefixes, plan::prefixes};
///
/// // Bytes, packets and new flows in 1 MiB.
/// let shape = prefixes::shape(1 << 20, 3)?;
/// assert_eq!(shape.buckets, [614, 409, 307, 204, 104]);
/// assert!(Prefixes::<3>::planned_bytes(shape) <= 1 << 20);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(bytes: u64, amounts: usize) -> Result<Shape, Infeasible> {
    let bucket = bucket(amounts)?;
    let all = PARTS.iter().sum::<u64>();
    Infeasible::unless_within("bytes", bytes, all * bucket, 1 << 48)?;
    let mut left = bytes / bucket;
    let unit = |part: u64| (u128::from(bytes / bucket) * u128::from(part) / u128::from(all)) as u64;
    let mut buckets = PARTS.map(unit);
    left -= buckets.iter().sum::<u64>();
    buckets[LEVELS - 1] += left;
    Ok(Shape { buckets })
}

/// The smallest table whose [`slack`] is at most this share of the total at every level, above 0 and below
/// 1.
///
/// ```
/// use sidon::plan::prefixes;
///
/// let shape = prefixes::shape_for(0.0001)?;
/// assert_eq!(shape.buckets, [1_429; 5]);
/// assert!(prefixes::slack(shape).iter().all(|&slack| slack <= 0.0001));
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape_for(slack: f64) -> Result<Shape, Infeasible> {
    let least = 1e-9;
    // Written so that a NaN is refused too.
    if !(slack >= least && slack < 1.0) {
        return Err(Infeasible::Rate { name: "slack", got: slack, least, most: 1.0 });
    }
    Ok(Shape { buckets: [(1.0 / (OTHERS * slack)).ceil().max(1.0) as u64; LEVELS] })
}

/// An upper bound of the mean distance between the bounds of a prefix at each level, as a share of the
/// total. It holds for any traffic, over the choice of the seed, for tables that were not merged.
///
/// A level misses of a prefix at most a seventh of the other amounts of its bucket. These are
/// `total / buckets` on average, and only if the level gets all amounts. Where lower levels keep most of
/// them, the bounds are closer.
pub fn slack(shape: Shape) -> [f64; LEVELS] {
    shape.buckets.map(|buckets| 1.0 / (OTHERS * buckets.max(1) as f64))
}

/// The bytes of a bucket.
fn bucket(amounts: usize) -> Result<u64, Infeasible> {
    Infeasible::unless_within("amounts", amounts as u64, 1, AMOUNTS_MAX as u64)?;
    let one = Shape { buckets: [1; LEVELS] };
    let all = match amounts {
        1 => Prefixes::<1>::planned_bytes(one),
        2 => Prefixes::<2>::planned_bytes(one),
        3 => Prefixes::<3>::planned_bytes(one),
        _ => Prefixes::<4>::planned_bytes(one),
    };
    Ok(all / LEVELS as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_and_not_exceeded() {
        for amounts in 1..=4 {
            let bucket = bucket(amounts).unwrap();
            for bytes in [16 * bucket, 1 << 16, (1 << 20) - 1, 16 << 20, 1 << 40] {
                let shape = shape(bytes, amounts).unwrap();
                let used = shape.buckets.iter().sum::<u64>() * bucket;
                assert!(used <= bytes && used + bucket > bytes, "{used} of {bytes}");
                assert!(shape.buckets.iter().all(|&buckets| buckets > 0));
            }
            assert!(shape(16 * bucket - 1, amounts).is_err());
        }
        assert!(shape(1 << 20, 0).is_err() && shape(1 << 20, 5).is_err());
        assert!(shape_for(0.0).is_err() && shape_for(f64::NAN).is_err() && shape_for(1.0).is_err());
    }
}
