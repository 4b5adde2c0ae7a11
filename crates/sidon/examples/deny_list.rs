//! A deny-list whose entries expire: addresses that attack are denied for 10 to 20 minutes.
//!
//!     cargo run -p sidon --example deny_list
//!
//! The list keeps fingerprints of addresses, not the addresses. Its memory is fixed at the start.
//! An address that attacks again stays on the list: `see` touches it.

use sidon::{
    Seed,
    plan::{Prefer, States, fingerprint},
    state::{Clock, Fingerprint},
};
use std::{error::Error, net::IpAddr};

/// Seconds after which an address that nothing touches may expire. It is gone after two periods.
const PERIOD: u64 = 10 * 60;

fn main() -> Result<(), Box<dyn Error>> {
    // Up to 100,000 addresses. One in a million others may be denied by mistake.
    let target = States { flows: 100_000, states: 1, error: 1e-6 };
    let shape = fingerprint::shape(target, Prefer::Speed)?;
    let mut denied = Clock::new(Fingerprint::new(shape, Seed::random()?)?, PERIOD);

    // The time of each event in seconds, the address, and whether it attacks.
    let events = [
        (0, "192.0.2.7", true),
        (5, "192.0.2.7", false),
        (8, "2001:db8::9", false),
        (60, "2001:db8::9", true),
        (550, "2001:db8::9", true),
        (1_140, "2001:db8::9", false),
        (1_300, "192.0.2.7", false),
        (1_800, "2001:db8::9", false),
        (1_810, "198.51.100.4", true),
    ];
    for (now, address, attacks) in events {
        let address: IpAddr = address.parse()?;
        // `at` first removes the addresses that have expired by now.
        let list = denied.at(now);
        if attacks {
            list.see(&address)?;
            println!("{now:5} s: {address} attacks");
        } else {
            let verdict = if list.contains(&address) { "denied" } else { "allowed" };
            println!("{now:5} s: {address} is {verdict}");
        }
    }
    println!("memory: {} KiB", denied.map().memory_bytes() / 1024);
    println!("\"allowed\" is certain; \"denied\" is {}", denied.map().certainty());
    Ok(())
}
