//! Captures that are much larger than their files.

use sidon_traffic::{
    Source,
    source::{Broken, Limit, Limits, Why},
};
use std::io::Cursor;

/// A pcap header. Zeros after it are packets without a byte, 16 zeros each.
fn pcap() -> Vec<u8> {
    let words = [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 65_535, 1];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A zstd frame of these bytes and then `mib` mebibytes of zeros, in runs of 128 KiB.
fn zstd(start: &[u8], mib: u32) -> Vec<u8> {
    // A window of 1 MiB, no checksum, no size.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3];
    let block = |kind: u32, length: u32, last: bool| {
        let header = u32::from(last) | kind << 1 | length << 3;
        header.to_le_bytes()[..3].to_vec()
    };
    frame.extend(block(0, start.len() as u32, false));
    frame.extend(start);
    for run in 1..=8 * mib {
        frame.extend(block(1, 128 << 10, run == 8 * mib));
        frame.push(0);
    }
    frame
}

fn gzip(start: &[u8], mib: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, start).unwrap();
    std::io::Write::write_all(&mut encoder, &vec![0; mib << 20]).unwrap();
    encoder.finish().unwrap()
}

/// The number of frames, and the error after them.
fn read(file: Vec<u8>, limits: Option<Limits>) -> (u64, Option<Broken>) {
    let mut source = Source::from_reader(Cursor::new(file)).unwrap();
    if let Some(limits) = limits {
        source.set_limits(limits);
    }
    loop {
        match source.next() {
            Ok(Some(_)) => {}
            Ok(None) => return (source.frames(), None),
            Err(broken) => return (source.frames(), Some(broken)),
        }
    }
}

#[test]
fn a_compressed_capture_of_zeros_is_refused_at_its_limit() {
    let limits = Limits { free: 1 << 20, ratio: 100, ..Limits::default() };
    for (file, name) in [(zstd(&pcap(), 8), "zstd"), (gzip(&pcap(), 8), "gzip")] {
        assert!(file.len() < 80_000, "{}", file.len());
        let (frames, broken) = read(file.clone(), Some(limits));
        let Some(Broken { why, .. }) = broken else { panic!("{name} has no limit") };
        assert_eq!(why, Why::Limit(Limit::Ratio(100)), "{name}");
        // All that was decompressed before is read: the ratio counts from 1 MiB on.
        let most = (file.len() as u64 * 100).max(1 << 20) + (128 << 10);
        assert!(frames * 16 <= most && frames > 1_000, "{name}: {frames}");
        let few = Limits { bytes: 1 << 20, ..limits };
        let (_, broken) = read(file.clone(), Some(few));
        assert_eq!(broken.unwrap().why, Why::Limit(Limit::Bytes(1 << 20)), "{name}");
        let many = Limits { ratio: u64::MAX, ..limits };
        assert_eq!(read(file, Some(many)), (8 << 16, None), "{name}");
    }
    // A plain capture is as large as its file.
    let plain = [pcap(), vec![0; 8 << 20]].concat();
    let none = Limits { bytes: 0, ratio: 0, free: 0, skipped: 0 };
    assert_eq!(read(plain, Some(none)), (8 << 16, None));
}

#[test]
fn the_usual_limits_stop_a_bomb_of_a_thousand_to_one() {
    let (frames, broken) = read(zstd(&pcap(), 300), None);
    assert_eq!(broken.unwrap().why, Why::Limit(Limit::Ratio(250)));
    assert!((16_000_000..17_000_000).contains(&frames), "{frames}");
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

#[test]
fn blocks_without_packets_have_a_limit_between_two_packets() {
    let section = block(
        0x0a0d_0d0a,
        &[&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat(),
    );
    let interface = block(1, &[1, 0, 0, 0, 0, 0, 4, 0]);
    let packet = block(6, &[0; 20]);
    let limits = Limits { skipped: 1 << 20, ..Limits::default() };
    for (name, skipped) in [
        ("unknown", block(99, &vec![0; 100_000])),
        ("interface", interface.clone()),
        ("section", section.clone()),
    ] {
        let some = (900_000 / skipped.len()).min(60_000);
        let after = [&section[..], &interface, &packet].concat();
        let fits = [&section[..], &interface, &packet, &skipped.repeat(some), &after].concat();
        assert_eq!(read(fits, Some(limits)), (2, None), "{name}");
        let many = (2 << 20) / skipped.len() + 1;
        let long = [&section[..], &interface, &packet, &skipped.repeat(many), &after].concat();
        let (frames, broken) = read(long, Some(limits));
        let why = broken.unwrap().why;
        // A section may describe 65,536 interfaces: that limit is lower.
        assert!(
            why == Why::Limit(Limit::Skipped(1 << 20)) || name == "interface",
            "{name}: {why:?}"
        );
        assert_eq!(frames, 1);
    }
}
