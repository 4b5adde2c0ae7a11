//! A capture as a stream of frames, in memory that does not depend on its length.
//!
//! The first bytes of a file determine its format: pcap or pcapng, either byte order, micro- or
//! nanoseconds, plain or in gzip, zstd or lz4. Frames are borrowed from one window of 512 KiB;
//! nothing is allocated per frame. A file that breaks off gives every frame before the break. Each
//! further call returns a [`Broken`] with the position and the reason.
//!
//! ```text
//! file or stdin -> decompress -> window -> records (pcap | pcapng) -> Frame<'_>
//! ```

mod error;
mod input;
mod limits;
mod pcap;
mod pcapng;
mod window;
mod write;

pub use error::{Broken, SourceError, Why};
pub use input::Compression;
pub use limits::{Limit, Limits};
pub use write::{PcapWriter, SnapLength};

use crate::{LinkType, text, work::Work};
use pcap::Pcap;
use pcapng::Pcapng;
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    sync::{Arc, atomic::Ordering},
};
use window::Window;

/// One packet as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// Bytes on the wire, by the capture's record.
    pub wire_len: u32,
    /// The link type.
    pub link: LinkType,
    /// The bytes that were captured.
    pub bytes: &'a [u8],
}

/// The format of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The classic pcap format.
    Pcap,
    /// The next generation, pcapng.
    Pcapng,
}

/// A capture that is being read.
pub struct Source {
    window: Window,
    reader: Reader,
    compression: Compression,
    taken: Arc<input::Taken>,
    size: Option<u64>,
    frames: u64,
    /// The last record read.
    record: Option<Record>,
    broken: Option<Broken>,
}

enum Reader {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// A record that lies in the window.
#[derive(Clone, Copy)]
struct Record {
    time_ns: u64,
    at: usize,
    captured: usize,
    original: u32,
    link: LinkType,
}

/// The result of a call of a reader.
enum Next {
    Record(Record),
    /// The reader has skipped blocks and returns before the next record.
    Later,
    Over,
}

impl Source {
    /// The capture in this file; `-` is standard input.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let path = path.as_ref();
        if path == Path::new("-") {
            return Self::from_reader(io::stdin());
        }
        let refuse = |why| SourceError::Open { path: text::path(path), why };
        Self::from_file(File::open(path).map_err(refuse)?, path)
    }

    /// The capture in an open file. `path` is its name in errors.
    pub fn from_file(file: File, path: &Path) -> Result<Self, SourceError> {
        let refuse = |why| SourceError::Open { path: text::path(path), why };
        let about = file.metadata().map_err(refuse)?;
        if about.is_dir() {
            return Err(refuse(io::ErrorKind::IsADirectory.into()));
        }
        let mut source = Self::from_reader(file)?;
        source.size = about.is_file().then_some(about.len());
        Ok(source)
    }

    /// The capture in a stream of bytes.
    pub fn from_reader(input: impl Read + Send + 'static) -> Result<Self, SourceError> {
        let (bytes, compression, taken) = input::open(Box::new(input)).map_err(|why| {
            let message = why.to_string();
            SourceError::Header(Broken { offset: 0, why: Why::Read { message } })
        })?;
        let compressed = compression != Compression::Plain;
        let mut window = Window::new(bytes, compressed, Arc::clone(&taken));
        let reader = match *window.peek(4) {
            [a, b, c, d] if Pcap::is([a, b, c, d]) => Reader::Pcap(Pcap::open(&mut window)?),
            [a, b, c, d] if Pcapng::is([a, b, c, d]) => Reader::Pcapng(Pcapng::open(&mut window)?),
            [a, b, c, d] => return Err(SourceError::NotACapture { magic: [a, b, c, d] }),
            [] => return Err(window.failure().map_or(SourceError::Empty, SourceError::Header)),
            _ => return Err(window.cut(0, 4).into()),
        };
        let (size, frames, record, broken) = (None, 0, None, None);
        Ok(Source { window, reader, compression, taken, size, frames, record, broken })
    }

    /// Sets the limits on a capture that is much larger than its file. Without this call, they are
    /// [`Limits::default`].
    pub fn set_limits(&mut self, limits: Limits) {
        self.window.limits = limits;
    }

    /// The next frame, `None` after the last, or the position of the damage. A broken capture
    /// returns the same error at every further call.
    #[allow(clippy::should_implement_trait)] // a frame is borrowed from the source
    #[inline]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, Broken> {
        self.advance()?;
        Ok(self.frame())
    }

    /// Reads the next frame, which [`frame`](Self::frame) then returns. Fails as
    /// [`next`](Self::next) does.
    #[inline]
    pub fn advance(&mut self) -> Result<(), Broken> {
        while !self.advance_some()? {}
        Ok(())
    }

    /// [`advance`](Self::advance), but reads at most a few MiB of blocks without a frame. `false` if it
    /// stopped there: call it again.
    #[inline]
    pub fn advance_some(&mut self) -> Result<bool, Broken> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let record = match &mut self.reader {
            Reader::Pcap(pcap) => pcap.next(&mut self.window),
            Reader::Pcapng(pcapng) => pcapng.next(&mut self.window),
        };
        match record {
            Ok(Next::Record(record)) => {
                self.frames += 1;
                self.record = Some(record);
                Ok(true)
            }
            Ok(Next::Later) => {
                self.record = None;
                Ok(false)
            }
            Ok(Next::Over) => {
                self.record = None;
                Ok(true)
            }
            Err(broken) => {
                (self.record, self.broken) = (None, Some(broken.clone()));
                Err(broken)
            }
        }
    }

    /// The frame that was read last; `None` before the first and after the last.
    #[inline]
    pub fn frame(&self) -> Option<Frame<'_>> {
        let record = self.record?;
        Some(Frame {
            time_ns: record.time_ns,
            wire_len: record.original,
            link: record.link,
            bytes: &self.window.bytes()[record.at..record.at + record.captured],
        })
    }

    /// Number of frames returned so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Number of input bytes read so far, before decompression. Together with [`Source::size`] it
    /// gives the progress in a file.
    pub fn taken(&self) -> u64 {
        self.taken.bytes.load(Ordering::Relaxed)
    }

    /// The bytes that were moved within the window of the reader, so that a record is one slice. A
    /// record moves at most twice: when its header is read, and when it is read whole.
    pub fn work(&self) -> Work {
        let [read, moved] = self.window.work();
        Work { what: "bytes of a capture that move", done: moved, most: read.saturating_mul(2) }
    }

    /// The length of the input, if it is a file.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The format of the capture.
    pub fn format(&self) -> Format {
        match self.reader {
            Reader::Pcap(_) => Format::Pcap,
            Reader::Pcapng(_) => Format::Pcapng,
        }
    }

    /// How the input is compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }
}

/// The byte order of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endian {
    Little,
    Big,
}

impl Endian {
    #[inline(always)]
    fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline(always)]
    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        }
    }

    fn u64(self, [first, second]: [[u8; 4]; 2]) -> u64 {
        let (first, second) = (u64::from(self.u32(first)), u64::from(self.u32(second)));
        match self {
            Endian::Little => second << 32 | first,
            Endian::Big => first << 32 | second,
        }
    }
}
