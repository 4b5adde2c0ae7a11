//! The operations of all sets.
//!
//! [`Bloom`](super::Bloom), [`Counting`](super::Counting), [`DLeft`](super::DLeft) and the other sets are
//! names of [`Set`] with different bodies. The body holds the cells and works on digests; the set hashes
//! the keys.

use super::filter::{Counts, Filter, Removes};
use crate::{
    Certainty, Digest, Infeasible, Key, Malformed, Refused, Seed, except::Exceptions, saved::Save,
};
use std::fmt;

/// A set of keys, in memory that its shape fixes.
///
/// `contains` never misses a stored key. It answers `true` for another key with the probability that
/// [`certainty`](Self::certainty) states. Sets whose keys can leave are multisets: a key that was inserted
/// twice is gone after it was removed twice.
///
/// ```
/// use sidon::{Seed, set::DLeft, plan};
///
/// let shape = plan::dleft::shape(plan::Target::new(10_000, 0.01), 2)?;
/// let mut seen = DLeft::new(shape, Seed::random()?)?;
/// seen.insert("10.0.0.1")?;
/// assert!(seen.contains("10.0.0.1"));
/// assert_eq!(seen.len(), 1);
/// seen.remove("10.0.0.1")?;
/// assert!(seen.is_empty() && !seen.contains("10.0.0.1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Set<B> {
    pub(super) body: B,
    pub(super) exceptions: Exceptions,
}

/// Counts about the table of a set, a state map or a [`Min`](crate::count::Min), for diagnosis. A count is
/// zero in a structure that has no such thing.
///
/// ```
/// use sidon::{Seed, set::{Counting, Overflow, Spread, counting::Shape}};
///
/// let (overflow, spread) = (Overflow::Pin, Spread::Anywhere);
/// let shape = Shape { counters: 2_000, hashes: 3, width: 2, overflow, spread };
/// let seen = Counting::from_keys(shape, Seed(1), ["key"; 5])?;
/// // Three counters of two bits reached 3 and stay there.
/// assert_eq!((seen.stats().largest, seen.stats().at_ceiling), (3, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The share of cells that are in use.
    pub load: f64,
    /// The largest counter of a [`Counting`](super::Counting) or a [`Variable`](super::Variable).
    pub largest: u64,
    /// The counters that stay at their ceiling for good under [`Overflow::Pin`](super::Overflow::Pin). In a
    /// [`Counting`](super::Counting), also those that are full under
    /// [`Overflow::Refuse`](super::Overflow::Refuse). The counters of a [`Min`](crate::count::Min) that are
    /// at their ceiling.
    pub at_ceiling: u64,
    /// The counters that continue in the second layer of a [`Multilayer`](super::Multilayer), or the keys
    /// in the overflow table of a [`Backyard`](super::Backyard).
    pub overflowed: u64,
    /// The cells of a [`Stateful`](crate::state::Stateful) or a [`Fingerprint`](crate::state::Fingerprint)
    /// whose state is unknown because flows share them.
    pub unknown: u64,
    /// The flows in the stash of a [`Fingerprint`](crate::state::Fingerprint).
    pub stashed: u64,
    /// The flows that a [`Fingerprint`](crate::state::Fingerprint) keeps in its list by digest.
    pub listed: u64,
    /// The insertions into a [`DLeft`](super::DLeft) or a [`Fingerprint`](crate::state::Fingerprint) that found
    /// all cells of their key taken, since the table was built or read from bytes. Each one searches for room
    /// if the shape allows moves.
    pub searches: u64,
    /// The searches that made room.
    pub resolved: u64,
    /// The cells that these searches moved.
    pub moved: u64,
    /// The buckets whose cells searches followed: the work of all searches.
    pub followed: u64,
    /// The keys that [`Set::except`] or [`Map::except`](crate::state::Map::except) excepted.
    pub exceptions: u64,
}

impl<B: Filter> Set<B> {
    /// An empty set.
    pub fn new(shape: B::Shape, seed: Seed) -> Result<Self, Infeasible> {
        Ok(Set { body: B::new(shape, seed)?, exceptions: Exceptions::default() })
    }

    /// The set with room for `room` exceptions: see [`except`](Self::except). They take `16 * room` bytes,
    /// and `room` is at most 2^24. Exceptions that the set has are kept.
    ///
    /// Each distinct key that is not stored and passes takes one. Of `n` distinct keys that are looked up
    /// and not stored, about `n` times the rate of [`certainty`](Self::certainty) do.
    ///
    /// `Infeasible` if there is no memory, or less room than exceptions.
    pub fn with_exceptions(mut self, room: u32) -> Result<Self, Infeasible> {
        self.exceptions = self.exceptions.with_room(room)?;
        Ok(self)
    }

    /// The bytes that the tables of a set of this shape take, or `u64::MAX` if there are more.
    ///
    /// ```
    /// use sidon::{Seed, set::{Bloom, bloom::Shape}};
    ///
    /// let shape = Shape { bits: 9_600, hashes: 7 };
    /// assert_eq!(Bloom::planned_bytes(shape), 1_200);
    /// assert_eq!(Bloom::new(shape, Seed(1))?.memory_bytes(), 1_200);
    /// # Ok::<(), sidon::Infeasible>(())
    /// ```
    pub fn planned_bytes(shape: B::Shape) -> u64 {
        B::planned_bytes(shape)
    }

    /// A set of these keys. [`Infeasible::Key`] if the set refuses one of them.
    ///
    /// ```
    /// use sidon::{Seed, set::{Blocked, blocked}};
    ///
    /// let shape = blocked::Shape { lines: 100, hashes: 8 };
    /// let ports = Blocked::from_keys(shape, Seed(1), [22u16, 80, 443])?;
    /// assert!(ports.contains(&443u16));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_keys<K: Key>(
        shape: B::Shape,
        seed: Seed,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Self, Infeasible> {
        let mut set = Self::new(shape, seed)?;
        for (index, key) in keys.into_iter().enumerate() {
            set.insert(&key).map_err(|why| Infeasible::Key { index, why })?;
        }
        Ok(set)
    }

    /// The integers that fix the memory, as they are now: growing changes them.
    pub fn shape(&self) -> B::Shape {
        self.body.shape()
    }

    /// The seed that digests the keys.
    pub fn seed(&self) -> Seed {
        self.body.seed()
    }

    /// The number of copies stored. [`Bloom`](super::Bloom) and [`Blocked`](super::Blocked) count every
    /// insertion, also of a key that is stored already.
    pub fn len(&self) -> u64 {
        self.body.len()
    }

    /// Whether no key is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the tables, and of the room for exceptions.
    pub fn memory_bytes(&self) -> u64 {
        self.body.memory_bytes() + self.exceptions.memory_bytes()
    }

    /// Counts about the table. Reads the whole table, except in [`Bloom`](super::Bloom),
    /// [`DLeft`](super::DLeft) and [`Backyard`](super::Backyard).
    pub fn stats(&self) -> Stats {
        let exceptions = self.exceptions.len();
        Stats { load: self.body.load(), exceptions, ..self.body.stats() }
    }

    /// The probability that `contains` answers `true` for a key that was never inserted, from the present
    /// cells. Reads the whole table where [`stats`](Self::stats) does, except in a
    /// [`Counting`](super::Counting) without lines.
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
        Ok(Set { body: self.body.try_clone()?, exceptions: self.exceptions.try_clone()? })
    }

    /// Stores one more copy of the key. On `Err`, nothing has changed.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Refused> {
        let digest = key.digest(self.body.seed());
        if self.exceptions.is_empty() {
            return self.body.insert(digest);
        }
        self.insert_excepted(digest)
    }

    /// [`insert`](Self::insert) for sets with exceptions.
    #[cold]
    #[inline(never)]
    fn insert_excepted(&mut self, digest: Digest) -> Result<(), Refused> {
        self.body.insert(digest)?;
        self.exceptions.take_out(digest);
        Ok(())
    }

    /// Inserts the keys in order. Calls `refused` with the index of each key that was refused, and with
    /// the reason; the other keys are stored.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        let mut first = 0;
        while let Some(at) = self.exceptions.first_of(self.body.seed(), &keys[first..]) {
            let at = first + at;
            self.body.insert_batch(&keys[first..at], &mut |i, why| refused(first + i, why));
            if let Err(why) = self.insert(&keys[at]) {
                refused(at, why);
            }
            first = at + 1;
        }
        self.body.insert_batch(&keys[first..], &mut |i, why| refused(first + i, why));
    }

    /// Whether the key may be stored. `false` is certain.
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.passes(key.digest(self.body.seed()))
    }

    /// Writes the answer for each key to the same index of `found`.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "one answer a key");
        self.body.contains_batch(keys, found);
        self.exceptions.reject(self.body.seed(), keys, found, false);
    }

    /// Excepts a key that is not stored: `contains` then answers `false`, so that a known false positive does
    /// not repeat. On `Err`, nothing has changed.
    ///
    /// [`Refused::Full`] if there is no room: see [`with_exceptions`](Self::with_exceptions). Inserting the
    /// key ends the exception, and so does [`clear`](Self::clear). After a [`merge`](Self::merge), a key is
    /// excepted if one set excepted it and the other one rejected it.
    ///
    /// Except only keys that are not stored: an excepted key is rejected even if it is stored. A stored key
    /// with the digest of an excepted key is rejected, too. With `n` keys stored and `e` excepted, the
    /// probability of this is at most `n * e / 2^64`.
    ///
    /// ```
    /// use sidon::{Refused, Seed, set::{Bloom, bloom}};
    ///
    /// let shape = bloom::Shape { bits: 500, hashes: 2 };
    /// let mut blocked = Bloom::from_keys(shape, Seed(1), 0..100u32)?.with_exceptions(1)?;
    /// let mut passing = (100..1_000u32).filter(|key| blocked.contains(key));
    /// let (one, two) = (passing.next().unwrap(), passing.next().unwrap());
    /// // The caller looked it up elsewhere: this key was never inserted.
    /// blocked.except(&one)?;
    /// assert!(!blocked.contains(&one));
    /// assert_eq!(blocked.except(&two), Err(Refused::Full { stored: 1, cells: 1 }));
    /// blocked.insert(&one)?;
    /// assert!(blocked.contains(&one));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn except<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Refused> {
        self.exceptions.add(key.digest(self.body.seed()))
    }

    /// Whether the set passes a digest.
    #[inline(always)]
    fn passes(&self, digest: Digest) -> bool {
        self.body.contains(digest) && !self.exceptions.has(digest)
    }

    /// Adds the keys of another set of the same shape and seed. On `Err`, nothing has changed.
    ///
    /// Bits are united. Counters are added; under [`Overflow::Refuse`](super::Overflow::Refuse) a sum above
    /// a ceiling refuses the whole merge, under [`Overflow::Pin`](super::Overflow::Pin) the counter is
    /// pinned. Two [`DLeft`](super::DLeft) may have grown differently, and two
    /// [`Backyard`](super::Backyard) may differ in `sharing`.
    ///
    /// An exception of one set is kept if the other set rejects the key, too. Refused if there is no room
    /// in this set for those that are kept.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        let passes = |set: &Self, digest| set.passes(digest);
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

    /// The set of a byte image that was written under this seed.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (image, exceptions) = Exceptions::split(image)?;
        Ok(Set { body: B::from_bytes(&image, seed)?, exceptions })
    }
}

impl<B: Removes> Set<B> {
    /// Removes one copy of the key. On `Err`, nothing has changed.
    ///
    /// Remove only keys that are stored. A key that is not is refused if the cells show it. Otherwise the
    /// removal takes the cells of stored keys, and `contains` can then miss those keys. An excepted key is
    /// refused.
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Refused> {
        let digest = key.digest(self.body.seed());
        if self.exceptions.has(digest) {
            return Err(Refused::NotStored);
        }
        self.body.remove(digest)
    }

    /// Removes the keys in order. Calls `refused` with the index of each key that was not removed, and
    /// with the reason.
    pub fn remove_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        let mut first = 0;
        while let Some(at) = self.exceptions.first_of(self.body.seed(), &keys[first..]) {
            let at = first + at;
            self.body.remove_batch(&keys[first..at], &mut |i, why| refused(first + i, why));
            refused(at, Refused::NotStored);
            first = at + 1;
        }
        self.body.remove_batch(&keys[first..], &mut |i, why| refused(first + i, why));
    }
}

impl<B: Counts> Set<B> {
    /// The number of copies of the key, and of other keys with its fingerprint. 0 for an excepted key.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        let digest = key.digest(self.body.seed());
        if self.exceptions.has(digest) { 0 } else { self.body.count(digest) }
    }

    /// Writes the number of copies of each key to the same index of `counts`.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn count_batch<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        assert_eq!(keys.len(), counts.len(), "one answer a key");
        self.body.count_batch(keys, counts);
        self.exceptions.reject(self.body.seed(), keys, counts, 0);
    }
}

/// Two sets are equal if their images are: shape, seed and all cells. Equal keys that entered in another
/// order may lie in other cells of a [`DLeft`](super::DLeft) or a [`Backyard`](super::Backyard).
impl<B: Filter> PartialEq for Set<B> {
    fn eq(&self, other: &Self) -> bool {
        self.seed() == other.seed() && self.to_bytes() == other.to_bytes()
    }
}

impl<B: Filter> fmt::Debug for Set<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut set = f.debug_struct("Set");
        set.field("shape", &self.shape()).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<B: Filter> Save for Set<B> {
    const KIND: u16 = B::KIND;

    fn to_bytes(&self) -> Vec<u8> {
        Set::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Set::from_bytes(image, seed)
    }
}
