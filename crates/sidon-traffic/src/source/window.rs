//! A fixed window that moves over a stream: as many bytes as a record needs, side by side.
//!
//! ```text
//! | handed out | start .. end: read, not yet taken | room |
//! ```
//! The window never grows. A record is decoded where it lies; only the part of one that straddles
//! the end is moved to the front, once per filling.

use super::{
    error::{Broken, Why},
    input::Bytes,
};
use std::io::{self, Read};

/// The longest stretch that can be asked for at once.
pub(super) const WINDOW: usize = 512 << 10;

/// What is read at a time: little enough that it is still near when it is looked at, and that what
/// else is near stays there.
const READ: usize = 128 << 10;

pub(super) struct Window {
    input: Bytes,
    compressed: bool,
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// The stream's position of `bytes[0]`.
    base: u64,
    ended: bool,
    failed: Option<Why>,
}

impl Window {
    pub(super) fn new(input: Bytes, compressed: bool) -> Self {
        let bytes = vec![0; WINDOW].into_boxed_slice();
        Window { input, compressed, bytes, start: 0, end: 0, base: 0, ended: false, failed: None }
    }

    /// The stream's position of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The next `n` bytes, not taken yet; fewer if the stream ends before. `n` is at most
    /// [`WINDOW`].
    #[inline]
    pub(super) fn peek(&mut self, n: usize) -> &[u8] {
        if self.end - self.start < n {
            self.fill(n);
        }
        &self.bytes[self.start..self.end.min(self.start + n)]
    }

    /// The next bytes as far as they have been read.
    #[inline]
    pub(super) fn held(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Takes `n` bytes that [`Window::peek`] or [`Window::held`] has shown, and says where in [`Window::bytes`] they
    /// lie until the next peek.
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

    /// The error for a record at `offset` of which `expected` bytes from here on are not all
    /// there.
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

    /// Why the stream could not be read to its end, if so.
    pub(super) fn failure(&mut self) -> Option<Broken> {
        let offset = self.offset();
        self.failed.take().map(|why| Broken { offset, why })
    }

    /// Takes `n` bytes without looking at them. `false` if the stream ends before.
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
        self.bytes.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < n && !self.ended {
            let to = WINDOW.min(self.end + READ);
            match self.input.read(&mut self.bytes[self.end..to]) {
                Ok(0) => self.ended = true,
                Ok(got) => self.end += got,
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
        // A disk's error has a number; a decompressor's verdict has none.
        if self.compressed && why.raw_os_error().is_none() {
            Why::Compressed { message }
        } else {
            Why::Read { message }
        }
    }
}
