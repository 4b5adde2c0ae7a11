//! P2P-like hosts: in generated traffic, beside exact maps, and against the labels of nDPI.

use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Figure, Filter, FlowKey, Generator, Mix, Packet, Report, Settings, Source,
    TcpFlags,
    generate::{Flood, Shares},
    monitor::p2p::{All, Keeping, LISTED, P2p, Shape, Suspect},
    packet::{Fragment, Tcp, Transport, Vlans},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

/// The labels that nDPI gives to P2P programs.
const LABELS: [&str; 7] =
    ["BitTorrent", "eDonkey", "ETHEREUM", "Gnutella", "Skype", "Syncthing", "Zattoo"];

/// The large P2P captures, and the client in each.
const CLIENTS: [(&str, &str); 4] = [
    ("bittorrent_transmission.pcapng", "192.168.1.128"),
    ("skype.pcap", "192.168.1.34"),
    ("gnutella.pcap", "10.1.4.176"),
    ("ethereum.pcap", "192.168.1.184"),
];

fn office(shares: Shares, flood: Option<Flood>) -> Vec<Packet> {
    let mix = Mix { packets: 120_000, shares, flood, ..Mix::default() };
    Generator::new(mix, 5).unwrap().collect()
}

fn with_peers() -> Vec<Packet> {
    office(Mix::default().shares, None)
}

fn run(packets: &[Packet], settings: Settings) -> Report {
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    engine.start().unwrap();
    packets.iter().for_each(|packet| engine.packet(packet));
    engine.finish().0
}

fn exactly(packets: &[Packet], keeping: Keeping) -> P2p<All> {
    let mut monitor = P2p::exact(keeping, Seed(7)).unwrap();
    packets.chunks(512).for_each(|batch| monitor.take(batch));
    monitor
}

/// Hosts listed by a monitor with its share of 16 MiB.
fn listed(packets: &[Packet], seed: u128) -> Vec<Suspect> {
    let mut monitor = P2p::new(Shape::within((16 << 20) / 20), Seed(seed)).unwrap();
    packets.chunks(512).for_each(|batch| monitor.take(batch));
    monitor.suspects(LISTED)
}

fn hosts(suspects: &[Suspect]) -> BTreeSet<IpAddr> {
    suspects.iter().map(|suspect| suspect.host).collect()
}

/// Whether the generator makes this host P2P: one in fifty clients.
fn is_peer(host: IpAddr) -> bool {
    match host {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [a, b, c] == [10, 0, 0] && (1..=20).contains(&d)
        }
        IpAddr::V6(address) => {
            let own = 0x2001_0db8u128 << 96 | 1 << 64;
            (own + 1..=own + 20).contains(&address.to_bits())
        }
    }
}

#[test]
fn the_hosts_that_speak_to_strangers_are_listed_and_no_others() {
    let report = run(&with_peers(), Settings { audit: true, ..Settings::new(Seed(1)) });
    let listed = hosts(&report.p2p);
    assert!(listed.iter().all(|host| is_peer(*host)), "{listed:?}");
    let v4 = listed.iter().filter(|host| host.is_ipv4()).count();
    assert_eq!(v4, 20, "{listed:?}");
    for suspect in &report.p2p {
        let most = suspect.score.most().unwrap();
        assert!((u64::from(LISTED)..=100).contains(&most) && !suspect.reasons.is_empty());
    }
    let p2p = report.audit.as_ref().unwrap().p2p;
    assert!(p2p.exact >= 20 && p2p.missing <= 1 && p2p.extra <= 1, "{p2p:?}");
    let json = report.to_json();
    assert!(json["p2p"][0]["score"].as_u64().unwrap() > 90);
    assert!(json["p2p"][0]["reasons"][0]["peers"].as_u64().unwrap() > 10);
    assert!(report.ledger.refused.iter().all(|(name, _)| !name.starts_with("p2p")));
}

#[test]
fn nobody_is_listed_without_peers_whatever_scans_or_floods() {
    let shares = Shares { web: 40, dns: 30, peers: 0, ping: 2, scan: 28 };
    let victim = "198.18.0.7:9999".parse().unwrap();
    let flood = Flood {
        sources: 60_000,
        victim,
        after: 10_000,
        share: 70,
        answered: 30,
        ..Flood::default()
    };
    let report = run(&office(shares, Some(flood)), Settings::new(Seed(1)));
    assert_eq!(report.p2p, []);
}

#[test]
fn a_flood_does_not_hide_the_peers() {
    let victim = "198.18.0.7:9999".parse().unwrap();
    let flood = Flood {
        sources: 80_000,
        victim,
        after: 10_000,
        share: 60,
        answered: 30,
        ..Flood::default()
    };
    let mix = Mix { packets: 200_000, flood: Some(flood), ..Mix::default() };
    let packets: Vec<_> = Generator::new(mix, 6).unwrap().collect();
    let report = run(&packets, Settings { memory: 2 << 20, ..Settings::new(Seed(2)) });
    let listed = hosts(&report.p2p);
    assert!(listed.iter().all(|host| is_peer(*host)), "{listed:?}");
    assert!(listed.iter().filter(|host| host.is_ipv4()).count() >= 18, "{listed:?}");
    let refused = report.ledger.refused.iter().find(|(name, _)| *name == "p2p_pairs");
    assert!(refused.is_some(), "more pairs than there is room for: {:?}", report.ledger);
}

/// UDP packets from `host` to peers `0..peers` on ports `10_000..10_000 + ports`, and their answers.
fn exchange(host: [u8; 4], peers: u32, ports: u32) -> Vec<Packet> {
    let mut packets = Vec::new();
    for number in 0..peers.max(ports) {
        let peer = (0x0b00_0000 + number % peers).to_be_bytes();
        let port = (10_000 + number % ports) as u16;
        let flow = FlowKey::v4(host, peer, [50_000, port], 17);
        for flow in [flow, flow.reversed()] {
            packets.push(Packet {
                time_ns: 1_000_000_000,
                flow,
                wire_len: 100 + number,
                captured: 100,
                payload_len: 40 + number % 50,
                transport: Transport::Ports,
                fragment: Fragment::Whole,
                ttl: 64,
                vlans: Vlans::default(),
                tunnels: 0,
            });
        }
    }
    packets
}

#[test]
fn no_seed_lists_another_host() {
    const SEEDS: u128 = 1_000;
    // Hosts by their last byte. 1: nine peers, below the line. 2: ten, on it. 3: many peers, on as
    // many ports. 4: many peers, on a third as many ports. 5: above the line. 6: on it.
    let all = [(9, 9), (10, 10), (300, 300), (300, 100), (100, 68), (120, 80)];
    let mut packets = Vec::new();
    for (host, (peers, ports)) in (1..).zip(all) {
        packets.extend(exchange([10, 0, 0, host], peers, ports));
    }
    let host = |last: u8| IpAddr::from([10, 0, 0, last]);
    let score = |suspects: &[Suspect], last: u8| {
        suspects.iter().find(|suspect| suspect.host == host(last)).map(|suspect| suspect.score)
    };
    let exact = exactly(&packets, Keeping::Exact).suspects(1);
    let truth = |last: u8| score(&exact, last).map_or(0, |score| score.value());
    assert_eq!([1, 2, 3, 4, 5, 6].map(truth), [46, 50, 100, 0, 55, 50]);
    let [mut wrong, mut missing] = [0; 2];
    for seed in 0..SEEDS {
        let suspects = listed(&packets, seed);
        assert_eq!(score(&suspects, 1), None, "seed {seed}");
        assert_eq!(score(&suspects, 2).unwrap().value(), 50, "seed {seed}");
        assert!(score(&suspects, 3).unwrap().least() >= 50, "seed {seed}: {suspects:?}");
        assert_eq!(score(&suspects, 4), None, "seed {seed}");
        wrong += u64::from(!score(&suspects, 5).unwrap().allows(55));
        missing += u64::from(score(&suspects, 6).is_none());
    }
    // Three standard errors: 0.27% of intervals miss. Of 1,000, 2.7 + 6 * sqrt(2.7) = 12.6 at the
    // most. On the line, half of these errors hide a host: 1.35 + 6 * sqrt(1.35) = 8.3.
    assert!(wrong <= 12, "{wrong} of {SEEDS}");
    assert!(missing <= 8, "{missing} of {SEEDS}");
}

/// A packet of the test below, with a size that depends on `number`.
fn sent(at: u64, flow: FlowKey, flags: u8, number: u32) -> Packet {
    let transport = match flow.protocol() {
        6 => Transport::Tcp(Tcp { sequence: 1, acknowledgement: 0, flags: TcpFlags(flags) }),
        _ => Transport::Ports,
    };
    Packet {
        time_ns: 1_000_000_000 + at * 1_000_000,
        flow,
        wire_len: 100 + number % 50,
        captured: 100,
        payload_len: 40 + number % 50,
        transport,
        fragment: Fragment::Whole,
        ttl: 64,
        vlans: Vlans::default(),
        tunnels: 0,
    }
}

/// A TCP connection, or UDP packets in both directions; `answered` says whether the far end sends.
fn talk(all: &mut Vec<Packet>, flow: FlowKey, answered: bool) {
    let at = all.len() as u64;
    for (step, flags) in [0x02, 0x12, 0x10, 0x18, 0x18].into_iter().enumerate() {
        let turned = step == 1 || step == 4;
        if !answered && (turned || step == 2) {
            continue;
        }
        let flow = if turned { flow.reversed() } else { flow };
        let number = all.len() as u32 * 7;
        all.push(sent(at + step as u64, flow, flags, number));
    }
}

#[test]
fn clusters_media_servers_scanners_and_servers_are_told_apart_from_peers() {
    let far = |number: u32| (0x5b00_0000 + number * 7_919).to_be_bytes();
    let port = |number: u32| 10_000 + (number.wrapping_mul(40_503) % 50_000) as u16;
    let peers = 0..60u32;
    let mut traffic: Vec<(&str, bool, Vec<Packet>)> = Vec::new();
    let mut add = |name, is_peer, build: &dyn Fn(&mut Vec<Packet>)| {
        let mut packets = Vec::new();
        build(&mut packets);
        traffic.push((name, is_peer, packets));
    };
    let own = [10, 0, 0, 9];
    // Members of a cluster: every one opens and accepts, over TCP and UDP, at one port or at many.
    for (name, many) in [("gossip at one port", false), ("gossip at many ports", true)] {
        add(name, false, &|all| {
            for (one, other) in (1..25u8).flat_map(|one| (1..25u8).map(move |other| (one, other))) {
                let listens = |host: u8| if many { port(host.into()) } else { 7_946 };
                let [a, b] = [[10, 1, 2, one], [10, 1, 2, other]];
                if one != other {
                    talk(all, FlowKey::v4(a, b, [listens(one), listens(other)], 17), true);
                    let from = port(u32::from(one) * 31 + u32::from(other));
                    talk(all, FlowKey::v4(a, b, [from, listens(other)], 6), true);
                }
            }
        });
    }
    add("gossip of public hosts at one port", false, &|all| {
        for (one, other) in (1..25u32).flat_map(|one| (1..25u32).map(move |other| (one, other))) {
            if one != other {
                talk(all, FlowKey::v4(far(one), far(other), [7_946, 7_946], 17), true);
                let from = port(one * 31 + other);
                talk(all, FlowKey::v4(far(one), far(other), [from, 7_946], 6), true);
            }
        }
    });
    // A port of the server for each call; either end sends first.
    for server in [own, [203, 0, 113, 9]] {
        add("media server", false, &|all| {
            for call in peers.clone() {
                for more in 0..2 {
                    let local = 20_000 + 4 * call as u16 + more;
                    let flow = FlowKey::v4(server, far(call), [local, port(call) + more], 17);
                    talk(all, if call % 2 == 0 { flow } else { flow.reversed() }, true);
                }
            }
        });
    }
    add("media server with one port", false, &|all| {
        for call in peers.clone() {
            talk(all, FlowKey::v4(far(call), own, [port(call), 10_000], 17), true);
        }
    });
    // Over both protocols, at P2P ports, from one port, at random ports: nobody answers.
    add("unanswered scanner", false, &|all| {
        for number in 0..400 {
            let to = far(number);
            talk(all, FlowKey::v4(own, to, [50_000, port(number)], 17), false);
            talk(all, FlowKey::v4(own, to, [50_000 + number as u16, port(number)], 6), false);
            talk(all, FlowKey::v4(own, to, [40_000 + number as u16, 6_881], 6), false);
            talk(all, FlowKey::v4(own, to, [50_001, 6_881], 17), false);
        }
    });
    add("game server over TCP and UDP", false, &|all| {
        for number in peers.clone() {
            talk(all, FlowKey::v4(far(number), own, [port(number), 25_565], 6), true);
            talk(all, FlowKey::v4(far(number), own, [port(number) + 1, 25_565], 17), true);
        }
    });
    add("P2P behind NAT", true, &|all| {
        for number in peers.clone() {
            talk(all, FlowKey::v4(own, far(number), [51_413, port(number)], 17), number % 3 != 0);
            let from = 40_000 + number as u16;
            talk(all, FlowKey::v4(own, far(number), [from, port(number)], 6), number % 2 == 0);
        }
    });
    add("P2P that accepts", true, &|all| {
        for number in peers.clone() {
            let flow = FlowKey::v4(own, far(number), [51_413, port(number)], 17);
            talk(all, if number % 2 == 0 { flow } else { flow.reversed() }, true);
            let (out, into) = ([40_000 + number as u16, port(number)], [port(number + 99), 51_413]);
            match number % 2 {
                0 => talk(all, FlowKey::v4(own, far(number), out, 6), true),
                _ => talk(all, FlowKey::v4(far(number), own, into, 6), true),
            }
        }
    });
    for (name, is_peer, packets) in &traffic {
        let exact = exactly(packets, Keeping::Exact).suspects(1);
        let found: Vec<_> =
            exact.iter().map(|one| (one.host, one.score.value(), one.reasons.clone())).collect();
        println!("{name}: {found:?}");
        for seed in 0..100 {
            let listed = hosts(&listed(packets, seed));
            if *is_peer {
                let only: BTreeSet<IpAddr> = [own.into()].into();
                assert_eq!(listed, only, "{name}, seed {seed}");
            } else {
                assert_eq!(listed, BTreeSet::new(), "{name}, seed {seed}: {exact:?}");
            }
        }
    }
}

#[test]
fn no_seed_changes_the_score_of_a_captured_host() {
    let Some(folder) = std::env::var_os("SIDON_CORPUS").map(PathBuf::from) else {
        eprintln!("SKIPPED: SIDON_CORPUS is not set, no host was scored under many seeds");
        return;
    };
    let mut near = 0;
    for (name, _) in CLIENTS {
        let all = capture(&folder.join("p2p").join(name));
        // Parts of a capture, so that some scores lie near the line.
        for part in 1..=8 {
            let packets = &all[..all.len() * part / 8];
            let scores = |seed| -> Vec<_> {
                let suspects = listed(packets, seed).into_iter();
                suspects.map(|suspect| (suspect.host, suspect.score.value())).collect()
            };
            let first = scores(0);
            near += first.iter().filter(|(_, score)| (35..=65).contains(score)).count();
            for seed in 1..100 {
                assert_eq!(scores(seed), first, "{name}, {part} of 8, seed {seed}");
            }
        }
    }
    println!("{near} scores near the line");
    assert!(near > 0);
}

#[test]
fn refused_pairs_leave_estimates_without_a_bound() {
    let packets = exchange([10, 0, 0, 1], 15, 15);
    let mut monitor = P2p::new(Shape::within((16 << 20) / 20), Seed(1)).unwrap();
    monitor.take(&packets[..28]);
    let before = monitor.suspects(LISTED)[0].clone();
    assert_eq!(before.reasons[0].to_string(), "port 50000 with about 14 hosts on about 14 ports");
    assert_eq!(before.score.value(), 62);
    monitor.refuse_after(0);
    monitor.take(&packets[28..]);
    let after = monitor.suspects(LISTED)[0].clone();
    assert_eq!(after.reasons[0].to_string(), before.reasons[0].to_string());
    assert_eq!(after.score, Figure::estimate(62, 0, 100));
    let json = after.to_json();
    assert_eq!(json["reasons"][0]["peers"], 14);
    let figure = serde_json::json!({ "kind": "unknown", "interval": [0, null] });
    assert_eq!(json["reasons"][0]["peers_figure"], figure);
    assert_eq!(json["reasons"][0]["ports_figure"], figure);
    let figure = serde_json::json!({ "kind": "estimate", "interval": [0, 100] });
    assert_eq!((&json["score"], &json["score_figure"]), (&62.into(), &figure));
}

#[test]
fn threads_change_no_score() {
    let packets = with_peers();
    let packets = &packets[..40_000];
    let one = run(packets, Settings::new(Seed(3)));
    assert!(!one.p2p.is_empty());
    for threads in [2, 8] {
        assert_eq!(one.p2p, run(packets, Settings { threads, ..Settings::new(Seed(3)) }).p2p);
    }
}

/// The difference from exact maps in listed hosts: `[missing, extra]`.
fn difference(exact: &P2p<All>, other: &P2p<All>) -> [usize; 2] {
    let (exact, other) = (hosts(&exact.suspects(LISTED)), hosts(&other.suspects(LISTED)));
    [exact.difference(&other).count(), other.difference(&exact).count()]
}

/// By bits per pair (8, 16, 32) and by map (direct, stateful, fingerprint): hosts missing, and
/// extra.
type Differences = [[[usize; 2]; 3]; 3];

fn differences(packets: &[Packet]) -> Differences {
    let exact = exactly(packets, Keeping::Exact);
    let pairs = exact.pairs();
    [8, 16, 32].map(|bits| {
        [
            Keeping::direct(pairs, bits),
            Keeping::stateful(pairs, bits),
            Keeping::fingerprints(pairs, bits),
        ]
        .map(|keeping| difference(&exact, &exactly(packets, keeping)))
    })
}

fn print_differences(rows: &[(String, usize, Differences)]) {
    println!("\nhosts missing + extra against exact maps, by bits a pair");
    println!(
        "{:34}{:>6}  {:>5}{:>10}{:>10}{:>14}",
        "", "hosts", "bits", "direct", "stateful", "fingerprint"
    );
    for (name, listed, rows) in rows {
        for (bits, row) in [8, 16, 32].iter().zip(rows) {
            let [direct, stateful, fingerprint] =
                row.map(|[missing, extra]| format!("{missing} + {extra}"));
            println!("{name:34}{listed:>6}  {bits:>5}{direct:>10}{stateful:>10}{fingerprint:>14}");
        }
    }
}

#[test]
fn fingerprints_of_32_bits_a_pair_list_the_hosts_of_exact_maps() {
    let packets = with_peers();
    let listed = exactly(&packets, Keeping::Exact).suspects(LISTED).len();
    let all = differences(&packets);
    print_differences(&[("generated".to_owned(), listed, all)]);
    let of = |[missing, extra]: [usize; 2]| missing + extra;
    let [eight, sixteen, all_32] = all.map(|row| row.map(of));
    assert_eq!(all_32[2], 0, "{all:?}");
    assert!(sixteen[2] <= eight[2], "{all:?}");
}

fn capture(path: &Path) -> Vec<Packet> {
    let mut source = Source::open(path).unwrap();
    let (decoder, mut packets) = (Decoder::default(), Vec::new());
    while let Ok(Some(frame)) = source.next() {
        packets.extend(decoder.decode(&frame));
    }
    packets
}

/// For each host of a capture: other hosts of flows with a P2P label of nDPI, and the number of
/// flows with any other label. Flows labelled Unknown are left out.
type Labels = BTreeMap<IpAddr, (BTreeSet<IpAddr>, u64)>;

fn labels(path: &Path) -> Option<Labels> {
    let mut labels = Labels::new();
    for line in std::fs::read_to_string(format!("{}.out", path.display())).ok()?.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let Some(name) =
            line.split("[proto: ").nth(1).and_then(|rest| rest.split([']', '[']).next())
        else {
            continue;
        };
        let name = name.split_once('/').map_or(name, |(_, name)| name);
        let end = |at: usize| words.get(at)?.parse::<SocketAddr>().ok();
        let (Some(one), Some(other)) = (end(2), end(4)) else { continue };
        if !line.starts_with('\t') || name == "Unknown" {
            continue;
        }
        // A DNS query is not P2P traffic.
        let peers = !name.starts_with("DNS") && LABELS.iter().any(|label| name.contains(label));
        for (own, other) in [(one.ip(), other.ip()), (other.ip(), one.ip())] {
            let own = labels.entry(own).or_default();
            if peers {
                own.0.insert(other);
            } else {
                own.1 += 1;
            }
        }
    }
    Some(labels)
}

fn captures(folder: &Path) -> Vec<(String, PathBuf)> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let is_capture = |path: &PathBuf| {
        matches!(path.extension().and_then(|name| name.to_str()), Some("pcap" | "pcapng"))
    };
    let mut files: Vec<_> = files.filter(is_capture).collect();
    files.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files.into_iter().map(|path| (name(&path), path)).collect()
}

#[test]
fn clients_of_peers_are_listed_as_the_labels_of_ndpi_say() {
    let Some(folder) = std::env::var_os("SIDON_CORPUS").map(PathBuf::from) else {
        eprintln!("SKIPPED: SIDON_CORPUS is not set, no host was compared with nDPI's labels");
        return;
    };
    // For each least number of peers: hosts with at least that many, and how many of them are
    // listed.
    const LEAST: [usize; 3] = [1, 3, 10];
    let mut found = [[0usize; 2]; 3];
    let (mut right, mut wrong, mut negatives) = (0, 0, 0);
    // Under other seeds: hosts listed in captures without P2P.
    let mut otherwise = [0; 10];
    let mut flagged: BTreeMap<String, Vec<Suspect>> = BTreeMap::new();
    let mut compared = Vec::new();
    for (part, is_p2p) in [("p2p", true), ("nonp2p", false)] {
        for (name, path) in captures(&folder.join(part)) {
            let packets = capture(&path);
            let suspects = listed(&packets, 8);
            let listed_hosts = hosts(&suspects);
            for (seed, count) in (100..).zip(&mut otherwise) {
                let others = hosts(&listed(&packets, seed));
                *count += if is_p2p { 0 } else { others.len() };
            }
            let exact = exactly(&packets, Keeping::Exact);
            if let Some((_, client)) = CLIENTS.iter().find(|(large, _)| *large == name) {
                let client: IpAddr = client.parse().unwrap();
                let of = |suspects: Vec<Suspect>| {
                    suspects.into_iter().find(|suspect| suspect.host == client)
                };
                let truth = of(exact.suspects(LISTED)).unwrap().score.value();
                // Scores have 95 % intervals: 50 seeds, six standard deviations below 95 %.
                let least = 50.0 * 0.95 - 6.0 * (50.0f64 * 0.95 * 0.05).sqrt();
                let scores = (200..250).map(|seed| of(listed(&packets, seed)).unwrap().score);
                let held = scores.filter(|score| score.allows(truth)).count();
                assert!(held as f64 >= least, "{name}: {held} of 50 intervals hold {truth}");
            }
            if exact.pairs() >= 50 {
                let all = exact.suspects(LISTED).len();
                compared.push((name.clone(), all, differences(&packets)));
            }
            if let Some(labels) = labels(&path) {
                for (host, (peers, others)) in &labels {
                    let peers = if is_p2p { peers.len() } else { 0 };
                    for (least, [all, hits]) in LEAST.iter().zip(&mut found) {
                        if peers >= *least {
                            *all += 1;
                            *hits += usize::from(listed_hosts.contains(host));
                        }
                    }
                    negatives += usize::from(peers == 0 && *others > 0);
                    match (listed_hosts.contains(host), peers > 0) {
                        (true, true) => right += 1,
                        (true, false) => wrong += 1,
                        _ => {}
                    }
                }
            }
            for suspect in &suspects {
                println!("{part}/{name}: {} scores {:#}", suspect.host, suspect.score);
                suspect.reasons.iter().for_each(|reason| println!("    {reason}"));
            }
            flagged.insert(format!("{part}/{name}"), suspects);
        }
    }
    println!("\nprecision: {right} of {} listed hosts with labels are peers'", right + wrong);
    println!("negatives: {wrong} listed of {negatives} hosts with other labels only");
    println!("{:>30}{:>8}{:>8}", "hosts with labelled peers", "all", "listed");
    for (least, [all, hits]) in LEAST.iter().zip(found) {
        println!("{:>30}{all:>8}{hits:>8}", format!("{least} or more"));
    }
    print_differences(&compared);
    for (name, client) in CLIENTS {
        let client: IpAddr = client.parse().unwrap();
        let suspects = &flagged[&format!("p2p/{name}")];
        assert!(suspects.iter().any(|suspect| suspect.host == client), "{name}");
    }
    let false_ones: usize = flagged
        .iter()
        .filter(|(name, _)| name.starts_with("nonp2p"))
        .map(|(_, suspects)| suspects.len())
        .sum();
    assert!(false_ones <= 2, "{false_ones} hosts listed where there are no peers");
    assert!(otherwise.iter().all(|count| *count <= 2), "{otherwise:?}");
    assert_eq!(wrong, 0, "listed hosts have other labels only");
    let [all, hits] = found[2];
    assert!(all >= 4 && hits == all, "{hits} of {all} hosts of ten peers or more");
    for (name, _, [_, _, [_, _, fingerprint]]) in &compared {
        assert_eq!(*fingerprint, [0, 0], "{name} at 32 bits a pair");
    }
}
