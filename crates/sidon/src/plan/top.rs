//! Tables of the heaviest keys: entries and filter in a given memory.

use crate::{Infeasible, count::top::Shape};

/// One part in this many of the memory is the filter. On Zipf streams, a fourth to a sixth leaves the
/// fewest keys in doubt.
const FILTER_SHARE: u64 = 5;
/// Rows of the filter.
const FILTER_ROWS: u32 = 2;

/// The largest table of the heaviest keys in `bytes` bytes, for keys of `key_bytes` bytes with `amounts`
/// amounts each. [`Stored`](crate::count::Stored) lists the bytes of every type of key: 17 for an `IpAddr`.
///
/// ```
/// use sidon::{count::Top, plan::top};
///
/// // 16 MiB for five-tuples of 13 bytes with packets and bytes.
/// let shape = top::shape(16 << 20, 13, 2)?;
/// let bytes = Top::<[u8; 13], 2>::planned_bytes(shape);
/// assert!(bytes <= 16 << 20 && bytes + 64 > 16 << 20);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(bytes: u64, key_bytes: usize, amounts: usize) -> Result<Shape, Infeasible> {
    let one = Shape { buckets: 1, rows: FILTER_ROWS, columns: 1 };
    let (buckets, filter) = one.parts(key_bytes, amounts)?;
    let all = buckets + filter;
    let column = u64::from(FILTER_ROWS) * 4 * amounts as u64;
    let bucket = all - column;
    Infeasible::unless_within("bytes", bytes, bucket + column, 1 << 48)?;
    let buckets = ((bytes - bytes / FILTER_SHARE) / bucket).max(1);
    let columns = (bytes - buckets * bucket) / column;
    Ok(Shape { buckets, rows: FILTER_ROWS, columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_and_not_exceeded() {
        for (key, amounts) in [(13, 1), (13, 2), (37, 2)] {
            for bytes in [1 << 10, 1 << 20, 16 << 20] {
                let shape = shape(bytes, key, amounts).unwrap();
                let (buckets, filter) = shape.parts(key, amounts).unwrap();
                let used = buckets + filter;
                assert!(used <= bytes && used + 64 > bytes, "{used} of {bytes}");
            }
        }
        assert!(shape(100, 13, 1).is_err() && shape(1 << 20, 0, 1).is_err());
    }
}
