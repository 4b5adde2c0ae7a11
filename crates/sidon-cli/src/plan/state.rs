//! `sidon plan state`: which state map, what size, what it will cost.

use super::{
    explain::state_rates,
    member::moves,
    relaxed, whole,
    worth::{Worth, excess, state_floor},
};
use crate::show;
use serde_json::{Value, json};
use sidon::{
    plan::{self, StateRow, StateShape, States},
    state::{
        direct,
        fingerprint::{self, Placing},
        stateful::{self, Keeping},
    },
};

/// States: what is this flow in?
///
/// Example: sidon plan state --flows 1000000 --states 8 --error 0.0001
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How many flows there are at a time, at the most
    #[arg(long, value_name = "N", value_parser = whole)]
    flows: u64,
    /// How many states a flow can be in
    #[arg(long, value_name = "S")]
    states: u32,
    /// The share of strangers that may be answered a state, and of members that may be answered
    /// "don't know", between 0 and 1
    #[arg(long, value_name = "P")]
    error: f64,
    /// Flows that end unheard are forgotten after this many seconds, at the latest after twice as
    /// many: only what ages is listed, with room for those that wait
    #[arg(long, value_name = "SECONDS", requires = "silent")]
    timeout: Option<f64>,
    /// With --timeout: how many flows a second end unheard
    #[arg(long, value_name = "N", requires = "timeout")]
    silent: Option<f64>,
    /// The share of new flows that may find all their cells taken, and move others or go to the
    /// stash: adds a table of fingerprints that large
    #[arg(long, value_name = "P")]
    overflow: Option<f64>,
    /// Write JSON: {"rows": [{"structure", "bytes_per_flow", "bytes", "error", "dont_know",
    /// "overflow", "deletes", "merges", "grows", "ages", "lines", "floor_bits", "excess", "shape"}]}
    #[arg(long)]
    json: bool,
}

/// How many flows are stored at a time: those that live, and those that ended unheard within two
/// phases of the clock.
fn stored(args: &Args) -> anyhow::Result<u64> {
    let (Some(timeout), Some(silent)) = (args.timeout, args.silent) else { return Ok(args.flows) };
    let waiting = (2.0 * timeout * silent).ceil();
    anyhow::ensure!(
        timeout > 0.0 && silent >= 0.0 && waiting < 2f64.powi(48),
        "--timeout {timeout} with --silent {silent} is no number of waiting flows: lower one"
    );
    Ok(args.flows.saturating_add(waiting as u64))
}

/// The rows that are asked for, or what to relax.
fn rows(args: &Args) -> anyhow::Result<Vec<StateRow>> {
    let target = States { flows: stored(args)?, states: args.states, error: args.error };
    let flag = |name: &str| match name {
        "keys" => Some("--flows"),
        "states" => Some("--states"),
        "error" | "false_positives" => Some("--error"),
        _ => None,
    };
    let mut rows = plan::states(target).map_err(|why| relaxed(why, flag))?;
    if let Some(odds) = args.overflow {
        anyhow::ensure!(
            odds > 0.0 && odds < 1.0,
            "--overflow is {odds}, and must be between 0 and 1"
        );
        let shape = plan::fingerprint_fast(target).map_err(|why| relaxed(why, flag))?;
        rows.push(roomy(shape, target.flows, odds)?);
    }
    if args.timeout.is_some() {
        rows = rows.into_iter().map(|row| timed(row, target.flows)).collect();
        // The timed forms forget by flags; what cannot is no answer.
        rows.retain(|row| Worth::of_state(&row.shape).ages && meets(row, args.error));
    }
    rows.sort_by_key(|row| row.bytes);
    Ok(rows)
}

fn meets(row: &StateRow, error: f64) -> bool {
    row.error <= error && row.dont_know <= error
}

/// The same table with as few buckets as keep overflow below the odds.
fn roomy(shape: fingerprint::Shape, flows: u64, odds: f64) -> anyhow::Result<StateRow> {
    let with = |buckets| fingerprint::Shape { buckets, ..shape };
    let fits = |buckets: u64| plan::fingerprint_overflow(with(buckets), flows) <= odds;
    // Down to a load that no odds ask for.
    let least = (flows as f64 / (2.0 * f64::from(shape.cells)) * 0.95).max(1.0) as u64;
    let (mut low, mut high) = (least, least.saturating_mul(16).max(least + 16));
    anyhow::ensure!(
        fits(high),
        "--overflow {odds:e} takes more than 16 times the cells: relax it to {:e}",
        plan::fingerprint_overflow(with(high), flows)
    );
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    let shape = with(high);
    Ok(StateRow {
        bytes: shape.bytes(),
        error: plan::fingerprint_error(shape, flows),
        dont_know: plan::fingerprint_dont_know(shape, flows),
        shape: StateShape::Fingerprint(shape),
    })
}

/// The form of a row that ages: bits and flags for counters.
fn timed(row: StateRow, flows: u64) -> StateRow {
    match row.shape {
        StateShape::Direct(shape) => {
            let shape = direct::Shape { counter: 1, timed: true, ..shape };
            StateRow { bytes: shape.bytes(), shape: StateShape::Direct(shape), ..row }
        }
        StateShape::Stateful(shape) => {
            // Any second flow makes a cell unknown: as many cells as that takes.
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
            let [error, _] = plan::stateful_rates(shape, flows);
            let dont_know = unknown(high);
            let bytes = shape.bytes();
            StateRow { bytes, error, dont_know, shape: StateShape::Stateful(shape) }
        }
        _ => row,
    }
}

/// The share of new flows that find all their cells taken, of a table of fingerprints.
fn overflow(row: &StateRow, flows: u64) -> Option<f64> {
    match row.shape {
        StateShape::Fingerprint(shape) => Some(plan::fingerprint_overflow(shape, flows)),
        _ => None,
    }
}

pub(super) fn explain(args: &Args) -> anyhow::Result<Vec<String>> {
    let (floor, flows) = (state_floor(args.states, args.error), stored(args)?);
    let mut lines = vec![format!(
        "floor = log2(1/error) + log2(states) = log2(1/{}) + log2({}) = {floor:.3} bits a flow",
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
            "\n{}: {}\n{}\n  memory = {} bytes, {bits:.2} bits a flow, {} over the floor",
            row.shape.name(),
            super::shape_text(&shape_json(&row.shape)),
            state_rates(&row.shape, flows, [row.error, row.dont_know]),
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
                "structure": row.shape.name(),
                "bytes_per_flow": bytes_per_flow(row.bytes),
                "bytes": row.bytes,
                "error": row.error,
                "dont_know": row.dont_know,
                "overflow": overflow(row, all),
                "shape": shape_json(&row.shape),
            });
            let bits = 8.0 * bytes_per_flow(row.bytes);
            Worth::of_state(&row.shape).add_to(&mut json, bits, floor);
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
            row.shape.name().to_owned(),
            format!("{:.2}", bytes_per_flow(row.bytes)),
            excess(8.0 * bytes_per_flow(row.bytes), floor),
            show::bytes(row.bytes),
            show::rate(row.error),
            show::rate(row.dont_know),
            overflow(row, all).map_or("-".to_owned(), show::rate),
        ];
        line.extend(Worth::of_state(&row.shape).cells());
        line.push(super::shape_text(&shape_json(&row.shape)));
        line
    });
    show::print(&show::table(&head, lines))?;
    show::print(&format!(
        "\nNo state map that errs so rarely takes less than {floor:.2} bits a flow."
    ))?;
    if all > args.flows {
        let waiting = show::whole(all - args.flows);
        show::print(&format!(
            "Room is made for {waiting} flows that ended and wait to be forgotten."
        ))?;
    }
    if let Some(StateShape::HashMap { .. }) = rows.first().map(|row| row.shape) {
        show::print("\nA plain hash map is the smallest here: take that.")?;
    }
    Ok(())
}

fn shape_json(shape: &StateShape) -> Value {
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
        StateShape::HashMap { slots } => json!({ "slots": slots }),
        _ => Value::Null,
    }
}
