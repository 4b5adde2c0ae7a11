//! The peers, a file each: built for the same target, called as their documentation says.
//!
//! A plain name means the peer's own default hash. A suffix names the hash it was given instead:
//! `+ours` is Sidon's digest, `+xxh3` and `+rapid` are the fast unkeyed ones.

pub(crate) mod bloom_lib;
pub(crate) mod bloomfilter;
pub(crate) mod counters;
pub(crate) mod cuckoofilter;
pub(crate) mod fastbloom;
pub(crate) mod fastbloom_rs;
pub(crate) mod hash_set;
pub(crate) mod packed_cuckoos;
pub(crate) mod qfilter;
pub(crate) mod sbbf;
pub(crate) mod spread_sketch;
