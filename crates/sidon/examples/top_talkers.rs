//! The hosts that send the most bytes, with a lower and an upper bound for each of them.
//!
//!     cargo run -p sidon --example top_talkers
//!
//! The table has room for a fraction of the hosts. The ranking states how much of it is certain.

use sidon::{Seed, count::Top, plan};
use std::{error::Error, net::Ipv4Addr};

fn main() -> Result<(), Box<dyn Error>> {
    // 4 KiB for keys of four bytes with two amounts each: bytes, which decide, and packets.
    let shape = plan::top::shape(4 << 10, 4, 2)?;
    let mut talkers: Top<Ipv4Addr, 2> = Top::new(shape, Seed::random()?)?;

    // 200,000 packets. Host i of 5,000 sends in proportion to 1 / i.
    let mut random = 42u64;
    for _ in 0..200_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let share = (random >> 11) as f64 / (1u64 << 53) as f64;
        let host = 5_000f64.powf(share) as u32;
        let length = 64 + (random >> 8) % 1_400;
        talkers.add(&Ipv4Addr::from(0x0a00_0000 + host), [length, 1]);
    }

    let [bytes, packets] = talkers.total();
    println!("{bytes} bytes in {packets} packets");
    let ranking = talkers.heaviest(8);
    println!("host           bytes at least    at most    packets at least    at most");
    for entry in &ranking.entries {
        let [bytes, packets] = entry.amounts;
        println!(
            "{:<15}{:>14}{:>11}{:>20}{:>11}",
            entry.key, bytes.least, bytes.most, packets.least, packets.most
        );
    }
    println!("every other host sent at most {} bytes", ranking.others);
    println!("the first {} hosts are the heaviest; all bounds are certain", ranking.leading);
    Ok(())
}
