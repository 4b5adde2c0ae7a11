//! The keys of a timing: who enters, who is asked for, who comes and goes.
//!
//! All are taken from one stream of distinct tuples, so that strangers are strangers. Probes are
//! members in random order: their cells are not where the last insertions left the caches.

use crate::filter::Tuple;
use sidon_kit::{FiveTuples, Rng};

/// Operations timed in a round, except for the insertion of all members.
pub(crate) const OPERATIONS: usize = 1_000_000;
/// Fewer hits than this are too short to time: they are asked for repeatedly.
const HITS_LEAST: usize = 200_000;

/// The keys for one number of members.
pub(crate) struct Workload {
    /// In the order of insertion.
    pub(crate) members: Vec<Tuple>,
    /// Members in random order, each at most once.
    pub(crate) probes: Vec<Tuple>,
    /// How often the probes are asked for.
    pub(crate) passes: usize,
    /// As many as the probes, whose places they take in the churn.
    pub(crate) newcomers: Vec<Tuple>,
    /// The newcomers in random order.
    pub(crate) leavers: Vec<Tuple>,
    stream: FiveTuples,
}

impl Workload {
    /// The keys of this seed.
    pub(crate) fn seeded(seed: u64, members: usize) -> Self {
        let mut stream = FiveTuples::seeded(seed);
        let mut rng = Rng::seeded(seed);
        let members: Vec<Tuple> = stream.by_ref().take(members).collect();
        let probes = sample(&mut rng, &members, OPERATIONS);
        let newcomers: Vec<Tuple> = stream.by_ref().take(probes.len()).collect();
        let leavers = sample(&mut rng, &newcomers, OPERATIONS);
        let passes = HITS_LEAST.div_ceil(probes.len().max(1));
        Workload { members, probes, passes, newcomers, leavers, stream }
    }

    /// The next million keys that nobody has seen.
    pub(crate) fn strangers(&mut self) -> Vec<Tuple> {
        self.stream.by_ref().take(OPERATIONS).collect()
    }
}

/// At most `most` of the keys, each at most once, in random order.
fn sample(rng: &mut Rng, keys: &[Tuple], most: usize) -> Vec<Tuple> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    let picked = keys.len().min(most);
    for i in 0..picked {
        let other = i + rng.below((order.len() - i) as u64) as usize;
        order.swap(i, other);
    }
    order[..picked].iter().map(|&i| keys[i as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn probes_are_members_and_strangers_are_not() {
        let mut work = Workload::seeded(1, 1000);
        let members: HashSet<_> = work.members.iter().copied().collect();
        let probes: HashSet<_> = work.probes.iter().copied().collect();
        assert_eq!(members, probes);
        assert_ne!(work.members, work.probes);
        let newcomers: HashSet<_> = work.newcomers.iter().copied().collect();
        assert!(newcomers.is_disjoint(&members));
        for _ in 0..2 {
            let strangers = work.strangers();
            assert_eq!(strangers.len(), OPERATIONS);
            assert!(strangers.iter().all(|key| !members.contains(key) && !newcomers.contains(key)));
        }
    }

    #[test]
    fn a_sample_is_distinct_and_of_the_size_asked_for() {
        let keys: Vec<Tuple> = FiveTuples::seeded(2).take(100).collect();
        let some = sample(&mut Rng::seeded(3), &keys, 40);
        assert_eq!(some.iter().collect::<HashSet<_>>().len(), 40);
        assert!(some.iter().all(|key| keys.contains(key)));
    }
}
