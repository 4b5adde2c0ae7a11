//! The operations that a [`Map`](super::Map) needs of its cells. They take digests.

use super::{Next, State, Sweep};
use crate::{Digest, Infeasible, Key, Malformed, Refused, Seed, answer::Lookup, batch, set::Stats};
use std::fmt;

/// The cells of a [`Map`](super::Map), for code that takes any map. Only the maps of this module implement
/// it. Its methods are hidden and may change; call those of [`Map`](super::Map).
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
    fn planned_bytes(shape: Self::Shape) -> u64;
    #[doc(hidden)]
    fn new(shape: Self::Shape, seed: Seed) -> Result<Self, Infeasible>;
    #[doc(hidden)]
    fn shape(&self) -> Self::Shape;
    #[doc(hidden)]
    fn seed(&self) -> Seed;
    #[doc(hidden)]
    fn memory_bytes(&self) -> u64;
    #[doc(hidden)]
    fn is_empty(&self) -> bool {
        self.load() == 0.0
    }
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
    /// Makes every lookup touch the cells that it reads. `Infeasible` if cells have no flags.
    #[doc(hidden)]
    fn touch_by_lookup(&mut self) -> Result<(), Infeasible>;
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
