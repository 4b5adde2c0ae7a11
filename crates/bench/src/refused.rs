//! Insertions that a full structure refuses, beside those that it accepts.
//!
//! A structure is filled with as many keys as it was planned for. `insert` times all of them, from the
//! first, and `insert_last` the last tenth, when the structure has the load that it was planned for. Then
//! keys follow until it is full, and `insert_refused` times a million more. Tables get new keys; filters
//! of counters get their members again and again, until the counters are at their ceilings.

use crate::{
    clock::ns_each,
    filter::{CHUNK, SEED, Tuple},
    report::{Row, Size},
    stats::Summary,
};
use anyhow::{Result, bail, ensure};
use sidon::{
    plan::{self, Prefer, States, Target},
    set::{Backyard, Counting, DLeft, Filter, Set, Variable},
    state::{Fingerprint, Next},
};
use sidon_kit::FiveTuples;
use std::collections::BTreeMap;

pub(crate) const NAMES: [&str; 6] =
    ["dleft", "dleft_smallest", "backyard", "counting", "variable", "fingerprint"];

/// Insertions that are timed when all is full.
const TIMED: usize = 1_000_000;

/// Inserts a batch, and gives the number of refused keys.
type Enter = Box<dyn FnMut(&[Tuple]) -> usize>;

fn set<B: Filter + 'static>(mut filter: Set<B>) -> Enter {
    Box::new(move |keys| {
        let mut refused = 0;
        filter.insert_batch(keys, &mut |_, _| refused += 1);
        refused
    })
}

/// A structure for `keys` keys, and whether the fill inserts its members again.
fn build(name: &str, keys: u64) -> Result<(Enter, bool)> {
    let target = Target::new(keys, 0.001);
    let fast = Target { prefer: Prefer::Speed, ..target };
    Ok(match name {
        "dleft" => (set(DLeft::new(plan::dleft::shape(fast, 2)?, SEED)?), false),
        "dleft_smallest" => (set(DLeft::new(plan::dleft::shape(target, 0)?, SEED)?), false),
        "backyard" => (set(Backyard::new(plan::backyard::shape(target)?, SEED)?), false),
        "counting" => (set(Counting::new(plan::counting::shape(fast)?, SEED)?), true),
        "variable" => (set(Variable::new(plan::variable::shape(target)?, SEED)?), true),
        "fingerprint" => {
            let states = States { flows: keys, states: 16, error: 1e-6 };
            let mut map = Fingerprint::new(plan::fingerprint::shape(states, Prefer::Speed)?, SEED)?;
            let enter = move |keys: &[Tuple]| {
                let mut refused = 0;
                map.transition_batch(keys, |_, _| Next::Insert(1), &mut |_, _| refused += 1);
                refused
            };
            (Box::new(enter), false)
        }
        name => bail!("no structure {name}"),
    })
}

/// The rows of the wanted structures.
pub(crate) fn run(keys: u64, rounds: usize, wanted: impl Fn(&str) -> bool) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for name in NAMES.into_iter().filter(|name| wanted(name)) {
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..rounds {
            let mut stream = FiveTuples::seeded(round as u64);
            let mut draw = |n: usize| -> Vec<Tuple> { stream.by_ref().take(n).collect() };
            let (mut enter, again) = build(name, keys)?;
            let members = draw(keys as usize);
            let mut all = |keys: &[Tuple]| -> usize { keys.chunks(CHUNK).map(&mut enter).sum() };
            let (first, late) = members.split_at(members.len() / 10 * 9);
            let early = ns_each(first.len(), || {
                all(first);
            });
            let late_ns = ns_each(late.len(), || {
                all(late);
            });
            times[0].push(0.9 * early + 0.1 * late_ns);
            times[1].push(late_ns);
            // A ceiling of a counter is at most 255.
            let fill = if again { members.repeat(2) } else { draw(8 * members.len()) };
            for _ in 0..if again { 128 } else { 1 } {
                all(&fill);
            }
            // As many keys as were inserted, so that both sets of keys are in the same cache.
            let last = if again { members.clone() } else { draw(members.len()) };
            let times_each = TIMED / last.len();
            let (mut refused, timed) = (0, times_each * last.len());
            let ns = ns_each(timed, || refused = (0..times_each).map(|_| all(&last)).sum());
            times[2].push(ns);
            ensure!(refused > timed / 10 * 9, "{name} is not full: {refused} of {timed} refused");
        }
        rows.extend(["insert", "insert_last", "insert_refused"].into_iter().zip(&times).map(
            |(op, times)| Row {
                section: "refused",
                structure: name.to_owned(),
                ours: true,
                removes: true,
                op,
                size: Size::Keys(keys),
                ns: Summary::of(times),
                bits_per_key: None,
                fpr: None,
                lost: None,
                overestimate: None,
                ratio: BTreeMap::new(),
            },
        ));
    }
    Ok(rows)
}
