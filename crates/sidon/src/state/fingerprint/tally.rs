//! The meaning of a cell's low bits, and the counts of flows and shared cells.
//!
//! The value is above the flag. Values below the number of states are states. Later values mean
//! "unknown, one flow", "unknown, two flows", and so on up to the most flows of a shared cell.

use super::{Lookup, Next, Shape, State, UNTOUCHED, known};
use crate::Refused;

/// The encoding of the low bits, and the counts of flows and shared cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    states: u32,
    /// The most flows of a shared cell.
    most: u32,
    /// Flows stored, including every flow of a shared cell.
    pub(super) flows: u64,
    /// Shared cells.
    pub(super) shared: u64,
}

impl Tally {
    pub(super) fn new(shape: &Shape) -> Self {
        Tally { states: shape.states, most: shape.shared, flows: 0, shared: 0 }
    }

    /// Refuses a state number that the map does not have.
    #[inline(always)]
    pub(super) fn known(&self, state: State) -> Result<(), Refused> {
        known(state, self.states)
    }

    /// The answer for a cell with these low bits.
    #[inline(always)]
    pub(super) fn read(&self, low: u64) -> Lookup<State> {
        let value = low >> 1;
        if value < u64::from(self.states) {
            Lookup::State(value as State)
        } else {
            Lookup::DontKnow
        }
    }

    /// The number of flows in a cell with these low bits.
    #[inline(always)]
    pub(super) fn flows_of(&self, low: u64) -> u64 {
        (low >> 1).saturating_sub(u64::from(self.states) - 1).max(1)
    }

    /// The low bits of a shared cell of `flows` flows, touched.
    #[inline(always)]
    pub(super) fn shared_by(&self, flows: u64) -> u64 {
        (u64::from(self.states) + flows - 1) << 1
    }

    #[inline(always)]
    pub(super) fn is_shared(&self, low: u64) -> bool {
        low >> 1 >= u64::from(self.states)
    }

    /// The new low bits of a flow's only cell. `None` if it becomes empty.
    #[inline(always)]
    pub(super) fn change(&mut self, low: u64, next: Next<State>) -> Result<Option<u64>, Refused> {
        match next {
            Next::Stay => Ok(Some(low & !UNTOUCHED)),
            Next::Modify(state) | Next::Set(state) => {
                self.known(state)?;
                let states = u64::from(self.states);
                if low >> 1 > states {
                    // A state of one of several flows could not be assigned to its flow later.
                    return Ok(Some(low & !UNTOUCHED));
                }
                self.shared -= u64::from(low >> 1 == states);
                Ok(Some(u64::from(state) << 1))
            }
            Next::Insert(state) => {
                self.known(state)?;
                let flows = self.flows_of(low);
                let ceiling = self.most.into();
                if flows >= ceiling {
                    return Err(Refused::Overflow { ceiling });
                }
                self.shared += u64::from(!self.is_shared(low));
                self.flows += 1;
                Ok(Some(self.shared_by(flows + 1)))
            }
            Next::Forget => {
                self.flows -= 1;
                if !self.is_shared(low) {
                    return Ok(None);
                }
                let left = self.flows_of(low) - 1;
                self.shared -= u64::from(left == 0);
                // Removing a flow does not touch its cell.
                Ok((left > 0).then(|| self.shared_by(left) | (low & UNTOUCHED)))
            }
        }
    }
}
