//! A table of suspect subjects in fixed memory: a full set evicts its least suspect entry.

use sidon::{Infeasible, Key, Seed};
use std::ops::Range;

/// A subject: two addresses and a port. Absent parts are zero.
pub(super) type Subject = [u8; 36];

/// Entries of a set: a subject is stored in one of them.
const WAYS: usize = 8;

/// Whether two subjects are equal, by words and without a call to `memcmp`.
#[inline(always)]
fn same(one: &Subject, other: &Subject) -> bool {
    let differ = |at: usize| {
        let word = |of: &Subject| u64::from_le_bytes(std::array::from_fn(|i| of[at + i]));
        word(one) ^ word(other)
    };
    // The last two words overlap: 36 bytes are four and a half words.
    differ(0) | differ(8) | differ(16) | differ(24) | differ(28) == 0
}

/// An entry: a subject and the evidence against it.
pub(super) trait Suspect: Clone {
    /// An entry without evidence.
    fn new(subject: Subject, now: u64) -> Self;

    fn subject(&self) -> &Subject;

    /// The weight of the evidence; `None` if the entry must not be evicted.
    fn weight(&self, now: u64) -> Option<f64>;

    /// Whether evidence was added recently.
    fn is_active(&self, now: u64) -> bool;
}

/// One new subject in this number may evict an active entry. A flood of forged addresses brings
/// thousands of new subjects per second; a source that goes on trying gets in all the same, and has
/// collected evidence before the next eviction.
const ADMITTED: u64 = 64;

/// A table of subjects in sets of [`WAYS`] entries.
#[derive(Debug)]
pub(super) struct Table<E> {
    seed: Seed,
    sets: Vec<Option<E>>,
    /// The number of entries that were evicted.
    pub(super) displaced: u64,
    /// New subjects that wanted the entry of an active one.
    rivals: u64,
}

impl<E: Suspect> Table<E> {
    /// An empty table for about `entries` subjects.
    pub(super) fn new(entries: u64, seed: Seed) -> Result<Self, Infeasible> {
        let entries = (entries / WAYS as u64).max(1) * WAYS as u64;
        let bytes = entries.saturating_mul(size_of::<Option<E>>() as u64);
        let length = usize::try_from(entries).map_err(|_| Infeasible::Memory { bytes })?;
        let mut sets = Vec::new();
        sets.try_reserve_exact(length).map_err(|_| Infeasible::Memory { bytes })?;
        sets.resize(length, None);
        Ok(Table { seed, sets, displaced: 0, rivals: 0 })
    }

    /// The indexes of the set of a subject.
    fn set(&self, subject: &Subject) -> Range<usize> {
        let sets = (self.sets.len() / WAYS) as u64;
        let set = sidon::hash::spread::position(subject.digest(self.seed), 0, sets) as usize;
        set * WAYS..(set + 1) * WAYS
    }

    /// The entry of a subject, if it is stored.
    pub(super) fn find(&mut self, subject: &Subject) -> Option<&mut E> {
        let set = self.set(subject);
        self.sets[set].iter_mut().flatten().find(|entry| same(entry.subject(), subject))
    }

    /// The entry of a subject, new if necessary; `None` if no entry of the set may be evicted, or if
    /// the subject is not among those admitted.
    pub(super) fn enter(&mut self, subject: &Subject, now: u64) -> Option<&mut E> {
        let set = self.set(subject);
        let mut best = (f64::INFINITY, None);
        for (way, entry) in self.sets[set.clone()].iter().enumerate() {
            let weight = match entry {
                Some(entry) if same(entry.subject(), subject) => {
                    best = (0.0, Some((way, false)));
                    break;
                }
                None => -1.0,
                Some(entry) => entry.weight(now).unwrap_or(f64::INFINITY),
            };
            if weight < best.0 {
                best = (weight, Some((way, true)));
            }
        }
        let (way, new) = best.1?;
        let displaced = new && best.0 >= 0.0;
        if displaced && self.sets[set.start + way].as_ref().is_some_and(|old| old.is_active(now)) {
            self.rivals += 1;
            if !self.rivals.digest(self.seed).0.is_multiple_of(ADMITTED) {
                return None;
            }
        }
        self.displaced += u64::from(displaced);
        let entry = &mut self.sets[set.start + way];
        if new {
            *entry = Some(E::new(*subject, now));
        }
        entry.as_mut()
    }

    /// All entries.
    pub(super) fn entries(&mut self) -> impl Iterator<Item = &mut E> {
        self.sets.iter_mut().flatten()
    }
}

/// An estimate of the number of different hashes, with a standard error of 13%. Has 64 registers,
/// each with the longest run of zeros (Flajolet et al., "HyperLogLog", 2007).
#[derive(Debug, Clone, Copy)]
pub(super) struct Distinct([u8; 64]);

impl Default for Distinct {
    fn default() -> Self {
        Distinct([0; 64])
    }
}

impl Distinct {
    pub(super) fn see(&mut self, hash: u32) {
        let register = &mut self.0[hash as usize % 64];
        // The rank of the other 26 bits: their leading zeros, plus one.
        *register = (*register).max((hash >> 6).leading_zeros() as u8 - 5);
    }

    pub(super) fn about(&self) -> u64 {
        let all = 64.0f64;
        let sum: f64 = self.0.iter().map(|&run| 0.5f64.powi(run.into())).sum();
        let empty = self.0.iter().filter(|&&run| run == 0).count() as f64;
        let about = 0.709 * all * all / sum;
        let few = about <= 2.5 * all && empty > 0.0;
        (if few { all * (all / empty).ln() } else { about }).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_things_are_counted_about() {
        for all in [30u64, 300, 100_000] {
            let mut distinct = Distinct::default();
            for number in 0..all {
                for _ in 0..3 {
                    distinct.see((number.digest(Seed(1)).0 >> 32) as u32);
                }
            }
            // Six standard errors: 6 * 1.04 / 8.
            let off = distinct.about() as f64 / all as f64 - 1.0;
            assert!(off.abs() < 0.78, "{} for {all}", distinct.about());
        }
        assert_eq!(Distinct::default().about(), 0);
    }
}
