//! Lookups of many keys, eight lines at a time.
//!
//! While the last lines of a call are in flight, a processor executes some 250 instructions ahead,
//! at most up to the first keys of the next call. So all work that does not need the line is done
//! before its prefetch. Little is left to do afterwards: lines are kept as references, and compared
//! without a branch.
//!
//! Not a [`Batch`](crate::batch::Batch): for 50,000 keys, the common loop takes 28 % more time (3.07
//! instead of 2.39 ns per key) and 18 % more instructions (53 instead of 45).

use super::{
    Body,
    line::{self, Line, Place, is_behind},
};
use crate::{
    Key, Seed,
    batch::{CHUNK, NEAR},
    dleft_table::Table,
    key,
    simd::{self, Isa, Kernel, LINE},
};

/// A loop over keys.
pub(super) struct Find<'a, K> {
    pub(super) filter: &'a Body,
    pub(super) keys: &'a [K],
    pub(super) found: &'a mut [bool],
}

impl<K: Key> Kernel for Find<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Body { shape, seed, ref front, ref back, .. } = *self.filter;
        let look = Look { seed, count: shape.lines, lines: line::all(front), back };
        let (keys, keys_left) = self.keys.as_chunks();
        let (found, found_left) = self.found.as_chunks_mut();
        if front.bytes().len() > NEAR {
            for (keys, found) in keys.iter().zip(found) {
                look.chunk::<true, K, I>(isa, keys, found);
            }
        } else {
            for (keys, found) in keys.iter().zip(found) {
                look.chunk::<false, K, I>(isa, keys, found);
            }
        }
        if !keys_left.is_empty() {
            isa.apart(Few { look, keys: keys_left, found: found_left });
        }
    }
}

/// The parts of a filter that lookups read.
struct Look<'a> {
    seed: Seed,
    count: u64,
    lines: &'a [[u8; LINE]],
    back: &'a Table,
}

impl Look<'_> {
    #[inline(always)]
    fn place<K: Key, I: Isa>(&self, isa: I, key: &K) -> Place {
        Place::of(key::digest_by(key, isa, self.seed), self.count)
    }

    /// Looks up a chunk of keys. The constant length lets the compiler unroll the loops.
    #[inline(always)]
    fn chunk<const FAR: bool, K: Key, I: Isa>(
        &self,
        isa: I,
        keys: &[K; CHUNK],
        found: &mut [bool; CHUNK],
    ) {
        let (mut lines, mut values) = ([&self.lines[0]; CHUNK], [0; CHUNK]);
        for i in 0..CHUNK {
            let place = self.place(isa, &keys[i]);
            lines[i] = &self.lines[place.line as usize];
            values[i] = place.value;
            if FAR {
                simd::prefetch(lines[i], 0);
            }
        }
        let (lines, values) = (lines.as_chunks().0, values.as_chunks().0);
        for (i, found) in found.as_chunks_mut().0.iter_mut().enumerate() {
            let (held, beyond) = isa.eight_lines(lines[i], &values[i]);
            *found = held;
            if beyond != 0 {
                look_behind(self.lines, self.back, (&lines[i], &values[i]), beyond, found);
            }
        }
    }
}

/// Searches the overflow table for some of eight keys. No branch depends on the result, so a
/// processor continues with the next keys during a cache miss.
#[cold]
#[inline(never)]
fn look_behind(
    all: &[[u8; LINE]],
    back: &Table,
    (lines, values): (&[&[u8; LINE]; 8], &[u16; 8]),
    mut left: u8,
    found: &mut [bool; 8],
) {
    while left != 0 {
        let i = left.trailing_zeros() as usize % 8;
        let line = (lines[i].as_ptr().addr() - all.as_ptr().addr()) / LINE;
        found[i] = is_behind(back, Place { line: line as u64, value: values[i] });
        left &= left - 1;
    }
}

/// Looks up fewer keys than a chunk, one by one after prefetching all. A separate function, so that
/// whole chunks do not pay for initialising its array.
struct Few<'a, K> {
    look: Look<'a>,
    keys: &'a [K],
    found: &'a mut [bool],
}

impl<K: Key> Kernel for Few<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Few { look, keys, found } = self;
        let mut places = [Place::NOWHERE; CHUNK];
        for (key, place) in keys.iter().zip(&mut places) {
            *place = look.place(isa, key);
            simd::prefetch(&look.lines[place.line as usize], 0);
        }
        for (&place, found) in places.iter().zip(found) {
            *found = Line(&look.lines[place.line as usize]).contains(isa, place, look.back);
        }
    }
}
