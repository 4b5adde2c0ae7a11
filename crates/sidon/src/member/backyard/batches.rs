//! What is asked of many keys: compiled once, here.

use super::{
    Backyard,
    line::{self, Line, Place, ask_behind, find},
};
use crate::{
    Key, Refused,
    member::batch::{CHUNK, NEAR},
    probe::{self, Isa, Kernel, LINE},
};

impl Backyard {
    pub(super) fn insert_keys<K: Key>(
        &mut self,
        keys: &[K],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        probe::dispatch(Walk { keys, act: Enter { filter: self, refused, before: 0, failed: 0 } });
    }

    pub(super) fn remove_keys<K: Key>(
        &mut self,
        keys: &[K],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        probe::dispatch(Walk { keys, act: Leave { filter: self, refused } });
    }

    pub(super) fn contains_keys<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        probe::dispatch(Walk { keys, act: Find { filter: self, found } });
    }

    pub(super) fn count_keys<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        probe::dispatch(Walk { keys, act: Count { filter: self, counts } });
    }
}

/// What is done with up to 32 keys whose lines have come, in two steps: first what their lines suffice for,
/// then what else is needed for, which has been asked for meanwhile. The result is that of one key after
/// the other: while a key waits for what is behind its line, so does every later key of that line that it
/// could make a difference to. A trait and not a closure, so that it is inlined into the loop and compiled
/// for its instruction set.
trait Act {
    fn filter(&self) -> &Backyard;
    /// Acts on keys from the one of this index on, and says for which more is needed, a bit for each.
    fn at_lines<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) -> u32;
    /// Acts on one of these: the one so far from the first.
    fn behind(&mut self, first: usize, i: usize, place: Place);
}

/// A loop over keys. It is compiled for every kind of them: one that hashes keys elsewhere, and is told
/// their digests, takes half as long again.
struct Walk<'a, K, A> {
    keys: &'a [K],
    act: A,
}

impl<K: Key, A: Act> Kernel for Walk<'_, K, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let mut places = [Place::NOWHERE; CHUNK];
        for (i, keys) in self.keys.chunks(CHUNK).enumerate() {
            let places = &mut places[..keys.len()];
            self.ask(isa, keys, places);
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
    /// Finds the places of keys, and asks for their lines if those are far.
    #[inline(always)]
    fn ask<I: Isa>(&self, isa: I, keys: &[K], places: &mut [Place]) {
        let Backyard { shape, seed, front, .. } = self.act.filter();
        let (lines, bytes) = (shape.lines, front.bytes());
        let far = bytes.len() > NEAR;
        for (key, place) in keys.iter().zip(places) {
            *place = Place::of(key.digest_by(isa, *seed), lines);
            if far {
                probe::prefetch(bytes, place.line() * LINE);
            }
        }
    }
}

/// Asks whether each key is in.
struct Find<'a> {
    filter: &'a Backyard,
    found: &'a mut [bool],
}

impl Act for Find<'_> {
    #[inline(always)]
    fn filter(&self) -> &Backyard {
        self.filter
    }

    #[inline(always)]
    fn at_lines<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) -> u32 {
        let Backyard { front, back, .. } = self.filter;
        let (lines, mut left) = (line::all(front), 0);
        let found = &mut self.found[first..first + places.len()];
        for (i, (&place, found)) in places.iter().zip(found).enumerate() {
            let line = Line(&lines[place.line()]);
            *found = line.holds(isa, place);
            if !*found & line.spilled_like(place) {
                left |= 1 << i;
                ask_behind(back, place);
            }
        }
        left
    }

    fn behind(&mut self, first: usize, i: usize, place: Place) {
        self.found[first + i] = find(&self.filter.back, place).is_some();
    }
}

/// Counts the copies of each key.
struct Count<'a> {
    filter: &'a Backyard,
    counts: &'a mut [u64],
}

impl Act for Count<'_> {
    #[inline(always)]
    fn filter(&self) -> &Backyard {
        self.filter
    }

    #[inline(always)]
    fn at_lines<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) -> u32 {
        let Backyard { front, back, .. } = self.filter;
        let lines = line::all(front);
        for (&place, copies) in places.iter().zip(&mut self.counts[first..]) {
            *copies = Line(&lines[place.line()]).count(isa, place, back);
        }
        0
    }

    fn behind(&mut self, _: usize, _: usize, _: Place) {}
}

/// Inserts each key.
struct Enter<'a> {
    filter: &'a mut Backyard,
    refused: &'a mut dyn FnMut(usize, Refused),
    /// How many were stored before the first of these keys.
    before: u64,
    /// How many of these were refused.
    failed: u64,
}

impl Act for Enter<'_> {
    #[inline(always)]
    fn filter(&self) -> &Backyard {
        self.filter
    }

    #[inline(always)]
    fn at_lines<I: Isa>(&mut self, isa: I, _: usize, places: &[Place]) -> u32 {
        let Backyard { front, back, stored, .. } = &mut *self.filter;
        (self.before, self.failed) = (*stored, 0);
        let (lines, mut left) = (line::all_mut(front), 0u32);
        for (i, &place) in places.iter().enumerate() {
            if !Line(&mut lines[place.line()]).insert_here(isa, place) {
                left |= 1 << i;
                ask_behind(back, place);
            }
        }
        *stored += places.len() as u64 - u64::from(left.count_ones());
        left
    }

    fn behind(&mut self, first: usize, i: usize, place: Place) {
        if self.filter.insert_at(place).is_err() {
            // As many as there were when its turn was.
            let stored = self.before + i as u64 - self.failed;
            self.failed += 1;
            (self.refused)(first + i, self.filter.shape.full(stored));
        }
    }
}

/// Removes each key.
struct Leave<'a> {
    filter: &'a mut Backyard,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl Act for Leave<'_> {
    #[inline(always)]
    fn filter(&self) -> &Backyard {
        self.filter
    }

    #[inline(always)]
    fn at_lines<I: Isa>(&mut self, isa: I, _: usize, places: &[Place]) -> u32 {
        let Backyard { front, back, stored, .. } = &mut *self.filter;
        let (lines, mut left) = (line::all_mut(front), 0u32);
        for (i, &place) in places.iter().enumerate() {
            let mut line = Line(&mut lines[place.line()]);
            if !line.remove_here(isa, place) {
                left |= 1 << i;
                if line.look().spilled() != 0 {
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
