//! Counts: how much was added under this key?
//!
//! | | memory | an answer is |
//! |---|---|---|
//! | [`Min`] | counters that keys share | at most so much, and not far above, for any key |
//! | [`Top`] | the heaviest keys themselves | from so much to so much, often exact, for the heaviest |
//!
//! [`solve()`] makes better counts of a plain [`Min`] when all keys are known.

mod bulk;
mod cell;
mod image;
pub mod min;
pub mod solve;
pub mod top;

pub use cell::ROWS_MOST;
pub use min::{Layout, Min, Update};
pub use solve::{Solution, solve};
pub use top::{Bounds, Entry, Ranking, Stored, Top};
