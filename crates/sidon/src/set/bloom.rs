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
    cells::mapping::Spread,
    cells::table::{Table, Width},
    filter::Filter,
    operations::Set,
};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    batch::{self, AnyKeys, Batch, Keys, Pace, hasher},
    packed, saved,
    simd::Isa,
};

/// The integers that fix a Bloom filter.
///
/// ```
/// use sidon::set::{Bloom, bloom::Shape};
///
/// assert_eq!(Bloom::planned_bytes(Shape { bits: 9_600, hashes: 7 }), 1_200);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of bits of the table: at least 1.
    pub bits: u64,
    /// The number of bits that a key sets: 1 to 32.
    pub hashes: u32,
}

impl Shape {
    /// The bytes of the table, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        packed::Packed::bytes_of(self.bits, 1)
    }
}

/// A set whose keys never leave. See the [module](self).
///
/// ```
/// use sidon::{Seed, set::{Bloom, bloom}};
///
/// // The bits of Bloom filters of one shape and seed are united.
/// let shape = bloom::Shape { bits: 9_600, hashes: 7 };
/// let mut seen = Bloom::from_keys(shape, Seed(1), ["10.0.0.1", "10.0.0.2"])?;
/// seen.merge(&Bloom::from_keys(shape, Seed(1), ["10.0.0.3"])?)?;
/// assert!(seen.contains("10.0.0.1") && seen.contains("10.0.0.3"));
/// assert!(!seen.contains("10.0.0.4"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Bloom = Set<Body>;

/// The cells of a [`Bloom`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    seed: Seed,
    bits: Table,
    inserted: u64,
}

impl Body {
    #[inline(always)]
    fn insert_digest(&mut self, digest: Digest) {
        let positions = self.bits.positions(digest, 0, self.bits.hashes);
        let (table, mut fresh) = (self.bits.cells.bytes_mut(), 0);
        for position in positions {
            fresh += 1 - packed::write(table, 1, position, 1);
        }
        self.bits.occupied += fresh;
        self.inserted = self.inserted.saturating_add(1);
    }

    fn insert_keys(&mut self, keys: AnyKeys<'_>) {
        batch::dispatch(keys, self.bits.cells.bytes().len(), Enter(self));
    }
}

/// Inserts each key. Positions are computed twice, which is cheaper than storing them.
struct Enter<'a>(&'a mut Body);

impl Batch for Enter<'_> {
    const PACE: Pace = Pace::CHUNKS;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        positions.copy_from_slice(digests);
        for &digest in digests {
            self.0.bits.prefetch(Width::<1>(1), digest, 0, self.0.bits.hashes);
        }
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, _: usize, positions: &[Digest]) {
        for &digest in positions {
            self.0.insert_digest(digest);
        }
    }
}

impl Filter for Body {
    type Shape = Shape;
    const KIND: u16 = crate::saved::kinds::BLOOM.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let bits = Table::zeroed(("bits", shape.bits), 1, shape.hashes, Spread::Anywhere)?;
        Ok(Body { shape, seed, bits, inserted: 0 })
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn seed(&self) -> Seed {
        self.seed
    }

    fn len(&self) -> u64 {
        self.inserted
    }

    fn memory_bytes(&self) -> u64 {
        self.shape.bytes()
    }

    fn load(&self) -> f64 {
        self.bits.fill()
    }

    fn rate(&self) -> f64 {
        self.bits.fill().powi(self.shape.hashes as i32)
    }

    fn clear(&mut self) {
        self.bits.clear();
        self.inserted = 0;
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Body { bits: self.bits.try_clone()?, ..*self })
    }

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<(), Refused> {
        self.insert_digest(digest);
        Ok(())
    }

    fn insert_batch<K: Key>(&mut self, keys: &[K], _: &mut dyn FnMut(usize, Refused)) {
        self.insert_keys(Keys::Any(keys.len(), &hasher(self.seed, keys)));
    }

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.bits.contains(digest)
    }

    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.bits.contains_keys(Keys::Any(keys.len(), &hasher(self.seed, keys)), found);
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        super::same("seed", self.seed == other.seed)?;
        super::same("bits", self.shape.bits == other.shape.bits)?;
        super::same("hashes", self.shape.hashes == other.shape.hashes)?;
        super::unite(self.bits.cells.bytes_mut(), other.bits.cells.bytes());
        self.bits.occupied = self.bits.cells.occupied();
        self.inserted = self.inserted.saturating_add(other.inserted);
        Ok(())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let fields = [self.shape.bits, self.shape.hashes.into(), self.inserted];
        saved::write(Self::KIND, self.seed, &fields, self.bits.cells.payload())
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let ([bits, hashes, inserted], payload) = saved::read(image, Self::KIND, seed)?;
        let hashes = saved::narrow("hashes", hashes)?;
        saved::justify(payload, packed::Packed::payload_bytes(bits, 1)?)?;
        let mut filter = Body::new(Shape { bits, hashes }, seed)?;
        filter.bits.load(payload)?;
        saved::plausible("inserted", filter.bits.occupied, inserted, hashes)?;
        filter.inserted = inserted;
        Ok(filter)
    }
}

impl<K: Key> Extend<K> for Bloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            let digest = key.digest(self.body.seed);
            self.body.insert_digest(digest);
            self.exceptions.take_out(digest);
        }
    }
}
