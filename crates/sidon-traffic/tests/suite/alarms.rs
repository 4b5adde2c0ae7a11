//! Alarms: raised with the right name, closed afterwards, and not raised by honest traffic.

use crate::walk;
use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Generator, Mix, Packet, Report, Settings, Source,
    generate::{
        Flood, SCANNER, Shares,
        scenario::{self, Scenario},
    },
    monitor::{alarms::KINDS, connections},
    packet::{Tcp, TcpFlags, Transport},
};
use std::net::IpAddr;

fn office(packets: u64) -> Mix {
    Mix { packets, active: 1_000, rate: 20_000, ..Mix::default() }
}

fn run(packets: impl Iterator<Item = Packet>, threads: usize) -> Report {
    let settings = Settings { threads, ..Settings::new(Seed(5)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    engine.start();
    for packet in packets {
        engine.packet(&packet);
    }
    let report = engine.finish().0;
    assert!(report.alarms.iter().all(|alarm| KINDS.contains(&alarm.kind)), "{:?}", report.alarms);
    report
}

fn flooded(answered: u32) -> Mix {
    let victim = "198.18.0.7:8443".parse().unwrap();
    let flood =
        Flood { sources: 60_000, victim, after: 50_000, share: 60, answered, ..Flood::default() };
    Mix { flood: Some(flood), ..office(1_000_000) }
}

#[test]
fn a_flood_is_named_by_its_victim_and_closed_when_it_is_over() {
    for answered in [0, 30, 100] {
        let mix = flooded(answered);
        let report = run(Generator::new(mix, 1).unwrap(), 1);
        assert_eq!(report.alarms.len(), 1, "{:?}", report.alarms);
        let alarm = &report.alarms[0];
        assert_eq!(alarm.kind, "syn_flood");
        assert_eq!(alarm.subject, "198.18.0.7".parse::<IpAddr>().unwrap());
        // The flood starts after two and a half seconds; the other traffic lasts half a minute
        // longer.
        let opened = (alarm.opened - mix.start_ns) as f64 / 1e9;
        let closed = (alarm.closed.unwrap() - mix.start_ns) as f64 / 1e9;
        assert!((2.0..4.0).contains(&opened), "{opened}");
        assert!(closed > opened + 5.0, "{closed}");
        let evidence: Vec<_> = alarm.evidence.iter().map(|(_, n)| *n).collect();
        assert!(evidence[0] > 50_000 && evidence[1] > 1_000, "{:?}", alarm.evidence);
        assert!(report.connections.peak_half_open > 10_000);
        assert!(alarm.filter.parse::<Filter>().is_ok(), "{}", alarm.filter);
    }
}

#[test]
fn honest_traffic_raises_nothing() {
    for (rate, seed) in [(1_000, 2), (20_000, 3), (1_000_000, 4)] {
        let mix = Mix { rate, ..office(300_000) };
        let report = run(Generator::new(mix, seed).unwrap(), 1);
        assert_eq!(report.alarms, [], "at {rate} packets a second");
        assert!(report.connections.came_about > 1_000);
        assert!(!report.connections.is_one_way());
    }
}

#[test]
fn a_scan_is_named_by_its_source() {
    let shares = Shares { scan: 10, ..Mix::default().shares };
    let report = run(Generator::new(Mix { shares, ..office(300_000) }, 5).unwrap(), 1);
    assert!(!report.alarms.is_empty());
    for alarm in &report.alarms {
        assert_eq!(alarm.kind, "address_scan");
        assert_eq!(alarm.subject, IpAddr::from(SCANNER));
        assert!(alarm.filter.parse::<Filter>().is_ok(), "{}", alarm.filter);
    }
}

#[test]
fn a_scan_at_random_is_named_by_its_source_and_peers_are_not() {
    let source = IpAddr::from([203, 0, 113, 9]);
    // The scanner's SYNs among office traffic with P2P: any host, any port, one in fifty accepted.
    let syn = |packet: &&Packet| packet.tcp_flags() == TcpFlags::SYN && packet.flow.is_v4();
    let office: Vec<_> = Generator::new(office(200_000), 8).unwrap().collect();
    let example = *office.iter().find(syn).unwrap();
    let mut packets = Vec::new();
    for (number, packet) in office.iter().enumerate() {
        packets.push(*packet);
        if number % 400 == 0 {
            let number = number as u32 / 400;
            let mixed = number.wrapping_mul(0x9e37_79b1);
            let (host, port) = ([10, 0, (mixed >> 24) as u8 & 3, (mixed >> 8) as u8], mixed >> 16);
            let ports = [40_000, port as u16 | 1];
            let flow = FlowKey::v4([203, 0, 113, 9], host, ports, 6);
            let knock = Packet { time_ns: packet.time_ns, flow, ..example };
            packets.push(knock);
            if number.is_multiple_of(50) {
                let Transport::Tcp(tcp) = knock.transport else { unreachable!("a SYN is TCP") };
                let with = |flags| Transport::Tcp(Tcp { flags, ..tcp });
                let answer = with(TcpFlags::SYN.with(TcpFlags::ACK));
                packets.push(Packet { flow: flow.reversed(), transport: answer, ..knock });
                packets.push(Packet { transport: with(TcpFlags::ACK), ..knock });
            }
        }
    }
    let report = run(packets.into_iter(), 1);
    let raised: Vec<_> = report.alarms.iter().map(|alarm| (alarm.kind, alarm.subject)).collect();
    assert_eq!(raised, [("random_scan", source)], "{:?}", report.alarms);
    assert!(report.alarms[0].filter.parse::<Filter>().is_ok());
    assert!(report.p2p.iter().all(|suspect| suspect.host != source), "{:?}", report.p2p);
    assert!(!report.p2p.is_empty());
}

#[test]
fn one_side_of_all_connections_is_declared_and_not_alarmed() {
    let ours = |packet: &Packet| match packet.flow.source() {
        IpAddr::V4(address) => address.octets()[0] == 10,
        IpAddr::V6(_) => false,
    };
    for theirs in [false, true] {
        let packets = Generator::new(office(400_000), 6).unwrap();
        let report = run(packets.filter(|packet| ours(packet) != theirs), 1);
        assert!(report.connections.is_one_way(), "{:?}", report.connections);
        let floods = report.alarms.iter().filter(|alarm| alarm.kind == "syn_flood");
        assert_eq!(floods.count(), 0, "{:?}", report.alarms);
    }
}

#[test]
fn threads_change_no_alarm() {
    let answer = |threads| run(Generator::new(flooded(10), 7).unwrap(), threads).to_json();
    let one = answer(1);
    assert_eq!(one["alarms"][0]["kind"], "syn_flood");
    assert_eq!(one, answer(3));
}

#[test]
fn captures_of_the_corpus_raise_what_is_in_them() {
    let Some(folder) = walk::corpus("no capture was looked at for alarms") else { return };
    let mut raised = Vec::new();
    walk::each_file(&folder, &mut |path| {
        let Ok(mut source) = Source::open(path) else { return };
        let settings = Settings { memory: 2 << 20, ..Settings::new(Seed(5)) };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        while let Ok(Some(frame)) = source.next() {
            engine.frame(&frame);
        }
        let report = engine.finish().0;
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        if report.connections.is_one_way() {
            println!("{name}: one way only");
        }
        for alarm in report.alarms {
            assert!(KINDS.contains(&alarm.kind), "{alarm:?}");
            println!("{name}: {} {:?}", alarm.text, alarm.evidence);
            raised.push((name.clone(), alarm.kind, alarm.subject.to_string()));
        }
    });
    for (name, kind, subject) in [
        ("tcp-state/ppa/dosattack.pcap", "forged_syns", "0.0.0.0"),
        ("tcp-state/ppa/portscan.pcap", "port_scan", "10.100.25.14"),
        ("tcp-state/ppa/synscan.pcapng", "port_scan", "172.16.0.8"),
        (
            "tcp-state/suricata/firewall__tcp-session-syn-flood-drop-precedence.pcap",
            "syn_flood",
            "198.51.100.5",
        ),
    ] {
        let expected = (name.to_owned(), kind, subject.to_owned());
        assert!(raised.contains(&expected), "{expected:?}");
    }
    let forged: Vec<_> = raised.iter().filter(|(_, kind, _)| *kind == "forged_syns").collect();
    assert_eq!(forged.len(), 1, "{forged:?}");
    // The only alarm in the P2P captures: Gnutella tries 81 hosts at one port, and two accept. On
    // the network this looks like an address scan.
    let honest = raised.iter().filter(|(name, ..)| name.contains("p2p/"));
    let gnutella = ("p2p/gnutella.pcap".to_owned(), "address_scan", "10.1.4.176".to_owned());
    assert_eq!(honest.collect::<Vec<_>>(), [&gnutella], "{raised:?}");
}

#[test]
fn the_end_of_a_flood_accuses_no_server_with_slow_answers() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/flood-ends.toml");
    let scenario = Scenario::read(file).unwrap();
    let memory = 1 << 20;
    let unit = connections::shape(memory / 100 * 20).unwrap().all_cells();
    let seeds = if cfg!(feature = "slow-tests") { 6 } else { 1 };
    for seed in 1..=seeds {
        let settings = Settings { memory, ..Settings::new(Seed(seed)) };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        for packet in scenario.packets(unit, seed as u64) {
            engine.packet(&packet);
        }
        assert_eq!(engine.connections().level(), 0, "every connection is followed again");
        let report = engine.finish().0;
        let level = report.connections.sampling.highest;
        assert!(level >= 4, "{level}");
        // In the first seconds no answer has come yet, and the server seems to be flooded.
        let warm_ns = Mix::default().start_ns + 8_000_000_000;
        let later = report.alarms.iter().filter(|alarm| alarm.opened > warm_ns);
        let raised = later
            .map(|alarm| scenario::Alarm { kind: alarm.kind.to_owned(), subject: alarm.subject });
        let judged = scenario.judge(&raised.collect(), unit, level);
        assert!(judged.wrong.is_empty() && judged.missing.is_empty(), "{judged:?}");
    }
}
