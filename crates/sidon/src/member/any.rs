//! A set of any structure, for programs that let a plan choose it.

use super::{Backyard, Bh, Blocked, Bloom, Counting, DLeft, Multilayer, Variable};
use crate::{Certainty, Infeasible, Key, Refused, Seed, plan::SetShape};

/// A set whose structure a plan chose at run time.
///
/// ```
/// use sidon::{Certainty, Refused, Seed, member::AnySet, plan::{self, Target}};
///
/// let target = Target { deletes: true, ..Target::new(10_000, 0.01) };
/// let mut seen = AnySet::new(plan::set(target)?.shape, Seed(42))?;
/// seen.insert("10.0.0.1:443")?;
/// assert!(seen.contains("10.0.0.1:443"));
/// assert!(matches!(seen.certainty(), Certainty::WrongAtMost(rate) if rate < 0.01));
/// seen.remove("10.0.0.1:443")?;
/// assert!(!seen.contains("10.0.0.1:443"));
///
/// // Keys cannot leave a Bloom filter.
/// let mut bloom = AnySet::new(plan::set(Target::new(10_000, 0.01))?.shape, Seed(42))?;
/// bloom.insert("10.0.0.1:443")?;
/// assert_eq!(bloom.remove("10.0.0.1:443"), Err(Refused::Permanent));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum AnySet {
    /// A Bloom filter.
    Bloom(Bloom),
    /// A Bloom filter in cache lines.
    Blocked(Blocked),
    /// A counting Bloom filter.
    Counting(Counting),
    /// Counters of variable increments.
    Variable(Variable),
    /// Pairs of counters.
    Bh(Bh),
    /// Counters in two layers.
    Multilayer(Multilayer),
    /// A d-left filter.
    DLeft(DLeft),
    /// Lines with an overflow table.
    Backyard(Backyard),
}

/// Evaluates `$do` with the structure of `$self`.
macro_rules! each {
    ($self:expr, $set:ident => $do:expr) => {
        match $self {
            AnySet::Bloom($set) => $do,
            AnySet::Blocked($set) => $do,
            AnySet::Counting($set) => $do,
            AnySet::Variable($set) => $do,
            AnySet::Bh($set) => $do,
            AnySet::Multilayer($set) => $do,
            AnySet::DLeft($set) => $do,
            AnySet::Backyard($set) => $do,
        }
    };
}

impl AnySet {
    /// An empty set.
    pub fn new(shape: SetShape, seed: Seed) -> Result<Self, Infeasible> {
        Ok(match shape {
            SetShape::Bloom(shape) => AnySet::Bloom(Bloom::new(shape, seed)?),
            SetShape::Blocked(shape) => AnySet::Blocked(Blocked::new(shape, seed)?),
            SetShape::Counting(shape) => AnySet::Counting(Counting::new(shape, seed)?),
            SetShape::Variable(shape) => AnySet::Variable(Variable::new(shape, seed)?),
            SetShape::Bh(shape) => AnySet::Bh(Bh::new(shape, seed)?),
            SetShape::Multilayer(shape) => AnySet::Multilayer(Multilayer::new(shape, seed)?),
            SetShape::DLeft(shape) => AnySet::DLeft(DLeft::new(shape, seed)?),
            SetShape::Backyard(shape) => AnySet::Backyard(Backyard::new(shape, seed)?),
        })
    }

    /// Inserts the key. In a set that keys can leave, this stores one more copy. On `Err`, nothing has
    /// changed.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Refused> {
        each!(self, set => set.insert(key))
    }

    /// Removes one copy of the key. On `Err`, nothing has changed.
    ///
    /// Remove only keys that are stored: a key never inserted that is found takes counters of stored keys
    /// along, and then `contains` may miss those.
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Refused> {
        match self {
            AnySet::Bloom(_) | AnySet::Blocked(_) => Err(Refused::Permanent),
            AnySet::Counting(set) => set.remove(key),
            AnySet::Variable(set) => set.remove(key),
            AnySet::Bh(set) => set.remove(key),
            AnySet::Multilayer(set) => set.remove(key),
            AnySet::DLeft(set) => set.remove(key),
            AnySet::Backyard(set) => set.remove(key),
        }
    }

    /// Whether the key may be stored. `false` is never wrong.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        each!(self, set => set.contains(key))
    }

    /// The probability that `contains` answers `true` for a key that was never inserted.
    pub fn certainty(&self) -> Certainty {
        each!(self, set => set.certainty())
    }

    /// The bytes of the table.
    pub fn memory_bytes(&self) -> u64 {
        each!(self, set => set.memory_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{self, Target};

    #[test]
    fn every_planned_set_holds_its_keys_and_lets_them_leave() {
        for growth in [0, 2] {
            let target = Target { growth, ..Target::new(500, 1e-3) };
            let rows = plan::sets(target).unwrap();
            assert!(rows.len() >= 3, "{rows:?}");
            for row in rows {
                let mut set = AnySet::new(row.shape, Seed(7)).unwrap();
                assert_eq!(set.memory_bytes(), row.bytes, "{row:?}");
                let keys = 0..500u64 << growth;
                for key in keys.clone() {
                    set.insert(&key).unwrap();
                }
                assert!(keys.clone().all(|key| set.contains(&key)), "{row:?}");
                let Certainty::WrongAtMost(rate) = set.certainty() else { panic!("{row:?}") };
                // 500 keys differ from the mean table by a few per cent.
                assert!(rate > 0.0 && rate <= 1.3e-3, "{rate} {row:?}");
                assert_eq!(set.memory_bytes(), row.bytes << growth, "{row:?}");
                if matches!(set, AnySet::Bloom(_) | AnySet::Blocked(_)) {
                    assert_eq!(set.remove(&1u64), Err(Refused::Permanent));
                    assert!(set.contains(&1u64));
                    continue;
                }
                for key in keys.clone() {
                    set.remove(&key).unwrap();
                }
                assert!(!keys.clone().any(|key| set.contains(&key)), "{row:?}");
            }
        }
    }
}
