//! One trial: a set is filled, and then keys leave and come at a constant size.
//!
//! In each step a key of the set, drawn at random, leaves, and one never seen before comes. A key
//! that is refused is counted and replaced by another, so the size does not change. The trial
//! uses only the public methods of the filter.

use sidon::{
    Infeasible, Refused, Seed,
    set::{Counting, DLeft, Removes, Set, counting, dleft},
};
use sidon_kit::Rng;

/// Steps of a trial: keys that leave and come after the first fill.
pub const STEPS: u64 = 1 << 20;
/// Non-members that are looked up at the end of a trial.
pub const STRANGERS: u64 = 100_000;
/// How often a trial stops to look at the whole table, the last time at its end.
pub const LOOKS: u64 = 16;
/// The most keys that are tried in place of a refused one.
const PATIENCE: u32 = 64;

/// What a d-left trial saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Buckets of each load at the end, all subtables together.
    pub loads: Vec<u64>,
    /// The largest load of a bucket of the last subtable at any look.
    pub last_subtable: u64,
    /// The largest counter at any time.
    pub counter: u64,
    /// Keys refused because all their cells were taken.
    pub full: u64,
    /// Keys refused for any other reason, and members that could not be removed.
    pub broken: u64,
    /// Keys that found all their cells taken, whether or not room could be made.
    pub pressed: u64,
    /// Strangers that passed, of [`STRANGERS`].
    pub passed: u64,
}

/// What a trial does beyond the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Count refusals only.
    Refusals,
    /// Read the loads on the way, and look up non-members at the end.
    All,
}

/// Runs a trial of a d-left filter that always holds `keys` keys.
pub fn dleft(shape: dleft::Shape, keys: u64, watch: Watch, rng: Rng) -> Result<Seen, Infeasible> {
    let mut churn = Churn::new(rng, |seed| DLeft::new(shape, seed))?;
    let load = |filter: &DLeft| filter.stats().load;
    let (mut counter, mut last_subtable) = (1, 0);
    // A key that took no new cell has raised a counter.
    let mut raised = |filter: &DLeft, before: f64, key: u64| {
        if filter.stats().load == before {
            counter = filter.count(&key).max(counter);
        }
    };
    churn.fill(keys, load, &mut raised);
    for _ in 0..LOOKS {
        churn.steps(STEPS / LOOKS, load, &mut raised);
        if watch == Watch::All {
            let loads = churn.filter.loads();
            last_subtable = largest_load(loads.last()).max(last_subtable);
        }
    }
    let mut loads = vec![0; shape.cells as usize + 1];
    for subtable in churn.filter.loads() {
        loads.iter_mut().zip(subtable).for_each(|(all, some)| *all += some);
    }
    Ok(Seen {
        loads,
        last_subtable,
        counter,
        full: churn.full,
        broken: churn.broken,
        pressed: churn.filter.stats().searches,
        passed: if watch == Watch::All { churn.strangers() } else { 0 },
    })
}

fn largest_load(loads: Option<&Vec<u64>>) -> u64 {
    loads.and_then(|loads| loads.iter().rposition(|&buckets| buckets > 0)).unwrap_or(0) as u64
}

/// What a trial of a counting Bloom filter saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountingSeen {
    /// The largest counter at each look.
    pub counters: [u64; LOOKS as usize],
    /// Keys refused, and members that could not be removed.
    pub broken: u64,
    /// Strangers that passed, of [`STRANGERS`].
    pub passed: u64,
}

/// Runs a trial of a counting Bloom filter that always holds `keys` keys.
pub fn counting(shape: counting::Shape, keys: u64, rng: Rng) -> Result<CountingSeen, Infeasible> {
    let mut churn = Churn::new(rng, |seed| Counting::new(shape, seed))?;
    churn.fill(keys, |_| 0.0, &mut |_, _, _| {});
    let mut counters = [0; LOOKS as usize];
    for counter in &mut counters {
        churn.steps(STEPS / LOOKS, |_| 0.0, &mut |_, _, _| {});
        *counter = churn.filter.stats().largest;
    }
    let broken = churn.full + churn.broken;
    Ok(CountingSeen { counters, broken, passed: churn.strangers() })
}

/// A filter and the keys in it.
struct Churn<B> {
    filter: Set<B>,
    rng: Rng,
    members: Vec<u64>,
    full: u64,
    broken: u64,
}

impl<B: Removes> Churn<B> {
    fn new(
        mut rng: Rng,
        make: impl FnOnce(Seed) -> Result<Set<B>, Infeasible>,
    ) -> Result<Self, Infeasible> {
        let seed = (u128::from(rng.next_u64()) << 64) | u128::from(rng.next_u64());
        Ok(Churn { filter: make(Seed(seed))?, rng, members: Vec::new(), full: 0, broken: 0 })
    }

    fn fill(
        &mut self,
        keys: u64,
        load: impl Fn(&Set<B>) -> f64,
        stored: &mut impl FnMut(&Set<B>, f64, u64),
    ) {
        for _ in 0..keys {
            let key = self.come(&load, stored);
            self.members.push(key);
        }
    }

    fn steps(
        &mut self,
        steps: u64,
        load: impl Fn(&Set<B>) -> f64,
        stored: &mut impl FnMut(&Set<B>, f64, u64),
    ) {
        for _ in 0..steps {
            let leaving = self.rng.below(self.members.len() as u64) as usize;
            self.broken += u64::from(self.filter.remove(&self.members[leaving]).is_err());
            self.members[leaving] = self.come(&load, stored);
        }
    }

    /// Inserts a new key, another if it is refused, and says which. `stored` gets the
    /// load before the insertion.
    #[inline(always)]
    fn come(
        &mut self,
        load: impl Fn(&Set<B>) -> f64,
        stored: &mut impl FnMut(&Set<B>, f64, u64),
    ) -> u64 {
        let before = load(&self.filter);
        let mut key = 0;
        for _ in 0..PATIENCE {
            // The generator gives no number twice: the key is new.
            key = self.rng.next_u64();
            match self.filter.insert(&key) {
                Ok(()) => {
                    stored(&self.filter, before, key);
                    break;
                }
                Err(Refused::Full { .. }) => self.full += 1,
                Err(_) => self.broken += 1,
            }
        }
        key
    }

    /// How many of [`STRANGERS`] new keys pass.
    fn strangers(&mut self) -> u64 {
        let mut found = [false; 1000];
        let mut passed = 0;
        for _ in 0..STRANGERS / found.len() as u64 {
            let keys: Vec<u64> = found.iter().map(|_| self.rng.next_u64()).collect();
            self.filter.contains_batch(&keys, &mut found);
            passed += found.iter().filter(|&&found| found).count() as u64;
        }
        passed
    }
}

const _: () = assert!(STEPS.is_multiple_of(LOOKS) && STRANGERS.is_multiple_of(1000));
