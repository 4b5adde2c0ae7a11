//! One conversation, packet by packet, and the hosts between which new ones start.

use super::{Mix, SCANNER};
use crate::{
    FlowKey, Packet,
    flow::protocol,
    packet::{Fragment, Tcp, TcpFlags, Transport, Vlans},
};
use sidon_kit::Rng;

/// Bytes of Ethernet and IPv4 headers before the transport header.
const BEFORE_V4: u32 = 34;
/// Bytes of Ethernet and IPv6 headers before the transport header.
const BEFORE_V6: u32 = 54;
/// Bytes of a TCP header with time stamps.
const TCP_HEADER: u32 = 32;
/// Bytes of a TCP header with the options of a SYN.
const SYN_HEADER: u32 = 40;
/// Bytes of data in a full segment.
const SEGMENT: u32 = 1_448;
/// Number of outside hosts that P2P clients speak to.
const STRANGERS: u64 = 4_096;
/// Most packets that a conversation sends in a row.
const BURST: u32 = 64;

/// A conversation in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conversation {
    /// The flow in the direction of the opener.
    flow: FlowKey,
    what: What,
    /// Packets sent so far.
    step: u32,
    /// Data packets in all.
    data: u32,
    /// The next sequence number of each side.
    sequence: [u32; 2],
    ttl: [u8; 2],
    over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// A TCP connection that completes, and how it ends.
    Tcp(End),
    /// A TCP attempt that is answered by a reset.
    Refused,
    /// A TCP attempt that is not answered: `data` SYNs.
    Unanswered,
    /// A scanner's connection that the host accepts and the scanner resets.
    Probed,
    /// Requests and responses over UDP.
    Datagrams,
    Echo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Both sides finish, in four packets.
    Finished,
    /// The opener resets.
    Reset,
    /// The connection stays open, without further packets.
    Open,
}

impl Conversation {
    /// Packets that the conversation may send in a row; larger conversations send more.
    #[inline]
    pub(super) fn burst(&self) -> u32 {
        1 + (self.data / 32).min(BURST - 1)
    }

    /// Data packets in all.
    #[cfg(test)]
    pub(super) fn data(&self) -> u32 {
        self.data
    }

    /// Whether the last packet was sent.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// The next packet, its size drawn from `lot` where it varies.
    #[inline]
    pub(super) fn step(&mut self, time_ns: u64, lot: u32) -> Packet {
        let step = self.step;
        self.step += 1;
        match self.what {
            What::Tcp(end) => self.tcp(end, step, time_ns, lot),
            What::Refused if step == 0 => self.syn(time_ns),
            What::Refused => {
                self.over = true;
                self.segment(1, TcpFlags::RST.with(TcpFlags::ACK), 0, 20, time_ns)
            }
            What::Unanswered => {
                self.over = self.step >= self.data;
                let packet = self.syn(time_ns);
                // A retransmitted SYN keeps its sequence number.
                self.sequence[0] = self.sequence[0].wrapping_sub(1);
                packet
            }
            What::Probed => match step {
                0 => self.syn(time_ns),
                1 => self.syn_ack(time_ns),
                _ => {
                    self.over = true;
                    self.segment(0, TcpFlags::RST, 0, 20, time_ns)
                }
            },
            What::Datagrams => {
                self.over = self.step >= self.data;
                let back = step % 2 == 1;
                let payload = if back { 60 + part(lot, 440) } else { 28 + part(lot, 48) };
                self.packet(usize::from(back), Transport::Ports, 8, payload, time_ns)
            }
            What::Echo => {
                self.over = self.step >= self.data;
                let back = step % 2 == 1;
                let kind = match (self.flow.is_v4(), back) {
                    (true, false) => 8,
                    (true, true) => 0,
                    (false, false) => 128,
                    (false, true) => 129,
                };
                let transport = Transport::Icmp { kind, code: 0 };
                self.packet(usize::from(back), transport, 8, 56, time_ns)
            }
        }
    }

    #[inline]
    fn tcp(&mut self, end: End, step: u32, time_ns: u64, lot: u32) -> Packet {
        let ack = TcpFlags::ACK;
        let push = ack.with(TcpFlags::PSH);
        let fin = ack.with(TcpFlags::FIN);
        let sent = step.wrapping_sub(3);
        let (side, flags, payload, header) = if step < 3 {
            match step {
                0 => (0, TcpFlags::SYN, 0, SYN_HEADER),
                1 => (1, TcpFlags::SYN.with(ack), 0, SYN_HEADER),
                _ => (0, ack, 0, TCP_HEADER),
            }
        } else if sent < self.data {
            // A request, then the response in full segments, every second one acknowledged.
            let last = sent + 1 == self.data;
            self.over = last && end == End::Open;
            match sent % 3 {
                _ if sent == 0 => (0, push, 100 + part(lot, 700), TCP_HEADER),
                0 => (0, ack, 0, TCP_HEADER),
                _ if last => (1, push, 1 + part(lot, SEGMENT), TCP_HEADER),
                _ => (1, ack, SEGMENT, TCP_HEADER),
            }
        } else {
            let closing = sent - self.data;
            self.over = end != End::Finished || closing == 3;
            match (end, closing) {
                (End::Finished, 0) => (1, fin, 0, TCP_HEADER),
                (End::Finished, 1) => (0, ack, 0, TCP_HEADER),
                (End::Finished, 2) => (0, fin, 0, TCP_HEADER),
                (End::Finished, _) => (1, ack, 0, TCP_HEADER),
                (End::Reset | End::Open, _) => (0, TcpFlags::RST.with(ack), 0, 20),
            }
        };
        self.segment(side, flags, payload, header, time_ns)
    }

    fn syn(&mut self, time_ns: u64) -> Packet {
        self.segment(0, TcpFlags::SYN, 0, SYN_HEADER, time_ns)
    }

    fn syn_ack(&mut self, time_ns: u64) -> Packet {
        self.segment(1, TcpFlags::SYN.with(TcpFlags::ACK), 0, SYN_HEADER, time_ns)
    }

    /// A TCP packet of one side, with the sequence numbers that follow from the packets before it.
    #[inline]
    fn segment(
        &mut self,
        side: usize,
        flags: TcpFlags,
        payload: u32,
        header: u32,
        time_ns: u64,
    ) -> Packet {
        let sequence = self.sequence[side];
        let acknowledgement = if flags.has(TcpFlags::ACK) { self.sequence[1 - side] } else { 0 };
        let counted = payload + u32::from(flags.any(TcpFlags::SYN.with(TcpFlags::FIN)));
        self.sequence[side] = sequence.wrapping_add(counted);
        let tcp = Tcp { sequence, acknowledgement, flags };
        self.packet(side, Transport::Tcp(tcp), header, payload, time_ns)
    }

    #[inline]
    fn packet(
        &self,
        side: usize,
        transport: Transport,
        header: u32,
        payload: u32,
        time_ns: u64,
    ) -> Packet {
        let before = if self.flow.is_v4() { BEFORE_V4 } else { BEFORE_V6 };
        let wire_len = (before + header + payload).max(60);
        Packet {
            time_ns,
            flow: if side == 0 { self.flow } else { self.flow.reversed() },
            wire_len,
            captured: wire_len,
            payload_len: payload,
            transport,
            fragment: Fragment::Whole,
            ttl: self.ttl[side],
            vlans: Vlans::default(),
            tunnels: 0,
        }
    }
}

/// The sum of the weights of all kinds, and the number of addresses scanned so far.
#[derive(Debug, Clone)]
pub(super) struct World {
    shares: u64,
    scanned: u32,
}

/// An end of a conversation: a kind of host, and a number from which the address follows.
enum Host {
    Client(u32),
    Server(u32),
    Stranger(u32),
    Scanner,
}

impl Host {
    fn v4(&self) -> [u8; 4] {
        match *self {
            Host::Client(i) => (10u32 << 24 | (i + 1)).to_be_bytes(),
            // 198.18.0.0/15 is reserved for benchmarks.
            Host::Server(i) => ((198u32 << 24 | 18 << 16) + i).to_be_bytes(),
            Host::Stranger(i) => (100u32 << 24 | 64 << 16 | scatter(i) & 0x3f_ffff).to_be_bytes(),
            Host::Scanner => SCANNER.octets(),
        }
    }

    fn v6(&self) -> [u8; 16] {
        let (net, host) = match *self {
            Host::Client(i) => (1, i >> 8 << 16 | (i + 1)),
            Host::Server(i) => (2, i + 1),
            Host::Stranger(i) => (3, scatter(i)),
            Host::Scanner => (4, 66),
        };
        // 2001:db8::/32 is reserved for documentation.
        (0x2001_0db8u128 << 96 | net << 64 | u128::from(host)).to_be_bytes()
    }
}

/// A bijection that spreads numbers out.
fn scatter(i: u32) -> u32 {
    let i = i.wrapping_mul(0x9e37_79b1);
    (i ^ i >> 15).wrapping_mul(0x85eb_ca6b)
}

impl World {
    pub(super) fn new(mix: &Mix) -> Self {
        let shares = mix.shares;
        let all = [shares.web, shares.dns, shares.peers, shares.ping, shares.scan];
        World { shares: all.map(u64::from).iter().sum(), scanned: 0 }
    }

    /// A new conversation.
    pub(super) fn open(&mut self, mix: &Mix, rng: &mut Rng) -> Conversation {
        let mut lot = rng.below(self.shares);
        let mut is = |share: u32| {
            let hit = lot < u64::from(share);
            if !hit {
                lot -= u64::from(share);
            }
            hit
        };
        let shares = mix.shares;
        if is(shares.web) {
            web(mix, rng)
        } else if is(shares.dns) {
            let data = if rng.below(50) == 0 { 1 } else { 2 };
            let client = Host::Client(rng.below(mix.clients.into()) as u32);
            let resolver = Host::Server(rng.below(2).min(u64::from(mix.servers) - 1) as u32);
            start(mix, rng, What::Datagrams, data, [client, resolver], [ephemeral, |_| 53], 17)
        } else if is(shares.peers) {
            peers(mix, rng)
        } else if is(shares.ping) {
            let client = Host::Client(rng.below(mix.clients.into()) as u32);
            let server = Host::Server(popular(mix.servers, rng));
            let mut ping =
                start(mix, rng, What::Echo, 8, [client, server], [|_| 0, |_| 0], protocol::ICMP);
            if !ping.flow.is_v4() {
                let (source, destination) = (client_of(&ping.flow), server_of(&ping.flow));
                ping.flow = FlowKey::v6(source, destination, [0, 0], protocol::ICMPV6);
            }
            ping
        } else {
            self.scan(mix, rng)
        }
    }

    fn scan(&mut self, mix: &Mix, rng: &mut Rng) -> Conversation {
        let target = Host::Client(self.scanned % mix.clients);
        self.scanned = self.scanned.wrapping_add(1);
        let (what, data) = match rng.below(10) {
            0 => (What::Probed, 0),
            1 | 2 => (What::Refused, 0),
            _ => (What::Unanswered, 1),
        };
        let v4_only = Mix { ipv6: 0, ..*mix };
        start(&v4_only, rng, what, data, [Host::Scanner, target], [ephemeral, |_| 445], 6)
    }
}

fn client_of(flow: &FlowKey) -> [u8; 16] {
    flow.as_bytes()[..16].try_into().expect("16 bytes of an IPv6 key")
}

fn server_of(flow: &FlowKey) -> [u8; 16] {
    flow.as_bytes()[16..32].try_into().expect("16 bytes of an IPv6 key")
}

/// TCP from a client to a server. Servers with lower numbers are more popular.
fn web(mix: &Mix, rng: &mut Rng) -> Conversation {
    let client = Host::Client(rng.below(mix.clients.into()) as u32);
    let server = Host::Server(popular(mix.servers, rng));
    let port: fn(&mut Rng) -> u16 = match rng.below(20) {
        0 => |_| 22,
        1 => |_| 25,
        2..=4 => |_| 80,
        5 => |_| 993,
        _ => |_| 443,
    };
    let (what, data) = match rng.below(100) {
        0 => (What::Refused, 0),
        1 => (What::Unanswered, 3),
        2 | 3 => (What::Tcp(End::Open), size(mix, rng)),
        4..=9 => (What::Tcp(End::Reset), size(mix, rng)),
        _ => (What::Tcp(End::Finished), size(mix, rng)),
    };
    start(mix, rng, what, data, [client, server], [ephemeral, port], protocol::TCP)
}

/// TCP or UDP between one of a few clients and one of many outside hosts, which often do not
/// answer.
fn peers(mix: &Mix, rng: &mut Rng) -> Conversation {
    let client = rng.below(u64::from(mix.clients).div_ceil(50)) as u32;
    let stranger = rng.below(STRANGERS) as u32;
    let ends = [Host::Client(client), Host::Stranger(stranger)];
    let far: u16 = 1024 + (scatter(stranger ^ 0x5a5a) % 60_000) as u16;
    let near: u16 = 20_000 + (scatter(client) % 20_000) as u16;
    let (what, data, number) = match rng.below(20) {
        0..=4 => (What::Unanswered, 3, protocol::TCP),
        5 | 6 => (What::Refused, 0, protocol::TCP),
        7..=11 => (What::Tcp(End::Finished), size(mix, rng), protocol::TCP),
        12..=14 => (What::Datagrams, 1, protocol::UDP),
        _ => (What::Datagrams, 2 * size(mix, rng).min(1 << 20), protocol::UDP),
    };
    let mut conversation = start(mix, rng, what, data, ends, [ephemeral, |_| 0], number);
    // Datagrams leave from the port at which the client listens; both ports are the hosts' own.
    let source = if number == protocol::UDP { near } else { conversation.flow.source_port() };
    conversation.flow = with_ports(&conversation.flow, [source, far]);
    conversation
}

fn with_ports(flow: &FlowKey, ports: [u16; 2]) -> FlowKey {
    let mut bytes = [0; crate::flow::V6];
    let length = flow.as_bytes().len();
    bytes[..length].copy_from_slice(flow.as_bytes());
    bytes[length - 5..length - 3].copy_from_slice(&ports[0].to_be_bytes());
    bytes[length - 3..length - 1].copy_from_slice(&ports[1].to_be_bytes());
    FlowKey::from_bytes(&bytes[..length]).expect("as long as a key")
}

fn start(
    mix: &Mix,
    rng: &mut Rng,
    what: What,
    data: u32,
    ends: [Host; 2],
    ports: [fn(&mut Rng) -> u16; 2],
    number: u8,
) -> Conversation {
    let ports = ports.map(|port| port(rng));
    let flow = if rng.below(100) < u64::from(mix.ipv6) {
        FlowKey::v6(ends[0].v6(), ends[1].v6(), ports, number)
    } else {
        FlowKey::v4(ends[0].v4(), ends[1].v4(), ports, number)
    };
    let first = rng.next_u64();
    let sequence = [first as u32, (first >> 32) as u32];
    let ttl = [64, 40 + rng.below(20) as u8];
    Conversation { flow, what, step: 0, data, sequence, ttl, over: false }
}

/// A number below `n` from 32 random bits.
#[inline]
fn part(lot: u32, n: u32) -> u32 {
    ((u64::from(lot) * u64::from(n)) >> 32) as u32
}

fn ephemeral(rng: &mut Rng) -> u16 {
    32_768 + rng.below(28_232) as u16
}

/// A random number below `n`; rank `r` has a probability proportional to `1 / r`.
fn popular(n: u32, rng: &mut Rng) -> u32 {
    let rank = f64::from(n).powf(uniform(rng)) as u32;
    rank.saturating_sub(1).min(n - 1)
}

/// The number of data packets of a conversation: Zipf's law by rank.
fn size(mix: &Mix, rng: &mut Rng) -> u32 {
    let share = 1.0 - uniform(rng);
    share.powf(-mix.zipf).min(f64::from(mix.largest)) as u32
}

/// A random number, at least 0 and below 1.
fn uniform(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}
