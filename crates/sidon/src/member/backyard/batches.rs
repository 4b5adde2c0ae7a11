//! Batches: prefetch the lines of keys, then insert, remove or count them.

use super::{
    Body,
    find::Find,
    line::{self, Line, Place, ask_behind},
};
use crate::{
    Key, Refused, Seed,
    dleft_table::Table,
    hash,
    member::batch::{CHUNK, NEAR},
    probe::{self, Isa, Kernel, LINE},
};

impl Body {
    pub(super) fn insert_keys<K: Key>(
        &mut self,
        keys: &[K],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let (seed, lines) = (self.seed, self.shape.lines);
        let enter = Enter { filter: self, refused, before: 0, failed: 0 };
        probe::dispatch(Walk { keys, seed, lines, act: enter });
    }

    pub(super) fn remove_keys<K: Key>(
        &mut self,
        keys: &[K],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let (seed, lines) = (self.seed, self.shape.lines);
        probe::dispatch(Walk { keys, seed, lines, act: Leave { filter: self, refused } });
    }

    pub(super) fn contains_keys<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        probe::dispatch(Find { filter: self, keys, found });
    }

    pub(super) fn count_keys<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        let Body { shape, seed, front, back, .. } = self;
        let count = Count { lines: line::all(front), back, counts };
        probe::dispatch(Walk { keys, seed: *seed, lines: shape.lines, act: count });
    }
}

/// The action on up to 32 keys whose lines were prefetched, in two steps. The first step handles
/// the keys that need their line alone, and prefetches the overflow buckets of the others. The
/// second step handles those. The result is that of one key after the other. If a key waits for its
/// overflow bucket, every later key of the same line whose result depends on it waits, too. A
/// trait instead of a closure, so that it is inlined into the loop and compiled for its instruction
/// set.
trait Act {
    /// The bytes of all lines.
    fn front(&self) -> &[u8];
    /// Acts on keys, starting at index `first`. Returns a mask of those that need the overflow
    /// table.
    fn at_lines<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) -> u32;
    /// Acts on key `first + i`, which needs the overflow table.
    fn behind(&mut self, first: usize, i: usize, place: Place);
}

/// A loop over keys, compiled for every type of key. A loop over digests that were hashed before
/// takes half as long again.
struct Walk<'a, K, A> {
    keys: &'a [K],
    seed: Seed,
    lines: u64,
    act: A,
}

impl<K: Key, A: Act> Kernel for Walk<'_, K, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let mut places = [Place { line: 0, value: 0 }; CHUNK];
        let far = self.act.front().len() > NEAR;
        for (i, keys) in self.keys.chunks(CHUNK).enumerate() {
            let places = &mut places[..keys.len()];
            if far {
                self.ask::<true, I>(isa, keys, places);
            } else {
                self.ask::<false, I>(isa, keys, places);
            }
            let mut left = self.act.at_lines(isa, i * CHUNK, places);
            while left != 0 {
                let key = left.trailing_zeros() as usize;
                self.act.behind(i * CHUNK, key, places[key]);
                left &= left - 1;
            }
        }
    }
}

impl<K: Key, A: Act> Walk<'_, K, A> {
    /// Finds the places of keys, and prefetches their lines unless the table is in the cache.
    #[inline(always)]
    fn ask<const FAR: bool, I: Isa>(&self, isa: I, keys: &[K], places: &mut [Place]) {
        let front = self.act.front();
        for (key, place) in keys.iter().zip(places) {
            *place = Place::of(hash::digest_by(key, isa, self.seed), self.lines);
            if FAR {
                probe::prefetch(front, place.line as usize * LINE);
            }
        }
    }
}

/// Counts the copies of each key.
struct Count<'a> {
    lines: &'a [[u8; LINE]],
    back: &'a Table,
    counts: &'a mut [u64],
}

impl Act for Count<'_> {
    #[inline(always)]
    fn front(&self) -> &[u8] {
        self.lines.as_flattened()
    }

    #[inline(always)]
    fn at_lines<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) -> u32 {
        for (&place, copies) in places.iter().zip(&mut self.counts[first..]) {
            *copies = Line(&self.lines[place.line as usize]).count(isa, place, self.back);
        }
        0
    }

    fn behind(&mut self, _: usize, _: usize, _: Place) {}
}

/// Inserts each key.
struct Enter<'a> {
    filter: &'a mut Body,
    refused: &'a mut dyn FnMut(usize, Refused),
    /// The number of keys stored before the first key of this chunk.
    before: u64,
    /// The number of keys of this chunk that were refused.
    failed: u64,
}

impl Act for Enter<'_> {
    #[inline(always)]
    fn front(&self) -> &[u8] {
        self.filter.front.bytes()
    }

    #[inline(always)]
    fn at_lines<I: Isa>(&mut self, isa: I, _: usize, places: &[Place]) -> u32 {
        let Body { front, back, stored, .. } = &mut *self.filter;
        (self.before, self.failed) = (*stored, 0);
        let (lines, mut left, full) = (line::all_mut(front), 0u32, back.is_full());
        for (i, &place) in places.iter().enumerate() {
            if !Line(&mut lines[place.line as usize]).insert_here(isa, place) {
                left |= 1 << i;
                if !full {
                    ask_behind(back, place);
                }
            }
        }
        *stored += places.len() as u64 - u64::from(left.count_ones());
        left
    }

    fn behind(&mut self, first: usize, i: usize, place: Place) {
        // The key's line is full. If the overflow table is full, too, the key is refused without a
        // search.
        if self.filter.back.is_full() || self.filter.insert_at(place).is_err() {
            // The number of keys stored before this one.
            let stored = self.before + i as u64 - self.failed;
            self.failed += 1;
            (self.refused)(first + i, self.filter.shape.full(stored));
        }
    }
}

/// Removes each key.
struct Leave<'a> {
    filter: &'a mut Body,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl Act for Leave<'_> {
    #[inline(always)]
    fn front(&self) -> &[u8] {
        self.filter.front.bytes()
    }

    #[inline(always)]
    fn at_lines<I: Isa>(&mut self, isa: I, _: usize, places: &[Place]) -> u32 {
        let Body { front, back, stored, .. } = &mut *self.filter;
        let (lines, mut left) = (line::all_mut(front), 0u32);
        for (i, &place) in places.iter().enumerate() {
            let mut line = Line(&mut lines[place.line as usize]);
            if !line.remove_here(isa, place) {
                left |= 1 << i;
                if line.look().reach() != 0 {
                    ask_behind(back, place);
                }
            }
        }
        *stored -= places.len() as u64 - u64::from(left.count_ones());
        left
    }

    fn behind(&mut self, first: usize, i: usize, place: Place) {
        if let Err(why) = self.filter.remove_at(place) {
            (self.refused)(first + i, why);
        }
    }
}
