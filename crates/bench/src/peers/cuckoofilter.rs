//! `cuckoofilter`: fingerprints of 8 bits in a power of two of cells, on SipHash-1-3.
//!
//! The rate cannot be chosen: it is about 3 % when full. An insertion that finds no room drops
//! some other member, which shows as lost.

use crate::filter::{Entry, Filter, Tuple};
use cuckoofilter::CuckooFilter;
use std::collections::hash_map::DefaultHasher;

pub(crate) const ENTRIES: &[Entry] = &[Entry::peer("cuckoofilter", true, |target| {
    Ok(Box::new(Cuckoo(CuckooFilter::with_capacity(target.keys as usize))))
})];

struct Cuckoo(CuckooFilter<DefaultHasher>);

impl Filter for Cuckoo {
    fn bytes(&self) -> u64 {
        (self.0.memory_usage() - size_of::<CuckooFilter<DefaultHasher>>()) as u64
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            let _ = self.0.add(key);
        }
    }

    fn contains(&self, keys: &[Tuple]) -> usize {
        keys.iter().filter(|key| self.0.contains(*key)).count()
    }

    fn remove(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.delete(key);
        }
    }
}
