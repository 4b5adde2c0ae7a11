//! The integers that fix a filter with a back.

use super::line::{BACK_CELLS, BACK_WIDTH, CELLS, VALUES};
use crate::{
    Infeasible, Refused,
    left::{Form, Moves, Placing},
    probe::LINE,
};

/// The most lines, as a power of two, that share a bucket of the back.
pub const SHARING_MOST: u32 = 15;

/// Subtables of the back.
const SUBTABLES: u32 = 2;
/// Bits of a value.
const VALUE_BITS: u32 = 16;

/// The integers that fix a filter with a back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many lines of 31 cells there are: any number but zero.
    pub lines: u64,
    /// How many lines share a bucket of 16 cells in each of the two subtables of the back, as a power of
    /// two: 1 to [`SHARING_MOST`].
    pub sharing: u32,
}

impl Shape {
    /// The cells of the back.
    pub fn back_cells(&self) -> u64 {
        self.back().all_cells()
    }

    /// The most keys that a line and its two buckets of the back hold.
    pub const LINE_MOST: u32 = CELLS + SUBTABLES * BACK_CELLS;

    /// The cells of front and back.
    pub fn all_cells(&self) -> u64 {
        self.lines * u64::from(CELLS) + self.back_cells()
    }

    /// The bytes of front and back, or `u64::MAX` if there are more.
    pub fn bytes(&self) -> u64 {
        self.lines.saturating_mul(LINE as u64).saturating_add(self.back().bytes())
    }

    /// How many fingerprints there are.
    pub fn fingerprints(&self) -> u64 {
        self.lines * VALUES
    }

    /// Why a key was refused while so many are stored.
    #[cold]
    pub(super) fn full(&self, stored: u64) -> Refused {
        Refused::Full { stored, cells: self.all_cells() }
    }

    pub(crate) fn check(&self) -> Result<(), Infeasible> {
        // What every fingerprint fits into, and every count of bytes.
        Infeasible::unless_within("lines", self.lines, 1, 1 << 44)?;
        Infeasible::unless_within("sharing", self.sharing.into(), 1, SHARING_MOST.into())?;
        self.back().check()
    }

    /// The table behind the lines.
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
