//! Increments: the values of which a key adds one to each of its counters.
//!
//! If every key adds one, a counter is only a number of keys. If a key adds one of several values,
//! the sum often excludes some of them.
//! ```text
//! D = {4, 5, 6, 7}      counter 9: no key added 7, because 2 is no sum of D
//! ```
//! Three kinds of sets exclude many:
//!
//! - `[L, 2L - 1]`: a sum below `2L` is the increment of one key. A sum less one
//!   of its increments is zero or at least `L`, so the test needs no table.
//! - *B_h sequences* (Sidon sequences for `h = 2`): all sums of `h` values are distinct. The sum and the
//!   number of keys therefore determine all increments of up to `h` keys.
//! - *tilde-B_h sequences*: the sum alone determines them, whatever the number of keys.
//!
//! Graham, "B_h sequences", 1996; Rottenstreich et al., INFOCOM 2012, sections II and III.

use crate::Infeasible;
use std::fmt;

/// The most increments of a set.
pub(crate) const INCREMENTS_MAX: usize = 16;

/// A set of increments, in ascending order.
///
/// ```
/// use sidon::set::Increments;
///
/// // All sums of two of these values differ.
/// let pairs = Increments::set(&[14, 1, 5, 2])?;
/// assert_eq!(pairs, Increments::of([1, 2, 5, 14]));
/// assert_eq!(Increments::of([4, 5, 6, 7]).values(), [4, 5, 6, 7]);
/// assert_eq!(pairs.to_string(), "{1, 2, 5, 14}");
/// assert!(Increments::set(&[3, 3]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Increments {
    /// Unused values are zero.
    values: [u8; INCREMENTS_MAX],
    len: u8,
}

impl Increments {
    /// One: every key adds the same, and a counter is a number of keys.
    pub(crate) const UNIT: Increments = Increments::of([1]);

    /// `L` to `2L - 1`, for `L` from 1 to 16.
    #[cfg(test)]
    pub(crate) fn range(least: u32) -> Result<Self, Infeasible> {
        Infeasible::unless_within("increments", least.into(), 1, INCREMENTS_MAX as u64)?;
        let values: Vec<u8> = (least as u8..2 * least as u8).collect();
        Self::set(&values)
    }

    /// Any 1 to 16 values, distinct and not zero, in any order.
    pub fn set(values: &[u8]) -> Result<Self, Infeasible> {
        Infeasible::unless_within("increments", values.len() as u64, 1, INCREMENTS_MAX as u64)?;
        let mut sorted = [0; INCREMENTS_MAX];
        sorted[..values.len()].copy_from_slice(values);
        sorted[..values.len()].sort_unstable();
        let least = u64::from(sorted[0]);
        Infeasible::unless_within("increment", least, 1, u8::MAX.into())?;
        if let Some(twice) = sorted[..values.len()].windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Infeasible::conflict("increment", &twice[0], "differ from the others"));
        }
        Ok(Increments { values: sorted, len: values.len() as u8 })
    }

    /// A constant set, in ascending order.
    ///
    /// # Panics
    /// If there are no values, more than 16, or if they are not in ascending order
    /// from 1. In a constant, the compiler reports it.
    pub const fn of<const N: usize>(values: [u8; N]) -> Self {
        assert!(N >= 1 && N <= INCREMENTS_MAX, "1 to 16 increments");
        let mut all = [0; INCREMENTS_MAX];
        let mut i = 0;
        while i < N {
            let above = if i == 0 { 0 } else { values[i - 1] };
            assert!(values[i] > above, "increments are in ascending order");
            all[i] = values[i];
            i += 1;
        }
        Increments { values: all, len: N as u8 }
    }

    /// The values, in ascending order.
    pub fn values(&self) -> &[u8] {
        &self.values[..self.count()]
    }

    /// The number of values.
    pub(crate) fn count(&self) -> usize {
        usize::from(self.len)
    }

    /// The smallest value.
    pub(crate) fn least(&self) -> u32 {
        self.values[0].into()
    }

    /// The largest value.
    pub(crate) fn most(&self) -> u32 {
        self.values[self.count() - 1].into()
    }

    /// The mean, rounded half up.
    pub(crate) fn mean(&self) -> u32 {
        let (sum, count) = (self.values().iter().map(|&v| u32::from(v)).sum::<u32>(), self.count());
        (2 * sum + count as u32) / (2 * count as u32)
    }

    /// The largest number of addends, up to `most`, for which all sums are distinct; at least one.
    pub(crate) fn order(&self, most: u32) -> u32 {
        // Sums are distinct if there are as many as multisets of `addends` values.
        let (mut multisets, count) = (1u128, self.count() as u128);
        let levels = (1u32..=most).zip(self.levels().skip(1));
        let distinct = levels.take_while(|(addends, sums)| {
            let addends = u128::from(*addends);
            multisets = multisets.saturating_mul(count + addends - 1) / addends;
            u128::from(sums.len()) == multisets
        });
        distinct.count().max(1) as u32
    }

    /// The sets of all sums of 0, 1, 2, .. values.
    pub(super) fn levels(&self) -> impl Iterator<Item = Numbers> {
        let set = *self;
        std::iter::successors(Some(Numbers(vec![1])), move |sums| Some(sums.plus(set.values())))
    }

    /// Whether each number below a bound is a sum of any number of values. Zero is the sum of none.
    pub(crate) fn sums(&self, below: usize) -> Vec<bool> {
        let mut sums = vec![false; below.max(1)];
        sums[0] = true;
        for sum in 0..sums.len() {
            let reached =
                |&value: &u8| sum.checked_sub(value.into()).is_some_and(|rest| sums[rest]);
            sums[sum] |= self.values().iter().any(reached);
        }
        sums
    }

    /// The greatest common divisor of all differences between values; zero for a single value.
    ///
    /// Any `n` values sum up to `n * least` modulo this number, and exactly to that if it is zero.
    fn stride(&self) -> u32 {
        self.values().iter().fold(0, |divisor, &value| {
            let (mut one, mut two) = (divisor, u32::from(value) - self.least());
            while two > 0 {
                (one, two) = (two, one % two);
            }
            one
        })
    }

    /// Whether a sum of values less another sum of values can be `sum`, if the first has `more`
    /// addends than the second. Decided by remainders: a necessary condition, not a sufficient one.
    pub(super) fn is_difference(&self, sum: u128, more: u128) -> bool {
        let least = more.saturating_mul(self.least().into());
        match self.stride() {
            0 => sum == least,
            stride => sum % u128::from(stride) == least % u128::from(stride),
        }
    }

    /// The values as two fields of an image.
    pub(super) fn to_fields(self) -> [u64; 2] {
        let (low, high) = self.values.split_at(8);
        [low, high].map(|half| half.iter().rev().fold(0, |all, &v| all << 8 | u64::from(v)))
    }

    /// The inverse of [`to_fields`](Self::to_fields). `None` for fields that it never returns.
    pub(super) fn from_fields([low, high]: [u64; 2]) -> Option<Self> {
        let mut values = [0; INCREMENTS_MAX];
        values[..8].copy_from_slice(&low.to_le_bytes());
        values[8..].copy_from_slice(&high.to_le_bytes());
        let len = values.iter().position(|&value| value == 0).unwrap_or(values.len());
        let set = Increments::set(&values[..len]).ok()?;
        (set.values == values).then_some(set)
    }
}

/// A set of small numbers, one bit each.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers(Vec<u64>);

impl Numbers {
    fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The numbers, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.0.len() * 64).filter(|&number| self.contains(number)).map(|number| number as u64)
    }

    /// Each number plus each value, a word at a time.
    fn plus(&self, values: &[u8]) -> Self {
        let mut sums = vec![0; self.0.len() + 256 / 64 + 1];
        for &value in values {
            let (words, bits) = (usize::from(value) / 64, value % 64);
            for (i, word) in self.0.iter().enumerate() {
                sums[i + words] |= word << bits;
                // Two shifts, because a shift by 64 is not defined.
                sums[i + words + 1] |= word >> 1 >> (63 - bits);
            }
        }
        while sums.last() == Some(&0) {
            sums.pop();
        }
        Numbers(sums)
    }
}

/// Printed as a set: `{4, 5, 6, 7}`.
impl fmt::Display for Increments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.values().iter().map(u8::to_string).collect();
        write!(f, "{{{}}}", values.join(", "))
    }
}

impl fmt::Debug for Increments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Increments {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.values().serialize(serializer)
    }
}

/// A list of values, which [`Increments::set`] checks.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Increments {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = Vec::deserialize(deserializer)?;
        Increments::set(&values).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_their_order_by_hand() {
        let sums = Increments::of([3, 5]).sums(12);
        let numbers: Vec<_> = (0..12).filter(|&number| sums[number]).collect();
        assert_eq!(numbers, [0, 3, 5, 6, 8, 9, 10, 11]);
        // 1 + 1 + 4 = 2 + 2 + 2.
        assert_eq!(Increments::of([1, 2, 4]).order(9), 2);
        assert_eq!(Increments::of([1, 2, 5, 14]).order(9), 3);
        assert_eq!(Increments::range(4).unwrap().values(), [4, 5, 6, 7]);
        assert_eq!(Increments::of([1, 4, 13, 15]).mean(), 8);
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for values in [&[][..], &[0, 1], &[2, 2], &[1; 17]] {
            assert!(Increments::set(values).is_err(), "{values:?}");
        }
        assert!(Increments::range(0).is_err() && Increments::range(17).is_err());
        let set = Increments::set(&[15, 8, 14, 12]).unwrap();
        assert_eq!(set.to_string(), "{8, 12, 14, 15}");
        let [low, high] = set.to_fields();
        assert_eq!((low, high), (0x0f0e_0c08, 0));
        assert_eq!(Increments::from_fields([low, high]), Some(set));
        for fields in [[0x0c0f, 0], [0x0f_000c, 0], [low, 1], [0, 0], [0x0808, 0]] {
            assert_eq!(Increments::from_fields(fields), None, "{fields:x?}");
        }
        let full = Increments::range(16).unwrap();
        assert_eq!(Increments::from_fields(full.to_fields()), Some(full));
    }
}
