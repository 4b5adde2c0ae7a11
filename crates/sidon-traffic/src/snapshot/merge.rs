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
//!
//! [`Split`] says whether both snapshots can have counted packets of the same flow. If no flow is in
//! both, then counts of flows, connections and machines stay exact. Hosts and ports can be in both
//! all the same.
//!
//! Sums stop at [`CEILING`](crate::figure::CEILING), so a merge of any two snapshots can be saved.
//!
//! Cost: proportional to the bytes of both snapshots, and `n log n` for `n` P2P-like hosts. The
//! alarms of two lists are compared pair by pair, at most 2^17 pairs. Names of the ledger are looked
//! up in lists of at most 64.

use super::Snapshot;
use crate::monitor::{
    machine,
    p2p::{SUSPECTS_MAX, Suspect},
};
use sidon::Refused;
use std::{cmp::Reverse, net::IpAddr};

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

/// How packets were split into the parts of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    /// By time, link or file: a flow can have packets in both parts.
    Any,
    /// By flow: all packets of a flow, in both directions, are in one part.
    ByFlow,
}

impl Snapshot {
    /// Adds the content of `other` to this snapshot. A flow can be in both. On `Err`, nothing has
    /// changed.
    pub fn merge(&mut self, other: Snapshot) -> Result<Merged, Refused> {
        self.join(other, Split::Any)
    }

    /// [`merge`](Self::merge) for a part that has no flow in common with this one, such as the same
    /// minutes of another shard. Flows, connections and machines that are exact in both parts stay
    /// exact. They are wrong if a flow is in both parts. Machines need parts that end at one time:
    /// [`Engine::pass`](crate::Engine::pass) advances an engine to it.
    pub fn merge_parts(&mut self, other: Snapshot) -> Result<Merged, Refused> {
        self.join(other, Split::ByFlow)
    }

    fn join(&mut self, other: Snapshot, split: Split) -> Result<Merged, Refused> {
        self.same(&other)?;
        let (own_last, other_last) = (self.last_ns, other.last_ns);
        // Flows of the part that ends earlier may expire before the end of the other.
        let flows_split = if self.until_ns == other.until_ns { split } else { Split::Any };
        let mut merged = Merged::default();
        for (own, other) in self.shards.iter_mut().zip(&other.shards) {
            let (sizes, more) = (&mut own.sizes, &other.sizes);
            // `same` has compared shapes and seeds.
            match split {
                Split::Any => sizes.flows.merge(&more.flows)?,
                Split::ByFlow => sizes.flows.merge_disjoint(&more.flows)?,
            }
            sizes.hosts.merge(&more.hosts)?;
            sizes.ports.merge(&more.ports)?;
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
        let met =
            self.connections.merge(other.connections, [own_last, other_last], apart, split)?;
        (merged.in_both, merged.refused_connections) = (met.in_both, met.refused);
        self.alarms.absorb(other.alarms, [own_last, other_last]);
        let unlisted = highest(&mut self.peers, other.peers);
        self.ledger.refused("p2p_unlisted", unlisted);
        for (own, other) in self.machines.iter_mut().zip(&other.machines) {
            sum(own, other, flows_split);
        }
        for (own, other) in self.subnets.iter_mut().zip(&other.subnets) {
            self.ledger.refused("subnet_counts", own.merge(other));
        }
        self.ledger.add(other.ledger);
        self.first_ns = match (self.first_ns, other.first_ns) {
            (Some(own), Some(its)) => Some(own.min(its)),
            (own, its) => own.or(its),
        };
        self.last_ns = own_last.max(other_last);
        self.until_ns = self.until_ns.max(other.until_ns);
        self.settings.top = self.settings.top.max(other.settings.top);
        self.partial |= other.partial;
        self.engines = self.engines.saturating_add(other.engines);
        self.crossing |= other.crossing || split == Split::Any;
        Ok(merged)
    }

    /// Refuses a snapshot that cannot be merged with this one, and names the difference.
    pub fn same(&self, other: &Snapshot) -> Result<(), Refused> {
        self.same_settings(other)?;
        let same_machines = self.machines.len() == other.machines.len()
            && self.machines.iter().zip(&other.machines).all(|(own, other)| are_one(own, other));
        same("machines", same_machines)?;
        let mut pairs = self.shards.iter().zip(&other.shards);
        same("known sources", pairs.all(|(own, other)| own.sources.knows_as(&other.sources)))
    }

    /// Refuses a snapshot of other settings, machines aside, and names the difference.
    pub(crate) fn same_settings(&self, other: &Snapshot) -> Result<(), Refused> {
        same("seed", self.settings.seed == other.settings.seed)?;
        same("memory", self.settings.memory == other.settings.memory)?;
        same("watched subnets", self.settings.subnets == other.settings.subnets)?;
        same("filter expression", self.expression == other.expression)?;
        same("treatment of tunnels", self.tunnels == other.tunnels)?;
        let mut pairs = self.shards.iter().zip(&other.shards);
        let shapes = pairs.all(|(own, other)| own.shapes() == other.shapes());
        let maps = self.connections.map().shape() == other.connections.map().shape();
        same("tables", shapes && maps && self.allocated == other.allocated)
    }
}

/// `Ok` if both have the same `field`.
fn same(field: &'static str, same: bool) -> Result<(), Refused> {
    if same { Ok(()) } else { Err(Refused::Mismatch { field }) }
}

/// Keeps the higher score of each host, with its reasons, and the [`SUSPECTS_MAX`] highest scores.
/// Exact counts become lower bounds, because the other part may have more. Returns the number of hosts
/// that were left out.
fn highest(own: &mut Vec<Suspect>, other: Vec<Suspect>) -> u64 {
    own.extend(other);
    // The sort is stable: of equal scores, the first one is kept.
    own.sort_by_key(|suspect| (host(suspect), Reverse(suspect.score.value())));
    own.dedup_by_key(|suspect| host(suspect));
    own.sort_by_key(Suspect::order);
    let left_out = own.len().saturating_sub(SUSPECTS_MAX);
    own.truncate(SUSPECTS_MAX);
    *own = std::mem::take(own).into_iter().map(Suspect::at_least).collect();
    left_out as u64
}

/// The host of a suspect. Tests count how often a join reads one.
fn host(suspect: &Suspect) -> IpAddr {
    #[cfg(test)]
    tests::READ.with(|read| read.set(read.get() + 1));
    suspect.host
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
fn sum(own: &mut machine::Counts, other: &machine::Counts, split: Split) {
    let add = |own: &mut u64, other: u64| *own = own.saturating_add(other);
    add(&mut own.crossing, other.crossing);
    if split == Split::Any {
        add(&mut own.crossing, own.flows.min(other.flows).max(1));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figure, monitor::p2p::Reason};
    use sidon_kit::Rng;
    use std::{cell::Cell, collections::HashMap};

    thread_local! {
        pub(super) static READ: Cell<u64> = const { Cell::new(0) };
    }

    /// `count` hosts of `of`, each once, with random scores.
    fn suspects(count: u64, of: u32, seed: u64) -> Vec<Suspect> {
        let mut rng = Rng::seeded(seed);
        let mut all: HashMap<IpAddr, Suspect> = HashMap::new();
        while (all.len() as u64) < count {
            let host = IpAddr::from((rng.below(of.into()) as u32).to_be_bytes());
            let reasons = vec![Reason::BothProtocols { peers: Figure::exact(rng.below(9)) }];
            let score = Figure::exact(50 + rng.below(51));
            all.insert(host, Suspect { host, score, reasons });
        }
        let mut all: Vec<_> = all.into_values().collect();
        all.sort_by_key(Suspect::order);
        all
    }

    #[test]
    fn each_host_keeps_its_higher_score_and_the_work_is_n_log_n() {
        for count in [1, 100, 3_000, SUSPECTS_MAX as u64] {
            let (one, two) = (suspects(count, 3 << 16, 1), suspects(count, 3 << 16, 2));
            let mut best: HashMap<IpAddr, Suspect> = HashMap::new();
            for suspect in one.iter().chain(&two) {
                let had = best.entry(suspect.host).or_insert_with(|| suspect.clone());
                if suspect.score.value() > had.score.value() {
                    *had = suspect.clone();
                }
            }
            READ.set(0);
            let mut both = one;
            let left_out = highest(&mut both, two);
            let n = 2 * count;
            // A sort compares at most 2 n log n pairs, and removing duplicates n.
            let most = 2 * (2 * n * u64::from(n.ilog2() + 1) + n);
            assert!(READ.get() <= most, "{} of {most}", READ.get());
            assert_eq!(both.len() as u64 + left_out, best.len() as u64);
            assert_eq!(left_out > 0, count as usize == SUSPECTS_MAX);
            assert!(both.is_sorted_by_key(Suspect::order));
            let lowest = both.last().map(|suspect| suspect.score.value());
            for suspect in both {
                let best = best.remove(&suspect.host).unwrap().at_least();
                assert_eq!(suspect, best);
            }
            assert!(best.values().all(|out| Some(out.score.value()) <= lowest), "the highest stay");
        }
    }
}
