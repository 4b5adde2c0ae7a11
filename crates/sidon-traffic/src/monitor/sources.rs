//! New source addresses, exact while there is room.
//!
//! IPv4 addresses are stored by /24: up to seven hosts in one word, more in a bitmap. [`Subnets`]
//! is a plain form of Rottenstreich et al., 2021, section VIII-D, which outperforms that of the
//! paper. IPv6 addresses are stored one by one and reported by /64.
//!
//! Addresses known before the first packet, from a file of an earlier run, are not new. A full
//! table refuses new addresses and still answers exactly for those it stores. The ledger counts the
//! refusals.

use super::{
    addresses::Addresses,
    sizes::{self, Host},
};
use crate::{
    batch::{self, Columns},
    budget::Budget,
};
use sidon::{
    Digest, Infeasible, Key, Refused, Seed,
    zone::{Subnets, subnets},
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// One shard's source addresses.
#[derive(Debug)]
pub struct Sources {
    pub(crate) v4: Subnets,
    pub(crate) v6: Addresses,
    /// The number of new addresses.
    pub new: u64,
    /// Packets whose source the table refused, by IP version.
    pub refused: [u64; 2],
    /// The number of addresses of each subnet that were known before the first packet.
    pub(crate) known: BTreeMap<Subnet, u32>,
    /// The sum of the digests of the known addresses. It detects different addresses in equal
    /// numbers.
    pub(crate) known_check: u64,
    seed: Seed,
    /// Packets until the tables refuse new addresses, if a test has set it.
    full_after: Option<u64>,
    /// A direct-mapped cache of stored addresses, indexed by digest. Most packets come from few
    /// sources, and a hit avoids the table lookup.
    lately: Box<[Host; LATELY]>,
}

/// The number of addresses in the cache.
const LATELY: usize = 256;
/// IPv6 addresses that are sorted at a time for a report, on average.
const PASS: u64 = 1 << 16;
/// Sources whose table words are prefetched before the first one is looked up.
const CHUNK: usize = 32;

/// A /24 of IPv4 or a /64 of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subnet {
    /// The upper 24 bits.
    V4(u32),
    /// The upper 64 bits.
    V6(u64),
}

impl Subnet {
    /// The subnet of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Subnet::V4(address.to_bits() >> 8),
            IpAddr::V6(address) => Subnet::V6((address.to_bits() >> 64) as u64),
        }
    }
}

impl std::fmt::Display for Subnet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Subnet::V4(upper) => write!(f, "{}/24", Ipv4Addr::from_bits(upper << 8)),
            Subnet::V6(upper) => write!(f, "{}/64", Ipv6Addr::from_bits(u128::from(upper) << 64)),
        }
    }
}

/// The position in the cache of an address with this digest.
#[inline(always)]
fn place(digest: Digest) -> usize {
    digest.0 as usize % LATELY
}

impl Sources {
    /// Empty tables.
    pub fn new(budget: &Budget, seed: Seed) -> Result<Self, Infeasible> {
        let v4 = Subnets::new(budget.sources_v4, seed)?;
        Ok(Self::of(v4, Addresses::new(budget.sources_v6, seed)?))
    }

    /// A monitor with these tables and all counts zero.
    pub(crate) fn of(v4: Subnets, v6: Addresses) -> Self {
        let (seed, known) = (v6.seed(), BTreeMap::new());
        let lately = Box::new([[0; 17]; LATELY]);
        Sources {
            v4,
            v6,
            new: 0,
            refused: [0; 2],
            known,
            known_check: 0,
            seed,
            full_after: None,
            lately,
        }
    }

    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    /// The integers that fix the memory of both tables.
    pub(crate) fn shapes(&self) -> (subnets::Shape, u64) {
        (self.v4.shape(), self.v6.slots())
    }

    /// Whether the number of stored addresses is that of the known ones plus that of the new ones.
    pub(crate) fn adds_up(&self) -> bool {
        let mut hosts: BTreeMap<Subnet, u32> = BTreeMap::new();
        for address in self.v6.iter() {
            *hosts.entry(Subnet::of(address.into())).or_default() += 1;
        }
        hosts.extend(self.v4.iter().map(|(subnet, hosts)| (Subnet::V4(subnet as u32), hosts)));
        let all: u64 = hosts.values().copied().map(u64::from).sum();
        let known: u64 = self.known.values().copied().map(u64::from).sum();
        let are_in = |(subnet, known): (&Subnet, &u32)| hosts.get(subnet) >= Some(known);
        self.new.checked_add(known) == Some(all) && self.known.iter().all(are_in)
    }

    /// Whether both had the same known addresses before the first packet.
    pub(crate) fn knows_as(&self, other: &Sources) -> bool {
        self.known == other.known && self.known_check == other.known_check
    }

    /// Adds the addresses of another monitor that had the same known addresses. Returns how many
    /// did not fit, by IP version.
    pub(crate) fn merge(&mut self, other: &Sources) -> [u64; 2] {
        let mut without_room = [0; 2];
        for address in other.addresses() {
            match self.enter(address) {
                Some(new) => self.new += u64::from(new),
                None => without_room[usize::from(address.is_ipv6())] += 1,
            }
        }
        for (own, other) in self.refused.iter_mut().zip(other.refused) {
            *own = own.saturating_add(other);
        }
        without_room
    }

    /// Adds an address that was known before the first packet; `false` if the table is full.
    pub fn learn(&mut self, address: IpAddr) -> bool {
        let Some(new) = self.enter(address) else { return false };
        if new {
            *self.known.entry(Subnet::of(address)).or_default() += 1;
            let digest = super::sizes::host(address).digest(self.seed);
            self.known_check = self.known_check.wrapping_add(digest.0);
        }
        true
    }

    /// For tests: after `packets` packets the tables refuse every new address.
    #[doc(hidden)]
    pub fn refuse_after(&mut self, packets: u64) {
        self.full_after = Some(packets);
    }

    /// Whether the tables must refuse this address, which a test has made full.
    #[inline]
    fn is_forced_full(&self, source: &Host) -> bool {
        self.full_after == Some(0) && !self.contains(sizes::address(*source))
    }

    /// Adds the source of a packet. Returns whether it is new; `None` if the table is full.
    #[inline]
    pub fn observe(&mut self, address: IpAddr) -> Option<bool> {
        let new = self.enter(address);
        match new {
            Some(new) => self.new += u64::from(new),
            None => self.refused[usize::from(address.is_ipv6())] += 1,
        }
        new
    }

    /// Adds the sources of packets of a batch, in order. Calls `then` with the index of each packet
    /// and the result of [`observe`](Self::observe).
    pub fn observe_batch(
        &mut self,
        packets: &[u16],
        columns: &Columns,
        mut then: impl FnMut(u16, Option<bool>),
    ) {
        for packets in packets.chunks(CHUNK) {
            self.full_after = self.full_after.map(|left| left.saturating_sub(CHUNK as u64));
            let (mut unsure, mut many) = ([0; CHUNK], 0);
            for &packet in packets {
                let at = usize::from(packet);
                let [source, _] = &columns.hosts[at];
                if self.lately[place(columns.ends[at][0])] == *source {
                    then(packet, Some(false));
                    continue;
                }
                self.v4.ask_ahead(columns.subnets[at]);
                unsure[many] = packet;
                many += 1;
            }
            for &packet in &unsure[..many] {
                let at = usize::from(packet);
                let ([source, _], digest) = (&columns.hosts[at], columns.ends[at][0]);
                let new = match *source {
                    _ if self.is_forced_full(source) => {
                        Err(Refused::Full { stored: self.new, cells: self.new })
                    }
                    [4, _, _, _, host, ..] => {
                        let subnet = batch::subnet(source);
                        self.v4.observe_hashed(columns.subnets[at], subnet, host)
                    }
                    [_, octets @ ..] => self.v6.observe_hashed(digest, octets.into()),
                };
                let new = new.ok();
                match new {
                    Some(new) => {
                        self.new += u64::from(new);
                        self.lately[place(digest)] = *source;
                    }
                    None => self.refused[usize::from(source[0] != 4)] += 1,
                }
                then(packet, new);
            }
        }
    }

    #[inline]
    fn enter(&mut self, address: IpAddr) -> Option<bool> {
        let new = match address {
            IpAddr::V4(address) => {
                let [a, b, c, host] = address.octets();
                self.v4.observe(u32::from_be_bytes([0, a, b, c]).into(), host)
            }
            IpAddr::V6(address) => self.v6.observe(address),
        };
        new.ok()
    }

    /// Whether an address was seen or known before. Both answers are certain.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => {
                let [a, b, c, host] = address.octets();
                self.v4.contains(u32::from_be_bytes([0, a, b, c]).into(), host)
            }
            IpAddr::V6(address) => self.v6.contains(address),
        }
    }

    /// Calls `each` for every subnet with new addresses, with the number of those.
    pub fn new_by_subnet(&self, mut each: impl FnMut(Subnet, u32)) {
        let v4 = self.v4.iter().map(|(subnet, hosts)| (Subnet::V4(subnet as u32), hosts));
        let mut each = |subnet, hosts: u32| {
            let new = hosts.saturating_sub(*self.known.get(&subnet).unwrap_or(&0));
            if new > 0 {
                each(subnet, new);
            }
        };
        v4.for_each(|(subnet, hosts)| each(subnet, hosts));
        // Addresses of one /64 are anywhere in the table. Each pass sorts the addresses of some
        // subnets, so that memory stays bounded.
        let passes = self.v6.stored().div_ceil(PASS).max(1);
        let mut some = Vec::new();
        for pass in 0..passes {
            let upper = self.v6.iter().map(|address| (address.to_bits() >> 64) as u64);
            some.extend(upper.filter(|upper| (upper ^ upper >> 32) % passes == pass));
            some.sort_unstable();
            for hosts in some.chunk_by(|a, b| a == b) {
                each(Subnet::V6(hosts[0]), hosts.len() as u32);
            }
            some.clear();
        }
    }

    /// Every address that was seen or known before.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let mut all = Vec::new();
        for (subnet, _) in self.v4.iter() {
            for host in self.v4.list(subnet) {
                all.push(Ipv4Addr::from_bits((subnet as u32) << 8 | u32::from(host)).into());
            }
        }
        all.extend(self.v6.iter().map(IpAddr::V6));
        all
    }
}
