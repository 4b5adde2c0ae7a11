//! The `sidon` command as its users run it. One binary: every test binary that is linked costs seconds of each build.

#![allow(clippy::disallowed_methods)] // names of files in the messages of tests

mod commands;
mod documents;
mod endless;
mod errors;
mod escapes;
mod format;
mod generate;
mod http;
mod incidents;
mod lab;
mod live;
mod machine;
mod outputs;
mod public_api;
mod sandbox;
mod saved;
mod serve;
#[cfg(feature = "parquet")]
mod tables;
mod unsafety;
mod watch;
