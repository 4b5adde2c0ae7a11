//! Codes interpret the value of a cell: as one sum ([`Sums`]), or as a count and a sum ([`Pairs`]).
//!
//! A code takes the value of a cell and a *mark*, the byte that represents a key's increment. It
//! tests whether the key may be among those added to the cell, by small tables that are computed
//! once. It also gives the value with the key, without the key, and merged with another cell.

use super::{
    super::increments::{INCREMENTS_MAX, Increments},
    overflow::Overflow,
};
use crate::Infeasible;

/// The widest cell.
pub(in crate::set) const WIDTH_MAX: u32 = 16;

/// The interpretation of a cell's value.
pub(crate) trait IncrementCode {
    /// The mark of each increment.
    fn marks(&self) -> &[u8];
    /// The largest value of the counter that overflows first.
    fn ceiling(&self) -> u64;
    /// Whether a key with this increment may be among those added to the cell.
    fn admits(&self, value: u64, mark: u8) -> bool;
    /// The test of `admits` as one word, if there is one. Bit `value + mark` is set if the key is
    /// not admitted, and sums beyond the word are admitted. The highest bit is not set.
    fn excluded(&self) -> Option<u64> {
        None
    }
    /// The value with one more key. `None` if it does not fit and the code does not pin.
    fn raise(&self, value: u64, mark: u8) -> Option<u64>;
    /// The value without the key. `None` if the cell shows that the key was not added.
    fn lower(&self, value: u64, mark: u8) -> Option<u64>;
    /// The value of both cells' keys. `None` if it does not fit and the code does not pin.
    fn join(&self, own: u64, other: u64) -> Option<u64>;
    /// Whether the cell is pinned, so that it excludes no key.
    fn is_pinned(&self, value: u64) -> bool;
    /// The share of increments that the cell admits.
    fn share(&self, value: u64) -> f64 {
        self.admitted(value) as f64 / self.marks().len() as f64
    }
    /// The number of increments that the cell admits.
    fn admitted(&self, value: u64) -> usize {
        self.marks().iter().filter(|&&mark| self.admits(value, mark)).count()
    }
}

/// One counter: the sum of its keys' increments.
///
/// It admits an increment if the rest of the sum is a sum again. For `[L, 2L - 1]`, this means that
/// the rest is zero, or at least `L`.
#[derive(Debug, Clone)]
pub(crate) struct Sums {
    /// The largest increment less each one.
    marks: [u8; INCREMENTS_MAX],
    count: usize,
    most: u8,
    /// Bit `most + rest`: whether the rest, which may be negative, is a sum. All rests beyond the
    /// table are.
    table: Box<[u64]>,
    /// Bit `value`: whether the value is a sum. All values beyond the table are.
    sums: Box<[u64]>,
    ceiling: u64,
    pins: bool,
}

impl Sums {
    /// The code of sums up to `ceiling`.
    pub(crate) fn new(
        increments: Increments,
        ceiling: u64,
        overflow: Overflow,
    ) -> Result<Self, Infeasible> {
        let most = increments.most() as usize;
        Infeasible::unless_within("increment", most as u64, 1, ceiling)?;
        let pins = overflow == Overflow::Pin;
        let reach = ceiling as usize + most;
        let sums = increments.sums(reach + 1);
        // A pinned counter admits all keys, and so do values that the table cannot distinguish from
        // it.
        let end = if pins { ceiling as usize } else { reach };
        let excluded = |index: usize| index < most || !sums[index - most];
        let mut code = Sums {
            marks: [0; INCREMENTS_MAX],
            count: increments.count(),
            most: most as u8,
            table: bits(end, |index| !excluded(index)),
            sums: bits(ceiling as usize + 1, |value| sums[value]),
            ceiling,
            pins,
        };
        for (i, &value) in increments.values().iter().enumerate() {
            code.marks[i] = most as u8 - value;
        }
        Ok(code)
    }

    /// Whether a cell can hold this value: a sum of increments, or the ceiling if it is pinned.
    ///
    /// Every operation keeps this true, even the removal of a key that was never inserted.
    #[inline(always)]
    pub(in crate::set) fn is_reachable(&self, value: u64) -> bool {
        let is_sum = bit(&self.sums, value as usize).unwrap_or(value <= self.ceiling);
        is_sum || self.is_pinned(value)
    }
}

/// A bit for each number below `end`, truncated after the last bit that is not set.
fn bits(end: usize, is_set: impl Fn(usize) -> bool) -> Box<[u64]> {
    let len = (0..end).rev().find(|&index| !is_set(index)).map_or(0, |last| last + 1);
    let mut words = vec![u64::MAX; len.div_ceil(64)];
    for index in (0..len).filter(|&index| !is_set(index)) {
        words[index / 64] &= !(1 << (index % 64));
    }
    words.into()
}

/// The bit of a number. `None` beyond the words.
#[inline(always)]
fn bit(words: &[u64], index: usize) -> Option<bool> {
    words.get(index / 64).map(|word| word >> (index % 64) & 1 == 1)
}

impl IncrementCode for Sums {
    #[inline(always)]
    fn marks(&self) -> &[u8] {
        &self.marks[..self.count]
    }

    fn ceiling(&self) -> u64 {
        self.ceiling
    }

    #[inline(always)]
    fn admits(&self, value: u64, mark: u8) -> bool {
        bit(&self.table, value as usize + usize::from(mark)).unwrap_or(true)
    }

    fn excluded(&self) -> Option<u64> {
        match *self.table {
            [] => Some(0),
            [word] if word >> 63 == 1 => Some(!word),
            _ => None,
        }
    }

    #[inline(always)]
    fn raise(&self, value: u64, mark: u8) -> Option<u64> {
        let sum = value + u64::from(self.most - mark);
        if sum > self.ceiling { self.pins.then_some(self.ceiling) } else { Some(sum) }
    }

    #[inline(always)]
    fn lower(&self, value: u64, mark: u8) -> Option<u64> {
        if self.is_pinned(value) {
            return Some(value);
        }
        let rest = value.checked_sub((self.most - mark).into());
        // With pins, `admits` is less exact: near the ceiling it admits all.
        rest.filter(|&rest| self.is_reachable(rest))
    }

    fn join(&self, own: u64, other: u64) -> Option<u64> {
        let sum = own + other;
        if sum > self.ceiling { self.pins.then_some(self.ceiling) } else { Some(sum) }
    }

    #[inline(always)]
    fn is_pinned(&self, value: u64) -> bool {
        self.pins && value == self.ceiling
    }
}

/// Two counters: the number of keys, in the lower bits, and the sum of their increments.
///
/// A cell of at most `examined` keys admits an increment if the rest of the sum is a sum of one key
/// less. The sum may be stored less the mean increment for each key, as a number around zero.
#[derive(Debug, Clone)]
pub(crate) struct Pairs {
    /// The increments themselves.
    marks: [u8; INCREMENTS_MAX],
    count: usize,
    /// The bits of both counters.
    keys_bits: u32,
    sum_bits: u32,
    /// The number subtracted from the sum for each key.
    centre: i64,
    /// The largest number of keys at which the sum is examined.
    examined: u64,
    /// Bit `(keys - 1) * stride + rest`: whether the rest is a sum of one key less.
    table: Box<[u64]>,
    stride: u64,
    pins: bool,
    increments: Increments,
}

/// The integers that fix a code of pairs.
#[derive(Debug, Clone, Copy)]
pub(in crate::set) struct PairShape {
    pub(in crate::set) increments: Increments,
    pub(in crate::set) keys_bits: u32,
    pub(in crate::set) sum_bits: u32,
    pub(in crate::set) examined: u32,
    pub(in crate::set) centred: bool,
    pub(in crate::set) overflow: Overflow,
}

/// The sums that this many bits keep.
#[inline(always)]
fn sums_kept(bits: u32, centre: i64) -> std::ops::RangeInclusive<i64> {
    let all = 1i64 << bits;
    if centre == 0 { 0..=all - 1 } else { 1 - all / 2..=all / 2 }
}

impl Pairs {
    pub(in crate::set) fn new(shape: PairShape) -> Result<Self, Infeasible> {
        let PairShape { increments, keys_bits, sum_bits, .. } = shape;
        Infeasible::unless_within("keys_bits", keys_bits.into(), 1, 8)?;
        Infeasible::unless_within("sum_bits", sum_bits.into(), 1, 16)?;
        let pins = shape.overflow == Overflow::Pin;
        let ceiling = (1u64 << keys_bits) - 1;
        // A pinned cell is all ones, so cells with the largest number of keys are not examined.
        let examined = u64::from(shape.examined).min(ceiling - u64::from(pins));
        let stride = examined.saturating_sub(1) * u64::from(increments.most()) + 1;
        let mut table = vec![0; (examined * stride).div_ceil(64) as usize];
        for (keys, sums) in (0..examined).zip(increments.levels()) {
            for rest in sums.iter() {
                let bit = keys * stride + rest;
                table[(bit / 64) as usize] |= 1 << (bit % 64);
            }
        }
        let mut marks = [0; INCREMENTS_MAX];
        marks[..increments.count()].copy_from_slice(increments.values());
        let centre = if shape.centred { increments.mean().into() } else { 0 };
        let code = Pairs {
            marks,
            count: increments.count(),
            keys_bits,
            sum_bits,
            centre,
            examined,
            table: table.into(),
            stride,
            pins,
            increments,
        };
        let (least, most) = (i64::from(increments.least()), i64::from(increments.most()));
        let fits = |&bits: &u32| {
            let range = sums_kept(bits, centre);
            range.contains(&(least - centre)) && range.contains(&(most - centre))
        };
        // Increments are below 2^8.
        let needed = (1..=9).find(fits).unwrap_or(16);
        Infeasible::unless_within("sum_bits", sum_bits.into(), needed.into(), 16)?;
        if shape.centred && !pins {
            // Keys may be removed in any order. If that can move the sum out of its range, the code
            // must pin.
            let far = (most - centre).max(centre - least) as u64 * ceiling;
            if far >= 1 << (sum_bits - 1) {
                let must = "be Pin, or the cell must have more sum_bits or fewer keys_bits";
                return Err(Infeasible::conflict("overflow", &shape.overflow, must));
            }
        }
        Ok(code)
    }

    /// This code without pins: it refuses cells that would leave their range.
    pub(crate) fn without_pins(self) -> Self {
        Pairs { pins: false, ..self }
    }

    /// The bits of the table.
    pub(in crate::set) fn table_bits(&self) -> u64 {
        self.examined * self.stride
    }

    /// The number of keys of a cell.
    #[inline(always)]
    pub(in crate::set) fn keys(&self, value: u64) -> u64 {
        value & self.keys_ceiling()
    }

    /// The sum as it is stored.
    #[inline(always)]
    fn kept(&self, value: u64) -> i64 {
        let field = (value >> self.keys_bits) as i64;
        let half = 1 << (self.sum_bits - 1);
        if self.centre != 0 && field > half { field - 2 * half } else { field }
    }

    /// The sum of the keys' increments.
    #[inline(always)]
    pub(in crate::set) fn sum(&self, value: u64) -> i64 {
        self.kept(value) + self.centre * self.keys(value) as i64
    }

    /// The bits of a stored sum. `None` if it is out of range.
    #[inline(always)]
    fn field(&self, kept: i64) -> Option<u64> {
        let mask = (1i64 << self.sum_bits) - 1;
        sums_kept(self.sum_bits, self.centre).contains(&kept).then_some((kept & mask) as u64)
    }

    fn keys_ceiling(&self) -> u64 {
        (1 << self.keys_bits) - 1
    }

    fn all_ones(&self) -> u64 {
        (1 << (self.keys_bits + self.sum_bits)) - 1
    }

    /// Whether a cell can hold this value: a number of keys and a sum of as many increments, or all
    /// ones if it is pinned.
    ///
    /// Every operation keeps this true. If a key is removed that was never inserted, a cell of
    /// `examined` keys or more may hold a sum that no increments have. That sum still lies between
    /// the least and the largest sum of as many increments, and has their remainder.
    pub(in crate::set) fn is_reachable(&self, value: u64) -> bool {
        let keys = self.keys(value);
        if self.is_pinned(value) {
            return true;
        }
        if keys < self.examined || self.examined == self.keys_ceiling() {
            let made = |&mark: &u8| self.admits(value, mark);
            return if keys == 0 { value == 0 } else { self.marks().iter().any(made) };
        }
        let in_range = self.is_in_range(keys, self.sum(value));
        in_range && self.increments.is_difference(self.sum(value) as u128, keys.into())
    }

    /// Whether `sum` lies between the least and the largest sum of `keys` increments.
    #[inline(always)]
    fn is_in_range(&self, keys: u64, sum: i64) -> bool {
        let keys = keys as i64;
        let [first, last] = [self.marks[0], self.marks[self.count - 1]].map(i64::from);
        (keys * first..=keys * last).contains(&sum)
    }

    #[inline(always)]
    fn pair(&self, keys: u64, kept: i64) -> Option<u64> {
        match self.field(kept) {
            Some(field) if keys <= self.keys_ceiling() => Some(field << self.keys_bits | keys),
            _ => self.pins.then(|| self.all_ones()),
        }
    }
}

impl IncrementCode for Pairs {
    #[inline(always)]
    fn marks(&self) -> &[u8] {
        &self.marks[..self.count]
    }

    fn ceiling(&self) -> u64 {
        self.keys_ceiling()
    }

    #[inline(always)]
    fn admits(&self, value: u64, mark: u8) -> bool {
        let keys = self.keys(value);
        if keys == 0 || keys > self.examined {
            return keys != 0;
        }
        let rest = self.sum(value) - i64::from(mark);
        // A negative rest becomes a large number here.
        if rest as u64 >= self.stride {
            return false;
        }
        let bit = (keys - 1) * self.stride + rest as u64;
        self.table.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    #[inline(always)]
    fn raise(&self, value: u64, mark: u8) -> Option<u64> {
        if self.is_pinned(value) {
            return Some(value);
        }
        let step = i64::from(mark) - self.centre;
        self.pair(self.keys(value) + 1, self.kept(value) + step)
    }

    #[inline(always)]
    fn lower(&self, value: u64, mark: u8) -> Option<u64> {
        if self.is_pinned(value) {
            return Some(value);
        }
        let increment = i64::from(mark);
        // If the other keys cannot have added the rest, this key is not among them.
        if !self.admits(value, mark)
            || !self.is_in_range(self.keys(value) - 1, self.sum(value) - increment)
        {
            return None;
        }
        self.pair(self.keys(value) - 1, self.kept(value) - increment + self.centre)
    }

    fn join(&self, own: u64, other: u64) -> Option<u64> {
        if self.is_pinned(own) || self.is_pinned(other) {
            return Some(self.all_ones());
        }
        self.pair(self.keys(own) + self.keys(other), self.kept(own) + self.kept(other))
    }

    #[inline(always)]
    fn is_pinned(&self, value: u64) -> bool {
        self.pins && value == self.all_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_says_of_a_range_what_lemma_1_says() {
        for least in 1..=16u32 {
            let increments = Increments::range(least).unwrap();
            let code = Sums::new(increments, 255, Overflow::Refuse).unwrap();
            assert_eq!(code.table.len(), 1, "{least}");
            let excluded = code.excluded().unwrap();
            for value in 0..256u64 {
                for (&mark, &increment) in code.marks().iter().zip(increments.values()) {
                    let rest = value as i64 - i64::from(increment);
                    let lemma = rest == 0 || rest >= i64::from(least);
                    assert_eq!(code.admits(value, mark), lemma, "{least}: {value} {increment}");
                    let index = (value + u64::from(mark)).min(63);
                    assert_eq!(excluded >> index & 1 == 0, lemma, "{least}: {value} {increment}");
                }
            }
        }
    }

    /// Compares `admits` with an enumeration of all multisets of up to six keys: a cell admits an
    /// increment if and only if some multiset with its value contains it.
    fn admits_what_enumeration_says(code: &impl IncrementCode) {
        let mut has = std::collections::HashMap::new();
        let mut all = vec![(0u64, 0u32)];
        for _ in 0..6 {
            let mut next = Vec::new();
            for &(value, met) in &all {
                for (which, &mark) in code.marks().iter().enumerate() {
                    let raised = code.raise(value, mark).unwrap();
                    assert_eq!(code.lower(raised, mark), Some(value));
                    next.push((raised, met | 1 << which));
                }
            }
            next.sort_unstable();
            next.dedup();
            for &(value, met) in &next {
                *has.entry(value).or_insert(0) |= met;
            }
            all = next;
        }
        for (value, met) in has {
            for (which, &mark) in code.marks().iter().enumerate() {
                assert_eq!(code.admits(value, mark), met >> which & 1 == 1, "{value} {which}");
            }
        }
    }

    #[test]
    fn pairs_admit_what_enumeration_says() {
        for values in [&[1, 4, 13, 15][..], &[1, 2, 15], &[3, 4], &[1]] {
            let increments = Increments::set(values).unwrap();
            for (sum_bits, centred) in [(8, false), (9, true)] {
                let overflow = Overflow::Refuse;
                let shape = PairShape {
                    increments,
                    keys_bits: 4,
                    sum_bits,
                    examined: 15,
                    centred,
                    overflow,
                };
                admits_what_enumeration_says(&Pairs::new(shape).unwrap());
            }
        }
    }

    #[test]
    fn pairs_beyond_the_examined_admit_all() {
        let increments = Increments::of([1, 4, 8, 13]);
        let shape = |examined| PairShape {
            increments,
            keys_bits: 4,
            sum_bits: 8,
            examined,
            centred: false,
            overflow: Overflow::Refuse,
        };
        let (basic, improved) = (Pairs::new(shape(3)).unwrap(), Pairs::new(shape(15)).unwrap());
        // Examples 4 and 7 of the paper: four keys that sum to 13, and one that adds 8.
        let four = 13 << 4 | 4;
        assert!(basic.admits(four, 8) && !improved.admits(four, 8));
        assert_eq!((basic.lower(four, 8), improved.lower(four, 8)), (Some(5 << 4 | 3), None));
        assert_eq!(basic.lower(12 << 4 | 4, 13), None, "the sum is smaller than the increment");
        assert_eq!(Pairs::new(shape(3)).unwrap().table_bits(), 3 * 27);
    }

    #[test]
    fn a_sum_that_passed_its_range_stays_useless() {
        let increments = Increments::of([1, 4, 13, 15]);
        let overflow = Overflow::Pin;
        let (keys_bits, sum_bits, examined) = (4, 6, 15);
        let shape =
            PairShape { increments, keys_bits, sum_bits, examined, centred: true, overflow };
        let code = Pairs::new(shape).unwrap();
        let mut value = 0;
        for _ in 0..4 {
            value = code.raise(value, 15).unwrap();
        }
        assert_eq!((code.keys(value), code.sum(value)), (4, 60));
        value = code.raise(value, 15).unwrap();
        assert!(code.is_pinned(value) && code.marks().iter().all(|&mark| code.admits(value, mark)));
        assert!(code.is_pinned(code.raise(value, 1).unwrap()));
        assert!(code.is_pinned(code.lower(value, 15).unwrap()));
        let refuse = PairShape { overflow: Overflow::Refuse, ..shape };
        assert!(Pairs::new(refuse).is_err());
    }

    #[test]
    fn pinned_sums_admit_all_and_never_change() {
        let increments = Increments::of([8, 12, 14, 15]);
        for ceiling in [15, 31, 63, 255] {
            let code = Sums::new(increments, ceiling, Overflow::Pin).unwrap();
            for &mark in code.marks() {
                assert!(code.admits(ceiling, mark));
                assert_eq!(code.raise(ceiling - 1, mark), Some(ceiling));
                assert_eq!(code.lower(ceiling, mark), Some(ceiling));
            }
        }
        assert!(Sums::new(increments, 7, Overflow::Pin).is_err());
    }
}
