//! The results of a run, each with its certainty.

mod part;

pub(crate) use part::{Part, most_first};

use crate::{
    FlowKey, Snapshot,
    audit::{Audit, Peers},
    ledger::Ledger,
    monitor::{
        alarms::{Alarm, KINDS},
        connections::{Counts, OUTCOMES},
        machine,
        p2p::Suspect,
        sizes::{self, Host, Port},
        sources::Subnet,
        subnet::HostPackets,
    },
    time,
};
use serde_json::{Value, json};
use sidon::count::{Bounds, Entry, Ranking, Stored};

/// The results after the last packet.
#[derive(Debug, Clone)]
pub struct Report {
    /// Counts of frames by result.
    pub ledger: Ledger,
    /// The memory budget of the tables, in bytes.
    pub budget: u64,
    /// The bytes that the tables allocated.
    pub allocated: u64,
    /// The times of the first and the last packet; `None` without packets.
    pub times: Option<(u64, u64)>,
    /// The heaviest flows, by bytes.
    pub flows: Ranking<FlowKey, 2>,
    /// The heaviest hosts, by bytes.
    pub hosts: Ranking<Host, 2>,
    /// The heaviest ports, by bytes.
    pub ports: Ranking<Port, 2>,
    /// Subnets by their number of new source addresses, most first, at most [`SUBNETS_LISTED`].
    pub new_sources: Vec<(Subnet, u32)>,
    /// The number of subnets with new source addresses.
    pub new_subnets: u64,
    /// The number of new source addresses.
    pub new_sources_total: u64,
    /// Exact packet counts of the hosts of each selected subnet.
    pub subnets: Vec<(String, Vec<HostPackets>)>,
    /// TCP connections by outcome, and the number that are half open.
    pub connections: Counts,
    /// The probability, after the last packet, that a packet of a new connection matches another's
    /// cell.
    pub stranger_rate: f64,
    /// Alarms, in the order in which they were raised.
    pub alarms: Vec<Alarm>,
    /// The number of further alarms that are not listed.
    pub alarms_unlisted: u64,
    /// Alarms that were ever listed, by kind.
    pub alarms_raised: [u64; KINDS.len()],
    /// P2P-like hosts, the highest score first.
    pub p2p: Vec<Suspect>,
    /// Counts of user-defined machines.
    pub machines: Vec<machine::Counts>,
    /// The results of the exact references, if they ran.
    pub audit: Option<Audit>,
}

/// The most subnets with new addresses in a report. A flood from forged addresses adds one subnet
/// per address, and this limit bounds the memory of a report.
pub const SUBNETS_LISTED: usize = 1000;

/// The report on a state whose shards gave these parts.
pub(crate) fn of(state: &Snapshot, parts: Vec<Part>) -> Report {
    let mut ledger = state.ledger.clone();
    for (name, times) in parts.iter().flat_map(|part| part.refused) {
        ledger.refused(name, times);
    }
    let counts = state.connections.counts();
    ledger.refused("connections", counts.refused);
    ledger.refused("connections_unsampled", counts.sampling.unsampled);
    ledger.dont_know("connections", counts.dont_know);
    let audits = parts.iter().filter_map(|part| part.audit);
    let audit = audits
        .reduce(|all, audit| all.with(&audit))
        .map(|audit| audit.and_connections(state.connections.twin()))
        .map(|audit| Audit { p2p: state.peers_audit.unwrap_or_default(), ..audit });
    let new_subnets = parts.iter().map(|part| part.new_subnets).sum();
    let new_sources_total = parts.iter().map(|part| part.new_addresses).sum();
    let lists = parts.iter().flat_map(|part| &part.new_sources);
    let mut new_sources: Vec<_> = lists.copied().collect();
    new_sources.sort_unstable_by_key(most_first);
    new_sources.truncate(SUBNETS_LISTED);
    let top = state.settings.top;
    Report {
        ledger,
        budget: state.settings.memory,
        allocated: state.allocated,
        times: state.times(),
        flows: heaviest(parts.iter().map(|part| &part.flows), top),
        hosts: heaviest(parts.iter().map(|part| &part.hosts), top),
        ports: heaviest(parts.iter().map(|part| &part.ports), top),
        new_sources,
        new_subnets,
        new_sources_total,
        subnets: state.subnets.iter().map(|one| (one.network().to_string(), one.list())).collect(),
        alarms: state.alarms.alarms().to_vec(),
        alarms_unlisted: state.alarms.unlisted(),
        alarms_raised: state.alarms.raised(),
        connections: counts,
        stranger_rate: state.connections.stranger_rate(),
        audit,
        p2p: state.peers.clone(),
        machines: state.machines.clone(),
    }
}

/// The heaviest keys of rankings without common keys. Equal amounts are ordered by key.
fn heaviest<'a, K: Stored + Ord + 'a>(
    rankings: impl Iterator<Item = &'a Ranking<K, 2>>,
    count: usize,
) -> Ranking<K, 2> {
    let (mut entries, mut others) = (Vec::new(), 0);
    for ranking in rankings {
        entries.extend_from_slice(&ranking.entries);
        others = others.max(ranking.others);
    }
    entries.sort_by_key(|entry| entry.key);
    Ranking::of(entries, others, count)
}

impl Report {
    /// The certainty of the new source addresses: `exact`; `at_least` if a full table refused some;
    /// or `unknown` if it also refused known addresses, which then count as new.
    pub fn new_sources_certainty(&self) -> &'static str {
        let refused = |what: &str| self.ledger.refused.iter().any(|(name, _)| name.contains(what));
        match (refused("known_sources"), refused("sources_v")) {
            (true, _) => "unknown",
            (_, true) => "at_least",
            _ => "exact",
        }
    }

    /// The report as one JSON object, described in `docs/WATCH.md`.
    pub fn to_json(&self) -> Value {
        let Ledger { seen, filtered, behind_tag, decoded, wire_bytes, .. } = self.ledger;
        let list = |list: &[(&'static str, u64)]| -> Value {
            list.iter().map(|&(name, times)| (name.to_owned(), Value::from(times))).collect()
        };
        let mut json = json!({
            "packets": seen,
            "bytes": wire_bytes,
            "decoded": decoded,
            "first": self.times.map(|(first, _)| time::iso8601(first)),
            "last": self.times.map(|(_, last)| time::iso8601(last)),
            "ledger": {
                "seen": seen,
                "filtered": filtered,
                "filtered_behind_vlan_tag": behind_tag,
                "undecoded": list(&self.ledger.undecoded),
                "decoded": decoded,
                "balance": self.ledger.balance() as i64,
                "refused": list(&self.ledger.refused),
                "dont_know": list(&self.ledger.dont_know),
            },
            "memory": { "budget": self.budget, "allocated": self.allocated },
            "top_flows": rows(&self.flows, |key| json!({
                "key": key.two_way().to_string(),
                "community_id": key.community_id(0, None),
            })),
            "top_flows_complete": self.flows.complete,
            "top_hosts": rows(&self.hosts, |key| json!({ "key": sizes::address(*key) })),
            "top_hosts_complete": self.hosts.complete,
            "top_ports": rows(&self.ports, |key| json!({ "key": sizes::port_name(*key).to_string() })),
            "top_ports_complete": self.ports.complete,
            "new_sources": self.new_sources.iter().map(|(subnet, count)| {
                json!({ "subnet": subnet.to_string(), "count": count })
            }).collect::<Value>(),
            "new_sources_subnets": self.new_subnets,
            "new_sources_total": self.new_sources_total,
            "new_sources_certainty": self.new_sources_certainty(),
        });
        let Counts { half_open, peak_half_open, open, dont_know, .. } = self.connections;
        let states = |counts: [u64; OUTCOMES.len()]| -> Value {
            OUTCOMES
                .iter()
                .zip(counts)
                .map(|(name, n)| (name.to_string(), Value::from(n)))
                .collect()
        };
        json["connections"] = json!({
            "by_state": states(self.connections.by_state),
            "present_by_state": states(self.connections.present),
            "half_open": half_open,
            "peak_half_open": peak_half_open,
            "open": open,
            "came_about": self.connections.came_about,
            "one_way": self.connections.one_way,
            "one_way_capture": self.connections.is_one_way(),
            "dont_know": dont_know,
            "in_both": self.connections.in_both,
            "stranger_rate": self.stranger_rate,
        });
        let sampling = &self.connections.sampling;
        if let Some(since) = sampling.since {
            let interval = |estimate, variance| {
                let (least, most) = sampling.interval(estimate, variance);
                json!([least, most])
            };
            let present = |n| interval(n, sampling.present_variance(n));
            let by_state = OUTCOMES.iter().zip(self.connections.by_state).zip(sampling.by_state);
            json["connections"]["sampling"] = json!({
                "one_in": 1u64 << sampling.level,
                "one_in_most": 1u64 << sampling.highest,
                "since": time::iso8601(since),
                "unsampled_packets": sampling.unsampled,
                "intervals_99": {
                    "by_state": by_state
                        .map(|((name, n), variance)| (name.to_string(), interval(n, variance)))
                        .collect::<Value>(),
                    "half_open": present(half_open),
                    "open": present(open),
                    "came_about": interval(self.connections.came_about, sampling.came_about),
                    "one_way": interval(self.connections.one_way, sampling.one_way),
                },
            });
        }
        if !self.ledger.source.is_empty() {
            json["ledger"]["source"] = list(&self.ledger.source);
        }
        json["alarms"] = self.alarms.iter().map(Alarm::to_json).collect();
        json["alarms_unlisted"] = self.alarms_unlisted.into();
        json["machines"] = json!({});
        for counts in &self.machines {
            json["machines"][&counts.name] = counts.to_json();
        }
        json["p2p"] = self.p2p.iter().map(Suspect::to_json).collect();
        if !self.subnets.is_empty() {
            json["subnets"] = self.subnets.iter().map(|(subnet, hosts)| {
                let host = |(address, sent, received): &HostPackets| {
                    json!({ "host": address, "sent": sent, "received": received })
                };
                json!({ "subnet": subnet, "certainty": "exact",
                        "hosts": hosts.iter().map(host).collect::<Value>() })
            }).collect();
        }
        if let Some(audit) = &self.audit {
            json["audit"] = json!({ "violations": audit.violations() });
            for (name, finding) in audit.parts() {
                json["audit"][name] = json!({
                    "keys": finding.keys,
                    "violations": finding.violations,
                    "exact": finding.exact,
                    "listed": finding.listed,
                    "mean_excess": finding.mean_excess,
                });
            }
            let (states, connections) = (&audit.states, &mut json["audit"]["connections"]);
            connections["answers"] = states.answers.into();
            connections["dont_knows"] = states.dont_knows.into();
            connections["mistaken"] = states.mistaken.into();
            let Peers { exact, missing, extra } = audit.p2p;
            json["audit"]["p2p"] = json!({ "exact": exact, "missing": missing, "extra": extra });
        }
        json
    }
}

/// The name of a certainty: `exact`, or `at_most` for an upper bound.
pub fn certainty(bounds: &Bounds) -> &'static str {
    if bounds.is_exact() { "exact" } else { "at_most" }
}

fn rows<K>(ranking: &Ranking<K, 2>, name: impl Fn(&K) -> Value) -> Value {
    let row = |entry: &Entry<K, 2>| {
        let [bytes, packets] = entry.amounts;
        let mut row = name(&entry.key);
        row["bytes"] = bytes.most.into();
        row["packets"] = packets.most.into();
        row["certainty"] = certainty(&bytes).into();
        row["lower"] = bytes.least.into();
        row["packets_lower"] = packets.least.into();
        row
    };
    ranking.entries.iter().map(row).collect()
}
