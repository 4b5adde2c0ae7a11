//! Batches: hash all, ask for all lines, then act.

use crate::{Digest, Key, Seed, probe::Isa};

/// Keys under way at a time: enough to hide a memory's latency, few enough to stay in registers'
/// reach.
pub(super) const CHUNK: usize = 32;

/// Tables up to this many bytes sit in the core's own cache: asking for their lines ahead costs
/// more than it saves.
pub(super) const NEAR: usize = 256 << 10;

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
