//! The rates of sections 3.1, 3.3 and 3.4, sampled on the structures themselves.

use super::{
    facts,
    formulas::{MEETING, PAIRS, PAIRS_FLOWS},
};
use crate::{
    claim::Claim,
    experiment::Experiment,
    interval::{self, Interval},
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible, Lookup, Seed,
    internals::{Audit, Tally},
    state::{
        Direct, Fingerprint, Next, State, Stateful,
        fingerprint::{self, Moves, Placing},
        stateful::{self, Keeping},
    },
};
use sidon_kit::Rng;

fn seed(rng: &mut Rng) -> Seed {
    Seed((u128::from(rng.next_u64()) << 64) | u128::from(rng.next_u64()))
}

/// Non-members that are looked up in a trial.
const STRANGERS: u64 = 10_000;

/// A row for each claim: the mean of the trials, held to six standard deviations, as the trials
/// spread, around the right value, which is itself an average. A trial has one rate for each claim.
fn rows<const N: usize>(claims: &'static [Claim; N], trials: &[[f64; N]], known: u64) -> Vec<Row> {
    let n = trials.len() as u64;
    let row = |(i, claim): (usize, &'static Claim)| {
        let mean = trials.iter().map(|rates| rates[i]).sum::<f64>() / n as f64;
        let square = |rates: &[f64; N]| (rates[i] - mean).powi(2);
        let variance = trials.iter().map(square).sum::<f64>() / (n.max(2) - 1) as f64;
        let right = claim.expected.numbers().first().copied().unwrap_or(f64::NAN);
        let must = interval::mean(right, variance.sqrt(), n, known);
        Row::sampled(claim, mean, must, n)
    };
    claims.iter().enumerate().map(row).collect()
}

/// Section 3.3: how often members and strangers meet unknown cells.
pub fn stateful(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    let trial = |mut rng: Rng| {
        let shape = |keeping| stateful::Shape {
            cells: MEETING.cells,
            hashes: MEETING.hashes,
            states: MEETING.flows.len() as u32,
            keeping,
        };
        let mut map = Stateful::new(shape(Keeping::Counted(8)), seed(&mut rng))?;
        let mut timed = Stateful::new(shape(Keeping::Timed), seed(&mut rng))?;
        let mut members = Vec::new();
        for (state, &flows) in (0..).zip(MEETING.flows) {
            for _ in 0..flows {
                let key = rng.next_u64();
                // Counters of eight bits do not overflow here; a refusal would show as a loss.
                let _ = map.insert(&key, state).and(timed.insert(&key, state));
                members.push((key, state));
            }
        }
        let unknown = |map: &Stateful, state: Option<State>| {
            let of = members.iter().filter(|(_, own)| state.is_none_or(|state| *own == state));
            let hits = of.clone().filter(|(key, _)| map.lookup(key) == Lookup::DontKnow).count();
            hits as f64 / of.count() as f64
        };
        let mut answers = vec![0u64; MEETING.flows.len() + 1];
        for _ in 0..STRANGERS {
            match map.lookup(&rng.next_u64()) {
                Lookup::State(state) => answers[usize::from(state)] += 1,
                Lookup::DontKnow => answers[MEETING.flows.len()] += 1,
                Lookup::Absent => {}
            }
        }
        let answered = |i: usize| answers[i] as f64 / STRANGERS as f64;
        Ok([
            unknown(&map, Some(0)),
            answered(0),
            unknown(&map, Some(1)),
            answered(1),
            unknown(&map, Some(2)),
            answered(2),
            answered(3),
            unknown(&timed, None),
        ])
    };
    let trials = run.each(experiment.name, trials, experiment.cost.millis, trial)?;
    Ok(rows(&facts::STATEFUL, &trials, facts::STATEFUL_KNOWN))
}

/// Section 3.3: well-behaved flows are never answered a wrong state.
pub fn never_wrong(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    const OPERATIONS: u64 = 200_000;
    let trial = |mut rng: Rng| {
        let keeping = Keeping::Counted(8);
        let shape = stateful::Shape { cells: 300, hashes: 3, states: 5, keeping };
        let mut audit = Audit::new(Stateful::new(shape, seed(&mut rng))?);
        let mut members: Vec<u64> = Vec::new();
        for _ in 0..OPERATIONS {
            let state = rng.below(5) as State;
            let at = rng.below(members.len().max(1) as u64) as usize;
            match rng.below(4) {
                0 if members.len() < 60 => {
                    let key = rng.next_u64();
                    if audit.apply(&key, Next::Insert(state)).is_ok() {
                        members.push(key);
                    } else {
                        audit.truth.remove(&key);
                    }
                }
                1 if members.len() > 30 => {
                    let key = members.swap_remove(at);
                    let _ = audit.apply(&key, Next::Forget);
                }
                2 if !members.is_empty() => {
                    let _ = audit.apply(&members[at], Next::Modify(state));
                }
                _ if !members.is_empty() => {
                    let _ = audit.ask(&members[at]);
                }
                _ => {}
            }
        }
        Ok::<_, Infeasible>(audit.tally)
    };
    let tallies = run.each(experiment.name, trials, experiment.cost.millis, trial)?;
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let asked = sum(|tally| tally.false_states.of);
    let unknown = sum(|tally| tally.member_dont_knows.hits);
    let lost = sum(|tally| tally.false_negatives.hits);
    let none = Interval { low: 0.0, high: 0.0 };
    let [never_wrong] = &facts::NEVER_WRONG;
    let wrong = sum(|tally| tally.false_states.hits);
    let row = Row::sampled(never_wrong, wrong, none, tallies.len() as u64)
        .note(&format!("{asked} lookups of members, {unknown} don't-knows"))
        .require(lost == 0 && asked > 0 && unknown > 0, "no member may be lost");
    Ok(vec![row])
}

/// Section 3.4: independent buckets in every subtable, as in the paper.
pub fn fingerprint(
    experiment: &Experiment,
    run: &Run<'_>,
    trials: u64,
) -> Result<Vec<Row>, Infeasible> {
    const FLOWS: u64 = 12_288;
    let shape = fingerprint::Shape {
        subtables: 3,
        buckets: 1024,
        cells: 6,
        width: 24,
        remainder: 12,
        states: 8,
        shared: 3,
        placing: Placing::Independent,
        moves: Moves::Never,
        reinsert: false,
        stash: 0,
        growths: 0,
        grows: false,
        listed: 0,
    };
    let trial = |mut rng: Rng| {
        let mut map = Fingerprint::new(shape, seed(&mut rng))?;
        let mut members = Vec::new();
        for i in 0..FLOWS {
            let key = rng.next_u64();
            if map.insert(&key, (i % 8) as State).is_ok() {
                members.push(key);
            }
        }
        let asked = 200_000;
        let passed =
            (0..asked).filter(|_| map.lookup(&rng.next_u64()) != Lookup::Absent).count() as f64;
        let twice = members.iter().filter(|key| map.lookup(*key) == Lookup::DontKnow).count();
        Ok::<_, Infeasible>([passed / f64::from(asked), twice as f64 / members.len() as f64])
    };
    let trials = run.each(experiment.name, trials, experiment.cost.millis, trial)?;
    Ok(rows(&facts::FINGERPRINT, &trials, facts::FINGERPRINT_KNOWN))
}

/// Section 3.1: pairs in a counting filter.
pub fn direct(experiment: &Experiment, run: &Run<'_>, trials: u64) -> Result<Vec<Row>, Infeasible> {
    let trial = |mut rng: Rng| {
        let mut map = Direct::new(PAIRS, seed(&mut rng))?;
        let mut members = Vec::new();
        for i in 0..PAIRS_FLOWS {
            let key = rng.next_u64();
            let _ = map.insert(&key, (i % 8) as State);
            members.push(key);
        }
        let passed = (0..STRANGERS).filter(|_| map.is_in(&rng.next_u64(), 3)).count() as f64;
        let unknown = members.iter().filter(|key| map.lookup(*key) == Lookup::DontKnow).count();
        let rates = [passed / STRANGERS as f64, unknown as f64 / members.len() as f64];
        Ok::<_, Infeasible>(rates)
    };
    let trials = run.each(experiment.name, trials, experiment.cost.millis, trial)?;
    Ok(rows(&facts::DIRECT, &trials, facts::DIRECT_KNOWN))
}
