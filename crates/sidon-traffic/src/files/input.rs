//! Bounded reading: a file without an end, or with an endless line, is refused.
//!
//! Every reader of small files states its limit, and reads at most one byte more.

use std::{
    error, fmt,
    fs::File,
    io::{self, BufRead, Read},
    path::Path,
};

/// Why a file was not read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unread {
    /// The system's error.
    System(io::Error),
    /// It has more bytes than the reader accepts.
    Long {
        /// The most bytes.
        most: u64,
    },
    /// A line has more bytes than the reader accepts.
    LongLine {
        /// The number of the line, from 1 on.
        line: u64,
        /// The most bytes of a line.
        most: usize,
    },
    /// A line is not UTF-8.
    NotText {
        /// The number of the line, from 1 on.
        line: u64,
    },
}

impl From<io::Error> for Unread {
    fn from(why: io::Error) -> Self {
        Unread::System(why)
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::System(why) => write!(f, "{why}"),
            Unread::Long { most } => {
                write!(f, "it is longer than {most} bytes, the limit; give a shorter file")
            }
            Unread::LongLine { line, most } => write!(
                f,
                "line {line} is longer than {most} bytes, the limit; give a file with shorter lines"
            ),
            Unread::NotText { line } => write!(f, "line {line} is not UTF-8 text"),
        }
    }
}

impl error::Error for Unread {}

/// The bytes of a file of at most `most` bytes.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, Unread> {
    all(File::open(path)?, most)
}

/// The text of a reader, which has at most `most` bytes.
pub fn text(input: impl Read, most: u64) -> Result<String, Unread> {
    String::from_utf8(all(input, most)?).map_err(|why| {
        let before = &why.as_bytes()[..why.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64;
        Unread::NotText { line }
    })
}

/// All bytes of a reader, which has at most `most`.
pub fn all(input: impl Read, most: u64) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    input.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(Unread::Long { most }) } else { Ok(bytes) }
}

/// The lines of a reader, one at a time, of at most `most` bytes each.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    most: usize,
    line: Vec<u8>,
    /// Lines read so far.
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R, most: usize) -> Self {
        Lines { input, most, line: Vec::new(), number: 0 }
    }

    /// The next line with its line feed, which the last one may lack. `None` after the last.
    #[allow(clippy::should_implement_trait)] // a line is borrowed from the buffer
    pub fn next(&mut self) -> Result<Option<&[u8]>, Unread> {
        self.line.clear();
        let room = self.most as u64 + 1;
        self.input.by_ref().take(room).read_until(b'\n', &mut self.line)?;
        if self.line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if self.line.len() > self.most {
            return Err(Unread::LongLine { line: self.number, most: self.most });
        }
        Ok(Some(&self.line))
    }

    /// The number of the last line, from 1 on.
    pub fn number(&self) -> u64 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_stops_at_its_limit() {
        assert_eq!(all(&b"four"[..], 4).unwrap(), b"four");
        let mut endless = io::repeat(7);
        assert!(matches!(all(&mut endless, 4), Err(Unread::Long { most: 4 })));
        let mut long = &b"12345678"[..];
        assert!(all(&mut long, 4).is_err());
        assert_eq!(long, b"678", "one byte more than the limit is read");
    }

    #[test]
    fn lines_are_whole_and_bounded() {
        let mut lines = Lines::new(&b"a\r\n\nbcd"[..], 3);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(line.to_vec());
        }
        assert_eq!(all, [&b"a\r\n"[..], b"\n", b"bcd"]);
        assert_eq!(lines.number(), 3);
        let mut lines = Lines::new(&b"ab\nabcd\n"[..], 3);
        assert_eq!(lines.next().unwrap(), Some(&b"ab\n"[..]));
        assert!(matches!(lines.next(), Err(Unread::LongLine { line: 2, most: 3 })));
        let mut endless = Lines::new(io::BufReader::new(io::repeat(0)), 1 << 10);
        assert!(matches!(endless.next(), Err(Unread::LongLine { line: 1, most: 1024 })));
    }
}
