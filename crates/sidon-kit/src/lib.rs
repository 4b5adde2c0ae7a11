//! Seeded random numbers and distinct [`keys`], an exact [`twin`] to compare a structure with, and
//! [`rate`]s that are checked to six standard deviations. The [`poisson`] law, and the [`zipf`] law of
//! flow sizes. A trace of addresses with heavy [`networks`].

pub mod keys;
pub mod networks;
pub mod poisson;
pub mod rate;
pub mod twin;
pub mod zipf;

pub use keys::{FiveTuples, Keys, Rng};
pub use networks::Networks;
pub use rate::{assert_rate, trials};
pub use twin::Multiset;
pub use zipf::Zipf;

/// The example of the README is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
