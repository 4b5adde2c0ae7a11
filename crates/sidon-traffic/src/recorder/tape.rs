//! The packets of one incident, in a fixed number of bytes.
//!
//! Half of the bytes hold the first packets. The other half holds a sample of the later ones: every
//! n-th, where n doubles whenever the half is full, and every other packet of it is dropped.
//! ```text
//! | 1 2 3 4 5 6 7 8 .. | 20 24 28 32 36 .. |     n = 4
//! ```

use super::Kept;
use crate::{
    Frame, LinkType,
    source::{PcapWriter, SnapLength},
};
use std::io;

/// The packets of an incident.
#[derive(Debug)]
pub(super) struct Tape {
    /// The bytes of each half.
    half: usize,
    /// The link type of the first packet. A pcap file has one; others are not kept.
    link: Option<LinkType>,
    first: Vec<Kept>,
    first_bytes: usize,
    is_full: bool,
    /// Packets of the sample, each with its number among those after the first half.
    sample: Vec<(u64, Kept)>,
    sample_bytes: usize,
    stride: u64,
    /// Packets after the first half.
    later: u64,
    matched: u64,
}

impl Tape {
    pub(super) fn new(bytes: usize) -> Self {
        Tape {
            half: bytes / 2,
            link: None,
            first: Vec::new(),
            first_bytes: 0,
            is_full: false,
            sample: Vec::new(),
            sample_bytes: 0,
            stride: 1,
            later: 0,
            matched: 0,
        }
    }

    /// Adds a packet. Returns whether it is kept.
    pub(super) fn add(&mut self, frame: &Frame<'_>) -> bool {
        self.matched = self.matched.saturating_add(1);
        let size = 16 + frame.bytes.len();
        if *self.link.get_or_insert(frame.link) != frame.link || size > self.half {
            return false;
        }
        if !self.is_full && self.first_bytes + size <= self.half {
            self.first_bytes += size;
            self.first.push(Kept::of(frame));
            return true;
        }
        self.is_full = true;
        let number = self.later;
        self.later += 1;
        while number.is_multiple_of(self.stride) {
            if self.sample_bytes + size <= self.half {
                self.sample_bytes += size;
                self.sample.push((number, Kept::of(frame)));
                return true;
            }
            self.stride = self.stride.saturating_mul(2);
            let stride = self.stride;
            self.sample.retain(|(number, _)| number.is_multiple_of(stride));
            self.sample_bytes = self.sample.iter().map(|(_, kept)| kept.size()).sum();
        }
        false
    }

    /// Packets that matched, and packets kept.
    pub(super) fn packets(&self) -> [u64; 2] {
        [self.matched, (self.first.len() + self.sample.len()) as u64]
    }

    /// Writes the packets as a pcap file, in the order in which they came.
    pub(super) fn write(&self, out: impl io::Write) -> io::Result<()> {
        let link = self.link.unwrap_or(LinkType(1));
        let mut writer = PcapWriter::new(out, link, SnapLength(u32::MAX))?;
        for kept in self.first.iter().chain(self.sample.iter().map(|(_, kept)| kept)) {
            writer.write(&kept.frame())?;
        }
        writer.finish().map(drop)
    }
}
