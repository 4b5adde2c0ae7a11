//! The clock hand: clears the cells that were not touched, and the flags of the others.

use super::{Body, Form, Sweep, UNTOUCHED};
use crate::{
    Infeasible,
    bucket::{Layout, with_layout},
    simd::{self, Isa, Kernel},
};
use std::ops::Range;

impl Body {
    /// Moves the clock hand to bucket `to`, and visits the stash with the last one: see
    /// [`Sweep::sweep`].
    pub(super) fn sweep_to(&mut self, to: u64) -> u64 {
        let to = to.clamp(self.hand, self.units());
        let buckets = self.hand as usize..to as usize;
        let mut cleared = with_layout!(self.shape, |layout| {
            simd::dispatch(Pass { layout, map: self, buckets })
        });
        self.hand = to;
        if to == self.units() {
            self.hand = 0;
            cleared += self.sweep_stash();
            cleared += self.sweep_listed(&mut |map, _, low| {
                if low & UNTOUCHED != 0 {
                    map.tally.subtract(low);
                    return None;
                }
                Some(low | UNTOUCHED)
            });
        }
        cleared
    }

    /// Halves the buckets of the table, and the position of the clock hand with them.
    ///
    /// At an odd position, the last bucket that the clock hand has visited joins the next one, and
    /// the clock hand visits both together. The cells of the first count as touched, so that a
    /// second visit in this round does not clear them.
    pub(super) fn shrink_table(&mut self, form: Form) -> Result<(), Infeasible> {
        if self.hand.is_multiple_of(2) {
            self.table.reshape(form)?;
        } else {
            let size = self.table.any().offset(1);
            let start = (self.hand - 1) as usize * size;
            let before = self.table.memory.bytes()[start..start + size].to_vec();
            self.touch_bucket(start);
            if let Err(why) = self.table.reshape(form) {
                self.table.memory.bytes_mut()[start..start + size].copy_from_slice(&before);
                return Err(why);
            }
        }
        self.hand /= 2;
        Ok(())
    }

    /// Touches the cells in use of the bucket at `offset`.
    fn touch_bucket(&mut self, offset: usize) {
        let layout = self.table.any();
        let bucket = &mut self.table.memory.bytes_mut()[offset..];
        for cell in 0..self.shape.cells {
            let value = layout.read(bucket, cell);
            if value != 0 {
                // A cell stores the complement.
                layout.write(bucket, cell, value | UNTOUCHED);
            }
        }
    }

    fn sweep_stash(&mut self) -> u64 {
        let (mut at, mut cleared) = (0, 0);
        while at < self.stash.len() {
            let low = self.stash[at].1;
            if low & UNTOUCHED == 0 {
                self.stash[at].1 = low | UNTOUCHED;
                at += 1;
                continue;
            }
            self.stash.swap_remove(at);
            self.tally.subtract(low);
            cleared += 1;
        }
        cleared
    }
}

/// Visits some buckets, and returns the number of cells cleared.
struct Pass<'a, L> {
    layout: L,
    map: &'a mut Body,
    buckets: Range<usize>,
}

impl<L: Layout> Kernel for Pass<'_, L> {
    type Output = u64;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> u64 {
        let Pass { layout, map, buckets } = self;
        let Body { shape, table, tally, .. } = map;
        let all = u64::MAX >> (64 - shape.cells);
        let low_mask = table.addressing.low_mask;
        let all_but_lowest = table.addressing.cell_mask & !1;
        let bytes = table.memory.bytes_mut();
        let mut cleared = 0;
        for bucket in buckets {
            let bucket = layout.bucket_mut(bytes, bucket);
            let empty = layout.matches(isa, bucket, 0, 0);
            // A cell stores the complement, so touched cells have their lowest bit set.
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
                tally.subtract(!value & low_mask);
            }
            if touched != 0 {
                layout.clear_lowest(bucket, shape.cells);
            }
        }
        cleared
    }
}
