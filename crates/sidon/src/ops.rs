//! What can be asked of a structure.
//!
//! A structure implements only what it can keep: `Bloom` is not [`Remove`]. `K` is free, because
//! some structures take any [`Key`](crate::Key) and others only numbers of a universe.
//!
//! Each hot operation has a batch form. The provided ones go key by key; a structure overrides
//! them to hash all keys, prefetch all cells, then act. The answers are the same either way, in
//! the same order.

use crate::{answer::Lookup, error::Refused, state::State};

/// Keys can enter.
///
/// ```
/// use sidon::{Refused, Seed, member::{Bloom, bloom}, ops::Insert};
///
/// fn add_all<S: Insert<u32>>(set: &mut S, keys: &[u32]) -> Result<(), Refused> {
///     keys.iter().try_for_each(|key| set.insert(key))
/// }
/// let mut seen = Bloom::new(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(1))?;
/// add_all(&mut seen, &[1, 2, 3])?;
/// assert_eq!(seen.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// ```
/// use sidon::{Refused, Seed, member::{Backyard, backyard}, ops::Remove};
///
/// let shape = backyard::Shape { lines: 10, sharing: 2 };
/// let mut seen = Backyard::from_keys(shape, Seed(1), [1u32, 2])?;
/// let mut refused = vec![];
/// Remove::remove_batch(&mut seen, &[1u32, 9], &mut |index, why| refused.push((index, why)));
/// assert_eq!(refused, [(1, Refused::NotStored)]);
/// assert_eq!(seen.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// ```
/// use sidon::{Seed, member::{Bloom, bloom}, ops::Contains};
///
/// fn share<S: Contains<u32>>(set: &S, keys: &[u32]) -> f64 {
///     keys.iter().filter(|key| set.contains(key)).count() as f64 / keys.len() as f64
/// }
/// let seen = Bloom::from_keys(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(1), [1u32, 2])?;
/// assert_eq!(share(&seen, &[1, 2, 3, 4]), 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
}

/// What a transition does with a key.
///
/// ```
/// use sidon::{Lookup, Seed, ops::Next, state::{Direct, direct::Shape}};
///
/// let shape = Shape { cells: 1_000, hashes: 4, states: 3, counter: 4, timed: false };
/// let mut flows = Direct::new(shape, Seed(1))?;
/// let step = |now| match now {
///     Lookup::Absent => Next::Insert(0),
///     Lookup::State(0) => Next::Modify(1),
///     _ => Next::Forget,
/// };
/// let seen = [(); 4].map(|()| flows.transition("flow", step));
/// assert_eq!(seen, [Ok(Lookup::Absent), Ok(Lookup::State(0)), Ok(Lookup::State(1)), Ok(Lookup::Absent)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<S> {
    /// It stays as it is; if it is there, it counts as touched.
    Stay,
    /// It is new and gets this state, as by [`StateMap::insert`].
    Insert(S),
    /// It is there and gets this state, as by [`StateMap::modify`].
    Modify(S),
    /// It gets this state whether it is there or not, as by [`StateMap::set`].
    Set(S),
    /// It leaves, as by [`StateMap::forget`].
    Forget,
}

/// Keys can have a state.
///
/// The caller says whether a key is new ([`insert`](Self::insert)) or known to be in
/// ([`modify`](Self::modify), [`forget`](Self::forget)). While that is true, no answer about a
/// member is ever a wrong state: keys that cannot be told apart become [`Lookup::DontKnow`].
///
/// ```
/// use sidon::{Lookup, Refused, Seed, ops::StateMap, state::{Direct, State, direct::Shape}};
///
/// fn restart<M: StateMap<str>>(map: &mut M, flow: &str, state: State) -> Result<(), Refused> {
///     if !matches!(map.lookup(flow), Lookup::Absent) {
///         map.forget(flow)?;
///     }
///     map.insert(flow, state)
/// }
/// let shape = Shape { cells: 1_000, hashes: 4, states: 3, counter: 4, timed: false };
/// let mut flows = Direct::new(shape, Seed(1))?;
/// restart(&mut flows, "flow", 1)?;
/// restart(&mut flows, "flow", 2)?;
/// assert_eq!(flows.lookup("flow"), Lookup::State(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait StateMap<K: ?Sized> {
    /// The key's state, or that it has none, or that the cells do not tell.
    fn lookup(&self, key: &K) -> Lookup<State>;

    /// The same, and the key counts as touched in this phase, if ageing is in use.
    fn touch(&mut self, key: &K) -> Lookup<State>;

    /// Gives a key that is not in this state. On `Err`, nothing has changed.
    ///
    /// Its cells may hold a member's state; then they, or the answer, become `DontKnow` for as long
    /// as the two cannot be told apart.
    fn insert(&mut self, key: &K, state: State) -> Result<(), Refused>;

    /// Gives a key that is in this state in place of the one it has. On `Err`, nothing has changed.
    fn modify(&mut self, key: &K, state: State) -> Result<(), Refused>;

    /// Gives the key this state, whatever it had before. On `Err`, nothing has changed.
    ///
    /// A key that looks absent is inserted, any other modified. So a newcomer that is taken for a
    /// member, which [`insert`](Self::insert) would notice, overwrites that member's state: use
    /// this only where the caller cannot know.
    fn set(&mut self, key: &K, state: State) -> Result<(), Refused> {
        match self.lookup(key) {
            Lookup::Absent => self.insert(key, state),
            _ => self.modify(key, state),
        }
    }

    /// Takes a key that is in out. On `Err`, nothing has changed.
    fn forget(&mut self, key: &K) -> Result<(), Refused>;

    /// Asks for the key's state, lets `change` decide on it, does what it says, and gives the answer
    /// from before. On `Err`, nothing has changed.
    fn transition(
        &mut self,
        key: &K,
        change: &mut dyn FnMut(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        // Not by `touch`: a refused change must leave the flags as they were.
        let now = self.lookup(key);
        match change(now) {
            Next::Stay => {
                let _same = self.touch(key);
                Ok(())
            }
            Next::Insert(state) => self.insert(key, state),
            Next::Modify(state) => self.modify(key, state),
            Next::Set(state) => self.set(key, state),
            Next::Forget => self.forget(key),
        }?;
        Ok(now)
    }
}

/// Two structures of one shape and seed can become one.
///
/// ```
/// use sidon::{Refused, Seed, member::{Bloom, bloom}, ops::Merge};
///
/// fn sum<S: Merge>(mut first: S, others: &[S]) -> Result<S, Refused> {
///     others.iter().try_for_each(|other| first.merge(other))?;
///     Ok(first)
/// }
/// let set = |seed, key: u32| {
///     Bloom::from_keys(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(seed), [key]).unwrap()
/// };
/// assert!(sum(set(1, 10), &[set(1, 20), set(1, 30)])?.contains(&30u32));
/// assert_eq!(sum(set(1, 10), &[set(2, 20)]), Err(Refused::Mismatch { field: "seed" }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Merge {
    /// Afterwards `self` holds what both held. On `Err`, nothing has changed.
    fn merge(&mut self, other: &Self) -> Result<(), Refused>;
}
