//! No false positive while few keys are in: sets and counts with a proof.
//!
//! Keys are the numbers `0..universe`. A [`Code`] gives each of them one cell in each of several
//! groups, chosen by algebra and not by hashing: any two keys share so few cells that no `d` others
//! cover a key. While at most `d` keys are in, a [`Filter`] is never wrong and can list its members;
//! a [`Sketch`] over the same code counts exactly, and both know when the zone is left.
//!
//! | | groups | cells | zone |
//! |---|---|---|---|
//! | [`Ols`] over GF(s), `s^2 >= universe` | `d + 1 <= s + 1` | `(d + 1) s` | `d` |
//! | [`Pol`] over GF(q), `q^t >= universe` | `(t - 1) d + 1 <= q + 1` | `((t - 1) d + 1) q` | `d` |
//! | [`Egh`] of coprime moduli | one a modulus | their sum | what packs into bins, less one |
//!
//! # When to take one, and when not
//!
//! To hold a small set exactly and nothing else, write its members down: three hosts of a /24 take
//! 26 bits as a list and 48 in the shortest code, seven take 59 and 128. [`Adaptive`] does that, a
//! list and then a bitmap, and [`Subnets`] does it for millions of sets in fixed memory. A code is
//! right all the same where nobody can look inside: summaries that taps, switches or packet headers
//! unite by OR or by addition; probes in constant time without a branch; counters that can be
//! subtracted; and an end of the zone that is graceful, a rising rate in place of a full list.
//!
//! Rottenstreich, Reviriego, Porat and Muthukrishnan, IEEE TNSM 2021. Concatenating a
//! Reed-Solomon code with one-hot symbols is older than its names here: Kautz and Singleton,
//! "Nonrandom binary superimposed codes", IEEE Trans. Information Theory 1964. Taking the primes'
//! residues is due to Eppstein, Goodrich and Hirschberg, SIAM J. Computing 2007.

pub mod adaptive;
pub mod code;
pub mod egh;
pub mod field;
pub mod filter;
pub mod hosts;
pub mod ols;
pub mod pol;
pub mod sketch;
pub mod subnets;

pub use adaptive::{Adaptive, Way};
pub use code::{Any, Code, Shape};
pub use egh::Egh;
pub use field::Field;
pub use filter::Filter;
pub use hosts::Hosts;
pub use ols::Ols;
pub use pol::Pol;
pub use sketch::Sketch;
pub use subnets::Subnets;

use crate::{Refused, Seed};

/// The largest universe.
pub const UNIVERSE_MOST: u64 = 1 << 48;

/// No key is hashed here: images are written under this seed, and read under any.
const NO_SEED: Seed = Seed(0);

/// `Ok` for a key of the universe.
#[inline(always)]
fn within(key: u64, universe: u64) -> Result<(), Refused> {
    if key < universe { Ok(()) } else { Err(Refused::Outside { universe }) }
}
