//! A number in a report, with its certainty.
//!
//! | mark | kind | meaning |
//! |---|---|---|
//! | `=` | `exact` | the truth |
//! | `<=` | `at_most` | the truth is in the interval, whose upper end is shown |
//! | `>=` | `at_least` | the truth is in the interval, whose lower end is shown |
//! | `~` | `estimate` | the interval holds the truth with the probability that the text states |
//! | `?` | `unknown` | no bound is known |
//!
//! The screen, the page, JSON, CSV and metrics print every figure from this type.
//!
//! A count stops at [`CEILING`] and then means this or more. A figure whose upper end reaches the
//! ceiling has no upper bound: every constructor returns a lower bound instead.

use serde_json::{Value, json};
use sidon::count::Bounds;
use std::fmt;

/// The largest count: 2^64 - 1. Every sum of counts stops here, and then means this or more.
pub const CEILING: u64 = u64::MAX;

/// The certainty of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The truth.
    Exact,
    /// An upper bound.
    AtMost,
    /// A lower bound.
    AtLeast,
    /// An estimate with an interval.
    Estimate,
    /// A number without any bound.
    Unknown,
}

impl Kind {
    /// The name in JSON, CSV and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Exact => "exact",
            Kind::AtMost => "at_most",
            Kind::AtLeast => "at_least",
            Kind::Estimate => "estimate",
            Kind::Unknown => "unknown",
        }
    }

    /// The mark on the screen and on the page.
    pub fn mark(self) -> &'static str {
        match self {
            Kind::Exact => "=",
            Kind::AtMost => "<=",
            Kind::AtLeast => ">=",
            Kind::Estimate => "~",
            Kind::Unknown => "?",
        }
    }
}

/// A number with its certainty and the interval of the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    value: u64,
    least: u64,
    /// `None` without an upper bound.
    most: Option<u64>,
    kind: Kind,
}

impl Figure {
    /// The truth; at the ceiling a lower bound.
    pub fn exact(value: u64) -> Self {
        if value == CEILING {
            return Figure::at_least(value, None);
        }
        Figure { value, least: value, most: Some(value), kind: Kind::Exact }
    }

    /// An upper bound of a truth that is not below `least`; exact if the two are equal, and a lower
    /// bound if `most` is the ceiling.
    pub fn at_most(least: u64, most: u64) -> Self {
        if most == CEILING {
            return Figure::at_least(least, None);
        }
        let kind = if least == most { Kind::Exact } else { Kind::AtMost };
        Figure { value: most, least: least.min(most), most: Some(most), kind }
    }

    /// A lower bound of a truth that is not above `most`, if that is known; exact if the two are
    /// equal.
    pub fn at_least(least: u64, most: Option<u64>) -> Self {
        let most = most.filter(|most| (*most).max(least) < CEILING);
        let kind = if most == Some(least) { Kind::Exact } else { Kind::AtLeast };
        Figure { value: least, least, most: most.map(|most| most.max(least)), kind }
    }

    /// An estimate with the interval of the truth, which is widened to contain the estimate; a lower
    /// bound if the upper end is the ceiling.
    pub fn estimate(value: u64, least: u64, most: u64) -> Self {
        let (least, most) = (least.min(value), most.max(value));
        if most == CEILING {
            return Figure::at_least(least, None);
        }
        Figure { value, least, most: Some(most), kind: Kind::Estimate }
    }

    /// A number without any bound.
    pub fn unknown(value: u64) -> Self {
        Figure { value, least: 0, most: None, kind: Kind::Unknown }
    }

    /// The number.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// The certainty.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The lower end of the interval.
    pub fn least(&self) -> u64 {
        self.least
    }

    /// The upper end of the interval, if there is one.
    pub fn most(&self) -> Option<u64> {
        self.most
    }

    /// Whether the interval contains `truth`.
    pub fn allows(&self, truth: u64) -> bool {
        truth >= self.least && self.most.is_none_or(|most| truth <= most)
    }

    /// The kind and the interval as one JSON object.
    pub fn to_json(&self) -> Value {
        json!({ "kind": self.kind.name(), "interval": [self.least, self.most] })
    }

    /// Sets field `name` of a JSON object to the number, and `name_figure` to its kind and interval.
    pub fn set(&self, object: &mut Value, name: &str) {
        object[name] = self.value.into();
        object[format!("{name}_figure")] = self.to_json();
    }
}

impl From<Bounds> for Figure {
    fn from(bounds: Bounds) -> Self {
        Figure::at_most(bounds.least, bounds.most)
    }
}

/// Prints the mark and the number. The alternate form `{:#}` adds the interval of an estimate, unless
/// it is a single number.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.mark(), grouped(self.value))?;
        match self.most {
            Some(most) if f.alternate() && self.kind == Kind::Estimate && self.least < most => {
                write!(f, " [{}, {}]", grouped(self.least), grouped(most))
            }
            _ => Ok(()),
        }
    }
}

/// A whole number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_prints_its_mark_and_its_interval() {
        let cases = [
            (Figure::exact(1234), "= 1,234", json!([1234, 1234])),
            (Figure::at_most(5, 1000), "<= 1,000", json!([5, 1000])),
            (Figure::at_least(5, None), ">= 5", json!([5, null])),
            (Figure::at_least(5, Some(9)), ">= 5", json!([5, 9])),
            (Figure::estimate(10, 8, 13), "~ 10 [8, 13]", json!([8, 13])),
            (Figure::estimate(10, 10, 10), "~ 10", json!([10, 10])),
            (Figure::unknown(7), "? 7", json!([0, null])),
        ];
        for (figure, text, interval) in cases {
            assert_eq!(format!("{figure:#}"), text);
            assert_eq!(figure.to_json()["interval"], interval);
            assert_eq!(figure.to_json()["kind"], figure.kind().name());
            assert!(figure.allows(figure.value()));
        }
    }

    #[test]
    fn a_figure_that_reaches_the_ceiling_is_a_lower_bound() {
        let ends = [0, 7, CEILING - 1, CEILING];
        for (least, most) in ends.into_iter().flat_map(|a| ends.map(|b| (a, b))) {
            for figure in [
                Figure::exact(most),
                Figure::at_most(least, most),
                Figure::at_least(least, Some(most)),
                Figure::estimate(7, least, most),
                Figure::estimate(most, least, 9),
                Figure::from(Bounds { least, most }),
            ] {
                let is_lower = figure.kind() == Kind::AtLeast && figure.value() == figure.least();
                assert!(figure.most() < Some(CEILING), "{figure}");
                assert_eq!(figure.most().is_none(), figure.allows(CEILING), "{figure}");
                assert!(is_lower || figure.most().is_some(), "{figure}");
            }
        }
        assert_eq!(Figure::exact(CEILING).to_string(), ">= 18,446,744,073,709,551,615");
    }

    #[test]
    fn bounds_that_meet_are_exact() {
        assert_eq!(Figure::at_most(7, 7), Figure::exact(7));
        assert_eq!(Figure::at_least(7, Some(7)), Figure::exact(7));
        assert_ne!(Figure::estimate(7, 7, 7).kind(), Kind::Exact);
        assert!(!Figure::at_most(5, 9).allows(4) && !Figure::at_most(5, 9).allows(10));
    }
}
