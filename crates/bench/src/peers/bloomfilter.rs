//! `bloomfilter`: a Bloom filter on two SipHash-1-3.

use crate::filter::{Entry, Filter, SEED, Tuple};
use anyhow::{Result, anyhow};
use bloomfilter::Bloom;
use sidon::plan::Target;

pub(crate) const ENTRIES: &[Entry] = &[Entry::peer("bloomfilter", false, build)];

struct Whole(Bloom<Tuple>);

fn build(target: Target) -> Result<Box<dyn Filter>> {
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(&SEED.0.to_le_bytes());
    seed[16..].copy_from_slice(&(!SEED.0).to_le_bytes());
    let keys = target.keys as usize;
    let filter = Bloom::new_for_fp_rate_with_seed(keys, target.false_positives, &seed);
    Ok(Box::new(Whole(filter.map_err(|why| anyhow!(why))?)))
}

impl Filter for Whole {
    fn bytes(&self) -> u64 {
        self.0.len() / 8
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.set(key);
        }
    }

    fn contains(&self, keys: &[Tuple]) -> usize {
        keys.iter().filter(|key| self.0.check(key)).count()
    }
}
