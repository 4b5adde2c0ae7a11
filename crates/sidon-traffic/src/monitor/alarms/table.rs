//! A table of suspect subjects in fixed memory: a full set evicts its least suspect entry.
//!
//! Once per second the monitor judges entries that have changed since, and those with an open
//! condition or alarm. A bitmap of two levels marks them: a bit of the upper level stands for 64
//! entries. The work therefore depends on the packets and hardly on the size of the table.

use crate::{
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::{Infeasible, Key, Malformed, Seed};
use std::ops::Range;

/// A subject: two addresses and a port. Absent parts are zero.
pub(in crate::monitor) type Subject = [u8; 36];

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
pub(in crate::monitor) trait Suspect: Clone {
    /// An entry without evidence. `is_first`: no evidence against the subject was lost before.
    fn new(subject: Subject, now: u64, is_first: bool) -> Self;

    fn subject(&self) -> &Subject;

    /// The weight of the evidence; `None` if the entry must not be evicted.
    fn weight(&self, now: u64) -> Option<f64>;

    /// Whether evidence was added recently.
    fn is_active(&self, now: u64) -> bool;

    /// Whether a condition holds or an alarm is open, so that time alone may change the entry.
    fn is_open(&self) -> bool;
}

/// One new subject in this number may evict an active entry. A flood of forged addresses brings
/// thousands of new subjects per second; a source that goes on trying gets in all the same, and has
/// collected evidence before the next eviction.
const ADMITTED: u64 = 64;

/// The weight from which on an evicted suspect is worth a count.
const EVIDENCE: f64 = 4.0;

/// A table of subjects in sets of [`WAYS`] entries.
#[derive(Debug)]
pub(in crate::monitor) struct Table<E> {
    seed: Seed,
    sets: Vec<Option<E>>,
    /// One bit per entry: whether it was looked up since it was judged, or was open then.
    marks: Vec<u64>,
    /// One bit per word of `marks`: whether the word may have a bit set.
    marked_words: Vec<u64>,
    /// Entries that were judged so far.
    judged: u64,
    /// Whether every subject so far is stored.
    is_complete: bool,
    /// New subjects that wanted the entry of an active one.
    rivals: u64,
    /// Suspects that were evicted or not stored, though the entry of less weight had evidence.
    evicted: u64,
    /// The last evicted entry, until its owner takes it.
    displaced: Option<E>,
}

impl<E: Suspect> Table<E> {
    /// An empty table for about `entries` subjects.
    pub(in crate::monitor) fn new(entries: u64, seed: Seed) -> Result<Self, Infeasible> {
        let entries = (entries / WAYS as u64).max(1) * WAYS as u64;
        let bytes = entries.saturating_mul(size_of::<Option<E>>() as u64);
        let length = usize::try_from(entries).map_err(|_| Infeasible::Memory { bytes })?;
        let mut sets = Vec::new();
        sets.try_reserve_exact(length).map_err(|_| Infeasible::Memory { bytes })?;
        sets.resize(length, None);
        let marks = vec![0; length.div_ceil(64)];
        let marked_words = vec![0; marks.len().div_ceil(64)];
        Ok(Table {
            seed,
            sets,
            marks,
            marked_words,
            judged: 0,
            is_complete: true,
            rivals: 0,
            evicted: 0,
            displaced: None,
        })
    }

    /// Marks an entry for the next call of [`Self::judge`].
    fn mark(&mut self, at: usize) {
        let word = at / 64;
        self.marks[word] |= 1 << (at % 64);
        self.marked_words[word / 64] |= 1 << (word % 64);
    }

    /// The indexes of the set of a subject.
    fn set(&self, subject: &Subject) -> Range<usize> {
        let sets = (self.sets.len() / WAYS) as u64;
        let set = subject.digest(self.seed).position(0, sets) as usize;
        set * WAYS..(set + 1) * WAYS
    }

    /// The entry of a subject, if it is stored.
    pub(in crate::monitor) fn find(&mut self, subject: &Subject) -> Option<&mut E> {
        let set = self.set(subject);
        let own = |entry: &Option<E>| entry.as_ref().is_some_and(|e| same(e.subject(), subject));
        let at = set.start + self.sets[set].iter().position(own)?;
        self.mark(at);
        self.sets[at].as_mut()
    }

    /// The entry of a subject, if it is stored, to read it.
    pub(in crate::monitor) fn peek(&self, subject: &Subject) -> Option<&E> {
        let own = |entry: &&E| same(entry.subject(), subject);
        self.sets[self.set(subject)].iter().flatten().find(own)
    }

    /// The entry of a subject, new if necessary; `None` if no entry of the set may be evicted, or if
    /// the subject is not among those admitted.
    pub(in crate::monitor) fn enter(&mut self, subject: &Subject, now: u64) -> Option<&mut E> {
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
        let displaced = best.0 >= 0.0 && best.1.is_none_or(|(_, new)| new);
        let is_first = self.is_complete;
        self.is_complete &= !displaced;
        self.evicted += u64::from(displaced && best.0 >= EVIDENCE);
        let (way, new) = best.1?;
        if displaced && self.sets[set.start + way].as_ref().is_some_and(|old| old.is_active(now)) {
            self.rivals += 1;
            if !self.rivals.digest(self.seed).0.is_multiple_of(ADMITTED) {
                return None;
            }
        }
        let at = set.start + way;
        self.mark(at);
        let entry = &mut self.sets[at];
        if new {
            self.displaced = entry.replace(E::new(*subject, now, is_first));
        }
        entry.as_mut()
    }

    /// Calls `judge` for the entries that were looked up since the last call, and for those that were
    /// open after it.
    pub(in crate::monitor) fn judge(&mut self, mut judge: impl FnMut(&mut E)) {
        for (group, marked) in self.marked_words.iter_mut().enumerate() {
            for word in ones(std::mem::take(marked)) {
                let marks = &mut self.marks[group * 64 + word];
                for bit in ones(std::mem::take(marks)) {
                    self.judged += 1;
                    let at = (group * 64 + word) * 64 + bit;
                    if let Some(entry) = &mut self.sets[at] {
                        judge(entry);
                        *marks |= u64::from(entry.is_open()) << bit;
                    }
                }
                *marked |= u64::from(*marks != 0) << word;
            }
        }
    }

    /// The entry that the last call of [`enter`](Self::enter) evicted.
    pub(in crate::monitor) fn take_displaced(&mut self) -> Option<E> {
        self.displaced.take()
    }

    /// All entries.
    pub(in crate::monitor) fn entries(&self) -> impl Iterator<Item = &E> {
        self.sets.iter().flatten()
    }

    /// Entries that were judged so far.
    pub(in crate::monitor) fn judged(&self) -> u64 {
        self.judged
    }

    /// Suspects that were evicted or not stored, though they had some evidence.
    pub(in crate::monitor) fn evicted(&self) -> u64 {
        self.evicted
    }
}

/// A table in a checkpoint: the entries in use, each with its position and its mark.
impl<E: Suspect + Resume> Resume for Table<E> {
    fn save(&self, out: &mut Out) {
        out.numbers(&[self.judged, self.rivals, self.evicted]);
        out.flag(self.is_complete);
        let used = || self.sets.iter().enumerate().filter(|(_, entry)| entry.is_some());
        out.number(used().count() as u64);
        for (at, entry) in used() {
            let Some(entry) = entry else { continue };
            out.number(at as u64);
            out.flag(self.marks[at / 64] >> (at % 64) & 1 == 1);
            out.raw(entry.subject());
            entry.save(out);
        }
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        [self.judged, self.rivals, self.evicted] = bytes.counts("judged")?;
        self.is_complete = bytes.flag("is_complete")?;
        let mut next = 0;
        for _ in 0..bytes.number()? {
            let at = bytes.below("position", self.sets.len())?;
            let (is_marked, subject) = (bytes.flag("mark")?, bytes.array()?);
            let set = self.set(&subject);
            let known = self.sets.get(set.start..at).unwrap_or_default();
            let is_new = known.iter().flatten().all(|other| *other.subject() != subject);
            bytes.check("position", at >= next && set.contains(&at) && is_new)?;
            let mut entry = E::new(subject, 0, false);
            entry.resume(bytes)?;
            self.sets[at] = Some(entry);
            if is_marked {
                self.mark(at);
            }
            next = at + 1;
        }
        Ok(())
    }
}

/// The positions of the set bits, from the lowest.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lowest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[derive(Clone)]
    struct Entry(Subject, bool);

    impl Suspect for Entry {
        fn new(subject: Subject, _: u64, _: bool) -> Self {
            Entry(subject, false)
        }

        fn subject(&self) -> &Subject {
            &self.0
        }

        fn weight(&self, _: u64) -> Option<f64> {
            Some(0.0)
        }

        fn is_active(&self, _: u64) -> bool {
            false
        }

        fn is_open(&self) -> bool {
            self.1
        }
    }

    fn subject(number: u32) -> Subject {
        std::array::from_fn(|i| number.to_le_bytes().get(i).copied().unwrap_or(0))
    }

    /// Judges the table, and returns the judged subjects.
    fn judged(table: &mut Table<Entry>) -> BTreeSet<Subject> {
        let (mut seen, before) = (BTreeSet::new(), table.judged());
        table.judge(|entry| assert!(seen.insert(entry.0), "judged twice"));
        assert_eq!(table.judged() - before, seen.len() as u64);
        seen
    }

    #[test]
    fn changed_and_open_entries_are_judged_once_and_no_others() {
        let mut table = Table::<Entry>::new(40_000, Seed(3)).unwrap();
        let all: BTreeSet<Subject> = (0..5_000).map(subject).collect();
        for subject in &all {
            table.enter(subject, 0).unwrap().1 = subject[0] == 7;
        }
        assert_eq!(judged(&mut table), all);
        let open: BTreeSet<Subject> = all.iter().filter(|one| one[0] == 7).copied().collect();
        assert_eq!(judged(&mut table), open);
        // An entry that was looked up is judged once more.
        table.find(&subject(5)).unwrap();
        let more: BTreeSet<Subject> = open.iter().copied().chain([subject(5)]).collect();
        assert_eq!(judged(&mut table), more);
        for subject in &open {
            table.find(subject).unwrap().1 = false;
        }
        assert_eq!(judged(&mut table), open);
        assert_eq!(judged(&mut table), BTreeSet::new());
    }
}
