//! An exact set of IPv6 addresses in fixed memory. A full set refuses new addresses.
//!
//! Each address takes 16 bytes in a hash table with linear probing. A bitmap of hosts, as for an
//! IPv4 /24, is impossible: a /64 has 2^64 hosts, of which few send packets.

use super::sizes;
use sidon::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    bytes::{Image, Parts},
    cells::Memory,
};
use std::net::Ipv6Addr;

const ADDRESS: usize = 16;

/// Addresses that have been seen. The unspecified address `::` is never stored: it marks a free
/// slot.
#[derive(Debug)]
pub struct Addresses {
    seed: Seed,
    slots: u64,
    stored: u64,
    table: Memory,
}

impl Addresses {
    /// An empty set, which can store addresses in seven of eight slots.
    pub fn new(slots: u64, seed: Seed) -> Result<Self, Infeasible> {
        let slots = slots.max(8);
        let bytes =
            slots.checked_mul(ADDRESS as u64).ok_or(Infeasible::Memory { bytes: u64::MAX })?;
        Ok(Addresses { seed, slots, stored: 0, table: Memory::zeroed(bytes)? })
    }

    /// Adds an address and returns whether it is new. On `Err`, nothing has changed.
    pub fn observe(&mut self, address: Ipv6Addr) -> Result<bool, Refused> {
        self.observe_hashed(self.digest(address), address)
    }

    /// [`observe`](Self::observe) for an address whose digest as a [`Host`](super::sizes::Host) is
    /// known.
    pub fn observe_hashed(&mut self, digest: Digest, address: Ipv6Addr) -> Result<bool, Refused> {
        let octets = address.octets();
        if octets == [0; ADDRESS] {
            return Ok(false);
        }
        match self.find(digest, octets) {
            Ok(_) => Ok(false),
            Err(_) if self.stored >= self.slots - self.slots / 8 => {
                Err(Refused::Full { stored: self.stored, cells: self.slots })
            }
            Err(free) => {
                self.table.bytes_mut()[free..free + ADDRESS].copy_from_slice(&octets);
                self.stored += 1;
                Ok(true)
            }
        }
    }

    /// Whether the address has been seen. Both answers are certain.
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        !address.is_unspecified() && self.find(self.digest(address), address.octets()).is_ok()
    }

    /// The number of addresses that have been seen.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// The number of slots.
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    /// All addresses, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        let slots = self.table.bytes().as_chunks::<ADDRESS>().0.iter();
        slots.filter(|octets| **octets != [0; ADDRESS]).map(|octets| Ipv6Addr::from(*octets))
    }

    fn digest(&self, address: Ipv6Addr) -> Digest {
        sizes::host(address.into()).digest(self.seed)
    }

    /// The offset of the address, or of the free slot where it would be stored.
    fn find(&self, digest: Digest, octets: [u8; ADDRESS]) -> Result<usize, usize> {
        let mut slot = sidon::hash::spread::position(digest, 0, self.slots);
        // One slot in eight is free, so the loop ends.
        loop {
            let at = slot as usize * ADDRESS;
            match &self.table.bytes()[at..at + ADDRESS] {
                found if found == octets => return Ok(at),
                found if found == [0; ADDRESS] => return Err(at),
                _ => slot = if slot + 1 == self.slots { 0 } else { slot + 1 },
            }
        }
    }
}

impl Image for Addresses {
    const KIND: u16 = 17;

    fn to_bytes(&self) -> Vec<u8> {
        let payload = &self.table.bytes()[..self.slots as usize * ADDRESS];
        let fields = vec![self.slots, self.stored];
        Parts { kind: Self::KIND, seed_check: self.seed.check_value(), fields, payload }.to_bytes()
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let Parts { kind, seed_check, fields, payload } = Parts::of(image)?;
        if kind != Self::KIND {
            return Err(Malformed::Kind { expected: Self::KIND, got: kind });
        }
        if seed_check != seed.check_value() {
            return Err(Malformed::Seed);
        }
        let field = |name| Err(Malformed::Field { name });
        let [slots, stored] = fields[..] else { return field("fields") };
        let expected = slots.saturating_mul(ADDRESS as u64);
        if slots < 8 || payload.len() as u64 != expected {
            return Err(Malformed::Length { expected, got: payload.len() as u64 });
        }
        let mut read = Addresses::new(slots, seed)?;
        read.table.bytes_mut()[..payload.len()].copy_from_slice(payload);
        if read.iter().count() as u64 != stored || stored > slots - slots / 8 {
            return field("stored");
        }
        read.stored = stored;
        // A lookup must find each address in its own slot, so no address is stored twice.
        for (slot, octets) in payload.as_chunks::<ADDRESS>().0.iter().enumerate() {
            let digest = read.digest(Ipv6Addr::from(*octets));
            if *octets != [0; ADDRESS] && read.find(digest, *octets) != Ok(slot * ADDRESS) {
                return field("addresses");
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::Rng;
    use std::collections::HashSet;

    #[test]
    fn every_answer_is_the_twins_until_it_is_full() {
        let (mut rng, mut twin) = (Rng::seeded(1), HashSet::new());
        let mut set = Addresses::new(64, Seed(2)).unwrap();
        let mut refused = 0;
        for _ in 0..2_000 {
            let address = Ipv6Addr::from(u128::from(rng.below(80)));
            match set.observe(address) {
                Ok(new) => assert_eq!(new, address.to_bits() != 0 && twin.insert(address)),
                Err(_) => {
                    refused += 1;
                    assert_eq!(twin.len(), 56);
                }
            }
            let other = Ipv6Addr::from(u128::from(rng.below(80)));
            assert_eq!(set.contains(other), twin.contains(&other));
        }
        assert!(refused > 0 && set.stored() == 56);
        assert_eq!(set.iter().collect::<HashSet<_>>(), twin);
    }
}
