//! `sidon plan member`: sets.

use super::{
    explain::member_rate,
    worth::{Worth, excess, member_floor},
};
use crate::{
    args::{
        number::{decimal, whole},
        refusal,
    },
    audit::{self, Found},
    show,
};
use serde_json::{Value, json};
use sidon::{
    Infeasible,
    plan::{self, SetRow, SetShape, Target},
    set::{Moves, Overflow, Spread},
};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Most keys that are stored at a time
    #[arg(long, value_name = "N", value_parser = whole)]
    keys: u64,
    /// False-positive rate: the share of keys never inserted that may be found, between 0 and 1
    #[arg(long, value_name = "P", value_parser = decimal)]
    fpr: f64,
    /// List only structures of this name: bloom, blocked, counting, variable, bh, multilayer, dleft,
    /// backyard, elastic, hash_set
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Build each structure and measure it: fill it, replace its keys, then look up members and keys
    /// never inserted
    #[arg(long)]
    audit: bool,
    /// With --audit: how many times all keys are replaced by new ones
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole, requires = "audit")]
    turnovers: u64,
    /// With --audit: seed of the hash functions and of the generated keys
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, requires = "audit")]
    seed: u64,
    /// Write JSON: {"rows": [{"structure", "bits_per_key", "bytes", "fpr", "deletes", "merges",
    /// "grows", "ages", "lines", "floor_bits", "excess", "shape"}]}, and with --audit "measured":
    /// {"fpr", "interval", "lost", "refused", "churned"}
    #[arg(long)]
    json: bool,
}

/// A set that meets the target.
pub(super) struct Row {
    bytes: u64,
    false_positives: f64,
    /// Cache lines that a lookup of a stored key reads, without the overflow table.
    pub(super) lines: u64,
    /// `None` for a plain hash set.
    pub(super) shape: Option<SetShape>,
}

impl Row {
    fn name(&self) -> &'static str {
        self.shape.map_or("hash_set", |shape| shape.name())
    }

    /// Whether keys can be removed.
    pub(super) fn deletes(&self) -> bool {
        !matches!(self.shape, Some(SetShape::Bloom(_) | SetShape::Blocked(_)))
    }

    /// A plain hash set of 64-bit digests: 9 bytes per slot with the control byte, a power of two of
    /// slots, at most 7 of 8 in use. A lookup reads a group of control bytes and a slot.
    fn hash_set(keys: u64) -> Self {
        let slots = (keys.div_ceil(7) * 8).next_power_of_two();
        let false_positives = keys as f64 / 2f64.powi(64);
        Row { bytes: slots * HASH_SLOT, false_positives, lines: 2, shape: None }
    }
}

impl From<SetRow> for Row {
    fn from(row: SetRow) -> Self {
        let SetRow { bytes, false_positives, lines, shape } = row;
        Row { bytes, false_positives, lines, shape: Some(shape) }
    }
}

/// Bytes of a slot of a plain hash set.
const HASH_SLOT: u64 = 9;

/// The rows of the plan, or an error that names the option to change.
fn rows(args: &Args) -> anyhow::Result<Vec<Row>> {
    let rows = plan::sets(Target::new(args.keys, args.fpr)).map_err(|why| {
        // Digests of 64 bits distinguish fewer keys at a lower rate.
        let fewer = args.fpr * 2f64.powi(64) / 16.0;
        let digests = matches!(
            why,
            Infeasible::Rate { name: "false_positives", got, least, .. }
                if got > 0.0 && got < least && least > 1e-12 && fewer >= 1.0
        );
        let why = refusal(why, |name| match name {
            "keys" => Some("--keys"),
            "false_positives" => Some("--fpr"),
            _ => None,
        });
        if digests {
            anyhow::anyhow!("{why}; or type --keys {} or less", fewer as u64)
        } else {
            why
        }
    })?;
    let mut rows: Vec<Row> = rows.into_iter().map(Row::from).collect();
    rows.push(Row::hash_set(args.keys));
    rows.sort_by_key(|row| row.bytes);
    if let Some(only) = &args.only {
        rows.retain(|row| row.name() == only);
        anyhow::ensure!(
            !rows.is_empty(),
            "--only {only}: no structure of this name meets the target; without --only, the plan \
             lists those that do"
        );
    }
    Ok(rows)
}

pub(super) fn explain(args: &Args) -> anyhow::Result<Vec<String>> {
    let floor = member_floor(args.fpr);
    let mut lines =
        vec![format!("floor = log2(1/p) = log2(1/{}) = {floor:.3} bits per key", args.fpr)];
    for row in rows(args)? {
        let bits = row.bytes as f64 * 8.0 / args.keys as f64;
        lines.push(format!(
            "\n{}: {}\n{}\n  memory = {} bytes, {bits:.2} bits per key, {} over the floor",
            row.name(),
            super::shape_text(&shape_json(row.shape, row.bytes)),
            member_rate(row.shape, args.keys, row.false_positives),
            show::whole(row.bytes),
            excess(bits, floor),
        ));
    }
    Ok(lines)
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let (rows, floor) = (rows(args)?, member_floor(args.fpr));
    let measured = if args.audit { measure(args, &rows)? } else { vec![None; rows.len()] };
    let bits_per_key = |bytes: u64| bytes as f64 * 8.0 / args.keys as f64;
    if args.json {
        let rows = rows.iter().zip(&measured).map(|(row, measured)| {
            let mut json = json!({
                "structure": row.name(),
                "bits_per_key": bits_per_key(row.bytes),
                "bytes": row.bytes,
                "fpr": row.false_positives,
                "shape": shape_json(row.shape, row.bytes),
            });
            Worth::of_member(row).add_to(&mut json, bits_per_key(row.bytes), floor);
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
    let mut head = vec!["structure", "bits/key", "over floor", "memory", "false positives"];
    if args.audit {
        head.extend(["measured", "lost", "refused", "churned"]);
    }
    head.extend(Worth::HEAD);
    head.push("shape");
    let lines = rows.iter().zip(&measured).map(|(row, measured)| {
        let mut line = vec![
            row.name().to_owned(),
            format!("{:.2}", bits_per_key(row.bytes)),
            excess(bits_per_key(row.bytes), floor),
            show::bytes(row.bytes),
            show::rate(row.false_positives),
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
        line.extend(Worth::of_member(row).cells());
        line.push(super::shape_text(&shape_json(row.shape, row.bytes)));
        line
    });
    show::print(&show::table(&head, lines))?;
    show::print(&show::folded(&format!(
        "\nThe floor: no set with this false-positive rate takes less than {floor:.2} bits per key. \
         All rows can be merged."
    )))?;
    let filter = rows.iter().find(|row| row.deletes());
    if filter.is_some_and(|row| row.shape.is_none()) {
        show::print("\nA plain hash set is the smallest here that can remove keys: take that.")?;
    }
    Ok(())
}

/// Builds and measures each row; `None` for the hash set, which is not built.
fn measure(args: &Args, rows: &[Row]) -> anyhow::Result<Vec<Option<Found>>> {
    let of = |row: &Row| audit::steps(args.keys, args.turnovers, row.false_positives);
    let bar = show::progress(rows.iter().map(of).sum());
    let mut all = Vec::new();
    for row in rows {
        bar.set_message(format!("measuring {}", row.name()));
        let rate = row.false_positives;
        let measured = match row.shape {
            Some(shape) => audit::audit(shape, args.keys, rate, args.turnovers, args.seed, &bar)?,
            None => None,
        };
        all.push(measured);
    }
    bar.finish_and_clear();
    Ok(all)
}

/// The integers of a shape, or the slots of a plain hash set of `bytes` bytes.
fn shape_json(shape: Option<SetShape>, bytes: u64) -> Value {
    let Some(shape) = shape else { return json!({ "slots": bytes / HASH_SLOT }) };
    match shape {
        SetShape::Bloom(shape) => json!({ "bits": shape.bits, "hashes": shape.hashes }),
        SetShape::Blocked(shape) => json!({ "lines": shape.lines, "hashes": shape.hashes }),
        SetShape::Counting(shape) => json!({
            "counters": shape.counters,
            "hashes": shape.hashes,
            "width": shape.width,
            "lines": lines(shape.spread),
            "overflow": overflow(shape.overflow),
        }),
        SetShape::Variable(shape) => json!({
            "counters": shape.counters,
            "hashes": shape.hashes,
            "width": shape.width,
            "increments": shape.increments.to_string(),
            "lines": lines(shape.spread),
            "overflow": overflow(shape.overflow),
        }),
        SetShape::Bh(shape) => json!({
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
        SetShape::Multilayer(shape) => json!({
            "counters": shape.counters,
            "hashes": shape.hashes,
            "first": shape.first,
            "rest": further(&shape.rest),
            "buckets": further(&shape.buckets),
            "increments": shape.increments.to_string(),
            "lines": lines(shape.spread),
            "overflow": overflow(shape.overflow),
        }),
        SetShape::DLeft(shape) => json!({
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
        SetShape::Backyard(shape) => json!({ "lines": shape.lines, "sharing": shape.sharing }),
        SetShape::Elastic(shape) => json!({
            "subtables": shape.subtables,
            "buckets": shape.buckets,
            "line": shape.line,
            "least": shape.least,
            "remainder": shape.remainder,
            "counter": shape.counter,
            "moves": moves(shape.moves),
            "narrows": shape.narrows,
        }),
        _ => Value::Null,
    }
}

/// The numbers of the further layers that exist.
fn further<T: Copy + Into<u64>>(layers: &[T]) -> Vec<u64> {
    layers.iter().map(|&number| number.into()).filter(|&number| number > 0).collect()
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
