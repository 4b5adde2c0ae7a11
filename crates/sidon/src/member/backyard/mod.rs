//! A set that keys can leave, at one line of memory a key.
//!
//! A key has one line, of 31 cells. A full line keeps its least values: the others are spilled to a small
//! d-left table behind, and the last cell of the line knows from which value on.
//! ```text
//! digest --split--> line | value in 1..=65535
//!
//! front, a line:  | value | value | 0 | ... 31 cells of 16 bits ... | reach: 65536 - least value behind, or 0 |
//! back, a cell:   | line | value |          a bucket in each of two subtables, by line alone
//! ```
//! Keys are in the back only while their line is full: when one leaves a line with spilled keys, the least
//! of those comes home. So what is in the back depends on the keys alone, not on how they came and went,
//! and most lines have nothing there. A stranger reads its line, and the back if its value is not below all
//! that are there: in a line of `n` keys with probability `(n - 31) / (n + 1)`, its chance to be among the
//! last of `n + 1`; one in 180, where lines hold 24 keys on average.
//!
//! There are no counters: a copy takes a cell of its own, and no more than 63 copies find one. A stranger
//! passes if it shares line and value with a member: `n / (lines * 65535)`, since a spilled key keeps
//! both.
//!
//! A front with a back behind is from Arbitman, Naor and Segev, "Backyard cuckoo hashing" (FOCS 2010);
//! a block that knows what has left it, from Breslow and Jayasena, "Morton filters" (VLDB 2018); leaving by
//! value, from Gonnet and Larson, "External hashing with limited internal storage" (JACM 1988). The
//! back is the table of Bonomi et al., ESA 2006, with lines for fingerprints, which is why it can be
//! asked for any key of a line.

mod batches;
mod find;
mod image;
mod line;
mod shape;

pub use line::CELLS;
pub use shape::{SHARING_MOST, Shape};

use crate::{
    Certainty, Digest, Infeasible, Key, Refused, Seed,
    cells::Memory,
    left::Table,
    member::same,
    ops::{Contains, Insert, Merge, Remove},
    probe::{BASE, LINE},
};
use line::{Line, Place};

/// A multiset that keys can enter and leave. See the [module](self).
#[derive(Debug)]
pub struct Backyard {
    shape: Shape,
    seed: Seed,
    front: Memory,
    /// Its fingerprints are lines, its low bits one less than values.
    back: Table,
    /// Copies stored.
    stored: u64,
}

impl Backyard {
    /// An empty filter.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        let front = Memory::zeroed(shape.lines * LINE as u64)?;
        Ok(Backyard { shape, seed, front, back: Table::new(shape.back())?, stored: 0 })
    }

    /// Takes every key out.
    pub fn clear(&mut self) {
        self.front.bytes_mut().fill(0);
        self.back.clear();
        self.stored = 0;
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many keys are stored, each copy counted.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// How many of them are in the back.
    pub fn spilled(&self) -> u64 {
        self.back.occupied
    }

    /// The share of all cells in use, front and back.
    pub fn load(&self) -> f64 {
        self.stored as f64 / self.shape.all_cells() as f64
    }

    /// The share of strangers that pass: fingerprints in use, of those there are. Copies make this
    /// cautious.
    pub fn false_positive_rate(&self) -> f64 {
        self.stored as f64 / self.shape.fingerprints() as f64
    }

    /// The fingerprint of a key: keys that share it are one to the filter, others never.
    pub fn fingerprint<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.place_of(key.digest(self.seed)).fingerprint()
    }

    /// How many copies of the key are stored, or of others with its fingerprint.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        let place = self.place_of(key.digest(self.seed));
        Line(&self.lines()[place.line as usize]).count(BASE, place, &self.back)
    }

    /// Writes the number of copies of each key to the same place of `counts`.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn count_batch<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        assert_eq!(keys.len(), counts.len(), "one answer a key");
        self.count_keys(keys, counts);
    }

    /// The stored fingerprints, each as often as it is stored: first those of the front, line by line.
    pub fn fingerprints(&self) -> impl Iterator<Item = u64> + '_ {
        self.places().map(Place::fingerprint)
    }

    fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let lines = (0..self.shape.lines).zip(self.lines());
        let front = lines
            .flat_map(|(i, line)| Line(line).values().map(move |value| Place { line: i, value }));
        front.chain(self.back.cells().map(|(line, low)| Place::of_cell(line, low)))
    }

    /// The probability that `contains` answers `true` for a key that was never inserted.
    pub fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.false_positive_rate())
    }

    /// A copy in memory of its own.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Backyard { front: self.front.try_clone()?, back: self.back.try_clone()?, ..*self })
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

impl<K: Key + ?Sized> Insert<K> for Backyard {
    #[inline]
    fn insert(&mut self, key: &K) -> Result<(), Refused> {
        self.insert_at(self.place_of(key.digest(self.seed)))
    }

    fn insert_batch(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        self.insert_keys(keys, refused);
    }
}

impl<K: Key + ?Sized> Remove<K> for Backyard {
    #[inline]
    fn remove(&mut self, key: &K) -> Result<(), Refused> {
        self.remove_at(self.place_of(key.digest(self.seed)))
    }

    fn remove_batch(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        self.remove_keys(keys, refused);
    }
}

impl<K: Key + ?Sized> Contains<K> for Backyard {
    #[inline]
    fn contains(&self, key: &K) -> bool {
        let place = self.place_of(key.digest(self.seed));
        Line(&self.lines()[place.line as usize]).contains(BASE, place, &self.back)
    }

    fn contains_batch(&self, keys: &[K], found: &mut [bool])
    where
        K: Sized,
    {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        self.contains_keys(keys, found);
    }
}

impl Merge for Backyard {
    /// Inserts every stored fingerprint of the other, each as often as it is there. The two may differ in
    /// how many lines share a bucket of the back.
    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("lines", self.shape.lines == other.shape.lines)?;
        // What is refused half-way is undone by going back to a copy.
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
}

#[cfg(test)]
mod tests;
