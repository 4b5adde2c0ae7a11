//! Ageing by the caller's rules: what becomes of a cell may depend on the state that it is in.
//!
//! A hand that clears whatever was not touched knows one period for all. Flows in some states ought
//! to go sooner than in others, and some whether they are touched or not: here the caller is shown
//! every cell that the hand passes, and says what becomes of it.

use super::{Fingerprint, Layout, Lookup, State, UNTOUCHED, with_fast_layout};
use crate::probe::BASE;

/// A cell under the hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visited {
    /// What it answers.
    pub answer: Lookup<State>,
    /// Whether it was touched since its flag last went down.
    pub touched: bool,
    /// How many flows it stands for.
    pub flows: u64,
    /// Its sampling class, see [`Fingerprint::class_of`].
    pub class: u32,
}

/// What becomes of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stays as it is, its flag too.
    Keep,
    /// It stays, and its flag goes down.
    Untouch,
    /// It stays in another state, its flag as it is. A shared cell, which has no state, and a state
    /// that the map does not have stay as they are.
    Become(State),
    /// It is empty from now on.
    Clear,
}

impl Fingerprint {
    /// Visits buckets `from..to` and, behind the last, the stash, as [`Sweep`](crate::state::Sweep)
    /// counts them, and does with every cell in use what `fate` says. Gives the number of cells
    /// cleared.
    pub fn sweep_by(&mut self, from: u64, to: u64, fate: &mut dyn FnMut(Visited) -> Fate) -> u64 {
        let buckets = u64::from(self.shape.subtables) * self.shape.buckets;
        let mut cleared = 0;
        with_fast_layout!(self.shape, |layout, _D| {
            for bucket in from..to.min(buckets) {
                cleared += self.decide_bucket(layout, bucket as usize, fate);
            }
        });
        if to > buckets && from <= buckets {
            let mut at = 0;
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
        }
        cleared
    }

    #[inline(always)]
    fn decide_bucket<L: Layout>(
        &mut self,
        layout: L,
        bucket: usize,
        fate: &mut dyn FnMut(Visited) -> Fate,
    ) -> u64 {
        let offset = bucket * self.table.bucket_bytes;
        let bytes = &self.table.memory.bytes()[offset..];
        let empty = layout.matches(BASE, bytes, 0, 0);
        let mut used = !empty & (u64::MAX >> (64 - self.shape.cells));
        let mut cleared = 0;
        while used != 0 {
            let cell = used.trailing_zeros();
            used &= used - 1;
            let value = layout.read(&self.table.memory.bytes()[offset..], cell);
            let mask = self.table.form.low_mask();
            let low = !value & mask;
            // A cell is a complement, and an empty one zero.
            let remainder = (!value & self.table.form.cell_mask()) >> self.table.form.low;
            let class = self.class_at(remainder);
            let new = match self.decided(class, low, fate) {
                Some(new) if new == low => continue,
                Some(new) => value & !mask | !new & mask,
                None => {
                    self.table.occupied -= 1;
                    self.table.changes += 1;
                    cleared += 1;
                    0
                }
            };
            layout.write(&mut self.table.memory.bytes_mut()[offset..], cell, new);
        }
        cleared
    }

    /// The low bits of a cell after its fate, `None` if it is empty; what is counted is right then.
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
