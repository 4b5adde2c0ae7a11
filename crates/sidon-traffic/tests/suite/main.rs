//! Captures, records and monitors, from packets to reports. One binary: every test binary that is linked costs seconds of each build.

mod alarms;
mod connections;
mod corpus;
mod datagrams;
mod decode;
mod engine;
mod export;
mod forged;
mod formats;
mod p2p;
mod running;
mod snapshot;
mod walk;
