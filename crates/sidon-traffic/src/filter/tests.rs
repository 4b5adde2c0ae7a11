use super::*;
use crate::{
    FlowKey, LinkType, Packet, Transport,
    generate::write_frame,
    packet::{Fragment, Tcp, TcpFlags, Vlans},
};

fn filter(text: &str) -> Filter {
    text.parse().unwrap_or_else(|why| panic!("{why}"))
}

/// The frame of a packet of this flow, 100 bytes long, with these flags if it is TCP.
fn frame(flow: &str, flags: TcpFlags) -> Vec<u8> {
    let flow: FlowKey = flow.parse().unwrap();
    let transport = match flow.protocol() {
        6 => Transport::Tcp(Tcp { sequence: 1, acknowledgement: 2, flags }),
        17 => Transport::Ports,
        1 => Transport::Icmp { kind: 8, code: 0 },
        58 => Transport::Icmp { kind: 135, code: 0 },
        _ => Transport::Other,
    };
    let payload_len = 0;
    let (fragment, vlans) = (Fragment::Whole, Vlans::default());
    let (time_ns, wire_len, captured, ttl, tunnels) = (0, 100, 100, 64, 0);
    let packet = Packet {
        time_ns,
        flow,
        wire_len,
        captured,
        payload_len,
        transport,
        fragment,
        ttl,
        vlans,
        tunnels,
    };
    let mut bytes = Vec::new();
    write_frame(&packet, &mut bytes);
    bytes
}

fn verdict_of(text: &str, bytes: &[u8]) -> Verdict {
    let wire_len = bytes.len() as u32;
    filter(text).verdict(&Frame { time_ns: 0, wire_len, link: LinkType::ETHERNET, bytes })
}

fn matches(text: &str, bytes: &[u8]) -> bool {
    verdict_of(text, bytes) == Verdict::Match
}

/// The frame with a tag of this VLAN before what it carries.
fn tagged(bytes: &[u8], vlan: u16) -> Vec<u8> {
    let mut out = bytes[..12].to_vec();
    out.extend([0x81, 0]);
    out.extend(vlan.to_be_bytes());
    out.extend(&bytes[12..]);
    out
}

const SYN: TcpFlags = TcpFlags::SYN;

#[test]
fn words_mean_what_they_mean_to_tcpdump() {
    let web = frame("10.1.2.3:5555 -> 192.0.2.1:80 tcp", SYN);
    let dns6 = frame("[2001:db8::1]:5353 -> [2001:db8::2]:53 udp", SYN);
    let ping = frame("10.1.2.3 -> 192.0.2.1 icmp", SYN);
    for (text, expected) in [
        ("", [true, true, true]),
        ("tcp", [true, false, false]),
        ("udp", [false, true, false]),
        ("icmp", [false, false, true]),
        ("ip", [true, false, true]),
        ("ip6", [false, true, false]),
        ("arp", [false, false, false]),
        ("proto 17", [false, true, false]),
        ("ip proto \\tcp", [true, false, false]),
        ("ether proto 0x86dd", [false, true, false]),
        ("host 10.1.2.3", [true, false, true]),
        ("10.1.2.3", [true, false, true]),
        ("dst host 10.1.2.3", [false, false, false]),
        ("src 10.1.2.3", [true, false, true]),
        ("net 10", [true, false, true]),
        ("net 10.1", [true, false, true]),
        ("net 10.1.2.0/24", [true, false, true]),
        ("net 10.0.0.0 mask 255.0.0.0", [true, false, true]),
        ("dst net 192.0.2.0/24", [true, false, true]),
        ("host 2001:db8::2", [false, true, false]),
        ("net 2001:db8::/32", [false, true, false]),
        ("port 80", [true, false, false]),
        ("port 80 or 53", [true, true, false]),
        ("port (80 or 53)", [true, true, false]),
        ("src port 80", [false, false, false]),
        ("src or dst port 53", [false, true, false]),
        ("src and dst port 53", [false, false, false]),
        ("udp port domain", [false, true, false]),
        ("portrange 50-90", [true, true, false]),
        ("tcp portrange 81-90", [false, false, false]),
        ("not port 80", [false, true, true]),
        ("port 53 or not host 10.1.2.3", [false, true, false]),
        ("not host 10.1.2.3 and not 10.1.2.4", [false, true, false]),
        // Equally strong, from left to right: (ip or udp) and port 53.
        ("ip or udp and port 53", [false, true, false]),
        ("ip or (udp and port 53)", [true, true, true]),
        ("!(tcp || udp)", [false, false, true]),
        ("tcp[tcpflags] & (tcp-syn|tcp-ack) = tcp-syn", [true, false, false]),
        ("tcp[13] & 0x10 != 0", [false, false, false]),
        ("(tcp[13] & 2) >> 1 == 1", [true, false, false]),
        ("icmp[icmptype] == icmp-echo", [false, false, true]),
        ("ip[8] = 64", [true, false, true]),
        ("ip[16:4] = 0xc0000201", [true, false, true]),
        ("ip6[6] = 17", [false, true, false]),
        ("2 + 3 * 4 = 14", [true, true, true]),
        ("10 - 2 - 3 = 5 and -1 = 0xffffffff", [true, true, true]),
        ("len = 100", [true, true, true]),
        ("less 99", [false, false, false]),
        ("greater 100 and len <= 100", [true, true, true]),
        ("ether src 2:0:a:1:2:3", [true, false, true]),
        ("ether multicast or broadcast or ip multicast", [false, false, false]),
        ("vlan", [false, false, false]),
    ] {
        let found = [&web, &dns6, &ping].map(|bytes| matches(text, bytes));
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn a_tag_hides_what_is_behind_it_and_the_verdict_says_so() {
    let plain = frame("10.1.2.3:5555 -> 192.0.2.1:80 tcp", SYN);
    let (once, twice) = (tagged(&plain, 7), tagged(&tagged(&plain, 7), 300));
    assert_eq!(verdict_of("tcp port 80", &plain), Verdict::Match);
    assert_eq!(verdict_of("tcp port 80", &once), Verdict::BehindTag);
    assert_eq!(verdict_of("tcp port 80", &twice), Verdict::BehindTag);
    assert_eq!(verdict_of("udp", &once), Verdict::NoMatch);
    // An expression with `vlan` never gives `BehindTag`.
    assert_eq!(verdict_of("vlan and udp", &once), Verdict::NoMatch);
    assert_eq!(verdict_of("tcp and vlan", &once), Verdict::NoMatch);
    assert_eq!(verdict_of("vlan and tcp port 80", &once), Verdict::Match);
    assert_eq!(verdict_of("vlan 7 and tcp", &once), Verdict::Match);
    assert_eq!(verdict_of("vlan 8", &once), Verdict::NoMatch);
    assert_eq!(verdict_of("vlan 300 and vlan 7 and tcp", &twice), Verdict::Match);
    assert_eq!(verdict_of("vlan and tcp", &twice), Verdict::NoMatch);
    // Every test to the right of `vlan` skips the tag, even after `or`.
    assert_eq!(verdict_of("vlan 9 or tcp", &plain), Verdict::NoMatch);
    assert_eq!(verdict_of("vlan 9 or tcp", &once), Verdict::Match);
}

#[test]
fn a_test_beyond_the_captured_bytes_rejects_the_frame() {
    let web = frame("10.1.2.3:5555 -> 192.0.2.1:80 tcp", SYN);
    assert!(matches("not port 81", &web));
    assert!(!matches("not port 81", &web[..34]));
    assert!(!matches("not port 81 or ip", &web[..34]));
    assert!(matches("ip or not port 81", &web[..34]));
    assert!(!matches("not ip", &web[..13]));
    assert!(!matches("len / (ip[1] - 0) = 5 or ip", &web));
}

#[test]
fn ports_are_not_found_in_later_fragments_and_arp_has_hosts() {
    let mut web = frame("10.1.2.3:5555 -> 192.0.2.1:80 tcp", SYN);
    web[21] = 1;
    assert!(!matches("port 80", &web) && matches("tcp and not port 80", &web));
    assert!(!matches("tcp[13] = 2", &web) && matches("ip[6:2] & 0x1fff != 0", &web));
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    arp[28..32].copy_from_slice(&[10, 1, 2, 3]);
    arp[38..42].copy_from_slice(&[10, 1, 2, 4]);
    assert!(matches("arp", &arp) && matches("host 10.1.2.3", &arp));
    assert!(matches("dst host 10.1.2.4", &arp) && matches("arp net 10.1.2.0/24", &arp));
    assert!(!matches("ip host 10.1.2.3", &arp));
}

#[test]
fn errors_point_at_the_word_at_fault() {
    for (text, marked, message) in [
        ("host example.org", "example.org", "names are not looked up"),
        ("tcp prot 80", "prot", "expected `port`"),
        ("port 80 adn port 443", "adn", "expected `and`"),
        ("port 70000", "70000", "below 65536"),
        ("port nosuch", "nosuch", "known name"),
        ("ip port 80", "80", "`tcp`, `udp` and `sctp`"),
        ("net 10.0.0.1/8", "8", "bits outside"),
        ("host 10.0.0.0/8", "/", "belongs to a `net`"),
        ("net 10.0.0.0/33", "33", "at most 32"),
        ("mpls 3", "mpls", "`mpls` is a word of libpcap's"),
        ("gateway 10.0.0.1", "gateway", "not supported"),
        ("tcp[13:3] = 1", "3", "1, 2 or 4"),
        ("tcp[13] & 2", "", "expected a comparison"),
        ("tcp[13] = ", "", "expected a number"),
        ("tcp[13 = 2", "=", "expected `]`"),
        ("(tcp or udp", "", "expected `)`"),
        ("tcp or", "", "expected a test"),
        ("tcp and 10.0.0.1", "10.0.0.1", "Say `host`"),
        ("portrange 80", "", "expected `-`"),
        ("vlan 4096", "4096", "below 4096"),
        ("1 / 0 = 2", "0", "division by zero"),
        ("ether host 10.0.0.1", "10.0.0.1", "hardware address"),
        ("host 1:2:3:4:5:6", "1:2:3:4:5:6", "say `ether`"),
        ("tcp # x", "#", "no part of an expression"),
        ("ip broadcast", "broadcast", "netmask"),
        ("host", "", "expected an address"),
    ] {
        let why = match text.parse::<Filter>() {
            Err(why) => why,
            Ok(filter) => panic!("{text} is taken as {filter:?}"),
        };
        let found: String = text.chars().skip(why.columns.start).take(why.columns.len()).collect();
        assert_eq!(found, marked, "{why}");
        assert!(why.message.contains(message), "{why}");
    }
    let long = "tcp and ".repeat(3_000) + "tcp";
    assert!(long.parse::<Filter>().unwrap_err().message.contains("too long"));
    for nested in ["(", "not ", "-", "tcp["] {
        let text = nested.repeat(1_000) + "tcp";
        assert!(text.parse::<Filter>().is_err(), "{nested}");
    }
}

#[test]
fn an_error_at_any_column_is_shown_in_a_short_message() {
    for length in [0, 1, 60, 99, 100, 101, 65_534, 65_535, 65_536, 300_000] {
        for text in [
            format!("{}prot 80", " ".repeat(length)),
            format!("host {} prot", "a".repeat(length.max(1))),
            format!("{}ä", " ".repeat(length)),
            format!("port 9{}", "9".repeat(length.max(5))),
            format!("tcp {}", "ü".repeat(length.max(1))),
        ] {
            let why = text.parse::<Filter>().unwrap_err();
            let shown = why.to_string();
            let (excerpt, carets) = shown.rsplit_once('\n').unwrap();
            assert!(carets.trim_start().starts_with('^'), "{shown}");
            assert!(shown.chars().count() < 400, "{length}: {shown}");
            let line = excerpt.lines().last().unwrap();
            assert!(carets.len() <= line.chars().count() + 1, "{shown}");
        }
    }
}

#[test]
fn any_string_of_words_is_a_filter_or_an_error_and_never_a_panic() {
    let words = [
        "tcp",
        "udp",
        "ip",
        "ip6",
        "arp",
        "ether",
        "icmp6",
        "host",
        "net",
        "port",
        "portrange",
        "proto",
        "src",
        "dst",
        "and",
        "or",
        "not",
        "(",
        ")",
        "[",
        "]",
        ":",
        "/",
        "-",
        "+",
        "<<",
        "!=",
        "&",
        "&&",
        "||",
        "!",
        "vlan",
        "less",
        "len",
        "80",
        "0x1f",
        "10.0.0.1",
        "::1",
        "53",
        "multicast",
        "mask",
        "tcpflags",
        "tcp-syn",
        "\\",
        "é",
        "1-2",
        "0",
        "4096",
    ];
    let web = frame("10.1.2.3:5555 -> 192.0.2.1:80 tcp", SYN);
    let mut rng = sidon_kit::Rng::seeded(1);
    let mut taken = 0;
    for _ in 0..200_000 {
        let length = 1 + rng.below(9);
        let mut text = String::new();
        for _ in 0..length {
            text += words[rng.below(words.len() as u64) as usize];
            if rng.chance(0.9) {
                text.push(' ');
            }
        }
        if let Ok(filter) = text.parse::<Filter>() {
            taken += 1;
            let cut = rng.below(web.len() as u64 + 1) as usize;
            let bytes = &web[..cut];
            let link = LinkType([1, 0, 101, 113, 127][rng.below(5) as usize]);
            let _ = filter.verdict(&Frame { time_ns: 0, wire_len: 100, link, bytes });
        }
    }
    assert!(taken > 5_000, "only {taken} were filters");
}
