//! The states of connections: against Zeek's own logs, against an exact reference, and with age.

use crate::walk;
use sidon::{Key, Seed};
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Generator, Mix, Packet, Settings, Source, TcpFlags, Tunnels,
    flow::protocol,
    generate::Flood,
    monitor::connections::{self, Connections, Deed, OUTCOMES, Verdict},
    packet::{Fragment, Tcp, Transport, Vlans},
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

const SEED: Seed = Seed(3);

fn monitor() -> Connections {
    Connections::new(connections::shape(1 << 20).unwrap(), SEED, true).unwrap()
}

/// Passes packets to the monitor.
fn take(monitor: &mut Connections, packets: &[Packet]) {
    let flows: Vec<_> =
        packets.iter().map(|packet| packet.flow.undirected().digest(SEED)).collect();
    monitor.take(packets, &flows);
}

fn flood(packets: u64, answered: u32) -> Mix {
    let victim = "198.18.0.0:443".parse().unwrap();
    let sources = packets / 2;
    let flood =
        Flood { sources, victim, after: packets / 4, share: 60, answered, ..Flood::default() };
    Mix { packets, active: 500, rate: 10_000, flood: Some(flood), ..Mix::default() }
}

#[test]
fn what_is_counted_is_what_the_map_holds() {
    let mut monitor = monitor();
    let packets: Vec<_> = Generator::new(flood(150_000, 20), 5).unwrap().collect();
    for batch in packets.chunks(512) {
        take(&mut monitor, batch);
    }
    let counts = monitor.counts();
    let twin = monitor.twin().unwrap();
    assert_eq!(twin.violations, 0, "{counts:?}");
    assert!(twin.flows > 50_000 && twin.answers > 100_000, "{}", twin.flows);
    let live: u64 = monitor.map().census().iter().sum();
    let half_open = counts.half_open;
    assert!(half_open > 1_000 && half_open <= counts.peak_half_open, "{counts:?}");
    assert!(counts.half_open + counts.open <= live);
    let all: u64 = counts.by_state.iter().sum();
    assert_eq!(counts.refused, 0);
    assert!(all + counts.dont_know >= twin.flows - twin.alike, "{all} of {}", twin.flows);
    for name in ["S0", "S1", "SF", "REJ"] {
        let at = OUTCOMES.iter().position(|outcome| *outcome == name).unwrap();
        assert!(counts.by_state[at] > 10, "{name}: {counts:?}");
    }
}

#[test]
fn attempts_end_within_five_seconds_and_silence_ends_the_rest() {
    let mut monitor = monitor();
    // Twenty seconds of flood, then silence, in which only pings advance the clock.
    let packets: Vec<_> = Generator::new(flood(60_000, 0), 6).unwrap().collect();
    for batch in packets.chunks(512) {
        take(&mut monitor, batch);
    }
    let end = packets.last().unwrap().time_ns;
    let before = monitor.counts();
    assert!(before.half_open > 100, "{before:?}");
    monitor.pass(end + 5_100_000_000);
    let after = monitor.counts();
    assert!(after.half_open < before.half_open / 20, "{} of {}", after.half_open, before.half_open);
    assert_eq!(after.by_state, before.by_state, "ageing changes no outcome");
    for minutes in 1..=11 {
        monitor.pass(end + minutes * 60_000_000_000);
    }
    let silent = monitor.counts();
    assert_eq!((silent.half_open, silent.open, monitor.map().len()), (0, 0, 0));
    assert_eq!(silent.by_state, before.by_state);
}

#[test]
fn a_full_map_follows_a_share_and_estimates_the_whole() {
    let shape = connections::shape(1 << 14).unwrap();
    let mut monitor = Connections::new(shape, SEED, true).unwrap();
    let packets: Vec<_> = Generator::new(flood(100_000, 10), 7).unwrap().collect();
    for batch in packets.chunks(512) {
        take(&mut monitor, batch);
    }
    let counts = monitor.counts();
    assert_eq!(monitor.twin().unwrap().violations, 0);
    assert!(counts.refused < 10, "{counts:?}");
    let sampling = &counts.sampling;
    assert!(sampling.is_sampled() && sampling.since.is_some(), "{sampling:?}");
    assert!(monitor.map().stats().load < 0.97, "{}", monitor.map().stats().load);
    // The flood's attempts and its answers are known: 50,000 sources, every tenth answered.
    let s0 = OUTCOMES.iter().position(|outcome| *outcome == "S0").unwrap();
    let (estimate, error) = (counts.by_state[s0] as f64, (sampling.by_state[s0] as f64).sqrt());
    assert!((estimate - 45_000.0).abs() < 6.0 * error + 500.0, "{estimate} +- {error}");
}

/// Runs a flood through a map of `bytes` bytes.
fn counted(bytes: u64, packets: &[Packet], seed: Seed) -> connections::Counts {
    let mut monitor = Connections::new(connections::shape(bytes).unwrap(), seed, false).unwrap();
    for batch in packets.chunks(512) {
        let flows: Vec<_> =
            batch.iter().map(|packet| packet.flow.undirected().digest(seed)).collect();
        monitor.take(batch, &flows);
    }
    monitor.counts()
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn intervals_of_sampled_counts_hold_as_often_as_they_say() {
    const RUNS: u64 = 200;
    let (mut held, mut all, mut levels) = (0, 0, [0; 17]);
    for run in 0..RUNS {
        let packets: Vec<_> = Generator::new(flood(40_000, 10), run).unwrap().collect();
        let exact = counted(1 << 22, &packets, Seed(run.into()));
        assert!(!exact.sampling.is_sampled());
        let sampled = counted(1 << 13, &packets, Seed(run.into()));
        let sampling = &sampled.sampling;
        levels[sampling.highest as usize] += 1;
        let mut check = |truth: u64, estimate: u64, variance: u64| {
            let (least, most) = sampling.interval(estimate, variance);
            all += 1;
            held += u64::from(least <= truth && truth <= most);
        };
        for (outcome, &truth) in exact.by_state.iter().enumerate() {
            if truth > 0 {
                check(truth, sampled.by_state[outcome], sampling.by_state[outcome]);
            }
        }
        check(exact.came_about, sampled.came_about, sampling.came_about);
        let present = sampling.present_variance(sampled.half_open);
        check(exact.half_open, sampled.half_open, present);
    }
    let share = held as f64 / all as f64;
    println!("{held} of {all} intervals hold, {share:.4}; levels {levels:?}");
    assert!(all > 6 * RUNS && levels[0] == 0, "{all} {levels:?}");
    assert!(share >= 0.98, "{share}");
}

#[test]
fn a_map_that_is_forced_to_be_full_counts_nothing_that_it_refused() {
    let mut monitor = monitor();
    monitor.refuse_after(20_000);
    let packets: Vec<_> = Generator::new(flood(60_000, 10), 7).unwrap().collect();
    let mut opened = 0;
    for batch in packets.chunks(512) {
        let flows: Vec<_> =
            batch.iter().map(|packet| packet.flow.undirected().digest(SEED)).collect();
        monitor.take(batch, &flows);
        opened +=
            monitor.verdicts().iter().filter(|verdict| verdict.what == Deed::Opened).count() as u64;
    }
    let counts = monitor.counts();
    assert!(counts.refused > 5_000 && opened > 5_000, "{counts:?}");
    // Every attempt that was reported is in the counts by its outcome, and no other one.
    let all: u64 = counts.by_state.iter().sum();
    assert!(opened <= all && all <= 20_000, "{opened} opened, {all} counted");
    assert_eq!(monitor.twin().unwrap().violations, 0);
}

#[test]
fn threads_change_no_connection() {
    let answer = |threads, memory| {
        let settings = Settings { threads, memory, audit: true, ..Settings::new(Seed(1)) };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        engine.start().unwrap();
        for packet in Generator::new(flood(40_000, 10), 8).unwrap() {
            engine.packet(&packet);
        }
        engine.finish().0.to_json()
    };
    // With room for all, and while sampling.
    for (memory, sampled) in [(16 << 20, false), (256 << 10, true)] {
        let one = answer(1, memory);
        assert!(one["connections"]["by_state"]["SF"].as_u64().unwrap() > 100);
        assert_eq!(one["audit"]["connections"]["violations"], 0);
        assert_eq!(one["connections"]["sampling"].is_object(), sampled);
        assert_eq!(one, answer(4, memory));
    }
}

/// A TCP segment at a time in milliseconds. A payload of `length` bytes.
fn segment(at_ms: u64, flow: FlowKey, flags: u8, length: u32) -> Packet {
    Packet {
        time_ns: 1_700_000_000_000_000_000 + at_ms * 1_000_000,
        flow,
        wire_len: 60 + length,
        captured: 60,
        payload_len: length,
        transport: Transport::Tcp(Tcp { sequence: 0, acknowledgement: 0, flags: TcpFlags(flags) }),
        fragment: Fragment::Whole,
        ttl: 64,
        vlans: Vlans::default(),
        tunnels: 0,
    }
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

#[test]
fn handshakes_and_closes_of_any_length_are_one_connection() {
    let flow = FlowKey::v4([10, 0, 0, 1], [198, 51, 100, 7], [40_000, 9_999], protocol::TCP);
    // Milliseconds, sender and flags; `true` is the opener.
    type Segment = (u64, bool, u8);
    let cases: [(&str, &[Segment]); 5] = [
        ("S0", &[(0, true, SYN), (1_000, true, SYN), (3_000, true, SYN)]),
        (
            "S1",
            &[
                (0, true, SYN),
                (50, false, SYN | ACK),
                (1_050, false, SYN | ACK),
                (3_050, false, SYN | ACK),
                (7_050, false, SYN | ACK),
                (15_050, false, SYN | ACK),
                (31_050, false, SYN | ACK),
                (31_100, true, ACK),
                (200_000, false, ACK),
                (480_000, true, ACK),
            ],
        ),
        ("S1", &[(0, true, SYN), (50, false, SYN | ACK), (16_050, false, SYN | ACK)]),
        (
            "SF",
            &[
                (0, true, SYN),
                (10, false, SYN | ACK),
                (20, true, ACK),
                (30, true, FIN | ACK),
                (230, true, FIN | ACK),
                (290_000, false, FIN | ACK),
                (290_200, false, FIN | ACK),
                (290_900, true, ACK),
                (293_000, true, RST),
            ],
        ),
        ("REJ", &[(0, true, SYN), (1, false, RST), (500, true, SYN), (501, false, RST)]),
    ];
    for (outcome, segments) in cases {
        // The timers count from 1970, so a connection may begin at any part of their periods.
        for start in (0..60_000).step_by(700) {
            let packets: Vec<_> = segments
                .iter()
                .map(|&(at, opener, flags)| {
                    segment(start + at, if opener { flow } else { flow.reversed() }, flags, 0)
                })
                .collect();
            assert_eq!(outcomes(&packets), [(outcome, 1)].into(), "{start}: {segments:?}");
        }
    }
}

#[test]
fn verdicts_tell_answers_of_the_victim_from_packets_of_forged_openers() {
    let forged = |number: u32| {
        let source = (0x2d00_0000 + number * 65_537).to_be_bytes();
        FlowKey::v4(source, [198, 51, 100, 7], [40_000, 443], protocol::TCP)
    };
    let client = FlowKey::v4([10, 0, 0, 1], [198, 51, 100, 9], [40_000, 443], protocol::TCP);
    let all = |packets: &[Packet]| {
        let mut monitor = monitor();
        let mut verdicts = Vec::new();
        for batch in packets.chunks(512) {
            take(&mut monitor, batch);
            verdicts.extend_from_slice(monitor.verdicts());
        }
        assert_eq!(monitor.twin().unwrap().violations, 0);
        (monitor, verdicts)
    };
    let confirmed = |verdicts: &[Verdict]| -> Vec<Verdict> {
        verdicts.iter().filter(|verdict| verdict.what != Deed::Opened).copied().collect()
    };
    // A SYN and an ACK of each forged opener: nothing is confirmed, and the capture is two-way.
    let mut packets = Vec::new();
    for number in 0..1_000u32 {
        let at = u64::from(number);
        packets.push(segment(at, forged(number), SYN, 0));
        packets.push(segment(at, forged(number), ACK, 0));
    }
    let (monitor, verdicts) = all(&packets);
    assert_eq!((verdicts.len(), confirmed(&verdicts)), (1_000, vec![]));
    assert!(verdicts.iter().all(|verdict| verdict.by_opener && !verdict.answered));
    let counts = monitor.counts();
    assert_eq!((counts.half_open, counts.one_way, counts.is_one_way()), (1_000, 0, false));
    // With data, the openers went on. The capture has no packet of the victim's network, which may
    // answer over another link.
    let data: Vec<_> = (0..1_000).map(|number| segment(1_000, forged(number), ACK, 100)).collect();
    let alone = [&packets[..], &data].concat();
    let (monitor, verdicts) = all(&alone);
    let went_on = confirmed(&verdicts);
    assert_eq!(went_on.len(), 1_000);
    assert!(went_on.iter().all(|one| one.what == Deed::Confirmed && !one.answered));
    assert!(went_on[..9].iter().all(|one| !one.one_way));
    assert!(went_on[9..].iter().all(|one| one.one_way));
    assert!(monitor.counts().is_one_way());
    // A neighbour of the victim answered: its direction is in the capture.
    let handshake = [
        segment(0, client, SYN, 0),
        segment(0, client.reversed(), SYN | ACK, 0),
        segment(0, client, ACK, 0),
    ];
    let (_, verdicts) = all(&[&handshake[..], &alone].concat());
    let [completed, went_on @ ..] = &confirmed(&verdicts)[..] else { unreachable!("1,001") };
    assert!(completed.what == Deed::Confirmed && completed.answered && !completed.one_way);
    assert!(went_on.len() == 1_000 && went_on.iter().all(|one| !one.answered && !one.one_way));
}

/// Outcomes of one five-tuple, each with its count.
type Outcomes = BTreeMap<&'static str, u64>;

/// What Zeek logged for the TCP connections of a capture, by undirected five-tuple.
fn logged(path: &Path) -> BTreeMap<FlowKey, Outcomes> {
    let mut all: BTreeMap<FlowKey, Outcomes> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let columns: Vec<_> = line.split('\t').collect();
        if line.starts_with('#') || columns.get(6) != Some(&"tcp") {
            continue;
        }
        let end = |at: usize| {
            let address: IpAddr = columns[at].parse().unwrap();
            SocketAddr::new(address, columns[at + 1].parse().unwrap())
        };
        let flow = FlowKey::between(end(2), end(4), protocol::TCP).unwrap().undirected();
        let outcome = OUTCOMES.iter().find(|outcome| **outcome == columns[11]).unwrap();
        *all.entry(flow).or_default().entry(*outcome).or_default() += 1;
    }
    all
}

/// The outcomes that the monitor finds in the packets of one five-tuple.
fn outcomes(packets: &[Packet]) -> Outcomes {
    let mut monitor = monitor();
    for batch in packets.chunks(512) {
        take(&mut monitor, batch);
    }
    assert_eq!(monitor.twin().unwrap().violations, 0);
    let counts = monitor.counts().by_state;
    OUTCOMES.into_iter().zip(counts).filter(|(_, times)| *times > 0).collect()
}

#[test]
fn outcomes_agree_with_the_logs_of_zeek() {
    let Some(folder) = walk::corpus("no outcome was compared with Zeek's") else { return };
    let mut logs = Vec::new();
    walk::each_file(&folder, &mut |path| {
        if path.to_string_lossy().ends_with(".conn.log") {
            logs.push(path.to_path_buf());
        }
    });
    assert!(logs.len() > 15, "{}", logs.len());
    println!("{:48}{:>8}{:>8}{:>8}", "capture", "rows", "agree", "surplus");
    let (mut rows, mut agree) = (0, 0);
    for log in logs {
        let expected = logged(&log);
        if expected.is_empty() {
            continue;
        }
        let capture = PathBuf::from(log.to_string_lossy().strip_suffix(".conn.log").unwrap());
        let mut flows: BTreeMap<FlowKey, Vec<Packet>> = BTreeMap::new();
        let decoder = Decoder { tunnels: Tunnels::Inner };
        let mut source = Source::open(&capture).unwrap();
        while let Ok(Some(frame)) = source.next() {
            if let Ok(packet) = decoder.decode(&frame) {
                flows.entry(packet.flow.undirected()).or_default().push(packet);
            }
        }
        let (mut of, mut same, mut surplus) = (0, 0, 0);
        for (flow, theirs) in &expected {
            let ours = flows.get(flow).map(|packets| outcomes(packets)).unwrap_or_default();
            let both: u64 =
                theirs.iter().map(|(name, n)| *n.min(ours.get(name).unwrap_or(&0))).sum();
            let (their_sum, our_sum) = (theirs.values().sum::<u64>(), ours.values().sum::<u64>());
            of += their_sum;
            same += both;
            surplus += our_sum - both;
            if both != their_sum || both != our_sum {
                println!("    {flow}: Zeek {theirs:?}, here {ours:?}");
            }
        }
        let name = capture.file_name().unwrap().to_string_lossy();
        println!("{name:48}{of:>8}{same:>8}{surplus:>8}");
        rows += of;
        agree += same;
    }
    println!("{agree} of {rows} agree");
    assert!(rows > 100, "{rows}");
    assert!(agree * 100 >= rows * 98, "{agree} of {rows}");
}
