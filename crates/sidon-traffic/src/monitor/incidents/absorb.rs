//! The incidents of two captures as one list.

use super::{
    EVIDENCE_MAX, Incident, evidence, example, kinds,
    list::{self, List, note},
};

/// The most rules whose allowed incidents are counted; a file may bring others.
pub(super) const RULES_MAX: usize = crate::thresholds::ALLOW_MAX;
/// The most counts of kinds that this version does not have; a file may bring others.
pub(super) const UNKNOWN_MAX: usize = 32;
/// The name of the counts without room.
pub(super) const OTHERS: &str = "others";

impl List {
    /// Adds the incidents of another list, in the order of their opening times. Incidents still open in
    /// the capture that ended first are closed at its end.
    ///
    /// Two incidents of one subject and kind, or two scans of one subject, become one if they overlap or
    /// follow each other within the gap of their kind.
    pub(crate) fn absorb(&mut self, mut other: List, lasts: [u64; 2]) {
        let end = lasts[0].max(lasts[1]);
        let mut parts = Vec::new();
        for (incidents, last) in [self.take(), other.take()].into_iter().zip(lasts) {
            parts.extend(incidents.into_iter().map(|mut incident| {
                if incident.closed.is_none() && last < end {
                    incident.closed = Some(last.max(incident.opened));
                }
                incident
            }));
        }
        let by_time = |one: &Incident, two: &Incident| {
            let key = |of: &Incident| (of.opened, of.kind, of.subject, of.id);
            key(one).cmp(&key(two))
        };
        parts.sort_by(by_time);
        let mut joined: Vec<Incident> = Vec::new();
        for incident in parts {
            let goes_on = |before: &&mut Incident| {
                let closed = before.closed.unwrap_or(end).saturating_add(kinds::gap(before.kind));
                before.is_like(incident.kind, &incident.subject) && incident.opened <= closed
            };
            match joined.iter_mut().rev().find(goes_on) {
                Some(before) => before.join(incident),
                None => joined.push(incident),
            }
        }
        let (mut incidents, left_out) = list::fitting(joined);
        incidents.sort_by(by_time);
        let mut unlisted = self.unlisted().to_vec();
        for &(kind, times) in other.unlisted().iter().chain(&left_out) {
            note_kind(&mut unlisted, kind, times);
        }
        let mut allowed = self.allowed().to_vec();
        for (rule, times) in other.allowed() {
            note_rule(&mut allowed, rule, *times);
        }
        *self = List::of(incidents, unlisted, allowed, self.seed());
    }
}

/// Adds to the count of a kind. Kinds that this version does not have share one count beyond
/// [`UNKNOWN_MAX`].
fn note_kind(list: &mut Vec<(&'static str, u64)>, kind: &'static str, times: u64) {
    let is_known = kinds::number(kind).is_some() || list.iter().any(|(known, _)| *known == kind);
    let unknown = list.iter().filter(|(kind, _)| kinds::number(kind).is_none()).count();
    note(list, if is_known || unknown < UNKNOWN_MAX { kind } else { OTHERS }, times);
}

/// Adds to the count of a rule. A full list has one count for the rules without room.
fn note_rule(list: &mut Vec<(String, u64)>, rule: &str, times: u64) {
    let is_known = list.iter().any(|(known, _)| known == rule);
    let has_room = is_known || list.len() < RULES_MAX;
    note(list, if has_room { rule } else { OTHERS }.to_owned(), times);
}

impl Incident {
    /// Adds a later part of the incident, from the other capture.
    fn join(&mut self, part: Incident) {
        self.strengthen(part.kind);
        self.widen_to(&part.filter, part.ends);
        if self.network.is_empty() {
            self.network = part.network;
        }
        self.severity = self.severity.max(part.severity);
        self.closed = self.closed.zip(part.closed).map(|(one, two)| one.max(two));
        self.updated = self.updated.max(part.updated);
        self.size.join(part.size);
        example::join(&mut self.examples, part.examples);
        evidence::join(&mut self.evidence, part.evidence);
        debug_assert!(self.evidence.len() <= EVIDENCE_MAX, "a join keeps the limit");
    }
}
