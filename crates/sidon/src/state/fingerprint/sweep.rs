//! The hand passes: cells that were not touched are cleared, and all flags go down.

use super::{Fingerprint, Isa, Layout, Lookup, State, Tally, UNTOUCHED, with_fast_layout};
use crate::probe::{self, Kernel};
use std::ops::Range;

impl Fingerprint {
    /// Visits buckets `from..to` and, behind the last, the stash, as [`Sweep`](super::Sweep) has it.
    /// `expired` is told what the cleared cells would have answered.
    pub fn sweep_each(
        &mut self,
        from: u64,
        to: u64,
        expired: &mut dyn FnMut(Lookup<State>),
    ) -> u64 {
        let all = u64::from(self.shape.subtables) * self.shape.buckets;
        let buckets = from as usize..to.min(all) as usize;
        let mut cleared = 0;
        if !buckets.is_empty() {
            cleared = with_fast_layout!(self.shape, |layout, _D| {
                probe::dispatch(Pass { layout, map: self, buckets, expired })
            });
        }
        if to > all && from <= all {
            cleared += self.sweep_stash(expired);
        }
        cleared
    }

    fn sweep_stash(&mut self, expired: &mut dyn FnMut(Lookup<State>)) -> u64 {
        let (mut at, mut cleared) = (0, 0);
        while at < self.stash.len() {
            let low = self.stash[at].1;
            if low & UNTOUCHED == 0 {
                self.stash[at].1 = low | UNTOUCHED;
                at += 1;
                continue;
            }
            self.stash.swap_remove(at);
            expire(&mut self.tally, low, expired);
            cleared += 1;
        }
        cleared
    }
}

/// Counts out a cell that was cleared.
fn expire(tally: &mut Tally, low: u64, expired: &mut dyn FnMut(Lookup<State>)) {
    tally.flows -= tally.flows_of(low);
    tally.shared -= u64::from(tally.is_shared(low));
    expired(tally.read(low));
}

/// Passes some buckets, and gives the number of cells cleared.
struct Pass<'a, L> {
    layout: L,
    map: &'a mut Fingerprint,
    buckets: Range<usize>,
    expired: &'a mut dyn FnMut(Lookup<State>),
}

impl<L: Layout> Kernel for Pass<'_, L> {
    type Output = u64;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> u64 {
        let Pass { layout, map, buckets, expired } = self;
        let Fingerprint { shape, table, tally, .. } = map;
        let all = u64::MAX >> (64 - shape.cells);
        let low_mask = table.form.low_mask();
        let all_but_lowest = table.form.cell_mask() & !1;
        let bytes = table.memory.bytes_mut();
        let mut cleared = 0;
        for bucket in buckets {
            let bucket = layout.bucket_mut(bytes, bucket);
            let empty = layout.matches(isa, bucket, 0, 0);
            // A cell is a complement: touched ones have their lowest bit set.
            let touched = layout.matches(isa, bucket, 1, all_but_lowest);
            let mut stale = !(empty | touched) & all;
            while stale != 0 {
                let cell = stale.trailing_zeros();
                stale &= stale - 1;
                let value = layout.read(bucket, cell);
                layout.write(bucket, cell, 0);
                table.occupied -= 1;
                table.changes += 1;
                cleared += 1;
                expire(tally, !value & low_mask, expired);
            }
            if touched != 0 {
                layout.clear_lowest(bucket, shape.cells);
            }
        }
        cleared
    }
}
