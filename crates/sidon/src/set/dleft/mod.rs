//! A set with deletes, in about half the memory of a counting Bloom filter.
//!
//! Every key has one bucket in each of `d` subtables and is stored in the emptiest, ties to the
//! left. A cell holds a remainder and the number of keys that share it.
//! ```text
//! digest --fraction--> fingerprint f in 0..buckets * 2^r
//! f --permute(i)--> | bucket | remainder |             for subtable i in 0..d
//!                       |         |
//!       subtable i: [....|X..X.X...|.....]   a cell: | remainder r | counter c |
//! ```
//! A lookup reads `d` buckets. A key that was never inserted passes if and only if it shares the
//! whole fingerprint with a stored key: with probability `n / (buckets * 2^r)`. Bonomi et al., ESA
//! 2006, whose terms are used here.
//!
//! # Why permutations
//!
//! The natural construction gives a key `d` independent buckets and one remainder, the same in all
//! subtables. It has a subtle flaw. Let `x` have the first bucket of each subtable and remainder
//! `a`, stored in the last subtable. Let `y` have bucket `i` of subtable `i` and the same remainder
//! `a`, stored in the first subtable, in a bucket that is also one of `x`'s. Two of `x`'s buckets
//! now hold `a`. A removal of `x` cannot tell which of the two cells belongs to `x`. If it clears
//! the wrong one, `y` is lost.
//!
//! Here bucket *and* remainder come from one fingerprint by a permutation for each subtable. Two
//! keys that agree in bucket and remainder in one subtable have the same fingerprint, and agree in
//! all subtables. A fingerprint has at most one cell, whose counter holds the number of copies. The
//! tests show the flaw on the naive variant, and its absence here.
//!
//! # The empty cell
//!
//! A cell stores the complement of `remainder * 2^c + copies - 1`, so that zero means empty. One
//! combination cannot be stored: the largest remainder counts one copy less. Without a counter (`c
//! = 0`, one cell per copy) that remainder could not be stored at all. The few fingerprints that
//! have it in some subtable are replaced by their successors.
//!
//! # Growing
//!
//! The permutations act on `0..buckets * 2^r`, however this is divided into bucket and remainder.
//! Growing doubles the buckets and moves the upper bit of the remainder to the bucket. A cell still
//! determines its fingerprint, so growing needs no keys. The false-positive rate stays `n /
//! (buckets * 2^r)`.

mod lookups;
mod merge;
mod operations;
mod saved;
mod shape;

pub use crate::dleft_table::Moves;
pub(crate) use shape::COUNTER_MAX;
pub use shape::Shape;

use super::{
    filter::{Counts, Filter, Removes},
    operations::{Set, Stats},
};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    batch::{Keys, hasher},
    dleft_table::{Form, Table},
};

/// A multiset in a d-left table. See the [module](self).
///
/// ```
/// use sidon::{Seed, set::{DLeft, Moves, dleft::Shape}};
///
/// let shape = Shape {
///     subtables: 2, buckets: 10, cells: 32, width: 16, remainder: 14, counter: 2,
///     moves: Moves::Search(256), growths: 4, grows: true,
/// };
/// let mut seen = DLeft::from_keys(shape, Seed(1), ["10.0.0.1", "10.0.0.1", "10.0.0.2"])?;
/// assert_eq!((seen.count("10.0.0.1"), seen.count("10.0.0.3")), (2, 0));
/// seen.grow()?;
/// assert_eq!((seen.shape().buckets, seen.count("10.0.0.1")), (20, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type DLeft = Set<Body>;

/// The cells of a [`DLeft`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    seed: Seed,
    /// The low bits of a cell are its copies less one.
    table: Table,
    /// Copies stored.
    stored: u64,
}

impl Body {
    /// The stored fingerprints and their copies, in the order of the table.
    fn fingerprints(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.table.cells().map(|(fingerprint, low)| (fingerprint, low + 1))
    }

    fn grow(&mut self) -> Result<(), Infeasible> {
        self.reshape(self.table.form.grown()?)
    }

    fn reshape(&mut self, form: Form) -> Result<(), Infeasible> {
        let Form { buckets, remainder, growths, .. } = form;
        let shape = Shape { buckets, remainder, growths, ..self.shape };
        shape.check()?;
        self.table.reshape(form)?;
        self.shape = shape;
        Ok(())
    }
}

impl Filter for Body {
    type Shape = Shape;
    const KIND: u16 = crate::saved::kinds::DLEFT.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        Ok(Body { shape, seed, table: Table::new(shape.form())?, stored: 0 })
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn seed(&self) -> Seed {
        self.seed
    }

    fn len(&self) -> u64 {
        self.stored
    }

    fn memory_bytes(&self) -> u64 {
        self.shape.bytes()
    }

    fn load(&self) -> f64 {
        self.table.load()
    }

    fn stats(&self) -> Stats {
        self.table.moved.stats(Stats::default())
    }

    fn rate(&self) -> f64 {
        // A share `q` of fingerprints is passed over for successors, which are then twice as likely,
        // for members and strangers alike. Copies in cells of their own make this cautious.
        let q = self.table.passed_over();
        self.table.occupied as f64 / self.shape.fingerprints() as f64 * (1.0 + q) / (1.0 - q)
    }

    fn clear(&mut self) {
        self.table.clear();
        self.stored = 0;
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Body { table: self.table.try_clone()?, ..*self })
    }

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<(), Refused> {
        self.insert_digest(digest)
    }

    fn insert_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        self.insert_keys(Keys::Any(keys.len(), &hasher(self.seed, keys)), refused);
    }

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }

    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.contains_keys(Keys::Any(keys.len(), &hasher(self.seed, keys)), found);
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        self.join(other)
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.write_image()
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Body::read_image(image, seed)
    }
}

impl Removes for Body {
    #[inline]
    fn remove(&mut self, digest: Digest) -> Result<(), Refused> {
        self.remove_digest(digest)
    }

    fn remove_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        self.remove_keys(Keys::Any(keys.len(), &hasher(self.seed, keys)), refused);
    }
}

impl Counts for Body {
    fn count(&self, digest: Digest) -> u64 {
        self.count_digest(digest)
    }

    fn count_batch<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        self.count_keys(Keys::Any(keys.len(), &hasher(self.seed, keys)), counts);
    }
}

impl DLeft {
    /// The fingerprint of a key. Keys of one fingerprint are the same key to the filter.
    #[doc(hidden)]
    pub fn fingerprint<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.body.table.fingerprints.of_digest(key.digest(self.body.seed))
    }

    /// For each subtable, the number of buckets with exactly 0, 1, .. cells in use.
    #[doc(hidden)]
    pub fn loads(&self) -> Vec<Vec<u64>> {
        self.body.table.loads()
    }

    /// Doubles the buckets. No key is lost, and no answer changes.
    ///
    /// `Infeasible`, with nothing changed, if the shape allows no more growth, if there is no memory, or
    /// if a cell would be left with one copy too many to count.
    pub fn grow(&mut self) -> Result<(), Infeasible> {
        self.body.grow()
    }

    /// Halves the buckets: the opposite of [`grow`](Self::grow).
    ///
    /// `Infeasible`, with nothing changed, if their number is odd, if a cell has no room for a longer
    /// remainder, or if two buckets do not fit into one.
    pub fn shrink(&mut self) -> Result<(), Infeasible> {
        self.body.reshape(self.body.table.form.shrunk()?)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;
