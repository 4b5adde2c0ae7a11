//! `sbbf-rs-safe`: Parquet's split-block Bloom filter, which takes any 64-bit hash.
//!
//! A block has 256 bits, eight words of 32; a key sets one bit in each word of its block. The
//! library takes a whole number of bits a key: the least that meets the target is chosen here.

use crate::{
    digest::{Hash64, Ours, Rapid, Xxh3},
    filter::{Entry, Filter, Tuple},
};
use sbbf_rs_safe::Filter as Table;
use sidon::plan::Target;
use sidon_kit::poisson::poisson;
use std::marker::PhantomData;

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::peer("sbbf+ours", false, |target| Ok(Box::new(Sbbf::<Ours>::empty(target)))),
    Entry::peer("sbbf+xxh3", false, |target| Ok(Box::new(Sbbf::<Xxh3>::empty(target)))),
    Entry::peer("sbbf+rapid", false, |target| Ok(Box::new(Sbbf::<Rapid>::empty(target)))),
];

const BLOCK_BITS: f64 = 256.0;
const BITS_MAX: usize = 128;

struct Sbbf<H>(Table, PhantomData<H>);

impl<H> Sbbf<H> {
    fn empty(target: Target) -> Self {
        Sbbf(table(target), PhantomData)
    }
}

impl<H: Hash64> Filter for Sbbf<H> {
    fn bytes(&self) -> u64 {
        self.0.as_bytes().len() as u64
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

/// The bytes of the table that this target gets.
pub(crate) fn bytes(target: Target) -> u64 {
    table(target).as_bytes().len() as u64
}

fn table(target: Target) -> Table {
    Table::new(bits_per_key(target.false_positives), target.keys as usize)
}

/// The least whole number of bits a key that keeps to the rate.
fn bits_per_key(false_positives: f64) -> usize {
    (1..BITS_MAX).find(|&bits| rate(bits as f64) <= false_positives).unwrap_or(BITS_MAX)
}

/// The share of strangers that pass: blocks get a Poisson number of keys, and each of the eight
/// words must have the stranger's bit set.
fn rate(bits_per_key: f64) -> f64 {
    let mean = BLOCK_BITS / bits_per_key;
    let most = (mean + 20.0 * mean.sqrt() + 20.0) as u64;
    let passes = |keys: u64| (1.0 - (31.0f64 / 32.0).powf(keys as f64)).powi(8);
    (0..most).map(|keys| poisson(mean, keys) * passes(keys)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_bits_would_miss_the_target() {
        for false_positives in [0.1, 0.01, 0.001] {
            let bits = bits_per_key(false_positives);
            assert!(rate(bits as f64) <= false_positives);
            assert!(rate(bits as f64 - 1.0) > false_positives);
        }
    }
}
