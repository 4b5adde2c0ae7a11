//! Shipped scenarios with changed words and numbers. Each is refused with a short error, or its packets
//! come in order, within the limit, and as frames that decode to the same packets.

use super::*;
use crate::{Decoder, Frame, LinkType, generate::write_frame};
use std::{fs, path::Path};

/// Changed texts. The fuzz target `scenario` tries more.
const TEXTS: u64 = 4_000;
/// The most packets of one text.
const MOST: u64 = 500;
/// Values that replace others.
const VALUES: [&str; 24] = [
    "0",
    "1",
    "-1",
    "4294967295",
    "4294967296",
    "18446744073709551616",
    "604800.0",
    "604800.1",
    "1e-9",
    "nan",
    "inf",
    "\"\"",
    "\"0.0.0.0/0\"",
    "\"::/0 in turn\"",
    "\"0-65535 in turn\"",
    "\"0-65000\"",
    "\"later\"",
    "\"first\"",
    "\"SFRPUEW.\"",
    "\"exponential\"",
    "[255, 255]",
    "{ on = 1e-9, every = 604800 }",
    "true",
    "50",
];

fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let folders = ["attacks", "ordinary", "overload", "null"];
    let entries = folders.iter().flat_map(|name| fs::read_dir(root.join(name)).unwrap());
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let text = |file| -> String {
        let text = fs::read_to_string(file).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with("include"));
        // Few flows, so that most texts are within the limit of packets.
        let few = |line: &str| match line.split_once(" = ") {
            Some((name @ ("count" | "rounds"), _)) => format!("{name} = 2"),
            _ => line.to_owned(),
        };
        lines.map(few).collect::<Vec<_>>().join("\n")
    };
    files.iter().map(text).collect()
}

/// The fields of a text: the position of each value, and the name before it.
fn fields(text: &str) -> Vec<(Range<usize>, &str)> {
    let field = |(at, _): (usize, &str)| {
        let name = text[..at].rsplit([' ', '\n', '{']).next().unwrap_or("");
        let rest = &text[at + 3..];
        let end = rest.find([',', '\n', '}', ']']).unwrap_or(rest.len());
        (at + 3..at + 3 + end, name)
    };
    text.match_indices(" = ").map(field).collect()
}

/// The text with another value of a random field: one that a field of this name has elsewhere, or any.
fn changed(text: &str, texts: &[String], rng: &mut Rng) -> String {
    fn one<T: Clone>(list: &[T], rng: &mut Rng) -> T {
        list[rng.below(list.len() as u64) as usize].clone()
    }
    let (place, name) = one(&fields(text), rng);
    let mut value = one(&VALUES, rng);
    let other = one(texts, rng);
    let same = fields(&other).into_iter().find(|(_, other)| *other == name);
    if let Some((place, _)) = same.filter(|_| rng.below(3) > 0) {
        value = &other[place];
    }
    format!("{}{value}{}", &text[..place.start], &text[place.end..])
}

#[test]
fn changed_scenarios_are_refused_or_stay_within_their_limits() {
    let (texts, mut rng) = (texts(), Rng::seeded(9));
    let (mut read, mut generated) = (0, 0u64);
    for _ in 0..TEXTS {
        let mut text = texts[rng.below(texts.len() as u64) as usize].clone();
        for _ in 0..1 + rng.below(3) {
            text = changed(&text, &texts, &mut rng);
        }
        let scenario = match Scenario::parse(&text) {
            Ok(scenario) => scenario,
            Err(why) => {
                assert!(why.to_string().chars().count() < 1_000, "{why}");
                continue;
            }
        };
        read += 1;
        for unit in [1, u64::MAX] {
            let Ok(packets) = scenario.packets(unit, 3, MOST) else { continue };
            let (mut number, mut last, mut bytes) = (0, 0, Vec::new());
            for packet in packets {
                assert!(packet.time_ns >= last, "{text}");
                (number, last) = (number + 1, packet.time_ns);
                write_frame(&packet, &mut bytes);
                let (time_ns, wire_len) = (packet.time_ns, packet.wire_len);
                let frame = Frame { time_ns, wire_len, link: LinkType::ETHERNET, bytes: &bytes };
                assert_eq!(Decoder::default().decode(&frame), Ok(packet), "{text}");
            }
            assert!(number <= MOST, "{text}");
            generated += number;
        }
    }
    assert!(read > TEXTS / 10 && generated > TEXTS, "{read} texts read, {generated} packets");
}
