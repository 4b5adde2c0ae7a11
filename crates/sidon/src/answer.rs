//! The answers of structures, with their certainty.

use std::fmt;

/// The certainty of an answer.
///
/// Every structure that answers membership or states has a method `certainty`.
/// ```
/// use sidon::{Certainty, Seed, set::{Bloom, bloom}};
///
/// let mut seen = Bloom::new(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(1))?;
/// assert_eq!(seen.certainty(), Certainty::Certain);
/// seen.insert("10.0.0.1")?;
/// // Three of 1,000 bits are set: another key passes with a probability of 0.003^3.
/// assert_eq!(seen.certainty().to_string(), "wrong with a probability of at most 2.7e-8");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub enum Certainty {
    /// The answer is a fact.
    Certain,
    /// The answer is wrong with at most this probability, over the choice of the seed, for a key
    /// that was chosen without knowing the seed.
    WrongAtMost(f64),
}

impl Certainty {
    /// The probability of being wrong: 0 for `Certain`.
    pub fn error(self) -> f64 {
        match self {
            Certainty::Certain => 0.0,
            Certainty::WrongAtMost(rate) => rate,
        }
    }

    /// `Certain` for a rate of exactly zero, `WrongAtMost` for any other.
    #[doc(hidden)]
    pub fn from_rate(rate: f64) -> Self {
        if rate == 0.0 { Certainty::Certain } else { Certainty::WrongAtMost(rate) }
    }
}

/// `certain`, or the probability of being wrong, rounded up to two digits.
impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Certainty::Certain => write!(f, "certain"),
            Certainty::WrongAtMost(rate) => {
                write!(f, "wrong with a probability of at most {}", TwoDigits(*rate))
            }
        }
    }
}

/// A probability of two digits that is not below the one given.
struct TwoDigits(f64);

impl fmt::Display for TwoDigits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let round = |rate: f64| format!("{rate:.1e}").parse().unwrap_or(rate);
        let mut rate = round(self.0);
        if rate < self.0 {
            // The nearest number of two digits is below the probability: take the next one.
            let step: f64 = format!("1e{}", self.0.log10().floor() - 1.0).parse().unwrap_or(0.0);
            rate = round(rate + step);
        }
        if rate < 0.01 { write!(f, "{rate:e}") } else { write!(f, "{rate}") }
    }
}

/// The answer of a state map (a maplet) about a key.
///
/// ```
/// use sidon::Lookup;
///
/// assert_eq!(Lookup::State("open").to_string(), "open");
/// assert_eq!(Lookup::<u16>::Absent.to_string(), "absent");
/// assert_eq!(Lookup::<u16>::DontKnow.to_string(), "don't know");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Lookup<S> {
    /// The key is in this state.
    State(S),
    /// The key has no state.
    Absent,
    /// The cells of the key do not determine its state.
    DontKnow,
}

impl<S: fmt::Display> fmt::Display for Lookup<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lookup::State(state) => state.fmt(f),
            Lookup::Absent => f.pad("absent"),
            Lookup::DontKnow => f.pad("don't know"),
        }
    }
}

/// The side of the truth on which an [`Estimate`] may lie.
///
/// ```
/// use sidon::{Bound, Certainty, Estimate};
///
/// assert_eq!(Estimate::exact(5).bound, Bound::Exact);
/// assert_eq!(Estimate::at_most(5, 1, Certainty::Certain).bound, Bound::AtMost);
/// assert_eq!(Estimate::at_least(255).bound, Bound::AtLeast);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The value is the truth.
    Exact,
    /// The truth is at most the value.
    AtMost,
    /// The truth is at least the value less the slack: the counters of the key are at their
    /// ceiling.
    AtLeast,
}

/// A count with its bounds.
///
/// It prints the bounds that are known: `=`, `<=` or `>=`.
/// ```
/// use sidon::{Certainty, Estimate};
///
/// assert_eq!(Estimate::exact(5).to_string(), "= 5");
/// assert_eq!(Estimate::at_least(9).to_string(), ">= 9");
/// assert_eq!(Estimate::at_most(7, 2, Certainty::Certain).to_string(), "<= 7 and >= 5");
/// assert_eq!(
///     Estimate::at_most(7, 2, Certainty::WrongAtMost(0.0012)).to_string(),
///     "<= 7, and >= 5 except with a probability of at most 1.2e-3"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub struct Estimate {
    /// The count.
    pub value: u64,
    /// The side of the truth on which the value may lie. This is always a fact.
    pub bound: Bound,
    /// The most by which the value may exceed the truth, except with the probability in
    /// `certainty`.
    pub slack: u64,
    /// The certainty of the slack.
    pub certainty: Certainty,
}

impl Estimate {
    /// An exact count.
    #[doc(hidden)]
    pub fn exact(value: u64) -> Self {
        Estimate { value, bound: Bound::Exact, slack: 0, certainty: Certainty::Certain }
    }

    /// An upper bound of the count, which is at most `slack` above the truth.
    #[doc(hidden)]
    pub fn at_most(value: u64, slack: u64, certainty: Certainty) -> Self {
        Estimate { value, bound: Bound::AtMost, slack, certainty }
    }

    /// A count that stopped at the ceiling of its counter.
    #[doc(hidden)]
    pub fn at_least(value: u64) -> Self {
        Estimate { value, bound: Bound::AtLeast, slack: 0, certainty: Certainty::Certain }
    }
}

/// Exactly zero.
impl Default for Estimate {
    fn default() -> Self {
        Estimate::exact(0)
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { value, bound, slack, certainty } = *self;
        let least = value.saturating_sub(slack);
        let except = |f: &mut fmt::Formatter<'_>| match certainty {
            Certainty::WrongAtMost(rate) if least > 0 => {
                write!(f, " except with a probability of at most {}", TwoDigits(rate))
            }
            _ => Ok(()),
        };
        match (bound, certainty) {
            (Bound::Exact, _) => write!(f, "= {value}"),
            // Omits the lower bound 0.
            (Bound::AtMost, _) if least == 0 => write!(f, "<= {value}"),
            (Bound::AtMost, Certainty::Certain) => write!(f, "<= {value} and >= {least}"),
            (Bound::AtMost, _) => {
                write!(f, "<= {value}, and >= {least}")?;
                except(f)
            }
            (Bound::AtLeast, _) => {
                write!(f, ">= {least}")?;
                except(f)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_rounded_up_to_two_digits() {
        for (rate, text) in [
            (1.2e-3, "1.2e-3"),
            (1.2001e-3, "1.3e-3"),
            (1.29e-3, "1.3e-3"),
            (9.91e-3, "0.01"),
            (9.99e-12, "1e-11"),
            (1e-9, "1e-9"),
            (0.25, "0.25"),
            (0.333, "0.34"),
            (1.0, "1"),
            (f64::MIN_POSITIVE, "2.3e-308"),
            (f64::NAN, "NaN"),
        ] {
            let shown = TwoDigits(rate).to_string();
            assert_eq!(shown, text);
            assert!(rate.is_nan() || shown.parse::<f64>().unwrap() >= rate);
        }
        assert_eq!(Certainty::Certain.to_string(), "certain");
        assert_eq!(
            Certainty::WrongAtMost(1e-4).to_string(),
            "wrong with a probability of at most 1e-4"
        );
    }

    #[test]
    fn an_estimate_prints_the_bounds_that_are_known() {
        let rare = Certainty::WrongAtMost(0.02);
        let at_least =
            |value, slack, certainty| Estimate { slack, certainty, ..Estimate::at_least(value) };
        for (estimate, text) in [
            (Estimate::exact(0), "= 0"),
            (Estimate::at_most(7, 7, Certainty::Certain), "<= 7"),
            (Estimate::at_most(7, 7, rare), "<= 7"),
            (Estimate::at_most(7, 1, Certainty::Certain), "<= 7 and >= 6"),
            (
                Estimate::at_most(7, 1, rare),
                "<= 7, and >= 6 except with a probability of at most 0.02",
            ),
            (at_least(255, 5, rare), ">= 250 except with a probability of at most 0.02"),
            (at_least(255, 5, Certainty::Certain), ">= 250"),
            (at_least(255, 255, Certainty::Certain), ">= 0"),
        ] {
            assert_eq!(estimate.to_string(), text, "{estimate:?}");
        }
    }

    #[test]
    fn a_lookup_prints_the_state_and_keeps_to_the_width() {
        assert_eq!(format!("{:>3}|{:>8}", Lookup::State(7), Lookup::<u8>::Absent), "  7|  absent");
        assert_eq!(format!("{:12}|", Lookup::<u8>::DontKnow), "don't know  |");
    }

    #[test]
    fn a_rate_of_zero_is_a_fact() {
        assert_eq!(Certainty::from_rate(0.0), Certainty::Certain);
        assert_eq!(Certainty::from_rate(0.25).error(), 0.25);
        assert_eq!(Certainty::Certain.error(), 0.0);
        assert_eq!(Estimate::default(), Estimate::exact(0));
    }
}
