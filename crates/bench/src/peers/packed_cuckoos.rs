//! Two cuckoo filters whose fingerprints lie without gaps: `scalable_cuckoo_filter`, as wide as the rate
//! asks for, and `atomic-cuckoo-filter`, of the least of 4, 8, 16 or 32 bits that reach it. Both with a
//! power of two of buckets, on their own default hash (SipHash) and on a fast one.

use crate::filter::{Entry, Filter, Tuple};
use anyhow::Result;
use atomic_cuckoo_filter::{CuckooFilter, CuckooFilterBuilder};
use rapidhash::fast::RapidHasher;
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};
use sidon::plan::Target;
use std::{collections::hash_map::DefaultHasher, hash::Hasher};

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::peer("scalable_cuckoo", true, scalable::<DefaultHasher>),
    Entry::peer("scalable_cuckoo+rapid", true, scalable::<RapidHasher<'static>>),
    Entry::peer("atomic_cuckoo", true, atomic::<DefaultHasher>),
    Entry::peer("atomic_cuckoo+rapid", true, atomic::<RapidHasher<'static>>),
];

/// Fingerprints of a bucket in both: twice as many may be taken for a key's own.
const BUCKET: usize = 4;

struct Scalable<H>(ScalableCuckooFilter<Tuple, H>);

fn scalable<H: Hasher + Clone + Default + 'static>(target: Target) -> Result<Box<dyn Filter>> {
    let builder = ScalableCuckooFilterBuilder::new()
        .initial_capacity(target.keys as usize)
        .false_positive_probability(target.false_positives)
        .entries_per_bucket(BUCKET)
        .hasher(H::default());
    Ok(Box::new(Scalable(builder.finish())))
}

impl<H: Hasher + Clone> Filter for Scalable<H> {
    fn bytes(&self) -> u64 {
        self.0.bits() / 8
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.insert(key);
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

struct Atomic<H: Hasher + Default> {
    filter: CuckooFilter<H>,
    bits: usize,
}

fn atomic<H: Hasher + Default + 'static>(target: Target) -> Result<Box<dyn Filter>> {
    let rate = |bits: usize| 2.0 * BUCKET as f64 / (bits as f64).exp2();
    let bits = [4, 8, 16].into_iter().find(|&bits| rate(bits) <= target.false_positives);
    let bits = bits.unwrap_or(32);
    // Beyond 95 of 100 cells in use it finds no room.
    let capacity = (target.keys as f64 / 0.95).ceil() as usize;
    let builder = CuckooFilterBuilder::<H>::default().bucket_size(BUCKET).fingerprint_size(bits);
    Ok(Box::new(Atomic { filter: builder.capacity(capacity).build()?, bits }))
}

impl<H: Hasher + Default> Filter for Atomic<H> {
    fn bytes(&self) -> u64 {
        (self.filter.capacity() * self.bits / 8) as u64
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            let _ = self.filter.insert(key);
        }
    }

    fn contains(&self, keys: &[Tuple]) -> usize {
        keys.iter().filter(|key| self.filter.contains(*key)).count()
    }

    fn remove(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.filter.remove(key);
        }
    }
}
