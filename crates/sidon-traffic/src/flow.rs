//! The five-tuple of a packet as a key: addresses, ports and protocol.
//!
//! A [`FlowKey`] is 13 bytes for IPv4 and 37 for IPv6, and is hashed as exactly these bytes:
//! ```text
//! | source 4 or 16 | destination 4 or 16 | source port 2 | destination port 2 | protocol 1 |
//! ```
//! in network order. Ports are 0 if the packet has none: protocols other than TCP, UDP, UDP-Lite,
//! SCTP and DCCP, and every fragment except the first. A key read from a packet is directed;
//! [`FlowKey::undirected`] is the same for both directions.

use sidon::{Digest, Key, count::Stored, key::Hasher};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

/// Bytes of an IPv4 key.
pub const V4: usize = 13;
/// Bytes of an IPv6 key.
pub const V6: usize = 37;

/// The numbers of the protocols that are named here.
pub mod protocol {
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// IPv4 inside IP.
    pub const IPIP: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// DCCP.
    pub const DCCP: u8 = 33;
    /// IPv6 inside IP.
    pub const IPV6: u8 = 41;
    /// Generic routing encapsulation.
    pub const GRE: u8 = 47;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
    /// UDP-Lite.
    pub const UDP_LITE: u8 = 136;

    /// Numbers and names, in the order of the numbers.
    const NAMES: [(u8, &str); 18] = [
        (ICMP, "icmp"),
        (2, "igmp"),
        (IPIP, "ipip"),
        (TCP, "tcp"),
        (9, "igrp"),
        (UDP, "udp"),
        (DCCP, "dccp"),
        (IPV6, "ipv6"),
        (46, "rsvp"),
        (GRE, "gre"),
        (50, "esp"),
        (51, "ah"),
        (ICMPV6, "icmp6"),
        (89, "ospf"),
        (103, "pim"),
        (112, "vrrp"),
        (SCTP, "sctp"),
        (UDP_LITE, "udplite"),
    ];

    /// The name of a protocol, if it is a usual one.
    pub fn name(number: u8) -> Option<&'static str> {
        NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
    }

    /// The number of a protocol by its name.
    pub fn number(name: &str) -> Option<u8> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
    }

    /// Whether its header starts with two ports.
    #[inline]
    pub fn has_ports(number: u8) -> bool {
        matches!(number, TCP | UDP | DCCP | SCTP | UDP_LITE)
    }
}

/// A five-tuple: two addresses of one family, two ports, a protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// The encoding, padded with zeros.
    bytes: [u8; V6],
    /// The length of the encoding: [`V4`] or [`V6`].
    len: u8,
}

impl FlowKey {
    /// The key of an IPv4 packet.
    #[inline]
    pub fn v4(source: [u8; 4], destination: [u8; 4], ports: [u16; 2], protocol: u8) -> Self {
        let mut bytes = [0; V6];
        bytes[..4].copy_from_slice(&source);
        bytes[4..8].copy_from_slice(&destination);
        bytes[8..10].copy_from_slice(&ports[0].to_be_bytes());
        bytes[10..12].copy_from_slice(&ports[1].to_be_bytes());
        bytes[12] = protocol;
        FlowKey { bytes, len: V4 as u8 }
    }

    /// The key of an IPv6 packet.
    #[inline]
    pub fn v6(source: [u8; 16], destination: [u8; 16], ports: [u16; 2], protocol: u8) -> Self {
        let mut bytes = [0; V6];
        bytes[..16].copy_from_slice(&source);
        bytes[16..32].copy_from_slice(&destination);
        bytes[32..34].copy_from_slice(&ports[0].to_be_bytes());
        bytes[34..36].copy_from_slice(&ports[1].to_be_bytes());
        bytes[36] = protocol;
        FlowKey { bytes, len: V6 as u8 }
    }

    /// The key between two ends, `None` if their address families differ.
    pub fn between(source: SocketAddr, destination: SocketAddr, protocol: u8) -> Option<Self> {
        let ports = [source.port(), destination.port()];
        match (source.ip(), destination.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                Some(Self::v4(a.octets(), b.octets(), ports, protocol))
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                Some(Self::v6(a.octets(), b.octets(), ports, protocol))
            }
            _ => None,
        }
    }

    /// The 13 or 37 bytes that the key is hashed as.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        if self.is_v4() { &self.bytes[..V4] } else { &self.bytes }
    }

    /// The key whose [`FlowKey::as_bytes`] gave `bytes`. `None` if the length is neither 13 nor 37.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != V4 && bytes.len() != V6 {
            return None;
        }
        let mut key = FlowKey { bytes: [0; V6], len: bytes.len() as u8 };
        key.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(key)
    }

    /// Whether the addresses are IPv4.
    #[inline]
    pub fn is_v4(&self) -> bool {
        self.len == V4 as u8
    }

    /// The protocol's number.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.bytes[usize::from(self.len) - 1]
    }

    /// The source address.
    #[inline]
    pub fn source(&self) -> IpAddr {
        self.address(0)
    }

    /// The destination address.
    #[inline]
    pub fn destination(&self) -> IpAddr {
        self.address(1)
    }

    /// The source port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        let at = usize::from(self.len) - 5;
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// The destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        let at = usize::from(self.len) - 3;
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    #[inline]
    fn address(&self, which: usize) -> IpAddr {
        if self.is_v4() {
            let at = 4 * which;
            let octets: [u8; 4] = std::array::from_fn(|i| self.bytes[at + i]);
            IpAddr::V4(Ipv4Addr::from(octets))
        } else {
            let at = 16 * which;
            let octets: [u8; 16] = std::array::from_fn(|i| self.bytes[at + i]);
            IpAddr::V6(Ipv6Addr::from(octets))
        }
    }

    /// The key of the opposite direction.
    #[inline]
    pub fn reversed(&self) -> Self {
        if self.is_v4() { self.turned::<4>() } else { self.turned::<16>() }
    }

    /// Swaps the ends of a key with addresses of `W` bytes. A constant `W` makes each copy a fixed
    /// size.
    #[inline(always)]
    fn turned<const W: usize>(&self) -> Self {
        let mut back = *self;
        back.bytes[..W].copy_from_slice(&self.bytes[W..2 * W]);
        back.bytes[W..2 * W].copy_from_slice(&self.bytes[..W]);
        back.bytes[2 * W..2 * W + 2].copy_from_slice(&self.bytes[2 * W + 2..2 * W + 4]);
        back.bytes[2 * W + 2..2 * W + 4].copy_from_slice(&self.bytes[2 * W..2 * W + 2]);
        back
    }

    /// Whether the source is the lower end, by address and then by port. Such a key equals its
    /// undirected form.
    #[inline]
    pub fn is_ordered(&self) -> bool {
        if self.is_v4() {
            return v4_is_ordered(self.v4_number());
        }
        let address = |at| u128::from_be_bytes(std::array::from_fn(|i| self.bytes[at + i]));
        (address(0), self.source_port()) <= (address(16), self.destination_port())
    }

    /// The encoding of an IPv4 key as one little-endian number.
    #[inline(always)]
    pub(crate) fn v4_number(&self) -> u128 {
        u128::from_le_bytes(std::array::from_fn(|i| self.bytes[i]))
    }

    /// The IPv4 key with this number.
    #[inline(always)]
    pub(crate) fn from_v4_number(number: u128) -> Self {
        let mut bytes = [0; V6];
        bytes[..16].copy_from_slice(&number.to_le_bytes());
        FlowKey { bytes, len: V4 as u8 }
    }

    /// One key for both directions: this one or [`FlowKey::reversed`], whichever has the lower
    /// end first.
    #[inline]
    pub fn undirected(&self) -> Self {
        if self.is_v4() {
            return Self::from_v4_number(v4_undirected(self.v4_number()));
        }
        if self.is_ordered() { *self } else { self.reversed() }
    }

    /// Source and destination, each as the IP version, then the address, padded with zeros to 16
    /// bytes.
    #[inline(always)]
    pub(crate) fn ends(&self) -> [[u8; 17]; 2] {
        if self.is_v4() {
            return v4_ends(self.v4_number());
        }
        let mut ends = [[0; 17]; 2];
        for (end, address) in ends.iter_mut().zip(self.bytes.as_chunks::<16>().0) {
            end[0] = 6;
            end[1..].copy_from_slice(address);
        }
        ends
    }

    /// The key of the two hosts alone, in this direction: ports and protocol are zero.
    #[inline]
    pub fn hosts(&self) -> Self {
        let mut hosts = *self;
        let ports = usize::from(self.len) - 5;
        hosts.bytes[ports..usize::from(self.len)].fill(0);
        hosts
    }

    /// The two ends joined by `<->`, for messages.
    pub fn two_way(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, "<->").expect("a string takes any text");
        text
    }

    /// Community ID, version 1: the name of this flow in other tools, the same for both directions.
    /// For ICMP it depends on type and code, which a key does not hold: `icmp` gives them. `None`
    /// for ICMPv6 over IPv4, which is invalid but can be sent. Corelight, "Community ID Flow
    /// Hashing".
    pub fn community_id(&self, seed: u16, icmp: Option<(u8, u8)>) -> Option<String> {
        let protocol = self.protocol();
        let ports = match icmp {
            _ if protocol::has_ports(protocol) => {
                Some((self.source_port(), self.destination_port()))
            }
            Some((kind, code)) if matches!(protocol, protocol::ICMP | protocol::ICMPV6) => {
                Some((kind.into(), code.into()))
            }
            _ => None,
        };
        let (source_port, destination_port) = ports.unzip();
        community_id::calculate_community_id(
            seed,
            self.source(),
            self.destination(),
            source_port,
            destination_port,
            protocol,
            false,
        )
        .ok()
    }

    fn write(&self, f: &mut impl fmt::Write, arrow: &str) -> fmt::Result {
        let protocol = self.protocol();
        let (source, destination) = (self.source(), self.destination());
        if protocol::has_ports(protocol) {
            let source = SocketAddr::new(source, self.source_port());
            let destination = SocketAddr::new(destination, self.destination_port());
            write!(f, "{source} {arrow} {destination} ")?;
        } else {
            write!(f, "{source} {arrow} {destination} ")?;
        }
        match protocol::name(protocol) {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "proto {protocol}"),
        }
    }
}

/// Whether the source of the IPv4 key with this number is the lower end, or equal to the other.
#[inline(always)]
fn v4_is_ordered(number: u128) -> bool {
    let (addresses, ports) = ((number as u64).swap_bytes(), ((number >> 64) as u32).swap_bytes());
    let ports = u64::from(ports);
    let source = (addresses >> 32) << 16 | ports >> 16;
    let destination = (addresses & u64::from(u32::MAX)) << 16 | ports & u64::from(u16::MAX);
    source <= destination
}

/// The number of the undirected key. Rotates instead of branching, because the direction of a
/// packet is unpredictable.
#[inline(always)]
pub(crate) fn v4_undirected(number: u128) -> u128 {
    let turn = u32::from(!v4_is_ordered(number));
    let addresses = (number as u64).rotate_left(32 * turn);
    let ports = ((number >> 64) as u32).rotate_left(16 * turn);
    let protocol = number >> 96 << 96;
    protocol | u128::from(ports) << 64 | u128::from(addresses)
}

/// Source and destination of the IPv4 key with this number.
#[inline(always)]
pub(crate) fn v4_ends(number: u128) -> [[u8; 17]; 2] {
    [number as u32, (number >> 32) as u32].map(|address| {
        let mut end = [0; 17];
        // The version, four address bytes, three zeros.
        end[..8].copy_from_slice(&(u64::from(address) << 8 | 4).to_le_bytes());
        end
    })
}

/// `10.0.0.1:443 -> 10.0.0.2:5555 tcp`. Protocols without ports print addresses only.
impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, "->")
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowKey({self})")
    }
}

/// The error for a text that is not a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAFlow;

impl fmt::Display for NotAFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a flow: expected something like \"10.0.0.1:443 -> 10.0.0.2:5555 tcp\"")
    }
}

impl std::error::Error for NotAFlow {}

/// Parses the text that [`FlowKey`] displays, with `->` or `<->`.
impl FromStr for FlowKey {
    type Err = NotAFlow;

    fn from_str(text: &str) -> Result<Self, NotAFlow> {
        let mut words = text.split_whitespace();
        let mut word = || words.next().ok_or(NotAFlow);
        let (source, arrow, destination, name) = (word()?, word()?, word()?, word()?);
        let protocol = match name {
            "proto" => word()?.parse().map_err(|_| NotAFlow)?,
            name => protocol::number(name).ok_or(NotAFlow)?,
        };
        if !matches!(arrow, "->" | "<->") || word().is_ok() {
            return Err(NotAFlow);
        }
        let end = |text: &str| {
            if protocol::has_ports(protocol) {
                text.parse().map_err(|_| NotAFlow)
            } else {
                text.parse().map(|ip| SocketAddr::new(ip, 0)).map_err(|_| NotAFlow)
            }
        };
        FlowKey::between(end(source)?, end(destination)?, protocol).ok_or(NotAFlow)
    }
}

/// Hashed as [`FlowKey::as_bytes`].
impl Key for FlowKey {
    #[inline(always)]
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
        match self.bytes.first_chunk::<V4>() {
            Some(bytes) if self.is_v4() => hasher.digest(bytes),
            _ => hasher.digest(&self.bytes),
        }
    }
}

impl Stored for FlowKey {
    /// The encoding padded with zeros to [`V6`] bytes, then the encoding's length.
    type Parts = [u8; V6 + 1];

    #[inline(always)]
    fn parts(self) -> [u8; V6 + 1] {
        let mut bytes = [0; V6 + 1];
        bytes[..V6].copy_from_slice(&self.bytes);
        bytes[V6] = self.len;
        bytes
    }

    #[inline(always)]
    fn from_parts(bytes: [u8; V6 + 1]) -> Self {
        let mut key = FlowKey { bytes: [0; V6], len: V6 as u8 };
        key.bytes.copy_from_slice(&bytes[..V6]);
        if bytes[V6] == V4 as u8 {
            key.len = V4 as u8;
        }
        key
    }

    /// Compares five words of eight bytes, two of which overlap, without a call to `memcmp`.
    #[inline(always)]
    fn is(&self, bytes: &[u8]) -> bool {
        let Some(stored) = bytes.first_chunk::<{ V6 + 1 }>() else { return false };
        let own = self.parts();
        let word =
            |of: &[u8; V6 + 1], at: usize| u64::from_le_bytes(std::array::from_fn(|i| of[at + i]));
        let mut differ = 0;
        for at in [0, 8, 16, 24, V6 - 7] {
            differ |= word(&own, at) ^ word(stored, at);
        }
        differ == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::Seed;
    use sidon_kit::Rng;

    fn key(text: &str) -> FlowKey {
        text.parse().unwrap()
    }

    fn random(rng: &mut Rng) -> FlowKey {
        let ports = [rng.below(3) as u16, rng.below(3) as u16];
        let protocol = [6, 17, 1, 200][rng.below(4) as usize];
        let ports = if protocol::has_ports(protocol) { ports } else { [0, 0] };
        if rng.chance(0.5) {
            FlowKey::v4([10, 0, 0, rng.below(3) as u8], [10, 0, 0, 1], ports, protocol)
        } else {
            let mut source = [0; 16];
            source[15] = rng.below(3) as u8;
            FlowKey::v6(source, [0; 16], ports, protocol)
        }
    }

    #[test]
    fn a_key_is_the_bytes_that_the_documentation_draws() {
        let v4 = key("1.2.3.4:258 -> 5.6.7.8:772 tcp");
        assert_eq!(v4.as_bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 6]);
        let v6 = key("[::1]:258 -> [::2]:772 udp");
        let mut bytes = [0; V6];
        (bytes[15], bytes[31]) = (1, 2);
        bytes[32..].copy_from_slice(&[1, 2, 3, 4, 17]);
        assert_eq!(v6.as_bytes(), bytes);
        for key in [v4, v6] {
            assert_eq!(FlowKey::from_bytes(key.as_bytes()), Some(key));
            assert_eq!(key.digest(Seed(7)), key.as_bytes().digest(Seed(7)));
        }
        assert_eq!(FlowKey::from_bytes(&[0; 14]), None);
    }

    #[test]
    fn keys_print_as_they_are_read() {
        for text in [
            "10.0.0.1:443 -> 10.0.0.2:5555 tcp",
            "[2001:db8::1]:53 -> [::1]:1024 udp",
            "10.0.0.1 -> 10.0.0.2 icmp",
            "::1 -> ::2 icmp6",
            "10.0.0.1 -> 224.0.0.1 proto 200",
        ] {
            assert_eq!(key(text).to_string(), text);
        }
        let flow = key("10.0.0.1:443 -> 10.0.0.2:5555 tcp");
        assert_eq!(flow.two_way(), "10.0.0.1:443 <-> 10.0.0.2:5555 tcp");
        for text in ["", "10.0.0.1 -> 10.0.0.2 tcp", "10.0.0.1:1 -> [::1]:1 tcp", "a b c d"] {
            assert_eq!(text.parse::<FlowKey>(), Err(NotAFlow), "{text}");
        }
    }

    #[test]
    fn both_directions_have_one_undirected_key() {
        let mut rng = Rng::seeded(1);
        for _ in 0..10_000 {
            let key = random(&mut rng);
            let back = key.reversed();
            assert_eq!(back.reversed(), key);
            assert_eq!(key.undirected(), back.undirected());
            assert!(key.undirected().is_ordered());
            assert!([key, back].contains(&key.undirected()));
            assert_eq!(
                (back.source(), back.destination_port()),
                (key.destination(), key.source_port())
            );
            assert_eq!(key.community_id(0, Some((3, 4))).map(|id| id.len()), Some(30));
        }
    }

    #[test]
    fn every_protocol_has_a_community_id_but_icmpv6_over_ipv4() {
        for number in 0..=255 {
            let v4 = FlowKey::v4([10, 0, 0, 1], [10, 0, 0, 2], [0; 2], number);
            let v6 = FlowKey::v6([1; 16], [2; 16], [0; 2], number);
            for icmp in [None, Some((8, 0)), Some((255, 255))] {
                assert_eq!(v4.community_id(0, icmp).is_none(), number == protocol::ICMPV6);
                assert!(v6.community_id(0, icmp).is_some(), "{number}");
            }
        }
    }

    #[test]
    fn the_key_of_two_hosts_has_neither_ports_nor_protocol() {
        for (one, other) in [
            ("10.0.0.9:443 -> 10.0.0.2:5555 tcp", "10.0.0.9:53 -> 10.0.0.2:7 udp"),
            ("[::9]:443 -> [::2]:5555 tcp", "[::9]:53 -> [::2]:7 udp"),
        ] {
            let (one, other) = (key(one), key(other));
            assert_eq!(one.hosts(), other.hosts());
            assert_eq!(one.hosts().reversed(), other.reversed().hosts());
            let hosts = one.hosts();
            assert_eq!((hosts.source(), hosts.destination()), (one.source(), one.destination()));
            let rest = (hosts.source_port(), hosts.destination_port(), hosts.protocol());
            assert_eq!(rest, (0, 0, 0));
        }
    }

    #[test]
    fn a_batch_of_mixed_families_hashes_as_one_by_one() {
        let mut rng = Rng::seeded(2);
        for n in [0, 1, 63, 64, 65, 300] {
            let keys: Vec<_> = (0..n).map(|_| random(&mut rng)).collect();
            let mut digests = vec![Digest(0); n];
            sidon::key::digests(Seed(5), &keys, &mut digests);
            let single: Vec<_> = keys.iter().map(|key| key.digest(Seed(5))).collect();
            assert_eq!(digests, single);
        }
    }

    /// Values from the baseline of the reference implementation's own test captures.
    #[test]
    fn community_ids_are_those_of_the_specification() {
        let id = |text: &str, icmp| key(text).community_id(0, icmp).unwrap();
        let tcp = "128.232.110.120:34855 -> 66.35.250.204:80 tcp";
        assert_eq!(id(tcp, None), "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
        assert_eq!(key(tcp).reversed().community_id(0, None), Some(id(tcp, None)));
        let other = key(tcp).community_id(1, None);
        assert_eq!(other.as_deref(), Some("1:3V71V58M3Ksw/yuFALMcW0LAHvc="));
        let udp = "192.168.1.52:54585 -> 8.8.8.8:53 udp";
        assert_eq!(id(udp, None), "1:d/FP5EW3wiY1vCndhwleRRKHowQ=");
        let echo = "192.168.0.89 -> 192.168.0.1 icmp";
        assert_eq!(id(echo, Some((8, 0))), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk=");
        let back = key(echo).reversed().community_id(0, Some((0, 0)));
        assert_eq!(back, Some(id(echo, Some((8, 0)))));
    }
}
