//! Compact memory for network flows: a set, a state or a count for millions of keys, in a few bits
//! each. Memory is fixed at the start, and answers carry their certainty.
//!
//! The modules, in reading order:
//!
//! 1. [`key`]: a [`Key`] becomes a [`Digest`] of 64 bits under a [`Seed`]. Structures derive positions
//!    from the digest.
//! 2. [`set`]: sets. [`set::Bloom`] and [`set::Blocked`] have no deletes; [`set::DLeft`] and
//!    [`set::Backyard`] have.
//! 3. [`zone`]: sets and counts of numbers of a small universe that are proven exact.
//! 4. [`count`]: counts. [`count::Min`] answers for any key, [`count::Top`] keeps the heaviest keys,
//!    [`count::Prefixes`] the heaviest addresses and networks. [`count::Distinct`] and
//!    [`count::FanOut`] count distinct keys.
//! 5. [`decide`]: sequential tests with a bound on false accusations.
//! 6. [`state`]: state maps (maplets), their ageing, and state machines as tables.
//! 7. [`plan`]: from a target (keys, error) to a shape (the integers that fix the memory).
//! 8. [`saved`]: a versioned byte format with a checksum for every structure.
//!
//! Answers are in [`answer`], refusals and other errors in [`error`]. Generic code takes a
//! [`set::Set<B>`](set::Set) or a [`state::Map<B>`](state::Map): each family is one type.
//!
//! ```
//! use sidon::{Seed, set::Counting, plan};
//!
//! let shape = plan::counting::shape(plan::Target::new(10_000, 0.01))?;
//! let mut seen = Counting::new(shape, Seed(42))?;
//! seen.insert("10.0.0.1:443")?;
//! assert!(seen.contains("10.0.0.1:443"));
//! seen.remove("10.0.0.1:443")?;
//! assert!(!seen.contains("10.0.0.1:443"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod answer;
pub(crate) mod batch;
pub(crate) mod bucket;
pub mod count;
pub mod decide;
pub(crate) mod dleft_table;
pub mod error;
pub(crate) mod except;
pub mod key;
pub(crate) mod keyed;
pub(crate) mod memory;
pub(crate) mod packed;
pub mod plan;
pub mod saved;
pub mod set;
pub(crate) mod simd;
pub mod state;
pub mod zone;

/// Items for this project's own benchmarks, tests, lab and monitor. Not part of the API: any release may
/// change it.
///
/// It has the list of saved kinds, memory and prefetches, and the clock hand that [`state::Clock`] moves. For
/// state maps it has an exact reference, timers and sampling classes. For zones it has lists of elements.
#[doc(hidden)]
pub mod internals {
    pub use crate::{
        dleft_table::Moved,
        memory::Memory,
        saved::kinds::{ADDRESSES, CHECKPOINT, Kind, SNAPSHOT},
        simd::{LINE, SIEVED_MAX, prefetch},
        state::{
            Sweep,
            audit::{Audit, Share, Tally},
            fingerprint::{CLASSES, Fate, Follow, GROUP, Met, Swept, Visited},
        },
        zone::adaptive::{Ladder, Way},
    };
}

pub use answer::{Bound, Certainty, Estimate, Lookup};
pub use error::{Infeasible, Malformed, Refused};
pub use key::{Digest, Key, Seed};

/// The examples of the README are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
