//! The complete state of an engine: to report on, to write to a file, to merge.
//!
//! ```text
//! engine -> snapshot -> report
//!              | ^
//!              v |  file, kind 18            a.sidon + b.sidon -> snapshot -> c.sidon
//! ```
//! A snapshot holds the settings with the seed, the ledger, and the sizes and sources of every
//! shard. It also holds the states and counts of connections, the alarms, the scores of P2P-like
//! hosts, and the counts of machines.
//!
//! It leaves out exact references, suspicions that were not alarms yet, pairs of hosts, and the
//! flows of machines. The clock positions of the connections' timers are also left out. A
//! [checkpoint](crate::Engine::checkpoint) saves all of these except exact references.
//!
//! Unlike an image of the library, the file holds the seed, unless it is left out on request. It stores addresses in the clear, and
//! reading its tables needs the seed. A reader of the file could choose keys that collide.

mod damage;
pub(crate) mod encode;
mod image;
mod merge;
pub(crate) mod parts;
#[cfg(test)]
mod tests;

pub use damage::{Damage, damage};
pub use image::KIND;
pub use merge::Merged;
pub(crate) use merge::Split;

use crate::{
    Report, Tunnels,
    audit::{self, Peers},
    engine::Settings,
    ledger::Ledger,
    monitor::{
        alarms::Alarms, connections::Connections, machine, p2p::Suspect, sources::Subnet,
        subnet::Watched,
    },
    report::{self, Part},
    shard::Shard,
};

/// The state of an engine after a packet.
pub struct Snapshot {
    /// The engine's settings.
    pub(crate) settings: Settings,
    /// The filter expression, in the language of tcpdump.
    pub(crate) expression: String,
    /// The packet that counts in a tunnel, outer or inner.
    pub(crate) tunnels: Tunnels,
    /// Counts of frames by outcome; the tables hold the counts of their refusals.
    pub(crate) ledger: Ledger,
    /// The size of the tables in bytes.
    pub(crate) allocated: u64,
    pub(crate) shards: Vec<Shard>,
    /// Exact packet counts of the selected subnets.
    pub(crate) subnets: Vec<Watched>,
    pub(crate) connections: Connections,
    pub(crate) alarms: Alarms,
    /// P2P-like hosts.
    pub(crate) peers: Vec<Suspect>,
    /// The comparison of these hosts with exact maps, if those ran.
    pub(crate) peers_audit: Option<Peers>,
    /// The exact reference of services, if it ran.
    pub(crate) services_audit: Option<audit::Services>,
    pub(crate) machines: Vec<machine::Counts>,
    pub(crate) first_ns: Option<u64>,
    pub(crate) last_ns: u64,
    /// The time to which timers have advanced: that of the last packet, or later.
    pub(crate) until_ns: u64,
    /// Whether the input broke off.
    pub(crate) partial: bool,
    /// The number of engines whose states are merged here.
    pub(crate) engines: u64,
    /// Whether two of these engines can have counted packets of the same flow.
    pub(crate) crossing: bool,
}

impl Snapshot {
    /// The report.
    pub fn report(&self) -> Report {
        let parts = self.shards.iter().map(|shard| Part::of(shard, self.settings.top));
        report::of(self, parts.collect())
    }

    /// Advances the times of the first and the last packet, and counts a packet that is late.
    #[inline]
    pub(crate) fn clock(&mut self, time_ns: u64) {
        if time_ns >= self.last_ns {
            self.first_ns.get_or_insert(time_ns);
            self.last_ns = time_ns;
            self.until_ns = self.until_ns.max(time_ns);
            return;
        }
        self.ledger.late = self.ledger.late.saturating_add(1);
        self.ledger.late_ns = self.ledger.late_ns.max(self.last_ns - time_ns);
        self.first_ns = self.first_ns.map(|first| first.min(time_ns));
    }

    /// All subnets with new source addresses and their number, most first. A report lists only the
    /// first [`SUBNETS_LISTED`](report::SUBNETS_LISTED).
    pub fn new_sources(&self) -> Vec<(Subnet, u32)> {
        let mut list = Vec::new();
        for shard in &self.shards {
            shard.sources.new_by_subnet(|subnet, hosts| list.push((subnet, hosts)));
        }
        list.sort_unstable_by_key(report::most_first);
        list
    }

    /// The parts of every table.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The parts of every table, by value.
    pub fn into_shards(self) -> Vec<Shard> {
        self.shards
    }

    /// The states of connections.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// The settings of its engine.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The expression of its engine's filter.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Counts of frames by outcome; the report holds the refusals of full tables.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The times of the first and the last packet, if any.
    pub fn times(&self) -> Option<(u64, u64)> {
        self.first_ns.map(|first| (first, self.last_ns))
    }

    /// The number of engines: more than one after a merge.
    pub fn engines(&self) -> u64 {
        self.engines
    }

    /// Sets the length of the top lists in a report.
    pub fn set_top(&mut self, top: usize) {
        self.settings.top = top;
    }

    /// Whether an input broke off.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Marks the input as broken off: the snapshot covers only the part before the break.
    pub fn set_partial(&mut self) {
        self.partial = true;
    }
}
