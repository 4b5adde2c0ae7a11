//! Sizes a state map by a plan, then measures its errors against an exact reference.
//!
//!     cargo run -p sidon --example plan_and_audit
//!
//! The plan computes memory and error rates without sampling. `Audit` applies every operation to
//! the map and to a hash table, and counts the answers that differ.

use sidon::{
    Seed,
    plan::{self, Prefer, StateShape, States},
    state::{Audit, Fingerprint, Next},
};
use std::error::Error;

const FLOWS: u64 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let target = States { flows: FLOWS, states: 8, error: 0.001 };
    for row in plan::states(target)? {
        let name = match row.shape {
            StateShape::Direct(_) => "direct",
            StateShape::Stateful(_) => "stateful",
            StateShape::Fingerprint(_) => "fingerprint",
            _ => "another",
        };
        let kib = row.bytes / 1024;
        println!(
            "{name:<12}{kib:>6} KiB    error {:.6}    don't know {:.6}",
            row.error, row.dont_know
        );
    }

    let shape = plan::fingerprint::shape(target, Prefer::Memory)?;
    let map = Fingerprint::new(shape, Seed(42))?;
    let mut audit = Audit::new(map);
    for flow in 0..FLOWS {
        audit.apply(&flow, Next::Insert((flow % 8) as u16))?;
    }
    for flow in 0..1_000_000 {
        let _answer = audit.ask(&flow);
    }

    println!("\nthe smaller fingerprint map, measured with {FLOWS} flows stored:");
    for (name, share) in audit.tally.rates() {
        let [least, most] = share.interval();
        println!("{name:<20}{:>7} of {:>7}    95 %: {least:.6} to {most:.6}", share.hits, share.of);
    }
    let [error, _dont_know] = plan::fingerprint::rates(shape, FLOWS);
    println!("planned error: {error:.6}");
    println!("a state of a flow never inserted is {}", audit.map.certainty());
    Ok(())
}
