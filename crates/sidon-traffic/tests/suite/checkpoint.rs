//! Checkpoints: a run that is cut and resumed gives the report and the file of one that was not.

use sidon::{
    Infeasible, Malformed, Seed,
    saved::Parts,
    state::{Machine, Rule},
};
use sidon_kit::Rng;
use sidon_traffic::{
    Decoder, Engine, Filter, Generator, LinkType, Mix, Packet, Settings, Snapshot, Source,
    TcpFlags, Tunnels,
    drive::{self, Capture, Go, Host, Limits, Moment, Position},
    engine::{CHECKPOINT, Unresumed},
    export::Record,
    generate::{Flood, Shares, write_frame},
    monitor::machine::{Definition, When},
    source::{Frame, PcapWriter, SnapLength},
};
use std::{
    io::Cursor,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

const SEED: Seed = Seed(0x5eed_0123_4567_89ab_cdef_fedc_ba98_7654);
const SECOND: u64 = 1_000_000_000;
/// Packets per second of the generated hour, on average. `SIDON_WHOLE_HOUR=1` sets the busy hour when the
/// tests are compiled: minutes in a release build.
const RATE: u64 = if option_env!("SIDON_WHOLE_HOUR").is_some() { 1_000 } else { 25 };
const PACKETS: u64 = 3_600 * RATE;
/// The engine rotates after this time.
const PERIOD: u64 = 1_200 * SECOND;

/// The states of a handshake.
fn handshake(timeout: u64) -> Arc<Definition> {
    let rules: [(&str, &[Rule<'_>]); 2] =
        [("syn", &[Rule::Open("asked")]), ("answer", &[Rule::If("asked", "answered")])];
    let machine = Machine::new(&["asked", "answered"], &[], &rules).unwrap();
    let (syn, both) = (TcpFlags::SYN, TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0));
    let asks = When { protocol: Some(6), flags: syn, without: TcpFlags::ACK, ..When::default() };
    let answers = When { protocol: Some(6), flags: both, ..When::default() };
    let name = "handshake".to_owned();
    let timeouts = vec![timeout, 300];
    Arc::new(Definition { name, machine, events: vec![(asks, 0), (answers, 1)], timeouts })
}

/// The least memory, so that every table overflows.
fn settings() -> Settings {
    Settings {
        memory: 256 << 10,
        subnets: vec!["10.0.0.0/22".parse().unwrap()],
        machines: vec![handshake(20)],
        ..Settings::new(SEED)
    }
}

/// An hour with connections, scans, P2P and two floods.
fn hour() -> Vec<Packet> {
    let victim = "10.0.0.80:443".parse().unwrap();
    let flood = Flood {
        sources: PACKETS / 8,
        victim,
        after: PACKETS / 8,
        share: 90,
        answered: 5,
        every: PACKETS / 2,
    };
    let shares = Shares { web: 40, dns: 25, peers: 20, ping: 2, scan: 13 };
    let mix = Mix { packets: PACKETS, active: 400, shares, flood: Some(flood), ..Mix::default() };
    let packets = Generator::new(mix, 5).unwrap();
    // A quarter of the packets of each quarter of an hour arrives slowly, the rest in three seconds.
    // The map then has fewer cells than there are attempts at a time.
    let quarter = PACKETS / 4;
    let time = |index: u64| {
        let at = index % quarter;
        let slow = quarter / 4;
        let (from, length, at, of) =
            if at < slow { (0, 890, at, slow) } else { (890, 3, at - slow, quarter - slow) };
        index / quarter * 900 * SECOND + from * SECOND + at * (length * SECOND) / of
    };
    let start = Mix::default().start_ns.next_multiple_of(PERIOD);
    let at = |(index, packet)| Packet { time_ns: start + time(index), ..packet };
    (0..).zip(packets).map(at).collect()
}

fn new(settings: Settings) -> Engine {
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    engine.start().unwrap();
    engine
}

fn resumed(image: &[u8], settings: Settings) -> Engine {
    let mut engine =
        Engine::resume(image, settings, Filter::default(), Decoder::default()).unwrap();
    engine.start().unwrap();
    engine
}

/// The report and the file of each period.
type Periods = Vec<(String, Vec<u8>)>;

fn period(snapshot: &Snapshot) -> (String, Vec<u8>) {
    (snapshot.report().to_json().to_string(), snapshot.to_bytes())
}

/// A run: its engine, and the report and the file of each period that is over.
struct Run {
    engine: Engine,
    started: u64,
    periods: Periods,
}

impl Run {
    fn new(engine: Engine, first: &Packet) -> Self {
        Run { engine, started: first.time_ns / PERIOD, periods: Vec::new() }
    }

    /// Passes packet `index` to the engine. A source tells the time now and then, as an interface
    /// does.
    fn pass(&mut self, index: usize, packet: &Packet) {
        let Run { engine, started, periods } = self;
        if packet.time_ns / PERIOD > *started {
            *started = packet.time_ns / PERIOD;
            engine.rotate(|snapshot| periods.push(period(&snapshot))).unwrap();
        }
        engine.packet(packet);
        if index.is_multiple_of(1_000) {
            engine.pass(packet.time_ns);
            engine.note_source(vec![("received", index as u64 + 1)]);
        }
    }

    /// Saves the engine, and goes on with one that is resumed with this number of threads.
    fn cut(&mut self, threads: usize) {
        let image = self.engine.checkpoint().unwrap();
        self.engine = resumed(&image, Settings { threads, ..settings() });
    }

    fn end(mut self) -> Periods {
        self.periods.push(period(&self.engine.snapshot()));
        self.periods
    }
}

/// The periods of a run that is cut after every `step` packets.
fn periods(packets: &[Packet], step: usize) -> Periods {
    let mut run = Run::new(new(settings()), &packets[0]);
    for (index, packet) in packets.iter().enumerate() {
        if index % step == step - 1 {
            run.cut(1);
        }
        run.pass(index, packet);
    }
    run.end()
}

fn assert_equal(got: &[(String, Vec<u8>)], expected: &[(String, Vec<u8>)], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (number, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got.0, expected.0, "{what}: the report of period {number}");
        assert!(got.1 == expected.1, "{what}: the file of period {number}");
    }
}

#[test]
fn the_hour_has_everything_that_a_checkpoint_must_hold() {
    let files = periods(&hour(), usize::MAX);
    assert_eq!(files.len(), 3);
    let (mut sampled, mut peers, mut machines) = (0, 0, 0);
    let mut found = String::new();
    for (report, file) in files {
        found += &report;
        let report = Snapshot::from_bytes(&file).unwrap().report();
        sampled += u64::from(report.connections.sampling.is_sampled());
        peers += report.p2p.len();
        machines += report.machines.iter().map(|machine| machine.refused).sum::<u64>();
    }
    for name in ["syn_flood", "_scan", "sources_v4", "p2p_hosts", "\"services\"", "received"] {
        assert!(found.contains(name), "{name}");
    }
    assert!(sampled > 0 && peers > 0 && machines > 0, "{sampled} {peers} {machines}");
}

#[test]
fn a_run_that_is_resumed_after_every_batch_is_as_one_that_is_not() {
    let packets = hour();
    let expected = periods(&packets, usize::MAX);
    // 512 packets are a batch, so a step of 511 cuts at every place in a batch.
    assert_equal(&periods(&packets, 511), &expected, "every batch");
}

#[test]
fn a_run_that_is_cut_anywhere_is_as_one_that_is_not() {
    let packets = hour();
    let expected = periods(&packets, usize::MAX);
    let mut rng = Rng::seeded(7);
    let mut cuts: Vec<_> = (0..50).map(|_| rng.below(packets.len() as u64) as usize).collect();
    cuts.sort_unstable();
    // One run is saved before each cut. The rest of the packets then goes to a resumed engine.
    let several = Settings { threads: 3, ..settings() };
    let mut whole = Run::new(new(several), &packets[0]);
    let mut from = 0;
    for (number, &cut) in cuts.iter().enumerate() {
        (from..cut).for_each(|index| whole.pass(index, &packets[index]));
        from = cut;
        let image = whole.engine.checkpoint().unwrap();
        let threads = [1, 3, 8][number % 3];
        let engine = resumed(&image, Settings { threads, ..settings() });
        let mut rest = Run { engine, started: whole.started, periods: Vec::new() };
        (cut..packets.len()).for_each(|index| rest.pass(index, &packets[index]));
        let expected = &expected[whole.periods.len()..];
        assert_equal(&rest.end(), expected, &format!("cut at {cut}, {threads} threads"));
    }
    (from..packets.len()).for_each(|index| whole.pass(index, &packets[index]));
    assert_equal(&whole.end(), &expected, "saved 50 times");
}

/// Also finds lost state that a report shows only much later, or for rare traffic.
#[test]
fn a_resumed_engine_is_saved_as_the_same_bytes() {
    let packets = hour();
    let mut run = Run::new(new(settings()), &packets[0]);
    for (index, packet) in packets.iter().enumerate() {
        run.pass(index, packet);
        if index % 5_003 == 5_002 {
            let image = run.engine.checkpoint().unwrap();
            let again = resumed(&image, settings()).checkpoint().unwrap();
            assert!(again == image, "after packet {index}");
        }
    }
}

/// Flow records are weighted packets, and known addresses wait in the batch while workers run.
#[test]
fn records_and_known_addresses_that_wait_are_resumed() {
    let packets = &hour()[..3_000];
    let end = |cut: Option<usize>| {
        let mut engine = new(Settings { threads: 3, ..settings() });
        for (index, packet) in packets.iter().enumerate() {
            if cut == Some(index) {
                let image = engine.checkpoint().unwrap();
                engine = resumed(&image, Settings { threads: 8, ..settings() });
            }
            let Packet { time_ns, flow, wire_len, .. } = *packet;
            let (packets, bytes) = (index as u64 % 7 + 1, wire_len.into());
            let (flags, icmp) = (Some(packet.tcp_flags()), None);
            match index % 3 {
                0 => engine.packet(packet),
                _ => engine.record(&Record { time_ns, flow, packets, bytes, flags, icmp }),
            }
            // Many addresses at a time would complete the batch.
            engine.learn((index % 1_000 == 0).then(|| [192, 0, 2, (index / 1_000) as u8].into()));
        }
        period(&engine.snapshot())
    };
    let expected = end(None);
    for cut in [1, 2, 200, 1_001, 1_002, 2_500, 2_999] {
        assert_equal(&[end(Some(cut))], std::slice::from_ref(&expected), &format!("cut at {cut}"));
    }
}

/// A host that saves the engine at one look and stops, and keeps the periods.
#[derive(Default)]
struct Keeper {
    looks: usize,
    stop_at: Option<usize>,
    saved: Option<(Vec<u8>, Position)>,
    periods: Periods,
}

impl Host for Keeper {
    type Error = Infeasible;

    fn look(&mut self, engine: &mut Engine, moment: &Moment<'_>) -> Result<Go, Infeasible> {
        self.looks += 1;
        if self.stop_at != Some(self.looks) {
            return Ok(Go::On(Duration::ZERO));
        }
        self.saved = Some((engine.checkpoint()?, moment.position));
        Ok(Go::Stop)
    }

    fn period(&mut self, _: u64, snapshot: Snapshot) -> Result<(), Infeasible> {
        self.periods.push(period(&snapshot));
        Ok(())
    }

    fn warn(&mut self, why: &str) {
        panic!("{why}");
    }
}

/// A capture whose clock jumps and is set back, so that frames are held back until their time is
/// decided.
fn capture() -> Vec<u8> {
    let mut file = PcapWriter::new(Vec::new(), LinkType::ETHERNET, SnapLength(262_144)).unwrap();
    let mut bytes = Vec::new();
    for (index, packet) in (0..6_000).zip(hour()) {
        bytes.clear();
        write_frame(&packet, &mut bytes);
        let seconds = match index {
            _ if index % 997 == 5 => 90_000,
            ..3_000 => 10_000,
            _ => 9_000,
        };
        let time_ns = Mix::default().start_ns + seconds * SECOND + index * SECOND / 10;
        let wire_len = packet.wire_len.max(bytes.len() as u32);
        file.write(&Frame { time_ns, wire_len, link: LinkType::ETHERNET, bytes: &bytes }).unwrap();
    }
    file.finish().unwrap()
}

#[test]
fn a_loop_over_a_capture_goes_on_where_it_was_stopped() {
    let file = capture();
    let source = || {
        let source = Source::from_reader(Cursor::new(file.clone())).unwrap();
        Capture::new(source, Path::new("test"), None)
    };
    for (packets, most) in [(None, None), (Some(5_000), Some(2))] {
        let (period_ns, periods) = (Some(60 * SECOND), most);
        let limits = Limits { packets, period_ns, periods, stride: 7 };
        let whole = || {
            let (mut engine, mut keeper) = (new(settings()), Keeper::default());
            drive::drive(&mut engine, &mut source(), limits, &mut keeper).unwrap();
            keeper.periods.push(period(&engine.snapshot()));
            keeper
        };
        let expected = whole();
        assert_eq!(expected.periods.len() > 5, most.is_none());
        let ledger = Snapshot::from_bytes(&expected.periods[0].1).unwrap();
        assert!(ledger.ledger().time_jumps > 0);
        let looks = expected.looks;
        // The clock is set back at packet 3,000.
        for stop_at in [1, 2, 150, looks / 2, 3_000 / 7, 3_000 / 7 + 1, 3_000 / 7 + 2, looks] {
            let mut keeper = Keeper { stop_at: Some(stop_at), ..Keeper::default() };
            drive::drive(&mut new(settings()), &mut source(), limits, &mut keeper).unwrap();
            let (image, position) = keeper.saved.take().unwrap();
            keeper.stop_at = None;
            let mut engine = resumed(&image, settings());
            drive::drive_from(position, &mut engine, &mut source(), limits, &mut keeper).unwrap();
            keeper.periods.push(period(&engine.snapshot()));
            assert_equal(&keeper.periods, &expected.periods, &format!("stopped at {stop_at}"));
        }
    }
}

#[test]
fn events_of_packets_that_wait_are_told_after_the_cut() {
    let packets = &hour()[..4_000];
    let told = |cut: Option<usize>| {
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = || {
            let events = Arc::clone(&events);
            Box::new(move |event: sidon_traffic::Event| {
                events.lock().unwrap().push(event.to_json().to_string());
            })
        };
        let mut engine = new(settings());
        engine.set_sink(sink());
        for (index, packet) in packets.iter().enumerate() {
            if cut == Some(index) {
                let image = engine.checkpoint().unwrap();
                engine = resumed(&image, settings());
                engine.set_sink(sink());
            }
            engine.packet(packet);
        }
        engine.end();
        drop(engine);
        let events = events.lock().unwrap();
        events.clone()
    };
    let expected = told(None);
    assert!(expected.len() > 100, "{}", expected.len());
    for cut in [1, 511, 512, 700, 3_999] {
        assert_eq!(told(Some(cut)), expected, "cut at {cut}");
    }
}

#[test]
fn other_settings_are_refused_by_name() {
    let mut engine = new(settings());
    hour()[..2_000].iter().for_each(|packet| engine.packet(packet));
    let image = engine.checkpoint().unwrap();
    let with = |settings, filter: &str, tunnels| {
        let (filter, decoder) = (filter.parse().unwrap(), Decoder { tunnels });
        Engine::resume(&image, settings, filter, decoder).err()
    };
    let outer = |settings| with(settings, "", Tunnels::Outer);
    let mismatch = |field| Some(Unresumed::Mismatch { field });
    assert_eq!(outer(settings()), None);
    assert_eq!(outer(Settings { threads: 4, top: 3, ..settings() }), None);
    let memory = 512 << 10;
    assert_eq!(outer(Settings { memory, ..settings() }), mismatch("memory"));
    assert_eq!(outer(Settings { subnets: vec![], ..settings() }), mismatch("watched subnets"));
    assert_eq!(with(settings(), "tcp", Tunnels::Outer), mismatch("filter expression"));
    assert_eq!(with(settings(), "", Tunnels::Inner), mismatch("treatment of tunnels"));
    let machines = vec![handshake(21)];
    assert_eq!(outer(Settings { machines, ..settings() }), mismatch("machines"));
    let seed = Seed(12);
    let of_seed = Some(Unresumed::Malformed(Malformed::Seed));
    assert_eq!(outer(Settings { seed, ..settings() }), of_seed);
    let audit = Some("audit");
    let Some(Unresumed::Settings(why)) = outer(Settings { audit: true, ..settings() }) else {
        panic!("exact references are not saved");
    };
    assert_eq!(why.name(), audit);
    let refused = new(Settings { audit: true, ..settings() }).checkpoint();
    assert_eq!(refused.err().as_ref().and_then(Infeasible::name), audit);
}

#[test]
fn bytes_that_were_changed_are_refused_or_do_no_harm() {
    let packets = hour();
    let mut engine = new(settings());
    packets[..10_000].iter().for_each(|packet| engine.packet(packet));
    let image = engine.checkpoint().unwrap();
    let resume =
        |image: &[u8]| Engine::resume(image, settings(), Filter::default(), Decoder::default());
    for length in (0..image.len()).step_by(997) {
        assert!(resume(&image[..length]).is_err(), "cut to {length}");
    }
    let parts = Parts::of(&image).unwrap();
    assert_eq!(parts.kind, CHECKPOINT);
    // The offsets of the parts, behind the snapshot, which is refused by its checksum.
    let length = |at: usize| u64::from_le_bytes(*parts.payload[at..].first_chunk().unwrap());
    let mut starts = vec![8 + length(0) as usize];
    while let Some(&start) = starts.last().filter(|start| **start < parts.payload.len()) {
        starts.push(start + 8 + length(start) as usize);
    }
    assert_eq!(starts.len(), 9);
    let mut rng = Rng::seeded(3);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..if cfg!(feature = "slow-tests") { 4_000 } else { 400 } {
        let mut payload = parts.payload.to_vec();
        for _ in 0..1 + rng.below(2) {
            let part = rng.below(starts.len() as u64 - 1) as usize;
            let most = (starts[part + 1] - starts[part]) as u64;
            // Numbers are at the start of a part, maps behind them.
            let length = if rng.chance(0.5) { most.min(400) } else { most };
            let at = starts[part] + rng.below(length) as usize;
            payload[at] = rng.next_u64() as u8 & [0xff, 1, 0x80][rng.below(3) as usize];
        }
        let changed = Parts { payload: &payload, ..parts.clone() }.to_bytes();
        match resume(&changed) {
            Ok(mut engine) => {
                accepted += 1;
                packets[10_000..12_000].iter().for_each(|packet| engine.packet(packet));
                let _ = engine.work();
                let _ = period(&engine.snapshot());
            }
            Err(_) => refused += 1,
        }
    }
    assert!(accepted > 20 && refused > 20, "{accepted} accepted, {refused} refused");
}

#[test]
fn the_seed_is_left_out_and_given_beside() {
    let mut engine = new(settings());
    hour()[..2_000].iter().for_each(|packet| engine.packet(packet));
    let image = engine.checkpoint().unwrap();
    let snapshot = engine.snapshot();
    let mut without = Vec::new();
    snapshot.write_without_seed(&mut without).unwrap();
    let whole = snapshot.to_bytes();
    let seed = SEED.0.to_le_bytes();
    let holds = |bytes: &[u8]| bytes[32..48] == seed;
    assert!(holds(&whole) && !holds(&without) && without.len() == whole.len());
    assert!(!image.windows(16).any(|window| window == seed));
    assert_eq!(Snapshot::from_bytes(&without).err(), Some(Malformed::Seed));
    for bytes in [&whole, &without] {
        assert!(Snapshot::from_bytes_under(bytes, SEED).unwrap().to_bytes() == whole);
        assert_eq!(Snapshot::from_bytes_under(bytes, Seed(12)).err(), Some(Malformed::Seed));
        assert_eq!(Snapshot::from_bytes_under(bytes, Seed(0)).err(), Some(Malformed::Seed));
    }
}
