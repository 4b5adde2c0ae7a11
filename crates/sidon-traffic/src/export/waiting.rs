//! Sets of records that arrived before their template, in bounded memory: the oldest is evicted.

use std::collections::VecDeque;

/// The timeout of a waiting set in nanoseconds: 30 minutes.
const PATIENCE: u64 = 1_800_000_000_000;
/// Bytes of overhead per set.
const BESIDE: usize = 64;

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
    sets: VecDeque<Set>,
    /// Bytes that the sets take, and the most that they may take.
    bytes: usize,
    most: usize,
    /// Sets that were evicted, did not fit, or timed out.
    given_up: u64,
}

impl Waiting {
    pub(super) fn new(most: usize) -> Self {
        Waiting { sets: VecDeque::new(), bytes: 0, most, given_up: 0 }
    }

    /// The number of waiting sets.
    pub(super) fn len(&self) -> u64 {
        self.sets.len() as u64
    }

    /// The number of sets that found no room or timed out.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Stores a set that arrived at `now_ns`.
    pub(super) fn keep(&mut self, template: u16, bytes: &[u8], now_ns: u64) {
        let set = Set { template, bytes: bytes.to_vec(), since: now_ns };
        if set.room() > self.most {
            self.given_up += 1;
            return;
        }
        while self.bytes + set.room() > self.most {
            self.give_up_oldest();
        }
        self.bytes += set.room();
        self.sets.push_back(set);
    }

    /// Removes and returns the sets of `templates`, a sorted list, in order of arrival.
    pub(super) fn take(&mut self, templates: &[u16]) -> VecDeque<Set> {
        let told = |set: &Set| templates.binary_search(&set.template).is_ok();
        if templates.is_empty() || !self.sets.iter().any(told) {
            return VecDeque::new();
        }
        let all = std::mem::take(&mut self.sets);
        let (taken, left): (VecDeque<_>, VecDeque<_>) = all.into_iter().partition(told);
        self.bytes = left.iter().map(Set::room).sum();
        self.sets = left;
        taken
    }

    /// Gives up sets that have waited for longer than the timeout.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let old = |set: &Set| now_ns.saturating_sub(set.since) > PATIENCE;
        while self.sets.front().is_some_and(old) {
            self.give_up_oldest();
        }
    }

    fn give_up_oldest(&mut self) {
        if let Some(set) = self.sets.pop_front() {
            self.bytes -= set.room();
            self.given_up += 1;
        }
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
        let first = |sets: VecDeque<Set>| sets.iter().map(|set| set.bytes[0]).collect::<Vec<_>>();
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
        assert_eq!((waiting.len(), waiting.bytes), (0, 0));
    }
}
