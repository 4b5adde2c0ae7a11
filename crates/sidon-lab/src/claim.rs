//! A number that a paper prints, the right value, and how close ours must come.
//!
//! The right value was recomputed independently of this project. Where a paper errs, its claim
//! keeps the printed number beside the right one and says why.

use std::{borrow::Cow, fmt};

/// What is printed, right or measured.
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
            Value::Numbers(numbers) => {
                let all: Vec<_> = numbers.iter().map(|&number| short(number)).collect();
                write!(f, "{}", all.join(", "))
            }
        }
    }
}

/// A number as one reads it: whole if it is whole, else six digits, as a power of ten where it is
/// small.
pub fn short(number: f64) -> String {
    if number == 0.0 || (number.fract() == 0.0 && number.abs() < 1e15) {
        return format!("{number:.0}");
    }
    if number.abs() < 1e-4 {
        return format!("{number:.4e}");
    }
    let before = number.abs().log10().floor() as i32;
    let text = format!("{number:.*}", (5 - before).max(0) as usize);
    let text = text.trim_end_matches('0');
    text.trim_end_matches('.').to_owned()
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

/// How the printed number stands to the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It is right.
    Right,
    /// It is wrong, for this reason.
    Wrong(&'static str),
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
    /// What is claimed, in our words.
    pub about: &'static str,
    /// What is printed.
    pub paper: Value,
    /// What is right.
    pub expected: Value,
    /// How close is close enough.
    pub tolerance: Tolerance,
    /// How the two stand to each other.
    pub said: Said,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let all = [0.0, 3.0, 0.001_463_771_4, 52.646_019, 1.680_777e-27, 0.75, 2_654_208.0];
        let read: Vec<_> = all.into_iter().map(short).collect();
        let expected = ["0", "3", "0.00146377", "52.646", "1.6808e-27", "0.75", "2654208"];
        assert_eq!(read, expected);
        assert_eq!(Value::list(&[0.001, 0.002]).to_string(), "0.001, 0.002");
    }
}
