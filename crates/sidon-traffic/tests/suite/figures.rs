//! The certainty of figures: after losses, guesses, merges and steps back in time.

use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Figure, Filter, Generator, Mix, Packet, Report, Settings, Snapshot,
    figure::Kind,
    generate::{Flood, Shares},
};

fn engine() -> Engine {
    // Room for every victim, so that evidence is exact.
    let settings = Settings { top: 50, memory: 64 << 20, ..Settings::new(Seed(1)) };
    Engine::new(settings, Filter::default(), Decoder::default()).unwrap()
}

fn mix() -> Mix {
    let victim = "198.18.0.9:25".parse().unwrap();
    let flood = Flood { sources: 300, victim, after: 1_000, share: 50, ..Flood::default() };
    let shares = Shares { peers: 40, ..Mix::default().shares };
    Mix { packets: 3_000, clients: 50, active: 100, shares, flood: Some(flood), ..Mix::default() }
}

fn packets() -> Vec<Packet> {
    Generator::new(mix(), 1).unwrap().collect()
}

fn watched(packets: &[Packet], source: &[(&'static str, u64)]) -> Report {
    let mut engine = engine();
    packets.iter().for_each(|packet| engine.packet(packet));
    engine.note_source(source.to_vec());
    engine.finish().0
}

fn snapshot(packets: &[Packet]) -> Snapshot {
    let mut engine = engine();
    packets.iter().for_each(|packet| engine.packet(packet));
    engine.snapshot()
}

/// The figures of each part of a report.
fn figures(report: &Report) -> Vec<(&'static str, Figure)> {
    let connections = report.connection_figures();
    let flows = report.amounts(report.flows.entries[0].amounts);
    let ports = report.service_amounts(report.ports.entries[0].amounts);
    vec![
        ("packets", report.packets()),
        ("bytes", report.bytes()),
        ("flow", flows[0]),
        ("port", ports[0]),
        ("sources", report.new_addresses()),
        ("alarm", report.alarms[0].evidence[0].1),
        ("total", connections.total),
        ("half open", connections.half_open),
        ("S0", connections.by_state[0]),
    ]
}

#[test]
fn lost_packets_leave_lower_bounds_and_sampled_ones_leave_none() {
    let packets = packets();
    let whole = watched(&packets, &[("kernel_received", 3_000), ("kernel_dropped", 0)]);
    assert_eq!(whole.alarms[0].kind, "syn_flood");
    assert_eq!(whole.flows.leading, whole.flows.entries.len());
    for (name, figure) in figures(&whole) {
        // The table of first senders has shorter fingerprints than that of connections.
        let expected = if name == "port" { Kind::Estimate } else { Kind::Exact };
        assert_eq!((figure.kind(), figure.most()), (expected, Some(figure.value())), "{name}");
    }
    for lost in ["kernel_dropped", "records_lost", "datagrams_lost", "sets_given_up"] {
        let report = watched(&packets, &[(lost, 1)]);
        assert_eq!((report.flows.leading, report.hosts.complete), (0, 0));
        for (name, figure) in figures(&report) {
            let connections = ["total", "half open", "S0"].contains(&name);
            let expected = if connections { Kind::Unknown } else { Kind::AtLeast };
            assert_eq!((figure.kind(), figure.most()), (expected, None), "{lost}: {name}");
        }
    }
    let report = watched(&packets, &[("records_estimated", 1)]);
    for (name, figure) in figures(&report) {
        let expected = if name == "alarm" { Kind::AtLeast } else { Kind::Unknown };
        assert_eq!((figure.kind(), figure.most()), (expected, None), "{name}");
    }
    // Flow records tell no order of packets, so their connections are unknown.
    let report = watched(&packets, &[("records", 1)]);
    assert_eq!(report.packets().kind(), Kind::Exact);
    assert_eq!(report.connection_figures().total.kind(), Kind::Unknown);
}

#[test]
fn a_connection_without_its_syn_makes_services_estimates() {
    let all = packets();
    let is_syn = |packet: &&Packet| packet.tcp_flags().has(sidon_traffic::TcpFlags::SYN);
    let first = all.iter().position(|packet| is_syn(&packet)).unwrap();
    let flow = all[first].flow.undirected();
    let of_flow = |packet: &&Packet| packet.flow.undirected() == flow;
    let begins_later = |packet: &&Packet| !(of_flow(packet) && is_syn(packet));
    let cut: Vec<Packet> = all.iter().filter(begins_later).copied().collect();
    let rest: Vec<_> = cut.iter().filter(of_flow).collect();
    let slack = [rest.iter().map(|one| u64::from(one.wire_len)).sum(), rest.len() as u64];
    assert!(slack[1] > 0);
    assert_eq!(watched(&all, &[]).service_slack(), [0, 0]);
    let report = watched(&cut, &[]);
    assert_eq!(report.service_slack(), slack);
    for entry in &report.ports.entries {
        for (figure, slack) in report.service_amounts(entry.amounts).into_iter().zip(slack) {
            assert_eq!(figure.kind(), Kind::Estimate);
            assert_eq!(figure.most(), Some(figure.value() + slack));
        }
    }
    assert_eq!(report.amount(report.flows.entries[0].amounts[0]).kind(), Kind::Exact);
}

#[test]
fn merged_parts_have_no_exact_service_score_or_connection() {
    let packets = packets();
    let (first, second) = packets.split_at(1_500);
    let mut merged = snapshot(first);
    merged.merge(snapshot(second)).unwrap();
    let report = merged.report();
    assert_eq!(report.packets(), Figure::exact(3_000));
    assert_eq!((report.ports.leading, report.ports.complete), (0, 0));
    for entry in &report.ports.entries {
        assert_eq!(report.service_amounts(entry.amounts)[0].kind(), Kind::Unknown);
    }
    assert!(!report.p2p.is_empty());
    for suspect in &report.p2p {
        assert_eq!((suspect.score.least(), suspect.score.most()), (0, Some(100)));
    }
    assert_eq!(report.connection_figures().total.kind(), Kind::Estimate);
}

#[test]
fn packets_that_are_late_are_counted_and_the_times_are_the_earliest_and_the_latest() {
    let mut packets = packets();
    let (start, end) = (packets[0].time_ns, packets.last().unwrap().time_ns);
    packets[100].time_ns = start - 7_000_000_000;
    packets[200].time_ns -= 1;
    packets[200].time_ns = packets[200].time_ns.min(packets[199].time_ns - 5);
    let report = watched(&packets, &[]);
    assert_eq!(report.times, Some((start - 7_000_000_000, end)));
    assert_eq!(report.ledger.late, 2);
    assert_eq!(report.ledger.late_ns, packets[99].time_ns - start + 7_000_000_000);
    let json = report.to_json();
    assert_eq!(json["ledger"]["late"], 2);
    assert_eq!(watched(&self::packets(), &[]).ledger.late, 0);
}
