//! Merges two snapshots of the same seed, memory, subnets, expression and known sources.
//!
//! | part | afterwards |
//! |---|---|
//! | ledger | the sums |
//! | flows, hosts, ports | each count is exact or between bounds, as for both streams together |
//! | sources | the union, exact; the ledger counts addresses without room |
//! | connections | outcomes add up; one in both snapshots counts in each, answer "don't know" |
//! | peers, machines | the higher score of each host; the sums |
//! | alarms | both lists, by time; an alarm that goes on in the other is listed once |
//!
//! The earlier snapshot is aged to the time of the later one, so that attempts that have timed out
//! by then are not half open.

use super::Snapshot;
use crate::{
    ledger::Ledger,
    monitor::{machine, p2p::Suspect},
    shard::Shard,
};
use sidon::{Refused, ops::Merge};

/// Counts of what a merge could not distinguish or could not store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// Connections stored in both snapshots.
    pub in_both: u64,
    /// Connections refused because the map was full.
    pub refused_connections: u64,
    /// Source addresses refused because the table was full.
    pub refused_sources: u64,
}

impl Snapshot {
    /// Adds the content of `other` to this snapshot. On `Err`, nothing has changed.
    pub fn merge(&mut self, other: Snapshot) -> Result<Merged, Refused> {
        self.same(&other)?;
        let (own_last, other_last) = (self.last_ns, other.last_ns);
        let mut merged = Merged::default();
        for (own, other) in self.shards.iter_mut().zip(&other.shards) {
            let (sizes, more) = (&mut own.sizes, &other.sizes);
            // `same` has compared shapes, seeds and totals.
            sizes.flows.merge(&more.flows)?;
            sizes.hosts.merge(&more.hosts)?;
            sizes.ports.merge(&more.ports)?;
            sizes.refused = sizes.refused.saturating_add(more.refused);
            own.unlearnt = own.unlearnt.saturating_add(other.unlearnt);
            let [v4, v6] = own.sources.merge(&other.sources);
            self.ledger.refused("merged_sources_v4", v4);
            self.ledger.refused("merged_sources_v6", v6);
            merged.refused_sources += v4 + v6;
        }
        let apart = match (self.first_ns, other.first_ns) {
            (Some(own), Some(its)) => own_last < its || other_last < own,
            _ => true,
        };
        let met = self.connections.merge(other.connections, [own_last, other_last], apart)?;
        (merged.in_both, merged.refused_connections) = (met.in_both, met.refused);
        self.alarms.absorb(other.alarms, [own_last, other_last]);
        join(&mut self.peers, other.peers);
        for (own, other) in self.machines.iter_mut().zip(&other.machines) {
            sum(own, other);
        }
        for (own, other) in self.subnets.iter_mut().zip(&other.subnets) {
            self.ledger.refused("subnet_counts", own.merge(other));
        }
        add(&mut self.ledger, other.ledger);
        self.first_ns = match (self.first_ns, other.first_ns) {
            (Some(own), Some(its)) => Some(own.min(its)),
            (own, its) => own.or(its),
        };
        self.last_ns = own_last.max(other_last);
        self.settings.top = self.settings.top.max(other.settings.top);
        self.partial |= other.partial;
        self.engines = self.engines.saturating_add(other.engines);
        Ok(merged)
    }

    /// Refuses a snapshot that cannot be merged with this one, and names the difference.
    pub fn same(&self, other: &Snapshot) -> Result<(), Refused> {
        let same = |field, same: bool| if same { Ok(()) } else { Err(Refused::Mismatch { field }) };
        same("seed", self.settings.seed == other.settings.seed)?;
        same("memory", self.settings.memory == other.settings.memory)?;
        same("watched subnets", self.settings.subnets == other.settings.subnets)?;
        same("filter expression", self.expression == other.expression)?;
        same("treatment of tunnels", self.tunnels == other.tunnels)?;
        let same_machines = self.machines.len() == other.machines.len()
            && self.machines.iter().zip(&other.machines).all(|(own, other)| are_one(own, other));
        same("machines", same_machines)?;
        let pairs = || self.shards.iter().zip(&other.shards);
        let shapes = pairs().all(|(own, other)| own.shapes() == other.shapes());
        let maps = self.connections.map().shape() == other.connections.map().shape();
        same("tables", shapes && maps && self.allocated == other.allocated)?;
        same("known sources", pairs().all(|(own, other)| own.sources.knows_as(&other.sources)))?;
        let fits = |own: [u64; 2], other: [u64; 2]| {
            own.iter().zip(other).all(|(own, other)| own.checked_add(other).is_some())
        };
        let totals = |shard: &Shard| {
            let sizes = &shard.sizes;
            [sizes.flows.total(), sizes.hosts.total(), sizes.ports.total()]
        };
        for (own, other) in pairs() {
            if totals(own).into_iter().zip(totals(other)).any(|(own, other)| !fits(own, other)) {
                return Err(Refused::Overflow { ceiling: u64::MAX });
            }
        }
        Ok(())
    }
}

/// Adds one ledger to another.
fn add(own: &mut Ledger, other: Ledger) {
    let Ledger { seen, filtered, behind_tag, decoded, wire_bytes, .. } = other;
    let Ledger { services, guessed, misnamed, late, late_ns, time_jumps, time_steps, .. } = other;
    let Ledger { undecoded, refused, dont_know, source, .. } = other;
    for (own, other) in [
        (&mut own.seen, seen),
        (&mut own.filtered, filtered),
        (&mut own.behind_tag, behind_tag),
        (&mut own.decoded, decoded),
        (&mut own.wire_bytes, wire_bytes),
        (&mut own.late, late),
        (&mut own.time_jumps, time_jumps),
        (&mut own.time_steps, time_steps),
    ] {
        *own = own.saturating_add(other);
    }
    for (own, other) in own.services.iter_mut().zip(services) {
        *own = own.saturating_add(other);
    }
    for (own, other) in own.guessed.iter_mut().zip(guessed) {
        *own = own.saturating_add(other);
    }
    own.misnamed = own.misnamed.saturating_add(misnamed);
    own.late_ns = own.late_ns.max(late_ns);
    for (name, times) in undecoded {
        own.undecoded_as(name, times);
    }
    for (name, times) in refused {
        own.refused(name, times);
    }
    for (name, times) in dont_know {
        own.dont_know(name, times);
    }
    for (name, times) in source {
        own.source_as(name, times);
    }
}

/// Keeps the higher score of each host, with its reasons. Its counts are lower bounds, because the
/// other part may have more.
fn join(own: &mut Vec<Suspect>, other: Vec<Suspect>) {
    for suspect in other {
        match own.iter_mut().find(|had| had.host == suspect.host) {
            Some(had) if had.score.value() >= suspect.score.value() => {}
            Some(had) => *had = suspect,
            None => own.push(suspect),
        }
    }
    *own = std::mem::take(own).into_iter().map(Suspect::at_least).collect();
    own.sort_by_key(Suspect::order);
}

/// Whether two machines have the same name, states and events.
fn are_one(own: &machine::Counts, other: &machine::Counts) -> bool {
    fn names<T>(list: &[(String, T)]) -> impl Iterator<Item = &String> {
        list.iter().map(|(name, _)| name)
    }
    own.name == other.name
        && names(&own.states).eq(names(&other.states))
        && names(&own.events).eq(names(&other.events))
}

/// Adds the counts of a machine to those of an equal machine.
fn sum(own: &mut machine::Counts, other: &machine::Counts) {
    let add = |own: &mut u64, other: u64| *own = own.saturating_add(other);
    add(&mut own.crossing, other.crossing);
    add(&mut own.crossing, own.flows.min(other.flows).max(1));
    own.mistaken += other.mistaken;
    add(&mut own.flows, other.flows);
    add(&mut own.refused, other.refused);
    add(&mut own.dont_know, other.dont_know);
    for ((_, own), (_, other)) in own.states.iter_mut().zip(&other.states) {
        add(&mut own.entered, other.entered);
        add(&mut own.now, other.now);
        add(&mut own.expired, other.expired);
    }
    for ((_, own), (_, other)) in own.events.iter_mut().zip(&other.events) {
        add(own, *other);
    }
}
