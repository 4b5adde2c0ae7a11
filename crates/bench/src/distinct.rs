//! Counts of distinct keys at one size in bytes: time per key, and the measured error, beside two peers.

use crate::{
    clock::ns_each,
    filter::{CHUNK, SEED},
    report::{Row, Size},
    stats::Summary,
};
use anyhow::Result;
use datasketches::hll::{HllSketch, HllType};
use exaloglog::ExaLogLog;
use sidon::{
    Key,
    count::{Distinct, distinct::Shape},
};
use std::collections::BTreeMap;

pub(crate) const NAMES: [&str; 3] = ["distinct", "exaloglog+ours", "datasketches_hll"];
/// Registers of 28 bits in 3,584 bytes, for ours and for `exaloglog`.
const PRECISION: u32 = 10;
const KEYS: u64 = 1_000_000;
/// Runs that the error is measured in.
const RUNS: u64 = 400;

pub(crate) fn run(
    quick: bool,
    wants: impl Fn(&str) -> bool,
    notes: &mut Vec<String>,
) -> Result<Vec<Row>> {
    let (keys, runs) = if quick { (KEYS / 10, RUNS / 4) } else { (KEYS, RUNS) };
    let shape = Shape { registers: 1 << PRECISION };
    let mut rows = Vec::new();
    for name in NAMES.into_iter().filter(|name| wants(name)) {
        let (mut times, mut squares, mut bytes) = (Vec::new(), 0.0, 0);
        for run in 0..runs {
            let all: Vec<u64> = (run * keys..(run + 1) * keys).collect();
            let mut about = 0.0;
            times.push(ns_each(all.len(), || match name {
                "distinct" => {
                    let Ok(mut one) = Distinct::new(shape, SEED) else { return };
                    all.chunks(CHUNK).for_each(|keys| one.add_batch(keys));
                    (about, bytes) = (one.count().value as f64, one.memory_bytes());
                }
                "exaloglog+ours" => {
                    let mut one = ExaLogLog::new_dense(PRECISION);
                    all.iter().for_each(|key| one.add_hash(key.digest(SEED).0));
                    (about, bytes) = (one.estimate_ml(), one.register_bytes() as u64);
                }
                _ => {
                    // Registers of six bits: 3,072 bytes at this precision.
                    let Ok(mut one) = HllSketch::new(12, HllType::Hll6) else { return };
                    all.iter().for_each(|key| one.update(key));
                    (about, bytes) = (one.estimate(), (1 << 12) * 6 / 8);
                }
            }));
            squares += (about / keys as f64 - 1.0).powi(2);
        }
        notes.push(format!(
            "{name}: {bytes} bytes, root mean square error {:.2}% over {runs} runs of {keys} keys",
            100.0 * (squares / runs as f64).sqrt()
        ));
        rows.push(Row {
            section: "distinct",
            structure: name.to_owned(),
            ours: name == "distinct",
            removes: false,
            op: "add",
            size: Size::Keys(keys),
            ns: Summary::of(&times),
            bits_per_key: None,
            fpr: None,
            lost: None,
            overestimate: None,
            ratio: BTreeMap::new(),
        });
    }
    Ok(rows)
}
