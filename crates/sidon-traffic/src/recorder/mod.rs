//! Packets of incidents: a bounded pcap per incident, with its first packets and a sample of later ones.
//!
//! ```text
//! frame --> ring of the last frames            incident opens: its packets in the ring
//!   '-----> open incidents by address -> filter of the incident -> its tape
//! ```
//! A frame is decoded only while an incident is open, and tested with the filters of incidents at its
//! two addresses. Everything is bounded by [`Limits`]: the tapes, the bytes of each, the ring. Half of
//! the tapes are reserved for floods. An incident without a tape is counted.
//!
//! The recorder keeps frames in memory. The program writes [`Recorder::finished`] tapes to files.

mod tape;

use crate::{
    Decoder, Filter, Frame, LinkType, Prefix, Verdict,
    monitor::incidents::{Incident, List},
};
use std::{
    collections::{HashMap, VecDeque},
    io,
    net::IpAddr,
};
use tape::Tape;

/// The bounds of a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most incidents with packets.
    pub files: usize,
    /// The most bytes of packets of an incident.
    pub bytes: usize,
    /// The bytes of the ring of the last frames.
    pub ring: usize,
}

impl Default for Limits {
    /// 64 incidents of 256 KiB, and a ring of 1 MiB.
    fn default() -> Self {
        Limits { files: 64, bytes: 256 << 10, ring: 1 << 20 }
    }
}

/// A frame with its own bytes.
#[derive(Debug, Clone)]
struct Kept {
    time_ns: u64,
    wire_len: u32,
    link: LinkType,
    bytes: Box<[u8]>,
}

impl Kept {
    fn of(frame: &Frame<'_>) -> Self {
        let Frame { time_ns, wire_len, link, bytes } = *frame;
        Kept { time_ns, wire_len, link, bytes: bytes.into() }
    }

    fn frame(&self) -> Frame<'_> {
        let Kept { time_ns, wire_len, link, bytes } = self;
        Frame { time_ns: *time_ns, wire_len: *wire_len, link: *link, bytes }
    }

    /// The bytes that it takes in a file.
    fn size(&self) -> usize {
        16 + self.bytes.len()
    }
}

/// An incident with its packets.
#[derive(Debug)]
pub struct Recorded {
    incident: Incident,
    filter: Filter,
    /// The name of its files.
    name: String,
    tape: Tape,
    /// Whether there is something that is not yet written.
    is_new: bool,
}

impl Recorded {
    /// The incident when it was last seen.
    pub fn incident(&self) -> &Incident {
        &self.incident
    }

    /// The name of its files, without extension: opening time, kind at first and id.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The packets that matched, and those that are kept.
    pub fn packets(&self) -> [u64; 2] {
        self.tape.packets()
    }

    /// Writes the packets as a pcap file.
    pub fn write(&self, out: impl io::Write) -> io::Result<()> {
        self.tape.write(out)
    }
}

/// The packets of the incidents of a run.
#[derive(Debug)]
pub struct Recorder {
    limits: Limits,
    ring: VecDeque<Kept>,
    ring_bytes: usize,
    recorded: Vec<Recorded>,
    /// Positions in `recorded` of open incidents: at hosts, and at prefixes.
    hosts: HashMap<IpAddr, Vec<usize>>,
    prefixes: Vec<(Prefix, usize)>,
    /// The state of the list when it was last read.
    seen: Option<u64>,
    /// Ids of incidents without a tape, the last ones.
    left_out: VecDeque<u64>,
    missed: u64,
}

impl Recorder {
    /// A recorder without packets.
    pub fn new(limits: Limits) -> Self {
        Recorder {
            limits,
            ring: VecDeque::new(),
            ring_bytes: 0,
            recorded: Vec::new(),
            hosts: HashMap::new(),
            prefixes: Vec::new(),
            seen: None,
            left_out: VecDeque::new(),
            missed: 0,
        }
    }

    /// Incidents that found no room.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Adds a frame to the ring, and to the incidents that it belongs to.
    pub(crate) fn record(&mut self, frame: &Frame<'_>, decoder: &Decoder) {
        if (!self.hosts.is_empty() || !self.prefixes.is_empty())
            && let Ok(packet) = decoder.decode(frame)
        {
            for address in [packet.flow.source(), packet.flow.destination()] {
                self.offer(address, frame);
            }
        }
        if 16 + frame.bytes.len() > self.limits.ring {
            return;
        }
        let kept = Kept::of(frame);
        self.ring_bytes += kept.size();
        self.ring.push_back(kept);
        while self.ring_bytes > self.limits.ring
            && let Some(oldest) = self.ring.pop_front()
        {
            self.ring_bytes -= oldest.size();
        }
    }

    /// Adds a frame to the open incidents at one of its addresses.
    fn offer(&mut self, address: IpAddr, frame: &Frame<'_>) {
        let Recorder { recorded, hosts, prefixes, .. } = self;
        let at_host = hosts.get(&address).into_iter().flatten().copied();
        let around = prefixes.iter().filter(|(prefix, _)| prefix.contains(address));
        for at in at_host.chain(around.map(|(_, at)| *at)) {
            let one = &mut recorded[at];
            if one.filter.verdict(frame) == Verdict::Match {
                one.is_new |= one.tape.add(frame);
            }
        }
    }

    /// Reads the list of incidents if an incident was opened, changed or closed, or if the run is
    /// `over`. `weaken` changes the evidence as the report does.
    pub(crate) fn read(&mut self, list: &List, over: bool, weaken: impl Fn(&mut Incident)) {
        if self.seen.replace(list.changes()) == Some(list.changes()) && !over {
            return;
        }
        for incident in list.incidents() {
            let mut incident = incident.clone();
            weaken(&mut incident);
            match self.recorded.iter().position(|one| one.incident.id == incident.id) {
                Some(at) => {
                    let one = &mut self.recorded[at];
                    one.is_new |= one.incident != incident;
                    if one.incident.filter != incident.filter
                        && let Ok(filter) = incident.filter.parse()
                    {
                        one.filter = filter;
                    }
                    one.incident = incident;
                }
                None if incident.closed.is_none() => self.begin(&incident),
                None => {}
            }
        }
        self.index();
    }

    /// Begins to record an incident, with its packets in the ring.
    fn begin(&mut self, incident: &Incident) {
        let is_flood = |one: &Incident| !one.is_sender();
        let scans = self.recorded.iter().filter(|one| !is_flood(&one.incident)).count();
        let has_room = self.recorded.len() < self.limits.files
            && (is_flood(incident) || scans < self.limits.files.div_ceil(2));
        let Some(filter) = incident.filter.parse::<Filter>().ok().filter(|_| has_room) else {
            if !self.left_out.contains(&incident.id) {
                self.missed += 1;
                self.left_out.push_back(incident.id);
                if self.left_out.len() > crate::monitor::incidents::LISTED_MAX {
                    self.left_out.pop_front();
                }
            }
            return;
        };
        let mut tape = Tape::new(self.limits.bytes);
        for kept in &self.ring {
            let frame = kept.frame();
            if filter.verdict(&frame) == Verdict::Match {
                tape.add(&frame);
            }
        }
        let time: String = crate::time::iso8601(incident.opened)[..19].replace([':', '-'], "");
        let name = format!("{time}Z-{}-{}", incident.kind, incident.id());
        let incident = incident.clone();
        self.recorded.push(Recorded { incident, filter, name, tape, is_new: true });
    }

    /// Finds the addresses of open incidents. Forged SYNs have none: their filter reads every packet.
    fn index(&mut self) {
        self.hosts.clear();
        self.prefixes.clear();
        for (at, one) in self.recorded.iter().enumerate() {
            let subject = one.incident.subject;
            if one.incident.closed.is_some() {
                continue;
            }
            match subject.address().is_unspecified() {
                true => self.prefixes.push((Prefix::new(subject.address(), 0), at)),
                false if subject.is_host() => {
                    self.hosts.entry(subject.address()).or_default().push(at);
                }
                false => self.prefixes.push((subject, at)),
            }
        }
    }

    /// Ends the recording of all incidents: later ones are others, though their subjects may be equal.
    pub(crate) fn cut(&mut self) {
        self.hosts.clear();
        self.prefixes.clear();
        self.seen = None;
        for one in self.recorded.iter_mut().filter(|one| one.incident.closed.is_none()) {
            one.incident.closed = Some(one.incident.updated);
            one.is_new = true;
        }
    }

    /// Calls `write` for the incidents that have ended and were not yet written, or for all that have
    /// something new if the run is over. A failed incident is passed again by the next call.
    /// Returns the first error.
    pub fn finished<E>(
        &mut self,
        over: bool,
        mut write: impl FnMut(&Recorded) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut done = Ok(());
        for one in &mut self.recorded {
            if one.is_new && (over || one.incident.closed.is_some()) {
                let written = write(one);
                one.is_new = written.is_err();
                done = done.and(written);
            }
        }
        done
    }
}

#[cfg(test)]
mod tests;
