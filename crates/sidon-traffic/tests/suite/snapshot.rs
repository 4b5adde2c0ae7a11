//! Snapshots: read back as written, refused when damaged, merged without a violated bound.

use sidon::{
    Key, Malformed, Refused, Seed,
    saved::Save,
    state::{Machine, Rule},
};
use sidon_kit::Rng;
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Generator, Mix, Packet, Question, Settings, Snapshot,
    TcpFlags, batch,
    figure::{Figure, Kind},
    flow::protocol,
    generate::Flood,
    monitor::{
        connections::{Counts, OUTCOMES},
        machine::{Definition, When},
        sizes::{self, Host, Port},
    },
    report::SUBNETS_LISTED,
    snapshot::{KIND, Merged, damage},
};
use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddrV4},
    path::PathBuf,
    sync::Arc,
};

const SEED: Seed = Seed(7);

fn settings(memory: u64) -> Settings {
    let subnet = "10.0.0.0/24".parse().unwrap();
    Settings { memory, subnets: vec![subnet], ..Settings::new(SEED) }
}

fn packets(mix: Mix, seed: u64) -> Vec<Packet> {
    Generator::new(mix, seed).unwrap().collect()
}

fn office(packets: u64) -> Mix {
    Mix { packets, active: 500, ..Mix::default() }
}

fn flooded(packets: u64) -> Mix {
    let victim: SocketAddrV4 = "10.0.0.80:443".parse().unwrap();
    let flood = Flood {
        sources: packets / 2,
        victim,
        after: packets / 4,
        share: 50,
        answered: 0,
        ..Flood::default()
    };
    Mix { flood: Some(flood), rate: 5_000, ..office(packets) }
}

fn watched(settings: Settings, packets: &[Packet]) -> Snapshot {
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    engine.start().unwrap();
    packets.iter().for_each(|packet| engine.packet(packet));
    engine.snapshot()
}

/// The packets, each `by_ns` later.
fn later(packets: &[Packet], by_ns: u64) -> Vec<Packet> {
    packets.iter().map(|packet| Packet { time_ns: packet.time_ns + by_ns, ..*packet }).collect()
}

/// Exact counts of all keys that a snapshot counts.
#[derive(Default)]
struct Exact {
    flows: HashMap<FlowKey, [u64; 2]>,
    hosts: HashMap<Host, [u64; 2]>,
    ports: HashMap<Port, [u64; 2]>,
    sources: HashSet<IpAddr>,
}

impl Exact {
    fn of(packets: &[Packet]) -> Self {
        fn add<K: std::hash::Hash + Eq>(map: &mut HashMap<K, [u64; 2]>, key: K, bytes: u32) {
            let counts = map.entry(key).or_default();
            counts[0] += u64::from(bytes);
            counts[1] += 1;
        }
        let mut exact = Exact::default();
        for packet in packets {
            let ends = [packet.flow.source(), packet.flow.destination()];
            add(&mut exact.flows, packet.flow.undirected(), packet.wire_len);
            add(&mut exact.hosts, sizes::host(ends[0]), packet.wire_len);
            if ends[0] != ends[1] {
                add(&mut exact.hosts, sizes::host(ends[1]), packet.wire_len);
            }
            // TCP servers here wait at ports below 1024. For them all rules name the same service.
            let (from, to) = (packet.flow.source_port(), packet.flow.destination_port());
            if packet.flow.protocol() == protocol::TCP && (from < 1024) != (to < 1024) {
                let port = sizes::port(protocol::TCP, from.min(to));
                add(&mut exact.ports, port, packet.wire_len);
            }
            exact.sources.insert(ends[0]);
        }
        exact
    }

    /// Checks every bound, and returns the number of keys with an exact count.
    fn check(&self, snapshot: &Snapshot) -> u64 {
        macro_rules! table {
            ($name:ident) => {{
                let mut exact = 0;
                for (key, truth) in &self.$name {
                    let shard = &snapshot.shards()[batch::shard(key.digest(SEED))];
                    let bounds = shard.sizes.$name.bounds(key);
                    for (bounds, truth) in bounds.iter().zip(truth) {
                        assert!((bounds.least..=bounds.most).contains(truth), "{key:?} {bounds:?}");
                    }
                    exact += u64::from(bounds[0].is_exact());
                }
                exact
            }};
        }
        let is_in = |address: &IpAddr| {
            let shard = batch::shard(batch::subnet(&sizes::host(*address)).digest(SEED));
            snapshot.shards()[shard].sources.contains(*address)
        };
        // Missing source addresses were refused, and the ledger counts them.
        let report = snapshot.report();
        let missing = self.sources.iter().filter(|address| !is_in(address)).count() as u64;
        let refused = report.ledger.refused.iter().filter(|(name, _)| name.contains("sources"));
        assert!(missing <= refused.map(|(_, times)| times).sum(), "{missing}");
        assert_eq!(report.new_sources_total, self.sources.len() as u64 - missing);
        let all = snapshot.new_sources();
        let listed: u64 = all.iter().map(|(_, hosts)| u64::from(*hosts)).sum();
        assert_eq!(listed, report.new_sources_total);
        assert_eq!(all.len() as u64, report.new_subnets);
        assert_eq!(report.new_sources, all[..all.len().min(SUBNETS_LISTED)]);
        table!(hosts) + table!(ports) + table!(flows)
    }
}

#[test]
fn what_is_read_back_reports_the_same_and_is_written_the_same() {
    for mix in [office(30_000), flooded(30_000)] {
        let snapshot = watched(settings(1 << 20), &packets(mix, 3));
        let image = snapshot.to_bytes();
        let read = Snapshot::from_bytes(&image).unwrap();
        assert_eq!(read.report().to_json(), snapshot.report().to_json());
        assert_eq!(read.to_bytes(), image);
        assert_eq!(read.engines(), 1);
    }
    let empty = watched(settings(256 << 10), &[]);
    let read = Snapshot::from_bytes(&empty.to_bytes()).unwrap();
    assert_eq!(read.report().to_json(), empty.report().to_json());
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let some = packets(flooded(20_000), 3);
    let image = |threads| watched(Settings { threads, ..settings(512 << 10) }, &some).to_bytes();
    let one = image(1);
    assert!(one == image(2) && one == image(8));
}

#[test]
fn a_merge_of_two_halves_breaks_no_bound_and_keeps_what_is_exact() {
    let all = packets(office(40_000), 3);
    let exact = Exact::of(&all);
    for (memory, all_exact) in [(8 << 20, true), (256 << 10, false)] {
        // Split by time, and by flow: every other flow.
        let (early, late) = all.split_at(all.len() / 2);
        let is_left =
            |packet: &&Packet| packet.flow.undirected().digest(Seed(1)).0.is_multiple_of(2);
        let left: Vec<_> = all.iter().filter(is_left).copied().collect();
        let right: Vec<_> = all.iter().filter(|packet| !is_left(packet)).copied().collect();
        let whole = watched(settings(memory), &all);
        let sure_of_whole = exact.check(&whole);
        for (one, two) in [(early, late), (&left[..], &right[..]), (late, early)] {
            let mut merged = watched(settings(memory), one);
            merged.merge(watched(settings(memory), two)).unwrap();
            let sure = exact.check(&merged);
            let keys = exact.flows.len() + exact.hosts.len() + exact.ports.len();
            assert_eq!(sure == keys as u64, all_exact, "{sure} of {keys}");
            assert!(sure <= sure_of_whole || all_exact, "{sure} {sure_of_whole}");

            let (report, whole) = (merged.report(), whole.report());
            assert_eq!(report.ledger.seen, all.len() as u64);
            assert_eq!(report.ledger.balance(), 0);
            assert_eq!(report.subnets, whole.subnets);
            assert_eq!(report.times, whole.times);
            assert_eq!(merged.engines(), 2);
            if all_exact {
                assert_eq!(report.flows, whole.flows);
                assert_eq!(report.new_sources, whole.new_sources);
            }
            // A merged snapshot can be written and read like any other.
            let read = Snapshot::from_bytes(&merged.to_bytes()).unwrap();
            assert_eq!(read.report().to_json(), report.to_json());
            exact.check(&read);
        }
    }
}

#[test]
fn connections_of_different_hosts_merge_as_if_seen_by_one() {
    // Three seconds: nothing expires, so the positions of the clock hands do not matter.
    let all = packets(flooded(15_000), 5);
    assert!(all[all.len() - 1].time_ns - all[0].time_ns < 3_900_000_000);
    let is_left = |packet: &&Packet| packet.flow.undirected().digest(Seed(1)).0.is_multiple_of(2);
    let left: Vec<_> = all.iter().filter(is_left).copied().collect();
    let right: Vec<_> = all.iter().filter(|packet| !is_left(packet)).copied().collect();
    let whole = watched(settings(4 << 20), &all).report().connections;
    let mut merged = watched(settings(4 << 20), &left);
    let met = merged.merge(watched(settings(4 << 20), &right)).unwrap();
    let counts = merged.report().connections;
    assert_eq!((met.in_both, met.refused_connections, counts.in_both), (0, 0, 0));
    assert_eq!(counts.by_state, whole.by_state);
    assert_eq!(counts.came_about, whole.came_about);
    assert!(counts.peak_half_open >= whole.peak_half_open, "the sum of the peaks bounds the peak");
    assert!(whole.half_open > 100 && whole.open > 10);
    assert_eq!((counts.half_open, counts.open), (whole.half_open, whole.open));
}

#[test]
fn connections_in_both_are_counted_in_each_and_said() {
    let all = packets(office(40_000), 5);
    let (early, late) = all.split_at(all.len() / 2);
    let (early, late) = (watched(settings(4 << 20), early), watched(settings(4 << 20), late));
    let sum = |snapshot: &Snapshot| snapshot.report().connections.by_state.iter().sum::<u64>();
    let (one, two) = (sum(&early), sum(&late));
    let mut merged = early;
    let met = merged.merge(late).unwrap();
    assert!(met.in_both > 50, "{met:?}");
    assert_eq!(merged.report().connections.in_both, met.in_both);
    assert_eq!(sum(&merged), one + two);
    assert_eq!(merged.connections().map().stats().unknown, met.in_both);
}

#[test]
fn an_hour_later_nothing_is_half_open_any_more() {
    let all = packets(flooded(20_000), 5);
    let mut early = watched(settings(1 << 20), &all);
    assert!(early.report().connections.half_open > 100);
    let raised = early.report().alarms.len();
    assert!(raised > 0);
    let quiet = later(&packets(office(200), 9), 3_600 * 1_000_000_000);
    let late = watched(settings(1 << 20), &quiet);
    let now = late.report().connections.half_open;
    let peak = early.report().connections.peak_half_open;
    early.merge(late).unwrap();
    let report = early.report();
    assert_eq!(report.connections.half_open, now);
    assert!(report.connections.peak_half_open >= peak);
    assert_eq!(report.alarms.len(), raised);
    assert!(report.alarms.iter().all(|alarm| alarm.closed.is_some()), "held at its end, no longer");
}

#[test]
fn what_does_not_fit_together_is_refused_by_name_and_changes_nothing() {
    let some = packets(office(2_000), 3);
    let least = 256 << 10;
    let mut own = watched(settings(least), &some);
    let before = own.to_bytes();
    let mut refuse = |other: Snapshot, field| {
        assert_eq!(own.merge(other).unwrap_err(), Refused::Mismatch { field });
        assert_eq!(own.to_bytes(), before, "{field}");
    };
    refuse(watched(Settings { seed: Seed(8), ..settings(least) }, &some), "seed");
    refuse(watched(settings(512 << 10), &some), "memory");
    refuse(watched(Settings { subnets: vec![], ..settings(least) }, &some), "watched subnets");
    let with = |filter: &str, known: &[IpAddr]| {
        let filter: Filter = filter.parse().unwrap();
        let mut engine = Engine::new(settings(least), filter, Decoder::default()).unwrap();
        assert_eq!(engine.learn(known.iter().copied()), 0);
        some.iter().for_each(|packet| engine.packet(packet));
        engine.snapshot()
    };
    refuse(with("tcp", &[]), "filter expression");
    refuse(with("", &["192.0.2.1".parse().unwrap()]), "known sources");
    let (one, two) = (["192.0.2.1".parse().unwrap()], ["192.0.2.2".parse().unwrap()]);
    assert!(with("", &one).merge(with("", &two)).is_err(), "as many, but others");
    let mut both = with("", &one);
    both.merge(with("", &one)).unwrap();
    let sources: HashSet<_> = some.iter().map(|packet| packet.flow.source()).collect();
    assert_eq!(both.report().new_sources_total, sources.len() as u64);
    assert!(Snapshot::from_bytes(&both.to_bytes()).is_ok());
}

#[test]
fn sources_without_room_are_told() {
    let (one, two) = (packets(flooded(20_000), 3), packets(flooded(20_000), 4));
    let mut merged = watched(settings(256 << 10), &one);
    let met = merged.merge(watched(settings(256 << 10), &two)).unwrap();
    assert!(met.refused_sources > 100, "{met:?}");
    let refused: HashMap<_, _> = merged.report().ledger.refused.into_iter().collect();
    let sum: u64 = ["merged_sources_v4", "merged_sources_v6"]
        .iter()
        .filter_map(|name| refused.get(name))
        .sum();
    assert_eq!(sum, met.refused_sources);
    assert!(Snapshot::from_bytes(&merged.to_bytes()).is_ok());
}

#[test]
fn periods_of_an_engine_merge_to_what_one_would_know() {
    let all = packets(office(30_000), 3);
    let mut engine = Engine::new(settings(8 << 20), Filter::default(), Decoder::default()).unwrap();
    engine.start().unwrap();
    let mut periods: Vec<Snapshot> = Vec::new();
    for (number, packet) in all.iter().enumerate() {
        if number > 0 && number % 10_000 == 0 {
            engine.rotate(|snapshot| periods.push(snapshot)).unwrap();
            assert_eq!(engine.ledger().seen, 0);
        }
        engine.packet(packet);
    }
    periods.push(engine.snapshot());
    assert_eq!(periods.len(), 3);
    let mut sum = periods.remove(0);
    for period in periods {
        sum.merge(period).unwrap();
    }
    Exact::of(&all).check(&sum);
    let whole = watched(settings(8 << 20), &all).report();
    assert_eq!(sum.report().flows, whole.flows);
    assert_eq!(sum.report().subnets, whole.subnets);
    assert_eq!(sum.report().ledger.seen, 30_000);
}

/// Every figure of connections, by name.
fn figures(snapshot: &Snapshot) -> Vec<(String, Figure)> {
    let all = snapshot.report().connection_figures();
    let mut figures = vec![
        ("total".to_owned(), all.total),
        ("half_open".to_owned(), all.half_open),
        ("peak_half_open".to_owned(), all.peak_half_open),
        ("open".to_owned(), all.open),
        ("came_about".to_owned(), all.came_about),
        ("one_way".to_owned(), all.one_way),
    ];
    let states = OUTCOMES.iter().zip(all.by_state);
    figures.extend(states.map(|(name, figure)| (format!("by_state.{name}"), figure)));
    figures
}

#[test]
fn merged_parts_have_figures_that_hold_what_one_engine_counts() {
    let packets = packets(Mix { rate: 500, ..flooded(80_000) }, 3);
    let one = watched(settings(4 << 20), &packets);
    let merge = |parts: Vec<Snapshot>| {
        let merged = parts.into_iter().reduce(|mut sum, part| {
            sum.merge(part).unwrap();
            sum
        });
        let merged = merged.unwrap();
        Snapshot::from_bytes(&merged.to_bytes()).unwrap()
    };
    let start = packets[0].time_ns;
    for parts in [2, 4, 7] {
        let length = (packets.last().unwrap().time_ns - start) / parts + 1;
        let period = |packet: &Packet| (packet.time_ns - start) / length;
        // Successive periods, and four links that share no connection.
        let link = |packet: &Packet| packet.flow.undirected().digest(Seed(3)).0 % parts;
        for (by_time, part) in [(true, &period as &dyn Fn(&Packet) -> u64), (false, &link)] {
            let some = |number| packets.iter().filter(|one| part(one) == number).copied().collect();
            let split: Vec<Vec<Packet>> = (0..parts).map(some).collect();
            let merged = merge(split.iter().map(|some| watched(settings(4 << 20), some)).collect());
            for ((name, figure), (_, truth)) in figures(&merged).iter().zip(figures(&one)) {
                assert!(
                    figure.allows(truth.value()),
                    "{parts} {by_time} {name}: {figure:#} {truth}"
                );
                assert_ne!(figure.kind(), Kind::Exact, "{name}");
            }
        }
    }
}

/// Counts the flows that sent a SYN, and those of them that were reset within five seconds.
fn resets() -> Arc<Definition> {
    let rules: [(&str, &[Rule<'_>]); 2] =
        [("syn", &[Rule::Open("asked")]), ("rst", &[Rule::If("asked", "reset")])];
    let machine = Machine::new(&["asked", "reset"], &[], &rules).unwrap();
    let flags = |flags| When { protocol: Some(protocol::TCP), flags, ..When::default() };
    let events = vec![(flags(TcpFlags::SYN), 0), (flags(TcpFlags::RST), 1)];
    Arc::new(Definition { name: "resets".to_owned(), machine, events, timeouts: vec![5, 5] })
}

#[test]
fn parts_split_by_flow_merge_to_what_one_engine_counts() {
    let all = packets(Mix { rate: 500, ..flooded(60_000) }, 3);
    let end = all.last().unwrap().time_ns;
    let settings = || Settings { machines: vec![resets()], ..settings(16 << 20) };
    let watched = |some: &[Packet]| {
        let mut engine = Engine::new(settings(), Filter::default(), Decoder::default()).unwrap();
        some.iter().for_each(|packet| engine.packet(packet));
        // All parts end at one time, so that flows expire in each as in the whole.
        engine.pass(end);
        engine.snapshot()
    };
    let (whole, exact) = (watched(&all), Exact::of(&all));
    let report = whole.report();
    assert!(report.machines[0].states.iter().all(|(_, stay)| stay.entered > 100), "{report:?}");
    for parts in [2, 3, 8] {
        let part = |packet: &Packet| packet.flow.undirected().digest(Seed(3)).0 % parts;
        let some = |number| -> Vec<Packet> {
            all.iter().filter(|packet| part(packet) == number).copied().collect()
        };
        let split: Vec<_> = (0..parts).map(|number| watched(&some(number)).to_bytes()).collect();
        let read = |bytes: &Vec<u8>| Snapshot::from_bytes(bytes).unwrap();
        let mut sum = read(&split[0]);
        for other in &split[1..] {
            assert_eq!(sum.merge_parts(read(other)).unwrap(), Merged::default());
        }
        let sum = read(&sum.to_bytes());
        let merged = sum.report();
        exact.check(&sum);
        assert_eq!((merged.engines, merged.crossing), (parts, false));
        assert_eq!(merged.flows, report.flows);
        assert_eq!((merged.packets(), merged.ledger.balance()), (report.packets(), 0));
        assert_eq!(merged.subnets, report.subnets);
        assert_eq!(merged.machines[0].to_json(), report.machines[0].to_json());
        assert_eq!(merged.machines[0].crossing, 0);
        for ((name, figure), (_, truth)) in figures(&sum).iter().zip(figures(&whole)) {
            assert!(figure.allows(truth.value()), "{parts} {name}: {figure:#} {truth}");
            // Parts have their most half-open connections at different times.
            if name != "peak_half_open" {
                assert_eq!(
                    (figure.value(), figure.kind()),
                    (truth.value(), truth.kind()),
                    "{name}"
                );
                assert!(figure.least() >= truth.least() && figure.most() <= truth.most(), "{name}");
            }
        }
        for (entry, of_whole) in merged.ports.entries.iter().zip(&report.ports.entries) {
            let figure = merged.service_amounts(entry.amounts)[0];
            assert_eq!(figure, report.service_amounts(of_whole.amounts)[0]);
        }
        // A later period can have the same flows.
        let mut day = sum;
        day.merge(watched(&later(&all, 60_000_000_000))).unwrap();
        let day = day.report();
        assert!(day.crossing);
        assert_eq!(day.connection_figures().total.kind(), Kind::Estimate);
    }
}

#[test]
fn a_sampled_engine_is_read_back_merged_and_asked_as_it_was() {
    let all = packets(flooded(60_000), 4);
    let whole = watched(settings(256 << 10), &all);
    let report = whole.report();
    let sampling = report.connections.sampling.clone();
    assert!(sampling.is_sampled() && sampling.unsampled > 0, "{sampling:?}");
    let image = whole.to_bytes();
    let again = Snapshot::from_bytes(&image).unwrap();
    assert_eq!(again.to_bytes(), image);
    assert_eq!(again.report().to_json(), report.to_json());

    // Two halves: the sums of their estimates, within six standard deviations of the truth.
    let exact = watched(settings(64 << 20), &all).report().connections;
    assert!(!exact.sampling.is_sampled());
    let (first, second) = all.split_at(all.len() / 2);
    let mut sum = watched(settings(256 << 10), first);
    sum.merge(watched(settings(256 << 10), second)).unwrap();
    let merged = sum.report().connections;
    let attempts = |counts: &Counts| counts.by_state[0] as f64;
    let error = (merged.sampling.by_state[0] as f64).sqrt();
    // A connection in both halves is counted in each.
    let slack = 6.0 * error + merged.in_both as f64 * 2f64.powi(merged.sampling.highest as i32);
    let off = (attempts(&merged) - attempts(&exact)).abs();
    assert!(merged.sampling.is_sampled() && off < slack, "{off} of {slack}: {merged:?}");

    // A connection that was passed over is not known to be absent.
    let mut engine =
        Engine::new(settings(256 << 10), Filter::default(), Decoder::default()).unwrap();
    all.iter().for_each(|packet| engine.packet(packet));
    let unsure = all.iter().rev().take(500).filter(|packet| {
        let answer = engine.answer(&Question::Flow(packet.flow)).to_json();
        answer["connection"]["refused_for_lack_of_room"].as_u64().is_some_and(|n| n > 0)
    });
    assert!(unsure.count() > 0);
}

fn golden() -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine.sidon");
    if std::env::var_os("SIDON_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let snapshot = watched(settings(256 << 10), &packets(flooded(6_000), 2));
        std::fs::write(&path, snapshot.to_bytes()).unwrap();
    }
    std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

#[test]
fn the_golden_engine_is_read_as_ever() {
    let image = golden();
    let snapshot = Snapshot::from_bytes(&image).unwrap();
    assert_eq!(snapshot.to_bytes(), image);
    let report = snapshot.report();
    let exact = packets(flooded(6_000), 2);
    assert_eq!(report.ledger.seen, 6_000);
    assert_eq!(report.alarms[0].kind, "syn_flood");
    assert_eq!(report.alarms[0].subject.to_string(), "10.0.0.80");
    Exact::of(&exact).check(&snapshot);
}

#[test]
fn every_damaged_byte_and_every_cut_is_noticed() {
    let image = golden();
    let mut rng = Rng::seeded(1);
    let mut other = image.clone();
    // Flips every byte before the first table in all ways. Flips bytes of the tables in one way,
    // and only some of them unless the slow tests run.
    let step = if cfg!(feature = "slow-tests") { 1 } else { 17 };
    for at in (0..160).chain((160..image.len()).step_by(step)) {
        let flips: &[u8] = if at < 160 { &ALL } else { &[rng.below(255) as u8 + 1] };
        for flip in flips {
            other[at] ^= flip;
            assert!(Snapshot::from_bytes(&other).is_err(), "byte {at} ^ {flip}");
            other[at] ^= flip;
        }
    }
    for cut in (0..400).chain((400..image.len()).step_by(997)) {
        assert!(Snapshot::from_bytes(&image[..cut]).is_err(), "cut to {cut}");
    }
    let longer = [&image[..], &[0]].concat();
    assert!(matches!(Snapshot::from_bytes(&longer), Err(Malformed::Length { .. })));
}

const ALL: [u8; 255] = {
    let (mut all, mut i) = ([0; 255], 0);
    while i < 255 {
        all[i] = i as u8 + 1;
        i += 1;
    }
    all
};

fn seal(image: &mut [u8]) {
    if let Some(body) = image.len().checked_sub(4) {
        let checksum = crc(&image[..body]);
        image[body..].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// The checksum that the library itself writes.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}

/// Random bytes, headers with random bytes, and valid files with changed bytes in the small parts
/// and in the tables. The checksums, also those of the tables, are corrected.
#[test]
fn a_hundred_thousand_byte_strings_give_a_snapshot_or_malformed() {
    let image = golden();
    let mut rng = Rng::seeded(6);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..100_000u32 {
        let mut bytes: Vec<u8>;
        if round % 100 != 0 {
            let length = rng.below(300);
            bytes = (0..length).map(|_| rng.next_u64() as u8).collect();
            if round % 2 == 0 && bytes.len() > 132 {
                bytes[..128].copy_from_slice(&image[..128]);
                let payload = (bytes.len() - 132) as u64;
                bytes[24..32].copy_from_slice(&payload.to_le_bytes());
            }
        } else {
            bytes = image.clone();
            for _ in 0..=rng.below(2) {
                let reach = if rng.below(2) == 0 { 1_200 } else { bytes.len() };
                let at = rng.below(reach as u64) as usize;
                bytes[at] = [0, 0xff, bytes[at] ^ 1, rng.next_u64() as u8][rng.below(4) as usize];
            }
            seal_tables(&mut bytes);
        }
        seal(&mut bytes);
        match Snapshot::from_bytes(&bytes) {
            Ok(read) => {
                let again = read.to_bytes();
                let differs = again.iter().zip(&bytes).position(|(one, two)| one != two);
                assert_eq!(differs, None, "accepted, but written otherwise from there on");
                assert_eq!(again.len(), bytes.len());
                assert_eq!(read.report().ledger.balance(), 0);
                accepted += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(accepted > 10 && refused > 98_000, "{accepted} accepted, {refused} refused");
}

/// Corrects the checksum of every table.
fn seal_tables(image: &mut [u8]) {
    let mut at = 128;
    while at + 16 < image.len() {
        let length = u64::from_le_bytes(image[at + 8..at + 16].try_into().unwrap());
        let Some(to) =
            usize::try_from(length).ok().and_then(|length| (at + 16).checked_add(length))
        else {
            return;
        };
        let Some(part) = image.get_mut(at + 16..to) else { return };
        if part.starts_with(b"SIDN") {
            seal(part);
        }
        at = to;
    }
}

#[test]
fn a_damaged_table_is_found() {
    let image = golden();
    assert_eq!(damage(&image), []);
    let mut other = image.clone();
    let middle = other.len() / 2;
    other[middle] ^= 1;
    let found = damage(&other);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].bytes.contains(&(middle as u64)), "{found:?}");
    assert_eq!(found[0].why, Malformed::Checksum);
    let cut = damage(&image[..middle]);
    assert!(matches!(cut[..], [ref one] if one.to_string().contains("expected")), "{cut:?}");
    assert_eq!(sidon::saved::kind(&image), Ok(KIND));
}

#[test]
fn addresses_are_read_back_or_refused() {
    use sidon_traffic::monitor::addresses::Addresses;
    let mut set = Addresses::new(24, SEED).unwrap();
    for number in 1..=15u128 {
        set.observe(std::net::Ipv6Addr::from(number << 80 | number)).unwrap();
    }
    let image = set.to_bytes();
    let read = Addresses::from_bytes(&image, SEED).unwrap();
    assert!(read.iter().eq(set.iter()) && read.stored() == 15);
    assert_eq!(Addresses::from_bytes(&image, Seed(1)).err(), Some(Malformed::Seed));
    let (mut accepted, mut refused) = (0, 0);
    for at in 0..image.len() - 4 {
        for flip in 1..=255 {
            let mut other = image.clone();
            other[at] ^= flip;
            assert!(Addresses::from_bytes(&other, SEED).is_err());
            seal(&mut other);
            match Addresses::from_bytes(&other, SEED) {
                Ok(read) => {
                    assert_eq!(read.to_bytes(), other);
                    accepted += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(accepted > 0 && refused > accepted, "{accepted} {refused}");
}
