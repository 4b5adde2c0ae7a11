//! State maps: how often they err, how often they do not know, and the least memory for both.
//!
//! `n` flows in `s` states. A pair filter ([`Direct`](crate::state::Direct)) of rate `f` answers a
//! member `DontKnow` if one of its `s - 1` other pairs passes. In a
//! [`Stateful`](crate::state::Stateful) table of `m` cells, a cell is met by flows of state `i` alone,
//! by flows of several states, or by none:
//! ```text
//!   z(j)  = (1 - 1/m)^(k j)               no cell of j given flows is this one
//!   known(i)  = z(n - n_i) - z(n)         some of state i, none of another
//!   unknown   = 1 - z(n) - sum known(i)
//!   member of state i unknown:  (1 - z(n - n_i))^k
//!   stranger answered i:        (known(i) + unknown)^k - unknown^k
//! ```
//! These are the paper's, with two slips put right: its limits lack the sign and the division by `m`
//! in the exponent. A [`Fingerprint`](crate::state::Fingerprint) map errs on strangers that share one
//! of `buckets * 2^r` fingerprints, and does not know a member that shares one with another member;
//! how many flows its buckets take is [`Fluid`]'s to say. Bonomi et al., SIGCOMM 2006, section 3.

use super::{
    Fluid, bloom,
    dleft::{LOAD_MOST, SPARE, least_from, load_where},
};
use crate::{
    Infeasible,
    left::bucket_bytes,
    state::{
        STATES_MOST, direct,
        fingerprint::{self, Moves, Placing, low_bits},
        stateful::{self, Keeping},
    },
};

/// What a state map should hold and how rarely it may err.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct States {
    /// How many flows there are at a time, at the most.
    pub flows: u64,
    /// How many states a flow can be in.
    pub states: u32,
    /// The share of strangers that may be answered a state, and of members that may be answered
    /// "don't know"; above 0 and below 1.
    pub error: f64,
}

impl States {
    fn check(self) -> Result<(), Infeasible> {
        super::Target { keys: self.flows, false_positives: self.error }.check()?;
        Infeasible::unless_within("states", self.states.into(), 1, STATES_MOST.into())
    }
}

/// A state map that meets a target, and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct StateRow {
    /// The bytes of its table.
    pub bytes: u64,
    /// The share of strangers that will be answered a state with all flows stored.
    pub error: f64,
    /// The share of members that will be answered "don't know".
    pub dont_know: f64,
    /// The integers to build it from.
    pub shape: StateShape,
}

/// The shape of any state map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateShape {
    /// A [`state::Direct`](crate::state::Direct).
    Direct(direct::Shape),
    /// A [`state::Stateful`](crate::state::Stateful).
    Stateful(stateful::Shape),
    /// A [`state::Fingerprint`](crate::state::Fingerprint).
    Fingerprint(fingerprint::Shape),
    /// The plain alternative, not ours: a hash table of 64-bit digests and a byte or two of state,
    /// with a byte of control a slot, a power of two of slots and at most seven in eight full.
    HashMap {
        /// How many slots it has.
        slots: u64,
    },
}

impl StateShape {
    /// The structure's name in tables and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            StateShape::Direct(_) => "direct",
            StateShape::Stateful(_) => "stateful",
            StateShape::Fingerprint(_) => "fingerprint",
            StateShape::HashMap { .. } => "hash_map",
        }
    }
}

/// The chance that a member of one of `states` states is answered "don't know" by a pair filter that
/// pairs pass at the rate `pair`.
pub fn direct_dont_know(pair: f64, states: u32) -> f64 {
    -((f64::from(states) - 1.0) * (-pair).ln_1p()).exp_m1()
}

/// The chance that a stranger is answered a state by such a filter: one pair of its passes.
pub fn direct_error(pair: f64, states: u32) -> f64 {
    let states = f64::from(states);
    states * pair * ((states - 1.0) * (-pair).ln_1p()).exp()
}

/// The rate at which pairs pass, with `flows` flows stored.
pub fn direct_pair_rate(shape: direct::Shape, flows: u64) -> f64 {
    bloom::rate(shape.cells as f64, shape.hashes, flows as f64)
}

/// A table of so many cells into which flows of given numbers by state were inserted, `k` cells
/// each, and the rates that follow.
#[derive(Debug, Clone, Copy)]
pub struct Meeting<'a> {
    /// How many cells there are.
    pub cells: u64,
    /// How many a flow uses.
    pub hashes: u32,
    /// How many flows are in each state.
    pub flows: &'a [u64],
}

impl Meeting<'_> {
    fn all(&self) -> u64 {
        self.flows.iter().fold(0, |all: u64, &flows| all.saturating_add(flows))
    }

    /// The number of flows in other states. A state beyond the end of `flows` has no flows.
    fn others(&self, state: usize) -> u64 {
        self.all() - self.flows.get(state).copied().unwrap_or(0)
    }

    /// The chance that none of `flows` flows meets a given cell.
    fn missed(&self, flows: u64) -> f64 {
        let draws = f64::from(self.hashes) * flows as f64;
        (draws * (-1.0 / self.cells as f64).ln_1p()).exp()
    }

    /// The share of cells that flows of this state met, and of no other.
    fn known(&self, state: usize) -> f64 {
        self.missed(self.others(state)) - self.missed(self.all())
    }

    /// The share of cells that flows of two states met, or more.
    fn unknown(&self) -> f64 {
        let known: f64 = (0..self.flows.len()).map(|state| self.known(state)).sum();
        (1.0 - self.missed(self.all()) - known).max(0.0)
    }

    fn power(&self, share: f64) -> f64 {
        share.powi(self.hashes as i32)
    }

    /// The chance that a member of this state is answered "don't know".
    pub fn member_dont_know(&self, state: usize) -> f64 {
        self.power(1.0 - self.missed(self.others(state)))
    }

    /// The same in the limit of many cells: `(1 - e^(-k (n - n_i) / m))^k`.
    pub fn member_dont_know_limit(&self, state: usize) -> f64 {
        let others = self.others(state) as f64;
        self.power(-(-f64::from(self.hashes) * others / self.cells as f64).exp_m1())
    }

    /// The chance that a member is answered "don't know" by a timed table, in which any second flow
    /// makes a cell unknown.
    pub fn timed_member_dont_know(&self) -> f64 {
        self.power(1.0 - self.missed(self.all().saturating_sub(1)))
    }

    /// The chance that a stranger is answered this state.
    pub fn stranger_state(&self, state: usize) -> f64 {
        self.power(self.known(state) + self.unknown()) - self.power(self.unknown())
    }

    /// The chance that a stranger is answered "don't know".
    pub fn stranger_dont_know(&self) -> f64 {
        self.power(self.unknown())
    }
}

/// The chance that a stranger is not answered `Absent` by a map of `flows` flows; 1 for a shape that
/// cannot be built.
pub fn fingerprint_error(shape: fingerprint::Shape, flows: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    -(flows as f64 * (-1.0 / shape.fingerprints() as f64).ln_1p()).exp_m1()
}

/// The chance that a member shares its fingerprint with another of `flows`, and is not known.
pub fn fingerprint_dont_know(shape: fingerprint::Shape, flows: u64) -> f64 {
    fingerprint_error(shape, flows.saturating_sub(1))
}

/// The chance that an insertion finds all cells of its flow taken, while `flows` flows are stored and
/// random ones leave as new ones arrive: the share that moves, or is stashed or refused. 1 for a shape
/// that cannot be built.
pub fn fingerprint_overflow(shape: fingerprint::Shape, flows: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    let load = flows as f64 / (f64::from(shape.subtables) * shape.buckets as f64);
    Fluid::steady(shape.subtables, load, shape.cells + 8).overflow_chance(shape.cells)
}

/// The smallest pair filter of counters that meets the target.
pub fn direct(target: States) -> Result<direct::Shape, Infeasible> {
    target.check()?;
    let States { flows, states, error } = target;
    // The larger of the two rates is about `states` times that of a pair.
    let meets = |pair: f64| direct_dont_know(pair, states).max(direct_error(pair, states)) <= error;
    let mut pair = error;
    while !meets(pair) {
        pair *= 0.98;
    }
    let pairs = super::Target { keys: flows, false_positives: pair };
    let (cells, hashes) = bloom::least_cells(pairs)?;
    Ok(direct::Shape { cells, hashes, states, counter: 4, timed: false })
}

/// The smallest table of states and counters that meets the target while all states are equally
/// frequent.
pub fn stateful(target: States) -> Result<stateful::Shape, Infeasible> {
    target.check()?;
    let States { states, error, .. } = target;
    let shape =
        |cells, hashes| stateful::Shape { cells, hashes, states, keeping: Keeping::Counted(3) };
    const MOST: u64 = 1 << 58;
    let least = |hashes| {
        let meets = |cells| {
            let [wrong, unknown] = stateful_rates(shape(cells, hashes), target.flows);
            wrong.max(unknown) <= error
        };
        (bloom::least(MOST, meets), hashes)
    };
    let best = (1..=crate::hash::spread::MOST).map(least).min();
    let found = best.filter(|&(cells, _)| cells < MOST);
    let (cells, hashes) = found.ok_or(Infeasible::Memory { bytes: u64::MAX })?;
    Ok(shape(cells, hashes))
}

/// The chances that a stranger is answered a state, and that a member is answered "don't know", while
/// all states are equally frequent.
pub fn stateful_rates(shape: stateful::Shape, flows: u64) -> [f64; 2] {
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

/// The fast layout of the least bytes: two subtables of lines or half lines, and so much room that moves are needed
/// for less than one in fifty insertions.
pub fn fingerprint_fast(target: States) -> Result<fingerprint::Shape, Infeasible> {
    smallest(target, &[(16, 32), (24, 10), (24, 21), (32, 16)], Some(MOVES_MOST))
}

/// The smallest table: two subtables of eight cells of any width, filled to 95 per cent by moving.
pub fn fingerprint_small(target: States) -> Result<fingerprint::Shape, Infeasible> {
    let widths: Vec<_> = (8..=64).map(|width| (width, 8)).collect();
    smallest(target, &widths, None)
}

/// Flows that a shared cell counts at the least. Three sharing one fingerprint are as rare as the
/// square of the error.
const SHARED: u32 = 3;
const STASH: u32 = 8;
/// The share of insertions that may need a move in the fast layout.
const MOVES_MOST: f64 = 2e-2;

fn smallest(
    target: States,
    layouts: &[(u32, u32)],
    moves_most: Option<f64>,
) -> Result<fingerprint::Shape, Infeasible> {
    target.check()?;
    let States { flows, states, error } = target;
    let low = low_bits(states, SHARED);
    // All values that the bits allow count flows.
    let shared = ((1u32 << (low - 1)) - 1 - states).min(STATES_MOST);
    let mut best: Option<fingerprint::Shape> = None;
    for &(width, cells) in layouts.iter().filter(|&&(width, _)| width > low) {
        let load = match moves_most {
            Some(most) => load_where(2, cells, |fluid| fluid.overflow_chance(cells) <= most),
            None => LOAD_MOST,
        };
        let needed = ((flows as f64 / load + SPARE) / f64::from(2 * cells)).ceil() as u64;
        let remainder = (width - low).min(62);
        let shape = |buckets| fingerprint::Shape {
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
        };
        let most = needed.saturating_mul(8).min(crate::hash::permute::MODULUS_MOST >> remainder);
        let meets = |buckets| fingerprint_error(shape(buckets), flows) <= error;
        let buckets = least_from(needed.max(1), most, meets);
        let bytes =
            |shape: fingerprint::Shape| shape.buckets * 2 * bucket_bytes(shape.cells, shape.width);
        if buckets <= most
            && meets(buckets)
            && best.is_none_or(|best| bytes(shape(buckets)) < bytes(best))
        {
            best = Some(shape(buckets));
        }
    }
    let least = 16.0 / 2f64.powi(63 - low as i32);
    best.ok_or(Infeasible::Rate { name: "error", got: error, least, most: 1.0 })
}

/// Every state map that meets the target, cheapest first, and the plain alternative.
pub fn states(target: States) -> Result<Vec<StateRow>, Infeasible> {
    target.check()?;
    let States { flows, states, .. } = target;
    let mut rows = Vec::new();
    for plan in [fingerprint_fast, fingerprint_small] {
        let Ok(shape) = plan(target) else { continue };
        let (error, dont_know) =
            (fingerprint_error(shape, flows), fingerprint_dont_know(shape, flows));
        let row = StateRow {
            bytes: shape.bytes(),
            error,
            dont_know,
            shape: StateShape::Fingerprint(shape),
        };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let shape = direct(target)?;
    let pair = direct_pair_rate(shape, flows);
    let (error, dont_know) = (direct_error(pair, states), direct_dont_know(pair, states));
    let row = StateRow { bytes: shape.bytes(), error, dont_know, shape: StateShape::Direct(shape) };
    rows.push(row);
    let shape = stateful(target)?;
    let [error, dont_know] = stateful_rates(shape, flows);
    let row =
        StateRow { bytes: shape.bytes(), error, dont_know, shape: StateShape::Stateful(shape) };
    rows.push(row);
    let slots = (flows.div_ceil(7) * 8).next_power_of_two();
    let slot = if states > 256 { 11 } else { 10 };
    let error = flows as f64 / 2f64.powi(64);
    let shape = StateShape::HashMap { slots };
    rows.push(StateRow { bytes: slots * slot, error, dont_know: 0.0, shape });
    rows.sort_by_key(|row| row.bytes);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    const PAPER: Meeting<'_> = Meeting { cells: 4096, hashes: 3, flows: &[500, 300, 200] };

    #[test]
    fn the_numbers_of_001() {
        // 001.dbf.sign: ten cells a flow, seven hashes, in the limit.
        let pair = super::super::bloom_rate_limit(10.0, 7);
        let f = bloom::rate(10_000.0, 7, 1000.0);
        assert_close(f, 0.008_195_702_596_76, 1e-9);
        assert_close(pair, f, 1e-3);
        // 001.dbf.dk_s2 and dk_s8.
        assert_close(direct_dont_know(f, 2), 0.008_195_702_596_76, 1e-9);
        assert_close(direct_dont_know(f, 8), 0.055_978_468_233_8, 1e-9);
    }

    #[test]
    fn the_numbers_of_000() {
        // 000.sbf.member_dk and fp_value, by value; fp_dk; member_dk.limit; timer_member_dk.
        let members = [0.028_842_497_626_6, 0.064_557_571_832_5, 0.087_207_049_254_6];
        let strangers = [0.032_996_863_094_4, 0.010_868_290_111_2, 0.005_270_321_020_49];
        for state in 0..3 {
            assert_close(PAPER.member_dont_know(state), members[state], 1e-9);
            assert_close(PAPER.stranger_state(state), strangers[state], 1e-9);
        }
        assert_close(PAPER.stranger_dont_know(), 0.001_431_027_677_14, 1e-9);
        assert_close(PAPER.member_dont_know_limit(0), 0.028_833_751_987_3, 1e-9);
        assert_close(PAPER.timed_member_dont_know(), 0.139_756, 1e-5);
    }

    #[test]
    fn ten_million_flows_of_sixteen_states() {
        let bytes = |error| {
            let target = States { flows: 10_000_000, states: 16, error };
            let shape = fingerprint_fast(target).unwrap();
            assert!(fingerprint_overflow(shape, target.flows) <= 2e-2);
            assert!(fingerprint_error(shape, target.flows) <= error);
            shape.bytes() as f64 / 1e7
        };
        assert!(bytes(1e-6) <= 5.4, "{}", bytes(1e-6));
        assert!(bytes(1e-4) <= 4.0, "{}", bytes(1e-4));
    }

    #[test]
    fn rows_meet_the_target_and_come_cheapest_first() {
        for flows in [1, 100, 1_000_000, 1 << 33] {
            for (states, error) in [(1, 0.1), (2, 0.5), (8, 0.01), (16, 1e-6), (300, 1e-4)] {
                let target = States { flows, states, error };
                let rows = super::states(target).unwrap();
                assert!(rows.is_sorted_by_key(|row| row.bytes));
                for row in &rows {
                    assert!(row.error <= error && row.dont_know <= error, "{row:?}");
                }
                assert!(rows.len() >= 4, "{rows:?}");
                let cheapest = rows[0].shape.name();
                assert!(flows < 1000 || states < 8 || cheapest == "fingerprint", "{rows:?}");
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
