//! Tables of states ([`Stateful`](crate::state::Stateful)): cells, hashes and rates.
//!
//! `n` flows, `n_i` of them in state `i`, use `k` of `m` cells each. A cell is used by flows of one state
//! only, by flows of several states, or by none:
//! ```text
//!   z(j)  = (1 - 1/m)^(k j)               no cell of j given flows is this one
//!   known(i)  = z(n - n_i) - z(n)         some of state i, none of another
//!   unknown   = 1 - z(n) - sum known(i)
//!   stored flow of state i unknown:  (1 - z(n - n_i))^k
//!   other key answered i:            (known(i) + unknown)^k - unknown^k
//! ```
//! These are the formulas of Bonomi et al., SIGCOMM 2006, section 3.2, with two misprints corrected: the
//! paper's limits lack the sign and the division by `m` in the exponent.

use super::{States, bloom};
use crate::{
    Infeasible,
    state::stateful::{Keeping, Shape},
};

/// The smallest table of states and counters that meets the target while all states are equally
/// frequent.
///
/// ```
/// use sidon::plan::{States, stateful};
///
/// let shape = stateful::shape(States { flows: 10_000, states: 4, error: 0.01 })?;
/// let [error, dont_know] = stateful::rates(shape, 10_000);
/// assert!(error <= 0.01 && dont_know <= 0.01 && error.max(dont_know) > 0.0099);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: States) -> Result<Shape, Infeasible> {
    target.check()?;
    let States { states, error, .. } = target;
    let shape = |cells, hashes| Shape { cells, hashes, states, keeping: Keeping::Counted(3) };
    const MOST: u64 = 1 << 58;
    let least = |hashes| {
        let meets = |cells| {
            let [wrong, unknown] = rates(shape(cells, hashes), target.flows);
            wrong.max(unknown) <= error
        };
        (bloom::least(MOST, meets), hashes)
    };
    let best = (1..=crate::key::spread::MAX).map(least).min();
    let found = best.filter(|&(cells, _)| cells < MOST);
    let (cells, hashes) = found.ok_or(Infeasible::Memory { bytes: u64::MAX })?;
    Ok(shape(cells, hashes))
}

/// The chances of two errors while `flows` flows are stored: a key never stored is answered a state, and
/// a stored flow is answered "don't know". All states are equally frequent.
///
/// ```
/// use sidon::{plan::stateful, state::stateful::{Keeping, Shape}};
///
/// // One hash: a flow is unknown if a flow of the other state uses its cell, 1 - (1 - 1/1000)^100.
/// // Another key gets a state if flows of one state only use its cell: twice z(100) - z(200).
/// let shape = Shape { cells: 1_000, hashes: 1, states: 2, keeping: Keeping::Counted(3) };
/// let [error, dont_know] = stateful::rates(shape, 200);
/// assert!((dont_know - 0.095_207_85).abs() < 1e-8 && (error - 0.172_286_64).abs() < 1e-8);
/// ```
pub fn rates(shape: Shape, flows: u64) -> [f64; 2] {
    let power = |share: f64| share.powi(shape.hashes as i32);
    let z = |flows: f64| {
        let draws = f64::from(shape.hashes) * flows;
        (draws * (-1.0 / shape.cells as f64).ln_1p()).exp()
    };
    let (all, own) = (flows as f64, flows as f64 / f64::from(shape.states));
    let known = z(all - own) - z(all);
    let unknown = (1.0 - z(all) - known * f64::from(shape.states)).max(0.0);
    let wrong = power(known + unknown) - power(unknown);
    [wrong * f64::from(shape.states), power(1.0 - z(all - own))]
}
