//! Flow records from datagrams built here, and from those of the corpus.

use crate::datagrams::{self, Flow, WEB, data, ipfix, sampling, set, template, v5, v9};
use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, Report, Settings, Source,
    export::{Collector, Limits, Record, Templates},
    packet::Fragment,
};
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

const SECOND: u64 = 1_000_000_000;

fn collector() -> Collector {
    Collector::new(Limits::default(), Templates::default())
}

fn router() -> SocketAddr {
    "192.0.2.1:4739".parse().unwrap()
}

/// The records of a datagram.
fn records(collector: &mut Collector, bytes: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    collector.datagram(router(), bytes, SECOND, |record| records.push(*record));
    records
}

/// The count under `name` in the ledger.
fn told(collector: &Collector, name: &str) -> u64 {
    collector.list().iter().find(|(known, _)| *known == name).map_or(0, |(_, times)| *times)
}

#[test]
fn every_version_tells_the_same_of_a_flow() {
    let mut all = collector();
    let from_v5 = records(&mut all, &v5(0, 0, &[WEB]));
    let from_v9 = records(&mut all, &v9(0, 0, &[template(9, 256), data(256, &[WEB])]));
    let from_ipfix = records(&mut all, &ipfix(0, 0, &[template(10, 256), data(256, &[WEB])]));
    assert_eq!(from_v5.len(), 1);
    assert_eq!((from_v5[0].packets, from_v5[0].bytes), (12, 3_400));
    assert_eq!(from_v5[0].flow.to_string(), "10.0.0.1:40000 -> 10.0.0.80:443 tcp");
    assert_eq!(from_v5, from_v9);
    assert_eq!(from_v5, from_ipfix);
    assert_eq!(all.exporters().len(), 3);
    assert_eq!(told(&all, "records"), 3);
}

#[test]
fn records_that_come_before_their_template_are_counted_when_it_comes() {
    for version in [9, 10] {
        let message = if version == 9 { v9 } else { ipfix };
        let mut late = collector();
        for sequence in 0..5 {
            let early = message(sequence * 2, 0, &[data(256, &[WEB, WEB])]);
            assert_eq!(records(&mut late, &early), []);
        }
        assert_eq!(told(&late, "sets_waiting_for_templates"), 5, "version {version}");
        assert_eq!(told(&late, "sets_not_understood"), 0);
        let all = records(&mut late, &message(10, 0, &[template(version, 256)]));
        assert_eq!(all.len(), 10, "version {version}");
        assert!(all.iter().all(|record| (record.packets, record.bytes) == (12, 3_400)));
        assert_eq!(told(&late, "sets_waiting_for_templates"), 0);
        assert_eq!(told(&late, "sets_replayed"), 5);
        assert_eq!(told(&late, "sets_given_up"), 0);
    }
}

#[test]
fn a_template_brings_all_that_waited_however_much() {
    for version in [9, 10] {
        let message = if version == 9 { v9 } else { ipfix };
        let mut late = collector();
        // 200 sets of 880 bytes: more than a message can hold.
        for sequence in 0..200 {
            records(&mut late, &message(sequence, 0, &[data(256, &[WEB; 40])]));
        }
        let all = records(&mut late, &message(8_000, 0, &[template(version, 256)]));
        assert_eq!(all.len(), 8_000, "version {version}");
        assert_eq!(told(&late, "sets_replayed"), 200);
        assert_eq!(told(&late, "sets_waiting_for_templates"), 0);
        assert_eq!(told(&late, "records_unexplained"), 0);
    }
}

#[test]
fn a_lost_template_leaves_a_number_of_records_unexplained() {
    // NetFlow 9 states the number of records in a datagram.
    let mut lost = collector();
    for sequence in 0..5 {
        let mut datagram = v9(sequence, 0, &[data(256, &[WEB; 7])]);
        datagram[2..4].copy_from_slice(&7u16.to_be_bytes());
        records(&mut lost, &datagram);
    }
    assert_eq!(told(&lost, "records_unexplained"), 35);
    // Records whose template arrives later are no longer unexplained.
    records(&mut lost, &v9(5, 0, &[template(9, 256)]));
    assert_eq!((told(&lost, "records_unexplained"), told(&lost, "records")), (0, 35));

    // IPFIX numbers records, so the records of all datagrams except the last are known.
    let mut lost = collector();
    for datagram in 0..5 {
        records(&mut lost, &ipfix(7 * datagram, 0, &[data(256, &[WEB; 7])]));
    }
    assert_eq!(told(&lost, "records_unexplained"), 28);
    // A datagram with a known and an unknown template: three of its ten records were counted.
    let mut both = collector();
    records(&mut both, &ipfix(0, 0, &[template(10, 300)]));
    records(&mut both, &ipfix(0, 0, &[data(300, &[WEB; 3]), data(256, &[WEB; 7])]));
    records(&mut both, &ipfix(10, 0, &[data(300, &[WEB; 2])]));
    records(&mut both, &ipfix(12, 0, &[data(300, &[WEB; 2])]));
    assert_eq!((told(&both, "records"), told(&both, "records_unexplained")), (7, 7));
    assert_eq!(told(&both, "records_lost"), 0);
    // An exporter whose sequence number includes the records of the datagram itself.
    let mut own = collector();
    records(&mut own, &ipfix(3, 0, &[template(10, 300), data(300, &[WEB; 3])]));
    records(&mut own, &ipfix(8, 0, &[data(300, &[WEB; 5])]));
    records(&mut own, &ipfix(18, 0, &[data(300, &[WEB; 4]), data(256, &[WEB; 6])]));
    records(&mut own, &ipfix(20, 0, &[data(300, &[WEB; 2])]));
    assert_eq!((told(&own, "records"), told(&own, "records_unexplained")), (14, 6));
    assert_eq!(told(&own, "records_lost"), 0);
}

#[test]
fn records_with_empty_names_are_counted_before_and_after_their_template() {
    // Two names of variable length after the usual fields.
    let mut layout = datagrams::halves(&[256, datagrams::LAYOUT.len() as u16 + 2]);
    layout.extend(datagrams::LAYOUT.iter().flat_map(|field| datagrams::halves(field)));
    layout.extend(datagrams::halves(&[82, 65_535, 83, 65_535]));
    let named = |names: &[&[u8]; 2]| {
        let mut bytes = datagrams::record(&WEB);
        for name in names {
            bytes.push(name.len() as u8);
            bytes.extend(*name);
        }
        bytes
    };
    let names = [[&b"eth0"[..], b"uplink"], [b"", b"x"], [b"eth1", b""], [b"", b""]];
    let body: Vec<u8> = names.iter().flat_map(named).collect();
    let message = |number| ipfix(number, 0, &[set(256, &body)]);
    let mut both = collector();
    assert_eq!(records(&mut both, &message(0)), []);
    let all = records(&mut both, &ipfix(4, 0, &[set(2, &layout)]));
    assert_eq!(all.len(), 4);
    let all = [all, records(&mut both, &message(4))].concat();
    assert_eq!(all.len(), 8);
    assert!(all.iter().all(|record| (record.packets, record.bytes) == (12, 3_400)));
    for zero in ["sets_given_up", "sets_not_understood", "records_lost", "records_unexplained"] {
        assert_eq!(told(&both, zero), 0, "{zero}");
    }
}

#[test]
fn records_whose_template_never_comes_wait_in_bounded_room_and_are_then_given_up() {
    let limits = Limits { waiting: 10_000, ..Limits::default() };
    let mut lost = Collector::new(limits, Templates::default());
    for sequence in 0..1_000 {
        let waits = ipfix(sequence, 0, &[data(256 + (sequence % 9) as u16, &[WEB; 10])]);
        assert_eq!(records(&mut lost, &waits), []);
    }
    let [waiting, given_up] =
        ["sets_waiting_for_templates", "sets_given_up"].map(|name| told(&lost, name));
    assert_eq!(waiting + given_up, 1_000);
    // A set has ten records of 22 bytes each.
    assert!((1..=10_000 / 220).contains(&waiting), "{waiting}");
}

#[test]
fn templates_outlive_the_program() {
    let path = std::env::temp_dir().join(format!("sidon-templates-{}", std::process::id()));
    let mut first = collector();
    records(&mut first, &v9(0, 3, &[template(9, 256), sampling(9, 257, 50)]));
    records(&mut first, &ipfix(0, 3, &[template(10, 300)]));
    first.templates().write(&sidon_traffic::files::System, &path).unwrap();
    let read = Templates::read(&path).unwrap();
    assert_eq!(read.len(), 3);
    let mut second = Collector::new(Limits::default(), read);
    assert_eq!(records(&mut second, &v9(9, 3, &[data(256, &[WEB])])).len(), 1);
    assert_eq!(records(&mut second, &ipfix(9, 3, &[data(300, &[WEB])])).len(), 1);
    // Another domain of the same exporter has its own templates.
    assert_eq!(records(&mut second, &v9(9, 4, &[data(256, &[WEB])])), []);
    std::fs::write(&path, "192.0.2.1/9/0 v9_data 256 0x\n").unwrap();
    assert_eq!(Templates::read(&path).unwrap_err().to_string(), "line 1 is not a template");
    std::fs::remove_file(&path).unwrap();
    assert!(Templates::read(&path).unwrap().is_empty());
}

#[test]
fn a_template_cannot_be_withdrawn_and_many_templates_stay_known() {
    let mut router = collector();
    records(&mut router, &ipfix(0, 0, &[template(10, 256)]));
    // Whoever forges the address could otherwise blind the collector with 24 bytes.
    records(&mut router, &ipfix(0, 0, &[set(2, &datagrams::halves(&[256, 0]))]));
    records(&mut router, &ipfix(0, 0, &[set(2, &datagrams::halves(&[2, 0]))]));
    assert_eq!(records(&mut router, &ipfix(0, 0, &[data(256, &[WEB])])).len(), 1);
    // More templates than an exporter holds in memory.
    for id in 300..500 {
        records(&mut router, &ipfix(0, 0, &[template(10, id)]));
    }
    for id in (300..500).chain([256]) {
        assert_eq!(records(&mut router, &ipfix(0, 0, &[data(id, &[WEB])])).len(), 1, "{id}");
    }
    assert_eq!(told(&router, "datagrams_malformed"), 0);
}

#[test]
fn what_was_sampled_is_made_up_for_and_said() {
    let mut sampled = collector();
    for version in [9, 10] {
        let message = if version == 9 { v9 } else { ipfix };
        let sets = [template(version, 256), sampling(version, 257, 1_000), data(256, &[WEB])];
        let all = records(&mut sampled, &message(0, 0, &sets));
        assert_eq!((all[0].packets, all[0].bytes), (12_000, 3_400_000), "version {version}");
    }
    let all = records(&mut sampled, &v5(0, 0x4000 | 128, &[WEB]));
    assert_eq!((all[0].packets, all[0].bytes), (12 * 128, 3_400 * 128));
    let said: Vec<_> = sampled.exporters().iter().map(|one| one.sampling().unwrap()).collect();
    assert_eq!(said.iter().map(|said| said.rate).collect::<Vec<_>>(), [1_000, 1_000, 128]);
    let from: Vec<_> = said.iter().map(|said| said.from).collect();
    assert_eq!(from, ["options template", "options template", "header"]);
    assert_eq!(told(&sampled, "records_of_options"), 2);
}

#[test]
fn what_did_not_arrive_is_known_by_the_numbers() {
    let mut gaps = collector();
    records(&mut gaps, &v5(100, 0, &[WEB; 30]));
    records(&mut gaps, &v5(130, 0, &[WEB; 10]));
    assert_eq!(told(&gaps, "records_lost"), 0);
    records(&mut gaps, &v5(145, 0, &[WEB]));
    assert_eq!(told(&gaps, "records_lost"), 5);
    // A little late, then restarted, then in order.
    records(&mut gaps, &v5(140, 0, &[WEB; 5]));
    records(&mut gaps, &v5(146, 0, &[WEB]));
    assert_eq!((told(&gaps, "records_lost"), told(&gaps, "datagrams_out_of_order")), (5, 1));

    let mut gaps = collector();
    records(&mut gaps, &v9(u32::MAX, 0, &[template(9, 256)]));
    records(&mut gaps, &v9(0, 0, &[data(256, &[WEB; 4])]));
    records(&mut gaps, &v9(3, 0, &[data(256, &[WEB; 4])]));
    assert_eq!((told(&gaps, "datagrams_lost"), told(&gaps, "records_lost")), (2, 0));

    let mut gaps = collector();
    records(&mut gaps, &ipfix(0, 0, &[template(10, 256)]));
    records(&mut gaps, &ipfix(0, 0, &[data(256, &[WEB; 4])]));
    records(&mut gaps, &ipfix(4, 0, &[data(256, &[WEB; 4])]));
    assert_eq!(told(&gaps, "records_lost"), 0);
    records(&mut gaps, &ipfix(15, 0, &[data(256, &[WEB; 4])]));
    assert_eq!(told(&gaps, "records_lost"), 7);
    // Some exporters include the records of the datagram itself, and exclude options.
    let mut gaps_of_some = collector();
    records(&mut gaps_of_some, &ipfix(3, 0, &[template(10, 256), data(256, &[WEB; 3])]));
    records(&mut gaps_of_some, &ipfix(8, 0, &[data(256, &[WEB; 5])]));
    records(&mut gaps_of_some, &ipfix(9, 0, &[sampling(10, 257, 2), data(256, &[WEB])]));
    assert_eq!(told(&gaps_of_some, "records_lost"), 0);
    records(&mut gaps_of_some, &ipfix(17, 0, &[data(256, &[WEB; 6])]));
    assert_eq!(told(&gaps_of_some, "records_lost"), 2);
    // The number of records in a set without a template is unknown, so no loss is reported.
    records(&mut gaps, &ipfix(19, 0, &[data(999, &[WEB; 4])]));
    records(&mut gaps, &ipfix(23, 0, &[data(256, &[WEB; 4])]));
    assert_eq!(told(&gaps, "records_lost"), 7);
}

#[test]
fn what_is_not_a_record_is_explained() {
    let mut odd = collector();
    assert_eq!(records(&mut odd, b""), []);
    assert_eq!(records(&mut odd, &[0, 0, 0, 5, 0, 0, 0, 1]), []);
    assert_eq!(records(&mut odd, &[0, 8, 1, 2, 3]), []);
    assert_eq!(records(&mut odd, &v5(0, 0, &[WEB; 2])[..60]), []);
    assert_eq!((told(&odd, "datagrams"), told(&odd, "datagrams_sflow")), (4, 1));
    assert_eq!(told(&odd, "datagrams_not_flow_export"), 2);
    assert_eq!(told(&odd, "datagrams_malformed"), 1);
    // A template with counts only: its records have no addresses.
    let alone = set(2, &datagrams::halves(&[256, 1, 1, 4]));
    assert_eq!(records(&mut odd, &ipfix(0, 0, &[alone, set(256, &[0, 0, 1, 0])])), []);
    assert_eq!(told(&odd, "records_without_addresses"), 1);
}

#[test]
fn forged_exporters_take_no_ones_place() {
    let mut crowd = collector();
    records(&mut crowd, &v5(0, 0, &[WEB]));
    for domain in 0..1_000 {
        records(&mut crowd, &v9(0, domain, &[data(256, &[WEB])]));
    }
    let limit = Limits::default().exporters;
    assert_eq!(crowd.exporters().len(), limit);
    assert_eq!(crowd.exporters()[0].counts().counted, 1, "who sent records stays");
    // All exporters have sent records: a new one is refused until one has been silent for long.
    let mut full = collector();
    for domain in 0..100 {
        records(&mut full, &v9(0, domain, &[template(9, 256), data(256, &[WEB])]));
    }
    assert_eq!(told(&full, "datagrams_of_refused_exporters"), 100 - limit as u64);
    let later = 3_600 * SECOND;
    full.datagram(router(), &v9(0, 77, &[template(9, 256), data(256, &[WEB])]), later, |_| {});
    assert_eq!(told(&full, "records"), limit as u64 + 1);
}

fn watch(datagrams: impl Iterator<Item = (u64, Vec<u8>)>, threads: usize) -> Report {
    let settings = Settings { memory: 2 << 20, audit: true, threads, ..Settings::new(Seed(7)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    engine.start().unwrap();
    let mut collector = collector();
    for (time, bytes) in datagrams {
        collector.datagram(router(), &bytes, time, |record| engine.record(record));
    }
    engine.note_source(collector.list());
    engine.finish().0
}

fn host(number: u32) -> [u8; 4] {
    (0x0a01_0000 + number).to_be_bytes()
}

#[test]
fn the_monitors_count_what_records_stand_for() {
    let flow = |number: u32| Flow {
        source: host(number % 100),
        ports: [20_000 + (number % 7) as u16, 53],
        protocol: 17,
        packets: number,
        bytes: number * 100,
        ..WEB
    };
    for threads in [1, 3] {
        let sent =
            (0..2_000).map(|number| (SECOND * u64::from(number), v5(number, 0, &[flow(number)])));
        let report = watch(sent, threads);
        let packets: u64 = (0..2_000).sum();
        assert_eq!(report.ledger.seen, packets);
        assert_eq!(report.ledger.wire_bytes, packets * 100);
        assert_eq!(report.ledger.balance(), 0);
        assert_eq!(report.audit.unwrap().violations(), 0);
        assert_eq!(report.new_sources_total, 100);
        let first = &report.hosts.entries[0];
        let amounts = first.amounts.map(|amount| (amount.is_exact(), amount.most));
        assert_eq!(amounts, [(true, packets * 100), (true, packets)], "{threads} threads");
    }
}

#[test]
fn a_flood_told_by_records_alarms_and_a_busy_service_does_not() {
    let attempt = |number: u32| Flow {
        source: host(number),
        ports: [1_024 + (number % 60_000) as u16, 80],
        packets: 1,
        bytes: 40,
        flags: 0x02,
        ..WEB
    };
    let visit = |number: u32| Flow { flags: 0x1b, packets: 9, ..attempt(number) };
    let answer = |number: u32| {
        let Flow { source, destination, ports: [a, b], .. } = visit(number);
        Flow { source: destination, destination: source, ports: [b, a], ..visit(number) }
    };
    let at = |number: u32| SECOND * 1_000 + u64::from(number) * SECOND / 100;
    let flood = (0..2_000).map(|number| (at(number), v5(number, 0, &[attempt(number)])));
    let report = watch(flood, 1);
    let raised: Vec<_> = report.alarms.iter().map(|alarm| alarm.text.as_str()).collect();
    assert_eq!(raised, ["SYN flood at 10.0.0.80 port 80"]);

    let both = |number: u32| [visit(number), answer(number)];
    let turned = |number: u32| [answer(number), visit(number)];
    for both in [&both as &dyn Fn(u32) -> [Flow; 2], &turned] {
        let busy = (0..2_000).map(|number| (at(number), v5(2 * number, 0, &both(number))));
        let report = watch(busy, 1);
        assert_eq!(report.alarms, [], "{:?}", report.connections);
        assert!(!report.connections.is_one_way(), "{:?}", report.connections);
        assert!(report.connections.came_about >= 1_900, "{:?}", report.connections);
        assert!(report.connections.half_open < 10, "{:?}", report.connections);
    }
}

/// The UDP payloads of a capture; a `.dat` file holds a single payload.
fn payloads(path: &Path) -> Vec<(SocketAddr, Vec<u8>)> {
    if path.extension().is_some_and(|kind| kind == "dat") {
        return vec![(router(), std::fs::read(path).unwrap())];
    }
    let mut source = Source::open(path).unwrap();
    let mut all = Vec::new();
    while let Some(frame) = source.next().unwrap() {
        let packet = Decoder::default().decode(&frame).unwrap();
        if packet.fragment != Fragment::Whole {
            continue;
        }
        let payload = packet.payload_len as usize;
        // Ethernet pads short frames, so the payload ends where the IP header says.
        let header = if frame.bytes[12..14] == [8, 0] {
            14 + usize::from(frame.bytes[14] & 15) * 4 + 8
        } else {
            14 + 40 + 8
        };
        let from = SocketAddr::new(packet.flow.source(), packet.flow.source_port());
        all.push((from, frame.bytes[header..header + payload].to_vec()));
    }
    all
}

#[test]
fn every_file_of_the_corpus_is_counted_or_explained() {
    let Some(folder) = std::env::var_os("SIDON_CORPUS").map(PathBuf::from) else {
        eprintln!("SKIPPED: SIDON_CORPUS is not set, no real flow record was read");
        return;
    };
    let mut files = Vec::new();
    for part in ["", "logstash", "akvorado-netflow", "akvorado-sflow"] {
        let entries = std::fs::read_dir(folder.join("flow-export").join(part)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        files.extend(
            paths.filter(|path| {
                path.extension().is_some_and(|kind| kind == "dat" || kind == "pcap")
            }),
        );
    }
    files.sort();
    assert!(files.len() > 60, "{}", files.len());
    // Each file alone, then all in order of their names: templates before data or after.
    let mut together = collector();
    let mut sums = [0; 3];
    for path in &files {
        let mut alone = collector();
        let (mut datagrams, mut given) = (0, 0);
        for (from, payload) in payloads(path) {
            datagrams += 1;
            alone.datagram(from, &payload, SECOND, |_| given += 1);
            together.datagram(from, &payload, SECOND, |_| {});
        }
        let name = path.file_name().unwrap().to_string_lossy();
        let list: Vec<_> = alone.list().into_iter().filter(|(_, times)| *times > 0).collect();
        println!("{name}: {list:?}");
        assert_eq!(told(&alone, "datagrams"), datagrams, "{name}");
        let counted: u64 = alone.exporters().iter().map(|one| one.counts().counted).sum();
        assert_eq!(told(&alone, "records"), counted + told(&alone, "records_without_addresses"));
        assert!(given >= counted, "{name}: both directions may be in one record");
        if name == "IPFIX.pcap" {
            // As the manifest counts them. 889 sets come before their template, more at a time
            // than a message holds; some records have empty fields of variable length; the
            // template of 51 sets never comes.
            assert_eq!(told(&alone, "records"), 62_565);
            assert_eq!(told(&alone, "sets_replayed"), 889);
            assert_eq!(told(&alone, "sets_waiting_for_templates"), 51);
            assert_eq!(told(&alone, "sets_given_up") + told(&alone, "sets_not_understood"), 0);
            assert_eq!(told(&alone, "records_lost"), 0);
        }
        // Every file leaves at least one count.
        let explained: u64 = list[1..].iter().map(|(_, times)| times).sum();
        let templates: u64 = alone.exporters().iter().map(|one| one.counts().templates).sum();
        assert!(explained + templates > 0, "{name}: {list:?}");
        sums[0] += counted;
        sums[1] += told(&alone, "records_without_addresses");
        sums[2] += datagrams;
    }
    println!(
        "{} files, {} datagrams, {} records counted, {} without addresses",
        files.len(),
        sums[2],
        sums[0],
        sums[1]
    );
    println!("together: {:?}", together.list());
    assert!(sums[0] > 50_000 || sums[1] > 50_000, "{sums:?}");
}
