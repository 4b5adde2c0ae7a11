//! Every state map that meets a target.

use sidon::{
    Infeasible,
    plan::{self, Prefer, States},
    state::{Direct, Fingerprint, Stateful, direct, fingerprint, stateful},
};

/// A state map that meets a target, and its cost.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StateRow {
    /// The bytes of its table.
    pub(super) bytes: u64,
    /// The share of keys never stored that will be answered a state with all flows stored.
    pub(super) error: f64,
    /// The share of stored flows that will be answered "don't know".
    pub(super) dont_know: f64,
    /// The integers to build it from.
    pub(super) shape: StateShape,
}

/// The shape of any state map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateShape {
    /// A [`Direct`].
    Direct(direct::Shape),
    /// A [`Stateful`].
    Stateful(stateful::Shape),
    /// A [`Fingerprint`].
    Fingerprint(fingerprint::Shape),
}

/// Every state map that meets the target, the smallest first.
pub(super) fn states(target: States) -> Result<Vec<StateRow>, Infeasible> {
    let flows = target.flows;
    let row =
        |shape, bytes, [error, dont_know]: [f64; 2]| StateRow { bytes, error, dont_know, shape };
    let mut rows = Vec::new();
    for prefer in [Prefer::Speed, Prefer::Memory] {
        let Ok(shape) = plan::fingerprint::shape(target, prefer) else { continue };
        let rates = plan::fingerprint::rates(shape, flows);
        let row = row(StateShape::Fingerprint(shape), Fingerprint::planned_bytes(shape), rates);
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let shape = plan::direct::shape(target)?;
    rows.push(row(
        StateShape::Direct(shape),
        Direct::planned_bytes(shape),
        plan::direct::rates(shape, flows),
    ));
    let shape = plan::stateful::shape(target)?;
    rows.push(row(
        StateShape::Stateful(shape),
        Stateful::planned_bytes(shape),
        plan::stateful::rates(shape, flows),
    ));
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
