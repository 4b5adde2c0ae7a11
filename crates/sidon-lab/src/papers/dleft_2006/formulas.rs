//! What 002 claims and needs no sampling.

use super::{
    churn, facts,
    simulations::{CBF, KEYS, SHAPE},
};
use crate::{
    claim::Value,
    experiment::Experiment,
    formulas::{
        bloom::{bits_per_key, counter_raises, rate_limit},
        dleft::at_least,
    },
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible,
    plan::{self, dleft::bucket_loads},
    set::DLeft,
};
use sidon_kit::poisson::{ln_factorial, poisson, poisson_at_least};
use std::{borrow::Cow, f64::consts::LN_2};

/// Sections 1 and 2: the plain filter.
pub fn bloom(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let [bits_for_one_percent, base, ten_bits] = &facts::BLOOM;
    Ok(vec![
        Row::computed(bits_for_one_percent, bits_per_key(0.01)),
        Row::computed(base, bits_to_rate(1.0)),
        Row::computed(ten_bits, rate_limit(10.0, 7)),
    ])
}

/// Section 4: both filters at equal size, and at equal rate.
pub fn compare(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    // A table of six keys a bucket: m / 24 buckets, a bound of 24 / 2^r, 4(r + 2)/3 bits a key.
    let bound = |r: u32| 24.0 / 2f64.powi(r as i32);
    let bits = |r: u32| f64::from(SHAPE.cells * (r + SHAPE.counter)) / 6.0;
    // The counting filter in the same room, at the best number of hashes.
    let counting = |r: u32| bits_to_rate(bits(r) / 4.0);
    // One above the largest remainder that fails.
    let fails = (5..=40).rev().find(|&r| counting(r) <= bound(r));
    let bits_by_rate = (4.0 * -bound(14).log2() + 20.0 + 4.0 * 3f64.log2()) / 3.0;
    let [first_remainder, ratio, nine_counters, bound_11, bits_11, bits_14] = &facts::COMPARE;
    Ok(vec![
        Row::computed(first_remainder, fails.map_or(Value::Nothing, |r| u64::from(r + 1).into())),
        Row::computed(ratio, counting(14) / bound(14)),
        Row::computed(nine_counters, rate_limit(9.0, 6)),
        Row::computed(bound_11, bound(11)),
        Row::computed(bits_11, bits(11)),
        Row::computed(bits_14, bits_by_rate),
    ])
}

/// Section 5.1: the example of 49,152 keys.
pub fn example(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let fingerprints = SHAPE.fingerprints() as f64;
    let five = (ln_choose(KEYS, 5) - 5.0 * fingerprints.ln()).exp();
    let trials = 1e4;
    let raised = |level| trials * counter_raises(CBF, KEYS, KEYS + churn::STEPS, level);
    let range = fpr_range(trials, churn::STRANGERS as f64);
    let [exact, bound, bits, capacity, counters @ .., cbf_rate, cbf_bits, rates_seen] =
        &facts::EXAMPLE;
    let [five_printed, five_right, five_lifetime, sixteen, twelve, thirteen] = counters;
    Ok(vec![
        Row::computed(exact, fpr()),
        Row::computed(bound, KEYS as f64 / fingerprints),
        Row::computed(bits, 8 * DLeft::planned_bytes(SHAPE)),
        Row::computed(capacity, SHAPE.all_cells()),
        Row::computed(five_printed, five),
        Row::computed(five_right, five * fingerprints),
        Row::computed(five_lifetime, shared(5)),
        Row::computed(sixteen, poisson(LN_2, 16)),
        Row::computed(twelve, raised(12)),
        Row::computed(thirteen, raised(13)),
        Row::computed(cbf_rate, plan::counting::rate(CBF, KEYS)),
        Row::computed(cbf_bits, CBF.counters * u64::from(CBF.width)),
        Row::computed(rates_seen, Value::Numbers(Cow::Owned(range.to_vec()))),
    ])
}

/// Table 1 and sections 5.1 and 5.2: the limit of many buckets.
pub fn fluid(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let steady = |load| bucket_loads(SHAPE.subtables, load, true);
    let six = steady(6.0);
    let filled = bucket_loads(SHAPE.subtables, 6.0, false);
    let filled = Value::Numbers((1..=8).map(|load| at_least(&filled, load)).collect());
    let [table_1 @ .., nine, elements, overfull, refused, insert_only] = &facts::FLUID;
    let table_1: &[_; 9] = table_1;
    let mut rows: Vec<_> = table_1
        .iter()
        .zip(1..)
        .map(|(claim, load)| Row::computed(claim, at_least(&six, load)))
        .collect();
    rows.extend([
        Row::computed(nine, at_least(&steady(6.5), 9)),
        Row::computed(elements, 6.5 * buckets()),
        Row::computed(overfull, at_least(&six, 9) * buckets()),
        Row::computed(refused, overflows(53_248)),
        Row::computed(insert_only, filled),
    ]);
    Ok(rows)
}

/// The buckets of all subtables.
pub fn buckets() -> f64 {
    (u64::from(SHAPE.subtables) * SHAPE.buckets) as f64
}

/// How many keys are refused in a trial of a table that always holds `keys` keys, on average.
pub fn overflows(keys: u64) -> f64 {
    // Keys that share a fingerprint share a cell.
    let load = SHAPE.fingerprints() as f64 * share_in_use(keys) / buckets();
    let loads = bucket_loads(SHAPE.subtables, load, true);
    let full: f64 = loads.iter().map(|shares| shares[SHAPE.cells as usize]).product();
    churn::STEPS as f64 * full
}

/// The chance of an event at all, if `expected` of them come on average, one by one.
pub fn at_all(expected: f64) -> f64 {
    -(-expected).exp_m1()
}

/// The share of fingerprints that `keys` keys have.
fn share_in_use(keys: u64) -> f64 {
    -(keys as f64 * (-1.0 / SHAPE.fingerprints() as f64).ln_1p()).exp_m1()
}

/// The share of strangers that pass a d-left filter of [`KEYS`] keys: those that share a
/// fingerprint with one of them.
pub fn fpr() -> f64 {
    share_in_use(KEYS)
}

/// How often in a trial a key comes to be the `level`-th of its fingerprint, on average.
pub fn shared(level: u64) -> f64 {
    // Each later key meets `level - 1` of the others; the first fill meets each group once.
    let alike = (level - 1) as f64 * (SHAPE.fingerprints() as f64).ln();
    let later = churn::STEPS as f64 * (ln_choose(KEYS - 1, level - 1) - alike).exp();
    later + (ln_choose(KEYS, level) - alike).exp()
}

/// The medians of the least and of the greatest share of `strangers` that pass in a trial.
fn fpr_range(trials: f64, strangers: f64) -> [f64; 2] {
    let mean = strangers * fpr();
    // The chance of one trial that makes the extreme of all as likely as not.
    let chance = 1.0 - 0.5f64.powf(1.0 / trials);
    let below = |k: &u64| 1.0 - poisson_at_least(mean, k + 1) < chance;
    let least = (0..).take_while(below).count();
    let above = |k: &u64| poisson_at_least(mean, mean as u64 + k + 1) > chance;
    let greatest = mean as usize + (0..).take_while(above).count();
    [least as f64 / strangers, greatest as f64 / strangers]
}

/// The rate of a Bloom filter with this many bits a key at the best number of hashes, whole or not.
pub fn bits_to_rate(bits: f64) -> f64 {
    (-bits / bits_per_key((-1f64).exp())).exp()
}

/// The logarithm of the ways to choose `k` of `n`, `k` being small.
fn ln_choose(n: u64, k: u64) -> f64 {
    let ways: f64 = (0..k).map(|i| ((n - i) as f64).ln()).sum();
    ways - ln_factorial(k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_keys_by_the_fluid_limit() {
        // Both numbers of keys that the paper may mean, computed without Sidon.
        for (keys, expected) in [(53_248, 0.0257391906716), (53_428, 0.0637962776619)] {
            sidon_kit::rate::assert_close(overflows(keys), expected, 1e-3);
        }
    }
}
