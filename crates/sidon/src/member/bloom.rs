//! The classic filter: a set without deletes, in about ten bits per key.
//!
//! Every key has `k` bits anywhere in a table of `m` bits. Inserting sets them. A key with a zero
//! among its bits was never inserted.
//! ```text
//! digest --spread--> | . 1 . . 1 . . . 1 . . |      k = 3
//! ```
//! A key that was never inserted passes if its bits happen to be set: with probability `fill^k`,
//! which is `(1 - e^(-kn/m))^k` for `n` keys. A lookup reads up to `k` cache lines, and about two
//! for a key that was never inserted. Bloom, CACM 1970; [`Blocked`](super::Blocked) takes a few
//! bits more and reads a single line.

use super::{
    batch,
    mapping::Spread,
    table::{self, Bit, OnTable, Table},
};
use crate::{
    Certainty, Digest, Infeasible, Key, Malformed, Refused, Seed,
    bytes::{self, Image},
    cells,
    ops::{Contains, Insert, Merge},
    probe::{self, Isa, Kernel},
};

/// The integers that fix a Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of bits of the table: at least 1.
    pub bits: u64,
    /// The number of bits that a key sets: 1 to 32.
    pub hashes: u32,
}

impl Shape {
    /// The bytes of the table, or `u64::MAX` if there are more.
    pub fn bytes(&self) -> u64 {
        cells::Packed::bytes_of(self.bits, 1)
    }
}

/// A set that keys can enter. See the [module](self).
#[derive(Debug)]
pub struct Bloom {
    shape: Shape,
    seed: Seed,
    bits: Table,
    inserted: u64,
}

impl Bloom {
    /// An empty filter.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let bits = Table::zeroed(shape.bits, 1, shape.hashes, Spread::Anywhere)?;
        Ok(Bloom { shape, seed, bits, inserted: 0 })
    }

    /// Removes every key.
    pub fn clear(&mut self) {
        self.bits.clear();
        self.inserted = 0;
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The number of insertions, including repeated keys.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The share of bits that are set.
    pub fn fill(&self) -> f64 {
        self.bits.fill()
    }

    /// The false-positive rate at the present fill.
    pub fn false_positive_rate(&self) -> f64 {
        self.bits.fill().powi(self.shape.hashes as i32)
    }

    /// The probability that `contains` answers `true` for a key that was never inserted.
    pub fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.false_positive_rate())
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Bloom { bits: self.bits.try_clone()?, ..*self })
    }

    #[inline(always)]
    fn insert_at(&mut self, positions: &[u64]) {
        let table = self.bits.cells.bytes_mut();
        for &position in positions {
            self.bits.occupied += 1 - cells::write(table, 1, position, 1);
        }
        self.inserted = self.inserted.saturating_add(1);
    }
}

impl OnTable for Bloom {
    #[inline(always)]
    fn table(&self) -> &Table {
        &self.bits
    }
    #[inline(always)]
    fn seed(&self) -> Seed {
        self.seed
    }
}

impl<K: Key + ?Sized> Insert<K> for Bloom {
    #[inline]
    fn insert(&mut self, key: &K) -> Result<(), Refused> {
        let (positions, hashes) = self.bits.positions(key.digest(self.seed));
        self.insert_at(&positions[..hashes]);
        Ok(())
    }

    fn insert_batch(&mut self, keys: &[K], _: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        batch::hashed(self.seed, keys, |_, digests| self.insert_digests(digests));
    }
}

impl Bloom {
    fn insert_digests(&mut self, digests: &[Digest]) {
        struct Loop<'a>(&'a mut Bloom, &'a [Digest]);
        impl Kernel for Loop<'_> {
            type Output = ();
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) {
                let Loop(filter, digests) = self;
                table::each_key(isa, Bit, filter, digests, Enter);
            }
        }
        probe::dispatch(Loop(self, digests));
    }

    fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        self.bits.contains_batch(self.seed, digests, found);
    }
}

struct Enter;
impl table::Act<Bloom> for Enter {
    #[inline(always)]
    fn act(&mut self, filter: &mut Bloom, _: usize, positions: &[u64]) {
        filter.insert_at(positions);
    }
}

impl<K: Key + ?Sized> Contains<K> for Bloom {
    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.bits.contains(key.digest(self.seed))
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
}

impl Merge for Bloom {
    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        super::same("seed", self.seed == other.seed)?;
        super::same("bits", self.shape.bits == other.shape.bits)?;
        super::same("hashes", self.shape.hashes == other.shape.hashes)?;
        super::unite(self.bits.cells.bytes_mut(), other.bits.cells.bytes());
        self.bits.occupied = self.bits.cells.occupied();
        self.inserted = self.inserted.saturating_add(other.inserted);
        Ok(())
    }
}

impl Image for Bloom {
    const KIND: u16 = 1;

    fn to_bytes(&self) -> Vec<u8> {
        let fields = [self.shape.bits, self.shape.hashes.into(), self.inserted];
        bytes::write(Self::KIND, self.seed, &fields, self.bits.cells.payload())
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let ([bits, hashes, inserted], payload) = bytes::read(image, Self::KIND, seed)?;
        let hashes = bytes::narrow("hashes", hashes)?;
        bytes::justify(payload, cells::Packed::payload_bytes(bits, 1)?)?;
        let mut filter = Bloom::new(Shape { bits, hashes }, seed)?;
        filter.bits.load(payload)?;
        bytes::plausible("inserted", filter.bits.occupied, inserted, hashes)?;
        filter.inserted = inserted;
        Ok(filter)
    }
}
