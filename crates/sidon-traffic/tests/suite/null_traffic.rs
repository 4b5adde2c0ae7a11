//! Hours without an attack: an engine that runs through quiet and busy hours accuses nobody more often
//! than its budget allows.
//!
//! `SIDON_NULL_HOURS` sets the number of hours; `scripts/null-traffic` runs a thousand. An engine runs
//! for twenty hours, because a fault may need many of them to add up.

use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, Settings,
    generate::{Mix, scenario::Scenario},
};
use std::sync::Mutex;

const HOUR: u64 = 3_600_000_000_000;
/// Hours of one engine.
const SHIFT: u64 = 20;
/// Hours without `SIDON_NULL_HOURS`.
const FEW: u64 = 2;
/// The units of the scenario in the hours of a day: 50 to 350 packets per second, 200 on average.
const UNITS: [u64; 4] = [1_000, 19_000, 5_000, 15_000];
/// False accusations per day of traffic that the defaults allow.
const BUDGET: f64 = 0.1;

/// Packets, and a line for each accusation, of the hours from `first` up to `end`.
fn shift(scenario: &Scenario, first: u64, end: u64) -> (u64, Vec<String>) {
    let settings = Settings { memory: 16 << 20, ..Settings::new(Seed(u128::from(first) + 5)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    let mut number = 0;
    for hour in first..end {
        let start_ns = (hour - first) * HOUR;
        let unit = UNITS[hour as usize % UNITS.len()];
        for mut packet in scenario.packets(unit, hour, u64::MAX).unwrap() {
            // The last seconds of a conversation must not overlap the next hour.
            if packet.time_ns < Mix::default().start_ns + HOUR {
                packet.time_ns += start_ns;
                engine.packet(&packet);
                number += 1;
            }
        }
    }
    engine.flush();
    let report = engine.finish().0;
    assert_eq!((report.ledger.seen, report.ledger.balance()), (number, 0));
    let accusations = report.alarms.iter().map(|alarm| {
        let minute = (alarm.opened - Mix::default().start_ns) / (HOUR / 60);
        format!("hours from {first}, minute {minute}: {}", alarm.text)
    });
    (number, accusations.collect())
}

#[test]
fn ordinary_hours_stay_within_the_budget_of_false_accusations() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/null/hour.toml");
    let scenario = Scenario::read(file).unwrap();
    let hours = match std::env::var("SIDON_NULL_HOURS") {
        Ok(hours) => hours.parse().expect("a number of hours"),
        Err(_) => FEW,
    };
    let next = Mutex::new(0);
    let sum = Mutex::new((0u64, Vec::new()));
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let first = {
                        let mut next = next.lock().unwrap();
                        *next += SHIFT;
                        *next - SHIFT
                    };
                    if first >= hours {
                        return;
                    }
                    let (packets, accusations) = shift(&scenario, first, hours.min(first + SHIFT));
                    let mut sum = sum.lock().unwrap();
                    sum.0 += packets;
                    sum.1.extend(accusations);
                }
            });
        }
    });
    let (packets, accusations) = sum.into_inner().unwrap();
    let rate = packets as f64 / (hours * 3_600) as f64;
    println!("| hours | packets | packets per second | accusations | budget |");
    println!("|---|---|---|---|---|");
    let budget = BUDGET * hours as f64 / 24.0;
    println!("| {hours} | {packets} | {rate:.0} | {} | {budget:.1} |", accusations.len());
    let text = accusations.join("\n");
    println!("{text}");
    assert!(accusations.len() as f64 <= budget, "{text}");
    assert!(hours % 4 != 0 || (rate - 200.0).abs() < 20.0, "{rate} packets per second");
}
