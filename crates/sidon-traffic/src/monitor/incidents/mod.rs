//! Incidents: what an operator should act on, each with its subject, its course and its evidence.
//!
//! Detectors judge subjects and report to one `List`. An incident is opened once, updated while it
//! goes on, and closed. Several findings about one subject are one incident. Examples are a source that
//! scans many ports of many hosts, a victim that is flooded at several ports, and a flooded prefix.
//! ```text
//! detector --raise--> | list: 256 incidents, some reserved for each kind | --> report, file, events
//!    ^  number <-----  same subject: joins     no room: counted by kind |
//!    '-- update, show, example, close, by number ------------------------'
//! ```
//!
//! How a detector uses the list:
//!
//! 1. The condition of a subject has held long enough: `List::raise` with a `Finding` returns the
//!    number to use from then on. `None`: there is no room, the user allows it, or the incident has so many
//!    findings already that this one only updates it. The list counts an incident without room once,
//!    however often the detector tries again; so try again when the condition has held for another while.
//! 2. About once a second, while the condition holds: `List::update` with the size, in the unit of the
//!    kind (`Finding::size`). It sets the time `updated`, the series and the severity.
//! 3. For some packets: `List::example`. The list keeps the first four and the last four.
//! 4. Before closing, and whenever the monitor refreshes: `List::show` with the evidence. The list keeps
//!    the evidence of the finding whose first figure is largest.
//! 5. The condition ended: `List::close`. The incident closes when all its findings are closed. It
//!    opens again if its subject is raised again within the time that the kind allows.
//!
//! A number is never used again. Calls with the number of an incident that is no longer listed have no
//! effect. In a checkpoint, detectors save their numbers and check them by `List::has_raised`.

mod absorb;
mod evidence;
mod example;
pub mod kinds;
mod list;
mod refusals;
pub(crate) mod saved;
mod series;

pub(crate) use evidence::EVIDENCE_MAX;
pub use evidence::{Evidence, label};
pub(crate) use evidence::{count, estimate};
pub use example::Example;
pub(crate) use example::protocol_name;
pub use kinds::KINDS;
pub(crate) use list::{LISTED_MAX, List, State, TEXT_MAX};
pub use series::Series;

use crate::{FlowKey, Prefix, time};
use kinds::Class;
use serde_json::{Value, json};
use sidon::{Key, Seed};
use std::net::IpAddr;

/// The urgency of an incident: its kind and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A scan of a few targets.
    Low,
    /// A scan of ten times the least number of targets, or a beacon.
    Medium,
    /// A flood.
    High,
    /// A flood of ten times the least size.
    Critical,
}

impl Severity {
    /// Every severity, the lowest first.
    pub const ALL: [Severity; 4] =
        [Severity::Low, Severity::Medium, Severity::High, Severity::Critical];

    /// The name in JSON and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// The ends of an incident's packets, as far as they are known. Ports and the protocol are those that
/// all packets have in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ends {
    /// The only other end: the victim of a port scan, the server of a beacon.
    pub peer: Option<IpAddr>,
    /// The number of the IP protocol.
    pub protocol: Option<u8>,
    /// The port of the subject.
    pub subject_port: Option<u16>,
    /// The port of the other ends.
    pub peer_port: Option<u16>,
}

impl Ends {
    /// What two findings have in common.
    fn common(self, other: Ends) -> Ends {
        Ends {
            peer: self.peer.filter(|_| self.peer == other.peer),
            protocol: self.protocol.filter(|_| self.protocol == other.protocol),
            subject_port: self.subject_port.filter(|_| self.subject_port == other.subject_port),
            peer_port: self.peer_port.filter(|_| self.peer_port == other.peer_port),
        }
    }
}

/// A condition that a detector reports about a subject.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    /// One of [`KINDS`].
    pub(crate) kind: &'static str,
    /// The victim of a flood, the source of a scan or of a beacon. A prefix stands for its hosts:
    /// open incidents of the kind at its hosts become part of it.
    pub(crate) subject: Prefix,
    pub(crate) ends: Ends,
    /// A sentence that describes it and names the subject.
    pub(crate) text: String,
    /// A tcpdump expression that matches the packets.
    pub(crate) filter: String,
    /// The time from which the condition held.
    pub(crate) opened: u64,
    /// The size now. Of a flood: packets or attempts, of a SYN flood the unanswered ones, of a
    /// connection flood the open connections. Of a scan: failed targets. Of a beacon: repetitions.
    pub(crate) size: u64,
    /// The least size that is an incident, to judge the severity by.
    pub(crate) least: u64,
    /// At most [`EVIDENCE_MAX`] figures. The first one grows with the finding.
    pub(crate) evidence: Evidence,
}

/// A condition that an operator should investigate, from its beginning to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Incident {
    /// A number that follows from the kind at first, the subject and the opening time.
    pub id: u64,
    /// One of [`KINDS`]. A scan has the strongest kind so far.
    pub kind: &'static str,
    /// The victim of a flood: a host or a prefix. The source of a scan or of a beacon. Forged SYNs have
    /// neither; their subject is the unspecified address.
    pub subject: Prefix,
    /// The other end, the protocol and the ports, as far as all packets have them in common.
    pub ends: Ends,
    /// The name that the user gave to the network of the subject; empty without one.
    pub network: String,
    /// The highest severity so far.
    pub severity: Severity,
    /// A sentence that describes the incident.
    pub text: String,
    /// The time from which the condition held.
    pub opened: u64,
    /// The last time that a detector confirmed it.
    pub updated: u64,
    /// The time when the condition ended; `None` if it still held after the last packet.
    pub closed: Option<u64>,
    /// A tcpdump expression that matches the packets.
    pub filter: String,
    /// The size over time.
    pub size: Series,
    /// Some of the flows, by time.
    pub examples: Vec<Example>,
    /// Figures that support the incident, by name.
    pub evidence: Evidence,
}

impl Incident {
    /// The incident of a finding.
    fn of(finding: Finding) -> Self {
        let Finding { kind, subject, ends, text, filter, opened, size, least, evidence } = finding;
        let mut series = Series::default();
        series.add(opened, size);
        Incident {
            id: id(kind, &subject, opened),
            kind,
            subject,
            ends,
            network: String::new(),
            severity: kinds::severity(kind, size, least),
            text,
            opened,
            updated: opened,
            closed: None,
            filter,
            size: series,
            examples: Vec::new(),
            evidence,
        }
    }

    /// Turns the evidence into lower bounds, for a source that lost or sampled packets.
    pub(crate) fn weaken(&mut self) {
        evidence::at_least(&mut self.evidence);
    }

    /// Turns exact counts into estimates that may be wrong by `slack`, for a map that may have
    /// mistaken a connection for another.
    pub(crate) fn widen(&mut self, slack: u64) {
        evidence::widen(&mut self.evidence, slack);
    }

    /// The id as text: 16 hexadecimal digits.
    pub fn id(&self) -> String {
        format!("{:016x}", self.id)
    }

    /// Whether the subject sends the packets; otherwise it receives them.
    pub fn is_sender(&self) -> bool {
        kinds::class(self.kind) != Class::Flood
    }

    /// The incident as one JSON object.
    pub fn to_json(&self) -> Value {
        let mut json = self.to_alarm_json();
        json["id"] = self.id().into();
        json["severity"] = self.severity.name().into();
        json["updated"] = time::iso8601(self.updated).into();
        json["size"] = self.size.to_json();
        json["examples"] = self.examples.iter().copied().map(Example::to_json).collect();
        let Ends { peer, protocol, subject_port, peer_port } = self.ends;
        if let Some(peer) = peer {
            json["peer"] = peer.to_string().into();
        }
        if let Some(protocol) = protocol {
            json["proto"] = example::protocol_name(protocol).into();
        }
        for (name, port) in [("subject_port", subject_port), ("peer_port", peer_port)] {
            if let Some(port) = port {
                json[name] = port.into();
            }
        }
        if !self.network.is_empty() {
            json["network"] = self.network.as_str().into();
        }
        json
    }

    /// The short form of [`to_json`](Self::to_json): kind, subject, times, text, filter and evidence.
    pub fn to_alarm_json(&self) -> Value {
        let mut json = json!({
            "kind": self.kind,
            "subject": self.subject.to_string(),
            "text": self.text,
            "opened": time::iso8601(self.opened),
            "closed": self.closed.map(time::iso8601),
            "filter": self.filter,
        });
        evidence::set(&self.evidence, &mut json);
        json
    }

    /// The evidence in words: one text for each figure, with its certainty and interval.
    pub fn evidence_text(&self) -> Vec<String> {
        evidence::text(&self.evidence)
    }

    /// The order of a report: the most severe first, floods before others, then by time.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        (std::cmp::Reverse(self.severity), kinds::class(self.kind), self.opened, self.id)
    }

    /// Whether another finding belongs to this incident, times aside.
    fn is_like(&self, kind: &'static str, subject: &Prefix) -> bool {
        kinds::group(self.kind) == kinds::group(kind) && self.subject == *subject
    }

    /// Takes the stronger kind of a scan. Returns whether it has changed.
    fn strengthen(&mut self, kind: &'static str) -> bool {
        let is_stronger = kinds::rank(kind) > kinds::rank(self.kind);
        if is_stronger {
            self.kind = kind;
            self.text = kinds::text(kind, &self.subject);
        }
        is_stronger
    }

    /// Takes the packets of another finding of its subject. Returns whether the filter and the text have
    /// changed: they then cover all findings.
    fn widen_to(&mut self, filter: &str, ends: Ends) -> bool {
        self.ends = self.ends.common(ends);
        let all = kinds::filter(self.kind, &self.subject);
        if self.filter == filter || self.filter == all {
            return false;
        }
        self.filter = all;
        self.text = kinds::text(self.kind, &self.subject);
        true
    }

    /// Adds an example, and keeps the first four and the last four.
    fn add_example(&mut self, time: u64, flow: FlowKey) {
        example::add(&mut self.examples, Example { time, flow });
    }
}

/// The id of an incident. It does not depend on a seed, so that it can be found again in another run.
fn id(kind: &str, subject: &Prefix, opened: u64) -> u64 {
    let text = format!("{kind} {subject} {opened}");
    text.as_bytes().digest(Seed(0)).0
}
