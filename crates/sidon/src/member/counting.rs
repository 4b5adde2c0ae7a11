//! The counting Bloom filter: a set that keys can leave, in about forty bits a key.
//!
//! As a Bloom filter, with a small counter for each bit: inserting adds one to each of a key's
//! `k` counters, removing subtracts one, and a key with a zero among its counters is not in.
//! ```text
//! digest --spread--> | . 2 . . 1 . . . 3 . . |      k = 3, counters of 4 bits
//! ```
//! A key whose positions coincide counts once there, on insert and on remove alike. A stranger
//! passes as in a Bloom filter, `fill^k`. A counter can reach its ceiling; what happens then is
//! [`Overflow`]'s to say, and never a wrap. Fan et al., SIGCOMM 1998; Rottenstreich et al.,
//! INFOCOM 2012, equations 7 and 8.

use super::{batch, scattered::Scattered};
use crate::{
    Certainty, Digest, Infeasible, Key, Malformed, Refused, Seed,
    bytes::{self, Image},
    cells::{self, Packed},
    hash::spread,
    ops::{Contains, Insert, Merge, Remove},
    probe::{self, Isa, Kernel},
};

/// The widest counter.
pub const WIDTH_MOST: u32 = 16;

/// What happens to an insertion that meets a counter at its ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// It is refused, and nothing changes.
    #[default]
    Refuse,
    /// The counter stays at its ceiling for good: it is never lowered again and never excludes a
    /// key. Nothing is refused and `false` stays a fact; the pinned counters add to the fill.
    Pin,
}

/// The integers that fix a counting Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many counters the table has: any number but zero.
    pub counters: u64,
    /// How many of them a key uses: 1 to [`spread::MOST`].
    pub hashes: u32,
    /// The bits of a counter, 1 to [`WIDTH_MOST`]; four suffice for most uses.
    pub width: u32,
    /// What a counter does at its ceiling.
    pub overflow: Overflow,
}

/// A multiset that keys can enter and leave. See the [module](self).
#[derive(Debug)]
pub struct Counting {
    shape: Shape,
    seed: Seed,
    counters: Scattered,
    stored: u64,
}

impl Counting {
    /// An empty filter.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        Infeasible::unless_within("width", shape.width.into(), 1, WIDTH_MOST.into())?;
        let counters = Scattered::zeroed(shape.counters, shape.width, shape.hashes)?;
        Ok(Counting { shape, seed, counters, stored: 0 })
    }

    /// Takes every key out, and unpins every counter.
    pub fn clear(&mut self) {
        self.counters.clear();
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

    /// The share of counters that are not zero.
    pub fn fill(&self) -> f64 {
        self.counters.fill()
    }

    /// The share of strangers that pass, at the present fill.
    pub fn false_positive_rate(&self) -> f64 {
        self.counters.false_positive_rate()
    }

    /// How many counters are at their ceiling: full under [`Overflow::Refuse`], pinned for good
    /// under [`Overflow::Pin`]. Reads the whole table.
    pub fn at_ceiling(&self) -> u64 {
        let ceiling = self.counters.cells.ceiling();
        self.counters.cells.iter().filter(|&value| value == ceiling).count() as u64
    }

    /// The largest counter. Reads the whole table.
    pub fn largest(&self) -> u64 {
        self.counters.cells.iter().max().unwrap_or(0)
    }

    /// A copy in memory of its own.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Counting { counters: self.counters.try_clone()?, ..*self })
    }

    #[inline(always)]
    fn insert_digest(&mut self, digest: Digest) -> Result<(), Refused> {
        let (width, ceiling) = (self.shape.width, self.counters.cells.ceiling());
        let mut seen = Seen::new();
        let table = self.counters.cells.bytes();
        for position in self.counters.positions(digest) {
            let value = cells::read(table, width, position);
            if value == ceiling && self.shape.overflow == Overflow::Refuse {
                return Err(Refused::Overflow { ceiling });
            }
            seen.push(position, value);
        }
        let table = self.counters.cells.bytes_mut();
        for &(position, value) in seen.all() {
            // What was read, plus one: a position that comes twice is raised once.
            let old = cells::write(table, width, position, ceiling.min(value + 1));
            self.counters.occupied += u64::from(old == 0);
        }
        self.stored = self.stored.saturating_add(1);
        Ok(())
    }

    #[inline(always)]
    fn remove_digest(&mut self, digest: Digest) -> Result<(), Refused> {
        let (width, ceiling) = (self.shape.width, self.counters.cells.ceiling());
        let mut seen = Seen::new();
        let table = self.counters.cells.bytes();
        for position in self.counters.positions(digest) {
            let value = cells::read(table, width, position);
            if value == 0 {
                return Err(Refused::NotStored);
            }
            seen.push(position, value);
        }
        // Pinned counters outlive their keys: an empty filter may still answer `true`.
        let Some(stored) = self.stored.checked_sub(1) else { return Err(Refused::NotStored) };
        let table = self.counters.cells.bytes_mut();
        for &(position, value) in seen.all() {
            if value == ceiling && self.shape.overflow == Overflow::Pin {
                continue;
            }
            // What was read, less one: a position that comes twice is lowered once.
            let old = cells::write(table, width, position, value - 1);
            self.counters.occupied -= u64::from(old == 1 && value == 1);
        }
        self.stored = stored;
        Ok(())
    }
}

/// The cells of one key and what they held, looked at before anything is written.
struct Seen {
    cells: [(u64, u64); spread::MOST as usize],
    len: usize,
}

impl Seen {
    #[inline(always)]
    fn new() -> Self {
        Seen { cells: [(0, 0); spread::MOST as usize], len: 0 }
    }

    #[inline(always)]
    fn push(&mut self, position: u64, value: u64) {
        self.cells[self.len] = (position, value);
        self.len += 1;
    }

    #[inline(always)]
    fn all(&self) -> &[(u64, u64)] {
        &self.cells[..self.len]
    }
}

/// A loop over keys that changes the filter, chunk by chunk.
struct Change<'a, K, F> {
    filter: &'a mut Counting,
    keys: &'a [K],
    operation: F,
    refused: &'a mut dyn FnMut(usize, Refused),
}

impl<K: Key, F> Kernel for Change<'_, K, F>
where
    F: FnMut(&mut Counting, Digest) -> Result<(), Refused>,
{
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        batch::each_chunk(isa, self.filter.seed, self.keys, |first, digests| {
            self.filter.counters.prefetch_all(digests);
            for (i, &digest) in digests.iter().enumerate() {
                if let Err(why) = (self.operation)(self.filter, digest) {
                    (self.refused)(first + i, why);
                }
            }
        });
    }
}

impl<K: Key + ?Sized> Insert<K> for Counting {
    #[inline]
    fn insert(&mut self, key: &K) -> Result<(), Refused> {
        self.insert_digest(key.digest(self.seed))
    }

    fn insert_batch(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        let operation = Counting::insert_digest;
        probe::dispatch(Change { filter: self, keys, operation, refused });
    }
}

impl<K: Key + ?Sized> Remove<K> for Counting {
    #[inline]
    fn remove(&mut self, key: &K) -> Result<(), Refused> {
        self.remove_digest(key.digest(self.seed))
    }

    fn remove_batch(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        let operation = Counting::remove_digest;
        probe::dispatch(Change { filter: self, keys, operation, refused });
    }
}

impl<K: Key + ?Sized> Contains<K> for Counting {
    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.counters.contains(key.digest(self.seed))
    }

    fn contains_batch(&self, keys: &[K], found: &mut [bool])
    where
        K: Sized,
    {
        self.counters.contains_batch(self.seed, keys, found);
    }

    fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.false_positive_rate())
    }
}

impl Merge for Counting {
    /// Adds counter to counter. Under [`Overflow::Refuse`] a sum above the ceiling refuses the
    /// whole merge; under [`Overflow::Pin`] it is pinned.
    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        super::same("seed", self.seed == other.seed)?;
        super::same("counters", self.shape.counters == other.shape.counters)?;
        super::same("hashes", self.shape.hashes == other.shape.hashes)?;
        super::same("width", self.shape.width == other.shape.width)?;
        super::same("overflow", self.shape.overflow == other.shape.overflow)?;
        let ceiling = self.counters.cells.ceiling();
        if self.shape.overflow == Overflow::Refuse {
            let mut pairs = self.counters.cells.iter().zip(other.counters.cells.iter());
            if pairs.any(|(own, other)| own + other > ceiling) {
                return Err(Refused::Overflow { ceiling });
            }
        }
        let (width, size) = (self.shape.width, self.shape.counters);
        let (own, theirs) = (self.counters.cells.bytes_mut(), other.counters.cells.bytes());
        for cell in 0..size {
            let sum = cells::read(own, width, cell) + cells::read(theirs, width, cell);
            cells::write(own, width, cell, sum.min(ceiling));
        }
        self.counters.occupied = self.counters.cells.occupied();
        self.stored = self.stored.saturating_add(other.stored);
        Ok(())
    }
}

impl Image for Counting {
    const KIND: u16 = 3;

    fn to_bytes(&self) -> Vec<u8> {
        let Shape { counters, hashes, width, overflow } = self.shape;
        let overflow = match overflow {
            Overflow::Refuse => 0,
            Overflow::Pin => 1,
        };
        let fields = [counters, hashes.into(), width.into(), overflow, self.stored];
        bytes::write(Self::KIND, self.seed, &fields, self.counters.cells.payload())
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = bytes::read(image, Self::KIND, seed)?;
        let [counters, hashes, width, overflow, stored] = fields;
        let shape = Shape {
            counters,
            hashes: bytes::narrow("hashes", hashes)?,
            width: bytes::narrow("width", width)?,
            overflow: match overflow {
                0 => Overflow::Refuse,
                1 => Overflow::Pin,
                _ => return Err(Malformed::Field { name: "overflow" }),
            },
        };
        bytes::justify(payload, Packed::payload_bytes(counters, shape.width)?)?;
        let mut filter = Counting::new(shape, seed)?;
        filter.counters.load(payload)?;
        if shape.overflow == Overflow::Refuse {
            // Pinned counters outlive their keys; others are the sum of what is stored.
            let raised = filter.counters.cells.iter().sum();
            bytes::plausible("stored", raised, stored, shape.hashes)?;
            if raised < stored {
                return Err(Malformed::Field { name: "stored" });
            }
        }
        filter.stored = stored;
        Ok(filter)
    }
}
