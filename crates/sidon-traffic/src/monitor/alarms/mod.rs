//! Alarms that name their subject: floods by unanswered handshakes, scans by targets that fail.
//!
//! What packets did to handshakes comes from [`connections`](super::connections). An alarm is raised
//! when a condition has held for a second, or holds when the packets end, and is closed when it no
//! longer does.
//!
//! | alarm | subject | condition |
//! |---|---|---|
//! | `syn_flood` | victim and port | handshakes not confirmed in the last five to ten seconds: 50, and half of those asked for |
//! | `address_scan` | source and port | 25 hosts in five minutes that did not let it in |
//! | `port_scan` | source and victim | 15 ports in five minutes that did not let it in |
//! | `random_scan` | source | 25 new ports in five minutes, of 15 hosts or more, that did not let it in, nine of ten tries |
//! | `forged_syns` | none | ten SYNs in a minute with addresses that no host has, no two of one source or at one host |
//!
//! Many connections a second raise nothing while they come about. What passes one way only raises
//! nothing either: who goes on after its SYN was answered, wherever the answer went. Each table has
//! a fixed number of subjects; the least suspect makes room. While connections are sampled
//! ([`flow_map`](crate::flow_map)), the same numbers of followed handshakes are needed, and `random_scan` is
//! not raised. Attempts at a victim of a flood are no
//! evidence of scans: their sources are forged. A source that tries ports of hosts at random is let
//! in hardly ever; one that is like a peer tries as many, and is let in often.

mod forged;
mod list;
mod table;

use crate::{Event, Packet, monitor::sizes, time};
use forged::Forged;
use list::List;
use serde_json::{Value, json};
use sidon::{Infeasible, Key, Seed};
use std::net::IpAddr;
use table::{Distinct, Subject, Suspect, Table};

use super::connections::{Deed, Verdict};

const SECOND: u64 = 1_000_000_000;
/// How long a condition holds before it is an alarm.
const HOLDS: u64 = SECOND;
/// How long a handshake counts at the least; twice this at the most.
const SPAN: u64 = 5 * SECOND;
/// Handshakes not confirmed that are a flood.
const PENDING: u64 = 50;
/// Hosts that are a scan, and ports.
const HOSTS: usize = 25;
const PORTS: usize = 15;
/// How long failed targets count.
const WINDOW: u64 = 300 * SECOND;
/// Failed targets that are told apart; more are counted about.
const TARGETS: usize = 32;
/// The byte of a subject that says that it is of no port and no victim in particular.
const ANYWHERE: usize = 33;
/// The kinds of alarms.
pub const KINDS: [&str; 5] =
    ["syn_flood", "address_scan", "port_scan", "random_scan", "forged_syns"];

/// Something that somebody ought to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// One of [`KINDS`].
    pub kind: &'static str,
    /// Whom it is about: the victim of a flood, the source of a scan, and of forged SYNs the
    /// unspecified address, since that is nobody.
    pub subject: IpAddr,
    /// The same in words.
    pub text: String,
    /// When its condition began to hold.
    pub opened: u64,
    /// When it no longer held; `None` if it did at the end.
    pub closed: Option<u64>,
    /// What there is to show.
    pub evidence: Vec<(&'static str, u64)>,
    /// A tcpdump expression for the packets.
    pub filter: String,
}

impl Alarm {
    /// One object.
    pub fn to_json(&self) -> Value {
        let evidence = self.evidence.iter().map(|&(name, n)| (name.to_owned(), Value::from(n)));
        json!({
            "kind": self.kind,
            "subject": self.subject,
            "text": self.text,
            "opened": time::iso8601(self.opened),
            "closed": self.closed.map(time::iso8601),
            "evidence": evidence.collect::<Value>(),
            "filter": self.filter,
        })
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
    /// Of IPv4 and of IPv6.
    forged: [Forged; 2],
    list: List,
    ticked: u64,
}

/// A victim and what is held against those who ask it.
#[derive(Debug, Clone)]
struct Flood {
    subject: Subject,
    /// Connections asked for, in this span and the one before.
    asked: [u64; 2],
    /// Those that came about or were refused.
    answered: [u64; 2],
    /// Whether connections were sampled, in the same spans.
    sampled: [bool; 2],
    /// When this span began.
    start: u64,
    since: Option<u64>,
    alarm: Option<usize>,
    attempts: u64,
    peak: u64,
    sources: Distinct,
}

/// A source and the targets that did not let it in.
#[derive(Debug, Clone)]
struct Scan {
    subject: Subject,
    targets: [u32; TARGETS],
    used: u8,
    start: u64,
    last: u64,
    since: Option<u64>,
    alarm: Option<usize>,
    attempts: u64,
    /// How often it was let in.
    let_in: u64,
    /// Whether connections were sampled while it tried.
    sampled: bool,
    distinct: Distinct,
}

/// Bytes of one subject in each of the four tables.
const BYTES: u64 = (size_of::<Option<Flood>>() + 3 * size_of::<Option<Scan>>()) as u64;

/// The bytes that the tables of so many subjects take.
pub fn bytes(subjects: u64) -> u64 {
    subjects.saturating_mul(BYTES)
}

/// How many subjects of each kind so many bytes are for.
pub fn subjects(bytes: u64) -> u64 {
    (bytes / BYTES / 8).max(1) * 8
}

impl Alarms {
    /// No suspicion yet, and room for so many subjects of each kind.
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
        })
    }

    /// Alarms that were raised elsewhere, and no suspicion; `None` if they are more than are listed.
    pub(crate) fn of(
        alarms: Vec<Alarm>,
        unlisted: u64,
        seed: Seed,
    ) -> Result<Option<Self>, Infeasible> {
        let Some(list) = List::of(alarms, unlisted) else { return Ok(None) };
        Ok(Some(Alarms { list, ..Alarms::new(1, seed)? }))
    }

    /// Takes in the alarms of another, by the times when they were opened. What held at the end of
    /// the one whose last packet came first is closed there.
    pub(crate) fn absorb(&mut self, other: Alarms, lasts: [u64; 2]) {
        self.list.absorb(other.list, lasts);
    }

    /// Takes in what packets did to handshakes. `sampled` says that only a share of the new
    /// connections is followed now.
    ///
    /// Every handshake here is followed to its end, so the counts are lower bounds of the truth at any
    /// share. The ratio of unanswered to attempted ones is an estimate while sampling, and has to hold
    /// by six standard deviations.
    pub fn take(&mut self, packets: &[Packet], verdicts: &[Verdict], sampled: bool) {
        self.list.forget_news();
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
            flood.ask(now, opener, sampled);
            if flood.alarm.is_some() {
                return;
            }
        }
        if let Some(scan) = self.hosts.enter(&by_port, now) {
            scan.try_at(victim, now, HOSTS, sampled);
            // Who asks many servers for the same is not looked at again.
            if scan.attempts == 1
                && let Some(scan) = self.random.enter(&anywhere, now)
            {
                scan.try_at(target, now, HOSTS, sampled);
            }
        }
        if let Some(scan) = self.ports.enter(&by_victim, now) {
            scan.try_at(port.into(), now, PORTS, sampled);
        }
    }

    /// It is so late now, though no packet says so.
    pub fn pass(&mut self, now: u64) {
        self.list.forget_news();
        self.tick(now);
    }

    /// Once a second: raises what has held long enough, closes what no longer holds.
    fn tick(&mut self, now: u64) {
        if now < self.ticked.saturating_add(SECOND) {
            return;
        }
        self.ticked = now;
        let list = &mut self.list;
        self.floods.entries().for_each(|flood| flood.look(now, false, list));
        self.hosts.entries().for_each(|scan| scan.look(now, false, HOSTS, list));
        self.ports.entries().for_each(|scan| scan.look(now, false, PORTS, list));
        self.random.entries().for_each(|scan| scan.look(now, false, HOSTS, list));
        self.forged.iter_mut().for_each(|forged| forged.look(now, false, list));
    }

    /// The packets are over: what holds now is raised.
    pub fn end(&mut self, now: u64) {
        self.list.forget_news();
        let list = &mut self.list;
        self.floods.entries().for_each(|flood| flood.look(now, true, list));
        self.hosts.entries().for_each(|scan| scan.look(now, true, HOSTS, list));
        self.ports.entries().for_each(|scan| scan.look(now, true, PORTS, list));
        self.random.entries().for_each(|scan| scan.look(now, true, HOSTS, list));
        self.forged.iter_mut().for_each(|forged| forged.look(now, true, list));
    }

    /// The alarms raised so far, in the order in which they were: the last 256, and before those
    /// the ones that still hold.
    pub fn alarms(&self) -> &[Alarm] {
        self.list.alarms()
    }

    /// How many of each of [`KINDS`] were raised and listed, at least for a time.
    pub fn raised(&self) -> [u64; KINDS.len()] {
        self.list.raised()
    }

    /// How many there were that are not listed, or no longer.
    pub fn unlisted(&self) -> u64 {
        self.list.unlisted()
    }

    /// Hands out what the last packets or the last time that was told raised or closed.
    pub fn drain_events(&mut self, packet: &Packet, mut to: impl FnMut(Event)) {
        self.list.drain_news(|alarm, raised| to(Event::alarm(packet, alarm, raised)));
    }
}

impl Suspect for Flood {
    fn new(subject: Subject, now: u64) -> Self {
        let (since, alarm, sources) = (None, None, Distinct::default());
        let (asked, answered, sampled) = ([0; 2], [0; 2], [false; 2]);
        let (start, attempts, peak) = (now, 0, 0);
        Flood { subject, asked, answered, sampled, start, since, alarm, attempts, peak, sources }
    }

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn weight(&self, now: u64) -> Option<f64> {
        self.alarm.is_none().then(|| self.pending_at(now)[0] as f64)
    }
}

impl Flood {
    /// What is not answered, and what was asked for, as it counts at that time.
    fn pending_at(&self, now: u64) -> [u64; 2] {
        let sum = |spans: [u64; 2]| match now.saturating_sub(self.start) / SPAN {
            0 => spans[0] + spans[1],
            1 => spans[0],
            _ => 0,
        };
        let asked = sum(self.asked);
        [asked.saturating_sub(sum(self.answered)), asked]
    }

    /// Begins a new span if it is time.
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

    fn look(&mut self, now: u64, over: bool, list: &mut List) {
        if let Some(index) = self.alarm {
            list.show(index, self.evidence());
            if self.pending_at(now)[0] < PENDING / 2 {
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
                evidence: self.evidence(),
                filter: format!(
                    "dst host {victim} and tcp dst port {port} \
                     and tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn"
                ),
            });
        }
    }

    /// Whether `pending` handshakes without an answer, of `asked`, are a flood. Sampled handshakes are
    /// a lower bound of `pending`; that they are half of `asked` must hold by six standard deviations.
    fn holds(&self, pending: u64, asked: u64) -> bool {
        let sampled = self.sampled[0] || self.sampled[1];
        let margin = if sampled { 3.0 * (asked as f64).sqrt() } else { 0.0 };
        pending >= PENDING && pending >= asked / 2 + margin as u64
    }

    fn evidence(&self) -> Vec<(&'static str, u64)> {
        let sources = self.sources.about();
        vec![("attempts", self.attempts), ("peak_pending", self.peak), ("sources_about", sources)]
    }
}

impl Suspect for Scan {
    fn new(subject: Subject, now: u64) -> Self {
        let (since, alarm, distinct) = (None, None, Distinct::default());
        let (targets, used, start, last, attempts, let_in) = ([0; TARGETS], 0, now, now, 0, 0);
        let sampled = false;
        Scan {
            subject,
            targets,
            used,
            start,
            last,
            since,
            alarm,
            attempts,
            let_in,
            sampled,
            distinct,
        }
    }

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn weight(&self, now: u64) -> Option<f64> {
        let counts = now.saturating_sub(self.start) < WINDOW;
        self.alarm.is_none().then(|| if counts { self.used.into() } else { 0.0 })
    }
}

impl Scan {
    fn known(&mut self) -> &mut [u32] {
        &mut self.targets[..usize::from(self.used)]
    }

    fn try_at(&mut self, target: u32, now: u64, most: usize, sampled: bool) {
        if self.alarm.is_none() && now.saturating_sub(self.start) >= WINDOW {
            *self = Scan::new(self.subject, now);
        }
        self.attempts += 1;
        self.sampled |= sampled;
        self.last = now;
        if self.alarm.is_some() {
            self.distinct.see(mixed(target));
        }
        if usize::from(self.used) < TARGETS && !self.known().contains(&target) {
            self.targets[usize::from(self.used)] = target;
            self.used += 1;
        }
        if self.since.is_none() && self.holds(most) {
            self.since = Some(now);
        }
    }

    /// Whether its targets are a scan: many, and if it is one of no port and no victim in particular,
    /// of many hosts and ports, and hardly ever let in.
    fn holds(&self, most: usize) -> bool {
        if usize::from(self.used) < most {
            return false;
        }
        if !self.is_random() {
            return true;
        }
        // The ratio of refused to accepted tries of a sample is too uncertain to accuse a host by.
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

    /// Whether it is of no port and no victim in particular.
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

    fn look(&mut self, now: u64, over: bool, most: usize, list: &mut List) {
        if let Some(index) = self.alarm {
            list.show(index, self.evidence(most));
            if now.saturating_sub(self.last) >= WINDOW {
                list.close(index, now);
                *self = Scan::new(self.subject, now);
            }
            return;
        }
        let Some(since) = self.since else { return };
        if !self.holds(most) {
            self.since = None;
        } else if over || now >= since.saturating_add(HOLDS) {
            for index in 0..usize::from(self.used) {
                self.distinct.see(mixed(self.targets[index]));
            }
            self.alarm = list.raise(self.raised(most, since));
        }
    }

    fn raised(&self, most: usize, opened: u64) -> Alarm {
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
        let evidence = self.evidence(most);
        Alarm { kind, subject: source, text, opened, closed: None, evidence, filter }
    }

    fn evidence(&self, most: usize) -> Vec<(&'static str, u64)> {
        let least = u64::from(self.used).max(most as u64);
        let about = self.distinct.about().max(least);
        vec![("attempts", self.attempts), ("targets_at_least", least), ("targets_about", about)]
    }
}

/// Ports are small numbers, and counting about wants hashes.
fn mixed(target: u32) -> u32 {
    (u64::from(target).digest(Seed(0)).0 >> 32) as u32
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
