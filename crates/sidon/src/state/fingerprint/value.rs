//! The meaning of a cell's low bits, and the counts of flows and shared cells.
//!
//! The value is above the flag. Values below the number of states are states. Later values mean
//! "unknown, one flow", "unknown, two flows", and so on up to the most flows of a shared cell.

use super::{Lookup, Shape, State};
use crate::{Refused, state::known};

/// The encoding of the low bits, and the counts of flows and shared cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    states: u32,
    /// The most flows of a shared cell.
    pub(super) most: u32,
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
}
