//! The traits of the bodies of sets: what a [`Set`](super::Set) asks of its cells.

use super::Stats;
use crate::{Digest, Infeasible, Key, Malformed, Refused, Seed};
use std::fmt;

/// The cells of a [`Set`](super::Set), for code that takes any set. Only the sets of this module implement it. Its
/// methods are hidden and may change; call those of [`Set`](super::Set).
///
/// ```
/// use sidon::{Key, Refused, Seed, set::{Bloom, Filter, Set, bloom}};
///
/// fn add_all<B: Filter, K: Key>(set: &mut Set<B>, keys: &[K]) -> Result<(), Refused> {
///     keys.iter().try_for_each(|key| set.insert(key))
/// }
/// let mut seen = Bloom::new(bloom::Shape { bits: 1_000, hashes: 3 }, Seed(1))?;
/// add_all(&mut seen, &[1u32, 2, 3])?;
/// assert_eq!(seen.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[expect(clippy::len_without_is_empty, reason = "`Set::is_empty` is the public method")]
pub trait Filter: Sized {
    /// The integers that fix the memory.
    type Shape: Copy + PartialEq + fmt::Debug;
    /// The number of the kind in the byte format.
    #[doc(hidden)]
    const KIND: u16;

    #[doc(hidden)]
    fn planned_bytes(shape: Self::Shape) -> u64;
    #[doc(hidden)]
    fn new(shape: Self::Shape, seed: Seed) -> Result<Self, Infeasible>;
    #[doc(hidden)]
    fn shape(&self) -> Self::Shape;
    #[doc(hidden)]
    fn seed(&self) -> Seed;
    #[doc(hidden)]
    fn len(&self) -> u64;
    #[doc(hidden)]
    fn memory_bytes(&self) -> u64;
    #[doc(hidden)]
    fn load(&self) -> f64;
    #[doc(hidden)]
    fn stats(&self) -> Stats {
        Stats::default()
    }
    /// The share of keys never inserted that pass.
    #[doc(hidden)]
    fn rate(&self) -> f64;
    #[doc(hidden)]
    fn clear(&mut self);
    #[doc(hidden)]
    fn try_clone(&self) -> Result<Self, Infeasible>;
    #[doc(hidden)]
    fn insert(&mut self, digest: Digest) -> Result<(), Refused>;
    #[doc(hidden)]
    fn insert_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused));
    #[doc(hidden)]
    fn contains(&self, digest: Digest) -> bool;
    /// The two slices are of one length.
    #[doc(hidden)]
    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]);
    #[doc(hidden)]
    fn merge(&mut self, other: &Self) -> Result<(), Refused>;
    #[doc(hidden)]
    fn to_bytes(&self) -> Vec<u8>;
    #[doc(hidden)]
    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed>;
}

/// The cells of a [`Set`](super::Set) with deletes.
///
/// ```
/// use sidon::{Key, Refused, Seed, set::{Backyard, Removes, Set, backyard}};
///
/// fn replace<B: Removes, K: Key>(set: &mut Set<B>, old: &K, new: &K) -> Result<(), Refused> {
///     set.remove(old)?;
///     set.insert(new)
/// }
/// let shape = backyard::Shape { lines: 10, sharing: 2 };
/// let mut seen = Backyard::from_keys(shape, Seed(1), [1u32, 2])?;
/// replace(&mut seen, &1, &3)?;
/// assert_eq!(replace(&mut seen, &9, &4), Err(Refused::NotStored));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Removes: Filter {
    #[doc(hidden)]
    fn remove(&mut self, digest: Digest) -> Result<(), Refused>;
    #[doc(hidden)]
    fn remove_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused));
}

/// The cells of a [`Set`](super::Set) that counts copies: of a [`DLeft`](super::DLeft) or a [`Backyard`](super::Backyard).
#[doc(hidden)]
pub trait Counts: Removes {
    fn count(&self, digest: Digest) -> u64;
    /// The two slices are of one length.
    fn count_batch<K: Key>(&self, keys: &[K], counts: &mut [u64]);
}
