//! The rule of a transition: what the cell of a flow holds afterwards.
//!
//! | next | no cell | a state | shared by `n` flows |
//! |---|---|---|---|
//! | `Stay` | no cell | the state | shared by `n` |
//! | `Insert(s)` | state `s` | shared by 2 | shared by `n + 1`, or [`Refused::Overflow`] |
//! | `Modify(s)` | [`Refused::NotStored`] | state `s` | shared by `n`; state `s` if `n` is 1 |
//! | `Set(s)` | state `s` | state `s` | as `Modify(s)` |
//! | `Forget` | [`Refused::NotStored`] | no cell | shared by `n - 1`; no cell if `n` is 1 |
//!
//! A cell that is shared by one flow has lost the others. Every transition except `Forget` touches
//! the cell, for ageing. The rule writes nothing: single operations, batches and the stash apply it,
//! each to its own cells.

use super::{Next, State, UNTOUCHED, value::Tally};
use crate::Refused;

/// The write of a transition, and the counts that change with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Write {
    /// The new low bits of the cell. `None` if the flow has no cell afterwards.
    pub(super) low: Option<u64>,
    /// The flows and the shared cells that are added, modulo 2^64.
    flows: u64,
    shared: u64,
}

impl Write {
    #[inline(always)]
    fn of(low: Option<u64>) -> Self {
        Write { low, flows: 0, shared: 0 }
    }
}

const ONE_LESS: u64 = u64::MAX;

impl Tally {
    /// The write that takes a flow with these low bits, or without a cell, to its next state.
    #[inline(always)]
    pub(super) fn rule(&self, old: Option<u64>, next: Next<State>) -> Result<Write, Refused> {
        let Some(low) = old else {
            return match next {
                Next::Stay => Ok(Write::of(None)),
                Next::Insert(state) | Next::Set(state) => {
                    self.known(state)?;
                    Ok(Write { flows: 1, ..Write::of(Some(u64::from(state) << 1)) })
                }
                Next::Modify(_) | Next::Forget => Err(Refused::NotStored),
            };
        };
        match next {
            Next::Stay => Ok(Write::of(Some(low & !UNTOUCHED))),
            Next::Modify(state) | Next::Set(state) => {
                self.known(state)?;
                if self.is_shared(low) && self.flows_of(low) > 1 {
                    // A state of one of several flows could not be assigned to its flow later.
                    return Ok(Write::of(Some(low & !UNTOUCHED)));
                }
                let shared = if self.is_shared(low) { ONE_LESS } else { 0 };
                Ok(Write { shared, ..Write::of(Some(u64::from(state) << 1)) })
            }
            Next::Insert(state) => {
                self.known(state)?;
                let (flows, ceiling) = (self.flows_of(low), self.most.into());
                if flows >= ceiling {
                    return Err(Refused::Overflow { ceiling });
                }
                let shared = u64::from(!self.is_shared(low));
                Ok(Write { low: Some(self.shared_by(flows + 1)), flows: 1, shared })
            }
            Next::Forget if !self.is_shared(low) => {
                Ok(Write { flows: ONE_LESS, ..Write::of(None) })
            }
            Next::Forget => {
                let left = self.flows_of(low) - 1;
                let shared = if left == 0 { ONE_LESS } else { 0 };
                // Removing a flow does not touch its cell.
                let low = (left > 0).then(|| self.shared_by(left) | (low & UNTOUCHED));
                Ok(Write { low, flows: ONE_LESS, shared })
            }
        }
    }

    /// Counts a write that was made.
    #[inline(always)]
    pub(super) fn record(&mut self, write: Write) {
        self.flows = self.flows.wrapping_add(write.flows);
        self.shared = self.shared.wrapping_add(write.shared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fingerprint::{Moves, Placing, Shape};

    /// Every present value of a cell and every transition. The counts of a write must be the
    /// difference of those of the cell.
    #[test]
    fn a_write_counts_the_flows_and_the_shared_cells_that_it_adds() {
        let (states, most) = (3, 4);
        let tally = Tally::new(&Shape {
            subtables: 2,
            buckets: 1,
            cells: 8,
            width: 16,
            remainder: 8,
            states,
            shared: most,
            placing: Placing::Permuted,
            moves: Moves::Never,
            reinsert: false,
            stash: 0,
            growths: 0,
            grows: false,
            listed: 0,
        });
        let flows = |low: Option<u64>| low.map_or(0, |low| tally.flows_of(low));
        let shared = |low: Option<u64>| low.map_or(0, |low| u64::from(tally.is_shared(low)));
        let used = 0..2 * u64::from(states + most);
        for old in used.map(Some).chain([None]) {
            let with = |state| [Next::Insert(state), Next::Modify(state), Next::Set(state)];
            let each = (0..=states as State).flat_map(with);
            for next in each.chain([Next::Stay, Next::Forget]) {
                match tally.rule(old, next) {
                    Ok(write) => {
                        let (low, what) = (write.low, (old, next));
                        assert_eq!(flows(old).wrapping_add(write.flows), flows(low), "{what:?}");
                        assert_eq!(shared(old).wrapping_add(write.shared), shared(low), "{what:?}");
                        let touches = next != Next::Forget && low.is_some();
                        assert!(!touches || low.unwrap() & UNTOUCHED == 0, "{what:?}");
                    }
                    Err(Refused::NotStored) => {
                        assert!(old.is_none() && matches!(next, Next::Modify(_) | Next::Forget));
                    }
                    Err(Refused::Overflow { ceiling }) => {
                        assert_eq!((flows(old), ceiling), (most.into(), most.into()));
                        assert!(matches!(next, Next::Insert(_)));
                    }
                    Err(why) => {
                        assert!(with(states as State).contains(&next), "{old:?} {next:?} {why:?}");
                    }
                }
            }
        }
    }
}
