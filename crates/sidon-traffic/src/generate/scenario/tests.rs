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
    let packets: Vec<_> = scenario.packets(4, 1).collect();
    assert_eq!(packets.len(), 2 * 4 * 4 + 3 * 2);
    assert!(packets.is_sorted_by_key(|packet| packet.time_ns));
    assert_eq!(packets, scenario.packets(4, 1).collect::<Vec<_>>());
    assert_ne!(packets, scenario.packets(4, 2).collect::<Vec<_>>());
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
    for packet in scenario.packets(4, 1) {
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
