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
mod flood;
mod forged;
mod saved;
mod scan;
mod table;

use crate::{Event, Packet, monitor::sizes, thresholds::Thresholds, work::Work};
use flood::Flood;
use forged::Forged;
use saved::read_alarm;
use scan::{ANYWHERE, HOSTS, PORTS, Scan};
use sidon::{Infeasible, Key, Seed};
use std::{net::IpAddr, sync::Arc};
use table::{Subject, Table};

use super::{
    connections::{Deed, Verdict},
    incidents::{Incident, LISTED_MAX, List},
};

const SECOND: u64 = 1_000_000_000;
/// The time that a condition must hold before the alarm is raised.
const HOLDS: u64 = SECOND;
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
    pub fn new(subjects: u64, seed: Seed, thresholds: Arc<Thresholds>) -> Result<Self, Infeasible> {
        Ok(Alarms {
            seed,
            floods: Table::new(subjects, seed)?,
            hosts: Table::new(subjects, seed)?,
            ports: Table::new(subjects, seed)?,
            random: Table::new(subjects, seed)?,
            forged: [const { Forged::new(0) }; 2],
            list: List::new(seed, thresholds),
            ticked: 0,
            followed: true,
            skipped: false,
            events: 0,
        })
    }

    /// Incidents from a file, with empty tables.
    pub(crate) fn of(list: List, seed: Seed) -> Result<Self, Infeasible> {
        Ok(Alarms { list, ..Alarms::new(1, seed, Arc::default())? })
    }

    /// The incidents, as they are saved.
    pub(crate) fn list(&self) -> &List {
        &self.list
    }

    /// Adds the incidents of another capture, see [`List::absorb`].
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
        if forged.ask(&flow, [opener, victim], now) {
            self.list.example(forged.alarm(), now, &flow);
        }
        if let Some(flood) = self.floods.enter(&at_victim, now) {
            if verdict.is_evidence {
                flood.ask(now, opener, sampled);
            }
            if flood.alarm.is_some() {
                self.list.example(flood.alarm, now, &flow);
                self.skipped = true;
                return;
            }
        }
        let first = match self.hosts.enter(&by_port, now) {
            Some(scan) => {
                scan.try_at(victim, now, HOSTS, sampled, self.seed);
                self.list.example(scan.alarm, now, &flow);
                scan.attempts == 1
            }
            // Not admitted, so it was not seen before.
            None => true,
        };
        // A source that tries one port of many hosts is no random scan.
        if first && let Some(scan) = self.random.enter(&anywhere, now) {
            scan.try_at(target, now, HOSTS, sampled, self.seed);
            self.list.example(scan.alarm, now, &flow);
        }
        if let Some(scan) = self.ports.enter(&by_victim, now) {
            scan.try_at(port.into(), now, PORTS, sampled, self.seed);
            self.list.example(scan.alarm, now, &flow);
        }
    }

    /// Advances the time to `now`, without a packet.
    pub fn pass(&mut self, now: u64) {
        self.events += 1;
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

    /// The listed incidents, in the order in which they were raised: at most 256.
    pub fn incidents(&self) -> impl DoubleEndedIterator<Item = &Incident> + ExactSizeIterator {
        self.list.incidents()
    }

    /// The listed incidents in the order of a report: the most severe first, floods before scans, each
    /// by time.
    pub fn listed(&self) -> Vec<Incident> {
        let mut incidents: Vec<Incident> = self.incidents().cloned().collect();
        incidents.sort_by_key(Incident::order);
        incidents
    }

    /// Incidents that were ever listed, by kind in the order of [`KINDS`](super::incidents::KINDS).
    pub fn raised(&self) -> [u64; super::incidents::KINDS.len()] {
        self.list.raised()
    }

    /// Subjects that were judged so far. A packet causes at most one look. It changes four subjects,
    /// each of which is then judged until its condition has held long enough. A listed alarm is
    /// judged until it closes.
    pub fn work(&self) -> Work {
        let scans = [&self.hosts, &self.ports, &self.random].map(Table::judged);
        let done = self.floods.judged() + scans.into_iter().sum::<u64>();
        let each = 4 * (HOLDS / SECOND + 2) + LISTED_MAX as u64;
        // A resumed engine goes on from counts of any size.
        let most = each.saturating_mul(self.events.saturating_add(2));
        Work { what: "alarms: subjects judged", done, most }
    }

    /// Incidents that were never listed or are no longer, by kind.
    pub fn unlisted(&self) -> &[(&'static str, u64)] {
        self.list.unlisted()
    }

    /// Incidents that the user allows, by rule.
    pub fn allowed(&self) -> &[(String, u64)] {
        self.list.allowed()
    }

    /// Records events of incidents for [`Self::drain_events`].
    pub(crate) fn record_events(&mut self) {
        self.list.record_events();
    }

    /// Calls `to` for each change of an incident by the last batch or the last `pass`. `weaken` changes
    /// the evidence as the report does. `now` is the time of the last packet.
    pub(crate) fn drain_events(
        &mut self,
        now: u64,
        weaken: impl Fn(&mut Incident),
        mut to: impl FnMut(Event),
    ) {
        for mut news in self.list.drain_news() {
            weaken(&mut news.incident);
            to(Event::incident(now, &news.incident, news.state));
        }
    }
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
