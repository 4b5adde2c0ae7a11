//! Saved files: written whole or not at all, one for every period, shown, merged.

pub(crate) mod file;
pub(crate) mod found;
mod library;
pub(crate) mod merge;
pub(crate) mod rotate;
pub(crate) mod show;
#[cfg(feature = "parquet")]
pub(crate) mod tables;
