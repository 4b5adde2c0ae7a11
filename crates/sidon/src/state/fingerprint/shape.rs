//! The integers that fix a fingerprint map, and their limits.

use super::{
    Moves, Placing, UNTOUCHED,
    listed::{LISTED_BYTES, LISTED_MAX},
};
use crate::{
    Infeasible,
    dleft_table::{Form, SUBTABLES_MAX},
    state::{STATES_MAX, check_states},
};

/// The most flows in the stash.
pub(crate) const STASH_MAX: u32 = 64;
/// Bytes per stashed flow.
pub(super) const STASH_BYTES: u64 = 16;

/// The integers that fix the table.
///
/// ```
/// use sidon::state::fingerprint::{Moves, Placing, Shape};
///
/// let shape = Shape {
///     subtables: 2, buckets: 64, cells: 16, width: 32, remainder: 20, states: 8, shared: 7,
///     placing: Placing::Permuted, moves: Moves::Search(256), reinsert: false, stash: 4,
///     growths: 0, grows: false, listed: 0,
/// };
/// assert_eq!(shape.all_cells(), 2_048);
/// // 8 states, 7 numbers of flows and one unused value: four bits, and the flag.
/// assert_eq!(shape.low_bits(), 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of subtables, 2 to 8.
    pub subtables: u32,
    /// The number of buckets per subtable: at least 1.
    pub buckets: u64,
    /// The number of cells per bucket, 1 to 32. A bucket must be a whole number of bytes.
    pub cells: u32,
    /// The bits of a cell, 8 to 64. The fast shapes fill a cache line with 32 cells of 16 bits, 21
    /// of 24 or 16 of 32, or half a line with 10 of 24.
    pub width: u32,
    /// The bits of a remainder, at most the bits of a cell less [`low_bits`](Self::low_bits).
    pub remainder: u32,
    /// The number of states, 1 to 32,768: they are `0..states`.
    pub states: u32,
    /// The most flows that a shared cell counts, at least 2.
    pub shared: u32,
    /// The source of buckets and remainder.
    pub placing: Placing,
    /// The policy when all cells of a flow are taken.
    pub moves: Moves,
    /// Whether a flow that changes its state is removed and inserted again, into the emptiest of
    /// its buckets. Otherwise its cell is changed.
    pub reinsert: bool,
    /// The most flows without a cell that are kept in a list, up to 64.
    pub stash: u32,
    /// The number of times that the table may still be doubled.
    pub growths: u32,
    /// Whether a table that would refuse a flow as [`Refused::Full`](crate::Refused::Full) doubles itself instead, while
    /// `growths` lasts and at least an eighth of its cells is in use.
    pub grows: bool,
    /// The most flows in a list by digest, because their cell is that of another flow: 0 to 65,536. A place
    /// takes 32 bytes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub listed: u32,
}

impl Shape {
    /// The cells of the whole table, without the stash.
    #[doc(hidden)]
    pub fn all_cells(&self) -> u64 {
        self.form().all_cells()
    }

    /// The bytes of the whole table, with the stash, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        let lists = STASH_BYTES * u64::from(self.stash) + LISTED_BYTES * u64::from(self.listed);
        self.form().bytes().saturating_add(lists)
    }

    /// The number of fingerprints: `buckets * 2^remainder`, which growing does not change.
    pub(crate) fn fingerprints(&self) -> u64 {
        self.buckets << self.remainder
    }

    /// The bits of a cell besides the remainder: the value and the flag.
    #[doc(hidden)]
    pub fn low_bits(&self) -> u32 {
        low_bits(self.states, self.shared)
    }

    pub(crate) fn check(&self) -> Result<(), Infeasible> {
        let within = Infeasible::unless_within;
        within("subtables", self.subtables.into(), 2, SUBTABLES_MAX.into())?;
        within("cells", self.cells.into(), 1, 32)?;
        within("width", self.width.into(), 8, 64)?;
        Infeasible::unless_multiple("cells * width", (self.cells * self.width).into(), 8)?;
        check_states(self.states)?;
        within("shared", self.shared.into(), 2, STATES_MAX.into())?;
        let low = self.low_bits();
        within("remainder", self.remainder.into(), 1, self.width.saturating_sub(low).into())?;
        within("stash", self.stash.into(), 0, STASH_MAX.into())?;
        within("listed", self.listed.into(), 0, LISTED_MAX.into())?;
        within("growths", self.growths.into(), 0, (self.remainder - 1).into())?;
        if self.placing == Placing::Independent {
            let conflict = |name, got, must| Err(Infeasible::conflict(name, got, must));
            match (self.growths, self.stash, self.moves) {
                (0, 0, Moves::Never) => {}
                (0, 0, moves) => {
                    return conflict("moves", &moves, "be Never if placing is Independent");
                }
                (0, stash, _) => {
                    return conflict("stash", &stash, "be 0 if placing is Independent");
                }
                (growths, ..) => {
                    return conflict("growths", &growths, "be 0 if placing is Independent");
                }
            }
        }
        self.form().check()
    }

    pub(super) fn form(&self) -> Form {
        let Shape { subtables, buckets, cells, width, remainder, moves, growths, .. } = *self;
        let (placing, low) = (self.placing, self.low_bits());
        // A cell that moves may pass the clock hand, so it counts as touched.
        let lost_by_moving = UNTOUCHED;
        Form {
            subtables,
            buckets,
            cells,
            width,
            remainder,
            low,
            moves,
            growths,
            placing,
            lost_by_moving,
        }
    }
}

/// The bits of value and flag. There is a value for each state and for each number of flows that
/// share a cell, and an unused one, so that no cell in use looks empty.
pub(crate) fn low_bits(states: u32, shared: u32) -> u32 {
    let values = u64::from(states) + u64::from(shared) + 1;
    values.next_power_of_two().ilog2() + 1
}
