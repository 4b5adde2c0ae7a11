//! Sets of records that came before their template, in bounded room: the oldest makes room.

use std::collections::VecDeque;

/// Nanoseconds that a set waits for its template.
const PATIENCE: u64 = 1_800_000_000_000;
/// Bytes that a set takes beside its own.
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
    /// Bytes that they take, and may take.
    bytes: usize,
    most: usize,
    /// Those that waited in vain.
    given_up: u64,
}

impl Waiting {
    pub(super) fn new(most: usize) -> Self {
        Waiting { sets: VecDeque::new(), bytes: 0, most, given_up: 0 }
    }

    /// How many wait.
    pub(super) fn len(&self) -> u64 {
        self.sets.len() as u64
    }

    /// How many found no room or waited too long.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Keeps a set that came at this time.
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

    /// Hands out the sets of these templates, which are in order, as they came.
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

    /// Gives up what has waited too long.
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
        // What was taken has left its room to others.
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
