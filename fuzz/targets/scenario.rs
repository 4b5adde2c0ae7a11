//! Scenarios in TOML: refused with a short error, or read, sized and generated. The packets are in
//! order, and no more than the caller allows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidon_traffic::generate::{scenario::Scenario, write_frame};

/// The most characters of an error.
const MESSAGE_MAX: usize = 1000;
/// The most packets of a scenario.
const PACKETS_MAX: u64 = 2000;

fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let scenario = match Scenario::parse(text) {
        Ok(scenario) => scenario,
        Err(why) => return assert!(why.to_string().chars().count() < MESSAGE_MAX),
    };
    for unit in [0, 10, u64::MAX] {
        let packets = match scenario.packets(unit, 1, PACKETS_MAX) {
            Ok(packets) => packets,
            Err(why) => {
                assert!(why.to_string().chars().count() < MESSAGE_MAX);
                continue;
            }
        };
        let (mut number, mut last, mut frame) = (0, 0, Vec::new());
        for packet in packets {
            assert!(packet.time_ns >= last, "packets are in order");
            (number, last) = (number + 1, packet.time_ns);
            frame.clear();
            write_frame(&packet, &mut frame);
        }
        assert!(number <= PACKETS_MAX);
    }
});

/// The shipped scenarios without their includes, and one with every word of the format.
fn seeds() -> Vec<Vec<u8>> {
    let files =
        sidon_fuzz::files(&sidon_fuzz::folder("scenarios"), 2048, &|name| name.ends_with(".toml"));
    let alone = |file: Vec<u8>| {
        let text = String::from_utf8(file).expect("a shipped scenario is UTF-8");
        let lines = text.lines().filter(|line| !line.starts_with("include = "));
        lines.collect::<Vec<_>>().join("\n").into_bytes()
    };
    let mut seeds: Vec<_> = files.into_iter().map(alone).collect();
    let all = r#"name = "all"
stay = [{ flows = "a" }]
may = [{ kind = "syn_flood", subject = "192.0.2.1" }]
must = [{ kind = ["port_scan", "beacon"], subject = ["2001:db8::1", "10.0.0.0/8"], flows = "a", followed = 3, within = 2.5, most = 2, says = ["DNS"], figures = { targets = [1, 9] } }]
[[flows]]
name = "a"
units = 0.5
from = 1
until = 604800.0
protocol = "tcp"
source = "32.0.0.0/3"
source_port = "1-9 in turn"
destination = "198.18.0.0/30 in turn"
destination_port = 80
gaps = "exponential"
pulses = { on = 0.5, every = 2 }
rounds = 3
packets = [{ flags = "SFRPUEW." }, { flags = ".", reply = true, payload = "1-1400", after = 1e-9, jitter = 0.1, repeat = 2, fragment = "first", round = true }]
fails = 0.5
failed = [{ icmp = [3, 1], by = "10.0.0.0/8 in turn", ttl = 9 }, { fragment = "later", payload = 65000 }]
[[flows]]
count = 3
from = 0
gaps = "even"
protocol = 50
source = "::1"
destination = "::2"
packets = [{ fragment = "first" }, { fragment = "later" }]
[[flows]]
count = 4294967296
from = 0
protocol = "icmp"
source = "2001:db8::1"
destination = "::/0"
packets = [{ after = 0.25 }, { reply = true, repeat = 4294967295 }]
"#;
    seeds.push(all.as_bytes().to_vec());
    seeds
}
