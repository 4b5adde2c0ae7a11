//! What is kept of the packets, each in memory of its own: sizes, sources, connections, alarms and
//! hosts that are like peers.

pub mod addresses;
pub mod alarms;
pub mod connections;
pub mod p2p;
pub mod sizes;
pub mod sources;
pub mod subnet;
