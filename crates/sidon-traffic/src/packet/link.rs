//! Finds the network header after any link header, and its protocol.

use super::{Cut, Layer, Malformed, Undecoded, Vlans, be16};
use crate::{LinkType, work::step};

/// The Ethernet type of IPv4.
pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
/// The Ethernet type of IPv6.
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;

/// Tags and labels that a frame may stack, and words of a radiotap header that list its fields.
const DEPTH: u32 = 16;

/// The position of a network header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Network {
    /// The EtherType of the header.
    pub(crate) kind: u16,
    /// The position of its first byte.
    pub(crate) at: usize,
    /// The tags before it.
    pub(crate) vlans: Vlans,
}

/// Whether an Ethernet type is that of a VLAN tag.
#[inline]
pub(crate) fn is_vlan(kind: u16) -> bool {
    matches!(kind, 0x8100 | 0x88a8 | 0x9100)
}

/// The network header of a frame.
#[inline]
pub(crate) fn network(link: LinkType, bytes: &[u8], cut: Cut) -> Result<Network, Undecoded> {
    if link == LinkType::ETHERNET {
        return ethernet(bytes, 0, cut);
    }
    let (kind, at) = first(link, bytes, cut)?;
    behind(kind, bytes, at, cut)
}

/// The network header after an Ethernet header that starts at `at`.
#[inline]
pub(crate) fn ethernet(bytes: &[u8], at: usize, cut: Cut) -> Result<Network, Undecoded> {
    let kind = be16(bytes, at + 12).ok_or_else(|| cut.short(Layer::Link))?;
    if kind == ETHERTYPE_IPV4 || kind == ETHERTYPE_IPV6 {
        return Ok(Network { kind, at: at + 14, vlans: Vlans::default() });
    }
    behind(kind, bytes, at + 14, cut)
}

/// The network header after the tags, labels and session headers that an EtherType announces.
pub(crate) fn behind(
    mut kind: u16,
    bytes: &[u8],
    mut at: usize,
    cut: Cut,
) -> Result<Network, Undecoded> {
    let short = || cut.short(Layer::Link);
    let mut vlans = Vlans::default();
    for _ in 0..DEPTH {
        step();
        match kind {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return Ok(Network { kind, at, vlans }),
            kind_of_tag if is_vlan(kind_of_tag) => {
                vlans.push(be16(bytes, at).ok_or_else(short)? & 0x0fff);
                kind = be16(bytes, at + 2).ok_or_else(short)?;
                at += 4;
            }
            0x8847 | 0x8848 => {
                let last = bytes.get(at + 2).ok_or_else(short)? & 1 != 0;
                at += 4;
                if last {
                    // Labels do not name the next protocol; the IP version does.
                    match bytes.get(at).ok_or_else(short)? >> 4 {
                        4 => kind = ETHERTYPE_IPV4,
                        6 => kind = ETHERTYPE_IPV6,
                        _ => return Err(Undecoded::Network(kind)),
                    }
                }
            }
            0x8864 => (kind, at) = ppp(bytes, at + 6, cut)?,
            // A length field, so a logical link header follows.
            0..=1500 => (kind, at) = logical_link(bytes, at, cut)?,
            _ => return Err(Undecoded::Network(kind)),
        }
    }
    Err(Undecoded::Malformed(Malformed::Depth))
}

/// The EtherType in the extension of a logical link header, and the position after it.
fn logical_link(bytes: &[u8], at: usize, cut: Cut) -> Result<(u16, usize), Undecoded> {
    match bytes.get(at..at + 6) {
        Some([0xaa, 0xaa, 0x03, 0, 0, 0]) => {
            let kind = be16(bytes, at + 6).ok_or_else(|| cut.short(Layer::Link))?;
            if kind <= 1500 { Err(Undecoded::Network(kind)) } else { Ok((kind, at + 8)) }
        }
        Some(_) => Err(Undecoded::Network(0)),
        None => Err(cut.short(Layer::Link)),
    }
}

/// The EtherType of a PPP header at `at`, whose protocol takes one or two bytes, and the position
/// after it.
pub(crate) fn ppp(bytes: &[u8], at: usize, cut: Cut) -> Result<(u16, usize), Undecoded> {
    let short = || cut.short(Layer::Link);
    let first = *bytes.get(at).ok_or_else(short)?;
    let (protocol, at) = if first & 1 != 0 {
        (u16::from(first), at + 1)
    } else {
        (be16(bytes, at).ok_or_else(short)?, at + 2)
    };
    match protocol {
        0x0021 => Ok((ETHERTYPE_IPV4, at)),
        0x0057 => Ok((ETHERTYPE_IPV6, at)),
        _ => Err(Undecoded::Network(0)),
    }
}

/// The EtherType in the link header itself, tag or not, and the position after it.
pub(crate) fn first(link: LinkType, bytes: &[u8], cut: Cut) -> Result<(u16, usize), Undecoded> {
    let short = || cut.short(Layer::Link);
    Ok(match link {
        LinkType::ETHERNET => (be16(bytes, 12).ok_or_else(short)?, 14),
        LinkType::RAW | LinkType::RAW_12 | LinkType::RAW_14 => {
            match bytes.first().ok_or_else(short)? >> 4 {
                4 => (ETHERTYPE_IPV4, 0),
                6 => (ETHERTYPE_IPV6, 0),
                _ => return Err(Undecoded::Malformed(Malformed::Version)),
            }
        }
        LinkType::IPV4 => (ETHERTYPE_IPV4, 0),
        LinkType::IPV6 => (ETHERTYPE_IPV6, 0),
        LinkType::NULL | LinkType::LOOP => (family(bytes, cut)?, 4),
        LinkType::PPP | LinkType::PPP_HDLC => match bytes {
            [0xff, 0x03, ..] => ppp(bytes, 2, cut)?,
            [0xff] => return Err(short()),
            // Cisco's framing has an Ethernet type instead.
            [0x0f | 0x8f, _, rest @ ..] if link == LinkType::PPP_HDLC => {
                (be16(rest, 0).ok_or_else(short)?, 4)
            }
            _ => ppp(bytes, 0, cut)?,
        },
        LinkType::PPPOE => ppp(bytes, 6, cut)?,
        LinkType::LINUX_SLL => (be16(bytes, 14).ok_or_else(short)?, 16),
        LinkType::LINUX_SLL2 => {
            if bytes.len() < 20 {
                return Err(short());
            }
            (be16(bytes, 0).ok_or_else(short)?, 20)
        }
        LinkType::RADIOTAP => radiotap(bytes, cut)?,
        LinkType::IEEE802_11 => wireless(bytes, 0, false, cut)?,
        _ => return Err(Undecoded::Link(link)),
    })
}

/// The Ethernet type for a BSD protocol family, which may be in either byte order.
fn family(bytes: &[u8], cut: Cut) -> Result<u16, Undecoded> {
    let word = *bytes.first_chunk().ok_or_else(|| cut.short(Layer::Link))?;
    let (little, big) = (u32::from_le_bytes(word), u32::from_be_bytes(word));
    match little.min(big) {
        2 => Ok(ETHERTYPE_IPV4),
        // The values of Linux and of the different BSDs.
        10 | 24 | 28 | 30 => Ok(ETHERTYPE_IPV6),
        _ => Err(Undecoded::Network(0)),
    }
}

fn radiotap(bytes: &[u8], cut: Cut) -> Result<(u16, usize), Undecoded> {
    let short = || cut.short(Layer::Link);
    let word = |at: usize| {
        let four: [u8; 4] = *bytes.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(four))
    };
    let [_, _, low, high] = *bytes.first_chunk().ok_or_else(short)?;
    let length = usize::from(u16::from_le_bytes([low, high]));
    let present = word(4).ok_or_else(short)?;
    let mut at = 8;
    let mut more = present;
    while more & 1 << 31 != 0 {
        if at == 8 + 4 * DEPTH as usize {
            return Err(Undecoded::Malformed(Malformed::Depth));
        }
        step();
        more = word(at).ok_or_else(short)?;
        at += 4;
    }
    let mut padded = false;
    if present & 2 != 0 {
        if present & 1 != 0 {
            at = at.next_multiple_of(8) + 8;
        }
        padded = bytes.get(at).ok_or_else(short)? & 0x20 != 0;
    }
    wireless(bytes, length, padded, cut)
}

/// The EtherType after an 802.11 header at `at`, and the position after it. Only unencrypted data
/// frames have a network header.
fn wireless(bytes: &[u8], at: usize, padded: bool, cut: Cut) -> Result<(u16, usize), Undecoded> {
    let short = || cut.short(Layer::Link);
    let [control, flags] = *bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or_else(short)?;
    let data = control & 0x0c == 0x08 && control & 0x40 == 0;
    let encrypted = flags & 0x40 != 0;
    if !data || encrypted {
        return Err(Undecoded::Network(0));
    }
    let mut header = 24;
    if flags & 0x03 == 0x03 {
        header += 6;
    }
    if control & 0x80 != 0 {
        header += if flags & 0x80 != 0 { 6 } else { 2 };
    }
    if padded {
        header = usize::next_multiple_of(header, 4);
    }
    logical_link(bytes, at + header, cut)
}

/// The positions of the source and destination hardware addresses, on links that have both.
pub(crate) fn hardware(link: LinkType, bytes: &[u8]) -> Option<[usize; 2]> {
    let at = match link {
        LinkType::ETHERNET => return Some([6, 0]),
        LinkType::IEEE802_11 => 0,
        LinkType::RADIOTAP => usize::from(u16::from_le_bytes([*bytes.get(2)?, *bytes.get(3)?])),
        _ => return None,
    };
    let (control, flags) = (*bytes.get(at)?, *bytes.get(at + 1)?);
    let (to_system, from_system) = match control & 0x0c {
        0x08 => (flags & 1 != 0, flags & 2 != 0),
        0x00 => (false, false),
        _ => return None,
    };
    let source = match (to_system, from_system) {
        (true, true) => 24,
        (false, true) => 16,
        (_, false) => 10,
    };
    Some([at + source, at + if to_system { 16 } else { 4 }])
}
