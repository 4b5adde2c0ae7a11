//! Section III.D: a number of hashes that is no integer.
//!
//! Theorem 3 takes the best number `k` of hashes, which need not be an integer. The paper's way out: an
//! additional hash gives each key the lower or the upper integer, with shares whose mean is `k`. The
//! share of counters that are not zero stays that of `k`, and the rate is the mean of the two rates.
//!
//! The library plans integers alone, because a mixture gains nothing: for 2 to 20 counters per key, none has a
//! rate below 99 % of that of the better integer. [`Fractional`] has the rate that the formula says.

use crate::formulas::increments::two_hashes;
use sidon_kit::Rng;

/// A counting filter whose keys have one of two numbers of hashes.
#[derive(Debug, Clone)]
pub struct Fractional {
    counters: Vec<u32>,
    hashes: [(u32, f64); 2],
    seed: u64,
}

impl Fractional {
    /// An empty filter.
    pub fn new(counters: usize, hashes: f64, seed: u64) -> Self {
        Fractional { counters: vec![0; counters], hashes: two_hashes(hashes), seed }
    }

    /// The counters of a key. The generator's first number chooses how many.
    fn counters_of(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let mut rng = Rng::seeded(self.seed ^ key);
        let [(low, share), (high, _)] = self.hashes;
        let (hashes, counters) = (if rng.chance(share) { low } else { high }, self.counters.len());
        (0..hashes).map(move |_| rng.below(counters as u64) as usize)
    }

    /// Adds a key.
    pub fn insert(&mut self, key: u64) {
        for counter in self.counters_of(key) {
            self.counters[counter] += 1;
        }
    }

    /// Removes a stored key.
    pub fn remove(&mut self, key: u64) {
        for counter in self.counters_of(key) {
            self.counters[counter] = self.counters[counter].saturating_sub(1);
        }
    }

    /// Whether a key may be stored. `false` is a fact.
    pub fn contains(&self, key: u64) -> bool {
        self.counters_of(key).all(|counter| self.counters[counter] > 0)
    }
}

/// The rate of such a filter with `keys` keys.
pub fn rate(counters: u64, hashes: f64, keys: u64) -> f64 {
    let zero = (hashes * keys as f64 * (-1.0 / counters as f64).ln_1p()).exp();
    two_hashes(hashes).iter().map(|&(hashes, share)| share * (1.0 - zero).powi(hashes as i32)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::{Keys, assert_rate, trials};

    #[test]
    fn a_fractional_number_of_hashes_has_the_mean_of_two_rates() {
        const KEYS: usize = 4_000;
        for (counters, hashes) in [(20_000, 3.5), (20_000, 2.8), (40_000, 6.93), (20_000, 3.0)] {
            let mut filter = Fractional::new(counters, hashes, 5);
            let mut keys = Keys::seeded(6);
            let members: Vec<u64> = keys.by_ref().take(KEYS).collect();
            members.iter().for_each(|&key| filter.insert(key));
            assert!(members.iter().all(|&key| filter.contains(key)));
            // The fill of one filter differs from the mean by far less than this.
            let used = filter.counters.iter().filter(|&&counter| counter > 0).count();
            let fill = used as f64 / counters as f64;
            let of = |&(hashes, share): &(u32, f64)| share * fill.powi(hashes as i32);
            let p: f64 = two_hashes(hashes).iter().map(of).sum();
            assert!((p / rate(counters as u64, hashes, KEYS as u64) - 1.0).abs() < 0.1, "{p}");
            let n = trials(p, 0.05);
            let passed = keys.by_ref().take(n).filter(|&key| filter.contains(key)).count();
            assert_rate(passed, n, p);
            members.iter().for_each(|&key| filter.remove(key));
            assert!(filter.counters.iter().all(|&counter| counter == 0));
        }
    }

    #[test]
    fn a_fraction_of_a_hash_gains_nothing_over_the_better_integer() {
        for bits in 2..=20u64 {
            let (counters, keys) = (1_000_000 * bits, 1_000_000);
            let best = bits as f64 * std::f64::consts::LN_2;
            let at = |hashes: f64| rate(counters, hashes, keys);
            let integer = at(best.floor().max(1.0)).min(at(best.ceil()));
            // Any mixture, not only that of the best number.
            let tenths = (10 * best.floor().max(1.0) as u64..=10 * best.ceil() as u64)
                .map(|k| k as f64 / 10.0);
            let mixed = tenths.map(at).fold(f64::INFINITY, f64::min);
            assert!(mixed > 0.99 * integer, "{bits} bits: {mixed} {integer}");
        }
    }
}
