//! `sidon plan state`: which state map, what size, what it will cost.

use super::{
    explain::state_rates,
    member::moves,
    state_maps::{self, StateRow, StateShape},
    worth::{Worth, excess, state_floor},
};
use crate::{
    args::{
        number::{decimal, whole, within},
        number_text, refusal,
    },
    show,
};
use serde_json::{Value, json};
use sidon::{
    plan::{Prefer, States, fingerprint as planned},
    state::{
        Direct, Fingerprint, Stateful, direct,
        fingerprint::{self, Placing},
        stateful::{self, Keeping},
    },
};

/// State maps: which state is this flow in?
///
/// Example: sidon plan state --flows 1000000 --states 8 --error 0.0001
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Most flows that are active at a time
    #[arg(long, value_name = "N", value_parser = whole)]
    flows: u64,
    /// Number of states of a flow
    #[arg(long, value_name = "S", value_parser = within::<u32>(0..=u32::MAX.into()))]
    states: u32,
    /// Error rate, between 0 and 1: the share of flows never stored that get a state, and the share
    /// of stored flows that get "don't know"
    #[arg(long, value_name = "P", value_parser = decimal)]
    error: f64,
    /// Idle flows expire after this many seconds, at the latest after twice as many. The plan then
    /// lists only structures that age, with room for the flows that have ended and not yet expired
    #[arg(long, value_name = "SECONDS", value_parser = decimal, requires = "silent")]
    timeout: Option<f64>,
    /// With --timeout: flows per second that end without a packet that says so
    #[arg(long, value_name = "N", value_parser = decimal, requires = "timeout")]
    silent: Option<f64>,
    /// Adds a table of fingerprints in which at most this share of new flows finds all its cells
    /// full. Such a flow moves other flows or is stored in the stash
    #[arg(long, value_name = "P", value_parser = decimal)]
    overflow: Option<f64>,
    /// Write JSON: {"rows": [{"structure", "bytes_per_flow", "bytes", "error", "dont_know",
    /// "overflow", "deletes", "merges", "grows", "ages", "lines", "floor_bits", "excess", "shape"}]}
    #[arg(long)]
    json: bool,
}

/// Most flows that are stored at a time: active flows, and flows that ended silently within two
/// phases of the clock.
fn stored(args: &Args) -> anyhow::Result<u64> {
    let (Some(timeout), Some(silent)) = (args.timeout, args.silent) else { return Ok(args.flows) };
    let waiting = (2.0 * timeout * silent).ceil();
    let text = number_text;
    anyhow::ensure!(
        timeout > 0.0,
        "--timeout {} is too small; type seconds above 0",
        text(timeout)
    );
    anyhow::ensure!(
        silent >= 0.0,
        "--silent {} is too small; type --silent 0 or more",
        text(silent)
    );
    anyhow::ensure!(
        waiting < 2f64.powi(48),
        "--timeout {} with --silent {} makes {} flows that wait to expire; type smaller numbers, with \
         less than 2.8e14 such flows",
        text(timeout),
        text(silent),
        text(waiting)
    );
    Ok(args.flows.saturating_add(waiting as u64))
}

/// A state map that meets the target.
struct Row {
    bytes: u64,
    error: f64,
    dont_know: f64,
    /// `None` for a plain hash map.
    shape: Option<StateShape>,
}

impl Row {
    fn name(&self) -> &'static str {
        match self.shape {
            Some(StateShape::Direct(_)) => "direct",
            Some(StateShape::Stateful(_)) => "stateful",
            Some(StateShape::Fingerprint(_)) => "fingerprint",
            _ => "hash_map",
        }
    }

    /// A plain hash map of 64-bit digests and states of a byte or two. It has a control byte per slot and
    /// a power of two of slots, at most 7 of 8 in use.
    fn hash_map(flows: u64, states: u32) -> Self {
        let slots = (flows.div_ceil(7) * 8).next_power_of_two();
        let error = flows as f64 / 2f64.powi(64);
        Row { bytes: slots * hash_slot(states), error, dont_know: 0.0, shape: None }
    }
}

impl From<StateRow> for Row {
    fn from(row: StateRow) -> Self {
        let StateRow { bytes, error, dont_know, shape } = row;
        Row { bytes, error, dont_know, shape: Some(shape) }
    }
}

/// Bytes of a slot of a plain hash map.
fn hash_slot(states: u32) -> u64 {
    if states > 256 { 11 } else { 10 }
}

/// The rows of the plan, or an error that names the option to change.
fn rows(args: &Args) -> anyhow::Result<Vec<Row>> {
    let target = States { flows: stored(args)?, states: args.states, error: args.error };
    let flag = |name: &str| match name {
        "flows" => Some("--flows"),
        "states" => Some("--states"),
        "error" => Some("--error"),
        _ => None,
    };
    let rows = state_maps::states(target).map_err(|why| refusal(why, flag))?;
    let mut rows: Vec<Row> = rows.into_iter().map(Row::from).collect();
    rows.push(Row::hash_map(target.flows, target.states));
    if let Some(odds) = args.overflow {
        anyhow::ensure!(
            odds > 0.0 && odds < 1.0,
            "--overflow {odds} is not a share; type a number above 0 and below 1"
        );
        let shape = planned::shape(target, Prefer::Speed).map_err(|why| refusal(why, flag))?;
        rows.push(roomy(shape, target.flows, odds)?);
    }
    if args.timeout.is_some() {
        rows = rows.into_iter().map(|row| timed(row, target.flows)).collect();
        // Only structures that age can meet a timeout.
        rows.retain(|row| Worth::of_state(row.shape).ages && meets(row, args.error));
    }
    rows.sort_by_key(|row| row.bytes);
    Ok(rows)
}

fn meets(row: &Row, error: f64) -> bool {
    row.error <= error && row.dont_know <= error
}

/// A table with the fewest buckets that keep overflow below the odds.
fn roomy(shape: fingerprint::Shape, flows: u64, odds: f64) -> anyhow::Result<Row> {
    let with = |buckets| fingerprint::Shape { buckets, ..shape };
    let fits = |buckets: u64| planned::overflow(with(buckets), flows) <= odds;
    // The search starts at a load of 95 %, which overflows at any odds below 1.
    let least = (flows as f64 / (2.0 * f64::from(shape.cells)) * 0.95).max(1.0) as u64;
    let (mut low, mut high) = (least, least.saturating_mul(16).max(least + 16));
    anyhow::ensure!(
        fits(high),
        "--overflow {odds:e} needs more than 16 times the cells; type --overflow {:.1e} or more",
        planned::overflow(with(high), flows)
    );
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    let shape = with(high);
    let [error, dont_know] = planned::rates(shape, flows);
    let bytes = Fingerprint::planned_bytes(shape);
    Ok(Row { bytes, error, dont_know, shape: Some(StateShape::Fingerprint(shape)) })
}

/// The form of a row that ages: it has bits and flags instead of counters.
fn timed(row: Row, flows: u64) -> Row {
    match row.shape {
        Some(StateShape::Direct(shape)) => {
            let shape = direct::Shape { counter: 1, timed: true, ..shape };
            Row {
                bytes: Direct::planned_bytes(shape),
                shape: Some(StateShape::Direct(shape)),
                ..row
            }
        }
        Some(StateShape::Stateful(shape)) => {
            // Any second flow makes a cell unknown, so this form needs more cells.
            let of = |cells| stateful::Shape { cells, keeping: Keeping::Timed, ..shape };
            let unknown = |cells| {
                let met = f64::from(shape.hashes) * (flows - 1) as f64;
                let met = -(met * (-1.0 / cells as f64).ln_1p()).exp_m1();
                met.powi(shape.hashes as i32)
            };
            let (mut low, mut high) = (shape.cells, shape.cells.saturating_mul(64));
            while low < high {
                let middle = low + (high - low) / 2;
                if unknown(middle) <= row.dont_know { high = middle } else { low = middle + 1 }
            }
            let shape = of(high);
            let [error, _] = sidon::plan::stateful::rates(shape, flows);
            let dont_know = unknown(high);
            let bytes = Stateful::planned_bytes(shape);
            Row { bytes, error, dont_know, shape: Some(StateShape::Stateful(shape)) }
        }
        _ => row,
    }
}

/// The share of new flows that find all their cells full, for a table of fingerprints.
fn overflow(row: &Row, flows: u64) -> Option<f64> {
    match row.shape {
        Some(StateShape::Fingerprint(shape)) => Some(planned::overflow(shape, flows)),
        _ => None,
    }
}

pub(super) fn explain(args: &Args) -> anyhow::Result<Vec<String>> {
    let (floor, flows) = (state_floor(args.states, args.error), stored(args)?);
    let mut lines = vec![format!(
        "floor = log2(1/error) + log2(states) = log2(1/{}) + log2({}) = {floor:.3} bits per flow",
        args.error, args.states
    )];
    if let (Some(timeout), Some(silent)) = (args.timeout, args.silent) {
        let (n, all) = (show::whole(args.flows), show::whole(flows));
        lines.push(format!(
            "stored = flows + 2 timeout silent = {n} + 2 * {timeout} * {silent} = {all}"
        ));
    }
    for row in rows(args)? {
        let bits = row.bytes as f64 * 8.0 / args.flows as f64;
        lines.push(format!(
            "\n{}: {}\n{}\n  memory = {} bytes, {bits:.2} bits per flow, {} over the floor",
            row.name(),
            super::shape_text(&shape_json(&row, args.states)),
            state_rates(row.shape, flows, [row.error, row.dont_know]),
            show::whole(row.bytes),
            excess(bits, floor),
        ));
    }
    Ok(lines)
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let (rows, all) = (rows(args)?, stored(args)?);
    let floor = state_floor(args.states, args.error);
    let bytes_per_flow = |bytes: u64| bytes as f64 / args.flows as f64;
    if args.json {
        let rows = rows.iter().map(|row| {
            let mut json = json!({
                "structure": row.name(),
                "bytes_per_flow": bytes_per_flow(row.bytes),
                "bytes": row.bytes,
                "error": row.error,
                "dont_know": row.dont_know,
                "overflow": overflow(row, all),
                "shape": shape_json(row, args.states),
            });
            let bits = 8.0 * bytes_per_flow(row.bytes);
            Worth::of_state(row.shape).add_to(&mut json, bits, floor);
            json
        });
        return show::json_rows(rows.collect());
    }
    let mut head = vec!["structure", "bytes/flow", "over floor", "memory", "error", "don't know"];
    head.push("overflow");
    head.extend(Worth::HEAD);
    head.push("shape");
    let lines = rows.iter().map(|row| {
        let mut line = vec![
            row.name().to_owned(),
            format!("{:.2}", bytes_per_flow(row.bytes)),
            excess(8.0 * bytes_per_flow(row.bytes), floor),
            show::bytes(row.bytes),
            show::rate(row.error),
            show::rate(row.dont_know),
            overflow(row, all).map_or("-".to_owned(), show::rate),
        ];
        line.extend(Worth::of_state(row.shape).cells());
        line.push(super::shape_text(&shape_json(row, args.states)));
        line
    });
    show::print(&show::table(&head, lines))?;
    show::print(&show::folded(&format!(
        "\nThe floor: no state map with this error rate takes less than {floor:.2} bits per flow. \
         All rows can be merged."
    )))?;
    if all > args.flows {
        let waiting = show::whole(all - args.flows);
        show::print(&format!(
            "The plan has room for {waiting} flows that ended and have not yet expired."
        ))?;
    }
    if rows.first().is_some_and(|row| row.shape.is_none()) {
        show::print("\nA plain hash map is the smallest here: take that.")?;
    }
    Ok(())
}

/// The integers of a shape, or the slots of a plain hash map.
fn shape_json(row: &Row, states: u32) -> Value {
    let Some(shape) = row.shape else { return json!({ "slots": row.bytes / hash_slot(states) }) };
    match shape {
        StateShape::Direct(shape) => json!({
            "cells": shape.cells,
            "hashes": shape.hashes,
            "states": shape.states,
            "counter": shape.counter,
            "timed": shape.timed,
        }),
        StateShape::Stateful(shape) => json!({
            "cells": shape.cells,
            "hashes": shape.hashes,
            "states": shape.states,
            "width": shape.width(),
            "keeping": match shape.keeping {
                Keeping::Counted(counter) => format!("counted {counter}"),
                Keeping::Timed => "timed".to_owned(),
                Keeping::Summed(counter) => format!("summed {counter}"),
            },
        }),
        StateShape::Fingerprint(shape) => json!({
            "subtables": shape.subtables,
            "buckets": shape.buckets,
            "cells": shape.cells,
            "width": shape.width,
            "remainder": shape.remainder,
            "states": shape.states,
            "shared": shape.shared,
            "placing": match shape.placing {
                Placing::Permuted => "permuted",
                Placing::Independent => "independent",
            },
            "moves": moves(shape.moves),
            "stash": shape.stash,
        }),
    }
}
