//! Sets and counts that are proven exact while they hold few keys.
//!
//! Keys are the numbers `0..universe`. A [`Code`] gives each key one cell in each of several
//! groups. Algebra chooses the cells, not a hash, so that any two keys share few cells and no `d`
//! other keys cover all cells of a key. While a [`Filter`] stores at most `d` keys, it has no false
//! positives and can list its members. A [`Sketch`] over the same code counts exactly. Both detect
//! when they hold more than `d` keys.
//!
//! | | groups | cells | zone |
//! |---|---|---|---|
//! | [`Ols`] of order s, `s^2 >= universe` | `d + 1 <= s + 1`, fewer if s is no prime power | `(d + 1) s` | `d` |
//! | [`Pol`] over GF(q), `q^t >= universe` | `(t - 1) d + 1 <= q + 1` | `((t - 1) d + 1) q` | `d` |
//! | [`Egh`] of coprime moduli | one per modulus | their sum | the fewest bins that hold the moduli, less one |
//!
//! # When to use one
//!
//! A list of the members is smaller where the set is only stored and read. Three hosts of a /24
//! take 26 bits as a list and 48 in the shortest code, seven take 59 and 128. [`Adaptive`] keeps
//! such a list and later a bitmap. [`Subnets`] does it for millions of sets in fixed memory. A code
//! is the better choice in these cases:
//!
//! - Taps, switches or packet headers combine summaries by OR or by addition, without decoding them.
//! - A probe must take constant time, without a branch.
//! - Counters must be subtracted.
//! - A set may exceed its size: the false-positive rate of a code rises, where a list would be full.
//!
//! Rottenstreich, Reviriego, Porat and Muthukrishnan, IEEE TNSM 2021. Concatenating a
//! Reed-Solomon code with one-hot symbols is older than its names here: Kautz and Singleton,
//! "Nonrandom binary superimposed codes", IEEE Trans. Information Theory 1964. Taking the primes'
//! residues is due to Eppstein, Goodrich and Hirschberg, SIAM J. Computing 2007.

pub mod adaptive;
pub(crate) mod code;
pub mod egh;
pub(crate) mod field;
pub mod filter;
pub mod hosts;
pub mod ols;
pub mod pol;
pub mod sketch;
pub mod subnets;

pub use adaptive::Adaptive;
pub use code::{Any, Code, Shape};
pub use egh::Egh;
pub use filter::Filter;
pub use hosts::Hosts;
pub use ols::Ols;
pub use pol::Pol;
pub use sketch::Sketch;
pub use subnets::Subnets;

use crate::{Refused, Seed};

/// The largest universe.
pub(crate) const UNIVERSE_MAX: u64 = 1 << 48;

/// The seed of zone images. Zones hash no key, so an image can be read under any seed.
const NO_SEED: Seed = Seed(0);

/// `Ok` if `key` is below `universe`, otherwise `Outside`.
#[inline(always)]
fn within(key: u64, universe: u64) -> Result<(), Refused> {
    if key < universe { Ok(()) } else { Err(Refused::Outside { universe }) }
}
