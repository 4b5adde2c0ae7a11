//! The heaviest keys in fixed memory, each with a lower and an upper bound of its count.
//!
//! Every key has one bucket of eight entries. A new key that finds its bucket full is counted in a
//! small filter: a Count-Min sketch with conservative update for all keys without an entry. When
//! its count in the filter exceeds the lightest entry of the bucket, the new key replaces that
//! entry. The new entry starts with the filter's count, and the filter is raised to the count of
//! the evicted key.
//! ```text
//! bucket  | 8 tags | most without entry  | 8 x at most | 8 x (more amounts, missed at most, key) |
//!                        ^ |                                               ^
//! filter  | . . 7 . 3 . .  v . . |    counts of keys without an entry ------+
//! ```
//! The count of an entry is an upper bound. The part counted since the key got its entry is a lower
//! bound. The two are equal if the entry was made when the key first appeared. That is so if the
//! bucket had rejected no key, or if the key's counters in the filter were zero. A bucket also has
//! an upper bound for every key without an entry. From it, the table computes which keys cannot be
//! missing: see [`Ranking`].
//!
//! An addition to a key with an entry reads the bucket's head and the entry, two or three lines.
//! Any other addition reads the head and the filter, three or four lines. A key may have several
//! amounts, for example bytes and packets; the first one decides evictions. Metwally, Agrawal and
//! El Abbadi's Space-Saving, ICDT 2005, in buckets; the filter by Homem and Carvalho, 2010.

mod bucket;
mod enter;
mod filter;
mod merge;
mod ranking;
mod saved;
mod stored;
#[cfg(test)]
mod tests;

use bucket::ENTRIES;
#[doc(hidden)]
pub use enter::Pick;
pub use ranking::{Entry, Ranking};
pub use stored::Stored;

use crate::{Certainty, Digest, Infeasible, Seed, key::spread, memory::Memory, simd};
use bucket::Bucket;
use enter::{Additions, Cells};
use std::{fmt, marker::PhantomData};

/// The most amounts of a key.
pub(crate) const AMOUNTS_MAX: usize = 4;
/// The largest amount. A sum that would exceed it stops here, and then means this or more.
pub(crate) const CEILING: u64 = u64::MAX;
/// The most rows of a filter.
pub(crate) const ROWS_MAX: usize = 4;

/// The integers that fix a table of the heaviest keys.
///
/// ```
/// use sidon::count::{Top, top::Shape};
///
/// // 80 entries of a key of four bytes and its count, and two rows of 100 counters of four bytes.
/// let shape = Shape { buckets: 10, rows: 2, columns: 100 };
/// assert!(Top::<u32>::planned_bytes(shape) > 80 * (4 + 8) + 2 * 100 * 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of buckets of eight entries: at least 1.
    pub buckets: u64,
    /// The number of counters of a key without an entry, for each of its amounts: 1 to 4.
    pub rows: u32,
    /// The number of 32-bit counters per row of the filter, for each amount: at least 1.
    pub columns: u64,
}

impl Shape {
    /// The bytes of the buckets and those of the filter.
    pub(crate) fn parts(&self, key_bytes: usize, amounts: usize) -> Result<(u64, u64), Infeasible> {
        Infeasible::unless_within("buckets", self.buckets, 1, 1 << 40)?;
        Infeasible::unless_within("rows", self.rows.into(), 1, ROWS_MAX as u64)?;
        Infeasible::unless_within("columns", self.columns, 1, 1 << 48)?;
        Infeasible::unless_within("amounts", amounts as u64, 1, AMOUNTS_MAX as u64)?;
        Infeasible::unless_within("key_bytes", key_bytes as u64, 1, 1 << 16)?;
        let bucket = Bucket { key: key_bytes, amounts }.bytes() as u64;
        let row = self.columns * amounts as u64 * 4;
        Ok((self.buckets * bucket, u64::from(self.rows) * row))
    }
}

/// A lower and an upper bound of an amount.
///
/// ```
/// use sidon::count::Bounds;
///
/// assert!(Bounds { least: 7, most: 7 }.is_exact());
/// assert!(!Bounds { least: 6, most: 7 }.is_exact());
/// assert_eq!(Bounds { least: 7, most: 7 }.to_string(), "= 7");
/// assert_eq!(Bounds { least: 6, most: 7 }.to_string(), "<= 7 and >= 6");
/// assert_eq!(Bounds { least: 0, most: 7 }.to_string(), "<= 7");
/// assert_eq!(Bounds { least: 6, most: u64::MAX }.to_string(), ">= 6");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// The truth is at least this.
    pub least: u64,
    /// The truth is at most this. At `u64::MAX`, there is no upper bound.
    pub most: u64,
}

impl Bounds {
    /// Whether both bounds are equal, so that the amount is exact.
    pub fn is_exact(&self) -> bool {
        self.least == self.most && self.most < CEILING
    }
}

/// Prints the bounds that are known, as an [`Estimate`](crate::Estimate) does.
impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Bounds { least, most: CEILING } => write!(f, ">= {least}"),
            Bounds { least, most } if least == most => write!(f, "= {most}"),
            Bounds { least: 0, most } => write!(f, "<= {most}"),
            Bounds { least, most } => write!(f, "<= {most} and >= {least}"),
        }
    }
}

/// The heaviest keys and their `A` amounts. See the [module](self).
///
/// ```
/// use sidon::{Seed, count::{Bounds, Top, top::Shape}};
///
/// // Bytes and packets of hosts; bytes decide which hosts are kept.
/// let shape = Shape { buckets: 10, rows: 2, columns: 100 };
/// let mut hosts: Top<u32, 2> = Top::new(shape, Seed(1))?;
/// hosts.add(&7, [1_500, 1]);
/// hosts.add(&7, [60, 1]);
/// hosts.add(&9, [40, 1]);
/// assert_eq!(hosts.bounds(&7)[0], Bounds { least: 1_560, most: 1_560 });
/// assert_eq!(hosts.total(), [1_600, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Top<K, const A: usize = 1> {
    shape: Shape,
    seed: Seed,
    buckets: Memory,
    filter: Memory,
    /// The sums of all amounts added.
    total: [u64; A],
    key: PhantomData<K>,
}

impl<K: Stored, const A: usize> Top<K, A> {
    /// An empty table.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let (buckets, filter) = shape.parts(K::BYTES, A)?;
        let (buckets, filter) = (Memory::zeroed(buckets)?, Memory::zeroed(filter)?);
        Ok(Top { shape, seed, buckets, filter, total: [0; A], key: PhantomData })
    }

    /// The bytes that buckets and filter of a table of this shape take, or `u64::MAX` if there are more or
    /// no such table exists.
    pub fn planned_bytes(shape: Shape) -> u64 {
        shape.parts(K::BYTES, A).map_or(u64::MAX, |(buckets, filter)| buckets + filter)
    }

    /// Adds the amounts to those of the key. A sum stops at `u64::MAX`, and then means this or more.
    #[inline]
    pub fn add(&mut self, key: &K, amounts: [u64; A]) {
        self.add_hashed(key.digest(self.seed), key, amounts);
    }

    /// Adds the amounts to those of a key whose digest under the table's seed is known.
    #[inline]
    fn add_hashed(&mut self, digest: Digest, key: &K, amounts: [u64; A]) {
        debug_assert_eq!(digest, key.digest(self.seed), "the digest is the key's own");
        let mut cells = self.cells();
        let place = cells.place(digest);
        cells.add(simd::BASE, place, key, amounts);
    }

    /// Adds to each key's amounts those at the same index, as [`add`](Self::add) does.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn add_batch(&mut self, keys: &[K], amounts: &[[u64; A]]) {
        assert_eq!(keys.len(), amounts.len(), "one amount a key");
        enter::each(self.cells(), Additions { picks: None, keys, amounts });
    }

    /// [`add_batch`](Self::add_batch) for some of many keys, in the order in which they are picked.
    ///
    /// # Panics
    /// If a pick has an index beyond `keys` or `amounts`.
    #[doc(hidden)]
    pub fn add_picked_batch(&mut self, picks: &[Pick], keys: &[K], amounts: &[[u64; A]]) {
        enter::each(self.cells(), Additions { picks: Some(picks), keys, amounts });
    }

    /// The bounds of a key's amounts: from its entry, or from zero to the count of the filter.
    pub fn bounds(&self, key: &K) -> [Bounds; A] {
        let place = self.place(key.digest(self.seed));
        match self.find(&place, key) {
            Some(entry) => Self::BUCKET.bounds(self.bucket(place.bucket), entry),
            None => self.without_entry(&place).map(|most| Bounds { least: 0, most }),
        }
    }

    /// The heaviest `count` keys by their first amounts, and how many of them are certain. Reads all
    /// buckets.
    pub fn heaviest(&self, count: usize) -> Ranking<K, A> {
        ranking::rank(self, count)
    }

    /// Removes every key.
    pub fn clear(&mut self) {
        self.buckets.bytes_mut().fill(0);
        self.filter.bytes_mut().fill(0);
        self.total = [0; A];
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The sums of all amounts added, up to `u64::MAX`.
    pub fn total(&self) -> [u64; A] {
        self.total
    }

    /// The seed that digests the keys.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The number of keys with an entry. Reads all buckets.
    pub fn len(&self) -> u64 {
        let taken = |bucket| Self::BUCKET.taken(self.bucket(bucket)).count() as u64;
        self.all_buckets().map(taken).sum()
    }

    /// Whether nothing was added. Amounts of 0 count as nothing.
    pub fn is_empty(&self) -> bool {
        self.total == [0; A]
    }

    /// The bytes of buckets and filter.
    pub fn memory_bytes(&self) -> u64 {
        Self::planned_bytes(self.shape)
    }

    /// Always `Certain`: the bounds of every key hold.
    pub fn certainty(&self) -> Certainty {
        Certainty::Certain
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        let (buckets, filter) = (self.buckets.try_clone()?, self.filter.try_clone()?);
        Ok(Top { buckets, filter, ..*self })
    }
}

/// Two tables are equal if their images are: shape, seed, totals, entries and filter.
impl<K: Stored, const A: usize> PartialEq for Top<K, A> {
    fn eq(&self, other: &Self) -> bool {
        self.seed == other.seed && self.to_bytes() == other.to_bytes()
    }
}

/// The offset of a key's bucket, and the key's digest.
#[derive(Debug, Clone, Copy)]
struct Place {
    bucket: usize,
    digest: Digest,
}

impl<K: Stored, const A: usize> Top<K, A> {
    const BUCKET: Bucket = Bucket { key: K::BYTES, amounts: A };

    fn place(&self, digest: Digest) -> Place {
        let bucket = spread::position(digest, 0, self.shape.buckets) as usize;
        Place { bucket: bucket * Self::BUCKET.bytes(), digest }
    }

    /// The offset of each bucket.
    fn all_buckets(&self) -> impl Iterator<Item = usize> + use<K, A> {
        (0..self.shape.buckets as usize).map(|bucket| bucket * Self::BUCKET.bytes())
    }

    /// The bytes of the bucket at offset `at`.
    fn bucket(&self, at: usize) -> &[u8] {
        &self.buckets.bytes()[at..][..Self::BUCKET.bytes()]
    }

    /// The key's entry in its bucket.
    fn find(&self, place: &Place, key: &K) -> Option<usize> {
        let tag = bucket::tag_of(place.digest);
        Self::BUCKET.find(simd::BASE, self.bucket(place.bucket), tag, key)
    }

    /// The upper bounds for a key without an entry.
    fn without_entry(&self, place: &Place) -> [u64; A] {
        let (bucket, filter) = (self.bucket(place.bucket), self.filter.bytes());
        enter::without_entry(Self::BUCKET, bucket, filter, &self.shape, place.digest)
    }

    /// The mutable parts of the table.
    #[inline(always)]
    fn cells(&mut self) -> Cells<'_, K, A> {
        let Top { shape, seed, buckets, filter, total, key } = self;
        let (buckets, filter) = (buckets.bytes_mut(), filter.bytes_mut());
        Cells { buckets, filter, shape: *shape, seed: *seed, total, key: *key }
    }
}
