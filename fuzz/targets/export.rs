//! Flow export: datagrams to the collector, its records to an engine, the engine's state saved.
//!
//! The input is the text of a template file, a zero byte, and a sequence of datagrams. Before each
//! datagram are two bytes of length and one that chooses the sender and the time since the datagram
//! before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidon_traffic::{
    export::{Collector, Limits, Templates},
    files::memory::Memory,
};
use std::{net::SocketAddr, path::Path};

#[path = "../../crates/sidon-traffic/tests/suite/datagrams/mod.rs"]
mod datagrams;

const SECOND: u64 = 1_000_000_000;
fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| {
    let limits = Limits { exporters: 3, templates: 4, fields: 16, waiting: 512 };
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (text, datagrams) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let templates = Templates::read_from(text).unwrap_or_default();
    let mut collector = Collector::new(limits, templates);
    // An engine is made for the first record, since most inputs have none.
    let (is_rare, mut engine) = (sidon_fuzz::is_rare(bytes, 128), None);
    let (mut rest, mut now, mut sent) = (datagrams, 1_700_000_000 * SECOND, 0);
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
            if is_rare {
                engine.get_or_insert_with(sidon_fuzz::engine).record(record);
            }
        });
        (rest, sent) = (after, sent + 1);
    }
    let list = collector.list();
    let count = |name| list.iter().find(|(own, _)| *own == name).map_or(0, |(_, times)| *times);
    assert_eq!(count("datagrams"), sent);
    assert!(collector.exporters().len() <= limits.exporters);
    if is_rare {
        let _ = collector.to_json();
        is_written(collector.templates());
    }
    if let Some(mut engine) = engine {
        engine.note_source(list);
        sidon_fuzz::is_saved(engine);
    }
});

/// Templates that a file keeps are read back.
fn is_written(templates: &mut Templates) {
    let disk = Memory::default();
    templates.write(&disk, Path::new("templates")).expect("nothing fails in memory");
    if let Some(text) = disk.all().get("templates") {
        match Templates::read_from(&text[..]) {
            Ok(again) => assert_eq!(again.len(), templates.len()),
            Err(why) => panic!("its own templates are refused: {why}"),
        }
    }
}

/// One datagram of each kind, alone and all in one; the datagrams of small files of the corpus.
fn seeds() -> Vec<Vec<u8>> {
    fn with(datagram: &[u8]) -> Vec<u8> {
        [&(datagram.len() as u16).to_le_bytes()[..], &[8], datagram].concat()
    }
    let mut all = datagrams::all();
    let sampled = datagrams::sampling(10, 301, u32::MAX);
    all.push(datagrams::ipfix(9, 7, &[sampled]));
    all.push(datagrams::ipfix(10, 7, &datagrams::wide(302, u64::MAX, 1 << 62)));
    all.push(datagrams::ipfix(11, 7, &unusual()));
    // Withdrawals, and the first bytes of sFlow.
    all.push(datagrams::ipfix(12, 7, &[datagrams::set(2, &datagrams::halves(&[2, 0, 304, 0]))]));
    all.push(datagrams::halves(&[0, 5, 0, 1]));
    if let Some(corpus) = sidon_fuzz::corpus() {
        let folder = corpus.join("flow-export/logstash");
        all.extend(sidon_fuzz::files(&folder, 2048, &|name| name.ends_with(".dat")));
    }
    let mut seeds: Vec<Vec<u8>> = all.iter().map(|datagram| with(datagram)).collect();
    seeds.push(seeds.concat());
    let file = "# one\n192.0.2.0/9/7 256 flows 8/4 12/4 7/2 11/2 4/1 6/1 2/4 1/4\n\
        192.0.2.0/10/7 300 options 9.12235/2 82/65535\n";
    let with_file = |text: &str, datagrams: &[u8]| [text.as_bytes(), &[0], datagrams].concat();
    let filed = with_file(file, &with(&datagrams::all()[2]));
    seeds.iter_mut().for_each(|datagrams| datagrams.insert(0, 0));
    seeds.push(filed);
    seeds
}

/// A template with IPv6 addresses, a field of an enterprise, times and names of variable length, and
/// two records of it. The second name of the second record has a length of three bytes.
fn unusual() -> [Vec<u8>; 2] {
    let fields =
        [27, 16, 28, 16, 4, 1, 152, 8, 153, 8, 2, 8, 1, 8, 0x8001, 4, 0, 9, 82, 65_535, 83, 65_535];
    let template = [&[304, 10], &fields[..]].concat();
    let mut records = Vec::new();
    for name in [&b"\x03eth"[..], b"\xff\x00\x05wlan0"] {
        records.extend([0x20; 32]);
        records.push(6);
        records.extend([1, 2, 3, 4].map(u64::to_be_bytes).as_flattened());
        records.extend([7; 4]);
        records.extend(b"\0");
        records.extend(name);
    }
    [datagrams::set(2, &datagrams::halves(&template)), datagrams::set(304, &records)]
}
