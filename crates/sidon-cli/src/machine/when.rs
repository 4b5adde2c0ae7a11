//! The packets of an event: `when`.
//!
//! ```toml
//! when = { protocol = "tcp", flags = "S", without = "A", direction = "opener",
//!          port = [53, "5000-5010"], source_port = 123, destination_port = 123, size = "1-" }
//! ```
//! A packet must match every field. `port` matches either end. Flags are letters as in tcpdump, with
//! `A` or `.` for ACK: those of `flags` must be set, those of `without` must not. `size` is the payload
//! in bytes.

use super::read::Wrong;
use sidon_traffic::{
    TcpFlags, excerpt,
    flow::protocol,
    monitor::machine::{Direction, Ports, When},
};
use std::ops::RangeInclusive;
use toml::{Spanned, de::DeValue};

type Value<'a> = Spanned<DeValue<'a>>;

/// Names of the fields.
const WORDS: [&str; 8] = [
    "protocol",
    "port",
    "source_port",
    "destination_port",
    "flags",
    "without",
    "direction",
    "size",
];

/// Reads the packets of an event.
pub(super) fn read(value: &Value<'_>) -> Result<When, Wrong> {
    let Some(table) = value.get_ref().as_table() else {
        let what = "expected a test of packets, such as { protocol = \"tcp\", flags = \"S\" }";
        return Err(Wrong::new(what, value.span()));
    };
    let mut when = When::default();
    for (word, value) in table {
        match &**word.get_ref() {
            "protocol" => when.protocol = Some(protocol_of(value)?),
            "port" => when.ports = ports(value)?,
            "source_port" => when.source_ports = ports(value)?,
            "destination_port" => when.destination_ports = ports(value)?,
            "flags" => when.flags = flags(value)?,
            "without" => when.without = flags(value)?,
            "direction" => {
                when.direction = Some(match value.get_ref().as_str() {
                    Some("opener") => Direction::Opener,
                    Some("responder") => Direction::Responder,
                    _ => {
                        let what = "expected \"opener\" or \"responder\"";
                        return Err(Wrong::new(what, value.span()));
                    }
                });
            }
            "size" => {
                let Some(range) = range(value, u32::MAX.into()) else {
                    let what = "expected a number of bytes, such as 0, \"1-\" or \"100-1500\"";
                    return Err(Wrong::new(what, value.span()));
                };
                when.payload = *range.start() as u32..=*range.end() as u32;
            }
            other => {
                let other = excerpt::word(other);
                let what = format!("expected one of {}, got {other:?}", WORDS.join(", "));
                return Err(Wrong::new(what, word.span()));
            }
        }
    }
    Ok(when)
}

/// A whole number that is not below zero.
pub(super) fn number(value: &Value<'_>) -> Option<u64> {
    let number = value.get_ref().as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn protocol_of(value: &Value<'_>) -> Result<u8, Wrong> {
    if let Some(name) = value.get_ref().as_str() {
        let what = || {
            let name = excerpt::word(name);
            format!("there is no protocol {name:?}; use a name such as tcp, or a number")
        };
        let none = || Wrong::new(what(), value.span());
        return protocol::number(name).ok_or_else(none);
    }
    let number = number(value).and_then(|number| u8::try_from(number).ok());
    number.ok_or_else(|| Wrong::new("expected the name or the number of a protocol", value.span()))
}

/// A port, a range, or a list of them. An empty list means all ports.
fn ports(value: &Value<'_>) -> Result<Ports, Wrong> {
    let one = |value: &Value<'_>| match range(value, u16::MAX.into()) {
        Some(range) => Ok(*range.start() as u16..=*range.end() as u16),
        None => {
            let what = "expected a port, such as 53 or \"5000-5010\", or a list of them";
            Err(Wrong::new(what, value.span()))
        }
    };
    match value.get_ref().as_array() {
        Some(list) if list.is_empty() => Ok(Ports::default()),
        Some(list) => list.iter().map(one).collect(),
        None => Ok([one(value)?].into_iter().collect()),
    }
}

/// A number, or two with a dash between them. Either of the two may be missing.
fn range(value: &Value<'_>, most: u64) -> Option<RangeInclusive<u64>> {
    let range = match value.get_ref().as_str() {
        None => {
            let number = number(value)?;
            number..=number
        }
        Some(text) => {
            let (first, last) = text.split_once('-')?;
            let end = |text: &str, none| match text.trim() {
                "" => Some(none),
                text => text.parse().ok(),
            };
            end(first, 0)?..=end(last, most)?
        }
    };
    (!range.is_empty() && *range.end() <= most).then_some(range)
}

fn flags(value: &Value<'_>) -> Result<TcpFlags, Wrong> {
    let wrong = || Wrong::new("expected TCP flags, letters of FSRPAUEW", value.span());
    let mut flags = TcpFlags::default();
    for letter in value.get_ref().as_str().ok_or_else(wrong)?.chars() {
        flags = flags.with(match letter {
            'F' => TcpFlags::FIN,
            'S' => TcpFlags::SYN,
            'R' => TcpFlags::RST,
            'P' => TcpFlags::PSH,
            'A' | '.' => TcpFlags::ACK,
            'U' => TcpFlags::URG,
            'E' => TcpFlags::ECE,
            'W' => TcpFlags::CWR,
            _ => return Err(wrong()),
        });
    }
    Ok(flags)
}
