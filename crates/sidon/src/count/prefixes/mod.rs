//! Amounts of addresses and of all prefixes above them, in fixed memory, with lower and upper bounds.
//!
//! A flood may hit one address, or a network of which no address stands out. The table keeps entries
//! at five levels, for whole addresses and for four shorter prefixes. An amount is stored in one entry
//! only. It starts at the address. When a bucket of a level is full, the lightest entry leaves it, and
//! its amounts are added to the next shorter prefix:
//!
//! ```text
//! add 10.1.2.3 --> level 0   /32  /128   | 10.1.2.3: 7 | 10.9.0.1: 5 | ...
//!                                              |  the lightest of eight is evicted
//!                  level 1   /24  /64    | 10.9.0.0/24: 4 + 5 | ...
//!                                              |
//!                  level 2   /20  /56    | ...
//!                  level 3   /16  /48    | ...
//!                  level 4   /8   /32    | 10.0.0.0/8: 12 | ...
//!                                              |
//!                  rest      all addresses
//! ```
//! So most additions touch one bucket, and none touches more than five. The cost of the usual methods
//! is one addition per level.
//!
//! **Bounds.** An amount of a prefix is in an entry at or below the prefix, or in one above it. The sum
//! of the entries at or below it is the lower bound. The part in entries above it is bounded twice: by the
//! amounts of these entries, and by the amounts that its own level may have evicted. Each bucket has
//! the largest upper bound of all evicted entries, and a new entry starts with it as *missed*.
//! This is Space-Saving in buckets of eight. By its invariant, what a level missed of a prefix is at most
//! a seventh of the bucket's other amounts. On average over the seeds that is `total / (7 *
//! buckets)`, for any traffic.
//!
//! **Window.** [`halve`](Prefixes::halve) halves all amounts at once. Called once per period, amounts of
//! `n` periods ago count `2^-n`. Buckets are halved when they are next used, so the call takes a few
//! nanoseconds. Amounts are stored in sixteenths. Each entry counts how much rounding may have
//! added, and lower bounds are smaller by this.
//!
//! A prefix may have several amounts, for example bytes, packets and new flows. The first one decides
//! evictions. Space-Saving is by Metwally, Agrawal and El Abbadi, ICDT 2005; hierarchical heavy hitters
//! are by Cormode et al., VLDB 2003. MVPipe by Li and Lee, 2021, passes evicted amounts to the next
//! level, too, and has bounds of probability.

mod bounds;
mod bucket;
mod enter;
mod heavy;
mod merge;
mod prefix;
mod saved;
#[cfg(test)]
mod tests;

pub use heavy::{Heavy, Row};
pub use prefix::{LEVELS, Prefix};

pub(crate) use bucket::CEILING;

use crate::{Certainty, Infeasible, Refused, Seed, memory::Memory};
use bucket::{Bucket, ENTRIES, Item, ceil, halved, parts};
use std::net::IpAddr;

/// The most amounts of a prefix.
pub(crate) const AMOUNTS_MAX: usize = 4;

/// The integers that fix a table of prefixes.
///
/// ```
/// use sidon::count::{Prefixes, prefixes::Shape};
///
/// // Eight entries per bucket. With three amounts a bucket takes ten cache lines.
/// let shape = Shape { buckets: [16, 8, 4, 2, 2] };
/// assert_eq!(Prefixes::<3>::planned_bytes(shape), 32 * 640);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of buckets of each level, addresses first: at least 1. A bucket has eight entries.
    pub buckets: [u64; LEVELS],
}

impl Shape {
    /// The bytes of each level.
    pub(crate) fn parts<const A: usize>(&self) -> Result<[u64; LEVELS], Infeasible> {
        Infeasible::unless_within("amounts", A as u64, 1, AMOUNTS_MAX as u64)?;
        for buckets in self.buckets {
            Infeasible::unless_within("buckets", buckets, 1, 1 << 40)?;
        }
        Ok(self.buckets.map(|buckets| buckets * Bucket::<A>::BYTES as u64))
    }
}

/// Amounts of prefixes. See the [module](self).
///
/// ```
/// use sidon::{Seed, count::{Prefix, Prefixes, prefixes::Shape}};
///
/// // Bytes, packets and new flows per destination.
/// let mut victims: Prefixes<3> = Prefixes::new(Shape { buckets: [8, 4, 2, 1, 1] }, Seed(1))?;
/// for host in 0..=255 {
///     victims.add([198, 51, 100, host].into(), [60, 1, 1])?;
/// }
/// victims.add([192, 0, 2, 1].into(), [1_500, 1, 0])?;
///
/// // No host of 198.51.100.0/24 stands out, but the network does.
/// let heavy = victims.heavy(1, 50);
/// assert_eq!(heavy.rows.len(), 1);
/// assert_eq!(heavy.rows[0].prefix, Prefix::new([198, 51, 100, 0].into(), 24)?);
/// let [bytes, packets, flows] = heavy.rows[0].amounts;
/// assert_eq!((bytes.most, packets.most, flows.least), (256 * 60, 256, 256));
///
/// // Any prefix can be asked for.
/// let both = victims.bounds(&Prefix::new([192, 0, 0, 0].into(), 5)?);
/// assert_eq!((both[0].least, both[0].most), (256 * 60 + 1_500, 256 * 60 + 1_500));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Prefixes<const A: usize> {
    shape: Shape,
    seed: Seed,
    levels: [Memory; LEVELS],
    /// How often all amounts were halved.
    halvings: u64,
    /// The sums of all amounts added, in parts.
    total: [u64; A],
    /// The amounts that the last level evicted.
    rest: Item<A>,
}

impl<const A: usize> Prefixes<A> {
    /// An empty table.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let [a, b, c, d, e] = shape.parts::<A>()?;
        let levels = [
            Memory::zeroed(a)?,
            Memory::zeroed(b)?,
            Memory::zeroed(c)?,
            Memory::zeroed(d)?,
            Memory::zeroed(e)?,
        ];
        Ok(Prefixes { shape, seed, levels, halvings: 0, total: [0; A], rest: Item::NONE })
    }

    /// The bytes of all levels of a table of this shape, or `u64::MAX` if there are more or no such table
    /// exists.
    pub fn planned_bytes(shape: Shape) -> u64 {
        let sum = |parts: [u64; LEVELS]| parts.into_iter().fold(0, u64::saturating_add);
        shape.parts::<A>().map_or(u64::MAX, sum)
    }

    /// Adds the amounts to those of the address, and so to those of every prefix that contains it.
    ///
    /// Refuses amounts if their sum with all earlier ones exceeds 2^58 - 1.
    #[inline]
    pub fn add(&mut self, address: IpAddr, amounts: [u64; A]) -> Result<(), Refused> {
        self.total = self.total_with(amounts)?;
        let item = Item { key: prefix::number(address), kept: amounts.map(parts), rounding: 0 };
        self.cells().put(0, item);
        Ok(())
    }

    /// Adds to each address the amounts at the same index, as [`add`](Self::add) does. On `Err`, nothing
    /// was added.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn add_batch(&mut self, addresses: &[IpAddr], amounts: &[[u64; A]]) -> Result<(), Refused> {
        assert_eq!(addresses.len(), amounts.len(), "amounts for each address");
        let mut sum = [0u64; A];
        for amounts in amounts {
            for (sum, amount) in sum.iter_mut().zip(amounts) {
                *sum = sum.saturating_add(*amount);
            }
        }
        self.total = self.total_with(sum)?;
        enter::each(self.cells(), addresses, amounts);
        Ok(())
    }

    /// Halves all amounts, `times` times: the end of as many periods. An amount that becomes less than
    /// one unit is rounded up in upper bounds and down in lower bounds.
    pub fn halve(&mut self, times: u32) {
        let times = u64::from(times);
        // Buckets catch up when they are used. A count that stops here is not reached in any lifetime.
        let times = times.min(u64::MAX - self.halvings);
        self.halvings += times;
        self.total = self.total.map(|parts| halved(parts, times));
        self.rest = self.rest.halved(times);
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.levels.iter_mut().for_each(|level| level.bytes_mut().fill(0));
        (self.halvings, self.total, self.rest) = (0, [0; A], Item::NONE);
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The seed that digests the prefixes.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The sums of all amounts added, halved as they were, and rounded up.
    pub fn total(&self) -> [u64; A] {
        self.total.map(ceil)
    }

    /// The number of prefixes with an entry, at each level. Reads all buckets.
    pub fn len(&self) -> [u64; LEVELS] {
        std::array::from_fn(|level| {
            self.buckets(level).map(|bytes| Bucket::<A>::taken(bytes).count() as u64).sum()
        })
    }

    /// Whether nothing was added since the start or the last [`clear`](Self::clear). Amounts of 0 count
    /// as nothing.
    pub fn is_empty(&self) -> bool {
        self.total == [0; A]
    }

    /// The bytes of all levels.
    pub fn memory_bytes(&self) -> u64 {
        Self::planned_bytes(self.shape)
    }

    /// Always `Certain`: the bounds of every prefix hold.
    pub fn certainty(&self) -> Certainty {
        Certainty::Certain
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        let [a, b, c, d, e] = &self.levels;
        let levels =
            [a.try_clone()?, b.try_clone()?, c.try_clone()?, d.try_clone()?, e.try_clone()?];
        Ok(Prefixes { levels, ..*self })
    }

    /// The totals with more amounts, in parts.
    fn total_with(&self, amounts: [u64; A]) -> Result<[u64; A], Refused> {
        let mut total = self.total;
        for (total, amount) in total.iter_mut().zip(amounts) {
            if amount > CEILING || *total > parts(CEILING) - parts(amount) {
                return Err(Refused::Overflow { ceiling: CEILING });
            }
            *total += parts(amount);
        }
        Ok(total)
    }

    /// The sums of the lower bounds and of the kept amounts of all entries.
    fn sums(&self) -> [[u128; A]; 2] {
        let [mut least, mut most] = [[0; A]; 2];
        let mut add = |item: &Item<A>| {
            for (amount, &kept) in item.kept.iter().enumerate() {
                least[amount] += u128::from(kept.saturating_sub(item.rounding));
                most[amount] += u128::from(kept);
            }
        };
        add(&self.rest);
        for bytes in (0..LEVELS).flat_map(|level| self.buckets(level)) {
            let due = Bucket::<A>::due(bytes, self.halvings);
            for entry in Bucket::<A>::taken(bytes) {
                add(&Bucket::entry(bytes, entry, due).item);
            }
        }
        [least, most]
    }

    /// The largest number that a sum of the table has: of an entry, or of all entries.
    fn largest(&self) -> u128 {
        let buckets = (0..LEVELS).flat_map(|level| self.buckets(level));
        let largest = buckets.map(Bucket::<A>::largest).max().unwrap_or(0);
        self.sums()[1].into_iter().fold(largest.into(), u128::max)
    }

    /// The bytes of each bucket of a level.
    fn buckets(&self, level: usize) -> impl Iterator<Item = &[u8]> {
        let used = self.shape.buckets[level] as usize * Bucket::<A>::BYTES;
        self.levels[level].bytes()[..used].chunks_exact(Bucket::<A>::BYTES)
    }

    /// The number of entries of all levels.
    fn entries(&self) -> usize {
        self.shape.buckets.iter().map(|&buckets| buckets as usize * ENTRIES).sum()
    }
}
