//! A number of distinct elements with the interval that contains the truth.

use std::fmt;

/// A number of distinct elements, with an interval that contains the truth for 99% of the seeds.
///
/// If both ends are equal, the number is exact.
/// ```
/// use sidon::count::Interval;
///
/// assert_eq!(Interval { least: 5, value: 5, most: 5 }.to_string(), "= 5");
/// assert_eq!(Interval { least: 90, value: 97, most: 110 }.to_string(), "~ 97 (90 to 110)");
/// assert_eq!(Interval { least: 0, value: 0, most: 30 }.to_string(), "<= 30");
/// assert_eq!(Interval { least: 9, value: 9, most: u64::MAX }.to_string(), ">= 9");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Interval {
    /// The lower end of the interval.
    pub least: u64,
    /// The most likely number.
    pub value: u64,
    /// The upper end of the interval. At `u64::MAX`, there is no upper end.
    pub most: u64,
}

impl Interval {
    /// An interval of one number.
    pub(crate) fn exact(value: u64) -> Self {
        Interval { least: value, value, most: value }
    }

    /// Whether the interval contains `number`.
    pub fn contains(&self, number: u64) -> bool {
        self.least <= number && number <= self.most
    }

    /// Whether both ends are equal, so that the number is exact.
    pub fn is_exact(&self) -> bool {
        self.least == self.most && self.most < u64::MAX
    }
}

/// Prints `=` before an exact number, `<=` or `>=` before a bound, and `~` before an estimate.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Interval { least, most: u64::MAX, .. } => write!(f, ">= {least}"),
            Interval { least, most, .. } if least == most => write!(f, "= {most}"),
            Interval { value: 0, most, .. } => write!(f, "<= {most}"),
            Interval { least, value, most } => write!(f, "~ {value} ({least} to {most})"),
        }
    }
}
