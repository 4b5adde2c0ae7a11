//! Arguments that several commands share.

mod engine;
pub(crate) mod number;
mod paths;
mod refusal;
mod secret;
mod source;

pub(crate) use engine::{EngineArgs, SeedArg};
pub(crate) use paths::{Files, Misuse};
pub(crate) use refusal::{engine_refusal, number as number_text, refusal, thread_refusal};
pub(crate) use secret::Secret;
pub(crate) use source::{Input, LimitArgs, Opened, SourceArgs};
