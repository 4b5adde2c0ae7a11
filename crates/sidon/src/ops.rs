//! What can be asked of a structure.
//!
//! A structure implements only what it can keep: `Bloom` is not [`Remove`]. `K` is free, because
//! some structures take any [`Key`](crate::Key) and others only numbers of a universe.
//!
//! Each hot operation has a batch form. The provided ones go key by key; a structure overrides
//! them to hash all keys, prefetch all cells, then act. The answers are the same either way, in
//! the same order.

use crate::{
    answer::{Certainty, Estimate, Lookup},
    error::Refused,
};

/// Keys can enter.
pub trait Insert<K: ?Sized> {
    /// Stores one more copy of the key. On `Err`, nothing has changed.
    fn insert(&mut self, key: &K) -> Result<(), Refused>;

    /// Inserts the keys in order. `refused` is called with the index of each key that was not
    /// inserted and the reason; the others are in.
    fn insert_batch(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        for (index, key) in keys.iter().enumerate() {
            if let Err(why) = self.insert(key) {
                refused(index, why);
            }
        }
    }
}

/// Keys can leave.
///
/// This is for keys known to be in. Removing a stranger is refused where it can be seen; a
/// stranger that passes for a member takes a member's counters along, and from then on `false`
/// can be wrong.
pub trait Remove<K: ?Sized> {
    /// Takes one copy of the key out. On `Err`, nothing has changed.
    fn remove(&mut self, key: &K) -> Result<(), Refused>;

    /// Removes the keys in order. `refused` is called with the index of each key that was not
    /// removed and the reason; the others are out.
    fn remove_batch(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused))
    where
        K: Sized,
    {
        for (index, key) in keys.iter().enumerate() {
            if let Err(why) = self.remove(key) {
                refused(index, why);
            }
        }
    }
}

/// Membership can be asked.
pub trait Contains<K: ?Sized> {
    /// Whether the key may be stored. `false` is a fact.
    fn contains(&self, key: &K) -> bool;

    /// Writes the answer for each key to the same place of `found`.
    ///
    /// # Panics
    /// If the two slices differ in length.
    fn contains_batch(&self, keys: &[K], found: &mut [bool])
    where
        K: Sized,
    {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        for (key, found) in keys.iter().zip(found) {
            *found = self.contains(key);
        }
    }

    /// What `true` is worth at this load.
    fn certainty(&self) -> Certainty;
}

/// Amounts can be counted under keys.
pub trait Count<K: ?Sized> {
    /// Adds an amount to the key's count. On `Err`, nothing has changed.
    fn add(&mut self, key: &K, amount: u64) -> Result<(), Refused>;

    /// The key's count, with its certainty.
    fn estimate(&self, key: &K) -> Estimate;
}

/// Keys can have a state.
pub trait StateMap<K: ?Sized> {
    /// What a key can be in.
    type State;

    /// The key's state, or that it has none, or that the cells do not tell.
    fn lookup(&self, key: &K) -> Lookup<Self::State>;

    /// Gives the key this state, whatever it had before. On `Err`, nothing has changed.
    fn set(&mut self, key: &K, state: Self::State) -> Result<(), Refused>;

    /// Takes the key out. On `Err`, nothing has changed.
    fn forget(&mut self, key: &K) -> Result<(), Refused>;
}

/// Two structures of one shape and seed can become one.
pub trait Merge {
    /// Afterwards `self` holds what both held. On `Err`, nothing has changed.
    fn merge(&mut self, other: &Self) -> Result<(), Refused>;
}
