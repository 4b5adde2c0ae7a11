//! The thread that owns the engine: feeds it, answers questions between steps, and publishes what
//! it knows once a second.
//!
//! ```text
//! traffic --step--> engine --report--> snapshot --watch--> any number of readers
//! questions --bounded channel--> answered between two steps
//! ```
//! Readers share a snapshot and never wait for the engine. Between two packets of different periods
//! the first period goes to its file, if there are files. A report takes no more than a tenth of
//! the time: with tables so large that it takes longer, it is made less often.

use super::{
    intake::Intake,
    snapshot::{Course, Snapshot, Status},
    totals::Totals,
    traffic::{Next, Traffic},
};
use sidon_traffic::{Answer, Engine, Question};
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
/// A report takes one part of so many of the time, at the most.
const PARTS: u32 = 10;
/// The longest sleep: after it the thread sees that it is to stop.
const SLEEP: Duration = Duration::from_millis(100);

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

/// What there is to say at the end.
pub(super) struct End {
    pub(super) totals: Totals,
    pub(super) allocated: u64,
    /// Files written, if any are.
    pub(super) files: Option<u64>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// As many questions as may wait are waiting.
    Busy,
    /// The feed has ended.
    Gone,
}

/// Starts feeding the engine.
pub(super) fn start(mut intake: Intake, mut traffic: Box<dyn Traffic>) -> (Feed, Feeding) {
    let stop = Arc::new(AtomicBool::new(false));
    let (questions, asked) = mpsc::sync_channel(WAITING);
    let mut course = Course::new(traffic.name());
    let first = course.publish(&mut intake, None);
    let (publish, snapshots) = watch::channel(Arc::new(first));
    let stopped = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        let (mut due, mut broken) = (Instant::now() + EVERY, false);
        while !stopped.load(Ordering::Relaxed) {
            let next = match course.status {
                Status::Running => traffic.step(&mut intake),
                Status::Over(_) => Next::Wait(SLEEP),
            };
            answer(&mut intake.engine, &asked);
            match next {
                Next::More => {}
                Next::Wait(time) => {
                    // Whoever asks while nothing comes is answered at once.
                    let time = time.min(due.saturating_duration_since(Instant::now())).min(SLEEP);
                    if let Ok((question, to)) = asked.recv_timeout(time) {
                        let _ = to.send(intake.engine.answer(&question));
                    }
                }
                Next::Over(ref why) | Next::Broken(ref why) => {
                    broken = matches!(next, Next::Broken(_));
                    intake.engine.end();
                    course.status = Status::Over(why.clone());
                    due = Instant::now();
                }
            }
            if Instant::now() >= due {
                let begun = Instant::now();
                let snapshot = course.publish(&mut intake, traffic.exporters());
                publish.send_replace(Arc::new(snapshot));
                let rest = (begun.elapsed() * PARTS).max(EVERY);
                // Nothing changes any more when the packets are over.
                due = match course.status {
                    Status::Running => begun + rest,
                    Status::Over(_) => begun + Duration::from_secs(365 * 24 * 3600),
                };
            }
        }
        end(intake, broken)
    });
    (Feed { snapshots, questions }, Feeding { thread, stop })
}

/// The last period goes to its file, and everything is summed up.
fn end(intake: Intake, broken: bool) -> anyhow::Result<End> {
    let Intake { engine, saving, past } = intake;
    let mut snapshot = engine.snapshot();
    if broken {
        snapshot.set_partial();
    }
    let report = snapshot.report();
    let files = saving.map(|saving| saving.end(&snapshot)).transpose()?;
    Ok(End { totals: past.with(&report), allocated: report.allocated, files })
}

fn answer(engine: &mut Engine, asked: &mpsc::Receiver<Asked>) {
    while let Ok((question, to)) = asked.try_recv() {
        // Who no longer waits is not told.
        let _ = to.send(engine.answer(&question));
    }
}

impl Feed {
    /// What was known a second ago at the most.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    /// What is known of a key now.
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
