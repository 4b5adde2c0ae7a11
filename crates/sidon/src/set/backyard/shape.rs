//! The integers that fix a filter with an overflow table.

use super::line::{BACK_CELLS, BACK_WIDTH, CELLS, VALUES};
use crate::{
    Infeasible, Refused,
    dleft_table::{Form, Moves, Placing},
    simd::LINE,
};

/// The largest [`sharing`](Shape::sharing).
pub(crate) const SHARING_MAX: u32 = 15;

/// Subtables of the overflow table.
const SUBTABLES: u32 = 2;
/// Bits per value.
const VALUE_BITS: u32 = 16;

/// The integers that fix a filter with an overflow table.
///
/// ```
/// use sidon::set::{Backyard, backyard::Shape};
///
/// let shape = Shape { lines: 100, sharing: 2 };
/// // 64 bytes per line, and two subtables of 25 buckets.
/// assert_eq!(Backyard::planned_bytes(shape), 100 * 64 + 2 * 25 * 64);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of lines of 31 cells: at least 1.
    pub lines: u64,
    /// `2^sharing` lines share a bucket of 16 cells in each of the two subtables of the overflow
    /// table: 1 to 15.
    pub sharing: u32,
}

impl Shape {
    /// The cells of the overflow table.
    pub(crate) fn back_cells(&self) -> u64 {
        self.back().all_cells()
    }

    /// The most keys that a line and its two overflow buckets hold.
    pub(crate) const LINE_MAX: u32 = CELLS + SUBTABLES * BACK_CELLS;

    /// The cells of both tables.
    pub(crate) fn all_cells(&self) -> u64 {
        self.lines * u64::from(CELLS) + self.back_cells()
    }

    /// The bytes of both tables, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        self.lines.saturating_mul(LINE as u64).saturating_add(self.back().bytes())
    }

    /// The number of fingerprints.
    pub(crate) fn fingerprints(&self) -> u64 {
        self.lines * VALUES
    }

    /// The refusal of a key while `stored` keys are stored.
    #[cold]
    pub(super) fn full(&self, stored: u64) -> Refused {
        Refused::Full { stored, cells: self.all_cells() }
    }

    pub(crate) fn check(&self) -> Result<(), Infeasible> {
        // Limits fingerprints and counts of bytes to 64 bits.
        Infeasible::unless_within("lines", self.lines, 1, 1 << 44)?;
        Infeasible::unless_within("sharing", self.sharing.into(), 1, SHARING_MAX.into())?;
        self.back().check()
    }

    /// The form of the overflow table.
    pub(super) fn back(&self) -> Form {
        Form {
            subtables: SUBTABLES,
            buckets: self.lines.div_ceil(1 << self.sharing),
            cells: BACK_CELLS,
            width: BACK_WIDTH,
            remainder: self.sharing,
            low: VALUE_BITS,
            moves: Moves::Search(256),
            growths: 0,
            placing: Placing::Permuted,
            lost_by_moving: 0,
        }
    }
}
