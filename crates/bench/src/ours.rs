//! Sidon's structures: each in batches and, as `.._single`, key by key.

use crate::{
    filter::{CHUNK, Entry, Filter, SEED, Tuple},
    peers::sbbf,
};
use anyhow::Result;
use sidon::{
    internals::{LINE, SIEVED_MAX},
    plan::{self, Prefer, Target},
    set::{
        self, Backyard, Bh, Blocked, Bloom, Counting, DLeft, Elastic, Increments, Moves,
        Multilayer, Overflow, Removes, Set, Spread, Variable, blocked, counting, dleft, elastic,
        variable,
    },
};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::ours("bloom", false, |target| bloom(target, false)),
    Entry::ours("bloom_single", false, |target| bloom(target, true)),
    Entry::ours("blocked", false, |target| planned(target, false)),
    Entry::ours("blocked_single", false, |target| planned(target, true)),
    Entry::ours("blocked_as_sbbf", false, |target| as_sbbf(target, false)),
    Entry::ours("blocked_as_sbbf_single", false, |target| as_sbbf(target, true)),
    Entry::ours("counting", true, |target| counting(plan::counting::shape(speed(target))?, false)),
    Entry::ours("counting_single", true, |target| {
        counting(plan::counting::shape(speed(target))?, true)
    }),
    Entry::ours("counting_anywhere", true, |target| {
        counting(plan::counting::shape(target)?, false)
    }),
    Entry::ours("variable", true, |target| variable(plan::variable::shape(target)?, false)),
    Entry::ours("variable_single", true, |target| variable(plan::variable::shape(target)?, true)),
    Entry::ours("variable_lines", true, |target| {
        variable(plan::variable::shape(speed(target))?, false)
    }),
    Entry::ours("variable_as_lines", true, |target| variable(as_lines(target)?, false)),
    Entry::ours("variable_as_line", true, |target| variable(as_line(target)?, false)),
    Entry::ours("variable_as_counting", true, |target| variable(as_counting(target)?, false)),
    Entry::ours("variable_as_counting_single", true, |target| variable(as_counting(target)?, true)),
    Entry::ours("counting_anywhere_single", true, |target| {
        counting(plan::counting::shape(target)?, true)
    }),
    Entry::ours("bh", true, |target| bh(target, false)),
    Entry::ours("multilayer", true, |target| multilayer(target, false)),
    Entry::ours("dleft", true, |target| dleft(fast(target), false)),
    Entry::ours("dleft_single", true, |target| dleft(fast(target), true)),
    Entry::ours("dleft_paper", true, |target| dleft(paper(target), false)),
    Entry::ours("dleft_small", true, |target| dleft(plan::dleft::shape(target, 2)?, false)),
    Entry::ours("elastic", true, |target| elastic(target, false)),
    Entry::ours("backyard", true, |target| backyard(target, false)),
    Entry::ours("backyard_single", true, |target| backyard(target, true)),
    Entry::ours("dleft_smallest", true, |target| dleft(plan::dleft::shape(target, 0)?, false)),
];

/// Takes members out of a filter.
type Take<B> = fn(&mut Set<B>, &[Tuple]);

/// Any structure of ours.
struct Ours<B> {
    filter: Set<B>,
    bytes: u64,
    /// Whether to go key by key.
    single: bool,
    /// How keys leave, if they can.
    remove: Option<Take<B>>,
}

impl<B: set::Filter + 'static> Ours<B> {
    fn set(filter: Set<B>, bytes: u64, single: bool) -> Box<dyn Filter> {
        Box::new(Ours { filter, bytes, single, remove: None })
    }

    fn multiset(filter: Set<B>, bytes: u64, single: bool) -> Box<dyn Filter>
    where
        B: Removes,
    {
        let remove: Take<B> = if single {
            // Only members are removed: a refusal would show as a lost key.
            |filter, keys| {
                for key in keys {
                    let _ = filter.remove(key);
                }
            }
        } else {
            |filter, keys| filter.remove_batch(keys, &mut |_, _| {})
        };
        Box::new(Ours { filter, bytes, single, remove: Some(remove) })
    }
}

impl<B: set::Filter> Filter for Ours<B> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn insert(&mut self, keys: &[Tuple]) {
        if self.single {
            for key in keys {
                let _ = self.filter.insert(key);
            }
        } else {
            self.filter.insert_batch(keys, &mut |_, _| {});
        }
    }

    fn contains(&self, keys: &[Tuple]) -> usize {
        if self.single {
            return keys.iter().filter(|key| self.filter.contains(key)).count();
        }
        let mut found = [false; CHUNK];
        let found = &mut found[..keys.len()];
        self.filter.contains_batch(keys, found);
        found.iter().map(|&found| usize::from(found)).sum()
    }

    fn remove(&mut self, keys: &[Tuple]) {
        let Some(remove) = self.remove else { unreachable!("the entry does not remove") };
        remove(&mut self.filter, keys);
    }
}

fn bloom(target: Target, single: bool) -> Result<Box<dyn Filter>> {
    let shape = plan::bloom::shape(target)?;
    let bytes = Bloom::planned_bytes(shape);
    Ok(Ours::set(Bloom::new(shape, SEED)?, bytes, single))
}

fn planned(target: Target, single: bool) -> Result<Box<dyn Filter>> {
    line_filter(plan::blocked::shape(target)?, single)
}

/// As many bytes as the split-block peer takes for the same target, and as many hashes.
fn as_sbbf(target: Target, single: bool) -> Result<Box<dyn Filter>> {
    let lines = (sbbf::bytes(target) / LINE as u64).max(1);
    line_filter(blocked::Shape { lines, hashes: 8 }, single)
}

fn line_filter(shape: blocked::Shape, single: bool) -> Result<Box<dyn Filter>> {
    let bytes = Blocked::planned_bytes(shape);
    Ok(Ours::set(Blocked::new(shape, SEED)?, bytes, single))
}

fn counting(shape: counting::Shape, single: bool) -> Result<Box<dyn Filter>> {
    let bytes = Counting::planned_bytes(shape);
    Ok(Ours::multiset(Counting::new(shape, SEED)?, bytes, single))
}

fn variable(shape: variable::Shape, single: bool) -> Result<Box<dyn Filter>> {
    let bytes = Variable::planned_bytes(shape);
    Ok(Ours::multiset(Variable::new(shape, SEED)?, bytes, single))
}

/// Increments of 4 to 7 in as many counters and lines as a counting filter takes for the same target,
/// and as many hashes.
fn as_lines(target: Target) -> Result<variable::Shape> {
    let counting::Shape { counters, hashes, spread, .. } = plan::counting::shape(speed(target))?;
    let (increments, overflow) = (Increments::of([4, 5, 6, 7]), Overflow::Refuse);
    Ok(variable::Shape { counters, hashes, width: 8, increments, overflow, spread })
}

/// The same number of counters, all of a key in one line, and of the hashes that are looked at side by side
/// the number with the lowest rate: fewer strangers pass even so.
fn as_line(target: Target) -> Result<variable::Shape> {
    let shape = variable::Shape { spread: Spread::Lines(1), ..as_lines(target)? };
    let mut best = (f64::INFINITY, shape);
    for hashes in 1..=SIEVED_MAX {
        let shape = variable::Shape { hashes, ..shape };
        let rate = plan::variable::rate(shape, target.keys)?;
        if rate < best.0 {
            best = (rate, shape);
        }
    }
    Ok(best.1)
}

/// Increments of 4 to 7 in as many counters as a counting filter takes for the same target, and as
/// many hashes.
fn as_counting(target: Target) -> Result<variable::Shape> {
    let counting::Shape { counters, hashes, .. } = plan::counting::shape(target)?;
    let (increments, overflow) = (Increments::of([4, 5, 6, 7]), Overflow::Refuse);
    let spread = Spread::Anywhere;
    Ok(variable::Shape { counters, hashes, width: 7, increments, overflow, spread })
}

fn bh(target: Target, single: bool) -> Result<Box<dyn Filter>> {
    let shape = plan::bh::shape(target)?;
    let bytes = Bh::planned_bytes(shape);
    Ok(Ours::multiset(Bh::new(shape, SEED)?, bytes, single))
}

fn multilayer(target: Target, single: bool) -> Result<Box<dyn Filter>> {
    let shape = plan::multilayer::shape(target)?;
    Ok(Ours::multiset(Multilayer::new(shape, SEED)?, Multilayer::planned_bytes(shape), single))
}

/// Two subtables of 32-byte buckets, 12 of 16 cells in use: a false-positive rate of 0.15 %.
pub(crate) fn fast(target: Target) -> dleft::Shape {
    dleft::Shape {
        subtables: 2,
        buckets: target.keys.div_ceil(24),
        cells: 16,
        width: 16,
        remainder: 14,
        counter: 2,
        moves: Moves::Search(256),
        growths: 0,
        grows: false,
    }
}

/// The layout of the paper's section 5: four subtables of 16-byte buckets, 6 of 8 cells in use.
fn paper(target: Target) -> dleft::Shape {
    dleft::Shape { subtables: 4, cells: 8, ..fast(target) }
}

/// The target, for a fast set.
fn speed(target: Target) -> Target {
    Target { prefer: Prefer::Speed, ..target }
}

fn dleft(shape: dleft::Shape, single: bool) -> Result<Box<dyn Filter>> {
    Ok(Ours::multiset(DLeft::new(shape, SEED)?, DLeft::planned_bytes(shape), single))
}

/// As [`fast`], with one bit of each cell for the length of its remainder, and one for the counter.
fn elastic(target: Target, single: bool) -> Result<Box<dyn Filter>> {
    let shape = elastic::Shape {
        subtables: 2,
        buckets: target.keys.div_ceil(24),
        line: 32,
        least: 6,
        remainder: 14,
        counter: 1,
        moves: Moves::Search(256),
        narrows: false,
    };
    Ok(Ours::multiset(Elastic::new(shape, SEED)?, Elastic::planned_bytes(shape), single))
}

fn backyard(target: Target, single: bool) -> Result<Box<dyn Filter>> {
    let shape = plan::backyard::shape(target)?;
    Ok(Ours::multiset(Backyard::new(shape, SEED)?, Backyard::planned_bytes(shape), single))
}
