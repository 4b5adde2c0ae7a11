//! Writes a packet as the bytes of a frame.

use crate::{
    LinkType, Packet,
    flow::protocol,
    packet::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, Fragment, Transport},
    source::{Frame, PcapWriter, SnapLength},
};
use std::io::{self, Write};

/// Writes packets as a pcap file, each cut to `snap` bytes, and returns their number.
pub fn write_pcap(
    packets: impl Iterator<Item = Packet>,
    snap: u32,
    output: impl Write,
) -> io::Result<u64> {
    let mut writer = PcapWriter::new(output, LinkType::ETHERNET, SnapLength(snap))?;
    let mut bytes = Vec::new();
    let mut written = 0;
    for packet in packets {
        write_frame(&packet, &mut bytes);
        let (time_ns, wire_len) = (packet.time_ns, packet.wire_len);
        writer.write(&Frame { time_ns, wire_len, link: LinkType::ETHERNET, bytes: &bytes })?;
        written += 1;
    }
    writer.finish()?;
    Ok(written)
}

/// Flags of the IPv4 header, in the upper byte of their field.
const DONT_FRAGMENT: u8 = 0x40;
const MORE_FRAGMENTS: u8 = 0x20;

/// The next header of IPv6 for a fragment, and the flag of its header for more fragments.
const FRAGMENT_HEADER: u8 = 44;
const MORE_FRAGMENTS_V6: u8 = 1;
/// The position of a later fragment in its packet, in units of eight bytes.
const LATER: u16 = 185;

/// Writes an untagged Ethernet frame of a packet that is not from a tunnel. Lengths and checksums are
/// right, and the payload is zeros. Replaces the content of `bytes`.
///
/// The length in the IP header determines the length of the transport header, so [`crate::Decoder`]
/// decodes the frame to the same packet.
pub fn write_frame(packet: &Packet, bytes: &mut Vec<u8>) {
    bytes.clear();
    let flow = &packet.flow;
    let (key, number) = (flow.as_bytes(), flow.protocol());
    let is_v4 = flow.is_v4();
    let (kind, width) = if is_v4 { (ETHERTYPE_IPV4, 4) } else { (ETHERTYPE_IPV6, 16) };
    let (source, destination) = (&key[..width], &key[width..2 * width]);

    // Locally administered hardware addresses, from the last four bytes of the IP addresses.
    for address in [destination, source] {
        bytes.extend([0x02, 0]);
        bytes.extend(&address[width - 4..]);
    }
    bytes.extend(kind.to_be_bytes());

    let header = header_length(packet);
    let carried = header + packet.payload_len;
    if is_v4 {
        let start = bytes.len();
        bytes.extend([0x45, 0]);
        bytes.extend(((20 + carried) as u16).to_be_bytes());
        let [flags, position] = match packet.fragment {
            Fragment::First => [MORE_FRAGMENTS, 0],
            Fragment::Whole => [DONT_FRAGMENT, 0],
            Fragment::Later => LATER.to_be_bytes(),
        };
        bytes.extend([0, 0, flags, position, packet.ttl, number, 0, 0]);
        bytes.extend(source);
        bytes.extend(destination);
        let check = !folded(sum(&bytes[start..]));
        bytes[start + 10..start + 12].copy_from_slice(&check.to_be_bytes());
    } else {
        let part = match packet.fragment {
            Fragment::Whole => None,
            Fragment::First => Some(u16::from(MORE_FRAGMENTS_V6)),
            Fragment::Later => Some(LATER << 3),
        };
        let length = carried + if part.is_some() { 8 } else { 0 };
        bytes.extend([0x60, 0, 0, 0]);
        bytes.extend((length as u16).to_be_bytes());
        bytes.extend([part.map_or(number, |_| FRAGMENT_HEADER), packet.ttl]);
        bytes.extend(source);
        bytes.extend(destination);
        if let Some(part) = part {
            bytes.extend([number, 0]);
            bytes.extend(part.to_be_bytes());
            bytes.extend([0; 4]);
        }
    }

    let start = bytes.len();
    transport(packet, header, bytes);
    if let Some(at) = checksum_at(number).filter(|_| packet.fragment != Fragment::Later) {
        // The payload is zeros and adds nothing.
        let mut total = sum(&bytes[start..]);
        if number != protocol::ICMP {
            total += sum(&key[..2 * width]) + u64::from(number) + u64::from(carried);
        }
        let check = match !folded(total) {
            // UDP reserves a checksum of zero for "no checksum".
            0 if number == protocol::UDP => 0xffff,
            check => check,
        };
        bytes[start + at..start + at + 2].copy_from_slice(&check.to_be_bytes());
    }
    bytes.resize(packet.wire_len as usize, 0);
}

/// Bytes of the transport header. TCP options fill the bytes that headers and payload leave on the
/// wire. Frames of 60 bytes are padded instead.
fn header_length(packet: &Packet) -> u32 {
    match packet.transport {
        Transport::Tcp(_) => {
            let before = match (packet.flow.is_v4(), packet.fragment) {
                (true, _) => 34,
                (false, Fragment::Whole) => 54,
                (false, _) => 62,
            };
            let rest = packet.wire_len.saturating_sub(before + packet.payload_len);
            if packet.wire_len == 60 { 20 } else { (rest & !3).clamp(20, 60) }
        }
        Transport::Other => 0,
        _ => 8,
    }
}

fn transport(packet: &Packet, header: u32, bytes: &mut Vec<u8>) {
    let end = bytes.len() + header as usize;
    let flow = &packet.flow;
    match packet.transport {
        Transport::Tcp(tcp) => {
            bytes.extend(flow.source_port().to_be_bytes());
            bytes.extend(flow.destination_port().to_be_bytes());
            bytes.extend(tcp.sequence.to_be_bytes());
            bytes.extend(tcp.acknowledgement.to_be_bytes());
            bytes.extend([((header / 4) << 4) as u8, tcp.flags.0, 0xff, 0xff, 0, 0, 0, 0]);
            // No-operation options.
            bytes.resize(end, 1);
        }
        Transport::Ports | Transport::Cut => {
            bytes.extend(flow.source_port().to_be_bytes());
            bytes.extend(flow.destination_port().to_be_bytes());
            bytes.extend(((header + packet.payload_len) as u16).to_be_bytes());
        }
        Transport::Icmp { kind, code } => bytes.extend([kind, code]),
        Transport::Other => {}
    }
    bytes.resize(end, 0);
}

fn checksum_at(number: u8) -> Option<usize> {
    match number {
        protocol::TCP => Some(16),
        protocol::UDP => Some(6),
        protocol::ICMP | protocol::ICMPV6 => Some(2),
        _ => None,
    }
}

/// The sum of 16-bit words, in network order.
fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let even: u64 =
        words.by_ref().map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    even + words.remainder().first().map_or(0, |last| u64::from(*last) << 8)
}

/// The sum with its carries added back in.
fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
