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
    cells::increment_code::{self, Sums},
    cells::increment_filter::{self, Act, IncrementFilter, Plain, Store},
    cells::mapping::{self, Spread},
    cells::overflow::Overflow,
    cells::table::Table,
    filter::{Filter, Removes},
    increments::Increments,
    operations::{Set, Stats},
};
use crate::{
    Digest, Infeasible, Key, Malformed, Refused, Seed,
    batch::{AnyKeys, Keys, hasher},
    packed::Packed,
    saved,
};

/// The widest counter.
pub(crate) const WIDTH_MAX: u32 = increment_code::WIDTH_MAX;

/// The integers that fix a filter of variable increments.
///
/// ```
/// use sidon::set::{Increments, Overflow, Spread, Variable, variable::Shape};
///
/// let shape = Shape {
///     counters: 1_000,
///     hashes: 4,
///     width: 6,
///     increments: Increments::of([4, 5, 6, 7]),
///     overflow: Overflow::Refuse,
///     spread: Spread::Anywhere,
/// };
/// assert_eq!((Variable::planned_bytes(shape), shape.increments.values()), (750, &[4, 5, 6, 7][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of counters of the table: at least 1.
    pub counters: u64,
    /// The number of counters of a key: 1 to 32.
    pub hashes: u32,
    /// The bits of a counter, up to 16; the largest increment must fit.
    pub width: u32,
    /// The values that a key may add.
    pub increments: Increments,
    /// The action at a counter's ceiling.
    pub overflow: Overflow,
    /// The positions of a key's counters.
    pub spread: Spread,
}

/// A multiset in counters of variable increments. See the [module](self).
///
/// ```
/// use sidon::{Seed, set::{Increments, Overflow, Spread, Variable, variable::Shape}};
///
/// let increments = Increments::of([4, 5, 6, 7]);
/// let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
/// let shape = Shape { counters: 1_000, hashes: 4, width: 6, increments, overflow, spread };
/// let mut seen = Variable::from_keys(shape, Seed(1), 0..50u32)?;
/// assert!((0..50u32).all(|key| seen.contains(&key)));
/// seen.remove(&7u32)?;
/// assert!(!seen.contains(&7u32));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Variable = Set<Body>;

/// The cells of a [`Variable`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    filter: IncrementFilter<Sums>,
}

impl Body {
    #[cfg(test)]
    pub(super) fn is_asked_by_rows(&self) -> bool {
        self.filter.rows.is_some()
    }
}

impl Shape {
    /// The bytes of the table, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        Packed::bytes_of(self.counters, self.width)
    }

    /// Checks everything except the memory.
    pub(crate) fn check(self) -> Result<(), Infeasible> {
        self.code()?;
        mapping::check(("counters", self.counters), self.width, self.hashes, self.spread)
            .map(|_| ())
    }

    pub(crate) fn code(self) -> Result<Sums, Infeasible> {
        Infeasible::unless_within("width", self.width.into(), 1, WIDTH_MAX.into())?;
        Sums::new(self.increments, (1 << self.width) - 1, self.overflow)
    }
}

impl Body {
    /// Not generic over keys, so that it is compiled once.
    fn change(&mut self, act: Act, keys: AnyKeys<'_>, refused: &mut dyn FnMut(usize, Refused)) {
        self.filter.act_on_keys(act, keys, refused);
    }
}

impl Filter for Body {
    type Shape = Shape;
    const KIND: u16 = crate::saved::kinds::VARIABLE.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let code = shape.code()?;
        let Shape { counters, hashes, width, spread, .. } = shape;
        let store = Plain(Table::zeroed(("counters", counters), width, hashes, spread)?);
        Ok(Body { shape, filter: IncrementFilter::new(store, code, seed) })
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn seed(&self) -> Seed {
        self.filter.seed
    }

    fn len(&self) -> u64 {
        self.filter.stored
    }

    fn memory_bytes(&self) -> u64 {
        self.shape.bytes()
    }

    fn load(&self) -> f64 {
        self.filter.fill()
    }

    fn stats(&self) -> Stats {
        let largest = self.filter.values().max().unwrap_or(0);
        Stats { largest, at_ceiling: self.filter.pinned(), ..Stats::default() }
    }

    fn rate(&self) -> f64 {
        self.filter.false_positive_rate()
    }

    fn clear(&mut self) {
        self.filter.clear();
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Body { shape: self.shape, filter: self.filter.try_clone()? })
    }

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<(), Refused> {
        self.filter.act_on_digest(Act::Insert, digest)
    }

    fn insert_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        let hasher = hasher(self.filter.seed, keys);
        self.change(Act::Insert, Keys::Any(keys.len(), &hasher), refused);
    }

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.filter.contains(digest)
    }

    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.filter.contains_keys(keys, found);
    }

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

    fn to_bytes(&self) -> Vec<u8> {
        let Shape { counters, hashes, width, increments, overflow, spread } = self.shape;
        let [low, high] = increments.to_fields();
        let (overflow, lines) =
            (increment_filter::overflow_field(overflow), increment_filter::spread_field(spread));
        let stored = self.filter.stored;
        let fields = [counters, hashes.into(), width.into(), low, high, overflow, lines, stored];
        let payload = self.filter.store.table().cells.payload();
        saved::write(Self::KIND, self.filter.seed, &fields, payload)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read(image, Self::KIND, seed)?;
        let [counters, hashes, width, low, high, overflow, lines, stored] = fields;
        let shape = Shape {
            counters,
            hashes: saved::narrow("hashes", hashes)?,
            width: saved::narrow("width", width)?,
            increments: increment_filter::increments_from([low, high])?,
            overflow: increment_filter::overflow_from(overflow)?,
            spread: increment_filter::spread_from(lines)?,
        };
        shape.code()?;
        saved::justify(payload, Packed::payload_bytes(counters, shape.width)?)?;
        let mut variable = Body::new(shape, seed)?;
        variable.filter.load(payload)?;
        variable.filter.check_sums(stored, shape.hashes, shape.increments)?;
        variable.filter.stored = stored;
        Ok(variable)
    }
}

impl Removes for Body {
    #[inline]
    fn remove(&mut self, digest: Digest) -> Result<(), Refused> {
        self.filter.act_on_digest(Act::Remove, digest)
    }

    fn remove_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        let hasher = hasher(self.filter.seed, keys);
        self.change(Act::Remove, Keys::Any(keys.len(), &hasher), refused);
    }
}
