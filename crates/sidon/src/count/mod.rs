//! Counts: the amount added under a key, as an exact number or with bounds.
//!
//! | | memory | an answer is |
//! |---|---|---|
//! | [`Min`] | counters that keys share | an upper bound close to the truth, for any key |
//! | [`Top`] | the heaviest keys themselves | a lower and an upper bound, often equal, for the heaviest keys |
//! | [`Prefixes`] | the heaviest addresses, and networks for the rest | a lower and an upper bound, for any network |
//!
//! If all keys are known, [`solve()`] computes better counts from a plain [`Min`].

mod bulk;
mod cell;
pub mod min;
pub mod prefixes;
mod saved;
pub mod solve;
pub mod top;

pub(crate) use cell::ROWS_MAX;
pub use min::{Layout, Min, Update};
pub use prefixes::{Prefix, Prefixes};
pub use solve::{Solution, solve};
pub use top::{Bounds, Entry, Ranking, Stored, Top};
