//! Reads a scenario from TOML text.

use super::{Alarm, Choice, Flows, Must, Number, SECOND, Scenario, Step, size};
use crate::{excerpt::word, files::input, flow::protocol, packet::TcpFlags, text};
use std::{
    fmt,
    fs::File,
    net::IpAddr,
    ops::Range,
    path::{Path, PathBuf},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The longest scenario in seconds: a week.
const LONGEST: f64 = 604_800.0;
/// The most flows of one kind, and the most repetitions of a packet.
const MOST: u64 = 1 << 32;
/// The longest chain of files that include each other.
const DEEPEST: usize = 4;
/// The most files of a scenario, and the most bytes of each.
const FILES_MAX: usize = 64;
const FILE_MAX: u64 = 1 << 20;
/// Nanoseconds between two packets of a flow, unless the file says otherwise.
const GAP: u64 = 20_000;

type Value<'a> = Spanned<DeValue<'a>>;

/// Why a file is not a scenario.
#[derive(Debug)]
pub struct ScenarioError {
    path: PathBuf,
    /// The line, if the content is wrong.
    line: Option<usize>,
    what: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", text::path(&self.path))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for ScenarioError {}

/// What is wrong, and where in the text.
struct Wrong(String, Range<usize>);

impl Wrong {
    /// The error, with the file and the line.
    fn at(self, path: &Path, text: &str) -> ScenarioError {
        let Wrong(what, span) = self;
        let before = text.get(..span.start).unwrap_or(text);
        let line = Some(1 + before.matches('\n').count());
        ScenarioError { path: path.to_owned(), line, what }
    }
}

fn wrong<T>(what: impl Into<String>, span: Range<usize>) -> Result<T, Wrong> {
    Err(Wrong(what.into(), span))
}

impl Scenario {
    /// Reads a file, and the files that it includes.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let (path, mut scenario) = (path.as_ref(), EMPTY);
        add(&mut scenario, path, 0)?;
        scenario.complete(path)
    }

    /// Reads a text that includes no files. Errors call it `scenario`.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let (path, mut scenario) = (Path::new("scenario"), EMPTY);
        let included = content(&mut scenario, text, true).map_err(|wrong| wrong.at(path, text))?;
        if !included.is_empty() {
            let what = "a text cannot include files; read a file instead".to_owned();
            return Err(ScenarioError { path: path.to_owned(), line: None, what });
        }
        scenario.complete(path)
    }

    /// Refuses names of flows that do not exist.
    fn complete(self, path: &Path) -> Result<Self, ScenarioError> {
        let mut names = self.must.iter().map(|must| &must.flows).chain(&self.stay);
        match names.find(|name| self.flows(name).next().is_none()) {
            Some(name) => {
                let what = format!("there are no flows with the name {:?}", word(name));
                Err(ScenarioError { path: path.to_owned(), line: None, what })
            }
            None => Ok(self),
        }
    }
}

const EMPTY: Scenario = Scenario {
    name: String::new(),
    flows: Vec::new(),
    must: Vec::new(),
    may: Vec::new(),
    stay: Vec::new(),
    files: Vec::new(),
};

/// Adds the content of a file to the scenario. The outermost file gives the name.
fn add(scenario: &mut Scenario, path: &Path, depth: usize) -> Result<(), ScenarioError> {
    let error = |what| ScenarioError { path: path.to_owned(), line: None, what };
    scenario.files.push(path.to_owned());
    if scenario.files.len() > FILES_MAX {
        return Err(error(format!("more than {FILES_MAX} files are included; use fewer")));
    }
    let file = File::open(path).map_err(|why| error(why.to_string()))?;
    let text = input::text(file, FILE_MAX).map_err(|why| error(why.to_string()))?;
    let included = content(scenario, &text, depth == 0).map_err(|wrong| wrong.at(path, &text))?;
    if depth == DEEPEST && !included.is_empty() {
        return Err(error(format!("more than {DEEPEST} files include each other")));
    }
    for name in included {
        // A file from elsewhere must not choose which files are read.
        if Path::new(&name).file_name() != Some(name.as_ref()) {
            let name = word(&name);
            let what =
                format!("cannot include {name:?}: type the name of a file in the same folder");
            return Err(error(what));
        }
        add(scenario, &path.with_file_name(name), depth + 1)?;
    }
    Ok(())
}

/// Adds the content of a text to the scenario. Returns the names of the included files.
fn content(scenario: &mut Scenario, text: &str, outermost: bool) -> Result<Vec<String>, Wrong> {
    let table = DeTable::parse(text)
        .map_err(|why| Wrong(why.message().to_owned(), why.span().unwrap_or(0..0)))?;
    let whole = Fields { table: table.get_ref(), span: table.span() };
    whole.only(&["name", "include", "flows", "must", "may", "stay"])?;
    if outermost {
        scenario.name = whole.required("name", text_of)?;
    }
    for fields in whole.tables("flows")? {
        scenario.flows.push(flows(&fields)?);
    }
    for fields in whole.tables("must")? {
        fields.only(&["kind", "subject", "flows", "followed"])?;
        scenario.must.push(Must {
            alarm: alarm(&fields)?,
            flows: fields.required("flows", text_of)?,
            followed: fields.optional("followed", 0, |value| number(value, MOST))?,
        });
    }
    for fields in whole.tables("may")? {
        fields.only(&["kind", "subject"])?;
        scenario.may.push(alarm(&fields)?);
    }
    for fields in whole.tables("stay")? {
        fields.only(&["flows"])?;
        scenario.stay.push(fields.required("flows", text_of)?);
    }
    whole.optional("include", Vec::new(), |value| match value.get_ref().as_array() {
        Some(list) => list.iter().map(text_of).collect(),
        None => wrong("expected a list of file names", value.span()),
    })
}

fn alarm(fields: &Fields<'_>) -> Result<Alarm, Wrong> {
    let subject = fields.required("subject", |value| match text_of(value)?.parse() {
        Ok(address) => Ok(address),
        Err(_) => wrong("expected an address", value.span()),
    })?;
    Ok(Alarm { kind: fields.required("kind", text_of)?, subject })
}

fn flows(fields: &Fields<'_>) -> Result<Flows, Wrong> {
    fields.only(&[
        "name",
        "count",
        "units",
        "from",
        "until",
        "protocol",
        "source",
        "source_port",
        "destination",
        "destination_port",
        "packets",
    ])?;
    let count = fields.optional("count", None, |value| number(value, MOST).map(Some))?;
    let units = fields.optional("units", None, |value| decimal(value, 1e6).map(Some))?;
    let number = match (count, units) {
        (Some(count), None) => Number::Count(count),
        (None, Some(units)) => Number::Units(units),
        _ => return wrong("expected either count or units", fields.span.clone()),
    };
    let from = fields.required("from", seconds)?;
    let until = fields.optional("until", from, seconds)?;
    if until < from {
        return wrong("until is before from", fields.span.clone());
    }
    let source = fields.required("source", addresses)?;
    let destination = fields.required("destination", addresses)?;
    let is_v4 = source.1;
    if is_v4 != destination.1 {
        return wrong("source and destination are of different IP versions", fields.span.clone());
    }
    let protocol = fields.required("protocol", |value| match (&*text_of(value)?, is_v4) {
        ("tcp", _) => Ok(protocol::TCP),
        ("udp", _) => Ok(protocol::UDP),
        ("icmp", true) => Ok(protocol::ICMP),
        ("icmp", false) => Ok(protocol::ICMPV6),
        _ => wrong("expected tcp, udp or icmp", value.span()),
    })?;
    let any = Choice { first: 1_024, more: 64_511, in_turn: false };
    let none = Choice { first: 0, more: 0, in_turn: false };
    let ports = if protocol::has_ports(protocol) {
        [fields.optional("source_port", any, ports)?, fields.required("destination_port", ports)?]
    } else {
        [none; 2]
    };
    let mut packets = Vec::new();
    for step in fields.tables("packets")? {
        packets.push(self::step(&step, packets.is_empty(), protocol, is_v4)?);
    }
    if packets.is_empty() {
        return wrong("the flows have no packets", fields.span.clone());
    }
    if size::lasts_ns(&packets) > (LONGEST * SECOND as f64) as u64 {
        return wrong("a flow lasts longer than a week", fields.span.clone());
    }
    let name = fields.optional("name", String::new(), text_of)?;
    let addresses = [source.0, destination.0];
    let time_ns = [from, until];
    Ok(Flows { name, number, time_ns, protocol, addresses, is_v4, ports, packets })
}

fn step(fields: &Fields<'_>, first: bool, protocol: u8, is_v4: bool) -> Result<Step, Wrong> {
    fields.only(&["flags", "reply", "payload", "after", "repeat", "fragment"])?;
    let flag = |value: &Value<'_>| match value.get_ref().as_bool() {
        Some(flag) => Ok(flag),
        None => wrong("expected true or false", value.span()),
    };
    let flags = match protocol {
        protocol::TCP => fields.required("flags", flags)?,
        _ => TcpFlags(0),
    };
    let fragment = fields.optional("fragment", false, flag)?;
    if fragment && !is_v4 {
        return wrong("only packets of IPv4 can be fragments", fields.span.clone());
    }
    Ok(Step {
        after_ns: fields.optional("after", if first { 0 } else { GAP }, seconds)?,
        repeat: fields.optional("repeat", 1, |value| match number(value, MOST - 1)? {
            0 => wrong("expected at least one packet", value.span()),
            repeat => Ok(repeat as u32),
        })?,
        reply: fields.optional("reply", false, flag)?,
        flags,
        payload: fields.optional("payload", 0, |value| number(value, 1_400))? as u32,
        fragment,
    })
}

/// A table, and where it is in the text.
struct Fields<'a> {
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

impl<'a> Fields<'a> {
    /// Refuses fields with other names.
    fn only(&self, names: &[&str]) -> Result<(), Wrong> {
        let known = |name: &str| names.contains(&name);
        match self.table.keys().find(|name| !known(name.get_ref())) {
            Some(name) => {
                let what = format!("{:?} is not one of {}", word(name.get_ref()), names.join(", "));
                wrong(what, name.span())
            }
            None => Ok(()),
        }
    }

    fn optional<T>(
        &self,
        name: &str,
        default: T,
        read: impl FnOnce(&Value<'a>) -> Result<T, Wrong>,
    ) -> Result<T, Wrong> {
        self.table.get(name).map_or(Ok(default), read)
    }

    fn required<T>(
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
    fn tables(&self, name: &str) -> Result<Vec<Fields<'a>>, Wrong> {
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

fn text_of(value: &Value<'_>) -> Result<String, Wrong> {
    match value.get_ref().as_str() {
        Some(text) => Ok(text.to_owned()),
        None => wrong("expected a text", value.span()),
    }
}

fn number(value: &Value<'_>, most: u64) -> Result<u64, Wrong> {
    let number = value.get_ref().as_integer();
    let number = number.and_then(|one| u64::from_str_radix(one.as_str(), one.radix()).ok());
    match number.filter(|&number| number <= most) {
        Some(number) => Ok(number),
        None => wrong(format!("expected a whole number up to {most}"), value.span()),
    }
}

fn decimal(value: &Value<'_>, most: f64) -> Result<f64, Wrong> {
    let float = value.get_ref().as_float().and_then(|one| one.as_str().parse().ok());
    let number = float.or_else(|| number(value, 1 << 53).ok().map(|number| number as f64));
    match number.filter(|number| (0.0..=most).contains(number)) {
        Some(number) => Ok(number),
        None => wrong(format!("expected a number from 0 to {most}"), value.span()),
    }
}

/// A time in seconds, as nanoseconds.
fn seconds(value: &Value<'_>) -> Result<u64, Wrong> {
    Ok((decimal(value, LONGEST)? * SECOND as f64) as u64)
}

fn flags(value: &Value<'_>) -> Result<TcpFlags, Wrong> {
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
fn addresses(value: &Value<'_>) -> Result<(Choice, bool), Wrong> {
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

fn ports(value: &Value<'_>) -> Result<Choice, Wrong> {
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
