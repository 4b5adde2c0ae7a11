//! The integers that fix a d-left filter, and their limits.

use super::Moves;
use crate::dleft_table::SUBTABLES_MAX;
use crate::{
    Infeasible,
    dleft_table::{Form, Placing},
};

/// The most bits of a counter.
pub(crate) const COUNTER_MAX: u32 = 4;

/// The integers that fix a d-left filter.
///
/// ```
/// use sidon::set::{DLeft, Moves, dleft::Shape};
///
/// let shape = Shape {
///     subtables: 2,
///     buckets: 100,
///     cells: 32,
///     width: 16,
///     remainder: 14,
///     counter: 2,
///     moves: Moves::Search(256),
///     growths: 0,
///     grows: false,
/// };
/// assert_eq!((shape.all_cells(), DLeft::planned_bytes(shape)), (6_400, 12_800));
/// assert_eq!(shape.fingerprints(), 100 << 14);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of subtables, 2 to 8.
    pub subtables: u32,
    /// The number of buckets per subtable: at least 1.
    pub buckets: u64,
    /// The number of cells per bucket: 8, 16 or 32.
    pub cells: u32,
    /// The bits of a cell, 5 to 32. 8, 16 and 32 are the fast widths.
    pub width: u32,
    /// The bits of a remainder, at most `width - counter`.
    pub remainder: u32,
    /// The bits of a counter, 0 to 4: a cell counts up to `2^counter` copies. With 0, each copy of
    /// a fingerprint takes one cell.
    pub counter: u32,
    /// The policy when all cells of a key are taken.
    pub moves: Moves,
    /// The number of times that the table may still be doubled.
    pub growths: u32,
    /// Whether a table that would refuse a key as [`Refused::Full`](crate::Refused::Full) doubles
    /// itself instead, while `growths` lasts and at least an eighth of its cells is in use.
    pub grows: bool,
}

impl Shape {
    /// The cells of the whole table.
    #[doc(hidden)]
    pub fn all_cells(&self) -> u64 {
        u64::from(self.subtables) * self.buckets * u64::from(self.cells)
    }

    /// The bytes of the whole table, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        self.form().bytes()
    }

    /// The number of fingerprints: `buckets * 2^remainder`, which growing does not change.
    #[doc(hidden)]
    pub fn fingerprints(&self) -> u64 {
        self.buckets << self.remainder
    }

    /// The most copies that a cell counts; one less for the largest remainder.
    pub(crate) fn ceiling(&self) -> u64 {
        1 << self.counter
    }

    pub(crate) fn check(&self) -> Result<(), Infeasible> {
        let within = Infeasible::unless_within;
        within("subtables", self.subtables.into(), 2, SUBTABLES_MAX.into())?;
        if ![8, 16, 32].contains(&self.cells) {
            let (name, got, allowed) = ("cells", self.cells.into(), "8, 16 or 32");
            let near = self.cells.clamp(8, 32).next_power_of_two().into();
            return Err(Infeasible::NotOneOf { name, got, allowed, near });
        }
        within("width", self.width.into(), 5, 32)?;
        within("counter", self.counter.into(), 0, COUNTER_MAX.into())?;
        within(
            "remainder",
            self.remainder.into(),
            1,
            self.width.saturating_sub(self.counter).into(),
        )?;
        // Without counters, some fingerprints cannot be stored: at most half of them.
        let reserve = if self.counter == 0 { 4 } else { 1 };
        within("growths", self.growths.into(), 0, self.remainder.saturating_sub(reserve).into())?;
        if self.counter == 0 {
            within("remainder", self.remainder.into(), 4, 32)?;
        }
        self.form().check()
    }

    pub(super) fn form(&self) -> Form {
        let Shape { subtables, buckets, cells, width, remainder, counter, moves, growths, .. } =
            *self;
        Form {
            subtables,
            buckets,
            cells,
            width,
            remainder,
            low: counter,
            moves,
            growths,
            placing: Placing::Permuted,
            lost_by_moving: 0,
        }
    }
}
