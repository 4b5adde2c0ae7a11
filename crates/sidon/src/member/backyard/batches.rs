//! What is asked of many keys: compiled once, here.

use super::{Backyard, Line, Place};
use crate::{
    Digest, Refused,
    member::batch::{CHUNK, Groups, Hashes, NEAR, by_groups},
    probe::{self, Isa, Kernel, LINE},
};
use std::ops::Range;

impl Backyard {
    pub(super) fn insert_keys(
        &mut self,
        keys: &dyn Hashes,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        probe::dispatch(Walk::new(keys, Enter { filter: self, refused }));
    }

    pub(super) fn remove_keys(
        &mut self,
        keys: &dyn Hashes,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        probe::dispatch(Walk::new(keys, Leave { filter: self, refused }));
    }

    pub(super) fn contains_keys(&self, keys: &dyn Hashes, found: &mut [bool]) {
        probe::dispatch(Walk::new(keys, Find { filter: self, found }));
    }

    pub(super) fn count_keys(&self, keys: &dyn Hashes, counts: &mut [u64]) {
        probe::dispatch(Walk::new(keys, Count { filter: self, counts }));
    }
}

/// What is done with keys whose lines have come. A trait and not a closure, so that it is inlined into
/// the loop and compiled for its instruction set.
trait Act {
    fn filter(&self) -> &Backyard;
    /// Acts on keys from the one of this index on.
    fn act<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]);
}

/// A loop over keys, which remembers their places.
struct Walk<'a, A> {
    keys: &'a dyn Hashes,
    act: A,
    places: [Place; CHUNK],
}

impl<'a, A: Act> Walk<'a, A> {
    fn new(keys: &'a dyn Hashes, act: A) -> Self {
        Walk { keys, act, places: [Place::NOWHERE; CHUNK] }
    }
}

/// How many groups acting is behind asking.
const LAG: usize = 2;

impl<A: Act> Kernel for Walk<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let (keys, bytes) = (self.keys, self.act.filter().front.bytes().len());
        by_groups(isa, keys, bytes, LAG, &mut self);
    }
}

impl<A: Act> Groups for Walk<'_, A> {
    #[inline(always)]
    fn ask<I: Isa>(&mut self, _: I, at: usize, digests: &[Digest]) {
        let Backyard { shape, front, .. } = self.act.filter();
        let (lines, bytes) = (shape.lines, front.bytes());
        for (&digest, place) in digests.iter().zip(&mut self.places[at..]) {
            *place = Place::of(digest, lines);
            if bytes.len() > NEAR {
                probe::prefetch(bytes, place.line() * LINE);
            }
        }
    }

    #[inline(always)]
    fn act<I: Isa>(&mut self, isa: I, first: usize, at: Range<usize>) {
        self.act.act(isa, first, &self.places[at]);
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
    fn act<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) {
        let Backyard { front, back, .. } = self.filter;
        let lines = front.bytes().as_chunks().0;
        for (&place, found) in places.iter().zip(&mut self.found[first..]) {
            *found = Line(&lines[place.line()]).contains(isa, place, back);
        }
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
    fn act<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) {
        let Backyard { front, back, .. } = self.filter;
        let lines = front.bytes().as_chunks().0;
        for (&place, copies) in places.iter().zip(&mut self.counts[first..]) {
            *copies = Line(&lines[place.line()]).count(isa, place, back);
        }
    }
}

/// Inserts each key.
struct Enter<'a> {
    filter: &'a mut Backyard,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl Act for Enter<'_> {
    #[inline(always)]
    fn filter(&self) -> &Backyard {
        self.filter
    }

    #[inline(always)]
    fn act<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) {
        let Backyard { shape, front, back, stored, .. } = &mut *self.filter;
        let lines = front.bytes_mut().as_chunks_mut().0;
        for (i, &place) in places.iter().enumerate() {
            if Line(&mut lines[place.line()]).insert(isa, place, back) {
                *stored += 1;
            } else {
                (self.refused)(first + i, shape.full(*stored));
            }
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
    fn act<I: Isa>(&mut self, isa: I, first: usize, places: &[Place]) {
        let Backyard { front, back, stored, .. } = &mut *self.filter;
        let lines = front.bytes_mut().as_chunks_mut().0;
        for (i, &place) in places.iter().enumerate() {
            if Line(&mut lines[place.line()]).remove(isa, place, back) {
                *stored -= 1;
            } else {
                (self.refused)(first + i, Refused::NotStored);
            }
        }
    }
}
