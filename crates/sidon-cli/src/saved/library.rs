//! Saved structures of the library: their summary and their merge.
//!
//! A file does not contain its seed. Shapes, loads, error rates and a merge of cells do not
//! depend on it. Such a file is read with seed 0 and written with its own seed check. For
//! [`count::Top`](sidon::count::Top), [`count::Prefixes`](sidon::count::Prefixes),
//! [`count::FanOut`](sidon::count::FanOut) and [`zone::Subnets`](sidon::zone::Subnets), which need
//! the seed, the summary counts entries at most, and there is no merge.

use crate::show;
use serde_json::{Value, json};
use sidon::{
    Malformed, Refused, Seed,
    count::{Distinct, FanOut, Layout, Min, Periods, Prefixes, Top},
    decide::Suspects,
    internals::Kind,
    saved::{Parts, Save},
    set::{
        self, Backyard, Bh, Blocked, Bloom, Counting, DLeft, Elastic, Multilayer, Set, Variable,
    },
    state::{Direct, Fingerprint, Stateful},
    zone::{Adaptive, Any, Filter, Hosts, Sketch, Subnets},
};

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

/// The structure, read with seed 0.
fn read<S: Save>(parts: &Parts<'_>) -> Result<S, Malformed> {
    S::from_bytes(&without_seed(parts), Seed(0))
}

/// The summary of parsed bytes.
pub(super) fn summary(parts: &Parts<'_>, bytes: usize) -> Result<Summary, Malformed> {
    let kind = Kind::of(parts.kind);
    if kind.is_some_and(|kind| kind.fields.len() != parts.fields.len()) {
        return Err(Malformed::Field { name: "fields" });
    }
    let unknown = || format!("a structure of unknown kind {}", parts.kind);
    let name = kind.map_or_else(unknown, |kind| kind.name.to_owned());
    let field = |(i, &value): (usize, &u64)| match kind {
        Some(kind) => (kind.fields[i].to_owned(), value),
        None => (format!("field {i}"), value),
    };
    let fields = parts.fields.iter().enumerate().map(field).collect();
    let facts = match Saved::of(parts.kind) {
        Some(saved) => (saved.facts)(parts)?,
        None => Vec::new(),
    };
    Ok(Summary { name, seed_check: parts.seed_check, bytes, fields, facts })
}

type Facts = Vec<(&'static str, Fact)>;
/// Reads a structure and returns facts about it.
type ReadFacts = dyn Fn(&Parts<'_>) -> Result<Facts, Malformed>;
/// Merges structures of one kind and seed, read with seed 0.
type MergeAll = dyn Fn(&[Parts<'_>]) -> Result<Vec<u8>, Apart>;

/// What the commands do with a saved structure of one kind.
struct Saved {
    facts: Box<ReadFacts>,
    /// `None` for kinds that can be merged only with their seed and type of keys.
    merge: Option<Box<MergeAll>>,
}

impl Saved {
    /// The operations of a kind. `None` for kinds without a structure of the library.
    fn of(kind: u16) -> Option<Self> {
        Some(match kind {
            Bloom::KIND => Self::new(set, Bloom::merge),
            Blocked::KIND => Self::new(set, Blocked::merge),
            Counting::KIND => Self::new(set, Counting::merge),
            DLeft::KIND => Self::new(set, DLeft::merge),
            Backyard::KIND => Self::new(set, Backyard::merge),
            Elastic::KIND => Self::new(set, Elastic::merge),
            Variable::KIND => Self::new(set, Variable::merge),
            Bh::KIND => Self::new(set, Bh::merge),
            Multilayer::KIND => Self::new(set, Multilayer::merge),
            Filter::<Any>::KIND => Self::new(filter, Filter::<Any>::merge),
            Sketch::<Any>::KIND => Self::new(sketch, Sketch::<Any>::merge),
            Adaptive::KIND => Self::new(|one| exact("members", one.len()), Adaptive::merge),
            Hosts::KIND => Self::new(|one| exact("keys", one.len()), Hosts::merge),
            Min::KIND => Self::new(min, Min::merge),
            Direct::KIND => Self::new(direct, Direct::merge),
            Stateful::KIND => Self::new(stateful, Stateful::merge),
            Fingerprint::KIND => Self::new(fingerprint, Fingerprint::merge),
            Distinct::KIND => Self::new(distinct, Distinct::merge),
            FanOut::<u8>::KIND => {
                Saved { facts: Box::new(|parts| entries(parts, FAN_OUT_TAGS)), merge: None }
            }
            Top::<u8>::KIND => Saved { facts: Box::new(top), merge: None },
            Prefixes::<1>::KIND => Saved { facts: Box::new(prefixes), merge: None },
            Suspects::<u8>::KIND | Periods::<u8>::KIND => {
                Saved { facts: Box::new(|parts| entries(parts, 0)), merge: None }
            }
            Subnets::KIND => Saved { facts: Box::new(|_| Ok(Vec::new())), merge: None },
            _ => return None,
        })
    }

    fn new<S: Save + 'static>(
        facts: fn(&S) -> Facts,
        merge: fn(&mut S, &S) -> Result<(), Refused>,
    ) -> Self {
        Saved {
            facts: Box::new(move |parts| Ok(facts(&read(parts)?))),
            merge: Some(Box::new(move |all| {
                let mut sum: Option<S> = None;
                for parts in all {
                    let next = read(parts).map_err(Apart::Malformed)?;
                    match &mut sum {
                        None => sum = Some(next),
                        Some(sum) => merge(sum, &next).map_err(Apart::Refused)?,
                    }
                }
                Ok(sum.map_or_else(Vec::new, |sum| sum.to_bytes()))
            })),
        }
    }
}

fn set<B: set::Filter>(one: &Set<B>) -> Facts {
    vec![
        ("keys", Fact::Number(one.len())),
        ("cells in use", Fact::Share(one.stats().load)),
        ("false-positive rate", Fact::Share(one.certainty().error())),
    ]
}

fn exact(what: &'static str, number: u64) -> Facts {
    vec![(what, Fact::Number(number)), ("answers", Fact::Text("exact".to_owned()))]
}

fn filter(one: &Filter<Any>) -> Facts {
    let outside = || Fact::Text("more than the zone allows".to_owned());
    vec![
        ("members", one.len().map_or_else(outside, Fact::Number)),
        ("false-positive rate", Fact::Share(one.certainty().error())),
    ]
}

fn sketch(one: &Sketch<Any>) -> Facts {
    let counts = if one.len().is_some() { "exact" } else { "upper bounds" };
    let mut facts = vec![("counts", Fact::Text(counts.to_owned()))];
    facts.extend(one.len().map(|keys| ("keys", Fact::Number(keys))));
    facts
}

fn min(one: &Min) -> Facts {
    let shape = one.shape();
    let mut facts = vec![
        ("total", Fact::Number(one.total())),
        ("cells in use", Fact::Share(one.stats().load)),
        ("at their ceiling", Fact::Number(one.stats().at_ceiling)),
    ];
    // Markov's bound, raised to the number of rows: Cormode and Muthukrishnan, 2005.
    let excess = std::f64::consts::E / shape.columns.max(1) as f64;
    let excess = (excess * one.total() as f64).ceil() as u64;
    let beyond = (-f64::from(shape.rows)).exp();
    if one.stats().at_ceiling == 0 && shape.layout == Layout::Rows {
        facts.push(("a count is too high by at most", Fact::Number(excess)));
        facts.push(("except for a share of keys of", Fact::Share(beyond)));
    }
    facts
}

fn distinct(one: &Distinct) -> Facts {
    vec![("distinct keys", Fact::Text(one.count().to_string()))]
}

fn direct(one: &Direct) -> Facts {
    vec![
        ("cells in use", Fact::Share(one.stats().load)),
        ("false-positive rate of a pair of flow and state", Fact::Share(one.pair_rate())),
    ]
}

fn stateful(one: &Stateful) -> Facts {
    vec![
        ("cells in use", Fact::Share(one.stats().load)),
        ("cells with an unknown state", Fact::Number(one.stats().unknown)),
    ]
}

fn fingerprint(one: &Fingerprint) -> Facts {
    vec![
        ("flows", Fact::Number(one.len())),
        ("cells in use", Fact::Share(one.stats().load)),
        ("cells with an unknown state", Fact::Number(one.stats().unknown)),
        ("false-positive rate", Fact::Share(one.certainty().error())),
    ]
}

/// The number of entries of a `Top`, which does not depend on the type of its keys.
fn top(parts: &Parts<'_>) -> Result<Facts, Malformed> {
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

/// The numbers of entries of a `Prefixes`, which do not depend on the number of its amounts.
fn prefixes(parts: &Parts<'_>) -> Result<Facts, Malformed> {
    const TAGS: u64 = 16;
    let wrong = || Malformed::Field { name: "buckets" };
    let Some(levels) = parts.fields.get(1..6) else { return Ok(Vec::new()) };
    let all = levels.iter().fold(0u64, |all, &buckets| all.saturating_add(buckets));
    let payload = parts.payload.len() as u64;
    let whole =
        Some(all).filter(|&all| all > 0 && payload.is_multiple_of(all)).ok_or_else(wrong)?;
    let bucket = Some(payload / whole).filter(|&bucket| bucket >= TAGS).ok_or_else(wrong)?;
    let mut entries = parts
        .payload
        .chunks_exact(bucket as usize)
        .map(|one| one[..TAGS as usize].chunks(2).filter(|tag| **tag != [0, 0]).count() as u64);
    let names = ["addresses", "/24 and /64", "/20 and /56", "/16 and /48", "/8 and /32"];
    let facts = names.into_iter().zip(levels).map(|(name, &buckets)| {
        let taken: u64 = entries.by_ref().take(buckets as usize).sum();
        let all = show::whole(buckets.saturating_mul(8));
        (name, Fact::Text(format!("{} of {all} entries", show::whole(taken))))
    });
    Ok(facts.collect())
}

/// The byte of a bucket of `FanOut` at which its tags begin, after the epoch.
const FAN_OUT_TAGS: usize = 8;

/// The number of entries of tables whose buckets have eight tags from byte `at` on. It does not
/// depend on the keys.
fn entries(parts: &Parts<'_>, at: usize) -> Result<Facts, Malformed> {
    let buckets = parts.fields.get(1).copied().unwrap_or(0);
    let bytes = (parts.payload.len() as u64).checked_div(buckets).unwrap_or(0) as usize;
    if bytes < at + 16 {
        return Err(Malformed::Field { name: "buckets" });
    }
    let tags = parts.payload.chunks_exact(bytes).flat_map(|bucket| bucket[at..at + 16].chunks(2));
    let taken = tags.filter(|tag| **tag != [0, 0]).count() as u64;
    Ok(vec![
        ("keys with an entry", Fact::Number(taken)),
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
    let Some(first) = all.first() else { return Ok(Vec::new()) };
    for other in all {
        let field = match () {
            () if other.kind != first.kind => "kinds",
            () if other.seed_check != first.seed_check => "seed",
            () => continue,
        };
        return Err(Apart::Refused(Refused::Mismatch { field }));
    }
    let Some(merge) = Saved::of(first.kind).and_then(|saved| saved.merge) else {
        let name = Kind::of(first.kind).map(|kind| kind.name);
        return Err(Apart::Kind(name.unwrap_or("structure of an unknown kind")));
    };
    let image = merge(all)?;
    // The bytes have the check value of seed 0: restore the check value of the files.
    match Parts::of(&image) {
        Ok(parts) => Ok(Parts { seed_check: first.seed_check, ..parts }.to_bytes()),
        Err(why) => Err(Apart::Malformed(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_structure_of_the_library_has_operations() {
        for kind in Kind::ALL {
            assert_eq!(Saved::of(kind.number).is_some(), kind.name.contains("::"), "{}", kind.name);
        }
    }
}
