//! What Bloom and counting Bloom filters share: `k` cells a key, wherever the mapping puts them.
//!
//! A key is present if none of its cells is zero. That is all a lookup needs to know, whatever
//! else the cells hold.

use super::{
    batch::{self, CHUNK, NEAR},
    lines,
    mapping::{InLines, Spread},
};
use crate::{
    Digest, Infeasible, Key, Malformed, Seed,
    cells::{self, Packed},
    hash::spread,
    probe::{self, Isa, Kernel},
};

/// Keys of up to this many cells take the loops with less room for positions.
const FEW: usize = 16;
const MANY: usize = spread::MOST as usize;
/// Cells that a batch looks at before it asks for the others: seven strangers of eight are told
/// apart by three cells of a half-full table.
const FIRST: usize = 3;

/// The width of a cell: known to the compiler, or not.
pub(super) trait Width: Copy {
    fn bits(self) -> u32;

    /// The value of a cell.
    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u64) -> u64 {
        cells::read(bytes, self.bits(), cell)
    }

    /// Makes the value of a cell `new` if it still is `old`, and says whether it was.
    #[inline(always)]
    fn replace(self, bytes: &mut [u8], cell: u64, old: u64, new: u64) -> bool {
        let same = cells::read(bytes, self.bits(), cell) == old;
        if same {
            cells::write(bytes, self.bits(), cell, new);
        }
        same
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

/// Four bits, which most counters have: a byte holds two.
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
        // Adding the difference changes no other cell, and adding nothing changes none.
        let difference = (new as u8).wrapping_sub(old as u8) * u8::from(same);
        *byte = byte.wrapping_add(difference << shift);
        same
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
    hashes: usize,
    /// The mapping, unless cells lie anywhere.
    pub(super) in_lines: Option<InLines>,
    /// How many cells are not zero; not kept if they lie in lines.
    pub(super) occupied: u64,
}

impl Table {
    pub(super) fn zeroed(
        cells: u64,
        width: u32,
        hashes: u32,
        spread: Spread,
    ) -> Result<Self, Infeasible> {
        Infeasible::unless_within("hashes", hashes.into(), 1, spread::MOST.into())?;
        Infeasible::unless_within("cells", cells, 1, u64::MAX)?;
        let in_lines = match spread {
            Spread::Anywhere => None,
            Spread::Lines(lines) => Some(InLines::new(cells, width, hashes, lines)?),
        };
        let cells = Packed::zeroed(cells, width)?;
        Ok(Table { cells, hashes: hashes as usize, in_lines, occupied: 0 })
    }

    /// Writes cells `from..to` of the digest to the same places, if they lie anywhere; some may be
    /// equal.
    #[inline(always)]
    fn place(&self, digest: Digest, from: usize, to: usize, positions: &mut [u64]) {
        let cells = self.cells.cells();
        for (i, position) in (from as u32..).zip(&mut positions[from..to]) {
            *position = spread::position(digest, i, cells);
        }
    }

    /// The cells of the digest, if they lie anywhere, and how many they are.
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
        let (positions, hashes) = self.positions(digest);
        match self.cells.width() {
            1 => self.all_occupied(Bit, &positions[..hashes]),
            4 => self.all_occupied(Nibble, &positions[..hashes]),
            width => self.all_occupied(width, &positions[..hashes]),
        }
    }

    #[inline(always)]
    fn all_occupied<W: Width>(&self, width: W, positions: &[u64]) -> bool {
        let bytes = self.cells.bytes();
        for &position in positions {
            if width.read(bytes, position) == 0 {
                return false;
            }
        }
        true
    }

    /// Asks for the cells at the positions.
    #[inline(always)]
    fn prefetch<W: Width>(&self, width: W, positions: &[u64]) {
        let bytes = self.cells.bytes();
        for &position in positions {
            probe::prefetch(bytes, (position * u64::from(width.bits()) / 8) as usize);
        }
    }

    /// The answers for any number of keys.
    pub(super) fn contains_batch<K: Key>(&self, seed: Seed, keys: &[K], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        if let Some(mapping) = self.in_lines {
            let table = self.cells.bytes();
            return with_line_width!(self.cells.width(), |W| {
                probe::dispatch(lines::Lookup::<_, W> { table, mapping, seed, keys, found });
            });
        }
        match self.cells.width() {
            1 => probe::dispatch(Lookup { table: self, width: Bit, seed, keys, found }),
            4 => probe::dispatch(Lookup { table: self, width: Nibble, seed, keys, found }),
            width => probe::dispatch(Lookup { table: self, width, seed, keys, found }),
        }
    }

    /// The share of cells that are not zero; counted now if they lie in lines.
    pub(super) fn fill(&self) -> f64 {
        let occupied = if self.in_lines.is_some() { self.cells.occupied() } else { self.occupied };
        occupied as f64 / self.cells.cells() as f64
    }

    /// Takes over the payload of a table of this shape.
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

/// A filter that is a table and more.
pub(super) trait OnTable {
    fn table(&self) -> &Table;
    fn seed(&self) -> Seed;
}

/// What is done with each key of a batch. A trait and not a closure, so that it is inlined into
/// the loop and compiled for its instruction set.
pub(super) trait Act<F> {
    fn act(&mut self, filter: &mut F, key: usize, positions: &[u64]);
}

/// Acts on each key in order, after the cells of a whole chunk of keys were asked for.
#[inline(always)]
pub(super) fn each_key<I: Isa, K: Key, W: Width, F: OnTable>(
    isa: I,
    width: W,
    filter: &mut F,
    keys: &[K],
    act: impl Act<F>,
) {
    if filter.table().hashes <= FEW {
        each_key_of::<FEW, _, _, _, _>(isa, width, filter, keys, act);
    } else {
        each_key_of::<MANY, _, _, _, _>(isa, width, filter, keys, act);
    }
}

#[inline(always)]
fn each_key_of<const HASHES: usize, I: Isa, K: Key, W: Width, F: OnTable>(
    isa: I,
    width: W,
    filter: &mut F,
    keys: &[K],
    mut act: impl Act<F>,
) {
    let far = filter.table().cells.bytes().len() > NEAR;
    let hashes = filter.table().hashes;
    let mut all = [[0; HASHES]; CHUNK];
    batch::each_chunk(isa, filter.seed(), keys, |first, digests| {
        for (&digest, positions) in digests.iter().zip(&mut all) {
            filter.table().place(digest, 0, hashes, positions);
            if far {
                filter.table().prefetch(width, &positions[..hashes]);
            }
        }
        for (i, positions) in all[..digests.len()].iter().enumerate() {
            act.act(filter, first + i, &positions[..hashes]);
        }
    });
}

/// A loop over keys that asks.
struct Lookup<'a, K, W> {
    table: &'a Table,
    width: W,
    seed: Seed,
    keys: &'a [K],
    found: &'a mut [bool],
}

impl<K: Key, W: Width> Kernel for Lookup<'_, K, W> {
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

impl<K: Key, W: Width> Lookup<'_, K, W> {
    /// The first cells of all keys of a chunk, then the rest of those that are still in.
    #[inline(always)]
    fn run_of<const HASHES: usize, I: Isa>(self, isa: I) {
        let Lookup { table, width, seed, keys, found } = self;
        let (first, hashes) = (FIRST.min(table.hashes), table.hashes);
        let near = table.cells.bytes().len() <= NEAR;
        let mut all = [[0; HASHES]; CHUNK];
        batch::each_chunk(isa, seed, keys, |start, digests| {
            let found = &mut found[start..start + digests.len()];
            for (&digest, positions) in digests.iter().zip(&mut all) {
                table.place(digest, 0, first, positions);
                if !near {
                    table.prefetch(width, &positions[..first]);
                }
            }
            for ((&digest, positions), found) in digests.iter().zip(&mut all).zip(&mut *found) {
                *found = table.all_occupied(width, &positions[..first]);
                if *found {
                    table.place(digest, first, hashes, positions);
                    if !near {
                        table.prefetch(width, &positions[first..hashes]);
                    }
                }
            }
            for (positions, found) in all.iter().zip(found) {
                *found = *found && table.all_occupied(width, &positions[first..hashes]);
            }
        });
    }
}
