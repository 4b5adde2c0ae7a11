//! States: insert, look up, change and forget, ours and the peers' in turn.
//!
//! As `member`, with sixteen states a flow; `fpr` is the share of strangers that were answered one.

use crate::{
    clock::ns_each,
    filter::{CHUNK, SEED, Tuple},
    report::{Row, Size},
    stats::Summary,
    workload::{OPERATIONS, Workload},
};
use anyhow::Result;
use cuckoo_clock::{
    CuckooFilter, InsertValues, LookupValues,
    config::{CounterConfig, CuckooConfiguration},
};
use hashbrown::HashMap;
use sidon::{
    Lookup,
    internals::Sweep,
    plan::{Prefer, States, fingerprint},
    state::{Clock, Fingerprint, Next, State},
};
use std::{collections::BTreeMap, hint::black_box};

const STATES: u32 = 16;
/// The structures of this section.
pub(crate) const NAMES: [&str; 5] =
    ["fingerprint_1e-6", "fingerprint_1e-4", "fingerprint_listed", "hash_map", "cuckoo_clock"];

/// The state of the flow at this place of the workload.
fn state_of(place: usize) -> u8 {
    (place % STATES as usize) as u8
}

/// A map under test. Calls are of some flows at a time.
trait Map {
    fn bytes(&self) -> u64;
    /// Inserts new flows in these states.
    fn insert(&mut self, keys: &[Tuple], first: usize);
    /// How many are in some state, and the sum of the states.
    fn lookup(&mut self, keys: &[Tuple]) -> (usize, u64);
    /// Each flow goes to the state after its own.
    fn transition(&mut self, keys: &[Tuple]);
    fn forget(&mut self, keys: &[Tuple]);
}

fn build(name: &str, keys: usize) -> Result<Box<dyn Map>> {
    let ours = |error, lists: bool| -> Result<Box<dyn Map>> {
        let target = States { flows: keys as u64, states: STATES, error };
        let mut shape = fingerprint::shape(target, Prefer::Speed)?;
        if lists {
            shape.listed = fingerprint::listed(shape, target.flows).unwrap_or(0);
        }
        let map = Fingerprint::new(shape, SEED)?;
        Ok(Box::new(Ours { map, answers: Vec::new() }))
    };
    match name {
        "fingerprint_1e-6" => ours(1e-6, false),
        "fingerprint_1e-4" => ours(1e-4, false),
        // No flow shares a cell: those that would are in a list.
        "fingerprint_listed" => ours(1e-4, true),
        "hash_map" => Ok(Box::new(HashMap::<Tuple, u8>::with_capacity(keys))),
        _ => {
            let counter = CounterConfig {
                counter_bits: 4usize.try_into()?,
                change_on_insert: 0,
                change_on_lookup: 0,
            };
            // A twentieth to spare, or the last insertions evict members.
            let configuration = CuckooConfiguration::builder(keys + keys / 20 + 64)
                .fingerprint_bits(26usize.try_into()?)
                .with_counter(counter)
                .build()?;
            Ok(Box::new(CuckooFilter::new_random(configuration)))
        }
    }
}

/// A map of ours, and room for the answers of a call.
struct Ours {
    map: Fingerprint,
    answers: Vec<Lookup<State>>,
}

impl Sweep for Ours {
    fn units(&self) -> u64 {
        self.map.units()
    }

    fn hand(&self) -> u64 {
        self.map.hand()
    }

    fn sweep(&mut self, to: u64) -> u64 {
        self.map.sweep(to)
    }
}

impl Map for Ours {
    fn bytes(&self) -> u64 {
        Fingerprint::planned_bytes(self.map.shape())
    }

    fn insert(&mut self, keys: &[Tuple], first: usize) {
        // One that is refused will show as lost.
        let next = |i| Next::Insert(State::from(state_of(first + i)));
        self.map.transition_batch(keys, |key, _| next(key), &mut |_, _| {});
    }

    fn lookup(&mut self, keys: &[Tuple]) -> (usize, u64) {
        self.answers.resize(keys.len(), Lookup::Absent);
        self.map.lookup_batch(keys, &mut self.answers);
        let (mut found, mut sum) = (0, 0);
        for answer in &self.answers {
            if let Lookup::State(state) = answer {
                found += 1;
                sum += u64::from(*state);
            }
        }
        (found, sum)
    }

    fn transition(&mut self, keys: &[Tuple]) {
        let change = |_, now| match now {
            Lookup::State(state) => Next::Modify((state + 1) % STATES as State),
            _ => Next::Stay,
        };
        self.map.transition_batch(keys, change, &mut |_, _| {});
    }

    fn forget(&mut self, keys: &[Tuple]) {
        self.map.transition_batch(keys, |_, _| Next::Forget, &mut |_, _| {});
    }
}

impl Map for HashMap<Tuple, u8> {
    fn bytes(&self) -> u64 {
        self.allocation_size() as u64
    }

    fn insert(&mut self, keys: &[Tuple], first: usize) {
        for (i, key) in keys.iter().enumerate() {
            HashMap::insert(self, *key, state_of(first + i));
        }
    }

    fn lookup(&mut self, keys: &[Tuple]) -> (usize, u64) {
        let states = keys.iter().filter_map(|key| self.get(key));
        states.fold((0, 0), |(found, sum), state| (found + 1, sum + u64::from(*state)))
    }

    fn transition(&mut self, keys: &[Tuple]) {
        for key in keys {
            if let Some(state) = self.get_mut(key) {
                *state = (*state + 1) % STATES as u8;
            }
        }
    }

    fn forget(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.remove(key);
        }
    }
}

impl<H: std::hash::BuildHasher> Map for CuckooFilter<H> {
    fn bytes(&self) -> u64 {
        self.get_memory_usage() as u64
    }

    fn insert(&mut self, keys: &[Tuple], first: usize) {
        for (i, key) in keys.iter().enumerate() {
            let counter = Some(state_of(first + i).into());
            self.insert_with_defaults(key, InsertValues { ttl: None, counter });
        }
    }

    fn lookup(&mut self, keys: &[Tuple]) -> (usize, u64) {
        let counters = keys
            .iter()
            .filter_map(|key| self.get_associated_data(key))
            .filter_map(|data| data.get_counter().ok());
        counters.fold((0, 0), |(found, sum), state| (found + 1, sum + u64::from(state)))
    }

    /// It saturates where the others go round: the state is not compared afterwards.
    fn transition(&mut self, keys: &[Tuple]) {
        for key in keys {
            let update = LookupValues { ttl: None, counter_diff: Some(1) };
            black_box(self.get_associated_data_with_update(key, update).is_some());
        }
    }

    fn forget(&mut self, keys: &[Tuple]) {
        for key in keys {
            CuckooFilter::remove(self, key);
        }
    }
}

/// The rows of the wanted structures at one number of flows.
pub(crate) fn run(
    names: &[&'static str],
    keys: usize,
    batch: usize,
    rounds: usize,
) -> Result<Vec<Row>> {
    let mut work = Workload::seeded(2025, keys);
    let mut rows = Vec::new();
    let mut all: Vec<Vec<Round>> = names.iter().map(|_| Vec::new()).collect();
    for number in 1..=rounds {
        eprintln!("state: {keys} flows, round {number} of {rounds}");
        let strangers = work.strangers();
        for (name, rounds) in names.iter().zip(&mut all) {
            rounds.push(Round::run(name, keys, batch, &work, &strangers)?);
        }
    }
    for (name, rounds) in names.iter().zip(&all) {
        let passed: usize = rounds.iter().map(|round| round.passed).sum();
        for (i, &(op, _)) in rounds[0].ns.iter().enumerate() {
            let times: Vec<f64> = rounds.iter().map(|round| round.ns[i].1).collect();
            rows.push(Row {
                section: "state",
                structure: (*name).to_owned(),
                ours: name.starts_with("fingerprint"),
                removes: true,
                op,
                size: Size::Keys(keys as u64),
                ns: Summary::of(&times),
                bits_per_key: Some(rounds[0].bytes as f64 * 8.0 / keys as f64),
                fpr: Some(passed as f64 / (rounds.len() * OPERATIONS) as f64),
                // A "don't know" is no loss, but is told with what is lost.
                lost: None,
                overestimate: None,
                ratio: BTreeMap::new(),
            });
        }
    }
    Ok(rows)
}

struct Round {
    bytes: u64,
    ns: Vec<(&'static str, f64)>,
    passed: usize,
}

impl Round {
    fn run(
        name: &str,
        keys: usize,
        batch: usize,
        work: &Workload,
        strangers: &[Tuple],
    ) -> Result<Self> {
        let mut map = build(name, keys)?;
        let map = map.as_mut();
        let mut ns = Vec::new();
        let mut first = 0;
        let inserted = ns_each(work.members.len(), || {
            for chunk in work.members.chunks(batch) {
                map.insert(chunk, first);
                first += chunk.len();
            }
        });
        ns.push(("insert", inserted));
        let bytes = map.bytes();
        let count = |map: &mut dyn Map, keys: &[Tuple]| -> usize {
            black_box(keys.chunks(batch).map(|chunk| black_box(map.lookup(chunk)).0).sum())
        };
        let hit = ns_each(work.passes * work.probes.len(), || {
            for _ in 0..work.passes {
                count(map, &work.probes);
            }
        });
        ns.push(("lookup_hit", hit));
        let mut passed = 0;
        let miss = ns_each(strangers.len(), || passed = count(map, strangers));
        ns.push(("lookup_miss", miss));
        let changed = ns_each(work.probes.len(), || {
            work.probes.chunks(batch).for_each(|chunk| map.transition(chunk));
        });
        ns.push(("transition", changed));
        let gone = ns_each(work.probes.len(), || {
            work.probes.chunks(batch).for_each(|chunk| map.forget(chunk));
        });
        ns.push(("forget", gone));
        Ok(Round { bytes, ns, passed })
    }
}

/// How often the sweep is watched.
const SWEEPS: usize = 5;

/// The longest and the median transition while the hand of a clock goes round a table of so many
/// flows, a sweep a batch: a note, since it is one number and depends on the machine. The same batches
/// are done again on copies of the table, and each batch has the least of its times: what a machine
/// does beside hits another batch each time, what the sweep does hits the same.
pub(crate) fn longest_sweep(keys: usize) -> Result<String> {
    let work = Workload::seeded(2026, keys);
    let target = States { flows: keys as u64, states: STATES, error: 1e-6 };
    let map = Fingerprint::new(fingerprint::shape(target, Prefer::Speed)?, SEED)?;
    let mut filled = Ours { map, answers: Vec::new() };
    for (i, chunk) in work.members.chunks(CHUNK).enumerate() {
        filled.insert(chunk, i * CHUNK);
    }
    let mut once = 0.0;
    let mut times = vec![f64::INFINITY; work.probes.len().div_ceil(CHUNK)];
    for _ in 0..SWEEPS {
        let map = Ours { map: filled.map.try_clone()?, answers: Vec::new() };
        let mut clock = Clock::new(map, work.probes.len() as u64);
        once = 0.0;
        for (chunk, time) in work.probes.chunks(CHUNK).zip(&mut times) {
            let took = ns_each(chunk.len(), || {
                clock.tick(chunk.len() as u64).transition(chunk);
            });
            once = f64::max(once, took);
            *time = time.min(took);
        }
    }
    times.sort_by(f64::total_cmp);
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    Ok(format!(
        "sweep of {keys} flows in one period, the least of {SWEEPS} times for each batch: a \
         transition takes {median:.1} ns in the middle batch and {longest:.1} in the longest, {:.1} \
         times as long; {once:.1} in the longest of the last time alone",
        longest / median
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::FiveTuples;

    #[test]
    fn every_map_holds_its_flows_and_their_states() {
        let keys: Vec<Tuple> = FiveTuples::seeded(1).take(20 * CHUNK).collect();
        for name in NAMES {
            let mut map = build(name, keys.len()).unwrap();
            for (i, chunk) in keys.chunks(CHUNK).enumerate() {
                map.insert(chunk, i * CHUNK);
            }
            let sum = |map: &mut dyn Map| -> (usize, u64) {
                let all = keys.chunks(CHUNK).map(|chunk| map.lookup(chunk));
                all.fold((0, 0), |(n, sum), (found, states)| (n + found, sum + states))
            };
            let states: u64 = (0..keys.len()).map(|i| u64::from(state_of(i))).sum();
            assert_eq!(sum(&mut *map), (keys.len(), states), "{name}");
            keys.chunks(CHUNK).for_each(|chunk| map.transition(chunk));
            assert_eq!(sum(&mut *map).0, keys.len(), "{name}");
            keys.chunks(CHUNK).for_each(|chunk| map.forget(chunk));
            assert_eq!(sum(&mut *map).0, 0, "{name}");
        }
    }
}
