//! What the tests of every structure share: [`keys`] that are seeded and distinct, an exact
//! [`twin`] to compare with, [`rate`]s that are held to six standard deviations, and the [`zipf`]
//! law of flow sizes.

pub mod keys;
pub mod rate;
pub mod twin;
pub mod zipf;

pub use keys::{FiveTuples, Keys, Rng};
pub use rate::{assert_rate, trials};
pub use twin::Multiset;
pub use zipf::Zipf;
