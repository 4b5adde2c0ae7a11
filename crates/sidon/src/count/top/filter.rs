//! The counters of keys without an entry: rows of 32 bits, with the amounts of a key side by side.

use super::Shape;
use crate::{Digest, key::spread};

/// The bytes of `A` counters.
#[inline(always)]
fn counters<const A: usize>(filter: &[u8], at: usize) -> [u32; A] {
    let bytes = &filter[at..][..4 * A];
    let mut counters = [0; A];
    for (counter, bytes) in counters.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *counter = u32::from_le_bytes(*bytes);
    }
    counters
}

/// The offset of the key's counters in a row.
#[inline(always)]
pub(super) fn place<const A: usize>(shape: &Shape, digest: Digest, row: u32) -> usize {
    let column = spread::position(digest, row + 1, shape.columns);
    (u64::from(row) * shape.columns + column) as usize * A * 4
}

/// Reduces `most` to the key's counters where they are smaller.
#[inline(always)]
pub(super) fn lower<const A: usize>(
    filter: &[u8],
    shape: &Shape,
    digest: Digest,
    most: &mut [u64; A],
) {
    for row in 0..shape.rows {
        for (most, counter) in
            most.iter_mut().zip(counters::<A>(filter, place::<A>(shape, digest, row)))
        {
            // A counter at its ceiling gives no bound.
            if counter != u32::MAX {
                *most = (*most).min(counter.into());
            }
        }
    }
}

/// Raises the key's counters to `most` where they are smaller.
#[inline(always)]
pub(super) fn raise<const A: usize>(
    filter: &mut [u8],
    shape: &Shape,
    digest: Digest,
    most: [u64; A],
) {
    let mut ceiled = [0; A];
    for (ceiled, most) in ceiled.iter_mut().zip(most) {
        *ceiled = most.min(u32::MAX.into()) as u32;
    }
    for row in 0..shape.rows {
        let at = place::<A>(shape, digest, row);
        let had = counters::<A>(filter, at);
        let bytes = filter[at..][..4 * A].as_chunks_mut::<4>().0;
        for amount in 0..A {
            bytes[amount] = had[amount].max(ceiled[amount]).to_le_bytes();
        }
    }
}
