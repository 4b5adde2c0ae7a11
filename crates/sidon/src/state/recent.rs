//! Sets whose keys expire if nothing touches them for two periods.
//!
//! A set is a map of one state, and its cells have the flags that ageing needs. Over a [`Direct`](super::Direct),
//! the set is a counting Bloom filter, or a Bloom filter if the counters have one bit. Over a
//! [`Fingerprint`](super::Fingerprint), it is a d-left filter:
//! ```
//! use sidon::{Seed, plan::{Prefer, States, fingerprint}, state::{Clock, Fingerprint, Recent}};
//! let shape = fingerprint::shape(States { flows: 10_000, states: 1, error: 1e-4 }, Prefer::Speed)?;
//! let map = Fingerprint::new(shape, Seed(1))?;
//! let mut seen = Clock::new(Recent::new(map), 1_000);
//! seen.tick(1).insert("a client")?;
//! assert!(seen.tick(1_000).touch("a client"));
//! assert!(!seen.tick(2_000).touch("a client"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! Except for the flags, memory and false-positive rate are those of the filter.

use super::{Map, State, Sweep, map::Cells};
use crate::{Certainty, Key, Malformed, Refused, Seed, answer::Lookup, bytes::Image};

/// The state of a key that is stored.
const IN: State = 0;

/// A set of recently touched keys, over a map of one state or more. See the [module](self).
///
/// ```
/// use sidon::{Seed, state::{Clock, Direct, Recent, direct::Shape}};
///
/// let shape = Shape { cells: 1_000, hashes: 4, states: 1, counter: 1, timed: true };
/// let mut seen = Clock::new(Recent::new(Direct::new(shape, Seed(1))?), 60);
/// assert!(!seen.at(0).see("10.0.0.1")?);
/// assert!(seen.at(50).see("10.0.0.1")?);
/// assert!(seen.at(110).contains("10.0.0.1"));
/// assert!(!seen.at(170).contains("10.0.0.1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Recent<M> {
    /// The map, for its batch operations.
    pub map: M,
}

impl<M> Recent<M> {
    /// The set of the keys that have any state in the map.
    pub fn new(map: M) -> Self {
        Recent { map }
    }
}

impl<B: Cells> Recent<Map<B>> {
    /// The probability that `contains` answers `true` for a key that was never inserted.
    pub fn certainty(&self) -> Certainty {
        self.map.certainty()
    }

    /// Whether the key may be stored. `false` is certain.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        !matches!(self.map.lookup(key), Lookup::Absent)
    }

    /// Whether the key is stored. If it is, it counts as touched and stays for at least one more
    /// period.
    pub fn touch<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        !matches!(self.map.touch(key), Lookup::Absent)
    }

    /// Touches the key if it is stored, and inserts it if not. Returns whether it was stored. On
    /// `Err`, nothing has changed.
    pub fn see<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, Refused> {
        let known = self.touch(key);
        if !known {
            self.map.insert(key, IN)?;
        }
        Ok(known)
    }

    /// Stores one more copy of the key. On `Err`, nothing has changed.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Refused> {
        self.map.insert(key, IN)
    }

    /// Removes one copy of a key that is stored. On `Err`, nothing has changed.
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Refused> {
        self.map.forget(key)
    }
}

/// The image is that of the map.
impl<M: Image> Image for Recent<M> {
    const KIND: u16 = M::KIND;

    fn to_bytes(&self) -> Vec<u8> {
        self.map.to_bytes()
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        M::from_bytes(image, seed).map(Recent::new)
    }
}

impl<M: Sweep> Sweep for Recent<M> {
    fn units(&self) -> u64 {
        self.map.units()
    }

    fn hand(&self) -> u64 {
        self.map.hand()
    }

    fn sweep(&mut self, to: u64) -> u64 {
        self.map.sweep(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Seed,
        plan::{Prefer, States, fingerprint},
        state::{Clock, Direct, Fingerprint, direct},
    };

    /// Keys that are touched in every period stay, and all others expire within two.
    fn forgets<B: Cells>(set: Recent<Map<B>>) {
        let mut clock = Clock::new(set, 1_000);
        for key in 0..2_000u64 {
            clock.tick(0).insert(&key).unwrap();
        }
        let mut left = vec![];
        for _ in 0..4 {
            for busy in 0..500u64 {
                assert_eq!(clock.tick(2).see(&busy), Ok(true));
            }
            left.push((500..2_000u64).filter(|key| clock.map().contains(key)).count());
        }
        let mut set = clock.into_map();
        // The first visit clears flags, the second clears cells, except those shared with busy
        // keys.
        assert_eq!(left[0], 1_500);
        assert!(left[1] < 20 && left[3] < 20, "{left:?}");
        assert!((0..500u64).all(|busy| set.contains(&busy)));
        let passing = set.certainty().error();
        assert!(passing > 0.0 && passing < 0.01, "{passing}");
        // An expired key counts as new, and can be inserted and removed again.
        let gone = (500..2_000u64).find(|key| !set.contains(key)).unwrap();
        assert_eq!(set.see(&gone), Ok(false));
        set.insert(&gone).unwrap();
    }

    #[test]
    fn what_is_not_seen_for_a_phase_is_no_longer_in_whatever_the_cells_are() {
        let shape =
            fingerprint::shape(States { flows: 2_000, states: 1, error: 1e-3 }, Prefer::Speed)
                .unwrap();
        let set = Recent::new(Fingerprint::new(shape, Seed(1)).unwrap());
        forgets(set);
        for counter in [1, 4] {
            let (cells, hashes) = (32_000, 8);
            let shape = direct::Shape { cells, hashes, states: 1, counter, timed: true };
            let set = Recent::new(Direct::new(shape, Seed(1)).unwrap());
            forgets(set);
        }
    }

    #[test]
    fn a_key_leaves_as_often_as_it_entered() {
        let shape =
            fingerprint::shape(States { flows: 100, states: 1, error: 1e-3 }, Prefer::Speed)
                .unwrap();
        let mut set = Recent::new(Fingerprint::new(shape, Seed(1)).unwrap());
        for _ in 0..2 {
            set.insert("x").unwrap();
        }
        for _ in 0..2 {
            assert!(set.contains("x"));
            set.remove("x").unwrap();
        }
        assert!(!set.contains("x"));
        assert_eq!(set.remove("x"), Err(Refused::NotStored));
    }
}
