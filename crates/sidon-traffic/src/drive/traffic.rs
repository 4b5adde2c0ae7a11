//! Sources of traffic behind one trait: captures, interfaces, flow records, generated packets.

use super::{
    pace::Pace,
    steady::{self, Stamps},
    timeline::{self, Timeline},
};
use crate::{
    Frame, LinkType, Packet, Source, Timing,
    export::{Collector, Limits, Listener, Record, Templates},
    files::System,
    live::Live,
    source::Broken,
    text,
    threads::NoThread,
};
use serde_json::Value;
use std::{
    collections::VecDeque,
    error::Error,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The file of templates rests this many times as long as its last write took: exporters can change a
/// template in every datagram.
const REST: u32 = 50;

/// Why a source failed.
pub type Failed = Box<dyn Error + Send + Sync>;

/// The next item of a source.
pub enum Item<'a> {
    /// A frame that has not been decoded, and what was odd about its time. The time is corrected: it
    /// is not before that of the frame before.
    Frame(Frame<'a>, Timing),
    /// A decoded packet.
    Packet(Packet),
    /// The records of one datagram.
    Records(&'a [Record]),
    /// Nothing has arrived yet.
    Nothing,
    /// The source has ended.
    Over,
}

/// A source of traffic.
pub trait Traffic {
    /// The next item. Waits for it at most `wait`, then returns [`Item::Nothing`].
    fn next(&mut self, wait: Duration) -> Result<Item<'_>, Failed>;

    /// Limits the source to `packets` further packets: it must not wait for more.
    fn limit(&mut self, _packets: u64) {}

    /// The name that users see.
    fn name(&self) -> String;

    /// Whether the source has no end of its own, and delivers packets as they arrive.
    fn is_endless(&self) -> bool {
        false
    }

    /// The time that the source has reached without a packet, by the [clock rule](super). `None`
    /// if only packets tell the time.
    fn clock(&self) -> Option<u64> {
        None
    }

    /// Counters for the ledger.
    fn counters(&mut self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Saves what the source has learnt. The loop calls it a few times a second, and at the end with
    /// `over`.
    fn keep_up(&mut self, _over: bool) -> Result<(), Failed> {
        Ok(())
    }

    /// Bytes read so far and bytes of the whole file, if that is known.
    fn progress(&self) -> Option<[u64; 2]> {
        None
    }

    /// What the exporters of flow records sent, one object each.
    fn exporters(&self) -> Option<Value> {
        None
    }
}

/// A capture file. Frames whose times need a look at the frames after them are held back, see
/// `timeline`.
pub struct Capture {
    source: Source,
    name: String,
    pace: Pace,
    /// The time of the last frame, which the next one waits for. A frame is borrowed from the
    /// source and cannot be kept, so it is delivered at once and the delay follows it.
    last_ns: Option<u64>,
    timeline: Timeline,
    /// Frames held back, at most [`timeline::START`] and one, and the one that was delivered last.
    held: VecDeque<Held>,
    delivered: Option<Held>,
    /// Frames that may still be read.
    left: u64,
    /// How the file ended.
    end: Option<Result<(), Broken>>,
}

/// The result of a step through a capture.
enum Step {
    /// A frame at this time.
    Frame(u64, Timing),
    /// The source has skipped blocks without a frame, and goes on at the next call.
    Later,
    /// The end of the file.
    Over,
}

/// A copy of a frame.
struct Held {
    time_ns: u64,
    wire_len: u32,
    link: LinkType,
    bytes: Vec<u8>,
}

impl Capture {
    /// Reads this source. With `speed`, frames are delivered at the pace of their times, multiplied
    /// by it.
    pub fn new(source: Source, path: &Path, speed: Option<f64>) -> Self {
        Capture {
            source,
            name: text::path(path),
            pace: Pace::new(speed),
            last_ns: None,
            timeline: Timeline::default(),
            held: VecDeque::with_capacity(timeline::START + 1),
            delivered: None,
            left: u64::MAX,
            end: None,
        }
    }

    /// The source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Reads on until the time of the next frame is decided, and returns that time. The frame is in
    /// `delivered` if it was held back, and else in the source.
    #[inline]
    fn advance(&mut self) -> Result<Step, Broken> {
        loop {
            if let Some(first) = self.held.front() {
                let followers = self.held.iter().skip(1).map(|frame| frame.time_ns);
                let decided = self.timeline.decide(first.time_ns, followers, self.end.is_some());
                if let Some((time_ns, timing)) = decided {
                    self.delivered = self.held.pop_front();
                    return Ok(Step::Frame(time_ns, timing));
                }
            }
            if let Some(end) = &self.end {
                return end.clone().map(|()| Step::Over);
            }
            if self.left == 0 {
                self.end = Some(Ok(()));
                continue;
            }
            match self.source.advance_some() {
                Ok(true) => {}
                Ok(false) => return Ok(Step::Later),
                Err(broken) => {
                    self.end = Some(Err(broken));
                    continue;
                }
            }
            let Some(frame) = self.source.frame() else {
                self.end = Some(Ok(()));
                continue;
            };
            self.left -= 1;
            let decided =
                if self.held.is_empty() { self.timeline.near(frame.time_ns) } else { None };
            if let Some((time_ns, timing)) = decided {
                self.delivered = None;
                return Ok(Step::Frame(time_ns, timing));
            }
            let Frame { time_ns, wire_len, link, bytes } = frame;
            self.held.push_back(Held { time_ns, wire_len, link, bytes: bytes.to_vec() });
        }
    }
}

impl Traffic for Capture {
    #[inline]
    fn next(&mut self, wait: Duration) -> Result<Item<'_>, Failed> {
        if let Some(time_ns) = self.last_ns
            && !self.pace.wait_for(time_ns, wait)
        {
            return Ok(Item::Nothing);
        }
        let (time_ns, timing) = match self.advance()? {
            Step::Frame(time_ns, timing) => (time_ns, timing),
            Step::Later => return Ok(Item::Nothing),
            Step::Over => return Ok(Item::Over),
        };
        self.last_ns = Some(time_ns);
        let frame = match &self.delivered {
            Some(Held { wire_len, link, bytes, .. }) => {
                Some(Frame { time_ns, wire_len: *wire_len, link: *link, bytes })
            }
            None => self.source.frame().map(|frame| Frame { time_ns, ..frame }),
        };
        Ok(frame.map_or(Item::Over, |frame| Item::Frame(frame, timing)))
    }

    /// The times of the last packets are decided as at the end of a file.
    fn limit(&mut self, packets: u64) {
        self.left = packets;
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn progress(&self) -> Option<[u64; 2]> {
        self.source.size().map(|size| [self.source.taken(), size])
    }
}

/// A network interface.
pub struct Interface {
    live: Live,
    name: String,
    stamps: Stamps,
    /// Whether the ring was empty at the last look.
    idle: bool,
}

impl Interface {
    /// Reads this interface.
    pub fn new(live: Live, name: &str) -> Self {
        Interface {
            live,
            name: text::printable(name).into_owned(),
            stamps: Stamps::new(),
            idle: false,
        }
    }

    /// The interface.
    pub fn live(&self) -> &Live {
        &self.live
    }
}

impl Traffic for Interface {
    #[inline]
    fn next(&mut self, wait: Duration) -> Result<Item<'_>, Failed> {
        let frame = self.live.next(wait)?;
        self.idle = frame.is_none();
        let Some(frame) = frame else { return Ok(Item::Nothing) };
        let time_ns = self.stamps.time(frame.time_ns, steady::clocks);
        Ok(Item::Frame(Frame { time_ns, ..frame }, Timing::Good))
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn is_endless(&self) -> bool {
        true
    }

    /// While frames are waiting in the ring, only they tell the time.
    fn clock(&self) -> Option<u64> {
        self.idle.then(steady::late_ns)
    }

    fn counters(&mut self) -> Vec<(&'static str, u64)> {
        self.live.counters().list()
    }
}

/// Flow records that routers send.
pub struct Records {
    listener: Listener,
    collector: Collector,
    name: String,
    /// The file of learnt templates, and the time before which it is not written again.
    templates: Option<PathBuf>,
    rest_until: Option<Instant>,
    started: bool,
    /// The records of the last datagram.
    records: Vec<Record>,
}

impl Records {
    /// Receives records from these sockets. `templates` is read if it exists; templates that
    /// exporters send are written to it.
    pub fn new(listener: Listener, templates: Option<PathBuf>) -> Result<Self, Failed> {
        let known = match &templates {
            Some(path) => {
                Templates::read(path).map_err(|why| format!("{}: {why}", text::path(path)))?
            }
            None => Templates::default(),
        };
        let bound: Vec<_> = listener.addresses().iter().map(|one| one.to_string()).collect();
        Ok(Records {
            listener,
            collector: Collector::new(Limits::default(), known),
            name: format!("flow records at {}", bound.join(", ")),
            templates,
            rest_until: None,
            started: false,
            records: Vec::new(),
        })
    }

    /// Starts the receiving threads. [`next`](Traffic::next) does so if nobody did before.
    pub fn start(&mut self) -> Result<(), NoThread> {
        self.started = true;
        self.listener.start()
    }

    /// The state of the exporters.
    pub fn collector(&self) -> &Collector {
        &self.collector
    }
}

impl Traffic for Records {
    fn next(&mut self, wait: Duration) -> Result<Item<'_>, Failed> {
        // Threads start here, not in `new`: a program may confine itself in between.
        if !self.started {
            self.start()?;
        }
        let Some(datagram) = self.listener.next(wait) else { return Ok(Item::Nothing) };
        self.records.clear();
        let Records { collector, records, .. } = self;
        let keep = |record: &Record| records.push(*record);
        collector.datagram(datagram.from, &datagram.bytes, steady::now_ns(), keep);
        Ok(Item::Records(records))
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn is_endless(&self) -> bool {
        true
    }

    /// A record has the time of its arrival, so the time of day is always known.
    fn clock(&self) -> Option<u64> {
        Some(steady::late_ns())
    }

    fn counters(&mut self) -> Vec<(&'static str, u64)> {
        self.collector.list()
    }

    /// Writes the templates, if they have changed and the last write was not just before.
    fn keep_up(&mut self, over: bool) -> Result<(), Failed> {
        let Some(path) = &self.templates else { return Ok(()) };
        let start = Instant::now();
        if self.rest_until.is_some_and(|until| start < until) && !over {
            return Ok(());
        }
        let written = self.collector.templates().write(&System, path);
        self.rest_until =
            start.elapsed().checked_mul(REST).and_then(|rest| start.checked_add(rest));
        Ok(written.map_err(|why| format!("{}: {why}", text::path(path)))?)
    }

    fn exporters(&self) -> Option<Value> {
        Some(self.collector.to_json())
    }
}

/// Packets from an iterator, such as a [`Generator`](crate::Generator).
pub struct Generated<I> {
    packets: I,
    name: String,
    pace: Pace,
    next: Option<Packet>,
}

impl<I: Iterator<Item = Packet>> Generated<I> {
    /// Packets from this iterator. With `speed`, they are delivered at the pace of their times,
    /// multiplied by it.
    pub fn new(packets: I, name: &str, speed: Option<f64>) -> Self {
        Generated { packets, name: name.to_owned(), pace: Pace::new(speed), next: None }
    }
}

impl<I: Iterator<Item = Packet>> Traffic for Generated<I> {
    #[inline]
    fn next(&mut self, wait: Duration) -> Result<Item<'_>, Failed> {
        let Some(packet) = self.next.take().or_else(|| self.packets.next()) else {
            return Ok(Item::Over);
        };
        if !self.pace.wait_for(packet.time_ns, wait) {
            self.next = Some(packet);
            return Ok(Item::Nothing);
        }
        Ok(Item::Packet(packet))
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
