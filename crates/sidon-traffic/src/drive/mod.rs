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
//! The clock of an engine is the time of its packets. An interface or a socket also advances the
//! clock while nothing arrives. It advances it to the time of day less [`LATE`], so that a packet
//! that arrives a little late is still in time. Alarms, timeouts and periods use this one clock. A
//! packet that is older than the current period counts in the current period.
//!
//! When the host stops an interface or a socket, the loop reads the packets that are already
//! waiting, for at most [`DRAIN`]. They pass through the same steps as all others.

mod pace;
mod traffic;

pub use traffic::{Capture, Failed, Generated, Interface, Item, Records, Traffic};

use crate::{Engine, Snapshot};
use sidon::Infeasible;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The clock of an interface or a socket stays this far behind the time of day.
pub const LATE: Duration = Duration::from_secs(1);
/// The longest time for packets that are waiting when the host stops the loop.
pub const DRAIN: Duration = Duration::from_millis(250);
/// Time between two updates of the clock and of the source's counters.
const BEAT: Duration = Duration::from_millis(250);

/// The program around the loop.
pub trait Host {
    /// Why the program must end early.
    type Error: From<Infeasible>;

    /// Called between items: after at most a few thousand, and whenever nothing arrives. Returns
    /// how the loop goes on.
    fn look(&mut self, engine: &mut Engine, moment: &Moment<'_>) -> Result<Go, Self::Error>;

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
    /// The start of the current period, once there was a packet.
    pub period_ns: Option<u64>,
}

/// When the loop ends by itself, and the length of a period.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most packets.
    pub packets: u64,
    /// The length of a period; without it, the run is one period.
    pub period_ns: Option<u64>,
    /// Items between two calls of [`Host::look`], unless nothing arrives.
    pub stride: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { packets: u64::MAX, period_ns: None, stride: 1 << 12 }
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
}

/// Feeds the engine until the source or the host ends it. The engine is not
/// [ended](Engine::end): the caller takes its snapshot or its report.
pub fn drive<H: Host>(
    engine: &mut Engine,
    traffic: &mut dyn Traffic,
    limits: Limits,
    host: &mut H,
) -> Result<Done, H::Error> {
    let mut periods = Periods { length_ns: limits.period_ns, start_ns: None, past: 0 };
    let (mut wait, mut items, mut beat) = (Duration::ZERO, 0, Instant::now());
    let mut stopped: Option<Instant> = None;
    let end = loop {
        if periods.past.saturating_add(engine.ledger().seen) >= limits.packets {
            break End::Enough;
        }
        let mut idle = false;
        match traffic.next(wait) {
            Ok(Item::Frame(frame)) => {
                periods.turn(frame.time_ns, engine, host)?;
                engine.frame(&frame);
                items += 1;
            }
            Ok(Item::Packet(packet)) => {
                periods.turn(packet.time_ns, engine, host)?;
                engine.packet(&packet);
                items += 1;
            }
            Ok(Item::Records(records)) => {
                for record in records {
                    periods.turn(record.time_ns, engine, host)?;
                    engine.record(record);
                }
                // A datagram without records is an item, too.
                items += records.len() + 1;
            }
            Ok(Item::Nothing) => idle = true,
            Ok(Item::Over) => break End::Over,
            Err(why) => break End::Broken(why),
        }
        if let Some(since) = stopped {
            if idle || since.elapsed() >= DRAIN {
                break End::Stopped;
            }
            continue;
        }
        if !idle && items < limits.stride {
            continue;
        }
        items = 0;
        if beat.elapsed() >= BEAT {
            beat = Instant::now();
            // The counters first: they belong to the period that may end here.
            keep_up(engine, traffic, host);
            if let Some(now_ns) = traffic.clock() {
                periods.turn(now_ns, engine, host)?;
                engine.pass(now_ns);
            }
        }
        let seen = periods.past.saturating_add(engine.ledger().seen);
        let moment = Moment { traffic: &*traffic, idle, seen, period_ns: periods.start_ns };
        match host.look(engine, &moment)? {
            Go::On(longest) => wait = longest,
            Go::Stop if traffic.is_endless() => {
                // The kernel may hold packets back for a moment, so the wait is not zero.
                (stopped, wait) = (Some(Instant::now()), wait.min(BEAT));
            }
            Go::Stop => break End::Stopped,
        }
    };
    keep_up(engine, traffic, host);
    Ok(Done { end, period_ns: periods.start_ns })
}

/// Notes the counters of the source, and lets it do what can wait.
fn keep_up<H: Host>(engine: &mut Engine, traffic: &mut dyn Traffic, host: &mut H) {
    let counters = traffic.counters();
    if !counters.is_empty() {
        engine.note_source(counters);
    }
    if let Err(why) = traffic.keep_up() {
        host.warn(&why.to_string());
    }
}

/// The periods of a run: whole multiples of their length since 1970.
struct Periods {
    length_ns: Option<u64>,
    start_ns: Option<u64>,
    /// Packets of the periods that are over.
    past: u64,
}

impl Periods {
    /// Ends the period if its time is over at `now_ns`. A period without packets is not passed on.
    #[inline]
    fn turn<H: Host>(
        &mut self,
        now_ns: u64,
        engine: &mut Engine,
        host: &mut H,
    ) -> Result<(), H::Error> {
        let Some(length) = self.length_ns else { return Ok(()) };
        let start = *self.start_ns.get_or_insert(now_ns - now_ns % length);
        if now_ns.saturating_sub(start) < length {
            return Ok(());
        }
        self.start_ns = Some(now_ns - now_ns % length);
        let seen = engine.ledger().seen;
        if seen == 0 {
            return Ok(());
        }
        self.past = self.past.saturating_add(seen);
        engine.rotate(|snapshot| host.period(start, snapshot))?
    }
}

/// Nanoseconds since 1970.
pub fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// The clock of an interface or a socket while nothing arrives.
fn clock_ns() -> u64 {
    now_ns().saturating_sub(LATE.as_nanos() as u64)
}
