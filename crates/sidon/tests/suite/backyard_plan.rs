//! Plans of lines with an overflow table agree with measurements.

use sidon::{
    Seed,
    plan::{self, Target},
    set::Backyard,
};
use sidon_kit::{FiveTuples, Rng, assert_rate, trials};

/// A planned filter after this many exchanges of all its keys, one by one and at random. Panics on
/// any refusal.
fn churned(keys: u64, exchanges: u64, seed: u64) -> (Backyard, FiveTuples) {
    let shape = plan::backyard::shape(Target::new(keys, 0.001)).unwrap();
    let mut filter = Backyard::new(shape, Seed(seed.into())).unwrap();
    let mut tuples = FiveTuples::seeded(seed);
    let mut rng = Rng::seeded(seed);
    let mut members: Vec<_> = tuples.by_ref().take(keys as usize).collect();
    filter.insert_batch(&members, &mut |i, why| panic!("{shape:?}, key {i}: {why}"));
    for coming in tuples.by_ref().take((exchanges * keys) as usize) {
        let leaving = rng.below(keys) as usize;
        filter.remove(&members[leaving]).unwrap();
        filter.insert(&coming).unwrap_or_else(|why| panic!("{shape:?}: {why}"));
        members[leaving] = coming;
    }
    assert_eq!(filter.len(), keys);
    assert!(members.iter().all(|key| filter.contains(key)));
    (filter, tuples)
}

#[test]
fn planned_lines_take_their_keys_and_pass_strangers_as_planned() {
    let keys = 300_000;
    let (filter, mut strangers) = churned(keys, 3, 1);
    let shape = filter.shape();
    let rate = plan::backyard::rate(shape, keys);
    let n = trials(rate, 0.08);
    let strangers: Vec<_> = strangers.by_ref().take(n).collect();
    let mut found = vec![false; n];
    filter.contains_batch(&strangers, &mut found);
    assert_rate(found.into_iter().filter(|&found| found).count(), n, rate);
}

#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
fn small_planned_lines_are_never_full() {
    for keys in [1, 10, 31, 40, 100, 300, 1000, 3000] {
        for seed in 0..1000 {
            churned(keys, u64::from(seed < 10), seed);
        }
    }
}
