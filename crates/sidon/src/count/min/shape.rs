//! The shape of a sketch, the rule of its updates, and the positions of its counters.

use crate::{Infeasible, count::cell::Mapping};

/// The integers that fix a sketch.
///
/// ```
/// use sidon::count::{Layout, Min, Update, min::Shape};
///
/// let (update, layout) = (Update::Plain, Layout::Rows);
/// let shape = Shape { rows: 4, columns: 1_000, width: 32, update, layout };
/// assert_eq!((Min::planned_bytes(shape), shape.ceiling()), (16_000, u32::MAX.into()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of rows, each with one counter of a key: 1 to 16.
    pub rows: u32,
    /// The number of counters per row. With [`Layout::Line`], a multiple of the cells that a row
    /// has in a line, `512 / width / rows`.
    pub columns: u64,
    /// The bits of a counter: 8, 16, 32 or 64.
    pub width: u32,
    /// The rule of updates.
    pub update: Update,
    /// The positions of a key's counters.
    pub layout: Layout,
}

/// The rule by which an amount changes counters.
///
/// ```
/// use sidon::{Refused, Seed, count::{Layout, Min, Update, min::Shape}};
///
/// let (update, layout) = (Update::Conservative, Layout::Rows);
/// let mut counts = Min::new(Shape { rows: 4, columns: 100, width: 32, update, layout }, Seed(1))?;
/// counts.add("key", 5)?;
/// assert_eq!(counts.subtract("key", 5), Err(Refused::NotSums));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Update {
    /// Adds the amount to every counter of the key. Counters are sums, and amounts can be
    /// subtracted.
    #[default]
    Plain,
    /// Raises every counter of the key to the new answer, if it is below. Errors are smaller, but
    /// amounts cannot be subtracted.
    Conservative,
}

/// The positions of a key's counters.
///
/// ```
/// use sidon::{Seed, count::{Layout, Min, Update, min::Shape}};
///
/// // Each of four rows has four of the 16 counters of a line.
/// let (update, layout) = (Update::Plain, Layout::Line);
/// let shape = Shape { rows: 4, columns: 400, width: 32, update, layout };
/// let mut counts = Min::new(shape, Seed(1))?;
/// counts.add("key", 5)?;
/// assert_eq!(counts.estimate("key").value, 5);
/// let why = Min::new(Shape { columns: 401, ..shape }, Seed(1)).unwrap_err();
/// assert_eq!(why.name(), Some("columns"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Layout {
    /// Anywhere in their rows: one cache line per row.
    #[default]
    Rows,
    /// In one cache line of 64 bytes.
    Line,
}

impl Shape {
    /// The bytes of the table, or `u64::MAX` if there are more or no such table exists.
    pub(crate) fn bytes(&self) -> u64 {
        Mapping::new(*self).map_or(u64::MAX, |(_, bytes)| bytes)
    }

    /// Checks everything except the memory.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Infeasible> {
        Mapping::new(*self).map(|_| ())
    }

    /// The largest value of a counter.
    #[doc(hidden)]
    pub fn ceiling(&self) -> u64 {
        u64::MAX >> (64 - self.width.clamp(1, 64))
    }
}
