//! Filter expressions: parsed or refused with a printable error, then evaluated on frames.
//!
//! The input is an expression, and after a zero byte the bytes of a frame, the first of which chooses
//! the link type.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidon_traffic::{Filter, Frame, Generator, LinkType, Mix, Verdict, generate::write_frame};
use std::sync::LazyLock;

fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (text, frame) = (String::from_utf8_lossy(&bytes[..end]), bytes.get(end + 1..));
    match text.parse::<Filter>() {
        Ok(filter) => {
            assert_eq!(filter.to_string(), text);
            for frame in FRAMES.iter() {
                verdict(&filter, LinkType::ETHERNET, frame);
            }
            if let Some([link, frame @ ..]) = frame {
                verdict(&filter, LINKS[usize::from(*link) % LINKS.len()], frame);
            }
        }
        Err(why) => {
            assert!(why.column() <= text.chars().count());
            assert!(why.to_string().starts_with(why.message()));
        }
    }
});

/// A frame gets the same verdict again. What a tag hides, the filter does not match.
fn verdict(filter: &Filter, link: LinkType, bytes: &[u8]) -> Verdict {
    let frame = Frame { time_ns: 0, wire_len: bytes.len() as u32, link, bytes };
    let verdict = filter.verdict(&frame);
    assert_eq!(filter.verdict(&frame), verdict);
    verdict
}

const LINKS: [LinkType; 15] = [
    LinkType::ETHERNET,
    LinkType::NULL,
    LinkType::PPP,
    LinkType::RAW_12,
    LinkType::RAW_14,
    LinkType::PPP_HDLC,
    LinkType::PPPOE,
    LinkType::RAW,
    LinkType::IEEE802_11,
    LinkType::LOOP,
    LinkType::LINUX_SLL,
    LinkType::RADIOTAP,
    LinkType::IPV4,
    LinkType::IPV6,
    LinkType::LINUX_SLL2,
];

/// A few frames of each protocol, some with tags, some cut short.
static FRAMES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mix = Mix { packets: 12, ipv6: 50, ..Mix::default() };
    let mut frames: Vec<Vec<u8>> = Generator::new(mix, 1)
        .expect("the mix is possible")
        .map(|packet| {
            let mut frame = Vec::new();
            write_frame(&packet, &mut frame);
            frame.truncate(90);
            frame
        })
        .collect();
    for (i, frame) in frames.iter_mut().enumerate() {
        if i % 3 == 0 {
            frame.splice(12..12, [0x81, 0, 0, 7]);
        }
        frame.truncate(90 - 5 * i);
    }
    frames
});

/// The expressions that are compared with tcpdump, alone and with a frame of each link type.
fn seeds() -> Vec<Vec<u8>> {
    let script = sidon_fuzz::folder("scripts/filter-against-tcpdump");
    let script = std::fs::read_to_string(script).unwrap_or_default();
    let quoted = |line: &str| {
        let text = line.trim().strip_prefix('\'')?.strip_suffix('\'')?;
        Some(text.to_owned())
    };
    let mut seeds = Vec::new();
    for (i, text) in script.lines().filter_map(quoted).enumerate() {
        let link = i % LINKS.len();
        let mut bytes = text.into_bytes();
        seeds.push(bytes.clone());
        bytes.extend([0, link as u8]);
        // Without an Ethernet header where the link type has none.
        bytes.extend(&FRAMES[i % FRAMES.len()][if link == 0 { 0 } else { 10 }..]);
        seeds.push(bytes);
    }
    seeds
}
