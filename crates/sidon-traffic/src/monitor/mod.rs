//! What is kept of the packets, each in memory of its own: sizes, sources, connections and
//! alarms.

pub mod addresses;
pub mod alarms;
pub mod connections;
pub mod sizes;
pub mod sources;
pub mod subnet;
