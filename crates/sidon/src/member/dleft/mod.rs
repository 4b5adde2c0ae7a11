//! A set that keys can leave, in about half the room of a counting Bloom filter.
//!
//! Every key has one bucket in each of `d` subtables and is stored in the emptiest, ties to the
//! left. A cell holds a remainder and the number of keys that share it.
//! ```text
//! digest --fraction--> fingerprint f in 0..buckets * 2^r
//! f --permute(i)--> | bucket | remainder |             for subtable i in 0..d
//!                       |         |
//!       subtable i: [....|X..X.X...|.....]   a cell: | remainder r | counter c |
//! ```
//! A lookup reads `d` buckets. A stranger passes if and only if it shares the whole fingerprint
//! with a member: `n / (buckets * 2^r)`. Bonomi et al., ESA 2006; its names are kept here.
//!
//! # Why permutations
//!
//! The natural construction gives a key `d` independent buckets and one remainder, the same in all
//! subtables. It has a subtle flaw. Let `x` have the first bucket of each subtable and remainder
//! `a`, stored in the last subtable. Let `y` have bucket `i` of subtable `i`, the same remainder
//! `a`, and be stored in the first subtable, in the bucket that is also `x`'s. Now `a` stands in two
//! of `x`'s buckets, and whoever removes `x` cannot know which of them is `x`'s own: take the wrong
//! one, and `y` is lost. Here bucket *and* remainder come from one fingerprint by a permutation for
//! each subtable, so two keys that agree in bucket and remainder in one subtable have the same
//! fingerprint, and then agree in all. A fingerprint has at most one cell, and the counter of that
//! cell knows its copies. The tests show the flaw on the naive variant, and its absence here.
//!
//! # The empty cell
//!
//! A cell stores the complement of `remainder * 2^c + copies - 1`, so zero is free to mean empty.
//! One combination is thereby lost: the largest remainder tops out one copy lower. Without a counter
//! (`c = 0`, each copy takes a cell of its own) that remainder could not be stored at all; the few
//! fingerprints that would meet it in some subtable are taken to be their successors.
//!
//! # Growing
//!
//! The permutations act on `0..buckets * 2^r` whatever part of that is called bucket. Growing doubles
//! the buckets and hands each the upper bit of the remainder: a cell still knows its fingerprint, so
//! no key is needed and none is lost, and the false-positive rate stays `n / (buckets * 2^r)`.

mod image;

pub use crate::left::{Moved, Moves, SUBTABLES_MOST};

use super::batch;
use crate::{
    Certainty, Digest, Infeasible, Key, Refused, Seed,
    cells::bucket::Layout,
    left::{self, ANY, Each, Form, Place, Placing, Spot, Table, with_layout},
    ops::{Contains, Insert, Merge, Remove},
    probe::{BASE, Isa},
};

/// The most bits of a counter.
pub const COUNTER_MOST: u32 = 4;

/// The integers that fix a d-left filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many subtables, 2 to 8.
    pub subtables: u32,
    /// How many buckets each subtable has: any number but zero.
    pub buckets: u64,
    /// How many cells a bucket has: 8, 16 or 32.
    pub cells: u32,
    /// The bits of a cell, 5 to 32; 8, 16 and 32 are the fast ones.
    pub width: u32,
    /// The bits of a remainder, at most what the counter leaves of the cell.
    pub remainder: u32,
    /// The bits of a counter, 0 to 4: a cell counts up to `2^counter` copies. With 0, each copy of
    /// a fingerprint takes a cell of its own.
    pub counter: u32,
    /// What happens when all cells of a key are taken.
    pub moves: Moves,
    /// How many times the table may still be doubled.
    pub growths: u32,
    /// Whether a table that would refuse a key as [`Refused::Full`] doubles itself instead, while
    /// `growths` lasts.
    pub grows: bool,
}

impl Shape {
    /// The cells of the whole table.
    pub fn all_cells(&self) -> u64 {
        u64::from(self.subtables) * self.buckets * u64::from(self.cells)
    }

    /// The bytes of the whole table.
    pub fn bytes(&self) -> u64 {
        self.form().bytes()
    }

    /// How many fingerprints there are: `buckets * 2^remainder`, which growing does not change.
    pub fn fingerprints(&self) -> u64 {
        self.buckets << self.remainder
    }

    /// How many copies of a key a cell counts, and one less for the largest remainder.
    pub fn ceiling(&self) -> u64 {
        1 << self.counter
    }

    fn check(&self) -> Result<(), Infeasible> {
        let within = Infeasible::unless_within;
        within("subtables", self.subtables.into(), 2, SUBTABLES_MOST.into())?;
        if ![8, 16, 32].contains(&self.cells) {
            within("cells", self.cells.into(), 8, 8)?;
        }
        within("width", self.width.into(), 5, 32)?;
        within("counter", self.counter.into(), 0, COUNTER_MOST.into())?;
        within("remainder", self.remainder.into(), 1, (self.width - self.counter).into())?;
        // Without counters, some remainders are passed over: at most half of the fingerprints.
        let reserve = if self.counter == 0 { 4 } else { 1 };
        within("growths", self.growths.into(), 0, self.remainder.saturating_sub(reserve).into())?;
        if self.counter == 0 {
            within("remainder", self.remainder.into(), 4, 32)?;
        }
        self.form().check()
    }

    fn form(&self) -> Form {
        let Shape { subtables, buckets, cells, width, remainder, counter, moves, growths, .. } =
            *self;
        Form {
            subtables,
            buckets,
            cells,
            width,
            remainder,
            low: counter,
            moves,
            growths,
            placing: Placing::Permuted,
            lost_by_moving: 0,
        }
    }
}

/// A multiset that keys can enter and leave. See the [module](self).
#[derive(Debug)]
pub struct DLeft {
    shape: Shape,
    seed: Seed,
    /// The low bits of a cell are one less than its copies.
    table: Table,
    /// Copies stored.
    stored: u64,
}

impl DLeft {
    /// An empty filter.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        Ok(DLeft { shape, seed, table: Table::new(shape.form())?, stored: 0 })
    }

    /// Takes every key out. The table keeps the size it has grown to.
    pub fn clear(&mut self) {
        self.table.clear();
        self.stored = 0;
    }

    /// The integers that fix the memory, as they are now.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many keys are stored, each copy counted.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// The share of cells in use.
    pub fn load(&self) -> f64 {
        self.table.load()
    }

    /// How often a key found all its cells taken, and what moved to make room.
    pub fn moved(&self) -> Moved {
        self.table.moved
    }

    /// The share of strangers that pass: fingerprints in use, of those there are.
    pub fn false_positive_rate(&self) -> f64 {
        // A share `q` of fingerprints is passed over for successors, which are then twice as likely,
        // for members and strangers alike. Copies in cells of their own make this cautious.
        let q = self.table.passed_over();
        self.table.occupied as f64 / self.shape.fingerprints() as f64 * (1.0 + q) / (1.0 - q)
    }

    /// The fingerprint of a key: keys that share it are one to the filter, others never.
    pub fn fingerprint<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.table.fingerprint_of(key.digest(self.seed))
    }

    /// How many copies of the key are stored, or of others with its fingerprint.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_digest(key.digest(self.seed))
    }

    /// Writes the number of copies of each key to the same place of `counts`.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn count_batch<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        assert_eq!(keys.len(), counts.len(), "one answer a key");
        batch::hashed(self.seed, keys, |first, digests| {
            self.count_digests(digests, &mut counts[first..first + digests.len()]);
        });
    }

    /// The stored fingerprints and their copies, in the order of the table.
    pub fn fingerprints(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.table.cells().map(|(fingerprint, low)| (fingerprint, low + 1))
    }

    /// How many buckets of each subtable hold exactly 0, 1, .. cells in use.
    pub fn loads(&self) -> Vec<Vec<u64>> {
        self.table.loads()
    }

    /// Doubles the buckets. No key is lost, and none of the strangers' answers changes.
    ///
    /// `Infeasible`, with nothing changed, if the shape allows no more growth, if there is no
    /// memory, or if a cell would be left with one copy too many to count.
    pub fn grow(&mut self) -> Result<(), Infeasible> {
        self.reshape(self.table.form.grown()?)
    }

    /// Halves the buckets, the opposite of [`grow`](Self::grow).
    ///
    /// `Infeasible`, with nothing changed, if their number is odd, if a cell has no room for a
    /// longer remainder, or if two buckets do not fit into one.
    pub fn shrink(&mut self) -> Result<(), Infeasible> {
        self.reshape(self.table.form.shrunk()?)
    }

    fn reshape(&mut self, form: Form) -> Result<(), Infeasible> {
        let Form { buckets, remainder, growths, .. } = form;
        let shape = Shape { buckets, remainder, growths, ..self.shape };
        shape.check()?;
        self.table.reshape(form)?;
        self.shape = shape;
        Ok(())
    }

    /// A copy in memory of its own.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(DLeft { table: self.table.try_clone()?, ..*self })
    }

    #[inline(always)]
    fn contains_at<const D: usize, I: Isa, L: Layout>(
        &self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> bool {
        // No early exit: buckets are asked for together, and a branch a bucket costs more. No
        // closure: what is not inlined is not compiled for the instruction set.
        let (mut any, table) = (0, self.table.memory.bytes());
        for &place in &places[..self.table.subtables::<D>()] {
            any |= self.table.some_in(isa, layout, table, place);
        }
        any != 0
    }

    #[inline(always)]
    fn count_at<const D: usize, I: Isa, L: Layout>(
        &self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> u64 {
        match self.table.find(isa, layout, places) {
            (_, 0) => 0,
            (_, found) if self.shape.counter == 0 => found.into(),
            (spot, _) => self.table.low_at(layout, places, spot) + 1,
        }
    }

    /// Looks, then writes: the counter of the fingerprint's cell if it has one, else an empty cell
    /// of its emptiest bucket, else whatever the fail-safe can free.
    #[inline(always)]
    fn insert_at<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> Result<(), Refused> {
        let mut most = 0;
        let mut best = Spot { place: 0, cell: 0 };
        let table = self.table.memory.bytes();
        for (i, &place) in places[..self.table.subtables::<D>()].iter().enumerate() {
            if self.shape.counter > 0 {
                let found = self.table.matches_in(isa, layout, table, place);
                if found != 0 {
                    let spot = Spot { place: i, cell: found.trailing_zeros() };
                    return self.raise(layout, places, spot);
                }
            }
            let empty = layout.matches(isa, &table[place.offset..], 0, 0);
            // Strictly more: ties go to the left.
            if empty.count_ones() > most {
                most = empty.count_ones();
                best = Spot { place: i, cell: empty.trailing_zeros() };
            }
        }
        if most == 0 {
            return self.insert_by_moving(places);
        }
        self.table.put(layout, places, best, 0);
        self.stored += 1;
        Ok(())
    }

    /// Inserts a fingerprint all of whose cells are taken, by moving or growing if that is allowed.
    #[cold]
    #[inline(never)]
    fn insert_by_moving(&mut self, places: &[Place]) -> Result<(), Refused> {
        if let Some(spot) = self.table.room_by_moving(places) {
            with_layout!(self.shape, |layout| self.table.put(layout, places, spot, 0));
            self.stored += 1;
            return Ok(());
        }
        if self.shape.grows && self.shape.growths > 0 {
            let fingerprint = self.table.fingerprint_at(places);
            if self.grow().is_ok() {
                return self.insert_fingerprint(fingerprint);
            }
        }
        Err(Refused::Full { stored: self.table.occupied, cells: self.shape.all_cells() })
    }

    /// One more copy in a cell that is in use.
    #[inline(always)]
    fn raise<L: Layout>(&mut self, layout: L, places: &[Place], spot: Spot) -> Result<(), Refused> {
        let copies = self.table.low_at(layout, places, spot) + 1;
        let ceiling = self.ceiling_of(places[spot.place].remainder);
        if copies >= ceiling {
            return Err(Refused::Overflow { ceiling });
        }
        self.table.write(layout, places, spot, copies);
        self.stored += 1;
        Ok(())
    }

    /// The most copies a cell with this remainder counts: one more would look empty.
    #[inline(always)]
    fn ceiling_of(&self, remainder: u64) -> u64 {
        let largest = remainder + 1 == 1 << self.shape.remainder;
        self.shape.ceiling() - u64::from(largest)
    }

    #[inline(always)]
    fn remove_at<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        places: &[Place; D],
    ) -> Result<(), Refused> {
        let (spot, found) = self.table.find(isa, layout, places);
        if found == 0 {
            return Err(Refused::NotStored);
        }
        match self.table.low_at(layout, places, spot) {
            0 => self.table.empty(layout, places, spot),
            more => self.table.write(layout, places, spot, more - 1),
        }
        self.stored -= 1;
        Ok(())
    }
}

/// A question that a batch asks of each key.
trait Answer: Copy {
    type Value;
    fn of<const D: usize, I: Isa, L: Layout>(
        self,
        isa: I,
        layout: L,
        filter: &DLeft,
        at: &[Place; D],
    ) -> Self::Value;
}

#[derive(Clone, Copy)]
struct IsIn;
impl Answer for IsIn {
    type Value = bool;
    #[inline(always)]
    fn of<const D: usize, I: Isa, L: Layout>(
        self,
        isa: I,
        layout: L,
        filter: &DLeft,
        at: &[Place; D],
    ) -> bool {
        filter.contains_at(isa, layout, at)
    }
}

#[derive(Clone, Copy)]
struct Count;
impl Answer for Count {
    type Value = u64;
    #[inline(always)]
    fn of<const D: usize, I: Isa, L: Layout>(
        self,
        isa: I,
        layout: L,
        filter: &DLeft,
        at: &[Place; D],
    ) -> u64 {
        filter.count_at(isa, layout, at)
    }
}

/// Asks, key by key.
struct Ask<'a, A: Answer> {
    filter: &'a DLeft,
    answers: &'a mut [A::Value],
    answer: A,
}

impl<A: Answer> Each for Ask<'_, A> {
    #[inline(always)]
    fn table(&self) -> &Table {
        &self.filter.table
    }

    #[inline(always)]
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        key: usize,
        places: &[Place; D],
    ) {
        self.answers[key] = self.answer.of(isa, layout, self.filter, places);
    }
}

/// What a batch does with each key.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    Insert,
    Remove,
}

/// Changes the filter, key by key.
struct Change<'a> {
    filter: &'a mut DLeft,
    act: Act,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl Each for Change<'_> {
    #[inline(always)]
    fn table(&self) -> &Table {
        &self.filter.table
    }

    #[inline(always)]
    fn act<const D: usize, I: Isa, L: Layout>(
        &mut self,
        isa: I,
        layout: L,
        key: usize,
        places: &[Place; D],
    ) {
        let done = match self.act {
            Act::Insert => self.filter.insert_at(isa, layout, places),
            Act::Remove => self.filter.remove_at(isa, layout, places),
        };
        if let Err(why) = done {
            (self.refused)(key, why);
        }
    }
}

impl<K: Key + ?Sized> Insert<K> for DLeft {
    #[inline]
    fn insert(&mut self, key: &K) -> Result<(), Refused> {
        self.insert_digest(key.digest(self.seed))
    }

    fn insert_batch(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        batch::hashed(self.seed, keys, |first, digests| {
            self.change_digests(Act::Insert, digests, &mut |i, why| refused(first + i, why));
        });
    }
}

impl<K: Key + ?Sized> Remove<K> for DLeft {
    #[inline]
    fn remove(&mut self, key: &K) -> Result<(), Refused> {
        self.remove_digest(key.digest(self.seed))
    }

    fn remove_batch(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        batch::hashed(self.seed, keys, |first, digests| {
            self.change_digests(Act::Remove, digests, &mut |i, why| refused(first + i, why));
        });
    }
}

impl<K: Key + ?Sized> Contains<K> for DLeft {
    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.contains_digest(key.digest(self.seed))
    }

    fn contains_batch(&self, keys: &[K], found: &mut [bool])
    where
        K: Sized,
    {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        batch::hashed(self.seed, keys, |first, digests| {
            self.contains_digests(digests, &mut found[first..first + digests.len()]);
        });
    }

    fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.false_positive_rate())
    }
}

impl Merge for DLeft {
    /// Inserts every stored fingerprint of the other, each as often as it is there. The two may have
    /// grown apart, since growing does not change a fingerprint; all else must be equal.
    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        super::same("seed", self.seed == other.seed)?;
        super::same("subtables", self.shape.subtables == other.shape.subtables)?;
        super::same("fingerprints", self.shape.fingerprints() == other.shape.fingerprints())?;
        super::same("counter", self.shape.counter == other.shape.counter)?;
        super::same("remainders", self.table.form.passed_mask() == other.table.form.passed_mask())?;
        // What is refused half-way is undone by going back to a copy.
        let Ok(before) = self.try_clone() else {
            return Err(Refused::Full {
                stored: self.table.occupied,
                cells: self.shape.all_cells(),
            });
        };
        for (fingerprint, copies) in other.fingerprints() {
            for _ in 0..copies {
                if let Err(why) = self.insert_fingerprint(fingerprint) {
                    *self = before;
                    return Err(why);
                }
            }
        }
        Ok(())
    }
}

/// What is asked of digests: compiled once, here.
impl DLeft {
    fn insert_digest(&mut self, digest: Digest) -> Result<(), Refused> {
        let places = self.table.places::<ANY>(digest);
        with_layout!(self.shape, |layout| self.insert_at(BASE, layout, &places))
    }

    fn remove_digest(&mut self, digest: Digest) -> Result<(), Refused> {
        let places = self.table.places::<ANY>(digest);
        with_layout!(self.shape, |layout| self.remove_at(BASE, layout, &places))
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        let places = self.table.places::<ANY>(digest);
        with_layout!(self.shape, |layout| self.contains_at(BASE, layout, &places))
    }

    fn count_digest(&self, digest: Digest) -> u64 {
        let places = self.table.places::<ANY>(digest);
        with_layout!(self.shape, |layout| self.count_at(BASE, layout, &places))
    }

    fn change_digests(
        &mut self,
        act: Act,
        digests: &[Digest],
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        left::each_key(self.seed, digests, Change { filter: self, act, refused });
    }

    fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        left::each_key(self.seed, digests, Ask { filter: self, answers: found, answer: IsIn });
    }

    fn count_digests(&self, digests: &[Digest], counts: &mut [u64]) {
        left::each_key(self.seed, digests, Ask { filter: self, answers: counts, answer: Count });
    }

    fn insert_fingerprint(&mut self, fingerprint: u64) -> Result<(), Refused> {
        let places = self.table.places_of::<ANY>(fingerprint);
        with_layout!(self.shape, |layout| self.insert_at(BASE, layout, &places))
    }
}

#[cfg(test)]
mod tests;
