//! Decodes a frame to a packet, or to the one reason why that fails.
//!
//! Bounds-checked slices read the headers in place: link, VLAN tags, MPLS labels, PPPoE, IP with
//! its options or extension headers, ports. The result is a small `Copy` value. Every frame has
//! exactly one outcome, a [`Packet`] or an [`Undecoded`], so that the counts add up.
//!
//! ```text
//! Frame -> link.rs: where is the network header? -> ip.rs: addresses, fragments, protocol
//!       -> transport.rs: ports, flags -> tunnel.rs, on request: the same again inside
//! ```
//! `usual.rs` reads the most common frames in one step.

mod ip;
mod link;
mod transport;
mod tunnel;
mod usual;

pub(crate) use link::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, first, hardware, is_vlan};
pub use transport::{Tcp, TcpFlags, Transport};

use crate::{FlowKey, LinkType, source::Frame};
use std::fmt;

/// The decoded fields of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// The directed five-tuple.
    pub flow: FlowKey,
    /// Bytes on the wire, link header included.
    pub wire_len: u32,
    /// Bytes captured.
    pub captured: u32,
    /// Bytes after the transport header, by the length in the IP header. Without a transport
    /// header, bytes after the IP headers.
    pub payload_len: u32,
    /// Fields of the transport header other than the ports.
    pub transport: Transport,
    /// Whether the packet is a fragment.
    pub fragment: Fragment,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// The VLAN tags, outermost first.
    pub vlans: Vlans,
    /// Number of tunnels around the packet.
    pub tunnels: u8,
}

impl Packet {
    /// The TCP flags; empty for other protocols.
    #[inline]
    pub fn tcp_flags(&self) -> TcpFlags {
        match self.transport {
            Transport::Tcp(tcp) => tcp.flags,
            _ => TcpFlags::default(),
        }
    }

    /// Community ID, version 1; see [`FlowKey::community_id`].
    pub fn community_id(&self, seed: u16) -> Option<String> {
        let icmp = match self.transport {
            Transport::Icmp { kind, code } => Some((kind, code)),
            _ => None,
        };
        self.flow.community_id(seed, icmp)
    }
}

/// The part of a packet that a fragment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// The whole packet.
    Whole,
    /// The first part: it holds the transport header, or the start of it.
    First,
    /// A later part: it has no ports.
    Later,
}

/// The VLAN tags of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Vlans {
    ids: [u16; 2],
    tags: u8,
}

impl Vlans {
    /// How many tags there are.
    pub fn tags(&self) -> u8 {
        self.tags
    }

    /// The VLANs of the first two tags, outermost first. A priority tag has VLAN 0.
    pub fn ids(&self) -> &[u16] {
        &self.ids[..usize::from(self.tags).min(2)]
    }

    /// The places of both VLANs; 0 where there is no tag.
    pub(crate) fn both(&self) -> [u16; 2] {
        self.ids
    }

    /// The tags with these VLANs; `None` if a VLAN has no tag.
    pub(crate) fn of(ids: [u16; 2], tags: u8) -> Option<Self> {
        let has_tags = ids.iter().skip(tags.into()).all(|&id| id == 0);
        has_tags.then_some(Vlans { ids, tags })
    }

    #[inline]
    pub(crate) fn push(&mut self, id: u16) {
        if let Some(place) = self.ids.get_mut(usize::from(self.tags)) {
            *place = id;
        }
        self.tags += 1;
    }
}

/// A layer of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Ethernet and its like, with tags and labels.
    Link,
    /// IP, with options and extension headers.
    Network,
    /// TCP, UDP and so on, as far as the ports.
    Transport,
}

/// Why a frame cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Undecoded {
    /// The link type is not supported.
    Link(LinkType),
    /// The frame does not carry IP. The value is its EtherType (ARP is 0x0806), or 0 for a protocol
    /// without one.
    Network(u16),
    /// The capture ends inside the headers of this layer: the snap length was too short.
    Truncated(Layer),
    /// The bytes contradict themselves.
    Malformed(Malformed),
}

/// The contradiction in the bytes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Malformed {
    /// The packet was captured whole, and ends inside the headers of this layer.
    Short(Layer),
    /// The version of IP is not the one that the header before it announced.
    Version,
    /// The IPv4 header is shorter than its fixed part.
    HeaderLength,
    /// The IPv4 packet is shorter than its header.
    TotalLength,
    /// More VLAN tags, labels or extension headers than real packets have.
    Depth,
}

impl Undecoded {
    /// One word for tables and files.
    pub fn name(&self) -> &'static str {
        match self {
            Undecoded::Link(_) => "unsupported_link_type",
            Undecoded::Network(0x0806) => "arp",
            Undecoded::Network(_) => "not_ip",
            Undecoded::Truncated(Layer::Link) => "truncated_link",
            Undecoded::Truncated(Layer::Network) => "truncated_network",
            Undecoded::Truncated(Layer::Transport) => "truncated_transport",
            Undecoded::Malformed(Malformed::Short(Layer::Link)) => "malformed_short_link",
            Undecoded::Malformed(Malformed::Short(Layer::Network)) => "malformed_short_network",
            Undecoded::Malformed(Malformed::Short(Layer::Transport)) => "malformed_short_transport",
            Undecoded::Malformed(Malformed::Version) => "malformed_ip_version",
            Undecoded::Malformed(Malformed::HeaderLength) => "malformed_header_length",
            Undecoded::Malformed(Malformed::TotalLength) => "malformed_total_length",
            Undecoded::Malformed(Malformed::Depth) => "malformed_depth",
        }
    }
}

impl fmt::Display for Undecoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layer = |layer: &Layer| match layer {
            Layer::Link => "link",
            Layer::Network => "network",
            Layer::Transport => "transport",
        };
        match self {
            Undecoded::Link(link) => write!(f, "{link} is not decoded"),
            Undecoded::Network(0) => write!(f, "not IP"),
            Undecoded::Network(number) => write!(f, "not IP but Ethernet type {number:#06x}"),
            Undecoded::Truncated(at) => {
                write!(f, "the capture ends inside the {} header", layer(at))
            }
            Undecoded::Malformed(Malformed::Short(at)) => {
                write!(f, "the packet ends inside the {} header", layer(at))
            }
            Undecoded::Malformed(Malformed::Version) => {
                write!(f, "an IP version that was not announced")
            }
            Undecoded::Malformed(Malformed::HeaderLength) => {
                write!(f, "an impossible IPv4 header length")
            }
            Undecoded::Malformed(Malformed::TotalLength) => {
                write!(f, "an IPv4 packet shorter than its header")
            }
            Undecoded::Malformed(Malformed::Depth) => write!(f, "too many headers"),
        }
    }
}

impl std::error::Error for Undecoded {}

/// The packet that counts when one is carried inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tunnels {
    /// The outermost IP header.
    #[default]
    Outer,
    /// The innermost that can be decoded, in GRE, VXLAN, Geneve and IP in IP.
    Inner,
}

/// Decodes frames to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decoder {
    /// The packet that counts when one is carried inside another.
    pub tunnels: Tunnels,
}

impl Decoder {
    /// The packet in a frame, or why it cannot be decoded.
    #[inline]
    pub fn decode(&self, frame: &Frame<'_>) -> Result<Packet, Undecoded> {
        match usual::packet(frame) {
            Some(packet) if self.tunnels == Tunnels::Outer => Ok(packet),
            _ => self.by_layers(frame),
        }
    }

    /// Decodes any frame, layer by layer.
    fn by_layers(&self, frame: &Frame<'_>) -> Result<Packet, Undecoded> {
        let cut = Cut::of(frame);
        let network = link::network(frame.link, frame.bytes, cut)?;
        let outer = ip::decode(frame, &network, cut)?;
        match self.tunnels {
            Tunnels::Outer => Ok(outer.packet),
            Tunnels::Inner => Ok(tunnel::innermost(frame, outer)),
        }
    }
}

/// Whether the capture cut the frame: an incomplete header is then truncated, else malformed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut(bool);

impl Cut {
    #[inline]
    pub(crate) fn of(frame: &Frame<'_>) -> Self {
        Cut((frame.bytes.len() as u64) < u64::from(frame.wire_len))
    }

    #[cold]
    fn short(self, layer: Layer) -> Undecoded {
        if self.0 {
            Undecoded::Truncated(layer)
        } else {
            Undecoded::Malformed(Malformed::Short(layer))
        }
    }
}

/// The two bytes from `at` on, in network order.
#[inline(always)]
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The four bytes from `at` on, in network order.
#[inline(always)]
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
