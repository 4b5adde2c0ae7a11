//! Faults at random operations of every output, on a disk in memory.
//!
//! Afterwards each file is the old one or the new one, no temporary file is left, and the error was
//! returned. A power cut at that moment leaves the old file or the new one, too.

use super::{csv, events::Events};
use crate::saved::{file, rotate::Rotation};
use sidon::Seed;
use sidon_kit::Rng;
use sidon_traffic::{
    Decoder, Engine, Filter, Generator, Mix, Report, Settings, Snapshot,
    budget::LEAST,
    export::{Collector, Limits, Templates},
    files::memory::{Fault, Memory},
    known::{self, Seen},
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    path::Path,
};

/// The number of faults.
const FAULTS: usize = if cfg!(feature = "slow-tests") { 100_000 } else { 3_000 };
/// Content of a file before the fault.
const OLD: &[u8] = b"the old content\n";

/// Events of an earlier run that was killed.
const CUT: &[u8] = b"{\"event_type\":\"alert\"}\n{\"event_ty";

type Files = BTreeMap<String, Vec<u8>>;

/// An output: its files before, what it does, and whether all files are right afterwards.
struct Output<'a> {
    name: &'static str,
    before: Vec<(String, Vec<u8>)>,
    operate: Box<dyn Fn(&Memory) -> bool + 'a>,
    /// The files after an operation without a fault.
    after: Files,
    /// Operations without a fault.
    operations: u64,
}

impl<'a> Output<'a> {
    fn new(
        name: &'static str,
        before: Vec<(String, Vec<u8>)>,
        operate: impl Fn(&Memory) -> bool + 'a,
    ) -> Self {
        let mut output =
            Output { name, before, operate: Box::new(operate), after: Files::new(), operations: 0 };
        let disk = output.disk();
        let fine = (output.operate)(&disk);
        assert!(fine, "{name}");
        output.after = disk.all();
        output.operations = disk.operations();
        assert!(output.operations > 4, "{name}: {}", output.operations);
        output
    }

    fn disk(&self) -> Memory {
        let disk = Memory::default();
        self.before.iter().for_each(|(path, bytes)| disk.put(path, bytes));
        disk
    }

    /// Whether each file is the old one or the new one.
    fn is_whole(&self, left: &Files) -> bool {
        left.iter().all(|(path, bytes)| {
            let old = self.before.iter().any(|(name, old)| name == path && old == bytes);
            old || self.after.get(path) == Some(bytes)
        }) && self.before.iter().all(|(path, _)| left.contains_key(path))
    }

    /// Fails one operation, and checks the files.
    fn fault(&self, random: &mut dyn FnMut(u64) -> u64) {
        let at = random(self.operations);
        let fault = if random(2) == 0 { Fault::Once(at) } else { Fault::From(at) };
        let (disk, seed) = (self.disk(), random(u64::MAX));
        disk.fail(fault, seed);
        let fine = (self.operate)(&disk);
        let place = || format!("{}: {fault:?} of {}", self.name, self.operations);
        assert!(disk.mend(), "{}: nothing failed", place());
        assert!(!fine, "{}: no error", place());
        let left = disk.all();
        assert!(!left.keys().any(|name| name.ends_with(".new")), "{}: {:?}", place(), left.keys());
        if self.name == "events" {
            return;
        }
        assert!(self.is_whole(&left), "{}: {:?}", place(), left.keys());
        let mut kept = disk.after_power_cut(seed);
        kept.retain(|name, _| !name.ends_with(".new"));
        assert!(self.is_whole(&kept), "{}: power cut: {:?}", place(), kept.keys());
    }
}

fn snapshot() -> Snapshot {
    let settings = Settings { memory: LEAST, ..Settings::new(Seed(1)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    let mix = Mix { packets: 300, ..Mix::default() };
    Generator::new(mix, 1).unwrap().for_each(|packet| engine.packet(&packet));
    engine.snapshot()
}

/// A collector that has received one template of NetFlow 9.
fn collector() -> Collector {
    let mut collector = Collector::new(Limits::default(), Templates::default());
    let mut datagram = vec![0, 9, 0, 1];
    datagram.extend([0; 16]);
    datagram.extend([0, 0, 0, 16, 1, 0, 0, 2, 0, 8, 0, 4, 0, 12, 0, 4]);
    collector.datagram("192.0.2.1:2055".parse().unwrap(), &datagram, 1, |_| {});
    assert_eq!(collector.templates().len(), 1);
    collector
}

/// Events through the engine's sink. Lines are whole, and written and lost ones are all.
fn events(disk: &Memory) -> bool {
    let Ok(events) = Events::open(disk, Path::new("d/events")) else { return false };
    let (mut sink, mut sent) = (events.sink(), 0);
    let mix = Mix { packets: 40, ..Mix::default() };
    for packet in Generator::new(mix, 1).unwrap() {
        sink(sidon_traffic::Event::new_source(&packet));
        sent += 1;
        if sent % 7 == 0 {
            events.flush();
        }
    }
    let fine = events.finish().is_ok();
    let left = disk.all();
    // The lines of an earlier run stay, and its last one, which a kill had cut, ends.
    let lines = left["d/events"].strip_prefix(&[CUT, b"\n"].concat()[..]).unwrap();
    let lines = lines.split_inclusive(|&byte| byte == b'\n');
    let mut written = 0;
    for line in lines {
        assert!(line.ends_with(b"}\n"), "{}", line.escape_ascii());
        serde_json::from_slice::<serde_json::Value>(line).unwrap();
        written += 1;
    }
    assert_eq!(written + events.lost(), sent);
    fine
}

fn outputs<'a>(snapshot: &'a Snapshot, report: &'a Report) -> Vec<Output<'a>> {
    let old = |path: &str| vec![(path.to_owned(), OLD.to_vec())];
    let addresses = || (0..500).map(|number| IpAddr::V4(Ipv4Addr::from_bits(number)));
    let user = ("d/known".to_owned(), b"# mine\n0.0.0.7\n0.0.1.200 # kept\n".to_vec());
    let tables = csv::NAMES.map(|name| (format!("d/{name}"), OLD.to_vec()));
    vec![
        Output::new("save", old("d/a.sidon"), |disk| {
            file::replace(disk, Path::new("d/a.sidon"), |out| snapshot.write(out)).is_ok()
        }),
        Output::new("rotate", old("d/sidon-19700101T000000Z.sidon"), |disk| {
            let disk = Box::new(disk.clone());
            let rotation = Rotation::new(disk, "d".into(), 1_000_000_000);
            rotation.is_ok_and(|mut rotation| rotation.save(0, snapshot).saved.is_ok())
        }),
        Output::new("known", vec![user], move |disk| {
            let mut seen: Seen = addresses().collect();
            known::add(disk, Path::new("d/known"), &mut seen).is_ok()
        }),
        Output::new("templates", old("d/templates"), |disk| {
            collector().templates().write(disk, Path::new("d/templates")).is_ok()
        }),
        Output::new("csv", tables.to_vec(), |disk| {
            csv::write(disk, Path::new("d"), report, 10, &snapshot.new_sources()).is_ok()
        }),
        Output::new("events", vec![("d/events".to_owned(), CUT.to_vec())], events),
    ]
}

#[test]
fn no_fault_damages_a_file() {
    let snapshot = snapshot();
    let report = snapshot.report();
    let all = outputs(&snapshot, &report);
    let csv = all.iter().find(|output| output.name == "csv").unwrap();
    assert_eq!(csv.after.len(), csv::NAMES.len());
    assert!(csv.after.values().all(|bytes| bytes != OLD), "a table is not written");
    let mut numbers = Rng::seeded(32);
    let mut random = |below: u64| numbers.below(below);
    for number in 0..FAULTS {
        // Snapshots are large, so one fault in thirty meets each of the first two outputs.
        let output = match random(30) {
            0 => 0,
            1 => 1,
            _ => 2 + number % (all.len() - 2),
        };
        all[output].fault(&mut random);
    }
}
