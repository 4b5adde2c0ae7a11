//! The 64-bit hashes that peers are given, each computed inside the timed loop.

use crate::filter::{SEED, Tuple};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use sidon::Key;
use std::hash::{BuildHasher, Hasher};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A 64-bit hash of a tuple.
pub(crate) trait Hash64 {
    /// The hash under a fixed seed.
    fn hash(key: &Tuple) -> u64;
}

/// Sidon's own digest, key by key.
pub(crate) struct Ours;

impl Hash64 for Ours {
    #[inline(always)]
    fn hash(key: &Tuple) -> u64 {
        key.digest(SEED).0
    }
}

/// XXH3 with a 64-bit seed.
pub(crate) struct Xxh3;

impl Hash64 for Xxh3 {
    #[inline(always)]
    fn hash(key: &Tuple) -> u64 {
        xxh3_64_with_seed(key, SEED.0 as u64)
    }
}

/// rapidhash, version 3.
pub(crate) struct Rapid;

const SECRETS: RapidSecrets = RapidSecrets::seed_cpp(SEED.0 as u64);

impl Hash64 for Rapid {
    #[inline(always)]
    fn hash(key: &Tuple) -> u64 {
        rapidhash_v3_seeded(key, &SECRETS)
    }
}

/// Sidon's digest for peers that take a `BuildHasher`. It knows byte strings that come in one
/// piece, such as a tuple, and nothing else.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OursState(u64);

impl BuildHasher for OursState {
    type Hasher = OursState;
    #[inline]
    fn build_hasher(&self) -> OursState {
        OursState(0)
    }
}

impl Hasher for OursState {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.digest(SEED).0;
    }

    /// The length that comes before the bytes of an array is always 13.
    #[inline]
    fn write_usize(&mut self, _: usize) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// For keys that are digests already.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Identity(u64);

impl BuildHasher for Identity {
    type Hasher = Identity;
    #[inline]
    fn build_hasher(&self) -> Identity {
        Identity(0)
    }
}

impl Hasher for Identity {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only digests are hashed");
    }

    #[inline]
    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hasher_of_a_tuple_is_its_digest() {
        let key: Tuple = *b"thirteenbytes";
        assert_eq!(OursState::default().hash_one(key), Ours::hash(&key));
        assert_eq!(Identity::default().hash_one(7u64), 7);
    }
}
