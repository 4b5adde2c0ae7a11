//! The rule for trials that fail or succeed: handshakes, logins, lookups of names.
//!
//! A failure multiplies a level by `q / p`, a success by `(1 - q) / (1 - p)`, where `p` is the usual failure
//! rate and `q` that of an attack. For an innocent subject the mean of this factor is at most 1, and exactly 1
//! at a failure rate of `p`. Both factors are reduced by `2^-21`, which is more than all rounding of 32-bit
//! levels can add.

use super::{APART_MAX, RATES, Test, power::Scaled, test::Limit};
use crate::Infeasible;

/// A million: rates are in parts of it.
pub(crate) const MILLION: u32 = 1_000_000;

/// The integers that fix a test of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The failures per million trials of an innocent subject, at most.
    pub usual: u32,
    /// The failures per million trials of attacks. The test is fastest at these rates.
    pub attacks: [u32; RATES],
    /// The trials per false accusation, of all subjects together.
    pub apart: u64,
}

impl Shape {
    /// Checks all fields.
    pub(crate) fn check(&self) -> Result<(), Infeasible> {
        Infeasible::unless_within("usual", self.usual.into(), 1, u64::from(MILLION) - 2)?;
        for attack in self.attacks {
            let least = u64::from(self.usual) + 1;
            Infeasible::unless_within("attacks", attack.into(), least, u64::from(MILLION) - 1)?;
        }
        Infeasible::unless_within("apart", self.apart, 1, APART_MAX)
    }

    /// The factors of an attack rate after a failure and after a success, before rounding.
    pub(crate) fn factors(&self, attack: u32) -> [f64; 2] {
        let [p, q] = [self.usual, attack].map(|parts| f64::from(parts) / f64::from(MILLION));
        [q / p, (1.0 - q) / (1.0 - p)]
    }
}

/// The rule for trials that fail or succeed. See the [module](super).
///
/// ```
/// use sidon::decide::{Failures, Test, failures::Shape};
///
/// let rule = Failures::new(Shape {
///     usual: 10_000, // 1 %
///     attacks: [15_000, 30_000, 100_000, 200_000],
///     apart: 1_000_000_000,
/// })?;
/// let mut test = Test::default();
/// // Of 50 handshakes, 25 failed.
/// rule.see_many(&mut test, 25, 25);
/// assert!(rule.accuses(&test));
/// # Ok::<(), sidon::Infeasible>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failures {
    shape: Shape,
    failed: [f32; RATES],
    passed: [f32; RATES],
    limit: Limit,
}

impl Failures {
    /// The rule of this shape.
    pub fn new(shape: Shape) -> Result<Self, Infeasible> {
        shape.check()?;
        let factors = shape.attacks.map(|attack| shape.factors(attack));
        // Rounded to nearest, a factor is off by 2^-24; this and two roundings per step stay below 2^-21.
        let reduced = |factor: f64| (factor * (1.0 - 2f64.powi(-21))) as f32;
        Ok(Failures {
            shape,
            failed: factors.map(|[failed, _]| reduced(failed)),
            passed: factors.map(|[_, passed]| reduced(passed)),
            limit: Limit::new(shape.apart),
        })
    }

    /// The integers that fix the rule.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Adds one trial.
    ///
    /// While trials are sampled at random, add each kept trial once, at any sampling rate, and never scale it
    /// up. Its outcome has the usual distribution, so the bound on false accusations holds.
    #[inline]
    pub fn see(&self, test: &mut Test, failed: bool) {
        let factors = if failed { &self.failed } else { &self.passed };
        test.step(factors, self.limit.ceiling);
    }

    /// Adds several trials in unknown order as one step. The evidence is at most that of a test that began
    /// with them. The work grows with the logarithms of the numbers.
    pub fn see_many(&self, test: &mut Test, failed: u32, passed: u32) {
        if failed == 0 && passed == 0 {
            return;
        }
        let factors = std::array::from_fn(|i| {
            let up = Scaled::power(self.failed[i].into(), failed);
            up.times(Scaled::power(self.passed[i].into(), passed)).value()
        });
        test.step_by(factors, self.limit.ceiling);
    }

    /// Whether the evidence suffices. After an accusation the caller restarts the test. It may first keep the
    /// test to see when the attack ends, because the evidence falls with each success. That is one
    /// accusation.
    #[inline]
    pub fn accuses(&self, test: &Test) -> bool {
        self.limit.is_reached(test)
    }

    /// For each attack rate, the inverse of the level that successes alone lead to: the `l` for which
    /// `(l + 1) * factor = l`.
    pub(super) fn scale(&self) -> [f32; RATES] {
        self.passed.map(|factor| (1.0 - factor) / factor)
    }

    /// The largest level of a test.
    pub(super) fn ceiling(&self) -> f32 {
        self.limit.ceiling
    }
}
