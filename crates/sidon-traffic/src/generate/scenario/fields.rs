//! The values of a scenario's TOML text: tables with known fields, numbers within limits, times,
//! addresses, ports and flags.

use super::{Choice, SECOND, ScenarioError};
use crate::{excerpt::word, packet::TcpFlags};
use std::{net::IpAddr, ops::Range, path::Path};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The longest scenario in seconds: a week.
pub(super) const LONGEST: f64 = 604_800.0;

/// The most bytes of payload. Headers fit beside them in the longest packet of IP.
const PAYLOAD: u64 = 65_000;

pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// What is wrong, and where in the text.
pub(super) struct Wrong(pub(super) String, pub(super) Range<usize>);

impl Wrong {
    /// The error, with the file and the line.
    pub(super) fn at(self, path: &Path, text: &str) -> ScenarioError {
        let Wrong(what, span) = self;
        let before = text.get(..span.start).unwrap_or(text);
        let line = Some(1 + before.matches('\n').count());
        ScenarioError::new(path, line, what)
    }
}

pub(super) fn wrong<T>(what: impl Into<String>, span: Range<usize>) -> Result<T, Wrong> {
    Err(Wrong(what.into(), span))
}

/// A table, and where it is in the text.
pub(super) struct Fields<'a> {
    pub(super) table: &'a DeTable<'a>,
    pub(super) span: Range<usize>,
}

impl<'a> Fields<'a> {
    /// Refuses fields with other names.
    pub(super) fn only(&self, names: &[&str]) -> Result<(), Wrong> {
        let known = |name: &str| names.contains(&name);
        match self.table.keys().find(|name| !known(name.get_ref())) {
            Some(name) => {
                let what = format!("{:?} is not one of {}", word(name.get_ref()), names.join(", "));
                wrong(what, name.span())
            }
            None => Ok(()),
        }
    }

    pub(super) fn optional<T>(
        &self,
        name: &str,
        default: T,
        read: impl FnOnce(&Value<'a>) -> Result<T, Wrong>,
    ) -> Result<T, Wrong> {
        self.table.get(name).map_or(Ok(default), read)
    }

    pub(super) fn required<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Value<'a>) -> Result<T, Wrong>,
    ) -> Result<T, Wrong> {
        match self.table.get(name) {
            Some(value) => read(value),
            None => wrong(format!("the field {name} is missing"), self.span.clone()),
        }
    }

    /// The list of tables in a field; empty without the field.
    pub(super) fn tables(&self, name: &str) -> Result<Vec<Fields<'a>>, Wrong> {
        let Some(list) = self.table.get(name) else { return Ok(Vec::new()) };
        let Some(items) = list.get_ref().as_array() else {
            return wrong(format!("expected a list of tables in {name}"), list.span());
        };
        let table = |item: &'a Value<'a>| match item.get_ref().as_table() {
            Some(table) => Ok(Fields { table, span: item.span() }),
            None => wrong(format!("expected a table in {name}"), item.span()),
        };
        items.iter().map(table).collect()
    }
}

pub(super) fn text_of(value: &Value<'_>) -> Result<String, Wrong> {
    match value.get_ref().as_str() {
        Some(text) => Ok(text.to_owned()),
        None => wrong("expected a text", value.span()),
    }
}

pub(super) fn number(value: &Value<'_>, most: u64) -> Result<u64, Wrong> {
    let number = value.get_ref().as_integer();
    let number = number.and_then(|one| u64::from_str_radix(one.as_str(), one.radix()).ok());
    match number.filter(|&number| number <= most) {
        Some(number) => Ok(number),
        None => wrong(format!("expected a whole number up to {most}"), value.span()),
    }
}

pub(super) fn decimal(value: &Value<'_>, most: f64) -> Result<f64, Wrong> {
    let float = value.get_ref().as_float().and_then(|one| one.as_str().parse().ok());
    let number = float.or_else(|| number(value, 1 << 53).ok().map(|number| number as f64));
    match number.filter(|number| (0.0..=most).contains(number)) {
        Some(number) => Ok(number),
        None => wrong(format!("expected a number from 0 to {most}"), value.span()),
    }
}

/// A time in seconds, as nanoseconds.
pub(super) fn seconds(value: &Value<'_>) -> Result<u64, Wrong> {
    Ok((decimal(value, LONGEST)? * SECOND as f64) as u64)
}

pub(super) fn flags(value: &Value<'_>) -> Result<TcpFlags, Wrong> {
    let mut flags = TcpFlags(0);
    for letter in text_of(value)?.chars() {
        flags = flags.with(match letter {
            'S' => TcpFlags::SYN,
            '.' => TcpFlags::ACK,
            'F' => TcpFlags::FIN,
            'R' => TcpFlags::RST,
            'P' => TcpFlags::PSH,
            'U' => TcpFlags::URG,
            'E' => TcpFlags::ECE,
            'W' => TcpFlags::CWR,
            _ => return wrong("expected flags such as S, S., ., P., F. or R", value.span()),
        });
    }
    Ok(flags)
}

/// The text without `in turn` at its end, and whether it had that.
fn in_turn(text: &str) -> (&str, bool) {
    text.strip_suffix("in turn").map_or((text, false), |rest| (rest.trim_end(), true))
}

/// An address or a prefix, and whether it is of IPv4.
pub(super) fn addresses(value: &Value<'_>) -> Result<(Choice, bool), Wrong> {
    let text = text_of(value)?;
    let (text, in_turn) = in_turn(&text);
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let expected = || {
        wrong(
            "expected an address or a prefix, such as 10.0.0.0/8 or 10.0.0.0/8 in turn",
            value.span(),
        )
    };
    let (number, bits) = match address.parse() {
        Ok(IpAddr::V4(address)) => (u128::from(address.to_bits()), 32),
        Ok(IpAddr::V6(address)) => (address.to_bits(), 128),
        Err(_) => return expected(),
    };
    let Ok(length) = length.map_or(Ok(bits), str::parse::<u32>) else { return expected() };
    if length > bits {
        return expected();
    }
    let more = match bits - length {
        128 => u128::MAX,
        free => (1 << free) - 1,
    };
    Ok((Choice { first: number & !more, more, in_turn }, bits == 32))
}

pub(super) fn ports(value: &Value<'_>) -> Result<Choice, Wrong> {
    if let Ok(port) = number(value, u64::from(u16::MAX)) {
        return Ok(Choice { first: port.into(), more: 0, in_turn: false });
    }
    let expected =
        || wrong("expected a port, or ports such as 1-1024 or 1-1024 in turn", value.span());
    let Some(text) = value.get_ref().as_str() else { return expected() };
    let (text, in_turn) = in_turn(text);
    let range = text.split_once('-').map(|(from, to)| (from.parse::<u16>(), to.parse::<u16>()));
    match range {
        Some((Ok(from), Ok(to))) if from <= to => {
            Ok(Choice { first: from.into(), more: (to - from).into(), in_turn })
        }
        _ => expected(),
    }
}

pub(super) fn flag(value: &Value<'_>) -> Result<bool, Wrong> {
    match value.get_ref().as_bool() {
        Some(flag) => Ok(flag),
        None => wrong("expected true or false", value.span()),
    }
}

/// The least and the most bytes of payload: a number, or a range such as `40-1400`.
pub(super) fn payload(value: &Value<'_>) -> Result<[u32; 2], Wrong> {
    if value.get_ref().as_str().is_none() {
        return number(value, PAYLOAD).map(|bytes| [bytes as u32; 2]);
    }
    let text = text_of(value)?;
    let range = text.split_once('-').map(|(from, to)| (from.parse::<u32>(), to.parse::<u32>()));
    match range {
        Some((Ok(from), Ok(to))) if from <= to && u64::from(to) <= PAYLOAD => Ok([from, to]),
        _ => wrong(format!("expected a range such as 40-1400, up to {PAYLOAD}"), value.span()),
    }
}
