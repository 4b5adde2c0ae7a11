//! The pcap format: a header of 24 bytes, then records.
//!
//! ```text
//! | magic 4 | version 2 2 | zone 4 | accuracy 4 | snap length 4 | link type 4 |
//! | seconds 4 | fraction 4 | captured 4 | original 4 | (8 more if "modified") | captured bytes |
//! ```
//! The magic number gives the byte order, micro- or nanoseconds, and the "modified" form that old
//! kernels wrote.

use super::{
    Endian, Next, Record,
    error::{Broken, Why},
    window::Window,
};
use crate::LinkType;

const FILE_HEADER: usize = 24;

/// The longest packet that is accepted, as in other readers.
pub(super) const LONGEST: u32 = 256 << 10;

pub(super) struct Pcap {
    endian: Endian,
    nanos_per_tick: u64,
    record_header: usize,
    link: LinkType,
}

/// The byte order, nanoseconds per tick and record header length that a magic number means.
fn recognise(magic: [u8; 4]) -> Option<(Endian, u64, usize)> {
    for endian in [Endian::Little, Endian::Big] {
        match endian.u32(magic) {
            0xa1b2_c3d4 => return Some((endian, 1_000, 16)),
            0xa1b2_3c4d => return Some((endian, 1, 16)),
            0xa1b2_cd34 => return Some((endian, 1_000, 24)),
            _ => {}
        }
    }
    None
}

impl Pcap {
    /// Whether a file that starts with these bytes is of this format.
    pub(super) fn is(magic: [u8; 4]) -> bool {
        recognise(magic).is_some()
    }

    pub(super) fn open(window: &mut Window) -> Result<Self, Broken> {
        let header = window.peek(FILE_HEADER);
        let Ok(&header) = <&[u8; FILE_HEADER]>::try_from(header) else {
            return Err(window.cut(0, FILE_HEADER as u64));
        };
        let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let (endian, nanos_per_tick, record_header) =
            recognise(word(0)).expect("only called for a magic number that is known");
        let major = endian.u16([header[4], header[5]]);
        let minor = endian.u16([header[6], header[7]]);
        if major != 2 {
            return Err(Broken { offset: 4, why: Why::Version { major, minor } });
        }
        // The upper half of the field describes checksums at the end of frames.
        let link = LinkType(endian.u32(word(20)) as u16);
        window.take(FILE_HEADER);
        Ok(Pcap { endian, nanos_per_tick, record_header, link })
    }

    #[inline]
    pub(super) fn next(&mut self, window: &mut Window) -> Result<Next, Broken> {
        // Fast path: most records are complete in the window.
        let held = window.held();
        if let Some(header) = held.first_chunk::<16>() {
            let record = self.record(header, 0);
            let whole = self.record_header + record.captured;
            if record.captured <= LONGEST as usize && whole <= held.len() {
                let at = window.take(whole) + self.record_header;
                return Ok(Next::Record(Record { at, ..record }));
            }
        }
        self.refill(window)
    }

    /// The next record if more bytes must be read first, or the end.
    #[cold]
    fn refill(&mut self, window: &mut Window) -> Result<Next, Broken> {
        let offset = window.offset();
        let header = window.peek(self.record_header);
        let fields = match header.first_chunk::<16>() {
            Some(fields) if header.len() == self.record_header => fields,
            _ if header.is_empty() => return window.failure().map_or(Ok(Next::Over), Err),
            _ => return Err(window.cut(offset, self.record_header as u64)),
        };
        let record = self.record(fields, 0);
        if record.captured > LONGEST as usize {
            let why = Why::TooLong { length: record.captured as u64, most: LONGEST.into() };
            return Err(Broken { offset, why });
        }
        let whole = self.record_header + record.captured;
        if window.peek(whole).len() < whole {
            return Err(window.cut(offset, whole as u64));
        }
        let at = window.take(whole) + self.record_header;
        Ok(Next::Record(Record { at, ..record }))
    }

    /// The record with this header, whose captured bytes start at `at`.
    #[inline(always)]
    fn record(&self, header: &[u8; 16], at: usize) -> Record {
        let words = header.as_chunks::<4>().0;
        let word = |i: usize| self.endian.u32(words[i]);
        let [seconds, fraction, captured, original] = [word(0), word(1), word(2), word(3)];
        // 2^32 seconds and 2^32 fractions are below 2^64 nanoseconds.
        let time_ns =
            u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.nanos_per_tick;
        Record { time_ns, at, captured: captured as usize, original, link: self.link }
    }
}
