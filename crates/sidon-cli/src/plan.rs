//! `sidon plan`: which structure, what size, what it will cost.

mod state;

use crate::{
    audit::{self, Found},
    show,
};
use clap::Subcommand;
use serde_json::{Value, json};
use sidon::{
    member::{Moves, Overflow, Spread},
    plan::{self, Shape, Target},
};

/// Choose a structure and its size for a target
///
/// Prints every structure that meets the target, cheapest first, with the plain alternative among
/// them. The figures are closed forms; the library's tests measure that they hold.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Sets: is this key one of them?
    ///
    /// Example: sidon plan member --keys 1000000 --fpr 0.001
    Member(MemberArgs),
    State(state::Args),
}

#[derive(Debug, clap::Args)]
struct MemberArgs {
    /// How many keys are stored at a time, at the most
    #[arg(long, value_name = "N", value_parser = keys)]
    keys: u64,
    /// The share of strangers that may pass, between 0 and 1
    #[arg(long, value_name = "P")]
    fpr: f64,
    /// Only structures of this name: bloom, blocked, counting, dleft, hash_set
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Build each structure and measure it: fill, churn, then ask for members and strangers
    #[arg(long)]
    audit: bool,
    /// With --audit: how many times over all keys leave and new ones come
    #[arg(long, value_name = "N", default_value_t = 2, requires = "audit")]
    turnovers: u64,
    /// With --audit: the seed of the hash and of the generated keys
    #[arg(long, value_name = "N", default_value_t = 1, requires = "audit")]
    seed: u64,
    /// Write JSON: {"rows": [{"structure", "bits_per_key", "bytes", "fpr", "deletes", "shape"}]},
    /// and with --audit "measured": {"fpr", "interval", "lost", "refused", "churned"}
    #[arg(long)]
    json: bool,
}

/// A whole number, written plainly, with underscores, or as 1e6.
fn keys(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.replace('_', "").parse() {
        return Ok(number);
    }
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number < 2f64.powi(64) && number.fract() == 0.0 => {
            Ok(number as u64)
        }
        _ => Err("expected a whole number, such as 1000000 or 1e6".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Member(args) => member(args),
        What::State(args) => state::run(args),
    }
}

fn member(args: &MemberArgs) -> anyhow::Result<()> {
    let mut rows = plan::members(Target { keys: args.keys, false_positives: args.fpr })?;
    if let Some(only) = &args.only {
        rows.retain(|row| row.shape.name() == only);
        anyhow::ensure!(!rows.is_empty(), "no structure called {only} meets the target");
    }
    let measured = if args.audit { measure(args, &rows)? } else { vec![None; rows.len()] };
    let bits_per_key = |bytes: u64| bytes as f64 * 8.0 / args.keys as f64;
    if args.json {
        let rows = rows.iter().zip(&measured).map(|(row, measured)| {
            let mut json = json!({
                "structure": row.shape.name(),
                "bits_per_key": bits_per_key(row.bytes),
                "bytes": row.bytes,
                "fpr": row.false_positives,
                "deletes": row.shape.deletes(),
                "shape": shape_json(&row.shape),
            });
            if let Some(found) = measured {
                let low = found.false_positives - found.interval;
                json["measured"] = json!({
                    "fpr": found.false_positives,
                    "interval": [low, low + 2.0 * found.interval],
                    "lost": found.lost,
                    "refused": found.refused,
                    "churned": found.churned,
                });
            }
            json
        });
        return show::json_rows(rows.collect());
    }
    let mut head = vec!["structure", "bits/key", "memory", "false positives", "deletes"];
    if args.audit {
        head.extend(["measured", "lost", "refused", "churned"]);
    }
    head.push("shape");
    let lines = rows.iter().zip(&measured).map(|(row, measured)| {
        let mut line = vec![
            row.shape.name().to_owned(),
            format!("{:.2}", bits_per_key(row.bytes)),
            show::bytes(row.bytes),
            show::rate(row.false_positives),
            if row.shape.deletes() { "yes" } else { "no" }.to_owned(),
        ];
        match measured {
            Some(found) => line.extend([
                format!("{} +/- {}", show::rate(found.false_positives), show::rate(found.interval)),
                show::whole(found.lost),
                show::whole(found.refused),
                show::whole(found.churned),
            ]),
            None if args.audit => line.extend(["-", "-", "-", "-"].map(str::to_owned)),
            None => {}
        }
        line.push(shape_text(&row.shape));
        line
    });
    show::print(&show::table(&head, lines))?;
    let filter = rows.iter().find(|row| row.shape.deletes());
    if let Some(Shape::HashSet { .. }) = filter.map(|row| row.shape) {
        show::print("\nFor keys that leave, a plain hash set is the smallest here: take that.")?;
    }
    Ok(())
}

/// What each row is worth when built; nothing for the plain alternative.
fn measure(args: &MemberArgs, rows: &[plan::Member]) -> anyhow::Result<Vec<Option<Found>>> {
    let of = |row: &plan::Member| audit::steps(args.keys, args.turnovers, row.false_positives);
    let bar = show::progress(rows.iter().map(of).sum());
    let mut all = Vec::new();
    for row in rows {
        bar.set_message(format!("measuring {}", row.shape.name()));
        let rate = row.false_positives;
        all.push(audit::audit(&row.shape, args.keys, rate, args.turnovers, args.seed, &bar)?);
    }
    bar.finish_and_clear();
    Ok(all)
}

fn shape_json(shape: &Shape) -> Value {
    match shape {
        Shape::Bloom(shape) => json!({ "bits": shape.bits, "hashes": shape.hashes }),
        Shape::Blocked(shape) => json!({ "lines": shape.lines, "hashes": shape.hashes }),
        Shape::Counting(shape) => json!({
            "counters": shape.counters,
            "hashes": shape.hashes,
            "width": shape.width,
            "lines": match shape.spread { Spread::Anywhere => 0, Spread::Lines(lines) => lines },
            "overflow": match shape.overflow { Overflow::Refuse => "refuse", Overflow::Pin => "pin" },
        }),
        Shape::DLeft(shape) => json!({
            "subtables": shape.subtables,
            "buckets": shape.buckets,
            "cells": shape.cells,
            "width": shape.width,
            "remainder": shape.remainder,
            "counter": shape.counter,
            "moves": moves(shape.moves),
            "growths": shape.growths,
            "grows": shape.grows,
        }),
        Shape::HashSet { slots } => json!({ "slots": slots }),
        _ => Value::Null,
    }
}

fn moves(moves: Moves) -> String {
    match moves {
        Moves::Never => "never".to_owned(),
        Moves::First => "first".to_owned(),
        Moves::Search(limit) => format!("search {limit}"),
    }
}

/// The shape on a line, from the same facts as the JSON.
fn shape_text(shape: &Shape) -> String {
    fields_text(&shape_json(shape))
}

/// An object's fields on a line.
fn fields_text(object: &Value) -> String {
    let Value::Object(fields) = object else { return String::new() };
    let text = |value: &Value| match value {
        Value::Number(number) => number.as_u64().map_or(number.to_string(), show::whole),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let fields: Vec<_> = fields.iter().map(|(name, v)| format!("{name} {}", text(v))).collect();
    fields.join(", ")
}
