//! What is kept of the packets, each in memory of its own: sizes, sources and connections.

pub mod addresses;
pub mod connections;
pub mod sizes;
pub mod sources;
pub mod subnet;
