//! Laws, rates, saved bytes and papers' numbers of the library. One binary: every test binary that is linked costs seconds of each build.

/// The size of a test: `full` with `--features slow-tests`, else `short`.
pub(crate) fn size(full: u64, short: u64) -> u64 {
    if cfg!(feature = "slow-tests") { full } else { short }
}

/// Whether the longest tests of plans run: `scripts/full` sets `SIDON_PLANS` for them.
pub(crate) fn is_whole() -> bool {
    std::env::var_os("SIDON_PLANS").is_some()
}

mod abuse;
mod ageing;
mod agreement;
mod backyard_plan;
mod bytes;
mod count_bytes;
mod count_papers;
mod counts;
mod dleft_plan;
mod except;
mod inherent;
mod laws;
mod listed;
mod operate;
mod papers;
mod plans;
mod prefixes;
mod rates;
mod round_trip;
#[cfg(feature = "serde")]
mod saved;
mod state;
mod threads;
mod touching;
mod zone_codes;
mod zone_laws;
mod zone_plan;
