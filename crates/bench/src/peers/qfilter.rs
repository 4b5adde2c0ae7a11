//! `qfilter`: a quotient filter, as a multiset.
//!
//! Its `insert` keeps one copy of equal fingerprints, and two members that share one are then lost
//! when the first leaves. So keys are inserted with duplicates allowed. The table is a power of
//! two of cells, at most 95 % full.

use crate::{
    digest::{Hash64, Ours},
    filter::{Entry, Filter, Tuple},
};
use qfilter::Filter as Quotient;
use sidon::plan::Target;

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::peer("qfilter", true, |target| Ok(Box::new(Own(empty(target)?)))),
    Entry::peer("qfilter+ours", true, |target| Ok(Box::new(Given(empty(target)?)))),
];

fn empty(target: Target) -> anyhow::Result<Quotient> {
    Ok(Quotient::new(target.keys, target.false_positives)?)
}

struct Own(Quotient);

impl Filter for Own {
    fn bytes(&self) -> u64 {
        self.0.memory_usage() as u64
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            let _ = self.0.insert_duplicated(key);
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

struct Given(Quotient);

impl Filter for Given {
    fn bytes(&self) -> u64 {
        self.0.memory_usage() as u64
    }

    fn insert(&mut self, keys: &[Tuple]) {
        for key in keys {
            let _ = self.0.insert_fingerprint(true, Ours::hash(key));
        }
    }

    fn contains(&self, keys: &[Tuple]) -> usize {
        keys.iter().filter(|key| self.0.contains_fingerprint(Ours::hash(key))).count()
    }

    fn remove(&mut self, keys: &[Tuple]) {
        for key in keys {
            self.0.remove_fingerprint(Ours::hash(key));
        }
    }
}
