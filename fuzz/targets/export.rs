//! Flow export: datagrams to the collector, its records to an engine, the engine's state saved.
//!
//! The input is a sequence of datagrams, each after two bytes of length and one that chooses the
//! sender and the time since the datagram before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidon_traffic::export::{Collector, Limits, Templates};
use std::net::SocketAddr;

#[path = "../../crates/sidon-traffic/tests/suite/datagrams/mod.rs"]
mod datagrams;

const SECOND: u64 = 1_000_000_000;
fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| {
    let limits = Limits { exporters: 3, templates: 4, fields: 16, waiting: 512 };
    let mut collector = Collector::new(limits, Templates::default());
    let mut engine = sidon_fuzz::is_rare(bytes, 128).then(sidon_fuzz::engine);
    let (mut rest, mut now, mut sent) = (bytes, 1_700_000_000 * SECOND, 0);
    while let Some(([low, high, choice], after)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (datagram, after) = after.split_at(length);
        let from: SocketAddr = ([192, 0, 2, choice & 7], 2055).into();
        now = match choice >> 3 & 3 {
            0 => now,
            1 => now + SECOND,
            2 => now + 700 * SECOND,
            _ => now - SECOND,
        };
        collector.datagram(from, datagram, now, |record| {
            assert_eq!(record.time_ns, now);
            assert!(record.signs().count() > 0);
            if let Some(engine) = &mut engine {
                engine.record(record);
            }
        });
        (rest, sent) = (after, sent + 1);
    }
    let list = collector.list();
    let count = |name| list.iter().find(|(own, _)| *own == name).map_or(0, |(_, times)| *times);
    assert_eq!(count("datagrams"), sent);
    assert!(collector.exporters().len() <= limits.exporters);
    let _ = collector.to_json();
    if let Some(mut engine) = engine {
        engine.note_source(list);
        sidon_fuzz::is_saved(engine);
    }
});

/// One datagram of each kind, alone and all in one; the datagrams of small files of the corpus.
fn seeds() -> Vec<Vec<u8>> {
    fn with(datagram: &[u8]) -> Vec<u8> {
        [&(datagram.len() as u16).to_le_bytes()[..], &[8], datagram].concat()
    }
    let mut all = datagrams::all();
    let sampled = datagrams::sampling(10, 301, u32::MAX);
    all.push(datagrams::ipfix(9, 7, &[sampled]));
    all.push(datagrams::ipfix(10, 7, &datagrams::wide(302, u64::MAX, 1 << 62)));
    if let Some(corpus) = sidon_fuzz::corpus() {
        let folder = corpus.join("flow-export/logstash");
        all.extend(sidon_fuzz::files(&folder, 2048, &|name| name.ends_with(".dat")));
    }
    let mut seeds: Vec<Vec<u8>> = all.iter().map(|datagram| with(datagram)).collect();
    seeds.push(seeds.concat());
    seeds
}
