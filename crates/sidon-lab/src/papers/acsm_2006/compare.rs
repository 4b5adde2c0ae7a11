//! The three structures on one stream, in the same memory: who errs least?
//!
//! Flows begin in state 0, take steps "if in i, go to j" among eight states, and end. In an
//! ill-behaved stream some steps are for absent flows, and some flows never end. All structures have
//! the same number of bits a flow, and age if the stream needs it. Each step depends on the
//! structure's answer; an exact reference follows the truth. A phase of the clock is five times the
//! stream, so no phase ends in it. Flows without an end therefore accumulate and can fill the
//! fingerprint table. A step on a "don't know" is skipped, so a member can be answered a state that it
//! has left.

use super::facts;
use crate::{
    claim::short, experiment::Experiment, formulas::bloom::best_hashes, interval::Interval,
    row::Row, trials::Run,
};
use sidon::{
    Infeasible, Seed,
    internals::{Audit, Tally},
    plan,
    state::{
        Cells, Clock, Direct, Faulty, Fingerprint, Machine, Map, Rule, State, Stateful, direct,
        fingerprint::{self, Moves, Placing},
        stateful::{self, Keeping},
    },
};
use sidon_kit::Rng;
use std::sync::{Mutex, PoisonError};

/// States of a flow.
pub const STATES: u32 = 8;
/// Bits a flow.
pub const MEMORY: [u64; 5] = [8, 16, 24, 32, 48];

/// The claim that the table decides.
pub const CLAIM: &str = "000.fcf.most_settings";

/// How a stream behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behaviour {
    /// The share of steps for flows that are not stored.
    pub spurious: f64,
    /// The share of flows that never end.
    pub endless: f64,
}

/// From well-behaved to not at all.
pub const BEHAVIOURS: [Behaviour; 6] = [
    Behaviour { spurious: 0.0, endless: 0.0 },
    Behaviour { spurious: 0.01, endless: 0.0 },
    Behaviour { spurious: 0.1, endless: 0.0 },
    Behaviour { spurious: 0.5, endless: 0.0 },
    Behaviour { spurious: 0.1, endless: 0.01 },
    Behaviour { spurious: 0.1, endless: 0.1 },
];

/// What one structure did in one setting.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// The structure's name.
    pub structure: &'static str,
    /// Bits a flow that it was given.
    pub bits: u64,
    /// How the stream behaved.
    pub behaviour: Behaviour,
    /// What it erred in.
    pub tally: Tally,
}

impl Outcome {
    /// All errors together: of strangers that got a state or a don't-know, and of members that got
    /// none, another or a don't-know.
    pub fn errors(&self) -> f64 {
        let rates = self.tally.rates();
        rates[..5].iter().map(|(_, share)| share.rate()).sum()
    }

    /// The head of [`line`](Self::line).
    pub const HEAD: &'static str = "| bits a flow | spurious | endless | structure | false positive \
        | non-member don't-know | false negative | false state | member don't-know | refused |\n\
        |---|---|---|---|---|---|---|---|---|---|";

    /// A line of a Markdown table.
    pub fn line(&self) -> String {
        let Behaviour { spurious, endless } = self.behaviour;
        let mut line = format!(
            "| {} | {} % | {} % | {} |",
            self.bits,
            short(spurious * 100.0),
            short(endless * 100.0),
            self.structure
        );
        for (_, share) in self.tally.rates() {
            let rate = share.rate();
            line += &if rate == 0.0 { " 0 |".to_owned() } else { format!(" {rate:.2e} |") };
        }
        line
    }
}

/// Eight states and one that flows leave in; a step from each to each.
fn machine() -> Result<Machine, Faulty> {
    let names: Vec<String> = (0..STATES).map(|state| state.to_string()).collect();
    let mut states: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut events: Vec<(String, Vec<Rule<'_>>)> =
        vec![("begin".into(), vec![Rule::OpenNew("0")]), ("end".into(), vec![Rule::Go("over")])];
    for from in &names {
        for to in &names {
            events.push((format!("{from}>{to}"), vec![Rule::If(from, to)]));
        }
    }
    states.push("over");
    let events: Vec<(&str, &[Rule<'_>])> =
        events.iter().map(|(name, rules)| (name.as_str(), rules.as_slice())).collect();
    Machine::new(&states, &["over"], &events)
}

const BEGIN: u16 = 0;
const END: u16 = 1;

fn step(from: State, to: State) -> u16 {
    2 + from * STATES as State + to
}

/// Runs one stream of `flows` concurrent flows on a map, with twice as many steps and ends as flows. Then
/// looks up members and non-members.
fn run<B: Cells>(
    map: Map<B>,
    machine: &Machine,
    flows: u64,
    behaviour: Behaviour,
    seed: u64,
) -> Tally {
    let mut rng = Rng::seeded(seed);
    // Well-behaved flows need no ageing. A period is long enough for every flow to be touched.
    let mut clock = Clock::new(Audit::new(map), 40 * flows);
    let mut members: Vec<u64> = Vec::new();
    let mut next = 0;
    let begin = |audit: &mut Audit<Map<B>, u64>, members: &mut Vec<u64>, next: &mut u64| {
        let _ = audit.step(next, machine, BEGIN);
        members.push(*next);
        *next += 1;
    };
    while (members.len() as u64) < flows {
        begin(clock.tick(0), &mut members, &mut next);
    }
    for _ in 0..8 * flows {
        let audit = clock.tick(1);
        let at = rng.below(flows) as usize;
        let to = rng.below(STATES.into()) as State;
        if rng.chance(behaviour.spurious) {
            let stranger = u64::MAX - rng.below(1 << 50);
            let _ = audit.step(&stranger, machine, step(rng.below(STATES.into()) as State, to));
        } else {
            let key = members[at];
            let from = audit.truth.get(&key).copied().unwrap_or(0);
            let _ = audit.step(&key, machine, step(from, to));
        }
        if rng.below(4) == 0 {
            let at = rng.below(flows) as usize;
            let key = members.swap_remove(at);
            // A flow without an end sends nothing more, so the reference removes it.
            if rng.chance(behaviour.endless) {
                audit.truth.remove(&key);
            } else {
                let _ = audit.step(&key, machine, END);
            }
            begin(audit, &mut members, &mut next);
        }
    }
    // The tally counts the lookups from here on.
    let audit = clock.tick(0);
    audit.tally = Tally::default();
    for key in &members {
        let _ = audit.ask(key);
    }
    for _ in 0..4 * flows {
        let _ = audit.ask(&(u64::MAX / 2 - rng.below(1 << 50)));
    }
    audit.tally
}

/// Every structure with its bits a flow and the behaviour of its stream.
fn settings() -> Vec<(&'static str, u64, Behaviour)> {
    let mut settings = Vec::new();
    for behaviour in BEHAVIOURS {
        for bits in MEMORY {
            for structure in STRUCTURES {
                settings.push((structure, bits, behaviour));
            }
        }
        // Sums instead of counters, for comparison.
        if behaviour == BEHAVIOURS[0] {
            settings.extend(MEMORY.map(|bits| ("stateful, summed", bits, behaviour)));
        }
    }
    settings
}

/// The structures of the paper.
pub const STRUCTURES: [&str; 3] = ["direct", "stateful", "fingerprint"];

/// All structures in all settings, for `flows` concurrent flows.
pub fn table(flows: u64, run: &Run<'_>) -> Result<Vec<Outcome>, Infeasible> {
    let Ok(machine) = machine() else { return Ok(Vec::new()) };
    let settings = settings();
    run.numbered(settings.len() as u64, 0, |number| {
        let (structure, bits, behaviour) = settings[number as usize];
        let tally = one(structure, bits, flows, behaviour, &machine, run.seed)?;
        Ok(Outcome { structure, bits, behaviour, tally })
    })
}

/// The concurrent flows of such a run.
pub fn flows(run: &Run<'_>) -> u64 {
    run.flows.unwrap_or(if run.quick { 2_000 } else { 20_000 })
}

/// The table of such a run. It is long in the making: the last one is kept for its chart.
pub fn outcomes(run: &Run<'_>) -> Result<Vec<Outcome>, Infeasible> {
    static LAST: Mutex<Option<(u64, u64, Vec<Outcome>)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let flows = flows(run);
    match &*last {
        Some((of, seed, outcomes)) if (*of, *seed) == (flows, run.seed) => Ok(outcomes.clone()),
        _ => {
            let outcomes = table(flows, run)?;
            *last = Some((flows, run.seed, outcomes.clone()));
            Ok(outcomes)
        }
    }
}

fn one(
    structure: &str,
    bits: u64,
    flows: u64,
    behaviour: Behaviour,
    machine: &Machine,
    seed: u64,
) -> Result<Tally, Infeasible> {
    let aged = behaviour != BEHAVIOURS[0];
    let secret = Seed(seed.into());
    Ok(match structure {
        "direct" => {
            let shape = |cells| {
                let hashes = best_hashes(cells, flows);
                direct::Shape { cells, hashes, states: STATES, counter: 4, timed: aged }
            };
            let width = u64::from(shape(1).width());
            let map = Direct::new(shape(bits * flows / width), secret)?;
            run(map, machine, flows, behaviour, seed)
        }
        "fingerprint" => {
            let low = 5;
            // As wide as a load of 0.9 allows, down to the narrowest cell there is.
            let width = (bits as u32 * 9 / 10).max(8);
            let shape = fingerprint::Shape {
                subtables: 2,
                buckets: bits * flows / u64::from(16 * width),
                cells: 8,
                width,
                remainder: width - low,
                states: STATES,
                shared: 7,
                placing: Placing::Permuted,
                moves: Moves::Search(256),
                reinsert: false,
                stash: 0,
                growths: 0,
                grows: false,
                listed: 0,
            };
            run(Fingerprint::new(shape, secret)?, machine, flows, behaviour, seed)
        }
        _ => {
            let keeping = match (structure, aged) {
                ("stateful", true) => Keeping::Timed,
                ("stateful", false) => Keeping::Counted(3),
                _ => Keeping::Summed(3),
            };
            let shape = |cells, hashes| stateful::Shape { cells, hashes, states: STATES, keeping };
            let width = u64::from(shape(1, 1).width());
            let cells = bits * flows / width;
            // The number of cells a flow that makes the two rates together least.
            let both = |hashes: &u32| {
                let [wrong, unknown] = plan::stateful::rates(shape(cells, *hashes), flows);
                wrong + unknown
            };
            let hashes = (1..=16).min_by(|a, b| both(a).total_cmp(&both(b))).unwrap_or(1);
            run(Stateful::new(shape(cells, hashes), secret)?, machine, flows, behaviour, seed)
        }
    })
}

/// The table of such a run as a page, with the verdict on the paper's finding.
pub fn page(run: &Run<'_>) -> Result<String, Infeasible> {
    let outcomes = outcomes(run)?;
    let (best, settings) = tally_best(&outcomes);
    let mut page = format!(
        "# State maps on one stream, in the same memory\n\n\
         {} concurrent flows, {STATES} states, seed {}; eight steps a flow, a flow in four of them \
         replaced by a new one. At\nthe end every member is looked up, and four non-members for each flow. \
         A rate is a share of these lookups; refused are the\nlookups, not the writes. No phase of \
         the clock ends in the stream.\n\n\
         A step or an end that the map cannot take is skipped, and the flow continues. This causes wrong \
         states of\nmembers, also on a well-behaved stream. The paper's guarantee is for callers who \
         pass the previous state.\n\n\
         The fingerprint table has the least sum of the five rates in {best} of {settings} \
         settings, so the paper's finding that it is\nbest in most {}. The exceptions:\n\n",
        flows(run),
        run.seed,
        if 2 * best > settings { "is confirmed" } else { "is not confirmed" },
    );
    for behaviour in BEHAVIOURS {
        for bits in MEMORY {
            if let Some(least) = least(&outcomes, bits, behaviour)
                && least.structure != "fingerprint"
            {
                page += &format!(
                    "- {bits} bits a flow, {} % spurious, {} % endless: {}\n",
                    short(behaviour.spurious * 100.0),
                    short(behaviour.endless * 100.0),
                    least.structure
                );
            }
        }
    }
    page += &format!("\n{}\n", Outcome::HEAD);
    for outcome in &outcomes {
        page += &format!("{}\n", outcome.line());
    }
    Ok(page)
}

/// Who errs least in a setting.
fn least(outcomes: &[Outcome], bits: u64, behaviour: Behaviour) -> Option<&Outcome> {
    let here = outcomes.iter().filter(|o| o.bits == bits && o.behaviour == behaviour);
    here.min_by(|a, b| a.errors().total_cmp(&b.errors()))
}

/// In how many settings the fingerprint table errs least, and of how many.
fn tally_best(outcomes: &[Outcome]) -> (u64, u64) {
    let (mut best, mut settings) = (0, 0);
    for behaviour in BEHAVIOURS {
        for bits in MEMORY {
            let least = least(outcomes, bits, behaviour);
            best += u64::from(least.is_some_and(|o| o.structure == "fingerprint"));
            settings += 1;
        }
    }
    (best, settings)
}

/// Section 3.4: in how many settings the fingerprint table errs least.
pub fn best(experiment: &Experiment, run: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let (flows, outcomes) = (flows(run), outcomes(run)?);
    (run.progress)(experiment.cost.millis);
    let (best, settings) = tally_best(&outcomes);
    let most = Interval { low: 0.5, high: 1.0 };
    let share = best as f64 / settings as f64;
    let note = format!("least sum of the five error rates in {best} of {settings}, {flows} flows");
    let [best_in_most] = &facts::COMPARE;
    Ok(vec![Row::sampled(best_in_most, share, most, 1).note(&note)])
}
