//! Counts: add and estimate, ours and the peers' in turn, in as many bytes, four rows each.
//!
//! As many flows as a row of ours has columns, each twice in every pass and in random order, so that
//! counters are shared as in a busy sketch; then every flow is asked for. How much the answers are
//! too high is reported a pass, beside the times: it is the same for all that are plain and have as
//! many columns.

use crate::{
    args::Args,
    clock::ns_each,
    filter::{CHUNK, SEED, Tuple},
    peers,
    report::{Row, Size},
    stats::Summary,
};
use anyhow::{Result, bail};
use sidon::{
    Estimate,
    count::{Layout, Min, Update, min::Shape},
};
use sidon_kit::{FiveTuples, Rng};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    hint::black_box,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Rows of every sketch.
pub(crate) const ROWS: usize = 4;
/// Inside a core's own cache, and beyond most shared ones.
const SIZES: [u64; 2] = [256 << 10, 40 << 20];
/// Fewer operations than this are too short to time.
const OPERATIONS_LEAST: usize = 400_000;

/// A sketch under test.
pub(crate) trait Counter {
    /// The bytes of its table.
    fn bytes(&self) -> u64;
    /// Adds at most [`CHUNK`] amounts.
    fn add(&mut self, keys: &[Tuple], amounts: &[u64]);
    /// The counts of at most [`CHUNK`] keys.
    fn estimate(&self, keys: &[Tuple], values: &mut [u64]);
}

type Build = fn(u64) -> Result<Box<dyn Counter>>;

/// A sketch that can be built in so many bytes.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// Its name in tables, JSON and `--only`.
    pub(crate) name: &'static str,
    ours: bool,
    build: Build,
}

impl Entry {
    /// A peer's.
    pub(crate) const fn peer(name: &'static str, build: Build) -> Self {
        Entry { name, ours: false, build }
    }

    const fn ours(name: &'static str, build: Build) -> Self {
        Entry { name, ours: true, build }
    }
}

/// Every sketch, ours first.
pub(crate) fn all() -> Vec<Entry> {
    let ours = [
        Entry::ours("min", |bytes| ours(bytes, Update::Plain, Layout::Rows, Way::Batch)),
        Entry::ours("min_single", |bytes| ours(bytes, Update::Plain, Layout::Rows, Way::Single)),
        Entry::ours("min_bare", |bytes| ours(bytes, Update::Plain, Layout::Rows, Way::Bare)),
        Entry::ours("min_line", |bytes| ours(bytes, Update::Plain, Layout::Line, Way::Batch)),
        Entry::ours("min_conservative", |bytes| {
            ours(bytes, Update::Conservative, Layout::Rows, Way::Batch)
        }),
    ];
    ours.into_iter().chain(peers::counters::ENTRIES.iter().copied()).collect()
}

/// How ours is called.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// In batches, with whole estimates.
    Batch,
    /// In batches, with values alone.
    Bare,
    /// Key by key.
    Single,
}

struct Ours {
    sketch: Min,
    way: Way,
    /// Room for whole answers, which a caller has once.
    answers: RefCell<[Estimate; CHUNK]>,
}

fn ours(bytes: u64, update: Update, layout: Layout, way: Way) -> Result<Box<dyn Counter>> {
    let columns = bytes / (4 * ROWS as u64);
    let shape = Shape { rows: ROWS as u32, columns, width: 32, update, layout };
    let answers = RefCell::new([Estimate::exact(0); CHUNK]);
    Ok(Box::new(Ours { sketch: Min::new(shape, SEED)?, way, answers }))
}

impl Counter for Ours {
    fn bytes(&self) -> u64 {
        self.sketch.shape().columns * 4 * ROWS as u64
    }

    fn add(&mut self, keys: &[Tuple], amounts: &[u64]) {
        if self.way == Way::Single {
            for (key, amount) in keys.iter().zip(amounts) {
                let _ = self.sketch.add(key, *amount);
            }
        } else {
            self.sketch.add_batch(keys, amounts, &mut |_, _| {});
        }
    }

    fn estimate(&self, keys: &[Tuple], values: &mut [u64]) {
        match self.way {
            Way::Bare => self.sketch.least_batch(keys, values),
            Way::Single => {
                for (key, value) in keys.iter().zip(values) {
                    *value = self.sketch.estimate(key).value;
                }
            }
            Way::Batch => {
                let mut answers = self.answers.borrow_mut();
                let estimates = &mut answers[..keys.len()];
                self.sketch.estimate_batch(keys, estimates);
                // All of every answer is wanted.
                for (value, estimate) in values.iter_mut().zip(black_box(estimates)) {
                    *value = estimate.value;
                }
            }
        }
    }
}

/// The keys of one size.
struct Work {
    /// Every flow twice, in random order.
    additions: Vec<Tuple>,
    /// Every flow once, in another order.
    flows: Vec<Tuple>,
    passes: usize,
}

impl Work {
    fn new(flows: usize) -> Self {
        let mut rng = Rng::seeded(flows as u64);
        let mut flows: Vec<Tuple> = FiveTuples::seeded(60).take(flows).collect();
        let mut additions = flows.repeat(2);
        shuffle(&mut rng, &mut additions);
        shuffle(&mut rng, &mut flows);
        let passes = OPERATIONS_LEAST.div_ceil(additions.len());
        Work { additions, flows, passes }
    }
}

fn shuffle(rng: &mut Rng, keys: &mut [Tuple]) {
    for i in (1..keys.len()).rev() {
        keys.swap(i, rng.below(i as u64 + 1) as usize);
    }
}

/// The rows of all entries at both sizes.
pub(crate) fn run(entries: &[Entry], args: &Args, notes: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for bytes in SIZES {
        let usual = match (bytes == SIZES[0], args.quick) {
            (true, false) => 21,
            (true, true) => 9,
            (false, false) => 5,
            (false, true) => 2,
        };
        let rounds = args.rounds.map_or(usual, |rounds| rounds as usize);
        rows.extend(run_size(entries, bytes, rounds, notes)?);
    }
    Ok(rows)
}

fn run_size(
    entries: &[Entry],
    bytes: u64,
    rounds: usize,
    notes: &mut Vec<String>,
) -> Result<Vec<Row>> {
    let work = Work::new(bytes as usize / (4 * ROWS));
    let mut results: Vec<Vec<Round>> = entries.iter().map(|_| Vec::new()).collect();
    let mut failed = vec![false; entries.len()];
    for number in 1..=rounds {
        eprintln!("count: {} KiB, round {number} of {rounds}", bytes >> 10);
        for (i, entry) in entries.iter().enumerate() {
            if failed[i] {
                continue;
            }
            let why = match catch_unwind(AssertUnwindSafe(|| Round::run(entry, bytes, &work))) {
                Ok(Ok(round)) => {
                    results[i].push(round);
                    continue;
                }
                Ok(Err(why)) => why.to_string(),
                Err(_) if entry.ours => bail!("{} panicked at {bytes} bytes", entry.name),
                Err(_) => "panicked".to_string(),
            };
            failed[i] = true;
            notes.push(format!("{} left out at {bytes} bytes: {why}", entry.name));
        }
    }
    let mut rows = Vec::new();
    for (entry, rounds) in entries.iter().zip(&results).filter(|(_, rounds)| !rounds.is_empty()) {
        if rounds[0].bytes != bytes {
            notes.push(format!("{} has {} bytes of {bytes}", entry.name, rounds[0].bytes));
        }
        let mean = rounds.iter().map(|round| round.too_high).sum::<f64>() / rounds.len() as f64;
        for (op, times) in [("add", 0), ("estimate", 1)] {
            let times: Vec<f64> = rounds.iter().map(|round| round.ns[times]).collect();
            rows.push(Row {
                section: "count",
                structure: entry.name.to_string(),
                ours: entry.ours,
                removes: false,
                op,
                size: Size::Bytes(bytes),
                ns: Summary::of(&times),
                bits_per_key: None,
                fpr: None,
                lost: rounds.iter().map(|round| round.too_low).max(),
                overestimate: Some(mean),
                ratio: BTreeMap::new(),
            });
        }
    }
    Ok(rows)
}

/// What one sketch did in one round.
struct Round {
    bytes: u64,
    /// Nanoseconds to add and to estimate.
    ns: [f64; 2],
    /// The mean of what counts are above the truth, for each pass.
    too_high: f64,
    /// Counts below the truth.
    too_low: u64,
}

impl Round {
    fn run(entry: &Entry, bytes: u64, work: &Work) -> Result<Self> {
        let mut counter = (entry.build)(bytes)?;
        let ones = [1; CHUNK];
        let add = ns_each(work.passes * work.additions.len(), || {
            for _ in 0..work.passes {
                for keys in work.additions.chunks(CHUNK) {
                    counter.add(keys, &ones[..keys.len()]);
                }
            }
        });
        let mut values = [0; CHUNK];
        let estimate = ns_each(work.passes * work.flows.len(), || {
            for _ in 0..work.passes {
                for keys in work.flows.chunks(CHUNK) {
                    counter.estimate(keys, &mut values[..keys.len()]);
                    black_box(&values);
                }
            }
        });
        let truth = 2 * work.passes as u64;
        let (mut sum, mut too_low) = (0, 0);
        for keys in work.flows.chunks(CHUNK) {
            counter.estimate(keys, &mut values[..keys.len()]);
            for value in &values[..keys.len()] {
                too_low += u64::from(*value < truth);
                sum += value.saturating_sub(truth);
            }
        }
        let too_high = sum as f64 / (work.flows.len() * work.passes) as f64;
        Ok(Round { bytes: counter.bytes(), ns: [add, estimate], too_high, too_low })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct() {
        let names: HashSet<_> = all().iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), all().len());
    }

    #[test]
    fn plain_sketches_of_one_size_err_alike() {
        let work = Work::new(16_384);
        let round = |name: &str| {
            let all = all();
            let entry = all.iter().find(|entry| entry.name == name).unwrap();
            let round = Round::run(entry, 256 << 10, &work).unwrap();
            assert_eq!(round.too_low, 0, "{name}");
            round.too_high
        };
        let ours = round("min");
        assert!((round("datasketches") / ours - 1.0).abs() < 0.15);
        assert_eq!(round("min_single"), ours);
        assert_eq!(round("min_bare"), ours);
        assert!(round("min_conservative") < ours && round("pingora_limits") > ours);
        assert!((round("count_min_sketch") / round("min_conservative") - 1.0).abs() < 0.2);
    }
}
