//! Bytes and packets of the heaviest flows, hosts and ports, exact or between bounds.
//!
//! A flow is a five-tuple in both directions. The amounts of a host include the packets that it
//! sends and receives. A service is a protocol and the port of the end that was contacted; see
//! [`services`](super::services).

use crate::{
    FlowKey,
    batch::{Columns, Lane},
    budget::Budget,
    flow::protocol,
};
use sidon::{
    Infeasible, Seed,
    count::{Stored, Top},
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address: its version, then its bytes, then zeros.
pub type Host = [u8; 17];
/// A protocol and a port.
pub type Port = [u8; 3];

/// The key of an address.
#[inline]
pub fn host(address: IpAddr) -> Host {
    let mut host = [0; Host::BYTES];
    match address {
        IpAddr::V4(address) => {
            host[0] = 4;
            host[1..5].copy_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            host[0] = 6;
            host[1..].copy_from_slice(&address.octets());
        }
    }
    host
}

/// The address of a key.
pub fn address(host: Host) -> IpAddr {
    let [version, a, b, c, d, ..] = host;
    if version == 4 {
        return Ipv4Addr::new(a, b, c, d).into();
    }
    let octets: [u8; 16] = std::array::from_fn(|i| host[i + 1]);
    Ipv6Addr::from(octets).into()
}

/// The entry of a packet without a service in a column of ports: protocol 0 has no ports.
pub const NO_PORT: Port = [0; 3];

/// The key of a service.
#[inline(always)]
pub fn port(protocol: u8, port: u16) -> Port {
    let [high, low] = port.to_be_bytes();
    [protocol, high, low]
}

/// The name of a service, such as `443/tcp`.
pub fn port_name([number, high, low]: Port) -> String {
    let port = u16::from_be_bytes([high, low]);
    match protocol::name(number) {
        Some(name) => format!("{port}/{name}"),
        None => format!("{port}/{number}"),
    }
}

/// One shard's heaviest flows, hosts and ports, each with bytes and packets.
#[derive(Debug)]
pub struct Sizes {
    /// By five-tuple, both directions.
    pub flows: Top<FlowKey, 2>,
    /// By address, sent and received.
    pub hosts: Top<Host, 2>,
    /// By service.
    pub ports: Top<Port, 2>,
}

impl Sizes {
    /// Empty tables.
    pub fn new(budget: &Budget, seed: Seed) -> Result<Self, Infeasible> {
        Ok(Sizes {
            flows: Top::new(budget.flows, seed)?,
            hosts: Top::new(budget.hosts, seed)?,
            ports: Top::new(budget.ports, seed)?,
        })
    }

    /// Adds a shard's part of a batch.
    pub fn add(&mut self, lane: &Lane, columns: &Columns) {
        let Columns { flows, hosts, ports, amounts, .. } = columns;
        self.flows.add_picked_batch(&lane.flows, flows, amounts);
        self.hosts.add_picked_batch(&lane.hosts, hosts.as_flattened(), amounts);
        self.ports.add_picked_batch(&lane.ports, ports, amounts);
    }
}
