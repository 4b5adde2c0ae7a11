//! Hashing: a key is hashed once.
//!
//! A [`Key`] becomes a [`Digest`] of 64 uniform bits under a [`Seed`]. Every structure derives its
//! positions from the digest.
//!
//! # The function
//!
//! Rounds of AES, keyed by the seed, hash the bytes of the key (`key/cipher.rs`). The function was
//! chosen by measurement on 13-byte keys, IPv4 five-tuples. `cargo run --release -p bench -- --only
//! hash` repeats the measurement, and `docs/PERFORMANCE.md` lists the results. The candidates:
//!
//! - *rapidhash v3* is the fastest unkeyed function. But a 13-byte key whose first eight bytes equal a
//!   published constant makes its product zero under every seed. The other five bytes then do not matter.
//!   So 2^40 five-tuples share one digest, and an attacker need not know the seed. A test has the example.
//! - *XXH3* is specified, and its specification says that it does not resist intentional collisions.
//! - *SipHash-1-3* is the default of hash tables in Rust. It takes nearly twice the time of the unkeyed
//!   functions, even if eight keys are hashed in parallel.
//! - *Rounds of AES* take one instruction each. Keyed in every round, they are as fast in a batch as
//!   the unkeyed functions. We know no attack by an attacker who is shown no digests, no
//!   fingerprints and no refusals; `key/cipher.rs` gives the reasons. Functions that hash by AES with
//!   published round keys, such as gxhash, can be attacked without the seed.
//!
//! On processors without the instruction, a table replaces it, and a key takes some fifteen times as long.
//! The digests are the same.
//!
//! The output is part of the byte format and never changes: the tests compare golden values.

mod cipher;
pub(crate) mod permute;
pub(crate) mod spread;

mod encoding;
pub use encoding::{Hasher, Key};
pub(crate) use encoding::{digest_by, digests_by};

use crate::simd::{self, Isa, Kernel};
use std::fmt;

/// Writes the digest of each key to the same index, by the best instructions of this processor.
///
/// # Panics
/// If the two slices differ in length.
///
/// ```
/// use sidon::{Digest, Key, Seed, key::digests};
///
/// let mut of = [Digest(0); 2];
/// digests(Seed(42), &["10.0.0.1", "10.0.0.2"], &mut of);
/// assert_eq!(of, ["10.0.0.1".digest(Seed(42)), "10.0.0.2".digest(Seed(42))]);
/// ```
#[doc(hidden)]
pub fn digests<K: Key>(seed: Seed, keys: &[K], digests: &mut [Digest]) {
    struct Hash<'a, K>(Seed, &'a [K], &'a mut [Digest]);
    impl<K: Key> Kernel for Hash<'_, K> {
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            digests_by(isa, self.0, self.1, self.2);
        }
    }
    assert_eq!(keys.len(), digests.len(), "one digest a key");
    simd::dispatch(Hash(seed, keys, digests));
}

/// The number of the digest function in the byte format. Numbers 1 and 2 were earlier functions.
pub(crate) const KEYED_AES: u16 = 3;

/// A secret of 128 bits that selects the hash function.
///
/// Structures merge only under equal seeds. A program whose keys come from a network should use
/// [`Seed::random`]. Experiments, and files that will be merged, use an explicit seed. A small
/// number is a valid seed, but an attacker can guess it.
///
/// ```
/// use sidon::{Key, Seed};
///
/// assert_ne!("key".digest(Seed(1)), "key".digest(Seed(2)));
/// assert_eq!(format!("{:?}", Seed(1)), "Seed(..)");
/// assert_ne!(Seed::random()?, Seed::random()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u128);

impl Seed {
    /// A seed from the operating system's source of randomness.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Seed(u128::from_le_bytes(bytes)))
    }

    /// 64 bits that distinguish seeds. Saved files contain this value in place of the seed.
    ///
    /// No digest of a key is computed in this way. An attacker who can guess a seed can confirm the
    /// guess by this value.
    ///
    /// ```
    /// use sidon::Seed;
    ///
    /// assert_ne!(Seed(1).check_value(), Seed(2).check_value());
    /// ```
    #[doc(hidden)]
    pub fn check_value(self) -> u64 {
        cipher::check_value(self)
    }
}

/// Prints no digits, because a seed is a secret.
impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seed(..)")
    }
}

/// The 64 uniform bits that represent a key under a seed.
///
/// A digest is itself a key, and its own digest under every seed, so a key need not be hashed
/// twice. Use it only with structures of the seed that it was computed under.
///
/// ```
/// use sidon::{Digest, Key, Seed};
///
/// let digest = "10.0.0.1".digest(Seed(42));
/// assert_eq!(digest.digest(Seed(42)), digest);
/// assert_eq!(digest.digest(Seed(43)), digest);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub u64);

impl Digest {
    /// One of `places` positions, from `0` to `places - 1`, uniform over all digests. Each `choice` below
    /// 32 gives another position: tables outside this library can use them.
    ///
    /// # Panics
    /// If `choice` is 32 or more.
    ///
    /// ```
    /// use sidon::{Key, Seed};
    ///
    /// let digest = "10.0.0.1".digest(Seed(42));
    /// assert!((0..32).all(|choice| digest.position(choice, 1_000) < 1_000));
    /// assert_ne!(digest.position(0, 1_000), digest.position(1, 1_000));
    /// ```
    #[doc(hidden)]
    #[inline(always)]
    pub fn position(self, choice: u32, places: u64) -> u64 {
        spread::position(self, choice, places)
    }
}

#[cfg(test)]
mod tests;
