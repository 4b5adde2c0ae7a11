//! Batches: hash, ask for lines, and act on them once they have come.

use crate::{Digest, Key, Seed, hash, probe::Isa};

/// Keys under way at a time: enough to hide a memory's latency, few enough to stay in registers'
/// reach.
pub(crate) const CHUNK: usize = 32;

/// Tables up to this many bytes sit in the core's own cache: asking for their lines ahead costs
/// more than it saves.
pub(crate) const NEAR: usize = 512 << 10;

/// What is done with each key in two steps or three: finding its cells and asking for them, asking
/// for more where the first to come tell what is needed, and acting on them once they have come. A
/// trait and not closures, so that all are inlined into the loop and compiled for its instruction
/// set.
pub(crate) trait Steps {
    /// Where the cells of a key are.
    type Place: Copy;
    /// Any value, before there is one.
    const NOWHERE: Self::Place;
    /// Finds the cells of a key and asks for them.
    fn approach(&mut self, digest: Digest, place: &mut Self::Place);
    /// Looks at what has come, and asks for what else is needed.
    #[inline(always)]
    fn draw_near(&mut self, _place: &Self::Place) {}
    /// Acts on the key of this index.
    fn act(&mut self, key: usize, place: &Self::Place);
}

/// Tables from this many bytes on are in no cache: memory is what a batch waits for, and is kept
/// busy all the time. Smaller ones are best taken a chunk at a time.
pub(crate) const DEEP: usize = 16 << 20;

/// Takes the steps for every key, in order, in the way that suits a table of so many bytes.
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

/// The first step for a chunk of keys, then the next.
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
/// How far acting is behind asking: long enough for memory to answer.
const LAG: usize = 16;
/// Places remembered, a power of two.
const RING: usize = (LAG + GROUP).next_power_of_two();

/// Each step some keys behind the one before: while the memory works for one group of keys the
/// next is hashed, and an earlier one acted on.
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

/// Keys of whatever type, to a loop that is compiled once: it has a group of them hashed while memory
/// works for the group before.
pub(crate) trait Hashes {
    /// How many keys there are.
    fn len(&self) -> usize;
    /// Writes the digests of the keys from this index on.
    fn hash(&self, from: usize, digests: &mut [Digest]);
}

/// Keys to be hashed under a seed.
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

/// What is done with groups of keys of whatever type: finding their places and asking for them, and
/// acting on them once they have come.
pub(crate) trait Groups {
    /// How the keys are taken where memory is what a batch waits for.
    const PACE: Pace;
    /// Where a key is.
    type Place: Copy;
    /// Any value, before there is one.
    const NOWHERE: Self::Place;
    /// Finds the places of some keys, and asks for them.
    fn ask<I: Isa>(&mut self, isa: I, digests: &[Digest], places: &mut [Self::Place]);
    /// Acts on the keys from the one of this index on.
    fn act<I: Isa>(&mut self, isa: I, first: usize, places: &[Self::Place]);
}

/// How many keys are taken at a time, where a batch is taken so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Keys asked for at a time, a part of [`CHUNK`].
    pub(crate) ask: usize,
    /// Keys acted on at a time: whole groups of those asked for, at most a chunk.
    pub(crate) act: usize,
    /// How many acting is behind asking, in whole groups: long enough for memory to answer.
    pub(crate) lag: usize,
    /// From how many bytes on a table is taken so. Smaller ones are best taken a chunk at a time.
    pub(crate) from: usize,
}

/// Takes all keys through both steps, in order, in the way that suits a table of so many bytes. A chunk of
/// places is remembered, no fewer than are under way. [`each_key`] does so for keys that are hashed one by
/// one.
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
        // All of them have been asked for, or as many as acting is to be behind.
        while acted < len && (acted + act + lag <= asked || asked == len) {
            let (group, at) = (act.min(len - acted), acted % CHUNK);
            groups.act(isa, acted, &places[at..at + group]);
            acted += group;
        }
    }
}

/// Keys that are hashed before a loop over their digests starts.
const RUN: usize = 128;

/// Calls `act` with the digests of one run of keys after the other, and the index of its first.
///
/// Most loops over keys are loops over digests, which are compiled once, here. What is compiled again for
/// every kind of key is the hashing alone.
pub(crate) fn hashed<K: Key>(seed: Seed, keys: &[K], act: impl FnMut(usize, &[Digest])) {
    runs(&Unhashed { seed, keys }, act);
}

/// The same for keys of whatever type.
pub(crate) fn runs(keys: &(impl Hashes + ?Sized), act: impl FnMut(usize, &[Digest])) {
    // Room that is not needed takes time to make.
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

/// The digests of a chunk of keys. Loops over chunks are written out where they are needed: a
/// closure would not always be inlined, and then not be compiled for the loop's instruction set.
#[inline(always)]
pub(crate) fn chunk<'a, I: Isa, K: Key>(
    isa: I,
    seed: Seed,
    keys: &[K],
    digests: &'a mut [Digest; CHUNK],
) -> &'a [Digest] {
    let digests = &mut digests[..keys.len()];
    hash::digests_by(isa, seed, keys, digests);
    digests
}
