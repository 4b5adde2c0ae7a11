//! Source addresses of earlier runs: a text file that belongs to the user and is only added to.
//!
//! ```text
//! # branch office                comments and empty lines stay
//! 192.0.2.1     # the printer    every line stays as it is, byte for byte
//! 2001:db8::7
//! 198.51.100.9                   added at the end of a run, in order, each address once
//! ```
//! A run holds its own addresses in memory, which the tables bound. It reads the file line by line,
//! marks the addresses that the file has, and adds the others. The size of the file does not matter.
//!
//! If the file changes while it is read, the run starts again with its new content. A file with a
//! wrong line is not written.

use crate::files::{
    self, Access, Disk, Target,
    input::{Lines, Unread},
};
use std::{
    error, fmt,
    io::{self, BufReader, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
};

/// The most bytes of a line, with its comment.
pub const LINE_MAX: usize = 1 << 16;
/// How often a file that changes is read again.
const ATTEMPTS: usize = 8;
/// The most characters of a wrong line in an error.
const SHOWN: usize = 60;
/// The first line of a new file.
const TITLE: &str = "# Source addresses that sidon watch has seen.";

/// Why a file of addresses was not read or not written. The file is unchanged.
#[derive(Debug)]
#[non_exhaustive]
pub enum KnownError {
    /// The system's error, or a line that is too long.
    Unread(Unread),
    /// The file cannot be written.
    Unwritten(io::Error),
    /// A pipe or a device, which cannot be added to.
    NotAFile,
    /// A line is not an address.
    Line {
        /// The number of the line, from 1 on.
        line: u64,
        /// The start of the line.
        text: String,
    },
    /// Another program keeps changing the file.
    Changing,
}

impl fmt::Display for KnownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KnownError::Unread(why) => write!(f, "{why}"),
            KnownError::Unwritten(why) => write!(f, "{why}"),
            KnownError::NotAFile => {
                write!(f, "it is a pipe or a device; give a file, to which addresses can be added")
            }
            KnownError::Line { line, text } => {
                write!(f, "line {line}: expected one IP address per line, got {text:?}")
            }
            KnownError::Changing => {
                write!(f, "another program keeps changing it; run this again when that has ended")
            }
        }
    }
}

impl error::Error for KnownError {}

impl From<Unread> for KnownError {
    fn from(why: Unread) -> Self {
        KnownError::Unread(why)
    }
}

/// The addresses of a file, in its order. A missing file has none.
pub fn read(disk: &dyn Disk, path: &Path) -> Result<Known, KnownError> {
    let input: Box<dyn Read + Send> = match disk.find(path).map_err(Unread::System)? {
        Target::Missing(_) => Box::new(io::empty()),
        Target::File(path, _) => disk.read(&path).map_err(Unread::System)?,
        Target::Stream(_) => return Err(KnownError::NotAFile),
    };
    Ok(Known { lines: Lines::new(BufReader::new(input), LINE_MAX), crlf: false })
}

/// The addresses of a file that is being read. After an error there are no more.
pub struct Known {
    lines: Lines<BufReader<Box<dyn Read + Send>>>,
    /// Whether the last line with a line feed has a carriage return before it.
    crlf: bool,
}

impl Iterator for Known {
    type Item = Result<IpAddr, KnownError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => return None,
                Err(why) => return Some(Err(why.into())),
            };
            // The last line may lack its line feed.
            if line.ends_with(b"\n") {
                self.crlf = line.ends_with(b"\r\n");
            }
            match address(line) {
                Ok(None) => {}
                Ok(Some(address)) => return Some(Ok(address)),
                Err(text) => {
                    return Some(Err(KnownError::Line { line: self.lines.number(), text }));
                }
            }
        }
    }
}

/// The address of a line, if it has one. An error has the start of the wrong text.
fn address(line: &[u8]) -> Result<Option<IpAddr>, String> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let end = line.iter().position(|&byte| byte == b'#').unwrap_or(line.len());
    let text = line[..end].trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    parsed.map(Some).ok_or_else(|| String::from_utf8_lossy(text).chars().take(SHOWN).collect())
}

/// The addresses of a run, sorted, each once.
#[derive(Debug, Default)]
pub struct Seen {
    v4: Marked<u32>,
    v6: Marked<u128>,
}

impl FromIterator<IpAddr> for Seen {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(addresses: I) -> Self {
        let mut seen = Seen::default();
        for address in addresses {
            match address {
                IpAddr::V4(address) => seen.v4.all.push(address.to_bits()),
                IpAddr::V6(address) => seen.v6.all.push(address.to_bits()),
            }
        }
        seen.v4.sort();
        seen.v6.sort();
        seen
    }
}

impl Seen {
    fn mark(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.v4.mark(address.to_bits()),
            IpAddr::V6(address) => self.v6.mark(address.to_bits()),
        }
    }

    fn unmark_all(&mut self) {
        self.v4.marks.fill(false);
        self.v6.marks.fill(false);
    }

    /// The addresses without a mark.
    fn missing(&self) -> impl Iterator<Item = IpAddr> {
        let v4 = self.v4.missing().map(|bits| Ipv4Addr::from_bits(bits).into());
        v4.chain(self.v6.missing().map(|bits| Ipv6Addr::from_bits(bits).into()))
    }
}

/// Sorted numbers, each with a mark.
#[derive(Debug, Default)]
struct Marked<T> {
    all: Vec<T>,
    marks: Vec<bool>,
}

impl<T: Ord + Copy> Marked<T> {
    fn sort(&mut self) {
        self.all.sort_unstable();
        self.all.dedup();
        self.marks = vec![false; self.all.len()];
    }

    fn mark(&mut self, number: T) {
        if let Ok(at) = self.all.binary_search(&number) {
            self.marks[at] = true;
        }
    }

    fn missing(&self) -> impl Iterator<Item = T> {
        self.all.iter().zip(&self.marks).filter(|(_, marked)| !**marked).map(|(&number, _)| number)
    }
}

/// Adds the addresses that the file lacks, at its end. Returns their number. If it is 0, the file is
/// not written.
pub fn add(disk: &dyn Disk, path: &Path, seen: &mut Seen) -> Result<u64, KnownError> {
    for _ in 0..ATTEMPTS {
        if let Some(added) = attempt(disk, path, seen)? {
            return Ok(added);
        }
    }
    Err(KnownError::Changing)
}

/// `None` if the file changed meanwhile.
fn attempt(disk: &dyn Disk, path: &Path, seen: &mut Seen) -> Result<Option<u64>, KnownError> {
    let (path, old): (PathBuf, _) = match disk.find(path).map_err(Unread::System)? {
        Target::Missing(path) => (path, None),
        Target::File(path, about) => (path, Some(about)),
        Target::Stream(_) => return Err(KnownError::NotAFile),
    };
    let _held = old.map(|_| disk.lock(&path)).transpose().map_err(Unread::System)?;
    let mut known = read(disk, &path)?;
    seen.unmark_all();
    for address in &mut known {
        seen.mark(address?);
    }
    let many = seen.missing().count() as u64;
    if many == 0 && old.is_some() {
        return Ok(Some(0));
    }
    let end = if known.crlf { "\r\n" } else { "\n" };
    let written = files::replace_version(disk, &path, old, Access::Umask, |out| {
        match old {
            None => write!(out, "{TITLE}{end}")?,
            Some(_) => {
                if !copy(disk.read(&path)?, out)? {
                    out.write_all(end.as_bytes())?;
                }
            }
        }
        seen.missing().try_for_each(|address| write!(out, "{address}{end}"))
    });
    Ok(written.map_err(KnownError::Unwritten)?.then_some(many))
}

/// Copies all bytes. Returns whether the last one ends a line; no byte at all ends one, too.
fn copy(mut input: impl Read, out: &mut dyn Write) -> io::Result<bool> {
    let (mut buffer, mut last) = ([0; 1 << 14], b'\n');
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(last == b'\n'),
            Ok(length) => {
                out.write_all(&buffer[..length])?;
                last = buffer[length - 1];
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}
