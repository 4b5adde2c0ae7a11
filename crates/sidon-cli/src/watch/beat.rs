//! What is done once in a while as long as a source has no end: signals looked at, time passed on,
//! one line on a terminal kept up to date.

use super::{Args, End, known, signals::Signals};
use crate::show::whole;
use sidon_traffic::Engine;
use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// The longest wait for a packet, so that signals are seen.
pub(super) const WAIT: Duration = Duration::from_millis(100);
/// Between two status lines.
const SECOND: Duration = Duration::from_secs(1);

/// The state between two beats.
pub(super) struct Beat<'a> {
    args: &'a Args,
    signals: &'a Signals,
    end: Option<Instant>,
    last: Instant,
    seen: u64,
    drawn: bool,
    alarms: u64,
}

impl<'a> Beat<'a> {
    pub(super) fn new(args: &'a Args, signals: &'a Signals) -> Self {
        let now = Instant::now();
        let end = args.duration.and_then(|duration| now.checked_add(duration));
        Beat { args, signals, end, last: now, seen: 0, drawn: false, alarms: 0 }
    }

    /// Looks at signals and clocks; how it ended, if it did. `counts` are those of the source.
    pub(super) fn beat(
        &mut self,
        engine: &mut Engine,
        counts: impl FnOnce() -> Vec<(&'static str, u64)>,
    ) -> anyhow::Result<Option<End>> {
        if self.signals.stop() {
            return Ok(Some(End::Interrupted));
        }
        let now = Instant::now();
        if self.end.is_some_and(|end| now >= end) {
            return Ok(Some(End::Enough));
        }
        if let Some(path) = self.args.known.as_ref().filter(|_| self.signals.reload()) {
            match known::read(path) {
                Ok(addresses) => {
                    let many = addresses.len() as u64;
                    engine.learn(addresses);
                    self.say(&format!("{} known sources read again", whole(many)))?;
                }
                Err(why) => self.say(&format!("still the known sources of before: {why:#}"))?,
            }
        }
        let asked = self.signals.say();
        let took = now - self.last;
        if !asked && took < SECOND {
            return Ok(None);
        }
        // What is late by less than that is not late.
        let late = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        engine.pass(late.saturating_sub(SECOND).as_nanos() as u64);
        engine.note_source(counts());
        let ledger = engine.ledger();
        if asked {
            let counts = |list: &[(&str, u64)]| -> String {
                let each = list.iter().filter(|(_, times)| *times > 0);
                each.map(|(name, times)| format!(", {} {name}", whole(*times))).collect()
            };
            let line = format!(
                "{} seen, {} decoded, {} filtered{}{}",
                whole(ledger.seen),
                whole(ledger.decoded),
                whole(ledger.filtered),
                counts(&ledger.undecoded),
                counts(&ledger.source),
            );
            self.say(&line)?;
        }
        self.status(engine, took)?;
        if took >= SECOND {
            (self.last, self.seen) = (now, engine.ledger().seen);
        }
        Ok(None)
    }

    /// A line to the side of the report.
    fn say(&mut self, line: &str) -> anyhow::Result<()> {
        self.clear()?;
        writeln!(std::io::stderr(), "sidon: {line}")?;
        Ok(())
    }

    fn status(&mut self, engine: &Engine, took: Duration) -> anyhow::Result<()> {
        if self.args.quiet || !std::io::stderr().is_terminal() {
            return Ok(());
        }
        let (alarms, raised) = (engine.alarms().alarms(), engine.alarms().raised().iter().sum());
        // An engine that began anew begins its alarms anew.
        let new = u64::checked_sub(raised, self.alarms).unwrap_or(raised);
        let old = alarms.len().saturating_sub(usize::try_from(new).unwrap_or(usize::MAX));
        for alarm in &alarms[old..] {
            self.say(&format!("ALARM  {}", alarm.text))?;
        }
        self.alarms = raised;
        let ledger = engine.ledger();
        let rate = ledger.seen.saturating_sub(self.seen) as f64 / took.as_secs_f64().max(1e-9);
        let lost = ledger.source.iter().find(|(name, _)| *name == "kernel_dropped");
        let lost = lost.map_or(String::new(), |(_, times)| format!(", {} dropped", whole(*times)));
        self.clear()?;
        let mut error = std::io::stderr().lock();
        write!(
            error,
            "{} packets, {} a second{lost}, {} half open, {} alarms",
            whole(ledger.seen),
            whole(rate as u64),
            whole(engine.connections().half_open()),
            whole(raised),
        )?;
        error.flush()?;
        self.drawn = true;
        Ok(())
    }

    /// Takes the status line away.
    pub(super) fn clear(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.drawn) {
            write!(std::io::stderr(), "\r\x1b[K")?;
        }
        Ok(())
    }
}
