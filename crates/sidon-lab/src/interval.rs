//! Where a measurement must fall, sized from the number of trials.
//!
//! Six standard deviations, or the tails of the same probability where events are too few for a
//! bell curve: one in a billion on each side. The seed makes a run repeatable; the width makes it
//! hold for any other seed.

use sidon_kit::poisson::ln_factorial;
use std::fmt;

/// The chance left out on each side: what lies beyond six standard deviations.
pub const TAIL: f64 = 1e-9;
/// The width of the gate, in standard deviations.
pub const SIGMAS: f64 = sidon_kit::rate::SIGMAS;

/// All numbers from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Interval {
    /// Everything within `distance` of `centre`.
    pub fn around(centre: f64, distance: f64) -> Self {
        Interval { low: centre - distance, high: centre + distance }
    }

    /// Whether the number lies in it. One that is no number does not.
    pub fn contains(&self, number: f64) -> bool {
        self.low <= number && number <= self.high
    }

    /// Both ends divided by `n`: from counts to rates.
    pub fn over(self, n: f64) -> Self {
        Interval { low: self.low / n, high: self.high / n }
    }

    /// Half its width.
    pub fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} .. {}", crate::claim::short(self.low), crate::claim::short(self.high))
    }
}

/// The mean of `trials` numbers that spread by `spread` (one standard deviation), if the true mean
/// is itself known only as the average of `known` such numbers.
pub fn mean(centre: f64, spread: f64, trials: u64, known: u64) -> Interval {
    let variance = 1.0 / trials.max(1) as f64 + 1.0 / known.max(1) as f64;
    Interval::around(centre, SIGMAS * spread * variance.sqrt())
}

/// How often an event of chance `p` happens in `n` tries, by the exact binomial tails.
pub fn hits(p: f64, n: u64) -> Interval {
    if n == 0 || p <= 0.0 {
        return Interval { low: 0.0, high: 0.0 };
    }
    if p >= 1.0 {
        return Interval { low: n as f64, high: n as f64 };
    }
    let mode = ((p * (n as f64 + 1.0)) as u64).min(n);
    let ways = ln_factorial(n) - ln_factorial(mode) - ln_factorial(n - mode);
    let peak = (ways + mode as f64 * p.ln() + (n - mode) as f64 * (-p).ln_1p()).exp();
    let odds = p / (1.0 - p);
    // The chances of mode, mode + 1, .. and of mode, mode - 1, .., down to where they stop
    // mattering; then each tail is summed from its far end.
    let up = chances(peak, n - mode, |i| {
        let k = mode + i;
        (n - k) as f64 / (k + 1) as f64 * odds
    });
    let down = chances(peak, mode, |i| {
        let k = mode - i;
        k as f64 / (n - k + 1) as f64 / odds
    });
    Interval { low: (mode - inside(&down)) as f64, high: (mode + inside(&up)) as f64 }
}

/// The largest level seen, if `expected(level)` times a level is reached on average, for levels
/// from 1: a Poisson number of times each.
pub fn largest(expected: impl Fn(u64) -> f64) -> Interval {
    const LEVELS: u64 = 1 << 16;
    // Never to reach a level has the chance exp(-expected).
    let low = (1..LEVELS).take_while(|&level| (-expected(level)).exp() < TAIL).count();
    let high = (1..LEVELS).take_while(|&level| expected(level) > TAIL).count();
    Interval { low: low as f64, high: high as f64 }
}

/// A chance, and those that follow it, each the one before times a ratio.
fn chances(first: f64, most: u64, ratio: impl Fn(u64) -> f64) -> Vec<f64> {
    let mut all = vec![first];
    let mut chance = first;
    for i in 0..most {
        chance *= ratio(i);
        if chance < TAIL * 1e-6 {
            break;
        }
        all.push(chance);
    }
    all
}

/// The last place that is left when a tail of at most [`TAIL`] is cut off the far end.
fn inside(chances: &[f64]) -> u64 {
    let mut tail = 0.0;
    for (place, chance) in chances.iter().enumerate().rev() {
        tail += chance;
        if tail > TAIL {
            return place as u64;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hits_are_held_to_six_sigma() {
        let (p, n) = (0.25, 1_000_000);
        let interval = hits(p, n);
        let sigma = (n as f64 * p * (1.0 - p)).sqrt();
        assert!((interval.low - (250_000.0 - 6.0 * sigma)).abs() < 0.02 * sigma * 6.0);
        assert!((interval.high - (250_000.0 + 6.0 * sigma)).abs() < 0.02 * sigma * 6.0);
    }

    #[test]
    fn few_hits_are_held_to_their_own_tail() {
        // One hit where a hundredth is expected lies ten sigma out, and is no fault; three have a
        // chance of 2 * 10^-7, four of less than 10^-9.
        let interval = hits(1e-6, 10_000);
        assert_eq!((interval.low, interval.high), (0.0, 3.0));
        use sidon_kit::poisson::poisson_at_least;
        assert!(poisson_at_least(0.01, 3) > TAIL && poisson_at_least(0.01, 4) < TAIL);
    }

    #[test]
    fn the_ends_are_where_the_exact_tails_pass_one_in_a_billion() {
        // All 2^12 outcomes of 12 tries, weighed.
        let (p, n) = (0.03f64, 12u64);
        let choose = |k| {
            let f = ln_factorial;
            (f(n) - f(k) - f(n - k)).exp()
        };
        let chance = |k: u64| choose(k) * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32);
        let tail = |from: u64| (from..=n).map(chance).sum::<f64>();
        let high = hits(p, n).high as u64;
        assert!(tail(high) > TAIL && tail(high + 1) <= TAIL, "{high}");
    }

    #[test]
    fn what_cannot_vary_has_no_width() {
        assert_eq!(hits(0.0, 100), Interval { low: 0.0, high: 0.0 });
        assert_eq!(hits(1.0, 100), Interval { low: 100.0, high: 100.0 });
        assert_eq!(hits(0.5, 0), Interval { low: 0.0, high: 0.0 });
        assert!(!Interval::around(0.0, 1.0).contains(f64::NAN));
    }

    #[test]
    fn more_trials_narrow_a_mean_as_far_as_its_centre_is_known() {
        assert_eq!(mean(5.0, 2.0, 4, u64::MAX).half(), 6.0);
        assert!((mean(5.0, 2.0, 4, 4).half() - 6.0 * 2f64.sqrt()).abs() < 1e-12);
        assert!(mean(5.0, 2.0, 1_000_000, 16).half() > 3.0);
    }

    #[test]
    fn a_largest_level_is_held_from_both_sides() {
        // Level k is reached 10^(4 - 2k) times on average: surely 1, perhaps 2, 6 almost never.
        let interval = largest(|level| 10f64.powi(4 - 2 * level as i32));
        assert_eq!((interval.low, interval.high), (1.0, 6.0));
    }
}
