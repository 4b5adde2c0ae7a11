//! Frames of every link type, built here byte by byte, and invalid frames.

use sidon_traffic::{
    Decoder, LinkType, Packet, Transport, Tunnels, Undecoded,
    packet::{Fragment, Layer, Malformed, TcpFlags},
    source::Frame,
};

const PROTOCOL: usize = 9;

/// An IPv4 packet of TCP from 10.0.0.1:258 to 10.0.0.2:772 with SYN and 5 bytes of data.
fn v4() -> Vec<u8> {
    let tcp = [
        1, 2, 3, 4, 0, 0, 0, 9, 0, 0, 0, 7, 0x50, 0x02, 0, 0, 0, 0, 0, 0, b'h', b'e', b'l', b'l',
        b'o',
    ];
    ip4(6, &[], &tcp)
}

pub(crate) fn ip4(protocol: u8, options: &[u8], carried: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let total = ((header + carried.len()) as u16).to_be_bytes();
    let mut packet =
        vec![0x40 | (header / 4) as u8, 0, total[0], total[1], 0, 1, 0, 0, 61, protocol];
    packet.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(options);
    packet.extend(carried);
    packet
}

/// An IPv6 packet of UDP from fd00::1:258 to fd00::2:772 with 2 bytes of data, after these
/// extension headers.
fn v6(first: u8, extensions: &[u8]) -> Vec<u8> {
    let udp = [1, 2, 3, 4, 0, 10, 0, 0, b'h', b'i'];
    ip6(if extensions.is_empty() { 17 } else { first }, &[extensions, &udp].concat())
}

pub(crate) fn ip6(next: u8, carried: &[u8]) -> Vec<u8> {
    let length = (carried.len() as u16).to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, length[0], length[1], next, 61];
    for last in [1, 2] {
        packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(carried);
    packet
}

pub(crate) fn ethernet(kind: u16, carried: &[u8]) -> Vec<u8> {
    [&[2; 12], &kind.to_be_bytes()[..], carried].concat()
}

fn decode_as(tunnels: Tunnels, link: LinkType, bytes: &[u8]) -> Result<Packet, Undecoded> {
    let frame = Frame { time_ns: 5, wire_len: bytes.len() as u32, link, bytes };
    Decoder { tunnels }.decode(&frame)
}

fn decode(link: LinkType, bytes: &[u8]) -> Result<Packet, Undecoded> {
    decode_as(Tunnels::Outer, link, bytes)
}

const TCP_FLOW: &str = "10.0.0.1:258 -> 10.0.0.2:772 tcp";
const UDP_FLOW: &str = "[fd00::1]:258 -> [fd00::2]:772 udp";

fn check_v4(packet: Packet) {
    assert_eq!(packet.flow.to_string(), TCP_FLOW);
    assert_eq!((packet.ttl, packet.payload_len, packet.time_ns), (61, 5, 5));
    assert_eq!(packet.fragment, Fragment::Whole);
    let Transport::Tcp(tcp) = packet.transport else { panic!("{packet:?}") };
    assert_eq!((tcp.sequence, tcp.acknowledgement, tcp.flags), (9, 7, TcpFlags::SYN));
}

fn check_v6(packet: Packet) {
    assert_eq!(packet.flow.to_string(), UDP_FLOW);
    assert_eq!((packet.ttl, packet.payload_len), (61, 2));
    assert_eq!(packet.transport, Transport::Ports);
}

#[test]
fn every_link_type_leads_to_the_same_packet() {
    let prefix = |bytes: &[u8], packet: &[u8]| [bytes, packet].concat();
    let sll = |kind: [u8; 2]| [&[0; 14][..], &kind].concat();
    let sll2 = |kind: [u8; 2]| [&kind[..], &[0; 18]].concat();
    let snap = |kind: [u8; 2]| [&[0xaa, 0xaa, 3, 0, 0, 0][..], &kind].concat();
    let (ip, ip6) = ([0x08, 0x00], [0x86, 0xdd]);
    // Data to the distribution system; the same with QoS and padding after a radiotap header
    // with time stamp and flags.
    let wireless = |kind| [&[0x08, 0x01][..], &[0; 22], &snap(kind)].concat();
    let radiotap = |kind| {
        let mut header = vec![0, 0, 17, 0, 3, 0, 0, 0];
        header.extend([0; 8]);
        header.push(0x20);
        header.extend([0x88, 0x01]);
        header.extend([0; 26]);
        [header, snap(kind)].concat()
    };
    for (link, before4, before6) in [
        (LinkType::ETHERNET, ethernet(0x0800, &[]), ethernet(0x86dd, &[])),
        (LinkType::ETHERNET, ethernet(200, &snap(ip)), ethernet(200, &snap(ip6))),
        (LinkType::RAW, vec![], vec![]),
        (LinkType::RAW_12, vec![], vec![]),
        (LinkType::RAW_14, vec![], vec![]),
        (LinkType::NULL, vec![2, 0, 0, 0], vec![30, 0, 0, 0]),
        (LinkType::NULL, vec![0, 0, 0, 2], vec![0, 0, 0, 24]),
        (LinkType::LOOP, vec![0, 0, 0, 2], vec![0, 0, 0, 28]),
        (LinkType::PPP, vec![0xff, 3, 0, 0x21], vec![0xff, 3, 0, 0x57]),
        (LinkType::PPP, vec![0, 0x21], vec![0x57]),
        (LinkType::PPP_HDLC, vec![0xff, 3, 0, 0x21], vec![0x0f, 0, 0x86, 0xdd]),
        (LinkType::PPPOE, vec![0x11, 0, 0, 1, 0, 9, 0, 0x21], vec![0x11, 0, 0, 1, 0, 9, 0, 0x57]),
        (LinkType::LINUX_SLL, sll(ip), sll(ip6)),
        (LinkType::LINUX_SLL2, sll2(ip), sll2(ip6)),
        (LinkType::IEEE802_11, wireless(ip), wireless(ip6)),
        (LinkType::RADIOTAP, radiotap(ip), radiotap(ip6)),
    ] {
        let (frame4, frame6) = (prefix(&before4, &v4()), prefix(&before6, &v6(0, &[])));
        check_v4(decode(link, &frame4).unwrap_or_else(|why| panic!("{link}: {why}")));
        check_v6(decode(link, &frame6).unwrap_or_else(|why| panic!("{link}: {why}")));
        // A frame cut anywhere before the ports is truncated, in the link header or after it.
        for cut in 0..before4.len() + 24 {
            let bytes = &frame4[..cut];
            let frame = Frame { time_ns: 0, wire_len: 100, link, bytes };
            let why = Decoder::default().decode(&frame).unwrap_err();
            assert!(matches!(why, Undecoded::Truncated(_)), "{link} cut at {cut}: {why}");
        }
    }
    check_v4(decode(LinkType::IPV4, &v4()).unwrap());
    check_v6(decode(LinkType::IPV6, &v6(0, &[])).unwrap());
    let unknown = LinkType(147);
    assert_eq!(decode(unknown, &v4()), Err(Undecoded::Link(unknown)));
}

#[test]
fn tags_labels_and_sessions_are_looked_behind() {
    let tag = |id: u16, kind: u16, rest: &[u8]| {
        [&(0xe000 | id).to_be_bytes()[..], &kind.to_be_bytes(), rest].concat()
    };
    let one = ethernet(0x8100, &tag(7, 0x0800, &v4()));
    let packet = decode(LinkType::ETHERNET, &one).unwrap();
    check_v4(packet);
    assert_eq!((packet.vlans.tags(), packet.vlans.ids()), (1, &[7][..]));
    let three = ethernet(0x88a8, &tag(1, 0x9100, &tag(0, 0x8100, &tag(3, 0x0800, &v4()))));
    let packet = decode(LinkType::ETHERNET, &three).unwrap();
    assert_eq!((packet.vlans.tags(), packet.vlans.ids()), (3, &[1, 0][..]));
    let labels = ethernet(0x8847, &[&[0, 1, 0, 9, 0, 2, 1, 9][..], &v4()].concat());
    check_v4(decode(LinkType::ETHERNET, &labels).unwrap());
    let session = ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 9, 0, 0x57][..], &v6(0, &[])].concat());
    check_v6(decode(LinkType::ETHERNET, &session).unwrap());
    let endless = ethernet(0x8100, &[0x81, 0].repeat(200));
    assert_eq!(decode(LinkType::ETHERNET, &endless), Err(Undecoded::Malformed(Malformed::Depth)));
    let arp = ethernet(0x0806, &[0; 28]);
    assert_eq!(decode(LinkType::ETHERNET, &arp), Err(Undecoded::Network(0x0806)));
    assert_eq!(decode(LinkType::ETHERNET, &arp).unwrap_err().name(), "arp");
}

#[test]
fn options_extensions_and_fragments() {
    check_v4(decode(LinkType::RAW, &ip4(6, &[1; 12], &v4()[20..])).unwrap());
    // Hop-by-hop, destination options of 16 bytes, authentication of 12, a whole "fragment".
    let extensions = [
        &[60, 0, 0, 0, 0, 0, 0, 0][..],
        &[51, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[17, 0, 0, 0, 0, 0, 0, 1],
    ];
    check_v6(decode(LinkType::RAW, &v6(0, &extensions.concat())).unwrap());
    let looped = ip6(0, &[0; 800]);
    assert_eq!(decode(LinkType::RAW, &looped), Err(Undecoded::Malformed(Malformed::Depth)));

    let mut first = v4();
    first[6] = 0x20;
    let packet = decode(LinkType::RAW, &first).unwrap();
    assert_eq!((packet.fragment, packet.flow.to_string().as_str()), (Fragment::First, TCP_FLOW));
    let mut later = v4();
    later[7] = 1;
    let packet = decode(LinkType::RAW, &later).unwrap();
    assert_eq!((packet.fragment, packet.transport), (Fragment::Later, Transport::Other));
    assert_eq!(packet.flow.to_string(), "10.0.0.1:0 -> 10.0.0.2:0 tcp");
    assert_eq!(packet.payload_len, 25);
    let later = decode(LinkType::RAW, &v6(44, &[17, 0, 0, 9, 0, 0, 0, 1])).unwrap();
    assert_eq!(later.fragment, Fragment::Later);
    assert_eq!(later.flow.to_string(), "[fd00::1]:0 -> [fd00::2]:0 udp");
}

#[test]
fn each_fault_has_its_own_reason() {
    let with = |at: usize, byte: u8| {
        let mut packet = v4();
        packet[at] = byte;
        decode(LinkType::IPV4, &packet)
    };
    let malformed = |why| Err(Undecoded::Malformed(why));
    assert_eq!(with(0, 0x65), malformed(Malformed::Version));
    assert_eq!(with(0, 0x44), malformed(Malformed::HeaderLength));
    assert_eq!(with(3, 19), malformed(Malformed::TotalLength));
    // The packet ends by its own length, and the frame is longer: padding is not a header.
    assert_eq!(with(3, 23), malformed(Malformed::Short(Layer::Transport)));
    assert_eq!(with(3, 30).unwrap().transport, Transport::Cut);
    // A length that the sender left to its hardware.
    let packet = with(3, 0).unwrap();
    check_v4(packet);
    assert_eq!(with(PROTOCOL, 200).unwrap().flow.to_string(), "10.0.0.1 -> 10.0.0.2 proto 200");
    let ping = decode(LinkType::RAW, &ip4(1, &[], &[8, 3, 0, 0, 0, 0, 0, 0])).unwrap();
    assert_eq!(ping.transport, Transport::Icmp { kind: 8, code: 3 });
    assert_eq!(ping.flow.to_string(), "10.0.0.1 -> 10.0.0.2 icmp");
    assert_eq!(decode(LinkType::ETHERNET, &[0; 13]), malformed(Malformed::Short(Layer::Link)));
    assert_eq!(decode(LinkType::RAW, &v4()[..19]), malformed(Malformed::Short(Layer::Network)));
    let (link, bytes) = (LinkType::RAW, &v4()[..32]);
    let cut = Decoder::default().decode(&Frame { time_ns: 0, wire_len: 45, link, bytes }).unwrap();
    assert_eq!((cut.transport, cut.flow.to_string().as_str()), (Transport::Cut, TCP_FLOW));
    assert_eq!((cut.captured, cut.wire_len, cut.payload_len), (32, 45, 5));
}

#[test]
fn tunnels_are_the_outer_flow_or_the_inner_as_asked() {
    let udp = |port: u16, carried: &[u8]| {
        let [high, low] = port.to_be_bytes();
        ip4(17, &[], &[&[9, 9, high, low, 0, 0, 0, 0][..], carried].concat())
    };
    let inner = ethernet(0x0800, &v4());
    let gre = |flags: [u8; 2], kind: [u8; 2], words: usize, rest: &[u8]| {
        ip4(47, &[], &[&flags[..], &kind, &vec![0; 4 * words], rest].concat())
    };
    for (what, outer, depth) in [
        ("ip in ip", ip4(4, &[], &v4()), 1),
        ("ip in ip6", ip6(4, &v4()), 1),
        ("ip in ip in ip", ip4(4, &[], &ip4(4, &[], &v4())), 2),
        ("gre", gre([0, 0], [8, 0], 0, &v4()), 1),
        ("gre, checksum, key, sequence", gre([0xb0, 0], [8, 0], 3, &v4()), 1),
        ("gre, ethernet", gre([0x20, 0], [0x65, 0x58], 1, &inner), 1),
        ("pptp", gre([0x30, 0x81], [0x88, 0x0b], 3, &[&[0xff, 3, 0, 0x21][..], &v4()].concat()), 1),
        ("vxlan", udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &inner].concat()), 1),
        (
            "geneve",
            udp(6081, &[&[1, 0, 0x65, 0x58, 0, 0, 1, 0, 0, 0, 0, 0][..], &inner].concat()),
            1,
        ),
    ] {
        let found = decode_as(Tunnels::Inner, LinkType::RAW, &outer).unwrap();
        assert_eq!(found.tunnels, depth, "{what}");
        assert_eq!(found.wire_len as usize, outer.len());
        assert_eq!(found.captured as usize, outer.len());
        check_v4(found);
        let found = decode(LinkType::RAW, &outer).unwrap();
        assert_eq!(found.tunnels, 0, "{what}");
        assert_ne!(found.flow.to_string(), TCP_FLOW, "{what}");
    }
    check_v6(decode_as(Tunnels::Inner, LinkType::RAW, &ip4(41, &[], &v6(0, &[]))).unwrap());
    // An inner packet that cannot be decoded leaves the outer packet as the result.
    for outer in [gre([0, 0], [0, 0], 0, &[]), ip4(4, &[], &[0x45, 0]), udp(4789, &[0; 40])] {
        let plain = decode(LinkType::RAW, &outer);
        assert_eq!(decode_as(Tunnels::Inner, LinkType::RAW, &outer), plain);
        assert!(plain.is_ok());
    }
}

#[test]
fn random_and_mutated_frames_have_an_outcome_and_never_a_panic() {
    let links: Vec<_> = (0..=300).map(LinkType).filter(|link| link.is_supported()).collect();
    assert_eq!(links.len(), 15);
    let udp =
        |carried: &[u8]| ip4(17, &[], &[&[9, 9, 0x12, 0xb5, 0, 0, 0, 0][..], carried].concat());
    let originals = [
        ethernet(0x0800, &v4()),
        ethernet(0x8100, &[&[0, 7, 0x86, 0xdd][..], &v6(0, &[60, 0, 0, 0, 0, 0, 0, 0])].concat()),
        ethernet(0x0800, &ip4(47, &[], &[&[0, 0, 8, 0][..], &v4()].concat())),
        ethernet(0x0800, &udp(&[&[8, 0, 0, 0, 0, 0, 1, 0][..], &ethernet(0x0800, &v4())].concat())),
        ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 9, 0, 0x57][..], &v6(0, &[])].concat()),
        ethernet(0x8847, &[&[0, 1, 1, 9][..], &v4()].concat()),
    ];
    let mut rng = sidon_kit::Rng::seeded(1);
    let (mut decoded, mut undecoded, mut inside) = (0u32, 0u32, 0u32);
    let mut bytes = Vec::new();
    for i in 0..1_000_000usize {
        bytes.clear();
        if i % 2 == 0 {
            for _ in 0..rng.below(12) {
                bytes.extend(rng.next_u64().to_le_bytes());
            }
        } else {
            bytes.extend(&originals[i / 2 % originals.len()]);
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
        }
        bytes.truncate(rng.below(bytes.len() as u64 * 2 + 1) as usize);
        let link = if i % 2 == 1 && rng.chance(0.7) {
            LinkType::ETHERNET
        } else {
            links[rng.below(links.len() as u64) as usize]
        };
        let wire_len = [bytes.len() as u32, rng.next_u64() as u32][rng.below(2) as usize];
        let frame = Frame { time_ns: 0, wire_len, link, bytes: &bytes };
        let outer = Decoder { tunnels: Tunnels::Outer }.decode(&frame);
        let inner = Decoder { tunnels: Tunnels::Inner }.decode(&frame);
        assert_eq!(outer.is_ok(), inner.is_ok());
        match inner {
            Ok(packet) => {
                decoded += 1;
                inside += u32::from(packet.tunnels > 0);
            }
            Err(_) => undecoded += 1,
        }
    }
    assert!(
        decoded > 100_000 && undecoded > 100_000 && inside > 10_000,
        "{decoded} {undecoded} {inside}"
    );
}

#[test]
fn a_radiotap_header_has_few_words_that_list_its_fields() {
    // Every word says that another one follows, up to the end of the frame.
    let endless = [&[0, 0, 0xff, 0xff][..], &[0, 0, 0, 0x80].repeat(10_000)].concat();
    let depth = Err(Undecoded::Malformed(Malformed::Depth));
    assert_eq!(decode(LinkType::RADIOTAP, &endless).map(|_| ()), depth);
}
