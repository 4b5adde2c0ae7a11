//! A d-left table: buckets of cells in a few subtables.
//!
//! [`set::DLeft`](crate::set::DLeft), [`state::Fingerprint`](crate::state::Fingerprint) and
//! the overflow table of [`set::Backyard`](crate::set::Backyard) are built on it. A
//! fingerprint has one bucket in each subtable. `DLeft` and `Fingerprint` store it in one cell;
//! `Backyard` stores one cell per overflowed key. A cell holds the remainder and some low bits: the
//! number of copies of a key, or the state of a flow.
//! ```text
//! digest --addressing--> fingerprint, its bucket and cell value in each subtable
//!        --find_room---> the cell that holds it, or an empty cell in the emptiest bucket
//!        --moves, grow-> an empty cell where there was none
//!
//! a cell: the complement of | remainder r | low bits |     zero is empty
//! ```
//! One content would look like an empty cell: the largest remainder with all low bits set. It is
//! not [`storable`](Table::storable), and no structure writes it. In a table without low bits, a
//! fingerprint with that remainder is replaced by its successor.

mod addressing;
mod find_room;
mod grow;
mod moves;

pub(crate) use crate::bucket::ANY;
pub(crate) use addressing::{Addressing, Fingerprints};
pub(crate) use find_room::{Cell, Finder};
pub use moves::{Moved, Moves};

use crate::{
    Infeasible,
    batch::{self, AnyKeys, Batch},
    bucket::{Any, Layout, bucket_bytes},
    key::permute::MODULUS_MAX,
    memory::Memory,
    simd::{self, BASE, Isa, Kernel},
};
use moves::Budget;

/// The most subtables.
pub(crate) const SUBTABLES_MAX: u32 = ANY as u32;
/// The most cells per bucket.
const CELLS_MAX: usize = 32;

/// The source of a key's buckets and remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Placing {
    /// One fingerprint, permuted for each subtable. Two keys that agree in one bucket and remainder
    /// agree in all. A cell determines its fingerprint, so cells can move and tables can grow.
    #[default]
    Permuted,
    /// Independent buckets and one remainder for all of them: the first variant in the papers. Two
    /// buckets of a key may then hold its remainder. For comparison.
    Independent,
}

/// The integers that fix a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) subtables: u32,
    pub(crate) buckets: u64,
    pub(crate) cells: u32,
    pub(crate) width: u32,
    pub(crate) remainder: u32,
    pub(crate) low: u32,
    pub(crate) moves: Moves,
    pub(crate) growths: u32,
    pub(crate) placing: Placing,
    /// Low bits that are cleared when a cell moves.
    pub(crate) lost_by_moving: u64,
}

impl Form {
    pub(crate) fn all_cells(&self) -> u64 {
        u64::from(self.subtables) * self.buckets * u64::from(self.cells)
    }

    pub(crate) fn bytes(&self) -> u64 {
        let subtable = self.buckets.saturating_mul(bucket_bytes(self.cells, self.width));
        subtable.saturating_mul(self.subtables.into())
    }

    pub(crate) fn fingerprints(&self) -> u64 {
        self.buckets << self.remainder
    }

    /// Checks the limits that hold for every table.
    pub(crate) fn check(&self) -> Result<(), Infeasible> {
        Infeasible::unless_within("buckets", self.buckets, 1, MODULUS_MAX >> self.remainder)?;
        let buckets = u128::from(self.subtables) * u128::from(self.buckets);
        let bytes = buckets * u128::from(bucket_bytes(self.cells, self.width));
        if bytes > u128::from(u64::MAX / 4) {
            return Err(Infeasible::Memory { bytes: u64::MAX });
        }
        self.moves.check()
    }
}

/// Buckets of cells in a few subtables. See the [module](self).
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) form: Form,
    /// The permutations, counts and masks that follow from the form.
    pub(crate) fingerprints: Fingerprints,
    pub(crate) addressing: Addressing,
    pub(crate) memory: Memory,
    /// Cells in use.
    pub(crate) occupied: u64,
    /// Cells that were taken or freed so far. Each change adds to the budget of searches.
    pub(crate) changes: u64,
    pub(crate) moved: Moved,
    budget: Budget,
    /// The buffer of searches, kept between them.
    search: Vec<moves::Step>,
    /// The cells that the last search moved: their new buckets and their low bits.
    pub(crate) landed: Vec<(usize, u64)>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(form: Form) -> Result<Self, Infeasible> {
        form.check()?;
        Ok(Table {
            form,
            fingerprints: Fingerprints::new(&form)?,
            addressing: Addressing::new(&form),
            // A bucket of any width may read up to 16 bytes beyond the last bucket.
            memory: Memory::zeroed(form.bytes() + 16)?,
            occupied: 0,
            changes: 0,
            moved: Moved::default(),
            budget: Budget::new(form.moves),
            search: Vec::new(),
            landed: Vec::new(),
        })
    }

    pub(crate) fn clear(&mut self) {
        self.memory.bytes_mut().fill(0);
        self.occupied = 0;
    }

    pub(crate) fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Table {
            memory: self.memory.try_clone()?,
            search: Vec::new(),
            landed: Vec::new(),
            ..*self
        })
    }

    /// The layout of the cells, selected again at every call.
    #[inline(always)]
    pub(crate) fn any(&self) -> Any {
        Any { cells: self.form.cells, width: self.form.width }
    }

    /// The reader of single keys, for a layout and a number of subtables.
    #[inline(always)]
    pub(crate) fn finder<I: Isa, L: Layout, const D: usize>(
        &self,
        isa: I,
        layout: L,
    ) -> Finder<I, L, D> {
        Finder { isa, layout, addressing: self.addressing.of() }
    }

    /// The reader of single keys of any table, for code outside hot loops.
    pub(crate) fn any_finder(&self) -> Finder<impl Isa, Any, ANY> {
        self.finder(BASE, self.any())
    }

    /// The share of cells in use.
    pub(crate) fn load(&self) -> f64 {
        self.occupied as f64 / self.form.all_cells() as f64
    }

    /// Whether every cell is taken.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.occupied == self.form.all_cells()
    }

    /// Whether growing may make room: an eighth of the cells is in use, and the form allows a
    /// growth.
    ///
    /// At a lower load, a full bucket holds copies of few fingerprints, or keys chosen to collide.
    /// Doubling separates them late or never, so a few keys could take any amount of memory.
    pub(crate) fn may_double(&self) -> bool {
        self.form.growths > 0 && self.occupied >= self.form.all_cells() / 8
    }

    /// The bytes of all buckets.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.memory.bytes()[..self.form.bytes() as usize]
    }

    /// The number of buckets of all subtables. Buckets are numbered through all subtables.
    pub(crate) fn buckets(&self) -> usize {
        self.form.subtables as usize * self.form.buckets as usize
    }

    /// The stored fingerprints and their low bits, in the order of the table.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..self.buckets()).flat_map(move |bucket| {
            (0..self.form.cells).filter_map(move |cell| self.cell(bucket, cell))
        })
    }

    /// The number of buckets that hold exactly 0, 1, .. cells in use, by subtable.
    pub(crate) fn loads(&self) -> Vec<Vec<u64>> {
        let mut loads = vec![vec![0; self.form.cells as usize + 1]; self.form.subtables as usize];
        for bucket in 0..self.buckets() {
            let empty = self.any().matches(BASE, self.bucket(bucket), 0, 0);
            let used = (self.form.cells - empty.count_ones()) as usize;
            loads[bucket / self.form.buckets as usize][used] += 1;
        }
        loads
    }

    /// The table's bytes from a bucket on.
    pub(crate) fn bucket(&self, bucket: usize) -> &[u8] {
        self.any().bucket(self.memory.bytes(), bucket)
    }

    /// The value of a cell.
    pub(crate) fn read(&self, bucket: usize, cell: u32) -> u64 {
        self.any().read(self.bucket(bucket), cell)
    }

    /// The fingerprint and low bits in a cell, if it is in use.
    pub(crate) fn cell(&self, bucket: usize, cell: u32) -> Option<(u64, u64)> {
        let value = self.read(bucket, cell);
        let (_, low) = self.decode(value)?;
        let subtable = bucket / self.form.buckets as usize;
        let permuted = self.addressing.permuted_at(subtable, bucket, value);
        Some((self.fingerprints.unpermuted(subtable, permuted), low))
    }

    /// The number of cells that hold a fingerprint.
    pub(crate) fn cells_of(&self, fingerprint: u64) -> u32 {
        let finder = self.any_finder();
        finder.count(self.memory.bytes(), &self.fingerprints.permuted::<ANY>(fingerprint))
    }

    /// Remainder and low bits of a cell. `None` if it is empty.
    #[inline(always)]
    pub(crate) fn decode(&self, value: u64) -> Option<(u64, u64)> {
        let Table { addressing, .. } = self;
        (value != 0).then(|| (addressing.remainder(value), addressing.low_bits(value)))
    }

    /// Whether a cell can hold this permuted fingerprint with these low bits: every content except
    /// that which looks like an empty cell.
    #[inline(always)]
    pub(crate) fn storable(&self, permuted: u64, low: u64) -> bool {
        self.addressing.value(permuted) != low
    }

    /// The share of fingerprints that are replaced by their successors.
    pub(crate) fn passed_over(&self) -> f64 {
        match self.fingerprints.passed {
            0 => 0.0,
            mask => f64::from(self.form.subtables) / (mask as f64 + 1.0),
        }
    }

    /// Writes a key with these low bits to an empty cell, which is then counted as in use.
    #[inline(always)]
    pub(crate) fn put<L: Layout>(&mut self, layout: L, room: Cell, low: u64) {
        debug_assert!(room.value != low, "what looks like an empty cell is never stored");
        let bucket = layout.bucket_mut(self.memory.bytes_mut(), room.bucket);
        layout.write(bucket, room.cell, room.value ^ low);
        self.occupied += 1;
        self.changes += 1;
    }

    /// Empties a cell.
    #[inline(always)]
    pub(crate) fn empty<L: Layout>(&mut self, layout: L, cell: Cell) {
        let bucket = layout.bucket_mut(self.memory.bytes_mut(), cell.bucket);
        layout.write(bucket, cell.cell, 0);
        self.occupied -= 1;
        self.changes += 1;
    }
}

/// Runs a batch on a table of `bytes` bytes with the best instruction set of this processor.
#[inline(always)]
pub(crate) fn run_best<B: Batch>(keys: AnyKeys<'_>, bytes: usize, batch: B) {
    simd::dispatch(Run { keys, bytes, batch });
}

struct Run<'a, B> {
    keys: AnyKeys<'a>,
    bytes: usize,
    batch: B,
}

impl<B: Batch> Kernel for Run<'_, B> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        batch::run(isa, self.keys, self.bytes, self.batch);
    }
}
