//! The way of a frame to a batch: counted, filtered, decoded, collected.
//!
//! ```text
//! frame -> ledger -> filter -> decoder -> arriving -> batch
//! ```
//! The batch hashes the keys of its packets once, when it is sorted. All tables use those digests.

use crate::{
    Decoder, Filter, Frame, Packet, Snapshot, Verdict,
    batch::{self, Batch},
    export::Record,
    recorder::Recorder,
    resume::{self, Resume},
    snapshot::encode::{In, Out},
};
use sidon::Malformed;

/// Filters and decodes frames, and collects packets until a batch is full.
pub(super) struct Staging {
    pub(super) filter: Filter,
    pub(super) decoder: Decoder,
    /// Packets not yet moved to the batch that is being filled.
    arriving: Vec<Packet>,
    /// Free positions in that batch.
    room: usize,
}

impl Staging {
    pub(super) fn new(filter: Filter, decoder: Decoder) -> Self {
        let arriving = Vec::with_capacity(batch::PACKETS);
        Staging { filter, decoder, arriving, room: batch::PACKETS }
    }

    /// Counts a frame, filters it and decodes it. Returns whether the batch is full.
    #[inline]
    pub(super) fn frame(&mut self, frame: &Frame<'_>, state: &mut Snapshot) -> bool {
        let ledger = &mut state.ledger;
        ledger.count_seen(frame.wire_len);
        match self.filter.verdict(frame) {
            Verdict::Match => {}
            Verdict::NoMatch => {
                ledger.filtered = ledger.filtered.saturating_add(1);
                return false;
            }
            Verdict::BehindTag => {
                ledger.filtered = ledger.filtered.saturating_add(1);
                ledger.behind_tag = ledger.behind_tag.saturating_add(1);
                return false;
            }
        }
        match self.decoder.decode(frame) {
            Ok(packet) => self.accept(&packet, state),
            Err(why) => {
                ledger.undecoded(why);
                false
            }
        }
    }

    /// Passes a frame that the filter accepts to a recorder.
    pub(super) fn keep(&self, frame: &Frame<'_>, recorder: &mut Recorder) {
        if self.filter.verdict(frame) == Verdict::Match {
            recorder.record(frame, &self.decoder);
        }
    }

    /// Counts a packet that needs no decoding. Returns whether the batch is full.
    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet, state: &mut Snapshot) -> bool {
        state.ledger.count_seen(packet.wire_len);
        self.accept(packet, state)
    }

    #[inline]
    fn accept(&mut self, packet: &Packet, state: &mut Snapshot) -> bool {
        state.ledger.decoded = state.ledger.decoded.saturating_add(1);
        state.clock(packet.time_ns);
        for watched in &mut state.subnets {
            if !watched.count(packet) {
                state.ledger.refused("subnet_counts", 1);
            }
        }
        self.arriving.push(*packet);
        self.arriving.len() >= self.room
    }

    /// Counts the packets of a flow record.
    pub(super) fn record(&mut self, record: &Record, state: &mut Snapshot) {
        let ledger = &mut state.ledger;
        ledger.seen = ledger.seen.saturating_add(record.packets);
        ledger.decoded = ledger.decoded.saturating_add(record.packets);
        ledger.wire_bytes = ledger.wire_bytes.saturating_add(record.bytes);
        state.clock(record.time_ns);
    }

    /// Adds one packet of a flow record to the batch, with the bytes and packets that it counts
    /// for. `is_unordered` is that of [`Batch::is_unordered`]. Returns whether the batch is full.
    pub(super) fn weighted(
        &mut self,
        packet: &Packet,
        weight: [u64; 2],
        is_unordered: bool,
        state: &mut Snapshot,
        batch: &mut Batch,
    ) -> bool {
        for watched in &mut state.subnets {
            if !watched.count_many(packet, weight[1]) {
                state.ledger.refused("subnet_counts", 1);
            }
        }
        self.board(batch);
        batch.push_weighted(packet, weight, is_unordered);
        self.room -= 1;
        batch.is_full()
    }

    /// Moves the packets that have arrived into the batch.
    fn board(&mut self, batch: &mut Batch) {
        self.room -= self.arriving.len();
        if batch.packets.is_empty() {
            std::mem::swap(&mut batch.packets, &mut self.arriving);
        } else {
            batch.packets.append(&mut self.arriving);
        }
    }

    /// Counts the free positions of a batch again. Returns whether it has room for the packets that
    /// have arrived and for one more.
    pub(super) fn fits(&mut self, batch: &Batch) -> bool {
        self.room = batch::PACKETS - batch.packets.len();
        self.arriving.len() < self.room
    }

    /// Moves the packets that have arrived into the batch. The next packets go to an empty one.
    pub(super) fn complete(&mut self, batch: &mut Batch) {
        self.board(batch);
        self.room = batch::PACKETS;
    }
}

impl Resume for Staging {
    fn save(&self, out: &mut Out) {
        // `room` follows from the batch.
        let Staging { filter: _, decoder: _, arriving, room: _ } = self;
        out.number(arriving.len() as u64);
        arriving.iter().for_each(|packet| resume::save_packet(packet, out));
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        for _ in 0..bytes.length("packets", batch::PACKETS)? {
            self.arriving.push(resume::read_packet(bytes)?);
        }
        Ok(())
    }
}
