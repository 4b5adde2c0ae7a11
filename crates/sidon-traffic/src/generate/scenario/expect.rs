//! Expected incidents of a scenario, and their comparison with the alarms of a run.
//!
//! An incident has a kind and a subject. A `must` names its subject exactly: an attack on all of
//! 198.18.0.0/20 is named by that prefix, not by one of its hosts. A `may` allows every part of its
//! subject. An incident that neither a `must` nor a `may` names is wrong.

use super::Scenario;
use std::{collections::BTreeSet, fmt, net::IpAddr, str::FromStr};

/// An address or a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// The first address.
    first: IpAddr,
    /// The bits of the address that belong to the prefix.
    length: u32,
}

/// The bits of an address, and their number.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (address.to_bits().into(), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

impl Prefix {
    /// Whether `other` is this prefix or a part of it.
    pub fn covers(&self, other: &Prefix) -> bool {
        let ((own, width), (its, other_width)) = (bits(self.first), bits(other.first));
        let differ = (own ^ its).checked_shr(width - self.length).unwrap_or(0);
        width == other_width && self.length <= other.length && differ == 0
    }
}

impl From<IpAddr> for Prefix {
    fn from(first: IpAddr) -> Self {
        Prefix { first, length: bits(first).1 }
    }
}

/// An address, or an address, a slash and a length. The bits after the length must be zero.
impl FromStr for Prefix {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let first = address.parse().map_err(drop)?;
        let (number, width) = bits(first);
        let length = length.map_or(Ok(width), str::parse).map_err(drop)?;
        let rest = width.checked_sub(length).ok_or(())?;
        let is_zero = rest == 0 || number.trailing_zeros() >= rest;
        if is_zero { Ok(Prefix { first, length }) } else { Err(()) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.length == bits(self.first).1 {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}/{}", self.first, self.length),
        }
    }
}

/// An incident that a monitor named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm {
    /// The kind, such as `syn_flood`.
    pub kind: String,
    /// The address or the prefix that it names.
    pub subject: Prefix,
}

/// Incidents that are expected: one of these kinds, at one of these subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The kinds.
    pub kinds: Vec<String>,
    /// The subjects.
    pub subjects: Vec<Prefix>,
}

impl Expected {
    /// Whether the alarm has one of the kinds and exactly one of the subjects.
    pub fn names(&self, alarm: &Alarm) -> bool {
        self.kinds.contains(&alarm.kind) && self.subjects.contains(&alarm.subject)
    }

    /// Whether the alarm has one of the kinds, and a part of one of the subjects.
    fn allows(&self, alarm: &Alarm) -> bool {
        let covers = |subject: &Prefix| subject.covers(&alarm.subject);
        self.kinds.contains(&alarm.kind) && self.subjects.iter().any(covers)
    }
}

/// An incident that must be named.
#[derive(Debug, Clone, PartialEq)]
pub struct Must {
    /// The incident.
    pub expected: Expected,
    /// The flows that are its evidence.
    pub flows: String,
    /// The number of these flows that must be followed, in expectation, for the incident to be
    /// required.
    pub followed: u64,
    /// The most nanoseconds from the start of these flows to the event; `None` without a limit.
    pub within_ns: Option<u64>,
    /// The most incidents of this description.
    pub most: u64,
    /// Words that the incident must contain.
    pub says: Vec<String>,
    /// Names of figures of its evidence, with their least and greatest values.
    pub figures: Vec<(String, [u64; 2])>,
}

/// The alarms of a run, compared with the expectations of its scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Alarms that must or may be raised and were.
    pub right: Vec<Alarm>,
    /// Alarms that were raised and name anybody else.
    pub wrong: Vec<Alarm>,
    /// Expectations for which no alarm was raised.
    pub missing: Vec<Must>,
    /// Those of the missing ones that had enough evidence.
    pub missed: Vec<Must>,
}

impl Scenario {
    /// Compares the alarms of a run with the expectations. `unit` is that of the packets; one in
    /// `2^level` connections was followed. Times, words and figures are not compared
    /// here: `scripts/attacks` reads them from the program's output.
    pub fn judge(&self, raised: &BTreeSet<Alarm>, unit: u64, level: u32) -> Judgement {
        let known = |alarm: &&Alarm| {
            self.must.iter().any(|must| must.expected.names(alarm))
                || self.may.iter().any(|may| may.allows(alarm))
        };
        let evidence = |must: &&Must| {
            let flows = self.flows(&must.flows).map(|flows| flows.number.of(unit));
            let flows = flows.fold(0, u64::saturating_add);
            flows.checked_shr(level).unwrap_or(0) >= must.followed
        };
        let is_raised = |must: &Must| raised.iter().any(|alarm| must.expected.names(alarm));
        let missing = || self.must.iter().filter(|must| !is_raised(must));
        Judgement {
            right: raised.iter().filter(known).cloned().collect(),
            wrong: raised.iter().filter(|alarm| !known(alarm)).cloned().collect(),
            missing: missing().cloned().collect(),
            missed: missing().filter(evidence).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap_or_else(|()| panic!("{text}"))
    }

    #[test]
    fn prefixes_cover_their_parts_and_nothing_else() {
        for (outer, inner, expected) in [
            ("198.18.0.0/20", "198.18.15.255", true),
            ("198.18.0.0/20", "198.18.16.0", false),
            ("198.18.0.0/20", "198.18.0.0/20", true),
            ("198.18.0.0/20", "198.18.0.0/19", false),
            ("0.0.0.0/0", "255.0.0.0/8", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::/32", true),
            ("2001:db8::/64", "2001:db8::1:0:0:1", true),
            ("2001:db8::/64", "2001:db8:0:1::1", false),
            ("10.0.0.1", "10.0.0.1/32", true),
        ] {
            assert_eq!(prefix(outer).covers(&prefix(inner)), expected, "{outer} {inner}");
        }
        for text in ["10.0.0.0/33", "10.0.0.1/8", "::1/64", "10.0.0.0/-1", "10.0.0", "/8", ""] {
            assert_eq!(text.parse::<Prefix>(), Err(()), "{text}");
        }
        for text in ["10.0.0.0/8", "10.0.0.1", "0.0.0.0/0", "::/0", "2001:db8::/32"] {
            assert_eq!(prefix(text).to_string(), text);
        }
    }
}
