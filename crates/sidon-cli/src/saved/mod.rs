//! Saved files: written whole or not at all, shown, merged.

pub(crate) mod file;
mod library;
pub(crate) mod merge;
pub(crate) mod show;
