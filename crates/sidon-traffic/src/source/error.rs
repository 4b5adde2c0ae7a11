//! Errors of captures: one cannot be opened ([`SourceError`]), or it breaks off ([`Broken`]).

use super::limits::Limit;
use std::{fmt, io};

/// Why a capture cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum SourceError {
    /// The system cannot open the file.
    Open {
        /// The path of the file.
        path: String,
        /// The system's error.
        why: io::Error,
    },
    /// The input has no bytes.
    Empty,
    /// The first four bytes match no capture format.
    NotACapture {
        /// The bytes found.
        magic: [u8; 4],
    },
    /// The file header itself is cut short or damaged.
    Header(Broken),
}

impl From<Broken> for SourceError {
    fn from(why: Broken) -> Self {
        SourceError::Header(why)
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceError::Open { path, why } => write!(f, "{path}: {why}"),
            SourceError::Empty => write!(f, "the input is empty"),
            SourceError::NotACapture { magic: [a, b, c, d] } => write!(
                f,
                "neither pcap nor pcapng: the first bytes are {a:02x} {b:02x} {c:02x} {d:02x}"
            ),
            SourceError::Header(why) => write!(f, "no capture can be read: {why}"),
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SourceError::Open { why, .. } => Some(why),
            SourceError::Header(why) => Some(why),
            _ => None,
        }
    }
}

/// Where a capture broke off, and why. Every frame before the break has been handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The first byte of the record or block that cannot be read, counted in the capture as it is
    /// after decompression.
    pub offset: u64,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with a record or block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The input ends inside it.
    Cut {
        /// Length of the record in bytes, by its own length field.
        expected: u64,
        /// Bytes left in the input.
        got: u64,
    },
    /// It is longer than any packet: its length field is damaged.
    TooLong {
        /// The length it gives.
        length: u64,
        /// The longest length that is accepted.
        most: u64,
    },
    /// A pcapng block is shorter than its fixed part, or not a multiple of four bytes.
    BlockLength {
        /// The length it gives.
        length: u32,
    },
    /// The two lengths of a pcapng block, before and after it, differ.
    BlockLengths {
        /// The one before.
        first: u32,
        /// The one after.
        second: u32,
    },
    /// The packet is longer than the pcapng block around it.
    PacketLength {
        /// Bytes captured by the packet's account.
        length: u32,
        /// Room in the block.
        room: u32,
    },
    /// The packet belongs to an interface that the section has not described.
    Interface {
        /// Its number.
        number: u32,
        /// Number of interfaces described.
        known: u32,
    },
    /// The version of the format is not supported.
    Version {
        /// The major version found.
        major: u16,
        /// The minor version found.
        minor: u16,
    },
    /// A section does not start with the byte-order magic.
    ByteOrder {
        /// The bytes found.
        magic: [u8; 4],
    },
    /// The capture is much larger than its file.
    Limit(Limit),
    /// More interfaces in one section than are kept.
    TooManyInterfaces,
    /// The compressed stream is damaged or cut short.
    Compressed {
        /// The message of the decompressor.
        message: String,
    },
    /// The system has too little memory to decompress it.
    Memory {
        /// The message of the decompressor.
        message: String,
    },
    /// The system failed to read further.
    Read {
        /// The message of the system.
        message: String,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken at byte {}: ", self.offset)?;
        match &self.why {
            Why::Cut { expected, got } => {
                write!(f, "{expected} bytes expected, {got} left")
            }
            Why::TooLong { length, most } => {
                write!(f, "a length of {length} bytes, the longest possible is {most}")
            }
            Why::BlockLength { length } => write!(f, "an impossible block length of {length}"),
            Why::BlockLengths { first, second } => {
                write!(f, "the block's length is {first} before and {second} after it")
            }
            Why::PacketLength { length, room } => {
                write!(f, "a packet of {length} bytes in a block with room for {room}")
            }
            Why::Interface { number, known } => {
                write!(f, "a packet of interface {number}, and {known} are described")
            }
            Why::Version { major, minor } => {
                write!(f, "format version {major}.{minor} is not known")
            }
            Why::ByteOrder { magic: [a, b, c, d] } => {
                write!(f, "no byte-order magic but {a:02x} {b:02x} {c:02x} {d:02x}")
            }
            Why::Limit(limit) => write!(f, "{limit}"),
            Why::TooManyInterfaces => write!(f, "more interfaces than are kept"),
            Why::Compressed { message } => write!(f, "the compressed data end here: {message}"),
            Why::Memory { message } => write!(f, "{message}"),
            Why::Read { message } => write!(f, "cannot read on: {message}"),
        }
    }
}

impl std::error::Error for Broken {}
