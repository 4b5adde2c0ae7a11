//! A fixed window that moves over a stream, and gives each record as one slice.
//!
//! ```text
//! | handed out | start .. end: read, not yet taken | room |
//! ```
//! The window never grows. A record is decoded in place. Only a record that crosses the end of the
//! window is moved to the front, once per refill.

use super::{
    error::{Broken, Why},
    input::{Bytes, EMPTY_MAX, Taken},
    limits::{Limit, Limits},
};
use std::{
    io::{self, Read},
    sync::{Arc, atomic::Ordering},
};

/// The longest slice that `peek` can return, in bytes.
pub(super) const WINDOW: usize = 512 << 10;

/// Bytes per read: few enough that they are still in the cache when they are decoded, and that they
/// do not evict the rest of the cache.
const READ: usize = 128 << 10;

pub(super) struct Window {
    input: Bytes,
    compressed: bool,
    /// Bytes of the file that were read, before decompression.
    taken: Arc<Taken>,
    pub(super) limits: Limits,
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// The position of `bytes[0]` in the stream.
    base: u64,
    /// Bytes that were moved to the front.
    moved: u64,
    ended: bool,
    failed: Option<Why>,
}

impl Window {
    pub(super) fn new(input: Bytes, compressed: bool, taken: Arc<Taken>) -> Self {
        Window {
            input,
            compressed,
            taken,
            limits: Limits::default(),
            bytes: vec![0; WINDOW].into_boxed_slice(),
            start: 0,
            end: 0,
            base: 0,
            moved: 0,
            ended: false,
            failed: None,
        }
    }

    /// The position of the next byte in the stream.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The bytes that were read, and those that were moved to the front.
    pub(super) fn work(&self) -> [u64; 2] {
        [self.base + self.end as u64, self.moved]
    }

    /// The next `n` bytes, which are not taken yet; fewer if the stream ends before. `n` is at most
    /// [`WINDOW`].
    #[inline]
    pub(super) fn peek(&mut self, n: usize) -> &[u8] {
        if self.end - self.start < n {
            self.fill(n);
        }
        &self.bytes[self.start..self.end.min(self.start + n)]
    }

    /// The bytes that were read and not taken yet.
    #[inline]
    pub(super) fn held(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Takes `n` bytes that [`Window::peek`] or [`Window::held`] has returned. Returns their
    /// position in [`Window::bytes`], valid until the next peek.
    #[inline]
    pub(super) fn take(&mut self, n: usize) -> usize {
        let at = self.start;
        self.start += n;
        debug_assert!(self.start <= self.end, "only what was seen is taken");
        at
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The error for a record of `expected` bytes at `offset` that the stream cuts short.
    pub(super) fn cut(&mut self, offset: u64, expected: u64) -> Broken {
        let why = match self.failed.take() {
            Some(why) => why,
            None => {
                let got = self.base + self.end as u64 - offset;
                Why::Cut { expected, got }
            }
        };
        Broken { offset, why }
    }

    /// The error that stopped the stream, if any.
    pub(super) fn failure(&mut self) -> Option<Broken> {
        let offset = self.offset();
        self.failed.take().map(|why| Broken { offset, why })
    }

    /// Skips `n` bytes. `false` if the stream ends before.
    pub(super) fn skip(&mut self, mut n: u64) -> bool {
        while n > 0 {
            let step = n.min(WINDOW as u64) as usize;
            let got = self.peek(step).len();
            self.take(got);
            if got < step {
                return false;
            }
            n -= got as u64;
        }
        true
    }

    #[cold]
    fn fill(&mut self, n: usize) {
        assert!(n <= WINDOW, "a record of {n} bytes in a window of {WINDOW}");
        self.moved += (self.end - self.start) as u64;
        self.bytes.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < n && !self.ended {
            let to = WINDOW.min(self.end + READ);
            match self.input.read(&mut self.bytes[self.end..to]) {
                Ok(0) => self.ended = true,
                Ok(got) => {
                    self.end += got;
                    self.taken.was_useful();
                    let bytes = self.base + self.end as u64;
                    let taken = self.taken.bytes.load(Ordering::Relaxed);
                    if self.compressed
                        && let Some(limit) = self.limits.exceeded(bytes, taken)
                    {
                        self.ended = true;
                        self.failed = Some(Why::Limit(limit));
                    }
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => {
                    self.ended = true;
                    self.failed = Some(self.reason(&why));
                }
            }
        }
    }

    fn reason(&self, why: &io::Error) -> Why {
        let message = why.to_string();
        if self.taken.is_empty() {
            return Why::Limit(Limit::Empty(EMPTY_MAX));
        }
        if why.kind() == io::ErrorKind::OutOfMemory {
            return Why::Memory { message };
        }
        // An I/O error has an OS error number; an error of a decompressor has none.
        if self.compressed && why.raw_os_error().is_none() {
            Why::Compressed { message }
        } else {
            Why::Read { message }
        }
    }
}
