//! What Bloom and counting Bloom filters share: `k` cells a key, wherever the mapping puts them.
//!
//! A key is present if none of its cells is zero. That is all a lookup needs to know, whatever
//! else the cells hold.

use super::{
    batch::{self, CHUNK, NEAR},
    mapping::{Mapping, Spread},
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

/// The width of a cell: known to the compiler, or not.
pub(super) trait Width: Copy {
    fn bits(self) -> u32;
}

/// The width that most filters have.
#[derive(Clone, Copy)]
pub(super) struct Fixed<const BITS: u32>;

impl<const BITS: u32> Width for Fixed<BITS> {
    #[inline(always)]
    fn bits(self) -> u32 {
        BITS
    }
}

impl Width for u32 {
    #[inline(always)]
    fn bits(self) -> u32 {
        self
    }
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) cells: Packed,
    mapping: Mapping,
    /// How many cells are not zero.
    pub(super) occupied: u64,
}

impl Table {
    pub(super) fn zeroed(
        cells: u64,
        width: u32,
        hashes: u32,
        spread: Spread,
    ) -> Result<Self, Infeasible> {
        let mapping = Mapping::new(cells, width, hashes, spread)?;
        Ok(Table { cells: Packed::zeroed(cells, width)?, mapping, occupied: 0 })
    }

    /// The cells of the digest, in order, and how many they are; some may come twice.
    #[inline(always)]
    pub(super) fn positions(&self, digest: Digest) -> ([u64; MANY], usize) {
        let mut positions = [0; MANY];
        self.mapping.positions(digest, 0, self.mapping.hashes(), &mut positions);
        (positions, self.mapping.hashes() as usize)
    }

    pub(super) fn contains(&self, digest: Digest) -> bool {
        let (positions, hashes) = self.positions(digest);
        match self.cells.width() {
            1 => self.all_occupied(Fixed::<1>, &positions[..hashes]),
            4 => self.all_occupied(Fixed::<4>, &positions[..hashes]),
            width => self.all_occupied(width, &positions[..hashes]),
        }
    }

    #[inline(always)]
    fn all_occupied<W: Width>(&self, width: W, positions: &[u64]) -> bool {
        let bytes = self.cells.bytes();
        positions.iter().all(|&position| cells::read(bytes, width.bits(), position) != 0)
    }

    /// Asks for the cells at the positions: those that lie together once.
    #[inline(always)]
    fn prefetch<W: Width>(&self, width: W, positions: &[u64]) {
        let bytes = self.cells.bytes();
        for &position in positions.iter().step_by(self.mapping.together() as usize) {
            probe::prefetch(bytes, (position * u64::from(width.bits()) / 8) as usize);
        }
    }

    /// The answers for any number of keys.
    pub(super) fn contains_batch<K: Key>(&self, seed: Seed, keys: &[K], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        match self.cells.width() {
            1 => probe::dispatch(Lookup { table: self, width: Fixed::<1>, seed, keys, found }),
            4 => probe::dispatch(Lookup { table: self, width: Fixed::<4>, seed, keys, found }),
            width => probe::dispatch(Lookup { table: self, width, seed, keys, found }),
        }
    }

    /// The share of cells that are not zero.
    pub(super) fn fill(&self) -> f64 {
        self.occupied as f64 / self.cells.cells() as f64
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

/// Calls `act` with the filter, each key's index and its cells, in order, after the cells of a
/// whole chunk of keys were asked for.
#[inline(always)]
pub(super) fn each_key<I: Isa, K: Key, W: Width, F: OnTable>(
    isa: I,
    width: W,
    filter: &mut F,
    keys: &[K],
    act: impl FnMut(&mut F, usize, &[u64]),
) {
    if filter.table().mapping.hashes() as usize <= FEW {
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
    mut act: impl FnMut(&mut F, usize, &[u64]),
) {
    let far = filter.table().cells.bytes().len() > NEAR;
    let mapping = filter.table().mapping;
    let hashes = mapping.hashes() as usize;
    let mut all = [[0; HASHES]; CHUNK];
    batch::each_chunk(isa, filter.seed(), keys, |first, digests| {
        for (&digest, positions) in digests.iter().zip(&mut all) {
            mapping.positions(digest, 0, mapping.hashes(), positions);
            if far {
                filter.table().prefetch(width, &positions[..hashes]);
            }
        }
        for (i, positions) in all[..digests.len()].iter().enumerate() {
            act(filter, first + i, &positions[..hashes]);
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
        if self.table.mapping.hashes() as usize <= FEW {
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
        let mapping = table.mapping;
        let (first, hashes) = (mapping.first() as usize, mapping.hashes() as usize);
        let near = table.cells.bytes().len() <= NEAR;
        let mut all = [[0; HASHES]; CHUNK];
        batch::each_chunk(isa, seed, keys, |start, digests| {
            let found = &mut found[start..start + digests.len()];
            for (&digest, positions) in digests.iter().zip(&mut all) {
                mapping.positions(digest, 0, first as u32, positions);
                if !near {
                    table.prefetch(width, &positions[..first]);
                }
            }
            for ((&digest, positions), found) in digests.iter().zip(&mut all).zip(&mut *found) {
                *found = table.all_occupied(width, &positions[..first]);
                if *found {
                    mapping.positions(digest, first as u32, hashes as u32, positions);
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
