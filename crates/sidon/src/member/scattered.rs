//! What Bloom and counting Bloom filters share: `k` cells a key, anywhere in the table.
//!
//! A key is present if none of its cells is zero. That is all a lookup needs to know, whatever
//! else the cells hold.

use super::batch::{self, NEAR};
use crate::{
    Digest, Infeasible, Key, Malformed, Seed,
    cells::{self, Packed},
    hash::spread,
    probe::{self, Isa, Kernel},
};

/// Cells that a batch looks at before it asks for the others: seven strangers of eight are told
/// apart by three cells of a half-full table.
const FIRST: u32 = 3;

#[derive(Debug)]
pub(super) struct Scattered {
    pub(super) cells: Packed,
    pub(super) hashes: u32,
    /// How many cells are not zero.
    pub(super) occupied: u64,
}

impl Scattered {
    pub(super) fn zeroed(cells: u64, width: u32, hashes: u32) -> Result<Self, Infeasible> {
        Infeasible::unless_within("hashes", hashes.into(), 1, spread::MOST.into())?;
        Infeasible::unless_within("cells", cells, 1, u64::MAX)?;
        Ok(Scattered { cells: Packed::zeroed(cells, width)?, hashes, occupied: 0 })
    }

    /// The cells of the digest, in order; some may come twice.
    #[inline(always)]
    pub(super) fn positions(&self, digest: Digest) -> impl Iterator<Item = u64> + use<> {
        let (hashes, cells) = (self.hashes, self.cells.cells());
        (0..hashes).map(move |i| spread::position(digest, i, cells))
    }

    #[inline(always)]
    pub(super) fn contains(&self, digest: Digest) -> bool {
        self.all_occupied(digest, 0, self.hashes)
    }

    /// Whether cells `from..to` of the digest are all occupied.
    #[inline(always)]
    fn all_occupied(&self, digest: Digest, from: u32, to: u32) -> bool {
        let (bytes, width, size) = (self.cells.bytes(), self.cells.width(), self.cells.cells());
        (from..to).all(|i| cells::read(bytes, width, spread::position(digest, i, size)) != 0)
    }

    /// Asks for cells `from..to` of the digest.
    #[inline(always)]
    pub(super) fn prefetch(&self, digest: Digest, from: u32, to: u32) {
        let (bytes, width, size) = (self.cells.bytes(), self.cells.width(), self.cells.cells());
        for i in from..to {
            let bit = spread::position(digest, i, size) * u64::from(width);
            probe::prefetch(bytes, (bit / 8) as usize);
        }
    }

    /// Asks for all cells of all digests, if the table is not near anyway.
    #[inline(always)]
    pub(super) fn prefetch_all(&self, digests: &[Digest]) {
        if self.cells.bytes().len() > NEAR {
            for &digest in digests {
                self.prefetch(digest, 0, self.hashes);
            }
        }
    }

    /// The answers for any number of keys.
    pub(super) fn contains_batch<K: Key>(&self, seed: Seed, keys: &[K], found: &mut [bool]) {
        struct Loop<'a, K>(&'a Scattered, Seed, &'a [K], &'a mut [bool]);
        impl<K: Key> Kernel for Loop<'_, K> {
            type Output = ();
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) {
                let Loop(table, seed, keys, found) = self;
                batch::each_chunk(isa, seed, keys, |first, digests| {
                    table.contains_chunk(digests, &mut found[first..first + digests.len()]);
                });
            }
        }
        assert_eq!(keys.len(), found.len(), "one answer a key");
        probe::dispatch(Loop(self, seed, keys, found));
    }

    /// The answers for a chunk: the first cells of all keys, then the rest of those still in.
    #[inline(always)]
    fn contains_chunk(&self, digests: &[Digest], found: &mut [bool]) {
        if self.cells.bytes().len() <= NEAR {
            for (&digest, found) in digests.iter().zip(found) {
                *found = self.contains(digest);
            }
            return;
        }
        let first = FIRST.min(self.hashes);
        for &digest in digests {
            self.prefetch(digest, 0, first);
        }
        for (&digest, found) in digests.iter().zip(&mut *found) {
            *found = self.all_occupied(digest, 0, first);
            if *found {
                self.prefetch(digest, first, self.hashes);
            }
        }
        for (&digest, found) in digests.iter().zip(found) {
            *found = *found && self.all_occupied(digest, first, self.hashes);
        }
    }

    /// The share of cells that are not zero.
    pub(super) fn fill(&self) -> f64 {
        self.occupied as f64 / self.cells.cells() as f64
    }

    /// The chance that a stranger's cells, drawn with repetition, are all occupied.
    pub(super) fn false_positive_rate(&self) -> f64 {
        self.fill().powi(self.hashes as i32)
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
        Ok(Scattered { cells: self.cells.try_clone()?, ..*self })
    }
}
