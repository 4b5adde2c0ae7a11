//! Alarms: raised with the right name, closed afterwards, and not raised by honest traffic.

use crate::walk;
use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Figure, Filter, FlowKey, Generator, Mix, Packet, Report, Settings, Source,
    figure::Kind,
    generate::{
        Flood, SCANNER, Shares,
        scenario::{self, Scenario},
    },
    monitor::{
        connections,
        incidents::{Incident, KINDS},
    },
    packet::{Tcp, TcpFlags, Transport},
};
use std::net::IpAddr;

fn office(packets: u64) -> Mix {
    Mix { packets, active: 1_000, rate: 20_000, ..Mix::default() }
}

fn run(packets: impl Iterator<Item = Packet>, threads: usize) -> Report {
    let settings = Settings { threads, ..Settings::new(Seed(5)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    engine.start().unwrap();
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
        let evidence: Vec<_> = alarm.evidence.iter().map(|(_, n)| n.value()).collect();
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
    assert_eq!(raised, [("random_scan", source.into())], "{:?}", report.alarms);
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

/// SYNs to `ports` ports of one victim, `gap` nanoseconds apart.
fn port_scan(ports: u16, gap: u64) -> Vec<Packet> {
    let mut office = Generator::new(office(20_000), 8).unwrap();
    let is_syn = |packet: &Packet| packet.tcp_flags() == TcpFlags::SYN && packet.flow.is_v4();
    let example = office.find(is_syn).unwrap();
    let syn = |number: u16| {
        let flow = FlowKey::v4([203, 0, 113, 9], [10, 0, 0, 7], [40_000, 1 + number], 6);
        let time_ns = Mix::default().start_ns + u64::from(number) * gap;
        Packet { time_ns, flow, ..example }
    };
    (0..ports).map(syn).collect()
}

fn evidence(alarm: &Incident, name: &str) -> Figure {
    alarm.evidence.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn the_number_of_ports_is_estimated_under_the_seed_of_the_engine() {
    const SEEDS: u128 = 100;
    let packets = port_scan(1_000, 1_000_000);
    let mut figures = Vec::new();
    for seed in 0..SEEDS {
        let settings = Settings { memory: 256 << 10, ..Settings::new(Seed(seed)) };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        packets.iter().for_each(|packet| engine.packet(packet));
        let report = engine.finish().0;
        let scan = report.alarms.iter().find(|alarm| alarm.kind == "port_scan").unwrap();
        figures.push(evidence(scan, "targets_about"));
    }
    let held = figures.iter().filter(|figure| figure.allows(1_000)).count();
    // Six standard deviations below 95%: 95 - 6 * sqrt(100 * 0.95 * 0.05) = 81.9.
    assert!(held >= 82, "{held} of {SEEDS} intervals hold 1,000");
    figures.sort_by_key(Figure::value);
    figures.dedup();
    assert!(figures.len() > 50, "a fixed hash gives one figure under every seed: {figures:?}");
}

#[test]
fn evidence_is_exact_only_while_every_connection_is_followed() {
    // The busy office evicts the victim at first, so some of its attempts are not counted.
    let busy = run(Generator::new(flooded(0), 1).unwrap(), 1);
    assert!(!busy.connections.sampling.is_sampled());
    let [exact, estimate, at_least] = [Kind::Exact, Kind::Estimate, Kind::AtLeast];
    let names = ["attempts", "peak_pending", "sources_about"];
    let kinds = |report: &Report| names.map(|name| evidence(&report.alarms[0], name).kind());
    assert_eq!(kinds(&busy), [at_least, at_least, estimate]);
    // A flood alone is counted, and two of its connections may be confused.
    let mix = flooded(0);
    let victim = mix.flood.unwrap().victim;
    let at_victim = |packet: &Packet| {
        let flow = &packet.flow;
        let is_syn = packet.tcp_flags() == TcpFlags::SYN;
        is_syn
            && (flow.destination(), flow.destination_port())
                == (IpAddr::from(*victim.ip()), victim.port())
    };
    let alone = run(Generator::new(mix, 1).unwrap().filter(at_victim), 1);
    assert_eq!(kinds(&alone), [estimate; 3]);
    // A short one is counted exactly.
    let few = Generator::new(mix, 1).unwrap().filter(at_victim).take(300);
    assert_eq!(kinds(&run(few, 1)), [exact, exact, estimate]);
    let syns = Generator::new(mix, 1).unwrap().filter(at_victim).map(|packet| packet.flow.source());
    let sources: std::collections::HashSet<_> = syns.collect();
    for report in [&busy, &alone] {
        let alarm = &report.alarms[0];
        for (name, truth) in [
            ("attempts", sources.len() as u64),
            ("sources_about", sources.len() as u64),
            ("peak_pending", evidence(&alone.alarms[0], "peak_pending").value()),
        ] {
            let figure = evidence(alarm, name);
            assert!(figure.allows(truth), "{name}: {figure:#} of {truth}");
        }
    }

    // A table that is too small samples the connections of the same flood.
    let settings = Settings { memory: 256 << 10, ..Settings::new(Seed(5)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    Generator::new(flooded(0), 1).unwrap().for_each(|packet| engine.packet(&packet));
    let sampled = engine.finish().0;
    assert!(sampled.connections.sampling.is_sampled());
    let alarm = sampled.alarms.iter().find(|alarm| alarm.kind == "syn_flood").unwrap();
    for (name, figure) in &alarm.evidence {
        assert_eq!(figure.kind(), at_least, "{name}");
        let truth = evidence(&alone.alarms[0], name);
        assert!(figure.value() <= truth.most().unwrap(), "{name}: {figure} of {truth}");
    }
    let json = alarm.to_json();
    assert_eq!(json["evidence_figure"]["attempts"]["kind"], "at_least");
    assert_eq!(json["evidence"]["attempts"], evidence(alarm, "attempts").value());
}

#[test]
fn periods_of_a_scan_and_a_flood_are_one_alarm_each_and_the_flood_is_first() {
    // A scan of 100 ports in 80 seconds, and a flood that begins after 30.
    let mut packets = port_scan(100, 800_000_000);
    let begin = Mix::default().start_ns;
    for number in 0..40_000u32 {
        let flow = FlowKey::v4((0x0c00_0000 + number).to_be_bytes(), [10, 0, 0, 8], [9_999, 80], 6);
        let time_ns = begin + 30_000_000_000 + u64::from(number) * 1_000_000;
        packets.push(Packet { time_ns, flow, ..packets[0] });
    }
    packets.sort_by_key(|packet| packet.time_ns);
    let mut engine =
        Engine::new(Settings::new(Seed(5)), Filter::default(), Decoder::default()).unwrap();
    let mut periods = Vec::new();
    for packet in &packets {
        if packet.time_ns >= begin + (periods.len() as u64 + 1) * 20_000_000_000 {
            engine.rotate(|snapshot| periods.push(snapshot)).unwrap();
        }
        engine.packet(packet);
    }
    let last = engine.snapshot();
    let whole = run(packets.iter().copied(), 1);
    assert_eq!(periods.len(), 3);
    let mut merged = periods.remove(0);
    for period in periods.into_iter().chain([last]) {
        merged.merge(period).unwrap();
    }
    let report = merged.report();
    let names = |report: &Report| -> Vec<_> {
        report.alarms.iter().map(|alarm| (alarm.kind, alarm.subject.to_string())).collect()
    };
    let expected = [("syn_flood", "10.0.0.8"), ("port_scan", "203.0.113.9")];
    assert_eq!(names(&report), expected.map(|(kind, subject)| (kind, subject.to_owned())));
    assert_eq!(names(&report), names(&whole));
    assert!(report.alarms[0].opened > report.alarms[1].opened);
    assert_eq!((report.alarms_raised[0], report.alarms_raised[2]), (1, 1));
    for (alarm, single) in report.alarms.iter().zip(&whole.alarms) {
        assert_eq!((alarm.opened, alarm.closed), (single.opened, single.closed));
        for (name, figure) in &alarm.evidence {
            let truth = evidence(single, name).value();
            assert!(figure.allows(truth), "{name}: {figure:#} of {truth}");
        }
        // A SYN may be repeated in the next period, so only those of one period are certain. The
        // largest of four periods has at least a quarter.
        let (attempts, all) = (evidence(alarm, "attempts"), evidence(single, "attempts").value());
        assert_eq!((attempts.kind(), attempts.most()), (Kind::AtLeast, None));
        assert!(attempts.value() * 4 >= all, "{attempts} of {all}");
    }
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
            println!("{name}: {} {:?}", alarm.text, alarm.evidence_text());
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
        for packet in scenario.packets(unit, seed as u64, u64::MAX).unwrap() {
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
