//! Lookups and counts of keys, single or in batches, compiled once.

use super::Body;
use crate::{
    Digest,
    batch::{AnyKeys, Batch, Pace},
    bucket::{Layout, with_layout},
    dleft_table::{Finder, run_best},
    simd::{BASE, Isa},
};

/// The number of copies stored.
#[inline(always)]
fn count<I: Isa, L: Layout, const D: usize>(
    finder: &Finder<I, L, D>,
    table: &[u8],
    permuted: &[u64; D],
) -> u64 {
    if finder.addressing.low_mask == 0 {
        return finder.count(table, permuted).into();
    }
    let cell = finder.find(table, permuted);
    cell.map_or(0, |cell| finder.addressing.low_bits(cell.value) + 1)
}

impl Body {
    pub(super) fn contains_digest(&self, digest: Digest) -> bool {
        with_layout!(self.shape, |layout, D| {
            let finder = self.table.finder::<_, _, D>(BASE, layout);
            let permuted: [u64; D] = self.table.fingerprints.permuted_of(digest);
            finder.contains(self.table.memory.bytes(), &permuted)
        })
    }

    pub(super) fn count_digest(&self, digest: Digest) -> u64 {
        with_layout!(self.shape, |layout, D| {
            let finder = self.table.finder::<_, _, D>(BASE, layout);
            let permuted: [u64; D] = self.table.fingerprints.permuted_of(digest);
            count(&finder, self.table.memory.bytes(), &permuted)
        })
    }

    pub(super) fn contains_keys(&self, keys: AnyKeys<'_>, found: &mut [bool]) {
        let bytes = self.table.memory.bytes().len();
        with_layout!(self.shape, |layout, D| {
            run_best(keys, bytes, Contains::<_, D> { layout, filter: self, found });
        });
    }

    pub(super) fn count_keys(&self, keys: AnyKeys<'_>, counts: &mut [u64]) {
        let bytes = self.table.memory.bytes().len();
        with_layout!(self.shape, |layout, D| {
            run_best(keys, bytes, Count::<_, D> { layout, filter: self, counts });
        });
    }
}

/// Looks up each key.
struct Contains<'a, L, const D: usize> {
    layout: L,
    filter: &'a Body,
    found: &'a mut [bool],
}

impl<L: Layout, const D: usize> Batch for Contains<'_, L, D> {
    const PACE: Pace = Pace::USUAL;
    type Position = [u64; D];
    const NOWHERE: [u64; D] = [0; D];

    #[inline(always)]
    fn locate<I: Isa>(&mut self, isa: I, digests: &[Digest], permuted: &mut [[u64; D]]) {
        self.filter.table.locate(isa, self.layout, digests, permuted);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, permuted: &[[u64; D]]) {
        let table = &self.filter.table;
        let (finder, bytes) = (table.finder(isa, self.layout), table.memory.bytes());
        for (permuted, found) in permuted.iter().zip(&mut self.found[first..]) {
            *found = finder.contains(bytes, permuted);
        }
    }
}

/// Counts the copies of each key.
struct Count<'a, L, const D: usize> {
    layout: L,
    filter: &'a Body,
    counts: &'a mut [u64],
}

impl<L: Layout, const D: usize> Batch for Count<'_, L, D> {
    const PACE: Pace = Pace::USUAL;
    type Position = [u64; D];
    const NOWHERE: [u64; D] = [0; D];

    #[inline(always)]
    fn locate<I: Isa>(&mut self, isa: I, digests: &[Digest], permuted: &mut [[u64; D]]) {
        self.filter.table.locate(isa, self.layout, digests, permuted);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, isa: I, first: usize, permuted: &[[u64; D]]) {
        let table = &self.filter.table;
        let (finder, bytes) = (table.finder(isa, self.layout), table.memory.bytes());
        for (permuted, copies) in permuted.iter().zip(&mut self.counts[first..]) {
            *copies = count(&finder, bytes, permuted);
        }
    }
}
