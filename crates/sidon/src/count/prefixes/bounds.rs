//! The bounds of one prefix, of any length.

use super::{
    LEVELS, Prefix, Prefixes,
    bucket::{Bucket, Entry, Item, ceil, digest, floor, tag_of},
    prefix::{LENGTHS, at_level},
};
use crate::{count::Bounds, key::spread, simd};

impl<const A: usize> Prefixes<A> {
    /// The bounds of a prefix's amounts. A prefix of any length has bounds; they are tightest at the
    /// five lengths for which the table keeps entries.
    ///
    /// Reads one bucket per level for a whole address. For a shorter prefix it reads all buckets of the
    /// levels below.
    pub fn bounds(&self, prefix: &Prefix) -> [Bounds; A] {
        let lengths = LENGTHS[prefix.family()];
        // The levels at or below the prefix.
        let below = lengths.iter().take_while(|&&length| length >= prefix.length()).count();
        let mut held = Item::NONE;
        if prefix.length() == lengths[0] {
            held = self.at(0, prefix.number()).item;
        } else {
            for level in 0..below {
                for bytes in self.buckets(level) {
                    let due = Bucket::<A>::due(bytes, self.halvings);
                    for entry in Bucket::<A>::taken(bytes) {
                        let Entry { item, .. } = Bucket::<A>::entry(bytes, entry, due);
                        if prefix.has(item.key) {
                            held.join(&item);
                        }
                    }
                }
            }
        }
        let own = below.checked_sub(1).filter(|&level| lengths[level] == prefix.length());
        let above = match own {
            Some(level) => self.above(level, prefix.number()),
            None => self.from(below, prefix.number()),
        };
        std::array::from_fn(|amount| Bounds {
            least: floor(held.kept[amount].saturating_sub(held.rounding)),
            most: ceil(held.kept[amount].saturating_add(above[amount])),
        })
    }

    /// The most that the levels above `level` hold of the prefix that these bits have at `level`.
    pub(super) fn above(&self, level: usize, bits: u128) -> [u64; A] {
        least_of(self.at(level, at_level(bits, level)).missed, self.from(level + 1, bits))
    }

    /// The most that `level` and the levels above it hold of a longer prefix with these bits.
    fn from(&self, level: usize, bits: u128) -> [u64; A] {
        let mut most = self.rest.kept;
        for level in (level..LEVELS).rev() {
            let Entry { item, missed } = self.at(level, at_level(bits, level));
            most = least_of(missed, most);
            for (most, kept) in most.iter_mut().zip(item.kept) {
                *most = most.saturating_add(kept);
            }
        }
        most
    }

    /// The entry of a prefix. Without one, its kept amounts are 0, and what it may have missed is the
    /// bound of the bucket.
    pub(super) fn at(&self, level: usize, key: u128) -> Entry<A> {
        let digest = digest(key, self.seed);
        let bucket = spread::position(digest, 0, self.shape.buckets[level]) as usize;
        let bytes = &self.levels[level].bytes()[bucket * Bucket::<A>::BYTES..];
        let bytes = &bytes[..Bucket::<A>::BYTES];
        let due = Bucket::<A>::due(bytes, self.halvings);
        match Bucket::<A>::find(simd::BASE, bytes, tag_of(digest), key) {
            Some(entry) => Bucket::entry(bytes, entry, due),
            None => Entry { item: Item { key, ..Item::NONE }, missed: Bucket::away(bytes, due) },
        }
    }
}

/// The smaller amounts.
fn least_of<const A: usize>(one: [u64; A], other: [u64; A]) -> [u64; A] {
    std::array::from_fn(|amount| one[amount].min(other[amount]))
}
