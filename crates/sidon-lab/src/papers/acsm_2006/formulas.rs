//! What 000 and 001 claim and needs no sampling.

use super::facts;
use crate::{
    experiment::Experiment,
    formulas::{
        dleft::at_least,
        state::{Meeting, pair_dont_know, pair_rate},
    },
    row::Row,
    trials::Run,
};
use sidon::{Infeasible, plan::dleft::bucket_loads, state::direct};
use std::f64::consts::LN_2;

/// The flows of section 3.3's example.
pub const MEETING: Meeting<'static> = Meeting { cells: 4096, hashes: 3, flows: &[500, 300, 200] };
/// The pair filter of section 3.1's example.
pub const PAIRS: direct::Shape =
    direct::Shape { cells: 10_000, hashes: 7, states: 8, counter: 4, timed: false };
/// Its flows.
pub const PAIRS_FLOWS: u64 = 1000;

/// Sections 3.3 and 3.4.
pub fn of_000(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let (subtables, cells, load) = (3.0, 6.0, 4.0);
    let [limit, overflow, steady_overflow, utilisation, false_positives] = &facts::FORMULAS_000;
    Ok(vec![
        Row::computed(limit, MEETING.member_dont_know_limit(0)),
        Row::computed(overflow, at_least(&bucket_loads(3, load, false), 7)),
        Row::computed(steady_overflow, at_least(&bucket_loads(3, load, true), 7)),
        Row::computed(utilisation, load / cells),
        Row::computed(false_positives, subtables * cells / 2f64.powi(12)),
    ])
}

/// Section 3.1.
pub fn of_001(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let pair = pair_rate(PAIRS, PAIRS_FLOWS);
    let [sign, base, of_two_states, of_eight_states] = &facts::FORMULAS_001;
    Ok(vec![
        Row::computed(sign, pair),
        Row::computed(base, 0.5f64.powf(LN_2)),
        Row::computed(of_two_states, pair_dont_know(pair, 2)),
        Row::computed(of_eight_states, pair_dont_know(pair, 8)),
    ])
}
