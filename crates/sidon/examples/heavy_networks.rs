//! Networks that receive many packets although none of their hosts does, with bounds.
//!
//!     cargo run -p sidon --example heavy_networks
//!
//! Amounts are halved every second, so the list shows the last seconds. After five of ten seconds a flood
//! hits all hosts of 198.51.100.0/24 and of 2001:db8:7::/48. Two seconds later both are on the list.

use sidon::{Seed, count::Prefixes, plan};
use std::{error::Error, net::IpAddr};

fn main() -> Result<(), Box<dyn Error>> {
    // Bytes, packets and new flows per destination, in 256 KiB.
    let shape = plan::prefixes::shape(256 << 10, 3)?;
    let mut victims: Prefixes<3> = Prefixes::new(shape, Seed::random()?)?;

    let mut random = 42u64;
    let mut draw = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 33
    };
    for second in 1..=10 {
        for _ in 0..20_000 {
            // Host i of 5,000 receives in proportion to 1 / i.
            let host = 5_000f64.powf(draw() as f64 / f64::from(1u32 << 31)) as u32;
            let address = IpAddr::V4((0x0a00_0000 + (host % 97) * 0x1_0101 + host).into());
            victims.add(address, [64 + draw() % 1_400, 1, u64::from(draw() % 8 == 0)])?;
            if second > 5 && draw() % 4 == 0 {
                victims.add([198, 51, 100, draw() as u8].into(), [60, 1, 1])?;
                let host = [0x2001, 0xdb8, 7, draw() as u16, draw() as u16, 0, 0, 1];
                victims.add(host.into(), [60, 1, 1])?;
            }
        }
        // A tenth of all new flows: the third amount.
        let [_, packets, flows] = victims.total();
        let heavy = victims.heavy(2, flows / 10);
        println!("second {second}: {packets} packets, {flows} new flows, halved every second");
        for row in &heavy.rows {
            println!("  {:<20} new flows {}", row.prefix, row.residue[2]);
        }
        if heavy.others < flows / 10 {
            println!("  no other network has a tenth of the new flows");
        }
        victims.halve(1);
    }
    Ok(())
}
