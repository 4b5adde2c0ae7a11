//! Floods: packets of nine classes that a victim did not ask for, by victim and by prefix.
//!
//! Each packet that the monitor of alarms finds odd belongs to one [`Class`]. It counts at its victim,
//! and at three prefixes around the victim, so that a flood spread over many hosts is seen although
//! each of them gets little:
//! ```text
//! packet -> class -> (class, host, port)   ports: SYN, reflection, idle connections
//!                 -> (class, host)         hosts: all but the two last of these
//!                 -> (class, /24), (class, /20), (class, /16)    prefixes; /64, /56, /48 of IPv6
//! ```
//! The tables have a fixed number of subjects and evict the least suspect one. [`flood`] has the rules
//! by which a subject is a flood; they do not depend on sources, which are mostly forged. A prefix is
//! named as narrow as nine of ten hits are.

pub(super) mod amplifiers;
pub(super) mod class;
mod flood;
mod rule;
mod saved;

pub(super) use class::Class;

use crate::{
    FlowKey,
    monitor::{alarms::table::Table, incidents::List, sizes::Host},
    thresholds::Thresholds,
};
use class::LENGTHS;
use flood::{Context, Counts, Flood, Hit};
use rule::Rule;
use sidon::{Infeasible, Seed};

/// Something that arrives at a victim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<'a> {
    pub(super) now: u64,
    /// In the direction to the victim.
    pub(super) flow: &'a FlowKey,
    /// The source and the victim, and their hashes.
    pub(super) ends: [Host; 2],
    pub(super) hashes: [u32; 2],
    /// Whether the victim was seen to send.
    pub(super) sends: bool,
    /// Whether only a share of the connections is followed.
    pub(super) sampled: bool,
    /// Whether the source may be a scanner. It then counts against a host and not against a prefix.
    pub(super) by_scanner: bool,
    /// Handshakes, flows or packets that ask for a reaction; 0 for a further packet of a flow.
    pub(super) asked: u32,
    /// Packets and bytes, for classes that count them.
    pub(super) packets: u32,
    pub(super) bytes: u64,
    /// For fragments: whether it is a first one.
    pub(super) is_first: bool,
}

/// A reason why something that arrived is no flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excuse {
    /// The victim answered or refused, or the connection ended.
    Answered,
    /// The victim refused a handshake.
    Refused,
    /// A handshake went on without an answer in the capture.
    OneWay,
    /// A flow without an answer in the capture sent payload.
    Backing,
    /// A SYN was repeated.
    Again,
}

/// The tables of victims.
#[derive(Debug)]
pub(super) struct Floods {
    rules: [Rule; class::CLASSES.len()],
    ports: Table<Flood>,
    hosts: Table<Flood>,
    /// From the widest prefix to the narrowest.
    prefixes: [Table<Flood>; 3],
    is_two_way: bool,
    followed: bool,
}

/// Bytes of the tables for two subjects.
const BYTES: u64 = 7 * size_of::<Option<Flood>>() as u64;

/// The bytes of the tables for `subjects` ports and hosts each, and half as many prefixes.
pub(super) fn bytes(subjects: u64) -> u64 {
    subjects / 2 * BYTES
}

/// The number of subjects that fit in `bytes` bytes, a multiple of 16.
pub(super) fn subjects(bytes: u64) -> u64 {
    (bytes / BYTES * 2 / 16).max(1) * 16
}

impl Floods {
    pub(super) fn new(
        subjects: u64,
        seed: Seed,
        thresholds: &Thresholds,
    ) -> Result<Self, Infeasible> {
        let prefixes = || Table::new(subjects / 2, seed);
        Ok(Floods {
            rules: Rule::all(thresholds),
            ports: Table::new(subjects, seed)?,
            hosts: Table::new(subjects, seed)?,
            prefixes: [prefixes()?, prefixes()?, prefixes()?],
            is_two_way: false,
            followed: true,
        })
    }

    /// Takes what the monitor knows beside the victims.
    pub(super) fn know(&mut self, is_two_way: bool, followed: bool) {
        (self.is_two_way, self.followed) = (is_two_way, followed);
    }

    /// Counts an arrival at its victim. Returns whether the host or the port is under attack.
    pub(super) fn arrive(&mut self, class: Class, arrival: &Arrival<'_>) -> bool {
        let Floods { rules, ports, hosts, prefixes, is_two_way, followed } = self;
        let context = Context { rules, is_two_way: *is_two_way, followed: *followed };
        let [_, victim] = arrival.ends;
        let port = match class {
            Class::Reflection => arrival.flow.source_port(),
            _ => arrival.flow.destination_port(),
        };
        let again = u32::from(arrival.is_first);
        let Arrival { asked, packets, bytes, .. } = *arrival;
        let mut hit = Hit {
            now: arrival.now,
            flow: arrival.flow,
            source: arrival.hashes[0],
            part: u32::from(port).wrapping_mul(0x9e37_79b9) >> 20,
            bucket: usize::from(port.wrapping_mul(0x9e37) >> 12),
            last: victim[4],
            sends: arrival.sends,
            sampled: arrival.sampled,
            is_at_host: true,
            counts: Counts { asked, packets, bytes, again, ..Counts::default() },
        };
        let mut attacked = false;
        let mut one = |table: &mut Table<Flood>, subject, hit: &Hit<'_>| {
            if let Some(flood) = table.enter(&subject, hit.now) {
                flood.hit(hit, &context);
                attacked |= flood.alarm.is_some() && hit.is_at_host;
            }
        };
        if matches!(class, Class::Syn | Class::Idle | Class::Reflection) {
            one(ports, class::at_port(class, &victim, port), &hit);
        }
        let is_scan = arrival.by_scanner && class == Class::Syn;
        if !matches!(class, Class::Idle | Class::Reflection) && !is_scan {
            one(hosts, class::at_host(class, &victim), &hit);
        }
        // A further packet of a flow is one of its host.
        if class == Class::Idle || arrival.by_scanner || (class == Class::Udp && asked == 0) {
            return attacked;
        }
        hit.is_at_host = false;
        hit.part = arrival.hashes[1] >> 7;
        let port = if class == Class::Reflection { port } else { 0 };
        let lengths = LENGTHS[usize::from(victim[0] == 6)];
        for (table, length) in prefixes.iter_mut().zip(lengths) {
            hit.bucket = class::bucket(&victim, length);
            one(table, class::at_prefix(class, &victim, length, port), &hit);
        }
        attacked
    }

    /// Notes an excuse at a victim, if it is stored.
    pub(super) fn excuse(
        &mut self,
        class: Class,
        excuse: Excuse,
        victim: &Host,
        port: u16,
        now: u64,
    ) {
        let Floods { rules, ports, hosts, prefixes, is_two_way, followed } = self;
        let context = Context { rules, is_two_way: *is_two_way, followed: *followed };
        let mut counts = Counts::default();
        match excuse {
            Excuse::Answered => counts.answered = 1,
            Excuse::Refused => (counts.answered, counts.refused) = (1, 1),
            Excuse::OneWay => counts.one_way = 1,
            Excuse::Backing => counts.backing = 1,
            Excuse::Again => counts.again = 1,
        }
        let one = |table: &mut Table<Flood>, subject| {
            if let Some(flood) = table.find(&subject) {
                flood.note(now, counts, &context);
            }
        };
        if matches!(class, Class::Syn | Class::Idle | Class::Reflection) {
            one(ports, class::at_port(class, victim, port));
        }
        if matches!(class, Class::Idle | Class::Reflection) {
            return;
        }
        one(hosts, class::at_host(class, victim));
        let lengths = LENGTHS[usize::from(victim[0] == 6)];
        for (table, length) in prefixes.iter_mut().zip(lengths) {
            one(table, class::at_prefix(class, victim, length, 0));
        }
    }

    /// Raises and closes incidents: of wide prefixes first, which those of their hosts then join.
    pub(super) fn look(&mut self, now: u64, over: bool, list: &mut List) {
        let Floods { rules, ports, hosts, prefixes, is_two_way, followed } = self;
        let context = Context { rules, is_two_way: *is_two_way, followed: *followed };
        for table in prefixes.iter_mut().chain([hosts, ports]) {
            table.judge(|flood| flood.look(now, over, &context, list));
        }
    }

    /// Updates the evidence of the open incidents.
    pub(super) fn refresh(&self, list: &mut List) {
        let context =
            Context { rules: &self.rules, is_two_way: self.is_two_way, followed: self.followed };
        for flood in self.tables().flat_map(Table::entries) {
            list.show(flood.alarm, || flood.evidence(&context));
        }
    }

    fn tables(&self) -> impl Iterator<Item = &Table<Flood>> {
        self.prefixes.iter().chain([&self.hosts, &self.ports])
    }

    /// The numbers of the open incidents.
    pub(super) fn open(&self) -> impl Iterator<Item = Option<usize>> {
        self.tables().flat_map(Table::entries).map(|flood| flood.alarm)
    }

    /// Subjects that were judged so far.
    pub(super) fn judged(&self) -> u64 {
        self.tables().map(Table::judged).sum()
    }

    /// Suspects that were evicted or not stored, though they had some evidence.
    pub(super) fn evicted(&self) -> u64 {
        self.tables().map(Table::evicted).sum()
    }
}
