//! The operations of all state maps.
//!
//! [`Direct`](super::Direct), [`Stateful`](super::Stateful) and [`Fingerprint`](super::Fingerprint) are
//! names of [`Map`] with different bodies. The body holds the cells and works on digests; the map hashes
//! the keys.

use super::{State, Sweep};
use crate::{
    Certainty, Digest, Infeasible, Key, Malformed, Refused, Seed, answer::Lookup, batch,
    bytes::Image, member::Moved,
};
use std::fmt;

/// A map from keys to states (a maplet), in memory that its shape fixes.
///
/// The caller says whether a key is new ([`insert`](Self::insert)) or stored ([`modify`](Self::modify),
/// [`forget`](Self::forget)). While that is true, no answer about a stored key is a wrong state: keys that
/// the cells cannot tell apart are answered [`Lookup::DontKnow`]. A key that is not stored is answered a
/// state with the probability that [`certainty`](Self::certainty) states.
///
/// ```
/// use sidon::{Lookup, Seed, state::{Direct, direct}};
///
/// let shape = direct::Shape { cells: 1_000, hashes: 4, states: 3, counter: 4, timed: false };
/// let mut flows = Direct::new(shape, Seed(1))?;
/// flows.insert("10.0.0.1:443", 0)?;
/// flows.modify("10.0.0.1:443", 2)?;
/// assert_eq!(flows.lookup("10.0.0.1:443"), Lookup::State(2));
/// flows.forget("10.0.0.1:443")?;
/// assert_eq!(flows.lookup("10.0.0.1:443"), Lookup::Absent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Map<B> {
    pub(super) body: B,
}

/// Counts about the table of a [`Map`]. A count that the map does not have is 0.
///
/// ```
/// use sidon::{Seed, state::{Stateful, stateful::{Keeping, Shape}}};
///
/// let shape = Shape { cells: 4, hashes: 4, states: 2, keeping: Keeping::Counted(4) };
/// let mut flows = Stateful::new(shape, Seed(1))?;
/// flows.insert("a flow", 0)?;
/// assert_eq!(flows.stats().unknown, 0);
/// // The cells of the two flows differ in state.
/// flows.insert("another", 1)?;
/// assert!(flows.stats().unknown > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The cells of a [`Stateful`](super::Stateful) or a [`Fingerprint`](super::Fingerprint) whose state
    /// is unknown because flows share them.
    pub unknown: u64,
    /// The flows in the stash of a [`Fingerprint`](super::Fingerprint).
    pub stashed: u64,
    /// The searches for room in a [`Fingerprint`](super::Fingerprint).
    pub moved: Moved,
}

/// What a transition does with a key.
///
/// ```
/// use sidon::{Lookup, Seed, state::{Direct, Next, direct::Shape}};
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
    /// The state stays. A stored key counts as touched.
    Stay,
    /// Stores a new key with this state, as [`Map::insert`] does.
    Insert(S),
    /// Gives a stored key this state, as [`Map::modify`] does.
    Modify(S),
    /// Gives the key this state, stored before or not, as [`Map::set`] does.
    Set(S),
    /// Removes the key, as [`Map::forget`] does.
    Forget,
}

/// The cells of a [`Map`], for code that takes any map. Only the maps of this module implement it. Its
/// methods are hidden and may change; call those of [`Map`].
///
/// ```
/// use sidon::{Lookup, Refused, Seed, state::{Cells, Direct, Map, State, direct::Shape}};
///
/// fn restart<B: Cells>(map: &mut Map<B>, flow: &str, state: State) -> Result<(), Refused> {
///     if map.lookup(flow) != Lookup::Absent {
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
pub trait Cells: Sized + Sweep {
    /// The integers that fix the memory.
    type Shape: Copy + PartialEq + fmt::Debug;
    /// The number of the kind in the byte format.
    #[doc(hidden)]
    const KIND: u16;

    #[doc(hidden)]
    fn new(shape: Self::Shape, seed: Seed) -> Result<Self, Infeasible>;
    #[doc(hidden)]
    fn shape(&self) -> Self::Shape;
    #[doc(hidden)]
    fn seed(&self) -> Seed;
    #[doc(hidden)]
    fn memory_bytes(&self) -> u64;
    #[doc(hidden)]
    fn load(&self) -> f64;
    #[doc(hidden)]
    fn stats(&self) -> Stats {
        Stats::default()
    }
    /// The share of keys never inserted that are not answered `Absent`.
    #[doc(hidden)]
    fn rate(&self) -> f64;
    #[doc(hidden)]
    fn clear(&mut self);
    #[doc(hidden)]
    fn try_clone(&self) -> Result<Self, Infeasible>;
    #[doc(hidden)]
    fn lookup(&self, digest: Digest) -> Lookup<State>;
    #[doc(hidden)]
    fn lookup_batch<K: Key>(&self, keys: &[K], answers: &mut [Lookup<State>]) {
        batch::hashed(self.seed(), keys, |first, digests| {
            for (digest, answer) in digests.iter().zip(&mut answers[first..]) {
                *answer = self.lookup(*digest);
            }
        });
    }
    #[doc(hidden)]
    fn touch(&mut self, digest: Digest) -> Lookup<State>;
    #[doc(hidden)]
    fn insert(&mut self, digest: Digest, state: State) -> Result<(), Refused>;
    #[doc(hidden)]
    fn modify(&mut self, digest: Digest, state: State) -> Result<(), Refused>;
    #[doc(hidden)]
    fn forget(&mut self, digest: Digest) -> Result<(), Refused>;
    #[doc(hidden)]
    fn transition(
        &mut self,
        digest: Digest,
        change: &mut dyn FnMut(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        // Not by `touch`: a refused change must leave the flags as they were.
        let now = self.lookup(digest);
        match change(now) {
            Next::Stay => {
                let _same = self.touch(digest);
                Ok(())
            }
            Next::Insert(state) => self.insert(digest, state),
            Next::Modify(state) => self.modify(digest, state),
            Next::Set(state) if now == Lookup::Absent => self.insert(digest, state),
            Next::Set(state) => self.modify(digest, state),
            Next::Forget => self.forget(digest),
        }?;
        Ok(now)
    }
    #[doc(hidden)]
    fn transition_batch<K: Key>(
        &mut self,
        keys: &[K],
        mut change: impl FnMut(usize, Lookup<State>) -> Next<State>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        batch::hashed(self.seed(), keys, |first, digests| {
            for (index, digest) in (first..).zip(digests) {
                if let Err(why) = self.transition(*digest, &mut |now| change(index, now)) {
                    refused(index, why);
                }
            }
        });
    }
    #[doc(hidden)]
    fn merge(&mut self, other: &Self) -> Result<(), Refused>;
    #[doc(hidden)]
    fn to_bytes(&self) -> Vec<u8>;
    #[doc(hidden)]
    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed>;
}

impl<B: Cells> Map<B> {
    /// An empty map.
    pub fn new(shape: B::Shape, seed: Seed) -> Result<Self, Infeasible> {
        Ok(Map { body: B::new(shape, seed)? })
    }

    /// The integers that fix the memory, as they are now: growing changes them.
    pub fn shape(&self) -> B::Shape {
        self.body.shape()
    }

    /// The seed that digests the keys.
    pub fn seed(&self) -> Seed {
        self.body.seed()
    }

    /// The bytes of the table.
    pub fn memory_bytes(&self) -> u64 {
        self.body.memory_bytes()
    }

    /// The share of cells that are in use.
    pub fn load(&self) -> f64 {
        self.body.load()
    }

    /// Counts about the table. Reads the whole table of a [`Stateful`](super::Stateful).
    pub fn stats(&self) -> Stats {
        self.body.stats()
    }

    /// The probability that `lookup` does not answer [`Lookup::Absent`] for a key that was never inserted,
    /// at the present load.
    pub fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.body.rate())
    }

    /// Removes every key. A table that has grown keeps its size.
    pub fn clear(&mut self) {
        self.body.clear();
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Map { body: self.body.try_clone()? })
    }

    /// The state of the key.
    #[inline]
    pub fn lookup<K: Key + ?Sized>(&self, key: &K) -> Lookup<State> {
        self.body.lookup(key.digest(self.body.seed()))
    }

    /// Writes the answer for each key to the same index of `answers`.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn lookup_batch<K: Key>(&self, keys: &[K], answers: &mut [Lookup<State>]) {
        assert_eq!(keys.len(), answers.len(), "one answer a key");
        self.body.lookup_batch(keys, answers);
    }

    /// The state of the key, which counts as touched if it is stored: see [`Clock`](super::Clock).
    pub fn touch<K: Key + ?Sized>(&mut self, key: &K) -> Lookup<State> {
        self.body.touch(key.digest(self.body.seed()))
    }

    /// Stores a key that is not stored. On `Err`, nothing has changed.
    ///
    /// If its cells are those of another key, they or the answer become [`Lookup::DontKnow`] for as long as
    /// the two cannot be told apart.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K, state: State) -> Result<(), Refused> {
        self.body.insert(key.digest(self.body.seed()), state)
    }

    /// Changes the state of a key that is stored. On `Err`, nothing has changed.
    pub fn modify<K: Key + ?Sized>(&mut self, key: &K, state: State) -> Result<(), Refused> {
        self.body.modify(key.digest(self.body.seed()), state)
    }

    /// Inserts a key that looks absent, and modifies any other. On `Err`, nothing has changed.
    ///
    /// Use this only if the caller cannot know whether the key is stored. If the cells of a new key
    /// equal those of a stored key, the state of the stored key is overwritten. [`insert`](Self::insert)
    /// would make both unknown instead.
    pub fn set<K: Key + ?Sized>(&mut self, key: &K, state: State) -> Result<(), Refused> {
        self.transition(key, |_| Next::Set(state)).map(|_| ())
    }

    /// Removes a key that is stored. On `Err`, nothing has changed.
    pub fn forget<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Refused> {
        self.body.forget(key.digest(self.body.seed()))
    }

    /// Looks the key up, applies what `change` returns for the answer, and returns the answer. On `Err`,
    /// nothing has changed.
    pub fn transition<K: Key + ?Sized>(
        &mut self,
        key: &K,
        change: impl FnOnce(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        let mut change = Some(change);
        self.body.transition(key.digest(self.body.seed()), &mut |now| match change.take() {
            Some(change) => change(now),
            None => Next::Stay,
        })
    }

    /// A [`transition`](Self::transition) of each key, in order. `change` gets the index of the key and
    /// its state. Calls `refused` with the index of each refused key and the reason; all other transitions
    /// are done.
    pub fn transition_batch<K: Key>(
        &mut self,
        keys: &[K],
        change: impl FnMut(usize, Lookup<State>) -> Next<State>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        self.body.transition_batch(keys, change, refused);
    }

    /// Adds the keys of another map of the same shape and seed, whose keys must not be stored in this one.
    /// They count as touched. On `Err`, nothing has changed.
    ///
    /// Two [`Fingerprint`](super::Fingerprint) may differ in growth, and must have permuted placing; a
    /// fingerprint that both store becomes a shared cell.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        self.body.merge(&other.body)
    }

    /// The byte image. It contains a check value of the seed, not the seed: store the seed apart.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.body.to_bytes()
    }

    /// The map of a byte image that was written under this seed.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Ok(Map { body: B::from_bytes(image, seed)? })
    }
}

/// Two maps are equal if their images are: shape, seed, clock hand and all cells.
impl<B: Cells> PartialEq for Map<B> {
    fn eq(&self, other: &Self) -> bool {
        self.seed() == other.seed() && self.to_bytes() == other.to_bytes()
    }
}

impl<B: Cells> fmt::Debug for Map<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_struct("Map");
        map.field("shape", &self.shape()).field("load", &self.load()).finish_non_exhaustive()
    }
}

impl<B: Cells> Sweep for Map<B> {
    fn units(&self) -> u64 {
        self.body.units()
    }

    fn hand(&self) -> u64 {
        self.body.hand()
    }

    fn sweep(&mut self, to: u64) -> u64 {
        self.body.sweep(to)
    }
}

impl<B: Cells> Image for Map<B> {
    const KIND: u16 = B::KIND;

    fn to_bytes(&self) -> Vec<u8> {
        Map::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Map::from_bytes(image, seed)
    }
}
