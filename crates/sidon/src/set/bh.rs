//! A counting filter whose cells hold a number of keys and a sum of increments (B_h sequences).
//!
//! A key adds one to the first counter of each of its cells, and one of several increments to the
//! second. If all sums of `h` increments are distinct, the two counters determine every increment
//! of up to `h` keys. With more keys they still exclude many increments.
//! ```text
//! D = {1, 4, 8, 13}     | . 2:17 . . 3:25 . . |     17 = 4 + 13 and 25 = 4 + 8 + 13, nothing else:
//!                           ^        ^              a key that adds 8, 8 is absent
//! ```
//! Two counters take more memory than one: [`Variable`](super::Variable) is smaller at the same
//! rate. This filter also has the number of keys of each cell. With `centred`, the sum stays near
//! zero and needs fewer bits. A lookup reads up to `k` cells, and a table of a few words.
//!
//! A removal that would leave a sum that the remaining keys cannot have added is refused. A key
//! that was never inserted and yet passes takes one key and one increment from each of its `k`
//! cells. Three facts survive it:
//!
//! - The numbers of keys of all cells sum up to `k` times the keys stored, unless a cell is pinned.
//! - The sum of a cell lies between the least and the largest that its keys can have added, and has the
//!   remainder that all those sums share.
//! - A cell of fewer keys than are examined holds a sum of as many increments.
//!
//! A key whose positions coincide adds to the cell each time. Rottenstreich, Kanizo and Keslassy,
//! "The variable-increment counting Bloom filter", INFOCOM 2012, sections II and VI: B_h-CBF.

use super::{
    cells::increment_code::{PairShape, Pairs},
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

/// The largest number of keys at which a lookup examines the sum of a cell.
///
/// ```
/// use sidon::set::{Bh, Decode, Increments, Overflow, Spread, bh::Shape};
///
/// // All sums of three of these increments differ, and some sums of four do not.
/// let increments = Increments::of([1, 2, 5, 14]);
/// let (overflow, spread) = (Overflow::Pin, Spread::Anywhere);
/// let basic = Shape {
///     cells: 999, hashes: 3, keys_bits: 3, sum_bits: 5, increments,
///     decode: Decode::Basic, centred: false, overflow, spread,
/// };
/// assert_eq!(basic.examined(), 3);
/// assert_eq!(Shape { decode: Decode::Improved(6), ..basic }.examined(), 6);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Decode {
    /// At most `h` keys, for which the increments are determined. A cell of more keys excludes
    /// none.
    Basic,
    /// At most this many keys. A cell of more than `h` keys excludes an increment that no
    /// decomposition of its sum contains.
    Improved(u32),
}

/// The integers that fix a B_h filter.
///
/// ```
/// use sidon::set::{Bh, Decode, Increments, Overflow, Spread, bh::Shape};
///
/// let shape = Shape {
///     cells: 1_000,
///     hashes: 4,
///     keys_bits: 3,
///     sum_bits: 5,
///     increments: Increments::of([1, 2, 5, 14]),
///     decode: Decode::Basic,
///     centred: false,
///     overflow: Overflow::Pin,
///     spread: Spread::Anywhere,
/// };
/// assert_eq!(Bh::planned_bytes(shape), 1_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of cells of the table: at least 1.
    pub cells: u64,
    /// The number of cells of a key: 1 to 32.
    pub hashes: u32,
    /// The bits of the counter of keys, 1 to 8.
    pub keys_bits: u32,
    /// The bits of the counter of increments, 1 to 16.
    pub sum_bits: u32,
    /// The values that a key may add.
    pub increments: Increments,
    /// The largest number of keys at which a lookup examines the sum of a cell.
    pub decode: Decode,
    /// Whether the sum is stored less the rounded mean of the increments for each key, as a number
    /// from `1 - 2^(bits - 1)` to `2^(bits - 1)`. Removals in another order than insertions may
    /// move it out of its range. Such a cell must be pinned, unless the range holds every sum.
    pub centred: bool,
    /// The action when one of a cell's counters would leave its range.
    pub overflow: Overflow,
    /// The positions of a key's cells.
    pub spread: Spread,
}

impl Shape {
    /// The bits of a cell.
    pub(crate) fn width(&self) -> u32 {
        self.keys_bits.saturating_add(self.sum_bits)
    }

    /// The bytes of the table, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        Packed::bytes_of(self.cells, self.width())
    }

    /// The largest number of keys at which a lookup examines the sum of a cell.
    #[doc(hidden)]
    pub fn examined(&self) -> u32 {
        match self.decode {
            Decode::Basic => self.increments.order((1 << self.keys_bits.min(8)) - 1),
            Decode::Improved(keys) => keys,
        }
    }

    /// The bits of the table that a lookup reads in addition to the cells.
    #[doc(hidden)]
    pub fn table_bits(&self) -> Result<u64, Infeasible> {
        Ok(self.code()?.table_bits())
    }

    /// Checks everything except the memory and whether the code refuses.
    pub(crate) fn check(self) -> Result<(), Infeasible> {
        mapping::check(("cells", self.cells), self.width(), self.hashes, self.spread).map(|_| ())
    }

    pub(crate) fn code(self) -> Result<Pairs, Infeasible> {
        let Shape { increments, keys_bits, sum_bits, centred, overflow, .. } = self;
        let examined = self.examined();
        Pairs::new(PairShape { increments, keys_bits, sum_bits, examined, centred, overflow })
    }
}

/// A multiset in cells of two counters. See the [module](self).
///
/// ```
/// use sidon::{Seed, set::{Bh, Decode, Increments, Overflow, Spread, bh::Shape}};
///
/// let shape = Shape {
///     cells: 1_000, hashes: 4, keys_bits: 3, sum_bits: 5,
///     increments: Increments::of([1, 2, 5, 14]), decode: Decode::Basic, centred: false,
///     overflow: Overflow::Pin, spread: Spread::Anywhere,
/// };
/// let mut seen = Bh::from_keys(shape, Seed(1), 0..50u32)?;
/// seen.remove(&7u32)?;
/// assert!(!seen.contains(&7u32) && seen.contains(&8u32));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Bh = Set<Body>;

/// The cells of a [`Bh`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Body {
    shape: Shape,
    filter: IncrementFilter<Pairs>,
}

impl Body {
    /// Not generic over keys, so that it is compiled once.
    fn change(&mut self, act: Act, keys: AnyKeys<'_>, refused: &mut dyn FnMut(usize, Refused)) {
        self.filter.act_on_keys(act, keys, refused);
    }
}

impl Filter for Body {
    type Shape = Shape;
    const KIND: u16 = crate::saved::kinds::BH.number;

    fn planned_bytes(shape: Self::Shape) -> u64 {
        shape.bytes()
    }

    fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let code = shape.code()?;
        let store = Plain(Table::zeroed(
            ("cells", shape.cells),
            shape.width(),
            shape.hashes,
            shape.spread,
        )?);
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
        Stats { at_ceiling: self.filter.pinned(), ..Stats::default() }
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
        super::same("cells", own.cells == theirs.cells)?;
        super::same("hashes", own.hashes == theirs.hashes)?;
        super::same("keys_bits", own.keys_bits == theirs.keys_bits)?;
        super::same("sum_bits", own.sum_bits == theirs.sum_bits)?;
        super::same("increments", own.increments == theirs.increments)?;
        super::same("decode", own.decode == theirs.decode)?;
        super::same("centred", own.centred == theirs.centred)?;
        super::same("overflow", own.overflow == theirs.overflow)?;
        super::same("spread", own.spread == theirs.spread)?;
        self.filter.merge(&other.filter)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Shape { cells, hashes, keys_bits, sum_bits, increments, .. } = self.shape;
        let [low, high] = increments.to_fields();
        let fields = [
            cells,
            hashes.into(),
            keys_bits.into(),
            sum_bits.into(),
            low,
            high,
            match self.shape.decode {
                Decode::Basic => 0,
                Decode::Improved(keys) => u64::from(keys) + 1,
            },
            self.shape.centred.into(),
            increment_filter::overflow_field(self.shape.overflow),
            increment_filter::spread_field(self.shape.spread),
            self.filter.stored,
        ];
        let payload = self.filter.store.table().cells.payload();
        saved::write(Self::KIND, self.filter.seed, &fields, payload)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read(image, Self::KIND, seed)?;
        let [cells, hashes, keys, sum, low, high, decode, centred, overflow, lines, stored] =
            fields;
        let shape = Shape {
            cells,
            hashes: saved::narrow("hashes", hashes)?,
            keys_bits: saved::narrow("keys_bits", keys)?,
            sum_bits: saved::narrow("sum_bits", sum)?,
            increments: increment_filter::increments_from([low, high])?,
            decode: match decode.checked_sub(1) {
                None => Decode::Basic,
                Some(keys) => Decode::Improved(saved::narrow("decode", keys)?),
            },
            centred: match centred {
                0 => false,
                1 => true,
                _ => return Err(Malformed::Field { name: "centred" }),
            },
            overflow: increment_filter::overflow_from(overflow)?,
            spread: increment_filter::spread_from(lines)?,
        };
        let code = shape.code()?;
        saved::justify(payload, Packed::payload_bytes(cells, shape.width())?)?;
        let mut filter = Body::new(shape, seed)?;
        filter.filter.load(payload)?;
        if !filter.filter.values().all(|value| code.is_reachable(value)) {
            return Err(Malformed::Field { name: "payload" });
        }
        let met = filter.filter.values().map(|value| u128::from(code.keys(value))).sum();
        let pinned = filter.filter.pinned() > 0;
        increment_filter::plausible(pinned, met, stored, shape.hashes, Increments::UNIT)?;
        filter.filter.stored = stored;
        Ok(filter)
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
