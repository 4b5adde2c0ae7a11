//! Table I's filters of several layers, built by the library and measured.
//!
//! The printed sizes leave out what finds a counter's place in the next layer: perfect hashing, which
//! has to know all positions. Our sizes contain the tags that replace it.

use super::formulas::{self, D_4, GENERAL, TARGET};
use crate::{
    claim::{
        Claim,
        Tolerance::{Chance, Relative},
        Value::{Nothing, Number},
    },
    experiment::Experiment,
    interval,
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible, Seed,
    set::{Increments, Multilayer, Overflow, Spread, multilayer::Shape},
};

/// What each filter is measured for, in the order of its claims.
const MEASURED: usize = 4;

/// Four claims for each of three filters: unit increments, 4 to 7, and {8, 12, 14, 15}.
#[rustfmt::skip]
pub static LAYERS: [Claim; 3 * MEASURED] = [
    Claim::new("004.layers.unit.memory", "table I", "KB of unit increments in layers of 2, 3, 3 bits", Nothing, Number(9.3056640625), Relative(1e-9)).unprinted("7.55 is printed, without what finds a counter in the next layer"),
    Claim::new("004.layers.unit.rate", "table I", "false-positive rate of 2000 keys in them", Number(1e-3), Number(0.000999946723), Chance),
    Claim::new("004.layers.unit.spilled", "s5", "counters that continue in the second layer", Nothing, Number(966.0434), Chance).unprinted("only the sizes of layers are printed"),
    Claim::new("004.layers.unit.refused", "s5", "share of such filters that refuse a key", Nothing, Number(0.0), Chance).unprinted("overflow of the last layer is not discussed"),
    Claim::new("004.layers.D4.memory", "table I", "KB of [4, 7] in layers of 4, 3, 3, 3 bits", Nothing, Number(7.5908203125), Relative(1e-9)).unprinted("6.60 is printed, without what finds a counter in the next layer"),
    Claim::new("004.layers.D4.rate", "table I", "false-positive rate of 2000 keys in them", Number(1e-3), Number(0.000999895403), Chance),
    Claim::new("004.layers.D4.spilled", "s8.B", "counters that continue in the second layer", Nothing, Number(497.7341), Chance).unprinted("a second layer of 802 counters is printed"),
    Claim::new("004.layers.D4.refused", "s5", "share of such filters that refuse a key", Nothing, Number(0.302187), Chance).unprinted("overflow of the last layer is not discussed"),
    Claim::new("004.layers.general.memory", "table I", "KB of {8, 12, 14, 15} in layers of 5, 5, 5, 4 bits", Nothing, Number(9.595703125), Relative(1e-9)).unprinted("6.65 is printed, without what finds a counter in the next layer"),
    Claim::new("004.layers.general.rate", "table I", "false-positive rate of 2000 keys in them", Nothing, Number(0.000924556563), Chance).unprinted("1e-3 is printed, which 9500 counters undercut"),
    Claim::new("004.layers.general.spilled", "s5", "counters that continue in the second layer", Nothing, Number(1626.4452), Chance).unprinted("only the size of all further layers is printed"),
    Claim::new("004.layers.general.refused", "s5", "share of such filters that refuse a key", Nothing, Number(0.215593), Chance).unprinted("overflow of the last layer is not discussed"),
];

/// Keys never inserted that each trial looks up.
const STRANGERS: usize = 100_000;

/// The paper's layers. Buckets of sixteen cells for the counters that spill.
fn shapes() -> Result<[Shape; 3], Infeasible> {
    let shape = |values: &[u8], counters, hashes, first, rest: &[u32], buckets: &[u64]| {
        let mut shape = Shape {
            counters,
            hashes,
            first,
            rest: [0; 7],
            buckets: [0; 7],
            increments: Increments::set(values)?,
            overflow: Overflow::Refuse,
            spread: Spread::Anywhere,
        };
        shape.rest[..rest.len()].copy_from_slice(rest);
        shape.buckets[..buckets.len()].copy_from_slice(buckets);
        Ok::<_, Infeasible>(shape)
    };
    Ok([
        shape(&[1], 28_756, 10, 2, &[3, 3], &[96, 1])?,
        shape(&D_4, 12_842, 5, 4, &[3, 3, 3], &[51, 7, 1])?,
        shape(&GENERAL, 9_500, 7, 5, &[5, 5, 4], &[156, 14, 1])?,
    ])
}

/// Fills and asks filters of each shape.
pub fn layers(experiment: &Experiment, run: &Run<'_>, trials: u64) -> Result<Vec<Row>, Infeasible> {
    let shapes = shapes()?;
    let seen = run.each(experiment.name, trials, experiment.cost.millis, |mut rng| {
        let keys: Vec<u64> = (0..TARGET.0).map(|_| rng.next_u64()).collect();
        let strangers: Vec<u64> = (0..STRANGERS).map(|_| rng.next_u64()).collect();
        let mut all = Vec::new();
        for shape in shapes {
            let mut filter = Multilayer::new(shape, Seed(rng.next_u64().into()))?;
            let mut refused = Vec::new();
            filter.insert_batch(&keys, &mut |key, _| refused.push(key));
            let missed = (0..keys.len())
                .filter(|key| !refused.contains(key) && !filter.contains(&keys[*key]))
                .count();
            let mut found = vec![false; STRANGERS];
            filter.contains_batch(&strangers, &mut found);
            let passed = found.into_iter().filter(|&found| found).count();
            let rate = passed as f64 / STRANGERS as f64;
            let spilled = filter.stats().overflowed as f64;
            all.push(([rate, spilled, f64::from(!refused.is_empty())], missed));
        }
        Ok::<_, Infeasible>(all)
    })?;
    let n = seen.len() as f64;
    let rows = experiment.claims.iter().enumerate().map(|(i, claim)| {
        let (which, what) = (i / MEASURED, i % MEASURED);
        let Some(what) = what.checked_sub(1) else {
            return Row::computed(
                claim,
                formulas::kilobytes(8 * Multilayer::planned_bytes(shapes[which])),
            );
        };
        let all = || seen.iter().map(|trial| trial[which].0[what]);
        let mean = all().sum::<f64>() / n;
        let right = claim.expected.numbers().first().copied().unwrap_or(f64::NAN);
        let must = if what == 2 {
            interval::hits(right, trials).over(n)
        } else {
            let spread = (all().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
            interval::mean(right, spread, trials, u64::MAX)
        };
        let missed: usize = seen.iter().map(|trial| trial[which].1).sum();
        Row::sampled(claim, mean, must, trials).require(missed == 0, "a member was missed")
    });
    Ok(rows.collect())
}
