//! Counts: the amount added under a key, as an exact number or with bounds.
//!
//! | | memory | an answer is |
//! |---|---|---|
//! | [`Min`] | counters that keys share | an upper bound close to the truth, for any key |
//! | [`Top`] | the heaviest keys themselves | a lower and an upper bound, often equal, for the heaviest keys |
//! | [`Distinct`] | registers of 28 bits | the number of distinct keys, with an interval |
//! | [`FanOut`] | sketches of the keys with the most elements | the number of distinct elements of a key, with an interval |
//! | [`Periods`] | pairs of hosts and their last gaps | the period of their contacts, and how regular they are |
//! | [`Prefixes`] | the heaviest addresses, and networks for the rest | a lower and an upper bound, for any network |
//!
//! If all keys are known, [`solve()`] computes better counts from a plain [`Min`].

mod bulk;
mod cell;
pub mod distinct;
pub mod fan_out;
mod interval;
pub mod min;
pub mod periods;
pub mod prefixes;
mod registers;
mod saved;
pub mod solve;
pub mod top;

pub(crate) use cell::ROWS_MAX;
pub use distinct::Distinct;
pub use fan_out::FanOut;
pub use interval::Interval;
pub use min::{Layout, Min, Update};
pub use periods::{Periods, Regularity};
pub use prefixes::{Prefix, Prefixes};
pub use solve::{Solution, solve};
pub use top::{Bounds, Entry, Ranking, Stored, Top};
