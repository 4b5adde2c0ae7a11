//! Tables of fingerprints ([`Fingerprint`](crate::state::Fingerprint)): buckets, cells and rates.
//!
//! A key never stored is not answered `Absent` if it shares one of `buckets * 2^r` fingerprints with a
//! stored flow. A stored flow is answered "don't know" if it shares one with another. The fluid limit of
//! two choices tells how many flows the buckets take. Bonomi et al., SIGCOMM 2006, section 3.4.

use super::{
    Prefer, States,
    dleft::{LOAD_MAX, SPARE, least_from, load_where},
    fluid::Fluid,
};
use crate::{
    Infeasible,
    bucket::bucket_bytes,
    state::{
        STATES_MAX,
        fingerprint::{LISTED_MAX, Moves, Placing, Shape, low_bits},
    },
};

/// The smallest table that meets the target: two subtables of eight cells of any width, filled to 95
/// per cent by moving flows.
///
/// With [`Prefer::Speed`], two subtables of buckets of a cache line or half a line, with so much room
/// that fewer than one insertion in fifty needs a move.
///
/// ```
/// use sidon::{plan::{Prefer, States, fingerprint}, state::Fingerprint};
///
/// let target = States { flows: 10_000_000, states: 16, error: 1e-6 };
/// let bytes_per_flow = |prefer| Ok(Fingerprint::planned_bytes(fingerprint::shape(target, prefer)?) as f64 / 1e7);
/// // log2(1e6) bits for the error, four for a pair of buckets of eight cells, six for the state and
/// // its flags: 30 bits at a load of 95.5 %.
/// let small: Result<f64, sidon::Infeasible> = bytes_per_flow(Prefer::Memory);
/// assert!((small? - 30.0 / 8.0 / 0.955).abs() < 0.01);
/// let fast: Result<f64, sidon::Infeasible> = bytes_per_flow(Prefer::Speed);
/// assert!(fast? < 5.4);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: States, prefer: Prefer) -> Result<Shape, Infeasible> {
    target.check()?;
    let is_met = |target| smallest(target, prefer).is_some();
    smallest(target, prefer).ok_or_else(|| target.too_strict(is_met))
}

/// The smallest shape; `None` if no shape meets the target.
fn smallest(target: States, prefer: Prefer) -> Option<Shape> {
    match prefer {
        Prefer::Speed => {
            smallest_of(target, &[(16, 32), (24, 10), (24, 21), (32, 16)], Some(MOVES_MAX))
        }
        Prefer::Memory => {
            let widths: Vec<_> = (8..=64).map(|width| (width, 8)).collect();
            smallest_of(target, &widths, None)
        }
    }
}

/// The chances of two errors while `flows` flows are stored: a key never stored is not answered `Absent`,
/// and a stored flow is answered "don't know". Both are 1 for a shape that cannot be built.
///
/// ```
/// use sidon::plan::{Prefer, States, fingerprint};
///
/// let shape = fingerprint::shape(States { flows: 1_000, states: 4, error: 1e-3 }, Prefer::Speed)?;
/// // 1,000 flows share buckets * 2^remainder fingerprints.
/// let [error, dont_know] = fingerprint::rates(shape, 1_000);
/// let all = shape.buckets as f64 * 2f64.powi(shape.remainder as i32);
/// assert!((error / (1_000.0 / all) - 1.0).abs() < 1e-3);
/// assert!((dont_know / (999.0 / all) - 1.0).abs() < 1e-3);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn rates(shape: Shape, flows: u64) -> [f64; 2] {
    [error(shape, flows), error(shape, flows.saturating_sub(1))]
}

/// The chance that a key shares its fingerprint with one of `flows` others.
fn error(shape: Shape, flows: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    -(flows as f64 * (-1.0 / shape.fingerprints() as f64).ln_1p()).exp_m1()
}

/// The chance that an insertion finds all cells of its flow taken, while `flows` flows are stored and
/// random ones leave as new ones arrive. Such a flow moves others, is stored in the stash, or is
/// refused. 1 for a shape that cannot be built.
///
/// ```
/// use sidon::plan::{Prefer, States, fingerprint};
///
/// // A fast table leaves room: fewer than one insertion in fifty needs a move. A small one does not.
/// let target = States { flows: 100_000, states: 4, error: 1e-4 };
/// let fast = fingerprint::shape(target, Prefer::Speed)?;
/// let small = fingerprint::shape(target, Prefer::Memory)?;
/// assert!(fingerprint::overflow(fast, 100_000) < 0.02);
/// assert!(fingerprint::overflow(small, 100_000) > 0.2);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn overflow(shape: Shape, flows: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    let load = flows as f64 / (f64::from(shape.subtables) * shape.buckets as f64);
    Fluid::steady(shape.subtables, load, shape.cells + 8).overflow_chance(shape.cells)
}

/// The room of a list that takes every flow whose fingerprint is stored already, while `flows` flows are
/// stored and random ones leave as new ones arrive. A flow finds no room with a probability of less than one
/// in a billion. `None` if no list is that long, or for a shape that cannot be built.
///
/// A new flow is listed with the probability [`rates`] for as long as it is stored, so the flows in the list
/// have a Poisson distribution.
///
/// ```
/// use sidon::plan::{Prefer, States, fingerprint};
///
/// let shape = fingerprint::shape(States { flows: 1_000_000, states: 4, error: 1e-5 }, Prefer::Speed)?;
/// let [error, _] = fingerprint::rates(shape, 1_000_000);
/// let room = fingerprint::listed(shape, 1_000_000).unwrap();
/// assert!(f64::from(room) > 1e6 * error && f64::from(room) < 1e6 * error + 40.0);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
#[doc(hidden)]
pub fn listed(shape: Shape, flows: u64) -> Option<u32> {
    shape.check().ok()?;
    let mean = flows as f64 * error(shape, flows.saturating_sub(1));
    // The tail of a Poisson distribution above `room` is at most exp(-mean) (e * mean / room)^room.
    let beyond = |room: u32| {
        let room = f64::from(room).max(1.0);
        if room <= mean { 0.0 } else { room - mean - room * (room / mean).ln() }
    };
    let (mut low, mut high) = (0, LISTED_MAX);
    if beyond(high) > 1e-9f64.ln() {
        return None;
    }
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if beyond(middle) > 1e-9f64.ln() { low = middle } else { high = middle }
    }
    Some(high)
}

/// Flows that a shared cell counts at the least. Three sharing one fingerprint are as rare as the
/// square of the error.
const SHARED: u32 = 3;
const STASH: u32 = 8;
/// The share of insertions that may need a move in the fast layout.
const MOVES_MAX: f64 = 2e-2;

fn smallest_of(target: States, layouts: &[(u32, u32)], moves_most: Option<f64>) -> Option<Shape> {
    let States { flows, states, error } = target;
    let low = low_bits(states, SHARED);
    // All values that the bits allow count flows.
    let shared = ((1u32 << (low - 1)) - 1 - states).min(STATES_MAX);
    let mut best: Option<Shape> = None;
    for &(width, cells) in layouts.iter().filter(|&&(width, _)| width > low) {
        let load = match moves_most {
            Some(most) => load_where(2, cells, |fluid| fluid.overflow_chance(cells) <= most),
            None => LOAD_MAX,
        };
        let needed = ((flows as f64 / load + SPARE) / f64::from(2 * cells)).ceil() as u64;
        let remainder = (width - low).min(62);
        let shape = |buckets| Shape {
            subtables: 2,
            buckets,
            cells,
            width,
            remainder,
            states,
            shared,
            placing: Placing::Permuted,
            moves: Moves::Search(256),
            reinsert: false,
            stash: STASH,
            growths: 0,
            grows: false,
            listed: 0,
        };
        let most = needed.saturating_mul(8).min(crate::key::permute::MODULUS_MAX >> remainder);
        let meets = |buckets| self::error(shape(buckets), flows) <= error;
        let buckets = least_from(needed.max(1), most, meets);
        let bytes = |shape: Shape| shape.buckets * 2 * bucket_bytes(shape.cells, shape.width);
        if buckets <= most
            && meets(buckets)
            && best.is_none_or(|best| bytes(shape(buckets)) < bytes(best))
        {
            best = Some(shape(buckets));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_million_flows_of_sixteen_states() {
        let bytes = |error| {
            let target = States { flows: 10_000_000, states: 16, error };
            let shape = shape(target, Prefer::Speed).unwrap();
            assert!(overflow(shape, target.flows) <= 2e-2);
            assert!(rates(shape, target.flows)[0] <= error);
            shape.bytes() as f64 / 1e7
        };
        assert!(bytes(1e-6) <= 5.4, "{}", bytes(1e-6));
        assert!(bytes(1e-4) <= 4.0, "{}", bytes(1e-4));
    }
}
