//! The shape of a [`Stateful`](super::Stateful) and the width of its cells.
//!
//! ```text
//! Counted   | counter | state or unknown |
//! Timed     | flag | empty, state or unknown |
//! Summed    | counter | sum of the states' numbers, or unknown |
//! ```

use crate::{Infeasible, packed::Packed, state::check_states};

/// The widest counter.
const COUNTER_MAX: u32 = 8;
/// The most states with [`Keeping::Summed`].
pub(super) const SUMMED_MAX: u32 = 64;

/// The content of a cell.
///
/// ```
/// use sidon::state::{Stateful, stateful::{Keeping, Shape}};
///
/// let shape = |keeping| Shape { cells: 1_000, hashes: 4, states: 6, keeping };
/// // Six states and "unknown" take three bits. A timed cell may also be empty, and has a flag.
/// assert_eq!(shape(Keeping::Counted(4)).width(), 3 + 4);
/// assert_eq!(shape(Keeping::Timed).width(), 3 + 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Keeping {
    /// A state and the number of flows. The counter has 2 to 8 bits.
    Counted(u32),
    /// A state and a flag for ageing. A second flow makes the cell unknown, whatever its state.
    Timed,
    /// The sum of the states' numbers and the number of flows. The counter has this many bits.
    Summed(u32),
}

/// The integers that fix the table.
///
/// ```
/// use sidon::state::{Stateful, stateful::{Keeping, Shape}};
///
/// let shape = Shape { cells: 1_000, hashes: 4, states: 6, keeping: Keeping::Counted(4) };
/// assert_eq!(Stateful::planned_bytes(shape), 875);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of cells: at least 1.
    pub cells: u64,
    /// The number of cells of a flow: 1 to 32.
    pub hashes: u32,
    /// The number of states; at most 64 for sums.
    pub states: u32,
    /// The content of a cell.
    pub keeping: Keeping,
}

impl Shape {
    /// The bits of a cell.
    #[doc(hidden)]
    pub fn width(&self) -> u32 {
        match self.keeping {
            Keeping::Timed => 1 + self.value_bits(),
            Keeping::Counted(counter) | Keeping::Summed(counter) => counter + self.value_bits(),
        }
    }

    /// The bytes of the table, or `u64::MAX` if there are more.
    pub(crate) fn bytes(&self) -> u64 {
        Packed::bytes_of(self.cells, self.width())
    }

    /// The bits of a cell's value: a state or unknown. With sums, up to the largest sum plus one.
    pub(super) fn value_bits(&self) -> u32 {
        let values = match self.keeping {
            Keeping::Counted(_) => u64::from(self.states) + 1,
            // Without a counter, the value zero must mean empty.
            Keeping::Timed => u64::from(self.states) + 2,
            Keeping::Summed(counter) => {
                let largest = marks(self.states.min(SUMMED_MAX)).last().copied().unwrap_or(0);
                largest * ((1 << counter.min(COUNTER_MAX)) - 1) + 2
            }
        };
        values.next_power_of_two().ilog2()
    }

    pub(super) fn check(&self) -> Result<(), Infeasible> {
        check_states(self.states)?;
        match self.keeping {
            Keeping::Timed => Ok(()),
            Keeping::Counted(counter) => {
                Infeasible::unless_within("counter", counter.into(), 2, COUNTER_MAX.into())
            }
            Keeping::Summed(counter) => {
                Infeasible::unless_within("states", self.states.into(), 1, SUMMED_MAX.into())?;
                Infeasible::unless_within("counter", counter.into(), 2, COUNTER_MAX.into())
            }
        }
    }
}

/// The numbers of the states: the first numbers of a Sidon set, each the least that keeps all
/// differences distinct. Mian and Chowla, 1944, but starting at zero.
pub(super) fn marks(states: u32) -> Vec<u64> {
    let (mut marks, mut differences) = (Vec::new(), Vec::new());
    let mut next = 0;
    while marks.len() < states as usize {
        differences.resize(next as usize + 1, false);
        if marks.iter().all(|&mark| !differences[(next - mark) as usize]) {
            marks.iter().for_each(|&mark| differences[(next - mark) as usize] = true);
            marks.push(next);
        }
        next += 1;
    }
    marks
}
