//! What is kept of the packets, each in memory of its own: sizes, sources, connections, alarms, hosts
//! that are like peers, and the states of users' own machines.

pub mod addresses;
pub mod alarms;
mod beacons;
pub mod connections;
mod contacts;
mod floods;
pub mod incidents;
pub mod machine;
pub mod p2p;
mod scans;
pub mod services;
pub mod sizes;
pub mod sources;
pub mod subnet;
