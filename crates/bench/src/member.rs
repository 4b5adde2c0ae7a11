//! Sets: insert, ask, churn and remove, ours and the peers' in turn.
//!
//! Round 1 of every structure, then round 2 of every structure: whatever slows the machine for a
//! while slows all of them. A round builds the structure, runs every operation once and drops it,
//! so that one table at a time is in memory.
//!
//! Among them are the reads of lines that such structures come down to, timed as the two questions are.
//! ```text
//! empty --insert members--> full --hits--> --misses--> --churn--> --remove newcomers--> done
//! ```

use crate::{
    clock::ns_each,
    filter::{CHUNK, Entry, Filter, Tuple},
    limits::Reads,
    report::{Row, Size},
    stats::Summary,
    workload::{OPERATIONS, Workload},
};
use anyhow::{Result, bail};
use sidon::plan::Target;
use std::{
    collections::BTreeMap,
    hint::black_box,
    panic::{AssertUnwindSafe, catch_unwind},
};

const WORKLOAD_SEED: u64 = 2024;
/// From this many members on, progress is told for each structure.
const SLOW_FROM: usize = 4_000_000;

/// Rounds by the number of members: many where a round is short.
pub(crate) fn usual_rounds(members: usize, quick: bool) -> usize {
    match (members, quick) {
        (..=200_000, false) => 21,
        (..=200_000, true) => 13,
        (..SLOW_FROM, false) => 15,
        (..SLOW_FROM, true) => 9,
        _ => 3,
    }
}

/// The rows of all entries at one number of members. One that cannot be built, or a peer that
/// panics, is named in `notes` instead.
pub(crate) fn run(
    entries: &[Entry],
    floors: &[Reads],
    target: Target,
    rounds: usize,
    notes: &mut Vec<String>,
) -> Result<Vec<Row>> {
    let members = target.keys as usize;
    let mut work = Workload::seeded(WORKLOAD_SEED, members);
    let mut results: Vec<Vec<Round>> = entries.iter().map(|_| Vec::new()).collect();
    let mut failed = vec![false; entries.len()];
    let mut floors = floors.to_vec();
    floors.retain(|floor| match (floor.bytes)(target) {
        Ok(_) => true,
        Err(why) => {
            notes.push(format!("{} left out at {members} keys: {why}", floor.name));
            false
        }
    });
    let mut reads = vec![Vec::new(); floors.len()];
    for number in 1..=rounds {
        eprintln!("member: {members} keys, round {number} of {rounds}");
        let strangers = work.strangers();
        for (i, entry) in entries.iter().enumerate() {
            if failed[i] {
                continue;
            }
            if members >= SLOW_FROM {
                eprintln!("  {}", entry.name);
            }
            let round = || Round::run(entry, target, &work, &strangers);
            let why = match catch_unwind(AssertUnwindSafe(round)) {
                Ok(Ok(round)) => {
                    results[i].push(round);
                    continue;
                }
                Ok(Err(why)) => why.to_string(),
                Err(_) if entry.ours => bail!("{} panicked at {members} keys", entry.name),
                Err(_) => "panicked".to_string(),
            };
            failed[i] = true;
            notes.push(format!("{} left out at {members} keys: {why}", entry.name));
        }
        for (floor, times) in floors.iter().zip(&mut reads) {
            times.push(floor.round(target, number)?);
        }
    }
    let rows = entries.iter().zip(&results).flat_map(|(entry, rounds)| {
        if rounds.is_empty() { Vec::new() } else { summarise(entry, target, rounds) }
    });
    let mut rows: Vec<Row> = rows.collect();
    for (floor, times) in floors.iter().zip(&reads) {
        let bits_per_key = (floor.bytes)(target)? as f64 * 8.0 / target.keys as f64;
        rows.extend(["contains_hit", "contains_miss"].map(|op| Row {
            section: "member",
            structure: floor.name.to_string(),
            ours: false,
            // As the structures have it that they are read beside.
            removes: true,
            op,
            size: Size::Keys(target.keys),
            ns: Summary::of(times),
            bits_per_key: Some(bits_per_key),
            fpr: None,
            lost: None,
            overestimate: None,
            ratio: BTreeMap::new(),
        }));
    }
    Ok(rows)
}

/// What one structure did in one round.
struct Round {
    bytes: u64,
    /// Nanoseconds by operation.
    ns: Vec<(&'static str, f64)>,
    /// Strangers that passed.
    passed: usize,
    /// Members that were not found.
    lost: usize,
}

impl Round {
    fn run(entry: &Entry, target: Target, work: &Workload, strangers: &[Tuple]) -> Result<Self> {
        let mut filter = (entry.build)(target)?;
        let filter = filter.as_mut();
        let mut ns = Vec::new();

        let inserted = ns_each(work.members.len(), || {
            work.members.chunks(CHUNK).for_each(|keys| filter.insert(keys));
        });
        ns.push(("insert", inserted));
        // Hash tables may have grown: their size is known only now.
        let bytes = filter.bytes();

        let mut found = 0;
        let hit = ns_each(work.passes * work.probes.len(), || {
            found = (0..work.passes).map(|_| count(filter, &work.probes)).sum();
        });
        ns.push(("contains_hit", hit));
        let mut lost = (work.passes * work.probes.len() - found) / work.passes;

        let mut passed = 0;
        let miss = ns_each(strangers.len(), || passed = count(filter, strangers));
        ns.push(("contains_miss", miss));

        if entry.removes {
            let churned = ns_each(work.probes.len(), || {
                let pairs = work.probes.chunks(CHUNK).zip(work.newcomers.chunks(CHUNK));
                pairs.for_each(|(out, new)| {
                    filter.remove(out);
                    filter.insert(new);
                });
            });
            ns.push(("churn", churned));
            lost += work.newcomers.len() - count(filter, &work.newcomers);

            let removed = ns_each(work.leavers.len(), || {
                work.leavers.chunks(CHUNK).for_each(|keys| filter.remove(keys));
            });
            ns.push(("remove", removed));
            // Where there are more members than probes, the last ones mostly never left.
            if work.members.len() > 2 * OPERATIONS {
                lost += survivors_lost(filter, work);
            }
        }
        Ok(Round { bytes, ns, passed, lost })
    }
}

/// How many keys are found.
fn count(filter: &dyn Filter, keys: &[Tuple]) -> usize {
    black_box(keys.chunks(CHUNK).map(|keys| filter.contains(keys)).sum())
}

/// Members that never left and are not found, among the last of them.
fn survivors_lost(filter: &dyn Filter, work: &Workload) -> usize {
    let left: std::collections::HashSet<&Tuple> = work.probes.iter().collect();
    let last = &work.members[work.members.len() - OPERATIONS..];
    let stayed = last.iter().filter(|key| !left.contains(key));
    stayed.filter(|key| filter.contains(&[**key]) == 0).count()
}

/// A row an operation.
fn summarise(entry: &Entry, target: Target, rounds: &[Round]) -> Vec<Row> {
    let bits_per_key = rounds[0].bytes as f64 * 8.0 / target.keys as f64;
    let passed: usize = rounds.iter().map(|round| round.passed).sum();
    let lost = rounds.iter().map(|round| round.lost).max().unwrap_or(0);
    let operations = rounds[0].ns.iter().enumerate().map(|(i, &(operation, _))| {
        let times: Vec<f64> = rounds.iter().map(|round| round.ns[i].1).collect();
        Row {
            section: "member",
            structure: entry.name.to_string(),
            ours: entry.ours,
            removes: entry.removes,
            op: operation,
            size: Size::Keys(target.keys),
            ns: Summary::of(&times),
            bits_per_key: Some(bits_per_key),
            fpr: Some(passed as f64 / (rounds.len() * OPERATIONS) as f64),
            lost: Some(lost as u64),
            overestimate: None,
            ratio: BTreeMap::new(),
        }
    });
    operations.collect()
}
