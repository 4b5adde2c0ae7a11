//! A set with deletes that reads one cache line per operation.
//!
//! A key hashes to one line of 31 cells and to a 16-bit value, which is stored in a free cell of
//! that line. A full line keeps its 31 smallest values and moves larger ones to a small d-left
//! overflow table. The last cell of the line, its *reach*, records the smallest value that
//! overflowed.
//! ```text
//! digest --split--> line | value in 1..=65535
//!
//! front, a line:  | value | value | 0 | ... 31 cells of 16 bits ... | reach: 65536 - least overflowed value, or 0 |
//! back, a cell:   | line | value |          a bucket in each of two subtables, by line alone
//! ```
//! Removing a key from a line with overflowed keys moves the smallest of them back. Both tables
//! therefore depend on the stored keys alone, not on the order of operations, and most lines have
//! no overflowed key. A lookup reads the overflow table only for values that are not below the
//! smallest overflowed one. For a key never inserted and a line of `n` keys, the probability of
//! that is `(n - 31) / (n + 1)`: one lookup in 180 at 24 keys per line on average.
//!
//! There are no counters: each copy of a key takes one cell, and at most 63 copies find one. A key
//! never inserted passes if it shares line and value with a stored key: with probability `n /
//! (lines * 65535)`, since an overflowed key keeps both.
//!
//! Arbitman, Naor and Segev, "Backyard cuckoo hashing" (FOCS 2010) have a front with an overflow
//! table. The blocks of Breslow and Jayasena, "Morton filters" (VLDB 2018), record which keys
//! overflowed. Gonnet and Larson, "External hashing with limited internal storage" (JACM 1988),
//! overflow by value. The overflow table is that of Bonomi et al., ESA 2006, with lines as
//! fingerprints. Any key of a line can therefore be looked up in it.

mod batches;
mod find;
mod line;
mod saved;
mod shape;

pub(crate) use line::CELLS;
#[cfg(test)]
use shape::SHARING_MAX;
pub use shape::Shape;

use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    dleft_table::Table,
    memory::Memory,
    set::{
        filter::{Counts, Filter, Removes},
        operations::{Set, Stats},
        same,
    },
    simd::{BASE, LINE},
};
use line::{Line, Place};

/// A multiset in lines with a table behind them. See the [module](self).
///
/// ```
/// use sidon::{Refused, Seed, set::{Backyard, backyard::Shape}};
///
/// let mut seen = Backyard::from_keys(Shape { lines: 10, sharing: 2 }, Seed(1), 0..200u32)?;
/// assert_eq!((seen.len(), seen.count(&7u32)), (200, 1));
/// seen.remove(&7u32)?;
/// assert_eq!(seen.remove(&7u32), Err(Refused::NotStored));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Backyard = Set<Body>;

/// The cells of a [`Backyard`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    seed: Seed,
    front: Memory,
    /// The overflow table. Its fingerprints are lines, its low bits are values less one.
    back: Table,
    /// Copies stored.
    stored: u64,
}

impl Body {
    fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let lines = (0..self.shape.lines).zip(self.lines());
        let front = lines
            .flat_map(|(i, line)| Line(line).values().map(move |value| Place { line: i, value }));
        front.chain(self.back.cells().map(|(line, low)| Place::of_cell(line, low)))
    }

    /// Where a digest belongs.
    #[inline(always)]
    fn place_of(&self, digest: Digest) -> Place {
        Place::of(digest, self.shape.lines)
    }

    #[inline(always)]
    fn lines(&self) -> &[[u8; LINE]] {
        &line::all(&self.front)[..self.shape.lines as usize]
    }

    fn insert_at(&mut self, place: Place) -> Result<(), Refused> {
        let line = &mut line::all_mut(&mut self.front)[place.line as usize];
        if !Line(line).insert(BASE, place, &mut self.back) {
            return Err(self.shape.full(self.stored));
        }
        self.stored += 1;
        Ok(())
    }

    fn remove_at(&mut self, place: Place) -> Result<(), Refused> {
        let line = &mut line::all_mut(&mut self.front)[place.line as usize];
        if !Line(line).remove(BASE, place, &mut self.back) {
            return Err(Refused::NotStored);
        }
        self.stored -= 1;
        Ok(())
    }
}

impl Filter for Body {
    type Shape = Shape;
    const KIND: u16 = crate::saved::kinds::BACKYARD.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        let front = Memory::zeroed(shape.lines * LINE as u64)?;
        Ok(Body { shape, seed, front, back: Table::new(shape.back())?, stored: 0 })
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
        self.stored as f64 / self.shape.all_cells() as f64
    }

    fn stats(&self) -> Stats {
        Stats { overflowed: self.back.occupied, ..Stats::default() }
    }

    fn rate(&self) -> f64 {
        self.stored as f64 / self.shape.fingerprints() as f64
    }

    fn clear(&mut self) {
        self.front.bytes_mut().fill(0);
        self.back.clear();
        self.stored = 0;
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Body { front: self.front.try_clone()?, back: self.back.try_clone()?, ..*self })
    }

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<(), Refused> {
        self.insert_at(self.place_of(digest))
    }

    fn insert_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        self.insert_keys(keys, refused);
    }

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        let place = self.place_of(digest);
        Line(&self.lines()[place.line as usize]).contains(BASE, place, &self.back)
    }

    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.contains_keys(keys, found);
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("lines", self.shape.lines == other.shape.lines)?;
        // A refusal in the middle is undone by restoring this copy.
        let Ok(before) = self.try_clone() else {
            return Err(self.shape.full(self.stored));
        };
        for place in other.places() {
            if let Err(why) = self.insert_at(place) {
                *self = before;
                return Err(why);
            }
        }
        Ok(())
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
        self.remove_at(self.place_of(digest))
    }

    fn remove_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        self.remove_keys(keys, refused);
    }
}

impl Counts for Body {
    fn count(&self, digest: Digest) -> u64 {
        let place = self.place_of(digest);
        Line(&self.lines()[place.line as usize]).count(BASE, place, &self.back)
    }

    fn count_batch<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        self.count_keys(keys, counts);
    }
}

impl Backyard {
    /// The fingerprint of a key. Keys of one fingerprint are the same key to the filter.
    #[doc(hidden)]
    pub fn fingerprint<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.body.place_of(key.digest(self.body.seed)).fingerprint()
    }

    /// The stored fingerprints, each as often as it is stored: first those of the front, line by line.
    #[cfg(test)]
    fn fingerprints(&self) -> impl Iterator<Item = u64> + '_ {
        self.body.places().map(Place::fingerprint)
    }
}

#[cfg(test)]
mod tests;
