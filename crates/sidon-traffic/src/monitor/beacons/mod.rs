//! Beacons: a host that contacts one server outside at regular times.
//!
//! [`Periods`] keeps the last gaps between the contacts of a source and a server's port. A contact is a
//! SYN or the first datagram of a flow. Most regular contact is harmless, so these are left out:
//!
//! - servers with private addresses, groups, and the ports of clocks, names, mail and tunnels
//! - datagrams to ports that no service is known for: games and calls measure their servers so
//! - sources with more than [`POLLED`] regular servers: monitoring systems
//! - servers with more than [`POLLERS`] regular sources: services that many hosts poll
//!
//! A pair is judged twice a minute. It must have the contacts that the threshold demands and a score of
//! [`SCORE`], which a fixed period with an even jitter of an eighth has.

use crate::{
    Figure, FlowKey, Prefix,
    flow::protocol,
    monitor::{
        incidents::{Ends, Finding, List, kinds},
        p2p::ports::is_registered,
    },
    resume::Resume,
    snapshot::encode::{In, Out},
    thresholds::{Floor, Thresholds},
};
use sidon::{
    Infeasible, Key, Malformed, Seed,
    count::periods::{Periods, Regularity, Shape},
};
use std::net::{IpAddr, SocketAddr};

const SECOND: u64 = 1_000_000_000;
/// The time between two looks.
const LOOK: u64 = 30 * SECOND;
/// The least score.
const SCORE: f64 = 0.75;
/// The shortest period: more frequent contact is use.
const SHORTEST: u64 = 5;
/// Regular servers of one source, and regular sources of one server, at most.
const POLLED: usize = 3;
const POLLERS: usize = 2;
/// Contacts of a pair from which on it counts for these limits.
const SOME: u64 = 4;
/// Pairs that one look compares, and incidents that are open at a time.
const COMPARED: usize = 256;
const OPEN_MAX: usize = 32;
/// Ports of services that hosts contact at regular times.
const ALLOWED: [u16; 20] = [
    25, 53, 110, 123, 143, 161, 389, 465, 500, 514, 587, 636, 853, 993, 995, 1194, 3478, 4500,
    5060, 51_820,
];

/// An open incident: the pair, its number, the contacts at the last look, and when they last grew.
#[derive(Debug, Clone, Copy)]
struct Open {
    pair: FlowKey,
    number: usize,
    contacts: u64,
    grew: u64,
}

/// The pairs, and the open incidents.
#[derive(Debug)]
pub(super) struct Beacons {
    seed: Seed,
    floor: Floor,
    pairs: Periods<FlowKey>,
    /// The last source ports of pairs, each with a check of the pair: a keep-alive has the port that it
    /// had, and is no new contact.
    ports: Vec<u32>,
    next: u64,
    open: Vec<Open>,
}

/// The shape of a table of pairs in this number of bytes.
fn shape(bytes: u64) -> Shape {
    let one = Shape { buckets: 1, shortest: 1_000, grace: 3_600_000, longest: 14_400_000 };
    let buckets = (bytes / Periods::<FlowKey>::planned_bytes(one)).max(1);
    Shape { buckets, ..one }
}

/// The bytes of a table for this number of bytes.
pub(super) fn bytes(bytes: u64) -> u64 {
    Periods::<FlowKey>::planned_bytes(shape(bytes - bytes / 8)) + (bytes / 32).max(1) * 4
}

/// Whether an address is used inside networks only.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_private() || v4.is_link_local() || v4.is_loopback() || v4.is_multicast()
        }
        IpAddr::V6(v6) => {
            let first = v6.octets()[0];
            first & 0xfe == 0xfc || first >= 0xfe || v6.is_loopback()
        }
    }
}

impl Beacons {
    pub(super) fn new(bytes: u64, seed: Seed, thresholds: &Thresholds) -> Result<Self, Infeasible> {
        Ok(Beacons {
            seed,
            floor: *thresholds.floor(kinds::BEACON),
            pairs: Periods::new(shape(bytes - bytes / 8), seed)?,
            ports: vec![0; (bytes / 32).max(1) as usize],
            next: 0,
            open: Vec::with_capacity(OPEN_MAX),
        })
    }

    /// Counts a contact: the first packet of a flow, in its direction.
    pub(super) fn contact(&mut self, flow: &FlowKey, now: u64) {
        let (server, port) = (flow.destination(), flow.destination_port());
        let is_udp = flow.protocol() == protocol::UDP;
        if ALLOWED.contains(&port) || is_private(server) || (is_udp && !is_registered(port)) {
            return;
        }
        let ends = [SocketAddr::new(flow.source(), 0), SocketAddr::new(server, port)];
        if let Some(pair) = FlowKey::between(ends[0], ends[1], flow.protocol()) {
            let digest = pair.digest(self.seed);
            let at = digest.position(2, self.ports.len() as u64) as usize;
            let own = (digest.0 as u32) << 16 | u32::from(flow.source_port());
            let is_same = std::mem::replace(&mut self.ports[at], own) == own;
            if is_same && is_udp {
                return;
            }
            // A pair without room is counted by the table.
            let _ = self.pairs.see(&pair, now);
        }
    }

    /// Contacts of pairs that found no room.
    pub(super) fn refused(&self) -> u64 {
        self.pairs.refused()
    }

    fn is_regular(&self, one: &Regularity) -> bool {
        one.score >= SCORE && one.contacts >= self.floor.count && one.period.as_secs() >= SHORTEST
    }

    /// Twice a minute and at the end: raises, updates and closes incidents.
    pub(super) fn look(&mut self, now: u64, over: bool, list: &mut List) {
        if !self.floor.enabled || (now < self.next && !over) {
            return;
        }
        self.next = now.saturating_add(LOOK);
        let mut regular = self.pairs.most_regular(COMPARED);
        regular.retain(|(_, one)| one.score >= SCORE && one.contacts >= SOME);
        let Beacons { open, pairs, .. } = self;
        open.retain_mut(|one| {
            let Some(now_is) = pairs.get(&one.pair) else {
                list.close(one.number, now);
                return false;
            };
            if now_is.contacts > one.contacts {
                (one.contacts, one.grew) = (now_is.contacts, now);
                list.update(Some(one.number), now, now_is.contacts);
                list.show(Some(one.number), || evidence(&now_is));
                list.example(Some(one.number), now, &one.pair);
            }
            let patience = 6 * now_is.period.as_nanos() as u64;
            let goes_on = now.saturating_sub(one.grew) <= patience.max(2 * LOOK);
            if !goes_on || now_is.score < SCORE / 2.0 {
                list.close(one.number, now);
                return false;
            }
            true
        });
        for (pair, one) in &regular {
            let same_source = |(other, _): &&(FlowKey, Regularity)| other.source() == pair.source();
            let same_server = |(other, _): &&(FlowKey, Regularity)| {
                (other.destination(), other.destination_port())
                    == (pair.destination(), pair.destination_port())
            };
            let is_open = self.open.iter().any(|open| open.pair == *pair);
            if is_open
                || !self.is_regular(one)
                || self.open.len() >= OPEN_MAX
                || regular.iter().filter(same_source).count() > POLLED
                || regular.iter().filter(same_server).count() > POLLERS
            {
                continue;
            }
            if let Some(number) = list.raise(finding(pair, one, now, self.floor.count)) {
                list.example(Some(number), now, pair);
                let contacts = one.contacts;
                self.open.push(Open { pair: *pair, number, contacts, grew: now });
            }
        }
    }

    /// The numbers of the open incidents.
    pub(super) fn open(&self) -> impl Iterator<Item = Option<usize>> {
        self.open.iter().map(|open| Some(open.number))
    }
}

fn evidence(one: &Regularity) -> Vec<(&'static str, Figure)> {
    let number = |name, value: u64| (name, Figure::exact(value));
    vec![
        ("contacts", Figure::at_least(one.contacts, None)),
        number("period_seconds", one.period.as_secs()),
        number("jitter_seconds", one.jitter.as_secs()),
    ]
}

fn finding(pair: &FlowKey, one: &Regularity, now: u64, least: u64) -> Finding {
    let (source, server, port) = (pair.source(), pair.destination(), pair.destination_port());
    let word = if pair.protocol() == protocol::TCP { "tcp" } else { "udp" };
    let seconds = one.period.as_secs();
    Finding {
        kind: kinds::BEACON,
        subject: Prefix::from(source),
        ends: Ends {
            peer: Some(server),
            protocol: Some(pair.protocol()),
            subject_port: None,
            peer_port: Some(port),
        },
        text: format!("{source} contacts {server} port {port} every {seconds} s"),
        filter: format!("src host {source} and dst host {server} and {word} dst port {port}"),
        opened: now,
        size: one.contacts,
        least,
        evidence: evidence(one),
    }
}

impl Resume for Beacons {
    fn save(&self, out: &mut Out) {
        let Beacons { seed: _, floor: _, pairs, ports, next, open } = self;
        out.nested(&pairs.to_bytes());
        ports.iter().for_each(|port| out.raw(&port.to_le_bytes()));
        out.numbers(&[*next, open.len() as u64]);
        for Open { pair, number, contacts, grew } in open {
            out.flow(*pair);
            out.numbers(&[*number as u64, *contacts, *grew]);
        }
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let pairs = Periods::from_bytes(bytes.nested()?.bytes, self.seed)?;
        bytes.check("pairs", pairs.shape() == self.pairs.shape())?;
        self.pairs = pairs;
        for port in &mut self.ports {
            *port = u32::from_le_bytes(bytes.array()?);
        }
        self.next = bytes.number()?;
        for _ in 0..bytes.length("beacons", OPEN_MAX)? {
            let pair = bytes.flow("pair")?;
            let number = usize::try_from(bytes.number()?).unwrap_or(usize::MAX);
            let [contacts, grew] = bytes.numbers()?;
            self.open.push(Open { pair, number, contacts, grew });
        }
        Ok(())
    }
}
