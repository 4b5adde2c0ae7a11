//! Memory of fixed size, and packed integers in it.

mod any_width;
pub(crate) mod bucket;
mod memory;
mod packed;

pub use memory::Memory;
pub(crate) use packed::{Packed, WIDTH_MOST, read, write};
