//! Exact packet counts for every host of a subnet that the user selected.

use crate::Packet;
use sidon::{Infeasible, zone::Hosts};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

/// The most subnets of an engine: every packet is compared with each.
pub const SUBNETS_MAX: usize = 64;

/// A host's address, packets sent and packets received.
pub type HostPackets = (Ipv4Addr, u64, u64);

/// An IPv4 subnet, /16 or smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    network: u32,
    length: u32,
}

impl Network {
    /// The subnet of an address, with a prefix of this length.
    pub fn new(address: Ipv4Addr, length: u32) -> Result<Self, Infeasible> {
        if !(16..=32).contains(&length) {
            let (name, got) = ("prefix length", length.into());
            return Err(Infeasible::OutOfRange { name, got, least: 16, most: 32 });
        }
        let hosts = 1u64 << (32 - length);
        let network = (u64::from(address.to_bits()) / hosts * hosts) as u32;
        Ok(Network { network, length })
    }

    /// The number of an address in the subnet, if it is in it.
    #[inline]
    fn host(&self, address: IpAddr) -> Option<u64> {
        let IpAddr::V4(address) = address else { return None };
        let host = u64::from(address.to_bits() ^ self.network);
        (host < 1 << (32 - self.length)).then_some(host)
    }
}

/// The packets that each host of a subnet sent and received.
#[derive(Debug)]
pub struct Watched {
    network: Network,
    sent: Hosts,
    received: Hosts,
}

impl Watched {
    /// A subnet with all counts zero.
    pub fn new(network: Network) -> Result<Self, Infeasible> {
        let hosts = 1u64 << (32 - network.length);
        Ok(Watched { network, sent: Hosts::new(hosts)?, received: Hosts::new(hosts)? })
    }

    /// The subnet.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Sets the counts of a host that has none; `false` if the host is outside the subnet or a
    /// count is too large.
    pub(crate) fn put(&mut self, address: u64, sent: u64, received: u64) -> bool {
        let address = u32::try_from(address).ok().map(Ipv4Addr::from_bits);
        let host = address.and_then(|address| self.network.host(address.into()));
        let Some(host) = host else { return false };
        let put = |hosts: &mut Hosts, count| count == 0 || hosts.add(&host, count).is_ok();
        put(&mut self.sent, sent) & put(&mut self.received, received)
    }

    /// Adds the counts of the same subnet from another part. Returns the packets that did not fit.
    pub(crate) fn merge(&mut self, other: &Watched) -> u64 {
        let mut refused = 0;
        for (own, other) in [(&mut self.sent, &other.sent), (&mut self.received, &other.received)] {
            for (host, count) in other.list() {
                if own.add(&host, count).is_err() {
                    refused += count;
                }
            }
        }
        refused
    }

    /// Counts a packet for its source and destination; `false` if a count was at its ceiling.
    #[inline]
    pub fn count(&mut self, packet: &Packet) -> bool {
        self.count_many(packet, 1)
    }

    /// Counts `packets` packets with the addresses of this one; `false` if a count was at its
    /// ceiling.
    #[inline]
    pub fn count_many(&mut self, packet: &Packet, packets: u64) -> bool {
        let mut counted = true;
        if let Some(host) = self.network.host(packet.flow.source()) {
            counted &= self.sent.add(&host, packets).is_ok();
        }
        if let Some(host) = self.network.host(packet.flow.destination()) {
            counted &= self.received.add(&host, packets).is_ok();
        }
        counted
    }

    /// Every host that sent or received a packet: its address, packets sent, packets received.
    pub fn list(&self) -> Vec<HostPackets> {
        let mut hosts: std::collections::BTreeMap<u64, (u64, u64)> = Default::default();
        for (host, packets) in self.sent.list() {
            hosts.entry(host).or_default().0 = packets;
        }
        for (host, packets) in self.received.list() {
            hosts.entry(host).or_default().1 = packets;
        }
        let address = |host: u64| Ipv4Addr::from_bits(self.network.network | host as u32);
        hosts.into_iter().map(|(host, (sent, received))| (address(host), sent, received)).collect()
    }
}

/// Writes the subnet as `10.0.0.0/24`.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.network), self.length)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("{text:?} is not a subnet like 192.168.1.0/24");
        let (network, length) = text.split_once('/').ok_or_else(expected)?;
        let network = network.parse().map_err(|_| expected())?;
        let length = length.parse().map_err(|_| expected())?;
        Network::new(network, length).map_err(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_is_its_prefix_and_no_more() {
        let subnet: Network = "10.1.2.77/24".parse().unwrap();
        assert_eq!(subnet.to_string(), "10.1.2.0/24");
        assert_eq!(subnet.host("10.1.2.255".parse().unwrap()), Some(255));
        assert_eq!(subnet.host("10.1.3.0".parse().unwrap()), None);
        assert_eq!(subnet.host("10.1.1.255".parse().unwrap()), None);
        assert_eq!(subnet.host("::a01:205".parse().unwrap()), None);
        for wrong in ["10.1.2.3", "10.1.2.3/15", "10.1.2.3/33", "x/24", "10.1.2.3/x"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
