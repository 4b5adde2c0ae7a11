//! Earlier forms of [`Batch`](super::Batch). Only callers that do not yet implement it use them, and
//! the file disappears with the last of these callers.

pub(crate) use super::{CHUNK, DEEP, NEAR};
use crate::{Digest, Key, Seed, hash, probe::Isa};

/// The two or three steps for each key. The first finds its cells and prefetches them. The second
/// may prefetch further cells, which depend on those read first. The last acts on the cells. A
/// trait instead of closures, so that all steps are inlined into the loop and compiled for its
/// instruction set.
pub(crate) trait Steps {
    /// The positions of a key's cells.
    type Place: Copy;
    /// Any value, for initialisation.
    const NOWHERE: Self::Place;
    /// Finds the cells of a key and prefetches them.
    fn approach(&mut self, digest: Digest, place: &mut Self::Place);
    /// Reads the first cells, and prefetches others that it needs.
    #[inline(always)]
    fn draw_near(&mut self, _place: &Self::Place) {}
    /// Acts on the key with index `key`.
    fn act(&mut self, key: usize, place: &Self::Place);
}

/// Runs the steps for every key, in order, by the method that suits a table of `bytes` bytes.
#[inline(always)]
pub(crate) fn each_key<I: Isa, K: Key, S: Steps>(
    isa: I,
    seed: Seed,
    keys: &[K],
    bytes: usize,
    steps: S,
) {
    if bytes < DEEP {
        by_chunks(isa, seed, keys, steps);
    } else {
        staggered(isa, seed, keys, steps);
    }
}

/// Runs the first step for a chunk of keys, then the next step.
#[inline(always)]
fn by_chunks<I: Isa, K: Key, S: Steps>(isa: I, seed: Seed, keys: &[K], mut steps: S) {
    let mut places = [S::NOWHERE; CHUNK];
    for (i, keys) in keys.chunks(CHUNK).enumerate() {
        for (key, place) in keys.iter().zip(&mut places) {
            steps.approach(hash::digest_by(key, isa, seed), place);
        }
        for place in &places[..keys.len()] {
            steps.draw_near(place);
        }
        for (place, key) in places[..keys.len()].iter().zip(i * CHUNK..) {
            steps.act(key, place);
        }
    }
}

/// Keys hashed at a time.
pub(crate) const GROUP: usize = 8;
/// The number of keys by which acting follows prefetching. It hides the latency of memory.
const LAG: usize = 16;
/// Positions kept, a power of two.
const RING: usize = (LAG + GROUP).next_power_of_two();

/// Runs each step some keys behind the one before. While memory serves one group of keys, the next
/// group is hashed and an earlier one is acted on.
#[inline(always)]
fn staggered<I: Isa, K: Key, S: Steps>(isa: I, seed: Seed, keys: &[K], mut steps: S) {
    let mut places = [S::NOWHERE; RING];
    let (mut asked, mut near, mut acted) = (0, 0, 0);
    for group in keys.chunks(GROUP) {
        for key in group {
            steps.approach(hash::digest_by(key, isa, seed), &mut places[asked % RING]);
            asked += 1;
        }
        while near + LAG / 2 < asked {
            steps.draw_near(&places[near % RING]);
            near += 1;
        }
        while acted + LAG < asked {
            steps.act(acted, &places[acted % RING]);
            acted += 1;
        }
    }
    while near < asked {
        steps.draw_near(&places[near % RING]);
        near += 1;
    }
    while acted < asked {
        steps.act(acted, &places[acted % RING]);
        acted += 1;
    }
}

/// Keys of any type, for a loop that is compiled once. The loop hashes a group of keys while memory
/// serves the group before.
pub(crate) trait Hashes {
    /// The number of keys.
    fn len(&self) -> usize;
    /// Writes the digests of the keys, starting at index `from`.
    fn hash(&self, from: usize, digests: &mut [Digest]);
}

/// Keys to hash under a seed.
pub(crate) struct Unhashed<'a, K> {
    pub(crate) seed: Seed,
    pub(crate) keys: &'a [K],
}

impl<K: Key> Hashes for Unhashed<'_, K> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn hash(&self, from: usize, digests: &mut [Digest]) {
        hash::digests(self.seed, &self.keys[from..from + digests.len()], digests);
    }
}

/// The two steps for groups of keys of any type: finding and prefetching their positions, and
/// acting on them later.
pub(crate) trait Groups {
    /// The group sizes for tables that are not cached.
    const PACE: Pace;
    /// The position of a key.
    type Place: Copy;
    /// Any value, for initialisation.
    const NOWHERE: Self::Place;
    /// Finds the positions of some keys, and prefetches them.
    fn ask<I: Isa>(&mut self, isa: I, digests: &[Digest], places: &mut [Self::Place]);
    /// Acts on keys, starting at index `first`.
    fn act<I: Isa>(&mut self, isa: I, first: usize, places: &[Self::Place]);
}

/// The group sizes of a batch on a table that is not cached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Keys prefetched at a time, a divisor of [`CHUNK`].
    pub(crate) ask: usize,
    /// Keys acted on at a time: a multiple of `ask`, at most a chunk.
    pub(crate) act: usize,
    /// The number of keys by which acting follows prefetching, a multiple of `ask`.
    pub(crate) lag: usize,
    /// The least bytes of a table for which these sizes are used. Smaller tables are faster one
    /// chunk at a time.
    pub(crate) from: usize,
}

/// Runs both steps for all keys, in order, by the method that suits a table of `bytes` bytes. Keeps
/// a chunk of positions, at least as many as are in flight. [`each_key`] does this for keys that
/// are hashed one by one.
#[inline(always)]
pub(crate) fn by_groups<I: Isa, G: Groups>(isa: I, keys: &dyn Hashes, bytes: usize, mut groups: G) {
    const {
        let Pace { ask, act, lag, .. } = G::PACE;
        assert!(CHUNK.is_multiple_of(ask) && act.is_multiple_of(ask) && lag.is_multiple_of(ask));
        assert!(CHUNK.is_multiple_of(act) && CHUNK >= act + lag);
    }
    let Pace { mut ask, mut act, mut lag, from } = G::PACE;
    if bytes < from {
        (ask, act, lag) = (CHUNK, CHUNK, 0);
    }
    let len = keys.len();
    let (mut digests, mut places) = ([Digest(0); CHUNK], [G::NOWHERE; CHUNK]);
    let (mut asked, mut acted) = (0, 0);
    while acted < len {
        let (group, at) = (ask.min(len - asked), asked % CHUNK);
        keys.hash(asked, &mut digests[..group]);
        groups.ask(isa, &digests[..group], &mut places[at..at + group]);
        asked += group;
        // All keys are prefetched, or enough of them for acting to be `lag` keys behind.
        while acted < len && (acted + act + lag <= asked || asked == len) {
            let (group, at) = (act.min(len - acted), acted % CHUNK);
            groups.act(isa, acted, &places[at..at + group]);
            acted += group;
        }
    }
}

/// The number of keys that are hashed before a loop over their digests.
const RUN: usize = 128;

/// Calls `act` with the digests of one run of keys after the other, and the index of its first key.
pub(crate) fn runs(keys: &(impl Hashes + ?Sized), act: impl FnMut(usize, &[Digest])) {
    // Initialising a longer array than needed takes time.
    if keys.len() <= CHUNK {
        runs_of::<CHUNK>(keys, act);
    } else {
        runs_of::<RUN>(keys, act);
    }
}

#[inline(always)]
fn runs_of<const N: usize>(keys: &(impl Hashes + ?Sized), mut act: impl FnMut(usize, &[Digest])) {
    let mut digests = [Digest(0); N];
    for first in (0..keys.len()).step_by(N) {
        let digests = &mut digests[..N.min(keys.len() - first)];
        keys.hash(first, digests);
        act(first, digests);
    }
}
