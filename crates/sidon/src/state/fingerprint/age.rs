//! Ageing by the caller's rules: the action on a cell may depend on its state.
//!
//! [`Sweep`](crate::state::Sweep) has one period for all flows. Here the caller receives each
//! visited cell and chooses its action, so flows in some states can expire sooner than others. With
//! [`set_timers`](Body::set_timers) a sweep skips the parts of the table in which the timer
//! has no cells ([`marks`](super::marks)).

use super::{Body, Lookup, Marks, State, UNTOUCHED, marks::GROUP};
use crate::{
    bucket::{Layout, with_layout},
    simd::BASE,
};

/// A cell that a sweep visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visited {
    /// The answer of a lookup of its flow.
    pub answer: Lookup<State>,
    /// Whether it was touched since its flag was last cleared.
    pub touched: bool,
    /// The number of flows that share it.
    pub flows: u64,
    /// The sampling class, see `Fingerprint::classes`.
    pub class: u32,
}

/// The action on a visited cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Keeps the cell and its flag.
    Keep,
    /// Keeps the cell and clears its flag.
    Untouch,
    /// Changes the state and keeps the flag. A shared cell, which has no state, does not change,
    /// nor does any cell if the map has no such state.
    Become(State),
    /// Empties the cell.
    Clear,
}

/// The work of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Cells that were cleared.
    pub cleared: u64,
    /// Cells that were read, empty ones included.
    pub read: u64,
}

impl Body {
    /// Sets the timers of each state: one bit per timer for each state, and at the end the bits of
    /// shared cells. [`sweep_timer`](Self::sweep_timer) then skips groups of buckets that hold no
    /// cell for its timer. The ninth timer and later ones share the bit of the eighth. Reads all of
    /// the table.
    pub(super) fn set_timers(&mut self, timers_of: Vec<u8>) {
        let buckets = self.table.buckets();
        self.marks = Marks::new(timers_of, buckets);
        if self.marks.is_empty() {
            return;
        }
        for group in 0..buckets.div_ceil(GROUP) {
            let mut timers = 0;
            for bucket in group * GROUP..buckets.min((group + 1) * GROUP) {
                for cell in 0..self.shape.cells {
                    let value = self.table.read(bucket, cell);
                    if let Some((_, low)) = self.table.decode(value) {
                        timers |= self.marks.timers(low >> 1);
                    }
                }
            }
            self.marks.set(group, timers);
        }
    }

    /// Visits the cells of timer `timer` and those of the stash, and applies the action that `fate`
    /// returns. It reads groups of buckets that may hold such cells. Without
    /// [`set_timers`](Self::set_timers) it visits the stash alone.
    pub(super) fn sweep_timer(
        &mut self,
        timer: usize,
        fate: &mut dyn FnMut(Visited) -> Fate,
    ) -> Swept {
        let buckets = self.table.buckets();
        let (mut swept, mut from) = (Swept::default(), 0);
        while let Some(group) = self.marks.next(timer, from) {
            let mut timers = 0;
            let range = group * GROUP..buckets.min((group + 1) * GROUP);
            swept.read += range.len() as u64 * u64::from(self.shape.cells);
            with_layout!(self.shape, |layout| {
                for bucket in range {
                    let own = 1 << timer.min(7);
                    let (cleared, left) = self.decide_bucket(layout, bucket, Some(own), fate);
                    swept.cleared += cleared;
                    timers |= left;
                }
            });
            self.marks.set(group, timers);
            from = group + 1;
        }
        swept.read += self.stash.len() as u64 + self.listed.len();
        swept.cleared += self.decide_stash(fate);
        swept
    }

    /// Visits buckets `from..to`, numbered through all subtables, and the stash with the last one.
    /// Applies the action that `fate` returns to every cell in use. Returns the number of cells
    /// cleared. The clock hand does not move.
    pub(super) fn sweep_by(
        &mut self,
        from: u64,
        to: u64,
        fate: &mut dyn FnMut(Visited) -> Fate,
    ) -> u64 {
        let buckets = u64::from(self.shape.subtables) * self.shape.buckets;
        let mut cleared = 0;
        with_layout!(self.shape, |layout| {
            for bucket in from..to.min(buckets) {
                let (empty, timers) = self.decide_bucket(layout, bucket as usize, None, fate);
                cleared += empty;
                self.marks.add(bucket as usize, timers);
            }
        });
        if from < buckets && to >= buckets {
            cleared += self.decide_stash(fate);
        }
        cleared
    }

    fn decide_stash(&mut self, fate: &mut dyn FnMut(Visited) -> Fate) -> u64 {
        let (mut at, mut cleared) = (0, 0);
        while at < self.stash.len() {
            let (fingerprint, low) = self.stash[at];
            match self.decided(self.class_at(fingerprint), low, fate) {
                Some(new) => {
                    self.stash[at].1 = new;
                    at += 1;
                }
                None => {
                    self.stash.swap_remove(at);
                    cleared += 1;
                }
            }
        }
        cleared
            + self.sweep_listed(&mut |map, digest, low| {
                let class = map.class_at(map.table.fingerprints.of_digest(digest));
                map.decided(class, low, fate)
            })
    }

    /// Applies actions to the cells of a bucket, or to those of the timers `own`. Returns the
    /// number of cells cleared, and the timers of those that remain.
    #[inline(always)]
    fn decide_bucket<L: Layout>(
        &mut self,
        layout: L,
        bucket: usize,
        own: Option<u8>,
        fate: &mut dyn FnMut(Visited) -> Fate,
    ) -> (u64, u8) {
        let bytes = layout.bucket(self.table.memory.bytes(), bucket);
        let empty = layout.matches(BASE, bytes, 0, 0);
        let mut used = !empty & (u64::MAX >> (64 - self.shape.cells));
        let (mut cleared, mut timers) = (0, 0);
        while used != 0 {
            let cell = used.trailing_zeros();
            used &= used - 1;
            let value = layout.read(layout.bucket(self.table.memory.bytes(), bucket), cell);
            let mask = self.table.addressing.low_mask;
            let low = !value & mask;
            if let Some(own) = own {
                let its = self.marks.timers(low >> 1);
                if its & own == 0 {
                    timers |= its;
                    continue;
                }
            }
            let class = self.class_at(self.table.addressing.remainder(value));
            let decided = self.decided(class, low, fate);
            timers |= decided.map_or(0, |low| self.marks.timers(low >> 1));
            let new = match decided {
                Some(new) if new == low => continue,
                Some(new) => value & !mask | !new & mask,
                None => {
                    self.table.occupied -= 1;
                    self.table.changes += 1;
                    cleared += 1;
                    0
                }
            };
            let bytes = layout.bucket_mut(self.table.memory.bytes_mut(), bucket);
            layout.write(bytes, cell, new);
        }
        (cleared, timers)
    }

    /// The low bits of a cell after its action, `None` if it becomes empty. Updates the counts.
    #[inline(always)]
    fn decided(
        &mut self,
        class: u32,
        low: u64,
        fate: &mut dyn FnMut(Visited) -> Fate,
    ) -> Option<u64> {
        let (answer, flows) = (self.tally.read(low), self.tally.flows_of(low));
        match fate(Visited { answer, touched: low & UNTOUCHED == 0, flows, class }) {
            Fate::Keep => Some(low),
            Fate::Untouch => Some(low | UNTOUCHED),
            Fate::Become(state) => match answer {
                Lookup::State(_) if u32::from(state) < self.shape.states => {
                    Some(u64::from(state) << 1 | low & UNTOUCHED)
                }
                _ => Some(low),
            },
            Fate::Clear => {
                self.tally.flows -= flows;
                self.tally.shared -= u64::from(answer == Lookup::DontKnow);
                None
            }
        }
    }
}
