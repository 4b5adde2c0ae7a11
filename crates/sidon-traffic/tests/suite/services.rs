//! The services of packets: each rule, the counts by rule, and the responders that Zeek and tshark
//! found in real captures.

use crate::walk;
use sidon::{Key, Seed};
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Generator, Mix, Packet, Report, Settings, Snapshot, Source,
    Tunnels,
    batch::{Batch, PACKETS},
    budget::Budget,
    export::Record,
    flow::protocol,
    generate::Flood,
    monitor::{
        connections::Connections,
        services::{self, Responder, Rule, Services},
        sizes::{self, Port},
    },
    packet::{Fragment, Tcp, TcpFlags, Transport, Vlans},
};
use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, SocketAddr},
    path::Path,
};

const SEED: Seed = Seed(5);
const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;

const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;
const FIN: TcpFlags = TcpFlags::FIN;

/// The monitors that name services.
struct Monitors {
    connections: Connections,
    services: Services,
    batch: Batch,
}

impl Monitors {
    /// Those of an engine of 16 MiB.
    fn new() -> Self {
        let budget = Budget::of(16 << 20).unwrap();
        Monitors {
            connections: Connections::new(budget.connections, SEED, false).unwrap(),
            services: Services::new(budget.services, SEED).unwrap(),
            batch: Batch::new(),
        }
    }

    /// Calls `named` with the responder of each packet.
    fn take(&mut self, packets: &[Packet], mut named: impl FnMut(&Packet, Option<Responder>)) {
        for packets in packets.chunks(PACKETS) {
            self.batch.clear();
            self.batch.packets.extend(packets);
            self.batch.sort(SEED);
            self.connections.take(packets, &self.batch.flows);
            self.services.take(&mut self.batch, &self.connections);
            for (packet, responder) in packets.iter().zip(self.services.responders()) {
                named(packet, *responder);
            }
        }
    }

    /// The responders' ports, and the rules that named them.
    fn names(&mut self, packets: &[Packet]) -> Vec<(u16, Rule)> {
        let mut names = Vec::new();
        self.take(packets, |packet, responder| {
            let responder = responder.expect("the packet has ports");
            let [number, high, low] = responder.service(&packet.flow);
            assert_eq!(number, packet.flow.protocol());
            names.push((u16::from_be_bytes([high, low]), responder.rule));
        });
        names
    }
}

fn names(packets: &[Packet]) -> Vec<(u16, Rule)> {
    Monitors::new().names(packets)
}

/// A flow from 10.0.0.1 to 10.0.0.2.
fn flow(from: u16, to: u16, number: u8) -> FlowKey {
    FlowKey::v4([10, 0, 0, 1], [10, 0, 0, 2], [from, to], number)
}

fn packet(flow: FlowKey, transport: Transport, payload_len: u32, time_ns: u64) -> Packet {
    Packet {
        time_ns,
        flow,
        wire_len: 60 + payload_len,
        captured: 60,
        payload_len,
        transport,
        fragment: Fragment::Whole,
        ttl: 60,
        vlans: Vlans::default(),
        tunnels: 0,
    }
}

/// A TCP segment; it has payload unless it opens or closes a connection.
fn segment(flow: FlowKey, flags: TcpFlags) -> Packet {
    let payload = if flags.any(SYN.with(FIN).with(TcpFlags::RST)) { 0 } else { 100 };
    let tcp = Tcp { sequence: 0, acknowledgement: 0, flags };
    packet(flow, Transport::Tcp(tcp), payload, START)
}

fn datagram(flow: FlowKey) -> Packet {
    packet(flow, Transport::Ports, 100, START)
}

fn engine(memory: u64, threads: usize) -> Engine {
    let settings = Settings { memory, threads, top: 5_000, ..Settings::new(SEED) };
    Engine::new(settings, Filter::default(), Decoder::default()).unwrap()
}

fn watched(memory: u64, threads: usize, packets: &[Packet]) -> Report {
    let mut engine = engine(memory, threads);
    engine.start().unwrap();
    packets.iter().for_each(|packet| engine.packet(packet));
    engine.finish().0
}

/// Packets of each service in a report, the heaviest service first.
fn services(report: &Report) -> Vec<(String, u64)> {
    let entries = report.ports.entries.iter();
    entries.map(|entry| (sizes::port_name(entry.key), entry.amounts[1].most)).collect()
}

#[test]
fn a_syn_names_the_responder_of_the_whole_connection() {
    // By its ports alone, 443 would be the service.
    let (there, back) = (flow(443, 60_000, protocol::TCP), flow(443, 60_000, 6).reversed());
    let packets = [
        segment(there, SYN),
        segment(back, SYN.with(ACK)),
        segment(there, ACK),
        segment(back, ACK),
        segment(there, FIN.with(ACK)),
        segment(back, FIN.with(ACK)),
        segment(there, ACK),
    ];
    assert_eq!(names(&packets), [(60_000, Rule::Syn); 7]);
    // The SYN-ACK is enough, from the start or later.
    assert_eq!(names(&packets[1..]), [(60_000, Rule::Syn); 6]);
    let late = [packets[3], packets[1], packets[2], packets[3]];
    let mut expected = [(60_000, Rule::Syn); 4];
    expected[0] = (443, Rule::RegisteredPort);
    assert_eq!(names(&late), expected);
    // A new connection between the same ends may have another opener.
    let again = [packets[0], segment(back, TcpFlags::RST), segment(back, SYN), packets[1]];
    assert_eq!(names(&again)[1..3], [(60_000, Rule::Syn), (443, Rule::Syn)]);
}

#[test]
fn a_connection_from_the_middle_is_named_by_a_registered_port_or_by_its_first_sender() {
    let download = flow(443, 50_000, protocol::TCP);
    let packets = [segment(download, ACK), segment(download.reversed(), ACK)];
    assert_eq!(names(&packets), [(443, Rule::RegisteredPort); 2]);
    let peers = flow(40_000, 50_000, protocol::TCP);
    let (there, back) = (segment(peers, ACK), segment(peers.reversed(), ACK));
    let [fin_there, fin_back] = [there, back].map(|one| segment(one.flow, FIN.with(ACK)));
    let packets = [there, back, there, fin_there, fin_back, there];
    assert_eq!(names(&packets), [(50_000, Rule::FirstSender); 6]);
    assert_eq!(names(&packets[1..]), [(40_000, Rule::FirstSender); 5]);
}

#[test]
fn flows_without_connections_are_named_by_their_first_sender() {
    for number in [protocol::UDP, protocol::UDP_LITE, protocol::SCTP, protocol::DCCP] {
        let query = flow(1_100, 40_000, number);
        let (there, back) = (datagram(query), datagram(query.reversed()));
        let expected = [(40_000, Rule::FirstSender); 3];
        assert_eq!(names(&[there, back, there]), expected);
        assert_eq!(names(&[back, there]), [(1_100, Rule::FirstSender); 2]);
        // After a minute of silence the flow is known, after two it is not.
        let at = |one: Packet, seconds| Packet { time_ns: START + seconds * SECOND, ..one };
        let mut monitors = Monitors::new();
        assert_eq!(monitors.names(&[there, at(back, 59)]), expected[..2]);
        assert_eq!(monitors.names(&[at(back, 118)]), expected[..1]);
        let other: Vec<_> = (119..=240).map(|s| at(datagram(flow(1, 2, number)), s)).collect();
        monitors.names(&other);
        assert_eq!(monitors.names(&[at(back, 241)]), [(1_100, Rule::FirstSender)]);
    }
}

#[test]
fn a_flow_that_is_not_followed_is_named_by_its_ports() {
    let mut monitors = Monitors::new();
    monitors.connections.refuse_after(0);
    monitors.services.refuse_after(0);
    let named = |monitors: &mut Monitors, packet| monitors.names(&[packet])[0];
    for number in [protocol::TCP, protocol::UDP] {
        for (ports, expected) in [
            ([50_000, 443], (443, Rule::RegisteredPort)),
            ([443, 50_000], (443, Rule::RegisteredPort)),
            ([8_080, 2_000], (8_080, Rule::RegisteredPort)),
            ([6_346, 2_000], (6_346, Rule::RegisteredPort)),
            ([53, 443], (53, Rule::LowerPort)),
            ([50_000, 40_000], (40_000, Rule::LowerPort)),
            ([0, 40_000], (40_000, Rule::LowerPort)),
            ([0, 443], (443, Rule::RegisteredPort)),
        ] {
            let flow = flow(ports[0], ports[1], number);
            let one = if number == protocol::TCP { segment(flow, ACK) } else { datagram(flow) };
            assert_eq!(named(&mut monitors, one), expected);
            // The bytes of a segment that was cut before its flags.
            let cut = packet(flow, Transport::Cut, 0, START);
            assert_eq!(named(&mut monitors, cut), expected);
        }
    }
    // A SYN or SYN-ACK needs no table.
    let there = flow(443, 50_000, protocol::TCP);
    assert_eq!(named(&mut monitors, segment(there, SYN)), (50_000, Rule::Syn));
    assert_eq!(named(&mut monitors, segment(there, SYN.with(ACK))), (443, Rule::Syn));
    assert_eq!(monitors.services.refused(), 16);
    assert_eq!(monitors.services.counts(), [2, 0, 20, 12]);
}

#[test]
fn packets_without_ports_have_no_service() {
    let ping = packet(flow(0, 0, protocol::ICMP), Transport::Icmp { kind: 8, code: 0 }, 56, START);
    let fragment = Packet { fragment: Fragment::Later, ..datagram(flow(0, 0, protocol::UDP)) };
    let mut monitors = Monitors::new();
    monitors.take(&[ping, fragment], |_, responder| assert_eq!(responder, None));
    assert_eq!(monitors.batch.columns.ports[..2], [sizes::NO_PORT; 2]);
    assert_eq!(monitors.services.counts(), [0; 4]);
}

#[test]
fn a_full_map_refuses_flows_and_counts_them() {
    let mut monitors = Monitors::new();
    monitors.services = Services::new(services::shape(0), SEED).unwrap();
    let flows = |ports: std::ops::Range<u16>| -> Vec<_> {
        ports.map(|port| datagram(flow(port, 20_000, protocol::UDP))).collect()
    };
    // Two buckets of 21 cells.
    let few = monitors.names(&flows(30_000..30_010));
    assert_eq!(few, [(20_000, Rule::FirstSender); 10]);
    let many = monitors.names(&flows(10_000..11_000));
    let by_first = many.iter().filter(|name| **name == (20_000, Rule::FirstSender)).count();
    let by_port = many.iter().filter(|(_, rule)| *rule == Rule::LowerPort).count();
    assert!((20..=32).contains(&by_first), "{by_first}");
    assert_eq!(by_first + by_port, 1_000);
    assert_eq!(monitors.services.refused(), by_port as u64);
    assert_eq!(monitors.services.counts(), [0, 10 + by_first as u64, 0, by_port as u64]);
    // Flows that were stored before keep their service.
    let back: Vec<_> = flows(30_000..30_010)
        .iter()
        .map(|one| Packet { flow: one.flow.reversed(), ..*one })
        .collect();
    assert_eq!(monitors.names(&back), few);
}

#[test]
fn a_port_scan_lists_the_ports_that_were_scanned() {
    const SCANNER: u16 = 31_337;
    let mut packets = Vec::new();
    for port in (1..=1_000).chain(40_000..40_100) {
        let probe = flow(SCANNER, port, protocol::TCP);
        packets.push(segment(probe, SYN));
        packets.push(segment(probe.reversed(), TcpFlags::RST.with(ACK)));
    }
    let report = watched(16 << 20, 1, &packets);
    let services = services(&report);
    assert_eq!(services.len(), 1_100);
    assert!(services.iter().all(|(name, packets)| *name != "31337/tcp" && *packets == 2));
    assert_eq!(report.ledger.services, [2_200, 0, 0, 0]);
}

#[test]
fn flow_records_are_named_by_a_lone_syn_or_by_their_ports() {
    let record = |flow, flags: Option<TcpFlags>, packets| Record {
        time_ns: START,
        flow,
        packets,
        bytes: 100 * packets,
        flags,
        icmp: None,
    };
    let mut engine = engine(1 << 20, 1);
    let handshake = SYN.with(ACK).with(FIN);
    // An attempt from a registered port. A handshake tells of both ends, and so do the rest.
    engine.record(&record(flow(443, 50_000, protocol::TCP), Some(SYN), 3));
    engine.record(&record(flow(50_001, 8_080, protocol::TCP), Some(handshake), 10));
    engine.record(&record(flow(8_080, 50_001, protocol::TCP), Some(handshake), 20));
    engine.record(&record(flow(60_001, 60_000, protocol::TCP), Some(handshake), 40));
    engine.record(&record(flow(60_000, 60_001, protocol::TCP), Some(ACK), 80));
    engine.record(&record(flow(53, 40_000, protocol::UDP), None, 160));
    engine.record(&record(flow(60_002, 60_003, protocol::TCP), None, 320));
    engine.record(&record(flow(0, 0, protocol::ICMP), None, 640));
    let report = engine.finish().0;
    let expected = [
        ("60002/tcp", 320),
        ("53/udp", 160),
        ("60000/tcp", 120),
        ("8080/tcp", 30),
        ("50000/tcp", 3),
    ];
    assert_eq!(services(&report), expected.map(|(name, n)| (name.to_owned(), n)));
    assert_eq!(report.ledger.services, [3, 0, 10 + 20 + 160, 40 + 80 + 320]);
}

#[test]
fn a_flow_that_goes_on_after_a_rotation_keeps_its_service() {
    let call = flow(50_000, 40_000, protocol::UDP);
    let mut engine = engine(1 << 20, 1);
    engine.packet(&datagram(call));
    let rotated = engine.rotate(|snapshot| snapshot.ledger().services).unwrap();
    engine.packet(&datagram(call.reversed()));
    let report = engine.finish().0;
    assert_eq!(services(&report), [("40000/udp".to_owned(), 1)]);
    assert_eq!([rotated, report.ledger.services], [[0, 1, 0, 0]; 2]);
}

/// Ordinary traffic, and a flood of a table of connections of 256 KiB.
fn flooded() -> Vec<Packet> {
    let victim = "198.18.0.0:443".parse().unwrap();
    let flood = Flood {
        sources: 20_000,
        victim,
        after: 5_000,
        share: 60,
        answered: 10,
        ..Flood::default()
    };
    let mix =
        Mix { packets: 40_000, active: 500, rate: 5_000, flood: Some(flood), ..Mix::default() };
    Generator::new(mix, 4).unwrap().collect()
}

#[test]
fn the_ledger_counts_every_packet_with_a_service_and_survives_saving_and_merging() {
    let packets = flooded();
    let with_ports =
        packets.iter().filter(|packet| protocol::has_ports(packet.flow.protocol())).count();
    let small = watched(256 << 10, 1, &packets);
    assert_eq!(small.ledger.services.iter().sum::<u64>(), with_ports as u64);
    assert!(small.ledger.services.iter().all(|&n| n > 50), "{:?}", small.ledger.services);
    let json = small.to_json();
    for (rule, packets) in services::RULES.iter().zip(small.ledger.services) {
        assert_eq!(json["ledger"]["services"][rule], packets);
    }
    let snapshot = || {
        let mut engine = engine(256 << 10, 1);
        packets.iter().for_each(|packet| engine.packet(packet));
        engine.snapshot()
    };
    let mut read = Snapshot::from_bytes(&snapshot().to_bytes()).unwrap();
    assert_eq!(read.ledger().services, small.ledger.services);
    read.merge(snapshot()).unwrap();
    assert_eq!(read.ledger().services, small.ledger.services.map(|n| 2 * n));
    // With room for all connections and flows, no service hangs on the lower port.
    let large = watched(16 << 20, 1, &packets);
    assert_eq!(large.ledger.services[Rule::LowerPort as usize], 0);
    assert!(!large.ledger.refused.iter().any(|(name, _)| *name == "services"));
}

#[test]
fn services_do_not_depend_on_the_number_of_threads() {
    let packets = flooded();
    for memory in [256 << 10, 16 << 20] {
        let one = watched(memory, 1, &packets).to_json();
        assert_eq!(one, watched(memory, 4, &packets).to_json());
    }
}

/// A connection of which another tool saw the SYN, from opener to responder, and its first and last
/// packet.
struct Seen {
    flow: FlowKey,
    times: [u64; 2],
}

/// The connections of a table in the format of Zeek or of tshark.
fn seen(companion: &Path, zeek: bool) -> Vec<Seen> {
    let mut seen = Vec::new();
    let text = std::fs::read_to_string(companion).unwrap();
    let mut names: Vec<&str> = Vec::new();
    for line in text.lines() {
        let columns: Vec<_> = line.split('\t').collect();
        match columns[0] {
            "#fields" => names = columns[1..].to_vec(),
            "stream" => names = columns,
            text if text.starts_with('#') => {}
            _ => {
                let of = |name: &str| {
                    columns[names.iter().position(|known| *known == name).expect(name)]
                };
                let end = |address: &str, port: &str| {
                    let address: IpAddr = of(address).parse().ok()?;
                    Some(SocketAddr::new(address, of(port).parse().ok()?))
                };
                let nanoseconds = |text: &str| {
                    let (seconds, rest) = text.split_once('.').unwrap();
                    let rest: u64 = rest.parse().unwrap();
                    seconds.parse::<u64>().unwrap() * SECOND + rest
                };
                let (ends, syn, times) = if zeek {
                    let ends = [end("id.orig_h", "id.orig_p"), end("id.resp_h", "id.resp_p")];
                    let syn = of("proto") == "tcp" && of("history").contains('S');
                    (ends, syn, [0, u64::MAX])
                } else {
                    let syn = of("completeness").parse::<u32>().unwrap() & 1 == 1;
                    let times = ["first_ts", "last_ts"].map(|name| nanoseconds(of(name)));
                    ([end("src", "sport"), end("dst", "dport")], syn, times)
                };
                // An address of two layers, such as IPv6 in IPv4, is no address.
                let ([Some(from), Some(to)], true) = (ends, syn) else { continue };
                let flow = FlowKey::between(from, to, protocol::TCP).unwrap();
                seen.push(Seen { flow, times });
            }
        }
    }
    seen
}

/// The services of all packets of a capture, with their times, by undirected flow.
fn named(capture: &Path) -> HashMap<FlowKey, Vec<(u64, Port)>> {
    let decoder = Decoder { tunnels: Tunnels::Inner };
    let mut source = Source::open(capture).unwrap();
    let mut packets = Vec::new();
    while let Ok(Some(frame)) = source.next() {
        packets.extend(decoder.decode(&frame));
    }
    let mut named: HashMap<_, Vec<_>> = HashMap::new();
    Monitors::new().take(&packets, |packet, responder| {
        if let Some(responder) = responder {
            let service = responder.service(&packet.flow);
            named.entry(packet.flow.undirected()).or_default().push((packet.time_ns, service));
        }
    });
    named
}

#[test]
fn services_are_the_responders_that_zeek_and_tshark_saw() {
    let Some(folder) = walk::corpus("no service was compared with a responder") else { return };
    let mut companions = Vec::new();
    walk::each_file(&folder, &mut |path| {
        let name = path.to_string_lossy();
        for (suffix, zeek) in [(".conn.log", true), (".tshark-tcp.tsv", false)] {
            if let Some(capture) = name.strip_suffix(suffix) {
                companions.push((path.to_path_buf(), capture.to_owned(), zeek));
            }
        }
    });
    let (mut flows, mut equal, mut whole, mut captures) = (0, 0, 0, 0);
    for (companion, capture, zeek) in companions {
        captures += 1;
        let named = named(Path::new(&capture));
        for Seen { flow, times: [first, last] } in seen(&companion, zeek) {
            let packets = named.get(&flow.undirected()).map_or(&[][..], Vec::as_slice);
            let mut counts: BTreeMap<Port, u64> = BTreeMap::new();
            for (_, service) in packets.iter().filter(|(time, _)| (first..=last).contains(time)) {
                *counts.entry(*service).or_default() += 1;
            }
            let service = counts.iter().max_by_key(|(_, packets)| **packets).map(|(port, _)| *port);
            let responder = sizes::port(protocol::TCP, flow.destination_port());
            flows += 1;
            whole += u64::from(counts.len() == 1 && service == Some(responder));
            if service == Some(responder) {
                equal += 1;
            } else {
                println!("{}: {flow}: {counts:?}", companion.display());
            }
        }
    }
    println!("{captures} tables: {equal} of {flows} flows, {whole} of them in every packet");
    assert!(captures > 100 && flows > 1_000, "{captures} {flows}");
    assert!(equal * 100 >= flows * 99, "{equal} of {flows}");
}

#[test]
fn gnutella_is_a_service() {
    let Some(folder) = walk::corpus("no capture of Gnutella was read") else { return };
    let mut source = Source::open(folder.join("p2p/gnutella.pcap")).unwrap();
    let mut engine = engine(16 << 20, 1);
    while let Ok(Some(frame)) = source.next() {
        engine.frame(&frame);
    }
    let report = engine.finish().0;
    assert_eq!(services(&report), [("6346/tcp".to_owned(), 1_343)]);
}

#[test]
fn digests_of_services_are_those_of_their_keys() {
    let mut monitors = Monitors::new();
    monitors.take(&[datagram(flow(40_000, 53, protocol::UDP))], |_, _| {});
    monitors.batch.sort_ports(SEED);
    let picks: Vec<_> = monitors.batch.lanes.iter().flat_map(|lane| &lane.ports).collect();
    assert_eq!(picks.len(), 1);
    assert_eq!(picks[0].digest, sizes::port(protocol::UDP, 53).digest(SEED));
}
