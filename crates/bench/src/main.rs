//! Sidon's timings against peers, in one run.
//!
//! The sections: `machine` is what the memory can do, `hash` what hashing a key costs, `member`
//! every set of ours beside the sets of others, `zone` small exact sets beside a table and a
//! filter, `count` our counts beside those of others, `detection` tests of failures and regular
//! contact, `refused` insertions into full structures,
//! `state` every map from flows to states.
//! `distinct`, counts of distinct keys.
//! `engine`, fifty million packets through all monitors, `top`, the heaviest of as many, `prefixes`,
//! the heavy networks of a hundred million, and `fan_out`, hosts with many destinations, run only
//! when they are named. Times are medians over interleaved rounds, with the fastest and slowest
//! round beside them. Built as a user builds: no target CPU is named, so instructions beyond the
//! baseline come from run-time dispatch, ours and the peers' alike.

mod args;
mod clock;
mod count;
mod detection;
mod digest;
mod distinct;
mod engine;
mod fan_out;
mod filter;
mod hash;
mod host;
mod hostile;
mod limits;
mod maps;
mod member;
mod ours;
mod peers;
mod prefixes;
mod refused;
mod report;
mod state;
mod stats;
mod table;
mod top;
mod workload;
mod zone;

use anyhow::{Result, ensure};
use args::Args;
use clap::Parser;
use serde_json::json;
use sidon::plan::Target;
use std::process::ExitCode;

const HASH_ROUNDS: usize = 15;
const MACHINE_ROUNDS: usize = 5;
const REFUSED_ROUNDS: usize = 5;

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    ensure!(args.fpr > 0.0 && args.fpr < 1.0, "--fpr {} is not between 0 and 1", args.fpr);
    let rounds = |usual: usize| args.rounds.map_or(usual, |rounds| rounds as usize);
    // Asked first: afterwards the load is our own.
    let machine = host::describe();

    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    if ["memory_huge", "memory_ordinary"].iter().any(|name| args.wants("machine", name)) {
        rows.extend(limits::run(rounds(MACHINE_ROUNDS), |name| args.wants("machine", name))?);
    }
    if hash::NAMES.iter().any(|name| args.wants("hash", name)) {
        rows.extend(hash::run(rounds(HASH_ROUNDS), |name| args.wants("hash", name)));
    }
    let mut entries = filter::all();
    entries.retain(|entry| args.wants("member", entry.name));
    let mut floors = limits::Reads::ALL.to_vec();
    floors.retain(|floor| args.wants("member", floor.name));
    let any = !entries.is_empty() || !floors.is_empty();
    for keys in if any { args.sizes() } else { Vec::new() } {
        let target = Target::new(keys.into(), args.fpr);
        let rounds = rounds(member::usual_rounds(keys as usize, args.quick));
        rows.extend(member::run(&entries, &floors, target, rounds, &mut notes)?);
    }
    if zone::NAMES.iter().any(|name| args.wants("zone", name)) {
        rows.extend(zone::run(rounds(HASH_ROUNDS), |name| args.wants("zone", name))?);
    }
    let mut counters = count::all();
    counters.retain(|entry| args.wants("count", entry.name));
    if !counters.is_empty() {
        rows.extend(count::run(&counters, &args, &mut notes)?);
    }
    if detection::NAMES.iter().any(|name| args.wants("detection", name)) {
        rows.extend(detection::run(rounds(HASH_ROUNDS), |name| args.wants("detection", name))?);
    }
    if refused::NAMES.iter().any(|name| args.wants("refused", name)) {
        rows.extend(refused::run(20_000, rounds(REFUSED_ROUNDS), |name| {
            args.wants("refused", name)
        })?);
    }
    if args.names("engine") {
        rows.extend(engine::run(args.quick, &mut notes)?);
    }
    if !args.only.is_empty() {
        rows.extend(hostile::run(args.quick, |name| args.wants("hostile", name), &mut notes)?);
    }
    if distinct::NAMES.iter().any(|name| args.wants("distinct", name)) {
        rows.extend(distinct::run(args.quick, |name| args.wants("distinct", name), &mut notes)?);
    }
    if args.names("fan_out") {
        rows.extend(fan_out::run(args.quick, args.chart.as_deref(), &mut notes)?);
    }
    if args.names("top") {
        rows.extend(top::run(args.quick, &mut notes)?);
    }
    if args.names("prefixes") {
        rows.extend(prefixes::run(args.quick, &mut notes)?);
    }
    let states: Vec<_> =
        state::NAMES.iter().copied().filter(|name| args.wants("state", name)).collect();
    for keys in if states.is_empty() { Vec::new() } else { args.sizes() } {
        let keys = keys as usize;
        let rounds = rounds(member::usual_rounds(keys, args.quick));
        let batch = args.batch as usize;
        rows.extend(state::run(&states, keys, batch, rounds)?);
        notes.push(state::longest_sweep(keys)?);
    }
    ensure!(!rows.is_empty(), "--only {} names nothing", args.only.join(", "));
    report::compare(&mut rows);

    let settings = json!({
        "fpr": args.fpr,
        "quick": args.quick,
        "rounds": args.rounds,
        "chunk": filter::CHUNK,
        "state_batch": args.batch,
        "operations": workload::OPERATIONS,
    });
    if args.json {
        println!("{:#}", report::json(&machine, &settings, &notes, &rows));
    } else {
        println!("machine {machine:#}\nsettings {settings}");
        table::print(&rows);
        notes.iter().for_each(|note| println!("note: {note}"));
    }
    let losers = report::losers(&rows);
    if losers.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("lost members: {}", losers.join(", "));
    Ok(ExitCode::FAILURE)
}
