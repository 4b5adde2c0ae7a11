//! Floods that outgrow the connection table: no wrong alarm, no established connection lost, memory
//! as fixed at the start. The scenarios are the files of `scenarios/overload`.

use crate::{alone, process};
use sidon::{Lookup, Seed};
use sidon_kit::Rng;
use sidon_traffic::{
    Decoder, Engine, Filter, Settings,
    generate::scenario::{Alarm, Judgement, Scenario},
    monitor::connections,
};
use std::{collections::BTreeSet, fs, path::Path, process::Command, time::Instant};

/// Resident memory beyond the tables: the program, batches, the scenario's flows in progress.
const BESIDE: u64 = 10 << 20;
/// The variable that names the row of a child process: scenario, MiB, flows per cell.
const ROW: &str = "SIDON_OVERLOAD_ROW";
const TEST: &str = "overload::attacks_beyond_the_table_accuse_nobody_else_and_lose_no_connection";

fn scenarios() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/overload");
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| !file.ends_with("beside.toml")).collect();
    files.sort();
    files.iter().map(|file| Scenario::read(file).unwrap_or_else(|why| panic!("{why}"))).collect()
}

/// The number of connections that must be open and are not.
fn lost(scenario: &Scenario, unit: u64, engine: &Engine) -> usize {
    let [mut lost, mut unsure, mut all] = [0; 3];
    for flows in scenario.stay.iter().flat_map(|name| scenario.flows(name)) {
        for number in 0..flows.number.of(unit) {
            // The flows that must stay have no random choice.
            match engine.connections().lookup(&flows.key(&mut Rng::seeded(0), number)) {
                Lookup::State(life) => lost += usize::from(!life.is_open()),
                Lookup::DontKnow => unsure += 1,
                Lookup::Absent => lost += 1,
            }
            all += 1;
        }
    }
    assert!(all >= 100 && unsure <= all / 100, "{all} connections, {unsure} don't know");
    lost
}

/// Runs a scenario with `times` as many flows as the table has cells, prints a row, and asserts
/// everything but the time.
fn run(scenario: &Scenario, memory: u64, times: f64) {
    let cells = connections::shape(memory / 100 * 20).unwrap().all_cells();
    let unit = (cells as f64 * times) as u64;
    let settings = Settings { memory, ..Settings::new(Seed(11)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    let (mut seen, begun) = (0u64, Instant::now());
    for packet in scenario.packets(unit, 1, u64::MAX).unwrap() {
        engine.packet(&packet);
        seen += 1;
    }
    engine.flush();
    let ns = begun.elapsed().as_nanos() as f64 / seen as f64;
    let (lost, load) = (lost(scenario, unit, &engine), engine.connections().map().stats().load);
    let report = engine.finish().0;
    let peak = process("VmHWM");
    let level = report.connections.sampling.highest;
    let raised: BTreeSet<Alarm> = report
        .alarms
        .iter()
        .map(|alarm| Alarm { kind: alarm.kind.to_owned(), subject: alarm.subject })
        .collect();
    let Judgement { right, wrong, missing, missed } = scenario.judge(&raised, unit, level);
    let found = |flows: &str| {
        let must = scenario.must.iter().find(|must| must.flows == flows).expect("beside.toml");
        if raised.iter().any(|alarm| must.expected.names(alarm)) { "yes" } else { "no" }
    };
    println!(
        "| {} | {} MiB | {times} | {ns:.0} | {} | 1 in {} | {load:.2} | {} / {} / {} | {} | {} | {lost} |",
        scenario.name,
        memory >> 20,
        peak.map_or("?".to_owned(), |peak| format!("{:.1}", peak as f64 / f64::from(1 << 20))),
        1u64 << level,
        right.len(),
        wrong.len(),
        missing.len(),
        found("scan"),
        found("second flood"),
    );
    let name = &scenario.name;
    assert_eq!(wrong.len(), 0, "{name} x {times}: {:?}", report.alarms);
    assert_eq!(lost, 0, "{name} x {times}");
    assert!(load < 0.97, "{name} x {times}: {load}");
    assert_eq!((report.ledger.seen, report.ledger.balance()), (seen, 0));
    if let Some(peak) = peak {
        assert!(peak < memory + BESIDE, "{name} x {times}: {peak} bytes");
    }
    assert!(missed.is_empty(), "{name} x {times}: {missed:?} of {raised:?}");
}

/// Runs one row in a child process, so that no other row adds to the peak of its memory.
/// Returns what it printed.
fn row(number: usize, size: u64, times: f64) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        // With one test thread, the name of the test precedes its output on the line.
        .args([TEST, "--exact", "--nocapture", "--test-threads=2"])
        .env(ROW, format!("{number} {size} {times}"))
        .output()
        .unwrap();
    let text = String::from_utf8(child.stdout).unwrap();
    let error = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "scenario {number}, {size} MiB, {times}: {text}{error}");
    text.lines().find(|line| line.starts_with("| ")).expect("a row").to_owned()
}

#[test]
fn attacks_beyond_the_table_accuse_nobody_else_and_lose_no_connection() {
    let scenarios = scenarios();
    if let Ok(row) = std::env::var(ROW) {
        let row: Vec<f64> = row.split(' ').map(|word| word.parse().unwrap()).collect();
        return run(&scenarios[row[0] as usize], (row[1] as u64) << 20, row[2]);
    }
    let _alone = alone();
    // All 135 rows take ten minutes: scripts/overload runs them.
    let all = std::env::var_os("SIDON_OVERLOAD").is_some();
    let sizes: &[u64] = if all { &[1, 4, 16] } else { &[1] };
    let times: &[f64] = if all { &[0.1, 0.3, 1.0, 3.0, 10.0] } else { &[3.0] };
    println!(
        "| attack | memory | flows / cells | ns a packet | peak RSS, MiB | sampled | load | right / wrong / missing | scan | second flood | lost |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    assert_eq!(scenarios.len(), 9);
    for number in 0..scenarios.len() {
        for &size in sizes {
            let mut peaks = Vec::new();
            for &times in times {
                let row = row(number, size, times);
                println!("{row}");
                let peak = row.split('|').nth(5).unwrap().trim().parse::<f64>();
                peaks.extend(peak.ok().filter(|_| times >= 1.0));
            }
            // Ten times as many flows as cells need no more memory than one time. The figure varies by
            // a MiB from run to run.
            let (least, most) =
                peaks.iter().fold((f64::MAX, 0.0f64), |(a, b), &peak| (a.min(peak), b.max(peak)));
            assert!(peaks.is_empty() || most - least < 2.0, "{peaks:?}");
        }
    }
}
