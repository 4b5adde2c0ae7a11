//! Sequential tests: is this subject worse than usual? With a stated number of false accusations.
//!
//! A subject, such as a source address, is innocent while each of its trials fails with at most the usual
//! probability `p`. A test sees the trials one by one and keeps four levels, one for each failure rate
//! `q > p` that an attack may have:
//! ```text
//! level = (level + 1) * q / p                 after a failure
//! level = (level + 1) * (1 - q) / (1 - p)     after a success
//! evidence = mean of the four levels, accused at evidence >= apart
//! ```
//! The factors have a mean of at most 1 for an innocent subject, so its expected evidence grows by at most 1
//! per trial. An accusation restarts the test. So the expected number of false accusations, over all subjects
//! and all time, is at most the number of trials divided by `apart`. This needs no independence between
//! subjects, holds however often the caller looks, and does not depend on the number of subjects. To
//! forget a test, to drop trials at random and to evict a subject only lower the evidence.
//!
//! [`Failures`] is the rule for trials that fail or succeed, such as handshakes. [`Excess`] is the rule for
//! counts per time against a usual mean, such as packets per second; there one count is one trial. Both use
//! [`Test`], 16 bytes. [`Suspects`] keeps the tests of many subjects in fixed memory.
//!
//! All arithmetic is addition, multiplication and division of IEEE 754 numbers, so levels are
//! identical on every platform. The levels are the e-detector of Shiryaev and Roberts with a mixture of
//! alternatives: Shin, Ramdas and Rinaldo, "E-detectors", 2023. [`plan::decide`](crate::plan::decide)
//! computes shapes and delays.

pub mod excess;
pub mod failures;
mod power;
pub mod suspects;

mod test;
#[cfg(test)]
mod tests;

pub use excess::Excess;
pub use failures::Failures;

pub use suspects::Suspects;
pub use test::Test;

/// The number of attack rates that a test distinguishes.
pub(crate) const RATES: usize = 4;
/// The most trials per false accusation.
pub(crate) const APART_MAX: u64 = 1 << 62;
