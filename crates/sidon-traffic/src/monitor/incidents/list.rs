//! The list of incidents: at most [`LISTED_MAX`], with reserved room for every kind.
//!
//! Each kind may have [`RESERVED`] incidents; the room beyond that is shared. So no number of scans keeps
//! a flood out of the list. A new incident without room replaces one of a kind that uses shared room: a
//! closed one first, then the least severe, then the oldest. An open one is replaced only by a more
//! severe one. Otherwise the new incident is counted and not listed.

use super::{Evidence, Finding, Incident, KINDS, kinds, refusals::Refusals};
use crate::{
    FlowKey,
    resume::Resume,
    snapshot::encode::{In, Out},
    thresholds::Thresholds,
};
use sidon::{Malformed, Seed};
use std::{cmp::Reverse, sync::Arc};

/// The most incidents that are listed.
pub(crate) const LISTED_MAX: usize = 256;
/// The most bytes of the text and of the filter of an incident in a file.
pub(crate) const TEXT_MAX: usize = 4096;
/// Incidents of each kind that have room, whatever others there are.
pub(super) const RESERVED: usize = 8;
/// The most events that wait. A batch causes far fewer.
const NEWS_MAX: usize = 4_096;
/// The most findings of an incident that are closed one by one. More only update it, so that one subject
/// cannot fill the tables of detectors with entries that must not be evicted.
const PARTS_MAX: u64 = 8;
/// The most numbers that stand for an incident of a prefix.
const ALIASES_MAX: usize = 1_024;

/// The change of an incident that an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It is new.
    Opened,
    /// Its size has doubled, or its severity, its kind or its text has changed, or it has begun again.
    Updated,
    /// Its condition has ended, or it became part of an incident of a prefix.
    Closed,
}

impl State {
    /// The name in events.
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Opened => "opened",
            State::Updated => "updated",
            State::Closed => "closed",
        }
    }
}

/// An event about an incident, with the incident as it was then.
#[derive(Debug, Clone)]
pub(crate) struct News {
    pub(crate) incident: Incident,
    pub(crate) state: State,
}

/// A listed incident.
#[derive(Debug)]
struct Entry {
    incident: Incident,
    number: usize,
    /// Findings that are not closed.
    parts: u64,
    /// The size that the last event reported.
    told: u64,
    /// The least size that is an incident.
    least: u64,
}

/// The listed incidents, and the events about them that were not reported yet.
#[derive(Debug)]
pub(crate) struct List {
    seed: Seed,
    thresholds: Arc<Thresholds>,
    /// By number, in ascending order.
    entries: Vec<Entry>,
    /// Numbers of incidents at hosts, each with the number of the incident at their prefix.
    aliases: Vec<(usize, usize)>,
    next: usize,
    /// Incidents that were ever listed, by kind in the order of [`KINDS`].
    raised: [u64; KINDS.len()],
    /// Incidents that were never listed or are no longer, by kind.
    unlisted: Vec<(&'static str, u64)>,
    /// Incidents that the user allows, by rule: the network, and the number.
    allowed: Vec<(String, u64)>,
    refusals: Refusals,
    /// Openings, changes and closings so far.
    changes: u64,
    tells: bool,
    news: Vec<News>,
}

impl List {
    /// An empty list. `seed` is that of the engine.
    pub(crate) fn new(seed: Seed, thresholds: Arc<Thresholds>) -> Self {
        List {
            seed,
            thresholds,
            entries: Vec::new(),
            aliases: Vec::new(),
            next: 0,
            raised: [0; KINDS.len()],
            unlisted: Vec::new(),
            allowed: Vec::new(),
            refusals: Refusals::default(),
            changes: 0,
            tells: false,
            news: Vec::new(),
        }
    }

    /// A list from a file: its incidents, those not listed by kind, and those allowed by rule.
    pub(super) fn of(
        incidents: Vec<Incident>,
        unlisted: Vec<(&'static str, u64)>,
        allowed: Vec<(String, u64)>,
        seed: Seed,
    ) -> Self {
        let mut list = List { unlisted, allowed, ..List::new(seed, Arc::default()) };
        for incident in incidents {
            list.push(incident, 0);
        }
        list
    }

    /// Takes the incidents of a list from a file.
    pub(crate) fn take_over(&mut self, read: List) {
        let List { entries, unlisted, allowed, .. } = read;
        (self.entries, self.unlisted, self.allowed) = (entries, unlisted, allowed);
    }

    /// Reports a finding. Returns the number of its incident: a new one, or the one that it belongs to.
    /// `None` if it is not listed: the user allows it, or there is no room. It is then counted once,
    /// even if it is raised again while it goes on.
    pub(crate) fn raise(&mut self, finding: Finding) -> Option<usize> {
        let Finding { kind, subject, opened, .. } = finding;
        debug_assert!(KINDS.contains(&kind), "{kind} is one of the kinds");
        let thresholds = Arc::clone(&self.thresholds);
        if !thresholds.floor(kind).enabled {
            return None;
        }
        if let Some(rule) = thresholds.allows(kind, &subject) {
            if self.refusals.is_new(kind, &subject, opened, self.seed) {
                note(&mut self.allowed, rule.to_string(), 1);
            }
            return None;
        }
        if let Some(at) = self.own(&finding) {
            return self.join(at, finding);
        }
        if !self.make_room(kind, kinds::severity(kind, finding.size, finding.least)) {
            if self.refusals.is_new(kind, &subject, opened, self.seed) {
                note(&mut self.unlisted, kind, 1);
            }
            return None;
        }
        if let Some(counted) = self.refusals.forget(kind, &subject, opened, self.seed) {
            let one = self.unlisted.iter_mut().find(|(known, _)| *known == KINDS[counted]);
            one.into_iter().for_each(|(_, times)| *times = times.saturating_sub(1));
        }
        let least = finding.least;
        let mut incident = Incident::of(finding);
        incident.network = thresholds.network(&subject).unwrap_or_default().to_owned();
        let number = self.push(incident, least);
        self.gather(number);
        self.tell(number, State::Opened);
        Some(number)
    }

    /// The position of the incident that a finding belongs to. It is open, at the subject or at a prefix
    /// of it, or it ended at the subject a short time ago.
    fn own(&self, finding: &Finding) -> Option<usize> {
        let Finding { kind, subject, opened, .. } = *finding;
        let goes_on = |entry: &Entry| match entry.incident.closed {
            None => true,
            Some(closed) => opened <= closed.saturating_add(kinds::gap(kind)),
        };
        let same = |entry: &Entry| entry.incident.is_like(kind, &subject) && goes_on(entry);
        let around = |entry: &Entry| {
            let Incident { subject: prefix, closed, .. } = entry.incident;
            closed.is_none()
                && kinds::group(entry.incident.kind) == kinds::group(kind)
                && prefix.covers(&subject)
                && kinds::class(kind) == kinds::Class::Flood
        };
        let at = self.entries.iter().rposition(same);
        at.or_else(|| self.entries.iter().rposition(around))
    }

    /// Makes a finding part of the incident at this position, and returns its number. An incident of
    /// [`PARTS_MAX`] findings is only updated: `None`.
    fn join(&mut self, at: usize, finding: Finding) -> Option<usize> {
        let entry = &mut self.entries[at];
        let incident = &mut entry.incident;
        let begins_again = incident.closed.take().is_some();
        if begins_again {
            entry.parts = 0;
        }
        let is_part = entry.parts < PARTS_MAX;
        entry.parts += u64::from(is_part);
        let mut changed = begins_again | incident.strengthen(finding.kind);
        if incident.subject == finding.subject {
            changed |= incident.widen_to(&finding.filter, finding.ends);
        }
        incident.updated = incident.updated.max(finding.opened);
        let number = entry.number;
        if changed {
            self.tell(number, State::Updated);
        }
        self.show(Some(number), || finding.evidence);
        self.update(Some(number), finding.opened, finding.size);
        is_part.then_some(number)
    }

    /// Makes the open incidents at hosts of a prefix part of its incident.
    fn gather(&mut self, number: usize) {
        let Some(own) = self.entry(number) else { return };
        let (kind, subject) = (own.incident.kind, own.incident.subject);
        if subject.is_host() || kinds::class(kind) != kinds::Class::Flood {
            return;
        }
        let is_part = |entry: &Entry| {
            entry.number != number
                && entry.incident.closed.is_none()
                && entry.incident.kind == kind
                && subject.covers(&entry.incident.subject)
        };
        while let Some(at) = self.entries.iter().position(is_part) {
            let mut part = self.entries.remove(at);
            let end = part.incident.updated.max(part.incident.opened);
            part.incident.closed = Some(end);
            for (_, to) in self.aliases.iter_mut().filter(|(_, to)| *to == part.number) {
                *to = number;
            }
            if self.aliases.len() >= ALIASES_MAX {
                self.aliases.remove(0);
            }
            let place = self.aliases.partition_point(|(from, _)| *from < part.number);
            self.aliases.insert(place, (part.number, number));
            let Some(own) = self.entry(number) else { return };
            own.parts += part.parts;
            own.incident.opened = own.incident.opened.min(part.incident.opened);
            for example in &part.incident.examples {
                own.incident.add_example(example.time, example.flow);
            }
            own.incident.size.join(part.incident.size.clone());
            self.push_news(part.incident, State::Closed);
        }
    }

    /// Removes an incident if there is no room for one of this kind and severity. Returns whether there
    /// is room.
    fn make_room(&mut self, kind: &'static str, severity: super::Severity) -> bool {
        let of =
            |kind: &str| self.entries.iter().filter(|entry| entry.incident.kind == kind).count();
        let counts = KINDS.map(of);
        let reserved: usize = counts.iter().map(|count| RESERVED.saturating_sub(*count)).sum();
        let own = kinds::number(kind).map_or(RESERVED, |number| counts[number]);
        // The room that the other kinds have not used yet stays free.
        let is_free = match own < RESERVED {
            true => self.entries.len() < LISTED_MAX,
            false => self.entries.len() + reserved < LISTED_MAX,
        };
        if is_free {
            return true;
        }
        let shares = |entry: &Entry| {
            let number = kinds::number(entry.incident.kind);
            entry.incident.kind == kind || number.is_none_or(|number| counts[number] > RESERVED)
        };
        let order = |entry: &Entry| {
            let Incident { closed, severity, opened, .. } = entry.incident;
            (closed.is_none(), severity, opened)
        };
        let candidates = self.entries.iter().enumerate().filter(|(_, entry)| shares(entry));
        let Some((at, entry)) = candidates.min_by_key(|(_, entry)| order(entry)) else {
            return false;
        };
        let Incident { closed, severity: old, kind, .. } = entry.incident;
        if closed.is_none() && old >= severity {
            return false;
        }
        self.entries.remove(at);
        note(&mut self.unlisted, kind, 1);
        true
    }

    fn push(&mut self, incident: Incident, least: u64) -> usize {
        // A file may contain kinds that this version does not have.
        if let Some(kind) = kinds::number(incident.kind) {
            self.raised[kind] += 1;
        }
        let number = self.next;
        self.next += 1;
        let told = incident.size.peak();
        self.entries.push(Entry { incident, number, parts: 1, told, least });
        number
    }

    fn entry(&mut self, number: usize) -> Option<&mut Entry> {
        let alias = self.aliases.binary_search_by_key(&number, |(from, _)| *from);
        let number = alias.map_or(number, |at| self.aliases[at].1);
        let at = self.entries.binary_search_by_key(&number, |entry| entry.number).ok()?;
        self.entries.get_mut(at)
    }

    /// Confirms an incident at time `now`, with its size in the unit of its kind.
    pub(crate) fn update(&mut self, number: Option<usize>, now: u64, size: u64) {
        let Some(entry) = number.and_then(|number| self.entry(number)) else { return };
        let incident = &mut entry.incident;
        incident.updated = incident.updated.max(now);
        incident.size.add(now, size);
        let severity = kinds::severity(incident.kind, size, entry.least);
        let is_worse = entry.least > 0 && severity > incident.severity;
        if is_worse {
            incident.severity = severity;
        }
        if is_worse || size >= entry.told.max(1).saturating_mul(2) {
            entry.told = size;
            let number = entry.number;
            self.tell(number, State::Updated);
        }
    }

    /// Sets the evidence of an incident, unless it has that of a larger finding.
    pub(crate) fn show(&mut self, number: Option<usize>, evidence: impl FnOnce() -> Evidence) {
        let Some(entry) = number.and_then(|number| self.entry(number)) else { return };
        let evidence = evidence();
        let first = |evidence: &Evidence| evidence.first().map_or(0, |(_, figure)| figure.value());
        if entry.parts <= 1 || first(&evidence) >= first(&entry.incident.evidence) {
            entry.incident.evidence = evidence;
        }
    }

    /// Adds a packet of an incident as an example.
    pub(crate) fn example(&mut self, number: Option<usize>, time: u64, flow: &FlowKey) {
        if let Some(entry) = number.and_then(|number| self.entry(number)) {
            entry.incident.add_example(time, *flow);
        }
    }

    /// Ends a finding. Its incident closes with the last of its findings.
    pub(crate) fn close(&mut self, number: usize, now: u64) {
        let Some(entry) = self.entry(number) else { return };
        let own = entry.number;
        entry.parts = entry.parts.saturating_sub(1);
        let is_over = entry.parts == 0 && entry.incident.closed.is_none();
        if is_over {
            entry.incident.closed = Some(now);
            entry.incident.updated = entry.incident.updated.max(now);
        }
        self.aliases.retain(|(from, _)| *from != number);
        if is_over {
            self.tell(own, State::Closed);
        }
    }

    /// Whether a finding was raised under this number.
    pub(crate) fn has_raised(&self, number: Option<usize>) -> bool {
        number.is_none_or(|number| number < self.next)
    }

    /// The listed incidents, in the order in which they were raised.
    pub(crate) fn incidents(
        &self,
    ) -> impl DoubleEndedIterator<Item = &Incident> + ExactSizeIterator {
        self.entries.iter().map(|entry| &entry.incident)
    }

    pub(super) fn seed(&self) -> Seed {
        self.seed
    }

    /// Takes the incidents out.
    pub(super) fn take(&mut self) -> Vec<Incident> {
        self.aliases.clear();
        std::mem::take(&mut self.entries).into_iter().map(|entry| entry.incident).collect()
    }

    /// Incidents that were ever listed, by kind in the order of [`KINDS`].
    pub(crate) fn raised(&self) -> [u64; KINDS.len()] {
        self.raised
    }

    /// Incidents that were never listed or are no longer, by kind.
    pub(crate) fn unlisted(&self) -> &[(&'static str, u64)] {
        &self.unlisted
    }

    /// Incidents that the user allows, by rule.
    pub(crate) fn allowed(&self) -> &[(String, u64)] {
        &self.allowed
    }

    /// Records events for [`Self::drain_news`].
    pub(crate) fn record_events(&mut self) {
        self.tells = true;
    }

    fn tell(&mut self, number: usize, state: State) {
        if let Some(incident) = self.entry(number).map(|entry| entry.incident.clone()) {
            self.push_news(incident, state);
        }
    }

    /// A number that differs when an incident was opened, changed or closed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    fn push_news(&mut self, incident: Incident, state: State) {
        self.changes = self.changes.wrapping_add(1);
        if self.tells && self.news.len() < NEWS_MAX {
            self.news.push(News { incident, state });
        }
    }

    /// The events since the last call.
    pub(crate) fn drain_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }
}

/// Adds to the count of a name.
pub(super) fn note<N: PartialEq>(list: &mut Vec<(N, u64)>, name: N, times: u64) {
    match list.iter_mut().find(|(known, _)| *known == name) {
        Some((_, count)) => *count = count.saturating_add(times),
        None => list.push((name, times)),
    }
}

/// The most severe incidents that fit, with the reserved ones of each kind; and the others by kind.
pub(super) fn fitting(mut all: Vec<Incident>) -> (Vec<Incident>, Vec<(&'static str, u64)>) {
    all.sort_by_key(|one| (Reverse(one.severity), one.closed.is_some(), one.opened, one.id));
    let (mut reserved, mut others) = (Vec::new(), Vec::new());
    let mut counts = [0; KINDS.len()];
    for incident in all {
        match kinds::number(incident.kind) {
            Some(kind) if counts[kind] < RESERVED => {
                counts[kind] += 1;
                reserved.push(incident);
            }
            _ => others.push(incident),
        }
    }
    let shared = others.len().min(LISTED_MAX - reserved.len());
    let mut left_out = Vec::new();
    for incident in others.drain(shared..) {
        note(&mut left_out, incident.kind, 1);
    }
    reserved.append(&mut others);
    (reserved, left_out)
}

/// A list in a checkpoint, without the incidents, which a snapshot holds. Events that were not reported
/// are left out.
impl Resume for List {
    fn save(&self, out: &mut Out) {
        out.number(self.next as u64);
        out.numbers(&self.raised);
        for Entry { incident: _, number, parts, told, least } in &self.entries {
            out.numbers(&[*number as u64, *parts, *told, *least]);
        }
        out.number(self.aliases.len() as u64);
        self.aliases.iter().for_each(|&(from, to)| out.numbers(&[from as u64, to as u64]));
        self.refusals.save(out);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.next = bytes.count("next")? as usize;
        self.raised = bytes.counts("raised")?;
        for entry in &mut self.entries {
            entry.number = bytes.below("number", self.next)?;
            entry.parts = bytes.count("parts")?;
            [entry.told, entry.least] = bytes.numbers()?;
        }
        let numbers = self.entries.iter().map(|entry| entry.number);
        bytes.check("number", numbers.is_sorted_by(|one, two| one < two))?;
        for _ in 0..bytes.length("aliases", ALIASES_MAX)? {
            let (from, to) =
                (bytes.below("aliases", self.next)?, bytes.below("aliases", self.next)?);
            let is_later = self.aliases.last().is_none_or(|&(last, _)| last < from);
            bytes.check("aliases", is_later)?;
            self.aliases.push((from, to));
        }
        self.refusals.resume(bytes)
    }
}

#[cfg(test)]
mod tests;
