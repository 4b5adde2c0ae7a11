//! Operations on the cells of a key in a few cache lines, a whole line at a time.
//!
//! A line is eight words, and the cells of a key in it are a mask with a one in the lowest bit of
//! each. A few operations on words then find the cells that are zero or at their ceiling, however
//! many there are. Incrementing all of them is an addition. The compiler vectorises these
//! operations.

use super::mapping::{InLines, Ones};
use crate::{
    Digest,
    batch::{Batch, Pace},
    simd::{Isa, LINE},
};

/// The lowest bit of each cell of `W` bits.
const fn low<const W: u32>() -> u64 {
    u64::MAX / (u64::MAX >> (64 - W))
}

/// A one for each cell that is not zero.
#[inline(always)]
fn occupied<const W: u32>(mut word: u64) -> u64 {
    let mut step = 1;
    while step < W {
        word |= word >> step;
        step *= 2;
    }
    word & low::<W>()
}

/// A one for each cell whose bits are all set.
#[inline(always)]
fn at_ceiling<const W: u32>(mut word: u64) -> u64 {
    let mut step = 1;
    while step < W {
        word &= word >> step;
        step *= 2;
    }
    word & low::<W>()
}

#[inline(always)]
fn words(table: &[u8], offset: usize) -> [u64; LINE / 8] {
    let Some(line) = table[offset..].first_chunk::<LINE>() else {
        unreachable!("every line is whole");
    };
    let mut words = [0; LINE / 8];
    for (word, bytes) in words.iter_mut().zip(line.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

#[inline(always)]
fn store(table: &mut [u8], offset: usize, words: [u64; LINE / 8]) {
    let Some(line) = table[offset..].first_chunk_mut::<LINE>() else {
        unreachable!("every line is whole");
    };
    for (bytes, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}

/// Whether a cell of the mask is zero.
#[inline(always)]
pub(in crate::set) fn any_zero<const W: u32>(table: &[u8], ones: &Ones) -> bool {
    let line = words(table, ones.offset);
    let mut zero = 0;
    for (word, one) in line.into_iter().zip(ones.words) {
        zero |= one & !occupied::<W>(word);
    }
    zero != 0
}

/// Whether a cell of the mask is at its ceiling.
#[inline(always)]
pub(in crate::set) fn any_at_ceiling<const W: u32>(table: &[u8], ones: &Ones) -> bool {
    let line = words(table, ones.offset);
    let mut full = 0;
    for (word, one) in line.into_iter().zip(ones.words) {
        full |= one & at_ceiling::<W>(word);
    }
    full != 0
}

/// Adds one to each cell of the mask. With `pins`, a cell at its ceiling keeps its value. Without
/// it, no cell of the mask may be at its ceiling.
#[inline(always)]
pub(in crate::set) fn raise<const W: u32>(table: &mut [u8], ones: &Ones, pins: bool) {
    let mut line = words(table, ones.offset);
    if pins {
        for (word, one) in line.iter_mut().zip(ones.words) {
            *word += one & !at_ceiling::<W>(*word);
        }
    } else {
        for (word, one) in line.iter_mut().zip(ones.words) {
            *word += one;
        }
    }
    store(table, ones.offset, line);
}

/// Subtracts one from each cell of the mask, none of which may be zero. With `pins`, a cell at its
/// ceiling keeps its value.
#[inline(always)]
pub(in crate::set) fn lower<const W: u32>(table: &mut [u8], ones: &Ones, pins: bool) {
    let mut line = words(table, ones.offset);
    if pins {
        for (word, one) in line.iter_mut().zip(ones.words) {
            *word -= one & !at_ceiling::<W>(*word);
        }
    } else {
        for (word, one) in line.iter_mut().zip(ones.words) {
            *word -= one;
        }
    }
    store(table, ones.offset, line);
}

/// Whether none of the digest's cells is zero.
#[inline(always)]
pub(in crate::set) fn contains<const W: u32, I: Isa>(
    isa: I,
    table: &[u8],
    mapping: InLines,
    digest: Digest,
) -> bool {
    for i in 0..mapping.lines {
        let (offset, word) = mapping.line(digest, i);
        let Some(line) = table[offset..].first_chunk::<LINE>() else {
            unreachable!("every line is whole");
        };
        if mapping.any_zero::<W, I>(isa, line, word) {
            return false;
        }
    }
    true
}

/// Looks up each key. This needs no masks: it reads the cells one by one, and most keys never
/// inserted are excluded by their first line.
pub(in crate::set) struct Lookup<'a, const W: u32> {
    pub(in crate::set) table: &'a [u8],
    pub(in crate::set) mapping: InLines,
    pub(in crate::set) found: &'a mut [bool],
}

impl<const W: u32> Batch for Lookup<'_, W> {
    const PACE: Pace = Pace::USUAL;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        self.mapping.prefetch(self.table, digests);
        positions.copy_from_slice(digests);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, positions: &[Digest]) {
        for (&digest, found) in positions.iter().zip(&mut self.found[first..]) {
            *found = contains::<W, I>(isa, self.table, self.mapping, digest);
        }
    }
}
