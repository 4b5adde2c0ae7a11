//! The common part of all filters with `k` cells per key, for every mapping.
//!
//! A key is contained if every one of its cells passes. In Bloom and counting Bloom filters a cell
//! passes unless it is zero. Other filters define their test by [`Seek`].

use super::{
    batch::{self, CHUNK, NEAR},
    lines,
    mapping::{self, InLines, Spread},
};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    cells::{self, Packed},
    hash::spread,
    probe::{self, Isa, Kernel},
};

/// Keys of up to this many cells use loops with shorter arrays.
const FEW: usize = 16;
pub(super) const MANY: usize = spread::MOST as usize;

/// The width of a cell, as a constant or a variable.
pub(super) trait Width: Copy {
    fn bits(self) -> u32;

    /// The value of a cell.
    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u64) -> u64 {
        cells::read(bytes, self.bits(), cell)
    }

    /// Sets a cell to `new` if it still holds `old`, and returns whether it did.
    #[inline(always)]
    fn replace(self, bytes: &mut [u8], cell: u64, old: u64, new: u64) -> bool {
        let same = cells::read(bytes, self.bits(), cell) == old;
        if same {
            cells::write(bytes, self.bits(), cell, new);
        }
        same
    }

    /// Sets a cell to `value`.
    #[inline(always)]
    fn write(self, bytes: &mut [u8], cell: u64, value: u64) {
        cells::write(bytes, self.bits(), cell, value);
    }
}

impl Width for u32 {
    #[inline(always)]
    fn bits(self) -> u32 {
        self
    }
}

/// One bit.
#[derive(Clone, Copy)]
pub(super) struct Bit;

impl Width for Bit {
    #[inline(always)]
    fn bits(self) -> u32 {
        1
    }
}

/// Four bits, the most common width of counters: a byte holds two.
#[derive(Clone, Copy)]
pub(super) struct Nibble;

impl Width for Nibble {
    #[inline(always)]
    fn bits(self) -> u32 {
        4
    }

    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u64) -> u64 {
        u64::from(bytes[(cell / 2) as usize] >> (cell % 2 * 4) & 15)
    }

    #[inline(always)]
    fn replace(self, bytes: &mut [u8], cell: u64, old: u64, new: u64) -> bool {
        let (byte, shift) = (&mut bytes[(cell / 2) as usize], cell % 2 * 4);
        let same = u64::from(*byte >> shift & 15) == old;
        // Adding the difference leaves the other cell of the byte unchanged; the difference is 0
        // unless `same`.
        let difference = (new as u8).wrapping_sub(old as u8) * u8::from(same);
        *byte = byte.wrapping_add(difference << shift);
        same
    }
}

/// Any number of bits, read at once from the byte in which they start: no second word, no branch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short(pub(super) u32);

impl Short {
    #[inline(always)]
    fn at(self, cell: u64) -> (usize, u32) {
        let bit = cell * u64::from(self.0);
        ((bit / 8) as usize, (bit % 8) as u32)
    }
}

impl Width for Short {
    #[inline(always)]
    fn bits(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u64) -> u64 {
        let (byte, shift) = self.at(cell);
        let word = bytes[byte..byte + 8].try_into().expect("a slice of eight bytes");
        u64::from_le_bytes(word) >> shift & (u64::MAX >> (64 - self.0))
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8], cell: u64, value: u64) {
        let (byte, shift) = self.at(cell);
        let place = &mut bytes[byte..byte + 8];
        let word = u64::from_le_bytes((&*place).try_into().expect("a slice of eight bytes"));
        let rest = word & !((u64::MAX >> (64 - self.0)) << shift);
        place.copy_from_slice(&(rest | value << shift).to_le_bytes());
    }
}

/// [`Short`] for a constant number of bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<const W: u32>;

impl<const W: u32> Width for Known<W> {
    #[inline(always)]
    fn bits(self) -> u32 {
        W
    }

    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u64) -> u64 {
        Short(W).read(bytes, cell)
    }
}

/// The test of a cell by a lookup.
pub(super) trait Seek: Copy {
    /// The number of cells that a batch reads before it prefetches the others: enough to exclude
    /// seven of eight keys never inserted.
    const FIRST: usize;
    /// Writes the cells `from..to` of the digest, with the data of their tests, to the same indices
    /// of `spots`.
    fn place(self, table: &Table, digest: Digest, from: usize, to: usize, spots: &mut [u64]);
    /// The cell of an element of `spots`.
    fn cell(self, spot: u64) -> u64;
    /// Whether a cell with this value passes.
    fn passes(self, value: u64, spot: u64) -> bool;
}

/// Passes unless the cell is zero. An element of `spots` is the cell.
#[derive(Clone, Copy)]
struct Occupied;

impl Seek for Occupied {
    /// For a half-full table.
    const FIRST: usize = 3;

    #[inline(always)]
    fn place(self, table: &Table, digest: Digest, from: usize, to: usize, spots: &mut [u64]) {
        table.place(digest, from, to, spots);
    }

    #[inline(always)]
    fn cell(self, spot: u64) -> u64 {
        spot
    }

    #[inline(always)]
    fn passes(self, value: u64, _: u64) -> bool {
        value != 0
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
pub(super) use with_line_width;

#[derive(Debug)]
pub(super) struct Table {
    pub(super) cells: Packed,
    pub(super) hashes: usize,
    /// The mapping, if cells are in lines.
    pub(super) in_lines: Option<InLines>,
    /// The number of cells that are not zero. Not maintained if cells are in lines.
    pub(super) occupied: u64,
}

impl Table {
    pub(super) fn zeroed(
        (name, cells): (&'static str, u64),
        width: u32,
        hashes: u32,
        spread: Spread,
    ) -> Result<Self, Infeasible> {
        let in_lines = mapping::check((name, cells), width, hashes, spread)?;
        let cells = Packed::zeroed(cells, width)?;
        Ok(Table { cells, hashes: hashes as usize, in_lines, occupied: 0 })
    }

    /// Writes cells `from..to` of the digest to the same indices, if they may be anywhere. Some may
    /// be equal.
    #[inline(always)]
    fn place(&self, digest: Digest, from: usize, to: usize, positions: &mut [u64]) {
        let cells = self.cells.cells();
        for (i, position) in (from as u32..).zip(&mut positions[from..to]) {
            *position = spread::position(digest, i, cells);
        }
    }

    /// The cells of the digest, if they may be anywhere, and their number.
    #[inline(always)]
    pub(super) fn positions(&self, digest: Digest) -> ([u64; MANY], usize) {
        let mut positions = [0; MANY];
        self.place(digest, 0, self.hashes, &mut positions);
        (positions, self.hashes)
    }

    pub(super) fn contains(&self, digest: Digest) -> bool {
        if let Some(mapping) = self.in_lines {
            let table = self.cells.bytes();
            return with_line_width!(self.cells.width(), |W| {
                lines::contains::<W, _>(probe::BASE, table, mapping, digest)
            });
        }
        match self.cells.width() {
            1 => self.contains_with(Bit, Occupied, digest),
            4 => self.contains_with(Nibble, Occupied, digest),
            width => self.contains_with(width, Occupied, digest),
        }
    }

    /// Whether every cell of the digest passes.
    #[inline(always)]
    pub(super) fn contains_with<W: Width, S: Seek>(
        &self,
        width: W,
        seek: S,
        digest: Digest,
    ) -> bool {
        let mut spots = [0; MANY];
        seek.place(self, digest, 0, self.hashes, &mut spots);
        self.all_pass(width, seek, &spots[..self.hashes])
    }

    #[inline(always)]
    fn all_pass<W: Width, S: Seek>(&self, width: W, seek: S, spots: &[u64]) -> bool {
        let bytes = self.cells.bytes();
        for &spot in spots {
            if !seek.passes(width.read(bytes, seek.cell(spot)), spot) {
                return false;
            }
        }
        true
    }

    /// Prefetches a cell.
    #[inline(always)]
    fn prefetch<W: Width>(&self, width: W, cell: u64) {
        probe::prefetch(self.cells.bytes(), (cell * u64::from(width.bits()) / 8) as usize);
    }

    /// Looks up any number of keys.
    pub(super) fn contains_batch(&self, seed: Seed, keys: &[Digest], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        if let Some(mapping) = self.in_lines {
            let table = self.cells.bytes();
            return with_line_width!(self.cells.width(), |W| {
                probe::dispatch(lines::Lookup::<_, W> { table, mapping, seed, keys, found });
            });
        }
        match self.cells.width() {
            1 => self.contains_batch_with(Bit, Occupied, seed, keys, found),
            4 => self.contains_batch_with(Nibble, Occupied, seed, keys, found),
            width => self.contains_batch_with(width, Occupied, seed, keys, found),
        }
    }

    /// [`contains_batch`](Self::contains_batch) with another test of cells.
    pub(super) fn contains_batch_with<K: Key, W: Width, S: Seek>(
        &self,
        width: W,
        seek: S,
        seed: Seed,
        keys: &[K],
        found: &mut [bool],
    ) {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        probe::dispatch(Lookup { table: self, width, seek, seed, keys, found });
    }

    /// The number of consecutive elements of `spots` that share a line.
    fn run(&self) -> usize {
        self.in_lines.map_or(1, |mapping| mapping.each as usize)
    }

    /// The share of cells that are not zero. Reads the whole table if cells are in lines.
    pub(super) fn fill(&self) -> f64 {
        let occupied = if self.in_lines.is_some() { self.cells.occupied() } else { self.occupied };
        occupied as f64 / self.cells.cells() as f64
    }

    /// Loads the payload of a table of this shape.
    pub(super) fn load(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        if !self.cells.load(payload) {
            return Err(Malformed::Field { name: "payload" });
        }
        self.occupied = self.cells.occupied();
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.occupied = 0;
    }

    pub(super) fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Table { cells: self.cells.try_clone()?, ..*self })
    }
}

/// A filter that is based on a table.
pub(super) trait OnTable {
    fn table(&self) -> &Table;
    fn seed(&self) -> Seed;

    /// Writes the cells `from..to` of the digest, with data for the filter, to the same indices of
    /// `spots`.
    #[inline(always)]
    fn place(&self, digest: Digest, from: usize, to: usize, spots: &mut [u64]) {
        self.table().place(digest, from, to, spots);
    }

    /// The cell of an element of `spots`.
    #[inline(always)]
    fn cell(&self, spot: u64) -> u64 {
        spot
    }

    /// Inserts or removes a key with these `spots`.
    fn change<const INSERT: bool, W: Width>(
        &mut self,
        width: W,
        spots: &[u64],
    ) -> Result<(), Refused>;
}

/// Inserts or removes each key in order, after prefetching the cells of a whole chunk of keys.
#[inline(always)]
pub(super) fn each_key<const INSERT: bool, I: Isa, K: Key, W: Width, F: OnTable>(
    isa: I,
    width: W,
    filter: &mut F,
    keys: &[K],
    refused: &mut dyn FnMut(usize, Refused),
) {
    if filter.table().hashes <= FEW {
        each_key_of::<INSERT, FEW, _, _, _, _>(isa, width, filter, keys, refused);
    } else {
        each_key_of::<INSERT, MANY, _, _, _, _>(isa, width, filter, keys, refused);
    }
}

#[inline(always)]
fn each_key_of<const INSERT: bool, const HASHES: usize, I: Isa, K: Key, W: Width, F: OnTable>(
    isa: I,
    width: W,
    filter: &mut F,
    keys: &[K],
    refused: &mut dyn FnMut(usize, Refused),
) {
    let far = filter.table().cells.bytes().len() > NEAR;
    let (hashes, run) = (filter.table().hashes, filter.table().run());
    let (mut all, mut digests) = ([[0; HASHES]; CHUNK], [Digest(0); CHUNK]);
    for (chunk, keys) in keys.chunks(CHUNK).enumerate() {
        let first = chunk * CHUNK;
        let digests = batch::chunk(isa, filter.seed(), keys, &mut digests);
        for (&digest, positions) in digests.iter().zip(&mut all) {
            filter.place(digest, 0, hashes, positions);
            if far {
                let mut i = 0;
                while i < hashes {
                    filter.table().prefetch(width, filter.cell(positions[i]));
                    i += run;
                }
            }
        }
        for (i, positions) in all[..digests.len()].iter().enumerate() {
            if let Err(why) = filter.change::<INSERT, W>(width, &positions[..hashes]) {
                refused(first + i, why);
            }
        }
    }
}

/// A loop over keys that looks them up.
struct Lookup<'a, K, W, S> {
    table: &'a Table,
    width: W,
    seek: S,
    seed: Seed,
    keys: &'a [K],
    found: &'a mut [bool],
}

impl<K: Key, W: Width, S: Seek> Kernel for Lookup<'_, K, W, S> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if self.table.hashes <= FEW {
            self.run_of::<FEW, I>(isa);
        } else {
            self.run_of::<MANY, I>(isa);
        }
    }
}

impl<K: Key, W: Width, S: Seek> Lookup<'_, K, W, S> {
    /// Tests the first cells of all keys of a chunk, then the other cells of the keys that passed.
    #[inline(always)]
    fn run_of<const HASHES: usize, I: Isa>(self, isa: I) {
        let Lookup { table, width, seek, seed, keys, found } = self;
        let (hashes, run) = (table.hashes, table.run());
        // A whole line, or a few cells.
        let first = if run == 1 { S::FIRST.min(hashes) } else { run };
        let near = table.cells.bytes().len() <= NEAR;
        let (mut all, mut digests) = ([[0; HASHES]; CHUNK], [Digest(0); CHUNK]);
        for (chunk, keys) in keys.chunks(CHUNK).enumerate() {
            let start = chunk * CHUNK;
            let digests = batch::chunk(isa, seed, keys, &mut digests);
            let found = &mut found[start..start + digests.len()];
            for (&digest, spots) in digests.iter().zip(&mut all) {
                seek.place(table, digest, 0, first, spots);
                if !near {
                    let mut i = 0;
                    while i < first {
                        table.prefetch(width, seek.cell(spots[i]));
                        i += run;
                    }
                }
            }
            for ((&digest, spots), found) in digests.iter().zip(&mut all).zip(&mut *found) {
                *found = table.all_pass(width, seek, &spots[..first]);
                if *found {
                    seek.place(table, digest, first, hashes, spots);
                    if !near {
                        let mut i = first;
                        while i < hashes {
                            table.prefetch(width, seek.cell(spots[i]));
                            i += run;
                        }
                    }
                }
            }
            for (spots, found) in all.iter().zip(found) {
                *found = *found && table.all_pass(width, seek, &spots[first..hashes]);
            }
        }
    }
}
