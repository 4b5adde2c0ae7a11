//! Regular contact of pairs of hosts: period, jitter, number and a score, in 32 bytes per pair and its key.
//!
//! A contact is a connection, or a packet after a pause. A pair keeps the time of its last contact and its last
//! twelve gaps between contacts. The period is their median, the jitter their median distance from the period:
//! ```text
//! key | last contact 6 | contacts 2 | 12 gaps of 2, newest first |
//! score = max(0, 1 - 2 * jitter / period) * gaps / 12
//! ```
//! A fixed period with 20 % jitter scores 0.8. Gaps that are random (exponential) have a jitter of 0.69 periods and
//! score 0. Medians ignore some lost or additional contacts. RITA scores all gaps of a day by their skew and
//! their median distance; the score here is its second part, relative to the period.
//!
//! A pair is in one of two buckets of eight entries. A new pair that finds both full replaces a pair that has been
//! silent: for `grace` after one contact, for four periods after more. If there is none,
//! the new pair is refused and counted. So new pairs, however many, evict no pair that keeps its
//! period. A table needs room for all pairs that are new within `grace`.

mod gaps;
mod saved;
#[cfg(test)]
mod tests;

use super::Stored;
use crate::{
    Certainty, Infeasible, Refused, Seed,
    keyed::{self, Keyed},
    set::same,
};
use gaps::Gaps;
use std::time::Duration;

/// The integers that fix a table of pairs. All times are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of buckets of eight entries: at least 1.
    pub buckets: u64,
    /// Contacts closer than this to the last counted one do not count: at least 1.
    pub shortest: u64,
    /// The time for which a pair with one contact keeps its entry: at least `shortest`.
    pub grace: u64,
    /// A gap longer than this starts the pair again: at least `grace`, at most 2^40.
    pub longest: u64,
}

impl Shape {
    fn check(&self) -> Result<(), Infeasible> {
        Infeasible::unless_within("longest", self.longest, 1, 1 << 40)?;
        Infeasible::unless_within("grace", self.grace, 1, self.longest)?;
        Infeasible::unless_within("shortest", self.shortest, 1, self.grace)
    }

    fn bytes(&self, key_bytes: usize) -> Result<u64, Infeasible> {
        self.check()?;
        keyed::bytes(self.buckets, key_bytes, Gaps::BYTES)
    }
}

/// How regularly a pair is in contact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regularity {
    /// The median of the last gaps, up to twelve; zero after one contact.
    pub period: Duration,
    /// The median distance of these gaps from the period.
    pub jitter: Duration,
    /// The contacts so far. The number stops at 65,535.
    pub contacts: u64,
    /// From 0, random or too few contacts, to 1, a fixed period.
    pub score: f64,
}

/// Pairs and the gaps between their contacts. See the [module](self).
///
/// ```
/// use sidon::{Seed, count::Periods, plan};
///
/// // 1,000 pairs of a host and a server.
/// let mut pairs: Periods<(u32, u32)> = Periods::new(plan::periods::shape(1_000)?, Seed(1))?;
/// for minute in 0..20 {
///     pairs.see(&(1, 2), minute * 60_000_000_000);
///     pairs.see(&(1, 3), minute * minute * 60_000_000_000);
/// }
/// let beacon = pairs.get(&(1, 2)).unwrap();
/// assert_eq!((beacon.period.as_secs(), beacon.contacts, beacon.score), (60, 20, 1.0));
/// assert!(pairs.get(&(1, 3)).unwrap().score < 0.8);
/// assert_eq!(pairs.most_regular(1)[0].0, (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Periods<K> {
    shape: Shape,
    seed: Seed,
    table: Keyed<K, { Gaps::BYTES }>,
    refused: u64,
}

impl<K: Stored> Periods<K> {
    /// An empty table.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        shape.check()?;
        Ok(Periods { shape, seed, table: Keyed::new(shape.buckets)?, refused: 0 })
    }

    /// The bytes of a table of this shape, or `u64::MAX` if there are more or no such table exists.
    pub fn planned_bytes(shape: Shape) -> u64 {
        shape.bytes(K::BYTES).unwrap_or(u64::MAX)
    }

    /// Adds a contact of a pair at time `now`, in nanoseconds since any fixed time. A contact before the pair's
    /// last one does not count. Returns whether the pair is stored. A new pair that finds no entry is not, and
    /// changes only [`refused`](Self::refused).
    #[inline]
    pub fn see(&mut self, pair: &K, now: u64) -> bool {
        let now = now / NANOS;
        let digest = pair.digest(self.seed);
        if let Some(slot) = self.table.find(digest, pair) {
            let mut gaps = Gaps::from_bytes(*self.table.value(slot));
            if gaps.see(now, &self.shape) {
                self.table.set(slot, gaps.to_bytes());
            }
            return true;
        }
        let gaps = Gaps::first(now);
        let slot = self.table.vacant(digest).or_else(|| {
            // Take the pair that is overdue for the longest time.
            let silent = self.table.rivals(digest).map(|slot| {
                let gaps = Gaps::from_bytes(*self.table.value(slot));
                (slot, gaps.overdue(now, &self.shape))
            });
            let longest = silent.reduce(|a, b| if b.1 > a.1 { b } else { a });
            longest.filter(|&(_, overdue)| overdue > 0).map(|(slot, _)| slot)
        });
        let Some(slot) = slot else {
            self.refused = self.refused.saturating_add(1);
            return false;
        };
        self.table.write(slot, digest, pair, gaps.to_bytes());
        true
    }

    /// How regularly a pair is in contact; `None` if it has no entry.
    pub fn get(&self, pair: &K) -> Option<Regularity> {
        let slot = self.table.find(pair.digest(self.seed), pair)?;
        Some(Gaps::from_bytes(*self.table.value(slot)).regularity())
    }

    /// The `count` pairs with the highest scores, highest first. Equal ones by the number of contacts, then by
    /// the key. Reads all entries.
    pub fn most_regular(&self, count: usize) -> Vec<(K, Regularity)> {
        let order = |a: &(K, Regularity), b: &(K, Regularity)| {
            let (one, two) = (a.1, b.1);
            let scores = two.score.total_cmp(&one.score);
            scores.then(two.contacts.cmp(&one.contacts)).then(a.0.cmp(&b.0))
        };
        // Twice as many as wanted are kept at a time, so memory does not grow with the table.
        let mut best: Vec<(K, Regularity)> = Vec::new();
        for slot in self.table.all() {
            let gaps = Gaps::from_bytes(*self.table.value(slot));
            best.push((self.table.key(slot), gaps.regularity()));
            if best.len() >= count.saturating_mul(2).max(64) {
                best.sort_unstable_by(order);
                best.truncate(count);
            }
        }
        best.sort_unstable_by(order);
        best.truncate(count);
        best
    }

    /// Adds the pairs of another table of the same shape and seed. A pair of both tables has the contacts of
    /// both, and its gaps are those of the table that saw it last, then those of the other. Pairs that find no entry
    /// are counted as refused. On `Err`, nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("shape", self.shape == other.shape)?;
        self.refused = self.refused.saturating_add(other.refused);
        for slot in other.table.all() {
            let (pair, gaps) = (other.table.key(slot), *other.table.value(slot));
            let digest = pair.digest(self.seed);
            if let Some(own) = self.table.find(digest, &pair) {
                let both = [*self.table.value(own), gaps].map(Gaps::from_bytes);
                self.table.set(own, Gaps::merged(both).to_bytes());
            } else if let Some(vacant) = self.table.vacant(digest) {
                self.table.write(vacant, digest, &pair, gaps);
            } else {
                self.refused = self.refused.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Removes every pair.
    pub fn clear(&mut self) {
        self.table.clear();
        self.refused = 0;
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The seed that digests the keys.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The number of pairs with an entry. Reads all buckets.
    pub fn len(&self) -> u64 {
        self.table.all().count() as u64
    }

    /// Whether no pair has an entry.
    pub fn is_empty(&self) -> bool {
        self.table.all().next().is_none()
    }

    /// The number of contacts of new pairs that found no entry, up to `u64::MAX`. While it is 0, each pair with a gap
    /// of at most four periods is complete.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The bytes of the buckets.
    pub fn memory_bytes(&self) -> u64 {
        Self::planned_bytes(self.shape)
    }

    /// Always `Certain`: period, jitter and number of a pair are those of contacts that it had.
    pub fn certainty(&self) -> Certainty {
        Certainty::Certain
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Periods { table: self.table.try_clone()?, ..*self })
    }
}

/// Nanoseconds of a millisecond.
const NANOS: u64 = 1_000_000;

/// Two tables are equal if their saved bytes are.
impl<K: Stored> PartialEq for Periods<K> {
    fn eq(&self, other: &Self) -> bool {
        self.seed == other.seed && self.to_bytes() == other.to_bytes()
    }
}
