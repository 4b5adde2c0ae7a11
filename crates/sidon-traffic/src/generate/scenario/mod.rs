//! Scenarios: traffic and what a monitor must say about it, as data in a TOML file.
//!
//! ```toml
//! name = "SYN flood from forged sources"
//! include = ["beside.toml"]           # flows and expectations of other files, beside this one
//!
//! [[flows]]
//! name = "attack"
//! units = 1.0                         # as many flows as the unit that the user sets; or count = 1000
//! from = 5.0                          # seconds: flows start evenly between `from` and `until`
//! until = 30.0
//! protocol = "tcp"                    # tcp, udp or icmp
//! source = "32.0.0.0/3"               # an address, or a random one of this prefix
//! source_port = "1024-65535"          # a port, or a random one of this range
//! destination = "198.18.0.0/16 in turn"
//! destination_port = 443
//! packets = [
//!     { flags = "S" },
//!     { flags = "S.", reply = true, after = 0.0002 },
//!     { flags = ".", payload = 1, after = 10.0, repeat = 3 },
//! ]
//!
//! [[must]]                            # an alarm that must be raised
//! kind = "syn_flood"
//! subject = "198.18.0.7"
//! flows = "attack"                    # its evidence
//! followed = 320                      # required only if so many of them are expected to be followed
//!
//! [[may]]                             # an alarm that may be raised; any other one is wrong
//! kind = "syn_flood"
//! subject = "198.18.0.8"
//!
//! [[stay]]                            # connections that must be open at the end
//! flows = "office"
//! ```
//! Flags are those of tcpdump: `S`, `S.`, `.`, `P.`, `F.`, `R`. A packet starts `after` seconds after
//! the one before it, 20 microseconds unless given. The same file, unit and seed give the same
//! packets.

mod read;
mod size;

pub use read::ScenarioError;
pub use size::{FLOWS_MAX, PACKETS_MAX, TooLarge};

use super::{Mix, SECOND};
use crate::{
    FlowKey, Packet,
    flow::protocol,
    packet::{Fragment, Tcp, TcpFlags, Transport, Vlans},
};
use sidon_kit::Rng;
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::PathBuf,
};

/// A scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The name.
    pub name: String,
    /// The traffic.
    pub flows: Vec<Flows>,
    /// Alarms that must be raised.
    pub must: Vec<Must>,
    /// Further alarms that may be raised.
    pub may: Vec<Alarm>,
    /// Names of flows whose connections must be open at the end.
    pub stay: Vec<String>,
    /// The files that it was read from, the outermost first. None for a text.
    pub files: Vec<PathBuf>,
}

/// An alarm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm {
    /// The kind, such as `syn_flood`.
    pub kind: String,
    /// The address that it names.
    pub subject: IpAddr,
}

/// An alarm that must be raised.
#[derive(Debug, Clone, PartialEq)]
pub struct Must {
    /// The alarm.
    pub alarm: Alarm,
    /// The flows that are its evidence.
    pub flows: String,
    /// The number of these flows that must be followed, in expectation, for the alarm to be
    /// required.
    pub followed: u64,
}

/// Flows of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Flows {
    /// The name.
    pub name: String,
    /// The number of flows.
    pub number: Number,
    /// When the first flow starts and when the last one has started, in nanoseconds.
    pub time_ns: [u64; 2],
    /// The protocol's number.
    pub protocol: u8,
    /// The addresses of source and destination, both of the same IP version.
    pub addresses: [Choice; 2],
    /// Whether the addresses are of IPv4.
    pub is_v4: bool,
    /// The ports of source and destination.
    pub ports: [Choice; 2],
    /// The packets of each flow.
    pub packets: Vec<Step>,
}

/// The number of flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// This many.
    Count(u64),
    /// This many times the unit that the user sets.
    Units(f64),
}

impl Number {
    /// The number of flows for this unit.
    pub fn of(self, unit: u64) -> u64 {
        match self {
            Number::Count(count) => count,
            Number::Units(units) => (unit as f64 * units) as u64,
        }
    }
}

/// A choice among consecutive numbers: addresses or ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The first number.
    pub first: u128,
    /// The number of numbers less one.
    pub more: u128,
    /// Whether flows take them in turn; otherwise at random.
    pub in_turn: bool,
}

impl Choice {
    fn pick(&self, rng: &mut Rng, number: u64) -> u128 {
        let random = || u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        let lot = if self.in_turn { u128::from(number) } else { random_if(self.more, random) };
        self.first + self.more.checked_add(1).map_or(lot, |all| lot % all)
    }
}

/// A random number, unless there is nothing to choose.
fn random_if(more: u128, mut random: impl FnMut() -> u128) -> u128 {
    if more == 0 { 0 } else { random() }
}

/// One packet of a flow, or several equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Nanoseconds since the packet before.
    pub after_ns: u64,
    /// How many such packets there are, each `after_ns` after the one before.
    pub repeat: u32,
    /// Whether the destination sends it.
    pub reply: bool,
    /// The flags, if the protocol is TCP.
    pub flags: TcpFlags,
    /// Bytes of payload.
    pub payload: u32,
    /// Whether it is the first fragment of a packet whose others are missing.
    pub fragment: bool,
}

/// The alarms of a run, compared with the expectations of its scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Alarms that must or may be raised and were.
    pub right: Vec<Alarm>,
    /// Alarms that were raised and name anybody else.
    pub wrong: Vec<Alarm>,
    /// Alarms that must be raised and were not.
    pub missing: Vec<Alarm>,
    /// Those of the missing alarms that had enough evidence.
    pub missed: Vec<Alarm>,
}

impl Scenario {
    /// Compares the alarms of a run with the expectations. `unit` is that of the packets; one in
    /// `2^level` connections was followed.
    pub fn judge(&self, raised: &BTreeSet<Alarm>, unit: u64, level: u32) -> Judgement {
        let must = || self.must.iter().map(|must| &must.alarm);
        let known = |alarm: &&Alarm| must().any(|must| must == *alarm) || self.may.contains(alarm);
        let evidence = |must: &&Must| {
            let flows = self.flows(&must.flows).map(|flows| flows.number.of(unit));
            let flows = flows.fold(0, u64::saturating_add);
            flows.checked_shr(level).unwrap_or(0) >= must.followed
        };
        let missing = || self.must.iter().filter(|must| !raised.contains(&must.alarm));
        Judgement {
            right: raised.iter().filter(known).cloned().collect(),
            wrong: raised.iter().filter(|alarm| !known(alarm)).cloned().collect(),
            missing: missing().map(|must| must.alarm.clone()).collect(),
            missed: missing().filter(evidence).map(|must| must.alarm.clone()).collect(),
        }
    }

    /// The packets, in the order of their times. Refuses a scenario with more than `most` packets,
    /// or with more than [`FLOWS_MAX`] flows in progress at once.
    pub fn packets(&self, unit: u64, seed: u64, most: u64) -> Result<Packets<'_>, TooLarge> {
        self.check(unit, most)?;
        let mut packets =
            Packets { scenario: self, unit, next: BinaryHeap::new(), order: 0, rngs: Vec::new() };
        for (kind, flows) in self.flows.iter().enumerate() {
            packets.rngs.push(Rng::seeded(seed.wrapping_mul(1_000).wrapping_add(kind as u64)));
            if flows.number.of(unit) > 0 {
                packets.push(flows.time_ns[0], Next { kind, at: Position::Start(0) });
            }
        }
        Ok(packets)
    }

    /// The flows of this name.
    pub fn flows(&self, name: &str) -> impl Iterator<Item = &Flows> {
        self.flows.iter().filter(move |flows| flows.name == name)
    }
}

impl Flows {
    /// The flow with this number. Random choices are those of `rng`.
    pub fn key(&self, rng: &mut Rng, number: u64) -> FlowKey {
        let [from, to] = self.addresses.map(|choice| choice.pick(rng, number));
        let ports = self.ports.map(|choice| choice.pick(rng, number) as u16);
        if self.is_v4 {
            let octets = |address: u128| Ipv4Addr::from_bits(address as u32).octets();
            FlowKey::v4(octets(from), octets(to), ports, self.protocol)
        } else {
            let octets = |address| Ipv6Addr::from_bits(address).octets();
            FlowKey::v6(octets(from), octets(to), ports, self.protocol)
        }
    }

    /// The start of the flow with this number, of `all`.
    fn start_ns(&self, number: u64, all: u64) -> u64 {
        let [from, until] = self.time_ns;
        from + (u128::from(until - from) * u128::from(number) / u128::from(all.max(1))) as u64
    }
}

/// Iterator over the packets of a scenario. Memory holds one entry per flow in progress: at most
/// [`FLOWS_MAX`].
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    scenario: &'a Scenario,
    unit: u64,
    /// What comes next, by time, then in the order of insertion.
    next: BinaryHeap<Reverse<(u64, u64, Next)>>,
    order: u64,
    /// One generator per kind of flows.
    rngs: Vec<Rng>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    /// The index of the flows.
    kind: usize,
    at: Position,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    /// The flow with this number starts.
    Start(u64),
    /// This flow sends a packet: the index of its step, and how many of that step were sent.
    Packet(FlowKey, usize, u32),
}

impl Packets<'_> {
    fn push(&mut self, time_ns: u64, next: Next) {
        self.order += 1;
        self.next.push(Reverse((time_ns, self.order, next)));
    }
}

impl Iterator for Packets<'_> {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        loop {
            let Reverse((time_ns, _, Next { kind, at })) = self.next.pop()?;
            let flows = &self.scenario.flows[kind];
            let (flow, step, sent) = match at {
                Position::Packet(flow, step, sent) => (flow, step, sent),
                Position::Start(number) => {
                    let (all, more) = (flows.number.of(self.unit), number + 1);
                    if more < all {
                        let at = Position::Start(more);
                        self.push(flows.start_ns(more, all), Next { kind, at });
                    }
                    let flow = flows.key(&mut self.rngs[kind], number);
                    let Some(first) = flows.packets.first() else { continue };
                    if first.after_ns > 0 {
                        let at = Position::Packet(flow, 0, 0);
                        self.push(time_ns + first.after_ns, Next { kind, at });
                        continue;
                    }
                    (flow, 0, 0)
                }
            };
            let now = flows.packets[step];
            let (then, sent) = if sent + 1 < now.repeat { (step, sent + 1) } else { (step + 1, 0) };
            if let Some(later) = flows.packets.get(then) {
                let at = Position::Packet(flow, then, sent);
                self.push(time_ns + later.after_ns, Next { kind, at });
            }
            return Some(packet(flows, flow, &now, time_ns));
        }
    }
}

fn packet(flows: &Flows, flow: FlowKey, step: &Step, time_ns: u64) -> Packet {
    let (transport, header) = match flows.protocol {
        protocol::TCP => {
            let acknowledgement = u32::from(step.flags.has(TcpFlags::ACK));
            (Transport::Tcp(Tcp { sequence: 1, acknowledgement, flags: step.flags }), 20)
        }
        protocol::UDP => (Transport::Ports, 8),
        // An echo, as ICMP and ICMPv6 number it.
        protocol::ICMP => (Transport::Icmp { kind: if step.reply { 0 } else { 8 }, code: 0 }, 8),
        _ => (Transport::Icmp { kind: if step.reply { 129 } else { 128 }, code: 0 }, 8),
    };
    let wire_len = (14 + if flows.is_v4 { 20 } else { 40 } + header + step.payload).max(60);
    Packet {
        time_ns: Mix::default().start_ns + time_ns,
        flow: if step.reply { flow.reversed() } else { flow },
        wire_len,
        captured: wire_len,
        payload_len: step.payload,
        transport,
        fragment: if step.fragment { Fragment::First } else { Fragment::Whole },
        ttl: 60,
        vlans: Vlans::default(),
        tunnels: 0,
    }
}

#[cfg(test)]
mod tests;
