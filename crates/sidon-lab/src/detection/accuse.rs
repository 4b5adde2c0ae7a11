//! Detectors of subjects that fail more often than usual, at one budget of false accusations.
//!
//! | detector | accuses |
//! |---|---|
//! | [`Sequential`] | by [`sidon::decide::Failures`] |
//! | [`Window`] | at `k` failures in the last `n` trials |
//! | [`Walk`] | when a likelihood ratio of one attack rate exceeds a limit; it starts again at a lower limit |
//!
//! Each is set so that innocent subjects are accused at most once in `apart` trials. For the window, `k`
//! is the least number for which `p * P(k - 1 failures in n - 1 trials)` is at most `1 / apart`. For the walk, an
//! innocent run exceeds the limit with probability at most its inverse, and the mean length of innocent runs is
//! measured. Jung, Paxson, Berger and Balakrishnan, "Fast portscan detection using sequential hypothesis testing",
//! IEEE S&P 2004.

use sidon::{
    Infeasible,
    decide::{Failures, Test, failures::Shape},
    plan,
};
use sidon_kit::{Rng, poisson::ln_factorial};

/// A test of one subject.
pub trait Detector: Clone {
    /// Adds a trial. Returns whether the subject is accused.
    fn see(&mut self, failed: bool) -> bool;
    /// Starts again without evidence.
    fn restart(&mut self);
}

/// The test of the library.
#[derive(Debug, Clone)]
pub struct Sequential {
    rule: Failures,
    test: Test,
}

impl Sequential {
    /// The test for a usual failure rate and a budget.
    pub fn new(usual: f64, apart: u64) -> Result<Self, Infeasible> {
        Ok(Sequential {
            rule: Failures::new(plan::decide::shape(usual, apart)?)?,
            test: Test::default(),
        })
    }

    /// The integers that fix the test.
    pub fn shape(&self) -> Shape {
        self.rule.shape()
    }
}

impl Detector for Sequential {
    #[inline]
    fn see(&mut self, failed: bool) -> bool {
        self.rule.see(&mut self.test, failed);
        self.rule.accuses(&self.test)
    }

    fn restart(&mut self) {
        self.test.restart();
    }
}

/// The trials of a window.
pub const WINDOW: usize = 128;

/// At least `limit` failures in the last [`WINDOW`] trials: 16 bytes, as many as a [`Test`].
#[derive(Debug, Clone)]
pub struct Window {
    trials: u128,
    limit: u32,
}

impl Window {
    /// The smallest limit that keeps the budget.
    pub fn new(usual: f64, apart: u64) -> Self {
        let n = WINDOW as u64 - 1;
        let ln_chance = |k: u64| {
            let ways = ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
            ways + k as f64 * usual.ln() + (n - k) as f64 * (1.0 - usual).ln()
        };
        // From the mean on, the chance falls with the number of failures.
        let mean = (n as f64 * usual).ceil() as u64;
        let budget = -(apart as f64).ln();
        let least = (mean..=n).find(|&k| usual.ln() + ln_chance(k) <= budget).unwrap_or(n);
        Window { trials: 0, limit: least as u32 + 1 }
    }

    /// The number of failures that accuses.
    pub fn limit(&self) -> u32 {
        self.limit
    }
}

impl Detector for Window {
    #[inline]
    fn see(&mut self, failed: bool) -> bool {
        self.trials = self.trials << 1 | u128::from(failed);
        self.trials.count_ones() >= self.limit
    }

    fn restart(&mut self) {
        self.trials = 0;
    }
}

/// Threshold Random Walk for one attack rate.
#[derive(Debug, Clone)]
pub struct Walk {
    sum: f64,
    failed: f64,
    passed: f64,
    lower: f64,
    upper: f64,
}

impl Walk {
    /// The walk for attacks that fail `times` as often as usual, with a chance of 0.01 to clear such an attack in
    /// a run.
    pub fn new(usual: f64, times: f64, apart: u64) -> Self {
        let attack = usual * times;
        let [failed, passed] = [(attack / usual).ln(), ((1.0 - attack) / (1.0 - usual)).ln()];
        let mut walk = Walk { sum: 0.0, failed, passed, lower: 0.01f64.ln(), upper: f64::INFINITY };
        // The mean length of an innocent run.
        let (mut rng, mut runs) = (Rng::seeded(77), 0u32);
        const TRIALS: u32 = 1_000_000;
        for _ in 0..TRIALS {
            walk.see(rng.chance(usual));
            runs += u32::from(walk.sum == 0.0);
        }
        let length = f64::from(TRIALS) / f64::from(runs.max(1));
        Walk { sum: 0.0, upper: (apart as f64 / length).ln().max(0.0), ..walk }
    }
}

impl Detector for Walk {
    #[inline]
    fn see(&mut self, failed: bool) -> bool {
        self.sum += if failed { self.failed } else { self.passed };
        if self.sum <= self.lower {
            self.sum = 0.0;
        }
        self.sum >= self.upper
    }

    fn restart(&mut self) {
        self.sum = 0.0;
    }
}

/// Delays of attacks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delays {
    /// The mean number of trials until an attack is accused; of accused ones only.
    pub mean: f64,
    /// The share of attacks that were not accused within the most trials.
    pub missed: f64,
}

/// The delays of `attacks` subjects that fail at `rate`, each after 1,000 innocent trials.
pub fn delays(new: &impl Detector, usual: f64, rate: f64, attacks: u64, most: u64) -> Delays {
    let (mut total, mut found) = (0, 0u64);
    for attack in 0..attacks {
        let (mut detector, mut rng) = (new.clone(), Rng::seeded(attack));
        for _ in 0..1_000 {
            if detector.see(rng.chance(usual)) {
                detector.restart();
            }
        }
        if let Some(trials) = (1..=most).find(|_| detector.see(rng.chance(rate))) {
            total += trials;
            found += 1;
        }
    }
    Delays { mean: total as f64 / found as f64, missed: 1.0 - found as f64 / attacks as f64 }
}

/// The accusations of `subjects` innocent subjects with `trials` trials each, on `threads` threads.
pub fn accusations<D: Detector + Sync>(
    new: &D,
    usual: f64,
    subjects: u64,
    trials: u64,
    threads: u64,
) -> u64 {
    let part = |thread: u64| {
        let mut accusations = 0;
        for subject in (thread..subjects).step_by(threads as usize) {
            let (mut detector, mut rng) = (new.clone(), Rng::seeded(subject));
            for _ in 0..trials {
                if detector.see(rng.chance(usual)) {
                    accusations += 1;
                    detector.restart();
                }
            }
        }
        accusations
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        parts.into_iter().map(|part| part.join().expect("a part does not panic")).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_detectors_keep_the_budget_and_the_sequential_test_finds_every_rate() {
        let (usual, apart) = (0.02, 20_000);
        let sequential = Sequential::new(usual, apart).unwrap();
        let (window, walk) = (Window::new(usual, apart), Walk::new(usual, 5.0, apart));
        let (subjects, trials) = (400, 10_000);
        let budget = (subjects * trials / apart) as f64;
        let most = budget + 6.0 * budget.sqrt();
        let [a, b, c] = [
            accusations(&sequential, usual, subjects, trials, 2),
            accusations(&window, usual, subjects, trials, 2),
            accusations(&walk, usual, subjects, trials, 2),
        ];
        assert!(a > 0 && a as f64 <= most, "{a} of {most}");
        assert!(b > 0 && b as f64 <= most, "{b} of {most}");
        assert!(c > 0 && c as f64 <= most, "{c} of {most}");
        for times in [1.5, 5.0, 20.0] {
            let rate = usual * times;
            let ours = delays(&sequential, usual, rate, 200, 20_000);
            assert_eq!(ours.missed, 0.0, "{times}");
            let planned = plan::decide::delay(sequential.shape(), rate);
            assert!(ours.mean <= planned, "{times}: {} of {planned}", ours.mean);
        }
        // At a rate below half of the way to its own, the walk drifts down.
        let slow = delays(&walk, usual, usual * 1.5, 100, 5_000).mean;
        let ours = delays(&sequential, usual, usual * 1.5, 100, 5_000).mean;
        assert!(ours < slow || slow.is_nan(), "{ours} {slow}");
    }
}
