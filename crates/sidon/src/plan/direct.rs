//! Pair filters ([`Direct`](crate::state::Direct)): cells, hashes and rates.
//!
//! `n` flows in `s` states. Each flow stores the pair of its key and its state in a counting filter. If
//! pairs that are not stored are found at the rate `f`, a stored flow is answered "don't know" if one of
//! its `s - 1` other pairs is found. Bonomi et al., SIGCOMM 2006, section 3.1.

use super::{States, Target, bloom};
use crate::{Infeasible, state::direct::Shape};

/// The smallest pair filter of 4-bit counters that meets the target.
///
/// ```
/// use sidon::plan::{States, direct};
///
/// let shape = direct::shape(States { flows: 1_000, states: 8, error: 0.01 })?;
/// let [error, dont_know] = direct::rates(shape, 1_000);
/// assert!(error <= 0.01 && dont_know <= 0.01 && error.max(dont_know) > 0.009);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: States) -> Result<Shape, Infeasible> {
    target.check()?;
    smallest(target).map_err(|why| match why {
        // The rate of pairs, which the caller did not give.
        Infeasible::Rate { .. } => target.too_strict(|target| smallest(target).is_ok()),
        why => why,
    })
}

fn smallest(target: States) -> Result<Shape, Infeasible> {
    let States { flows, states, error } = target;
    // The larger of the two rates is about `states` times that of a pair.
    let meets = |pair: f64| dont_know(pair, states).max(wrong(pair, states)) <= error;
    let mut pair = error;
    while !meets(pair) {
        pair *= 0.98;
    }
    let (cells, hashes) = bloom::least_cells(Target::new(flows, pair))?;
    Ok(Shape { cells, hashes, states, counter: 4, timed: false })
}

/// The chances of two errors while `flows` flows are stored: a key never stored is answered a state, and
/// a stored flow is answered "don't know".
///
/// ```
/// use sidon::{plan::direct, state::direct::Shape};
///
/// // Ten cells per flow, seven hashes: pairs are found at the rate f = 0.0081957. Of eight states,
/// // 1 - (1 - f)^7 of the flows are unknown, and 8 f (1 - f)^7 of the others get a state.
/// let shape = Shape { cells: 10_000, hashes: 7, states: 8, counter: 4, timed: false };
/// let [error, dont_know] = direct::rates(shape, 1_000);
/// assert!((dont_know - 0.055_978_468).abs() < 1e-9 && (error - 0.061_895_4).abs() < 1e-7);
/// ```
pub fn rates(shape: Shape, flows: u64) -> [f64; 2] {
    let pair = bloom::rate_of(shape.cells as f64, shape.hashes, flows as f64);
    [wrong(pair, shape.states), dont_know(pair, shape.states)]
}

/// The chance that one of the `states - 1` other pairs of a stored flow is found, each at the rate
/// `pair`.
fn dont_know(pair: f64, states: u32) -> f64 {
    -((f64::from(states) - 1.0) * (-pair).ln_1p()).exp_m1()
}

/// The chance that exactly one pair of a key never stored is found.
fn wrong(pair: f64, states: u32) -> f64 {
    let states = f64::from(states);
    states * pair * ((states - 1.0) * (-pair).ln_1p()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn the_numbers_of_001() {
        let shape = |states| Shape { cells: 10_000, hashes: 7, states, counter: 4, timed: false };
        // 001.dbf.dk_s2 and dk_s8.
        assert_close(rates(shape(2), 1000)[1], 0.008_195_702_596_76, 1e-9);
        assert_close(rates(shape(8), 1000)[1], 0.055_978_468_233_8, 1e-9);
    }
}
