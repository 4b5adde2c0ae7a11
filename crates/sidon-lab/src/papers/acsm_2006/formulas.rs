//! What 000 and 001 claim and needs no sampling.

use crate::{
    claim::Value,
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
pub fn of_000(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let (subtables, cells, load) = (3.0, 6.0, 4.0);
    rows(experiment, |id| match id {
        "000.sbf.member_dk.limit" => MEETING.member_dont_know_limit(0).into(),
        "000.fcf.overflow" => at_least(&bucket_loads(3, load, false), 7).into(),
        "000.fcf.steady_overflow" => at_least(&bucket_loads(3, load, true), 7).into(),
        "000.fcf.utilisation" => (load / cells).into(),
        "000.fcf.fp_bound" => (subtables * cells / 2f64.powi(12)).into(),
        _ => Value::Nothing,
    })
}

/// Section 3.1.
pub fn of_001(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let pair = pair_rate(PAIRS, PAIRS_FLOWS);
    rows(experiment, |id| match id {
        "001.dbf.sign" => pair.into(),
        "001.dbf.base" => 0.5f64.powf(LN_2).into(),
        "001.dbf.dk_s2" => pair_dont_know(pair, 2).into(),
        "001.dbf.dk_s8" => pair_dont_know(pair, 8).into(),
        _ => Value::Nothing,
    })
}

fn rows(experiment: &Experiment, measure: impl Fn(&str) -> Value) -> Result<Vec<Row>, Infeasible> {
    Ok(experiment.claims.iter().map(|claim| Row::computed(claim, measure(claim.id))).collect())
}
