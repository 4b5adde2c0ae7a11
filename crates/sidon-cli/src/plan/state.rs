//! `sidon plan state`: which state map, what size, what it will cost.

use super::{member::moves, whole};
use crate::show;
use serde_json::{Value, json};
use sidon::{
    plan::{self, StateShape, States},
    state::{fingerprint::Placing, stateful::Keeping},
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
    /// Write JSON: {"rows": [{"structure", "bytes_per_flow", "bytes", "error", "dont_know", "shape"}]}
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let Args { flows, states, error, .. } = *args;
    let rows = plan::states(States { flows, states, error })?;
    let bytes_per_flow = |bytes: u64| bytes as f64 / flows as f64;
    if args.json {
        let rows = rows.iter().map(|row| {
            json!({
                "structure": row.shape.name(),
                "bytes_per_flow": bytes_per_flow(row.bytes),
                "bytes": row.bytes,
                "error": row.error,
                "dont_know": row.dont_know,
                "shape": shape_json(&row.shape),
            })
        });
        return show::json_rows(rows.collect());
    }
    let head = ["structure", "bytes/flow", "memory", "error", "don't know", "shape"];
    let lines = rows.iter().map(|row| {
        vec![
            row.shape.name().to_owned(),
            format!("{:.2}", bytes_per_flow(row.bytes)),
            show::bytes(row.bytes),
            show::rate(row.error),
            show::rate(row.dont_know),
            super::shape_text(&shape_json(&row.shape)),
        ]
    });
    show::print(&show::table(&head, lines))?;
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
