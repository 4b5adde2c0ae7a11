//! What is kept of the packets, each in memory of its own: sizes and sources.

pub mod addresses;
pub mod sizes;
pub mod sources;
pub mod subnet;
