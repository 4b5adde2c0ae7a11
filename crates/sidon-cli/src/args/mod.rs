//! Arguments that several commands share.

mod engine;
mod source;

pub(crate) use engine::{EngineArgs, SeedArg};
pub(crate) use source::{Input, SourceArgs};
