use super::*;
use crate::{Prefix, flow::protocol, generate::Mix, packet::Transport};
use std::{collections::BTreeSet, path::PathBuf};

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
    let step = "\"S.\", reply = true";
    let tcp = FLOWS.replace(step, &format!("{step}, fragment = \"first\""));
    let v6 = tcp.replace("32.0.0.0/3", "2001:db8::/32").replace("198.18.0.0/30", "2001:db8::/126");
    let text = format!("name = \"a\"\n{tcp}\n{v6}\n{EVERY}");
    let scenario = Scenario::parse(&text).unwrap();
    let mut fragments = [0; 2];
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
        fragments[0] += u64::from(packet.fragment == Fragment::First);
        fragments[1] += u64::from(packet.fragment == Fragment::Later);
    }
    assert_eq!(fragments, [16, 10]);
}

/// Flows with the packets that `FLOWS` lacks.
const EVERY: &str = r#"
[[flows]]
count = 5
from = 0
protocol = "udp"
source = "2001:db8::/64"
destination = "2001:db8::1"
destination_port = 53
packets = [
    { payload = "0-1000" },
    { payload = 1000, fragment = "later" },
    { icmp = [1, 4], by = "2001:db8:1::/48", reply = true, payload = 48, ttl = 250 },
]
[[flows]]
count = 5
from = 0
protocol = 50
source = "10.0.0.1"
destination = "10.0.0.2"
packets = [{ payload = 1400 }, { payload = 60000, fragment = "later" }, { icmp = [11, 0], by = "10.9.9.0/24 in turn", reply = true, repeat = 3 }]
"#;

#[test]
fn another_host_sends_an_error_about_a_flow() {
    let scenario = Scenario::parse(&format!("name = \"a\"\n{EVERY}")).unwrap();
    let packets: Vec<_> = scenario.packets(1, 1, 1_000).unwrap().collect();
    let errors = packets.iter().filter(|packet| packet.flow.protocol() == protocol::ICMP);
    let errors: Vec<_> = errors.map(|packet| (packet.flow.source(), packet.transport)).collect();
    assert_eq!(errors.len(), 15);
    for (source, transport) in errors {
        let IpAddr::V4(source) = source else { panic!("{source}") };
        assert!(source.octets()[..3] == [10, 9, 9] && source.octets()[3] < 3, "{source}");
        assert_eq!(transport, Transport::Icmp { kind: 11, code: 0 });
    }
    let payloads: BTreeSet<_> = packets
        .iter()
        .filter(|packet| packet.transport == Transport::Ports)
        .map(|packet| packet.payload_len)
        .collect();
    assert!(payloads.len() > 2 && payloads.iter().all(|&bytes| bytes <= 1_000), "{payloads:?}");
}

#[test]
fn a_body_is_sent_as_often_as_rounds_says_and_some_flows_fail() {
    let text = r#"
name = "a"
[[flows]]
count = 4000
from = 0
until = 100
protocol = "tcp"
source = "10.0.0.0/8"
destination = "10.0.0.1"
destination_port = 80
rounds = 3
packets = [
    { flags = "S", jitter = 2.0 },
    { flags = "P.", payload = 1, repeat = 2, round = true },
    { flags = ".", reply = true, round = true },
    { flags = "F." },
]
fails = 0.25
failed = [{ flags = "FPU", repeat = 2 }]
"#;
    let scenario = Scenario::parse(text).unwrap();
    let packets: Vec<_> = scenario.packets(1, 1, 44_000).unwrap().collect();
    let flags = |wanted: &str| {
        packets.iter().filter(|packet| packet.tcp_flags().to_string() == wanted).count()
    };
    let right = flags("S");
    sidon_kit::assert_rate(right, 4_000, 0.75);
    assert_eq!([flags("P."), flags("."), flags("F.")], [right * 6, right * 3, right]);
    assert_eq!(flags("FPU"), (4_000 - right) * 2);
    assert!(packets.is_sorted_by_key(|packet| packet.time_ns));
    // The order within one flow.
    let first = packets[0].flow.undirected();
    let one = packets.iter().filter(|packet| packet.flow.undirected() == first);
    let one: Vec<_> = one.map(|packet| packet.tcp_flags().to_string()).collect();
    let body = ["P.", "P.", "."];
    let whole = [&["S"][..], &body, &body, &body, &["F."]].concat();
    assert!(one == whole || one == ["FPU", "FPU"], "{one:?}");
    for (from, to, expected) in [
        ("rounds = 3", "", "expected rounds, and packets"),
        (", round = true", "", "expected rounds, and packets"),
        (
            "{ flags = \"F.\" }",
            "{ flags = \"F.\", round = true, repeat = 0 }",
            "at least one packet",
        ),
        ("fails = 0.25", "", "both fails and failed"),
        ("fails = 0.25", "fails = 1.5", "a number from 0 to 1"),
        ("failed = [", "other = [", "\"other\" is not one of"),
        ("until = 100", "until = 100\ngaps = \"odd\"", "expected even or exponential"),
        ("until = 100", "pulses = { on = 2, every = 1 }", "on above 0, and not above every"),
        ("jitter = 2.0", "payload = \"9-5\"", "expected a range such as"),
        ("jitter = 2.0", "payload = 65001", "a whole number up to 65000"),
        ("jitter = 2.0", "icmp = [1]", "a type and a code"),
        ("jitter = 2.0", "by = \"::1\"", "the same IP version"),
        ("jitter = 2.0", "fragment = true", "expected a text"),
        ("\"tcp\"", "17", "the number of a protocol without ports"),
        ("\"tcp\"", "43", "the number of a protocol without ports"),
    ] {
        assert!(text.contains(from), "{from}");
        let why = Scenario::parse(&text.replace(from, to)).unwrap_err().to_string();
        assert!(why.contains(expected), "{why}\nfor {expected}");
    }
    let apart = text.replace("repeat = 2, round = true", "repeat = 2").replace(
        "{ flags = \"F.\" }",
        "{ flags = \"F.\", round = true }, { flags = \"R\" }, { flags = \"R\", round = true }",
    );
    let why = Scenario::parse(&apart).unwrap_err().to_string();
    assert!(why.contains("must follow each other"), "{why}");
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
        ("\"tcp\"", "\"sctp\"", "a.toml:8: expected tcp, udp or icmp, or the number"),
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
        ("name = \"a\"", "name = \"a\"\none_way_capture = 1", "a.toml:2: expected true or false"),
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
    let alarm = |kind: &str, last| Alarm {
        kind: kind.to_owned(),
        subject: IpAddr::from([10, 0, 0, last]).into(),
    };
    let (scan, flood, other) = (alarm("scan", 1), alarm("flood", 2), alarm("flood", 1));
    // Two flows per unit: 400, of which 100 are followed at 1 in 4.
    let judge = |raised: &[&Alarm], level| {
        scenario.judge(&raised.iter().copied().cloned().collect(), 200, level)
    };
    let all = judge(&[&scan, &flood, &other], 0);
    assert_eq!((all.right, all.wrong), (vec![flood.clone(), scan.clone()], vec![other]));
    assert_eq!((all.missing, all.missed), (vec![], vec![]));
    let none = judge(&[], 2);
    assert_eq!((none.missing, none.missed), (scenario.must.clone(), scenario.must.clone()));
    let sampled = judge(&[], 3);
    assert_eq!((sampled.missing, sampled.missed), (scenario.must.clone(), vec![]));
    assert!(scenario.must[0].expected.names(&scan));
    let must = "flows = \"attack\"\nsays = [\"DNS\"]\nfigures = { targets = [3, 4] }\nwithin = 2.5\nmost = 3";
    let more = Scenario::parse(&text.replace("flows = \"attack\"", must)).unwrap();
    let expected = Must {
        says: vec!["DNS".to_owned()],
        figures: vec![("targets".to_owned(), [3, 4])],
        within_ns: Some(2_500_000_000),
        most: 3,
        ..scenario.must[0].clone()
    };
    assert_eq!(more.must, [expected]);
    // A carpet is named by its prefix, and allowed in any part of it.
    let prefix = |text: &str| text.parse::<Prefix>().unwrap();
    let carpet = Expected {
        kinds: vec!["scan".to_owned(), "flood".to_owned()],
        subjects: vec![prefix("10.0.0.0/24"), prefix("10.0.1.0/24")],
    };
    let names = |subject| carpet.names(&Alarm { subject, ..flood.clone() });
    assert!(names(prefix("10.0.1.0/24")) && !names(prefix("10.0.1.1")));
    let may = Scenario { may: vec![carpet.clone()], must: vec![], ..scenario.clone() };
    let other = Alarm { subject: prefix("10.0.2.0"), ..flood.clone() };
    let judged = may.judge(&[flood.clone(), other.clone()].into(), 1, 0);
    assert_eq!((judged.right, judged.wrong), (vec![flood], vec![other]));
}

/// A scenario of these flows.
fn scenario(flows: Vec<Flows>) -> Scenario {
    Scenario {
        name: String::new(),
        flows,
        must: vec![],
        may: vec![],
        stay: vec![],
        one_way_capture: None,
        files: vec![],
    }
}

/// Flows of TCP in the first `until` nanoseconds, with steps of `after` nanoseconds and `repeat`.
fn flows(count: u64, until: u64, steps: &[(u64, u32)]) -> Flows {
    let one = Choice { first: 1, more: 0, in_turn: false };
    let step = |&(after_ns, repeat)| Step {
        after_ns,
        jitter_ns: 0,
        repeat,
        reply: false,
        by: None,
        flags: TcpFlags::SYN,
        payload: [0; 2],
        fragment: Fragment::Whole,
        icmp: None,
        ttl: 60,
    };
    let packets = Script { steps: steps.iter().map(step).collect(), body: 0..0, rounds: 1 };
    Flows {
        name: format!("{count} in {until}"),
        number: Number::Count(count),
        starts: Starts::even([0, until]),
        protocol: protocol::TCP,
        addresses: [one; 2],
        is_v4: true,
        ports: [one; 2],
        packets,
        failed: Script::default(),
        fails: 0.0,
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
            let mut flows = flows(rng.below(100), until, &steps[..few]);
            if rng.below(4) == 0 {
                flows.starts.pulses = Some([1 + rng.below(10), 10 + rng.below(20)]);
            }
            flows.starts.random = rng.below(8) == 0;
            if rng.below(3) == 0 {
                flows.packets.body = rng.below(few as u64) as usize..few;
                flows.packets.rounds = 1 + rng.below(3) as u32;
            }
            if rng.below(4) == 0 {
                flows.packets.steps[0].jitter_ns = rng.below(50);
            }
            all.push(flows);
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
    assert!(size_of::<(u64, u64, packets::Next)>() <= 104, "FLOWS_MAX says 100 bytes");
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
    let folders = ["", "overload", "attacks", "ordinary"];
    for folder in folders.map(|name| format!("{folder}/{name}")) {
        files.extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.retain(|file| !file.ends_with("beside.toml"));
    assert!(files.len() >= 74, "{} files", files.len());
    for file in files {
        let scenario = Scenario::read(&file).unwrap();
        assert_eq!(scenario.check(10_000, PACKETS_MAX), Ok(()), "{}", crate::text::path(&file));
        assert_eq!(scenario.check(400_000, PACKETS_MAX), Ok(()), "{}", crate::text::path(&file));
    }
}
