//! From what the user wants to the integers that fix the memory, without sampling.
//!
//! A [`Target`] becomes a shape or [`Infeasible`]. Rates are closed forms under ideal hashing:
//! what is planned here is measured in the tests. [`members`] lists every structure that meets a
//! target, cheapest first, with the plain alternative among them.

mod backyard;
mod bh;
mod bloom;
mod choose;
mod count;
mod counting;
mod dleft;
mod draws;
mod fluid;
mod increments;
mod lines;
mod multilayer;
mod state;
mod tail;
mod variable;
mod zone;
mod zone_rate;
mod zone_search;

pub use backyard::{backyard, backyard_rate, backyard_spilled};
pub use bh::{BH_SET, bh, bh_best_hashes, bh_of, bh_overflow, bh_rate};
pub use bloom::{
    blocked, blocked_rate, bloom, bloom_best_hashes, bloom_bits_per_key, bloom_rate,
    bloom_rate_limit,
};
pub use choose::{Member, Shape, members};
pub use count::{CountTarget, count, count_epsilon, count_excess, count_in, top, top_entries};
pub use counting::{
    counting, counting_at_least, counting_in_lines, counting_overflow, counting_overflow_bound,
    counting_raises, counting_rate,
};
pub use dleft::{
    Left, dleft, dleft_copies, dleft_counter_overflow, dleft_fast, dleft_overflow, dleft_rate,
    dleft_small, dleft_smallest,
};
pub use fluid::Fluid;
pub use increments::{bh_basic_rate, bh_detection, bh_floor, two_hashes, variable_range_rate};
pub use multilayer::{multilayer, multilayer_of, multilayer_rate, multilayer_spilled};
pub use state::{
    Meeting, StateRow, StateShape, States, direct, direct_dont_know, direct_error,
    direct_pair_rate, fingerprint_dont_know, fingerprint_error, fingerprint_fast,
    fingerprint_overflow, fingerprint_small, stateful, stateful_rates, states,
};
pub use tail::{ln_factorial, poisson, poisson_at_least};
pub use variable::{
    Found, OVERFLOWS, SETS, variable, variable_at_least, variable_best_hashes, variable_in_lines,
    variable_of, variable_overflow, variable_overflow_bound, variable_rate, variable_search,
};
pub use zone::{
    Few, Fields, Held, Points, Zone, coprime, crossovers, egh_fewest_primes, egh_primes,
    independent_rate, least_polynomials, ols_rate, pol, runs, zones,
};
pub use zone_rate::{groups_rate, pol_rate};
pub use zone_search::primes_of;

use crate::Infeasible;

/// What a set should hold and how rarely it may err.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// How many keys are stored at a time, at the most.
    pub keys: u64,
    /// The share of strangers that may pass, above 0 and below 1.
    pub false_positives: f64,
}

/// The most keys a plan is made for: beyond, a table would not fit 64-bit addresses.
const KEYS_MOST: u64 = 1 << 48;
/// The smallest rate a plan is made for.
const RATE_LEAST: f64 = 1e-12;

impl Target {
    fn check(self) -> Result<(), Infeasible> {
        Infeasible::unless_within("keys", self.keys, 1, KEYS_MOST)?;
        let (name, got) = ("false_positives", self.false_positives);
        // A stranger shares its 64-bit digest with a member at a rate of keys / 2^64, whatever the
        // structure: a plan keeps that below a sixteenth of the target, and may then leave it out.
        let least = RATE_LEAST.max(16.0 * self.keys as f64 / 2f64.powi(64));
        // Written so that a rate that is no number is refused too.
        if !(got >= least && got < 1.0) {
            return Err(Infeasible::Rate { name, got, least, most: 1.0 });
        }
        Ok(())
    }
}
