//! Captures to a report: several files in one engine, then its state saved, read and merged.
//!
//! The input is one capture of any format, or several with [`NEXT`] between them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidon_traffic::{Generator, Mix, Source, generate::write_pcap};
use std::io::Cursor;

/// Separates the captures of an input.
const NEXT: &[u8; 4] = b"NEXT";

fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| {
    let mut engine = sidon_fuzz::engine();
    let mut frames = 0;
    for capture in split(bytes) {
        let Ok(mut source) = Source::from_reader(Cursor::new(capture.to_vec())) else { continue };
        while let Ok(Some(frame)) = source.next() {
            engine.frame(&frame);
            frames += 1;
        }
        assert!(source.next().is_err() || matches!(source.next(), Ok(None)));
    }
    assert_eq!(engine.ledger().seen, frames);
    if frames > 0 && sidon_fuzz::is_rare(bytes, 8) {
        sidon_fuzz::is_saved(engine);
    }
});

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

/// Generated captures, alone and in pairs; small captures of the corpus.
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
    if let Some(corpus) = sidon_fuzz::corpus() {
        let is_capture = |name: &str| name.contains("pcap") && !name.ends_with(".out");
        seeds.extend(sidon_fuzz::files(&corpus, 4096, &is_capture));
    }
    seeds
}
