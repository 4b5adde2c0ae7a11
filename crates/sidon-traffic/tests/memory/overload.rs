//! Floods that outgrow the connection table: no wrong alarm, no established connection lost, memory
//! as fixed at the start. The scenarios are the files of `scenarios/overload`.

use crate::{alone, process};
use sidon::{Lookup, Seed};
use sidon_kit::Rng;
use sidon_traffic::{
    Decoder, Engine, Filter, Settings,
    generate::scenario::{Alarm, Scenario},
    monitor::connections,
};
use std::{collections::BTreeSet, fs, path::Path, time::Instant};

/// Resident memory beyond the tables: code, batches, the scenario's flows in progress.
const BESIDE: u64 = 3 << 20;

fn scenarios() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/overload");
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| !file.ends_with("beside.toml")).collect();
    files.sort();
    files.iter().map(|file| Scenario::read(file).unwrap_or_else(|why| panic!("{why}"))).collect()
}

/// The number of connections that must be open and are not.
fn lost(scenario: &Scenario, engine: &Engine) -> usize {
    let mut lost = 0;
    for flows in scenario.stay.iter().flat_map(|name| scenario.flows(name)) {
        for number in 0..flows.number.of(0) {
            // The flows that must stay have no random choice.
            let open = match engine.connections().lookup(&flows.key(&mut Rng::seeded(0), number)) {
                Lookup::State(life) => life.is_open(),
                Lookup::DontKnow => true,
                Lookup::Absent => false,
            };
            lost += usize::from(!open);
        }
    }
    lost
}

/// Sets the peak of resident memory to its current value. Returns that value, where the system
/// reports it.
fn reset_peak() -> Option<u64> {
    fs::write("/proc/self/clear_refs", "5").ok()?;
    process("VmRSS")
}

/// Runs a scenario with `times` as many flows as the table has cells, prints a row, and asserts
/// everything but the time.
fn run(scenario: &Scenario, memory: u64, times: f64) {
    let cells = connections::shape(memory / 100 * 20).unwrap().all_cells();
    let unit = (cells as f64 * times) as u64;
    let before = reset_peak();
    let settings = Settings { memory, ..Settings::new(Seed(11)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    let (mut seen, begun) = (0u64, Instant::now());
    for packet in scenario.packets(unit, 1) {
        engine.packet(&packet);
        seen += 1;
    }
    engine.flush();
    let ns = begun.elapsed().as_nanos() as f64 / seen as f64;
    let (lost, load) = (lost(scenario, &engine), engine.connections().map().load());
    let report = engine.finish().0;
    let peak = before.and_then(|before| Some(process("VmHWM")?.saturating_sub(before)));
    let level = report.connections.sampling.highest;
    let raised: BTreeSet<Alarm> = report
        .alarms
        .iter()
        .map(|alarm| Alarm { kind: alarm.kind.to_owned(), subject: alarm.subject })
        .collect();
    let must = || scenario.must.iter();
    let known =
        |alarm: &Alarm| must().any(|must| must.alarm == *alarm) || scenario.may.contains(alarm);
    let wrong: Vec<_> = raised.iter().filter(|alarm| !known(alarm)).collect();
    let found = |flows: &str| {
        let found =
            must().find(|must| must.flows == flows).map(|must| raised.contains(&must.alarm));
        found.map_or("none named", |found| if found { "yes" } else { "no" })
    };
    println!(
        "| {} | {} MiB | {times} | {ns:.0} | {} | 1 in {} | {load:.2} | {} | {} | {} | {} | {lost} |",
        scenario.name,
        memory >> 20,
        peak.map_or("?".to_owned(), |peak| format!("{:.1}", peak as f64 / f64::from(1 << 20))),
        1u64 << level,
        found("attack"),
        wrong.len(),
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
    for must in must() {
        let flows: u64 = scenario.flows(&must.flows).map(|flows| flows.number.of(unit)).sum();
        if flows >> level >= must.followed {
            assert!(raised.contains(&must.alarm), "{name} x {times}: {:?} {raised:?}", must.alarm);
        }
    }
}

#[test]
fn attacks_beyond_the_table_accuse_nobody_else_and_lose_no_connection() {
    let _alone = alone();
    let slow = cfg!(feature = "slow-tests");
    let sizes: &[u64] = if slow { &[1, 4, 16] } else { &[1] };
    let times: &[f64] = if slow { &[0.1, 0.3, 1.0, 3.0, 10.0] } else { &[3.0] };
    println!(
        "| attack | memory | flows / cells | ns a packet | peak RSS, MiB | sampled | load | named | wrong | scan | second flood | lost |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let scenarios = scenarios();
    assert_eq!(scenarios.len(), 9);
    for scenario in &scenarios {
        for &size in sizes {
            for &times in times {
                run(scenario, size << 20, times);
            }
        }
    }
}
