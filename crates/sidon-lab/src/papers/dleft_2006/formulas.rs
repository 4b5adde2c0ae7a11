//! What 002 claims and needs no sampling.

use super::{
    churn,
    simulations::{CBF, KEYS, SHAPE},
};
use crate::{
    claim::{Claim, Value},
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
    member::DLeft,
    plan::{self, dleft::bucket_loads},
};
use sidon_kit::poisson::{ln_factorial, poisson, poisson_at_least};
use std::{borrow::Cow, f64::consts::LN_2};

/// Sections 1 and 2: the plain filter.
pub fn bloom(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    rows(experiment.claims, |id| match id {
        "002.bf.bits_for_1pct" => bits_per_key(0.01).into(),
        "002.bf.base" => bits_to_rate(1.0).into(),
        "002.bf.n10_k7" => rate_limit(10.0, 7).into(),
        _ => Value::Nothing,
    })
}

/// Section 4: both filters at equal size, and at equal rate.
pub fn compare(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    // A table of six keys a bucket: m / 24 buckets, a bound of 24 / 2^r, 4(r + 2)/3 bits a key.
    let bound = |r: u32| 24.0 / 2f64.powi(r as i32);
    let bits = |r: u32| f64::from(SHAPE.cells * (r + SHAPE.counter)) / 6.0;
    // The counting filter in the same room, at the best number of hashes.
    let counting = |r: u32| bits_to_rate(bits(r) / 4.0);
    rows(experiment.claims, |id| match id {
        "002.cmp.first_r" => {
            // The last one that fails, plus one: it holds from there on.
            let fails = (5..=40).rev().find(|&r| counting(r) <= bound(r));
            fails.map_or(Value::Nothing, |r| u64::from(r + 1).into())
        }
        "002.cmp.r14_ratio" => (counting(14) / bound(14)).into(),
        "002.cmp.cbf9_k6" => rate_limit(9.0, 6).into(),
        "002.cmp.dl_r11" => bound(11).into(),
        "002.cmp.bits_r11" => bits(11).into(),
        "002.cmp.bits_identity" => {
            let by_rate = (4.0 * -bound(14).log2() + 20.0 + 4.0 * 3f64.log2()) / 3.0;
            by_rate.into()
        }
        _ => Value::Nothing,
    })
}

/// Section 5.1: the example of 49,152 keys.
pub fn example(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let fingerprints = SHAPE.fingerprints() as f64;
    let five = (ln_choose(KEYS, 5) - 5.0 * fingerprints.ln()).exp();
    let trials = 1e4;
    let raised = |level| trials * counter_raises(CBF, KEYS, KEYS + churn::STEPS, level);
    rows(experiment.claims, |id| match id {
        "002.fpr.exact" => fpr().into(),
        "002.fpr.bound_r14" => (KEYS as f64 / fingerprints).into(),
        "002.size.bits" => (8 * DLeft::planned_bytes(SHAPE)).into(),
        "002.size.capacity" => SHAPE.all_cells().into(),
        "002.counter.five_share.printed" => five.into(),
        "002.counter.five_share.true" => (five * fingerprints).into(),
        "002.counter.five_share.lifetime" => shared(5).into(),
        "002.cbf.counter16" => poisson(LN_2, 16).into(),
        "002.cbf.max12_trials" => raised(12).into(),
        "002.cbf.max13_trials" => raised(13).into(),
        "002.cbf.fpr_13_5" => plan::counting::rate(CBF, KEYS).into(),
        "002.cbf.bits" => (CBF.counters * u64::from(CBF.width)).into(),
        "002.sim.fpr_range" => {
            let range = fpr_range(trials, churn::STRANGERS as f64);
            Value::Numbers(Cow::Owned(range.to_vec()))
        }
        _ => Value::Nothing,
    })
}

/// Table 1 and sections 5.1 and 5.2: the limit of many buckets.
pub fn fluid(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let steady = |load| bucket_loads(SHAPE.subtables, load, true);
    let six = steady(6.0);
    rows(experiment.claims, |id| match id {
        "002.fluid.load6_5.ge9" => at_least(&steady(6.5), 9).into(),
        "002.fluid.load6_5.elements" => (6.5 * buckets()).into(),
        "002.fluid.overload_per_table" => (at_least(&six, 9) * buckets()).into(),
        "002.fluid.load6_5.expected_overflows" => overflows(53_248).into(),
        "002.fluid.insert_only.d4_load6" => {
            let filled = bucket_loads(SHAPE.subtables, 6.0, false);
            Value::Numbers((1..=8).map(|load| at_least(&filled, load)).collect())
        }
        id => {
            let load = id.strip_prefix("002.table1.fluid.ge").and_then(|load| load.parse().ok());
            load.map_or(Value::Nothing, |load| at_least(&six, load).into())
        }
    })
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

/// The least and the greatest share of `strangers` that pass, of so many trials: the medians of
/// both.
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

fn rows(claims: &'static [Claim], value: impl Fn(&str) -> Value) -> Result<Vec<Row>, Infeasible> {
    Ok(claims.iter().map(|claim| Row::computed(claim, value(claim.id))).collect())
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

    #[test]
    fn a_claim_without_a_formula_fails() {
        let rows = rows(&crate::papers::dleft_2006::facts::BLOOM, |_| Value::Nothing).unwrap();
        assert!(rows.iter().all(|row| !row.holds));
    }
}
