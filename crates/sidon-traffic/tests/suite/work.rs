//! Work counted in steps: no datagram and no capture costs more than a constant per byte, and no frame
//! more than a constant.

use crate::{
    datagrams::{self, WEB, data, halves, ipfix, set, template, v5, v9},
    decode::{ethernet, ip4, ip6},
};
use sidon_kit::Rng;
use sidon_traffic::{
    Decoder, Filter, LinkType, Source, Tunnels,
    export::{Collector, Limits, Templates},
    source::Frame,
    work::{Work, steps},
};
use std::{
    io::{self, Read},
    net::SocketAddr,
};

/// Bytes of the longest UDP payload, less what a message adds.
const LONG: usize = 65_000;

fn from(number: u32) -> SocketAddr {
    (number.to_be_bytes(), 2_055).into()
}

/// As many copies of `part` as fit in a set.
fn filled(id: u16, part: &[u8]) -> Vec<u8> {
    set(id, &part.repeat(LONG / part.len()))
}

/// A template set of one template with these fields: element and length.
fn layout(id: u16, fields: &[[u16; 2]]) -> Vec<u8> {
    set(2, &halves(&[&[id, fields.len() as u16], fields.as_flattened()].concat()))
}

/// Template sets of one field each, for the template numbers in this range.
fn templates(ids: std::ops::Range<u16>) -> Vec<u8> {
    set(2, &halves(&ids.flat_map(|id| [id, 1, 4, 1]).collect::<Vec<_>>()))
}

/// A name, and datagrams with their senders.
type Kind = (&'static str, Vec<(SocketAddr, Vec<u8>)>);

/// Hostile datagrams.
fn kinds() -> Vec<Kind> {
    let one = |all: Vec<Vec<u8>>| all.into_iter().map(|bytes| (from(1), bytes)).collect::<Vec<_>>();
    let short = |n: u16| halves(&[256 + n, 4]);
    let mut kinds = Vec::new();

    // One template per datagram while 8,000 sets of other templates wait.
    let mut all: Vec<_> = (0..8_000).map(|n| ipfix(0, 0, &[set(256 + n, &[1, 2, 3, 4])])).collect();
    all.extend((0..8_000).map(|n| ipfix(0, 0, &[templates(30_000 + n..30_001 + n)])));
    kinds.push(("templates while sets wait", one(all)));

    let mut all: Vec<_> =
        (0..60_000).map(|n| ipfix(0, 0, &[set(256 + n, &[1, 2, 3, 4])])).collect();
    all.extend((0..60_000).step_by(5_000).map(|n| ipfix(0, 0, &[templates(256 + n..5_256 + n)])));
    kinds.push(("60,000 sets, then their templates", one(all)));

    let all = (0..3).flat_map(|_| (0..65_000).step_by(250));
    let all = all.map(|n: u16| ipfix(0, 0, &[templates(256 + n..506 + n)])).collect();
    kinds.push(("65,000 templates, again and again", one(all)));

    // Sets of eight bytes, each of a template that left the memory of the exporter.
    let wide = [[1, 1]; 256];
    let mut all: Vec<_> = (0..200).map(|n| ipfix(0, 0, &[layout(256 + n, &wide)])).collect();
    let mut sets = Vec::new();
    (0..LONG / 8).for_each(|n| sets.push(set(256 + (n % 200) as u16, &[0; 4])));
    all.extend((0..20).map(|_| ipfix(0, 0, &sets)));
    kinds.push(("sets of 200 wide templates in turn", one(all)));

    let all = (0..50_000u32).map(|n| (from(n), ipfix(0, n, &[template(10, 256)])));
    kinds.push(("exporters in turn", all.collect()));
    let all = (0..50_000u32)
        .map(|n| (from(n % 4_000), v9(0, n % 4_000, &[template(9, 256), data(256, &[WEB])])));
    kinds.push(("4,000 exporters that send records", all.collect()));

    // Exporters that come back, each with its templates of 256 fields.
    let mut all = Vec::new();
    for n in 0..100 {
        let sets: Vec<_> = (0..60).map(|id| layout(256 + id, &wide)).collect();
        all.push((from(n), ipfix(0, n, &sets)));
    }
    all.extend((0..5_000).map(|n| (from(n % 100), ipfix(0, n % 100, &[]))));
    kinds.push(("exporters with templates in turn", all));

    let tiny = layout(256, &[[4, 1]]);
    let all = vec![ipfix(0, 0, &[tiny.clone(), filled(256, &[6])]); 20];
    kinds.push(("records of one byte", one(all)));
    let sampler = layout(256, &[[48, 1]]);
    let mut all = vec![ipfix(0, 0, &[set(3, &halves(&[300, 2, 1, 48, 1, 34, 1]))])];
    all.push(ipfix(0, 0, &[set(300, &(0..40u8).flat_map(|n| [n, 7]).collect::<Vec<_>>())]));
    all.extend(vec![ipfix(0, 0, &[sampler, filled(256, &[39])]); 20]);
    kinds.push(("records of one byte, each of another sampler", one(all)));
    let all = vec![ipfix(0, 0, &[set(3, &halves(&[300, 1, 1, 34, 1])), filled(300, &[9])]); 20];
    kinds.push(("options of one byte", one(all)));
    let body: Vec<u8> =
        (0..4_000u16).flat_map(|n| halves(&[256 + n, 2, 1, 149, 4, 34, 4])).collect();
    kinds.push(("templates of options", one(vec![ipfix(0, 0, &[set(3, &body)]); 20])));

    let many = [[82, 65_535]; 256];
    let all = vec![ipfix(0, 0, &[layout(256, &many), filled(256, &[0])]); 20];
    kinds.push(("fields of variable length that are empty", one(all)));
    // Each set ends within its first record, after 255 fields.
    let mut cut = vec![0; 255];
    cut.push(255);
    let sets = [layout(256, &many)].into_iter().chain(vec![set(256, &cut); 200]);
    kinds.push((
        "records that their sets cut off",
        one(vec![ipfix(0, 0, &sets.collect::<Vec<_>>()); 20]),
    ));

    let nothing = layout(256, &[[4, 0], [8, 0]]);
    let all = vec![ipfix(0, 0, &[nothing, filled(256, &[1])]); 20];
    kinds.push(("records of no bytes", one(all)));
    let all = vec![ipfix(0, 0, &[set(2, &halves(&[256, 0].repeat(LONG / 4)))]); 20];
    kinds.push(("templates without fields", one(all)));
    let all = vec![ipfix(0, 0, &[set(2, &halves(&[300, 256])).repeat(5_000)]); 20];
    kinds.push(("templates that are cut", one(all)));
    kinds.push(("empty sets", one(vec![ipfix(0, 0, &[short(0).repeat(LONG / 4)]); 20])));
    kinds.push(("messages in a datagram", one(vec![ipfix(0, 0, &[]).repeat(4_000); 20])));
    kinds.push(("NetFlow 5", one(vec![v5(0, 0, &[WEB; 30]).repeat(40); 20])));
    kinds.push(("NetFlow 5 without records", one(vec![v5(0, 0, &[]).repeat(2_000); 20])));
    let records = v9(0, 0, &[template(9, 256), data(256, &[WEB; 1_000])]);
    let unknown = v9(0, 0, &[filled(999, &[1])]);
    kinds.push((
        "NetFlow 9",
        one((0..40).flat_map(|_| [records.clone(), unknown.clone()]).collect()),
    ));

    let mut rng = Rng::seeded(3);
    let good = datagrams::all();
    let mangled = (0..20_000).map(|_| {
        let mut bytes = good[rng.below(good.len() as u64) as usize].clone();
        for _ in 0..rng.below(6) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        (from(rng.below(60) as u32), bytes)
    });
    kinds.push(("damaged datagrams", mangled.collect()));
    kinds
}

#[test]
fn no_datagram_costs_more_than_a_constant_per_byte() {
    let mut tight = 0.0f64;
    for (name, all) in kinds() {
        let mut collector = Collector::new(Limits::default(), Templates::default());
        for (number, (from, bytes)) in all.iter().enumerate() {
            collector.datagram(*from, bytes, number as u64 * 1_000_000, |_| {});
            let Work { what, done, most } = collector.work();
            assert!(done <= most, "{name}, datagram {number}: {what}: {done} of {most}");
        }
        let Work { done, most, .. } = collector.work();
        assert!(done > 0, "{name}");
        tight = tight.max(done as f64 / most as f64);
    }
    // A limit that no input comes near would say little.
    assert!(tight > 0.9, "{tight}");
}

#[test]
fn a_datagram_with_more_templates_than_stay_in_memory_brings_all_sets_that_wait() {
    let mut late = Collector::new(Limits::default(), Templates::default());
    for n in 0..500 {
        late.datagram(from(1), &ipfix(0, 0, &[set(256 + n, &[6, 0, 0, 0])]), 1, |_| {});
    }
    late.datagram(from(1), &ipfix(0, 0, &[templates(256..756)]), 2, |_| {});
    let counts = late.exporters()[0].counts();
    assert_eq!((counts.replayed, counts.given_up, counts.records), (500, 0, 2_000));
}

/// Delivers at most `step` bytes per read.
struct Slow {
    bytes: io::Cursor<Vec<u8>>,
    step: usize,
}

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let step = self.step.min(buffer.len());
        self.bytes.read(&mut buffer[..step])
    }
}

/// Captures whose records are short or long, or without packets, by name.
fn captures() -> Vec<(&'static str, Vec<u8>)> {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let block = |kind: u32, body: &[u8]| {
        let length = words(&[12 + body.len() as u32]);
        [&words(&[kind])[..], &length, body, &length].concat()
    };
    let section = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    let interface = block(1, &words(&[1, 262_144]));
    let packet = |length: usize| {
        let length = length as u32;
        block(6, &[words(&[0, 0, 0, length, length]), vec![0; length as usize]].concat())
    };
    // One option of no bytes after another.
    let options = block(1, &[words(&[1, 262_144]), words(&[2]).repeat(100_000)].concat());
    let start = [&section[..], &interface].concat();
    let pcap = words(&[0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 262_144, 1]);
    let record = |length: u32| [words(&[0, 0, length, length]), vec![0; length as usize]].concat();
    let after = |start: &[u8], part: &[u8]| [start, &part.repeat(3_000_000 / part.len())].concat();
    vec![
        ("pcap, no bytes", after(&pcap, &record(0))),
        ("pcap, 1 byte", after(&pcap, &record(1))),
        ("pcap, 256 KiB", after(&pcap, &record(262_144))),
        ("pcapng, no bytes", after(&start, &packet(0))),
        ("pcapng, 256 KiB", after(&start, &packet(262_144))),
        ("sections", after(&start, &section)),
        ("sections with interfaces", after(&start, &start)),
        ("interfaces", [start.clone(), interface.repeat(60_000)].concat()),
        ("interfaces with options", after(&start, &options)),
        ("names", after(&start, &block(4, &[0; 4]))),
        ("long names", after(&start, &block(4, &[0; 700_000]))),
    ]
}

#[test]
fn no_capture_moves_more_than_two_bytes_per_byte() {
    let mut tight = 0.0f64;
    for (name, bytes) in captures() {
        for step in [1, 7, 16, 100_000] {
            let slow = Slow { bytes: io::Cursor::new(bytes.clone()), step };
            let mut source = Source::from_reader(slow).unwrap();
            while source.next().unwrap_or_else(|why| panic!("{name}: {why}")).is_some() {}
            assert_eq!(source.taken(), bytes.len() as u64, "{name} is read whole");
            let Work { what, done, most } = source.work();
            assert!(done <= most, "{name} in steps of {step}: {what}: {done} of {most}");
            tight = tight.max(done as f64 / most as f64);
        }
    }
    assert!(tight > 0.45, "{tight}");
}

/// Frames that chain more headers than the decoder reads: name, link, headers that it reads, bytes.
fn chains() -> Vec<(&'static str, LinkType, u64, Vec<u8>)> {
    let udp = [1, 2, 3, 4, 0, 8, 0, 0];
    let tag = [0, 1, 0x81, 0];
    // Extension headers of eight bytes, the last of which announces `next`.
    let options = |count: usize, next: u8| {
        let mut all = [60, 0, 0, 0, 0, 0, 0, 0].repeat(count);
        all[8 * count - 8] = next;
        all
    };
    let words = |words: &[u32]| words.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<_>>();
    let mut all = vec![
        ("tags", LinkType::ETHERNET, 16, ethernet(0x8100, &tag.repeat(60_000))),
        ("labels", LinkType::ETHERNET, 16, ethernet(0x8847, &[0, 0, 0, 9].repeat(60_000))),
        ("radiotap", LinkType::RADIOTAP, 16, words(&[u32::MAX; 60_000])),
        ("extensions", LinkType::IPV6, 1 + 32, ip6(60, &options(8_000, 17))),
        (
            "authentication",
            LinkType::IPV6,
            1 + 32,
            ip6(51, &[51, 0, 0, 0, 0, 0, 0, 0].repeat(8_000)),
        ),
    ];
    // Tunnels in each other, each with as many headers as the decoder accepts.
    let [mut in_v4, mut in_v6, mut in_gre] = [(); 3].map(|()| udp.to_vec());
    let (mut next_v4, mut next_v6, mut next_gre) = (17, 17, 17);
    for _ in 0..120 {
        in_v4 = ip4(next_v4, &[], &in_v4);
        in_v6 = ip6(60, &[options(31, next_v6), in_v6].concat());
        let inner = ip6(60, &[options(31, next_gre), in_gre].concat());
        let mut tags = tag.repeat(15);
        tags[58..].copy_from_slice(&[0x86, 0xdd]);
        in_gre = [&[0, 0, 0x65, 0x58][..], &ethernet(0x8100, &tags), &inner].concat();
        (next_v4, next_v6, next_gre) = (4, 41, 47);
    }
    all.push(("IPv4 in IPv4", LinkType::IPV4, 1 + 8, in_v4));
    all.push(("IPv6 with extensions in IPv6", LinkType::IPV6, 1 + 9 * 32 + 8, in_v6));
    // The outer packet starts after the header of its GRE.
    all.push((
        "tags and extensions in GRE",
        LinkType::ETHERNET,
        9 * (16 + 32) + 8,
        in_gre.split_off(4),
    ));
    all
}

#[test]
fn no_frame_has_more_than_a_constant_number_of_headers_read() {
    // Words of radiotap, then tags and extension headers before each of 9 IP headers, and 8 tunnels.
    const MOST: u64 = 16 + 9 * (16 + 32) + 8;
    let decoder = Decoder { tunnels: Tunnels::Inner };
    let mut rng = Rng::seeded(5);
    for (name, link, expected, bytes) in chains() {
        let check = |bytes: &[u8]| {
            let before = steps();
            let _ =
                decoder.decode(&Frame { time_ns: 0, wire_len: bytes.len() as u32, link, bytes });
            let done = steps() - before;
            assert!(done <= MOST, "{name}: {done} headers");
            // A tag has four bytes. A header that is cut off counts, and so does the search for one
            // after the last.
            assert!(4 * done <= bytes.len() as u64 + 12, "{name}: {done} in {} bytes", bytes.len());
            done
        };
        assert_eq!(check(&bytes), expected, "{name}");
        for _ in 0..2_000 {
            let length = rng.below(bytes.len().min(4_000) as u64 + 1) as usize;
            let mut damaged = bytes[..length].to_vec();
            for _ in 0..rng.below(4).min(length as u64) {
                damaged[rng.below(length as u64) as usize] = rng.next_u64() as u8;
            }
            check(&damaged);
        }
    }
}

#[test]
fn no_filter_takes_more_than_a_constant_number_of_steps_per_word() {
    // A start, a part that is repeated, and the end. The number of words and signs is that of spaces.
    let long = [
        [" tcp", " or sctp", ""],
        [" host ( 9.0.0.1", " or 9.0.0.2", " )"],
        [" host 9.0.0.1", " or not 9.0.0.2", ""],
        [" ip6 net 2001:db8:: / 32", " or 2001:db8:1:: / 48", ""],
        [" port 80", " or 443", ""],
        [" portrange 1 - 2", " or portrange 3 - 4", ""],
        [" vlan", " or vlan", ""],
        [" vlan 7", " && not ip", ""],
        [" ( 1 > 2 )", " or ( 1 > 2 )", ""],
        [" len < 1", " or tcp [ 12 ] < 1", ""],
        [" len < 1", " or ip [ ip [ ip [ 0 ] ] ] < 1", ""],
        [" 1", " + ip [ 1 ]", " = 7"],
        [" not 0", " | 0", " = 0"],
    ];
    let tags = chains().swap_remove(0).3;
    let udp = [1, 2, 3, 4, 0, 8, 0, 0];
    let tagged = ethernet(0x8100, &[&[0, 9, 8, 0][..], &ip4(17, &[], &udp)].concat());
    // A radiotap header with 16 words of fields, and an 802.11 header.
    let mut radiotap = [&[0, 0, 72, 0][..], &[0xff; 64], &[0; 4], &[8, 1], &[0; 22]].concat();
    radiotap.extend([0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
    radiotap.extend(ip4(17, &[], &udp));
    let frames = [
        ("tags", LinkType::ETHERNET, &tags, 6),
        ("tagged", LinkType::ETHERNET, &tagged, 6),
        ("raw", LinkType::RAW, &ip4(17, &[], &udp), 3),
        ("radiotap", LinkType::RADIOTAP, &radiotap, 27),
    ];
    for (name, link, bytes, per_word) in frames {
        let mut tight = 0.0f64;
        for [start, part, end] in long {
            let spaces = |text: &str| text.matches(' ').count();
            let times = (4_000 - spaces(start) - spaces(end)) / spaces(part);
            let text = [start, &part.repeat(times), end].concat();
            let filter: Filter = text.parse().unwrap_or_else(|why| panic!("{part}: {why}"));
            let before = steps();
            let frame = Frame { time_ns: 0, wire_len: bytes.len() as u32, link, bytes };
            let _ = filter.verdict(&frame);
            let (done, words) = (steps() - before, spaces(&text) as u64);
            let most = per_word * words + bytes.len() as u64 / 4;
            assert!(done <= most, "{name}, {part}: {done} of {most}");
            tight = tight.max(done as f64 / (per_word * words) as f64);
        }
        assert!(tight > 0.9, "{name}: {tight}");
    }
}
