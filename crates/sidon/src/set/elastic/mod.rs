//! A d-left filter whose remainders become shorter when it needs more cells, and longer again.
//!
//! [`DLeft`](crate::set::DLeft) grows into more memory. This filter keeps its memory: it gives up bits of
//! the remainders, and the same bytes hold more cells. It needs no keys for that.
//! ```text
//! digest --fraction--> fingerprint f in 0..buckets * 2^least, and 24 extra bits e
//! f --permute(i)--> | bucket | core |                       for subtable i in 0..d
//!
//! a cell:      | core | first bits of e | 1 0 .. 0 | counter |
//! narrower:    | core | first bits | 1 | counter |          the same bucket, more cells
//! ```
//! Only the fingerprint `f` is permuted. A key of other extra bits has the same buckets. So giving up
//! extra bits cuts each cell where it lies, and moves none. A one and zeros end the extra bits of a cell,
//! so cells may differ in length.
//!
//! # Taking bits back
//!
//! Bits that were given up are lost, because no one has the keys. With longer remainders
//! ([`Elastic::set_remainder`]):
//!
//! - New keys have longer remainders at once.
//! - A key that is stored keeps the bits that its cell has. Its cell still passes as many other keys.
//! - The rate of false positives falls as stored keys leave and new ones come. After all have been
//!   replaced it is that of a filter that was never narrowed.
//!
//! The filter needs the room for it: longer remainders mean fewer cells, and all used cells must fit.
//!
//! # Why no member is lost
//!
//! A key matches a cell if fingerprints are equal and the cell's extra bits are the first of the key's.
//! An insertion takes a cell of the present length, or increments one with the same bits. A removal takes
//! the *longest* matching cell. If that cell was the one of another key, that key matches the shorter
//! cell as well, which stays. So there is always an assignment of keys to cells that match them. The
//! argument is that of Dayan, Bercea, Reviriego and Pagh, "InfiniFilter: expanding filters to infinity and
//! beyond", SIGMOD 2023, whose fingerprints of unequal lengths this filter uses.
//!
//! Cost: one bit per cell ends the extra bits. A change of the length rewrites the table, and takes its
//! memory a second time until it is done. Operations compare the core, and read each cell that has it.
//!
//! Bonomi et al., ESA 2006, section 6, propose to change the size of fingerprints with the need for space,
//! without a construction.

mod operations;
mod prefix;
mod resize;
mod saved;
mod shape;
#[cfg(test)]
mod tests;

pub use shape::Shape;

use super::{
    filter::{Counts, Filter, Removes},
    operations::{Set, Stats},
    same,
};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed, batch, bucket::ANY, dleft_table::Table,
    simd::BASE,
};
use prefix::{EXTRA, Prefix};

/// A multiset whose remainders change their length. See the [module](self).
///
/// ```
/// use sidon::{Seed, set::{Elastic, Moves, elastic::Shape}};
///
/// let shape = Shape {
///     subtables: 2, buckets: 32, line: 32, least: 6, remainder: 14, counter: 1,
///     moves: Moves::Search(256), narrows: true,
/// };
/// let mut seen = Elastic::new(shape, Seed(1))?;
/// let bytes = seen.memory_bytes();
/// // 1,024 cells of 16 bits do not hold 1,500 keys. Shorter remainders do.
/// (0..1_500u32).try_for_each(|key| seen.insert(&key))?;
/// assert!((0..1_500u32).all(|key| seen.contains(&key)));
/// assert_eq!((seen.shape().remainder, seen.memory_bytes()), (8, bytes));
/// // Keys leave. New ones have long remainders again.
/// (0..1_400u32).try_for_each(|key| seen.remove(&key))?;
/// seen.set_remainder(14)?;
/// let before = seen.certainty().error();
/// (1_400..1_500u32).try_for_each(|key| seen.remove(&key))?;
/// (2_000..2_100u32).try_for_each(|key| seen.insert(&key))?;
/// assert!(seen.certainty().error() < before / 50.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Elastic = Set<Body>;

/// The cells of an [`Elastic`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    seed: Seed,
    /// The low bits of a cell are the extra bits and their end, inverted, then its copies less one. Because
    /// the field is never zero, no content looks like an empty cell.
    table: Table,
    /// Copies stored.
    stored: u64,
    /// The sum over all cells of `2^(EXTRA - len)`: the extra bits of keys that a cell passes.
    passing: u64,
    /// The changes of the table when giving up bits made no room.
    vain: Option<u64>,
}

/// A cell's extra bits and copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    prefix: Prefix,
    copies: u64,
}

impl Content {
    /// The extra bits of keys that the cell passes.
    fn passes(self) -> u64 {
        1 << (EXTRA - self.prefix.len)
    }
}

impl Body {
    /// The most copies that a cell counts.
    fn ceiling(&self) -> u64 {
        1 << self.shape.counter
    }

    /// The low bits of a cell. The prefix is shorter than the field.
    fn low_of(&self, content: Content) -> u64 {
        let width = self.shape.field();
        let field = (1 << width) - 1 - content.prefix.to_field(width);
        field << self.shape.counter | (content.copies - 1)
    }

    /// The content of a cell in use. `None` for low bits that no operation writes.
    fn content(&self, low: u64) -> Option<Content> {
        let width = self.shape.field();
        let field = (1 << width) - 1 - (low >> self.shape.counter);
        let copies = (low & (self.ceiling() - 1)) + 1;
        Some(Content { prefix: Prefix::from_field(field, width)?, copies })
    }

    /// The stored fingerprints and the contents of their cells, in the order of the table.
    fn contents(&self) -> impl Iterator<Item = (u64, Content)> + '_ {
        let cells = self.table.cells();
        cells.filter_map(|(fingerprint, low)| Some((fingerprint, self.content(low)?)))
    }

    fn full(&self) -> Refused {
        Refused::Full { stored: self.table.occupied, cells: self.table.form.all_cells() }
    }

    /// Calls `act` with the index, the digest and the permuted fingerprints of each key. Prefetches the
    /// buckets of a chunk of keys.
    fn each<K: Key>(
        &mut self,
        keys: &[K],
        mut act: impl FnMut(&mut Self, usize, Digest, &[u64; ANY]),
    ) {
        batch::hashed(self.seed, keys, |first, digests| {
            let permuted = self.located(digests);
            for (i, (&digest, permuted)) in digests.iter().zip(&permuted).enumerate() {
                act(self, first + i, digest, permuted);
            }
        });
    }

    fn located(&self, digests: &[Digest]) -> [[u64; ANY]; batch::CHUNK] {
        let mut permuted = [[0; ANY]; batch::CHUNK];
        self.table.locate(BASE, self.table.any(), digests, &mut permuted[..digests.len()]);
        permuted
    }
}

impl Filter for Body {
    type Shape = Shape;
    const KIND: u16 = crate::saved::kinds::ELASTIC.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        Ok(Body {
            shape,
            seed,
            table: Table::new(shape.form())?,
            stored: 0,
            passing: 0,
            vain: None,
        })
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
        self.passing as f64 / 2f64.powi(EXTRA as i32) / self.shape.fingerprints() as f64
    }

    fn clear(&mut self) {
        self.table.clear();
        (self.stored, self.passing) = (0, 0);
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Body { table: self.table.try_clone()?, ..*self })
    }

    fn insert(&mut self, digest: Digest) -> Result<(), Refused> {
        self.insert_at(digest, &self.table.permuted(digest))
    }

    fn insert_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        self.each(keys, |filter, key, digest, permuted| {
            if let Err(why) = filter.insert_at(digest, permuted) {
                refused(key, why);
            }
        });
    }

    fn contains(&self, digest: Digest) -> bool {
        self.contains_at(digest, &self.table.permuted(digest))
    }

    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        batch::hashed(self.seed, keys, |first, digests| {
            let located = digests.iter().zip(self.located(digests));
            for ((&digest, permuted), found) in located.zip(&mut found[first..]) {
                *found = self.contains_at(digest, &permuted);
            }
        });
    }

    /// The remainders of the two may differ in length.
    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("subtables", self.shape.subtables == other.shape.subtables)?;
        same("buckets", self.shape.buckets == other.shape.buckets)?;
        same("least", self.shape.least == other.shape.least)?;
        same("counter", self.shape.counter == other.shape.counter)?;
        // A refusal in the middle is undone by restoring this copy.
        let Ok(before) = self.try_clone() else { return Err(self.full()) };
        for (fingerprint, content) in other.contents() {
            let permuted = self.table.fingerprints.permuted(fingerprint);
            if let Err(why) = self.add(&permuted, content) {
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
    fn remove(&mut self, digest: Digest) -> Result<(), Refused> {
        self.remove_at(digest, &self.table.permuted(digest))
    }

    fn remove_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        self.each(keys, |filter, key, digest, permuted| {
            if let Err(why) = filter.remove_at(digest, permuted) {
                refused(key, why);
            }
        });
    }
}

impl Counts for Body {
    fn count(&self, digest: Digest) -> u64 {
        self.count_at(digest, &self.table.permuted(digest))
    }

    fn count_batch<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        batch::hashed(self.seed, keys, |first, digests| {
            let located = digests.iter().zip(self.located(digests));
            for ((&digest, permuted), count) in located.zip(&mut counts[first..]) {
                *count = self.count_at(digest, &permuted);
            }
        });
    }
}

impl Elastic {
    /// Changes the bits of the remainders of new keys. Shorter remainders give up bits of all stored keys,
    /// and make room for more cells. Longer ones take them back for new keys. No key is lost.
    ///
    /// `Infeasible` if the shape does not allow this length, if the used cells do not fit, or if there is no
    /// memory for a second table. Then nothing has changed.
    pub fn set_remainder(&mut self, bits: u32) -> Result<(), Infeasible> {
        self.body.reshape(Shape { remainder: bits, ..self.body.shape })
    }
}
