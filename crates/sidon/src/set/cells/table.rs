//! The common part of all filters with `k` cells per key, for every mapping.
//!
//! In Bloom and counting Bloom filters, a key is contained unless one of its cells is zero. The
//! lookups of other filters are in `increment_filter/batches.rs`.

use super::{
    lines,
    mapping::{self, InLines, Spread},
};
use crate::{
    Digest, Infeasible, Malformed,
    batch::{self, AnyKeys, Batch, NEAR, Pace},
    key::spread,
    packed::Packed,
    simd::{self, Isa},
};

/// The most cells of a key, as the length of an array.
pub(in crate::set) const MANY: usize = spread::MAX as usize;

/// The width of a cell: the constant `W`, or a variable if `W` is [`ANY`]. Cells have at most 32
/// bits, so one read of eight bytes contains a cell, whatever the bit it starts at.
#[derive(Debug, Clone, Copy)]
pub(in crate::set) struct Width<const W: u32>(pub(in crate::set) u32);

/// A [`Width`] that is not a constant.
pub(in crate::set) const ANY: u32 = 0;

impl<const W: u32> Width<W> {
    /// Whether a byte holds whole cells.
    const IN_BYTES: bool = W == 1 || W == 2 || W == 4 || W == 8;

    #[inline(always)]
    fn bits(self) -> u32 {
        if W == ANY { self.0 } else { W }
    }

    /// The byte in which a cell starts, and the bit in it.
    #[inline(always)]
    fn at(self, cell: u64) -> (usize, u32) {
        let bit = cell * u64::from(self.bits());
        ((bit / 8) as usize, (bit % 8) as u32)
    }

    /// The largest value of a cell.
    #[inline(always)]
    fn ceiling(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The value of a cell, by one read of the bytes that contain it: no second word, no branch.
    #[inline(always)]
    pub(in crate::set) fn read(self, bytes: &[u8], cell: u64) -> u64 {
        let (byte, shift) = self.at(cell);
        if Self::IN_BYTES {
            return u64::from(bytes[byte] >> shift) & self.ceiling();
        }
        let word = bytes[byte..byte + 8].try_into().expect("a slice of eight bytes");
        u64::from_le_bytes(word) >> shift & self.ceiling()
    }

    /// Sets a cell to `value`.
    #[inline(always)]
    pub(in crate::set) fn write(self, bytes: &mut [u8], cell: u64, value: u64) {
        let (byte, shift) = self.at(cell);
        let place = &mut bytes[byte..byte + 8];
        let word = u64::from_le_bytes((&*place).try_into().expect("a slice of eight bytes"));
        let rest = word & !(self.ceiling() << shift);
        place.copy_from_slice(&(rest | value << shift).to_le_bytes());
    }

    /// Sets a cell to `new` if it still holds `old`, and returns whether it did.
    #[inline(always)]
    pub(in crate::set) fn replace(self, bytes: &mut [u8], cell: u64, old: u64, new: u64) -> bool {
        if Self::IN_BYTES {
            let (byte, shift) = self.at(cell);
            let byte = &mut bytes[byte];
            let same = u64::from(*byte >> shift) & self.ceiling() == old;
            // Adding the difference leaves the other cells of the byte unchanged; the difference is
            // 0 unless `same`.
            let difference = (new as u8).wrapping_sub(old as u8) * u8::from(same);
            *byte = byte.wrapping_add(difference << shift);
            return same;
        }
        let same = self.read(bytes, cell) == old;
        if same {
            self.write(bytes, cell, new);
        }
        same
    }

    /// Prefetches a cell.
    #[inline(always)]
    pub(in crate::set) fn prefetch(self, bytes: &[u8], cell: u64) {
        simd::prefetch(bytes, self.at(cell).0);
    }
}

/// Runs a body with the width of cells in lines as a constant.
macro_rules! with_line_width {
    ($width:expr, |$W:ident| $body:expr) => {
        match $width {
            1 => {
                const $W: u32 = 1;
                $body
            }
            2 => {
                const $W: u32 = 2;
                $body
            }
            4 => {
                const $W: u32 = 4;
                $body
            }
            8 => {
                const $W: u32 = 8;
                $body
            }
            _ => {
                const $W: u32 = 16;
                $body
            }
        }
    };
}
pub(in crate::set) use with_line_width;

#[derive(Debug)]
pub(in crate::set) struct Table {
    pub(in crate::set) cells: Packed,
    pub(in crate::set) hashes: usize,
    /// The mapping, if cells are in lines.
    pub(in crate::set) in_lines: Option<InLines>,
    /// The number of cells that are not zero. Not maintained if cells are in lines.
    pub(in crate::set) occupied: u64,
}

impl Table {
    pub(in crate::set) fn zeroed(
        (name, cells): (&'static str, u64),
        width: u32,
        hashes: u32,
        spread: Spread,
    ) -> Result<Self, Infeasible> {
        let in_lines = mapping::check((name, cells), width, hashes, spread)?;
        let cells = Packed::zeroed(cells, width)?;
        Ok(Table { cells, hashes: hashes as usize, in_lines, occupied: 0 })
    }

    /// The cells `from..to` of the digest, if they may be anywhere. Some may be equal.
    #[inline(always)]
    pub(in crate::set) fn positions(
        &self,
        digest: Digest,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = u64> + use<> {
        spread::splits(digest, from, to, self.cells.cells()).map(|(cell, _)| cell)
    }

    pub(in crate::set) fn contains(&self, digest: Digest) -> bool {
        if let Some(mapping) = self.in_lines {
            let table = self.cells.bytes();
            return with_line_width!(self.cells.width(), |W| {
                lines::contains::<W, _>(simd::BASE, table, mapping, digest)
            });
        }
        let hashes = self.hashes;
        match self.cells.width() {
            1 => self.none_zero(Width::<1>(1), digest, 0, hashes),
            4 => self.none_zero(Width::<4>(4), digest, 0, hashes),
            width => self.none_zero(Width::<ANY>(width), digest, 0, hashes),
        }
    }

    /// Whether none of the cells `from..to` of the digest is zero. They may be anywhere.
    #[inline(always)]
    fn none_zero<const W: u32>(
        &self,
        width: Width<W>,
        digest: Digest,
        from: usize,
        to: usize,
    ) -> bool {
        let bytes = self.cells.bytes();
        for position in self.positions(digest, from, to) {
            if width.read(bytes, position) == 0 {
                return false;
            }
        }
        true
    }

    /// Prefetches the cells `from..to` of the digest, unless the table is in the cache. They may be
    /// anywhere.
    #[inline(always)]
    pub(in crate::set) fn prefetch<const W: u32>(
        &self,
        width: Width<W>,
        digest: Digest,
        from: usize,
        to: usize,
    ) {
        let bytes = self.cells.bytes();
        if bytes.len() > NEAR {
            for position in self.positions(digest, from, to) {
                width.prefetch(bytes, position);
            }
        }
    }

    /// Looks up each key. Compiled once for all types of keys.
    pub(in crate::set) fn contains_keys(&self, keys: AnyKeys<'_>, found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        if let Some(mapping) = self.in_lines {
            let table = self.cells.bytes();
            return with_line_width!(self.cells.width(), |W| {
                batch::dispatch(keys, table.len(), lines::Lookup::<W> { table, mapping, found });
            });
        }
        match self.cells.width() {
            1 => self.contains_anywhere(Width::<1>(1), keys, found),
            4 => self.contains_anywhere(Width::<4>(4), keys, found),
            width => self.contains_anywhere(Width::<ANY>(width), keys, found),
        }
    }

    fn contains_anywhere<const W: u32>(
        &self,
        width: Width<W>,
        keys: AnyKeys<'_>,
        found: &mut [bool],
    ) {
        let bytes = self.cells.bytes().len();
        batch::dispatch(keys, bytes, Lookup { table: self, width, found });
    }

    /// The share of cells that are not zero. Reads the whole table if cells are in lines.
    pub(in crate::set) fn fill(&self) -> f64 {
        let occupied = if self.in_lines.is_some() { self.cells.occupied() } else { self.occupied };
        occupied as f64 / self.cells.cells() as f64
    }

    /// Loads the payload of a table of this shape.
    pub(in crate::set) fn load(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        if !self.cells.load(payload) {
            return Err(Malformed::Field { name: "payload" });
        }
        self.occupied = self.cells.occupied();
        Ok(())
    }

    pub(in crate::set) fn clear(&mut self) {
        self.cells.clear();
        self.occupied = 0;
    }

    pub(in crate::set) fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Table { cells: self.cells.try_clone()?, ..*self })
    }
}

/// The cells that a batch reads before it prefetches the others: in a half-full table, they
/// exclude seven of eight keys never inserted.
const FIRST: usize = 3;

/// Looks up each key, cells anywhere. Positions are computed twice, which is cheaper than storing
/// them.
struct Lookup<'a, const W: u32> {
    table: &'a Table,
    width: Width<W>,
    found: &'a mut [bool],
}

impl<const W: u32> Batch for Lookup<'_, W> {
    const PACE: Pace = Pace::CHUNKS_AHEAD;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        positions.copy_from_slice(digests);
        let first = FIRST.min(self.table.hashes);
        for &digest in digests {
            self.table.prefetch(self.width, digest, 0, first);
        }
    }

    #[inline(always)]
    fn read_ahead<I: Isa>(&mut self, _: I, first: usize, positions: &mut [Digest]) {
        let (table, width) = (self.table, self.width);
        let (read, hashes) = (FIRST.min(table.hashes), table.hashes);
        for (&mut digest, found) in positions.iter_mut().zip(&mut self.found[first..]) {
            *found = table.none_zero(width, digest, 0, read);
            if *found {
                table.prefetch(width, digest, read, hashes);
            }
        }
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, positions: &[Digest]) {
        let (table, width) = (self.table, self.width);
        let (read, hashes) = (FIRST.min(table.hashes), table.hashes);
        for (&digest, found) in positions.iter().zip(&mut self.found[first..]) {
            *found = *found && table.none_zero(width, digest, read, hashes);
        }
    }
}
