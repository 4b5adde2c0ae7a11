//! `bloom-lib`: a cuckoo filter with fingerprints of 16 bits in a power of two of cells.
//!
//! The rate cannot be chosen: it is about 0.01 % when full. The library has no counting Bloom
//! filter.

use crate::{
    digest::OursState,
    filter::{Entry, Filter, Tuple},
};
use bloom_lib::CuckooFilter;
use std::hash::BuildHasher;

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::peer("bloom_lib_cuckoo", true, |target| {
        Ok(Box::new(Cuckoo(CuckooFilter::new(target.keys as usize)?)))
    }),
    Entry::peer("bloom_lib_cuckoo+ours", true, |target| {
        let keys = target.keys as usize;
        Ok(Box::new(Cuckoo(CuckooFilter::with_hasher(keys, OursState::default())?)))
    }),
];

struct Cuckoo<S>(CuckooFilter<Tuple, S>);

impl<S: BuildHasher> Filter for Cuckoo<S> {
    fn bytes(&self) -> u64 {
        2 * self.0.capacity() as u64
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            let _ = self.0.insert(key);
        }
    }

    fn contains(&self, keys: &[Tuple]) -> usize {
        keys.iter().filter(|key| self.0.contains(key)).count()
    }

    fn remove(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.remove(key);
        }
    }
}
