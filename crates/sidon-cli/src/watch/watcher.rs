//! Work of `watch` between packets: signals, progress, a status line, files of periods.

use super::{Args, events::Events, evidence::Evidence, known};
use crate::{
    saved::rotate::Rotation,
    show::{self, whole},
    signals::Signals,
};
use indicatif::ProgressBar;
use sidon_traffic::{
    Engine, Snapshot,
    drive::{Go, Host, Moment},
};
use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

/// The longest wait for a packet, so that signals are seen.
const WAIT: Duration = Duration::from_millis(100);
/// The time between two status lines.
const SECOND: Duration = Duration::from_secs(1);

/// State of the run between two calls of `look`.
pub(super) struct Watcher<'a> {
    args: &'a Args,
    signals: Signals,
    pub(super) rotation: Option<Rotation>,
    /// Whether a signal ended the run.
    pub(super) interrupted: bool,
    bar: ProgressBar,
    start: Instant,
    /// When `--duration` is over.
    until: Option<Instant>,
    /// When the last status line was drawn, and the packets until then.
    last: (Instant, u64),
    drawn: bool,
    alarms: u64,
    events: Option<Events>,
    pub(super) evidence: Option<Evidence>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(
        args: &'a Args,
        signals: Signals,
        rotation: Option<Rotation>,
        events: Option<Events>,
        evidence: Option<Evidence>,
    ) -> Self {
        let now = Instant::now();
        Watcher {
            args,
            signals,
            rotation,
            interrupted: false,
            bar: ProgressBar::hidden(),
            start: now,
            until: args.duration.and_then(|duration| now.checked_add(duration)),
            last: (now, 0),
            drawn: false,
            alarms: 0,
            events,
            evidence,
        }
    }

    /// Removes the progress bar and the status line.
    pub(super) fn clear(&mut self) {
        self.bar.finish_and_clear();
        self.erase();
    }

    /// Removes the status line. A closed standard error does not end the run.
    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    /// Prints a line to standard error.
    fn say(&mut self, line: &str) {
        self.erase();
        show::say(line);
    }

    /// Shows how much of a file has been read.
    fn progress(&mut self, [taken, size]: [u64; 2], seen: u64) {
        if self.bar.length().is_none() {
            self.bar = show::progress(size);
        }
        let rate = seen as f64 / self.start.elapsed().as_secs_f64().max(1e-9) / 1e6;
        self.bar.set_position(taken);
        self.bar.set_message(format!("{rate:.1} M packets/s"));
    }

    /// Reads the known sources again. If that fails, those read before stay.
    fn reload(&mut self, engine: &mut Engine) {
        let Some(path) = &self.args.known else { return };
        // The engine learns only from a file that is right to its end.
        match known::check(path).and_then(|()| known::learn(engine, path)) {
            Ok(many) => self.say(&format!("read {} known sources again", whole(many))),
            Err(why) => self.say(&format!("the known sources stay as they were: {why:#}")),
        }
    }

    fn counters(&mut self, engine: &Engine) {
        let ledger = engine.ledger();
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
        self.say(&line);
    }

    fn status(&mut self, engine: &Engine, seen: u64, took: Duration) {
        if self.args.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let raised = engine.alarms().raised().iter().sum();
        // After a period, the engine counts its alarms from zero.
        let new = u64::checked_sub(raised, self.alarms).unwrap_or(raised);
        let new = usize::try_from(new).unwrap_or(usize::MAX);
        let alarms: Vec<_> = engine.alarms().incidents().rev().take(new).collect();
        for alarm in alarms.into_iter().rev() {
            self.say(&format!("ALARM  {}", show::printable(&alarm.text)));
        }
        self.alarms = raised;
        let rate = seen.saturating_sub(self.last.1) as f64 / took.as_secs_f64().max(1e-9);
        let lost = engine.ledger().source.iter().find(|(name, _)| *name == "kernel_dropped");
        let lost = lost.map_or(String::new(), |(_, times)| format!(", {} dropped", whole(*times)));
        let mut error = std::io::stderr().lock();
        let _ = write!(
            error,
            "\r\x1b[K{} packets, {} a second{lost}, {} half open, {} alarms",
            whole(seen),
            whole(rate as u64),
            whole(engine.connections().half_open()),
            whole(raised),
        );
        let _ = error.flush();
        self.drawn = true;
    }
}

impl Host for Watcher<'_> {
    type Error = anyhow::Error;

    fn look(&mut self, engine: &mut Engine, moment: &Moment<'_>) -> anyhow::Result<Go> {
        if self.signals.stop() {
            self.interrupted = true;
            return Ok(Go::Stop);
        }
        let now = Instant::now();
        if self.until.is_some_and(|until| now >= until) {
            return Ok(Go::Stop);
        }
        if let Some(progress) = moment.traffic.progress().filter(|_| !self.args.quiet) {
            self.progress(progress, moment.seen);
        }
        if let Some(why) = self.events.as_ref().and_then(Events::flush) {
            self.say(&why);
        }
        if let (Some(evidence), Some(recorder)) = (&mut self.evidence, engine.recorder())
            && let Some(why) = evidence.look(recorder)
        {
            self.say(&why);
        }
        if self.signals.reload() {
            self.reload(engine);
        }
        if self.signals.say() {
            self.counters(engine);
        }
        let took = now - self.last.0;
        // Standard input has no size, so it has a line of counts instead of a bar.
        if moment.traffic.progress().is_none() && took >= SECOND {
            self.status(engine, moment.seen, took);
            self.last = (now, moment.seen);
        }
        Ok(Go::On(WAIT))
    }

    fn period(&mut self, start_ns: u64, snapshot: Snapshot) -> anyhow::Result<()> {
        if let Some(rotation) = &mut self.rotation
            && let Err(why) = rotation.save(start_ns, &snapshot).saved
            && rotation.failed == 1
        {
            self.say(&format!("a period is lost: {why:#}; the run goes on"));
        }
        Ok(())
    }

    fn warn(&mut self, why: &str) {
        self.say(why);
    }
}
