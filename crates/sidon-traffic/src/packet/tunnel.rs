//! The packet inside a packet: GRE, VXLAN, Geneve, IP in IP.

use super::{Cut, Fragment, be16, be32, ip, ip::Decoded, link, link::Network};
use crate::{Packet, flow::protocol, packet::Vlans, source::Frame, work::step};

/// Most tunnels inside one another that are decoded.
const DEPTH: u8 = 8;

/// The innermost packet that can be decoded: the outer one if there is no other.
pub(super) fn innermost(frame: &Frame<'_>, outer: Decoded) -> Packet {
    let mut packet = outer.packet;
    let mut decoded = outer;
    for depth in 1..=DEPTH {
        step();
        // The inner packet ends where the outer one does.
        let end = decoded.end.max(decoded.at).min(frame.bytes.len());
        let held = Frame { bytes: &frame.bytes[..end], ..*frame };
        let Some(network) = inner(&held, &decoded) else { break };
        let Ok(next) = ip::decode(&held, &network, Cut::of(&held)) else { break };
        let vlans = if network.vlans.tags() > 0 { network.vlans } else { packet.vlans };
        let captured = frame.bytes.len() as u32;
        packet = Packet { tunnels: depth, captured, vlans, ..next.packet };
        decoded = next;
    }
    packet
}

/// The network header of the inner packet.
fn inner(frame: &Frame<'_>, outer: &Decoded) -> Option<Network> {
    let (bytes, at, cut) = (frame.bytes, outer.at, Cut::of(frame));
    if outer.packet.fragment == Fragment::Later || at >= bytes.len() {
        return None;
    }
    let number = outer.packet.flow.protocol();
    if let Some(kind) = ip::inside(number) {
        return Some(Network { kind, at, vlans: Vlans::default() });
    }
    match (number, outer.packet.flow.destination_port()) {
        (protocol::GRE, _) => gre(bytes, at, cut),
        (protocol::UDP, 4789 | 8472) => {
            let says_network = bytes.get(at + 8)? & 0x08 != 0;
            says_network.then(|| link::ethernet(bytes, at + 16, cut).ok()).flatten()
        }
        (protocol::UDP, 6081) => {
            let options = usize::from(bytes.get(at + 8)? & 0x3f) * 4;
            carried(be16(bytes, at + 10)?, bytes, at + 16 + options, cut)
        }
        _ => None,
    }
}

fn gre(bytes: &[u8], at: usize, cut: Cut) -> Option<Network> {
    let flags = be16(bytes, at)?;
    let kind = be16(bytes, at + 2)?;
    let words = |bits: u16| (flags & bits).count_ones() as usize;
    match flags & 7 {
        // Optional words: checksum or routing, key, sequence number. Source routing is obsolete.
        0 if flags & 0x4000 == 0 => carried(kind, bytes, at + 4 + 4 * words(0xb000), cut),
        // Point-to-point tunnelling always has a key, and sometimes an acknowledgement.
        1 if kind == 0x880b => {
            let start = at + 4 + 4 * words(0x3080);
            let start = match be32(bytes, start)? >> 16 {
                0xff03 => start + 2,
                _ => start,
            };
            let (kind, at) = link::ppp(bytes, start, cut).ok()?;
            Some(Network { kind, at, vlans: Vlans::default() })
        }
        _ => None,
    }
}

/// The network header that an EtherType announces; Ethernet has one, too.
fn carried(kind: u16, bytes: &[u8], at: usize, cut: Cut) -> Option<Network> {
    match kind {
        0x6558 => link::ethernet(bytes, at, cut).ok(),
        0..=1500 => None,
        _ => link::behind(kind, bytes, at, cut).ok(),
    }
}
