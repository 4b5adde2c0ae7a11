//! Tables of regular contact ([`Periods`](crate::count::Periods)): entries for a number of pairs.

use crate::{Infeasible, count::periods::Shape, keyed};

/// A table with room for `pairs` pairs at a time: those with a period, and those that are new within an hour.
///
/// Contacts closer than a second count once, a pair with one contact keeps its entry for an hour, and a gap of more
/// than two days starts a pair again. Fewer than one pair in a million is refused before the table has
/// `pairs` pairs.
///
/// ```
/// use sidon::{count::Periods, plan::periods};
///
/// // 69 bytes per pair of IPv4 addresses: 8 for the addresses, 32 for the gaps, and empty entries.
/// let shape = periods::shape(100_000)?;
/// assert!(Periods::<[u8; 8]>::planned_bytes(shape) < 100_000 * 70);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(pairs: u64) -> Result<Shape, Infeasible> {
    Infeasible::unless_within("pairs", pairs, 1, 1 << 40)?;
    let buckets = keyed::planned_buckets(pairs);
    Ok(Shape { buckets, shortest: 1_000, grace: 3_600_000, longest: 2 * 86_400_000 })
}
