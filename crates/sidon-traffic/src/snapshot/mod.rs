//! Everything an engine knows, apart from it: to report on, to write to a file, to merge.
//!
//! ```text
//! engine -> snapshot -> report
//!              | ^
//!              v |  file, kind 18            a.sidon + b.sidon -> snapshot -> c.sidon
//! ```
//! What is kept: the settings with the seed, the ledger, every shard's sizes and sources, the states
//! and counts of connections, the alarms, the scores of hosts like peers, the counts of machines. What
//! is not: exact twins, suspicion that was not an alarm yet, pairs of hosts, the flows of machines, and
//! how far the hands of the connections were in their round.
//!
//! The file holds the seed, which a library image does not: addresses are in it in the clear, and
//! nobody could read it without. Whoever can read the file could choose keys that collide.

mod damage;
mod encode;
mod image;
mod merge;

pub use damage::{Damage, damage};
pub use image::KIND;
pub use merge::Merged;

use crate::{
    Report, Tunnels,
    audit::Peers,
    engine::Settings,
    ledger::Ledger,
    monitor::{alarms::Alarms, connections::Connections, machine, p2p::Suspect},
    report,
    shard::Shard,
};

/// What an engine knew after a packet.
pub struct Snapshot {
    /// The engine's settings; the watched subnets hold their counts.
    pub(crate) settings: Settings,
    /// Which frames counted, as tcpdump takes it.
    pub(crate) expression: String,
    /// Which of the packets in a tunnel counted.
    pub(crate) tunnels: Tunnels,
    /// What became of the frames; what full tables refused is with the tables.
    pub(crate) ledger: Ledger,
    /// Bytes that the tables took.
    pub(crate) allocated: u64,
    pub(crate) shards: Vec<Shard>,
    pub(crate) connections: Connections,
    pub(crate) alarms: Alarms,
    /// Hosts like peers.
    pub(crate) peers: Vec<Suspect>,
    /// What exact maps say of them, if they ran.
    pub(crate) peers_audit: Option<Peers>,
    pub(crate) machines: Vec<machine::Counts>,
    pub(crate) first_ns: Option<u64>,
    pub(crate) last_ns: u64,
    /// Whether its input broke off.
    pub(crate) partial: bool,
    /// How many engines it is of.
    pub(crate) engines: u64,
}

impl Snapshot {
    /// The report.
    pub fn report(&self) -> Report {
        report::of(report::Parts {
            connections: &self.connections,
            alarms: &self.alarms,
            peers: &self.peers,
            peers_audit: self.peers_audit,
            machines: &self.machines,
            allocated: self.allocated,
            settings: &self.settings,
            ledger: self.ledger.clone(),
            shards: &self.shards,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
        })
    }

    /// The parts of every table.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The same, to keep.
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

    /// What became of the frames; what full tables refused is in the report.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The times of the first and the last packet, if there were any.
    pub fn times(&self) -> Option<(u64, u64)> {
        self.first_ns.map(|first| (first, self.last_ns))
    }

    /// Of how many engines it is: more than one after a merge.
    pub fn engines(&self) -> u64 {
        self.engines
    }

    /// How many of the heaviest a report lists.
    pub fn set_top(&mut self, top: usize) {
        self.settings.top = top;
    }

    /// Whether its input, or one of them, broke off.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Its input broke off: what it knows is of the part before.
    pub fn set_partial(&mut self) {
        self.partial = true;
    }
}
