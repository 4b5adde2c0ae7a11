//! The engine as sources see it: what they show it is in the period of its time.

use super::{save::Saving, totals::Past};
use sidon_traffic::{Engine, Frame, Packet, export::Record};
use std::time::{SystemTime, UNIX_EPOCH};

/// The engine, the files that its periods go to, if they do, and what is kept of those.
pub(super) struct Intake {
    pub(super) engine: Engine,
    pub(super) saving: Option<Saving>,
    pub(super) past: Past,
}

impl Intake {
    pub(super) fn new(engine: Engine, saving: Option<Saving>) -> Self {
        Intake { engine, saving, past: Past::default() }
    }

    /// Takes in a frame.
    #[inline]
    pub(super) fn frame(&mut self, frame: &Frame<'_>) {
        self.at(frame.time_ns);
        self.engine.frame(frame);
    }

    /// Takes in a packet.
    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet) {
        self.at(packet.time_ns);
        self.engine.packet(packet);
    }

    /// Takes in a record of a flow.
    pub(super) fn record(&mut self, record: &Record) {
        self.at(record.time_ns);
        self.engine.record(record);
    }

    /// It is so late, though no packet says so.
    pub(super) fn pass(&mut self, now_ns: u64) {
        self.at(now_ns);
        self.engine.pass(now_ns);
    }

    #[inline]
    fn at(&mut self, time_ns: u64) {
        if let Some(saving) = &mut self.saving
            && let Some(report) = saving.at(time_ns, &mut self.engine)
        {
            self.past.add(report);
        }
    }
}

/// Nanoseconds since 1970.
pub(super) fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
