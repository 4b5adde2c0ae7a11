//! The better estimates of section II over codes: conservative update, without bias, and least squares.
//!
//! The paper names them for hashing and says that a code keeps its zone whatever the estimate. The
//! expected errors beyond the zone were simulated without Sidon, over 100,000 draws.

use super::{counts::draw, zones::ols};
use crate::{
    claim::{
        Claim,
        Tolerance::{AtMost, Chance, Exact},
        Value::{Nothing, Number},
    },
    experiment::Experiment,
    interval,
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible, Seed,
    count::{Layout, Min, Update, min, solve},
    plan::zone::{Target, shapes},
    zone::{Code, Sketch},
};

const WHY: &str = "the methods are named, and no numbers are given";

/// Errors inside the zone, and beyond it of each method.
#[rustfmt::skip]
pub static ESTIMATES: [Claim; 5] = [
    Claim::new("003.estimates.zone", "s2, theorem 5", "wrong estimates by any method in the zones of 3 of 256, over all codes", Nothing, Number(0.0), Exact).unprinted(WHY),
    Claim::new("003.estimates.minimum", "s2, s8.C", "mean error of the smallest counter, eight active of 25 in squares of order 5", Nothing, Number(10.8061), Chance).unprinted(WHY),
    Claim::new("003.estimates.conservative", "s2", "mean error with conservative update", Nothing, Number(8.6557), Chance).unprinted(WHY),
    Claim::new("003.estimates.unbiased", "s2", "mean absolute error without bias", Nothing, Number(21.8651), Chance).unprinted(WHY),
    Claim::new("003.estimates.least_squares", "s2", "mean absolute error of the active flows by least squares", Nothing, Number(0.0), AtMost(0.05)).unprinted(WHY),
];

/// Draws that give the mean of a trial, and draws behind the expected errors.
const DRAWS: usize = 50;
const KNOWN: u64 = 100_000;
/// Active flows beyond the zone.
const ACTIVE: usize = 8;

/// What one trial saw.
struct Seen {
    wrong: u64,
    /// Mean errors by the last four claims, over a code and over hashing.
    code: [f64; 4],
    hashing: [f64; 4],
}

/// Compares every method with the truth, inside and beyond the zone.
pub fn estimates(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    let mut codes = Vec::new();
    for shape in shapes(Target { universe: 256, members: 3 })? {
        codes.push(shape.code()?);
    }
    let square = ols(25, 5, 4)?;
    let seen = run.each(experiment.name, trials, experiment.cost.millis, |mut rng| {
        let mut seen = Seen { wrong: 0, code: [0.0; 4], hashing: [0.0; 4] };
        for code in &codes {
            let flows = draw(&mut rng, code.zone() as usize, code.shape().universe());
            let [mut plain, mut conservative] = both(code)?;
            for &flow in &flows {
                plain.add(&flow, flow + 1).expect("a count fits");
                conservative.add(&flow, flow + 1).expect("a count fits");
            }
            let solved = plain.solve(&flows, 1).expect("a plain sketch holds sums");
            for (flow, count) in flows.iter().zip(solved.counts) {
                seen.wrong += u64::from(count != (flow + 1) as f64);
            }
            for flow in 0..code.shape().universe() {
                let truth = if flows.contains(&flow) { flow + 1 } else { 0 };
                let exact = sidon::Estimate::exact(truth);
                seen.wrong += u64::from(plain.estimate(&flow) != exact);
                seen.wrong += u64::from(conservative.estimate(&flow) != exact);
                let unbiased = plain.estimate_unbiased(&flow);
                seen.wrong += u64::from(unbiased != Some(truth as f64));
            }
        }
        for _ in 0..DRAWS {
            let flows = draw(&mut rng, ACTIVE, 25);
            let sizes: Vec<u64> = flows.iter().map(|_| 1 + rng.below(100)).collect();
            let [mut plain, mut conservative] = both(&square)?;
            let seed = Seed(rng.next_u64().into());
            let hashed = |update| {
                let shape =
                    min::Shape { rows: 4, columns: 5, width: 32, update, layout: Layout::Rows };
                Min::new(shape, seed)
            };
            let mut hashing = [hashed(Update::Plain)?, hashed(Update::Conservative)?];
            for (flow, &size) in flows.iter().zip(&sizes) {
                plain.add(flow, size).expect("a count fits");
                conservative.add(flow, size).expect("a count fits");
                hashing.iter_mut().for_each(|min| min.add(flow, size).expect("a count fits"));
            }
            let truths = (0..25).map(|flow| {
                let place = flows.iter().position(|&f| f == flow);
                (flow, place.map_or(0, |place| sizes[place]))
            });
            let share = (DRAWS * 25) as f64;
            for (flow, truth) in truths {
                let over = |estimate: u64| (estimate - truth) as f64 / share;
                let off = |estimate: Option<f64>| {
                    (estimate.unwrap_or(f64::NAN) - truth as f64).abs() / share
                };
                seen.code[0] += over(plain.minimum(flow));
                seen.code[1] += over(conservative.minimum(flow));
                seen.code[2] += off(plain.estimate_unbiased(&flow));
                seen.hashing[0] += over(hashing[0].estimate(&flow).value);
                seen.hashing[1] += over(hashing[1].estimate(&flow).value);
                seen.hashing[2] += off(hashing[0].estimate_unbiased(&flow));
            }
            let ours = plain.solve(&flows, 20_000).expect("a plain sketch holds sums");
            let theirs = solve(&hashing[0], &flows, 20_000).expect("a plain sketch holds sums");
            let share = (DRAWS * ACTIVE) as f64;
            for (i, &size) in sizes.iter().enumerate() {
                seen.code[3] += (ours.counts[i] - size as f64).abs() / share;
                seen.hashing[3] += (theirs.counts[i] - size as f64).abs() / share;
            }
        }
        Ok::<_, Infeasible>(seen)
    })?;
    let n = seen.len() as f64;
    let rows = experiment.claims.iter().enumerate().map(|(i, claim)| {
        let Some(i) = i.checked_sub(1) else {
            let wrong = seen.iter().map(|seen| seen.wrong).sum::<u64>();
            return Row::computed(claim, wrong)
                .note(&format!("{trials} trials of {} codes", codes.len()));
        };
        let mean = seen.iter().map(|seen| seen.code[i]).sum::<f64>() / n;
        let hashing = seen.iter().map(|seen| seen.hashing[i]).sum::<f64>() / n;
        let row = if i == 3 {
            Row::computed(claim, mean)
        } else {
            let square = seen.iter().map(|seen| (seen.code[i] - mean).powi(2)).sum::<f64>();
            let spread = (square / (n - 1.0).max(1.0)).sqrt();
            let right = claim.expected.numbers().first().copied().unwrap_or(f64::NAN);
            let must = interval::mean(right, spread, trials, KNOWN / DRAWS as u64);
            Row::sampled(claim, mean, must, trials)
        };
        row.note(&format!("of {DRAWS} draws; {hashing:.3} over as many hashed counters"))
    });
    Ok(rows.collect())
}

/// A plain sketch and one with conservative update.
fn both<C: Code>(code: &C) -> Result<[Sketch<C>; 2], Infeasible> {
    Ok([
        Sketch::new(code.clone(), 32, Update::Plain)?,
        Sketch::new(code.clone(), 32, Update::Conservative)?,
    ])
}
