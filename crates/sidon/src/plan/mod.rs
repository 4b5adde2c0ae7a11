//! From a target to a shape: the integers that fix the memory, computed without sampling.
//!
//! [`set`] answers the common question: this many keys, this false-positive rate, which structure of
//! what size? [`sets`] lists every structure that meets the target.
//!
//! Each family has a module. Its `shape` is the smallest shape for a target, or [`Infeasible`] with
//! the reason. Its `rate` is the false-positive rate of a shape with `keys` keys stored, and its
//! `overflow` tells how often counters or buckets are too small. All are closed forms or fluid limits
//! under ideal hashing, and the tests measure them.
//!
//! ```
//! use sidon::{Seed, set::Counting, plan::{self, Target}};
//!
//! // 2,000 keys at one in a thousand: table I of Rottenstreich et al.
//! let shape = plan::counting::shape(Target::new(2_000, 0.001))?;
//! assert_eq!((shape.counters, shape.hashes, shape.width), (28_756, 10, 4));
//! assert!(plan::counting::rate(shape, 2_000) <= 0.001);
//! let filter = Counting::new(shape, Seed(42))?;
//! # Ok::<(), sidon::Infeasible>(())
//! ```

pub mod backyard;
pub mod bh;
pub mod blocked;
pub mod bloom;
pub mod count;
pub mod counting;
pub mod decide;
pub mod direct;
pub mod distinct;
pub mod dleft;
mod draws;
#[doc(hidden)]
pub mod elastic;
pub mod fan_out;
pub mod fingerprint;
mod fluid;
mod increments;
mod lines;
pub mod multilayer;
pub mod periods;
pub mod prefixes;
mod set;
mod state;
pub mod stateful;
mod tail;
pub mod top;
pub mod variable;
pub mod zone;
mod zone_rate;
mod zone_search;

pub use set::{SetRow, SetShape, set, sets};
pub use state::States;
pub(crate) use zone_rate::{groups_rate, pol_rate};
pub(crate) use zone_search::primes_of;

use crate::Infeasible;

/// The requirements on a set.
///
/// ```
/// use sidon::plan::{Prefer, Target};
///
/// let target = Target { deletes: true, ..Target::new(10_000, 0.01) };
/// assert_eq!((target.keys, target.growth, target.prefer), (10_000, 0, Prefer::Memory));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// The most keys that are stored at a time. Each copy of a key counts.
    pub keys: u64,
    /// The share of keys never inserted that may be found, above 0 and below 1.
    pub false_positives: f64,
    /// Whether keys must be removable.
    pub deletes: bool,
    /// How many times the number of keys may double: up to `keys * 2^growth` keys are stored.
    pub growth: u32,
    /// Whether the set is small or fast, where it cannot be both.
    pub prefer: Prefer,
}

/// The cost that a plan keeps low.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefer {
    /// Bytes: the smallest table that meets the target.
    #[default]
    Memory,
    /// Cache misses: the table whose operations read the fewest cache lines.
    Speed,
}

/// The most keys of a plan: more would not fit 64-bit addresses.
const KEYS_MAX: u64 = 1 << 48;
/// The smallest rate of a plan.
const RATE_LEAST: f64 = 1e-12;

impl Target {
    /// A set of `keys` keys that never leave and do not grow in number, in the least memory.
    pub const fn new(keys: u64, false_positives: f64) -> Self {
        Target { keys, false_positives, deletes: false, growth: 0, prefer: Prefer::Memory }
    }

    /// Checks `keys` and `false_positives`.
    fn check(self) -> Result<(), Infeasible> {
        self.check_named("keys", "false_positives")
    }

    /// Checks the keys and the rate under the names that the caller knows them by.
    fn check_named(self, keys: &'static str, name: &'static str) -> Result<(), Infeasible> {
        Infeasible::unless_within(keys, self.keys, 1, KEYS_MAX)?;
        let got = self.false_positives;
        // A key never inserted shares its 64-bit digest with a stored one at a rate of keys / 2^64, in
        // any structure. A plan keeps that below a sixteenth of the target, and then leaves it out.
        let least = RATE_LEAST.max(16.0 * self.keys as f64 / 2f64.powi(64));
        // Written so that a NaN is refused too.
        if !(got >= least && got < 1.0) {
            return Err(Infeasible::Rate { name, got, least, most: 1.0 });
        }
        Ok(())
    }

    /// Checks the target of a structure that cannot grow.
    fn check_fixed(self) -> Result<(), Infeasible> {
        self.check()?;
        if self.growth > 0 {
            let must = "be 0, because only d-left filters grow";
            return Err(Infeasible::conflict("growth", &self.growth, must));
        }
        Ok(())
    }

    /// Checks the target of a structure that keys cannot leave and that cannot grow.
    fn check_permanent(self) -> Result<(), Infeasible> {
        self.check_fixed()?;
        if self.deletes {
            let must = "be false, because keys cannot leave a Bloom filter";
            return Err(Infeasible::conflict("deletes", &true, must));
        }
        Ok(())
    }
}

/// The error of a plan that finds no shape for the rate `got`: names the first of twice, four times,
/// eight times .. that rate that `is_met`.
fn too_strict(name: &'static str, got: f64, is_met: impl Fn(f64) -> bool) -> Infeasible {
    let doubled = std::iter::successors(Some(got * 2.0), |rate| Some(rate * 2.0));
    match doubled.take_while(|&rate| rate < 1.0).find(|&rate| is_met(rate)) {
        Some(least) => Infeasible::Rate { name, got, least, most: 1.0 },
        None => Infeasible::Memory { bytes: u64::MAX },
    }
}
