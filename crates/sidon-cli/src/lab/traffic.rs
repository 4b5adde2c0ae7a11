//! `sidon lab traffic`: repeats on captures what the papers measured on traces.
//!
//! Rottenstreich et al., 2021, table 5: sources per /24 subnet of a trace, and the memory to store
//! them exactly. Rottenstreich, Kanizo and Keslassy, figure 5: the five schemes at 30 and 50 bits per
//! key. The keys are the five-tuples of the trace, half of them members.

use crate::{
    args::LimitArgs,
    sandbox::{self, Needs},
    show,
};
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use sidon::{
    Infeasible, Seed,
    internals::{Ladder, Way},
    plan,
    set::{
        Bh, Counting, Decode, Filter, Increments, Overflow, Set, Spread, Variable, bh, counting,
        variable,
    },
};
use sidon_lab::formulas::{
    bloom::best_hashes,
    increments::{pairs_best_hashes, variable_best_hashes},
};
use sidon_traffic::{Decoder, Source, source::Limits, text};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The five-tuple of an IPv4 packet.
type Flow = [u8; 13];

/// Table 5's classes of subnets by their sources, and their shares in its trace CHI16.
const CLASSES: [(usize, usize, f64); 4] =
    [(1, 4, 0.9434), (5, 8, 0.0436), (9, 16, 0.0090), (17, 256, 0.0040)];
/// Columns of the table.
const HEAD: [&str; 6] = ["what", "verdict", "expected", "measured", "within", "case"];
/// The increments of pairs of counters.
const PAIRS: Increments = Increments::of([1, 4, 13, 15]);
/// Seeds with which each filter is filled and measured.
const SEEDS: u64 = 20;
/// The fewest five-tuples from which a rate is measured.
const LEAST: usize = 200;
/// The most five-tuples, and the most directories inside each other.
const FLOWS_MAX: usize = 1 << 21;
const DEEPEST: usize = 16;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Capture, or directory with captures; other files in it are skipped
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    limits: LimitArgs,
    /// Write JSON: {"rows": [{"what", "case", "expected", "measured", ..}]}
    #[arg(long)]
    json: bool,
}

/// Contents of the captures.
#[derive(Default)]
struct Trace {
    captures: u64,
    sources: BTreeMap<u32, BTreeSet<u8>>,
    flows: BTreeSet<Flow>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    sandbox::confine(&Needs::nothing().reads([&args.path]))?;
    let mut trace = Trace::default();
    gather(&args.path, 0, args.limits.limits(), &mut trace)?;
    let Trace { captures, sources, flows } = trace;
    let path = show::path(&args.path);
    ensure!(
        captures > 0,
        "{path} has no capture; give a pcap or pcapng file, or a directory of them"
    );
    ensure!(
        flows.len() >= LEAST,
        "{path} has {} IPv4 five-tuples, and {LEAST} are needed; give a larger capture",
        flows.len()
    );
    let mut rows = subnets(&sources)?;
    rows.extend(schemes(&flows.into_iter().collect::<Vec<_>>())?);
    let off = rows.iter().any(|row| row["verdict"] == "fails");
    if args.json {
        show::json_rows(rows)?;
    } else {
        let cells = |row: &Value| {
            let text = |name: &str| match &row[name] {
                Value::Number(number) => show::rate(number.as_f64().unwrap_or(f64::NAN)),
                Value::String(text) => text.clone(),
                _ => String::new(),
            };
            HEAD.map(text).to_vec()
        };
        show::print(&show::table(&HEAD, rows.iter().map(cells)))?;
    }
    if off {
        bail!("a measured rate differs by more than six standard deviations; see verdict: fails");
    }
    Ok(())
}

/// Reads all captures below a path.
fn gather(path: &Path, depth: usize, limits: Limits, trace: &mut Trace) -> anyhow::Result<()> {
    let place = || format!("cannot read {}", show::path(path));
    if fs::metadata(path).with_context(place)?.is_dir() {
        let mut within = Vec::new();
        for entry in fs::read_dir(path).with_context(place)? {
            let entry = entry.with_context(place)?;
            let (kind, path) = (entry.file_type().with_context(place)?, entry.path());
            // Links to directories can form a circle, and a pipe may have no end.
            if kind.is_dir() || path.is_file() {
                within.push(path);
            }
        }
        within.sort();
        ensure!(
            depth < DEEPEST,
            "{} is more than {DEEPEST} directories deep; name a directory inside",
            show::path(path)
        );
        return within.iter().try_for_each(|path| gather(path, depth + 1, limits, trace));
    }
    let Ok(mut source) = Source::open(path) else { return Ok(()) };
    source.set_limits(limits);
    trace.captures += 1;
    let decoder = Decoder::default();
    // A capture that breaks off counts up to the break.
    loop {
        let frame = match source.next() {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(why) => {
                let name = text::path(path);
                show::say(&format!("{name}: {why}; the packets before that count"));
                break;
            }
        };
        let Ok(packet) = decoder.decode(&frame) else { continue };
        let Ok(flow) = Flow::try_from(packet.flow.as_bytes()) else { continue };
        trace.flows.insert(flow);
        ensure!(
            trace.flows.len() <= FLOWS_MAX,
            "more than {FLOWS_MAX} five-tuples, which are counted exactly in memory; give fewer \
             captures"
        );
        let [a, b, c, host, ..] = flow;
        trace.sources.entry(u32::from_be_bytes([0, a, b, c])).or_default().insert(host);
    }
    Ok(())
}

/// Table 5: the classes of subnets, and the bytes of exact sets.
fn subnets(sources: &BTreeMap<u32, BTreeSet<u8>>) -> anyhow::Result<Vec<Value>> {
    let mut rows = Vec::new();
    for (least, most, share) in CLASSES {
        let within = |hosts: &&BTreeSet<u8>| (least..=most).contains(&hosts.len());
        let here = sources.values().filter(within).count() as f64 / sources.len() as f64;
        rows.push(json!({
            "what": format!("/24 subnets of {least} to {most} sources"),
            "case": format!("{} subnets; CHI16", show::whole(sources.len() as u64)),
            "expected": share, "measured": here, "verdict": "traces differ",
        }));
    }
    for (way, name) in [(Way::List, "list"), (Way::Zones, "zones")] {
        let ladder = Ladder::new(256, way)?;
        let (mut bytes, mut wrong) = (0, 0u64);
        for hosts in sources.values() {
            let mut set = ladder.empty();
            for &host in hosts {
                wrong += u64::from(set.insert(&u64::from(host)).is_err());
            }
            for host in 0..=255u8 {
                wrong += u64::from(set.contains(&u64::from(host)) != hosts.contains(&host));
            }
            bytes += set.memory_bytes();
        }
        rows.push(json!({
            "what": format!("bytes per subnet, {name}; a bitmap takes 32"),
            "case": format!("{wrong} wrong answers"),
            "measured": bytes as f64 / sources.len() as f64,
            "verdict": if wrong == 0 { "exact" } else { "fails" },
        }));
    }
    Ok(rows)
}

/// Figure 5: its schemes on these keys. Every second key is a member.
fn schemes(flows: &[Flow]) -> anyhow::Result<Vec<Value>> {
    let members: Vec<Flow> = flows.iter().step_by(2).copied().collect();
    let absent: Vec<Flow> = flows.iter().skip(1).step_by(2).copied().collect();
    let mut rows = Vec::new();
    for bits in [30, 50] {
        for name in ["counting", "pairs, basic", "pairs, improved", "4 to 7", "8, 12, 14, 15"] {
            let (mut passed, mut planned) = (0, 0.0);
            for seed in 0..SEEDS {
                let (rate, hits) = one(name, bits, &members, &absent, Seed(seed.into()))?;
                planned = rate;
                passed += hits.with_context(|| format!("{name}: a member was missed"))?;
            }
            let asked = (SEEDS * absent.len() as u64) as f64;
            let measured = passed as f64 / asked;
            // Six deviations of the count, and 2 % because filters of one size differ.
            let within = 6.0 * (planned / asked).sqrt() + planned / 50.0;
            let agrees = (measured - planned).abs() <= within;
            rows.push(json!({
                "what": format!("false positives, {name}"),
                "case": format!("{bits} bits per key, {} flows", show::whole(members.len() as u64)),
                "expected": planned, "measured": measured, "within": within,
                "verdict": if agrees { "agrees" } else { "fails" },
            }));
        }
    }
    Ok(rows)
}

/// The planned rate of a scheme, and its number of false positives; `None` if a member was missed.
fn one(
    name: &str,
    bits: u64,
    members: &[Flow],
    absent: &[Flow],
    seed: Seed,
) -> Result<(f64, Option<u64>), Infeasible> {
    let keys = members.len() as u64;
    let memory = keys * bits;
    let (overflow, spread) = (Overflow::Pin, Spread::Anywhere);
    let varied = |values: &[u8], width: u32| {
        let (increments, counters) = (Increments::set(values)?, memory / u64::from(width));
        let hashes = variable_best_hashes(increments, counters, keys);
        let shape = variable::Shape { counters, hashes, width, increments, overflow, spread };
        Ok((plan::variable::rate(shape, keys)?, Variable::new(shape, seed)?))
    };
    match name {
        "counting" => {
            let (counters, width) = (memory / 4, 4);
            let hashes = best_hashes(counters, keys);
            let shape = counting::Shape { counters, hashes, width, overflow, spread };
            let rate = plan::counting::rate(shape, keys);
            Ok((rate, ask(Counting::new(shape, seed)?, members, absent)))
        }
        "4 to 7" => {
            let (rate, filter) = varied(&[4, 5, 6, 7], 7)?;
            Ok((rate, ask(filter, members, absent)))
        }
        "8, 12, 14, 15" => {
            let (rate, filter) = varied(&[8, 12, 14, 15], 8)?;
            Ok((rate, ask(filter, members, absent)))
        }
        pairs => {
            let basic = pairs == "pairs, basic";
            let mut shape = bh::Shape {
                cells: memory / 12,
                hashes: 1,
                keys_bits: 4,
                sum_bits: 8,
                increments: PAIRS,
                decode: if basic { Decode::Basic } else { Decode::Improved(15) },
                centred: false,
                overflow,
                spread,
            };
            shape.hashes = pairs_best_hashes(PAIRS, shape.decode, shape.cells, keys);
            let rate = plan::bh::rate(shape, keys)?;
            Ok((rate, ask(Bh::new(shape, seed)?, members, absent)))
        }
    }
}

fn ask<B: Filter>(mut filter: Set<B>, members: &[Flow], absent: &[Flow]) -> Option<u64> {
    let mut missed = 0;
    filter.insert_batch(members, &mut |_, _| missed += 1);
    let mut found = vec![false; members.len().max(absent.len())];
    filter.contains_batch(members, &mut found[..members.len()]);
    missed += found[..members.len()].iter().filter(|&&found| !found).count();
    filter.contains_batch(absent, &mut found[..absent.len()]);
    let passed = found[..absent.len()].iter().filter(|&&found| found).count() as u64;
    (missed == 0).then_some(passed)
}
