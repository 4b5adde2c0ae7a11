//! Seeded keys, all distinct, the same on every machine.

/// SplitMix64: a counter through a bijective mixer. Good enough to draw operations from, and as a
/// stream of numbers none of which comes twice. Steele, Lea and Flood, OOPSLA 2014.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The stream of this seed.
    pub fn seeded(seed: u64) -> Self {
        // Seeds that lie close together start far apart.
        Rng(mix(seed.wrapping_add(0x5349_444f_4e00)))
    }

    /// The next number; 2^64 of them are distinct.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        ((self.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Distinct numbers without an end.
#[derive(Debug, Clone)]
pub struct Keys(Rng);

impl Keys {
    /// The keys of this seed.
    pub fn seeded(seed: u64) -> Self {
        Keys(Rng::seeded(seed))
    }
}

impl Iterator for Keys {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        Some(self.0.next_u64())
    }
}

/// Distinct IPv4 five-tuples of 13 bytes: source, destination, ports, protocol. They look like a
/// network's: clients in 10/8 with all their ports, 128 servers, two protocols. Up to 2^48 of them.
#[derive(Debug, Clone)]
pub struct FiveTuples {
    next: u64,
    step: u64,
}

const FIVE_TUPLE_BITS: u32 = 48;

impl FiveTuples {
    /// The five-tuples of this seed.
    pub fn seeded(seed: u64) -> Self {
        let mut rng = Rng::seeded(seed);
        // An odd step visits every one of the 2^48 numbers once.
        FiveTuples { next: rng.next_u64(), step: rng.next_u64() | 1 }
    }
}

impl Iterator for FiveTuples {
    type Item = [u8; 13];
    fn next(&mut self) -> Option<[u8; 13]> {
        let n = self.next & ((1 << FIVE_TUPLE_BITS) - 1);
        self.next = self.next.wrapping_add(self.step);
        let [client0, client1, client2, port0, port1, server, ..] = n.to_le_bytes();
        let (server, udp) = (server >> 1, server & 1 == 1);
        let [service0, service1] = if udp { 53u16 } else { 443 }.to_be_bytes();
        let protocol = if udp { 17 } else { 6 };
        Some([
            10, client0, client1, client2, 192, 0, 2, server, //
            port0, port1, service0, service1, protocol,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_are_distinct_and_the_same_for_a_seed() {
        let tuples: HashSet<_> = FiveTuples::seeded(1).take(100_000).collect();
        assert_eq!(tuples.len(), 100_000);
        let keys: HashSet<_> = Keys::seeded(1).take(100_000).collect();
        assert_eq!(keys.len(), 100_000);
        assert!(Keys::seeded(2).take(100).eq(Keys::seeded(2).take(100)));
        assert!(Keys::seeded(2).take(100).ne(Keys::seeded(3).take(100)));
        assert!(FiveTuples::seeded(2).take(100).ne(FiveTuples::seeded(3).take(100)));
    }

    #[test]
    fn value_stability() {
        assert_eq!(Keys::seeded(1).next(), Some(KEY));
        assert_eq!(FiveTuples::seeded(1).next(), Some(TUPLE));
    }
    const KEY: u64 = 13886690410821009643;
    const TUPLE: [u8; 13] = [10, 235, 64, 207, 192, 0, 2, 55, 146, 90, 0, 53, 17];

    #[test]
    fn chance_and_below_keep_to_their_bounds() {
        let mut rng = Rng::seeded(4);
        let n = crate::trials(0.25, 0.05);
        let hits = (0..n).filter(|_| rng.chance(0.25)).count();
        crate::assert_rate(hits, n, 0.25);
        assert!((0..1000).all(|_| rng.below(3) < 3));
        assert!(!rng.chance(0.0) && rng.chance(1.0));
    }
}
