//! Batches: locate the counters of keys, then insert or remove the keys.

use super::{Act, Body, MOST};
use crate::{
    Digest, Refused,
    batch::{self, AnyKeys, Batch, Pace},
    set::{
        cells::mapping::{InLines, Ones},
        cells::table::{ANY, Width, with_line_width},
    },
    simd::Isa,
};

impl Body {
    /// Acts on each key. Compiled once for all types of keys.
    pub(super) fn act_on_keys(
        &mut self,
        act: Act,
        keys: AnyKeys<'_>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        match act {
            Act::Insert => self.change_keys::<true>(keys, refused),
            Act::Remove => self.change_keys::<false>(keys, refused),
        }
    }

    fn change_keys<const INSERT: bool>(
        &mut self,
        keys: AnyKeys<'_>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        if let Some(mapping) = self.counters.in_lines {
            return with_line_width!(self.shape.width, |W| match mapping.lines {
                2 => self.change_in_lines::<INSERT, 2, true, W>(mapping, keys, refused),
                3 => self.change_in_lines::<INSERT, 3, true, W>(mapping, keys, refused),
                _ => self.change_in_lines::<INSERT, MOST, false, W>(mapping, keys, refused),
            });
        }
        match self.shape.width {
            4 => self.change_anywhere::<INSERT, 4>(Width(4), keys, refused),
            width => self.change_anywhere::<INSERT, ANY>(Width(width), keys, refused),
        }
    }

    fn change_anywhere<const INSERT: bool, const W: u32>(
        &mut self,
        width: Width<W>,
        keys: AnyKeys<'_>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let (bytes, filter) = (self.counters.cells.bytes().len(), self);
        batch::dispatch(keys, bytes, Change::<INSERT, W> { width, filter, refused });
    }

    fn change_in_lines<const INSERT: bool, const L: usize, const ALL: bool, const W: u32>(
        &mut self,
        mapping: InLines,
        keys: AnyKeys<'_>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let (bytes, filter) = (self.counters.cells.bytes().len(), self);
        let change = ChangeInLines::<INSERT, L, ALL, W> { mapping, filter, refused };
        batch::dispatch(keys, bytes, change);
    }
}

/// Inserts or removes each key, counters anywhere. Positions are computed twice, which is cheaper
/// than storing them.
struct Change<'a, const INSERT: bool, const W: u32> {
    width: Width<W>,
    filter: &'a mut Body,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl<const INSERT: bool, const W: u32> Batch for Change<'_, INSERT, W> {
    const PACE: Pace = Pace::CHUNKS;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        positions.copy_from_slice(digests);
        let counters = &self.filter.counters;
        for &digest in digests {
            counters.prefetch(self.width, digest, 0, counters.hashes);
        }
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, positions: &[Digest]) {
        let act = Act::of(INSERT);
        for (key, &digest) in (first..).zip(positions) {
            if let Err(why) = self.filter.act(act, self.width, digest) {
                (self.refused)(key, why);
            }
        }
    }
}

/// Inserts or removes each key, counters of `W` bits in at most `L` lines per key. With `ALL`, a
/// key has exactly `L` lines.
struct ChangeInLines<'a, const INSERT: bool, const L: usize, const ALL: bool, const W: u32> {
    mapping: InLines,
    filter: &'a mut Body,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl<const INSERT: bool, const L: usize, const ALL: bool, const W: u32>
    ChangeInLines<'_, INSERT, L, ALL, W>
{
    /// The mapping. With a constant number of lines the compiler unrolls loops over them.
    #[inline(always)]
    fn mapping(&self) -> InLines {
        let mut mapping = self.mapping;
        if ALL {
            mapping.lines = L as u32;
        }
        mapping
    }
}

impl<const INSERT: bool, const L: usize, const ALL: bool, const W: u32> Batch
    for ChangeInLines<'_, INSERT, L, ALL, W>
{
    const PACE: Pace = Pace::USUAL;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        self.mapping().prefetch(self.filter.counters.cells.bytes(), digests);
        positions.copy_from_slice(digests);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, positions: &[Digest]) {
        let (act, mapping) = (Act::of(INSERT), self.mapping());
        for (key, &digest) in (first..).zip(positions) {
            let mut ones = [Ones::NONE; L];
            mapping.ones::<L, W, I>(isa, digest, &mut ones);
            if let Err(why) = self.filter.act_in_lines::<W>(act, &ones[..mapping.lines as usize]) {
                (self.refused)(key, why);
            }
        }
    }
}
