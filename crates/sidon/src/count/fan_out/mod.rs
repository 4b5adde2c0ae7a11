//! The number of distinct elements of each key, for the keys that have most, in fixed memory.
//!
//! A key is for example a host, and its elements the addresses and ports that it sent packets to. Every
//! key has one bucket of eight entries. An entry has a small sketch of its key's elements: 4 to 64
//! registers of 28 bits. The elements of all keys without an entry go to one more sketch, the
//! remainder of the bucket.
//! ```text
//! element --> word under the bucket's salt --> register and rank
//! bucket  | epoch | 8 tags | 8 counts | remainder | 8 x (key, sketch) |
//! key      = sketch of its entry            the truth is not below it
//!         <= sketch of its entry + remainder    nor above the union
//! ```
//! A new key that finds its bucket full challenges the entry with the smallest count `n`. It wins if a
//! word of its element and the bucket is below `1 / (n + 1)`, so it wins after about `n` distinct
//! elements. The loser's sketch is added to the remainder. Two facts follow. Keys with one element each
//! replace one entry of a bucket again and again, and not the seven larger ones. Keys that share
//! their only element, such as forged sources of a flood, challenge a bucket with one word: all win or all lose.
//!
//! Elements age in panes of equal length: a bucket has `panes` sketches for each entry, of which the newest
//! receives elements. A bucket moves to the present when it is read or written, so nothing sweeps the table.
//!
//! An addition reads the bucket's head, and an entry or the remainder: three or four lines. Registers: see
//! `count/registers.rs`. The challenge is that of Ben Basat et al., "Randomized admission policy", INFOCOM 2017,
//! for distinct elements; Tang, Huang and Lee, "SpreadSketch", INFOCOM 2020, decide by the largest rank.

mod bucket;
mod enter;
mod largest;
mod merge;
mod saved;
#[cfg(test)]
mod tests;

pub(crate) use bucket::REGISTERS_MAX;

use super::{Interval, registers, top::Stored};
use crate::{Certainty, Digest, Infeasible, Key, Seed, key::spread, memory::Memory, simd};
use bucket::{Bucket, ENTRIES, SKETCH_MAX, tag_of};
use enter::Cells;
use std::marker::PhantomData;

/// The fewest registers of a sketch.
pub(crate) const REGISTERS_LEAST: u32 = 4;
/// The most panes.
pub(crate) const PANES_MAX: u32 = 16;

/// The integers that fix a table of distinct elements per key.
///
/// ```
/// use sidon::count::{FanOut, fan_out::Shape};
///
/// // Two panes of a minute: estimates cover the last one to two minutes, in a clock of milliseconds.
/// let shape = Shape { buckets: 100, registers: 8, panes: 2, pane: 60_000 };
/// // 800 entries of a key of four bytes and two sketches of 28 bytes, and 112 bytes per bucket.
/// assert_eq!(FanOut::<u32>::planned_bytes(shape), 800 * (4 + 2 * 28) + 100 * 112);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of buckets of eight entries: at least 1.
    pub buckets: u64,
    /// The number of registers of a sketch: an even number from 4 to 64.
    pub registers: u32,
    /// The number of panes that an estimate covers: 1 to 16. The newest pane is not complete.
    pub panes: u32,
    /// The length of a pane, in the caller's unit of time: at least 1. With `u64::MAX`, nothing ages.
    pub pane: u64,
}

impl Shape {
    /// The bytes of the table.
    pub(crate) fn bytes(&self, key_bytes: usize) -> Result<u64, Infeasible> {
        Infeasible::unless_within("buckets", self.buckets, 1, 1 << 40)?;
        let (least, most) = (REGISTERS_LEAST.into(), REGISTERS_MAX.into());
        Infeasible::unless_within("registers", self.registers.into(), least, most)?;
        Infeasible::unless_multiple("registers", self.registers.into(), 2)?;
        Infeasible::unless_within("panes", self.panes.into(), 1, PANES_MAX.into())?;
        Infeasible::unless_within("pane", self.pane, 1, u64::MAX)?;
        Infeasible::unless_within("key_bytes", key_bytes as u64, 1, 1 << 16)?;
        let bucket = Bucket { key: key_bytes, registers: self.registers, panes: self.panes };
        // At most 2^40 buckets of less than 2^20 bytes.
        Ok(self.buckets * bucket.bytes() as u64)
    }
}

/// The number of distinct elements of each key. See the [module](self).
///
/// ```
/// use sidon::{Seed, count::{FanOut, fan_out::Shape}};
///
/// // Hosts and the ports that they try, in panes of ten seconds.
/// let shape = Shape { buckets: 100, registers: 16, panes: 2, pane: 10_000 };
/// let mut ports: FanOut<[u8; 4]> = FanOut::new(shape, Seed(1))?;
/// for port in 0..1_000u16 {
///     // A thousand ports in a tenth of a second.
///     ports.add(&[10, 0, 0, 1], &port, u64::from(port) / 10);
///     ports.add(&[10, 0, 0, 2], &443u16, u64::from(port) / 10);
/// }
/// let scan = ports.estimate(&[10, 0, 0, 1], 100);
/// assert!(scan.contains(1_000) && scan.least > 700 && scan.most < 1_400);
/// assert_eq!(ports.largest(1, 100)[0].0, [10, 0, 0, 1]);
/// // Twenty seconds later, the elements are too old.
/// assert_eq!(ports.estimate(&[10, 0, 0, 1], 20_100).to_string(), "= 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FanOut<K> {
    shape: Shape,
    seed: Seed,
    buckets: Memory,
    key: PhantomData<K>,
}

impl<K: Stored> FanOut<K> {
    /// An empty table.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let buckets = Memory::zeroed(shape.bytes(K::BYTES)?)?;
        Ok(FanOut { shape, seed, buckets, key: PhantomData })
    }

    /// The bytes of a table of this shape, or `u64::MAX` if no such table exists.
    pub fn planned_bytes(shape: Shape) -> u64 {
        shape.bytes(K::BYTES).unwrap_or(u64::MAX)
    }

    /// Adds an element to those of the key, at the time `now`. Returns the estimate of the key's entry, or 0
    /// if the key has none.
    ///
    /// An element that comes late, at a time before the newest pane, counts in the newest pane of its bucket.
    #[inline]
    pub fn add<E: Key + ?Sized>(&mut self, key: &K, element: &E, now: u64) -> u64 {
        let (digest, element) = (key.digest(self.seed), element.digest(self.seed));
        let mut cells = self.cells(now);
        let bucket = cells.place(digest);
        cells.add(simd::BASE, bucket, digest, key, element)
    }

    /// Adds to each key's elements the one at the same index, as [`add`](Self::add) does.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn add_batch<E: Key>(&mut self, keys: &[K], elements: &[E], now: u64) {
        assert_eq!(keys.len(), elements.len(), "one element a key");
        enter::each(self.cells(now), keys, elements);
    }

    /// The number of distinct elements of a key in the panes up to `now`. The value is that of the key's entry:
    /// 0 if the key has none.
    pub fn estimate(&self, key: &K, now: u64) -> Interval {
        let digest = key.digest(self.seed);
        let bytes = self.bucket(spread::position(digest, 0, self.shape.buckets));
        let entry = self.layout().find(simd::BASE, bytes, tag_of(digest), key);
        self.interval(bytes, entry, self.epoch(now))
    }

    /// The `count` keys with the most elements in the panes up to `now`, largest first. Equal numbers are in
    /// the order of their keys. Reads all buckets.
    pub fn largest(&self, count: usize, now: u64) -> Vec<(K, Interval)> {
        largest::rank(self, count, self.epoch(now))
    }

    /// An upper bound of the elements of every key without an entry, in the panes up to `now`. Reads all buckets.
    pub fn others(&self, now: u64) -> u64 {
        let epoch = self.epoch(now);
        self.all().map(|bytes| self.interval(bytes, None, epoch).most).max().unwrap_or(0)
    }

    /// Removes every key.
    pub fn clear(&mut self) {
        self.buckets.bytes_mut().fill(0);
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The seed that digests keys and elements.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The number of keys with an entry. Reads all buckets.
    pub fn len(&self) -> u64 {
        self.all().map(|bytes| self.layout().taken(bytes).count() as u64).sum()
    }

    /// Whether no key has an entry. Reads all buckets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the table.
    pub fn memory_bytes(&self) -> u64 {
        Self::planned_bytes(self.shape)
    }

    /// The certainty of [`estimate`](Self::estimate): that the interval contains the truth, for keys and elements
    /// chosen without knowing the seed.
    pub fn certainty(&self) -> Certainty {
        Certainty::WrongAtMost(0.01)
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(FanOut { buckets: self.buckets.try_clone()?, ..*self })
    }
}

/// Two tables are equal if their saved bytes are.
impl<K: Stored> PartialEq for FanOut<K> {
    fn eq(&self, other: &Self) -> bool {
        self.seed == other.seed && self.to_bytes() == other.to_bytes()
    }
}

impl<K: Stored> FanOut<K> {
    fn layout(&self) -> Bucket {
        Bucket { key: K::BYTES, registers: self.shape.registers, panes: self.shape.panes }
    }

    fn epoch(&self, now: u64) -> u64 {
        now / self.shape.pane
    }

    /// The bytes of a bucket.
    fn bucket(&self, bucket: u64) -> &[u8] {
        let width = self.layout().bytes();
        &self.buckets.bytes()[bucket as usize * width..][..width]
    }

    /// The bytes of every bucket.
    fn all(&self) -> impl Iterator<Item = &[u8]> {
        let width = self.layout().bytes();
        self.buckets.bytes().chunks_exact(width).take(self.shape.buckets as usize)
    }

    fn cells(&mut self, now: u64) -> Cells<'_> {
        Cells {
            layout: self.layout(),
            epoch: self.epoch(now),
            buckets: self.buckets.bytes_mut(),
            shape: self.shape,
            seed: self.seed,
        }
    }

    /// The interval of an entry, or of keys without one.
    fn interval(&self, bytes: &[u8], entry: Option<usize>, epoch: u64) -> Interval {
        let layout = self.layout();
        let mut union = [0; SKETCH_MAX];
        let own = entry.map_or(Interval::default(), |entry| {
            let sketches = layout.sketches(bytes, Some(entry));
            layout.union_at(&mut union, bytes, sketches, epoch);
            registers::likely(&union, layout.registers).interval()
        });
        let before = union;
        layout.union_at(&mut union, bytes, layout.sketches(bytes, None), epoch);
        let most = if union == before {
            own.most
        } else {
            registers::likely(&union, layout.registers).interval().most.max(own.most)
        };
        Interval { most, ..own }
    }
}

/// A digest with its bucket.
type Place = (usize, Digest);
