//! Sets of records that arrived before their template, in bounded memory: the oldest is evicted.
//!
//! Sets are numbered in order of arrival. An index of (template, number) finds the sets of a template
//! without reading the others: a look costs one step per template and one per set that it finds.

use std::collections::{BTreeMap, BTreeSet};

/// The timeout of a waiting set in nanoseconds: 30 minutes.
const PATIENCE: u64 = 1_800_000_000_000;
/// Bytes of overhead per set: its entries in both indexes, and its allocation.
const BESIDE: usize = 128;

/// A set of records without its header.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) template: u16,
    pub(super) bytes: Vec<u8>,
    since: u64,
}

impl Set {
    fn room(&self) -> usize {
        self.bytes.len() + BESIDE
    }
}

/// The sets that wait, the oldest first.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Sets by their numbers, and the number of the next one.
    sets: BTreeMap<u64, Set>,
    next: u64,
    /// Each set's template and number.
    index: BTreeSet<(u16, u64)>,
    /// Bytes that the sets take, and the most that they may take.
    bytes: usize,
    most: usize,
    /// Sets that were evicted, did not fit, or timed out.
    given_up: u64,
    /// Sets that were stored, read or removed, and templates that were looked up.
    steps: u64,
}

impl Waiting {
    pub(super) fn new(most: usize) -> Self {
        Waiting {
            sets: BTreeMap::new(),
            next: 0,
            index: BTreeSet::new(),
            bytes: 0,
            most,
            given_up: 0,
            steps: 0,
        }
    }

    /// The number of waiting sets.
    pub(super) fn len(&self) -> u64 {
        self.sets.len() as u64
    }

    /// The number of sets that found no room or timed out.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The steps since the last call, see [`work`](crate::work).
    pub(super) fn take_steps(&mut self) -> u64 {
        std::mem::take(&mut self.steps)
    }

    /// Stores a set that arrived at `now_ns`.
    pub(super) fn keep(&mut self, template: u16, bytes: &[u8], now_ns: u64) {
        self.steps += 1;
        if bytes.len() + BESIDE > self.most {
            self.given_up += 1;
            return;
        }
        let set = Set { template, bytes: bytes.to_vec(), since: now_ns };
        while self.bytes + set.room() > self.most {
            self.give_up_oldest();
        }
        self.bytes += set.room();
        self.index.insert((template, self.next));
        self.sets.insert(self.next, set);
        self.next += 1;
    }

    /// Removes and returns the sets of `templates`, a list without repeats, in order of arrival.
    pub(super) fn take(&mut self, templates: &[u16]) -> Vec<Set> {
        let mut taken = Vec::new();
        for &template in templates {
            self.steps += 1;
            let found = self.index.range((template, 0)..=(template, u64::MAX));
            taken.extend(found.map(|(_, number)| *number));
        }
        taken.sort_unstable();
        taken.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// Gives up sets that have waited for longer than the timeout.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let old = |set: &Set| now_ns.saturating_sub(set.since) > PATIENCE;
        while self.sets.first_key_value().is_some_and(|(_, set)| old(set)) {
            self.give_up_oldest();
        }
    }

    fn give_up_oldest(&mut self) {
        if let Some(number) = self.sets.first_key_value().map(|(number, _)| *number) {
            self.remove(number);
            self.given_up += 1;
        }
    }

    fn remove(&mut self, number: u64) -> Option<Set> {
        self.steps += 1;
        let set = self.sets.remove(&number)?;
        self.index.remove(&(set.template, number));
        self.bytes -= set.room();
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_taken_in_order_and_the_oldest_make_room() {
        let mut waiting = Waiting::new(10 * (100 + BESIDE));
        for number in 0..12u8 {
            waiting.keep(256 + u16::from(number % 3), &[number; 100], number.into());
        }
        assert_eq!((waiting.len(), waiting.given_up()), (10, 2));
        let first = |sets: Vec<Set>| sets.iter().map(|set| set.bytes[0]).collect::<Vec<_>>();
        assert_eq!(first(waiting.take(&[256, 258])), [2, 3, 5, 6, 8, 9, 11]);
        assert_eq!(first(waiting.take(&[256, 258])), [0u8; 0]);
        // The sets that were taken above no longer use memory.
        for number in 0..7 {
            waiting.keep(300, &[number; 100], 20);
        }
        assert_eq!((waiting.len(), waiting.given_up()), (10, 2));
        waiting.keep(300, &[0; 5_000], 20);
        assert_eq!((waiting.len(), waiting.given_up()), (10, 3), "it would never fit");
        waiting.expire(PATIENCE + 11);
        assert_eq!((waiting.len(), waiting.given_up()), (7, 6));
        waiting.expire(u64::MAX);
        assert_eq!((waiting.len(), waiting.bytes, waiting.index.len()), (0, 0, 0));
    }
}
