//! Division of a fixed amount of memory among the monitors.
//!
//! All of the memory is allocated before the first packet and none after. Every table is split into
//! [`SHARDS`] parts of equal size by the digest of its keys. A shard has one owner thread at a
//! time, and answers do not depend on the number of threads.

use crate::{
    FlowKey,
    monitor::{
        alarms, connections, p2p, services,
        sizes::{Host, Port},
    },
};
use sidon::{
    Infeasible,
    count::{Stored, Top, top},
    plan,
    state::{Fingerprint, fingerprint},
    zone::{Subnets, subnets},
};

/// The number of parts of every table.
pub const SHARDS: usize = 8;

/// The smallest memory that can be divided among all tables.
pub const LEAST: u64 = 256 << 10;

/// Shares of the memory, in parts of [`WHOLE`].
const FLOWS: u64 = 28;
const HOSTS: u64 = 14;
const PORTS: u64 = 2;
const SOURCES_V4: u64 = 14;
const SOURCES_V6: u64 = 6;
const CONNECTIONS: u64 = 20;
const SERVICES: u64 = 3;
const P2P: u64 = 5;
const ALARMS: u64 = 8;
const WHOLE: u64 = 100;
/// The share of each user-defined machine, subtracted from that of the flows.
const MACHINE: u64 = 4;
/// The largest number of machines.
pub const MACHINES_MAX: usize = 4;

/// The shapes of the tables of one shard, and of the tables that are not sharded.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The heaviest flows.
    pub flows: top::Shape,
    /// The heaviest hosts.
    pub hosts: top::Shape,
    /// The heaviest ports.
    pub ports: top::Shape,
    /// Source addresses of IPv4.
    pub sources_v4: subnets::Shape,
    /// The number of slots for IPv6 source addresses.
    pub sources_v6: u64,
    /// The states of connections, in one table without shards.
    pub connections: fingerprint::Shape,
    /// The first senders of flows without connections, in one table without shards.
    pub services: fingerprint::Shape,
    /// Contacts, victims and sources.
    pub alarms: alarms::Shape,
    /// Pairs of hosts, and P2P-like hosts.
    pub p2p: p2p::Shape,
    /// The number of user-defined machines, and the bytes of each.
    pub machines: (u64, u64),
}

impl Budget {
    /// Divides `memory` bytes.
    pub fn of(memory: u64) -> Result<Self, Infeasible> {
        Budget::with_machines(memory, 0)
    }

    /// Divides `memory` bytes, with room for this number of user-defined machines.
    pub fn with_machines(memory: u64, machines: usize) -> Result<Self, Infeasible> {
        if machines > MACHINES_MAX {
            let (got, most) = (machines as u64, MACHINES_MAX as u64);
            return Err(Infeasible::OutOfRange { name: "machines", got, least: 0, most });
        }
        let machines = machines as u64;
        if memory < LEAST {
            let (name, got, least, most) = ("memory", memory, LEAST, u64::MAX);
            return Err(Infeasible::OutOfRange { name, got, least, most });
        }
        let share = |share: u64| memory / WHOLE * share / SHARDS as u64;
        let alarms = alarms::Shape::within(memory / WHOLE * ALARMS);
        // The smallest tables of suspects exceed their share of the smallest memory.
        let above = alarms.bytes().saturating_sub(memory / WHOLE * ALARMS) / SHARDS as u64;
        let flows = share(FLOWS - MACHINE * machines).saturating_sub(above);
        Ok(Budget {
            flows: plan::top::shape(flows, FlowKey::BYTES, 2)?,
            hosts: plan::top::shape(share(HOSTS), Host::BYTES, 2)?,
            ports: plan::top::shape(share(PORTS), Port::BYTES, 2)?,
            sources_v4: subnets::Shape::within(share(SOURCES_V4), 24)?,
            sources_v6: share(SOURCES_V6) / 16,
            connections: connections::shape(memory / WHOLE * CONNECTIONS)?,
            services: services::shape(memory / WHOLE * SERVICES),
            alarms,
            p2p: p2p::Shape::within(memory / WHOLE * P2P),
            machines: (machines, memory / WHOLE * MACHINE),
        })
    }

    /// The bytes of all shards of all tables.
    pub fn bytes(&self) -> u64 {
        let one = Top::<FlowKey, 2>::planned_bytes(self.flows)
            + Top::<Host, 2>::planned_bytes(self.hosts)
            + Top::<Port, 2>::planned_bytes(self.ports)
            + Subnets::planned_bytes(self.sources_v4)
            + self.sources_v6 * 16;
        let whole = Fingerprint::planned_bytes(self.connections)
            + Fingerprint::planned_bytes(self.services)
            + self.alarms.bytes()
            + self.p2p.bytes();
        one * SHARDS as u64 + whole + self.machines.0 * self.machines.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_divided_is_no_more_than_what_there_is() {
        for memory in [LEAST, 1 << 20, 16 << 20, 1 << 30] {
            for machines in [0, 1, MACHINES_MAX] {
                let bytes = Budget::with_machines(memory, machines).unwrap().bytes();
                assert!(bytes <= memory, "{bytes} of {memory}");
                assert!(bytes >= memory / 2, "{bytes} of {memory}");
            }
        }
        assert!(Budget::of(LEAST - 1).is_err());
        assert!(Budget::with_machines(LEAST, MACHINES_MAX + 1).is_err());
    }
}
