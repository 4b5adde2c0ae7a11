//! Captures, records and monitors, from packets to reports. One binary: linking each further test
//! binary would add seconds to every build.

#![allow(clippy::disallowed_methods)] // names of files in the messages of tests

mod alarms;
mod beacons;
mod bombs;
mod checkpoint;
mod clock;
mod connections;
mod corpus;
mod datagrams;
mod decode;
mod drive;
mod engine;
mod export;
mod extremes;
mod figures;
mod files;
mod floods;
mod forged;
mod formats;
mod known;
mod null_traffic;
mod p2p;
mod running;
mod scans;
mod services;
mod snapshot;
mod streams;
mod walk;
mod work;
