//! The simulations of 004: figure 5's filters, filled and asked, and cells that leave their range.

use super::{
    facts,
    formulas::{self, D_4, GENERAL, KEYS, SHAPE},
};
use crate::{
    experiment::Experiment,
    formulas::{bloom::best_hashes, increments::variable_best_hashes},
    interval::{self, Interval},
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible, Seed, plan,
    set::{Bh, Counting, Decode, Filter, Increments, Set, Variable, bh},
};
use sidon_kit::Rng;

/// Non-members that are looked up in each filter.
const STRANGERS: usize = 100_000;

/// What one trial saw: by claim, strangers that passed; and members that were missed.
struct Seen {
    passed: [u32; facts::FIGURE_5.len()],
    broken: u32,
}

/// Figure 5. The rate of each scheme by formula, and that of simulated filters beside it.
pub fn figure_5(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    let seen = run.each(experiment.name, trials, experiment.cost.millis, trial)?;
    let (n, broken) = (seen.len() as u64, seen.iter().map(|seen| seen.broken).sum::<u32>());
    let rows = facts::FIGURE_5.iter().enumerate().map(|(i, claim)| {
        let (name, bits) = scheme(i);
        let passed: u64 = seen.iter().map(|seen| u64::from(seen.passed[i])).sum();
        let rate = passed as f64 / (n * STRANGERS as u64) as f64;
        let [mean, half, spread] = facts::SIMULATED[i];
        let known = (spread * 1.96 / half).powi(2) as u64;
        let must = interval::mean(mean, spread, n, known);
        Ok(Row::computed(claim, formulas::figure_5(name, bits)?)
            .note(&format!("simulated {rate:.6}, {n} trials, must be {must}"))
            .require(must.contains(rate), "the simulation lies elsewhere")
            .require(broken == 0, "a member was missed"))
    });
    rows.collect()
}

/// The schemes in the order of the claims.
fn scheme(i: usize) -> (&'static str, u64) {
    let names = ["cbf", "bh", "bh_improved", "vi_D4", "vi_general"];
    (names[i % 5], if i < 5 { 30 } else { 50 })
}

fn trial(mut rng: Rng) -> Result<Seen, Infeasible> {
    let keys: Vec<u64> = (0..KEYS).map(|_| rng.next_u64()).collect();
    let strangers: Vec<u64> = (0..STRANGERS).map(|_| rng.next_u64()).collect();
    let mut seen = Seen { passed: [0; facts::FIGURE_5.len()], broken: 0 };
    for i in 0..seen.passed.len() {
        let (name, bits) = scheme(i);
        let (memory, seed) = (KEYS * bits, Seed(rng.next_u64().into()));
        let hashes = |values: &[u8], width: u64| {
            Ok::<_, Infeasible>(variable_best_hashes(
                Increments::set(values)?,
                memory / width,
                KEYS,
            ))
        };
        let counted = match name {
            "cbf" => {
                let hashes = best_hashes(memory / 4, KEYS);
                let shape = formulas::counting(memory / 4, hashes);
                ask(Counting::new(shape, seed)?, &keys, &strangers)
            }
            "bh" | "bh_improved" => {
                let cells = memory / 12;
                let decode = if name == "bh" { Decode::Basic } else { Decode::Improved(15) };
                let hashes = formulas::basic_hashes(cells);
                ask(Bh::new(bh::Shape { cells, hashes, decode, ..SHAPE }, seed)?, &keys, &strangers)
            }
            "vi_D4" => {
                let shape = formulas::variable(&D_4, 7, memory / 7, hashes(&D_4, 7)?)?;
                ask(Variable::new(shape, seed)?, &keys, &strangers)
            }
            _ => {
                let shape = formulas::variable(&GENERAL, 8, memory / 8, hashes(&GENERAL, 8)?)?;
                ask(Variable::new(shape, seed)?, &keys, &strangers)
            }
        };
        seen.passed[i] = counted.0;
        seen.broken += counted.1;
    }
    Ok(seen)
}

/// Strangers that pass, and members that were refused or are missed.
fn ask<B: Filter>(mut filter: Set<B>, keys: &[u64], strangers: &[u64]) -> (u32, u32) {
    let mut broken = 0;
    filter.insert_batch(keys, &mut |_, _| broken += 1);
    let mut found = vec![false; strangers.len()];
    filter.contains_batch(strangers, &mut found);
    let passed = found.iter().filter(|&&found| found).count() as u32;
    let mut held = vec![false; keys.len()];
    filter.contains_batch(keys, &mut held);
    broken += held.iter().filter(|&&held| !held).count() as u32;
    (passed, broken)
}

/// Section VIII.D: the share of narrow cells that leave their range.
pub fn pinned(experiment: &Experiment, run: &Run<'_>, trials: u64) -> Result<Vec<Row>, Infeasible> {
    let shapes: [_; facts::PINNED.len()] =
        [formulas::cells(4, 6, false), formulas::cells(3, 5, false)];
    let trial = |mut rng: Rng| {
        let keys: Vec<u64> = (0..KEYS).map(|_| rng.next_u64()).collect();
        let mut pinned = [0u64; 2];
        for (pinned, shape) in pinned.iter_mut().zip(shapes) {
            let mut filter = Bh::new(shape, Seed(rng.next_u64().into()))?;
            filter.insert_batch(&keys, &mut |_, _| {});
            *pinned = filter.stats().at_ceiling;
        }
        Ok(pinned)
    };
    let seen = run.each(experiment.name, trials, experiment.cost.millis, trial)?;
    let n = seen.len() as u64;
    let rows = facts::PINNED.iter().zip(shapes).enumerate().map(|(i, (claim, shape))| {
        let share = seen.iter().map(|seen| seen[i]).sum::<u64>() as f64 / (n * shape.cells) as f64;
        let right = claim.expected.numbers().first().copied().unwrap_or(f64::NAN);
        let spread = facts::PINNED_INTERVAL[i] / 1.96 * (facts::FILTERS as f64).sqrt();
        let must: Interval = interval::mean(right, spread, n, facts::FILTERS);
        let formula = plan::bh::overflow(shape, KEYS)?;
        Ok(Row::sampled(claim, share, must, n).note(&format!("{formula:.6}, by formula")))
    });
    rows.collect()
}
