//! The target of a state map.

use super::{Target, too_strict};
use crate::{Infeasible, state::STATES_MAX};

/// The requirements on a state map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct States {
    /// The most flows that are stored at a time.
    pub flows: u64,
    /// The number of states of a flow.
    pub states: u32,
    /// The share of keys never stored that may be answered a state, and of stored flows that may be
    /// answered "don't know"; above 0 and below 1.
    pub error: f64,
}

impl States {
    pub(super) fn check(self) -> Result<(), Infeasible> {
        Target::new(self.flows, self.error).check_named("flows", "error")?;
        Infeasible::unless_within("states", self.states.into(), 1, STATES_MAX.into())
    }

    /// The error of a plan that finds no shape; `is_met` decides whether a plan of another error does.
    pub(super) fn too_strict(self, is_met: impl Fn(Self) -> bool) -> Infeasible {
        too_strict("error", self.error, |error| is_met(States { error, ..self }))
    }
}
