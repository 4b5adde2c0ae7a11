//! Packets of addresses by Zipf's law, with ten heavy networks among them.

use crate::{Rng, Zipf};
use std::net::{IpAddr, Ipv6Addr};

/// One packet in this many goes to each heavy network.
pub const ONE_IN: u64 = 100;

/// An endless trace of addresses and their amounts: bytes, packets and new flows.
///
/// Nine packets of ten go to addresses drawn by Zipf's law, three quarters of them IPv4. One of a
/// hundred goes to each of ten [`heavy`](Self::heavy) networks, to an address drawn evenly.
///
/// ```
/// use sidon_kit::Networks;
///
/// let mut trace = Networks::seeded(1, 1_000);
/// assert_eq!(trace.heavy().len(), 10);
/// let (address, [bytes, packets, flows]) = trace.next().unwrap();
/// assert!(bytes >= 40 && packets == 1 && flows <= 1, "{address}");
/// ```
pub struct Networks {
    names: Vec<IpAddr>,
    law: Zipf,
    rng: Rng,
}

/// The numbers of bits of the heavy networks: of IPv4, then of IPv6.
const HEAVY: [[u8; 5]; 2] = [[32, 24, 20, 16, 8], [128, 64, 56, 48, 32]];

impl Networks {
    /// A trace with `addresses` addresses beside those of the heavy networks.
    pub fn seeded(seed: u64, addresses: u64) -> Self {
        let mut rng = Rng::seeded(seed);
        let names = (0..addresses).map(|_| ordinary(&mut rng)).collect();
        Networks { names, law: Zipf::new(addresses, 1.0), rng }
    }

    /// The heavy networks: the first address, and the number of bits.
    pub fn heavy(&self) -> [(IpAddr, u8); 10] {
        std::array::from_fn(|i| {
            let (family, depth) = (i / 5, i % 5);
            (network(family, depth, 0), HEAVY[family][depth])
        })
    }
}

/// An address outside the heavy networks, with few networks at the beginning.
fn ordinary(rng: &mut Rng) -> IpAddr {
    let bits = rng.next_u64();
    if bits >> 62 < 3 {
        let [a, b, c, d, ..] = bits.to_le_bytes();
        return IpAddr::from([1 + a % 100, b & 0x3f, c, d]);
    }
    let host = u128::from(rng.next_u64());
    let network = u128::from(bits & 0xfff) << 80 | u128::from(bits >> 16 & 0xff) << 64;
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | network | host).into()
}

/// The address of a heavy network whose bits after the network's are those of `host`.
fn network(family: usize, depth: usize, host: u128) -> IpAddr {
    // The networks differ in their first bits, so none contains another.
    let own = depth as u32;
    if family == 0 {
        let bits = (200 + own) << 24 | 0x0071_c305;
        let mask = u32::MAX.checked_shl(32 - u32::from(HEAVY[0][depth])).unwrap_or(0);
        return IpAddr::V4((bits & mask | host as u32 & !mask).into());
    }
    let bits = 0x2a00_0001_71c3_0505_7000_0000_0000_0001 + (u128::from(own) << 96);
    let mask = u128::MAX.checked_shl(128 - u32::from(HEAVY[1][depth])).unwrap_or(0);
    Ipv6Addr::from_bits(bits & mask | host & !mask).into()
}

impl Iterator for Networks {
    type Item = (IpAddr, [u64; 3]);

    fn next(&mut self) -> Option<Self::Item> {
        let draw = self.rng.below(ONE_IN) as usize;
        let address = if draw < 10 {
            let host = u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64());
            network(draw / 5, draw % 5, host)
        } else {
            self.names[self.law.draw(&mut self.rng) as usize - 1]
        };
        let bits = self.rng.next_u64();
        Some((address, [40 + bits % 1461, 1, u64::from(bits >> 61 == 0)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heavy_networks_have_their_share_and_nobody_else_is_in_them() {
        let trace = Networks::seeded(5, 10_000);
        let heavy = trace.heavy();
        let within = |address: IpAddr, (network, length): (IpAddr, u8)| match (address, network) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                (a.to_bits() ^ b.to_bits()).leading_zeros() >= length.into()
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                (a.to_bits() ^ b.to_bits()).leading_zeros() >= length.into()
            }
            _ => false,
        };
        for &name in &trace.names {
            assert!(heavy.iter().all(|&network| !within(name, network)), "{name}");
        }
        let mut counts = [0; 10];
        let packets = 360_000;
        for (address, _) in trace.take(packets) {
            let inside: Vec<usize> = (0..10).filter(|&i| within(address, heavy[i])).collect();
            assert!(inside.len() <= 1, "{address}");
            inside.into_iter().for_each(|i| counts[i] += 1);
        }
        for count in counts {
            crate::assert_rate(count, packets, 1.0 / ONE_IN as f64);
        }
    }
}
