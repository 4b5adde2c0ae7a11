//! Batches: hash, ask for lines, and act on what was asked for some keys ago.

use crate::{Digest, Key, Seed, probe::Isa};

/// Keys under way at a time: enough to hide a memory's latency, few enough to stay in registers'
/// reach.
pub(super) const CHUNK: usize = 32;

/// Tables up to this many bytes sit in the core's own cache: asking for their lines ahead costs
/// more than it saves.
pub(super) const NEAR: usize = 512 << 10;

/// What is done with each key in two steps: finding its cells and asking for them, and acting on
/// them once they have come. A trait and not closures, so that both are inlined into the loop and
/// compiled for its instruction set.
pub(super) trait Steps {
    /// Where the cells of a key are.
    type Place: Copy;
    /// Any value, before there is one.
    const NOWHERE: Self::Place;
    /// Finds the cells of a key and asks for them.
    fn approach(&mut self, digest: Digest, place: &mut Self::Place);
    /// Acts on the key of this index.
    fn act(&mut self, key: usize, place: &Self::Place);
}

/// Keys hashed at a time.
const GROUP: usize = 8;
/// How far acting is behind asking: long enough for memory to answer.
const LAG: usize = 16;
/// Places remembered, a power of two.
const RING: usize = (LAG + GROUP).next_power_of_two();

/// Takes the two steps for every key, in order, the second some keys behind the first: while the
/// memory works for one group of keys the next is hashed, and an earlier one acted on.
#[inline(always)]
pub(super) fn each_key<I: Isa, K: Key, S: Steps>(isa: I, seed: Seed, keys: &[K], mut steps: S) {
    let mut places = [S::NOWHERE; RING];
    let mut digests = [Digest(0); GROUP];
    let (mut asked, mut acted) = (0, 0);
    for group in keys.chunks(GROUP) {
        let digests = &mut digests[..group.len()];
        K::digests(isa, seed, group, digests);
        for &digest in &*digests {
            steps.approach(digest, &mut places[asked % RING]);
            asked += 1;
        }
        while acted + LAG < asked {
            steps.act(acted, &places[acted % RING]);
            acted += 1;
        }
    }
    while acted < asked {
        steps.act(acted, &places[acted % RING]);
        acted += 1;
    }
}

/// Calls `act` with the digests of each chunk of keys and the index of its first key.
#[inline(always)]
pub(super) fn each_chunk<I: Isa, K: Key>(
    isa: I,
    seed: Seed,
    keys: &[K],
    mut act: impl FnMut(usize, &[Digest]),
) {
    let mut digests = [Digest(0); CHUNK];
    for (i, keys) in keys.chunks(CHUNK).enumerate() {
        let digests = &mut digests[..keys.len()];
        K::digests(isa, seed, keys, digests);
        act(i * CHUNK, digests);
    }
}
