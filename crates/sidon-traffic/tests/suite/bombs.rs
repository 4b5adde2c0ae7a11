//! Captures that are much larger than their files.

use sidon_traffic::{
    Source, SourceError,
    drive::{Capture, Item, Traffic},
    source::{Broken, Limit, Limits, Why},
};
use std::{
    io::{self, Cursor, Read},
    path::Path,
    time::Duration,
};

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

#[test]
fn a_zstd_frame_without_its_end_gives_all_frames_of_its_whole_blocks() {
    // The last of eight blocks lacks its byte. All blocks are within one window.
    let mut file = zstd(&pcap(), 1);
    file.pop();
    let (frames, broken) = read(file.clone(), None);
    assert_eq!(frames, 7 * (128 << 10) / 16);
    assert!(matches!(broken.unwrap().why, Why::Compressed { .. }));
    // The header of a block is cut, and so is a frame without a whole block.
    file.truncate(file.len() - 2);
    assert_eq!(read(file, None).0, 7 * (128 << 10) / 16);
    assert_eq!(read(zstd(&pcap(), 1)[..6 + 3 + 24].to_vec(), None).0, 0);
}

#[test]
fn a_window_of_zstd_beyond_the_limit_is_refused() {
    // Windows of 8, 128 and 256 MiB and of 2 TiB: the exponent is in the upper five bits.
    for (exponent, fits) in [(13, true), (17, true), (18, false), (31, false)] {
        let mut file = zstd(&pcap(), 1);
        file[5] = exponent << 3;
        match Source::from_reader(Cursor::new(file)) {
            Ok(_) => assert!(fits, "{exponent}"),
            Err(SourceError::Header(Broken { why: Why::Compressed { message }, .. })) => {
                assert!(!fits, "{exponent}: {message}");
            }
            Err(why) => panic!("{exponent}: {why}"),
        }
    }
}

#[test]
fn a_capture_inside_two_compressions_is_no_capture() {
    let nested = zstd(&gzip(&pcap(), 0), 1);
    let refused = Source::from_reader(Cursor::new(nested)).err();
    assert!(matches!(refused, Some(SourceError::NotACapture { .. })), "{refused:?}");
}

/// Zeros without an end, after a start.
struct Endless(Cursor<Vec<u8>>);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => {
                buffer.fill(0);
                Ok(buffer.len())
            }
            got => Ok(got),
        }
    }
}

/// The head of a section of `length` bytes.
fn section_head(length: u32) -> Vec<u8> {
    let words = [0x0a0d_0d0a, length, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn a_reader_that_skips_returns_so_that_the_loop_can_stop() {
    let whole = [section_head(28), 28u32.to_le_bytes().to_vec()].concat();
    let long = [4u32, 900 << 20].map(u32::to_le_bytes).concat();
    let names = block(4, &[0; 20_000]).repeat(3_000);
    for (name, start) in [
        ("one block of 900 MiB", [&whole[..], &long].concat()),
        ("a section of 900 MiB", section_head(900 << 20)),
        ("3,000 blocks of names", [&whole[..], &names].concat()),
    ] {
        let source = Source::from_reader(Endless(Cursor::new(start))).unwrap();
        let mut capture = Capture::new(source, Path::new("endless"), None);
        for _ in 0..3 {
            assert!(matches!(capture.next(Duration::ZERO), Ok(Item::Nothing)), "{name}");
        }
        // Each call reads at most 16 MiB and a window.
        assert!(capture.source().taken() <= (3 * 17) << 20, "{name}: {}", capture.source().taken());
    }
}

#[test]
fn the_first_section_is_under_the_limits_of_the_caller() {
    let start = section_head(900 << 20);
    let mut source = Source::from_reader(Endless(Cursor::new(start))).unwrap();
    source.set_limits(Limits { skipped: 1 << 20, ..Limits::default() });
    assert_eq!(source.next().unwrap_err().why, Why::Limit(Limit::Skipped(1 << 20)));
    // The bytes up to the limit, and at most a window of 512 KiB.
    assert!(source.taken() <= 3 << 19, "{}", source.taken());
}

/// The same bytes again and again, without an end.
struct Repeated {
    part: Vec<u8>,
    at: usize,
}

impl Read for Repeated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.part[self.at % self.part.len()..];
        let got = rest.len().min(buffer.len());
        buffer[..got].copy_from_slice(&rest[..got]);
        self.at += got;
        Ok(got)
    }
}

#[test]
fn a_pipe_of_empty_frames_ends_at_a_limit() {
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let lz4 = |bytes: &[u8]| {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let raw_zstd = |bytes: &[u8]| {
        let header = (1 | (bytes.len() as u32) << 3).to_le_bytes();
        [&[0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3][..], &header[..3], bytes].concat()
    };
    let skippable =
        [&[0x50, 0x2a, 0x4d, 0x18][..], &40_000u32.to_le_bytes(), &[0; 40_000]].concat();
    let open_frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3];
    // One byte of content that is held back, in a block that is not the last.
    let held_byte = [8, 0, 0, 0];
    let endless_frame = [&[0x50, 0x2a, 0x4d, 0x18][..], &u32::MAX.to_le_bytes()].concat();
    let one = [pcap(), vec![0; 16]].concat();
    for (name, start, part) in [
        ("gzip", gzip(&one), gzip(&[])),
        ("zstd", raw_zstd(&one), raw_zstd(&[])),
        ("zstd, skippable", raw_zstd(&one), skippable),
        ("zstd, one long skippable", [raw_zstd(&one), endless_frame].concat(), vec![0; 4_096]),
        ("zstd, open", [&raw_zstd(&one)[..], &open_frame].concat(), vec![0; 3]),
        ("zstd, open", [&raw_zstd(&one)[..], &open_frame, &held_byte].concat(), vec![0; 3]),
        ("lz4", lz4(&one), lz4(&[])),
    ] {
        // A few are no fault: the frame after them is read.
        let few = [&start[..], &part.repeat(50)].concat();
        if name != "zstd, one long skippable" && name != "zstd, open" {
            let more = match name {
                "gzip" => gzip(&[0; 32]),
                "lz4" => lz4(&[0; 32]),
                _ => raw_zstd(&[0; 32]),
            };
            assert_eq!(read([few, more].concat(), None), (3, None), "{name}");
        }
        let pipe = Cursor::new(start).chain(Repeated { part, at: 0 });
        let mut source = Source::from_reader(pipe).unwrap();
        assert!(source.next().unwrap().is_some(), "{name}");
        let why = source.next().unwrap_err().why;
        assert_eq!(why, Why::Limit(Limit::Empty(16 << 20)), "{name}");
        assert!(source.taken() < 17 << 20, "{name}: {}", source.taken());
    }
}

#[test]
fn a_zstd_frame_whose_window_is_not_full_yet_is_not_empty() {
    // The content comes out of the decompressor when it exceeds the window, or the frame ends.
    for (exponent, mib) in [(15, 40), (17, 24)] {
        let mut file = vec![0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3];
        let content = [pcap(), vec![0; mib << 20]].concat();
        let blocks = content.chunks(128 << 10);
        let last = blocks.len() - 1;
        for (number, block) in blocks.enumerate() {
            let header = u32::from(number == last) | (block.len() as u32) << 3;
            file.extend(&header.to_le_bytes()[..3]);
            file.extend(block);
        }
        assert_eq!(read(file, None), ((mib as u64) << 16, None), "{mib} MiB");
    }
}
