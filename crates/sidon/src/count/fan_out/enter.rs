//! Additions, one by one and in batches.

use super::{Bucket, Place, Shape, Stored, bucket::tag_of};
use crate::{
    Digest, Key, Seed,
    batch::{self, Batch, Keys, Pace},
    count::registers,
    key::spread,
    simd::{self, Isa, LINE},
};

/// Tables up to this many bytes stay in the cache and are not prefetched.
const NEAR: usize = 64 << 10;

/// The mutable parts of a table at a time, borrowed once for many keys.
pub(super) struct Cells<'a> {
    pub(super) layout: Bucket,
    pub(super) epoch: u64,
    pub(super) buckets: &'a mut [u8],
    pub(super) shape: Shape,
    pub(super) seed: Seed,
}

impl Cells<'_> {
    /// The bucket of a key.
    #[inline(always)]
    pub(super) fn place(&self, digest: Digest) -> usize {
        spread::position(digest, 0, self.shape.buckets) as usize
    }

    /// Adds an element to the key, and returns the count of the key's entry.
    #[inline(always)]
    pub(super) fn add<I: Isa, K: Stored>(
        &mut self,
        isa: I,
        bucket: usize,
        digest: Digest,
        key: &K,
        element: Digest,
    ) -> u64 {
        let (layout, width) = (self.layout, self.layout.bytes());
        let bytes = &mut self.buckets[bucket * width..][..width];
        layout.advance(bytes, self.epoch);
        let word = registers::word(element.0, bucket as u64);
        let tag = tag_of(digest);
        if let Some(entry) = layout.find(isa, bytes, tag, key) {
            if layout.insert(bytes, Some(entry), word) {
                layout.set_count(bytes, entry);
            }
            return layout.count(bytes, entry).into();
        }
        let free = layout.first_tagged(isa, bytes, 0).or_else(|| {
            let (smallest, count) = layout.smallest(bytes);
            // Another word of the element, so that winners have no special ranks.
            let wins = spread::fraction(spread::again(word), u64::from(count) + 1) == 0;
            wins.then(|| {
                layout.evict(bytes, smallest);
                smallest
            })
        });
        match free {
            Some(entry) => {
                layout.write_key(bytes, entry, tag, key);
                layout.insert(bytes, Some(entry), word);
                layout.set_count_of_one(bytes, entry);
                1
            }
            None => {
                layout.insert(bytes, None, word);
                0
            }
        }
    }
}

/// Adds the elements, in order.
pub(super) fn each<K: Stored, E: Key>(cells: Cells<'_>, keys: &[K], elements: &[E]) {
    let (seed, bytes) = (cells.seed, cells.buckets.len());
    let enter = Enter { near: bytes <= NEAR, cells, keys, elements };
    batch::dispatch(Keys::Typed(seed, keys), bytes, enter);
}

/// Finds the bucket of each key, and adds its element.
struct Enter<'a, K, E> {
    near: bool,
    cells: Cells<'a>,
    keys: &'a [K],
    elements: &'a [E],
}

impl<K: Stored, E: Key> Batch for Enter<'_, K, E> {
    const PACE: Pace = Pace { ahead: Some(8), ..Pace::USUAL };
    type Position = Place;
    const NOWHERE: Place = (0, Digest(0));

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], places: &mut [Place]) {
        for (&digest, place) in digests.iter().zip(places) {
            *place = (self.cells.place(digest), digest);
            if !self.near {
                let start = place.0 * self.cells.layout.bytes();
                for line in (0..super::bucket::HEAD + self.cells.layout.panes()).step_by(LINE) {
                    simd::prefetch(self.cells.buckets, start + line);
                }
            }
        }
    }

    /// The head of the bucket tells which entry is needed next.
    #[inline(always)]
    fn read_ahead<I: Isa>(&mut self, _: I, _: usize, places: &mut [Place]) {
        if self.near {
            return;
        }
        let (layout, width) = (self.cells.layout, self.cells.layout.bytes());
        for &mut (bucket, digest) in places {
            let bytes = &self.cells.buckets[bucket * width..][..width];
            if let Some(entry) = layout.first_tagged(simd::BASE, bytes, tag_of(digest)) {
                let at = bucket * width + layout.entry(entry);
                for line in (0..layout.key + layout.panes()).step_by(LINE) {
                    simd::prefetch(self.cells.buckets, at + line);
                }
            }
        }
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, places: &[Place]) {
        for (number, &(bucket, digest)) in (first..).zip(places) {
            let (key, element) = (&self.keys[number], &self.elements[number]);
            let element = element.digest(self.cells.seed);
            self.cells.add(simd::BASE, bucket, digest, key, element);
        }
    }
}
