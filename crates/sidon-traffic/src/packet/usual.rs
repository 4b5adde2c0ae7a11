//! Reads the most common frames in one step.
//!
//! A common frame is Ethernet with an IP header that TCP or UDP follows directly. It is not a
//! fragment, and the capture includes all fields that `Packet` keeps.
//!
//! For other frames the result is `None`, and the layers decode them. For common frames the layers
//! give the same result.

use super::{Fragment, Packet, Tcp, TcpFlags, Transport, Vlans, be16, be32};
use crate::{FlowKey, LinkType, flow::protocol, source::Frame};

/// The position of the network header.
const NETWORK: usize = 14;
/// Bytes of headers without options.
const V4: usize = 20;
const V6: usize = 40;
/// Bytes of a TCP header and of a UDP header that are read.
const TCP: usize = 14;
const UDP: usize = 4;

/// The packet in a common frame; `None` for other frames.
#[inline(always)]
pub(super) fn packet(frame: &Frame<'_>) -> Option<Packet> {
    if frame.link != LinkType::ETHERNET {
        return None;
    }
    // The bytes up to the ports.
    let head: &[u8; NETWORK + V4 + UDP] = frame.bytes.first_chunk()?;
    match [head[12], head[13], head[14]] {
        // An IPv4 header without options.
        [0x08, 0x00, 0x45] => {
            let whole = (head[20] & 0x3f) | head[21] == 0;
            let total = usize::from(u16::from_be_bytes([head[16], head[17]]));
            let flow = |ports| FlowKey::v4(take(head, 26), take(head, 30), ports, head[23]);
            let rest = total.checked_sub(V4).filter(|_| whole)?;
            carried::<{ NETWORK + V4 }>(frame, head[23], head[22], rest, flow)
        }
        [0x86, 0xdd, 0x60..=0x6f] => {
            let head: &[u8; NETWORK + V6] = frame.bytes.first_chunk()?;
            let rest = usize::from(u16::from_be_bytes([head[18], head[19]]));
            let flow = |ports| FlowKey::v6(take(head, 22), take(head, 38), ports, head[20]);
            carried::<{ NETWORK + V6 }>(frame, head[20], head[21], rest, flow)
        }
        _ => None,
    }
}

/// Reads the transport header at `AT`; the IP header counts `rest` bytes after itself.
#[inline(always)]
fn carried<const AT: usize>(
    frame: &Frame<'_>,
    number: u8,
    ttl: u8,
    rest: usize,
    flow: impl Fn([u16; 2]) -> FlowKey,
) -> Option<Packet> {
    let bytes = frame.bytes;
    let needed = match number {
        protocol::TCP => TCP,
        protocol::UDP => UDP,
        _ => return None,
    };
    if rest < needed || bytes.len() < AT + needed {
        return None;
    }
    let (transport, header) = if number == protocol::TCP {
        let header: &[u8; TCP] = bytes[AT..].first_chunk()?;
        let tcp = Tcp {
            sequence: be32(header, 4)?,
            acknowledgement: be32(header, 8)?,
            flags: TcpFlags(header[13]),
        };
        (Transport::Tcp(tcp), usize::from(header[12] >> 4) * 4)
    } else {
        (Transport::Ports, 8)
    };
    Some(Packet {
        time_ns: frame.time_ns,
        flow: flow([be16(bytes, AT)?, be16(bytes, AT + 2)?]),
        wire_len: frame.wire_len,
        captured: bytes.len() as u32,
        payload_len: rest.saturating_sub(header) as u32,
        transport,
        fragment: Fragment::Whole,
        ttl,
        vlans: Vlans::default(),
        tunnels: 0,
    })
}

/// The `N` bytes at `at`.
#[inline(always)]
fn take<const N: usize, const HEAD: usize>(head: &[u8; HEAD], at: usize) -> [u8; N] {
    std::array::from_fn(|i| head[at + i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Decoder, Generator, Mix,
        generate::{Shares, write_frame},
    };
    use sidon_kit::Rng;

    /// Frames of all kinds, with a damaged header byte or cut short, decode as by the layers.
    #[test]
    fn what_is_read_in_one_go_is_what_the_layers_read() {
        let shares = Shares { web: 40, dns: 40, peers: 10, ping: 5, scan: 5 };
        let mix = Mix { packets: 20_000, ipv6: 40, shares, ..Mix::default() };
        let mut rng = Rng::seeded(1);
        let (mut usual, mut others) = (0, 0);
        let mut bytes = Vec::new();
        for generated in Generator::new(mix, 2).unwrap() {
            bytes.clear();
            write_frame(&generated, &mut bytes);
            for _ in 0..8 {
                let mut bytes = bytes.clone();
                let at = rng.below(60.min(bytes.len() as u64)) as usize;
                bytes[at] = match rng.below(4) {
                    0 => bytes[at],
                    1 => bytes[at] ^ 1 << rng.below(8),
                    2 => [0, 1, 4, 6, 17, 0x45, 0x46, 0x60, 0xff][rng.below(9) as usize],
                    _ => rng.next_u64() as u8,
                };
                if rng.chance(0.5) {
                    bytes.truncate(rng.below(90) as usize);
                }
                let frame = Frame {
                    time_ns: generated.time_ns,
                    wire_len: generated.wire_len,
                    link: LinkType::ETHERNET,
                    bytes: &bytes,
                };
                let layers = Decoder::default().by_layers(&frame);
                match packet(&frame) {
                    Some(packet) => {
                        usual += 1;
                        assert_eq!(Ok(packet), layers, "{bytes:02x?}");
                    }
                    None => others += 1,
                }
                assert_eq!(Decoder::default().decode(&frame), layers);
                assert_eq!(packet(&Frame { link: LinkType::RAW, ..frame }), None);
            }
        }
        // Half are cut, most of those inside the headers; pings are not common frames.
        assert!(usual > 60_000 && others > 20_000, "{usual} {others}");
    }
}
