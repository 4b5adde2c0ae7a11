//! The thread that owns the engine: feeds it, answers questions between packets, and publishes a
//! snapshot once a second.
//!
//! ```text
//! traffic --drive--> engine --report--> snapshot --watch--> any number of readers
//! questions --bounded channel--> answered between packets
//! ```
//! Readers share a snapshot and never wait for the engine. A report takes at most a tenth of the
//! time: if it takes long because the tables are large, it is made less often.

use super::{
    save::Saving,
    snapshot::{Course, Snapshot, Status},
    totals::{Past, Totals},
};
use crate::{
    saved::rotate::{self, Rotation},
    show,
};
use sidon_traffic::{
    Answer, Engine, Question,
    drive::{self, Done, Go, Host, Limits, Moment, Traffic},
    threads::{self, NoThread},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};
use tokio::sync::{oneshot, watch};

/// Questions that may wait.
const WAITING: usize = 64;
/// Time between two reports, at the least.
const EVERY: Duration = Duration::from_secs(1);
/// Reports take at most one part in `PARTS` of the time.
const PARTS: u32 = 10;
/// The longest wait for a question while no packet arrives.
const NAP: Duration = Duration::from_millis(20);

type Asked = (Question, oneshot::Sender<Answer>);

/// The feed as its readers see it.
#[derive(Debug, Clone)]
pub(super) struct Feed {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    questions: mpsc::SyncSender<Asked>,
}

/// The thread.
pub(super) struct Feeding {
    thread: thread::JoinHandle<anyhow::Result<End>>,
    stop: Arc<AtomicBool>,
}

/// The results of the run.
pub(super) struct End {
    pub(super) totals: Totals,
    pub(super) allocated: u64,
    /// The periods that were written, and those that could not be.
    pub(super) rotation: Option<Rotation>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// As many questions as may wait are waiting.
    Busy,
    /// The feed has ended.
    Gone,
}

/// Starts feeding an engine that was started. At most `periods` periods are saved.
pub(super) fn start(
    mut engine: Engine,
    saving: Option<Saving>,
    periods: Option<u64>,
    mut traffic: Box<dyn Traffic + Send>,
) -> Result<(Feed, Feeding), NoThread> {
    let stop = Arc::new(AtomicBool::new(false));
    let (questions, asked) = mpsc::sync_channel(WAITING);
    let mut course = Course::new(traffic.name());
    let past = Past::default();
    let first = course.publish(&mut engine, &past, saving.as_ref(), None);
    let (publish, snapshots) = watch::channel(Arc::new(first));
    let due = Instant::now() + EVERY;
    let stopped = Arc::clone(&stop);
    let mut feeder = Feeder { course, saving, past, asked, publish, due, stopped };
    let thread = threads::spawn("the feeder of the engine", move || {
        let period_ns = feeder.saving.as_ref().map(Saving::period_ns);
        let limits = Limits { period_ns, periods, ..Limits::default() };
        let done = drive::drive(&mut engine, &mut *traffic, limits, &mut feeder)?;
        if let Some(why) = &done.unsaved {
            feeder.warn(&why.to_string());
        }
        if done.joined {
            feeder.warn(&rotate::joined(periods).to_string());
        }
        feeder.after(&mut engine, &*traffic, &done);
        feeder.end(engine, &done)
    })?;
    Ok((Feed { snapshots, questions }, Feeding { thread, stop }))
}

/// The host of the engine's loop.
struct Feeder {
    course: Course,
    saving: Option<Saving>,
    past: Past,
    asked: mpsc::Receiver<Asked>,
    publish: watch::Sender<Arc<Snapshot>>,
    /// When the next snapshot is due.
    due: Instant,
    stopped: Arc<AtomicBool>,
}

impl Feeder {
    /// Waits for a question, then answers all that wait.
    fn answer(&self, engine: &mut Engine, wait: Duration) {
        let first = self.asked.recv_timeout(wait).ok();
        for (question, to) in first.into_iter().chain(self.asked.try_iter()) {
            // A client that no longer waits gets no answer.
            let _ = to.send(engine.answer(&question));
        }
    }

    fn publish(&mut self, engine: &mut Engine, traffic: &dyn Traffic) {
        let begun = Instant::now();
        let Feeder { course, past, saving, .. } = self;
        let snapshot = course.publish(engine, past, saving.as_ref(), traffic.exporters());
        self.publish.send_replace(Arc::new(snapshot));
        self.due = begun + (begun.elapsed() * PARTS).max(EVERY);
    }

    /// After the last packet: publishes the last snapshot, and answers questions until the server
    /// stops.
    fn after(&mut self, engine: &mut Engine, traffic: &dyn Traffic, done: &Done) {
        let why = match &done.end {
            drive::End::Stopped => return,
            drive::End::Over | drive::End::Enough => "the whole capture was read".to_owned(),
            drive::End::Broken(why) => format!("the source failed: {why}"),
        };
        self.course.status = Status::Over(why);
        engine.end();
        self.publish(engine, traffic);
        while !self.stopped.load(Ordering::Relaxed) {
            self.answer(engine, NAP);
        }
    }

    /// Writes the last period, and sums up.
    fn end(self, engine: Engine, done: &Done) -> anyhow::Result<End> {
        let mut snapshot = engine.snapshot();
        if matches!(done.end, drive::End::Broken(_)) {
            snapshot.set_partial();
        }
        let report = snapshot.report();
        let rotation =
            self.saving.map(|saving| saving.end(done.period_ns, &snapshot)).transpose()?;
        Ok(End { totals: self.past.with(&report), allocated: report.allocated, rotation })
    }
}

impl Host for Feeder {
    type Error = anyhow::Error;

    fn look(&mut self, engine: &mut Engine, moment: &Moment<'_>) -> anyhow::Result<Go> {
        if self.stopped.load(Ordering::Relaxed) {
            return Ok(Go::Stop);
        }
        let until_due = self.due.saturating_duration_since(Instant::now());
        self.answer(engine, if moment.idle { NAP.min(until_due) } else { Duration::ZERO });
        if Instant::now() >= self.due {
            self.publish(engine, moment.traffic);
        }
        Ok(Go::On(Duration::ZERO))
    }

    fn begin(&mut self, start_ns: u64) {
        if let Some(saving) = &mut self.saving {
            saving.begin(start_ns);
        }
    }

    fn period(&mut self, start_ns: u64, snapshot: sidon_traffic::Snapshot) -> anyhow::Result<()> {
        if let Some(saving) = &mut self.saving {
            self.past.add(saving.save(start_ns, &snapshot));
        }
        Ok(())
    }

    fn warn(&mut self, why: &str) {
        show::say(why);
    }
}

impl Feed {
    /// The last snapshot, at most about a second old.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    /// Looks up a key in the tables.
    pub(super) async fn ask(&self, question: Question) -> Result<Answer, NoAnswer> {
        let (to, answer) = oneshot::channel();
        self.questions.try_send((question, to)).map_err(|why| match why {
            mpsc::TrySendError::Full(_) => NoAnswer::Busy,
            mpsc::TrySendError::Disconnected(_) => NoAnswer::Gone,
        })?;
        answer.await.map_err(|_| NoAnswer::Gone)
    }
}

impl Feeding {
    /// Stops the thread.
    pub(super) fn stop(self) -> anyhow::Result<End> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the thread that feeds has failed"))?
    }
}
