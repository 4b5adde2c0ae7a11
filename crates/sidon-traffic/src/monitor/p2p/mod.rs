//! Scores hosts that behave like P2P programs, and gives the reasons. Payload is not read.
//!
//! Karagiannis et al., "Transport layer identification of P2P traffic", IMC 2004. P2P hosts speak
//! to each other over both TCP and UDP. A P2P host also sees about one distinct remote port per
//! partner, while the clients of a server open several ports each.
//! ```text
//! packet -> known service port? -> pair of hosts: now -> next      | no change: done
//!           one test of two bits      ACSM, three bytes per pair      v
//!                                     host: peers by TCP and UDP, peers that answered, ports
//!                                     host and port: peers, their ports
//! ```
//! The state of a pair ([`pairs`]) takes one lookup, and that is all the work for most packets. The
//! evidence about a host changes only with the state of a pair. It counts distinct
//! peers and ports in 64 bytes each ([`Few`]): exactly up to 21, then as estimates with an interval.
//!
//! These rules keep other hosts out:
//! - conversations with a service port ([`ports`]: mail, DNS, games) are left out
//! - resets are left out, and only peers that answered count (scanners)
//! - ports whose packets have only a few sizes are left out (games, malware that scans)
//! - hosts and ports to which only the other end opens conversations count less (servers)
//! - conversations of two private addresses are left out (clusters whose members gossip)
//! - UDP peers count for one port of the host: a media server takes another port for each call, a
//!   P2P program one port for all peers
//!
//! Peers and their ports are hashed with a fixed seed, so that engines with different seeds give a
//! host one score. Only full tables and confused pairs make a difference.
//!
//! The thread that feeds the engine owns this monitor, so its answers do not depend on the number
//! of worker threads.

mod distinct;
pub mod evidence;
pub mod pairs;
mod partners;
pub mod ports;
mod table;

pub use distinct::{All, Distinct, Few};
pub use evidence::{REASONS_MAX, Reason, Suspect};
pub use pairs::Keeping;

use super::sizes;
use crate::{
    FlowKey, Packet, TcpFlags,
    batch::PACKETS,
    flow::protocol,
    flow_map::{EXACT, mistaken_most},
    resume::Resume,
    snapshot::encode::{In, Out},
    work::Work,
};
use pairs::{Pairs, Step};
use sidon::{Infeasible, Key, Malformed, Seed};
use std::{collections::HashMap, net::IpAddr};
use table::{Subject, Table};

/// The lowest score at which a host is listed. The upper end of its interval decides, so no host
/// near this score disappears because of the seed.
pub const LISTED: u8 = 50;

/// The seed of the hashes of peers and ports. Their counts, and so the scores, are the same in every
/// engine. Peers whose hashes collide lower a count; a host cannot choose the addresses of its peers.
const COUNTED: Seed = Seed(0x7032_7020_7065_6572);

/// The most P2P-like hosts of a snapshot, those with the highest scores. The ledger counts the others.
pub const SUSPECTS_MAX: usize = 1 << 16;

/// The integers that fix the memory.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The map that stores the states of pairs.
    pub pairs: Keeping,
    /// Hosts in the table of hosts.
    pub hosts: u64,
    /// Entries in the table of ports of hosts.
    pub ends: u64,
}

impl Shape {
    /// Divides `bytes` bytes: half for pairs, a quarter for hosts, and a quarter for ports of
    /// hosts. A host takes 346 bytes and a port 176, most of them for counters of 64 bytes. The 5%
    /// of an engine of 16 MiB hold 600 hosts and 1,184 ports.
    pub fn within(bytes: u64) -> Self {
        let bytes = bytes.saturating_sub(partners::BYTES);
        let whole = |bytes: u64, each: u64| (bytes / each / 8).max(1) * 8;
        Shape {
            pairs: Keeping::within(bytes / 2),
            hosts: whole(bytes / 4, Table::<evidence::Host<Few>>::BYTES),
            ends: whole(bytes / 4, Table::<evidence::End<Few>>::BYTES),
        }
    }

    /// The size of all tables in bytes.
    pub fn bytes(&self) -> u64 {
        let hosts = self.hosts.saturating_mul(Table::<evidence::Host<Few>>::BYTES);
        let ends = self.ends.saturating_mul(Table::<evidence::End<Few>>::BYTES);
        let tables = self.pairs.bytes().saturating_add(hosts).saturating_add(ends);
        tables.saturating_add(partners::BYTES)
    }
}

/// The monitor. `D` counts distinct peers and ports.
#[derive(Debug)]
pub struct P2p<D = Few> {
    pairs: Pairs,
    hosts: Table<evidence::Host<D>>,
    ends: Table<evidence::End<D>>,
    keys: Vec<FlowKey>,
    events: Vec<u16>,
    indices: Vec<u16>,
    steps: Vec<(u16, Step)>,
}

impl P2p<Few> {
    /// An empty monitor, in memory that does not grow.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let (hosts, ends) = (Table::fixed(shape.hosts, seed)?, Table::fixed(shape.ends, seed)?);
        Ok(P2p::of(Pairs::new(shape.pairs, seed)?, hosts, ends))
    }
}

impl P2p<All> {
    /// An empty monitor. Its tables of hosts and ports grow; `pairs` chooses the map of pairs.
    pub fn exact(pairs: Keeping, seed: Seed) -> Result<Self, Infeasible> {
        Ok(P2p::of(Pairs::new(pairs, seed)?, Table::exact(), Table::exact()))
    }
}

impl<D: Distinct> P2p<D> {
    fn of(pairs: Pairs, hosts: Table<evidence::Host<D>>, ends: Table<evidence::End<D>>) -> Self {
        P2p {
            pairs,
            hosts,
            ends,
            keys: Vec::with_capacity(PACKETS),
            events: Vec::with_capacity(PACKETS),
            indices: Vec::with_capacity(PACKETS),
            steps: Vec::with_capacity(PACKETS),
        }
    }

    /// For tests: after `packets` packets the map refuses every new pair.
    #[doc(hidden)]
    pub fn refuse_after(&mut self, packets: u64) {
        self.pairs.refuse_after(packets);
    }

    /// Adds packets, at most one batch.
    pub fn take(&mut self, packets: &[Packet]) {
        let Some(last) = packets.last() else { return };
        self.keys.clear();
        self.events.clear();
        self.indices.clear();
        for (index, packet) in packets.iter().enumerate() {
            let flow = &packet.flow;
            if !says_nothing(flow) || packet.tcp_flags().has(TcpFlags::RST) {
                continue;
            }
            let udp = flow.protocol() == protocol::UDP;
            let hosts = flow.hosts();
            let lower = hosts.is_ordered();
            self.keys.push(if lower { hosts } else { hosts.reversed() });
            self.events.push(pairs::event(udp, lower));
            self.indices.push(index as u16);
        }
        if !self.keys.is_empty() {
            self.steps.clear();
            let P2p { pairs, keys, events, indices, steps, .. } = self;
            let time = |at: usize| packets[usize::from(indices[at])].time_ns;
            pairs.follow(keys, events, time, |at, step| steps.push((indices[at], step)));
            self.learn(packets);
        }
        self.pass(last.time_ns);
    }

    /// The work of the map of pairs.
    pub(crate) fn work(&self) -> Option<[Work; 2]> {
        self.pairs.work()
    }

    /// Advances the clock to `now`: pairs that have been silent for too long expire.
    pub fn pass(&mut self, now: u64) {
        self.pairs.pass(now);
    }

    /// Updates the evidence about hosts from changes of pair states.
    fn learn(&mut self, packets: &[Packet]) {
        let mut steps = std::mem::take(&mut self.steps);
        for &(index, step) in &steps {
            self.step(&packets[usize::from(index)], step);
        }
        steps.clear();
        self.steps = steps;
    }

    fn step(&mut self, packet: &Packet, step: Step) {
        let flow = &packet.flow;
        let (source, destination) = (flow.source(), flow.destination());
        let [by_source, by_destination] = hashes(flow);
        let udp = flow.protocol() == protocol::UDP;
        let more = step.protocols[0] != step.protocols[1];
        // Both ends have sent packets now, and had not before.
        let answers = step.ways[0] != 3 && step.ways[1] == 3;
        // The destination spoke first, and this packet is the first answer.
        let is_answer = answers && step.ways[0] != 0;
        if udp && (answers || more && step.ways[1] == 3) {
            // Only UDP is used here: a TCP client takes a new port for each connection.
            self.end(source, flow.source_port(), packet, by_destination, !is_answer);
            self.end(destination, flow.destination_port(), packet, by_source, is_answer);
        }
        if step.protocols[1] == 3 && step.ways[1] == 3 {
            // The opener of a TCP connection uses any port, so the port of the conversation is that
            // of the responder, if this packet tells which end that is.
            let flags = packet.tcp_flags();
            let syn = flags.has(TcpFlags::SYN);
            let port = |peer: (u32, u32)| match (syn, flags.has(TcpFlags::ACK)) {
                (true, true) => by_source.1,
                (true, false) => by_destination.1,
                _ => peer.1,
            };
            for (own, peer) in [(source, by_destination), (destination, by_source)] {
                let host = self.host(own);
                host.both.see(peer.0);
                host.both_ports.see(port(peer));
            }
        }
        if step.ways[0] == 0 && ports::is_peers(flow.destination_port()) {
            self.host(source).known.see(by_destination.0);
        }
        if is_answer {
            // A host that only answers takes no entry.
            if let Some(host) = self.hosts.find(&subject(source, 0)) {
                host.met = host.met.saturating_add(1);
            }
            let host = self.host(destination);
            host.began = host.began.saturating_add(1);
            if !udp {
                host.opened.see(by_source.0);
                host.ports.see(by_source.1);
            }
            if ports::is_peers(flow.source_port()) {
                host.known.see(by_source.0);
                host.reached = host.reached.saturating_add(1);
            }
        }
    }

    fn host(&mut self, address: IpAddr) -> &mut evidence::Host<D> {
        self.hosts.enter(&subject(address, 0))
    }

    /// Adds a packet between a port of `host` and a peer, given by the peer's hashes.
    fn end(&mut self, host: IpAddr, port: u16, packet: &Packet, peer: (u32, u32), first: bool) {
        let end = self.ends.enter(&subject(host, port));
        end.peers.see(peer.0);
        end.ports.see(peer.1);
        end.first = end.first.saturating_add(u16::from(first));
        // A large odd factor maps similar lengths to different bits.
        end.sizes |= 1 << (packet.payload_len.wrapping_mul(0x9e37_79b1) >> 26);
    }

    /// Hosts whose score may be at least `least`, the highest score first.
    pub fn suspects(&self, least: u8) -> Vec<Suspect> {
        let mut reasons: HashMap<IpAddr, Vec<_>> = HashMap::new();
        for (subject, host) in self.hosts.entries() {
            reasons.entry(parts(subject).0).or_default().extend(evidence::of_host(host));
        }
        for (subject, end) in self.ends.entries() {
            let (host, port) = parts(subject);
            if let Some(reason) = evidence::of_end(port, end) {
                reasons.entry(host).or_default().push(reason);
            }
        }
        let lost = [self.refused(), self.evicted(), self.dont_know(), self.displaced()] != [0; 4];
        let mistaken = mistaken_most(self.pairs.mistaken(), EXACT) > 0;
        let mut all = Vec::new();
        for (host, reasons) in reasons {
            let (score, reasons) = evidence::judge(reasons);
            if score.most().is_some_and(|most| most >= least.max(1).into()) {
                let suspect = Suspect { host, score, reasons };
                all.push(match (lost, mistaken) {
                    (true, _) => suspect.at_least(),
                    (_, true) => suspect.about(),
                    _ => suspect,
                });
            }
        }
        all.sort_by_key(Suspect::order);
        all
    }

    /// Pairs of hosts stored now; 0 for a map that does not count them.
    pub fn pairs(&self) -> u64 {
        self.pairs.count()
    }

    /// Packets whose new pair was refused.
    pub fn refused(&self) -> u64 {
        self.pairs.refused
    }

    /// Silent pairs that were evicted while the map was crowded.
    pub fn evicted(&self) -> u64 {
        self.pairs.evicted
    }

    /// Packets of pairs whose state the map did not know.
    pub fn dont_know(&self) -> u64 {
        self.pairs.dont_know
    }

    /// Entries of hosts or ports with more than one peer that were replaced by others.
    pub fn displaced(&self) -> u64 {
        self.hosts.displaced + self.ends.displaced
    }

    /// The probability that a new pair is mistaken for a stored one.
    pub fn stranger_rate(&self) -> f64 {
        self.pairs.stranger_rate()
    }
}

/// The hashes of source and destination: for each, of its address and of its port.
fn hashes(flow: &FlowKey) -> [(u32, u32); 2] {
    let upper = |digest: sidon::Digest| (digest.0 >> 32) as u32;
    let both = [(flow.source(), flow.source_port()), (flow.destination(), flow.destination_port())];
    both.map(|(address, port)| {
        let port = u64::from(port).digest(COUNTED);
        (upper(sizes::host(address).digest(COUNTED)), upper(port))
    })
}

/// Whether a flow is TCP or UDP between two hosts, at least one of them public, at ports of no known
/// service.
#[inline]
fn says_nothing(flow: &FlowKey) -> bool {
    let known = matches!(flow.protocol(), protocol::TCP | protocol::UDP);
    let [one, other] = [flow.source_port(), flow.destination_port()];
    known
        && !ports::is_service(one)
        && !ports::is_service(other)
        && is_host(flow.destination())
        && is_host(flow.source())
        && !(is_private(flow.source()) && is_private(flow.destination()))
}

/// Whether `address` is reserved for use within one organisation or on one link.
#[inline]
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_private() || address.is_loopback() || address.is_link_local()
        }
        IpAddr::V6(address) => {
            address.is_unique_local() || address.is_unicast_link_local() || address.is_loopback()
        }
    }
}

/// Whether `address` can belong to a single host. Subnet masks are unknown, so any IPv4 address
/// that ends in 255 counts as a broadcast address.
#[inline]
fn is_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, .., last] = address.octets();
            first < 224 && first != 0 && last != 255
        }
        IpAddr::V6(address) => !address.is_multicast() && !address.is_unspecified(),
    }
}

fn subject(address: IpAddr, port: u16) -> Subject {
    let mut subject = [0; 19];
    subject[..17].copy_from_slice(&sizes::host(address));
    subject[17..].copy_from_slice(&port.to_be_bytes());
    subject
}

fn parts(subject: &Subject) -> (IpAddr, u16) {
    let host = std::array::from_fn(|i| subject[i]);
    (sizes::address(host), u16::from_be_bytes([subject[17], subject[18]]))
}

impl Resume for P2p<Few> {
    fn save(&self, out: &mut Out) {
        self.pairs.save(out);
        self.hosts.save(out);
        self.ends.save(out);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.pairs.resume(bytes)?;
        self.hosts.resume(bytes)?;
        self.ends.resume(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::Rng;

    #[test]
    fn the_share_of_an_engine_holds_as_many_as_documented() {
        let bytes = (16 << 20) / 100 * 5;
        let shape = Shape::within(bytes);
        assert_eq!((shape.hosts, shape.ends), (600, 1_184));
        assert!(shape.bytes() <= bytes && shape.bytes() > bytes / 100 * 99);
    }

    #[test]
    fn addresses_and_ports_are_counted_without_bias() {
        const ALL: u64 = 100;
        const TIMES: u64 = 400;
        let mut rng = Rng::seeded(3);
        let mut sums = [0u64; 2];
        for _ in 0..TIMES {
            let offset = rng.below(600) as u16;
            let (mut addresses, mut ports) = (Few::default(), Few::default());
            for number in 0..ALL {
                let address = (rng.next_u64() as u32).to_be_bytes();
                let port = 1024 + offset + 600 * number as u16;
                let flow = FlowKey::v4(address, [10, 0, 0, 1], [port, 9], protocol::UDP);
                let [(by_address, by_port), _] = hashes(&flow);
                addresses.see(by_address);
                ports.see(by_port);
            }
            sums[0] += addresses.figure().value();
            sums[1] += ports.figure().value();
        }
        // The standard error of linear counting over `TIMES` runs, and its bias.
        let load = ALL as f64 / 504.0;
        let left = load.exp() - load - 1.0;
        let error = (504.0 * left / TIMES as f64).sqrt();
        for sum in sums {
            let mean = sum as f64 / TIMES as f64;
            let off = (mean - ALL as f64).abs();
            assert!(off < 6.0 * error + left / 2.0, "{mean} of {ALL}");
        }
    }
}
