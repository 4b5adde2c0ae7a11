//! The simulations of 002: table 1, loads of 6.5 and 6.75, the counting filter.

use super::{
    churn::{self, LOOKS, STRANGERS, Seen, Watch},
    facts, formulas,
};
use crate::{
    claim::{Claim, Tolerance},
    experiment::Experiment,
    formulas::bloom::counter_at_least,
    interval::{self, Interval},
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible, plan,
    set::{Moves, Overflow, Spread, counting, dleft},
};
use sidon_kit::poisson::poisson_at_least;

/// The paper's table: four subtables of 2048 buckets of 8 cells, each 14 + 2 bits.
pub const SHAPE: dleft::Shape = dleft::Shape {
    subtables: 4,
    buckets: 2048,
    cells: 8,
    width: 16,
    remainder: 14,
    counter: 2,
    moves: Moves::Never,
    growths: 0,
    grows: false,
};
/// Keys of the example: six a bucket.
pub const KEYS: u64 = 49_152;
/// The counting filter it is compared with.
pub const CBF: counting::Shape = counting::Shape {
    counters: 663_552,
    hashes: 9,
    width: 4,
    overflow: Overflow::Refuse,
    spread: Spread::Anywhere,
};

/// Section 5.1 and table 1: six keys a bucket.
pub fn load_6(experiment: &Experiment, run: &Run<'_>, trials: u64) -> Result<Vec<Row>, Infeasible> {
    let seen = trial(experiment, run, trials, SHAPE, KEYS, Watch::All)?;
    let n = seen.len() as u64;
    let largest = |of: fn(&Seen) -> u64| seen.iter().map(of).max().unwrap_or(0);
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
    let with = |has: fn(&Seen) -> bool| seen.iter().filter(|seen| has(seen)).count() as u64;
    let buckets = n as f64 * formulas::buckets();
    let [table_1 @ .., ninth, rate, max_counter, four_share, last_subtable, overflow] =
        &facts::LOAD_6;
    let table_1: &[_; facts::TABLE_1_SPREAD.len()] = table_1;
    let table_1 = (1..).zip(table_1).zip(facts::TABLE_1_SPREAD);
    let mut rows: Vec<_> = table_1
        .map(|((load, claim), spread)| {
            let held: u64 = seen.iter().flat_map(|s| &s.loads[load..]).sum();
            Row::sampled(claim, held as f64 / buckets, near(claim, spread, n), n)
        })
        .collect();

    // There is no ninth cell: the key would have been refused.
    rows.push(Row::sampled(ninth, sum(|s| s.full) as f64 / buckets, none(), n));

    let asked = n * STRANGERS;
    let must = interval::hits(formulas::fpr(), asked).over(asked as f64);
    let of_trial = |passed: Option<u64>| passed.unwrap_or(0) as f64 / STRANGERS as f64;
    let least = of_trial(seen.iter().map(|s| s.passed).min());
    let most = of_trial(seen.iter().map(|s| s.passed).max());
    rows.push(
        Row::sampled(rate, sum(|s| s.passed) as f64 / asked as f64, must, n)
            .note(&format!("around {:.6}, by formula", formulas::fpr()))
            .note(&format!("from {least} to {most} in a trial of {STRANGERS} lookups")),
    );

    let reached = interval::largest(|level| match level {
        1 => f64::INFINITY,
        level => n as f64 * formulas::shared(level),
    });
    let high = reached.high.min(f64::from(1u32 << SHAPE.counter));
    let must = Interval { high, ..reached };
    rows.push(Row::sampled(max_counter, largest(|s| s.counter), must, n));

    let chance = formulas::at_all(formulas::shared(4));
    let per = n as f64 / 1e4;
    let must = interval::hits(chance, n).over(per);
    rows.push(Row::sampled(four_share, with(|s| s.counter >= 4) as f64 / per, must, n));

    let must = Interval { low: 0.0, high: 7.0 };
    rows.push(
        Row::sampled(last_subtable, largest(|s| s.last_subtable), must, n)
            .note(&format!("seen at {LOOKS} looks a trial")),
    );
    rows.push(Row::sampled(overflow, with(|s| s.full > 0), none(), n));
    Ok(sound(rows, &seen))
}

/// Section 5.2: 6.5 keys a bucket.
pub fn load_6_5(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    overflows(experiment, &facts::LOAD_6_5, run, trials, 53_248)
}

/// Section 5.2: the number of keys that is printed.
pub fn load_6_5_printed(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    overflows(experiment, &facts::LOAD_6_5_PRINTED, run, trials, 53_428)
}

fn overflows(
    experiment: &Experiment,
    [share]: &'static [Claim; 1],
    run: &Run<'_>,
    trials: u64,
    keys: u64,
) -> Result<Vec<Row>, Infeasible> {
    let seen = trial(experiment, run, trials, SHAPE, keys, Watch::Refusals)?;
    let n = seen.len() as u64;
    let with = seen.iter().filter(|seen| seen.full > 0).count();
    let all: u64 = seen.iter().map(|seen| seen.full).sum();
    let chance = formulas::at_all(formulas::overflows(keys));
    let must = interval::hits(chance, n).over(n as f64);
    let note = format!("{all} refused keys; the fluid limit says {chance:.4} of the trials");
    let row = Row::sampled(share, with as f64 / n as f64, must, n).note(&note);
    Ok(sound(vec![row], &seen))
}

/// Section 5.2: 6.75 keys a bucket, and cells of the first subtable may move.
pub fn load_6_75(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    let shape = dleft::Shape { moves: Moves::First, ..SHAPE };
    let seen = trial(experiment, run, trials, shape, 55_296, Watch::Refusals)?;
    let n = seen.len() as u64;
    let pressed = || seen.iter().map(|seen| seen.pressed);
    let (least, most) = (pressed().min().unwrap_or(0), pressed().max().unwrap_or(0));
    let [potential, unresolved] = &facts::LOAD_6_75;
    let must = near(potential, facts::POTENTIAL_SPREAD, n);
    let mean = pressed().sum::<u64>() as f64 / n as f64;
    // Each trial is held to the tails of a Poisson number of this mean.
    let right = potential.expected.numbers().first().copied().unwrap_or(f64::NAN);
    let rare = interval::TAIL / n as f64;
    let too_few = 1.0 - poisson_at_least(right, least + 1) < rare;
    let too_many = poisson_at_least(right, most) < rare;
    let rows = vec![
        Row::sampled(potential, mean, must, n)
            .note(&format!("from {least} to {most} a trial"))
            .require(!too_few && !too_many, "a trial lies too far from the others"),
        Row::sampled(unresolved, seen.iter().map(|seen| seen.full).sum::<u64>(), none(), n),
    ];
    Ok(sound(rows, &seen))
}

/// Section 5.1: the counting Bloom filter of about the same rate.
pub fn counting(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    let trial = |rng| churn::counting(CBF, KEYS, rng);
    let seen = run.each(experiment.name, trials, experiment.cost.millis, trial)?;
    let n = seen.len() as u64;
    let broken = seen.iter().map(|seen| seen.broken).sum::<u64>();
    let [passing, highest] = &facts::COUNTING;
    let rate = plan::counting::rate(CBF, KEYS);
    let must = interval::mean(rate, facts::CBF_SPREAD, n, u64::MAX);
    let passed: u64 = seen.iter().map(|seen| seen.passed).sum();
    let passing = Row::sampled(passing, passed as f64 / (n * STRANGERS) as f64, must, n)
        .note(&format!("around {rate:.6}, by formula"));

    // A high counter does not last from one look to the next, so looks are independent.
    let looks = n * LOOKS;
    let reach = |level| CBF.counters as f64 * counter_at_least(CBF, KEYS, level);
    let must = interval::largest(|level| looks as f64 * reach(level));
    let ceiling = (1u64 << CBF.width) - 1;
    let must = Interval { high: must.high.min(ceiling as f64), ..must };
    let largest = || seen.iter().flat_map(|seen| seen.counters);
    // The largest of many tables says little, so the number of high counters is checked, too.
    let high = largest().filter(|&counter| counter >= HIGH).count();
    let may = interval::hits(formulas::at_all(reach(HIGH)), looks);
    let highest = Row::sampled(highest, largest().max().unwrap_or(0), must, n)
        .note(&format!("at {LOOKS} looks a trial; {high} of {looks} show {HIGH} or more"))
        .require(may.contains(high as f64), &format!("{may} of them would"));
    Ok([passing, highest].map(|row| row.require(broken == 0, BROKEN)).into())
}

/// A counter that one look in forty shows.
const HIGH: u64 = 9;
const BROKEN: &str = "a member was missed, or a counter full";

fn trial(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
    shape: dleft::Shape,
    keys: u64,
    watch: Watch,
) -> Result<Vec<Seen>, Infeasible> {
    let trial = |rng| churn::dleft(shape, keys, watch, rng);
    run.each(experiment.name, trials, experiment.cost.millis, trial)
}

/// Six standard deviations around the right value, which is itself known from
/// [`facts::TRIALS`] trials; never narrower than the record's tolerance.
fn near(claim: &Claim, spread: f64, trials: u64) -> Interval {
    let right = claim.expected.numbers().first().copied().unwrap_or(f64::NAN);
    let must = interval::mean(right, spread, trials, facts::TRIALS);
    match claim.tolerance {
        Tolerance::Absolute(distance) if must.half() < distance => {
            Interval::around(right, distance)
        }
        _ => must,
    }
}

fn none() -> Interval {
    Interval { low: 0.0, high: 0.0 }
}

/// The rows, all of which fail if the filter has broken a promise.
fn sound(rows: Vec<Row>, seen: &[Seen]) -> Vec<Row> {
    let kept = seen.iter().all(|seen| seen.broken == 0);
    rows.into_iter().map(|row| row.require(kept, BROKEN)).collect()
}
