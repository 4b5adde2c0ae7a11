//! A Bloom filter that reads one cache line per key.
//!
//! The digest selects a line of 64 bytes, which holds all bits of the key. Bit `i` is in word `i
//! mod 8`, so eight bits are one vector operation.
//! ```text
//! digest --fraction--> | line | line | LINE | line |
//!                                       |
//!      lower 32 bits * salt i -->   | word 0 | word 1 | ... | word 7 |     one bit in each
//! ```
//! Some lines get more keys than others, which raises the false-positive rate: at 12 bits per key
//! to 0.6 % from 0.3 %. In return a lookup is one memory access, whatever the size. A key never
//! inserted that shares the line and the lower 32 bits of the digest with a stored key always
//! passes. This adds about `keys per line / 2^32` to every rate. Putze, Sanders and Singler, WEA
//! 2007. Parquet's split blocks also have one bit per word, in blocks of half the size.

mod line_bits;

pub(crate) use line_bits::HASHES_MAX;

use self::line_bits::LineBits;
use super::{filter::Filter, operations::Set};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    batch::{self, Batch, Keys, NEAR, Pace},
    key::spread,
    memory::Memory,
    saved,
    simd::{self, Isa, Kernel, LINE},
};

/// The integers that fix a blocked Bloom filter.
///
/// ```
/// use sidon::set::{Blocked, blocked::Shape};
///
/// assert_eq!(Blocked::planned_bytes(Shape { lines: 100, hashes: 8 }), 6_400);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of lines of 64 bytes: at least 1.
    pub lines: u64,
    /// The number of bits that a key sets in its line, 1 to 16. Eight is the fastest.
    pub hashes: u32,
}

impl Shape {
    /// The bytes of the table, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        self.lines.saturating_mul(LINE as u64)
    }

    /// The offset of the digest's line.
    #[inline(always)]
    fn line(&self, digest: Digest) -> usize {
        spread::fraction(digest.0, self.lines) as usize * LINE
    }

    /// The bits of the digest in its line.
    #[inline(always)]
    fn bits(&self, digest: Digest) -> LineBits {
        LineBits::of(digest, self.hashes)
    }
}

/// A set whose keys never leave. A key has one cache line. See the [module](self).
///
/// ```
/// use sidon::{Seed, set::{Blocked, blocked}};
///
/// let shape = blocked::Shape { lines: 100, hashes: 8 };
/// let mut seen = Blocked::new(shape, Seed(1))?;
/// seen.insert_batch(&[22u16, 80, 443], &mut |index, why| panic!("key {index}: {why}"));
/// let mut found = [false; 3];
/// seen.contains_batch(&[443u16, 8080, 22], &mut found);
/// assert_eq!(found, [true, false, true]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Blocked = Set<Body>;

/// The cells of a [`Blocked`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    seed: Seed,
    memory: Memory,
    inserted: u64,
}

impl Body {
    fn ones(&self) -> u64 {
        self.words().map(|word| u64::from(word.count_ones())).sum()
    }

    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let words = self.memory.bytes().chunks_exact(8);
        words.map(|word| u64::from_le_bytes(word.try_into().expect("a chunk of eight bytes")))
    }

    /// Prefetches the lines of digests, unless the table is in the cache.
    #[inline(always)]
    fn locate(&self, digests: &[Digest], positions: &mut [Digest]) {
        let table = self.memory.bytes();
        for (&digest, position) in digests.iter().zip(positions) {
            if table.len() > NEAR {
                simd::prefetch(table, self.shape.line(digest));
            }
            *position = digest;
        }
    }

    /// Writes for each digest whether its bits are set.
    #[inline(always)]
    fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        let (shape, table) = (self.shape, self.memory.bytes());
        if shape.hashes == 8 {
            contains_digests(Shape { hashes: 8, ..shape }, table, digests, found);
        } else {
            contains_any(shape, table, digests, found);
        }
    }

    #[inline(always)]
    fn insert_digests(&mut self, digests: &[Digest]) {
        let (shape, table) = (self.shape, self.memory.bytes_mut());
        if shape.hashes == 8 {
            insert_digests(Shape { hashes: 8, ..shape }, table, digests);
        } else {
            insert_any(shape, table, digests);
        }
        self.inserted = self.inserted.saturating_add(digests.len() as u64);
    }
}

#[inline(always)]
fn contains_digests(shape: Shape, table: &[u8], digests: &[Digest], found: &mut [bool]) {
    for (&digest, found) in digests.iter().zip(found) {
        match table[shape.line(digest)..].first_chunk() {
            Some(line) => *found = shape.bits(digest).are_set(line),
            None => unreachable!("every line is whole"),
        }
    }
}

#[inline(always)]
fn insert_digests(shape: Shape, table: &mut [u8], digests: &[Digest]) {
    for &digest in digests {
        match table[shape.line(digest)..].first_chunk_mut() {
            Some(line) => shape.bits(digest).set(line),
            None => unreachable!("every line is whole"),
        }
    }
}

/// [`contains_digests`] for any number of bits. Not inlined, because its registers would have to be
/// saved in the usual case of eight bits, too.
#[cold]
#[inline(never)]
fn contains_any(shape: Shape, table: &[u8], digests: &[Digest], found: &mut [bool]) {
    contains_digests(shape, table, digests, found);
}

/// [`insert_digests`] for any number of bits.
#[cold]
#[inline(never)]
fn insert_any(shape: Shape, table: &mut [u8], digests: &[Digest]) {
    insert_digests(shape, table, digests);
}

/// The work per key is so small that a separate loop for hashing would be slower.
const PACE: Pace = Pace { singly: true, ..Pace::USUAL };

/// Inserts each key.
struct Enter<'a>(&'a mut Body);

impl Batch for Enter<'_> {
    const PACE: Pace = PACE;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        self.0.locate(digests, positions);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, _: usize, positions: &[Digest]) {
        self.0.insert_digests(positions);
    }
}

/// Looks up each key.
struct Ask<'a>(&'a Body, &'a mut [bool]);

impl Batch for Ask<'_> {
    const PACE: Pace = PACE;
    type Position = Digest;
    const NOWHERE: Digest = Digest(0);

    #[inline(always)]
    fn locate<I: Isa>(&mut self, _: I, digests: &[Digest], positions: &mut [Digest]) {
        self.0.locate(digests, positions);
    }

    #[inline(always)]
    fn apply<I: Isa>(&mut self, _: I, first: usize, positions: &[Digest]) {
        self.0.contains_digests(positions, &mut self.1[first..]);
    }
}

impl Filter for Body {
    type Shape = Shape;
    const KIND: u16 = crate::saved::kinds::BLOCKED.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        Infeasible::unless_within("hashes", shape.hashes.into(), 1, HASHES_MAX.into())?;
        Infeasible::unless_within("lines", shape.lines, 1, u64::MAX / LINE as u64)?;
        let memory = Memory::zeroed(shape.lines * LINE as u64)?;
        Ok(Body { shape, seed, memory, inserted: 0 })
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
        self.ones() as f64 / (self.shape.lines as f64 * LINE as f64 * 8.0)
    }

    fn rate(&self) -> f64 {
        // The bits of a key never inserted are independent of the line. Each word gets `often` of
        // them, and `extra` of the eight words, starting at any of them, get one more.
        let (often, extra) = (self.shape.hashes / 8, (self.shape.hashes % 8) as usize);
        let mut sum = 0.0;
        let mut fills = [0.0; 8];
        for (i, word) in self.words().enumerate() {
            fills[i % 8] = f64::from(word.count_ones()) / 64.0;
            if i % 8 == 7 {
                let all: f64 = fills.iter().map(|fill| fill.powi(often as i32)).product();
                let started = |start: usize| -> f64 {
                    (start..start + extra).map(|word| fills[word % 8]).product()
                };
                sum += all * (0..8).map(started).sum::<f64>() / 8.0;
            }
        }
        sum / self.shape.lines as f64
    }

    fn clear(&mut self) {
        self.memory.bytes_mut().fill(0);
        self.inserted = 0;
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Body { memory: self.memory.try_clone()?, ..*self })
    }

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<(), Refused> {
        struct One<'a>(&'a mut Body, Digest);
        impl Kernel for One<'_> {
            type Output = ();
            #[inline(always)]
            fn run<I: Isa>(self, _: I) {
                self.0.insert_digests(&[self.1]);
            }
        }
        simd::dispatch(One(self, digest));
        Ok(())
    }

    fn insert_batch<K: Key>(&mut self, keys: &[K], _: &mut dyn FnMut(usize, Refused)) {
        batch::dispatch(Keys::Typed(self.seed, keys), self.memory.bytes().len(), Enter(self));
    }

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        struct One<'a>(&'a Body, Digest);
        impl Kernel for One<'_> {
            type Output = bool;
            #[inline(always)]
            fn run<I: Isa>(self, _: I) -> bool {
                let mut found = [false];
                self.0.contains_digests(&[self.1], &mut found);
                found[0]
            }
        }
        simd::dispatch(One(self, digest))
    }

    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        let keys = Keys::Typed(self.seed, keys);
        batch::dispatch(keys, self.memory.bytes().len(), Ask(self, found));
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        super::same("seed", self.seed == other.seed)?;
        super::same("lines", self.shape.lines == other.shape.lines)?;
        super::same("hashes", self.shape.hashes == other.shape.hashes)?;
        super::unite(self.memory.bytes_mut(), other.memory.bytes());
        self.inserted = self.inserted.saturating_add(other.inserted);
        Ok(())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let fields = [self.shape.lines, self.shape.hashes.into(), self.inserted];
        saved::write(Self::KIND, self.seed, &fields, self.memory.bytes())
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let ([lines, hashes, inserted], payload) = saved::read(image, Self::KIND, seed)?;
        let hashes = saved::narrow("hashes", hashes)?;
        saved::justify(payload, lines.saturating_mul(LINE as u64))?;
        let mut filter = Body::new(Shape { lines, hashes }, seed)?;
        filter.memory.bytes_mut().copy_from_slice(payload);
        saved::plausible("inserted", filter.ones(), inserted, hashes)?;
        filter.inserted = inserted;
        Ok(filter)
    }
}

impl<K: Key> Extend<K> for Blocked {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            // No key is refused.
            let _ = self.insert(&key);
        }
    }
}
