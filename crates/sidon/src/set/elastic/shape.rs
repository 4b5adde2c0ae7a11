//! The integers that fix a filter of this kind, and their limits.

use super::prefix::EXTRA;
use crate::{
    Infeasible,
    dleft_table::{Form, Moves, Placing, SUBTABLES_MAX},
    set::dleft::COUNTER_MAX,
};

/// The most cells of a bucket.
const CELLS_MAX: u32 = 32;
/// The most fingerprints, without extra bits.
const FINGERPRINTS_MAX: u64 = 1 << (63 - EXTRA);

/// The integers that fix the memory.
///
/// ```
/// use sidon::set::{Elastic, Moves, elastic::Shape};
///
/// let shape = Shape {
///     subtables: 2, buckets: 100, line: 32, least: 6, remainder: 14, counter: 1,
///     moves: Moves::Search(256), narrows: true,
/// };
/// // A cell has a remainder, a bit that ends it, and a counter: 16 bits, so 16 cells in a bucket.
/// assert_eq!((shape.cells(), Elastic::planned_bytes(shape)), (16, 6_400));
/// // Shorter remainders leave room for more cells in the same memory.
/// let short = Shape { remainder: 6, ..shape };
/// assert_eq!((short.cells(), Elastic::planned_bytes(short)), (32, 6_400));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of subtables, 2 to 8.
    pub subtables: u32,
    /// The number of buckets per subtable: at least 1.
    pub buckets: u64,
    /// The bytes of a bucket: 16, 32 or 64.
    pub line: u32,
    /// The bits of a remainder that every cell keeps: at least 1.
    pub least: u32,
    /// The bits of the remainders of new keys: from `least` to 24 more, and at most `31 - counter`.
    pub remainder: u32,
    /// The bits of a counter, 0 to 4: a cell counts up to `2^counter` copies. More copies take another cell,
    /// because short remainders make different keys equal.
    pub counter: u32,
    /// The policy when all cells of a key are taken.
    pub moves: Moves,
    /// Whether a table that would refuse a key as [`Refused::Full`](crate::Refused::Full) shortens the
    /// remainders instead, by the fewest bits that give more cells. At least half of the cells must be in
    /// use.
    pub narrows: bool,
}

impl Shape {
    /// The cells of a bucket: as many as fit, up to 32.
    #[doc(hidden)]
    pub fn cells(&self) -> u32 {
        let fit = (self.line.saturating_mul(8) / self.width().max(1)).min(CELLS_MAX);
        // A bucket is a whole number of bytes.
        (1..=fit).rev().find(|cells| (cells * self.width()).is_multiple_of(8)).unwrap_or(0)
    }

    /// The bits of a cell: remainder, its end, counter.
    pub(super) fn width(&self) -> u32 {
        self.remainder.saturating_add(1).saturating_add(self.counter)
    }

    /// The bits of the field that holds the extra bits of a remainder and their end.
    pub(super) fn field(&self) -> u32 {
        self.remainder - self.least + 1
    }

    /// The bytes of all buckets, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        let subtable = self.buckets.saturating_mul(self.line.into());
        subtable.saturating_mul(self.subtables.into())
    }

    /// The number of fingerprints without extra bits.
    pub(super) fn fingerprints(&self) -> u64 {
        self.buckets << self.least
    }

    pub(crate) fn check(&self) -> Result<(), Infeasible> {
        let within = Infeasible::unless_within;
        within("subtables", self.subtables.into(), 2, SUBTABLES_MAX.into())?;
        if ![16, 32, 64].contains(&self.line) {
            let (name, got, allowed) = ("line", self.line.into(), "16, 32 or 64");
            let near = self.line.clamp(16, 64).next_power_of_two().into();
            return Err(Infeasible::NotOneOf { name, got, allowed, near });
        }
        within("counter", self.counter.into(), 0, COUNTER_MAX.into())?;
        within("least", self.least.into(), 1, 30)?;
        within("buckets", self.buckets, 1, FINGERPRINTS_MAX >> self.least)?;
        let most = (self.least + EXTRA).min(31 - self.counter);
        within("remainder", self.remainder.into(), self.least.into(), most.into())?;
        // Narrow cells must be whole bytes in a bucket, too.
        within("cells", self.cells().into(), 1, CELLS_MAX.into())?;
        within("width", self.width().into(), 5, 32)?;
        self.form().check()
    }

    /// The shape with the longest shorter remainders that give more cells, if there is one.
    pub(super) fn narrower(&self) -> Option<Shape> {
        let shorter = (self.least..self.remainder).rev();
        let mut shapes = shorter.map(|remainder| Shape { remainder, ..*self });
        shapes.find(|shape| shape.cells() > self.cells() && shape.check().is_ok())
    }

    pub(super) fn form(&self) -> Form {
        Form {
            subtables: self.subtables,
            buckets: self.buckets,
            cells: self.cells(),
            width: self.width(),
            remainder: self.least,
            low: self.field() + self.counter,
            moves: self.moves,
            growths: 0,
            placing: Placing::Permuted,
            lost_by_moving: 0,
        }
    }
}
