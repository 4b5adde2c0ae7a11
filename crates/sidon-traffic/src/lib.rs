//! Reads captures as a stream, decodes packets in place, and uses flows as keys.
//!
//! The layers, in the order in which a packet passes through them:
//!
//! 1. [`source`]: a capture file of any usual format, or standard input, as a stream of
//!    [`Frame`]s in constant memory. An error names the position of the damage.
//! 2. [`filter`]: a tcpdump expression that accepts or rejects a frame.
//! 3. [`packet`]: decodes a frame to a [`Packet`], or to the reason why not ([`Undecoded`]).
//! 4. [`flow`]: the five-tuple of a packet as a [`sidon::Key`] of 13 or 37 bytes.
//! 5. [`live`]: frames from an interface; [`export`]: records of flows from routers, which replace
//!    layers 1 to 3.
//! 6. [`generate`]: traffic from a seed, as packets in memory or as a capture.
//!
//! This crate never allocates per packet and never panics on damaged input.
//!
//! ```
//! use sidon_traffic::{Decoder, Generator, Mix, source::Source};
//!
//! let mut capture = Vec::new();
//! let mix = Mix { packets: 1_000, ..Mix::default() };
//! sidon_traffic::generate::write_pcap(Generator::new(mix, 1)?, 65_535, &mut capture)?;
//!
//! let mut source = Source::from_reader(std::io::Cursor::new(capture))?;
//! let decoder = Decoder::default();
//! let mut bytes = 0;
//! while let Some(frame) = source.next()? {
//!     let packet = decoder.decode(&frame)?;
//!     bytes += u64::from(packet.wire_len);
//! }
//! assert_eq!(source.frames(), 1_000);
//! assert!(bytes > 60_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
pub mod batch;
pub mod budget;
pub mod drive;
pub mod engine;
pub mod event;
pub mod excerpt;
pub mod export;
pub mod figure;
pub mod files;
pub mod filter;
pub mod flow;
pub mod flow_map;
pub mod generate;
pub mod known;
pub mod ledger;
pub mod link;
pub mod live;
pub mod monitor;
mod names;
pub mod packet;
pub mod prefix;
pub mod query;
pub mod recorder;
pub mod report;
mod resume;
pub mod shard;
pub mod snapshot;
pub mod source;
pub mod text;
pub mod threads;
pub mod thresholds;
pub mod time;
pub mod work;

pub use engine::{Engine, Settings};
pub use event::Event;
pub use figure::Figure;
pub use filter::{Filter, Verdict};
pub use flow::FlowKey;
pub use generate::{Generator, Mix};
pub use ledger::Ledger;
pub use link::LinkType;
pub use packet::{Decoder, Packet, TcpFlags, Transport, Tunnels, Undecoded};
pub use prefix::Prefix;
pub use query::{Answer, Question};
pub use report::Report;
pub use snapshot::Snapshot;
pub use source::{Broken, Frame, Source, SourceError};
pub use thresholds::Thresholds;
pub use time::Timing;

/// The example of the README is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
