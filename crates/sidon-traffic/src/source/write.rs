//! Frames to a pcap file, little-endian with nanoseconds.

use super::Frame;
use crate::LinkType;
use std::io::{self, Write};

/// Most bytes kept of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapLength(pub u32);

/// A pcap file that is being written. Wrap the output in a `BufWriter`.
pub struct PcapWriter<W> {
    output: W,
    snap: u32,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header.
    pub fn new(mut output: W, link: LinkType, snap: SnapLength) -> io::Result<Self> {
        let mut header = [0; 24];
        header[..4].copy_from_slice(&0xa1b2_3c4du32.to_le_bytes());
        header[4..6].copy_from_slice(&2u16.to_le_bytes());
        header[6..8].copy_from_slice(&4u16.to_le_bytes());
        header[16..20].copy_from_slice(&snap.0.to_le_bytes());
        header[20..].copy_from_slice(&u32::from(link.0).to_le_bytes());
        output.write_all(&header)?;
        Ok(PcapWriter { output, snap: snap.0 })
    }

    /// Writes one frame, cut to the snap length. The frame's own link type is ignored.
    ///
    /// A time beyond the year 2106 does not fit the format's 32 bits of seconds and is an error.
    pub fn write(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let seconds = u32::try_from(frame.time_ns / 1_000_000_000)
            .map_err(|_| io::Error::other("the time does not fit a pcap file"))?;
        let nanos = (frame.time_ns % 1_000_000_000) as u32;
        let kept = frame.bytes.len().min(self.snap as usize);
        let mut header = [0; 16];
        header[..4].copy_from_slice(&seconds.to_le_bytes());
        header[4..8].copy_from_slice(&nanos.to_le_bytes());
        header[8..12].copy_from_slice(&(kept as u32).to_le_bytes());
        header[12..].copy_from_slice(&frame.wire_len.to_le_bytes());
        self.output.write_all(&header)?;
        self.output.write_all(&frame.bytes[..kept])
    }

    /// Hands back the output, flushed.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}
