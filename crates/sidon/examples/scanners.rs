//! Sources that fail more often than usual, with a budget of false accusations, and pairs with a period.
//!
//!     cargo run -p sidon --example scanners
//!
//! 2,000 clients fail with 5 % of their connections, as usual. One source fails with 10 %, one with 80 %. A
//! third one contacts its server every 60 seconds, give or take 12.

use sidon::{Seed, count::Periods, decide::Suspects, plan};
use std::{error::Error, net::Ipv4Addr};

fn main() -> Result<(), Box<dyn Error>> {
    // Of 10^9 connections, at most one gives a false accusation.
    let test = plan::decide::shape(0.05, 1_000_000_000)?;
    let shape = plan::decide::suspects(3_000, test)?;
    let mut sources: Suspects<Ipv4Addr> = Suspects::new(shape, Seed::random()?)?;
    println!("planned: at most {:.0} connections at 10 %", plan::decide::delay(test, 0.1));
    println!("planned: at most {:.0} connections at 80 %", plan::decide::delay(test, 0.8));

    let mut random = 42u64;
    let mut draw = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut accused = Vec::new();
    for round in 1..=3_000 {
        for host in 0..2_002u32 {
            let share = match host {
                2_000 => 0.1,
                2_001 => 0.8,
                _ => 0.05,
            };
            let source = Ipv4Addr::from(0x0a00_0000 + host);
            if sources.see(&source, draw() < share) && !accused.contains(&source) {
                println!("accused: {source} after {round} connections");
                accused.push(source);
            }
        }
    }
    println!("lost: {}", sources.lost());

    let mut pairs: Periods<(Ipv4Addr, Ipv4Addr)> =
        Periods::new(plan::periods::shape(1_000)?, Seed::random()?)?;
    let server = Ipv4Addr::new(192, 0, 2, 1);
    let (mut regular, mut random) = (0.0, 0.0);
    for _ in 0..40 {
        pairs.see(&(Ipv4Addr::new(10, 0, 0, 1), server), (regular * 1e9) as u64);
        pairs.see(&(Ipv4Addr::new(10, 0, 0, 2), server), (random * 1e9) as u64);
        regular += 60.0 + 24.0 * (draw() - 0.5);
        random -= 60.0 * draw().ln();
    }
    for ((host, _), found) in pairs.most_regular(2) {
        println!("{host}: score {:.2}, every {:.0?}", found.score, found.period);
    }
    Ok(())
}
