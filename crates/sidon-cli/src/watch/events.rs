//! `--events`: incidents and new sources as lines of JSON, while packets arrive.
//!
//! `--event-kinds` selects kinds, and `--event-rate` limits the lines per second of packet time. Further
//! events of a second are dropped and counted: the next line has their number, and so has the last one.
//!
//! A line that cannot be written is counted as lost. The file then ends with the last whole line, and
//! the next lines are tried again: a full disk may get room. The first error is printed at once, and
//! the number of lost lines at the end.

use anyhow::{Context, bail};
use serde_json::json;
use sidon_traffic::{
    Event,
    engine::Sink,
    event::NEW_SOURCE,
    files::{Disk, Output},
    monitor::incidents::KINDS,
    text, time,
};
use std::{
    fs::File,
    io::{self, ErrorKind, Write},
    os::fd::AsFd,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Bytes that are collected before they are written.
const BUFFER: usize = 1 << 16;

/// The kinds of events.
fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().chain([NEW_SOURCE])
}

/// A kind of `--event-kinds`.
pub(super) fn kind(text: &str) -> Result<&'static str, String> {
    kinds()
        .find(|kind| *kind == text)
        .ok_or_else(|| format!("expected kinds of {}", kinds().collect::<Vec<_>>().join(", ")))
}

/// The output of events, which the engine and the loop around it share.
#[derive(Clone)]
pub(super) struct Events(Arc<Mutex<Lines>>);

impl Events {
    /// Opens the file, whose earlier lines stay; `-` is standard output.
    pub(super) fn open(disk: &dyn Disk, path: &Path) -> anyhow::Result<Self> {
        let name = text::path(path);
        let place = || format!("cannot write the events {name}");
        if path.as_os_str() == "-" {
            // The handle of the standard library has a buffer, which would keep lines that failed.
            let stdout = io::stdout().as_fd().try_clone_to_owned().with_context(place)?;
            return Ok(Events::of(Box::new(Stdout(stdout.into())), None));
        }
        let output = disk.stream(path).with_context(place)?;
        Ok(Events::of(output, Some(name)))
    }

    fn of(output: Box<dyn Output>, name: Option<String>) -> Self {
        let lines = Lines {
            output,
            name,
            buffer: Vec::new(),
            waiting: 0,
            length: 0,
            lost: 0,
            why: None,
            unsaid: false,
            kinds: Vec::new(),
            rate: u64::MAX,
            second: 0,
            taken: 0,
            dropped: 0,
        };
        Events(Arc::new(Mutex::new(lines)))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Selects these kinds, or all if there are none, and at most `rate` lines per second.
    pub(super) fn select(&self, kinds: &[&'static str], rate: Option<u64>) {
        let mut lines = self.lines();
        (lines.kinds, lines.rate) = (kinds.to_vec(), rate.unwrap_or(u64::MAX));
    }

    /// The receiver of the engine's events.
    pub(super) fn sink(&self) -> Sink {
        let own = self.clone();
        Box::new(move |event| own.lines().take(&event))
    }

    /// Writes the lines that wait. Returns the first error of the run, once.
    pub(super) fn flush(&self) -> Option<String> {
        let mut lines = self.lines();
        lines.write();
        if !std::mem::take(&mut lines.unsaid) {
            return None;
        }
        lines.why.as_ref().map(|why| format!("{}; the run goes on", lines.error(why)))
    }

    /// Writes the rest. An error if an event was lost.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        let mut lines = self.lines();
        lines.tell_dropped();
        lines.write();
        if lines.lost == 0 && lines.name.is_some() {
            lines.settle();
        }
        let lost = match lines.lost {
            0 => String::new(),
            1 => "; 1 event is lost".to_owned(),
            lost => format!("; {} events are lost", crate::show::whole(lost)),
        };
        match &lines.why {
            None => Ok(()),
            Some(why) => bail!("{}{lost}", lines.error(why)),
        }
    }

    /// The number of lost events.
    #[cfg(test)]
    pub(super) fn lost(&self) -> u64 {
        self.lines().lost
    }

    /// Whether nothing failed, except that the reader of standard output closed it.
    pub(super) fn is_only_closed(&self) -> bool {
        let lines = self.lines();
        lines.name.is_none()
            && lines.why.as_ref().is_some_and(|why| why.kind() == ErrorKind::BrokenPipe)
    }
}

struct Lines {
    output: Box<dyn Output>,
    /// The name of the file; none for standard output.
    name: Option<String>,
    buffer: Vec<u8>,
    /// Lines in the buffer.
    waiting: u64,
    /// Bytes of the whole lines that were written.
    length: u64,
    /// Lines that could not be written.
    lost: u64,
    /// The first error.
    why: Option<io::Error>,
    /// Whether that error was not yet printed.
    unsaid: bool,
    /// The selected kinds; empty means all.
    kinds: Vec<&'static str>,
    /// The most lines per second.
    rate: u64,
    /// The second of packet time that `taken` and `dropped` count.
    second: u64,
    taken: u64,
    dropped: u64,
}

impl Lines {
    fn error(&self, why: &io::Error) -> String {
        match &self.name {
            Some(name) => format!("cannot write the events {name}: {why}"),
            None => format!("cannot write events to standard output: {why}"),
        }
    }

    /// Adds the line of an event, unless its kind is not selected or its second has enough lines.
    fn take(&mut self, event: &Event) {
        if !self.kinds.is_empty() && !self.kinds.contains(&event.kind()) {
            return;
        }
        let second = event.time_ns() / 1_000_000_000;
        if second > self.second {
            self.tell_dropped();
            (self.second, self.taken) = (second, 0);
        }
        if self.taken >= self.rate {
            self.dropped += 1;
            return;
        }
        self.taken += 1;
        self.add(&text::json(&event.to_json().to_string()));
    }

    /// Adds a line with the number of events that were dropped since the last one, if there are any.
    fn tell_dropped(&mut self) {
        let events = std::mem::take(&mut self.dropped);
        if events > 0 {
            let line = json!({
                "timestamp": time::iso8601(self.second.saturating_mul(1_000_000_000)),
                "event_type": "dropped",
                "dropped": { "events": events },
            });
            self.add(&line.to_string());
        }
    }

    fn add(&mut self, line: &str) {
        self.buffer.extend(line.as_bytes());
        self.buffer.push(b'\n');
        self.waiting += 1;
        if self.buffer.len() >= BUFFER {
            self.write();
        }
    }

    /// Writes the buffer. It is empty afterwards.
    fn write(&mut self) {
        let (mut written, mut done) = (0, Ok(()));
        while written < self.buffer.len() && done.is_ok() {
            match self.output.write(&self.buffer[written..]) {
                Ok(0) => done = Err(ErrorKind::WriteZero.into()),
                Ok(length) => written += length,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => done = Err(why),
            }
        }
        let newline = |&byte: &u8| byte == b'\n';
        let whole = self.buffer[..written].iter().rposition(newline).map_or(0, |last| last + 1);
        let lines = self.buffer[..whole].iter().filter(|byte| newline(byte)).count() as u64;
        self.length += whole as u64;
        if let Err(why) = done {
            self.lost += self.waiting - lines;
            // A pipe or a device cannot be cut.
            let _ = self.output.cut(self.length);
            self.fail(why);
        }
        self.buffer.clear();
        self.waiting = 0;
    }

    /// Makes the lines durable.
    fn settle(&mut self) {
        match self.output.sync() {
            // Pipes and devices have no disk behind them.
            Err(why) if why.kind() != ErrorKind::InvalidInput => self.fail(why),
            _ => {}
        }
    }

    fn fail(&mut self, why: io::Error) {
        if self.why.is_none() {
            (self.why, self.unsaid) = (Some(why), true);
        }
    }
}

/// Standard output without a buffer.
struct Stdout(File);

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Stdout {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}
