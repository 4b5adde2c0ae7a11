//! `fastbloom-rs`: its counting Bloom filter, 4-bit counters on two XXH3.
//!
//! Repeated insertion stays enabled, which is its default: without it a key that passes for a
//! member would not be counted, and be lost when the others leave. A counter at its ceiling stays
//! there on insert and is lowered on remove, so an overflow can lose members.

use crate::filter::{Entry, Filter, Tuple};
use fastbloom_rs::{CountingBloomFilter, Deletable, FilterBuilder, Membership};

pub(crate) const ENTRIES: &[Entry] = &[Entry::peer("fastbloom_rs_counting", true, |target| {
    let mut builder = FilterBuilder::new(target.keys, target.false_positives);
    builder.enable_repeat_insert(true);
    Ok(Box::new(Counters(builder.build_counting_bloom_filter())))
})];

struct Counters(CountingBloomFilter);

impl Filter for Counters {
    fn bytes(&self) -> u64 {
        self.0.get_u8_array().len() as u64
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.add(key);
        }
    }

    fn contains(&self, keys: &[Tuple]) -> usize {
        keys.iter().filter(|key| self.0.contains(*key)).count()
    }

    fn remove(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.remove(key);
        }
    }
}
