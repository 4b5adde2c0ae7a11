//! An exact set of IPv6 addresses in fixed memory. A full set refuses new addresses.
//!
//! Each address takes 16 bytes in a hash table with two choices. A bitmap of hosts, as for an IPv4
//! /24, is impossible: a /64 has 2^64 hosts, of which few send packets.
//! ```text
//! digest --> position 0: | used | used | used | ..        the first free slot, if it is near
//!        --> position 1: | used | free | ..               else the nearer of the two
//! ```
//! An operation reads at most 128 slots, whatever addresses an attacker chooses under a seed that he
//! knows. An address is refused if the 64 slots from both positions on are used. Random
//! addresses are refused from a load of 0.82 on, 15 in a million until seven of eight slots are used.

use super::sizes;
use sidon::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    saved::{Parts, Save},
};
use std::net::Ipv6Addr;

const ADDRESS: usize = 16;
/// Slots that are read from a position on.
const WINDOW: u64 = 64;
/// The second position is read only if the first `NEAR` slots of the first one are used.
const NEAR: u64 = 8;

/// Addresses that have been seen. The unspecified address `::` is never stored: it marks a free
/// slot.
#[derive(Debug)]
pub struct Addresses {
    seed: Seed,
    slots: u64,
    stored: u64,
    table: Vec<u8>,
}

impl Addresses {
    /// An empty set, which can store addresses in seven of eight slots.
    pub fn new(slots: u64, seed: Seed) -> Result<Self, Infeasible> {
        let slots = slots.max(8);
        let bytes = slots.saturating_mul(ADDRESS as u64);
        let length = usize::try_from(bytes).map_err(|_| Infeasible::Memory { bytes })?;
        let mut table = Vec::new();
        table.try_reserve_exact(length).map_err(|_| Infeasible::Memory { bytes })?;
        table.resize(length, 0);
        Ok(Addresses { seed, slots, stored: 0, table })
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
            Err(free) => {
                let room = self.stored < self.slots - self.slots / 8;
                let full = Refused::Full { stored: self.stored, cells: self.slots };
                let free = free.filter(|_| room).ok_or(full)?;
                self.table[free..free + ADDRESS].copy_from_slice(&octets);
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
        let slots = self.table.as_chunks::<ADDRESS>().0.iter();
        slots.filter(|octets| **octets != [0; ADDRESS]).map(|octets| Ipv6Addr::from(*octets))
    }

    fn digest(&self, address: Ipv6Addr) -> Digest {
        sizes::host(address.into()).digest(self.seed)
    }

    /// The offset of the address, or of the free slot where it would be stored, if there is one.
    fn find(&self, digest: Digest, octets: [u8; ADDRESS]) -> Result<usize, Option<usize>> {
        let mut nearest: Option<(u64, usize)> = None;
        for choice in 0..2 {
            let mut slot = digest.position(choice, self.slots);
            for distance in 0..WINDOW {
                let at = slot as usize * ADDRESS;
                #[cfg(test)]
                tests::READ.with(|read| read.set(read.get() + 1));
                match &self.table[at..at + ADDRESS] {
                    found if found == octets => return Ok(at),
                    found if found == [0; ADDRESS] => {
                        if nearest.is_none_or(|(other, _)| distance < other) {
                            nearest = Some((distance, at));
                        }
                        break;
                    }
                    _ => slot = if slot + 1 == self.slots { 0 } else { slot + 1 },
                }
            }
            // No slot becomes free again, so an address with a near free slot is not elsewhere.
            if nearest.is_some_and(|(distance, _)| distance < NEAR) {
                break;
            }
        }
        Err(nearest.map(|(_, at)| at))
    }
}

impl Save for Addresses {
    const KIND: u16 = sidon::internals::ADDRESSES.number;

    fn to_bytes(&self) -> Vec<u8> {
        let payload = &self.table[..self.slots as usize * ADDRESS];
        let fields = vec![self.slots, self.stored];
        let (kind, seed_check) = (Self::KIND, self.seed.check_value());
        Parts { kind, seed_check, fields, room: 0, payload }.to_bytes()
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let Parts { kind, seed_check, fields, room, payload } = Parts::of(image)?;
        if kind != Self::KIND {
            return Err(Malformed::Kind { expected: Self::KIND, got: kind });
        }
        if seed_check != seed.check_value() {
            return Err(Malformed::Seed);
        }
        let field = |name| Err(Malformed::Field { name });
        if room != 0 {
            return field("room");
        }
        let [slots, stored] = fields[..] else { return field("fields") };
        let expected = slots.saturating_mul(ADDRESS as u64);
        if slots < 8 || payload.len() as u64 != expected {
            return Err(Malformed::Length { expected, got: payload.len() as u64 });
        }
        let mut read = Addresses::new(slots, seed)?;
        read.table[..payload.len()].copy_from_slice(payload);
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
    use std::{cell::Cell, collections::HashSet};

    thread_local! {
        /// Slots that searches have read.
        pub(super) static READ: Cell<u64> = const { Cell::new(0) };
    }

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

    /// Random addresses until the set is full: the load at the first refusal, and the refusals.
    fn fill(slots: u64, seed: u128) -> (f64, u64) {
        let mut rng = Rng::seeded(seed as u64);
        let mut set = Addresses::new(slots, Seed(seed)).unwrap();
        let (most, mut first, mut refused) = (slots - slots / 8, None, 0);
        while set.stored() < most {
            let address = Ipv6Addr::from(u128::from(rng.next_u64()) << 64 | 1);
            if set.observe(address).is_err() {
                refused += 1;
                first = first.or(Some(set.stored()));
            }
        }
        (first.unwrap_or(most) as f64 / slots as f64, refused)
    }

    #[test]
    fn random_addresses_fill_seven_of_eight_slots() {
        for seed in 1..=5 {
            let (load, refused) = fill(1 << 16, seed);
            assert!(load > 0.78 && refused < 20, "{load} {refused}");
        }
    }

    #[test]
    fn addresses_that_an_attacker_chose_under_a_known_seed_cost_no_more_than_two_windows() {
        const SLOTS: u64 = 1 << 14;
        let mut set = Addresses::new(SLOTS, Seed(0)).unwrap();
        let (mut refused, mut chosen, mut dearest) = (0, 0, 0);
        // All have both positions in one part of 256 slots, of 64 such parts.
        for number in 1..=2_000_000u128 {
            let address = Ipv6Addr::from(0x2001_0db8 << 96 | number);
            let digest = set.digest(address);
            let near = |choice| digest.position(choice, SLOTS) < 256;
            if near(0) && near(1) {
                chosen += 1;
                let before = READ.get();
                refused += u64::from(set.observe(address).is_err());
                dearest = dearest.max(READ.get() - before);
                assert_eq!(set.contains(address), set.iter().any(|one| one == address));
            }
        }
        // The part and one window after it are full. Linear probing would have stored them all, and
        // read 450 slots for the last.
        assert!(chosen > 400 && dearest == 2 * WINDOW, "{chosen} {dearest}");
        assert!(set.stored() <= 256 + WINDOW && set.stored() + refused == chosen, "{refused}");
        let table = set.table.as_chunks::<ADDRESS>().0;
        let used = table.iter().rposition(|octets| *octets != [0; ADDRESS]).unwrap();
        assert!(used < 256 + WINDOW as usize, "{used}");
    }
}
