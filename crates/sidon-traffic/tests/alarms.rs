//! Alarms: raised with the right name, closed when it is over, and not raised by honest traffic.

use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, Generator, Mix, Packet, Report, Settings, Source,
    generate::{Flood, SCANNER, Shares},
};
use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

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
    engine.finish().0
}

fn flooded(answered: u32) -> Mix {
    let victim = "198.18.0.7:8443".parse().unwrap();
    let flood = Flood { sources: 60_000, victim, after: 50_000, share: 60, answered };
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
        // The flood starts two and a half seconds on, and the rest goes on for half a minute.
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
    let Some(folder) = std::env::var_os("SIDON_CORPUS").map(PathBuf::from) else {
        eprintln!("SKIPPED: SIDON_CORPUS is not set, no capture was looked at for alarms");
        return;
    };
    let mut raised = Vec::new();
    each_file(&folder, &mut |path| {
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
            println!("{name}: {} {:?}", alarm.text, alarm.evidence);
            raised.push((name.clone(), alarm.kind, alarm.subject.to_string()));
        }
    });
    for (name, kind, subject) in [
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
    let honest = raised.iter().filter(|(name, ..)| name.starts_with("nonp2p"));
    assert_eq!(honest.count(), 0, "{raised:?}");
}

fn each_file(folder: &Path, act: &mut dyn FnMut(&Path)) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { each_file(&path, act) } else { act(&path) }
    }
}
