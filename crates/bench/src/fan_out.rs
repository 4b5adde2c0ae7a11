//! Keys with many distinct elements: precision, recall and F1 over memory, beside SpreadSketch on one trace.
//!
//! The trace has 200,000 hosts. The number of destinations of a host follows a power law with exponent 1.2, up to
//! 20,000. Half of all destinations are popular ones. Pairs come in random order, and each comes one to
//! four times. A host is large if it has more than a thousandth of all distinct pairs, the threshold of the
//! SpreadSketch paper, or more than a five-thousandth.
//!
//! Both get the same bytes. SpreadSketch has the parameters of its authors. `FanOut` has sketches of 16 registers, or
//! as many as leave it 96 buckets, up to 64.
//!
//! Precision, recall and F1 are means over ten seeds of the hash functions.
//!
//! `--chart FILE` writes the chart of F1 over memory.

use crate::{
    clock::ns_each,
    filter::SEED,
    peers::spread_sketch::SpreadSketch,
    report::{Row, Size},
    stats::Summary,
};
use anyhow::{Context, Result};
use sidon::{
    Seed,
    count::{FanOut, fan_out::Shape},
};
use sidon_kit::Rng;
use sidon_lab::chart::{Axis, Chart, Curve, Point};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::Path,
};

const HOSTS: u32 = 200_000;
/// Buckets of a table before it gets more registers per sketch: they keep 200 hosts safe, as planned.
const BUCKETS: u64 = 96;
/// The fewest and the most registers of a sketch: relative errors of 9% and 4.5%.
const REGISTERS: (u32, u32) = (16, 64);
/// The sizes of the tables, in bytes.
const MEMORY: [u64; 8] = [1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21];
/// One part in this many of all distinct pairs makes a host large.
const PARTS: [u64; 2] = [1_000, 5_000];
/// Keys added at a time.
const CHUNK: usize = 512;

/// Packets that are timed together, in batches of [`CHUNK`].
const PART: usize = 64 * CHUNK;
/// Seeds of the hash functions. Scores are means over them.
const SEEDS: u64 = 10;

/// A list of large hosts beside the true one.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    precision: f64,
    recall: f64,
    f1: f64,
}

impl Score {
    fn of(listed: &BTreeSet<u32>, truth: &BTreeSet<u32>) -> Self {
        let found = listed.intersection(truth).count() as f64;
        let precision = if listed.is_empty() { 1.0 } else { found / listed.len() as f64 };
        let recall = found / truth.len() as f64;
        let f1 = if found == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) };
        Score { precision, recall, f1 }
    }

    fn add(&mut self, other: Self) {
        self.precision += other.precision;
        self.recall += other.recall;
        self.f1 += other.f1;
    }

    /// The mean of a sum over all seeds.
    fn mean(self) -> Self {
        let mean = |sum| sum / SEEDS as f64;
        let Score { precision, recall, f1 } = self;
        Score { precision: mean(precision), recall: mean(recall), f1: mean(f1) }
    }
}

/// Pairs of a host and a destination, in random order with repetitions, and the size of each host.
struct Trace {
    hosts: Vec<u32>,
    destinations: Vec<u32>,
    sizes: HashMap<u32, u64>,
}

impl Trace {
    fn generate(hosts: u32, seed: u64) -> Self {
        let mut rng = Rng::seeded(seed);
        let mut uniform = move || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let (mut pairs, mut sizes) = (Vec::new(), HashMap::new());
        for host in 0..hosts {
            // Spreads the numbers of hosts over all addresses.
            let host = host.wrapping_mul(0x9e37_79b1);
            let size = (1.0 - uniform()).powf(-1.0 / 1.2).min(20_000.0) as u64;
            let mut own = HashSet::new();
            for _ in 0..size {
                let popular = uniform() < 0.5;
                let range = if popular { 2_000.0 } else { 4e9 };
                let destination = (uniform() * range) as u32;
                own.insert(destination);
                let times = 1 + (uniform() * uniform() * 4.0) as u32;
                (0..times).for_each(|_| pairs.push((host, destination)));
            }
            sizes.insert(host, own.len() as u64);
        }
        for i in (1..pairs.len()).rev() {
            pairs.swap(i, (uniform() * (i + 1) as f64) as usize);
        }
        let (hosts, destinations) = pairs.into_iter().unzip();
        Trace { hosts, destinations, sizes }
    }

    fn above(&self, threshold: u64) -> BTreeSet<u32> {
        let large = self.sizes.iter().filter(|(_, size)| **size > threshold);
        large.map(|(host, _)| *host).collect()
    }
}

/// The largest shape in `bytes` bytes. Memory beyond [`BUCKETS`] buckets is spent on registers first.
fn shape(bytes: u64) -> Shape {
    let of = |registers| {
        let one = Shape { buckets: 1, registers, panes: 1, pane: u64::MAX };
        Shape { buckets: (bytes / FanOut::<u32>::planned_bytes(one)).max(1), ..one }
    };
    let mut more = (REGISTERS.0 / 2..=REGISTERS.1 / 2).rev().map(|half| of(2 * half));
    more.find(|shape| shape.buckets >= BUCKETS).unwrap_or(of(REGISTERS.0))
}

pub(crate) fn run(quick: bool, chart: Option<&Path>, notes: &mut Vec<String>) -> Result<Vec<Row>> {
    let trace = Trace::generate(if quick { HOSTS / 10 } else { HOSTS }, 80);
    let pairs: u64 = trace.sizes.values().sum();
    eprintln!("fan_out: {} packets, {pairs} distinct pairs", trace.hosts.len());
    let thresholds = PARTS.map(|parts| pairs / parts);
    let truths = thresholds.map(|threshold| trace.above(threshold));
    let mut rows = Vec::new();
    let mut scores: [BTreeMap<u64, [Score; 2]>; 2] = Default::default();
    for bytes in MEMORY {
        let (mut held, mut sums) = (0, [[Score::default(); 2]; 2]);
        let mut times = [Vec::new(), Vec::new()];
        for seed in 0..SEEDS {
            let (ours, peer) = one(&trace, bytes, Seed(SEED.0 + u128::from(seed)), &mut times)?;
            for (host, size) in &trace.sizes {
                held += u64::from(ours.estimate(host, 0).contains(*size));
            }
            let listed = ours.largest(usize::MAX / 2, 0);
            for ((sums, threshold), truth) in sums.iter_mut().zip(thresholds).zip(&truths) {
                let large = listed.iter().filter(|(_, count)| count.value > threshold);
                sums[0].add(Score::of(&large.map(|(host, _)| *host).collect(), truth));
                sums[1].add(Score::of(&peer.above(threshold).into_keys().collect(), truth));
            }
        }
        let [ours, peer] = &times;
        rows.push(row("fan_out", true, bytes, ours));
        rows.push(row("spread_sketch", false, bytes, peer));
        for (i, sums) in sums.into_iter().enumerate() {
            let means = sums.map(Score::mean);
            let [ours, peer] = means.map(|Score { precision, recall, f1 }| {
                format!("precision {precision:.3}, recall {recall:.3}, F1 {f1:.3}")
            });
            notes.push(format!(
                "{} KiB, {} hosts above {}: fan_out {ours}; spread_sketch {peer}",
                bytes >> 10,
                truths[i].len(),
                thresholds[i],
            ));
            scores[i].insert(bytes, means);
        }
        notes.push(format!(
            "fan_out {} KiB: {:.3}% of the intervals of all hosts hold",
            bytes >> 10,
            100.0 * held as f64 / (SEEDS * trace.sizes.len() as u64) as f64
        ));
    }
    for (scores, threshold) in scores.iter().zip(thresholds) {
        let behind = scores.iter().filter(|(bytes, pair)| {
            scores.get(&(*bytes / 2)).is_some_and(|half| half[0].f1 < pair[1].f1)
        });
        let behind: Vec<String> = behind.map(|(bytes, _)| format!("{} KiB", bytes >> 10)).collect();
        notes.push(format!(
            "fan_out above {threshold}: F1 at half the memory of spread_sketch is {}",
            if behind.is_empty() {
                "nowhere lower".to_owned()
            } else {
                format!("lower at {}", behind.join(", "))
            }
        ));
    }
    if let Some(path) = chart {
        let svg = draw(&scores, thresholds, truths.each_ref().map(BTreeSet::len)).svg();
        std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(rows)
}

/// Both structures after the trace, in `bytes` bytes each. Adds the times of parts of the trace to `times`.
fn one(
    trace: &Trace,
    bytes: u64,
    seed: Seed,
    times: &mut [Vec<f64>; 2],
) -> Result<(FanOut<u32>, SpreadSketch)> {
    let mut ours = FanOut::new(shape(bytes), seed)?;
    let mut peer = SpreadSketch::new(bytes, seed);
    for (hosts, to) in trace.hosts.chunks(PART).zip(trace.destinations.chunks(PART)) {
        times[0].push(ns_each(hosts.len(), || {
            hosts.chunks(CHUNK).zip(to.chunks(CHUNK)).for_each(|(hosts, to)| {
                ours.add_batch(hosts, to, 0);
            });
        }));
        times[1].push(ns_each(hosts.len(), || {
            hosts.iter().zip(to).for_each(|(&host, &to)| peer.add(host, to));
        }));
    }
    Ok((ours, peer))
}

fn row(structure: &str, ours: bool, bytes: u64, times: &[f64]) -> Row {
    Row {
        section: "fan_out",
        structure: structure.to_owned(),
        ours,
        removes: false,
        op: "add",
        size: Size::Bytes(bytes),
        ns: Summary::of(times),
        bits_per_key: None,
        fpr: None,
        lost: None,
        overestimate: None,
        ratio: BTreeMap::new(),
    }
}

fn draw(scores: &[BTreeMap<u64, [Score; 2]>; 2], thresholds: [u64; 2], large: [usize; 2]) -> Chart {
    let mut curves = Vec::new();
    for (who, name) in ["FanOut", "SpreadSketch"].into_iter().enumerate() {
        for i in 0..2 {
            let points = |of: fn(&Score) -> f64| -> Vec<Point> {
                let point =
                    |(&bytes, pair): (&u64, &[Score; 2])| (bytes as f64 / 1024.0, of(&pair[who]));
                scores[i].iter().map(point).collect()
            };
            let title = format!("{name}, {} hosts above {}", large[i], thresholds[i]);
            curves.push(
                Curve::new(title).line(points(|score| score.f1)).measured(points(|score| score.f1)),
            );
        }
    }
    Chart {
        title: "Hosts with many destinations: F1 over memory".to_owned(),
        x: Axis::log("KiB"),
        y: Axis::linear("F1"),
        curves,
    }
}
