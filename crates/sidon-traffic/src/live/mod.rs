//! Reads frames from an interface, through a ring that the kernel fills without copies.
//!
//! The kernel writes frames into blocks of memory that it shares with this process (`AF_PACKET`,
//! `TPACKET_V3`). A frame is borrowed from a block until the next call of `Live::next`.
//! ```text
//! kernel -> | block 0 | block 1 | ... |  -> Frame<'_>     tags restored, loopback copies skipped
//!            full or 60 ms old: ours     -> given back when its last frame was read
//! ```
//! [`Counters`] counts every frame that the kernel saw: given out, skipped, dropped because the
//! ring was full, or not read yet. One ring feeds the engine, whatever the number of threads.
//! Shards own keys, not flows, so every thread needs keys from every packet. With several rings,
//! the order of the packets of one host would differ from run to run, and so would the answers.
//!
//! Opening needs only `CAP_NET_RAW`, reading needs no capability.

#[cfg(target_os = "linux")]
mod ring;
#[cfg(not(target_os = "linux"))]
#[path = "none.rs"]
mod ring;

mod error;

pub use error::LiveError;

use crate::{Frame, LinkType};
use ring::Ring;
pub(crate) use ring::widen;
use std::{io, time::Duration};

/// The settings for reading an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Bytes of the ring.
    pub ring: u64,
    /// Bytes kept of each frame.
    pub snap: u32,
    /// Whether to read frames that are addressed to other hosts, too.
    pub promiscuous: bool,
}

impl Default for Options {
    /// A ring of 8 MiB, 512 bytes of each frame, frames to other hosts included.
    fn default() -> Self {
        Options { ring: 8 << 20, snap: 512, promiscuous: true }
    }
}

/// Counters of the frames on the interface since it was opened, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames that the kernel saw.
    pub received: u64,
    /// Frames that the kernel dropped because the ring was full.
    pub dropped: u64,
    /// Frames that `Live::next` returned.
    pub given: u64,
    /// Skipped copies: loopback delivers each frame twice, once as sent.
    pub sent_copies: u64,
}

impl Counters {
    /// Frames that are still in the ring.
    pub fn unread(&self) -> u64 {
        self.received.saturating_sub(self.dropped + self.given + self.sent_copies)
    }

    /// The counters as a list for the ledger.
    pub fn list(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("kernel_received", self.received),
            ("kernel_dropped", self.dropped),
            ("sent_copies_skipped", self.sent_copies),
            ("unread", self.unread()),
        ]
    }
}

/// An interface of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The link type of its frames; `None` if it is not supported.
    pub link: Option<LinkType>,
    /// Whether the interface is up.
    pub up: bool,
}

/// The interfaces of this machine, in the order of their numbers.
pub fn interfaces() -> Result<Vec<Interface>, LiveError> {
    let mut all = ring::interfaces()?;
    all.sort_by_key(|interface| interface.index);
    Ok(all)
}

/// An interface that is being read.
#[derive(Debug)]
pub struct Live {
    ring: Ring,
    link: LinkType,
    loopback: bool,
    given: u64,
    sent_copies: u64,
    kernel: [u64; 2],
}

impl Live {
    /// Starts to read an interface.
    pub fn open(name: &str, options: Options) -> Result<Self, LiveError> {
        let (ring, hardware) = Ring::open(name, options)?;
        let link = link(hardware).ok_or(LiveError::Link { name: name.to_owned(), hardware })?;
        let loopback = hardware == LOOPBACK;
        Ok(Live { ring, link, loopback, given: 0, sent_copies: 0, kernel: [0; 2] })
    }

    /// The next frame; `None` if no frame arrives within `wait`, or if a signal interrupts.
    ///
    /// # Errors
    /// If the interface went away or down.
    #[inline]
    pub fn next(&mut self, wait: Duration) -> io::Result<Option<Frame<'_>>> {
        let slot = loop {
            let Some(slot) = self.ring.next(wait)? else { return Ok(None) };
            if self.loopback && slot.outgoing {
                self.sent_copies += 1;
                continue;
            }
            break slot;
        };
        self.given += 1;
        let (time_ns, wire_len) = (slot.time_ns, slot.wire_len);
        Ok(Some(Frame { time_ns, wire_len, link: self.link, bytes: self.ring.bytes(&slot) }))
    }

    /// The link type of its frames.
    pub fn link(&self) -> LinkType {
        self.link
    }

    /// Counters of all frames so far.
    pub fn counters(&mut self) -> Counters {
        // The kernel resets its counters at each read, and its packets include its drops.
        if let Ok(since) = self.ring.statistics() {
            for (sum, more) in self.kernel.iter_mut().zip(since) {
                *sum += u64::from(more);
            }
        }
        let [received, dropped] = self.kernel;
        Counters { received, dropped, given: self.given, sent_copies: self.sent_copies }
    }
}

/// The hardware type of loopback, by the kernel's number.
const LOOPBACK: u16 = 772;

/// The link type of a hardware type.
fn link(hardware: u16) -> Option<LinkType> {
    Some(match hardware {
        1 | LOOPBACK => LinkType::ETHERNET,
        // Raw IP, IP-in-IP tunnels, and devices without a link header: WireGuard, tun.
        519 | 768 | 769 | 776 | 0xfffe => LinkType::RAW,
        801 => LinkType::IEEE802_11,
        803 => LinkType::RADIOTAP,
        _ => return None,
    })
}
