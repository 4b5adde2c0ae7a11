//! `fastbloom`: a Bloom filter; SipHash-1-3 by default, or any 64-bit hash.

use crate::{
    digest::{Hash64, Ours, Rapid},
    filter::{Entry, Filter, SEED, Tuple},
};
use fastbloom::BloomFilter;
use sidon::plan::Target;
use std::marker::PhantomData;

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::peer("fastbloom", false, |target| Ok(Box::new(Own(empty(target))))),
    Entry::peer("fastbloom+ours", false, |target| {
        Ok(Box::new(Given::<Ours>(empty(target), PhantomData)))
    }),
    Entry::peer("fastbloom+rapid", false, |target| {
        Ok(Box::new(Given::<Rapid>(empty(target), PhantomData)))
    }),
];

fn empty(target: Target) -> BloomFilter {
    let builder = BloomFilter::with_false_pos(target.false_positives).seed(&SEED.0);
    builder.expected_items(target.keys as usize)
}

struct Own(BloomFilter);

impl Filter for Own {
    fn bytes(&self) -> u64 {
        self.0.num_bits() as u64 / 8
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.insert(key);
        }
    }

    fn contains(&self, keys: &[Tuple]) -> usize {
        keys.iter().filter(|key| self.0.contains(*key)).count()
    }
}

struct Given<H>(BloomFilter, PhantomData<H>);

impl<H: Hash64> Filter for Given<H> {
    fn bytes(&self) -> u64 {
        self.0.num_bits() as u64 / 8
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.insert_hash(H::hash(key));
        }
    }

    fn contains(&self, keys: &[Tuple]) -> usize {
        keys.iter().filter(|key| self.0.contains_hash(H::hash(key))).count()
    }
}
