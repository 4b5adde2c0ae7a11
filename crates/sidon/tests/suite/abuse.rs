//! Random operations on a d-left filter that grows and shrinks meanwhile, and on lines with an
//! overflow table. An exact reference checks that no stored key is missing, that copies and sizes
//! are equal, and that refusals occur only where they must.
//!
//! `SIDON_ABUSE=100000000 cargo test --release -p sidon --test suite abuse::` runs 10^8 operations.

use sidon::{
    Refused, Seed,
    set::{Backyard, DLeft, Moves, backyard, dleft::Shape},
};
use sidon_kit::{Multiset, Rng};
use std::collections::HashMap;

/// The operations of both filters.
trait Multi {
    fn insert(&mut self, key: &u64) -> Result<(), Refused>;
    fn remove(&mut self, key: &u64) -> Result<(), Refused>;
    fn contains(&self, key: &u64) -> bool;
    fn stored(&self) -> u64;
    fn fingerprint(&self, key: u64) -> u64;
    fn count(&self, key: u64) -> u64;
    /// Grows or shrinks, and returns whether it did.
    fn reshape(&mut self, grow: bool) -> bool;
}

macro_rules! multi {
    ($name:ident, |$filter:ident, $grow:ident| $reshape:expr) => {
        impl Multi for $name {
            fn insert(&mut self, key: &u64) -> Result<(), Refused> {
                self.insert(key)
            }
            fn remove(&mut self, key: &u64) -> Result<(), Refused> {
                self.remove(key)
            }
            fn contains(&self, key: &u64) -> bool {
                self.contains(key)
            }
            fn stored(&self) -> u64 {
                self.len()
            }
            fn fingerprint(&self, key: u64) -> u64 {
                self.fingerprint(&key)
            }
            fn count(&self, key: u64) -> u64 {
                self.count(&key)
            }
            fn reshape(&mut self, $grow: bool) -> bool {
                let $filter = self;
                $reshape
            }
        }
    };
}
multi!(DLeft, |filter, grow| if grow { filter.grow() } else { filter.shrink() }.is_ok());
multi!(Backyard, |_filter, _grow| false);

/// Counts of the events of a run.
#[derive(Debug, Default)]
struct Met {
    full: u64,
    overflows: u64,
    reshaped: u64,
    strangers: u64,
}

/// `counts`: whether copies share a cell. If so, another copy of a stored key never finds the table
/// full.
fn abuse<F: Multi>(mut filter: F, counts: bool, universe: u64, steps: u64) -> Met {
    let mut rng = Rng::seeded(31);
    let mut twin = Multiset::new();
    // A filter identifies a key by its fingerprint, so copies are counted by fingerprint.
    let mut copies: HashMap<u64, u64> = HashMap::new();
    let mut met = Met::default();
    for step in 0..steps {
        // Long waves of more insertions than removals and the reverse: the filter gets full, and
        // nearly empty.
        let inserts = if step / 50_000 % 2 == 0 { 50 } else { 25 };
        let key = rng.below(universe);
        match rng.below(100) {
            draw if draw < inserts => {
                let fingerprint = filter.fingerprint(key);
                let stored = copies.get(&fingerprint).copied().unwrap_or(0);
                match filter.insert(&key) {
                    Ok(()) => {
                        twin.insert(key);
                        *copies.entry(fingerprint).or_default() += 1;
                    }
                    Err(Refused::Overflow { ceiling }) => {
                        assert_eq!(stored, ceiling);
                        met.overflows += 1;
                    }
                    Err(Refused::Full { .. }) => {
                        assert!(stored == 0 || !counts, "a counter could be raised");
                        met.full += 1;
                    }
                    Err(why) => panic!("{why}"),
                }
            }
            0..80 => {
                let members = twin.members();
                if !members.is_empty() {
                    let key = members[rng.below(members.len() as u64) as usize];
                    let fingerprint = filter.fingerprint(key);
                    filter.remove(&key).unwrap();
                    assert!(twin.remove(key));
                    *copies.get_mut(&fingerprint).unwrap() -= 1;
                }
            }
            80..99 => {
                let stored = copies.get(&filter.fingerprint(key)).copied().unwrap_or(0);
                assert_eq!(filter.count(key), stored, "step {step}");
                assert_eq!(filter.contains(&key), stored > 0);
                if stored == 0 {
                    assert_eq!(filter.remove(&key), Err(Refused::NotStored));
                    met.strangers += 1;
                }
            }
            99 if rng.below(300) == 0 => {
                met.reshaped += u64::from(filter.reshape(rng.chance(0.5)));
            }
            _ => {}
        }
        assert_eq!(filter.stored(), twin.total(), "step {step}");
        if step % 500_000 == 0 {
            assert!(twin.members().iter().all(|key| filter.contains(key)), "step {step}");
        }
    }
    assert!(twin.members().iter().all(|key| filter.contains(key)));
    println!("{steps} operations: {met:?}");
    met
}

#[test]
fn no_sequence_of_operations_loses_a_member() {
    let steps = match std::env::var("SIDON_ABUSE") {
        Ok(steps) => steps.parse().expect("SIDON_ABUSE is a number of operations"),
        Err(_) => crate::size(2_000_000, 600_000),
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
    let met = abuse(DLeft::new(shape, Seed(32)).unwrap(), true, 100_000, steps / 2);
    assert!(met.full > 0 && met.overflows > 0 && met.reshaped > 5);
    let dense = Shape { cells: 8, width: 14, remainder: 14, counter: 0, ..shape };
    let met = abuse(DLeft::new(dense, Seed(32)).unwrap(), false, 100_000, steps / 2);
    assert!(met.full > 0 && met.reshaped > 5);
    // Sixty lines with more overflowed keys than the overflow table holds.
    let lines = backyard::Shape { lines: 60, sharing: 3 };
    let met = abuse(Backyard::new(lines, Seed(32)).unwrap(), false, 100_000, steps / 2);
    assert!(met.full > 0 && met.strangers > 0);
}
