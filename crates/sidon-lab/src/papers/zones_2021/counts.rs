//! Theorem 5, and the sketches of figures 12 and 13.

use super::{
    facts,
    zones::{ols, pol},
};
use crate::{
    claim::Claim,
    experiment::Experiment,
    interval::{self, SIGMAS},
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible,
    count::Update,
    plan::zone::{Target, first_primes},
    zone::{Code, Shape, Sketch},
};
use sidon_kit::Rng;

/// Distinct numbers below a bound.
pub(super) fn draw(rng: &mut Rng, count: usize, bound: u64) -> Vec<u64> {
    let mut drawn: Vec<u64> = Vec::with_capacity(count);
    while drawn.len() < count {
        let number = rng.below(bound);
        if !drawn.contains(&number) {
            drawn.push(number);
        }
    }
    drawn
}

/// A sketch of these flows, their sizes drawn from 1 to 100.
fn sketch<C: Code>(
    code: &C,
    flows: &[u64],
    rng: &mut Rng,
) -> Result<(Sketch<C>, Vec<u64>), Infeasible> {
    let mut sketch = Sketch::new(code.clone(), 32, Update::Plain)?;
    let sizes: Vec<u64> = flows.iter().map(|_| 1 + rng.below(100)).collect();
    for (flow, &size) in flows.iter().zip(&sizes) {
        sketch.add(flow, size).expect("a few packets fit a counter of 32 bits");
    }
    Ok((sketch, sizes))
}

/// Theorem 5: with d flows all estimates are right, with d + 1 those of the active ones.
pub fn theorem_5(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    let primes = first_primes(Target { universe: 256, members: 3 })?;
    let codes = [
        ols(25, 5, 4)?.shape().code()?,
        ols(25, 5, 3)?.shape().code()?,
        pol(343, 7, 3, 7, false)?.shape().code()?,
        Shape::Egh(primes).code()?,
    ];
    let millis = experiment.cost.millis;
    let wrong = run.each(experiment.name, trials, millis, |mut rng| {
        let mut wrong = 0;
        for code in &codes {
            for more in [0, 1] {
                let flows = draw(&mut rng, (code.zone() + more) as usize, code.universe());
                let (sketch, sizes) = sketch(code, &flows, &mut rng)?;
                let truth = |flow: u64| {
                    flows.iter().position(|&f| f == flow).map_or(0, |place| sizes[place])
                };
                for flow in 0..code.universe() {
                    let plain =
                        sketch.minimum(flow) != truth(flow) && (more == 0 || truth(flow) > 0);
                    let ours = sketch.estimate(&flow) != sidon::Estimate::exact(truth(flow));
                    wrong += u64::from(plain) + u64::from(ours);
                }
            }
        }
        Ok::<_, Infeasible>(wrong)
    })?;
    let [never_wrong] = &facts::THEOREM_5;
    let row = Row::computed(never_wrong, wrong.iter().sum::<u64>());
    Ok(vec![row.note(&format!("{trials} trials of four codes"))])
}

/// Draws in a trial of figures 12 and 13.
const DRAWS: u64 = 50;

/// Figure 12: what five active flows of 25 add to the estimates.
pub fn figure_12(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    let codes = [ols(25, 5, 4)?, ols(25, 5, 3)?];
    let all = run.each(experiment.name, trials, experiment.cost.millis, |mut rng| {
        // Mean errors: active and idle for 20 counters, then for 15; squares, then random.
        let mut sums = [0.0; 8];
        for _ in 0..DRAWS {
            for (half, code) in codes.iter().enumerate() {
                let flows = draw(&mut rng, 5, 25);
                let (sketch, sizes) = sketch(code, &flows, &mut rng)?;
                let random = Random::new(25, code.cells(), code.groups(), &flows, &sizes, &mut rng);
                for flow in 0..25 {
                    let place = flows.iter().position(|&f| f == flow);
                    let truth = place.map_or(0, |place| sizes[place]);
                    let (at, share) =
                        if place.is_some() { (2 * half, 5.0) } else { (2 * half + 1, 20.0) };
                    sums[at] += (sketch.minimum(flow) - truth) as f64 / share;
                    sums[4 + at] += (random.minimum(flow) - truth) as f64 / share;
                }
            }
        }
        Ok::<_, Infeasible>(sums.map(|sum| sum / DRAWS as f64))
    })?;
    let row = |(claim, column): (&'static Claim, usize)| {
        let means: Vec<f64> = all.iter().map(|trial| trial[column]).collect();
        let (mean, spread) = moments(&means);
        let known = if column < 4 { u64::MAX } else { 90_000 / DRAWS };
        let right = claim.expected.numbers().first().copied().unwrap_or(f64::NAN);
        let must = interval::mean(right, spread, trials, known);
        Row::sampled(claim, mean, must, trials).note(&format!("of {DRAWS} draws"))
    };
    let [zone_active, zone_idle, zone_15, random_active, random_idle, random_15] = &facts::FIG_12;
    let columns = [(zone_active, 0), (zone_idle, 1), (zone_15, 3)];
    let random = [(random_active, 4), (random_idle, 5), (random_15, 7)];
    Ok(columns.into_iter().chain(random).map(row).collect())
}

/// The mean error of an active and of an idle flow of 25, by Latin squares and by a random mapping.
pub fn excess_12(
    run: &Run<'_>,
    groups: u32,
    active: usize,
    trials: u64,
) -> Result<[f64; 4], Infeasible> {
    let code = ols(25, 5, groups)?;
    let name = format!("003.fig12.curve/{groups}/{active}");
    let all = run.each(&name, trials, 0, |mut rng| {
        let mut sums = [0.0; 4];
        let flows = draw(&mut rng, active, 25);
        let (sketch, sizes) = sketch(&code, &flows, &mut rng)?;
        let random = Random::new(25, code.cells(), code.groups(), &flows, &sizes, &mut rng);
        for flow in 0..25 {
            let place = flows.iter().position(|&f| f == flow);
            let truth = place.map_or(0, |place| sizes[place]);
            let (at, among) = if place.is_some() { (0, active) } else { (1, 25 - active) };
            sums[at] += (sketch.minimum(flow) - truth) as f64 / among as f64;
            sums[2 + at] += (random.minimum(flow) - truth) as f64 / among as f64;
        }
        Ok::<_, Infeasible>(sums)
    })?;
    Ok([0, 1, 2, 3].map(|i| all.iter().map(|sums| sums[i]).sum::<f64>() / trials as f64))
}

/// The mean error of an idle flow of 1331, by polynomials and by a random mapping.
pub fn excess_13(run: &Run<'_>, active: usize, trials: u64) -> Result<[f64; 2], Infeasible> {
    let code = pol(1331, 11, 3, 7, false)?;
    let all = run.each(&format!("003.fig13.curve/{active}"), trials, 0, |mut rng| {
        let flows = draw(&mut rng, active, 1331);
        let (sketch, sizes) = sketch(&code, &flows, &mut rng)?;
        let random = Random::new(1331, 77, 7, &flows, &sizes, &mut rng);
        let mut sums = [0.0; 2];
        for flow in (0..1331).filter(|flow| !flows.contains(flow)) {
            sums[0] += sketch.minimum(flow) as f64 / (1331 - active) as f64;
            sums[1] += random.minimum(flow) as f64 / (1331 - active) as f64;
        }
        Ok::<_, Infeasible>(sums)
    })?;
    Ok([0, 1].map(|i| all.iter().map(|sums| sums[i]).sum::<f64>() / trials as f64))
}

/// A mapping of flows to any `k` of all counters, no two flows alike, and the counters.
struct Random {
    cells: Vec<Vec<u64>>,
    counters: Vec<u64>,
}

impl Random {
    fn new(
        universe: usize,
        counters: u64,
        groups: u32,
        flows: &[u64],
        sizes: &[u64],
        rng: &mut Rng,
    ) -> Self {
        let mut cells: Vec<Vec<u64>> = Vec::with_capacity(universe);
        while cells.len() < universe {
            let mut own = draw(rng, groups as usize, counters);
            own.sort_unstable();
            // Among 77 choose 7 two flows are never alike in a lifetime.
            if universe > 100 || !cells.contains(&own) {
                cells.push(own);
            }
        }
        let mut counters = vec![0; counters as usize];
        for (&flow, size) in flows.iter().zip(sizes) {
            for &cell in &cells[flow as usize] {
                counters[cell as usize] += size;
            }
        }
        Random { cells, counters }
    }

    fn minimum(&self, flow: u64) -> u64 {
        let cells = self.cells[flow as usize].iter();
        cells.map(|&cell| self.counters[cell as usize]).min().unwrap_or(0)
    }
}

/// How many flows are active beside an idle one, in figure 13. An active flow among `x` sees what
/// an idle one sees beside `x - 1`.
const BESIDE: [usize; 4] = [4, 5, 6, 10];

/// Figure 13: how much less a code of 1331 flows errs than a random mapping.
pub fn figure_13(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    let code = pol(1331, 11, 3, 7, false)?;
    let cells: Vec<Vec<u64>> = (0..1331).map(|flow| code.positions(flow).collect()).collect();
    let all = run.each(experiment.name, trials, experiment.cost.millis, |mut rng| {
        let mut sums = [[0.0; 2]; 4];
        for _ in 0..DRAWS {
            for (beside, sums) in BESIDE.into_iter().zip(&mut sums) {
                let flows = draw(&mut rng, beside, 1331);
                let (sketch, sizes) = sketch(&code, &flows, &mut rng)?;
                let counters: Vec<u64> = sketch.counters().collect();
                let random = Random::new(1331, 77, 7, &flows, &sizes, &mut rng);
                let mut errors = [0, 0];
                for flow in (0..1331).filter(|flow| !flows.contains(flow)) {
                    let own = cells[flow as usize].iter().map(|&cell| counters[cell as usize]);
                    errors[0] += own.min().unwrap_or(0);
                    errors[1] += random.minimum(flow);
                }
                for (sum, error) in sums.iter_mut().zip(errors) {
                    *sum += error as f64 / (1331 - beside) as f64 / DRAWS as f64;
                }
            }
        }
        Ok::<_, Infeasible>(sums)
    })?;
    let row = |(claim, column): (&'static Claim, usize)| {
        let (zone, random): (Vec<f64>, Vec<f64>) =
            all.iter().map(|trial| (trial[column][0], trial[column][1])).unzip();
        let (mean, base) = (moments(&zone).0, moments(&random).0);
        let ratio = mean / base;
        // To first order the ratio errs as the mean of these.
        let off: Vec<f64> = zone.iter().zip(&random).map(|(a, b)| (a - ratio * b) / base).collect();
        let spread = 100.0 * moments(&off).1;
        let right = claim.expected.numbers().first().copied().unwrap_or(f64::NAN);
        let must = interval::mean(right, spread, trials, 90_000 / DRAWS);
        Row::sampled(claim, 100.0 * (1.0 - ratio), must, trials)
            .note(&format!("of {DRAWS} draws: mean error {mean:.5} against {base:.5}"))
            .require(spread.is_finite() && SIGMAS * spread > 0.0, "both must err at times")
    };
    // Columns are places in `BESIDE`.
    let [idle_5, idle_6, idle_10, active_5, active_6] = &facts::FIG_13;
    let columns = [(idle_5, 1), (idle_6, 2), (idle_10, 3), (active_5, 0), (active_6, 1)];
    Ok(columns.map(row).into())
}

/// The mean and one standard deviation.
fn moments(numbers: &[f64]) -> (f64, f64) {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let square = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>();
    (mean, (square / (n - 1.0).max(1.0)).sqrt())
}
