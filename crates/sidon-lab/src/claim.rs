//! A number that a paper prints, the right value, and how close ours must come.
//!
//! The right value was recomputed independently of this project. Where a paper errs, its claim
//! keeps the printed number beside the right one and says why.

use std::{borrow::Cow, fmt};

/// A printed, right or measured value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// One number.
    Number(f64),
    /// Several: a range's two ends, or a column.
    Numbers(Cow<'static, [f64]>),
    /// Words in place of a number.
    Text(&'static str),
    /// Nothing is printed.
    Nothing,
}

impl Value {
    /// Several numbers known when the program is written.
    pub const fn list(numbers: &'static [f64]) -> Self {
        Value::Numbers(Cow::Borrowed(numbers))
    }

    /// The numbers in it; none if there are only words.
    pub fn numbers(&self) -> &[f64] {
        match self {
            Value::Number(number) => std::slice::from_ref(number),
            Value::Numbers(numbers) => numbers,
            Value::Text(_) | Value::Nothing => &[],
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Number(number as f64)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => write!(f, "{text}"),
            Value::Nothing => write!(f, "-"),
            Value::Number(number) => write!(f, "{}", short(*number)),
            Value::Numbers(numbers) => match **numbers {
                [first, _, .., last] if numbers.len() > 2 => {
                    write!(f, "{}, .., {}", short(first), short(last))
                }
                ref few => {
                    let few: Vec<_> = few.iter().map(|&number| short(number)).collect();
                    write!(f, "{}", few.join(", "))
                }
            },
        }
    }
}

/// A number as text: whole, or six digits, with a power of ten if it is small. More digits if six would
/// make it whole.
pub fn short(number: f64) -> String {
    if number == 0.0 || (number.fract() == 0.0 && number.abs() < 1e15) {
        return format!("{number:.0}");
    }
    if number.abs() < 1e-4 {
        let text = format!("{number:.4e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", without_zeros(digits));
    }
    let decimals = (5 - number.abs().log10().floor() as i32).max(0) as usize;
    let texts = [decimals, 12].map(|decimals| format!("{number:.decimals$}"));
    let [text, long] = texts.each_ref().map(|text| without_zeros(text));
    if text.contains('.') { text } else { long }.to_owned()
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// How close a measurement must come to the right value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// The same number.
    Exact,
    /// Within this share of the right value.
    Relative(f64),
    /// Within this distance of it.
    Absolute(f64),
    /// Not above this.
    AtMost(f64),
    /// As near as chance puts it: the experiment's interval decides alone.
    Chance,
}

/// The relation of the printed number to the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It is right.
    Right,
    /// It is wrong, for this reason.
    Wrong(&'static str),
    /// It has too few digits, with this effect.
    Rounded(&'static str),
    /// It depends on a choice that the paper does not state. The right value is that of ours.
    Underspecified(&'static str),
    /// The paper prints no number; the right one is ours.
    Nothing(&'static str),
}

/// A claim of a paper. The first three digits of `id` name the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Its name, unique among all papers.
    pub id: &'static str,
    /// Where in the paper: section or table.
    pub place: &'static str,
    /// The claim in our words.
    pub about: &'static str,
    /// The printed value.
    pub paper: Value,
    /// The right value.
    pub expected: Value,
    /// How close is close enough.
    pub tolerance: Tolerance,
    /// The relation of the two.
    pub said: Said,
}

impl Claim {
    /// A claim whose printed number is right.
    pub const fn new(
        id: &'static str,
        place: &'static str,
        about: &'static str,
        paper: Value,
        expected: Value,
        tolerance: Tolerance,
    ) -> Self {
        Claim { id, place, about, paper, expected, tolerance, said: Said::Right }
    }

    /// The claim with its printed number marked as wrong.
    #[must_use]
    pub const fn wrong(mut self, why: &'static str) -> Self {
        self.said = Said::Wrong(why);
        self
    }

    /// The claim with its printed number marked as rounded too far.
    #[must_use]
    pub const fn rounded(mut self, why: &'static str) -> Self {
        self.said = Said::Rounded(why);
        self
    }

    /// The claim with its printed number marked as dependent on a choice that the paper does not state.
    #[must_use]
    pub const fn underspecified(mut self, why: &'static str) -> Self {
        self.said = Said::Underspecified(why);
        self
    }

    /// The claim marked as one without a printed number.
    #[must_use]
    pub const fn unprinted(mut self, why: &'static str) -> Self {
        self.said = Said::Nothing(why);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let all = [0.0, 3.0, 0.001_463_771_4, 52.646_019, 5.6e-31, 0.75, 2_654_208.0, 0.999_999_98];
        let read: Vec<_> = all.into_iter().map(short).collect();
        let expected =
            ["0", "3", "0.00146377", "52.646", "5.6e-31", "0.75", "2654208", "0.99999998"];
        assert_eq!(read, expected);
        assert_eq!(Value::list(&[0.001, 0.002]).to_string(), "0.001, 0.002");
        assert_eq!(Value::list(&[1.0, 0.5, 0.25]).to_string(), "1, .., 0.25");
    }
}
