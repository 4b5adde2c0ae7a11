use super::*;
use std::path::PathBuf;

/// A folder with files, which are removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("sidon-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        Folder(folder)
    }

    fn read(&self, name: &str) -> Result<Scenario, String> {
        Scenario::read(self.0.join(name)).map_err(|why| why.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const FLOWS: &str = r#"
[[flows]]
name = "attack"
units = 2.0
from = 1
until = 2.0
protocol = "tcp"
source = "32.0.0.0/3"
destination = "198.18.0.0/30 in turn"
destination_port = "80-82 in turn"
packets = [
    { flags = "S" },
    { flags = "S.", reply = true, after = 0.5 },
    { flags = ".", payload = 7, after = 1.0, repeat = 2 },
]
"#;

#[test]
fn packets_come_in_order_with_the_fields_of_their_steps() {
    let text = format!("name = \"a\"\ninclude = [\"b.toml\"]\n{FLOWS}");
    let other = r#"
[[flows]]
count = 3
from = 0.0
protocol = "icmp"
source = "2001:db8::1"
destination = "2001:db8::/64"
packets = [{ after = 0.25 }, { reply = true }]
[[stay]]
flows = "attack"
"#;
    let folder = Folder::new("order", &[("a.toml", &text), ("b.toml", other)]);
    let scenario = folder.read("a.toml").unwrap();
    let packets: Vec<_> = scenario.packets(4, 1, 1_000).unwrap().collect();
    assert_eq!(packets.len(), 2 * 4 * 4 + 3 * 2);
    assert!(packets.is_sorted_by_key(|packet| packet.time_ns));
    assert_eq!(packets, scenario.packets(4, 1, 1_000).unwrap().collect::<Vec<_>>());
    assert_ne!(packets, scenario.packets(4, 2, 1_000).unwrap().collect::<Vec<_>>());
    let start = Mix::default().start_ns;
    let syns = packets.iter().filter(
        |packet| matches!(packet.transport, Transport::Tcp(tcp) if tcp.flags == TcpFlags::SYN),
    );
    for (number, packet) in (0u64..).zip(syns) {
        assert_eq!(packet.time_ns, start + SECOND + number * SECOND / 8);
        assert_eq!(packet.flow.destination(), IpAddr::from([198, 18, 0, number as u8 % 4]));
        assert_eq!(packet.flow.destination_port(), 80 + number as u16 % 3);
        let IpAddr::V4(source) = packet.flow.source() else { panic!("{packet:?}") };
        assert_eq!(source.octets()[0] >> 5, 1);
        let of_flow =
            packets.iter().filter(|one| one.flow.undirected() == packet.flow.undirected());
        let times: Vec<_> = of_flow.map(|one| (one.time_ns - packet.time_ns) / 1_000_000).collect();
        assert_eq!(times, [0, 500, 1_500, 2_500]);
    }
    assert_eq!(packets[0].time_ns, start + SECOND / 4);
    assert_eq!(packets[0].transport, Transport::Icmp { kind: 128, code: 0 });
}

#[test]
fn frames_decode_to_the_same_packets() {
    let text =
        format!("name = \"a\"\n{FLOWS}").replace("reply = true", "reply = true, fragment = true");
    let folder = Folder::new("frames", &[("a.toml", &text)]);
    let scenario = folder.read("a.toml").unwrap();
    let mut fragments = 0;
    for packet in scenario.packets(4, 1, 1_000).unwrap() {
        let mut bytes = Vec::new();
        super::super::write_frame(&packet, &mut bytes);
        let link = crate::LinkType::ETHERNET;
        let frame = crate::Frame {
            time_ns: packet.time_ns,
            wire_len: packet.wire_len,
            link,
            bytes: &bytes,
        };
        assert_eq!(crate::Decoder::default().decode(&frame), Ok(packet));
        fragments += u64::from(packet.fragment == Fragment::First);
    }
    assert_eq!(fragments, 8);
}

#[test]
fn errors_name_the_file_the_line_and_the_fault() {
    let good = format!("name = \"a\"\n{FLOWS}");
    let cases = [
        ("name = \"a\"", "", "a.toml:1: the field name is missing"),
        ("from = 1", "form = 1", "a.toml:6: \"form\" is not one of name, count"),
        ("until = 2.0", "until = 0.5", "a.toml:3: until is before from"),
        ("units = 2.0", "", "expected either count or units"),
        ("units = 2.0", "units = -1", "a.toml:5: expected a number from 0 to 1000000"),
        ("\"tcp\"", "\"sctp\"", "a.toml:8: expected tcp, udp or icmp"),
        ("32.0.0.0/3", "32.0.0.0/33", "a.toml:9: expected an address or a prefix"),
        ("32.0.0.0/3", "::1", "different IP versions"),
        ("80-82 in turn", "82-80", "a.toml:11: expected a port, or ports"),
        ("flags = \"S.\"", "flags = \"SYN\"", "a.toml:14: expected flags such as S"),
        ("repeat = 2", "repeat = \"2\"", "a.toml:15: expected a whole number"),
        ("repeat = 2", "repeat = 0", "a.toml:15: expected at least one packet"),
        ("repeat = 2", "repeat = 4294967295", "a.toml:3: a flow lasts longer than a week"),
        ("name = \"a\"", "name = \"a\"\ninclude = [\"a.toml\"]", "files include each other"),
        ("name = \"a\"", "name = \"a\"\ninclude = [\"none.toml\"]", "none.toml: No such file"),
        ("name = \"a\"", "name = \"a\"\ninclude = [\"../b.toml\"]", "in the same folder"),
        ("name = \"a\"", "name = \"a\"\ninclude = [\"/etc/passwd\"]", "in the same folder"),
        (
            "name = \"a\"",
            "name = \"a\"\nstay = [{ flows = \"x\" }]",
            "no flows with the name \"x\"",
        ),
        (
            "name = \"a\"",
            "name = \"a\"\nmay = [{ kind = \"b\", subject = \"x\" }]",
            "a.toml:2: expected an address",
        ),
        ("name = \"a\"", "name = ", "a.toml:1: "),
    ];
    for (number, (from, to, expected)) in cases.into_iter().enumerate() {
        assert!(good.contains(from), "{from}");
        let text = good.replace(from, to);
        let folder = Folder::new(&format!("wrong-{number}"), &[("a.toml", &text)]);
        let why = folder.read("a.toml").unwrap_err();
        assert!(why.contains(expected), "{why}\nfor {expected}");
    }
}

#[test]
fn a_text_is_read_as_a_file_without_includes_is() {
    let good = format!("name = \"a\"\n{FLOWS}");
    let folder = Folder::new("text", &[("a.toml", &good)]);
    let read = folder.read("a.toml").unwrap();
    assert_eq!(read.files, [folder.0.join("a.toml")]);
    assert_eq!(Scenario::parse(&good).unwrap(), Scenario { files: vec![], ..read });
    for (from, to, expected) in [
        ("from = 1", "form = 1", "scenario:6: \"form\" is not one of name, count"),
        ("name = \"a\"", "name = \"a\"\ninclude = [\"a\"]", "scenario: a text cannot include"),
        ("name = \"a\"", "name = \"a\"\nstay = [{ flows = \"x\" }]", "the name \"x\""),
    ] {
        let why = Scenario::parse(&good.replace(from, to)).unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn alarms_are_judged_by_what_was_followed() {
    let text = format!(
        "name = \"a\"\n{FLOWS}\n[[must]]\nkind = \"scan\"\nsubject = \"10.0.0.1\"\nflows = \"attack\"\n\
         followed = 100\n[[may]]\nkind = \"flood\"\nsubject = \"10.0.0.2\"\n"
    );
    let folder = Folder::new("judge", &[("a.toml", &text)]);
    let scenario = folder.read("a.toml").unwrap();
    let alarm =
        |kind: &str, last| Alarm { kind: kind.to_owned(), subject: [10, 0, 0, last].into() };
    let (scan, flood, other) = (alarm("scan", 1), alarm("flood", 2), alarm("flood", 1));
    // Two flows per unit: 400, of which 100 are followed at 1 in 4.
    let judge = |raised: &[&Alarm], level| {
        scenario.judge(&raised.iter().copied().cloned().collect(), 200, level)
    };
    let all = judge(&[&scan, &flood, &other], 0);
    assert_eq!((all.right, all.wrong), (vec![flood, scan.clone()], vec![other]));
    assert_eq!((all.missing, all.missed), (vec![], vec![]));
    let none = judge(&[], 2);
    assert_eq!((none.missing, none.missed), (vec![scan.clone()], vec![scan.clone()]));
    let sampled = judge(&[], 3);
    assert_eq!((sampled.missing, sampled.missed), (vec![scan], vec![]));
}

/// A scenario of these flows.
fn scenario(flows: Vec<Flows>) -> Scenario {
    Scenario { name: String::new(), flows, must: vec![], may: vec![], stay: vec![], files: vec![] }
}

/// Flows of TCP in the first `until` nanoseconds, with steps of `after` nanoseconds and `repeat`.
fn flows(count: u64, until: u64, steps: &[(u64, u32)]) -> Flows {
    let one = Choice { first: 1, more: 0, in_turn: false };
    let step = |&(after_ns, repeat)| Step {
        after_ns,
        repeat,
        reply: false,
        flags: TcpFlags::SYN,
        payload: 0,
        fragment: false,
    };
    Flows {
        name: format!("{count} in {until}"),
        number: Number::Count(count),
        time_ns: [0, until],
        protocol: protocol::TCP,
        addresses: [one; 2],
        is_v4: true,
        ports: [one; 2],
        packets: steps.iter().map(step).collect(),
    }
}

#[test]
fn memory_and_packets_stay_within_the_size_computed_before() {
    let mut rng = Rng::seeded(3);
    let mut tight = 0.0f64;
    for _ in 0..500 {
        let kinds = 1 + rng.below(3);
        let mut all = Vec::new();
        for _ in 0..kinds {
            let until = [0, 1, 10, 100, 1_000, 10_000][rng.below(6) as usize];
            let mut step = |_| {
                let after = [0, 0, 1, 30, 1_000][rng.below(5) as usize];
                (after, 1 + rng.below(3) as u32)
            };
            let steps: Vec<_> = (0..3).map(&mut step).collect();
            let few = 1 + rng.below(3) as usize;
            all.push(flows(rng.below(100), until, &steps[..few]));
        }
        let scenario = scenario(all);
        let at_once: u64 = scenario.flows.iter().map(|flows| flows.at_once(1)).sum();
        let expected: u64 = scenario.flows.iter().map(|flows| flows.packets(1)).sum();
        let mut packets = scenario.packets(1, 1, expected).unwrap();
        let (mut number, mut most) = (0, packets.next.len());
        while packets.next().is_some() {
            number += 1;
            most = most.max(packets.next.len());
        }
        assert_eq!(number, expected);
        assert!(most as u64 <= at_once, "{most} entries, {at_once} expected: {scenario:?}");
        tight = tight.max(most as f64 / at_once as f64);
        if let Some(fewer) = expected.checked_sub(1) {
            let why = scenario.packets(1, 1, fewer).unwrap_err();
            assert!(matches!(why, TooLarge::Packets { got, .. } if got == expected), "{why}");
        }
    }
    assert!(tight > 0.9, "a bound that no scenario comes near says little: {tight}");
    assert!(size_of::<Reverse<(u64, u64, Next)>>() <= 104, "FLOWS_MAX says 100 bytes");
}

#[test]
fn a_scenario_of_any_size_is_refused_before_its_first_packet() {
    let week = 604_800 * SECOND;
    let huge = 1 << 32;
    let short = flows(10, SECOND, &[(0, 1)]);
    let many = |flows: Flows| vec![flows; 5_000];
    let unnamed = |flows: Flows| Flows { name: String::new(), ..flows };
    let units = |flows: Flows| Flows { number: Number::Units(1e6), ..flows };
    for (all, expected) in [
        // Each flow waits for 600,000 seconds.
        (vec![flows(huge, SECOND, &[(0, 1), (600_000 * SECOND, 1)])], "packets"),
        (vec![flows(huge, week, &[(0, u32::MAX); 4])], "packets"),
        (many(flows(huge, week, &[(0, u32::MAX); 4])), "packets"),
        (vec![units(flows(0, SECOND, &[(0, u32::MAX)]))], "packets"),
        (many(units(flows(0, 0, &[(1, 1), (1, u32::MAX)]))), "packets"),
    ] {
        let why = scenario(all).packets(u64::MAX, 1, 1_000_000_000).unwrap_err();
        assert!(why.to_string().contains(expected), "{why}");
    }
    // Few packets, and every flow is in progress until the last one has started.
    let most = FLOWS_MAX;
    for (all, got, name) in [
        (vec![short.clone(), flows(most, 0, &[(0, 2)])], most + 2, "\"4194304 in 0\""),
        (vec![unnamed(flows(most, SECOND, &[(SECOND, 1)]))], most + 1, "number 1"),
        (many(flows(1_000, SECOND, &[(0, 1), (SECOND, 1)])), 5_000 * 1_001, "\"1000 in "),
    ] {
        let why = scenario(all).packets(1, 1, u64::MAX).unwrap_err();
        assert!(
            matches!(&why, TooLarge::Flows { got: own, flows } if *own == got
            && flows.starts_with(name)),
            "{why:?}"
        );
    }
    for all in [
        vec![],
        vec![flows(most - 1, 0, &[(0, 2)])],
        // A flow of one packet takes no memory.
        vec![flows(huge, 0, &[(0, 1)])],
        // One flow ends before the next one starts.
        vec![flows(1_000_000, week, &[(1, 1_000)])],
    ] {
        assert!(scenario(all).packets(1, 1, u64::MAX).is_ok());
    }
}

#[test]
fn shipped_scenarios_are_within_the_limits() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut files = Vec::new();
    for folder in [folder.to_owned(), format!("{folder}/overload")] {
        files.extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.retain(|file| !file.ends_with("beside.toml"));
    assert_eq!(files.len(), 10);
    for file in files {
        let scenario = Scenario::read(&file).unwrap();
        assert_eq!(scenario.check(10_000, PACKETS_MAX), Ok(()), "{}", crate::text::path(&file));
        assert_eq!(scenario.check(400_000, PACKETS_MAX), Ok(()), "{}", crate::text::path(&file));
    }
}
