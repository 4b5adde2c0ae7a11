//! What the tests of every structure share: [`keys`] that are seeded and distinct, an exact
//! [`twin`] to compare with, and [`rate`]s that are held to six standard deviations.

pub mod keys;
pub mod rate;
pub mod twin;

pub use keys::{FiveTuples, Keys, Rng};
pub use rate::{assert_rate, trials};
pub use twin::Multiset;
