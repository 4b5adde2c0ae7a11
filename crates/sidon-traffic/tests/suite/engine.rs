//! The engine against exact references, on generated traffic and on every capture of the corpus.

use sidon::{Key, Seed, set::Moves};
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Generator, Mix, Packet, Question, Report, Settings, Source,
    flow::protocol,
    generate::Flood,
    packet::{Fragment, Tcp, TcpFlags, Transport, Vlans},
};
use std::{
    collections::HashMap,
    net::SocketAddrV4,
    path::{Path, PathBuf},
};

fn settings() -> Settings {
    Settings { memory: 2 << 20, audit: true, ..Settings::new(Seed(7)) }
}

fn engine(settings: Settings) -> Engine {
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    engine.start().unwrap();
    engine
}

fn run(mix: Mix, settings: Settings) -> Report {
    let mut engine = engine(settings);
    for packet in Generator::new(mix, 3).unwrap() {
        engine.packet(&packet);
    }
    engine.finish().0
}

fn office(packets: u64) -> Mix {
    Mix { packets, active: 2_000, ..Mix::default() }
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
    Mix { flood: Some(flood), ..office(packets) }
}

#[test]
fn no_bound_is_ever_violated_and_the_ledger_adds_up() {
    for mix in [office(200_000), flooded(400_000)] {
        let report = run(mix, settings());
        let audit = report.audit.unwrap();
        assert_eq!(audit.violations(), 0, "{audit:?}");
        assert!(audit.flows.keys > 10_000, "{audit:?}");
        assert!(audit.flows.exact > 0 && audit.flows.exact < audit.flows.keys, "{audit:?}");
        assert_eq!(report.ledger.seen, mix.packets);
        assert_eq!(report.ledger.balance(), 0);
        assert!(report.allocated <= report.budget);
    }
}

#[test]
fn the_heaviest_are_those_of_an_exact_count() {
    let mix = office(300_000);
    let mut exact: HashMap<_, [u64; 2]> = HashMap::new();
    for packet in Generator::new(mix, 3).unwrap() {
        let counts = exact.entry(packet.flow.undirected()).or_default();
        counts[0] += u64::from(packet.wire_len);
        counts[1] += 1;
    }
    let report = run(mix, Settings { memory: 16 << 20, ..settings() });
    let mut heaviest: Vec<_> = exact.iter().collect();
    heaviest.sort_by_key(|(_, counts)| std::cmp::Reverse(counts[0]));
    assert_eq!(report.flows.leading, 10, "enough memory to be sure of ten");
    let tenth = heaviest[9].1[0];
    for entry in &report.flows.entries {
        let truth = exact[&entry.key];
        assert!(truth[0] >= tenth, "{entry:?}");
        for (bounds, truth) in entry.amounts.iter().zip(truth) {
            assert!(bounds.least <= truth && truth <= bounds.most, "{entry:?} {truth}");
        }
    }
}

#[test]
fn answers_do_not_depend_on_the_number_of_threads() {
    let answer = |threads| run(flooded(100_000), Settings { threads, ..settings() }).to_json();
    let one = answer(1);
    assert_eq!(one, answer(2));
    assert_eq!(one, answer(3));
    assert_eq!(one, answer(8));
}

#[test]
fn reports_on_the_way_are_those_of_a_run_that_ends_there_and_change_nothing() {
    let (mix, half) = (flooded(60_000), 40_000);
    let question = "10.0.0.80".parse().unwrap();
    let settings = Settings { audit: false, ..settings() };
    let undisturbed = run(mix, settings.clone());
    // Alarms are not compared: only the final report lists conditions that have just begun.
    let but_alarms = |report: Report| Report { alarms: Vec::new(), ..report }.to_json();
    for threads in [1, 3] {
        let settings = Settings { threads, ..settings.clone() };
        let (mut engine, mut other) = (engine(settings.clone()), Some(engine(settings)));
        for (number, packet) in Generator::new(mix, 3).unwrap().enumerate() {
            if number == half {
                let report = but_alarms(engine.report());
                assert!(report == but_alarms(engine.report()), "asked twice");
                let ended = other.take().map(|other| but_alarms(other.finish().0));
                assert!(Some(report) == ended, "a run that ends there");
            }
            if number % 10_007 == 0 {
                let _ = engine.answer(&question);
            }
            engine.packet(&packet);
            if let Some(other) = &mut other {
                other.packet(&packet);
            }
        }
        assert!(engine.finish().0.to_json() == undisturbed.to_json(), "asked on the way");
    }
}

#[test]
fn answers_hold_the_truth_and_say_when_they_are_sure() {
    let mix = flooded(200_000);
    let mut exact: HashMap<_, u64> = HashMap::new();
    let mut engine = engine(Settings { memory: 1 << 20, audit: false, ..settings() });
    for packet in Generator::new(mix, 3).unwrap() {
        *exact.entry(packet.flow.undirected()).or_default() += 1;
        engine.packet(&packet);
    }
    let (mut sure, mut unsure) = (0, 0);
    for (flow, &truth) in exact.iter().take(5_000) {
        let answer = engine.answer(&Question::Flow(flow.reversed()));
        let [_, packets] = answer.amounts;
        assert!(packets.least <= truth && truth <= packets.most, "{flow} {truth} {packets:?}");
        match answer.is_seen() {
            Some(seen) => {
                assert!(seen, "{flow} was seen");
                sure += 1;
            }
            None => unsure += 1,
        }
    }
    assert!(sure > 100 && unsure > 100, "{sure} {unsure}");
    // Flows that never occurred: each answer is unseen or uncertain, and has no certain state.
    for port in 1..2_000 {
        let flow = sidon_traffic::FlowKey::v4([192, 0, 2, 1], [192, 0, 2, 2], [port, 9], 6);
        let answer = engine.answer(&Question::Flow(flow));
        assert_ne!(answer.is_seen(), Some(true));
        let connection = answer.connection.unwrap();
        if connection.certainty == sidon::Certainty::Certain {
            assert!(!matches!(connection.state, sidon::Lookup::State(_)));
        }
    }
}

#[test]
fn what_was_known_before_is_not_new() {
    let mix = office(20_000);
    let mut first = engine(settings());
    for packet in Generator::new(mix, 3).unwrap() {
        first.packet(&packet);
    }
    let (report, shards) = first.finish();
    let new = report.new_sources_total;
    assert!(new > 100, "{new}");
    assert_eq!(report.new_sources.iter().map(|(_, hosts)| u64::from(*hosts)).sum::<u64>(), new);
    let known: Vec<_> = shards.iter().flat_map(|shard| shard.sources.addresses()).collect();
    assert_eq!(known.len() as u64, new);

    let mut second = Engine::new(settings(), Filter::default(), Decoder::default()).unwrap();
    assert_eq!(second.learn(known), 0);
    second.start().unwrap();
    for packet in Generator::new(mix, 3).unwrap() {
        second.packet(&packet);
    }
    let (report, _) = second.finish();
    assert_eq!(report.new_sources_total, 0);
    assert_eq!(report.new_sources, []);
    assert_eq!(report.audit.unwrap().violations(), 0);
}

#[test]
fn a_table_that_is_full_says_so_and_stays_right() {
    let report = run(flooded(400_000), Settings { memory: 256 << 10, ..settings() });
    let refused: HashMap<_, _> = report.ledger.refused.iter().copied().collect();
    assert!(refused["sources_v4"] > 10_000, "{refused:?}");
    assert_eq!(report.new_sources_certainty(), "at_least");
    assert_eq!(report.audit.unwrap().violations(), 0);
}

#[test]
fn hosts_of_a_watched_subnet_are_counted_exactly() {
    let subnet = "10.0.0.0/24".parse().unwrap();
    let mix = office(30_000);
    let report = run(mix, Settings { subnets: vec![subnet], ..settings() });
    let mut exact: HashMap<_, [u64; 2]> = HashMap::new();
    for packet in Generator::new(mix, 3).unwrap() {
        exact.entry(packet.flow.source()).or_default()[0] += 1;
        exact.entry(packet.flow.destination()).or_default()[1] += 1;
    }
    let (name, hosts) = &report.subnets[0];
    assert_eq!(name, "10.0.0.0/24");
    assert!(hosts.len() > 20);
    for (host, sent, received) in hosts {
        assert_eq!(exact[&(*host).into()], [*sent, *received], "{host}");
    }
}

#[test]
fn exact_figures_are_the_same_for_every_seed() {
    // Slow traffic with scans: most connections end by a timer, many close to its limit.
    let shares = sidon_traffic::generate::Shares { scan: 30, ..Mix::default().shares };
    let mix = Mix { packets: 3_000, rate: 30, clients: 20, active: 60, shares, ..Mix::default() };
    let mut shown = Vec::new();
    for seed in 1..=12 {
        let mut engine = engine(Settings { audit: false, seed: Seed(seed), ..settings() });
        Generator::new(mix, 3).unwrap().for_each(|packet| engine.packet(&packet));
        let report = engine.finish().0;
        let figures = report.connection_figures();
        let ports: Vec<_> = report
            .ports
            .entries
            .iter()
            .map(|entry| (entry.key, report.service_amounts(entry.amounts)))
            .collect();
        assert_eq!(figures.total.kind().mark(), "=");
        shown.push((figures, ports));
    }
    assert!(shown.windows(2).all(|two| two[0] == two[1]), "{shown:#?}");
}

#[test]
fn every_capture_of_the_corpus_is_watched_without_a_violation() {
    let Some(folder) = std::env::var_os("SIDON_CORPUS").map(PathBuf::from) else {
        eprintln!("SKIPPED: SIDON_CORPUS is not set, no real capture was watched");
        return;
    };
    let mut captures = 0;
    each_file(&folder, &mut |path| {
        let Ok(mut source) = Source::open(path) else { return };
        captures += 1;
        let mut engine = engine(settings());
        while let Ok(Some(frame)) = source.next() {
            engine.frame(&frame);
        }
        let report = engine.finish().0;
        let name = path.display();
        assert_eq!(report.ledger.seen, source.frames(), "{name}");
        assert_eq!(report.ledger.balance(), 0, "{name}");
        let audit = report.audit.unwrap();
        assert_eq!(audit.violations(), 0, "{name}: {:?}", audit.rows);
        // A host of many peers fills the tables of suspects, which evict the least suspect one.
        let mut refused = report.ledger.refused;
        refused.retain(|(table, _)| !["suspects_evicted", "beacon_pairs"].contains(table));
        assert_eq!(refused, [], "{name}");
    });
    assert!(captures > 200, "{captures}");
}

fn each_file(folder: &Path, act: &mut dyn FnMut(&Path)) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { each_file(&path, act) } else { act(&path) }
    }
}

#[test]
fn tables_that_are_forced_to_be_full_refuse_and_stay_right() {
    // A flood of this size fills no table of 16 MiB, so every refusal is forced.
    let counts = |forced: Option<u64>| {
        let settings = Settings { memory: 16 << 20, ..settings() };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        if let Some(packets) = forced {
            engine.refuse_after(packets);
        }
        for packet in Generator::new(flooded(100_000), 3).unwrap() {
            engine.packet(&packet);
        }
        let report = engine.finish().0;
        assert_eq!((report.ledger.seen, report.ledger.balance()), (100_000, 0));
        let names = ["connections", "p2p_pairs", "sources_v4", "sources_v6"];
        let refused: HashMap<_, _> = report.ledger.refused.iter().copied().collect();
        let refused = names.map(|name| refused.get(name).copied().unwrap_or(0));
        let alarms: Vec<_> =
            report.alarms.iter().map(|alarm| (alarm.kind, alarm.subject)).collect();
        (refused, report.new_sources_total, alarms)
    };
    let (refused, all, alarms) = counts(None);
    assert_eq!(refused, [0; 4]);
    let (refused, some, forced_alarms) = counts(Some(500));
    assert!(refused.iter().all(|&times| times > 0), "{refused:?}");
    assert!(some < all, "{some} of {all}");
    // A refused connection accuses nobody: no alarm is new.
    assert!(forced_alarms.iter().all(|alarm| alarms.contains(alarm)), "{forced_alarms:?}");
}

#[test]
fn a_capture_against_the_seed_costs_no_more_work() {
    let seed = settings().seed;
    // Flows with equal upper bits of their digests are in few buckets of every table.
    let flow = |number: u64| {
        let [a, b, c, d] = (number as u32).to_be_bytes();
        let port = 1_024 + (number >> 32) as u16;
        FlowKey::v4(
            [11, a, b, c],
            [198, 18, 0, 7],
            [port.wrapping_add(d.into()), 443],
            protocol::TCP,
        )
    };
    for bits in [0, 48] {
        let chosen = |flow: &FlowKey| (flow.undirected().digest(seed).0 << bits) >> 56 == 0x5a;
        let flows: Vec<_> = (0..).map(flow).filter(chosen).take(10_000).collect();
        let settings = Settings { memory: 1 << 20, ..settings() };
        let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
        let mut time_ns = 1_700_000_000_000_000_000;
        for flow in &flows {
            time_ns += 100_000;
            engine.packet(&syn(*flow, time_ns));
        }
        engine.flush();
        let map = engine.connections().map();
        let (looked, most) = (map.stats().followed, Moves::Search(64).work_most(10_000));
        assert!(looked <= most, "bits from {bits}: {looked} buckets, at most {most}");
        let report = engine.finish().0;
        assert_eq!((report.ledger.seen, report.ledger.balance()), (10_000, 0));
        assert_eq!(report.audit.unwrap().flows.violations, 0);
        let accused = |alarm: &&sidon_traffic::monitor::incidents::Incident| {
            alarm.subject != std::net::IpAddr::from([198, 18, 0, 7])
        };
        assert_eq!(report.alarms.iter().filter(accused).count(), 0);
    }
}

fn syn(flow: FlowKey, time_ns: u64) -> Packet {
    let tcp = Tcp { sequence: 0, acknowledgement: 0, flags: TcpFlags::SYN };
    Packet {
        time_ns,
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
