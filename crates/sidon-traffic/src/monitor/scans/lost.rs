//! Targets of sources that the tables have no room for, in eight bytes each.
//!
//! Decoys that stay below the line can fill the tables and evict a source that is about to cross it.
//! What was known about an evicted source is kept here, and it takes it up again when it returns.
//! ```text
//! source -> set of eight cells:  | tag: 20 bits | time: 12 bits | failed targets: 32 bits |
//! ```
//! A target has one of 32 bits, so that one that is tried again counts once. A new source replaces the
//! one of its set that is silent for longest. Times are in units of two seconds, and a cell expires
//! after an hour.

use crate::{
    monitor::alarms::table::Subject,
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::{Infeasible, Key, Malformed, Seed};

/// Cells of a set.
const WAYS: usize = 8;
/// The unit of times, and the time after which a cell expires.
const UNIT: u64 = 2_000_000_000;
const EXPIRES: u64 = 1_800;

/// The sources without an entry.
#[derive(Debug)]
pub(super) struct Lost {
    seed: Seed,
    cells: Vec<u64>,
}

/// The bit of a target.
pub(super) fn bit(target: u32) -> u32 {
    1 << (target % 32)
}

impl Lost {
    pub(super) fn new(cells: u64, seed: Seed) -> Result<Self, Infeasible> {
        let bytes = cells.saturating_mul(8);
        let length = usize::try_from(cells).map_err(|_| Infeasible::Memory { bytes })?;
        let length = (length / WAYS).max(1) * WAYS;
        let mut all = Vec::new();
        all.try_reserve_exact(length).map_err(|_| Infeasible::Memory { bytes })?;
        all.resize(length, 0);
        Ok(Lost { seed, cells: all })
    }

    /// The first cell of the set of a subject, and its tag, which is not 0.
    fn place(&self, subject: &Subject) -> (usize, u64) {
        let digest = subject.digest(self.seed);
        let set = digest.position(1, (self.cells.len() / WAYS) as u64) as usize;
        (set * WAYS, digest.0 >> 44 | 1)
    }

    /// The age of a cell, in units of time.
    fn age(cell: u64, now: u64) -> u64 {
        (now / UNIT).wrapping_sub(cell >> 32) & 0xfff
    }

    fn find(&mut self, subject: &Subject, now: u64) -> Option<&mut u64> {
        let (first, tag) = self.place(subject);
        let own = |cell: &&mut u64| **cell >> 44 == tag && Lost::age(**cell, now) <= EXPIRES;
        self.cells[first..first + WAYS].iter_mut().find(own)
    }

    /// Adds failed targets of a subject.
    pub(super) fn add(&mut self, subject: &Subject, bits: u32, now: u64) {
        let time = ((now / UNIT) & 0xfff) << 32;
        let (first, tag) = self.place(subject);
        if let Some(cell) = self.find(subject, now) {
            *cell = tag << 44 | time | (*cell | u64::from(bits)) & 0xffff_ffff;
            return;
        }
        let order = |cell: &&mut u64| match **cell {
            0 => u64::MAX,
            cell => (Lost::age(cell, now) << 8) | (0xff - u64::from((cell as u32).count_ones())),
        };
        if let Some(cell) = self.cells[first..first + WAYS].iter_mut().max_by_key(order) {
            *cell = tag << 44 | time | u64::from(bits);
        }
    }

    /// Takes the failed targets of a subject out.
    pub(super) fn take(&mut self, subject: &Subject, now: u64) -> u32 {
        self.find(subject, now).map_or(0, |cell| std::mem::take(cell) as u32)
    }

    /// A target of a subject answered.
    pub(super) fn answer(&mut self, subject: &Subject, target: u32, now: u64) {
        if let Some(cell) = self.find(subject, now) {
            *cell &= !u64::from(bit(target));
        }
    }
}

impl Resume for Lost {
    fn save(&self, out: &mut Out) {
        let Lost { seed: _, cells } = self;
        out.numbers(cells);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        for cell in &mut self.cells {
            *cell = bytes.number()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(number: u32) -> Subject {
        std::array::from_fn(|i| number.to_le_bytes().get(i).copied().unwrap_or(0))
    }

    #[test]
    fn targets_add_up_until_they_answer_are_taken_or_expire() {
        let mut lost = Lost::new(64, Seed(3)).unwrap();
        lost.add(&subject(1), bit(5), UNIT);
        lost.add(&subject(1), bit(37) | bit(6), UNIT);
        lost.add(&subject(2), bit(9), UNIT);
        lost.answer(&subject(1), 6, UNIT);
        assert_eq!(lost.take(&subject(1), 2 * UNIT), bit(5));
        assert_eq!(lost.take(&subject(1), 2 * UNIT), 0);
        assert_eq!(lost.take(&subject(2), (EXPIRES + 2) * UNIT), 0);
    }

    #[test]
    fn a_source_that_goes_on_outlives_those_that_do_not() {
        let mut lost = Lost::new(64, Seed(3)).unwrap();
        for number in 0..10_000u32 {
            let now = u64::from(number) * UNIT / 16;
            lost.add(&subject(number), 0x3ff, now);
            if number % 16 == 0 {
                lost.add(&subject(1 << 20), bit(number / 16), now);
            }
        }
        assert_eq!(lost.take(&subject(1 << 20), 625 * UNIT).count_ones(), 32);
    }
}
