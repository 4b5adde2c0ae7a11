//! Batches: prefetch the lines of keys, then insert, remove or count them.
//!
//! Inserting and removing take two steps for each chunk of keys. The first step handles the keys
//! that need their line alone, and prefetches the overflow buckets of the others. The second step
//! handles those. The result is that of one key after the other. If a key waits for its overflow
//! bucket, every later key of the same line whose result depends on it waits, too.

use super::{
    Body, Shape,
    find::Find,
    line::{self, Line, Place, ask_behind},
};
use crate::{
    Digest, Key, Refused,
    batch::{self, Batch, Keys, NEAR, Pace},
    dleft_table::Table,
    simd::{self, BASE, Isa, LINE},
};

impl Body {
    pub(super) fn insert_keys<K: Key>(
        &mut self,
        keys: &[K],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let Body { shape, seed, front, back, stored } = self;
        let (keys, bytes) = (Keys::Typed(*seed, keys), front.bytes().len());
        let lines = line::all_mut(front);
        batch::dispatch(keys, bytes, Enter { shape: *shape, lines, back, stored, refused });
    }

    pub(super) fn remove_keys<K: Key>(
        &mut self,
        keys: &[K],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let Body { shape, seed, front, back, stored } = self;
        let (keys, bytes) = (Keys::Typed(*seed, keys), front.bytes().len());
        let lines = line::all_mut(front);
        batch::dispatch(keys, bytes, Leave { of: shape.lines, lines, back, stored, refused });
    }

    pub(super) fn contains_keys<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        simd::dispatch(Find { filter: self, keys, found });
    }

    pub(super) fn count_keys<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        let Body { shape, seed, front, back, .. } = self;
        let count = Count { lines: line::all(front), of: shape.lines, back, counts };
        batch::dispatch(Keys::Typed(*seed, keys), front.bytes().len(), count);
    }
}

/// Loops over keys, compiled for every type of key. A loop over digests that were hashed before
/// takes half as long again.
const PACE: Pace = Pace { singly: true, ..Pace::CHUNKS };

/// Finds the places of keys, and prefetches their lines unless the table is in the cache.
#[inline(always)]
fn locate(front: &[u8], lines: u64, digests: &[Digest], places: &mut [Place]) {
    for (&digest, place) in digests.iter().zip(places) {
        *place = Place::of(digest, lines);
        if front.len() > NEAR {
            simd::prefetch(front, place.line as usize * LINE);
        }
    }
}

/// Counts the copies of each key.
struct Count<'a> {
    lines: &'a [[u8; LINE]],
    /// The number of lines.
    of: u64,
    back: &'a Table,
    counts: &'a mut [u64],
}

impl Batch for Count<'_> {
    const PACE: Pace = PACE;
    type Position = Place;
    const NOWHERE: Place = Place::NOWHERE;

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], places: &mut [Place]) {
        locate(self.lines.as_flattened(), self.of, digests, places);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) {
        for (&place, copies) in places.iter().zip(&mut self.counts[first..]) {
            *copies = Line(&self.lines[place.line as usize]).count(isa, place, self.back);
        }
    }
}

/// Inserts each key.
struct Enter<'a> {
    shape: Shape,
    lines: &'a mut [[u8; LINE]],
    back: &'a mut Table,
    stored: &'a mut u64,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl Batch for Enter<'_> {
    const PACE: Pace = PACE;
    type Position = Place;
    const NOWHERE: Place = Place::NOWHERE;

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], places: &mut [Place]) {
        locate(self.lines.as_flattened(), self.shape.lines, digests, places);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) {
        let (mut left, full) = (0u32, self.back.is_full());
        for (i, &place) in places.iter().enumerate() {
            if !Line(&mut self.lines[place.line as usize]).insert_here(isa, place) {
                left |= 1 << i;
                if !full {
                    ask_behind(self.back, place);
                }
            }
        }
        let before = *self.stored;
        *self.stored += places.len() as u64 - u64::from(left.count_ones());
        if left != 0 {
            self.insert_behind(first, places, left, before);
        }
    }
}

impl Enter<'_> {
    /// Inserts the keys of the mask `left`, whose lines are full. Before these places, the filter
    /// stored `before` keys.
    #[cold]
    #[inline(never)]
    fn insert_behind(&mut self, first: usize, places: &[Place], mut left: u32, before: u64) {
        let mut failed = 0;
        while left != 0 {
            let i = left.trailing_zeros() as usize;
            left &= left - 1;
            // No line has lost a key since the first step, so this one is still full.
            if Line(&mut self.lines[places[i].line as usize]).spill(places[i], self.back) {
                *self.stored += 1;
            } else {
                // The number of keys stored before this one.
                let stored = before + i as u64 - failed;
                failed += 1;
                (self.refused)(first + i, self.shape.full(stored));
            }
        }
    }
}

/// Removes each key.
struct Leave<'a> {
    /// The number of lines.
    of: u64,
    lines: &'a mut [[u8; LINE]],
    back: &'a mut Table,
    stored: &'a mut u64,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl Batch for Leave<'_> {
    const PACE: Pace = PACE;
    type Position = Place;
    const NOWHERE: Place = Place::NOWHERE;

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], places: &mut [Place]) {
        locate(self.lines.as_flattened(), self.of, digests, places);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) {
        let mut left = 0u32;
        for (i, &place) in places.iter().enumerate() {
            let mut line = Line(&mut self.lines[place.line as usize]);
            if !line.remove_here(isa, place) {
                left |= 1 << i;
                if line.look().reach() != 0 {
                    ask_behind(self.back, place);
                }
            }
        }
        *self.stored -= places.len() as u64 - u64::from(left.count_ones());
        if left != 0 {
            self.remove_behind(first, places, left);
        }
    }
}

impl Leave<'_> {
    /// Removes the keys of the mask `left`, whose lines have overflowed or do not hold them.
    #[cold]
    #[inline(never)]
    fn remove_behind(&mut self, first: usize, places: &[Place], mut left: u32) {
        while left != 0 {
            let i = left.trailing_zeros() as usize;
            left &= left - 1;
            // An earlier removal may have moved the last overflowed key back to the line.
            let line = Line(&mut self.lines[places[i].line as usize]);
            if line.remove(BASE, places[i], self.back) {
                *self.stored -= 1;
            } else {
                (self.refused)(first + i, Refused::NotStored);
            }
        }
    }
}
