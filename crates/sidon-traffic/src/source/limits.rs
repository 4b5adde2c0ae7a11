//! Limits on a capture that is much larger than its file: a few kilobytes of zstd or gzip can become
//! terabytes, and a pcapng file can consist of blocks without packets.
//!
//! A reader stops at a limit with an error that names it, after all frames before. A plain capture is
//! as large as its file, and has no limit except on blocks without packets.

use std::fmt;

/// The limits of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes after decompression: 64 GiB unless changed.
    pub bytes: u64,
    /// The most bytes after decompression per byte of the file: 250 unless changed. Floods compress
    /// to a fiftieth of their size, captures of one packet again and again to less than this.
    pub ratio: u64,
    /// Bytes that may be decompressed whatever the ratio: 256 MiB, about a second of work.
    pub free: u64,
    /// The most bytes of pcapng blocks between two packets: 1 GiB unless changed.
    pub skipped: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 64 << 30, ratio: 250, free: 256 << 20, skipped: 1 << 30 }
    }
}

impl Limits {
    /// The limit that `bytes` decompressed bytes from `taken` bytes of a file exceed, if any.
    pub(super) fn exceeded(&self, bytes: u64, taken: u64) -> Option<Limit> {
        if bytes > self.bytes {
            return Some(Limit::Bytes(self.bytes));
        }
        let most = self.ratio.saturating_mul(taken).max(self.free);
        (bytes > most).then_some(Limit::Ratio(self.ratio))
    }
}

/// A limit that a capture exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::bytes`].
    Bytes(u64),
    /// [`Limits::ratio`].
    Ratio(u64),
    /// [`Limits::skipped`].
    Skipped(u64),
    /// Bytes of a compressed file in a row that decompress to nothing.
    Empty(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Bytes(most) => write!(
                f,
                "more than {most} bytes after decompression; --input-most raises this limit"
            ),
            Limit::Ratio(most) => write!(
                f,
                "more than {most} times the size of the file after decompression; --ratio-most raises \
                 this limit"
            ),
            Limit::Skipped(most) => write!(
                f,
                "more than {most} bytes of blocks without a packet; --skip-most raises this limit"
            ),
            Limit::Empty(most) => write!(
                f,
                "more than {most} bytes of the file in a row decompress to nothing; decompress it with \
                 another program first"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_counts_from_some_bytes_on() {
        let limits = Limits { bytes: 10_000, ratio: 10, free: 1_000, skipped: 0 };
        assert_eq!(limits.exceeded(1_000, 1), None);
        assert_eq!(limits.exceeded(1_001, 1), Some(Limit::Ratio(10)));
        assert_eq!(limits.exceeded(1_001, 101), None);
        assert_eq!(limits.exceeded(10_001, u64::MAX), Some(Limit::Bytes(10_000)));
    }
}
