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

mod digests;
mod image;
mod merge;
mod one;
mod shape;

pub use crate::left::{Moved, Moves, SUBTABLES_MOST};
pub use shape::{COUNTER_MOST, Shape};

use super::batch::Unhashed;
use crate::{
    Certainty, Infeasible, Key, Refused, Seed,
    left::{Form, Table},
    ops::{Contains, Insert, Remove},
};

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
        self.count_keys(&Unhashed { seed: self.seed, keys }, counts);
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

    /// The probability that `contains` answers `true` for a key that was never inserted.
    pub fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.false_positive_rate())
    }

    /// A copy in memory of its own.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(DLeft { table: self.table.try_clone()?, ..*self })
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
        self.insert_keys(&Unhashed { seed: self.seed, keys }, refused);
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
        self.remove_keys(&Unhashed { seed: self.seed, keys }, refused);
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
        self.contains_keys(&Unhashed { seed: self.seed, keys }, found);
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;
