//! The operations of all state maps.
//!
//! [`Direct`](super::Direct), [`Stateful`](super::Stateful) and [`Fingerprint`](super::Fingerprint) are
//! names of [`Map`] with different bodies. The body holds the cells and works on digests; the map hashes
//! the keys.

use super::{Cells, State, Sweep};
use crate::{
    Certainty, Digest, Infeasible, Key, Malformed, Refused, Seed, answer::Lookup,
    except::Exceptions, saved::Save, set::Stats,
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
    pub(super) exceptions: Exceptions,
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
    /// Inserts a key that looks absent, and modifies any other.
    ///
    /// Use this only if the caller cannot know whether the key is stored. If the cells of a new key equal
    /// those of a stored key, the state of the stored key is overwritten. `Insert` would make both unknown
    /// instead.
    Set(S),
    /// Removes the key, as [`Map::forget`] does.
    Forget,
}

impl<B: Cells> Map<B> {
    /// An empty map.
    pub fn new(shape: B::Shape, seed: Seed) -> Result<Self, Infeasible> {
        Ok(Map { body: B::new(shape, seed)?, exceptions: Exceptions::default() })
    }

    /// The map with room for `room` exceptions: see [`except`](Self::except). They take `16 * room` bytes,
    /// and `room` is at most 2^24. Exceptions that the map has are kept.
    ///
    /// `Infeasible` if there is no memory, or less room than exceptions.
    pub fn with_exceptions(mut self, room: u32) -> Result<Self, Infeasible> {
        self.exceptions = self.exceptions.with_room(room)?;
        Ok(self)
    }

    /// The map with the paper's rule of touching: [`touch`](Self::touch), and a transition that stays, touch
    /// every cell that they read, also those of a key that looks absent. Without this, they touch only the
    /// cells of a key that does not. Saved bytes contain the setting. A merge keeps that of this map.
    ///
    /// No stored key is lost under either rule. Under the paper's, cells of ended flows live longer: the
    /// [`clock`](super::clock) module has the numbers. `Infeasible` if cells have no flags for ageing. In a
    /// [`Fingerprint`](super::Fingerprint), an absent key has no cell, and both rules are the same.
    ///
    /// ```
    /// use sidon::{Lookup, Seed, state::{Clock, Direct, direct::Shape}};
    ///
    /// let shape = Shape { cells: 10, hashes: 4, states: 1, counter: 1, timed: true };
    /// let mut flows = Clock::new(Direct::new(shape, Seed(1))?.with_touch_by_lookup()?, 60);
    /// flows.at(0).insert("ended", 0)?;
    /// // Lookups of flows that are not stored keep its cells, of which there are few.
    /// for now in 0..600 {
    ///     flows.at(now).touch(&now);
    /// }
    /// assert_eq!(flows.at(600).lookup("ended"), Lookup::State(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_touch_by_lookup(mut self) -> Result<Self, Infeasible> {
        self.body.touch_by_lookup()?;
        Ok(self)
    }

    /// The bytes that the table of a map of this shape takes, or `u64::MAX` if there are more.
    ///
    /// ```
    /// use sidon::{Seed, state::{Direct, direct::Shape}};
    ///
    /// let shape = Shape { cells: 1_000, hashes: 4, states: 3, counter: 4, timed: false };
    /// assert_eq!(Direct::planned_bytes(shape), Direct::new(shape, Seed(1))?.memory_bytes());
    /// # Ok::<(), sidon::Infeasible>(())
    /// ```
    pub fn planned_bytes(shape: B::Shape) -> u64 {
        B::planned_bytes(shape)
    }

    /// The integers that fix the memory, as they are now: growing changes them.
    pub fn shape(&self) -> B::Shape {
        self.body.shape()
    }

    /// The seed that digests the keys.
    pub fn seed(&self) -> Seed {
        self.body.seed()
    }

    /// The bytes of the table, and of the room for exceptions.
    pub fn memory_bytes(&self) -> u64 {
        self.body.memory_bytes() + self.exceptions.memory_bytes()
    }

    /// Whether no key is stored. Reads the whole table of a [`Stateful`](super::Stateful) or of a
    /// [`Direct`](super::Direct).
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Counts about the table. Reads the whole table of a [`Stateful`](super::Stateful) or of a
    /// [`Direct`](super::Direct).
    pub fn stats(&self) -> Stats {
        let exceptions = self.exceptions.len();
        Stats { load: self.body.load(), exceptions, ..self.body.stats() }
    }

    /// The probability that `lookup` does not answer [`Lookup::Absent`] for a key that was never inserted,
    /// at the present load.
    pub fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.body.rate())
    }

    /// Removes every key and every exception. A table that has grown keeps its size.
    pub fn clear(&mut self) {
        self.body.clear();
        self.exceptions.clear();
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Map { body: self.body.try_clone()?, exceptions: self.exceptions.try_clone()? })
    }

    /// The state of the key.
    #[inline]
    pub fn lookup<K: Key + ?Sized>(&self, key: &K) -> Lookup<State> {
        self.answer(key.digest(self.body.seed()))
    }

    /// Writes the answer for each key to the same index of `answers`.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn lookup_batch<K: Key>(&self, keys: &[K], answers: &mut [Lookup<State>]) {
        assert_eq!(keys.len(), answers.len(), "one answer a key");
        self.body.lookup_batch(keys, answers);
        self.exceptions.reject(self.body.seed(), keys, answers, Lookup::Absent);
    }

    /// Excepts a key that is not stored: `lookup` then answers [`Lookup::Absent`], so that a known false
    /// positive does not repeat. On `Err`, nothing has changed.
    ///
    /// [`Refused::Full`] if there is no room: see [`with_exceptions`](Self::with_exceptions). Inserting the
    /// key ends the exception, and so does [`clear`](Self::clear). After a [`merge`](Self::merge), a key is
    /// excepted if one map excepted it and the other one answered `Absent`.
    ///
    /// Except only keys that are not stored: an excepted key is answered `Absent` even if it is stored. So
    /// is a stored key with the digest of an excepted key. With `n` keys stored and `e` excepted, the
    /// probability of this is at most `n * e / 2^64`.
    ///
    /// ```
    /// use sidon::{Lookup, Seed, state::{Stateful, stateful::{Keeping, Shape}}};
    ///
    /// let shape = Shape { cells: 300, hashes: 2, states: 4, keeping: Keeping::Counted(4) };
    /// let mut flows = Stateful::new(shape, Seed(1))?.with_exceptions(10)?;
    /// (0..100u32).try_for_each(|flow| flows.insert(&flow, 1))?;
    /// let new = (100..1_000u32).find(|flow| flows.lookup(flow) != Lookup::Absent).unwrap();
    /// // The packet was a SYN: this flow was never inserted.
    /// flows.except(&new)?;
    /// assert_eq!(flows.lookup(&new), Lookup::Absent);
    /// flows.insert(&new, 1)?;
    /// assert_eq!(flows.lookup(&new), Lookup::State(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn except<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Refused> {
        self.exceptions.add(key.digest(self.body.seed()))
    }

    /// Whether the key may be stored, in any state. `false` is certain.
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.lookup(key) != Lookup::Absent
    }

    /// Touches the key if it is stored, and inserts it in state 0 if not. Returns whether it was stored.
    /// On `Err`, nothing has changed.
    ///
    /// With one state, a map is a set. Under a [`Clock`](super::Clock) it is the set of the keys that were
    /// seen recently:
    ///
    /// ```
    /// use sidon::{Seed, state::{Clock, Direct, direct::Shape}};
    ///
    /// let shape = Shape { cells: 1_000, hashes: 4, states: 1, counter: 1, timed: true };
    /// let mut seen = Clock::new(Direct::new(shape, Seed(1))?, 60);
    /// assert!(!seen.at(0).see("10.0.0.1")?);
    /// assert!(seen.at(50).see("10.0.0.1")?);
    /// assert!(seen.at(110).contains("10.0.0.1"));
    /// assert!(!seen.at(170).contains("10.0.0.1"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn see<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, Refused> {
        let known = self.touch(key) != Lookup::Absent;
        if !known {
            self.insert(key, 0)?;
        }
        Ok(known)
    }

    /// The state of the key, which counts as touched if it is stored: see [`Clock`](super::Clock).
    pub fn touch<K: Key + ?Sized>(&mut self, key: &K) -> Lookup<State> {
        let digest = key.digest(self.body.seed());
        if self.exceptions.has(digest) {
            return Lookup::Absent;
        }
        self.body.touch(digest)
    }

    /// Stores a key that is not stored. On `Err`, nothing has changed.
    ///
    /// If its cells are those of another key, they or the answer become [`Lookup::DontKnow`] for as long as
    /// the two cannot be told apart.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K, state: State) -> Result<(), Refused> {
        self.insert_digest(key.digest(self.body.seed()), state)
    }

    /// Changes the state of a key that is stored. On `Err`, nothing has changed.
    pub fn modify<K: Key + ?Sized>(&mut self, key: &K, state: State) -> Result<(), Refused> {
        self.body.modify(self.stored(key)?, state)
    }

    /// Removes a key that is stored. On `Err`, nothing has changed.
    pub fn forget<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Refused> {
        self.body.forget(self.stored(key)?)
    }

    /// Looks the key up, applies what `change` returns for the answer, and returns the answer. On `Err`,
    /// nothing has changed.
    pub fn transition<K: Key + ?Sized>(
        &mut self,
        key: &K,
        change: impl FnOnce(Lookup<State>) -> Next<State>,
    ) -> Result<Lookup<State>, Refused> {
        let digest = key.digest(self.body.seed());
        if self.exceptions.has(digest) {
            let now = Lookup::Absent;
            match change(now) {
                Next::Stay => {}
                Next::Insert(state) | Next::Set(state) => self.insert_digest(digest, state)?,
                Next::Modify(_) | Next::Forget => return Err(Refused::NotStored),
            }
            return Ok(now);
        }
        let mut change = Some(change);
        self.body.transition(digest, &mut |now| match change.take() {
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
        mut change: impl FnMut(usize, Lookup<State>) -> Next<State>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        let mut first = 0;
        while let Some(at) = self.exceptions.first_of(self.body.seed(), &keys[first..]) {
            let at = first + at;
            self.body.transition_batch(
                &keys[first..at],
                |i, now| change(first + i, now),
                &mut |i, why| refused(first + i, why),
            );
            if let Err(why) = self.transition(&keys[at], |now| change(at, now)) {
                refused(at, why);
            }
            first = at + 1;
        }
        self.body.transition_batch(
            &keys[first..],
            |i, now| change(first + i, now),
            &mut |i, why| refused(first + i, why),
        );
    }

    /// The answer for a digest.
    #[inline(always)]
    fn answer(&self, digest: Digest) -> Lookup<State> {
        match self.body.lookup(digest) {
            Lookup::Absent => Lookup::Absent,
            _ if self.exceptions.has(digest) => Lookup::Absent,
            answer => answer,
        }
    }

    /// Inserts a digest and ends its exception.
    #[inline(always)]
    fn insert_digest(&mut self, digest: Digest, state: State) -> Result<(), Refused> {
        self.body.insert(digest, state)?;
        self.exceptions.take_out(digest);
        Ok(())
    }

    /// The digest of a key, unless the key is excepted and so not stored.
    #[inline(always)]
    pub(super) fn stored<K: Key + ?Sized>(&self, key: &K) -> Result<Digest, Refused> {
        let digest = key.digest(self.body.seed());
        if self.exceptions.has(digest) { Err(Refused::NotStored) } else { Ok(digest) }
    }

    /// Adds the keys of another map of the same shape and seed, whose keys must not be stored in this one.
    /// They count as touched. On `Err`, nothing has changed.
    ///
    /// Two [`Fingerprint`](super::Fingerprint) may differ in growth, and must have permuted placing; a
    /// fingerprint that both store becomes a shared cell.
    ///
    /// An exception of one map is kept if the other map answers `Absent` for the key, too. Refused if there
    /// is no room in this map for those that are kept.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        let passes = |map: &Self, digest| map.answer(digest) != Lookup::Absent;
        let kept = self.exceptions.after_merge(
            &other.exceptions,
            |digest| passes(self, digest),
            |digest| passes(other, digest),
        )?;
        self.body.merge(&other.body)?;
        self.exceptions.replace(kept);
        Ok(())
    }

    /// The byte image. It contains a check value of the seed, not the seed: store the seed apart.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.exceptions.join(self.body.to_bytes())
    }

    /// The map of a byte image that was written under this seed.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (image, exceptions) = Exceptions::split(image)?;
        Ok(Map { body: B::from_bytes(&image, seed)?, exceptions })
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
        map.field("shape", &self.shape()).field("load", &self.body.load()).finish_non_exhaustive()
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

impl<B: Cells> Save for Map<B> {
    const KIND: u16 = B::KIND;

    fn to_bytes(&self) -> Vec<u8> {
        Map::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Map::from_bytes(image, seed)
    }
}
