//! Expected incidents of a scenario, and their comparison with the alarms of a run.
//!
//! An incident has a kind and a subject. A `must` names its subject exactly: an attack on all of
//! 198.18.0.0/20 is named by that prefix, not by one of its hosts. A `may` allows every part of its
//! subject. An incident that neither a `must` nor a `may` names is wrong.

use super::Scenario;
use crate::Prefix;
use std::collections::BTreeSet;

/// An incident that a monitor named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm {
    /// The kind, such as `syn_flood`.
    pub kind: String,
    /// The address or the prefix that it names.
    pub subject: Prefix,
}

/// Incidents that are expected: one of these kinds, at one of these subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The kinds.
    pub kinds: Vec<String>,
    /// The subjects.
    pub subjects: Vec<Prefix>,
}

impl Expected {
    /// Whether the alarm has one of the kinds and exactly one of the subjects.
    pub fn names(&self, alarm: &Alarm) -> bool {
        self.kinds.contains(&alarm.kind) && self.subjects.contains(&alarm.subject)
    }

    /// Whether the alarm has one of the kinds, and a part of one of the subjects.
    fn allows(&self, alarm: &Alarm) -> bool {
        let covers = |subject: &Prefix| subject.covers(&alarm.subject);
        self.kinds.contains(&alarm.kind) && self.subjects.iter().any(covers)
    }
}

/// An incident that must be named.
#[derive(Debug, Clone, PartialEq)]
pub struct Must {
    /// The incident.
    pub expected: Expected,
    /// The flows that are its evidence.
    pub flows: String,
    /// The number of these flows that must be followed, in expectation, for the incident to be
    /// required.
    pub followed: u64,
    /// The most nanoseconds from the start of these flows to the event; `None` without a limit.
    pub within_ns: Option<u64>,
    /// The most incidents of this description.
    pub most: u64,
    /// Words that the incident must contain.
    pub says: Vec<String>,
    /// Names of figures of its evidence, with their least and greatest values.
    pub figures: Vec<(String, [u64; 2])>,
}

/// The alarms of a run, compared with the expectations of its scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Alarms that must or may be raised and were.
    pub right: Vec<Alarm>,
    /// Alarms that were raised and name anybody else.
    pub wrong: Vec<Alarm>,
    /// Expectations for which no alarm was raised.
    pub missing: Vec<Must>,
    /// Those of the missing ones that had enough evidence.
    pub missed: Vec<Must>,
}

impl Scenario {
    /// Compares the alarms of a run with the expectations. `unit` is that of the packets; one in
    /// `2^level` connections was followed. Times, words and figures are not compared
    /// here: `scripts/attacks` reads them from the program's output.
    pub fn judge(&self, raised: &BTreeSet<Alarm>, unit: u64, level: u32) -> Judgement {
        let known = |alarm: &&Alarm| {
            self.must.iter().any(|must| must.expected.names(alarm))
                || self.may.iter().any(|may| may.allows(alarm))
        };
        let evidence = |must: &&Must| {
            let flows = self.flows(&must.flows).map(|flows| flows.number.of(unit));
            let flows = flows.fold(0, u64::saturating_add);
            flows.checked_shr(level).unwrap_or(0) >= must.followed
        };
        let is_raised = |must: &Must| raised.iter().any(|alarm| must.expected.names(alarm));
        let missing = || self.must.iter().filter(|must| !is_raised(must));
        Judgement {
            right: raised.iter().filter(known).cloned().collect(),
            wrong: raised.iter().filter(|alarm| !known(alarm)).cloned().collect(),
            missing: missing().cloned().collect(),
            missed: missing().filter(evidence).cloned().collect(),
        }
    }
}
