//! Batches: locate the cells of keys, then look the keys up, insert or remove them.

use super::{Act, IncrementFilter, Store, place};
use crate::{
    Digest, Refused,
    batch::{self, AnyKeys, Batch, NEAR, Pace},
    key::spread,
    set::{
        cells::increment_code::IncrementCode,
        cells::mapping::InLines,
        cells::table::{ANY, MANY, Width},
    },
    simd::{self, Isa},
};

impl<C: IncrementCode, S: Store> IncrementFilter<C, S> {
    /// [`contains_keys`](Self::contains_keys) without rows.
    pub(in crate::set) fn contains_any(&self, keys: AnyKeys<'_>, found: &mut [bool]) {
        let (bytes, filter) = (self.store.table().cells.bytes().len(), self);
        match self.store.table().in_lines {
            None => batch::dispatch(keys, bytes, Lookup::<_, _, false> { filter, found }),
            Some(_) => batch::dispatch(keys, bytes, Lookup::<_, _, true> { filter, found }),
        }
    }

    /// Acts on each key.
    pub(in crate::set) fn act_on_keys(
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
        let (bytes, filter) = (self.store.table().cells.bytes().len(), self);
        batch::dispatch(keys, bytes, Change::<_, _, INSERT> { filter, refused });
    }

    /// Prefetches the cells `from..to` of the digest, which may be anywhere.
    #[inline(always)]
    fn prefetch(&self, digest: Digest, from: usize, to: usize) {
        let cells = &self.store.table().cells;
        let (width, bytes) = (Width::<ANY>(cells.width()), cells.bytes());
        for (cell, _) in spread::splits(digest, from, to, cells.cells()) {
            width.prefetch(bytes, cell);
        }
    }
}

/// Looks up each key, by the code itself. Positions are computed twice, which is cheaper than
/// storing them. In a table that is not cached, the first cells are prefetched and tested before
/// the others are prefetched: a line, or two cells. Two cells exclude two of three keys never
/// inserted.
struct Lookup<'a, C, S, const LINES: bool> {
    filter: &'a IncrementFilter<C, S>,
    found: &'a mut [bool],
}

/// The cells that are read first.
const FIRST: usize = 2;

impl<C, S: Store, const LINES: bool> Lookup<'_, C, S, LINES> {
    /// The mapping, if the cells are in lines. A constant otherwise, so that each loop has the code
    /// of one case only.
    #[inline(always)]
    fn mapping(&self) -> Option<InLines> {
        if LINES { self.filter.store.table().in_lines } else { None }
    }
}

impl<C: IncrementCode, S: Store, const LINES: bool> Batch for Lookup<'_, C, S, LINES> {
    const PACE: Pace = Pace::CHUNKS_AHEAD;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        positions.copy_from_slice(digests);
        let table = self.filter.store.table();
        let bytes = table.cells.bytes();
        if bytes.len() <= NEAR {
            return;
        }
        for &digest in digests {
            match self.mapping() {
                None => self.filter.prefetch(digest, 0, FIRST.min(table.hashes)),
                Some(mapping) => simd::prefetch(bytes, mapping.line(digest, 0).0),
            }
        }
    }

    #[inline(always)]
    fn read_ahead<I: Isa>(&mut self, _: I, first: usize, positions: &mut [Digest]) {
        let table = self.filter.store.table();
        let bytes = table.cells.bytes();
        if bytes.len() <= NEAR {
            return;
        }
        let mapping = self.mapping();
        for (&mut digest, found) in positions.iter_mut().zip(&mut self.found[first..]) {
            match mapping {
                None => {
                    let read = FIRST.min(table.hashes);
                    *found = self.filter.cells_admit(digest, 0, read);
                    if *found {
                        self.filter.prefetch(digest, read, table.hashes);
                    }
                }
                Some(mapping) => {
                    *found = self.filter.lines_admit(mapping, digest, 0, 1);
                    if *found {
                        for line in 1..mapping.lines {
                            simd::prefetch(bytes, mapping.line(digest, line).0);
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, positions: &[Digest]) {
        let table = self.filter.store.table();
        let cached = table.cells.bytes().len() <= NEAR;
        let mapping = self.mapping();
        for (&digest, found) in positions.iter().zip(&mut self.found[first..]) {
            match mapping {
                None if cached => *found = self.filter.cells_admit(digest, 0, table.hashes),
                None if *found => {
                    let from = FIRST.min(table.hashes);
                    *found = self.filter.cells_admit(digest, from, table.hashes);
                }
                Some(mapping) if cached => {
                    *found = self.filter.lines_admit(mapping, digest, 0, mapping.lines);
                }
                Some(mapping) if *found => {
                    *found = self.filter.lines_admit(mapping, digest, 1, mapping.lines);
                }
                _ => {}
            }
        }
    }
}

/// Inserts or removes each key. As in [`Lookup`], only the digest is kept.
struct Change<'a, C, S, const INSERT: bool> {
    filter: &'a mut IncrementFilter<C, S>,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl<C: IncrementCode, S: Store, const INSERT: bool> Batch for Change<'_, C, S, INSERT> {
    const PACE: Pace = Pace::CHUNKS;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        positions.copy_from_slice(digests);
        let table = self.filter.store.table();
        match table.in_lines {
            Some(mapping) => mapping.prefetch(table.cells.bytes(), digests),
            None if table.cells.bytes().len() > NEAR => {
                for &digest in digests {
                    self.filter.prefetch(digest, 0, table.hashes);
                }
            }
            None => {}
        }
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, positions: &[Digest]) {
        let act = if INSERT { Act::Insert } else { Act::Remove };
        let hashes = self.filter.store.table().hashes;
        let mut spots = [0; MANY];
        for (key, &digest) in (first..).zip(positions) {
            let (table, marks) = (self.filter.store.table(), self.filter.code.marks());
            place(table, marks, digest, 0, hashes, &mut spots);
            if let Err(why) = self.filter.act(act, &spots[..hashes]) {
                (self.refused)(key, why);
            }
        }
    }
}
