//! The tests of many subjects, in a table that never grows.
//!
//! A subject gets an entry with its first failure: key and [`Test`], in one of two buckets. When both are
//! full, the newcomer replaces the least suspect entry if that is less suspect than itself. Otherwise the
//! least suspect entry loses an eighth of its evidence and the newcomer is not stored. A lost entry or lost evidence
//! delays an accusation and never causes one, so the bound on false accusations holds for every load.
//!
//! A flood of subjects with one failure each competes for the least suspect entry of each bucket. It
//! does not evict a subject with more failures while the bucket has such an entry.
//!
//! How suspect an entry is: its largest level, divided by the level that successes alone lead to.

use super::{Failures, RATES, Test, failures};
use crate::{
    Certainty, Infeasible, Malformed, Refused, Seed,
    count::Stored,
    keyed::{self, Keyed, Slot},
    saved::{self, Save},
    set::same,
};

/// The integers that fix a table of suspects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of buckets of eight entries: at least 1.
    pub buckets: u64,
    /// The test of each subject.
    pub test: failures::Shape,
}

/// Subjects and the evidence against them. See the [module](self).
///
/// ```
/// use sidon::{Seed, decide::{Suspects, suspects::Shape}, plan};
///
/// // 10,000 suspects at a time. Usually 5 % of all connections fail.
/// let shape = plan::decide::suspects(10_000, plan::decide::shape(0.05, 1_000_000_000)?)?;
/// let mut sources: Suspects<u32> = Suspects::new(shape, Seed(1))?;
/// for _ in 0..20 {
///     sources.see(&0x0a00_0001, true);
///     sources.see(&0x0a00_0002, false);
/// }
/// let accused: Vec<u32> = sources.accused().map(|(source, _)| source).collect();
/// assert_eq!(accused, [0x0a00_0001]);
/// // The source was reported; its next accusation needs new evidence.
/// sources.restart(&0x0a00_0001);
/// assert_eq!(sources.accused().count(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Suspects<K> {
    buckets: u64,
    rule: Failures,
    /// For each attack rate, the inverse of the level that successes alone lead to.
    scale: [f32; RATES],
    seed: Seed,
    table: Keyed<K, { Test::BYTES }>,
    lost: u64,
}

impl<K: Stored> Suspects<K> {
    /// An empty table.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let Shape { buckets, test } = shape;
        let rule = Failures::new(test)?;
        Ok(Suspects {
            buckets,
            rule,
            scale: rule.scale(),
            seed,
            table: Keyed::new(buckets)?,
            lost: 0,
        })
    }

    /// The bytes of a table of this shape, or `u64::MAX` if there are more or no such table exists.
    pub fn planned_bytes(shape: Shape) -> u64 {
        let bytes = keyed::bytes(shape.buckets, K::BYTES, Test::BYTES);
        shape.test.check().and(bytes).unwrap_or(u64::MAX)
    }

    /// Adds one trial of a subject. Returns whether the subject is accused.
    #[inline]
    pub fn see(&mut self, key: &K, failed: bool) -> bool {
        let digest = key.digest(self.seed);
        if let Some(slot) = self.table.find(digest, key) {
            let mut test = self.test_at(slot);
            self.rule.see(&mut test, failed);
            self.table.set(slot, test.to_bytes());
            return self.rule.accuses(&test);
        }
        if !failed {
            return false;
        }
        let mut test = Test::default();
        self.rule.see(&mut test, true);
        self.enter(key, test);
        self.rule.accuses(&test)
    }

    /// The test of a subject. A subject without an entry has no evidence against it.
    pub fn test(&self, key: &K) -> Test {
        let slot = self.table.find(key.digest(self.seed), key);
        slot.map_or(Test::default(), |slot| self.test_at(slot))
    }

    /// The accused subjects and their tests, in no particular order. Reads all entries.
    pub fn accused(&self) -> impl Iterator<Item = (K, Test)> + use<'_, K> {
        let all = self.table.all().map(|slot| (self.table.key(slot), self.test_at(slot)));
        all.filter(|(_, test)| self.rule.accuses(test))
    }

    /// Starts the test of a subject again, as after an accusation.
    pub fn restart(&mut self, key: &K) {
        if let Some(slot) = self.table.find(key.digest(self.seed), key) {
            self.table.empty(slot);
        }
    }

    /// Adds the evidence of another table of the same shape and seed, collected from other trials. Subjects
    /// that find no entry are lost. On `Err`, nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("buckets", self.buckets == other.buckets)?;
        same("test", self.rule.shape() == other.rule.shape())?;
        self.lost = self.lost.saturating_add(other.lost);
        for slot in other.table.all() {
            let (key, test) = (other.table.key(slot), other.test_at(slot));
            match self.table.find(key.digest(self.seed), &key) {
                Some(own) => {
                    let mut sum = self.test_at(own);
                    sum.merge(&test);
                    sum.cap(self.rule.ceiling());
                    self.table.set(own, sum.to_bytes());
                }
                None => self.enter(&key, test),
            }
        }
        Ok(())
    }

    /// Removes every subject.
    pub fn clear(&mut self) {
        self.table.clear();
        self.lost = 0;
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        Shape { buckets: self.buckets, test: self.rule.shape() }
    }

    /// The seed that digests the keys.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The number of subjects with an entry. Reads all buckets.
    pub fn len(&self) -> u64 {
        self.table.all().count() as u64
    }

    /// Whether no subject has an entry.
    pub fn is_empty(&self) -> bool {
        self.table.all().next().is_none()
    }

    /// The number of times that a subject lost its evidence because two buckets were full, up to `u64::MAX`. While
    /// it is 0, each subject's evidence is complete from its first failure on.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The bytes of the buckets.
    pub fn memory_bytes(&self) -> u64 {
        Self::planned_bytes(self.shape())
    }

    /// The false accusations of innocent subjects per trial, at most: the inverse of `apart`.
    pub fn certainty(&self) -> Certainty {
        Certainty::WrongAtMost(1.0 / self.rule.shape().apart as f64)
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Suspects { table: self.table.try_clone()?, ..*self })
    }

    /// The saved bytes. They contain a check value of the seed, not the seed: store the seed apart.
    pub fn to_bytes(&self) -> Vec<u8> {
        let failures::Shape { usual, attacks, apart } = self.rule.shape();
        let [a, b, c, d] = attacks.map(u64::from);
        let fields = [K::BYTES as u64, self.buckets, usual.into(), a, b, c, d, apart, self.lost];
        saved::write(<Self as Save>::KIND, self.seed, &fields, self.table.bytes())
    }

    /// The table of saved bytes that were written under this seed.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload): ([u64; 9], _) = saved::read(image, <Self as Save>::KIND, seed)?;
        let [key_bytes, buckets, usual, a, b, c, d, apart, lost] = fields;
        if key_bytes != K::BYTES as u64 {
            return Err(Malformed::Field { name: "key bytes" });
        }
        let usual = saved::narrow("usual", usual)?;
        let mut attacks = [0; RATES];
        for (attack, field) in attacks.iter_mut().zip([a, b, c, d]) {
            *attack = saved::narrow("attacks", field)?;
        }
        let rule = Failures::new(failures::Shape { usual, attacks, apart })?;
        saved::justify(payload, keyed::bytes(buckets, K::BYTES, Test::BYTES)?)?;
        let is_test = |bytes: &[u8; Test::BYTES]| {
            Test::from_bytes(*bytes).is_ok_and(|test| test.highest() <= rule.ceiling())
        };
        let table = Keyed::from_bytes(buckets, seed, payload, is_test)?;
        let table = table.ok_or(Malformed::Field { name: "bucket" })?;
        Ok(Suspects { buckets, rule, scale: rule.scale(), seed, table, lost })
    }

    /// The test in an entry.
    #[inline]
    fn test_at(&self, slot: Slot) -> Test {
        match Test::from_bytes(*self.table.value(slot)) {
            Ok(test) => test,
            Err(_) => unreachable!("only the bytes of tests are written"),
        }
    }

    /// How suspect a subject is: at most about 1 without failures for a long time.
    fn rank(&self, test: &Test) -> f32 {
        test.highest_scaled(&self.scale)
    }

    /// Gives a subject an entry, if one is empty or less suspect.
    fn enter(&mut self, key: &K, test: Test) {
        let digest = key.digest(self.seed);
        if let Some(slot) = self.table.vacant(digest) {
            self.table.write(slot, digest, key, test.to_bytes());
            return;
        }
        self.lost = self.lost.saturating_add(1);
        let ranked = self.table.rivals(digest).map(|slot| (slot, self.rank(&self.test_at(slot))));
        // The first entry of the least rank.
        let Some((slot, least)) = ranked.reduce(|a, b| if b.1 < a.1 { b } else { a }) else {
            return;
        };
        if least <= self.rank(&test) {
            self.table.write(slot, digest, key, test.to_bytes());
        } else {
            let mut rival = self.test_at(slot);
            rival.fade(FADE);
            self.table.set(slot, rival.to_bytes());
        }
    }
}

/// The evidence that is left of the least suspect entry after a newcomer found no entry.
const FADE: f32 = 0.875;

impl<K: Stored> Save for Suspects<K> {
    const KIND: u16 = crate::saved::kinds::SUSPECTS.number;

    fn to_bytes(&self) -> Vec<u8> {
        Suspects::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Suspects::from_bytes(image, seed)
    }
}

/// Two tables are equal if their saved bytes are.
impl<K: Stored> PartialEq for Suspects<K> {
    fn eq(&self, other: &Self) -> bool {
        self.seed == other.seed && self.to_bytes() == other.to_bytes()
    }
}
