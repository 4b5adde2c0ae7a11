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
//! `--chart FILE` writes the chart of F1 over memory.

use crate::{
    clock::ns_each,
    filter::SEED,
    peers::spread_sketch::SpreadSketch,
    report::{Row, Size},
    stats::Summary,
};
use anyhow::{Context, Result};
use sidon::count::{FanOut, fan_out::Shape};
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

/// A list of large hosts beside the true one.
#[derive(Debug, Clone, Copy)]
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
        let mut ours = FanOut::<u32>::new(shape(bytes), SEED)?;
        let mut times = Vec::new();
        let chunks = trace.hosts.chunks(CHUNK * 64).zip(trace.destinations.chunks(CHUNK * 64));
        for (hosts, destinations) in chunks.clone() {
            times.push(ns_each(hosts.len(), || {
                for (hosts, to) in hosts.chunks(CHUNK).zip(destinations.chunks(CHUNK)) {
                    ours.add_batch(hosts, to, 0);
                }
            }));
        }
        rows.push(row("fan_out", true, bytes, &times));
        let mut peer = SpreadSketch::new(bytes, SEED);
        let mut times = Vec::new();
        for (hosts, destinations) in chunks {
            times.push(ns_each(hosts.len(), || {
                hosts.iter().zip(destinations).for_each(|(&host, &to)| peer.add(host, to));
            }));
        }
        rows.push(row("spread_sketch", false, bytes, &times));
        let mut held = 0;
        for (host, size) in &trace.sizes {
            held += u64::from(ours.estimate(host, 0).contains(*size));
        }
        let listed = ours.largest(usize::MAX / 2, 0);
        let of = |threshold| -> BTreeSet<u32> {
            listed.iter().filter(|one| one.1.value > threshold).map(|one| one.0).collect()
        };
        let theirs = |threshold| -> BTreeSet<u32> { peer.above(threshold).into_keys().collect() };
        for (i, threshold) in thresholds.into_iter().enumerate() {
            let pair =
                [Score::of(&of(threshold), &truths[i]), Score::of(&theirs(threshold), &truths[i])];
            notes.push(format!(
                "fan_out {} KiB, {} hosts above {threshold}: precision {:.3}, recall {:.3}, F1 {:.3}; spread_sketch ({} \
                 bytes) {:.3}, {:.3}, {:.3}",
                bytes >> 10, truths[i].len(), pair[0].precision, pair[0].recall, pair[0].f1,
                peer.bytes(), pair[1].precision, pair[1].recall, pair[1].f1,
            ));
            scores[i].insert(bytes, pair);
        }
        notes.push(format!(
            "fan_out {} KiB: {:.3}% of the intervals of all hosts hold",
            bytes >> 10,
            100.0 * held as f64 / trace.sizes.len() as f64
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
