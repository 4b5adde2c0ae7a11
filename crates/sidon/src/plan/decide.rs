//! Sequential tests of failures ([`decide`](crate::decide)): attack rates, delays and memory.
//!
//! A level of the failure rate `q` grows by `r ln(q / p) + (1 - r) ln((1 - q) / (1 - p))` per trial of a subject
//! that fails at rate `r`. By Wald's identity it reaches its limit after that limit's logarithm, and at most one
//! failure more, divided by the growth. The level with the smallest delay decides.

use crate::{
    Infeasible,
    decide::{
        APART_MAX, RATES,
        failures::{MILLION, Shape},
        suspects,
    },
    keyed,
};

/// The rates of attacks, as multiples of the usual rate: the least and the largest.
const LEAST: f64 = 1.5;
const MOST: f64 = 20.0;

/// The test of failures that accuses subjects of at least 1.5 times the `usual` failure rate. At most one in
/// `apart` trials of innocent subjects is expected to give a false accusation.
///
/// For at most one false accusation in `n` days, `apart` is the number of trials in `n` days.
///
/// ```
/// use sidon::plan::decide;
///
/// // 1,000 handshakes per second, 5 % fail, one false accusation in 30 days.
/// let shape = decide::shape(0.05, 1_000 * 86_400 * 30)?;
/// // A scanner that fails with 19 of 20 targets is accused within 15 targets, on average.
/// assert!(decide::delay(shape, 0.95) < 15.0);
/// // A subject that fails as usual is never accused rightly.
/// assert_eq!(decide::delay(shape, 0.05), f64::INFINITY);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(usual: f64, apart: u64) -> Result<Shape, Infeasible> {
    let (least, most) = (1e-6, 0.9);
    // Written so that a NaN is refused too.
    if !(usual >= least && usual <= most) {
        return Err(Infeasible::Rate { name: "usual", got: usual, least, most });
    }
    Infeasible::unless_within("apart", apart, 1, APART_MAX)?;
    let million = f64::from(MILLION);
    let parts = (usual * million).round().max(1.0);
    let p = parts / million;
    // Rates from 1.5 to 20 times the usual one, at equal ratios of their odds. A success divides a level by
    // at most 8, so that one success does not hide a scan.
    let most = (MOST * p).min(1.0 - (1.0 - p) / 8.0);
    let least = (LEAST * p).min(p + (most - p) / 4.0);
    let odds = |rate: f64| (rate / (1.0 - rate)).ln();
    let (low, high) = (odds(least), odds(most));
    let attacks = std::array::from_fn(|i| {
        let odds = (low + (high - low) * i as f64 / (RATES - 1) as f64).exp();
        let rate = (odds / (1.0 + odds) * million).round();
        rate.clamp(parts + 1.0, million - 1.0) as u32
    });
    let shape = Shape { usual: parts as u32, attacks, apart };
    shape.check()?;
    Ok(shape)
}

/// The expected number of trials, at most, until a new subject with failure rate `rate` is accused. Infinite at
/// rates that the test does not detect.
pub fn delay(shape: Shape, rate: f64) -> f64 {
    if shape.check().is_err() || !(0.0..=1.0).contains(&rate) {
        return f64::INFINITY;
    }
    let limit = (shape.apart as f64 * RATES as f64).ln();
    let delays = shape.attacks.map(|attack| {
        let [failed, passed] = shape.factors(attack).map(f64::ln);
        let growth = rate * failed + (1.0 - rate) * passed;
        if growth > 0.0 { (limit + failed) / growth } else { f64::INFINITY }
    });
    delays.into_iter().fold(f64::INFINITY, f64::min)
}

/// A table of suspects with room for `subjects` subjects that had a failure.
pub fn suspects(subjects: u64, test: Shape) -> Result<suspects::Shape, Infeasible> {
    Infeasible::unless_within("subjects", subjects, 1, 1 << 40)?;
    test.check()?;
    Ok(suspects::Shape { buckets: keyed::planned_buckets(subjects), test })
}
