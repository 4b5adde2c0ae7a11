//! Captures of every format, written here byte by byte and read back.

use sidon_traffic::{
    LinkType, Source, SourceError,
    source::{Broken, Compression, Format, PcapWriter, SnapLength, Why},
};
use std::io::{Cursor, Write};

/// The fields by which frames are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    time_ns: u64,
    wire_len: u32,
    link: u16,
    bytes: Vec<u8>,
}

fn read(capture: &[u8]) -> Result<(Vec<Seen>, Option<Broken>), SourceError> {
    let mut source = Source::from_reader(Cursor::new(capture.to_vec()))?;
    let mut seen = Vec::new();
    loop {
        match source.next() {
            Ok(Some(frame)) => seen.push(Seen {
                time_ns: frame.time_ns,
                wire_len: frame.wire_len,
                link: frame.link.0,
                bytes: frame.bytes.to_vec(),
            }),
            Ok(None) => return Ok((seen, None)),
            Err(broken) => {
                assert_eq!(source.next(), Err(broken.clone()), "what is broken stays broken");
                return Ok((seen, Some(broken)));
            }
        }
    }
}

/// Numbers in one byte order.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

impl Order {
    fn u16(self, n: u16) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }

    fn u32(self, n: u32) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }

    fn pcap(self, magic: u32, link: u32) -> Vec<u8> {
        let words = [0, 0, 65_535, link];
        let mut file = [self.u32(magic), self.u16(2), self.u16(4)].concat();
        file.extend(words.into_iter().flat_map(|word| self.u32(word)));
        file
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        assert_eq!(body.len() % 4, 0);
        let length = self.u32(body.len() as u32 + 12);
        [self.u32(kind), length.clone(), body.to_vec(), length].concat()
    }

    fn section(self) -> Vec<u8> {
        let body = [self.u32(0x1a2b_3c4d), self.u16(1), self.u16(0), vec![0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    fn interface(self, link: u16, snap: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = [self.u16(link), self.u16(0), self.u32(snap)].concat();
        for (code, value) in options {
            body.extend(self.u16(*code));
            body.extend(self.u16(value.len() as u16));
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        self.block(1, &body)
    }

    fn packet(self, interface: u32, ticks: u64, wire: u32, bytes: &[u8]) -> Vec<u8> {
        let words = [interface, (ticks >> 32) as u32, ticks as u32, bytes.len() as u32, wire];
        let mut body: Vec<u8> = words.into_iter().flat_map(|word| self.u32(word)).collect();
        body.extend(bytes);
        body.resize(body.len().next_multiple_of(4), 0);
        self.block(6, &body)
    }
}

const ORDERS: [Order; 2] = [Order { big: false }, Order { big: true }];

#[test]
fn pcap_of_both_orders_micro_nano_and_modified() {
    for order in ORDERS {
        for (magic, nanos, extra) in
            [(0xa1b2_c3d4, 1_000, 0), (0xa1b2_3c4d, 1, 0), (0xa1b2_cd34, 1_000, 8)]
        {
            let mut file = order.pcap(magic, 1 | 0x4000_0000);
            let mut expected = Vec::new();
            for i in 0..3u32 {
                let bytes = vec![i as u8; 10 + i as usize];
                for word in [1_000 + i, 7 + i, bytes.len() as u32, 100 + i] {
                    file.extend(order.u32(word));
                }
                file.extend(vec![0xee; extra]);
                file.extend(&bytes);
                let time_ns = u64::from(1_000 + i) * 1_000_000_000 + u64::from(7 + i) * nanos;
                expected.push(Seen { time_ns, wire_len: 100 + i, link: 1, bytes });
            }
            assert_eq!(read(&file).unwrap(), (expected, None));
        }
    }
}

#[test]
fn pcapng_with_sections_of_both_orders_interfaces_and_every_packet_block() {
    let (little, big) = (ORDERS[0], ORDERS[1]);
    let mut file = little.section();
    file.extend(little.interface(1, 0, &[(2, b"eth0"), (9, &[9]), (0, &[])]));
    file.extend(little.interface(101, 0, &[(9, &[3])]));
    file.extend(little.block(0x0bad, &[0; 40]));
    file.extend(little.packet(0, 5, 60, b"first"));
    file.extend(little.packet(1, 5, 61, b"second."));
    // A simple packet: interface 0, as long as the block and the snap length allow.
    let simple = [little.u32(6), b"simple\0\0".to_vec()].concat();
    file.extend(little.block(3, &simple));
    file.extend(big.section());
    file.extend(big.interface(113, 4, &[(14, &100i64.to_be_bytes())]));
    file.extend(big.packet(0, 1_000_000, 62, b"third"));
    file.extend(big.block(3, &[big.u32(9), b"cut!".to_vec()].concat()));
    let words = [0x0000_0007, 0, 2_000_000, 3, 63];
    let mut obsolete: Vec<u8> = words.into_iter().flat_map(|word| big.u32(word)).collect();
    obsolete.extend(b"old\0");
    file.extend(big.block(2, &obsolete));

    let seen = |time_ns, wire_len, link, bytes: &[u8]| Seen {
        time_ns,
        wire_len,
        link,
        bytes: bytes.to_vec(),
    };
    let expected = vec![
        seen(5, 60, 1, b"first"),
        seen(5_000_000, 61, 101, b"second."),
        seen(5_000_000, 6, 1, b"simple"),
        seen(101_000_000_000, 62, 113, b"third"),
        seen(101_000_000_000, 9, 113, b"cut!"),
        seen(102_000_000_000, 63, 113, b"old"),
    ];
    assert_eq!(read(&file).unwrap(), (expected, None));
}

/// A capture of 300 frames that is larger than every buffer in the reader.
fn sample() -> (Vec<u8>, Vec<Seen>) {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, SnapLength(262_144)).unwrap();
    let mut rng = sidon_kit::Rng::seeded(1);
    let mut expected = Vec::new();
    for i in 0..300u32 {
        let bytes: Vec<u8> = (0..rng.below(9_000)).map(|_| (rng.next_u64() & 0x1f) as u8).collect();
        let wire_len = bytes.len() as u32 + i % 3;
        let time_ns = 1_700_000_000_123_456_789 + u64::from(i);
        let link = LinkType::ETHERNET;
        let frame = sidon_traffic::Frame { time_ns, wire_len, link, bytes: &bytes };
        writer.write(&frame).unwrap();
        expected.push(Seen { time_ns, wire_len, link: 1, bytes });
    }
    (writer.finish().unwrap(), expected)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::fast();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new()
        .block_size(lz4_flex::frame::BlockSize::Max64KB)
        .content_checksum(true);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type Compress = fn(&[u8]) -> Vec<u8>;
const COMPRESSIONS: [(Compression, Compress); 4] = [
    (Compression::Plain, <[u8]>::to_vec),
    (Compression::Gzip, gzip),
    (Compression::Zstd, zstd),
    (Compression::Lz4, lz4),
];

#[test]
fn compressed_captures_read_as_plain_ones_in_one_part_or_two() {
    let (file, expected) = sample();
    assert!(file.len() > 1_000_000);
    for (compression, compress) in COMPRESSIONS {
        let (front, back) = file.split_at(file.len() / 2);
        let mut parts = compress(front);
        if compression == Compression::Zstd {
            parts.extend([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        }
        parts.extend(compress(back));
        for bytes in [compress(&file), parts] {
            assert_eq!(read(&bytes).unwrap(), (expected.clone(), None), "{compression:?}");
            let source = Source::from_reader(Cursor::new(bytes)).unwrap();
            assert_eq!((source.compression(), source.format()), (compression, Format::Pcap));
        }
    }
}

#[test]
fn what_is_cut_anywhere_gives_every_frame_before_the_cut() {
    let (file, expected) = sample();
    let mut ends = vec![24usize];
    for seen in &expected {
        ends.push(ends.last().unwrap() + 16 + seen.bytes.len());
    }
    for cut in (24..file.len()).step_by(9_973).chain([25, 39, 40, file.len() - 1]) {
        let (seen, broken) = read(&file[..cut]).unwrap();
        let whole = ends.partition_point(|end| *end <= cut) - 1;
        assert_eq!(seen[..], expected[..whole], "cut at {cut}");
        match broken {
            None => assert_eq!(cut, ends[whole]),
            Some(broken) => {
                assert_eq!(broken.offset, ends[whole] as u64);
                let Why::Cut { got, .. } = broken.why else { panic!("{broken}") };
                assert_eq!(got, (cut - ends[whole]) as u64);
            }
        }
    }
}

#[test]
fn a_compressed_capture_that_is_cut_or_damaged_says_so() {
    let (file, expected) = sample();
    for (compression, compress) in &COMPRESSIONS[1..] {
        let bytes = compress(&file);
        let (seen, broken) = read(&bytes[..bytes.len() / 2]).unwrap();
        assert!(!seen.is_empty() && seen.len() < expected.len(), "{compression:?}");
        assert_eq!(seen[..], expected[..seen.len()]);
        let broken = broken.unwrap_or_else(|| panic!("{compression:?} hides the cut"));
        assert!(matches!(broken.why, Why::Compressed { .. } | Why::Cut { .. }), "{broken}");
        // The checksum, the length or the mark at the end of the compressed data is missing.
        for lost in 1..=12 {
            let (_, broken) = read(&bytes[..bytes.len() - lost]).unwrap();
            assert!(broken.is_some(), "{compression:?} hides a cut of {lost} bytes");
        }

        let mut damaged = bytes.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x55;
        let (seen, broken) = read(&damaged).unwrap();
        assert!(broken.is_some() || seen != expected, "{compression:?}");
        assert!(broken.is_some(), "{compression:?} hides the damage");
    }
}

#[test]
fn what_is_no_capture_is_refused_by_its_first_bytes() {
    let refuse = |bytes: &[u8]| read(bytes).unwrap_err();
    assert!(matches!(refuse(b""), SourceError::Empty));
    assert!(matches!(refuse(&gzip(b"")), SourceError::Empty));
    let SourceError::NotACapture { magic } = refuse(b"#!/bin/sh") else { panic!() };
    assert_eq!(&magic, b"#!/b");
    for cut in 1..24 {
        let file = ORDERS[0].pcap(0xa1b2_c3d4, 1);
        assert!(matches!(refuse(&file[..cut]), SourceError::Header(_)), "{cut}");
    }
    let mut old = ORDERS[0].pcap(0xa1b2_c3d4, 1);
    old[4] = 3;
    let SourceError::Header(Broken { why: Why::Version { major: 3, minor: 4 }, .. }) = refuse(&old)
    else {
        panic!()
    };
    let missing = Source::open("/nonexistent/file.pcap").err().unwrap();
    assert!(missing.to_string().contains("/nonexistent/file.pcap"));
    assert!(matches!(Source::open("/").err(), Some(SourceError::Open { .. })));
}

#[test]
fn every_fault_of_a_block_has_its_own_reason() {
    let order = ORDERS[0];
    let start = [order.section(), order.interface(1, 0, &[])].concat();
    let why = |block: &[u8]| {
        let good = order.packet(0, 1, 4, b"good");
        let (seen, broken) = read(&[start.clone(), good.clone(), block.to_vec()].concat()).unwrap();
        assert_eq!(seen.len(), 1);
        let broken = broken.expect("a fault");
        assert_eq!(broken.offset, (start.len() + good.len()) as u64);
        broken.why
    };
    let packet = order.packet(0, 1, 4, b"four");
    let changed = |at: usize, word: u32| {
        let mut packet = packet.clone();
        packet[at..at + 4].copy_from_slice(&order.u32(word));
        packet
    };
    let length = packet.len() as u32;
    assert_eq!(why(&changed(4, 8)), Why::BlockLength { length: 8 });
    assert_eq!(why(&changed(4, 35)), Why::BlockLength { length: 35 });
    assert_eq!(why(&changed(4, 16)), Why::BlockLength { length: 16 });
    assert_eq!(why(&changed(4, 1 << 20)), Why::TooLong { length: 1 << 20, most: 512 << 10 });
    assert_eq!(why(&changed(8, 9)), Why::Interface { number: 9, known: 1 });
    assert_eq!(why(&changed(20, 99)), Why::PacketLength { length: 99, room: 4 });
    let second = packet.len() - 4;
    assert_eq!(why(&changed(second, 4)), Why::BlockLengths { first: length, second: 4 });
    assert_eq!(why(&packet[..20]), Why::Cut { expected: length.into(), got: 20 });
    assert_eq!(why(&packet[..6]), Why::Cut { expected: 12, got: 6 });
    let mut section = order.section();
    section[8] = 0;
    assert_eq!(why(&section), Why::ByteOrder { magic: [0, 0x3c, 0x2b, 0x1a] });
    let mut section = order.section();
    section[12] = 2;
    assert_eq!(why(&section), Why::Version { major: 2, minor: 0 });
    // A block of an unknown type may have any length, if the file holds all of it.
    assert!(
        read(&[start.clone(), order.block(77, &vec![0; 2 << 20])].concat()).unwrap().1.is_none()
    );
    let huge = [order.u32(77), order.u32(0xffff_fff0)].concat();
    assert_eq!(why(&huge), Why::Cut { expected: 0xffff_fff0, got: 8 });
    let record = [order.u32(1), order.u32(1), order.u32(262_145), order.u32(1)].concat();
    let (_, broken) = read(&[order.pcap(0xa1b2_c3d4, 1), record].concat()).unwrap();
    assert_eq!(broken.unwrap().why, Why::TooLong { length: 262_145, most: 262_144 });
}

#[test]
fn mutated_captures_never_panic_and_never_give_more_bytes_than_they_have() {
    let order = ORDERS[0];
    let mut pcapng = [order.section(), order.interface(1, 0, &[(9, &[6])])].concat();
    let mut pcap = order.pcap(0xa1b2_c3d4, 1);
    for i in 0..20u32 {
        let bytes = vec![i as u8; 30];
        pcapng.extend(order.packet(0, i.into(), 60, &bytes));
        for word in [i, i, bytes.len() as u32, 60] {
            pcap.extend(order.u32(word));
        }
        pcap.extend(&bytes);
    }
    let originals = [pcap.clone(), pcapng.clone(), gzip(&pcap), zstd(&pcapng), lz4(&pcap)];
    let mut rng = sidon_kit::Rng::seeded(2);
    let (mut opened, mut broke) = (0, 0);
    for i in 0..15_000 {
        let mut bytes = originals[i % originals.len()].clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        if rng.chance(0.3) {
            bytes.truncate(rng.below(bytes.len() as u64) as usize);
        }
        if let Ok((_, broken)) = read(&bytes) {
            opened += 1;
            broke += u32::from(broken.is_some());
        }
    }
    assert!(opened > 5_000 && broke > 1_000, "{opened} opened, {broke} broke off");
}
