//! `sidon plan member`: sets.

use crate::{
    audit::{self, Found},
    show,
};
use serde_json::{Value, json};
use sidon::{
    member::{Moves, Overflow, Spread},
    plan::{self, Shape, Target},
};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How many keys are stored at a time, at the most
    #[arg(long, value_name = "N", value_parser = super::whole)]
    keys: u64,
    /// The share of strangers that may pass, between 0 and 1
    #[arg(long, value_name = "P")]
    fpr: f64,
    /// Only structures of this name: bloom, blocked, counting, variable, bh,
    /// multilayer, dleft, hash_set
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

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
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
        line.push(super::shape_text(&shape_json(&row.shape)));
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
fn measure(args: &Args, rows: &[plan::Member]) -> anyhow::Result<Vec<Option<Found>>> {
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
            "lines": lines(shape.spread),
            "overflow": overflow(shape.overflow),
        }),
        Shape::Variable(shape) => json!({
            "counters": shape.counters,
            "hashes": shape.hashes,
            "width": shape.width,
            "increments": shape.increments.to_string(),
            "lines": lines(shape.spread),
            "overflow": overflow(shape.overflow),
        }),
        Shape::Bh(shape) => json!({
            "cells": shape.cells,
            "hashes": shape.hashes,
            "keys_bits": shape.keys_bits,
            "sum_bits": shape.sum_bits,
            "increments": shape.increments.to_string(),
            "examined": shape.examined(),
            "centred": shape.centred,
            "lines": lines(shape.spread),
            "overflow": overflow(shape.overflow),
        }),
        Shape::Multilayer(shape) => json!({
            "counters": shape.counters,
            "hashes": shape.hashes,
            "first": shape.first,
            "rest": shape.rest,
            "buckets": shape.buckets,
            "increments": shape.increments.to_string(),
            "lines": lines(shape.spread),
            "overflow": overflow(shape.overflow),
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

fn lines(spread: Spread) -> u32 {
    match spread {
        Spread::Anywhere => 0,
        Spread::Lines(lines) => lines,
    }
}

fn overflow(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::Refuse => "refuse",
        Overflow::Pin => "pin",
    }
}

pub(super) fn moves(moves: Moves) -> String {
    match moves {
        Moves::Never => "never".to_owned(),
        Moves::First => "first".to_owned(),
        Moves::Search(limit) => format!("search {limit}"),
    }
}
