//! Arguments that several commands share.

mod engine;
mod source;

pub(crate) use engine::EngineArgs;
pub(crate) use source::{Input, SourceArgs};
