//! Compact memory for network flows: a set, a state or a count for millions of keys in a few bits
//! each, in memory fixed at the start, with answers that carry their certainty.
//!
//! The layers, in the order one meets them:
//!
//! 1. [`hash`]: a [`Key`] becomes a [`Digest`] of 64 bits under a [`Seed`], once. Everything else
//!    is derived from the digest.
//! 2. [`cells`]: packed integers of any width in memory that is aligned, fixed and, when large,
//!    backed by huge pages.
//! 3. [`probe`]: the few operations worth a SIMD instruction, and the only unsafe code.
//! 4. [`member`]: sets. [`member::Bloom`] and [`member::Blocked`] only grow;
//!    [`member::Counting`] lets keys leave.
//! 5. [`zone`]: small universes without a false positive, and counts that are exact in a zone.
//! 6. [`count`]: counts. [`count::Min`] answers for any key, [`count::Top`] keeps the heaviest.
//! 7. [`state`]: a state for every flow, ageing, and state machines as data.
//! 8. [`plan`]: from a target (keys, error) to a shape (the integers that fix the memory), by
//!    closed forms.
//! 9. [`bytes`]: a checked, versioned image of every structure.
//!
//! What can be asked of a structure is in [`ops`], what it can say in [`answer`], how it says no
//! in [`error`].
//!
//! ```
//! use sidon::{Seed, member::Counting, plan};
//!
//! let shape = plan::counting(plan::Target { keys: 10_000, false_positives: 0.01 })?;
//! let mut seen = Counting::new(shape, Seed(42))?;
//! seen.insert("10.0.0.1:443")?;
//! assert!(seen.contains("10.0.0.1:443"));
//! seen.remove("10.0.0.1:443")?;
//! assert!(!seen.contains("10.0.0.1:443"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod answer;
pub mod bytes;
pub(crate) mod cells;
pub mod count;
pub mod error;
pub mod hash;
pub(crate) mod left;
pub mod member;
pub mod ops;
pub mod plan;
pub(crate) mod probe;
pub mod state;
pub mod zone;

/// Memory and prefetches for this project's own benchmarks. Not part of the API: any release may change it.
#[doc(hidden)]
pub mod internals {
    pub use crate::{
        cells::Memory,
        probe::{LINE, SIEVED_MAX, prefetch},
    };
}

pub use answer::{Bound, Certainty, Estimate, Lookup};
pub use error::{Infeasible, Malformed, Refused};
pub use hash::{Digest, Key, Seed};

/// The examples of the README are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
