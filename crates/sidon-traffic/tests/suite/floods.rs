//! Floods of every kind are named by their victim, and heavy ordinary traffic is not.

use crate::streams::{SECOND, Stream, any, at};
use std::net::{IpAddr, SocketAddr};

const VICTIM: [u8; 4] = [203, 0, 113, 7];
const NAME: &str = "203.0.113.7";

/// A stream of an office, and an attack from the third second on.
fn attack(seconds: f64, rate: f64, mut one: impl FnMut(&mut Stream, f64, u32)) -> Stream {
    let mut stream = Stream::with_office(1, 4 + seconds as u64);
    for (number, time) in (0..).zip(stream.times(3.0, 3.0 + seconds, rate)) {
        one(&mut stream, time, number);
    }
    stream
}

fn host(last: u8) -> IpAddr {
    [203, 0, 113, last].into()
}

#[test]
fn forged_syns_at_one_port() {
    let mut stream = attack(6.0, 1_000.0, |stream, time, number| {
        let source = at(any(&mut stream.rng), 1_024 + number as u16);
        stream.tcp(time, source, at(VICTIM, 443), "S", 0);
    });
    assert!(stream.delay("syn_flood", 3.0) <= 2.2);
    stream.says(&[("syn_flood", NAME)]);
}

#[test]
fn forged_syns_that_the_victim_answers() {
    let mut stream = attack(6.0, 500.0, |stream, time, number| {
        let source = at(any(&mut stream.rng), 1_024 + number as u16);
        stream.tcp(time, source, at(VICTIM, 443), "S", 0);
        stream.tcp(time + 0.001, at(VICTIM, 443), source, "SA", 0);
    });
    stream.says(&[("syn_flood", NAME)]);
}

#[test]
fn a_forged_ack_confirms_no_handshake() {
    for payload in [0, 20] {
        let mut stream = attack(6.0, 500.0, |stream, time, number| {
            let source = at(any(&mut stream.rng), 1_024 + number as u16);
            stream.tcp(time, source, at(VICTIM, 443), "S", 0);
            stream.tcp(time + 0.01, source, at(VICTIM, 443), "A", 0);
            if payload > 0 && number % 4 == 0 {
                stream.tcp(time + 0.02, source, at(VICTIM, 443), "PA", payload);
            }
        });
        stream.says(&[("syn_flood", NAME)]);
    }
}

#[test]
fn syns_beside_as_many_handshakes_that_complete() {
    let mut stream = attack(8.0, 2_000.0, |stream, time, number| {
        let source = at(any(&mut stream.rng), 1_024 + number as u16);
        match number % 2 {
            0 => stream.tcp(time, source, at(VICTIM, 443), "S", 0),
            _ => stream.session(time, source, at(VICTIM, 443), 1),
        }
    });
    stream.says(&[("syn_flood", NAME)]);
}

#[test]
fn syns_of_one_source_at_all_ports_and_of_forged_ones() {
    let mut stream = attack(6.0, 1_000.0, |stream, time, _| {
        let (source, port) = (any(&mut stream.rng), 1 + stream.rng.below(65_535) as u16);
        stream.tcp(time, at(source, 4_000), at(VICTIM, port), "S", 0);
    });
    stream.says(&[("syn_flood", NAME)]);
    // One flow again and again.
    let mut stream = attack(6.0, 1_000.0, |stream, time, _| {
        stream.tcp(time, at([192, 0, 2, 1], 4_000), at(VICTIM, 80), "S", 0);
    });
    stream.says(&[("syn_flood", NAME)]);
}

#[test]
fn a_carpet_of_syns_is_one_incident_of_its_prefix() {
    for (bits, rate, name) in [
        (8, 3_000.0, "203.0.113.0/24"),
        (12, 3_000.0, "203.0.112.0/20"),
        (16, 9_000.0, "203.0.0.0/16"),
    ] {
        let mut stream = attack(6.0, rate, |stream, time, _| {
            let source = any(&mut stream.rng);
            let [a, b, c, d] = VICTIM;
            let network = u32::from_be_bytes([a, b, c, d]) >> bits << bits;
            let victim = (network + stream.rng.below(1 << bits) as u32).to_be_bytes();
            stream.tcp(time, at(source, 4_000), at(victim, 80), "S", 0);
        });
        assert!(stream.delay("syn_flood", 3.0) <= 2.2, "{name}");
        stream.says(&[("syn_flood", name)]);
    }
}

#[test]
fn a_carpet_of_udp_icmp_and_ipv6() {
    let mut stream = attack(5.0, 3_000.0, |stream, time, _| {
        let source = any(&mut stream.rng);
        let victim = [203, 0, 112 + stream.rng.below(4) as u8, stream.rng.below(256) as u8];
        let port = 1 + stream.rng.below(60_000) as u16;
        stream.udp(time, at(source, 4_000), at(victim, port), 500);
    });
    assert!(stream.delay("udp_flood", 3.0) <= 2.2);
    stream.says(&[("udp_flood", "203.0.112.0/22")]);
    let mut stream = attack(5.0, 3_000.0, |stream, time, _| {
        let source = any(&mut stream.rng);
        let victim = host(stream.rng.below(256) as u8);
        stream.icmp(time, source.into(), victim, 8, 64);
    });
    stream.says(&[("icmp_flood", "203.0.113.0/24")]);
    let mut stream = attack(5.0, 3_000.0, |stream, time, _| {
        let victim = 0x2001_0db8_0007_0000_0000_0000_0000_0000 | u128::from(stream.rng.next_u64());
        let source: IpAddr =
            (0x2a00 << 112 | u128::from(stream.rng.next_u64())).to_be_bytes().into();
        let victim: IpAddr = victim.to_be_bytes().into();
        stream.tcp(time, SocketAddr::new(source, 99), SocketAddr::new(victim, 80), "S", 0);
    });
    stream.says(&[("syn_flood", "2001:db8:7::/64")]);
}

#[test]
fn reflections_are_named_by_their_victim() {
    for (port, bytes) in [(53, 1_200), (123, 440), (11_211, 1_400), (389, 1_472), (1_900, 300)] {
        let mut stream = attack(6.0, 40e6 / 8.0 / f64::from(bytes), |stream, time, number| {
            let source = at([192, 0, 2, (number % 200) as u8], port);
            stream.udp(time, source, at(VICTIM, 40_000), bytes);
        });
        stream.says(&[("udp_reflection", NAME)]);
    }
}

#[test]
fn udp_at_random_ports_with_and_without_payload_or_one_port_of_forged_sources() {
    for (sources, ports, bytes) in [(1 << 24, 60_000, 512), (1, 60_000, 0), (1 << 24, 1, 10)] {
        let mut stream = attack(6.0, 2_000.0, |stream, time, _| {
            let [b, c, d] = [16, 8, 0].map(|shift| (stream.rng.below(sources) >> shift) as u8);
            let from = stream.port();
            let to = 1_000 + stream.rng.below(ports) as u16;
            stream.udp(time, at([12, b, c, d], from), at(VICTIM, to), bytes);
            if to.is_multiple_of(7) {
                stream.icmp(time + 0.001, VICTIM.into(), [12, b, c, d].into(), 3, 60);
            }
        });
        let kinds = stream.incidents();
        assert!(kinds.contains(&("udp_flood", NAME.to_owned())), "{kinds:?}");
        assert!(kinds.iter().all(|(kind, _)| *kind == "udp_flood" || sources == 1), "{kinds:?}");
    }
}

#[test]
fn icmp_and_icmpv6() {
    let mut stream = attack(6.0, 1_000.0, |stream, time, _| {
        let source = any(&mut stream.rng);
        stream.icmp(time, source.into(), VICTIM.into(), 8, 64);
        stream.icmp(time + 0.001, VICTIM.into(), source.into(), 0, 64);
    });
    stream.says(&[("icmp_flood", NAME)]);
    let mut stream = attack(6.0, 1_000.0, |stream, time, _| {
        let source: IpAddr =
            (0x2a00 << 112 | u128::from(stream.rng.next_u64())).to_be_bytes().into();
        stream.icmp(time, source, "2001:db8::7".parse().unwrap(), 128, 64);
    });
    stream.says(&[("icmp_flood", "2001:db8::7")]);
    // Replies to requests that the victim never sent.
    let mut stream = attack(6.0, 1_000.0, |stream, time, number| {
        let source = [192, 0, 2, number as u8];
        stream.icmp(time, source.into(), VICTIM.into(), 0, 64);
    });
    stream.says(&[("icmp_flood", NAME)]);
}

#[test]
fn fragments() {
    for kind in 0..3 {
        let mut stream = attack(6.0, 1_500.0, |stream, time, number| {
            let source = at(any(&mut stream.rng), 7);
            let one = at([192, 0, 2, 9], 7);
            match kind {
                // Later ones alone, from anywhere; of one source; first ones alone.
                0 => stream.fragment(time, source, at(VICTIM, 7), true, 1_400),
                1 => stream.fragment(time, one, at(VICTIM, 7), true, 800 + number % 500),
                _ => stream.fragment(time, one, at(VICTIM, 7), false, 1_400),
            }
        });
        stream.says(&[("fragment_flood", NAME)]);
    }
}

#[test]
fn segments_without_a_connection() {
    for (text, kind) in [
        ("SA", "syn_ack_flood"),
        ("R", "rst_flood"),
        ("RA", "rst_flood"),
        ("A", "ack_flood"),
        ("PA", "ack_flood"),
        ("FA", "ack_flood"),
    ] {
        let mut stream = attack(6.0, 1_000.0, |stream, time, number| {
            let server = at([192, 0, (number % 7) as u8, (number % 251) as u8], 443);
            let source =
                if kind == "syn_ack_flood" { server } else { at(any(&mut stream.rng), 99) };
            let port = stream.port();
            let bytes = if text == "PA" { 300 } else { 0 };
            stream.tcp(time, source, at(VICTIM, port), text, bytes);
            if number % 3 == 0 && kind != "rst_flood" {
                stream.tcp(time + 0.001, at(VICTIM, port), source, "R", 0);
            }
        });
        stream.says(&[(kind, NAME)]);
    }
}

#[test]
fn connections_that_stay_idle() {
    for sources in [1, 50] {
        let mut stream = Stream::with_office(1, 40);
        for (number, time) in (0u32..).zip(stream.times(3.0, 33.0, 40.0)) {
            let source = [192, 0, 2, (number % sources) as u8];
            stream.handshake(time, at(source, 1_024 + number as u16), at(VICTIM, 80));
        }
        stream.says(&[("connection_flood", NAME)]);
    }
}

#[test]
fn a_flood_during_a_scan_of_a_network() {
    let mut stream = Stream::with_office(1, 12);
    for (number, time) in (0u32..).zip(stream.times(1.0, 11.0, 2_560.0)) {
        let target = at([10, 1, 1, (number / 100) as u8], 1 + (number % 100) as u16);
        let from = at([192, 0, 2, 66], 50_000);
        stream.tcp(time, from, target, "S", 0);
        if number.is_multiple_of(3) {
            stream.tcp(time + 0.001, target, from, "RA", 0);
        }
    }
    for time in stream.times(5.0, 11.0, 500.0) {
        let source = at(any(&mut stream.rng), 4_000);
        stream.tcp(time, source, at(VICTIM, 443), "S", 0);
    }
    // One incident each; the kind of the scan depends on how much of it the tables hold.
    for named in [stream.named(4 << 20, 1), stream.named(64 << 20, 2)] {
        let subjects: Vec<_> = named.iter().map(|(_, subject)| subject.as_str()).collect();
        assert_eq!(subjects, ["192.0.2.66", NAME], "{named:?}");
        assert_eq!(named[1].0, "syn_flood");
    }
}

/// Checks that a stream causes no incident.
fn silent(name: &str, fill: impl FnOnce(&mut Stream)) {
    let mut stream = Stream::with_office(2, 20);
    fill(&mut stream);
    let named = stream.incidents();
    assert!(named.is_empty(), "{name}: {named:?}");
}

#[test]
fn bulk_transfers_and_media() {
    silent("speed test and downloads", |stream| {
        for client in 0..8u16 {
            let ends = [at([10, 9, 0, 200], 40_000 + client), at([198, 51, 100, 99], 443)];
            let begin = stream.handshake(1.0, ends[0], ends[1]);
            for time in stream.times(begin, 15.0, 300.0) {
                stream.tcp(time, ends[1], ends[0], "A", 1_448);
                stream.tcp(time + 0.001, ends[0], ends[1], "A", 0);
            }
        }
    });
    silent("iperf over UDP, also of large datagrams", |stream| {
        for time in stream.times(1.0, 12.0, 1_000.0) {
            stream.udp(time, at([10, 9, 0, 200], 40_000), at([10, 9, 0, 201], 5_001), 1_470);
        }
        for time in stream.times(1.0, 12.0, 200.0) {
            let ends = [at([10, 9, 0, 202], 40_000), at([10, 9, 0, 203], 5_001)];
            stream.fragment(time, ends[0], ends[1], false, 1_480);
            for part in 1..6 {
                stream.fragment(time + f64::from(part) * 1e-4, ends[0], ends[1], true, 1_480);
            }
        }
    });
    silent("a media server, one-way video to a group, a tunnel", |stream| {
        for call in 0..60u16 {
            let ends =
                [at([10, 9, 1, call as u8], 20_000 + call), at([10, 9, 2, 1], 30_000 + call)];
            for time in stream.times(1.0 + f64::from(call) / 10.0, 15.0, 50.0) {
                stream.udp(time, ends[0], ends[1], 172);
                stream.udp(time + 0.003, ends[1], ends[0], 172);
            }
        }
        for time in stream.times(1.0, 15.0, 800.0) {
            stream.udp(time, at([10, 9, 2, 9], 5_004), at([239, 1, 1, 1], 5_004), 1_316);
            stream.udp(time, at([10, 9, 0, 31], 51_820), at([198, 51, 100, 31], 51_820), 1_400);
            stream.udp(time, at([198, 51, 100, 31], 51_820), at([10, 9, 0, 31], 51_820), 1_400);
        }
    });
    silent("collectors", |stream| {
        for time in stream.times(0.5, 15.0, 3_000.0) {
            let router = [10, 9, 3, stream.rng.below(40) as u8];
            stream.udp(time, at(router, 50_000), at([10, 9, 4, 1], 2_055), 1_400);
            stream.udp(time, at(router, 514), at([10, 9, 4, 2], 514), 200);
        }
    });
}

#[test]
fn servers_under_load() {
    silent("a resolver, its clients and its servers", |stream| {
        for time in stream.times(1.0, 15.0, 1_500.0) {
            let port = stream.port();
            let client =
                at([10, 20, stream.rng.below(256) as u8, stream.rng.below(256) as u8], port);
            stream.question(time, client, at([198, 51, 100, 54], 53), 180);
            let server = at(any(&mut stream.rng), 53);
            if !stream.rng.chance(0.1) {
                stream.question(time, at([198, 51, 100, 54], port ^ 3), server, 900);
            } else {
                stream.udp(time, at([198, 51, 100, 54], port ^ 3), server, 40);
            }
        }
    });
    silent("a time server of many clients", |stream| {
        for time in stream.times(1.0, 12.0, 2_000.0) {
            let port = stream.port();
            let client = at(any(&mut stream.rng), port);
            stream.question(time, client, at([198, 51, 100, 123], 123), 48);
        }
    });
    silent("a flash crowd, with 2 % lost", |stream| {
        for time in stream.times(3.0, 13.0, 800.0) {
            let client = at(any(&mut stream.rng), 40_000);
            let server = at([198, 51, 100, 80], 443);
            match stream.rng.chance(0.02) {
                true => stream.tcp(time, client, server, "S", 0),
                false => stream.session(time, client, server, 2),
            }
        }
    });
    silent("clients of a server that restarts, or whose path fails", |stream| {
        for time in stream.times(0.0, 18.0, 60.0) {
            let port = stream.port();
            let client =
                at([10, 30, stream.rng.below(256) as u8, stream.rng.below(256) as u8], port);
            let server = at([198, 51, 100, 81], 443);
            if !(8.0..14.0).contains(&time) {
                stream.session(time, client, server, 2);
                continue;
            }
            stream.tcp(time, client, server, "S", 0);
            for wait in [1.0, 3.0] {
                stream.tcp(time + wait, client, server, "S", 0);
            }
        }
        for number in 0..900u16 {
            let client = at([10, 31, (number % 9) as u8, (number / 9) as u8], 40_000 + number);
            let server = at([198, 51, 100, 82], 443);
            let time = 1.0 + f64::from(number) / 300.0;
            stream.handshake(time, client, server);
            stream.tcp(time + 0.1, server, client, "PA", 500);
            stream.tcp(10.0 + f64::from(number) / 3_000.0, server, client, "RA", 0);
        }
    });
    silent("QUIC, a backup, pings of all hosts", |stream| {
        for flow in 0..40u16 {
            let ends = [at([10, 9, 5, flow as u8], 50_000 + flow), at([198, 51, 100, 44], 443)];
            for time in stream.times(1.0 + f64::from(flow) / 10.0, 12.0, 100.0) {
                stream.udp(time, ends[0], ends[1], 60);
                stream.udp(time + 0.01, ends[1], ends[0], 1_350);
            }
        }
        for time in stream.times(0.0, 19.0, 254.0) {
            let target: IpAddr = [10, 9, 6, (time * 254.0) as u64 as u8].into();
            stream.icmp(time, [10, 9, 0, 250].into(), target, 8, 56);
            if target != IpAddr::from([10, 9, 6, 77]) {
                stream.icmp(time + 0.001, target, [10, 9, 0, 250].into(), 0, 56);
            }
        }
    });
}

#[test]
fn captures_of_one_direction_and_from_the_middle() {
    for inbound in [false, true] {
        let mut stream = Stream::with_office(3, 30);
        for time in stream.times(1.0, 25.0, 300.0) {
            let port = stream.port();
            let client =
                at([10, 20, stream.rng.below(256) as u8, stream.rng.below(256) as u8], port);
            stream.session(time, client, at([198, 51, 100, 80], 443), 3);
            stream.question(
                time,
                at([10, 9, 0, 53], port),
                at(any(&mut Stream::new(u64::from(port)).rng), 53),
                300,
            );
            stream.icmp(time, [10, 9, 0, 250].into(), [198, 51, 100, port as u8].into(), 8, 56);
            stream.icmp(time, [198, 51, 100, port as u8].into(), [10, 9, 0, 250].into(), 0, 56);
        }
        let ours = |address: IpAddr| matches!(address, IpAddr::V4(v4) if v4.octets()[0] == 10);
        stream.retain(|packet| ours(packet.flow.source()) != inbound);
        let named = stream.incidents();
        assert!(named.is_empty(), "inbound {inbound}: {named:?}");
    }
    // The capture begins while two thousand connections are open.
    silent("from the middle", |stream| {
        for number in 0..2_000u32 {
            let [.., c, d] = number.to_be_bytes();
            let ends = [at([10, 40, c, d], 40_000), at([198, 51, 100, 80], 443)];
            let begin = f64::from(number) / 2_000.0;
            for time in stream.times(begin, 6.0, 2.0) {
                stream.tcp(time, ends[1], ends[0], "A", 1_400);
                stream.tcp(time + 0.01, ends[0], ends[1], "A", 0);
            }
        }
    });
}

#[test]
fn a_victim_of_another_protocol_is_not_excused_by_its_answers() {
    // A web server that answers all its clients gets a UDP flood.
    let mut stream = attack(8.0, 1_500.0, |stream, time, number| {
        let source = at(any(&mut stream.rng), 4_000);
        if number % 5 == 0 {
            stream.session(time, source, at(VICTIM, 443), 2);
        }
        let source = at(any(&mut stream.rng), 4_000);
        let port = 1_000 + stream.rng.below(60_000) as u16;
        stream.udp(time, source, at(VICTIM, port), 900);
    });
    stream.says(&[("udp_flood", NAME)]);
    assert_eq!(SECOND, 1_000_000_000);
}
