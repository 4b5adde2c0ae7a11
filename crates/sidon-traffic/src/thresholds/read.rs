//! Reads thresholds from TOML text.

use super::{ALLOW_MAX, Allow, FIELDS, Floor, NETWORKS_MAX, Thresholds};
use crate::{Prefix, excerpt::word, files::input, monitor::incidents::KINDS, text};
use std::{
    fmt,
    fs::File,
    ops::Range,
    path::{Path, PathBuf},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The most bytes of a file.
const FILE_MAX: u64 = 1 << 20;
/// The most bytes of the name of a network.
const NAME_MAX: usize = 48;
/// The largest floor that is a number of packets, bytes or targets.
const MOST: u64 = 1 << 40;
/// The longest window, in seconds: a day.
const LONGEST: u64 = 86_400;

type Value<'a> = Spanned<DeValue<'a>>;

/// Why a file does not contain thresholds: the file, the line and the reason.
#[derive(Debug)]
pub struct ThresholdsError {
    path: PathBuf,
    /// The line, if the content is wrong.
    line: Option<usize>,
    what: String,
}

impl fmt::Display for ThresholdsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", text::path(&self.path))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for ThresholdsError {}

/// What is wrong, and where in the text.
struct Wrong(String, Range<usize>);

fn wrong<T>(what: impl Into<String>, span: Range<usize>) -> Result<T, Wrong> {
    Err(Wrong(what.into(), span))
}

impl Thresholds {
    /// Reads an open file. `path` is its name in errors.
    pub fn read(file: File, path: &Path) -> Result<Self, ThresholdsError> {
        let error = |what| ThresholdsError { path: path.to_owned(), line: None, what };
        let text = input::text(file, FILE_MAX).map_err(|why| error(why.to_string()))?;
        Thresholds::of(&text, path)
    }

    /// Reads a text. Errors call it `thresholds`.
    pub fn parse(text: &str) -> Result<Self, ThresholdsError> {
        Thresholds::of(text, Path::new("thresholds"))
    }

    fn of(text: &str, path: &Path) -> Result<Self, ThresholdsError> {
        content(text).map_err(|Wrong(what, span)| {
            let before = text.get(..span.start).unwrap_or(text);
            let line = Some(1 + before.matches('\n').count());
            ThresholdsError { path: path.to_owned(), line, what }
        })
    }
}

fn content(text: &str) -> Result<Thresholds, Wrong> {
    let table = DeTable::parse(text)
        .map_err(|why| Wrong(why.message().to_owned(), why.span().unwrap_or(0..0)))?;
    let mut thresholds = Thresholds::default();
    for (name, value) in table.get_ref() {
        match name.get_ref().as_ref() {
            "false_accusations" => thresholds.false_accusations = decimal(value, 1e6)?,
            "allow" => thresholds.allow = rules(value)?,
            "networks" => thresholds.networks = networks(value)?,
            other => {
                let Some(floor) = thresholds.floor_mut(other) else {
                    let kinds = KINDS.join(", ");
                    let what = format!(
                        "{:?} is not one of false_accusations, allow, networks, {kinds}",
                        word(other)
                    );
                    return wrong(what, name.span());
                };
                change(floor, other, table_of(value)?)?;
            }
        }
    }
    Ok(thresholds)
}

/// Changes the floor of a kind to the values of a table.
fn change(floor: &mut Floor, kind: &str, table: &DeTable<'_>) -> Result<(), Wrong> {
    let default = Floor::of(kind);
    for (name, value) in table {
        let span = name.span();
        let name = name.get_ref().as_ref();
        if name == "enabled" {
            let Some(flag) = value.get_ref().as_bool() else {
                return wrong("expected true or false in enabled", value.span());
            };
            floor.enabled = flag;
            continue;
        }
        if default.field(name) == 0.0 {
            let used = FIELDS.iter().filter(|(name, _)| default.field(name) != 0.0);
            let used: Vec<_> = used.map(|(name, _)| *name).collect();
            let used = used.join(", ");
            let what = format!("{:?} is not one of enabled, {used} in [{kind}]", word(name));
            return wrong(what, span);
        }
        let named = |Wrong(what, span)| Wrong(format!("{what} in {name}"), span);
        let count = |most| whole(value, most).map_err(named);
        match name {
            "per_second" => floor.per_second = count(MOST)?,
            "bytes_per_second" => floor.bytes_per_second = count(MOST)?,
            "count" => floor.count = count(MOST)?,
            "targets" => floor.targets = count(MOST)?,
            "window" => floor.window = count(LONGEST)?,
            "holds" => floor.holds = count(LONGEST)?,
            "ratio" => floor.ratio = decimal(value, 1.0).map_err(named)?,
            _ => floor.factor = decimal(value, 1e6).map_err(named)?,
        }
    }
    Ok(())
}

fn rules(value: &Value<'_>) -> Result<Vec<Allow>, Wrong> {
    let rule = |text: &str, span| match text.parse() {
        Ok(rule) => Ok(rule),
        Err(why) => wrong(format!("{why} in allow"), span),
    };
    let rules: Vec<Allow> = list(value, "allow", rule)?;
    if rules.len() > ALLOW_MAX {
        return wrong(format!("more than {ALLOW_MAX} rules in allow; use fewer"), value.span());
    }
    Ok(rules)
}

fn networks(value: &Value<'_>) -> Result<Vec<(String, Prefix)>, Wrong> {
    let mut networks = Vec::new();
    for (name, value) in table_of(value)? {
        let span = name.span();
        let name = name.get_ref().as_ref();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_plain) {
            let what = format!(
                "{:?} is no name of a network; use up to {NAME_MAX} letters, digits, - and _",
                word(name)
            );
            return wrong(what, span);
        }
        let network = |text: &str, span| match text.parse() {
            Ok(network) => Ok(network),
            Err(why) => wrong(format!("{why} in {name}"), span),
        };
        let own: Vec<Prefix> = list(value, name, network)?;
        networks.extend(own.into_iter().map(|network| (name.to_owned(), network)));
        if networks.len() > NETWORKS_MAX {
            return wrong(format!("more than {NETWORKS_MAX} networks; use fewer"), value.span());
        }
    }
    Ok(networks)
}

/// A list of texts, or a single text.
fn list<T>(
    value: &Value<'_>,
    name: &str,
    read: impl Fn(&str, Range<usize>) -> Result<T, Wrong>,
) -> Result<Vec<T>, Wrong> {
    let one = |value: &Value<'_>| match value.get_ref().as_str() {
        Some(text) => read(text, value.span()),
        None => wrong(format!("expected a text, or a list of texts, in {name}"), value.span()),
    };
    match value.get_ref().as_array() {
        Some(items) => items.iter().map(one).collect(),
        None => Ok(vec![one(value)?]),
    }
}

fn table_of<'a, 'b>(value: &'b Value<'a>) -> Result<&'b DeTable<'a>, Wrong> {
    match value.get_ref().as_table() {
        Some(table) => Ok(table),
        None => wrong("expected a table", value.span()),
    }
}

/// A whole number from 1: to turn a kind off, a file says so.
fn whole(value: &Value<'_>, most: u64) -> Result<u64, Wrong> {
    let number = value.get_ref().as_integer();
    let number = number.and_then(|one| u64::from_str_radix(one.as_str(), one.radix()).ok());
    match number.filter(|number| (1..=most).contains(number)) {
        Some(number) => Ok(number),
        None => wrong(format!("expected a whole number from 1 to {most}"), value.span()),
    }
}

/// A number above 0.
fn decimal(value: &Value<'_>, most: f64) -> Result<f64, Wrong> {
    let float = value.get_ref().as_float().and_then(|one| one.as_str().parse().ok());
    let number = float.or_else(|| whole(value, 1 << 53).ok().map(|number| number as f64));
    match number.filter(|&number| number > 0.0 && number <= most) {
        Some(number) => Ok(number),
        None => wrong(format!("expected a number above 0, up to {most}"), value.span()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        let mut thresholds = Thresholds::default();
        assert_eq!(Thresholds::parse(&thresholds.print()).unwrap(), thresholds);
        assert_eq!(Thresholds::parse("").unwrap(), thresholds);
        let digest = thresholds.digest();
        thresholds.false_accusations = 0.003;
        thresholds.allow = vec!["10.0.0.0/8".parse().unwrap(), "::1: beacon".parse().unwrap()];
        thresholds.networks = ["10.0.0.0/8", "2001:db8::/32"]
            .map(|text| ("office".to_owned(), text.parse().unwrap()))
            .into();
        for kind in KINDS {
            let floor = thresholds.floor_mut(kind).unwrap();
            floor.enabled = false;
            floor.window = 7;
            if floor.ratio > 0.0 {
                floor.ratio = 0.123;
            }
        }
        assert_eq!(Thresholds::parse(&thresholds.print()).unwrap(), thresholds);
        assert_ne!(thresholds.digest(), digest);
    }

    #[test]
    fn errors_name_the_line_and_the_field() {
        let error = |text: &str| Thresholds::parse(text).unwrap_err().to_string();
        for (text, expected) in [
            ("\nfalse_accusations = 0", "thresholds:2: expected a number above 0, up to 1000000"),
            (
                "[syn_flood]\ncount = -1",
                "thresholds:2: expected a whole number from 1 to 1099511627776 in count",
            ),
            (
                "[syn_flood]\nratio = 1.5",
                "thresholds:2: expected a number above 0, up to 1 in ratio",
            ),
            (
                "[forged_syns]\ntargets = 1",
                "thresholds:2: \"targets\" is not one of enabled, count, window, holds in [forged_syns]",
            ),
            ("[syn_flood]\nenabled = 1", "thresholds:2: expected true or false in enabled"),
            ("syn_flood = 1", "thresholds:1: expected a table"),
            (
                "allow = [\"10.0.0.0/8\", 1]",
                "thresholds:1: expected a text, or a list of texts, in allow",
            ),
            (
                "[networks]\n\"a b\" = \"10.0.0.0/8\"",
                "thresholds:2: \"a b\" is no name of a network; use up to 48 letters, digits, - and _",
            ),
            (
                "[networks]\na = \"10.0.0.1/8\"",
                "thresholds:2: the address has bits beyond the prefix; set them to zero in a",
            ),
        ] {
            assert_eq!(error(text), expected);
        }
        assert!(error("flood = 1").starts_with("thresholds:1: \"flood\" is not one of "));
        assert!(
            error("allow = \"1.2.3.4: no\"").starts_with("thresholds:1: \"no\" is not one of ")
        );
        assert!(error("a").starts_with("thresholds:1: "), "{}", error("a"));
        let many = format!("allow = [{}]", "\"::1\",".repeat(65));
        assert_eq!(error(&many), "thresholds:1: more than 64 rules in allow; use fewer");
    }
}
