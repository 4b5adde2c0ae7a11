//! Section 3.3: factors of the permutations drawn at random, beside the library's fixed ones.
//!
//! The paper draws the odd factors uniformly. The library's follow from the number of fingerprints, so
//! that tables stay compatible when one of them grows. False positives cannot differ: a permutation
//! is one-to-one, so a cell matches a key never inserted only if their fingerprints are equal. The loads
//! are compared here, at 7.5 keys a bucket, where keys find no room.

use super::simulations::SHAPE;
use crate::{
    claim::{
        Claim,
        Tolerance::Chance,
        Value::{Nothing, Number},
    },
    experiment::Experiment,
    interval,
    row::Row,
    trials::Run,
};
use sidon::{Infeasible, Seed, set::DLeft};
use sidon_kit::Rng;
use std::collections::HashSet;

/// Keys of a trial: 7.5 a bucket.
const KEYS: u64 = 61_440;

/// What random factors add.
#[rustfmt::skip]
pub static FACTORS: [Claim; 2] = [
    Claim::new("002.factors.full", "s3.3", "full buckets of 8192 that random factors add to the library's, 7.5 keys a bucket", Nothing, Number(0.0), Chance).unprinted("no other factors are compared"),
    Claim::new("002.factors.refused", "s3.3", "keys without room that random factors add", Nothing, Number(0.0), Chance).unprinted("no other factors are compared"),
];

/// Fills tables either way.
pub fn factors(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    let seen = run.each(experiment.name, trials, experiment.cost.millis, |mut rng| {
        Ok::<_, Infeasible>([fixed(&mut rng)?, random(&mut rng)])
    })?;
    let n = seen.len() as f64;
    let rows = experiment.claims.iter().enumerate().map(|(i, claim)| {
        let mean = |way: usize| seen.iter().map(|trial| trial[way][i] as f64).sum::<f64>() / n;
        let more = |trial: &[[u64; 2]; 2]| trial[1][i] as f64 - trial[0][i] as f64;
        let difference = seen.iter().map(more).sum::<f64>() / n;
        let square = seen.iter().map(|trial| (more(trial) - difference).powi(2)).sum::<f64>();
        let spread = (square / (n - 1.0).max(1.0)).sqrt();
        let must = interval::mean(0.0, spread, trials, u64::MAX);
        Row::sampled(claim, difference, must, trials).note(&format!(
            "{:.3} by the library's, {:.3} by random ones",
            mean(0),
            mean(1)
        ))
    });
    Ok(rows.collect())
}

/// Full buckets and keys without room, by the library.
fn fixed(rng: &mut Rng) -> Result<[u64; 2], Infeasible> {
    let mut filter = DLeft::new(SHAPE, Seed(rng.next_u64().into()))?;
    let keys: Vec<u64> = (0..KEYS).map(|_| rng.next_u64()).collect();
    let mut refused = 0;
    filter.insert_batch(&keys, &mut |_, _| refused += 1);
    let loads = filter.loads();
    let full = loads.iter().map(|subtable| subtable[SHAPE.cells as usize]).sum();
    Ok([full, refused])
}

/// Full buckets and keys without room, with factors by the paper's rule. A fingerprint that is stored already takes no cell.
fn random(rng: &mut Rng) -> [u64; 2] {
    let mask = (SHAPE.buckets << SHAPE.remainder) - 1;
    let factors: Vec<u64> = (0..SHAPE.subtables).map(|_| rng.next_u64() & mask | 1).collect();
    let mut loads = vec![vec![0; SHAPE.buckets as usize]; factors.len()];
    let (mut stored, mut refused) = (HashSet::new(), 0);
    for _ in 0..KEYS {
        let fingerprint = rng.next_u64() & mask;
        if stored.contains(&fingerprint) {
            continue;
        }
        let bucket = |factor: &u64| (factor.wrapping_mul(fingerprint) & mask) >> SHAPE.remainder;
        let places = factors.iter().map(bucket).enumerate();
        let emptiest = places.min_by_key(|&(i, bucket)| loads[i][bucket as usize]);
        let (i, bucket) = emptiest.expect("a table has subtables");
        let load = &mut loads[i][bucket as usize];
        if *load == SHAPE.cells {
            refused += 1;
        } else {
            *load += 1;
            stored.insert(fingerprint);
        }
    }
    let full = loads.iter().flatten().filter(|&&load| load == SHAPE.cells).count() as u64;
    [full, refused]
}
