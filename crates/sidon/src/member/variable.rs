//! A counting filter with variable increments: a set with deletes in about thirty bits per key.
//!
//! Like a counting Bloom filter, but a key adds one of several values to each of its counters. Its
//! digest selects the value. A key is contained only if each of its counters can be a sum that
//! includes its own increment.
//! ```text
//! D = {4, 5, 6, 7}      | . 9 . . 5 . . . 7 . . |     a key that adds 7, 5, 7 is absent:
//!                           ^     ^       ^           9 - 7 = 2 is no sum of D
//! ```
//! The counters are wider than those that count, but far fewer are needed. At 0.1 % false positives
//! and four increments, the filter takes 42 bits per key with `{4, 5, 6, 7}` and 37 with `{8, 12,
//! 14, 15}`. A counting filter takes 58. Testing a counter takes one bit of a small table: whether
//! the counter less the increment is a sum of increments.
//!
//! A removal that would leave a counter that is no sum of increments is refused. So every counter
//! stays such a sum, or pinned, even if a key was removed that was never inserted and yet passed.
//! The total of all counters then no longer bounds the number of keys. It keeps its remainder
//! modulo the differences between increments, which the number of keys implies, unless a counter is
//! pinned.
//!
//! A key whose positions coincide adds to the counter each time. [`Overflow`] selects the action at
//! a counter's ceiling. Rottenstreich, Kanizo and Keslassy, "The variable-increment counting Bloom
//! filter", INFOCOM 2012, section III: VI-CBF.

use super::{
    code::{self, Sums},
    coded::{self, Act, Coded, Plain, Store, coded_filter},
    counting::Overflow,
    increments::Increments,
    mapping::{self, Spread},
    table::Table,
};
use crate::{
    Certainty, Infeasible, Key, Malformed, Refused, Seed,
    bytes::{self, Image},
    cells::Packed,
    ops::{Contains, Insert, Merge, Remove},
};

/// The widest counter.
pub const WIDTH_MOST: u32 = code::WIDTH_MOST;

/// The integers that fix a filter of variable increments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of counters of the table: at least 1.
    pub counters: u64,
    /// The number of counters of a key: 1 to 32.
    pub hashes: u32,
    /// The bits of a counter, up to [`WIDTH_MOST`]; the largest increment must fit.
    pub width: u32,
    /// The values that a key may add.
    pub increments: Increments,
    /// The action at a counter's ceiling.
    pub overflow: Overflow,
    /// The positions of a key's counters.
    pub spread: Spread,
}

/// A multiset that keys can enter and leave. See the [module](self).
#[derive(Debug)]
pub struct Variable {
    shape: Shape,
    filter: Coded<Sums>,
}

impl Variable {
    /// An empty filter.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let code = shape.code()?;
        let Shape { counters, hashes, width, spread, .. } = shape;
        let store = Plain(Table::zeroed(counters, width, hashes, spread)?);
        Ok(Variable { shape, filter: Coded::new(store, code, seed) })
    }

    /// Removes every key, and unpins every counter.
    pub fn clear(&mut self) {
        self.filter.clear();
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The number of keys stored, with repetitions.
    pub fn stored(&self) -> u64 {
        self.filter.stored
    }

    /// The share of counters that are not zero. Reads the whole table.
    pub fn fill(&self) -> f64 {
        self.filter.fill()
    }

    /// The false-positive rate, from the present counters. Reads the whole table.
    pub fn false_positive_rate(&self) -> f64 {
        self.filter.false_positive_rate()
    }

    /// The number of pinned counters, which stay pinned; 0 under [`Overflow::Refuse`]. Reads the
    /// whole table.
    pub fn pinned(&self) -> u64 {
        self.filter.pinned()
    }

    #[cfg(test)]
    pub(super) fn is_asked_by_rows(&self) -> bool {
        self.filter.rows.is_some()
    }

    /// The largest counter. Reads the whole table.
    pub fn largest(&self) -> u64 {
        self.filter.values().max().unwrap_or(0)
    }

    /// The probability that `contains` answers `true` for a key that was never inserted, from the
    /// present counters. Reads the whole table.
    pub fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.false_positive_rate())
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Variable { shape: self.shape, filter: self.filter.try_clone()? })
    }
}

impl Shape {
    /// The bytes of the table, or `u64::MAX` if there are more.
    pub fn bytes(&self) -> u64 {
        Packed::bytes_of(self.counters, self.width)
    }

    /// Checks all but the memory.
    pub(crate) fn check(self) -> Result<(), Infeasible> {
        self.code()?;
        mapping::check(("counters", self.counters), self.width, self.hashes, self.spread)
            .map(|_| ())
    }

    pub(crate) fn code(self) -> Result<Sums, Infeasible> {
        Infeasible::unless_within("width", self.width.into(), 1, WIDTH_MOST.into())?;
        Sums::new(self.increments, (1 << self.width) - 1, self.overflow)
    }
}

coded_filter!(Variable);

impl Merge for Variable {
    /// Adds counter to counter. Under [`Overflow::Refuse`] a sum above the ceiling refuses the
    /// whole merge; under [`Overflow::Pin`] it is pinned.
    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        let (own, theirs) = (self.shape, other.shape);
        super::same("seed", self.filter.seed == other.filter.seed)?;
        super::same("counters", own.counters == theirs.counters)?;
        super::same("hashes", own.hashes == theirs.hashes)?;
        super::same("width", own.width == theirs.width)?;
        super::same("increments", own.increments == theirs.increments)?;
        super::same("overflow", own.overflow == theirs.overflow)?;
        super::same("spread", own.spread == theirs.spread)?;
        self.filter.merge(&other.filter)
    }
}

impl Image for Variable {
    const KIND: u16 = 5;

    fn to_bytes(&self) -> Vec<u8> {
        let Shape { counters, hashes, width, increments, overflow, spread } = self.shape;
        let [low, high] = increments.to_fields();
        let (overflow, lines) = (coded::overflow_field(overflow), coded::spread_field(spread));
        let stored = self.filter.stored;
        let fields = [counters, hashes.into(), width.into(), low, high, overflow, lines, stored];
        let payload = self.filter.store.table().cells.payload();
        bytes::write(Self::KIND, self.filter.seed, &fields, payload)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = bytes::read(image, Self::KIND, seed)?;
        let [counters, hashes, width, low, high, overflow, lines, stored] = fields;
        let shape = Shape {
            counters,
            hashes: bytes::narrow("hashes", hashes)?,
            width: bytes::narrow("width", width)?,
            increments: coded::increments_from([low, high])?,
            overflow: coded::overflow_from(overflow)?,
            spread: coded::spread_from(lines)?,
        };
        shape.code()?;
        bytes::justify(payload, Packed::payload_bytes(counters, shape.width)?)?;
        let mut variable = Variable::new(shape, seed)?;
        variable.filter.load(payload)?;
        variable.filter.check_sums(stored, shape.hashes, shape.increments)?;
        variable.filter.stored = stored;
        Ok(variable)
    }
}
