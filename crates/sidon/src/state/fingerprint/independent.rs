//! The paper's variant with independent buckets, [`Placing::Independent`](super::Placing).
//!
//! The buckets of a flow have nothing in common, so several of them may hold its remainder, and the
//! map cannot tell which of these cells belongs to the flow. The answer is then `DontKnow`. A change
//! makes all of these cells shared, because one of them is that of the flow. An insertion always
//! takes another cell.
//!
//! The variant exists for comparison, so it is simple instead of fast: a flow at a time, any layout.

use super::{Body, Lookup, Next, Refused, State, UNTOUCHED, operations::Follow};
use crate::dleft_table::{ANY, Cell};

impl Body {
    /// The answer for a flow.
    #[cold]
    #[inline(never)]
    pub(super) fn lookup_independent(&self, permuted: &[u64]) -> Lookup<State> {
        self.answer_independent(&self.cells_independent(&any(permuted)))
    }

    /// A transition of a flow.
    #[cold]
    #[inline(never)]
    pub(super) fn change_independent(
        &mut self,
        key: usize,
        permuted: &[u64],
        follow: &mut impl Follow,
    ) {
        let permuted = any(permuted);
        let cells = self.cells_independent(&permuted);
        let before = self.answer_independent(&cells);
        let next = follow.next(key, before);
        let done = self.write_independent(&cells, &permuted, next);
        follow.done(key, before, next, done);
    }

    /// The cells that hold the remainder of a flow in one of its buckets.
    fn cells_independent(&self, permuted: &[u64; ANY]) -> Vec<Cell> {
        let (table, finder) = (self.table.memory.bytes(), self.table.any_finder());
        let mut cells = Vec::new();
        for (bucket, mut found) in finder.each(table, permuted) {
            while found != 0 {
                let cell = found.trailing_zeros();
                let value = self.table.read(bucket, cell);
                cells.push(Cell { bucket, cell, value });
                found &= found - 1;
            }
        }
        cells
    }

    /// Makes all cells of an ambiguous flow unknown. `false`, with nothing changed, if one cell matches it.
    pub(super) fn blur_independent(&mut self, permuted: &[u64; ANY]) -> bool {
        let cells = self.cells_independent(permuted);
        if cells.len() > 1 {
            for &cell in &cells {
                let low = self.table.addressing.low_bits(cell.value);
                self.tally.shared += u64::from(!self.tally.is_shared(low));
                self.rewrite(cell, self.tally.shared_by(1));
            }
        }
        cells.len() > 1
    }

    fn answer_independent(&self, cells: &[Cell]) -> Lookup<State> {
        match cells {
            [] => Lookup::Absent,
            [cell] => self.tally.read(self.table.addressing.low_bits(cell.value)),
            _ => Lookup::DontKnow,
        }
    }

    fn write_independent(
        &mut self,
        cells: &[Cell],
        permuted: &[u64; ANY],
        next: Next<State>,
    ) -> Result<(), Refused> {
        match (cells, next) {
            (_, Next::Insert(_)) | ([], _) => {
                let write = self.tally.rule(None, next)?;
                if let Some(low) = write.low {
                    self.enter(permuted, low)?;
                }
                self.tally.record(write);
            }
            (&[cell], _) => {
                let old = self.table.addressing.low_bits(cell.value);
                let write = self.tally.rule(Some(old), next)?;
                match write.low {
                    None => self.table.empty(self.table.any(), cell),
                    Some(low)
                        if self.shape.reinsert
                            && low >> 1 != old >> 1
                            && !matches!(next, Next::Forget) =>
                    {
                        // The cell that becomes empty is room enough.
                        self.table.empty(self.table.any(), cell);
                        self.enter(permuted, low)?;
                    }
                    Some(low) => self.rewrite(cell, low),
                }
                self.tally.record(write);
            }
            (_, Next::Forget) => return Err(Refused::Ambiguous),
            (_, Next::Stay) => {
                for &cell in cells {
                    let low = self.table.addressing.low_bits(cell.value);
                    self.rewrite(cell, low & !UNTOUCHED);
                }
            }
            (_, Next::Modify(state) | Next::Set(state)) => {
                self.tally.known(state)?;
                self.blur_independent(permuted);
            }
        }
        Ok(())
    }
}

/// The words of a flow, in an array for any number of subtables.
fn any(permuted: &[u64]) -> [u64; ANY] {
    let mut any = [0; ANY];
    any[..permuted.len()].copy_from_slice(permuted);
    any
}
