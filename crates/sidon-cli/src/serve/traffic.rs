//! Where the packets of a server come from: one step of any source, then the feed looks around.

use super::intake::{Intake, now_ns};
use anyhow::Context;
use serde_json::Value;
use sidon_traffic::{
    Generator, Mix, Packet, Source,
    export::{Collector, Limits, Listener, Record, Templates},
    generate::{Flood, Shares},
    live::{Live, Options},
};
use std::{
    net::SocketAddrV4,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// A source of packets.
pub(super) trait Traffic: Send {
    /// What it is called on the page.
    fn name(&self) -> String;
    /// Shows the engine what there is now, for some milliseconds at the most.
    fn step(&mut self, to: &mut Intake) -> Next;
    /// What exporters of flow records sent, one object each, if it is them that it hears.
    fn exporters(&self) -> Option<Value> {
        None
    }
}

/// How it goes on after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// There is more at once.
    More,
    /// There is nothing for so long.
    Wait(Duration),
    /// There will be no more, and why.
    Over(String),
    /// There will be no more, though there should be, and why.
    Broken(String),
}

/// Packets of a step: a few milliseconds.
const STRIDE: usize = 1 << 13;
/// The longest wait, so that the feed stays awake.
const NAP: Duration = Duration::from_millis(20);

/// Packets that come as their times say.
#[derive(Debug)]
struct Pace {
    /// Seconds of packet time to a second; `None` for as fast as it goes.
    speed: Option<f64>,
    /// When the first packet came, and its time.
    first: Option<(Instant, u64)>,
}

impl Pace {
    fn new(speed: Option<f64>) -> Self {
        Pace { speed, first: None }
    }

    /// How long a packet of this time is still to wait; `None` if it is due.
    fn early(&mut self, time_ns: u64) -> Option<Duration> {
        let speed = self.speed?;
        let (start, first_ns) = *self.first.get_or_insert_with(|| (Instant::now(), time_ns));
        let since = Duration::from_nanos(time_ns.saturating_sub(first_ns));
        let due = Duration::try_from_secs_f64(since.as_secs_f64() / speed);
        let due = due.unwrap_or(Duration::MAX);
        due.checked_sub(start.elapsed()).filter(|left| !left.is_zero())
    }
}

/// A capture file, once.
pub(super) struct Capture {
    source: Source,
    name: String,
    pace: Pace,
    /// Until when the frame in hand has to wait: it has been shown already.
    waits: Option<u64>,
}

impl Capture {
    pub(super) fn open(path: &Path, speed: Option<f64>) -> anyhow::Result<Self> {
        let source = Source::open(path).with_context(|| path.display().to_string())?;
        let name = path.display().to_string();
        Ok(Capture { source, name, pace: Pace::new(speed), waits: None })
    }
}

impl Traffic for Capture {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn step(&mut self, to: &mut Intake) -> Next {
        for _ in 0..STRIDE {
            // A frame is borrowed from the source's window and cannot be kept: it is shown, and the
            // next one waits for its time.
            if let Some(left) = self.waits.and_then(|time_ns| self.pace.early(time_ns)) {
                return Next::Wait(left.min(NAP));
            }
            match self.source.next() {
                Ok(Some(frame)) => {
                    to.frame(&frame);
                    self.waits = Some(frame.time_ns);
                }
                Ok(None) => return Next::Over("the whole capture was read".to_owned()),
                Err(broken) => return Next::Broken(format!("the capture is broken: {broken}")),
            }
        }
        Next::More
    }
}

/// An interface of this machine.
pub(super) struct Interface {
    live: Live,
    name: String,
    /// When the engine was last told what time it is.
    told: Instant,
}

/// Time between two looks at the clock and the kernel's counters.
const BEAT: Duration = Duration::from_millis(250);

impl Interface {
    pub(super) fn open(name: &str, ring: u64) -> anyhow::Result<Self> {
        let live = Live::open(name, Options { ring, ..Options::default() })?;
        Ok(Interface { live, name: name.to_owned(), told: Instant::now() })
    }

    fn beat(&mut self, to: &mut Intake, idle: bool) {
        if self.told.elapsed() < BEAT {
            return;
        }
        self.told = Instant::now();
        to.engine.note_source(self.live.counters().list());
        // While there are frames in the ring it is as late as they say.
        if idle {
            to.pass(now_ns());
        }
    }
}

impl Traffic for Interface {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn step(&mut self, to: &mut Intake) -> Next {
        for _ in 0..STRIDE {
            match self.live.next(Duration::ZERO) {
                Ok(Some(frame)) => to.frame(&frame),
                Ok(None) => {
                    self.beat(to, true);
                    return Next::Wait(NAP);
                }
                Err(why) => {
                    to.engine.note_source(self.live.counters().list());
                    return Next::Broken(format!("the interface is gone: {why}"));
                }
            }
        }
        self.beat(to, false);
        Next::More
    }
}

/// Records of flows that routers send.
pub(super) struct Records {
    listener: Listener,
    collector: Collector,
    name: String,
    templates: Option<PathBuf>,
    started: bool,
    told: Instant,
}

impl Records {
    pub(super) fn bind(addresses: &[String], templates: Option<PathBuf>) -> anyhow::Result<Self> {
        let listener = Listener::bind(addresses).with_context(|| addresses.join(", "))?;
        let known = match &templates {
            Some(path) => Templates::read(path).with_context(|| path.display().to_string())?,
            None => Templates::default(),
        };
        let bound: Vec<_> = listener.addresses().iter().map(|one| one.to_string()).collect();
        let name = format!("flow records at {}", bound.join(", "));
        let collector = Collector::new(Limits::default(), known);
        let (started, told) = (false, Instant::now());
        Ok(Records { listener, collector, name, templates, started, told })
    }

    fn beat(&mut self, to: &mut Intake) {
        if self.told.elapsed() < BEAT {
            return;
        }
        self.told = Instant::now();
        to.engine.note_source(self.collector.list());
        to.pass(now_ns());
        if let Some(path) = &self.templates
            && let Err(why) = self.collector.templates().write(path)
        {
            eprintln!("sidon: {}: {why}", path.display());
        }
    }
}

impl Traffic for Records {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn step(&mut self, to: &mut Intake) -> Next {
        if !self.started {
            self.started = true;
            self.listener.start();
        }
        // A datagram holds some dozens of records.
        for _ in 0..STRIDE / 32 {
            let Some(datagram) = self.listener.next(Duration::ZERO) else {
                self.beat(to);
                return Next::Wait(NAP);
            };
            let record = |record: &Record| to.record(record);
            self.collector.datagram(datagram.from, &datagram.bytes, now_ns(), record);
        }
        self.beat(to);
        Next::More
    }

    fn exporters(&self) -> Option<Value> {
        Some(self.collector.to_json())
    }
}

/// A made-up office for ever: quiet, then a scan, then a flood, and again.
pub(super) struct Demo {
    seed: u64,
    round: u64,
    office: Generator,
    pace: Pace,
    next: Option<Packet>,
    last_ns: u64,
}

/// Packets a second of the office.
const RATE: u64 = 3_000;
/// Whom the flood hits.
const VICTIM: ([u8; 4], u16) = ([198, 18, 0, 7], 443);

impl Demo {
    pub(super) fn new(seed: u64, speed: f64) -> anyhow::Result<Self> {
        let start_ns = now_ns();
        let office = Generator::new(scene(0, start_ns), seed)?;
        Ok(Demo {
            seed,
            round: 0,
            office,
            pace: Pace::new(Some(speed)),
            next: None,
            last_ns: start_ns,
        })
    }

    fn next(&mut self) -> Option<Packet> {
        if let Some(packet) = self.next.take().or_else(|| self.office.next()) {
            return Some(packet);
        }
        self.round += 1;
        let seed = self.seed.wrapping_add(self.round);
        self.office = Generator::new(scene(self.round, self.last_ns), seed).ok()?;
        self.office.next()
    }
}

/// A scene of the office: half a minute of quiet first, then quiet again after a flood or a scan.
fn scene(round: u64, start_ns: u64) -> Mix {
    let (address, port) = VICTIM;
    let flood = Flood {
        sources: 20 * 9 * RATE,
        victim: SocketAddrV4::new(address.into(), port),
        after: 10 * RATE,
        share: 90,
        answered: 10,
    };
    let quiet = Mix { packets: 20 * RATE, rate: RATE, start_ns, active: 600, ..Mix::default() };
    match round % 3 {
        0 => quiet,
        1 => Mix { shares: Shares { scan: 12, ..quiet.shares }, ..quiet },
        // Forged packets, the answers to some of them, the office between, and ten seconds after.
        _ => Mix {
            packets: flood.after + flood.sources * 11 / 9 + 12 * RATE,
            flood: Some(flood),
            ..quiet
        },
    }
}

impl Traffic for Demo {
    fn name(&self) -> String {
        "demo: a made-up office".to_owned()
    }

    fn step(&mut self, to: &mut Intake) -> Next {
        for _ in 0..STRIDE {
            let Some(packet) = self.next() else {
                return Next::Over("the generator has ended".to_owned());
            };
            if let Some(left) = self.pace.early(packet.time_ns) {
                self.next = Some(packet);
                return Next::Wait(left.min(NAP));
            }
            self.last_ns = packet.time_ns;
            to.packet(&packet);
        }
        Next::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::Seed;
    use sidon_traffic::{Decoder, Engine, Filter, Settings};

    #[test]
    fn the_demo_goes_round_and_time_goes_on() {
        let engine = Engine::new(Settings::new(Seed(1)), Filter::default(), Decoder::default());
        let mut intake = Intake::new(engine.unwrap(), None);
        let mut demo = Demo::new(1, 1e9).unwrap();
        while demo.round < 4 {
            assert_ne!(demo.step(&mut intake), Next::Over(String::new()));
        }
        let report = intake.engine.report();
        assert_eq!(report.ledger.balance(), 0);
        let kinds: Vec<_> = report.alarms.iter().map(|alarm| (alarm.kind, alarm.subject)).collect();
        let victim = std::net::IpAddr::from(VICTIM.0);
        assert!(kinds.contains(&("syn_flood", victim)), "{kinds:?}");
        assert!(
            kinds.contains(&("address_scan", sidon_traffic::generate::SCANNER.into())),
            "{kinds:?}"
        );
        assert_eq!(kinds.len(), 2, "{kinds:?}");
        let (first, last) = report.times.unwrap();
        assert!((last - first) / 1_000_000_000 >= 80, "{first} {last}");
    }

    #[test]
    fn a_pace_holds_back_what_is_early() {
        let mut pace = Pace::new(Some(1.0));
        assert_eq!(pace.early(5_000_000_000), None);
        let left = pace.early(65_000_000_000).unwrap();
        assert!(left > Duration::from_secs(50) && left <= Duration::from_secs(60), "{left:?}");
        assert_eq!(pace.early(4_000_000_000), None);
        assert_eq!(Pace::new(None).early(u64::MAX), None);
    }
}
