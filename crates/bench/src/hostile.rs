//! The cost of a packet or a flow record, whatever an attacker sends: times far apart or out of order,
//! full tables, deep tunnels, and datagrams of routers that nobody has.
//!
//! Captures are read from memory by the same loop as `sidon watch -r`, on one thread. Datagrams go to the
//! collector and their records to the engine. Two notes compare the dearest kind with the cheapest: of the
//! kinds that reach tables of the engine, and of all. Frames that are not decoded, templates, and records
//! that are refused or wait for a template reach no table and cost less than all others.

use crate::{
    report::{Row, Size},
    stats::Summary,
};
use anyhow::{Result, bail};
use sidon::{Infeasible, Seed};
use sidon_kit::Rng;
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Generator, LinkType, Mix, Packet, Settings, Snapshot, Source,
    TcpFlags, Transport, Tunnels,
    drive::{self, Capture, Go, Host, Moment},
    export::{Collector, Limits, Templates},
    generate::write_frame,
    packet::{Fragment, Tcp, Vlans},
    source::{Frame, PcapWriter, SnapLength},
};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::Cursor,
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

const SECOND: u64 = 1_000_000_000;
/// The time of the first packet.
const START: u64 = 1_700_000_000 * SECOND;
/// The sizes of the engine.
const MEMORIES: [u64; 2] = [16 << 20, 128 << 20];
const ROUNDS: usize = 3;
/// The kinds that reach no table of the engine.
const NO_TABLE: [&str; 5] = [
    "not_decoded",
    "records_of_unknown_templates",
    "records_of_new_exporters",
    "templates_65000",
    "options_templates",
];

/// A program that looks at nothing.
struct Nobody;

impl Host for Nobody {
    type Error = Infeasible;

    fn look(&mut self, _: &mut Engine, _: &Moment<'_>) -> Result<Go, Infeasible> {
        Ok(Go::On(Duration::ZERO))
    }

    fn period(&mut self, _: u64, _: Snapshot) -> Result<(), Infeasible> {
        Ok(())
    }

    fn warn(&mut self, _: &str) {}
}

/// The input of one row.
struct Input {
    /// Packets, records, templates or datagrams that are timed.
    units: usize,
    /// Open connections that fill the table first.
    fill: u64,
    bytes: Bytes,
}

enum Bytes {
    Capture(Vec<u8>),
    /// Datagrams with their senders.
    Datagrams(Vec<(SocketAddr, Vec<u8>)>),
}

fn segment(number: u64, flags: TcpFlags, time_ns: u64) -> Packet {
    let [.., a, b, c, d] = number.to_be_bytes();
    let ports = [1_024 + (number % 60_000) as u16, 443];
    Packet {
        time_ns,
        flow: FlowKey::v4([10, a, b, c], [192, 0, 2, d], ports, 6),
        wire_len: 60,
        captured: 60,
        payload_len: 0,
        transport: Transport::Tcp(Tcp { sequence: 0, acknowledgement: 0, flags }),
        fragment: Fragment::Whole,
        ttl: 64,
        vlans: Vlans::default(),
        tunnels: 0,
    }
}

/// A capture of frames that `write` makes: it gets a number and returns the time.
fn capture(packets: usize, mut write: impl FnMut(u64, &mut Vec<u8>) -> u64) -> Result<Input> {
    let mut file = PcapWriter::new(Vec::new(), LinkType::ETHERNET, SnapLength(262_144))?;
    let mut bytes = Vec::new();
    for number in 0..packets as u64 {
        bytes.clear();
        let time_ns = write(number, &mut bytes);
        let wire_len = bytes.len() as u32;
        file.write(&Frame { time_ns, wire_len, link: LinkType::ETHERNET, bytes: &bytes })?;
    }
    Ok(Input { units: packets, fill: 0, bytes: Bytes::Capture(file.finish()?) })
}

fn packets(packets: usize, make: impl Fn(u64) -> Packet) -> Result<Input> {
    capture(packets, |number, bytes| {
        let packet = make(number);
        write_frame(&packet, bytes);
        packet.time_ns
    })
}

/// An Ethernet and IPv4 header around `inner`, and as many further IPv4 headers as `depth` says.
fn tunnelled(depth: usize, number: u64, bytes: &mut Vec<u8>) {
    bytes.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    let [.., b, c, d] = number.to_be_bytes();
    for level in 0..=depth {
        let length = (20 * (depth - level + 1) + 8) as u16;
        let protocol = if level == depth { 17 } else { 4 };
        bytes.extend([0x45, 0]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10, b, c, d, 192, 0, 2, level as u8]);
    }
    bytes.extend([0x30, 0x39, 0, 53, 0, 8, 0, 0]);
}

/// An IPFIX message of one domain with these sets.
fn message(domain: u32, sets: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(10u16.to_be_bytes());
    bytes.extend((16 + sets.len() as u16).to_be_bytes());
    bytes.extend([0; 8]);
    bytes.extend(domain.to_be_bytes());
    bytes.extend(sets);
    bytes
}

fn set(id: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(id.to_be_bytes());
    bytes.extend((4 + body.len() as u16).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn template(id: u16) -> Vec<u8> {
    let fields: [[u16; 2]; 8] = [[8, 4], [12, 4], [7, 2], [11, 2], [4, 1], [6, 1], [2, 4], [1, 4]];
    let words = [[id, 8]].into_iter().chain(fields).flatten();
    words.flat_map(u16::to_be_bytes).collect()
}

/// A record of the template.
fn record(number: u64) -> Vec<u8> {
    let [.., a, b, c, d] = number.to_be_bytes();
    vec![10, b, c, d, 192, 0, 2, a, 0x30, d, 1, 187, 6, 0x12, 0, 0, 0, 3, 0, 0, 1, 0]
}

fn from(number: u32) -> SocketAddr {
    (number.to_be_bytes(), 2_055).into()
}

/// The kinds of input.
const KINDS: [&str; 19] = [
    "office",
    "acks_in_order",
    "acks_1s_apart",
    "acks_400s_apart",
    "syns_1s_apart",
    "syns_to_and_fro",
    "syns_hours_in_turn",
    "random_times",
    "flood",
    "flood_full_table",
    "syns_1s_full_table",
    "udp_from_everywhere",
    "tunnels_16_deep",
    "not_decoded",
    "records",
    "records_of_unknown_templates",
    "records_of_new_exporters",
    "templates_65000",
    "options_templates",
];

/// `many` packets of a kind. `memory` is that of the engine, whose tables some kinds fill first.
fn input(kind: &str, many: usize, memory: u64) -> Result<Input> {
    let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
    let apart = |flags, gap: u64| packets(many, move |n| segment(n, flags, START + n * gap));
    let fast = |n: u64| START + n * 1_000;
    match kind {
        "office" => {
            let mut office = Generator::new(Mix { packets: many as u64, ..Mix::default() }, 4)?;
            capture(many, |_, bytes| {
                let packet = office.next().unwrap_or_else(|| segment(0, ack, START));
                write_frame(&packet, bytes);
                packet.time_ns
            })
        }
        "acks_in_order" => apart(ack, 10_000),
        "acks_1s_apart" => apart(ack, SECOND),
        "acks_400s_apart" => apart(ack, 400 * SECOND),
        "syns_1s_apart" => apart(syn, SECOND),
        "syns_to_and_fro" => {
            packets(many, |n| segment(n, syn, START + n % 2 * 3_600 * SECOND + n * SECOND / 100))
        }
        "syns_hours_in_turn" => packets(many, |n| {
            segment(n, syn, START + n / 20 % 2 * 3_600 * SECOND + n * SECOND / 100)
        }),
        "random_times" => {
            let random = RefCell::new(Rng::seeded(2));
            packets(many, |n| segment(n, syn, random.borrow_mut().below(1 << 61)))
        }
        "flood" => apart(syn, 1_000),
        "flood_full_table" | "syns_1s_full_table" => {
            let cells = memory / 100 * 20 / 4;
            let gap = if kind == "flood_full_table" { 1_000 } else { SECOND };
            let input = packets(many, |n| segment(cells + n, syn, START + SECOND + n * gap))?;
            Ok(Input { fill: cells, ..input })
        }
        "udp_from_everywhere" => packets(many, |n| {
            let [.., a, b, c, d] = n.wrapping_mul(0x9e37_79b9).to_be_bytes();
            let flow = if n % 2 == 0 {
                FlowKey::v4([a, b, c, d], [10, 1, 2, 3], [9, 53], 17)
            } else {
                FlowKey::v4([10, 1, 2, 3], [192, 0, 2, 9], [53, (n % 65_000) as u16], 17)
            };
            Packet { flow, transport: Transport::Ports, ..segment(n, ack, fast(n)) }
        }),
        "tunnels_16_deep" => capture(many, |n, bytes| {
            tunnelled(16, n, bytes);
            fast(n)
        }),
        "not_decoded" => capture(many, |n, bytes| {
            bytes.extend([0xff; 60]);
            fast(n)
        }),
        "records" => Ok(datagrams(many, 32, |n| {
            let all = (0..32).map(|i| record(n * 32 + i)).collect::<Vec<_>>().concat();
            (from(1), message(0, &[set(2, &template(256)), set(256, &all)].concat()))
        })),
        "records_of_unknown_templates" => Ok(datagrams(many, 1, |n| {
            (from(1), message(0, &set(300 + (n % 60_000) as u16, &record(n))))
        })),
        "records_of_new_exporters" => Ok(datagrams(many, 1, |n| {
            let sets = [set(2, &template(256)), set(256, &record(n))].concat();
            (from(n as u32), message(n as u32, &sets))
        })),
        "templates_65000" => Ok(datagrams(many, 32, |n| {
            let all = (0..32).map(|i| template(256 + ((n * 32 + i) % 65_000) as u16));
            (from(1), message(0, &set(2, &all.collect::<Vec<_>>().concat())))
        })),
        "options_templates" => Ok(datagrams(many, 32, |n| {
            let body = |i: u64| {
                let id = 256 + ((n * 32 + i) % 65_000) as u16;
                [id, 2, 1, 149, 4, 34, 4].into_iter().flat_map(u16::to_be_bytes).collect::<Vec<_>>()
            };
            (from(1), message(0, &set(3, &(0..32).map(body).collect::<Vec<_>>().concat())))
        })),
        kind => bail!("no kind {kind}"),
    }
}

fn datagrams(units: usize, each: usize, make: impl Fn(u64) -> (SocketAddr, Vec<u8>)) -> Input {
    let all = (0..(units / each) as u64).map(make).collect();
    Input { units, fill: 0, bytes: Bytes::Datagrams(all) }
}

/// Fills the table of connections: `connections` of them are open.
fn fill(engine: &mut Engine, connections: u64) {
    let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
    for number in 0..connections {
        let time = START + number * SECOND / connections;
        engine.packet(&segment(number, syn, time));
        let answer = segment(number, syn.with(ack), time);
        engine.packet(&Packet { flow: answer.flow.reversed(), ..answer });
        engine.packet(&segment(number, ack, time));
    }
    engine.flush();
}

/// Nanoseconds per packet of a kind.
fn time(input: &Input, memory: u64) -> Result<f64> {
    let settings = Settings { memory, ..Settings::new(Seed(5)) };
    let decoder = Decoder { tunnels: Tunnels::Inner };
    let mut engine = Engine::new(settings, Filter::default(), decoder)?;
    fill(&mut engine, input.fill);
    let elapsed = match &input.bytes {
        Bytes::Capture(file) => {
            let source = Source::from_reader(Cursor::new(file.clone()))?;
            let mut capture = Capture::new(source, Path::new("hostile"), None);
            let start = Instant::now();
            drive::drive(&mut engine, &mut capture, drive::Limits::default(), &mut Nobody)?;
            engine.flush();
            start.elapsed()
        }
        Bytes::Datagrams(all) => {
            let mut collector = Collector::new(Limits::default(), Templates::default());
            let mut now = START;
            let start = Instant::now();
            for (from, datagram) in all {
                now += 10_000;
                collector.datagram(*from, datagram, now, |record| engine.record(record));
            }
            engine.flush();
            start.elapsed()
        }
    };
    Ok(elapsed.as_nanos() as f64 / input.units as f64)
}

pub(crate) fn run(
    quick: bool,
    wants: impl Fn(&str) -> bool,
    notes: &mut Vec<String>,
) -> Result<Vec<Row>> {
    let many = if quick { 64_000 } else { 640_000 };
    let mut rows = Vec::new();
    for memory in MEMORIES {
        let mut all: Vec<(f64, &str)> = Vec::new();
        for name in KINDS.into_iter().filter(|name| wants(name)) {
            let input = input(name, many, memory)?;
            let times = (0..ROUNDS).map(|_| time(&input, memory)).collect::<Result<Vec<_>>>()?;
            let ns = Summary::of(&times);
            all.push((ns.median, name));
            rows.push(Row {
                section: "hostile",
                structure: name.to_owned(),
                ours: true,
                removes: false,
                op: if memory == MEMORIES[0] { "16 MiB" } else { "128 MiB" },
                size: Size::Keys(many as u64),
                ns,
                bits_per_key: None,
                fpr: None,
                lost: None,
                overestimate: None,
                ratio: BTreeMap::new(),
            });
        }
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let in_tables = all.iter().copied().filter(|(_, name)| !NO_TABLE.contains(name));
        for (what, list) in [("in tables", in_tables.collect()), ("of all", all.clone())] {
            let list: Vec<(f64, &str)> = list;
            if let [(least, cheap), .., (most, dear)] = list[..] {
                let (memory, ratio) = (memory >> 20, most / least);
                notes.push(format!(
                    "hostile, {memory} MiB, {what}: {dear} costs {most:.0} ns a packet and {cheap} {least:.0}: {ratio:.1} times"
                ));
            }
        }
    }
    Ok(rows)
}
