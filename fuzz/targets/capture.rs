//! Captures to a report, as `watch -r --rotate` reads them: each file through the clock of its times and
//! through periods of a minute, then the state saved, read and merged.
//!
//! The input is one capture of any format, compressed or not, or several with [`NEXT`] between them.
#![no_main]

use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use lz4_flex::frame::FrameEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use sidon::Infeasible;
use sidon_traffic::{
    Engine, Generator, Mix, Snapshot, Source,
    drive::{self, Capture, Go, Host, Moment},
    generate::write_pcap,
    source::Limits,
};
use std::{
    io::{Cursor, Write},
    path::Path,
    time::Duration,
};

/// Separates the captures of an input.
const NEXT: &[u8; 4] = b"NEXT";
/// A file of a few bytes may decompress to this many, so that an input is fast.
const LIMITS: Limits = Limits { bytes: 1 << 20, ratio: 250, free: 1 << 20, skipped: 1 << 20 };
/// The most periods of a file.
const PERIODS: u64 = 4;

/// The periods of an input that are over.
struct Periods {
    is_rare: bool,
    packets: u64,
    last_ns: u64,
}

impl Host for Periods {
    type Error = Infeasible;

    fn look(&mut self, _: &mut Engine, _: &Moment<'_>) -> Result<Go, Infeasible> {
        Ok(Go::On(Duration::ZERO))
    }

    fn begin(&mut self, start_ns: u64) {
        assert!(start_ns >= self.last_ns, "periods go back");
        self.last_ns = start_ns;
    }

    fn period(&mut self, _: u64, snapshot: Snapshot) -> Result<(), Infeasible> {
        self.packets += snapshot.ledger().seen;
        if self.is_rare {
            sidon_fuzz::is_read_back(&snapshot);
        }
        Ok(())
    }

    fn warn(&mut self, why: &str) {
        panic!("{why}");
    }
}

fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| {
    let mut engine = sidon_fuzz::engine();
    let is_rare = sidon_fuzz::is_rare(bytes, 8);
    let mut periods = Periods { is_rare, packets: 0, last_ns: 0 };
    let limits = drive::Limits {
        period_ns: Some(60_000_000_000),
        periods: Some(PERIODS),
        ..drive::Limits::default()
    };
    let mut frames = 0;
    for capture in split(bytes) {
        let Some(source) = open(capture) else { continue };
        let mut traffic = Capture::new(source, Path::new("fuzz"), None);
        periods.last_ns = 0;
        let done = drive::drive(&mut engine, &mut traffic, limits, &mut periods);
        assert!(done.is_ok_and(|done| done.unsaved.is_none()));
        frames += if is_rare { count(capture) } else { 0 };
    }
    if is_rare {
        assert_eq!(periods.packets + engine.ledger().seen, frames, "frames are lost or repeated");
        if frames > 0 {
            sidon_fuzz::is_saved(engine);
        }
    }
});

fn open(capture: &[u8]) -> Option<Source> {
    let mut source = Source::from_reader(Cursor::new(capture.to_vec())).ok()?;
    source.set_limits(LIMITS);
    Some(source)
}

/// The frames of a capture, without a clock.
fn count(capture: &[u8]) -> u64 {
    let Some(mut source) = open(capture) else { return 0 };
    let mut frames = 0;
    while let Ok(Some(_)) = source.next() {
        frames += 1;
    }
    assert!(source.next().is_err() || matches!(source.next(), Ok(None)));
    frames
}

fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(NEXT.len()).position(|window| window == NEXT) {
        parts.push(&rest[..at]);
        rest = &rest[at + NEXT.len()..];
    }
    parts.push(rest);
    parts
}

/// The capture, compressed in each format that the reader knows.
fn compressed(capture: &[u8]) -> [Vec<u8>; 4] {
    let in_memory = "nothing fails in memory";
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(capture).expect(in_memory);
    let mut lz4 = FrameEncoder::new(Vec::new());
    lz4.write_all(capture).expect(in_memory);
    [
        gzip.finish().expect(in_memory),
        lz4.finish().expect(in_memory),
        compress_to_vec(capture, CompressionLevel::Fastest),
        compress_to_vec(capture, CompressionLevel::Uncompressed),
    ]
}

/// Generated captures, alone, in pairs and compressed; small captures of the corpus.
fn seeds() -> Vec<Vec<u8>> {
    let capture = |packets, seed| {
        let mix = Mix { packets, ipv6: 30, ..Mix::default() };
        let mut bytes = Vec::new();
        let packets = Generator::new(mix, seed).expect("the mix is possible");
        write_pcap(packets, 96, &mut bytes).expect("nothing fails in memory");
        bytes
    };
    let mut seeds = vec![capture(3, 1), capture(20, 2)];
    seeds.push([&seeds[0], &NEXT[..], &seeds[1]].concat());
    for at in 0..2 {
        let all = compressed(&seeds[at]);
        // Two members, or frames, of one file.
        seeds.extend(all.iter().map(|one| one.repeat(2)));
        seeds.extend(all);
    }
    if let Some(corpus) = sidon_fuzz::corpus() {
        let is_capture = |name: &str| name.contains("pcap") && !name.ends_with(".out");
        seeds.extend(sidon_fuzz::files(&corpus, 4096, &is_capture));
    }
    seeds
}
