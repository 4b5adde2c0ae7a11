//! Random operations without mercy on a d-left filter that grows and shrinks under way, against an
//! exact twin: no false negative, copies and sizes equal, refusals only where they must be.
//!
//! `SIDON_ABUSE=100000000 cargo test --release -p sidon --test abuse` goes on for 10^8 operations.

use sidon::{
    Refused, Seed,
    member::{DLeft, Moves, dleft::Shape},
    ops::{Contains, Insert, Remove},
};
use sidon_kit::{Multiset, Rng};
use std::collections::HashMap;

const STEPS: u64 = 2_000_000;

fn abuse(shape: Shape, universe: u64, steps: u64) {
    let mut rng = Rng::seeded(31);
    let mut filter = DLeft::new(shape, Seed(32)).unwrap();
    let mut twin = Multiset::new();
    // What the filter knows of a key is its fingerprint: copies are counted by that.
    let mut copies: HashMap<u64, u64> = HashMap::new();
    let (mut full, mut overflows, mut reshaped, mut strangers) = (0u64, 0u64, 0u64, 0u64);
    for step in 0..steps {
        // Long waves of more insertions than removals and the reverse: full, and nearly empty.
        let inserts = if step / 50_000 % 2 == 0 { 50 } else { 25 };
        let key = rng.below(universe);
        match rng.below(100) {
            draw if draw < inserts => {
                let fingerprint = filter.fingerprint(&key);
                let stored = copies.get(&fingerprint).copied().unwrap_or(0);
                match filter.insert(&key) {
                    Ok(()) => {
                        twin.insert(key);
                        *copies.entry(fingerprint).or_default() += 1;
                    }
                    Err(Refused::Overflow { ceiling }) => {
                        assert_eq!(stored, ceiling);
                        overflows += 1;
                    }
                    Err(Refused::Full { .. }) => {
                        assert!(stored == 0 || shape.counter == 0, "a counter could be raised");
                        full += 1;
                    }
                    Err(why) => panic!("{why}"),
                }
            }
            0..80 => {
                let members = twin.members();
                if !members.is_empty() {
                    let key = members[rng.below(members.len() as u64) as usize];
                    let fingerprint = filter.fingerprint(&key);
                    filter.remove(&key).unwrap();
                    assert!(twin.remove(key));
                    *copies.get_mut(&fingerprint).unwrap() -= 1;
                }
            }
            80..99 => {
                let stored = copies.get(&filter.fingerprint(&key)).copied().unwrap_or(0);
                assert_eq!(filter.count(&key), stored, "step {step}");
                assert_eq!(filter.contains(&key), stored > 0);
                if stored == 0 {
                    assert_eq!(filter.remove(&key), Err(Refused::NotStored));
                    strangers += 1;
                }
            }
            99 if rng.below(300) == 0 => {
                let done = if rng.chance(0.5) { filter.grow() } else { filter.shrink() };
                reshaped += u64::from(done.is_ok());
            }
            _ => {}
        }
        assert_eq!(filter.stored(), twin.total(), "step {step}");
        if step % 500_000 == 0 {
            assert!(twin.members().iter().all(|key| filter.contains(key)), "step {step}");
        }
    }
    assert!(twin.members().iter().all(|key| filter.contains(key)));
    println!(
        "{shape:?}: {steps} operations, {full} full, {overflows} at a ceiling, \
         {reshaped} times grown or shrunk, {strangers} strangers refused"
    );
    assert!(full > 0 && overflows + u64::from(shape.counter == 0) > 0 && reshaped > 5);
}

#[test]
fn no_sequence_of_operations_loses_a_member() {
    let steps = match std::env::var("SIDON_ABUSE") {
        Ok(steps) => steps.parse().expect("SIDON_ABUSE is a number of operations"),
        Err(_) => STEPS,
    };
    let shape = Shape {
        subtables: 2,
        buckets: 60,
        cells: 16,
        width: 16,
        remainder: 13,
        counter: 1,
        moves: Moves::Search(64),
        growths: 2,
        grows: false,
    };
    // More keys than cells; two subtables of the fast layout, and the densest.
    abuse(shape, 100_000, steps / 2);
    let dense = Shape { cells: 8, width: 14, remainder: 14, counter: 0, ..shape };
    abuse(dense, 100_000, steps / 2);
}
