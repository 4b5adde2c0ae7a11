//! Where the bits are kept: memory that is fixed at the start, and packed integers in it.

pub(crate) mod bucket;
mod memory;
mod packed;

pub use memory::Memory;
pub(crate) use packed::{Packed, WIDTH_MOST, read, write};
