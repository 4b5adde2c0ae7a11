//! The heaviest of fifty million packets, and whether the table told the truth about them.
//!
//! Flows by Zipf's law with exponent 1, in random order. Every claim of the ranking is compared with
//! exact counts of all flows: a bound that does not hold, an exact count that is not exact, or a
//! heavy flow that is missing though the ranking says that it cannot be, counts as lost.

use crate::{
    clock::ns_each,
    filter::{CHUNK, SEED, Tuple},
    report::{Row, Size},
    stats::Summary,
};
use anyhow::Result;
use sidon::{
    count::{Ranking, Top},
    plan,
};
use sidon_kit::{FiveTuples, Rng, Zipf};
use std::collections::{BTreeMap, HashSet};

/// A stream and a table for it.
struct Case {
    name: &'static str,
    flows: usize,
    bytes: u64,
    listed: usize,
}

const CASES: [Case; 2] = [
    Case { name: "top_100_of_5M", flows: 5_000_000, bytes: 1 << 20, listed: 100 },
    Case { name: "top_20_of_10M", flows: 10_000_000, bytes: 16 << 20, listed: 20 },
];
const PACKETS: usize = 50_000_000;
/// Packets generated, then added, at a time: generating is not timed.
const BLOCK: usize = 1 << 16;

pub(crate) fn run(quick: bool, notes: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for case in &CASES {
        let scale = if quick { 10 } else { 1 };
        rows.push(one(case, case.flows / scale, PACKETS / scale, notes)?);
    }
    Ok(rows)
}

fn one(case: &Case, flows: usize, packets: usize, notes: &mut Vec<String>) -> Result<Row> {
    eprintln!("top: {} packets of {flows} flows in {} KiB", packets, case.bytes >> 10);
    let names: Vec<Tuple> = FiveTuples::seeded(70).take(flows).collect();
    let law = Zipf::new(flows as u64, 1.0);
    let mut rng = Rng::seeded(71);
    let shape = plan::top::shape(case.bytes, size_of::<Tuple>(), 1)?;
    let mut table = Top::<Tuple>::new(shape, SEED)?;
    let mut truth = vec![0u64; flows];
    let (mut keys, mut times) = (Vec::with_capacity(BLOCK), Vec::new());
    let ones = [[1]; CHUNK];
    let mut left = packets;
    while left > 0 {
        keys.clear();
        for _ in 0..BLOCK.min(left) {
            let flow = law.draw(&mut rng) as usize - 1;
            truth[flow] += 1;
            keys.push(names[flow]);
        }
        left -= keys.len();
        times.push(ns_each(keys.len(), || {
            for keys in keys.chunks(CHUNK) {
                table.add_batch(keys, &ones[..keys.len()]);
            }
        }));
    }
    let ranking = table.heaviest(case.listed);
    let (lost, too_high) = check(&table, &ranking, &names, &truth);
    let exact = ranking.entries.iter().filter(|entry| entry.amounts[0].is_exact()).count();
    let true_top = true_top(&truth, case.listed);
    let listed: HashSet<Tuple> = ranking.entries.iter().map(|entry| entry.key).collect();
    let found = true_top.iter().filter(|&&flow| listed.contains(&names[flow])).count();
    notes.push(format!(
        "{}: {} of the true top {} listed; {} certain to be complete, {} leading, {} exact; others \
         have {} at most; {} entries, shape {shape:?}",
        case.name,
        found,
        case.listed,
        ranking.complete,
        ranking.leading,
        exact,
        ranking.others,
        table.len(),
    ));
    Ok(Row {
        section: "top",
        structure: case.name.to_string(),
        ours: true,
        removes: false,
        op: "add",
        size: Size::Bytes(case.bytes),
        ns: Summary::of(&times),
        bits_per_key: None,
        fpr: None,
        lost: Some(lost),
        overestimate: Some(too_high),
        ratio: BTreeMap::new(),
    })
}

/// Flows by their true counts, heaviest first.
fn true_top(truth: &[u64], count: usize) -> Vec<usize> {
    let mut flows: Vec<usize> = (0..truth.len()).collect();
    flows.sort_unstable_by_key(|&flow| std::cmp::Reverse(truth[flow]));
    flows.truncate(count);
    flows
}

/// How many claims are false, and how much the most of the listed is above the truth, on average.
fn check(
    table: &Top<Tuple>,
    ranking: &Ranking<Tuple, 1>,
    names: &[Tuple],
    truth: &[u64],
) -> (u64, f64) {
    let (mut wrong, mut above) = (0, 0);
    let listed: HashSet<Tuple> = ranking.entries.iter().map(|entry| entry.key).collect();
    for (name, &count) in names.iter().zip(truth) {
        let [bounds] = table.bounds(name);
        wrong += u64::from(count < bounds.least || count > bounds.most);
        if listed.contains(name) {
            above += bounds.most.saturating_sub(count);
        } else {
            wrong += u64::from(count > ranking.others);
        }
    }
    let among = |flows: &[usize], list: &HashSet<Tuple>| {
        flows.iter().filter(|&&flow| !list.contains(&names[flow])).count() as u64
    };
    let heaviest = true_top(truth, ranking.entries.len());
    wrong += among(&heaviest[..ranking.complete], &listed);
    let first: HashSet<Tuple> =
        ranking.entries[..ranking.leading].iter().map(|entry| entry.key).collect();
    wrong += among(&heaviest[..ranking.leading], &first);
    (wrong, above as f64 / ranking.entries.len().max(1) as f64)
}
