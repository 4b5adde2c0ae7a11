//! Alarms that name their subject: floods by unanswered handshakes, scans by targets that fail.
//!
//! [`connections`](super::connections) reports the events of handshakes. An alarm is raised when
//! its condition has held for one second, or holds after the last packet. It is closed when the
//! condition no longer holds.
//!
//! | alarm | subject | condition |
//! |---|---|---|
//! | `syn_flood` | victim, port | 50 unanswered SYNs in five to ten seconds, half of all SYNs |
//! | `address_scan` | source, port | 25 hosts in five minutes without a handshake |
//! | `port_scan` | source, victim | 15 ports in five minutes without a handshake |
//! | `random_scan` | source | 25 targets in five minutes without a handshake, 90% of tries fail |
//! | `forged_syns` | none | 10 SYNs with impossible addresses in a minute, all ends different |
//!
//! A high rate of connections raises no alarm while their handshakes complete. A one-way capture
//! raises none either: an opener that sends more after its SYN counts as answered. Each table has a
//! fixed number of subjects, and evicts the least suspect one.
//!
//! While connections are sampled ([`flow_map`](crate::flow_map)), an alarm needs the same number of
//! followed handshakes, and `random_scan` is not raised. SYNs to the victim of a flood do not count
//! as scans, because their sources are forged. A target of a `random_scan` is a host and a port; at
//! least 15 hosts and 15 ports must differ. A random scanner rarely completes a handshake. A P2P
//! host tries as many targets and often succeeds.

mod distinct;
mod evidence;
mod forged;
mod list;
mod saved;
mod table;

pub(crate) use evidence::EVIDENCE_MAX;
pub use evidence::{Evidence, label};
pub(crate) use list::{LISTED_MAX, TEXT_MAX};

use crate::{Event, Figure, Packet, monitor::sizes, time, work::Work};
use distinct::Distinct;
use forged::Forged;
use list::List;
use saved::read_alarm;
use serde_json::{Value, json};
use sidon::{Infeasible, Key, Seed};
use std::net::IpAddr;
use table::{Subject, Suspect, Table};

use super::connections::{Deed, Verdict};

const SECOND: u64 = 1_000_000_000;
/// The time that a condition must hold before the alarm is raised.
const HOLDS: u64 = SECOND;
/// The shortest time that a handshake counts; the longest is twice this.
const SPAN: u64 = 5 * SECOND;
/// The number of unanswered handshakes that are a flood.
const PENDING: u64 = 50;
/// The numbers of hosts and of ports that are a scan.
const HOSTS: usize = 25;
const PORTS: usize = 15;
/// The time that failed targets count.
const WINDOW: u64 = 300 * SECOND;
/// Failed targets that are stored; the number of further ones is estimated.
const TARGETS: usize = 32;
/// The byte of a subject that marks any port and any victim.
const ANYWHERE: usize = 33;
/// The kinds of alarms.
pub const KINDS: [&str; 5] =
    ["syn_flood", "address_scan", "port_scan", "random_scan", "forged_syns"];

/// A condition that an operator should investigate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// One of [`KINDS`].
    pub kind: &'static str,
    /// The victim of a flood or the source of a scan. Forged SYNs have neither; their subject is
    /// the unspecified address.
    pub subject: IpAddr,
    /// A sentence that describes the alarm.
    pub text: String,
    /// The time from which the condition held.
    pub opened: u64,
    /// The time when the condition ended; `None` if it still held after the last packet.
    pub closed: Option<u64>,
    /// Figures that support the alarm, by name.
    pub evidence: Evidence,
    /// A tcpdump expression that matches the packets. It follows from the kind and the subject.
    pub filter: String,
}

impl Alarm {
    /// Turns the evidence into lower bounds, for a source that lost or sampled packets.
    pub(crate) fn weaken(&mut self) {
        evidence::at_least(&mut self.evidence);
    }

    /// Turns exact counts into estimates that may be wrong by `slack`, for a map that may have
    /// mistaken a connection for another.
    pub(crate) fn widen(&mut self, slack: u64) {
        evidence::widen(&mut self.evidence, slack);
    }

    /// The alarm as one JSON object.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "kind": self.kind,
            "subject": self.subject,
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

    /// Whether the alarm is about a flood: reports list these first.
    fn is_flood(&self) -> bool {
        matches!(self.kind, "syn_flood" | "forged_syns")
    }

    /// Whether another alarm has the same kind, subject, victim and port.
    fn is_like(&self, other: &Alarm) -> bool {
        (self.kind, self.subject, &self.filter) == (other.kind, other.subject, &other.filter)
    }

    /// The time without evidence after which an alarm of this kind closes.
    fn closes_after(&self) -> u64 {
        match self.kind {
            "syn_flood" => 2 * SPAN,
            "forged_syns" => forged::WINDOW,
            _ => WINDOW,
        }
    }
}

/// The monitor.
#[derive(Debug)]
pub struct Alarms {
    seed: Seed,
    floods: Table<Flood>,
    hosts: Table<Scan>,
    ports: Table<Scan>,
    random: Table<Scan>,
    /// Forged SYNs of IPv4 and of IPv6.
    forged: [Forged; 2],
    list: List,
    ticked: u64,
    /// Whether every connection so far was followed.
    followed: bool,
    /// Whether SYNs to the victim of a flood were left out of the evidence of scans.
    skipped: bool,
    /// Packets, and advances of the clock without one.
    events: u64,
}

/// A victim, and the handshakes that were opened to it.
#[derive(Debug, Clone)]
struct Flood {
    subject: Subject,
    /// Connections opened in this span and in the one before.
    asked: [u64; 2],
    /// Connections that completed, were refused or were reset, in the same spans.
    answered: [u64; 2],
    /// Whether connections were sampled, in the same spans.
    sampled: [bool; 2],
    /// The start of this span.
    start: u64,
    since: Option<u64>,
    alarm: Option<usize>,
    /// Whether no attempt was lost before the subject was stored.
    is_first: bool,
    attempts: u64,
    /// The most unanswered connections at one time, of those that count.
    peak: u64,
    sources: Distinct,
}

/// A source, and the targets with which it completed no handshake.
#[derive(Debug, Clone)]
struct Scan {
    subject: Subject,
    targets: [u32; TARGETS],
    used: u8,
    start: u64,
    last: u64,
    since: Option<u64>,
    alarm: Option<usize>,
    /// Whether no attempt was lost before `start`.
    is_first: bool,
    attempts: u64,
    /// The number of handshakes that completed.
    let_in: u64,
    /// Whether connections were sampled during the attempts.
    sampled: bool,
    /// Targets since the condition holds, and the failed ones before that.
    distinct: Distinct,
}

/// Bytes of one subject in each of the four tables.
const BYTES: u64 = (size_of::<Option<Flood>>() + 3 * size_of::<Option<Scan>>()) as u64;

/// The bytes of the tables for `subjects` subjects of each kind.
pub fn bytes(subjects: u64) -> u64 {
    subjects.saturating_mul(BYTES)
}

/// The number of subjects of each kind that fit in `bytes` bytes, a multiple of eight.
pub fn subjects(bytes: u64) -> u64 {
    (bytes / BYTES / 8).max(1) * 8
}

impl Alarms {
    /// Empty tables for `subjects` subjects of each kind.
    pub fn new(subjects: u64, seed: Seed) -> Result<Self, Infeasible> {
        Ok(Alarms {
            seed,
            floods: Table::new(subjects, seed)?,
            hosts: Table::new(subjects, seed)?,
            ports: Table::new(subjects, seed)?,
            random: Table::new(subjects, seed)?,
            forged: [const { Forged::new(0) }; 2],
            list: List::default(),
            ticked: 0,
            followed: true,
            skipped: false,
            events: 0,
        })
    }

    /// Alarms from a file, with empty tables; `None` if they are more than a list can hold.
    pub(crate) fn of(
        alarms: Vec<Alarm>,
        unlisted: u64,
        seed: Seed,
    ) -> Result<Option<Self>, Infeasible> {
        let Some(list) = List::of(alarms, unlisted) else { return Ok(None) };
        Ok(Some(Alarms { list, ..Alarms::new(1, seed)? }))
    }

    /// Adds the alarms of another capture, in the order of their opening times. Alarms still open
    /// in the capture that ended first are closed at its end. An alarm that goes on in the other
    /// capture is listed once.
    pub(crate) fn absorb(&mut self, other: Alarms, lasts: [u64; 2]) {
        self.list.absorb(other.list, lasts);
    }

    /// Reads the events of handshakes. `sampled` says that only a share of the new connections is
    /// followed now; `followed`, that every connection so far was.
    ///
    /// Every handshake here is followed to its end, so the counts are lower bounds of the truth at
    /// any share. While sampling, the ratio of unanswered to opened handshakes is an estimate. It
    /// must then exceed its limit by six standard deviations.
    pub fn take(
        &mut self,
        packets: &[Packet],
        verdicts: &[Verdict],
        sampled: bool,
        followed: bool,
    ) {
        self.list.forget_news();
        self.followed = followed;
        self.events += packets.len() as u64;
        for verdict in verdicts {
            let packet = &packets[usize::from(verdict.index)];
            self.tick(packet.time_ns);
            self.handshake(packet, verdict, sampled);
        }
        if let Some(packet) = packets.last() {
            self.tick(packet.time_ns);
        }
    }

    fn handshake(&mut self, packet: &Packet, verdict: &Verdict, sampled: bool) {
        let (now, flow) = (packet.time_ns, &packet.flow);
        let flow = if verdict.by_opener { *flow } else { flow.reversed() };
        let [opener, victim] = [flow.source(), flow.destination()].map(sizes::host);
        let port = flow.destination_port();
        let at_victim = subject(&victim, None, port);
        let (by_port, by_victim) =
            (subject(&opener, None, port), subject(&opener, Some(&victim), 0));
        let hash = |what: &[u8; 17]| (what.digest(self.seed).0 >> 32) as u32;
        let mut anywhere = subject(&opener, None, 0);
        anywhere[ANYWHERE] = 1;
        let (opener, victim) = (hash(&opener), hash(&victim));
        let target = victim & !0xffff | u32::from(port);
        let forged = &mut self.forged[usize::from(!flow.is_v4())];
        if verdict.what != Deed::Opened {
            if let Some(flood) = self.floods.find(&at_victim) {
                flood.answer(now);
            }
            if verdict.what == Deed::Confirmed {
                forged.confirm(&flow);
                if let Some(scan) = self.hosts.find(&by_port) {
                    scan.let_in(victim);
                }
                if let Some(scan) = self.ports.find(&by_victim) {
                    scan.let_in(port.into());
                }
                if let Some(scan) = self.random.find(&anywhere) {
                    scan.let_in(target);
                }
            }
            return;
        }
        forged.ask(&flow, [opener, victim], now);
        if let Some(flood) = self.floods.enter(&at_victim, now) {
            if verdict.is_evidence {
                flood.ask(now, opener, sampled);
            }
            if flood.alarm.is_some() {
                self.skipped = true;
                return;
            }
        }
        let first = match self.hosts.enter(&by_port, now) {
            Some(scan) => {
                scan.try_at(victim, now, HOSTS, sampled, self.seed);
                scan.attempts == 1
            }
            // Not admitted, so it was not seen before.
            None => true,
        };
        // A source that tries one port of many hosts is no random scan.
        if first && let Some(scan) = self.random.enter(&anywhere, now) {
            scan.try_at(target, now, HOSTS, sampled, self.seed);
        }
        if let Some(scan) = self.ports.enter(&by_victim, now) {
            scan.try_at(port.into(), now, PORTS, sampled, self.seed);
        }
    }

    /// Advances the time to `now`, without a packet.
    pub fn pass(&mut self, now: u64) {
        self.events += 1;
        self.list.forget_news();
        self.tick(now);
    }

    /// Once per second: raises alarms whose condition held long enough, and closes those that
    /// ended.
    fn tick(&mut self, now: u64) {
        if now < self.ticked.saturating_add(SECOND) {
            return;
        }
        self.ticked = now;
        self.look(now, false);
    }

    /// Ends the capture: raises an alarm for every condition that holds now.
    pub fn end(&mut self, now: u64) {
        self.list.forget_news();
        self.look(now, true);
        self.refresh();
    }

    /// Raises and closes alarms. `over`: raises them even if a condition has just begun.
    fn look(&mut self, now: u64, over: bool) {
        let Alarms { list, floods, hosts, ports, random, forged, followed, skipped, .. } = self;
        let (followed, all) = (*followed, *followed && !*skipped);
        floods.judge(|flood| flood.look(now, over, followed, list));
        for (table, most) in [(hosts, HOSTS), (ports, PORTS), (random, HOSTS)] {
            table.judge(|scan| scan.look(now, over, most, all, list));
        }
        forged.iter_mut().for_each(|forged| forged.look(now, over, followed, list));
    }

    /// Updates the evidence of the open alarms. Estimates take time, so the look of each second leaves
    /// them out.
    pub(crate) fn refresh(&mut self) {
        let Alarms { list, floods, hosts, ports, random, forged, followed, skipped, .. } = self;
        let (followed, all) = (*followed, *followed && !*skipped);
        for flood in floods.entries() {
            list.show(flood.alarm, || flood.evidence(followed));
        }
        for (table, most) in [(hosts, HOSTS), (ports, PORTS), (random, HOSTS)] {
            for scan in table.entries() {
                list.show(scan.alarm, || scan.evidence(most, all));
            }
        }
        for forged in forged {
            list.show(forged.alarm(), || forged.evidence(followed));
        }
    }

    /// The listed alarms, in the order in which they were raised: at most 256. A new alarm replaces
    /// the oldest closed one.
    pub fn alarms(&self) -> &[Alarm] {
        self.list.alarms()
    }

    /// The listed alarms in the order of a report: floods and forged SYNs first, then scans, each by
    /// time.
    pub fn listed(&self) -> Vec<Alarm> {
        let mut alarms = self.alarms().to_vec();
        alarms.sort_by_key(|alarm| (!alarm.is_flood(), alarm.opened));
        alarms
    }

    /// Alarms that were ever listed, by kind in the order of [`KINDS`].
    pub fn raised(&self) -> [u64; KINDS.len()] {
        self.list.raised()
    }

    /// Subjects that were judged so far. A packet causes at most one look. It changes four subjects,
    /// each of which is then judged until its condition has held long enough. A listed alarm is
    /// judged until it closes.
    pub fn work(&self) -> Work {
        let scans = [&self.hosts, &self.ports, &self.random].map(Table::judged);
        let done = self.floods.judged() + scans.into_iter().sum::<u64>();
        let each = 4 * (HOLDS / SECOND + 2) + list::LISTED_MAX as u64;
        // A resumed engine goes on from counts of any size.
        let most = each.saturating_mul(self.events.saturating_add(2));
        Work { what: "alarms: subjects judged", done, most }
    }

    /// The number of alarms that were never listed, or are no longer.
    pub fn unlisted(&self) -> u64 {
        self.list.unlisted()
    }

    /// Calls `to` for each alarm that the last batch or the last `pass` raised or closed. `weaken`
    /// changes the evidence as the report does.
    pub(crate) fn drain_events(
        &mut self,
        packet: &Packet,
        weaken: impl Fn(&mut Alarm),
        mut to: impl FnMut(Event),
    ) {
        self.list.drain_news(|alarm, raised| {
            let mut alarm = alarm.clone();
            weaken(&mut alarm);
            to(Event::alarm(packet, &alarm, raised));
        });
    }
}

impl Suspect for Flood {
    fn new(subject: Subject, now: u64, is_first: bool) -> Self {
        Flood {
            subject,
            asked: [0; 2],
            answered: [0; 2],
            sampled: [false; 2],
            start: now,
            since: None,
            alarm: None,
            is_first,
            attempts: 0,
            peak: 0,
            sources: Distinct::default(),
        }
    }

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn weight(&self, now: u64) -> Option<f64> {
        self.alarm.is_none().then(|| self.pending_at(now)[0] as f64)
    }

    fn is_active(&self, now: u64) -> bool {
        now.saturating_sub(self.start) < SPAN
    }

    fn is_open(&self) -> bool {
        self.since.is_some() || self.alarm.is_some()
    }
}

impl Flood {
    /// The unanswered connections and all connections that count at time `now`.
    fn pending_at(&self, now: u64) -> [u64; 2] {
        let sum = |spans: [u64; 2]| match now.saturating_sub(self.start) / SPAN {
            0 => spans[0] + spans[1],
            1 => spans[0],
            _ => 0,
        };
        let asked = sum(self.asked);
        [asked.saturating_sub(sum(self.answered)), asked]
    }

    /// Begins a new span if the current one is over.
    fn turn(&mut self, now: u64) {
        let spans = now.saturating_sub(self.start) / SPAN;
        if spans > 0 {
            let before = |counts: [u64; 2]| [0, if spans == 1 { counts[0] } else { 0 }];
            (self.asked, self.answered) = (before(self.asked), before(self.answered));
            self.sampled = [false, spans == 1 && self.sampled[0]];
            self.start += spans * SPAN;
        }
    }

    fn ask(&mut self, now: u64, source: u32, sampled: bool) {
        self.turn(now);
        self.sampled[0] |= sampled;
        self.asked[0] += 1;
        self.attempts += 1;
        self.sources.see(source);
        self.settle(now);
    }

    fn answer(&mut self, now: u64) {
        self.turn(now);
        self.answered[0] += 1;
        self.settle(now);
    }

    fn settle(&mut self, now: u64) {
        let [pending, asked] = self.pending_at(now);
        self.peak = self.peak.max(pending);
        match (self.holds(pending, asked), self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(_)) if self.alarm.is_none() => self.since = None,
            _ => {}
        }
    }

    fn look(&mut self, now: u64, over: bool, followed: bool, list: &mut List) {
        if let Some(index) = self.alarm {
            if self.pending_at(now)[0] < PENDING / 2 {
                list.show(self.alarm, || self.evidence(followed));
                list.close(index, now);
                (self.alarm, self.since) = (None, None);
                (self.attempts, self.peak, self.sources) = (0, 0, Distinct::default());
            }
            return;
        }
        let Some(since) = self.since else { return };
        let then = since.saturating_add(HOLDS);
        let [pending, asked] = self.pending_at(now.min(then));
        if !self.holds(pending, asked) {
            self.since = None;
        } else if over || now >= then {
            let (victim, _, port) = parts(&self.subject);
            self.alarm = list.raise(Alarm {
                kind: "syn_flood",
                subject: victim,
                text: format!("SYN flood at {victim} port {port}"),
                opened: since,
                closed: None,
                evidence: self.evidence(followed),
                filter: format!(
                    "dst host {victim} and tcp dst port {port} \
                     and tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn"
                ),
            });
            // An alarm that cannot be listed is counted once: the condition must begin again.
            self.since = self.since.filter(|_| self.alarm.is_some());
        }
    }

    /// Whether `pending` unanswered handshakes, of `asked`, are a flood. Sampled handshakes are a
    /// lower bound of `pending`; half of `asked` must then be exceeded by six standard deviations.
    fn holds(&self, pending: u64, asked: u64) -> bool {
        let sampled = self.sampled[0] || self.sampled[1];
        let margin = if sampled { 3.0 * (asked as f64).sqrt() } else { 0.0 };
        pending >= PENDING && pending >= asked / 2 + margin as u64
    }

    fn evidence(&self, followed: bool) -> Evidence {
        let counted = followed && self.is_first;
        let attempts = evidence::count(self.attempts, counted);
        vec![
            ("attempts", attempts),
            ("peak_pending", evidence::count(self.peak, counted)),
            ("sources_about", evidence::estimate(self.sources.figure(), attempts, followed)),
        ]
    }
}

impl Suspect for Scan {
    fn new(subject: Subject, now: u64, is_first: bool) -> Self {
        Scan {
            subject,
            targets: [0; TARGETS],
            used: 0,
            start: now,
            last: now,
            since: None,
            alarm: None,
            is_first,
            attempts: 0,
            let_in: 0,
            sampled: false,
            distinct: Distinct::default(),
        }
    }

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn weight(&self, now: u64) -> Option<f64> {
        let counts = now.saturating_sub(self.start) < WINDOW;
        // Of sources with as many targets, the one that tried last is the most suspect: a scan in
        // progress must not be evicted by single attempts of forged sources.
        let age = now.saturating_sub(self.last) as f64 / SECOND as f64;
        let weight = f64::from(self.used) + 1.0 / (1.0 + age);
        self.alarm.is_none().then_some(if counts { weight } else { 0.0 })
    }

    fn is_active(&self, now: u64) -> bool {
        now.saturating_sub(self.last) < SECOND
    }

    fn is_open(&self) -> bool {
        self.since.is_some() || self.alarm.is_some()
    }
}

impl Scan {
    fn known(&mut self) -> &mut [u32] {
        &mut self.targets[..usize::from(self.used)]
    }

    fn try_at(&mut self, target: u32, now: u64, most: usize, sampled: bool, seed: Seed) {
        if self.alarm.is_none() && now.saturating_sub(self.start) >= WINDOW {
            *self = Scan::new(self.subject, now, false);
        }
        self.attempts += 1;
        self.sampled |= sampled;
        self.last = now;
        if usize::from(self.used) < TARGETS && !self.known().contains(&target) {
            self.targets[usize::from(self.used)] = target;
            self.used += 1;
        }
        if self.since.is_some() {
            self.distinct.see(mixed(target, seed));
        } else if self.holds(most) {
            self.since = Some(now);
            self.distinct = Distinct::default();
            for target in &self.targets[..usize::from(self.used)] {
                self.distinct.see(mixed(*target, seed));
            }
        }
    }

    /// Whether the failed targets are a scan: at least `most` of them. A random scan also needs
    /// many hosts and many ports, and few completed handshakes.
    fn holds(&self, most: usize) -> bool {
        if usize::from(self.used) < most {
            return false;
        }
        if !self.is_random() {
            return true;
        }
        // The ratio of failed to completed tries in a sample is too uncertain to accuse a host.
        if self.sampled {
            return false;
        }
        let different = |part: fn(u32) -> u32| {
            let known = &self.targets[..usize::from(self.used)];
            let first = |&(index, target): &(usize, &u32)| {
                !known[..index].iter().any(|other| part(*other) == part(*target))
            };
            known.iter().enumerate().filter(first).count()
        };
        self.let_in * 9 <= u64::from(self.used)
            && different(|target| target >> 16) >= PORTS
            && different(|target| target & 0xffff) >= PORTS
    }

    /// Whether the subject is a source with any port and any victim.
    fn is_random(&self) -> bool {
        self.subject[17] == 0 && self.subject[ANYWHERE] == 1
    }

    fn let_in(&mut self, target: u32) {
        self.let_in += 1;
        let last = self.known().last().copied();
        if let Some(place) = self.known().iter_mut().find(|known| **known == target) {
            *place = last.unwrap_or(0);
            self.used -= 1;
        }
    }

    fn look(&mut self, now: u64, over: bool, most: usize, followed: bool, list: &mut List) {
        if let Some(index) = self.alarm {
            if now.saturating_sub(self.last) >= WINDOW {
                list.show(self.alarm, || self.evidence(most, followed));
                list.close(index, now);
                *self = Scan::new(self.subject, now, self.is_first);
            }
            return;
        }
        let Some(since) = self.since else { return };
        if !self.holds(most) {
            self.since = None;
        } else if over || now >= since.saturating_add(HOLDS) {
            self.alarm = list.raise(self.raised(most, since, followed));
            // An alarm that cannot be listed is counted once: the condition must begin again.
            self.since = self.since.filter(|_| self.alarm.is_some());
        }
    }

    fn raised(&self, most: usize, opened: u64, followed: bool) -> Alarm {
        let (source, victim, port) = parts(&self.subject);
        let (kind, text, filter) = match victim {
            None if self.is_random() => (
                "random_scan",
                format!("{source} tries ports of hosts at random"),
                format!("src host {source} and tcp"),
            ),
            None => (
                "address_scan",
                format!("{source} tries port {port} of one host after the other"),
                format!("src host {source} and tcp dst port {port}"),
            ),
            Some(victim) => (
                "port_scan",
                format!("{source} tries one port of {victim} after the other"),
                format!("src host {source} and dst host {victim} and tcp"),
            ),
        };
        let evidence = self.evidence(most, followed);
        Alarm { kind, subject: source, text, opened, closed: None, evidence, filter }
    }

    fn evidence(&self, most: usize, followed: bool) -> Evidence {
        // A random scan counts only the first attempt of its source at each port.
        let counted = followed && self.is_first && !self.is_random();
        let attempts = evidence::count(self.attempts, counted);
        let least = u64::from(self.used).max(most as u64);
        let about = self.distinct.figure();
        let [value, low] = [about.value(), about.least()].map(|number| number.max(least));
        let about = Figure::estimate(value, low, about.most().unwrap_or(value));
        vec![
            ("attempts", attempts),
            ("targets_at_least", Figure::at_least(least, None)),
            ("targets_about", evidence::estimate(about, attempts, followed)),
        ]
    }
}

/// Hashes a target, since a port is a small number and `Distinct` needs uniform bits.
fn mixed(target: u32, seed: Seed) -> u32 {
    (u64::from(target).digest(seed).0 >> 32) as u32
}

fn subject(host: &[u8; 17], other: Option<&[u8; 17]>, port: u16) -> Subject {
    let mut subject = [0; 36];
    subject[..17].copy_from_slice(host);
    if let Some(other) = other {
        subject[17..34].copy_from_slice(other);
    }
    subject[34..].copy_from_slice(&port.to_be_bytes());
    subject
}

fn parts(subject: &Subject) -> (IpAddr, Option<IpAddr>, u16) {
    let host = |at: usize| -> [u8; 17] { std::array::from_fn(|i| subject[at + i]) };
    let other = (subject[17] != 0).then(|| sizes::address(host(17)));
    (sizes::address(host(0)), other, u16::from_be_bytes([subject[34], subject[35]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attacker who does not know the seed cannot choose ports that the estimate misses.
    #[test]
    fn the_ports_of_a_scan_are_hashed_with_the_seed() {
        let counter = |seed: Seed| {
            let mut scan = Scan::new([0; 36], 0, true);
            (1..=1_000).for_each(|port| scan.try_at(port, 0, PORTS, false, seed));
            format!("{:?}", scan.distinct)
        };
        assert_eq!(counter(Seed(1)), counter(Seed(1)));
        assert_ne!(counter(Seed(1)), counter(Seed(2)));
    }
}
