//! Finds the hosts that try the most ports of others, within the last minute, in 52 KiB.
//!
//! ```text
//! cargo run -p sidon --example port_scans
//! ```

use sidon::{
    Seed,
    count::{Distinct, FanOut},
    plan::{
        self,
        fan_out::{self, Target},
    },
};
use std::net::Ipv4Addr;

type Failed = Box<dyn std::error::Error>;

/// Pseudo-random numbers: every run of the example sees the same traffic.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn main() -> Result<(), Failed> {
    // Estimates of 13 % for 100 scanners; three panes of 20 seconds, in milliseconds.
    let target = Target { panes: 3, pane: 20_000, ..Target::new(100, 0.13) };
    let mut ports: FanOut<Ipv4Addr> = FanOut::new(fan_out::shape(target)?, Seed::random()?)?;
    let mut hosts = Distinct::new(plan::distinct::shape(0.01)?, Seed::random()?)?;
    println!("{} + {} bytes", ports.memory_bytes(), hosts.memory_bytes());

    let mut state = 1;
    for millisecond in 0..120_000u64 {
        // Ordinary hosts use a few services of many servers.
        let host = Ipv4Addr::from(0x0a00_0000 + next(&mut state) as u32 % 20_000);
        let service = [53u16, 80, 443, 8080][next(&mut state) as usize % 4];
        ports.add(&host, &service, millisecond);
        hosts.add(&host);
        // A fast scan: 1,000 ports in a tenth of a second. A slow one: three ports a second.
        if (60_000..60_100).contains(&millisecond) {
            for number in 0..10 {
                let port = ((millisecond - 60_000) * 10 + number) as u16;
                ports.add(&Ipv4Addr::new(198, 51, 100, 9), &port, millisecond);
            }
        }
        if millisecond % 333 == 0 {
            let port = (millisecond / 333) as u16;
            ports.add(&Ipv4Addr::new(203, 0, 113, 5), &port, millisecond);
        }
        if [60_100, 119_999].contains(&millisecond) {
            println!("after {millisecond} ms:");
            for (host, count) in ports.largest(2, millisecond) {
                println!("  {host} tried ports: {count}");
            }
        }
    }
    println!("hosts: {}", hosts.count());
    Ok(())
}
