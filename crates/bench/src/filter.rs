//! What the runner asks of a structure, ours or a peer's, and how it finds them.
//!
//! A new structure is one [`Entry`] and, if no type here fits it, one implementation of
//! [`Filter`].

use crate::{ours, peers};
use anyhow::Result;
use sidon::{Seed, plan::Target};

/// The key of every timing: an IPv4 five-tuple of 13 bytes.
pub(crate) type Tuple = [u8; 13];

/// Keys handed over at a time. Structures without batches loop over them.
pub(crate) const CHUNK: usize = 32;

/// The seed of all that take one: fixed, so that two runs ask the same questions.
pub(crate) const SEED: Seed = Seed(0x5349_444f_4e00_beac);

/// A set of tuples under test.
pub(crate) trait Filter {
    /// The bytes of its table.
    fn bytes(&self) -> u64;
    /// Inserts at most [`CHUNK`] keys. One that is refused will show as lost.
    fn insert(&mut self, keys: &[Tuple]);
    /// How many of at most [`CHUNK`] keys are reported as present.
    fn contains(&self, keys: &[Tuple]) -> usize;
    /// Removes at most [`CHUNK`] members. Only called if [`Entry::removes`].
    fn remove(&mut self, _keys: &[Tuple]) {
        unreachable!("the entry does not remove");
    }
}

/// A structure that can be built.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// Its name in tables, JSON and `--only`.
    pub(crate) name: &'static str,
    /// Whether it is Sidon's: then it must lose nothing, and is compared with those that are not.
    pub(crate) ours: bool,
    /// Whether keys can leave.
    pub(crate) removes: bool,
    /// Builds it empty.
    pub(crate) build: fn(Target) -> Result<Box<dyn Filter>>,
}

impl Entry {
    /// One of ours.
    pub(crate) const fn ours(
        name: &'static str,
        removes: bool,
        build: fn(Target) -> Result<Box<dyn Filter>>,
    ) -> Self {
        Entry { name, ours: true, removes, build }
    }

    /// A peer's.
    pub(crate) const fn peer(
        name: &'static str,
        removes: bool,
        build: fn(Target) -> Result<Box<dyn Filter>>,
    ) -> Self {
        Entry { name, ours: false, removes, build }
    }
}

/// Every structure, ours first.
pub(crate) fn all() -> Vec<Entry> {
    let peers = [
        peers::fastbloom::ENTRIES,
        peers::sbbf::ENTRIES,
        peers::bloomfilter::ENTRIES,
        peers::fastbloom_rs::ENTRIES,
        peers::qfilter::ENTRIES,
        peers::cuckoofilter::ENTRIES,
        peers::packed_cuckoos::ENTRIES,
        peers::bloom_lib::ENTRIES,
        peers::hash_set::ENTRIES,
    ];
    ours::ENTRIES.iter().copied().chain(peers.concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::FiveTuples;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct() {
        let names: HashSet<_> = all().iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), all().len());
    }

    #[test]
    fn every_structure_holds_its_keys_and_lets_go_of_them() {
        let keys: Vec<Tuple> = FiveTuples::seeded(1).take(20 * CHUNK).collect();
        for entry in all() {
            let target = Target::new(2 * keys.len() as u64, 0.001);
            let mut filter = (entry.build)(target).unwrap();
            let count = |filter: &dyn Filter| -> usize {
                keys.chunks(CHUNK).map(|chunk| filter.contains(chunk)).sum()
            };
            assert!(filter.bytes() > 0, "{}", entry.name);
            assert_eq!(count(&*filter), 0, "{}", entry.name);
            keys.chunks(CHUNK).for_each(|chunk| filter.insert(chunk));
            assert_eq!(count(&*filter), keys.len(), "{}", entry.name);
            if entry.removes {
                keys.chunks(CHUNK).for_each(|chunk| filter.remove(chunk));
                assert_eq!(count(&*filter), 0, "{}", entry.name);
            }
        }
    }
}
