//! Buckets of cells in a few subtables: what is under [`member::DLeft`](crate::member::DLeft) and
//! [`state::Fingerprint`](crate::state::Fingerprint), and behind the lines of
//! [`member::Backyard`](crate::member::Backyard).
//!
//! A fingerprint has one bucket in each subtable. Whether it stands in more than one cell of them is its
//! owner's to say: a flow does not, a line of keys does. A cell
//! holds the remainder and some low bits, which belong to whoever owns the table: copies of a key,
//! or the state of a flow.
//! ```text
//! f --permute(i)--> | bucket | remainder r |               for subtable i in 0..d
//!                                  |
//! a cell: the complement of | remainder r | low bits |     zero is empty
//! ```
//! The one content that looks like an empty cell, the largest remainder with all low bits set, is
//! not [`storable`](Table::storable); the owner never asks for it. Without low bits the few
//! fingerprints that would meet that remainder are taken to be their successors.

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
pub const SUBTABLES_MOST: u32 = 8;
/// The most cells of a bucket.
pub(crate) const CELLS_MOST: usize = 32;
/// Room for the places of a key in any table.
pub(crate) const ANY: usize = SUBTABLES_MOST as usize;

/// Where the buckets and the remainder of a key come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placing {
    /// One fingerprint, permuted for each subtable: two keys that agree in one bucket and remainder
    /// agree in all. A cell knows its fingerprint, so cells can move and tables grow.
    #[default]
    Permuted,
    /// A bucket of its own for each subtable and one remainder for all, as the papers' first
    /// variant has it: a remainder can stand in two buckets of a key. For comparison.
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
    /// Low bits that a cell loses when it moves.
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

    /// What every table asks of its integers, whatever its owner asks for.
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

    /// Images whose bits under this mask are all set cannot be stored: none if there are low bits.
    #[inline(always)]
    pub(crate) fn passed_mask(&self) -> u64 {
        if self.low > 0 {
            return 0;
        }
        (1 << (self.remainder - self.growths)) - 1
    }
}

/// The bytes of a bucket. Those of 21 and of 10 cells of 24 bits fill a line, and half a one, but for
/// the last bytes.
pub(crate) fn bucket_bytes(cells: u32, width: u32) -> u64 {
    match (cells, width) {
        (21, 24) => 64,
        (10, 24) => 32,
        _ => u64::from(cells) * u64::from(width) / 8,
    }
}

/// Where a fingerprint may be stored in one subtable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Where its bucket starts.
    pub(crate) offset: usize,
    pub(crate) remainder: u64,
}

impl Place {
    pub(crate) const NOWHERE: Place = Place { offset: 0, remainder: 0 };
}

/// A cell among the places of a key: which of its buckets, and which cell there.
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
    /// Bytes of a bucket and of a subtable, which the form gives.
    pub(crate) bucket_bytes: usize,
    subtable_bytes: usize,
    /// The low bits of a cell, all its bits, and the largest remainder, which the form gives.
    low_mask: u64,
    cell_mask: u64,
    largest: u64,
    /// One for each subtable; the first is the identity.
    permutations: [Permutation; ANY],
    /// Cells in use.
    pub(crate) occupied: u64,
    /// Cells that were taken or freed so far: each earns searches a share of their budget.
    pub(crate) changes: u64,
    pub(crate) moved: Moved,
    pub(crate) budget: Budget,
    /// Room for a search, kept from one to the next.
    search: Vec<moves::Step>,
    /// The cells that the last search moved: their new buckets, counted across subtables, and their
    /// low bits.
    pub(crate) landed: Vec<(usize, u64)>,
}

/// Runs a body with the layout of a table and the number of its subtables, for a few of them; all
/// others are one, and slower.
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
        // Room also for the words that a bucket of any width reads beyond the last.
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

    /// The layout of the cells, found out at every call.
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

    /// Whether doubling the buckets is a way to make room: an eighth of the cells is in use.
    ///
    /// Below that, a full bucket has copies of few fingerprints, or keys chosen to collide. Doubling
    /// would separate them late or never, so a few keys could demand any amount of memory.
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

    /// How many buckets of each subtable hold exactly 0, 1, .. cells in use.
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

    /// As [`cell`](Self::cell), with a layout that is known.
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

    /// In how many cells a fingerprint stands.
    pub(crate) fn cells_of(&self, fingerprint: u64) -> u32 {
        let places = self.places_of::<ANY>(fingerprint);
        let places = &places[..self.form.subtables as usize];
        let table = self.memory.bytes();
        let matches = |&place: &Place| self.matches_in(BASE, self.any(), table, place);
        places.iter().map(|place| matches(place).count_ones()).sum()
    }

    /// Remainder and low bits of a cell that is not empty.
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

    /// Whether a cell can hold these low bits beside the remainder: all but one content can be.
    #[inline(always)]
    pub(crate) fn storable(&self, remainder: u64, low: u64) -> bool {
        self.encode(remainder, low) != 0
    }

    /// Where a bucket starts.
    #[inline(always)]
    pub(crate) fn offset(&self, subtable: u32, bucket: u64) -> usize {
        subtable as usize * self.subtable_bytes + bucket as usize * self.bucket_bytes
    }

    /// The share of fingerprints that are passed over for their successors.
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

    /// What the places of a key are computed from.
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

    /// The bucket and remainder of a digest in each subtable. `D` is at least their number.
    #[inline(always)]
    pub(crate) fn places<const D: usize>(&self, digest: Digest) -> [Place; D] {
        match self.form.placing {
            Placing::Permuted => self.places_of(self.fingerprint_of(digest)),
            Placing::Independent => self.places_apart(digest),
        }
    }

    /// How many subtables there are: `D`, known to the compiler, unless that stands for any number.
    #[inline(always)]
    pub(crate) fn subtables<const D: usize>(&self) -> usize {
        if D < ANY { D } else { self.form.subtables as usize }
    }

    /// The bucket and remainder of a fingerprint in each subtable.
    #[inline(always)]
    pub(crate) fn places_of<const D: usize>(&self, fingerprint: u64) -> [Place; D] {
        self.ways::<D>().places_of(fingerprint)
    }

    /// Buckets of their own, and one remainder.
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

    /// The fingerprint that has these places; the first permutation is the identity.
    pub(crate) fn fingerprint_at(&self, places: &[Place]) -> u64 {
        let bucket = (places[0].offset / self.bucket_bytes) as u64;
        (bucket << self.form.remainder) | places[0].remainder
    }

    /// Which cells of the bucket at `place` hold its remainder; `table` is the table's bytes.
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
        // Only the largest remainder looks like an empty cell where low bits are not looked at.
        if place.remainder == self.largest {
            return found & !layout.matches(isa, bucket, 0, 0);
        }
        found
    }

    /// The first cell that holds the key's remainder, and how many there are.
    #[inline(always)]
    pub(crate) fn find<const D: usize, I: Isa, L: Layout>(
        &self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> (Spot, u32) {
        let table = self.memory.bytes();
        if D == 2 {
            // No branch on which of the two it is: that is a coin's toss.
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
            // Strictly more: ties go to the left.
            if empty.count_ones() > most {
                most = empty.count_ones();
                best = Spot { place: i, cell: empty.trailing_zeros() };
            }
        }
        (most > 0).then_some(best)
    }

    /// Low bits of the cell at a spot.
    #[inline(always)]
    pub(crate) fn low_at<L: Layout>(&self, layout: L, places: &[Place], spot: Spot) -> u64 {
        let value = layout.read(&self.memory.bytes()[places[spot.place].offset..], spot.cell);
        !value & self.low_mask
    }

    /// Makes the cell at a spot hold the key's remainder and these low bits.
    #[inline(always)]
    pub(crate) fn write<L: Layout>(&mut self, layout: L, places: &[Place], spot: Spot, low: u64) {
        let place = places[spot.place];
        let value = self.encode(place.remainder, low);
        debug_assert!(value != 0, "what looks like an empty cell is never stored");
        layout.write(&mut self.memory.bytes_mut()[place.offset..], spot.cell, value);
    }

    /// The same for an empty cell, which is then in use.
    #[inline(always)]
    pub(crate) fn put<L: Layout>(&mut self, layout: L, places: &[Place], spot: Spot, low: u64) {
        self.write(layout, places, spot, low);
        self.occupied += 1;
        self.changes += 1;
    }

    /// Makes the cell at a spot empty.
    #[inline(always)]
    pub(crate) fn empty<L: Layout>(&mut self, layout: L, places: &[Place], spot: Spot) {
        let offset = places[spot.place].offset;
        layout.write(&mut self.memory.bytes_mut()[offset..], spot.cell, 0);
        self.occupied -= 1;
        self.changes += 1;
    }
}

/// The identity first, then multiplications by well-spread factors. They depend on the number of
/// fingerprints alone, so tables that grew apart still agree.
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
