//! Replacement of the ring on systems other than Linux.

use super::{Interface, LiveError, Options};
use std::{convert::Infallible, io, time::Duration};

/// A ring that cannot be constructed.
#[derive(Debug)]
pub(super) struct Ring(Infallible);

/// The position of a frame.
pub(super) struct Slot {
    pub(super) time_ns: u64,
    pub(super) wire_len: u32,
    pub(super) outgoing: bool,
}

pub(super) fn interfaces() -> Result<Vec<Interface>, LiveError> {
    Err(LiveError::Unsupported)
}

/// Does nothing: the socket keeps its buffer size.
pub(crate) fn widen<S>(_: &S, _: u32) {}

impl Ring {
    pub(super) fn open(_: &str, _: Options) -> Result<(Self, u16), LiveError> {
        Err(LiveError::Unsupported)
    }

    pub(super) fn next(&mut self, _: Duration) -> io::Result<Option<Slot>> {
        match self.0 {}
    }

    pub(super) fn bytes(&self, _: &Slot) -> &[u8] {
        match self.0 {}
    }

    pub(super) fn statistics(&self) -> io::Result<[u32; 2]> {
        match self.0 {}
    }
}
