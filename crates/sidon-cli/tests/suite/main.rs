//! The `sidon` command as its users run it. One binary: every test binary that is linked costs seconds of each build.

mod commands;
mod documents;
mod endless;
mod errors;
mod generate;
mod http;
mod lab;
mod live;
mod machine;
mod sandbox;
mod saved;
mod serve;
mod watch;
