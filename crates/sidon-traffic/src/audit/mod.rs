//! Exact references beside every monitor, to check the bounds that the monitors promise.
//!
//! A twin is a hash map of all keys that occurred, refused or not. It grows with the traffic, so it
//! is for tests and not for production. After the last packet the audit compares every key of the
//! twin with the monitor, every list with the keys that are missing in it, and every figure of the
//! report with the truth. A figure that excludes the truth is a violation, and the audit names its
//! row. The promise is: no violations.
//!
//! The interval of a sampled count has a confidence of 99%, so one in a hundred excludes the truth.
//! The audit therefore compares such a count with an interval of six standard deviations.

mod services;

pub use services::Services;

use crate::{
    FlowKey,
    batch::{self, Batch, Lane},
    figure::{Figure, Kind},
    monitor::{
        connections,
        p2p::{self, P2p, Suspect},
        sizes::{self, Host, Port, Sizes},
        sources::{Sources, Subnet},
    },
};
use sidon::{
    Key, Seed,
    count::{Stored, Top},
};
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
    /// Source addresses that were known before the first packet.
    known: HashSet<IpAddr>,
    /// Source addresses of packets.
    sources: HashSet<IpAddr>,
    /// Source addresses that the table refused at least once.
    refused: HashSet<IpAddr>,
    /// Wrong answers about sources.
    wrong: Vec<String>,
    wrong_sources: u64,
}

/// The most rows that an audit names.
pub const ROWS: usize = 20;

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
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// Services in the list of the report, by an exact reference of responders.
    pub services: Finding,
    /// Figures of the report outside all lists.
    pub figures: Finding,
    /// Violations, one line each, at most [`ROWS`].
    pub rows: Vec<String>,
    /// The true number of new source addresses, and of their subnets.
    pub(crate) new_sources: [u64; 2],
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
    pub fn parts(&self) -> [(&'static str, Finding); 7] {
        [
            ("figures", self.figures),
            ("flows", self.flows),
            ("hosts", self.hosts),
            ("ports", self.ports),
            ("services", self.services),
            ("sources", self.sources),
            ("connections", self.connections),
        ]
    }

    /// The sum of the audits of two shards, which have no key in common.
    pub fn with(mut self, other: &Audit) -> Audit {
        self.rows.extend_from_slice(&other.rows);
        self.rows.truncate(ROWS);
        let [addresses, subnets] = other.new_sources;
        Audit {
            flows: self.flows.with(other.flows),
            hosts: self.hosts.with(other.hosts),
            ports: self.ports.with(other.ports),
            sources: self.sources.with(other.sources),
            new_sources: [self.new_sources[0] + addresses, self.new_sources[1] + subnets],
            ..self
        }
    }

    /// Compares a figure with the interval of the truth.
    pub(crate) fn check(&mut self, name: &str, figure: Figure, truth: [u64; 2]) {
        compare(&mut self.figures, &mut self.rows, name, figure, truth);
    }

    /// Compares the listed services with the reference. A service that is not listed must not
    /// exceed `others` bytes.
    pub(crate) fn check_services<'a>(
        &mut self,
        reference: &Services,
        listed: impl Iterator<Item = (&'a Port, [Figure; 2])>,
        others: u64,
    ) {
        let slack = reference.uncertain;
        let mut missing: HashMap<_, _> = reference.ports.iter().collect();
        for (port, figures) in listed {
            let truth = missing.remove(port).copied().unwrap_or_default();
            for (i, what) in ["bytes", "packets"].into_iter().enumerate() {
                let name = format!("service {} {what}", sizes::port_name(*port));
                let truth = [truth[i].saturating_sub(slack[i]), truth[i].saturating_add(slack[i])];
                compare(&mut self.services, &mut self.rows, &name, figures[i], truth);
            }
        }
        let mut named = Named::default();
        for (port, [bytes, _]) in missing {
            if bytes.saturating_sub(slack[0]) > others {
                self.services.violations += 1;
                let port = sizes::port_name(*port);
                named.add(format!("service {port}: not listed, truth {bytes} bytes"));
            }
        }
        named.into_rows(&mut self.rows);
        self.rows.truncate(ROWS);
    }

    /// Adds the findings of the connections' twin.
    pub fn and_connections(mut self, twin: Option<&connections::Twin>) -> Audit {
        let Some(twin) = twin else { return self };
        self.rows.extend_from_slice(&twin.rows);
        self.rows.truncate(ROWS);
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
    /// Counts the keys of shard `number` in the packets of a batch, and the services that the monitor
    /// named for it.
    pub fn add(&mut self, number: usize, seed: Seed, batch: &Batch) {
        let Batch { packets, columns, lanes, .. } = batch;
        let owns = |digest| batch::shard(digest) == number;
        for (packet, &amounts) in packets.iter().zip(&columns.amounts) {
            let flow = packet.flow.undirected();
            if owns(flow.digest(seed)) {
                sum(&mut self.flows, flow, amounts);
            }
            let ends = [packet.flow.source(), packet.flow.destination()];
            for host in ends.map(sizes::host).iter().take(if ends[0] == ends[1] { 1 } else { 2 }) {
                if owns(host.digest(seed)) {
                    sum(&mut self.hosts, *host, amounts);
                }
            }
            let is_own = batch::shard_of_source(ends[0], seed) == number;
            let is_source = amounts != [0, 0] && !ends[0].is_unspecified();
            if is_own && is_source && !self.known.contains(&ends[0]) && self.sources.insert(ends[0])
            {
                self.wrong_sources += 1;
                self.wrong.push(format!("source {}: not observed", ends[0]));
                self.wrong.truncate(Named::MOST);
            }
        }
        let Lane { ports, .. } = &lanes[number];
        for pick in ports {
            let key = columns.ports[pick.key as usize];
            sum(&mut self.ports, key, columns.amounts[pick.amounts as usize]);
        }
    }

    /// Adds an address that is known before its first packet. `learnt` says whether the monitor
    /// stored it.
    pub fn learn(&mut self, address: IpAddr, learnt: bool) {
        if !self.sources.contains(&address) {
            self.known.insert(address);
        }
        if !learnt {
            self.refused.insert(address);
        }
    }

    /// Compares the monitor's answer about a source with the truth. `None` means that the monitor
    /// refused the address. It may then report the address as new later.
    pub fn source(&mut self, address: IpAddr, said_new: Option<bool>) {
        if address == IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED) {
            return;
        }
        let new = !self.known.contains(&address) && self.sources.insert(address);
        let late = self.refused.contains(&address);
        match said_new {
            None => {
                self.refused.insert(address);
            }
            Some(said) if said != new && !late => {
                self.wrong_sources += 1;
                if self.wrong.len() < Named::MOST {
                    self.wrong.push(format!("source {address}: new is {said}, truth {new}"));
                }
            }
            Some(_) => {}
        }
    }

    /// Compares every key of the twin with the monitor's tables, and the lists of the `top` heaviest
    /// keys with all others.
    pub fn audit(&self, sizes: &Sizes, sources: &Sources, top: usize) -> Audit {
        let mut rows = self.wrong.clone();
        let flow = |key: &FlowKey| format!("flow {}", key.two_way());
        let host = |key: &Host| format!("host {}", sizes::address(*key));
        let port = |key: &Port| format!("port {}", sizes::port_name(*key));
        Audit {
            flows: check(&self.flows, &sizes.flows, top, &mut rows, flow),
            hosts: check(&self.hosts, &sizes.hosts, top, &mut rows, host),
            ports: check(&self.ports, &sizes.ports, top, &mut rows, port),
            sources: self.check_sources(sources, &mut rows),
            new_sources: self.new_sources(),
            rows,
            ..Audit::default()
        }
    }

    /// The true number of new source addresses, and of their subnets.
    fn new_sources(&self) -> [u64; 2] {
        let new = || self.sources.difference(&self.known);
        let subnets: HashSet<Subnet> = new().map(|address| Subnet::of(*address)).collect();
        [new().count() as u64, subnets.len() as u64]
    }

    fn check_sources(&self, sources: &Sources, rows: &mut Vec<String>) -> Finding {
        let keys = self.sources.union(&self.known);
        let mut finding = Finding { violations: self.wrong_sources, ..Finding::default() };
        let mut named = Named::default();
        for address in keys {
            let stored = sources.contains(*address);
            finding.keys += 1;
            finding.exact += u64::from(stored);
            finding.listed += u64::from(stored);
            if !stored && !self.refused.contains(address) {
                finding.violations += 1;
                named.add(format!("source {address}: neither stored nor refused"));
            }
        }
        named.into_rows(rows);
        finding
    }
}

/// Compares a figure with the interval of the truth.
fn compare(
    finding: &mut Finding,
    rows: &mut Vec<String>,
    name: &str,
    figure: Figure,
    [least, most]: [u64; 2],
) {
    finding.keys += 1;
    finding.exact += u64::from(figure.kind() == Kind::Exact);
    if most < figure.least() || figure.most().is_some_and(|upper| least > upper) {
        finding.violations += 1;
        let truth = if least == most { format!("{least}") } else { format!("{least} to {most}") };
        rows.push(format!("{name}: shown {figure:#}, truth {truth}"));
        rows.truncate(ROWS);
    }
}

/// Violations of one table: the first few in the order of their texts, since the order of a hash map
/// differs from run to run.
#[derive(Default)]
struct Named(Vec<String>);

impl Named {
    /// The most rows of one table, so that each table has room among [`ROWS`].
    const MOST: usize = 4;

    fn add(&mut self, row: String) {
        self.0.push(row);
        if self.0.len() == 64 {
            self.keep_first();
        }
    }

    fn keep_first(&mut self) {
        self.0.sort_unstable();
        self.0.truncate(Self::MOST);
    }

    fn into_rows(mut self, rows: &mut Vec<String>) {
        self.keep_first();
        rows.append(&mut self.0);
    }
}

fn sum<K: Hash + Eq>(twin: &mut HashMap<K, [u64; 2]>, key: K, [bytes, packets]: [u64; 2]) {
    let amounts = twin.entry(key).or_default();
    amounts[0] = amounts[0].saturating_add(bytes);
    amounts[1] = amounts[1].saturating_add(packets);
}

/// Compares the bounds of every key with the truth. A key that the list of the heaviest leaves out
/// must not exceed the limit that the list states.
fn check<K: Stored + Hash + Eq>(
    twin: &HashMap<K, [u64; 2]>,
    table: &Top<K, 2>,
    top: usize,
    rows: &mut Vec<String>,
    label: impl Fn(&K) -> String,
) -> Finding {
    let mut finding = Finding { keys: twin.len() as u64, ..Finding::default() };
    let heaviest = table.heaviest(top);
    let listed: HashSet<K> = heaviest.entries.iter().map(|entry| entry.key).collect();
    let (mut excess, mut named) = (0u128, Named::default());
    for (key, truth) in twin {
        let bounds = table.bounds(key);
        let figures = bounds.map(Figure::from);
        let wrong = figures.iter().zip(truth).any(|(figure, truth)| !figure.allows(*truth));
        let left_out = !listed.contains(key) && truth[0] > heaviest.others;
        if wrong || left_out {
            finding.violations += 1;
            let [bytes, packets] = figures;
            let [true_bytes, true_packets] = truth;
            named.add(format!(
                "{}: shown {bytes} bytes, {packets} packets, truth {true_bytes} bytes, \
                 {true_packets} packets",
                label(key)
            ));
        }
        finding.exact += u64::from(bounds.iter().all(|bounds| bounds.is_exact()));
        finding.listed += u64::from(bounds[1].least > 0);
        excess += u128::from(bounds[0].most.saturating_sub(truth[0]));
    }
    finding.mean_excess = excess as f64 / twin.len().max(1) as f64;
    named.into_rows(rows);
    finding
}
