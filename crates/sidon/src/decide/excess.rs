//! The rule for counts per time that exceed a usual mean: packets per second, new flows per minute.
//!
//! An innocent subject's arrivals come in independent bursts of at most `burst` each, with at most `mean`
//! arrivals expected per count. An attack has `rate` times as many. A count of `x` multiplies the level of that
//! rate by
//! ```text
//! rate^(x / burst) * e^(-(rate - 1) * mean / burst)
//! ```
//! For bursts of any sizes up to `burst`, the mean of this factor is at most 1: `rate^(s / burst) - 1` is at most
//! `(rate - 1) * s / burst` for `s <= burst`, because a power is convex in its exponent. With bursts of one the
//! arrivals are Poisson. The variance of a count is at most `burst * mean`, so a baseline's variance divided by
//! its mean suggests the burst.

use super::{
    APART_MAX, RATES, Test,
    power::{exp, ln},
    test::Limit,
};
use crate::Infeasible;

/// The integers that fix a test of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The rates of attacks in per cent of the usual mean, each above 100.
    pub attacks: [u32; RATES],
    /// The counts per false accusation, of all subjects together.
    pub apart: u64,
}

impl Shape {
    /// Attacks of 1.5 to 20 times the usual mean.
    pub const fn new(apart: u64) -> Self {
        Shape { attacks: [150, 355, 840, 2_000], apart }
    }

    fn check(&self) -> Result<(), Infeasible> {
        for attack in self.attacks {
            Infeasible::unless_within("attacks", attack.into(), 101, 1_000_000)?;
        }
        Infeasible::unless_within("apart", self.apart, 1, APART_MAX)
    }
}

/// The counts of an innocent subject.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usual {
    /// The expected count, at most. For a count over several ticks, their sum. For arrivals of which one in
    /// `2^k` is kept, the mean divided by `2^k`.
    pub mean: f64,
    /// The most arrivals that come together; 1 for independent arrivals.
    pub burst: f64,
}

/// The rule for counts against a usual mean. See the [module](self).
///
/// ```
/// use sidon::decide::{Excess, Test, excess::{Shape, Usual}};
///
/// // One false accusation in 10^9 seconds of subjects. A host usually gets 2 new flows per second.
/// let rule = Excess::new(Shape::new(1_000_000_000))?;
/// let usual = Usual { mean: 2.0, burst: 1.0 };
/// let mut test = Test::default();
/// for count in [1, 0, 4, 2, 3, 1] {
///     rule.see(&mut test, count, usual);
/// }
/// assert!(!rule.accuses(&test));
/// for count in [19, 22, 20] {
///     rule.see(&mut test, count, usual);
/// }
/// assert!(rule.accuses(&test));
/// # Ok::<(), sidon::Infeasible>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Excess {
    shape: Shape,
    /// The rate less 1, and the logarithm of the rate.
    rates: [[f64; 2]; RATES],
    limit: Limit,
}

impl Excess {
    /// The rule of this shape.
    pub fn new(shape: Shape) -> Result<Self, Infeasible> {
        shape.check()?;
        let rates = shape.attacks.map(|attack| {
            let rate = f64::from(attack) / 100.0;
            [rate - 1.0, ln(rate)]
        });
        Ok(Excess { shape, rates, limit: Limit::new(shape.apart) })
    }

    /// The integers that fix the rule.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Adds the count of one tick, or of several as one count. A mean or a burst that is not a number, a
    /// negative mean or a burst below 1 adds nothing.
    pub fn see(&self, test: &mut Test, count: u64, usual: Usual) {
        let Usual { mean, burst } = usual;
        if !(mean >= 0.0 && burst >= 1.0 && mean.is_finite() && burst.is_finite()) {
            return;
        }
        let factors = self.rates.map(|[more, ln_rate]| {
            // Reduced by more than the errors of the exponential and of three roundings can add.
            exp((count as f64 * ln_rate - more * mean) / burst) * (1.0 - 2f64.powi(-40))
        });
        test.step_by(factors, self.limit.ceiling);
    }

    /// Whether the evidence suffices.
    #[inline]
    pub fn accuses(&self, test: &Test) -> bool {
        self.limit.is_reached(test)
    }
}
