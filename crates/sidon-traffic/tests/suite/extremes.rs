//! Numbers at both ends of their range, from datagrams to merged files.

use crate::datagrams::{self, WEB};
use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, FlowKey, Question, Settings, Snapshot,
    export::{Collector, Limits, Templates},
    figure::{CEILING, Figure, Kind},
};

const NOW: u64 = 1_700_000_000_000_000_000;

/// An engine that has received these datagrams.
fn received(datagrams: &[Vec<u8>]) -> Engine {
    let subnets = vec!["10.0.0.0/24".parse().unwrap()];
    let settings = Settings { memory: 256 << 10, audit: true, subnets, ..Settings::new(Seed(5)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    let mut collector = Collector::new(Limits::default(), Templates::default());
    for datagram in datagrams {
        let from = "192.0.2.1:9000".parse().unwrap();
        collector.datagram(from, datagram, NOW, |record| engine.record(record));
    }
    engine.note_source(collector.list());
    collector.to_json();
    engine
}

/// Saves, reads and merges: the snapshot of the engine, and of three such engines.
fn saved(datagrams: &[Vec<u8>]) -> [Snapshot; 2] {
    let read = |snapshot: &Snapshot| {
        let image = snapshot.to_bytes();
        let read = Snapshot::from_bytes(&image).unwrap_or_else(|why| panic!("{why}"));
        assert!(read.to_bytes() == image);
        assert_eq!(read.report().to_json()["ledger"]["balance"], 0);
        read
    };
    let one = || read(&received(datagrams).snapshot());
    let mut sum = one();
    for _ in 0..2 {
        sum.merge(one()).unwrap();
        sum = read(&sum);
    }
    [one(), sum]
}

#[test]
fn a_record_of_any_amount_leaves_files_that_can_be_read_and_merged() {
    for amount in [0, 1, u32::MAX.into(), 3 << 60, (1 << 62) + 1, CEILING - 1, CEILING] {
        let wide = datagrams::wide(256, amount, amount);
        let datagram = datagrams::ipfix(1, 7, &wide);
        let [one, sum] = saved(std::slice::from_ref(&datagram));
        for (snapshot, times) in [(one, 1), (sum, 3)] {
            let report = snapshot.report();
            let truth = u128::from(amount) * times;
            let flow = report.amounts(report.flows.entries[0].amounts);
            for figure in [report.packets(), report.bytes(), flow[0], flow[1]] {
                let expected = match u64::try_from(truth) {
                    Ok(truth) if truth < CEILING => Figure::exact(truth),
                    _ => Figure::at_least(CEILING, None),
                };
                assert_eq!(figure, expected, "{amount} x {times}");
            }
            // A counter of a host has 32 bits, and refuses more.
            let (_, hosts) = &report.subnets[0];
            for (_, sent, received) in hosts {
                let figure = report.watched(sent + received);
                assert!(figure.allows(truth.try_into().unwrap_or(CEILING)), "{figure} {truth}");
            }
        }
    }
}

#[test]
fn a_huge_sampling_rate_leaves_files_that_can_be_read_and_merged() {
    for (rate, packets) in [(u32::MAX, 12), (u32::MAX, 1 << 40), (u32::MAX, CEILING), (2, 1 << 63)]
    {
        let wide = datagrams::wide(256, packets, packets);
        let sets = [vec![datagrams::sampling(10, 300, rate)], wide.to_vec()].concat();
        let datagram = datagrams::ipfix(1, 7, &sets);
        for snapshot in saved(std::slice::from_ref(&datagram)) {
            let figure = snapshot.report().packets();
            assert_eq!(figure.kind(), Kind::Unknown, "{figure}");
            assert!(figure.value() >= packets.saturating_mul(rate.into()), "{figure}");
        }
    }
}

#[test]
fn other_flows_are_still_counted_after_a_record_at_the_ceiling() {
    let wide = datagrams::wide(256, CEILING, CEILING);
    let mut all = vec![datagrams::ipfix(1, 7, &[wide.to_vec(), vec![wide[1].clone()]].concat())];
    let others: Vec<_> =
        (1..200u8).map(|host| datagrams::Flow { source: [10, 0, 9, host], ..WEB }).collect();
    all.push(datagrams::ipfix(
        3,
        7,
        &[datagrams::template(10, 257), datagrams::data(257, &others)],
    ));
    let mut engine = received(&all);
    for flow in &others {
        let key = FlowKey::v4(flow.source, flow.destination, flow.ports, flow.protocol);
        let [bytes, packets] = engine.answer(&Question::Flow(key)).figures;
        let exact = [WEB.bytes, WEB.packets].map(|amount| Figure::exact(amount.into()));
        assert_eq!([bytes, packets], exact, "{key}");
    }
    let report = engine.report();
    assert_eq!(report.packets(), Figure::at_least(CEILING, None));
    let audit = report.audit.unwrap();
    assert_eq!((audit.violations(), &audit.rows[..]), (0, &[][..]));
}
