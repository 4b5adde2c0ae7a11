use super::*;
use crate::{Decoder, Source};
use sidon_kit::assert_rate;
use std::collections::{HashMap, HashSet};

fn mix() -> Mix {
    let shares = Shares { web: 50, dns: 30, peers: 10, ping: 5, scan: 5 };
    let flood = Some(Flood { sources: 5_000, after: 20_000, share: 80, ..Flood::default() });
    Mix { packets: 60_000, shares, flood, ipv6: 20, ..Mix::default() }
}

fn packets(mix: Mix, seed: u64) -> Vec<Packet> {
    Generator::new(mix, seed).unwrap().collect()
}

#[test]
fn a_seed_is_a_trace() {
    let trace = packets(mix(), 1);
    assert_eq!(trace.len(), 60_000);
    assert_eq!(trace, packets(mix(), 1));
    assert_ne!(trace, packets(mix(), 2));
    assert!(trace.is_sorted_by_key(|packet| packet.time_ns));
    assert_eq!(Generator::new(mix(), 1).unwrap().size_hint(), (60_000, Some(60_000)));
}

#[test]
fn packets_written_as_frames_decode_to_themselves() {
    let trace = packets(mix(), 3);
    let mut capture = Vec::new();
    let written = write_pcap(trace.iter().copied(), 65_535, &mut capture).unwrap();
    assert_eq!(written, 60_000);
    let mut source = Source::from_reader(std::io::Cursor::new(capture)).unwrap();
    for packet in &trace {
        let frame = source.next().unwrap().unwrap();
        assert_eq!(Decoder::default().decode(&frame), Ok(*packet));
    }
    assert_eq!(source.next(), Ok(None));
}

#[test]
fn a_short_snap_length_keeps_all_but_what_was_captured() {
    let trace = packets(Mix { packets: 5_000, ..mix() }, 4);
    let mut capture = Vec::new();
    write_pcap(trace.iter().copied(), 74, &mut capture).unwrap();
    let mut source = Source::from_reader(std::io::Cursor::new(capture)).unwrap();
    for packet in &trace {
        let frame = source.next().unwrap().unwrap();
        let captured = packet.wire_len.min(74);
        assert_eq!(Decoder::default().decode(&frame), Ok(Packet { captured, ..*packet }));
    }
}

/// The ones' complement sum of what a checksum covers, itself included, is all ones.
#[test]
fn checksums_are_right() {
    fn fold(words: impl Iterator<Item = u64>) -> u64 {
        words.fold(0, |sum, word| {
            let sum = sum + word;
            (sum & 0xffff) + (sum >> 16)
        })
    }
    fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
        bytes.chunks(2).map(|two| u64::from(two[0]) << 8 | two.get(1).map_or(0, |b| u64::from(*b)))
    }
    let mut bytes = Vec::new();
    for packet in packets(Mix { packets: 5_000, ..mix() }, 5) {
        write_frame(&packet, &mut bytes);
        let is_v4 = packet.flow.is_v4();
        let (ip, network) = if is_v4 { (20, 14) } else { (40, 14) };
        if is_v4 {
            assert_eq!(fold(words(&bytes[14..34])), 0xffff, "{packet:?}");
        }
        let length = if is_v4 {
            usize::from(bytes[16]) << 8 | usize::from(bytes[17])
        } else {
            40 + (usize::from(bytes[18]) << 8 | usize::from(bytes[19]))
        };
        let carried = &bytes[network + ip..network + length];
        let addresses = if is_v4 { &bytes[26..34] } else { &bytes[22..54] };
        let number = packet.flow.protocol();
        let pseudo = words(addresses).chain([u64::from(number), carried.len() as u64]);
        let sum = if number == protocol::ICMP {
            fold(words(carried))
        } else {
            fold(pseudo.chain(words(carried)))
        };
        assert_eq!(sum, 0xffff, "{packet:?}");
    }
}

#[test]
fn connections_are_opened_numbered_and_closed_in_order() {
    let web = Shares { web: 1, dns: 0, peers: 0, ping: 0, scan: 0 };
    // So few conversations at a time that no five-tuple comes twice in a trace this long.
    let trace = packets(Mix { shares: web, active: 16, packets: 40_000, ..Mix::default() }, 6);
    let mut connections: HashMap<FlowKey, Vec<Packet>> = HashMap::new();
    for packet in trace {
        connections.entry(packet.flow.undirected()).or_default().push(packet);
    }
    let (mut finished, mut reset, mut unanswered) = (0, 0, 0);
    for packets in connections.values() {
        let opener = packets[0].flow;
        assert_eq!(packets[0].tcp_flags(), TcpFlags::SYN);
        let mut next: HashMap<FlowKey, u32> = HashMap::new();
        for packet in packets {
            let Transport::Tcp(tcp) = packet.transport else { panic!("{packet:?}") };
            let resent = tcp.flags == TcpFlags::SYN;
            if let Some(expected) = next.get(&packet.flow).filter(|_| !resent) {
                assert_eq!(tcp.sequence, *expected, "{packet:?}");
            }
            if tcp.flags.has(TcpFlags::ACK) {
                let acknowledged = next.get(&packet.flow.reversed());
                assert_eq!(Some(&tcp.acknowledgement), acknowledged, "{packet:?}");
            }
            let counted = u32::from(tcp.flags.any(TcpFlags::SYN.with(TcpFlags::FIN)));
            let end = tcp.sequence.wrapping_add(packet.payload_len + counted);
            next.insert(packet.flow, end);
        }
        let fins = packets.iter().filter(|packet| packet.tcp_flags().has(TcpFlags::FIN));
        let sides: HashSet<_> = fins.map(|packet| packet.flow).collect();
        finished += u64::from(sides.len() == 2);
        reset += u64::from(packets.iter().any(|packet| packet.tcp_flags().has(TcpFlags::RST)));
        unanswered += u64::from(packets.iter().all(|packet| packet.flow == opener));
    }
    let all = connections.len() as u64;
    assert!(all > 1_000 && finished * 10 > all * 8, "{finished} of {all}");
    assert!(reset * 100 > all * 4 && reset * 100 < all * 11, "{reset} of {all}");
    assert!(unanswered > 0 && unanswered * 100 < all * 4, "{unanswered} of {all}");
}

#[test]
fn sizes_follow_the_law_of_zipf() {
    // A share of s^(-1/z) of all sizes is s or larger: at z = 1/2, one in a hundred is at least 10.
    let web = Shares { web: 1, dns: 0, peers: 0, ping: 0, scan: 0 };
    let mix = Mix { shares: web, zipf: 0.5, ipv6: 0, ..Mix::default() };
    let mut rng = Rng::seeded(7);
    let mut world = World::new(&mix);
    let n = sidon_kit::trials(0.01 * 0.98, 0.1);
    let large = (0..n).filter(|_| world.open(&mix, &mut rng).data() >= 10).count();
    // 98 of a hundred conversations carry a drawn number of data packets.
    assert_rate(large, n, 0.01 * 0.98);
}

#[test]
fn a_flood_has_as_many_sources_as_asked_for_and_one_victim() {
    let flood = Flood { sources: 30_000, share: 100, answered: 0, ..Flood::default() };
    let mix = Mix { packets: 40_000, flood: Some(flood), ..Mix::default() };
    let victim = flood.victim;
    let sources: HashSet<_> = packets(mix, 8)[..30_000]
        .iter()
        .map(|packet| {
            assert_eq!(packet.flow.destination(), std::net::IpAddr::V4(*victim.ip()));
            assert_eq!(packet.flow.destination_port(), victim.port());
            assert_eq!(packet.tcp_flags(), TcpFlags::SYN);
            packet.flow.source()
        })
        .collect();
    assert_eq!(sources.len(), 30_000);
}

#[test]
fn peers_speak_tcp_and_udp_with_the_same_strangers() {
    let peers = Shares { web: 0, dns: 0, peers: 1, ping: 0, scan: 0 };
    let trace = packets(Mix { shares: peers, ipv6: 0, packets: 200_000, ..Mix::default() }, 9);
    let pairs = |number: u8| -> HashSet<_> {
        let of = trace.iter().filter(|packet| packet.flow.protocol() == number);
        of.map(|packet| packet.flow.undirected()).map(|f| (f.source(), f.destination())).collect()
    };
    let (tcp, udp) = (pairs(protocol::TCP), pairs(protocol::UDP));
    let both = tcp.intersection(&udp).count();
    assert!(both * 20 > tcp.len() && both > 500, "{both} of {} and {}", tcp.len(), udp.len());
}

#[test]
fn a_scanner_knocks_at_many_doors() {
    let scan = Shares { web: 0, dns: 0, peers: 0, ping: 0, scan: 1 };
    let trace = packets(Mix { shares: scan, packets: 5_000, ..Mix::default() }, 10);
    let from_scanner =
        trace.iter().filter(|packet| packet.flow.source() == std::net::IpAddr::V4(SCANNER));
    let doors: HashSet<_> = from_scanner.map(|packet| packet.flow.destination()).collect();
    assert_eq!(doors.len(), 1_000);
}

#[test]
fn mixes_that_cannot_be_are_refused_by_name() {
    let name = |mix: Mix| Generator::new(mix, 1).unwrap_err().name().unwrap();
    let flood = |flood| Mix { flood: Some(flood), ..mix() };
    assert_eq!(name(Mix { rate: 0, ..mix() }), "rate");
    assert_eq!(name(Mix { clients: 0, ..mix() }), "clients");
    assert_eq!(name(Mix { servers: 0, ..mix() }), "servers");
    assert_eq!(name(Mix { active: 0, ..mix() }), "active");
    assert_eq!(name(Mix { zipf: f64::NAN, ..mix() }), "zipf");
    assert_eq!(name(Mix { ipv6: 101, ..mix() }), "ipv6");
    let none = Shares { web: 0, dns: 0, peers: 0, ping: 0, scan: 0 };
    assert_eq!(name(Mix { shares: none, ..mix() }), "sum of shares");
    assert_eq!(name(flood(Flood { share: 101, ..Flood::default() })), "share");
    assert_eq!(name(flood(Flood { sources: 1 << 33, ..Flood::default() })), "sources");
}
