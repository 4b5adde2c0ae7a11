//! Exact references beside every monitor, to check the bounds that the monitors promise.
//!
//! A twin is a hash map of all keys. It grows with the traffic, so it is for tests and not for
//! production. After the last packet the audit looks up every key of the twin in the monitor. A
//! bound that excludes the true count is a violation. The promise is: no violations.

use crate::{
    FlowKey,
    batch::{Columns, Lane},
    monitor::{
        connections,
        p2p::{self, P2p, Suspect},
        sizes::{Host, Port, Sizes},
        sources::Sources,
    },
};
use sidon::count::{Stored, Top, top::Pick};
use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    net::IpAddr,
};

/// The exact counterpart of one shard.
#[derive(Debug, Default)]
pub struct Twin {
    flows: HashMap<FlowKey, [u64; 2]>,
    hosts: HashMap<Host, [u64; 2]>,
    ports: HashMap<Port, [u64; 2]>,
    sources: HashSet<IpAddr>,
    missed: u64,
    false_new: u64,
}

/// The result of an audit of one table.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Finding {
    /// Keys that occurred.
    pub keys: u64,
    /// Keys whose bounds exclude the truth, or whose certain answer is wrong.
    pub violations: u64,
    /// Keys whose bounds are exact in the table.
    pub exact: u64,
    /// Keys that have an entry in the table.
    pub listed: u64,
    /// How far the upper bound of a key's first amount exceeds the truth, on average over all keys.
    pub mean_excess: f64,
}

/// The result of an audit of all tables.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Audit {
    /// Flows.
    pub flows: Finding,
    /// Hosts.
    pub hosts: Finding,
    /// Ports.
    pub ports: Finding,
    /// Source addresses. Violations are old addresses reported as new, and new ones reported as
    /// old.
    pub sources: Finding,
    /// Connections. A violation is a wrong answer, or a flow that expired too early, though no
    /// other flow has its fingerprint. `exact` counts flows whose fingerprint no earlier flow has.
    pub connections: Finding,
    /// Answers about the states of connections.
    pub states: States,
    /// P2P-like hosts.
    pub p2p: Peers,
}

/// P2P-like hosts that the monitor lists, compared with those that exact maps list. Scores are
/// estimates, so a difference is not a violation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peers {
    /// Hosts that exact maps list.
    pub exact: u64,
    /// Hosts that exact maps list and the monitor does not.
    pub missing: u64,
    /// Hosts that the monitor lists and exact maps do not.
    pub extra: u64,
}

/// Answers about the state of a connection, one before every packet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct States {
    /// The number of answers.
    pub answers: u64,
    /// Answers `DontKnow`.
    pub dont_knows: u64,
    /// Answers that were wrong because two flows share a fingerprint.
    pub mistaken: u64,
}

impl Audit {
    /// The number of violations in all parts.
    pub fn violations(&self) -> u64 {
        self.parts().iter().map(|(_, finding)| finding.violations).sum()
    }

    /// Each part by its name.
    pub fn parts(&self) -> [(&'static str, Finding); 5] {
        [
            ("flows", self.flows),
            ("hosts", self.hosts),
            ("ports", self.ports),
            ("sources", self.sources),
            ("connections", self.connections),
        ]
    }

    /// The sum of the audits of two shards, which have no key in common.
    pub fn with(self, other: &Audit) -> Audit {
        Audit {
            flows: self.flows.with(other.flows),
            hosts: self.hosts.with(other.hosts),
            ports: self.ports.with(other.ports),
            sources: self.sources.with(other.sources),
            ..self
        }
    }

    /// Adds the findings of the connections' twin.
    pub fn and_connections(self, twin: Option<&connections::Twin>) -> Audit {
        let Some(twin) = twin else { return self };
        let connections = Finding {
            keys: twin.flows,
            violations: twin.violations,
            exact: twin.flows - twin.alike,
            listed: twin.flows,
            mean_excess: 0.0,
        };
        let connections::Twin { answers, dont_knows, mistaken, .. } = *twin;
        Audit { connections, states: States { answers, dont_knows, mistaken }, ..self }
    }
}

impl Audit {
    /// Adds the comparison of the listed P2P-like hosts with those that exact maps list.
    pub fn and_p2p(self, listed: &[Suspect], twin: Option<&P2p<p2p::All>>) -> Audit {
        let Some(twin) = twin else { return self };
        let hosts = |suspects: &[Suspect]| -> HashSet<IpAddr> {
            suspects.iter().map(|suspect| suspect.host).collect()
        };
        let (ours, theirs) = (hosts(listed), hosts(&twin.suspects(p2p::LISTED)));
        let missing = theirs.difference(&ours).count() as u64;
        let extra = ours.difference(&theirs).count() as u64;
        Audit { p2p: Peers { exact: theirs.len() as u64, missing, extra }, ..self }
    }
}

impl Finding {
    fn with(self, other: Finding) -> Finding {
        let keys = self.keys + other.keys;
        let sum = self.mean_excess * self.keys as f64 + other.mean_excess * other.keys as f64;
        Finding {
            keys,
            violations: self.violations + other.violations,
            exact: self.exact + other.exact,
            listed: self.listed + other.listed,
            mean_excess: if keys == 0 { 0.0 } else { sum / keys as f64 },
        }
    }
}

impl Twin {
    /// Counts the keys of a shard's part of a batch.
    pub fn add(&mut self, lane: &Lane, columns: &Columns) {
        let Columns { flows, hosts, ports, amounts, .. } = columns;
        add(&mut self.flows, &lane.flows, flows, amounts);
        add(&mut self.hosts, &lane.hosts, hosts.as_flattened(), amounts);
        add(&mut self.ports, &lane.ports, ports, amounts);
    }

    /// Adds an address that was known before the first packet.
    pub fn learn(&mut self, address: IpAddr) {
        self.sources.insert(address);
    }

    /// Compares the monitor's answer about a source with the truth. `None` means that the monitor
    /// refused the address. The twin then does not count it as seen.
    pub fn source(&mut self, address: IpAddr, said_new: Option<bool>) {
        let unspecified = IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED);
        let Some(said_new) = said_new.filter(|_| address != unspecified) else { return };
        let new = self.sources.insert(address);
        self.missed += u64::from(new && !said_new);
        self.false_new += u64::from(!new && said_new);
    }

    /// Looks up every key of the twin in the monitor's tables.
    pub fn audit(&self, sizes: &Sizes, sources: &Sources) -> Audit {
        let unknown = self.sources.iter().filter(|address| !sources.contains(**address)).count();
        let known = self.sources.len() as u64;
        Audit {
            flows: check(&self.flows, &sizes.flows),
            hosts: check(&self.hosts, &sizes.hosts),
            ports: check(&self.ports, &sizes.ports),
            sources: Finding {
                keys: known,
                violations: self.missed + self.false_new + unknown as u64,
                exact: known,
                listed: known,
                mean_excess: 0.0,
            },
            ..Audit::default()
        }
    }
}

fn add<K: Stored + Hash>(
    twin: &mut HashMap<K, [u64; 2]>,
    picks: &[Pick],
    keys: &[K],
    amounts: &[[u64; 2]],
) {
    for pick in picks {
        let [bytes, packets] = amounts[pick.amounts as usize];
        let amounts = twin.entry(keys[pick.key as usize]).or_default();
        amounts[0] += bytes;
        amounts[1] += packets;
    }
}

fn check<K: Stored + Hash>(twin: &HashMap<K, [u64; 2]>, table: &Top<K, 2>) -> Finding {
    let mut finding = Finding { keys: twin.len() as u64, ..Finding::default() };
    let mut excess = 0.0;
    for (key, truth) in twin {
        let bounds = table.bounds(key);
        let wrong = |(bounds, truth): (&sidon::count::Bounds, &u64)| {
            !(bounds.least..=bounds.most).contains(truth)
        };
        finding.violations += u64::from(bounds.iter().zip(truth).any(wrong));
        finding.exact += u64::from(bounds.iter().all(|bounds| bounds.is_exact()));
        finding.listed += u64::from(bounds[1].least > 0);
        excess += (bounds[0].most - truth[0].min(bounds[0].most)) as f64;
    }
    finding.mean_excess = if twin.is_empty() { 0.0 } else { excess / twin.len() as f64 };
    finding
}
