//! State maps: which structure, what size, what it costs.

use super::{Prefer, Target, direct, fingerprint, stateful};
use crate::{
    Infeasible,
    state::{self, STATES_MOST},
};

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
        Target::new(self.flows, self.error).check()?;
        Infeasible::unless_within("states", self.states.into(), 1, STATES_MOST.into())
    }
}

/// A state map that meets a target, and its cost.
#[derive(Debug, Clone, PartialEq)]
pub struct StateRow {
    /// The bytes of its table.
    pub bytes: u64,
    /// The share of keys never stored that will be answered a state with all flows stored.
    pub error: f64,
    /// The share of stored flows that will be answered "don't know".
    pub dont_know: f64,
    /// The integers to build it from.
    pub shape: StateShape,
}

/// The shape of any state map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum StateShape {
    /// A [`state::Direct`](crate::state::Direct).
    Direct(state::direct::Shape),
    /// A [`state::Stateful`](crate::state::Stateful).
    Stateful(state::stateful::Shape),
    /// A [`state::Fingerprint`](crate::state::Fingerprint).
    Fingerprint(state::fingerprint::Shape),
}

/// Every state map that meets the target, the smallest first.
///
/// ```
/// use sidon::plan::{self, StateShape, States};
///
/// let rows = plan::states(States { flows: 1_000_000, states: 8, error: 1e-4 })?;
/// assert!(matches!(rows[0].shape, StateShape::Fingerprint(_)));
/// assert!(rows[0].bytes < 4_000_000 && rows[0].error <= 1e-4);
/// assert!(rows.is_sorted_by_key(|row| row.bytes));
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn states(target: States) -> Result<Vec<StateRow>, Infeasible> {
    target.check()?;
    let flows = target.flows;
    let row =
        |shape, bytes, [error, dont_know]: [f64; 2]| StateRow { bytes, error, dont_know, shape };
    let mut rows = Vec::new();
    for prefer in [Prefer::Speed, Prefer::Memory] {
        let Ok(shape) = fingerprint::shape(target, prefer) else { continue };
        let rates = fingerprint::rates(shape, flows);
        let row = row(StateShape::Fingerprint(shape), shape.bytes(), rates);
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let shape = direct::shape(target)?;
    rows.push(row(StateShape::Direct(shape), shape.bytes(), direct::rates(shape, flows)));
    let shape = stateful::shape(target)?;
    rows.push(row(StateShape::Stateful(shape), shape.bytes(), stateful::rates(shape, flows)));
    rows.sort_by_key(|row| row.bytes);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_meet_the_target_and_come_smallest_first() {
        for flows in [1, 100, 1_000_000, 1 << 33] {
            for (states, error) in [(1, 0.1), (2, 0.5), (8, 0.01), (16, 1e-6), (300, 1e-4)] {
                let target = States { flows, states, error };
                let rows = super::states(target).unwrap();
                assert!(rows.is_sorted_by_key(|row| row.bytes));
                for row in &rows {
                    assert!(row.error <= error && row.dont_know <= error, "{row:?}");
                }
                assert!(rows.len() >= 3, "{rows:?}");
                let smallest = matches!(rows[0].shape, StateShape::Fingerprint(_));
                assert!(flows < 1000 || states < 8 || smallest, "{rows:?}");
            }
        }
        for bad in [
            States { flows: 0, states: 2, error: 0.1 },
            States { flows: 9, states: 0, error: 0.1 },
            States { flows: 9, states: 2, error: 0.0 },
            States { flows: 9, states: 1 << 20, error: 0.1 },
        ] {
            assert!(super::states(bad).is_err());
        }
    }
}
