//! Floods that outgrow the connection table: no wrong alarm, no established connection lost.
//!
//! Every scenario runs beside 200 established connections, a real port scan and a second, smaller SYN
//! flood. Scenarios are data ([`ALL`]). `scripts/overload` prints the whole table.

use sidon::Seed;
use sidon_kit::Rng;
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Packet, Settings,
    flow::protocol,
    monitor::connections,
    packet::{Fragment, Tcp, TcpFlags, Transport, Vlans},
};
use std::{collections::BTreeSet, net::IpAddr, time::Instant};

const SECOND: u64 = 1_000_000_000;
/// Seconds that a scenario lasts. The attack fills all but the first five.
const LASTS: u64 = 30;
const VICTIM: [u8; 4] = [198, 18, 0, 7];
const VICTIM_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
const SCANNER: [u8; 4] = [203, 0, 113, 66];
const SCANNED: [u8; 4] = [10, 9, 9, 9];
const SECOND_VICTIM: [u8; 4] = [198, 51, 100, 7];
/// Ports of the scan, and SYNs of the second flood.
const SCAN: u64 = 1_000;
const FLOOD: u64 = 20_000;
const ESTABLISHED: u16 = 200;

const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;

/// One kind of attack.
struct Scenario {
    name: &'static str,
    /// The packets of attacking flow `number`.
    flow: fn(&mut Rng, u64) -> Vec<Packet>,
    /// The kind and the subject of the alarm that names the attack, if a monitor names it.
    alarm: Option<(&'static str, Address)>,
}

type Address = fn() -> IpAddr;

fn victim() -> IpAddr {
    VICTIM.into()
}

fn victim_v6() -> IpAddr {
    VICTIM_V6.into()
}

const ALL: [Scenario; 9] = [
    Scenario {
        name: "SYN, forged sources",
        flow: |rng, _| vec![tcp(forged(rng, VICTIM, 443), SYN)],
        alarm: Some(("syn_flood", victim)),
    },
    Scenario {
        name: "SYN, then ACK from the same source",
        flow: |rng, _| {
            let flow = forged(rng, VICTIM, 443);
            vec![tcp(flow, SYN), tcp(flow, ACK)]
        },
        alarm: None,
    },
    Scenario {
        name: "SYN+ACK backscatter",
        flow: |rng, _| vec![tcp(forged(rng, VICTIM, 443).reversed(), SYN.with(ACK))],
        alarm: None,
    },
    Scenario {
        name: "UDP to random ports",
        flow: |rng, _| {
            let port = rng.below(65_535) as u16;
            vec![udp(forged(rng, VICTIM, port))]
        },
        alarm: None,
    },
    Scenario {
        name: "SYN over IPv6, random /64s",
        flow: |rng, _| {
            let mut source = VICTIM_V6;
            source[4..16].copy_from_slice(&rng.next_u64().to_le_bytes().repeat(2)[..12]);
            let ports = [1_024 + rng.below(60_000) as u16, 443];
            vec![tcp(FlowKey::v6(source, VICTIM_V6, ports, protocol::TCP), SYN)]
        },
        alarm: Some(("syn_flood", victim_v6)),
    },
    Scenario {
        name: "first fragments only",
        flow: |rng, _| {
            let first = udp(forged(rng, VICTIM, 53));
            vec![Packet { fragment: Fragment::First, ..first }]
        },
        alarm: None,
    },
    Scenario {
        name: "completed handshakes",
        flow: |rng, _| {
            let flow = forged(rng, VICTIM, 443);
            let answer = tcp(flow.reversed(), SYN.with(ACK));
            vec![tcp(flow, SYN), answer, tcp(flow, ACK)]
        },
        alarm: None,
    },
    Scenario {
        name: "carpet over a /16",
        flow: |rng, number| {
            let [high, low] = (number as u16).to_be_bytes();
            vec![tcp(forged(rng, [198, 19, high, low], 80), SYN)]
        },
        alarm: None,
    },
    Scenario {
        name: "all ports of one host",
        flow: |rng, number| vec![tcp(forged(rng, VICTIM, 1 + (number % 65_535) as u16), SYN)],
        alarm: None,
    },
];

/// A TCP flow from a random source that could exist.
fn forged(rng: &mut Rng, to: [u8; 4], port: u16) -> FlowKey {
    let [_, b, c, d] = (rng.next_u64() as u32).to_be_bytes();
    let source = [11 + rng.below(100) as u8, b, c, 1 + d % 250];
    FlowKey::v4(source, to, [1_024 + rng.below(60_000) as u16, port], protocol::TCP)
}

fn tcp(flow: FlowKey, flags: TcpFlags) -> Packet {
    let tcp = Tcp { sequence: 0, acknowledgement: 0, flags };
    Packet {
        time_ns: 0,
        flow,
        wire_len: 60,
        captured: 60,
        payload_len: 0,
        transport: Transport::Tcp(tcp),
        fragment: Fragment::Whole,
        ttl: 60,
        vlans: Vlans::default(),
        tunnels: 0,
    }
}

fn udp(flow: FlowKey) -> Packet {
    let [source, destination] = [flow.source(), flow.destination()];
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (source, destination) else {
        unreachable!("the flow is of IPv4")
    };
    let ports = [flow.source_port(), flow.destination_port()];
    let flow = FlowKey::v4(source.octets(), destination.octets(), ports, protocol::UDP);
    Packet { transport: Transport::Ports, payload_len: 100, ..tcp(flow, ACK) }
}

/// An established connection that sends a byte every ten seconds.
fn office(number: u16) -> FlowKey {
    FlowKey::v4([10, 0, 0, 5], [192, 0, 2, 9], [20_000 + number, 22], protocol::TCP)
}

/// All packets of a scenario with `flows` attacking flows, in the order of their times.
fn packets(scenario: &Scenario, flows: u64) -> Vec<Packet> {
    let mut rng = Rng::seeded(flows);
    let mut all = Vec::new();
    let mut at = |time_ns: u64, packet: Packet| all.push(Packet { time_ns, ..packet });
    for number in 0..ESTABLISHED {
        let flow = office(number);
        for (i, (flow, flags)) in
            [(flow, SYN), (flow.reversed(), SYN.with(ACK)), (flow, ACK)].into_iter().enumerate()
        {
            at(SECOND + u64::from(number) * 1_000 + i as u64 * 100, tcp(flow, flags));
        }
        for seconds in (4..LASTS).step_by(10) {
            at(seconds * SECOND + u64::from(number), Packet { payload_len: 1, ..tcp(flow, ACK) });
        }
    }
    let (from, lasts) = (5 * SECOND, (LASTS - 5) * SECOND);
    for number in 0..flows {
        let time = from + (u128::from(lasts) * u128::from(number) / u128::from(flows)) as u64;
        for (i, packet) in (scenario.flow)(&mut rng, number).into_iter().enumerate() {
            at(time + i as u64 * 20_000, packet);
        }
    }
    // The scan and the second flood take ten seconds in the middle.
    for number in 0..SCAN {
        let flow = FlowKey::v4(SCANNER, SCANNED, [40_000, 1 + number as u16], protocol::TCP);
        at(12 * SECOND + number * 10 * SECOND / SCAN, tcp(flow, SYN));
    }
    for number in 0..FLOOD {
        let packet = tcp(forged(&mut rng, SECOND_VICTIM, 80), SYN);
        at(12 * SECOND + number * 10 * SECOND / FLOOD, packet);
    }
    all.sort_by_key(|packet| packet.time_ns);
    all
}

/// Runs a scenario with `times` as many flows as the table holds, prints a row, and asserts all but
/// the time.
fn run(scenario: &Scenario, memory: u64, times: f64) {
    let cells = connections::shape(memory / 100 * 20).unwrap().all_cells();
    let packets = packets(scenario, (cells as f64 * times) as u64);
    let settings = Settings { memory, ..Settings::new(Seed(11)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    let begun = Instant::now();
    packets.iter().for_each(|packet| engine.packet(packet));
    engine.flush();
    let ns = begun.elapsed().as_nanos() as f64 / packets.len() as f64;
    let open = |number: &u16| match engine.connections().lookup(&office(*number)) {
        sidon::Lookup::State(life) => life.is_open(),
        sidon::Lookup::DontKnow => true,
        sidon::Lookup::Absent => false,
    };
    let lost = usize::from(ESTABLISHED) - (0..ESTABLISHED).filter(open).count();
    let load = engine.connections().map().load();
    let report = engine.finish().0;
    let sampling = &report.connections.sampling;
    let raised: BTreeSet<_> =
        report.alarms.iter().map(|alarm| (alarm.kind, alarm.subject)).collect();
    let scan = ("port_scan", IpAddr::from(SCANNER));
    let flood = ("syn_flood", IpAddr::from(SECOND_VICTIM));
    let own = scenario.alarm.map(|(kind, subject)| (kind, subject()));
    let right = raised.iter().filter(|&&alarm| Some(alarm) == own).count();
    // SYNs at one host are a flood of it, whatever else they are.
    let of_victim = ("syn_flood", victim());
    let known = [Some(scan), Some(flood), own, Some(of_victim)];
    let wrong: Vec<_> = raised.iter().filter(|&&alarm| !known.contains(&Some(alarm))).collect();
    println!(
        "| {} | {} MiB | {times} | {ns:.0} | 1 in {} | {load:.2} | {right} / {} / {} | {} | {} | {lost} |",
        scenario.name,
        memory as f64 / f64::from(1 << 20),
        1u64 << sampling.highest,
        wrong.len(),
        usize::from(own.is_some()) - right,
        if raised.contains(&scan) { "yes" } else { "no" },
        if raised.contains(&flood) { "yes" } else { "no" },
    );
    let name = scenario.name;
    assert_eq!(wrong.len(), 0, "{name} x {times}: {:?}", report.alarms);
    assert_eq!(lost, 0, "{name} x {times}");
    assert!(load < 0.97, "{name} x {times}: {load}");
    assert_eq!(report.ledger.balance(), 0);
    // Of the scan's ports 15 must be followed, and of the flood's SYNs in ten seconds some hundred:
    // with 45 and 320 expected, that fails less than once in a thousand.
    if SCAN >> sampling.highest >= 45 {
        assert!(raised.contains(&scan), "{name} x {times}: {raised:?}");
    }
    if FLOOD >> sampling.highest >= 320 {
        assert!(raised.contains(&flood), "{name} x {times}: {raised:?}");
    }
}

#[test]
fn attacks_beyond_the_table_accuse_nobody_else_and_lose_no_connection() {
    let _alone = crate::alone();
    let slow = cfg!(feature = "slow-tests");
    let sizes: &[u64] = if slow { &[1, 4, 16] } else { &[1] };
    let times: &[f64] = if slow { &[0.1, 0.3, 1.0, 3.0, 10.0] } else { &[3.0] };
    println!(
        "| attack | memory | flows / cells | ns a packet | sampled | load | right / wrong / missing | scan | second flood | lost |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for scenario in &ALL {
        for &size in sizes {
            for &times in times {
                run(scenario, size << 20, times);
            }
        }
    }
}
