//! The plain alternative: `hashbrown`'s set of 64-bit digests.
//!
//! `hash_set+ours` hashes the digest once more with the library's default; `hash_set+ours_identity`
//! takes it as it is.

use crate::{
    digest::{Hash64, Identity, Ours},
    filter::{Entry, Filter, Tuple},
};
use hashbrown::{DefaultHashBuilder, HashSet};
use std::hash::BuildHasher;

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::peer("hash_set+ours", true, |target| {
        let build = DefaultHashBuilder::default();
        Ok(Box::new(Digests(HashSet::with_capacity_and_hasher(target.keys as usize, build))))
    }),
    Entry::peer("hash_set+ours_identity", true, |target| {
        let build = Identity::default();
        Ok(Box::new(Digests(HashSet::with_capacity_and_hasher(target.keys as usize, build))))
    }),
];

struct Digests<S>(HashSet<u64, S>);

impl<S: BuildHasher> Filter for Digests<S> {
    fn bytes(&self) -> u64 {
        self.0.allocation_size() as u64
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.insert(Ours::hash(key));
        }
    }

    fn contains(&self, keys: &[Tuple]) -> usize {
        keys.iter().filter(|key| self.0.contains(&Ours::hash(key))).count()
    }

    fn remove(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.remove(&Ours::hash(key));
        }
    }
}
