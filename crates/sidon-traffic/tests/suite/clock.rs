//! Times that are wrong: they stop no timer and no period, and cost no more than others.

use sidon::{Infeasible, Seed};
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Generator, LinkType, Mix, Packet, Settings, Snapshot, Source,
    TcpFlags, Transport,
    drive::{self, Capture, Go, Host, Limits, Moment},
    generate::write_frame,
    packet::{Fragment, Tcp, Vlans},
    source::{Frame, PcapWriter, SnapLength},
    work::Work,
};
use std::{
    io::{self, Cursor, Read},
    path::Path,
};

const SECOND: u64 = 1_000_000_000;
/// A full hour in 2023.
const START: u64 = 1_700_002_800 * SECOND;

/// The periods of a run.
#[derive(Default)]
struct Periods(Vec<(u64, Snapshot)>);

impl Host for Periods {
    type Error = Infeasible;

    fn look(&mut self, _: &mut Engine, _: &Moment<'_>) -> Result<Go, Infeasible> {
        Ok(Go::On(std::time::Duration::ZERO))
    }

    fn period(&mut self, start_ns: u64, snapshot: Snapshot) -> Result<(), Infeasible> {
        self.0.push((start_ns, snapshot));
        Ok(())
    }

    fn warn(&mut self, why: &str) {
        panic!("{why}");
    }
}

fn engine(memory: u64) -> Engine {
    let settings = Settings { memory, ..Settings::new(Seed(7)) };
    Engine::new(settings, Filter::default(), Decoder::default()).unwrap()
}

/// Five minutes of traffic: 100 packets per second.
fn minutes() -> Vec<Packet> {
    let packets = Generator::new(Mix { packets: 30_000, ..Mix::default() }, 3).unwrap();
    let time = |index: usize| START + index as u64 * SECOND / 100;
    packets.enumerate().map(|(index, packet)| Packet { time_ns: time(index), ..packet }).collect()
}

/// A capture file of these packets.
fn file(packets: &[Packet]) -> Vec<u8> {
    let mut file = PcapWriter::new(Vec::new(), LinkType::ETHERNET, SnapLength(262_144)).unwrap();
    let mut bytes = Vec::new();
    for packet in packets {
        bytes.clear();
        write_frame(packet, &mut bytes);
        let (time_ns, link) = (packet.time_ns, LinkType::ETHERNET);
        let wire_len = packet.wire_len.max(bytes.len() as u32);
        file.write(&Frame { time_ns, wire_len, link, bytes: &bytes }).unwrap();
    }
    file.finish().unwrap()
}

/// The snapshots of periods of a minute, in order, after a capture file of these packets.
fn watch(packets: &[Packet]) -> Vec<(u64, Snapshot)> {
    let source = Source::from_reader(Cursor::new(file(packets))).unwrap();
    let mut capture = Capture::new(source, Path::new("test"), None);
    let (mut engine, mut periods) = (engine(1 << 20), Periods::default());
    let limits = Limits { period_ns: Some(60 * SECOND), ..Limits::default() };
    let done = drive::drive(&mut engine, &mut capture, limits, &mut periods).unwrap();
    periods.0.push((done.period_ns.unwrap(), engine.snapshot()));
    periods.0
}

/// The start, the packets and the connections by state of each period.
fn counts(periods: &[(u64, Snapshot)]) -> Vec<(u64, u64, Vec<u64>)> {
    let count = |(start, snapshot): &(u64, Snapshot)| {
        let by_state = snapshot.connections().counts().by_state.to_vec();
        (*start, snapshot.ledger().seen, by_state)
    };
    periods.iter().map(count).collect()
}

/// Time jumps and steps back of all periods.
fn odd(periods: &[(u64, Snapshot)]) -> [u64; 2] {
    let ledgers = periods.iter().map(|(_, snapshot)| snapshot.ledger());
    ledgers.fold([0; 2], |sum, one| [sum[0] + one.time_jumps, sum[1] + one.time_steps])
}

#[test]
fn one_wrong_time_changes_no_period_and_no_timeout() {
    let packets = minutes();
    let expected = watch(&packets);
    assert_eq!((expected.len(), odd(&expected)), (5, [0, 0]));
    for bad in [START + 3_600 * SECOND, 4_294_967_295 * SECOND, START - 86_400 * SECOND, 0] {
        for place in [0, 1, 5_000, 17_001, 29_998] {
            let mut packets = packets.clone();
            packets[place].time_ns = bad;
            let periods = watch(&packets);
            assert_eq!(counts(&periods), counts(&expected), "{place} at {bad}");
            assert_eq!(odd(&periods), [1, 0], "{place} at {bad}");
        }
    }
}

#[test]
fn a_few_wrong_times_in_a_row_change_no_period_and_no_timeout() {
    let packets: Vec<_> = minutes().into_iter().take(12_000).collect();
    let expected = watch(&packets);
    assert_eq!((expected.len(), odd(&expected)), (2, [0, 0]));
    for bad in [START + 2 * 86_400 * SECOND, 4_294_967_000 * SECOND, START - 86_400 * SECOND, 0] {
        for burst in 1..=7 {
            for place in [0, 7_001, 12_000 - burst] {
                let mut packets = packets.clone();
                for (number, packet) in packets[place..place + burst].iter_mut().enumerate() {
                    packet.time_ns = bad + number as u64 * SECOND / 100;
                }
                let periods = watch(&packets);
                let name = format!("{burst} at {place} from {bad}");
                assert_eq!(counts(&periods), counts(&expected), "{name}");
                // Two or more times that step back at the end are a clock that was set back.
                let is_step = bad < START && burst > 1 && place > 7_001;
                let odd_times = if is_step { [0, 1] } else { [burst as u64, 0] };
                assert_eq!(odd(&periods), odd_times, "{name}");
            }
        }
    }
}

#[test]
fn a_gap_before_the_last_packets_counts_and_ends_a_period() {
    let packets: Vec<_> = minutes().into_iter().take(5_000).collect();
    for (gap, last, counts) in [(3_600, 2, true), (3_600, 7, true), (599, 1, true), (601, 1, false)]
    {
        let mut packets = packets.clone();
        packets[5_000 - last..].iter_mut().for_each(|packet| packet.time_ns += gap * SECOND);
        let periods = watch(&packets);
        let seen: Vec<_> = periods.iter().map(|(_, snapshot)| snapshot.ledger().seen).collect();
        let expected = if counts { vec![5_000 - last as u64, last as u64] } else { vec![5_000] };
        assert_eq!((seen, odd(&periods)), (expected, [u64::from(!counts), 0]), "{gap} {last}");
    }
    // Packets that are two hours apart are one period each, and none is odd.
    for few in 2..12 {
        let mut packets = packets[..few].to_vec();
        let times = (0..).map(|number| START + number * 7_200 * SECOND);
        packets.iter_mut().zip(times).for_each(|(packet, time)| packet.time_ns = time);
        let periods = watch(&packets);
        // Two packets say nothing about the gaps of their capture.
        let expected = if few == 2 { (1, [1, 0]) } else { (few, [0, 0]) };
        assert_eq!((periods.len(), odd(&periods)), expected, "{few}");
    }
}

/// A pipe whose writer pauses after these bytes.
struct Pipe(Cursor<Vec<u8>>);

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.0.read(buffer)?;
        assert!(got > 0, "the reader waits for more");
        Ok(got)
    }
}

#[test]
fn a_limited_number_of_packets_waits_for_no_more_from_a_pipe() {
    let mut packets = minutes();
    for most in [1, 2, 5, 9, 20] {
        // The last packet is after a gap.
        packets[most - 1].time_ns += 300 * SECOND;
        let pipe = Pipe(Cursor::new(file(&packets[..most])));
        let mut capture = Capture::new(Source::from_reader(pipe).unwrap(), Path::new("-"), None);
        let (mut engine, mut periods) = (engine(1 << 20), Periods::default());
        let limits = Limits { packets: Some(most as u64), ..Limits::default() };
        let done = drive::drive(&mut engine, &mut capture, limits, &mut periods).unwrap();
        assert!(matches!(done.end, drive::End::Enough), "{most}: {:?}", done.end);
        assert_eq!(engine.ledger().seen, most as u64);
    }
}

#[test]
fn a_clock_that_is_set_back_goes_on_and_a_gap_ends_periods() {
    let packets = minutes();
    let expected = watch(&packets);
    for back in [60, 3_600, 86_400] {
        let mut packets = packets.clone();
        packets[17_001..].iter_mut().for_each(|packet| packet.time_ns -= back * SECOND);
        let periods = watch(&packets);
        let starts =
            |periods: &[(u64, Snapshot)]| periods.iter().map(|one| one.0).collect::<Vec<_>>();
        assert_eq!(starts(&periods), starts(&expected), "{back}");
        assert_eq!(odd(&periods), [0, 1], "{back}");
        let seen: u64 = periods.iter().map(|(_, snapshot)| snapshot.ledger().seen).sum();
        assert_eq!(seen, 30_000);
    }
    let mut packets = packets.clone();
    packets[15_000..].iter_mut().for_each(|packet| packet.time_ns += 3_600 * SECOND);
    let periods = watch(&packets);
    assert_eq!(odd(&periods), [0, 0]);
    let starts: Vec<_> = periods.iter().map(|(start, _)| (start - START) / SECOND).collect();
    assert_eq!(starts, [0, 60, 120, 3_720, 3_780, 3_840]);
    // Attempts before the gap are over after it, and count once.
    let half_open = periods[3].1.connections().half_open();
    assert!(half_open <= expected[3].1.connections().half_open() + 5, "{half_open}");
}

/// A TCP packet of connection `number`.
fn segment(number: u32, flags: TcpFlags, time_ns: u64, answer: bool) -> Packet {
    let [a, b, c, d] = number.to_be_bytes();
    let flow = FlowKey::v4([10, a, b, c], [192, 0, 2, d], [1_024 + number as u16 % 60_000, 443], 6);
    let flow = if answer { flow.reversed() } else { flow };
    Packet {
        time_ns,
        flow,
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

/// Times that cost much if timers read whole tables, by name.
fn kinds(cells: u32) -> Vec<(&'static str, Vec<Packet>)> {
    let (ack, syn) = (TcpFlags::ACK, TcpFlags::SYN);
    let apart = |packets: u32, flags, gap: u64| -> Vec<Packet> {
        (0..packets).map(|n| segment(n, flags, START + u64::from(n) * gap, false)).collect()
    };
    let mut kinds = vec![
        ("ACKs in order", apart(20_000, ack, SECOND / 10_000)),
        ("ACKs one second apart", apart(20_000, ack, SECOND)),
        ("ACKs 400 seconds apart", apart(20_000, ack, 400 * SECOND)),
        ("SYNs one second apart", apart(20_000, syn, SECOND)),
    ];
    let fro = |n: u32| START + u64::from(n % 2) * 3_600 * SECOND + u64::from(n) * SECOND;
    let to_and_fro = (0..20_000).map(|n| segment(n, syn, fro(n), false)).collect();
    kinds.push(("SYNs to and fro", to_and_fro));
    // A table full of open connections, then one attempt per second.
    let mut full = Vec::new();
    for number in 0..cells {
        let time = START + u64::from(number) * 20_000;
        full.push(segment(number, syn, time, false));
        full.push(segment(number, syn.with(ack), time, true));
        full.push(segment(number, ack, time, false));
    }
    for second in 0..20_000 {
        full.push(segment(
            cells + second,
            syn,
            START + u64::from(second + 30) * SECOND / 100,
            false,
        ));
    }
    kinds.push(("SYNs at a full table", full));
    let mut flood = apart(4 * cells, syn, 1_000);
    for second in 0..20_000 {
        let time = START + u64::from(second + 10) * SECOND;
        flood.push(segment(5 * cells + second % 300, syn, time, false));
    }
    kinds.push(("SYNs after a flood", flood));
    // UDP from as many senders as there are packets, to one host and from one host, dense and sparse.
    let gaps = [1_000, SECOND, 400 * SECOND];
    for (name, gap) in
        ["UDP flood", "UDP, a second apart", "UDP, 400 s apart"].into_iter().zip(gaps)
    {
        let udp = |number: u32| {
            let answer = number % 2 == 1;
            let packet = segment(number, ack, START + u64::from(number) * gap, answer);
            let [a, b, c, _] = number.wrapping_mul(0x9e37_79b9).to_be_bytes();
            let ports = [number as u16 | 1_024, 6_881];
            let flow = FlowKey::v4([a | 1, b, c, 9], [10, 0, 0, 1], ports, 17);
            let flow = if answer { flow.reversed() } else { flow };
            Packet { flow, transport: Transport::Ports, ..packet }
        };
        kinds.push((name, (0..60_000).map(udp).collect()));
    }
    kinds
}

#[test]
fn no_times_make_timers_read_more_than_a_constant_per_packet() {
    let mut tight = 0.0f64;
    for memory in [256 << 10, 1 << 20] {
        let cells = engine(memory).connections().map().shape().all_cells() as u32;
        for (name, packets) in kinds(cells) {
            let mut engine = engine(memory);
            packets.iter().for_each(|packet| engine.packet(packet));
            engine.end();
            for Work { what, done, most } in engine.work() {
                assert!(done <= most, "{name} in {memory} bytes: {what}: {done} of {most}");
                tight = tight.max(done as f64 / most as f64);
            }
        }
    }
    // A limit that no input comes near would say little.
    assert!(tight > 0.1, "{tight}");
}
