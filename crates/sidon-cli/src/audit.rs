//! `sidon plan member --audit`: measures the planned structures.
//!
//! The audit builds each structure, fills it with generated five-tuples, and replaces all its keys
//! `turnovers` times. Then it looks up all members and many keys that were never inserted.

use anyhow::Result;
use indicatif::ProgressBar;
use sidon::{
    Refused, Seed,
    plan::SetShape,
    set::{
        Backyard, Bh, Blocked, Bloom, Counting, DLeft, Elastic, Filter, Multilayer, Set, Variable,
    },
};
use sidon_kit::FiveTuples;

type Tuple = [u8; 13];

/// The measurements of one structure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// The false-positive rate, and 1.96 standard deviations of it.
    pub(crate) false_positives: f64,
    pub(crate) interval: f64,
    /// Members that were not found.
    pub(crate) lost: u64,
    /// Insertions and removals that were refused.
    pub(crate) refused: u64,
    /// Keys that replaced another key.
    pub(crate) churned: u64,
}

/// The operations that the audit needs. `remove` returns `false` if the structure has no removal.
trait Audited {
    fn insert(&mut self, keys: &[Tuple], refused: &mut dyn FnMut(usize, Refused));
    fn remove(&mut self, _: &[Tuple], _: &mut dyn FnMut(usize, Refused)) -> bool {
        false
    }
    fn found(&self, keys: &[Tuple]) -> u64;
}

fn count<B: Filter>(filter: &Set<B>, keys: &[Tuple]) -> u64 {
    let mut found = [false; BATCH];
    let found = &mut found[..keys.len()];
    filter.contains_batch(keys, found);
    found.iter().filter(|&&found| found).count() as u64
}

macro_rules! audited {
    ($name:ty $(, $remove:ident)?) => {
        impl Audited for $name {
            fn insert(&mut self, keys: &[Tuple], refused: &mut dyn FnMut(usize, Refused)) {
                self.insert_batch(keys, refused);
            }
            $(fn remove(&mut self, keys: &[Tuple], refused: &mut dyn FnMut(usize, Refused)) -> bool {
                self.$remove(keys, refused);
                true
            })?
            fn found(&self, keys: &[Tuple]) -> u64 {
                count(self, keys)
            }
        }
    };
}
audited!(Bloom);
audited!(Blocked);
audited!(Counting, remove_batch);
audited!(DLeft, remove_batch);
audited!(Backyard, remove_batch);
audited!(Elastic, remove_batch);
audited!(Variable, remove_batch);
audited!(Bh, remove_batch);
audited!(Multilayer, remove_batch);

const BATCH: usize = 256;

/// Steps of the progress bar that one structure takes.
pub(crate) fn steps(keys: u64, turnovers: u64, rate: f64) -> u64 {
    keys * (2 + turnovers) + absent(rate)
}

/// The number of absent keys to look up, so that the measured rate is within about 2 %.
fn absent(rate: f64) -> u64 {
    ((10_000.0 / rate) as u64).clamp(1_000_000, 200_000_000)
}

/// Measures one structure; `None` if this program cannot build it.
pub(crate) fn audit(
    shape: SetShape,
    keys: u64,
    rate: f64,
    turnovers: u64,
    seed: u64,
    bar: &ProgressBar,
) -> Result<Option<Found>> {
    let secret = Seed(seed.into());
    let mut filter: Box<dyn Audited> = match shape {
        SetShape::Bloom(shape) => Box::new(Bloom::new(shape, secret)?),
        SetShape::Blocked(shape) => Box::new(Blocked::new(shape, secret)?),
        SetShape::Counting(shape) => Box::new(Counting::new(shape, secret)?),
        SetShape::DLeft(shape) => Box::new(DLeft::new(shape, secret)?),
        SetShape::Backyard(shape) => Box::new(Backyard::new(shape, secret)?),
        SetShape::Elastic(shape) => Box::new(Elastic::new(shape, secret)?),
        SetShape::Variable(shape) => Box::new(Variable::new(shape, secret)?),
        SetShape::Bh(shape) => Box::new(Bh::new(shape, secret)?),
        SetShape::Multilayer(shape) => Box::new(Multilayer::new(shape, secret)?),
        _ => return Ok(None),
    };
    let mut stream = FiveTuples::seeded(seed);
    let mut refused = 0;
    let mut members: Vec<Tuple> = stream.by_ref().take(keys as usize).collect();
    for batch in members.chunks(BATCH) {
        filter.insert(batch, &mut |_, _| refused += 1);
        bar.inc(batch.len() as u64);
    }

    let (mut churned, mut leaving, mut coming) = (0, Vec::new(), Vec::new());
    for turnover in 0..turnovers {
        let mut order = Order::new(keys, seed.wrapping_add(turnover));
        loop {
            let places: Vec<usize> = order.by_ref().take(BATCH).collect();
            if places.is_empty() {
                break;
            }
            leaving.clear();
            leaving.extend(places.iter().map(|&place| members[place]));
            if !filter.remove(&leaving, &mut |_, _| refused += 1) {
                break;
            }
            coming.clear();
            coming.extend(stream.by_ref().take(places.len()));
            filter.insert(&coming, &mut |_, _| refused += 1);
            for (&place, &key) in places.iter().zip(&coming) {
                members[place] = key;
            }
            churned += places.len() as u64;
            bar.inc(places.len() as u64);
        }
    }

    let mut lost = 0;
    for batch in members.chunks(BATCH) {
        lost += batch.len() as u64 - filter.found(batch);
        bar.inc(batch.len() as u64);
    }
    let (asked, mut passed) = (absent(rate), 0);
    let mut left = asked;
    while left > 0 {
        coming.clear();
        coming.extend(stream.by_ref().take(BATCH.min(left as usize)));
        passed += filter.found(&coming);
        left -= coming.len() as u64;
        bar.inc(coming.len() as u64);
    }
    let false_positives = passed as f64 / asked as f64;
    let interval = 1.96 * (false_positives * (1.0 - false_positives) / asked as f64).sqrt();
    Ok(Some(Found { false_positives, interval, lost, refused, churned }))
}

/// All numbers below a bound, each once, in an order that differs from the order of insertion.
struct Order {
    bound: u64,
    next: u64,
    step: u64,
    left: u64,
}

impl Order {
    fn new(bound: u64, seed: u64) -> Self {
        let mut rng = sidon_kit::Rng::seeded(seed);
        let mut step = 1 + rng.below(bound);
        while gcd(step, bound) != 1 {
            step += 1;
        }
        Order { bound, next: rng.below(bound), step: step % bound, left: bound }
    }
}

impl Iterator for Order {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let place = self.next;
        self.next = (self.next + self.step) % self.bound;
        Some(place as usize)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_visits_every_place_once() {
        for bound in [1, 2, 7, 100, 1024] {
            let mut seen: Vec<usize> = Order::new(bound, 3).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..bound as usize));
        }
    }
}
