//! A d-left table: buckets of cells in a few subtables.
//!
//! [`member::DLeft`](crate::member::DLeft), [`state::Fingerprint`](crate::state::Fingerprint) and
//! the overflow table of [`member::Backyard`](crate::member::Backyard) are built on it. A
//! fingerprint has one bucket in each subtable. `DLeft` and `Fingerprint` store it in one cell;
//! `Backyard` stores one cell per overflowed key. A cell holds the remainder and some low bits: the
//! number of copies of a key, or the state of a flow.
//! ```text
//! f --permute(i)--> | bucket | remainder r |               for subtable i in 0..d
//!                                  |
//! a cell: the complement of | remainder r | low bits |     zero is empty
//! ```
//! One content would look like an empty cell: the largest remainder with all low bits set. It is
//! not [`storable`](Table::storable), and no structure writes it. In a table without low bits, a
//! fingerprint with that remainder is replaced by its successor.

mod cut;
mod each;
mod grow;
mod moves;
mod ways;

pub(crate) use cut::Cut;
pub(crate) use each::{Each, each_key_of_any};
pub(crate) use moves::Budget;
pub use moves::{Moved, Moves};
pub(crate) use ways::Ways;

use crate::{
    Digest, Infeasible,
    cells::{
        Memory,
        bucket::{Any, Layout},
    },
    hash::{
        permute::{MODULUS_MOST, Permutation},
        spread,
    },
    probe::{BASE, Isa},
};

/// The most subtables.
pub(crate) const SUBTABLES_MOST: u32 = 8;
/// The most cells per bucket.
pub(crate) const CELLS_MOST: usize = 32;
/// The length of an array for the places of a key in any table.
pub(crate) const ANY: usize = SUBTABLES_MOST as usize;

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
        Infeasible::unless_within("buckets", self.buckets, 1, MODULUS_MOST >> self.remainder)?;
        let buckets = u128::from(self.subtables) * u128::from(self.buckets);
        let bytes = buckets * u128::from(bucket_bytes(self.cells, self.width));
        if bytes > u128::from(u64::MAX / 4) {
            return Err(Infeasible::Memory { bytes: u64::MAX });
        }
        self.moves.check()
    }

    #[inline(always)]
    pub(crate) fn low_mask(&self) -> u64 {
        (1 << self.low) - 1
    }

    #[inline(always)]
    pub(crate) fn cell_mask(&self) -> u64 {
        u64::MAX >> (64 - self.remainder - self.low)
    }

    /// A permuted fingerprint with all bits of this mask set cannot be stored. 0 if there are low
    /// bits.
    #[inline(always)]
    pub(crate) fn passed_mask(&self) -> u64 {
        if self.low > 0 {
            return 0;
        }
        (1 << (self.remainder - self.growths)) - 1
    }
}

/// The bytes of a bucket. 21 cells of 24 bits take a cache line of 64 bytes, 10 take 32 bytes.
pub(crate) fn bucket_bytes(cells: u32, width: u32) -> u64 {
    match (cells, width) {
        (21, 24) => 64,
        (10, 24) => 32,
        _ => u64::from(cells) * u64::from(width) / 8,
    }
}

/// The bucket and remainder of a fingerprint in one subtable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The offset of its bucket in the table's bytes.
    pub(crate) offset: usize,
    pub(crate) remainder: u64,
}

impl Place {
    pub(crate) const NOWHERE: Place = Place { offset: 0, remainder: 0 };
}

/// A cell among the places of a key: the index of its place, and the cell in that bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) place: usize,
    pub(crate) cell: u32,
}

/// Buckets of cells in a few subtables. See the [module](self).
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) form: Form,
    pub(crate) memory: Memory,
    /// Bytes per bucket and per subtable, which follow from the form.
    pub(crate) bucket_bytes: usize,
    subtable_bytes: usize,
    /// Masks of the low bits and of all bits of a cell, and the largest remainder. All follow from
    /// the form.
    low_mask: u64,
    cell_mask: u64,
    largest: u64,
    /// One permutation per subtable; the first is the identity.
    permutations: [Permutation; ANY],
    /// Cells in use.
    pub(crate) occupied: u64,
    /// Cells that were taken or freed so far. Each change adds to the budget of searches.
    pub(crate) changes: u64,
    pub(crate) moved: Moved,
    pub(crate) budget: Budget,
    /// The buffer of searches, kept between them.
    search: Vec<moves::Step>,
    /// The cells that the last search moved: their new buckets, numbered through all subtables, and
    /// their low bits.
    pub(crate) landed: Vec<(usize, u64)>,
}

/// Runs a body with the layout and the number of subtables of a table as constants, for the common
/// shapes. All other shapes share one slower instance.
macro_rules! with_fast_layout {
    ($form:expr, |$layout:ident, $D:ident| $body:expr) => {{
        use $crate::cells::bucket::{Any, Lanes, Split};
        match ($form.width, $form.cells, $form.subtables) {
            (16, 32, 2) => {
                const $D: usize = 2;
                let $layout = Lanes::<u16, 64>::NEW;
                $body
            }
            (24, 10, 2) => {
                const $D: usize = 2;
                let $layout = Split::<10, 32, 16>;
                $body
            }
            (24, 21, 2) => {
                const $D: usize = 2;
                let $layout = Split::<21, 64, 32>;
                $body
            }
            (32, 16, 2) => {
                const $D: usize = 2;
                let $layout = Lanes::<u32, 64>::NEW;
                $body
            }
            (width, cells, _) => {
                const $D: usize = $crate::left::ANY;
                let $layout = Any { cells, width };
                $body
            }
        }
    }};
}
pub(crate) use with_fast_layout;

impl Table {
    /// An empty table.
    pub(crate) fn new(form: Form) -> Result<Self, Infeasible> {
        form.check()?;
        // A bucket of any width may read up to 16 bytes beyond the last bucket.
        let memory = Memory::zeroed(form.bytes() + 16)?;
        let permutations = permutations(form.fingerprints())?;
        let bucket_bytes = bucket_bytes(form.cells, form.width) as usize;
        let subtable_bytes = form.buckets as usize * bucket_bytes;
        let (moved, budget, search) = (Moved::default(), Budget::new(form.moves), Vec::new());
        Ok(Table {
            form,
            memory,
            bucket_bytes,
            subtable_bytes,
            low_mask: form.low_mask(),
            cell_mask: form.cell_mask(),
            largest: (1 << form.remainder) - 1,
            permutations,
            occupied: 0,
            changes: 0,
            moved,
            budget,
            search,
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

    /// The stored fingerprints and their low bits, in the order of the table.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let Form { subtables, buckets, cells, .. } = self.form;
        (0..subtables).flat_map(move |subtable| {
            (0..buckets).flat_map(move |bucket| {
                (0..cells).filter_map(move |cell| self.cell(subtable, bucket, cell))
            })
        })
    }

    /// The number of buckets that hold exactly 0, 1, .. cells in use, by subtable.
    pub(crate) fn loads(&self) -> Vec<Vec<u64>> {
        let mut loads = vec![vec![0; self.form.cells as usize + 1]; self.form.subtables as usize];
        for (subtable, loads) in (0..).zip(&mut loads) {
            for bucket in 0..self.form.buckets {
                let bytes = &self.memory.bytes()[self.offset(subtable, bucket)..];
                let empty = self.any().matches(BASE, bytes, 0, 0);
                loads[(self.form.cells - empty.count_ones()) as usize] += 1;
            }
        }
        loads
    }

    /// The fingerprint and low bits in a cell, if it is in use.
    pub(crate) fn cell(&self, subtable: u32, bucket: u64, cell: u32) -> Option<(u64, u64)> {
        self.cell_in(self.any(), subtable, bucket, cell)
    }

    /// As [`cell`](Self::cell), for a given layout.
    fn cell_in<L: Layout>(
        &self,
        layout: L,
        subtable: u32,
        bucket: u64,
        cell: u32,
    ) -> Option<(u64, u64)> {
        let bytes = &self.memory.bytes()[self.offset(subtable, bucket)..];
        let value = layout.read(bytes, cell);
        let (remainder, low) = self.decode(value)?;
        let image = (bucket << self.form.remainder) | remainder;
        Some((self.permutations[subtable as usize].invert(image), low))
    }

    /// The number of cells that hold a fingerprint.
    pub(crate) fn cells_of(&self, fingerprint: u64) -> u32 {
        let places = self.places_of::<ANY>(fingerprint);
        let places = &places[..self.form.subtables as usize];
        let table = self.memory.bytes();
        let matches = |&place: &Place| self.matches_in(BASE, self.any(), table, place);
        places.iter().map(|place| matches(place).count_ones()).sum()
    }

    /// Remainder and low bits of a cell. `None` if it is empty.
    #[inline(always)]
    pub(crate) fn decode(&self, value: u64) -> Option<(u64, u64)> {
        let raw = !value & self.form.cell_mask();
        (value != 0).then_some((raw >> self.form.low, raw & self.form.low_mask()))
    }

    /// The value of a cell with this remainder and low bits.
    #[inline(always)]
    pub(crate) fn encode(&self, remainder: u64, low: u64) -> u64 {
        !((remainder << self.form.low) | low) & self.cell_mask
    }

    /// Whether a cell can hold this content: every one except that which looks like an empty cell.
    #[inline(always)]
    pub(crate) fn storable(&self, remainder: u64, low: u64) -> bool {
        self.encode(remainder, low) != 0
    }

    /// The offset of a bucket in the table's bytes.
    #[inline(always)]
    pub(crate) fn offset(&self, subtable: u32, bucket: u64) -> usize {
        subtable as usize * self.subtable_bytes + bucket as usize * self.bucket_bytes
    }

    /// The share of fingerprints that are replaced by their successors.
    pub(crate) fn passed_over(&self) -> f64 {
        match self.form.passed_mask() {
            0 => 0.0,
            mask => f64::from(self.form.subtables) / (mask as f64 + 1.0),
        }
    }

    /// The fingerprint of a digest.
    #[inline(always)]
    pub(crate) fn fingerprint_of(&self, digest: Digest) -> u64 {
        let fingerprint = spread::fraction(digest.0, self.form.fingerprints());
        if self.form.low > 0 { fingerprint } else { self.next_storable(fingerprint) }
    }

    /// The fingerprint, or the first after it that can be stored.
    #[inline(never)]
    fn next_storable(&self, fingerprint: u64) -> u64 {
        self.ways::<ANY>().next_storable(fingerprint)
    }

    /// The addressing of this table: a copy of the values that the places of a key depend on.
    #[inline(always)]
    pub(crate) fn ways<const D: usize>(&self) -> Ways<D> {
        let mut permutations = [self.permutations[0]; D];
        permutations.copy_from_slice(&self.permutations[..D]);
        Ways {
            fingerprints: self.form.fingerprints(),
            passed: self.form.passed_mask(),
            subtables: self.subtables::<D>(),
            remainder: self.form.remainder,
            bucket_bytes: self.bucket_bytes,
            subtable_bytes: self.subtable_bytes,
            permutations,
        }
    }

    /// The bucket and remainder of a digest in each subtable. `D` is at least the number of
    /// subtables.
    #[inline(always)]
    pub(crate) fn places<const D: usize>(&self, digest: Digest) -> [Place; D] {
        match self.form.placing {
            Placing::Permuted => self.places_of(self.fingerprint_of(digest)),
            Placing::Independent => self.places_apart(digest),
        }
    }

    /// The number of subtables: the constant `D`, unless `D` is [`ANY`].
    #[inline(always)]
    pub(crate) fn subtables<const D: usize>(&self) -> usize {
        if D < ANY { D } else { self.form.subtables as usize }
    }

    /// The bucket and remainder of a fingerprint in each subtable.
    #[inline(always)]
    pub(crate) fn places_of<const D: usize>(&self, fingerprint: u64) -> [Place; D] {
        self.ways::<D>().places_of(fingerprint)
    }

    /// An independent bucket in each subtable, and one remainder.
    #[inline(never)]
    fn places_apart<const D: usize>(&self, digest: Digest) -> [Place; D] {
        let mut places = [Place::NOWHERE; D];
        let remainder = spread::position(digest, SUBTABLES_MOST, 1 << self.form.remainder);
        for (i, place) in (0..).zip(&mut places[..self.subtables::<D>()]) {
            let bucket = spread::position(digest, i, self.form.buckets);
            *place = Place { offset: self.offset(i, bucket), remainder };
        }
        places
    }

    /// The fingerprint that has these places. The first permutation is the identity.
    pub(crate) fn fingerprint_at(&self, places: &[Place]) -> u64 {
        let bucket = (places[0].offset / self.bucket_bytes) as u64;
        (bucket << self.form.remainder) | places[0].remainder
    }

    /// The cells of the bucket at `place` that hold its remainder, as a mask. `table` is the
    /// table's bytes.
    #[inline(always)]
    pub(crate) fn matches_in<I: Isa, L: Layout>(
        &self,
        isa: I,
        layout: L,
        table: &[u8],
        place: Place,
    ) -> u64 {
        let bucket = &table[place.offset..];
        let value = self.encode(place.remainder, 0);
        let found = layout.matches(isa, bucket, value, self.low_mask);
        // With low bits ignored, only the largest remainder also matches empty cells.
        if place.remainder == self.largest {
            return found & !layout.matches(isa, bucket, 0, 0);
        }
        found
    }

    /// The first cell that holds the key's remainder, and the number of such cells.
    #[inline(always)]
    pub(crate) fn find<const D: usize, I: Isa, L: Layout>(
        &self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> (Spot, u32) {
        let table = self.memory.bytes();
        if D == 2 {
            // No branch on which of the two buckets it is: the processor would mispredict half of
            // them.
            let left = self.matches_in(isa, layout, table, places[0]);
            let right = self.matches_in(isa, layout, table, places[1]);
            let both = left | right << CELLS_MOST;
            let first = both.trailing_zeros();
            let place = (first as usize / CELLS_MOST) & 1;
            return (Spot { place, cell: first % CELLS_MOST as u32 }, both.count_ones());
        }
        let (mut spot, mut count) = (Spot { place: 0, cell: 0 }, 0);
        for (i, &place) in places[..self.subtables::<D>()].iter().enumerate() {
            let found = self.matches_in(isa, layout, table, place);
            if found != 0 && count == 0 {
                spot = Spot { place: i, cell: found.trailing_zeros() };
            }
            count += found.count_ones();
        }
        (spot, count)
    }

    /// An empty cell of the emptiest bucket, ties to the left.
    #[inline(always)]
    pub(crate) fn room<const D: usize, I: Isa, L: Layout>(
        &self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> Option<Spot> {
        let (mut most, table) = (0, self.memory.bytes());
        let mut best = Spot { place: 0, cell: 0 };
        for (i, &place) in places[..self.subtables::<D>()].iter().enumerate() {
            let empty = layout.matches(isa, &table[place.offset..], 0, 0);
            // Strictly more: of equal buckets, the left one is taken.
            if empty.count_ones() > most {
                most = empty.count_ones();
                best = Spot { place: i, cell: empty.trailing_zeros() };
            }
        }
        (most > 0).then_some(best)
    }

    /// The low bits of a cell.
    #[inline(always)]
    pub(crate) fn low_at<L: Layout>(&self, layout: L, places: &[Place], spot: Spot) -> u64 {
        let value = layout.read(&self.memory.bytes()[places[spot.place].offset..], spot.cell);
        !value & self.low_mask
    }

    /// Writes the key's remainder and these low bits to a cell.
    #[inline(always)]
    pub(crate) fn write<L: Layout>(&mut self, layout: L, places: &[Place], spot: Spot, low: u64) {
        let place = places[spot.place];
        let value = self.encode(place.remainder, low);
        debug_assert!(value != 0, "what looks like an empty cell is never stored");
        layout.write(&mut self.memory.bytes_mut()[place.offset..], spot.cell, value);
    }

    /// Writes to an empty cell, which is then counted as in use.
    #[inline(always)]
    pub(crate) fn put<L: Layout>(&mut self, layout: L, places: &[Place], spot: Spot, low: u64) {
        self.write(layout, places, spot, low);
        self.occupied += 1;
        self.changes += 1;
    }

    /// Empties a cell.
    #[inline(always)]
    pub(crate) fn empty<L: Layout>(&mut self, layout: L, places: &[Place], spot: Spot) {
        let offset = places[spot.place].offset;
        layout.write(&mut self.memory.bytes_mut()[offset..], spot.cell, 0);
        self.occupied -= 1;
        self.changes += 1;
    }
}

/// The identity, then multiplications by well-spread factors. They depend on the number of
/// fingerprints alone, so tables stay compatible when one of them grows.
fn permutations(fingerprints: u64) -> Result<[Permutation; ANY], Infeasible> {
    let mut all = [None; ANY];
    for (i, permutation) in (0u64..).zip(&mut all) {
        // Fractions of the range that no small multiple brings close to each other.
        let mut mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let wish = if i == 0 { 1 } else { spread::fraction(mixed, fingerprints) };
        *permutation = Permutation::near(fingerprints, wish);
    }
    match all {
        [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f), Some(g), Some(h)] => {
            Ok([a, b, c, d, e, f, g, h])
        }
        _ => Err(Infeasible::Memory { bytes: u64::MAX }),
    }
}
