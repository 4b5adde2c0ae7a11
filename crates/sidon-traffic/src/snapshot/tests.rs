//! Saves, reads and merges snapshots with every counter at its ceiling.

use super::*;
use crate::monitor::services::RULES;
use crate::{
    Decoder, Engine, Figure, Filter, FlowKey, Generator, Mix, Prefix, TcpFlags,
    figure::CEILING,
    flow::protocol,
    generate::Flood,
    ledger::NAMES_MAX,
    monitor::{
        alarms::Alarms,
        connections::{self, Counts, Merged, OUTCOMES},
        incidents::{
            EVIDENCE_MAX, Ends, Example, Incident, KINDS, LISTED_MAX, Series, Severity, TEXT_MAX,
            saved,
        },
        machine::{Definition, Stay, When},
        p2p::{Reason, SUSPECTS_MAX},
        sizes,
    },
};
use serde_json::Value;
use sidon::{
    Seed,
    internals::CLASSES,
    state::{Machine, Rule},
};
use std::{net::IpAddr, sync::Arc};

/// The counts that are written to every counter of a snapshot, one at a time.
const COUNTS: [u64; 6] = [0, (1 << 53) + 1, 3 << 60, (1 << 62) + 1, CEILING - 1, CEILING];

/// An engine after a flood, with a machine, a subnet and P2P-like hosts.
fn snapshot() -> Snapshot {
    let rules: [(&str, &[Rule<'_>]); 1] = [("syn", &[Rule::Open("asked")])];
    let machine = Machine::new(&["asked"], &[], &rules).unwrap();
    let when = When { protocol: Some(protocol::TCP), flags: TcpFlags::SYN, ..When::default() };
    let (name, timeouts) = ("handshake".to_owned(), vec![5]);
    let definition = Definition { name, machine, events: vec![(when, 0)], timeouts };
    let settings = Settings {
        memory: 256 << 10,
        subnets: vec!["10.0.0.0/24".parse().unwrap()],
        machines: vec![Arc::new(definition)],
        ..Settings::new(Seed(7))
    };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    let victim = "10.0.0.80:443".parse().unwrap();
    let flood = Flood { sources: 2_000, victim, after: 1_000, share: 50, ..Flood::default() };
    let mix = Mix { packets: 4_000, rate: 5_000, flood: Some(flood), ..Mix::default() };
    Generator::new(mix, 3).unwrap().for_each(|packet| engine.packet(&packet));
    engine.note_source(vec![("kernel_received", 4_000)]);
    engine.snapshot()
}

/// A name that no other test uses.
fn name(prefix: &str, number: usize) -> &'static str {
    Box::leak(format!("{prefix}{number}").into())
}

/// Sets every counter of a snapshot to `count`. The patterns name all fields: a new one must be
/// added here before this compiles.
fn fill(snapshot: &mut Snapshot, count: u64) {
    let Snapshot {
        settings,
        expression: _,
        tunnels: _,
        ledger,
        allocated,
        shards,
        subnets,
        connections,
        alarms,
        peers,
        peers_audit: _,
        services_audit: _,
        machines,
        first_ns,
        last_ns,
        until_ns,
        partial,
        engines,
        crossing,
    } = snapshot;
    (settings.top, *allocated, *partial) = (count as usize, count, true);
    (*first_ns, *last_ns, *engines) = (Some(0), count, count.max(1));
    (*until_ns, *crossing) = (count, *engines > 1);
    fill_ledger(ledger, count);
    for shard in shards {
        fill_shard(shard, count);
    }
    for subnet in subnets {
        let most = count.min(u32::MAX.into());
        for (host, sent, received) in subnet.list() {
            assert!(subnet.put(host.to_bits().into(), most.saturating_sub(sent), 0));
            assert!(subnet.put(host.to_bits().into(), 0, most.saturating_sub(received)));
        }
    }
    connections.distort(|counts| fill_connections(counts, count));
    let listed = (0..10).map(|number| incident(number, count)).collect();
    *alarms = self::alarms(listed, count, settings.seed);
    *peers = (0..10).map(|number| suspect(number, count)).collect();
    peers.sort_by_key(Suspect::order);
    for machine in machines {
        fill_machine(machine, count);
    }
}

fn fill_ledger(ledger: &mut Ledger, count: u64) {
    let Ledger {
        seen,
        filtered,
        behind_tag,
        decoded,
        services,
        guessed,
        misnamed,
        undecoded,
        refused,
        dont_know,
        late,
        time_jumps,
        time_steps,
        late_ns,
        wire_bytes,
        source,
    } = ledger;
    for counter in [filtered, behind_tag, decoded, misnamed, late, late_ns, wire_bytes] {
        *counter = count;
    }
    *services = [count / RULES.len() as u64; _];
    *guessed = [count; 2];
    (*time_jumps, *time_steps) = (count, count);
    for list in [&mut *undecoded, refused, dont_know, source] {
        *list = (0..NAMES_MAX - 1).map(|number| (name("n", number), count)).collect();
        list.push(("others", count));
    }
    let all = [count; 2].into_iter().chain(undecoded.iter().map(|(_, times)| *times));
    *seen = all.fold(0, u64::saturating_add);
}

fn fill_shard(shard: &mut Shard, count: u64) {
    shard.unlearnt = count;
    // `new` is the number of stored addresses.
    shard.sources.refused = [count; 2];
    let sizes::Sizes { flows, hosts, ports } = &mut shard.sizes;
    let to = |bounds: [sidon::count::Bounds; 2]| bounds.map(|one| count.saturating_sub(one.most));
    for entry in flows.heaviest(usize::MAX).entries {
        flows.add(&entry.key, to(entry.amounts));
    }
    for entry in hosts.heaviest(usize::MAX).entries {
        hosts.add(&entry.key, to(entry.amounts));
    }
    for entry in ports.heaviest(usize::MAX).entries {
        ports.add(&entry.key, to(entry.amounts));
    }
}

fn fill_connections(counts: &mut Counts, count: u64) {
    let sampled = count > 1;
    *counts = Counts {
        by_state: [count; OUTCOMES.len()],
        present: [count; OUTCOMES.len()],
        half_open: count,
        peak_half_open: count.max(counts.peak_half_open),
        open: count,
        dont_know: count,
        refused: count,
        one_way: count,
        came_about: count,
        in_both: count,
        mistaken: if count == CEILING { f64::MAX } else { count as f64 },
        sampling: connections::Sampling {
            level: if sampled { CLASSES } else { 0 },
            highest: if sampled { CLASSES } else { 0 },
            since: sampled.then_some(count),
            unsampled: count,
            by_state: [count; OUTCOMES.len()],
            came_about: count,
            one_way: count,
        },
        merged: Some(Merged {
            crossing: count,
            open_now: count,
            open: [count; 2],
            peak_least: count,
        }),
    };
}

/// Every kind of figure with this number.
fn figures(count: u64) -> [Figure; 5] {
    [
        Figure::exact(count),
        Figure::at_most(count / 2, count),
        Figure::at_least(count, None),
        Figure::estimate(count, count / 2, count.saturating_add(1)),
        Figure::unknown(count),
    ]
}

fn incident(number: usize, count: u64) -> Incident {
    let evidence = (0..EVIDENCE_MAX).map(|i| (name("e", i), figures(count)[i % 5])).collect();
    let host = IpAddr::from((10 << 24 | number as u32).to_be_bytes());
    let subject = if number.is_multiple_of(3) { Prefix::new(host, 31) } else { host.into() };
    let flow = FlowKey::v4([10, 0, 0, 1], [10, 0, 0, 2], [u16::MAX; 2], 6);
    let is_known = number.is_multiple_of(2);
    let mut size = Series::default();
    (0..100).for_each(|at| size.add(count.saturating_sub(at << 32), count));
    Incident {
        id: number as u64,
        kind: KINDS[number % KINDS.len()],
        subject,
        ends: Ends {
            peer: is_known.then_some(host),
            protocol: is_known.then_some(u8::MAX),
            subject_port: is_known.then_some(u16::MAX),
            peer_port: is_known.then_some(0),
        },
        network: "n".repeat(48),
        severity: Severity::ALL[number % 4],
        text: "x".repeat(TEXT_MAX),
        opened: count,
        updated: count,
        closed: is_known.then_some(count),
        filter: "y".repeat(TEXT_MAX),
        size,
        examples: (0..8).map(|at| Example { time: count.saturating_add(at), flow }).collect(),
        evidence,
    }
}

/// The monitor with these incidents, and `count` that were not listed or allowed.
fn alarms(incidents: Vec<Incident>, count: u64, seed: Seed) -> Alarms {
    let unlisted = KINDS.into_iter().chain([name("kind", 1)]).map(|kind| (kind, count)).collect();
    let allowed = vec![("10.0.0.0/8".to_owned(), count), ("::1: beacon".to_owned(), count)];
    Alarms::of(saved::of(incidents, unlisted, allowed, seed), seed).unwrap()
}

fn suspect(number: usize, count: u64) -> Suspect {
    let [peers, ports, ..] = figures(count);
    let reasons = vec![
        Reason::BothProtocols { peers },
        Reason::PortsOfTheirOwn { port: u16::MAX, peers, ports },
        Reason::Scattered { peers, ports },
        Reason::KnownPorts { peers },
    ];
    let host = IpAddr::from((10 << 24 | number as u32).to_be_bytes());
    Suspect { host, score: Figure::exact(count.min(100)), reasons }
}

fn fill_machine(counts: &mut machine::Counts, count: u64) {
    let (name, own) = (counts.name.clone(), &counts.states);
    let states = own
        .iter()
        .map(|(name, _)| (name.clone(), Stay { entered: count, now: count, expired: count }));
    *counts = machine::Counts {
        name,
        flows: count,
        states: states.collect(),
        events: counts.events.iter().map(|(name, _)| (name.clone(), count)).collect(),
        refused: count,
        dont_know: count,
        mistaken: if count == CEILING { f64::INFINITY } else { count as f64 },
        crossing: count,
        is_inferred: false,
    };
}

/// Checks that no figure of a report calls a number at the ceiling exact or an upper bound.
fn check_figures(json: &Value) {
    match json {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(number) = fields.get(name.trim_end_matches("_figure"))
                    && name.ends_with("_figure")
                    && number.as_u64() == Some(CEILING)
                {
                    let kind = value["kind"].as_str();
                    assert!(matches!(kind, Some("at_least" | "unknown")), "{name}: {value}");
                    assert_eq!(value["interval"][1], Value::Null, "{name}: {value}");
                }
                check_figures(value);
            }
        }
        Value::Array(list) => list.iter().for_each(check_figures),
        _ => {}
    }
}

/// Saves and reads a snapshot.
fn reread(snapshot: &Snapshot) -> Snapshot {
    let image = snapshot.to_bytes();
    let read = Snapshot::from_bytes(&image).unwrap_or_else(|why| panic!("{why}"));
    assert!(read.to_bytes() == image, "written otherwise");
    read
}

/// Saves and reads a snapshot, and checks its report.
fn again(snapshot: &Snapshot) -> Snapshot {
    let read = reread(snapshot);
    let json = read.report().to_json();
    check_figures(&json);
    assert_eq!(json["ledger"]["balance"], 0);
    read
}

#[test]
fn every_counter_at_its_ceiling_is_saved_read_and_merged() {
    let mut raised = 0;
    for count in COUNTS {
        let filled = || {
            let mut snapshot = snapshot();
            fill(&mut snapshot, count);
            snapshot
        };
        let mut sum = again(&filled());
        for _ in 0..2 {
            sum.merge(again(&filled())).unwrap();
            sum = again(&sum);
        }
        let packets = sum.report().packets();
        let exact = u128::from(filled().ledger.decoded) * 3;
        raised += u64::from(packets.kind().mark() == "?");
        assert!(packets.allows(exact.try_into().unwrap_or(CEILING)), "{packets}");
        // A file at the ceiling also merges with an ordinary one, in both orders.
        let mut ordinary = snapshot();
        ordinary.allocated = count;
        let mut other = ordinary.merge(filled()).map(|_| again(&ordinary)).unwrap();
        other.merge(filled()).unwrap();
        again(&other);
    }
    // The names in the list of sources may be those of losses: no figure is called exact.
    assert_eq!(raised, COUNTS.len() as u64 - 1);
}

#[test]
fn lists_keep_their_limits_when_files_with_other_names_are_merged() {
    let filled = |prefix: &str, from: usize| {
        let mut snapshot = snapshot();
        fill(&mut snapshot, 5);
        let Ledger { undecoded, refused, dont_know, source, .. } = &mut snapshot.ledger;
        for list in [undecoded, refused, dont_know, source] {
            list.truncate(NAMES_MAX - 1);
            for (number, (own, _)) in list.iter_mut().enumerate() {
                *own = name(prefix, number);
            }
        }
        let own: u64 = snapshot.ledger.undecoded.iter().map(|(_, times)| times).sum();
        snapshot.ledger.seen = 10 + own;
        snapshot.peers = (from..from + SUSPECTS_MAX).map(|number| suspect(number, 9)).collect();
        let listed = (0..LISTED_MAX).map(|number| incident(from + number, 9)).collect();
        snapshot.alarms = alarms(listed, 0, Seed(7));
        reread(&snapshot)
    };
    let mut one = filled("a", 0);
    one.merge(filled("b", SUSPECTS_MAX / 2)).unwrap();
    let one = reread(&one);
    assert_eq!(one.ledger.undecoded.len(), NAMES_MAX);
    assert_eq!(one.ledger.undecoded.last(), Some(&("others", 5 * (NAMES_MAX as u64 - 1))));
    assert_eq!((one.peers.len(), one.alarms.incidents().len()), (SUSPECTS_MAX, LISTED_MAX));
    let unlisted: u64 = one.alarms.unlisted().iter().map(|(_, times)| times).sum();
    assert_eq!(unlisted, LISTED_MAX as u64);
}

#[test]
fn times_at_both_ends_are_saved_read_merged_and_aged() {
    let at = |first_ns: u64, last_ns: u64| {
        let mut engine = Engine::new(
            Settings { memory: 256 << 10, ..Settings::new(Seed(3)) },
            Filter::default(),
            Decoder::default(),
        )
        .unwrap();
        let packets = Generator::new(Mix { packets: 300, ..Mix::default() }, 3).unwrap();
        for (number, packet) in packets.enumerate() {
            let time_ns = if number < 150 { first_ns } else { last_ns };
            engine.packet(&crate::Packet { time_ns, ..packet });
        }
        engine.pass(last_ns);
        engine.snapshot()
    };
    let ends = [0, 1, 1_700_000_000_000_000_000, u64::MAX - 1, u64::MAX];
    for (first, last) in ends.into_iter().flat_map(|a| ends.map(|b| (a, b))) {
        let mut sum = again(&at(first, last));
        sum.merge(again(&at(last, first))).unwrap();
        let sum = again(&sum);
        assert_eq!(sum.ledger.seen, 600);
    }
}

#[test]
fn the_reader_names_the_part_and_the_field_that_it_refuses() {
    let refused = |act: fn(&mut Snapshot)| {
        let mut snapshot = snapshot();
        act(&mut snapshot);
        Snapshot::from_bytes(&snapshot.to_bytes()).err().map(|why| why.to_string())
    };
    for (act, field) in [
        ((|s| s.ledger.seen += 1) as fn(&mut Snapshot), "field seen of the part ledger"),
        (|s| s.ledger.behind_tag = 1, "field behind_tag of the part ledger"),
        (|s| s.ledger.services = [u64::MAX; _], "field services of the part ledger"),
        (|s| s.ledger.refused = vec![("a", 1); 2], "field refused of the part ledger"),
        (|s| s.ledger.source = vec![("not a name", 1)], "field source of the part ledger"),
        (|s| s.shards[0].sources.new += 1, "field new of the part counts"),
        (|s| s.peers = vec![suspect(1, 5); 2], "field host of the part peers"),
        (
            |s| s.machines = vec![machine::Counts::default(); 5],
            "field machines of the part machines",
        ),
        (
            |s| {
                let events = vec![(String::new(), 0); machine::EVENTS_MAX + 1];
                s.machines = vec![machine::Counts { events, ..machine::Counts::default() }];
            },
            "field events of the part machines",
        ),
        (|s| s.engines = 0, "field engines"),
        (|s| s.crossing = true, "field crossing"),
        (|s| (s.first_ns, s.last_ns) = (Some(2), 1), "field times"),
        (|s| s.until_ns = s.last_ns - 1, "field end"),
        (
            |s| {
                let merged = Some(Merged { open: [2, 1], ..Merged::default() });
                s.connections.distort(|counts| counts.merged = merged);
            },
            "field open of the part connection_counts",
        ),
    ] {
        let why = refused(act).unwrap_or_else(|| panic!("{field} is accepted"));
        assert!(why.contains(field), "{field}: {why}");
    }
}
