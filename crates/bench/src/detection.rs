//! Tests of failures and tables of regular contact: one operation per packet of an attack.
//!
//! `decide_failures` and `decide_walk` test 4,096 subjects in turn, ours and Threshold Random Walk with one attack
//! rate. `suspects` and `periods` are tables of 100,000 keys; `hash_map` holds the levels of `suspects` in the
//! standard library's map.

use crate::{
    clock::ns_each,
    filter::{SEED, Tuple},
    report::{Row, Size},
    stats::Summary,
};
use anyhow::Result;
use sidon::{
    count::Periods,
    decide::{Failures, Suspects, Test},
    plan,
};
use sidon_kit::{FiveTuples, Rng};
use std::{
    collections::{BTreeMap, HashMap},
    hint::black_box,
};

pub(crate) const NAMES: [&str; 5] =
    ["decide_failures", "decide_walk", "suspects", "hash_map_of_tests", "periods"];

/// Subjects that are tested in turn, and trials per round.
const SUBJECTS: usize = 4_096;
const TRIALS: usize = 1 << 21;
/// Keys of a table.
const KEYS: usize = 100_000;

pub(crate) fn run(rounds: usize, wanted: impl Fn(&str) -> bool) -> Result<Vec<Row>> {
    let mut rng = Rng::seeded(5);
    let trials: Vec<bool> = (0..TRIALS).map(|_| rng.chance(0.05)).collect();
    let keys: Vec<Tuple> = FiveTuples::seeded(80).take(KEYS).collect();
    let order: Vec<u32> = (0..TRIALS).map(|_| rng.below(KEYS as u64) as u32).collect();
    let test = plan::decide::shape(0.05, 1 << 40)?;
    let rule = Failures::new(test)?;

    let mut tests = vec![Test::default(); SUBJECTS];
    let mut walks = vec![0.0f64; SUBJECTS];
    let mut suspects: Suspects<Tuple> =
        Suspects::new(plan::decide::suspects(KEYS as u64, test)?, SEED)?;
    let mut map: HashMap<Tuple, Test> = HashMap::with_capacity(KEYS);
    let mut periods: Periods<Tuple> = Periods::new(plan::periods::shape(KEYS as u64)?, SEED)?;
    let [walk_failed, walk_passed] = [5.0f64.ln(), (0.75f64 / 0.95).ln()];
    let mut times: [Vec<f64>; NAMES.len()] = Default::default();
    for round in 0..rounds as u64 {
        eprintln!("detection: round {} of {rounds}", round + 1);
        times[0].push(ns_each(TRIALS, || {
            for (i, &failed) in trials.iter().enumerate() {
                let test = &mut tests[i % SUBJECTS];
                rule.see(test, failed);
                black_box(rule.accuses(test));
            }
        }));
        times[1].push(ns_each(TRIALS, || {
            for (i, &failed) in trials.iter().enumerate() {
                let walk = &mut walks[i % SUBJECTS];
                *walk += if failed { walk_failed } else { walk_passed };
                *walk = if *walk < -4.6 { 0.0 } else { *walk };
                black_box(*walk > 27.0);
            }
        }));
        times[2].push(ns_each(TRIALS, || {
            for (&key, &failed) in order.iter().zip(&trials) {
                black_box(suspects.see(&keys[key as usize], failed));
            }
        }));
        times[3].push(ns_each(TRIALS, || {
            for (&key, &failed) in order.iter().zip(&trials) {
                let test = map.entry(keys[key as usize]).or_default();
                rule.see(test, failed);
                black_box(rule.accuses(test));
            }
        }));
        times[4].push(ns_each(TRIALS, || {
            for (i, &key) in order.iter().enumerate() {
                let now = (round * TRIALS as u64 + i as u64) * 100_000_000;
                black_box(periods.see(&keys[key as usize], now));
            }
        }));
    }
    let bytes = [
        size_of::<Test>() * SUBJECTS,
        size_of::<f64>() * SUBJECTS,
        suspects.memory_bytes() as usize,
        map.capacity() * (size_of::<(Tuple, Test)>() + 1),
        periods.memory_bytes() as usize,
    ];
    let rows = NAMES.iter().zip(times).zip(bytes).filter(|((name, _), _)| wanted(name));
    Ok(rows
        .map(|((name, times), bytes)| Row {
            section: "detection",
            structure: (*name).to_owned(),
            ours: !["decide_walk", "hash_map_of_tests"].contains(name),
            removes: false,
            op: "see",
            size: Size::Bytes(bytes as u64),
            ns: Summary::of(&times),
            bits_per_key: None,
            fpr: None,
            lost: None,
            overestimate: None,
            ratio: BTreeMap::new(),
        })
        .collect())
}
