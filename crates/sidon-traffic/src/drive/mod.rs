//! One loop that feeds an engine from any source: `watch`, `serve` and `demo` use it.
//!
//! ```text
//! Traffic --frame | packet | records--> engine
//!    |                                    |
//!    '-- clock --> periods --snapshot--> Host::period
//!                                        Host::look, between items
//! ```
//! # The clock rule
//!
//! The clock of an engine is the time of its packets, and never runs backwards. In a capture, a time
//! that disagrees with those of the packets around it does not count (`timeline`). An interface or
//! a socket uses the kernel's monotone clock (`steady`). While nothing arrives, it advances the
//! clock to [`LATE`] before now, so that a packet that arrives a little late is still in time. Alarms,
//! timeouts and periods use this one clock. A packet that is older than the current period counts in
//! the current period.
//!
//! # Going on after a break
//!
//! A [checkpoint](Engine::checkpoint) of the engine and the [`Position`] of the loop, both taken in
//! [`Host::look`], are all that a later loop needs. [`drive_from`] reads the same capture again from its
//! start, and passes on only the frames that the engine has not seen. Their times are decided as in a
//! loop without a break. An interface or a socket cannot be read again: there, only periods go on.
//!
//! When the host stops an interface or a socket, the loop reads the packets that are already
//! waiting, for at most [`DRAIN`]. They pass through the same steps as all others.

mod pace;
mod steady;
mod timeline;
mod traffic;

pub use steady::now_ns;

pub use traffic::{Capture, Failed, Generated, Interface, Item, Records, Traffic};

use crate::{Engine, Snapshot, Timing};
use sidon::Infeasible;
use std::time::{Duration, Instant};

/// The clock of an interface or a socket stays this far behind the time of day.
pub const LATE: Duration = Duration::from_secs(1);
/// The longest time for packets that are waiting when the host stops the loop.
pub const DRAIN: Duration = Duration::from_millis(250);
/// Time between two updates of the clock and of the source's counters.
const BEAT: Duration = Duration::from_millis(250);
/// The longest time between two calls of [`Host::look`] while items arrive slowly.
const LOOK: Duration = Duration::from_millis(100);
/// Frames between two looks at the time: reading it costs a tenth of what a frame costs.
const FRAMES: usize = 16;
/// The wait for further packets when the host has stopped the loop. The kernel holds packets back for
/// up to 60 ms.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// The program around the loop.
pub trait Host {
    /// Why the program must end early.
    type Error: From<Infeasible>;

    /// Called between items: after at most a few thousand, and whenever nothing arrives. Returns
    /// how the loop goes on.
    fn look(&mut self, engine: &mut Engine, moment: &Moment<'_>) -> Result<Go, Self::Error>;

    /// A period starts: with the first packet, and when the period before is over.
    fn begin(&mut self, _start_ns: u64) {}

    /// Takes the state of a period that is over. The engine has empty tables afterwards.
    fn period(&mut self, start_ns: u64, snapshot: Snapshot) -> Result<(), Self::Error>;

    /// Tells the user that something went wrong that does not end the loop.
    fn warn(&mut self, why: &str);
}

/// How the loop goes on after [`Host::look`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// Read on. Wait for the next item at most this long.
    On(Duration),
    /// Stop.
    Stop,
}

/// What a host sees of the loop.
pub struct Moment<'a> {
    /// The source.
    pub traffic: &'a dyn Traffic,
    /// Whether nothing has arrived.
    pub idle: bool,
    /// Packets of all periods so far.
    pub seen: u64,
    /// Where the loop is.
    pub position: Position,
}

/// Where a loop is, between two items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// The start of the current period; `None` without periods or before the first packet.
    pub period_ns: Option<u64>,
    /// The number of periods that are over.
    pub periods: u64,
    /// The packets of those periods.
    pub packets: u64,
    /// See [`Done::joined`].
    pub joined: bool,
}

/// When the loop ends by itself, and the length of a period.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most packets; `None` without a limit.
    pub packets: Option<u64>,
    /// The length of a period; without it, the run is one period.
    pub period_ns: Option<u64>,
    /// The most periods; `None` without a limit. The last one then has no end: a capture whose packets
    /// are hours apart would otherwise have as many periods as packets.
    pub periods: Option<u64>,
    /// Items between two calls of [`Host::look`], unless nothing arrives.
    pub stride: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { packets: None, period_ns: None, periods: None, stride: 1 << 12 }
    }
}

/// Why the loop ended.
#[derive(Debug)]
pub enum End {
    /// The source has no more.
    Over,
    /// The source failed: the input is damaged, or the interface went down.
    Broken(Failed),
    /// The limit of packets was reached.
    Enough,
    /// The host stopped it.
    Stopped,
}

/// The result of a loop.
#[derive(Debug)]
pub struct Done {
    /// Why it ended.
    pub end: End,
    /// The start of the last period, if there are periods and there was a packet.
    pub period_ns: Option<u64>,
    /// Whether the last period is longer than the others, because of [`Limits::periods`].
    pub joined: bool,
    /// What the source could not save at the end, and why.
    pub unsaved: Option<Failed>,
}

/// Feeds the engine until the source or the host ends it. The engine is not
/// [ended](Engine::end): the caller takes its snapshot or its report.
pub fn drive<H: Host>(
    engine: &mut Engine,
    traffic: &mut dyn Traffic,
    limits: Limits,
    host: &mut H,
) -> Result<Done, H::Error> {
    go(None, engine, traffic, limits, host)
}

/// [`drive`] from the position of an earlier loop: with its engine resumed, its limits, and its source
/// from the start. The host has seen the beginning of the current period.
pub fn drive_from<H: Host>(
    position: Position,
    engine: &mut Engine,
    traffic: &mut dyn Traffic,
    limits: Limits,
    host: &mut H,
) -> Result<Done, H::Error> {
    go(Some(position), engine, traffic, limits, host)
}

fn go<H: Host>(
    from: Option<Position>,
    engine: &mut Engine,
    traffic: &mut dyn Traffic,
    limits: Limits,
    host: &mut H,
) -> Result<Done, H::Error> {
    let at = from.unwrap_or_default();
    let most = limits.periods.unwrap_or(u64::MAX);
    let mut periods = Periods { length_ns: limits.period_ns, most, at };
    let (mut wait, mut items) = (Duration::ZERO, 0);
    let (mut beat, mut looked) = (Instant::now(), Instant::now());
    let mut stopped: Option<Instant> = None;
    let mut warned = None;
    let endless = traffic.is_endless();
    // Packets that the engine has seen, and that the source delivers again.
    let mut again = if endless || from.is_none() { 0 } else { periods.seen(engine) };
    if let Some(most) = limits.packets {
        traffic.limit(most.saturating_sub(periods.seen(engine)).saturating_add(again));
    }
    let end = loop {
        if limits.packets.is_some_and(|most| periods.seen(engine) >= most) {
            break End::Enough;
        }
        let (mut idle, mut slow) = (false, false);
        match traffic.next(wait) {
            Ok(Item::Frame(..) | Item::Packet(_)) if again > 0 => {
                again -= 1;
                items += 1;
            }
            Ok(Item::Frame(frame, timing)) => {
                periods.turn(frame.time_ns, engine, host)?;
                if timing != Timing::Good {
                    engine.note_timing(timing);
                }
                engine.frame(&frame);
                items += 1;
                slow = endless && items % FRAMES == 0;
            }
            Ok(Item::Packet(packet)) => {
                periods.turn(packet.time_ns, engine, host)?;
                engine.packet(&packet);
                items += 1;
                slow = endless && items % FRAMES == 0;
            }
            Ok(Item::Records(records)) => {
                for record in records {
                    periods.turn(record.time_ns, engine, host)?;
                    engine.record(record);
                }
                // A datagram without records is an item, too.
                items += records.len() + 1;
                slow = true;
            }
            Ok(Item::Nothing) => idle = true,
            Ok(Item::Over) => break End::Over,
            Err(_) if stopped.is_some() => break End::Stopped,
            Err(why) => break End::Broken(why),
        }
        if let Some(since) = stopped {
            if idle || since.elapsed() >= DRAIN {
                break End::Stopped;
            }
            continue;
        }
        if !idle && items < limits.stride && !(slow && looked.elapsed() >= LOOK) {
            continue;
        }
        (items, looked) = (0, Instant::now());
        if beat.elapsed() >= BEAT {
            beat = Instant::now();
            // The counters first: they belong to the period that may end here.
            if let Some(why) = keep_up(engine, traffic, false) {
                let why = why.to_string();
                if warned.as_ref() != Some(&why) {
                    host.warn(&why);
                }
                warned = Some(why);
            }
            match traffic.clock() {
                Some(now_ns) => {
                    if periods.at.period_ns.is_some() {
                        periods.turn(now_ns, engine, host)?;
                    }
                    engine.pass(now_ns);
                }
                // Slow traffic fills a batch slowly: alarms and events need not wait for it.
                None if endless => engine.flush(),
                None => {}
            }
        }
        let (seen, position) = (periods.seen(engine), periods.at);
        let moment = Moment { traffic: &*traffic, idle, seen, position };
        match host.look(engine, &moment)? {
            Go::On(longest) => wait = longest,
            Go::Stop if endless => (stopped, wait) = (Some(Instant::now()), LAST_WAIT),
            Go::Stop => break End::Stopped,
        }
    };
    let unsaved = keep_up(engine, traffic, true);
    let Position { period_ns, joined, .. } = periods.at;
    Ok(Done { end, period_ns, joined, unsaved })
}

/// Notes the counters of the source, and lets it save what it has learnt. Returns why it could not.
fn keep_up(engine: &mut Engine, traffic: &mut dyn Traffic, over: bool) -> Option<Failed> {
    let counters = traffic.counters();
    if !counters.is_empty() {
        engine.note_source(counters);
    }
    traffic.keep_up(over).err()
}

/// The periods of a run: whole multiples of their length since 1970.
struct Periods {
    length_ns: Option<u64>,
    /// The most periods.
    most: u64,
    at: Position,
}

impl Periods {
    /// Packets of all periods so far.
    fn seen(&self, engine: &Engine) -> u64 {
        self.at.packets.saturating_add(engine.ledger().seen)
    }

    /// Ends the period if its time is over at `now_ns`. A period without packets is not passed on.
    #[inline]
    fn turn<H: Host>(
        &mut self,
        now_ns: u64,
        engine: &mut Engine,
        host: &mut H,
    ) -> Result<(), H::Error> {
        let Some(length) = self.length_ns else { return Ok(()) };
        let (at, seen) = (&mut self.at, engine.ledger().seen);
        if at.period_ns.is_some_and(|start| now_ns.saturating_sub(start) < length) {
            return Ok(());
        }
        if at.periods.saturating_add(1) >= self.most && at.period_ns.is_some() && seen > 0 {
            at.joined = true;
            return Ok(());
        }
        let next = now_ns - now_ns % length;
        if let Some(start) = at.period_ns.replace(next).filter(|_| seen > 0) {
            at.packets = at.packets.saturating_add(seen);
            at.periods = at.periods.saturating_add(1);
            engine.rotate(|snapshot| host.period(start, snapshot))??;
        }
        host.begin(next);
        Ok(())
    }
}
