//! IPv4 and IPv6: addresses, fragments, and the header that comes after all options.

use super::{
    Cut, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Fragment, Layer, Malformed, Packet, Undecoded, be16,
    link::Network, transport,
};
use crate::{FlowKey, flow::protocol, source::Frame, work::step};

/// Extension headers that a packet may chain.
const EXTENSIONS: u32 = 32;

/// A packet, and the position of its payload in the frame.
#[derive(Clone, Copy)]
pub(super) struct Decoded {
    pub(super) packet: Packet,
    /// The first byte after the IP headers.
    pub(super) at: usize,
    /// The end of the payload, by the length in the IP header or by the end of the capture.
    pub(super) end: usize,
}

/// The fields of an IP header.
struct Header {
    fragment: Fragment,
    protocol: u8,
    ttl: u8,
    /// The position after the headers.
    at: usize,
    /// Bytes after the headers, on the wire.
    rest: usize,
}

#[inline]
pub(super) fn decode(frame: &Frame<'_>, network: &Network, cut: Cut) -> Result<Decoded, Undecoded> {
    let at = network.at;
    let version = *frame.bytes.get(at).ok_or_else(|| cut.short(Layer::Network))? >> 4;
    match (version, network.kind) {
        (4, ETHERTYPE_IPV4) => {
            let header = v4(frame, at, cut)?;
            let source = take(frame.bytes, at + 12);
            let destination = take(frame.bytes, at + 16);
            finish(frame, network, &header, cut, |ports| {
                FlowKey::v4(source, destination, ports, header.protocol)
            })
        }
        (6, ETHERTYPE_IPV6) => {
            let header = v6(frame, at, cut)?;
            let source = take(frame.bytes, at + 8);
            let destination = take(frame.bytes, at + 24);
            finish(frame, network, &header, cut, |ports| {
                FlowKey::v6(source, destination, ports, header.protocol)
            })
        }
        _ => Err(Undecoded::Malformed(Malformed::Version)),
    }
}

/// The `N` bytes at `at`. The check of the header's length ensures that they exist.
#[inline(always)]
fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

#[inline(always)]
fn finish(
    frame: &Frame<'_>,
    network: &Network,
    header: &Header,
    cut: Cut,
    flow: impl Fn([u16; 2]) -> FlowKey,
) -> Result<Decoded, Undecoded> {
    let bytes = frame.bytes;
    let end = bytes.len().min(header.at + header.rest);
    let carried = bytes.get(header.at..end).unwrap_or(&[]);
    let transport = if header.fragment == Fragment::Later {
        transport::Read::none()
    } else {
        // A header that exceeds the packet's own length was not cut by the capture.
        let cut = if end == header.at + header.rest { Cut(false) } else { cut };
        transport::read(header.protocol, carried, cut)?
    };
    let packet = Packet {
        time_ns: frame.time_ns,
        flow: flow(transport.ports),
        wire_len: frame.wire_len,
        captured: bytes.len() as u32,
        payload_len: header.rest.saturating_sub(transport.header) as u32,
        transport: transport.what,
        fragment: header.fragment,
        ttl: header.ttl,
        vlans: network.vlans,
        tunnels: 0,
    };
    Ok(Decoded { packet, at: header.at, end })
}

/// Bytes on the wire starting at `at`.
fn left(frame: &Frame<'_>, at: usize) -> usize {
    (frame.wire_len as usize).max(frame.bytes.len()).saturating_sub(at)
}

#[inline]
fn v4(frame: &Frame<'_>, at: usize, cut: Cut) -> Result<Header, Undecoded> {
    let short = || cut.short(Layer::Network);
    let fixed: &[u8; 20] = frame.bytes[at..].first_chunk().ok_or_else(short)?;
    let length = usize::from(fixed[0] & 0x0f) * 4;
    if length < 20 {
        return Err(Undecoded::Malformed(Malformed::HeaderLength));
    }
    let total = match usize::from(u16::from_be_bytes([fixed[2], fixed[3]])) {
        // The sender left the length to its hardware: the packet is the rest of the frame.
        0 => left(frame, at).max(length),
        total => total,
    };
    if total < length {
        return Err(Undecoded::Malformed(Malformed::TotalLength));
    }
    if frame.bytes.len() < at + length {
        return Err(short());
    }
    let part = u16::from_be_bytes([fixed[6], fixed[7]]);
    let fragment = match (part & 0x1fff, part & 0x2000) {
        (0, 0) => Fragment::Whole,
        (0, _) => Fragment::First,
        _ => Fragment::Later,
    };
    Ok(Header {
        fragment,
        protocol: fixed[9],
        ttl: fixed[8],
        at: at + length,
        rest: total - length,
    })
}

#[inline]
fn v6(frame: &Frame<'_>, start: usize, cut: Cut) -> Result<Header, Undecoded> {
    let short = || cut.short(Layer::Network);
    let bytes = frame.bytes;
    let fixed: &[u8; 40] = bytes[start..].first_chunk().ok_or_else(short)?;
    let ttl = fixed[7];
    let total = match usize::from(u16::from_be_bytes([fixed[4], fixed[5]])) {
        // A jumbogram, or a length left to the hardware: the packet is the rest of the frame.
        0 => left(frame, start).max(40),
        payload => payload + 40,
    };
    let mut fragment = Fragment::Whole;
    let mut protocol = fixed[6];
    let mut at = start + 40;
    for _ in 0..EXTENSIONS {
        step();
        let (next, length) = match protocol {
            // Hop-by-hop, routing, destination options, mobility, HIP, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => {
                let length = *bytes.get(at + 1).ok_or_else(short)?;
                (bytes[at], (usize::from(length) + 1) * 8)
            }
            51 => {
                let length = *bytes.get(at + 1).ok_or_else(short)?;
                (bytes[at], (usize::from(length) + 2) * 4)
            }
            44 => {
                let part = be16(bytes, at + 2).ok_or_else(short)?;
                if part & 0xfff8 != 0 {
                    fragment = Fragment::Later;
                } else if part & 1 != 0 && fragment == Fragment::Whole {
                    fragment = Fragment::First;
                }
                (bytes[at], 8)
            }
            _ => {
                let rest = (start + total).saturating_sub(at);
                return Ok(Header { fragment, protocol, ttl, at, rest });
            }
        };
        protocol = next;
        at += length;
        if fragment == Fragment::Later {
            let rest = (start + total).saturating_sub(at);
            return Ok(Header { fragment, protocol, ttl, at, rest });
        }
    }
    Err(Undecoded::Malformed(Malformed::Depth))
}

/// The EtherType of the IP packet that this protocol carries; `None` for other protocols.
pub(super) fn inside(number: u8) -> Option<u16> {
    match number {
        protocol::IPIP => Some(ETHERTYPE_IPV4),
        protocol::IPV6 => Some(ETHERTYPE_IPV6),
        _ => None,
    }
}
