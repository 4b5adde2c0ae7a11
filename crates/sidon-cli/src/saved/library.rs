//! Saved structures of the library: their summary and their merge.
//!
//! A file does not contain its seed. Shapes, loads, error rates and a merge of cells do not
//! depend on it. Such a file is read with seed 0 and written with its own seed check. For
//! [`count::Top`](sidon::count::Top) and [`zone::Subnets`](sidon::zone::Subnets), which need the seed,
//! the summary has the header only.

use crate::show;
use serde_json::{Value, json};
use sidon::{
    Malformed, Refused, Seed,
    bytes::{Image, Parts},
    count::{Layout, Min},
    member::{Backyard, Bh, Blocked, Bloom, Counting, DLeft, Multilayer, Variable},
    state::{Direct, Fingerprint, Stateful},
    zone::{Adaptive, Any, Filter, Hosts, Sketch},
};

const MOVES: [&str; 2] = ["moves", "search limit"];

/// The name of a kind, and the names of its fields.
fn kind(kind: u16) -> Option<(&'static str, Vec<&'static str>)> {
    let code = ["family", "universe", "order", "digits", "groups", "infinity"];
    let left = ["subtables", "buckets", "cells", "width", "remainder"];
    Some(match kind {
        1 => ("member::Bloom", vec!["bits", "hashes", "inserted"]),
        2 => ("member::Blocked", vec!["lines", "hashes", "inserted"]),
        3 => {
            ("member::Counting", vec!["counters", "hashes", "width", "overflow", "lines", "stored"])
        }
        4 => ("member::DLeft", [&left[..], &["counter"], &MOVES, &["growths", "grows"]].concat()),
        5 => (
            "member::Variable",
            vec![
                "counters",
                "hashes",
                "width",
                "increments low",
                "increments high",
                "overflow",
                "lines",
                "stored",
            ],
        ),
        6 => (
            "member::Bh",
            vec![
                "cells",
                "hashes",
                "keys bits",
                "sum bits",
                "increments low",
                "increments high",
                "decode",
                "centred",
                "overflow",
                "lines",
                "stored",
            ],
        ),
        7 => (
            "member::Multilayer",
            vec![
                "counters",
                "hashes",
                "first",
                "rest",
                "buckets",
                "increments low",
                "increments high",
                "overflow",
                "lines",
                "stored",
            ],
        ),
        8 => ("zone::Filter", [&code[..], &["columns"]].concat()),
        9 => ("zone::Sketch", [&code[..], &["width", "known", "number"]].concat()),
        10 => ("zone::Adaptive", vec!["universe", "way", "members"]),
        11 => (
            "count::Min",
            vec!["rows", "columns", "width", "update", "layout", "total", "floor", "rounding"],
        ),
        12 => (
            "count::Top",
            vec![
                "key bytes",
                "amounts",
                "buckets",
                "rows",
                "columns",
                "total 1",
                "total 2",
                "total 3",
                "total 4",
            ],
        ),
        13 => {
            ("state::Direct", vec!["cells", "hashes", "states", "counter", "timed", "clock hand"])
        }
        14 => (
            "state::Stateful",
            vec!["cells", "hashes", "states", "keeping", "counter", "clock hand"],
        ),
        15 => (
            "state::Fingerprint",
            [
                &left[..],
                &["states", "shared", "independent"],
                &MOVES,
                &["reinsert", "stash", "growths", "grows", "clock hand"],
            ]
            .concat(),
        ),
        16 => ("zone::Subnets", vec!["subnet bits", "slots", "bitmaps", "subnets", "promoted"]),
        17 => ("addresses", vec!["slots", "stored"]),
        19 => ("member::Backyard", vec!["lines", "sharing"]),
        20 => ("zone::Hosts", vec!["universe", "table", "active"]),
        21 => ("checkpoint of an engine", Vec::new()),
        _ => return None,
    })
}

/// A figure or text about a structure.
enum Fact {
    Number(u64),
    Share(f64),
    Text(String),
}

/// Summary of a saved structure.
pub(super) struct Summary {
    name: String,
    seed_check: u64,
    bytes: usize,
    fields: Vec<(String, u64)>,
    facts: Vec<(&'static str, Fact)>,
}

/// The saved bytes with the check value of seed 0.
fn without_seed(parts: &Parts<'_>) -> Vec<u8> {
    Parts { seed_check: Seed(0).check_value(), ..parts.clone() }.to_bytes()
}

/// The summary of parsed bytes.
pub(super) fn summary(parts: &Parts<'_>, bytes: usize) -> Result<Summary, Malformed> {
    let (name, names) = match kind(parts.kind) {
        Some((name, names)) => (name.to_owned(), names),
        None => (format!("a structure of unknown kind {}", parts.kind), Vec::new()),
    };
    if !names.is_empty() && names.len() != parts.fields.len() {
        return Err(Malformed::Field { name: "fields" });
    }
    let field = |(i, &value): (usize, &u64)| {
        let name = names.get(i).map_or_else(|| format!("field {i}"), |name| (*name).to_owned());
        (name, value)
    };
    let fields = parts.fields.iter().enumerate().map(field).collect();
    let facts = facts(parts)?;
    Ok(Summary { name, seed_check: parts.seed_check, bytes, fields, facts })
}

fn facts(parts: &Parts<'_>) -> Result<Vec<(&'static str, Fact)>, Malformed> {
    fn read<S: Image>(parts: &Parts<'_>) -> Result<S, Malformed> {
        S::from_bytes(&without_seed(parts), Seed(0))
    }
    fn set(keys: u64, fill: f64, error: f64) -> Vec<(&'static str, Fact)> {
        let error = ("false-positive rate", Fact::Share(error));
        vec![("keys", Fact::Number(keys)), ("cells in use", Fact::Share(fill)), error]
    }
    Ok(match parts.kind {
        Bloom::KIND => {
            let one = read::<Bloom>(parts)?;
            set(one.len(), one.load(), one.certainty().error())
        }
        Blocked::KIND => {
            let one = read::<Blocked>(parts)?;
            set(one.len(), one.load(), one.certainty().error())
        }
        Counting::KIND => {
            let one = read::<Counting>(parts)?;
            set(one.len(), one.load(), one.certainty().error())
        }
        DLeft::KIND => {
            let one = read::<DLeft>(parts)?;
            set(one.len(), one.load(), one.certainty().error())
        }
        Backyard::KIND => {
            let one = read::<Backyard>(parts)?;
            set(one.len(), one.load(), one.certainty().error())
        }
        Variable::KIND => {
            let one = read::<Variable>(parts)?;
            set(one.len(), one.load(), one.certainty().error())
        }
        Bh::KIND => {
            let one = read::<Bh>(parts)?;
            set(one.len(), one.load(), one.certainty().error())
        }
        Multilayer::KIND => {
            let one = read::<Multilayer>(parts)?;
            set(one.len(), one.load(), one.certainty().error())
        }
        Filter::<Any>::KIND => {
            let one = read::<Filter<Any>>(parts)?;
            let members = one
                .len()
                .map_or_else(|| Fact::Text("more than the zone allows".to_owned()), Fact::Number);
            let error = ("false-positive rate", one.false_positive_rate());
            vec![("members", members), (error.0, Fact::Share(error.1))]
        }
        Sketch::<Any>::KIND => {
            let one = read::<Sketch<Any>>(parts)?;
            let counts = if one.len().is_some() { "exact" } else { "upper bounds" };
            let mut facts = vec![("counts", Fact::Text(counts.to_owned()))];
            facts.extend(one.len().map(|keys| ("keys", Fact::Number(keys))));
            facts
        }
        Adaptive::KIND => {
            let one = read::<Adaptive>(parts)?;
            vec![("members", Fact::Number(one.len())), ("answers", Fact::Text("exact".to_owned()))]
        }
        Hosts::KIND => {
            let one = read::<Hosts>(parts)?;
            vec![("keys", Fact::Number(one.len())), ("answers", Fact::Text("exact".to_owned()))]
        }
        Min::KIND => {
            let one = read::<Min>(parts)?;
            let shape = one.shape();
            let mut facts = vec![
                ("total", Fact::Number(one.total())),
                ("cells in use", Fact::Share(one.load())),
                ("at their ceiling", Fact::Number(one.at_ceiling())),
            ];
            // Markov's bound, raised to the number of rows: Cormode and Muthukrishnan, 2005.
            let excess = std::f64::consts::E / shape.columns.max(1) as f64;
            let excess = (excess * one.total() as f64).ceil() as u64;
            let beyond = (-f64::from(shape.rows)).exp();
            if one.at_ceiling() == 0 && shape.layout == Layout::Rows {
                facts.push(("a count is too high by at most", Fact::Number(excess)));
                facts.push(("except for a share of keys of", Fact::Share(beyond)));
            }
            facts
        }
        12 => top(parts)?,
        Direct::KIND => {
            let one = read::<Direct>(parts)?;
            vec![
                ("cells in use", Fact::Share(one.load())),
                ("false-positive rate of a pair of flow and state", Fact::Share(one.pair_rate())),
            ]
        }
        Stateful::KIND => {
            let one = read::<Stateful>(parts)?;
            vec![
                ("cells in use", Fact::Share(one.load())),
                ("cells with an unknown state", Fact::Number(one.stats().unknown)),
            ]
        }
        Fingerprint::KIND => {
            let one = read::<Fingerprint>(parts)?;
            vec![
                ("flows", Fact::Number(one.len())),
                ("cells in use", Fact::Share(one.load())),
                ("cells with an unknown state", Fact::Number(one.stats().unknown)),
                ("false-positive rate", Fact::Share(one.certainty().error())),
            ]
        }
        _ => Vec::new(),
    })
}

/// The number of entries of a `Top`, which does not depend on the type of its keys.
fn top(parts: &Parts<'_>) -> Result<Vec<(&'static str, Fact)>, Malformed> {
    const TAGS: u64 = 16;
    let [_, amounts, buckets, rows, columns, ..] = parts.fields[..] else { return Ok(Vec::new()) };
    let wrong = || Malformed::Field { name: "buckets" };
    // The payload has the buckets, which start with tags, and then the filter, 32 bits per amount.
    let filter = amounts.checked_mul(4).and_then(|bytes| bytes.checked_mul(rows));
    let filter = filter.and_then(|row| row.checked_mul(columns));
    let all = filter.and_then(|filter| (parts.payload.len() as u64).checked_sub(filter));
    let all = all.filter(|all| buckets > 0 && all.is_multiple_of(buckets)).ok_or_else(wrong)?;
    let bucket = Some(all / buckets).filter(|&bucket| bucket >= TAGS).ok_or_else(wrong)?;
    let table = &parts.payload[..all as usize];
    let tags = table.chunks_exact(bucket as usize).flat_map(|one| one[..TAGS as usize].chunks(2));
    let entries = tags.filter(|tag| **tag != [0, 0]).count() as u64;
    Ok(vec![
        ("keys with an entry", Fact::Number(entries)),
        ("entries", Fact::Number(buckets.saturating_mul(8))),
    ])
}

impl Summary {
    /// The summary as lines of text.
    pub(super) fn text(&self, path: &str) -> String {
        let mut lines = vec![format!("{path}: {}, {}", self.name, show::bytes(self.bytes as u64))];
        let fields: Vec<_> =
            self.fields.iter().map(|(name, value)| format!("{name} {value}")).collect();
        lines.push(format!("  shape and statistics: {}", fields.join(", ")));
        for (name, fact) in &self.facts {
            let fact = match fact {
                Fact::Number(number) => show::whole(*number),
                Fact::Share(share) => show::rate(*share),
                Fact::Text(text) => text.clone(),
            };
            lines.push(format!("  {name}: {fact}"));
        }
        lines.push(if self.seed_check == Seed(0).check_value() {
            "  no seed: this structure does not hash".to_owned()
        } else {
            format!("  seed check: {:016x}; the seed is not in the file", self.seed_check)
        });
        show::folded(&lines.join("\n"))
    }

    /// The summary as one object.
    pub(super) fn json(&self) -> Value {
        let fields = self.fields.iter().map(|(name, value)| (name.clone(), Value::from(*value)));
        let facts = self.facts.iter().map(|(name, fact)| {
            let fact = match fact {
                Fact::Number(number) => Value::from(*number),
                Fact::Share(share) => Value::from(*share),
                Fact::Text(text) => Value::from(text.clone()),
            };
            ((*name).to_owned(), fact)
        });
        json!({
            "structure": self.name,
            "bytes": self.bytes,
            "seed_check": format!("{:016x}", self.seed_check),
            "fields": fields.collect::<Value>(),
            "facts": facts.collect::<Value>(),
        })
    }
}

/// Why structures cannot be merged.
pub(super) enum Apart {
    /// One of them is damaged.
    Malformed(Malformed),
    /// The last one cannot be merged with those before it.
    Refused(Refused),
    /// Structures of this kind can be merged only with their seed and type of keys.
    Kind(&'static str),
}

/// Merges structures of one kind and seed, and returns the saved bytes.
pub(super) fn merge(all: &[Parts<'_>]) -> Result<Vec<u8>, Apart> {
    fn one<S: Image>(
        all: &[Parts<'_>],
        merge: fn(&mut S, &S) -> Result<(), Refused>,
    ) -> Result<Vec<u8>, Apart> {
        let mut sum: Option<S> = None;
        for parts in all {
            let next = S::from_bytes(&without_seed(parts), Seed(0)).map_err(Apart::Malformed)?;
            match &mut sum {
                None => sum = Some(next),
                Some(sum) => merge(sum, &next).map_err(Apart::Refused)?,
            }
        }
        Ok(sum.map_or_else(Vec::new, |sum| sum.to_bytes()))
    }
    let Some(first) = all.first() else { return Ok(Vec::new()) };
    for other in all {
        let field = match () {
            () if other.kind != first.kind => "kinds",
            () if other.seed_check != first.seed_check => "seed",
            () => continue,
        };
        return Err(Apart::Refused(Refused::Mismatch { field }));
    }
    let image = match first.kind {
        Bloom::KIND => one(all, Bloom::merge),
        Blocked::KIND => one(all, Blocked::merge),
        Counting::KIND => one(all, Counting::merge),
        DLeft::KIND => one(all, DLeft::merge),
        Backyard::KIND => one(all, Backyard::merge),
        Variable::KIND => one(all, Variable::merge),
        Bh::KIND => one(all, Bh::merge),
        Multilayer::KIND => one(all, Multilayer::merge),
        Filter::<Any>::KIND => one(all, Filter::<Any>::merge),
        Sketch::<Any>::KIND => one(all, Sketch::<Any>::merge),
        Adaptive::KIND => one(all, Adaptive::merge),
        Hosts::KIND => one(all, Hosts::merge),
        Min::KIND => one(all, Min::merge),
        Direct::KIND => one(all, Direct::merge),
        Stateful::KIND => one(all, Stateful::merge),
        Fingerprint::KIND => one(all, Fingerprint::merge),
        other => {
            Err(Apart::Kind(kind(other).map_or("structure of an unknown kind", |(name, _)| name)))
        }
    }?;
    // The bytes have the check value of seed 0: restore the check value of the files.
    match Parts::of(&image) {
        Ok(parts) => Ok(Parts { seed_check: first.seed_check, ..parts }.to_bytes()),
        Err(why) => Err(Apart::Malformed(why)),
    }
}
