//! Sizes a state map by a plan, then measures its errors against an exact reference.
//!
//!     cargo run -p sidon --example plan_and_audit
//!
//! The plan computes memory and error rates without sampling. A hash table next to the map holds the
//! true state of every flow, and the program counts the answers that differ.

use sidon::{
    Lookup, Seed,
    plan::{self, Prefer, States},
    state::{Direct, Fingerprint, Stateful},
};
use std::{collections::HashMap, error::Error};

const FLOWS: u64 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let target = States { flows: FLOWS, states: 8, error: 0.001 };
    let direct = plan::direct::shape(target)?;
    let stateful = plan::stateful::shape(target)?;
    let shape = plan::fingerprint::shape(target, Prefer::Memory)?;
    for (name, bytes, [error, dont_know]) in [
        ("fingerprint", Fingerprint::planned_bytes(shape), plan::fingerprint::rates(shape, FLOWS)),
        ("stateful", Stateful::planned_bytes(stateful), plan::stateful::rates(stateful, FLOWS)),
        ("direct", Direct::planned_bytes(direct), plan::direct::rates(direct, FLOWS)),
    ] {
        println!(
            "{name:<12}{:>6} KiB    error {error:.6}    don't know {dont_know:.6}",
            bytes / 1024
        );
    }

    let mut map = Fingerprint::new(shape, Seed(42))?;
    let mut truth = HashMap::new();
    for flow in 0..FLOWS {
        let state = (flow % 8) as u16;
        map.insert(&flow, state)?;
        truth.insert(flow, state);
    }
    let (mut wrong, mut unknown, mut passed) = (0u64, 0u64, 0u64);
    for flow in 0..1_000_000 {
        match (map.lookup(&flow), truth.get(&flow)) {
            (Lookup::State(state), Some(&right)) => wrong += u64::from(state != right),
            (Lookup::Absent, Some(_)) => wrong += 1,
            (Lookup::DontKnow, Some(_)) => unknown += 1,
            (Lookup::Absent, None) => {}
            (_, None) => passed += 1,
        }
    }

    let others = 1_000_000 - FLOWS;
    println!("\nthe fingerprint map, measured with {FLOWS} flows stored:");
    println!("wrong answers about stored flows: {wrong}, \"don't know\": {unknown}");
    println!("of {others} other flows, {passed} are not answered \"absent\"");
    let [error, _dont_know] = plan::fingerprint::rates(shape, FLOWS);
    println!("planned share: {error:.6}, measured: {:.6}", passed as f64 / others as f64);
    println!("a state of a flow never inserted is {}", map.certainty());
    Ok(())
}
