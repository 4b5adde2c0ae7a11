//! Malformed datagrams and frames: the code must not panic, and memory must not grow.
//!
//! Runs 20,000 of each by default; `SIDON_HOSTILE=1000000` runs a million.

#[path = "../suite/datagrams/mod.rs"]
mod datagrams;

use crate::{alone, process};
use sidon::Seed;
use sidon_kit::Rng;
use sidon_traffic::{
    Decoder, Engine, Filter, Frame, Generator, LinkType, Mix, Settings, Tunnels,
    export::{Collector, Limits, Templates},
    generate::write_frame,
};
use std::net::{IpAddr, SocketAddr};

fn how_many() -> u64 {
    let asked = std::env::var("SIDON_HOSTILE").ok();
    asked.map_or(20_000, |asked| asked.parse().expect("a number"))
}

/// A valid datagram with bytes replaced, cut off or added, or random bytes.
fn mangled(rng: &mut Rng, good: &[Vec<u8>]) -> Vec<u8> {
    if rng.chance(0.1) {
        let length = rng.below(1_500);
        let mut bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        if bytes.len() > 2 && rng.chance(0.9) {
            bytes[..2].copy_from_slice(&[0, [5, 9, 10][rng.below(3) as usize]]);
        }
        return bytes;
    }
    let mut bytes = good[rng.below(good.len() as u64) as usize].clone();
    for _ in 0..rng.below(8) {
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] = match rng.below(4) {
            0 => 0,
            1 => 0xff,
            2 => bytes[at] ^ 1 << rng.below(8),
            _ => rng.next_u64() as u8,
        };
    }
    if rng.chance(0.2) {
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
    }
    if rng.chance(0.1) {
        bytes.extend((0..rng.below(64)).map(|_| rng.next_u64() as u8));
    }
    bytes
}

fn engine() -> Engine {
    let settings = Settings { memory: 1 << 20, ..Settings::new(Seed(7)) };
    let decoder = Decoder { tunnels: Tunnels::Inner };
    let mut engine = Engine::new(settings, Filter::default(), decoder).unwrap();
    engine.start().unwrap();
    engine
}

#[test]
fn no_datagram_makes_it_panic_or_grow() {
    let _alone = alone();
    let good = datagrams::all();
    let mut rng = Rng::seeded(1);
    let mut engine = engine();
    let limits = Limits { exporters: 8, ..Limits::default() };
    let mut collector = Collector::new(limits, Templates::default());
    let (all, mut before, mut given) = (how_many(), None, 0u64);
    for number in 0..all {
        if number == all / 2 {
            before = process("VmRSS");
        }
        let bytes = mangled(&mut rng, &good);
        let address = IpAddr::from([192, 0, 2, rng.below(12) as u8]);
        let now = number * 1_000_000;
        collector.datagram(SocketAddr::new(address, 4_000), &bytes, now, |record| {
            given += 1;
            engine.record(record);
        });
    }
    assert!(collector.exporters().len() <= limits.exporters);
    assert!(collector.templates().len() <= 8_192);
    assert!(given > all, "most are still understood: {given}");
    let list = collector.list();
    assert_eq!(list[0], ("datagrams", all));
    engine.note_source(list);
    let (report, _) = engine.finish();
    assert_eq!(report.ledger.balance(), 0);
    if let (Some(before), Some(after)) = (before, process("VmRSS")) {
        // The caches fill up to their limits; a leak of 100 bytes per datagram would be 50 MB in
        // all.
        let grown = after.saturating_sub(before);
        println!(
            "{all} datagrams, {given} records, {before} bytes at half, {grown} more at the end"
        );
        assert!(grown < 16 << 20, "{grown} bytes in {} datagrams", all / 2);
    }
}

#[test]
fn no_frame_makes_it_panic_or_grow() {
    let _alone = alone();
    let mix = Mix { packets: 2_000, ..Mix::default() };
    let good: Vec<_> = Generator::new(mix, 5)
        .unwrap()
        .map(|packet| {
            let mut bytes = Vec::new();
            write_frame(&packet, &mut bytes);
            bytes.truncate(200);
            bytes
        })
        .collect();
    let links = [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL2, LinkType::RADIOTAP];
    let mut rng = Rng::seeded(2);
    let mut engine = engine();
    let (all, mut before) = (how_many(), None);
    for number in 0..all {
        if number == all / 2 {
            before = process("VmRSS");
        }
        let bytes = mangled(&mut rng, &good);
        let link = if rng.chance(0.9) { links[0] } else { links[rng.below(4) as usize] };
        let wire_len = rng.below(2_000) as u32;
        engine.frame(&Frame { time_ns: number * 1_000, wire_len, link, bytes: &bytes });
    }
    let (report, _) = engine.finish();
    assert_eq!(report.ledger.seen, all);
    assert_eq!(report.ledger.balance(), 0);
    assert!(report.ledger.decoded > all / 3, "{:?}", report.ledger);
    assert!(report.ledger.undecoded.len() > 5, "{:?}", report.ledger);
    if let (Some(before), Some(after)) = (before, process("VmRSS")) {
        let grown = after.saturating_sub(before);
        println!("{all} frames, {before} bytes at half, {grown} more at the end");
        assert!(grown < 8 << 20, "{grown} bytes in {} frames", all / 2);
    }
}
