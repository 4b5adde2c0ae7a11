//! x
mod record;
pub use record::Record;
