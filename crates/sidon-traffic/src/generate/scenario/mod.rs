//! Scenarios: traffic and what a monitor must say about it, as data in a TOML file.
//!
//! ```toml
//! name = "SYN flood from forged sources"
//! include = ["beside.toml"]           # flows and expectations of other files, beside this one
//! one_way_capture = false             # what the report must say about the capture, if anything
//!
//! [[flows]]
//! name = "attack"
//! units = 1.0                         # as many flows as the unit that the user sets; or count = 1000
//! from = 5.0                          # seconds: flows start evenly between `from` and `until`
//! until = 30.0
//! gaps = "exponential"                # or start at random, with the same mean rate
//! pulses = { on = 1.0, every = 5.0 }  # or only in the first second of every five
//! protocol = "tcp"                    # tcp, udp, icmp, or the number of a protocol without ports
//! source = "32.0.0.0/3"               # an address, or a random one of this prefix
//! source_port = "1024-65535"          # a port, or a random one of this range
//! destination = "198.18.0.0/16 in turn"
//! destination_port = 443
//! packets = [
//!     { flags = "S" },
//!     { flags = "S.", reply = true, after = 0.0002 },
//!     { flags = ".", payload = "1-1400", after = 10.0, jitter = 0.5, repeat = 3 },
//! ]
//! fails = 0.05                        # the share of flows that send these packets instead
//! failed = [{ flags = "S", after = 1.0, repeat = 3 }]
//!
//! [[must]]                            # an incident that must be named
//! kind = "syn_flood"                  # or one of ["syn_flood", "connection_flood"]
//! subject = "198.18.0.7"              # exactly this address or prefix, or one of a list
//! flows = "attack"                    # its evidence
//! within = 2.0                        # seconds from the start of these flows to the event
//! most = 1                            # the most incidents of this description
//! says = "DNS"                        # a word in the incident, or a list of words
//! figures = { attempts = [900, 1100] }  # the least and greatest values of figures of its evidence
//! followed = 320                      # required only if so many of them are expected to be followed
//!
//! [[may]]                             # an incident that may be named; any other one is wrong
//! kind = "syn_flood"
//! subject = "198.18.0.0/24"           # this prefix, or any part of it
//!
//! [[stay]]                            # connections that must be open at the end
//! flows = "office"
//! ```
//! # Packets
//!
//! | field | meaning | without it |
//! |---|---|---|
//! | `flags` | TCP flags as tcpdump prints them: `S`, `S.`, `.`, `P.`, `F.`, `R`, `FPU`; empty for none | required for TCP |
//! | `reply` | the destination sends the packet | `false` |
//! | `by` | another host sends it in place of the source or the destination; a prefix as above | that host |
//! | `payload` | bytes after the transport header: a number or a range | 0 |
//! | `after`, `jitter` | seconds since the packet before, and random seconds up to `jitter` in addition | 20 µs, 0 |
//! | `repeat` | the number of such packets | 1 |
//! | `round` | the packet belongs to the part that is sent `rounds` times, a field of `[[flows]]` | `false` |
//! | `fragment` | `"first"` or `"later"`: a fragment whose others are missing | a whole packet |
//! | `icmp` | the packet is ICMP with this `[type, code]` instead, between the same hosts | an echo, if the protocol is `icmp` |
//! | `ttl` | time to live | 60 |
//!
//! The same file, unit and seed give the same packets on every machine.

mod expect;
mod fields;
mod flows;
mod packets;
mod read;
mod size;
mod starts;

pub use expect::{Alarm, Expected, Judgement, Must};
pub use packets::Packets;
pub use read::ScenarioError;
pub use size::{FLOWS_MAX, PACKETS_MAX, TooLarge};
pub use starts::Starts;

use super::SECOND;
use crate::{
    FlowKey,
    packet::{Fragment, TcpFlags},
};
use sidon_kit::Rng;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::Range,
    path::PathBuf,
};

/// A scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The name.
    pub name: String,
    /// The traffic.
    pub flows: Vec<Flows>,
    /// Incidents that must be named.
    pub must: Vec<Must>,
    /// Further incidents that may be named.
    pub may: Vec<Expected>,
    /// Names of flows whose connections must be open at the end.
    pub stay: Vec<String>,
    /// Whether the report must say that most connections were captured in one direction only.
    pub one_way_capture: Option<bool>,
    /// The files that it was read from, the outermost first. None for a text.
    pub files: Vec<PathBuf>,
}

/// Flows of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Flows {
    /// The name.
    pub name: String,
    /// The number of flows.
    pub number: Number,
    /// When they start.
    pub starts: Starts,
    /// The protocol's number.
    pub protocol: u8,
    /// The addresses of source and destination, both of the same IP version.
    pub addresses: [Choice; 2],
    /// Whether the addresses are of IPv4.
    pub is_v4: bool,
    /// The ports of source and destination.
    pub ports: [Choice; 2],
    /// The packets of each flow.
    pub packets: Script,
    /// The packets of flows that fail.
    pub failed: Script,
    /// The share of flows that fail.
    pub fails: f64,
}

/// The packets of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// The steps that are sent several times.
    pub body: Range<usize>,
    /// The number of times that the steps of the body are sent, at least one.
    pub rounds: u32,
}

/// One packet of a flow, or several similar ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The least nanoseconds since the packet before.
    pub after_ns: u64,
    /// The most nanoseconds in addition to these.
    pub jitter_ns: u64,
    /// How many such packets there are, each `after_ns` after the one before.
    pub repeat: u32,
    /// Whether the destination sends it.
    pub reply: bool,
    /// The host that sends it in place of the source or the destination.
    pub by: Option<Choice>,
    /// The flags, if the protocol is TCP.
    pub flags: TcpFlags,
    /// The least and the most bytes of payload.
    pub payload: [u32; 2],
    /// The part of a packet. The other parts are missing.
    pub fragment: Fragment,
    /// Type and code, if it is a packet of ICMP.
    pub icmp: Option<[u8; 2]>,
    /// Time to live.
    pub ttl: u8,
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

    /// An address of this IP version.
    fn address(&self, is_v4: bool, rng: &mut Rng, number: u64) -> IpAddr {
        let bits = self.pick(rng, number);
        match is_v4 {
            true => Ipv4Addr::from_bits(bits as u32).into(),
            false => Ipv6Addr::from_bits(bits).into(),
        }
    }
}

/// A random number, unless there is nothing to choose.
fn random_if(more: u128, mut random: impl FnMut() -> u128) -> u128 {
    if more == 0 { 0 } else { random() }
}

impl Scenario {
    /// The flows of this name.
    pub fn flows(&self, name: &str) -> impl Iterator<Item = &Flows> {
        self.flows.iter().filter(move |flows| flows.name == name)
    }
}

impl Flows {
    /// The flow with this number. Random choices are those of `rng`.
    pub fn key(&self, rng: &mut Rng, number: u64) -> FlowKey {
        let hosts = self.addresses.map(|choice| choice.address(self.is_v4, rng, number));
        let ports = self.ports.map(|choice| choice.pick(rng, number) as u16);
        key(hosts, ports, self.protocol)
    }
}

/// The flow between two hosts of the same IP version.
fn key([from, to]: [IpAddr; 2], ports: [u16; 2], protocol: u8) -> FlowKey {
    let (source, destination) = (SocketAddr::new(from, ports[0]), SocketAddr::new(to, ports[1]));
    FlowKey::between(source, destination, protocol).expect("both are of the same IP version")
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
