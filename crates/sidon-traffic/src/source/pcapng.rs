//! The pcapng format: blocks with lengths, in sections with a byte order.
//!
//! ```text
//! | type 4 | length 4 | body | length 4 |            length of the whole block, a multiple of 4
//! section    0a0d0d0a  magic 4, version 2 2, ...     forgets all interfaces
//! interface  1         link type 2, zero 2, snap length 4, options (clock resolution, offset)
//! packet     6         interface 4, time 4 4, captured 4, original 4, bytes
//! packet     2         interface 2, drops 2, time 4 4, captured 4, original 4, bytes   (obsolete)
//! packet     3         original 4, bytes             (no time: it has that of the packet before)
//! ```
//! Blocks of other types are skipped, whatever their length: at most [`STRIDE`] bytes per call, so
//! that a caller can show its progress and stop. Draft `draft-ietf-opsawg-pcapng`.

use super::{
    Endian, Next, Record,
    error::{Broken, Why},
    limits::Limit,
    pcap::LONGEST,
    window::{WINDOW, Window},
};
use crate::LinkType;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// The type and length before the body, and the length after it.
const AROUND: u32 = 12;
/// Bytes that are skipped before a call returns.
const STRIDE: u64 = 16 << 20;
/// Most interfaces stored per section.
const INTERFACES_MAX: usize = 1 << 16;

pub(super) struct Pcapng {
    endian: Endian,
    interfaces: Vec<Interface>,
    last_ns: u64,
    /// Bytes of blocks since the last packet.
    skipped: u64,
    skipping: Option<Skipping>,
}

/// A block that is being skipped.
#[derive(Debug, Clone, Copy)]
struct Skipping {
    /// Its first byte and its length.
    offset: u64,
    length: u32,
    /// Bytes before the length at its end.
    left: u64,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link: LinkType,
    snap: u32,
    clock: Clock,
}

/// How the ticks of an interface become nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clock {
    unit: Unit,
    offset_seconds: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A tick is this many nanoseconds.
    Nanos(u64),
    /// A tick is 10^-n seconds, with n above 9.
    Decimal(u32),
    /// A tick is 2^-n seconds.
    Binary(u32),
}

impl Clock {
    const MICROSECONDS: Clock = Clock { unit: Unit::Nanos(1_000), offset_seconds: 0 };

    /// The clock of the resolution byte in an interface's options.
    fn unit(resolution: u8) -> Unit {
        let n = u32::from(resolution & 0x7f);
        if resolution & 0x80 != 0 {
            Unit::Binary(n)
        } else if n <= 9 {
            Unit::Nanos(10u64.pow(9 - n))
        } else {
            Unit::Decimal(n)
        }
    }

    /// Nanoseconds since 1970, clamped to 64 bits.
    #[inline]
    fn nanos(self, ticks: u64) -> u64 {
        let nanos = match self.unit {
            Unit::Nanos(each) => u128::from(ticks) * u128::from(each),
            Unit::Decimal(n) => {
                10u128.checked_pow(n - 9).map_or(0, |per_nano| u128::from(ticks) / per_nano)
            }
            Unit::Binary(n) => (u128::from(ticks) * 1_000_000_000) >> n,
        };
        if self.offset_seconds == 0 {
            return u64::try_from(nanos).unwrap_or(u64::MAX);
        }
        // At most 2^64 * 10^9 and 2^63 * 10^9: their sum fits.
        let moved = nanos as i128 + i128::from(self.offset_seconds) * 1_000_000_000;
        u64::try_from(moved.max(0)).unwrap_or(u64::MAX)
    }
}

fn word(bytes: &[u8], at: usize) -> [u8; 4] {
    [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
}

impl Pcapng {
    /// Whether a file that starts with these bytes is of this format.
    pub(super) fn is(magic: [u8; 4]) -> bool {
        u32::from_be_bytes(magic) == SECTION
    }

    /// A reader that has entered the first section.
    pub(super) fn open(window: &mut Window) -> Result<Self, Broken> {
        let (endian, interfaces) = (Endian::Little, Vec::new());
        let mut reader = Pcapng { endian, interfaces, last_ns: 0, skipped: 0, skipping: None };
        let length = reader.start_section(window)?;
        reader.pass(window, length);
        // A longer section is skipped by `next`, under the limits of the caller.
        if u64::from(length) <= STRIDE {
            reader.skip(window, &mut { STRIDE })?;
        }
        Ok(reader)
    }

    pub(super) fn next(&mut self, window: &mut Window) -> Result<Next, Broken> {
        let mut budget = STRIDE;
        loop {
            self.skip(window, &mut budget)?;
            if budget == 0 {
                return Ok(Next::Later);
            }
            let offset = window.offset();
            let header = window.peek(8);
            if header.len() < 8 {
                if header.is_empty() {
                    return window.failure().map_or(Ok(Next::Over), Err);
                }
                return Err(window.cut(offset, AROUND.into()));
            }
            let kind = self.endian.u32(word(header, 0));
            let length = self.endian.u32(word(header, 4));
            if kind == SECTION {
                // The new section, including its length, may have the other byte order.
                let length = self.start_section(window)?;
                self.pass(window, length);
                continue;
            }
            if length < AROUND || !length.is_multiple_of(4) {
                return Err(Broken { offset, why: Why::BlockLength { length } });
            }
            match kind {
                ENHANCED_PACKET | OBSOLETE_PACKET | SIMPLE_PACKET => {
                    self.skipped = 0;
                    return self.packet(window, kind, length).map(Next::Record);
                }
                INTERFACE => {
                    self.skipped += u64::from(length);
                    self.check_skipped(window, offset)?;
                    self.interface(window, length)?;
                    budget = budget.saturating_sub(length.into());
                }
                _ => self.pass(window, length),
            }
        }
    }

    /// Checks the head of a section, sets its byte order, and returns the length of the block.
    fn start_section(&mut self, window: &mut Window) -> Result<u32, Broken> {
        let offset = window.offset();
        let fixed = 16;
        let head = window.peek(fixed);
        if head.len() < fixed {
            return Err(window.cut(offset, fixed as u64));
        }
        let magic = word(head, 8);
        let endian = match u32::from_le_bytes(magic) {
            0x1a2b_3c4d => Endian::Little,
            0x4d3c_2b1a => Endian::Big,
            _ => return Err(Broken { offset, why: Why::ByteOrder { magic } }),
        };
        let length = endian.u32(word(head, 4));
        let major = endian.u16([head[12], head[13]]);
        let minor = endian.u16([head[14], head[15]]);
        if length < AROUND + 16 || !length.is_multiple_of(4) {
            return Err(Broken { offset, why: Why::BlockLength { length } });
        }
        if major != 1 {
            return Err(Broken { offset, why: Why::Version { major, minor } });
        }
        self.endian = endian;
        self.interfaces.clear();
        Ok(length)
    }

    /// Refuses to read on if the blocks since the last packet are longer than the limit.
    fn check_skipped(&self, window: &Window, offset: u64) -> Result<(), Broken> {
        let most = window.limits.skipped;
        if self.skipped > most {
            return Err(Broken { offset, why: Why::Limit(Limit::Skipped(most)) });
        }
        Ok(())
    }

    /// Begins to skip a block.
    fn pass(&mut self, window: &Window, length: u32) {
        let left = u64::from(length) - 4;
        self.skipping = Some(Skipping { offset: window.offset(), length, left });
    }

    /// Skips on within a block, at most `budget` bytes, and checks the length after it.
    #[inline]
    fn skip(&mut self, window: &mut Window, budget: &mut u64) -> Result<(), Broken> {
        match self.skipping {
            Some(skipping) => self.skip_block(window, skipping, budget),
            None => Ok(()),
        }
    }

    #[cold]
    fn skip_block(
        &mut self,
        window: &mut Window,
        Skipping { offset, length, left }: Skipping,
        budget: &mut u64,
    ) -> Result<(), Broken> {
        // One byte beyond the limit exceeds it. A block that is cut before that is damaged.
        let allowed = window.limits.skipped.saturating_sub(self.skipped).saturating_add(1);
        let step = left.min(*budget).min(allowed);
        if !window.skip(step) {
            return Err(window.cut(offset, length.into()));
        }
        self.skipped += step;
        self.check_skipped(window, offset)?;
        // The length after the block counts, too.
        *budget = budget.saturating_sub(step + 4);
        if step < left {
            self.skipping = Some(Skipping { offset, length, left: left - step });
            return Ok(());
        }
        self.skipping = None;
        let after = window.peek(4);
        if after.len() < 4 {
            return Err(window.cut(offset, length.into()));
        }
        let second = self.endian.u32(word(after, 0));
        if second != length {
            return Err(Broken { offset, why: Why::BlockLengths { first: length, second } });
        }
        window.take(4);
        Ok(())
    }

    /// The whole block as one slice, with both lengths checked. The caller must still take it.
    #[inline]
    fn whole<'w>(&self, window: &'w mut Window, length: u32) -> Result<&'w [u8], Broken> {
        let offset = window.offset();
        if length as usize > WINDOW {
            let why = Why::TooLong { length: length.into(), most: WINDOW as u64 };
            return Err(Broken { offset, why });
        }
        if window.peek(length as usize).len() < length as usize {
            return Err(window.cut(offset, length.into()));
        }
        let block = window.peek(length as usize);
        let second = self.endian.u32(word(block, length as usize - 4));
        if second != length {
            return Err(Broken { offset, why: Why::BlockLengths { first: length, second } });
        }
        Ok(block)
    }

    fn interface(&mut self, window: &mut Window, length: u32) -> Result<(), Broken> {
        let offset = window.offset();
        let endian = self.endian;
        if length < AROUND + 8 {
            return Err(Broken { offset, why: Why::BlockLength { length } });
        }
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(Broken { offset, why: Why::TooManyInterfaces });
        }
        let block = self.whole(window, length)?;
        let body = &block[8..length as usize - 4];
        let mut interface = Interface {
            link: LinkType(endian.u16([body[0], body[1]])),
            snap: endian.u32(word(body, 4)),
            clock: Clock::MICROSECONDS,
        };
        let mut options = &body[8..];
        while let [k0, k1, l0, l1, rest @ ..] = options {
            let (code, size) = (endian.u16([*k0, *k1]), usize::from(endian.u16([*l0, *l1])));
            let Some(value) = rest.get(..size) else { break };
            match (code, value) {
                (0, _) => break,
                (9, [resolution, ..]) => interface.clock.unit = Clock::unit(*resolution),
                (14, value) if size == 8 => {
                    let (first, second) = (word(value, 0), word(value, 4));
                    interface.clock.offset_seconds = endian.u64([first, second]).cast_signed();
                }
                _ => {}
            }
            options = rest.get(size.next_multiple_of(4)..).unwrap_or(&[]);
        }
        self.interfaces.push(interface);
        window.take(length as usize);
        Ok(())
    }

    #[inline]
    fn packet(&mut self, window: &mut Window, kind: u32, length: u32) -> Result<Record, Broken> {
        let offset = window.offset();
        let endian = self.endian;
        let fixed: u32 = if kind == SIMPLE_PACKET { 4 } else { 20 };
        if length < AROUND + fixed {
            return Err(Broken { offset, why: Why::BlockLength { length } });
        }
        let room = length - AROUND - fixed;
        let block = self.whole(window, length)?;
        let field = |i: usize| endian.u32(word(block, 8 + 4 * i));
        let number = match kind {
            ENHANCED_PACKET => field(0),
            OBSOLETE_PACKET => u32::from(endian.u16([block[8], block[9]])),
            _ => 0,
        };
        let Some(&interface) = self.interfaces.get(number as usize) else {
            let known = self.interfaces.len() as u32;
            return Err(Broken { offset, why: Why::Interface { number, known } });
        };
        let (time_ns, captured, original) = if kind == SIMPLE_PACKET {
            let original = field(0);
            let snap = if interface.snap == 0 { u32::MAX } else { interface.snap };
            (self.last_ns, original.min(snap).min(room), original)
        } else {
            let ticks = u64::from(field(1)) << 32 | u64::from(field(2));
            (interface.clock.nanos(ticks), field(3), field(4))
        };
        if captured > room {
            return Err(Broken { offset, why: Why::PacketLength { length: captured, room } });
        }
        if captured > LONGEST {
            let why = Why::TooLong { length: captured.into(), most: LONGEST.into() };
            return Err(Broken { offset, why });
        }
        self.last_ns = time_ns;
        let at = window.take(length as usize) + 8 + fixed as usize;
        Ok(Record { time_ns, at, captured: captured as usize, original, link: interface.link })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_every_resolution_become_nanoseconds() {
        let nanos = |resolution, ticks, offset_seconds| {
            Clock { unit: Clock::unit(resolution), offset_seconds }.nanos(ticks)
        };
        assert_eq!(nanos(6, 1_500_000, 0), 1_500_000_000);
        assert_eq!(nanos(9, 7, 0), 7);
        assert_eq!(nanos(0, 3, 0), 3_000_000_000);
        assert_eq!(nanos(12, 5_000, 0), 5);
        assert_eq!(nanos(0x80 | 10, 1 << 10, 0), 1_000_000_000);
        assert_eq!(nanos(0x80 | 32, 1 << 31, 0), 500_000_000);
        assert_eq!(nanos(6, 1_000_000, 100), 101_000_000_000);
        assert_eq!(nanos(6, 1_000_000, -2), 0);
        // Times outside the range are clamped, not wrapped.
        assert_eq!(nanos(0, u64::MAX, 0), u64::MAX);
        assert_eq!(nanos(0, u64::MAX, i64::MAX), u64::MAX);
        assert_eq!(nanos(0x7f, u64::MAX, 0), 0);
        assert_eq!(nanos(0xff, u64::MAX, i64::MIN), 0);
    }
}
