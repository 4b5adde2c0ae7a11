//! The thread that owns the engine: feeds it, answers questions between steps, and publishes what
//! it knows once a second.
//!
//! ```text
//! traffic --step--> engine --report--> snapshot --watch--> any number of readers
//! questions --bounded channel--> answered between two steps
//! ```
//! Readers share a snapshot and never wait for the engine. A report takes no more than a tenth of
//! the time: with tables so large that it takes longer, it is made less often.

use super::{
    snapshot::{Course, Snapshot, Status},
    traffic::{Next, Traffic},
};
use sidon_traffic::{Answer, Engine, Question, Report};
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
    thread: thread::JoinHandle<Report>,
    stop: Arc<AtomicBool>,
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
pub(super) fn start(mut engine: Engine, mut traffic: Box<dyn Traffic>) -> (Feed, Feeding) {
    let stop = Arc::new(AtomicBool::new(false));
    let (questions, asked) = mpsc::sync_channel(WAITING);
    let mut course = Course::new(traffic.name());
    let (publish, snapshots) =
        watch::channel(Arc::new(course.publish(engine.report(), Duration::ZERO, None)));
    let stopped = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        let mut due = Instant::now() + EVERY;
        while !stopped.load(Ordering::Relaxed) {
            let next = match course.status {
                Status::Running => traffic.step(&mut engine),
                Status::Over(_) => Next::Wait(SLEEP),
            };
            answer(&mut engine, &asked);
            match next {
                Next::More => {}
                Next::Wait(time) => {
                    // Whoever asks while nothing comes is answered at once.
                    let time = time.min(due.saturating_duration_since(Instant::now())).min(SLEEP);
                    if let Ok((question, to)) = asked.recv_timeout(time) {
                        let _ = to.send(engine.answer(&question));
                    }
                }
                Next::Over(why) => {
                    engine.end();
                    course.status = Status::Over(why);
                    due = Instant::now();
                }
            }
            if Instant::now() >= due {
                let begun = Instant::now();
                let report = engine.report();
                let snapshot = course.publish(report, begun.elapsed(), traffic.exporters());
                publish.send_replace(Arc::new(snapshot));
                let rest = (begun.elapsed() * PARTS).max(EVERY);
                // Nothing changes any more when the packets are over.
                due = match course.status {
                    Status::Running => begun + rest,
                    Status::Over(_) => begun + Duration::from_secs(365 * 24 * 3600),
                };
            }
        }
        engine.finish().0
    });
    (Feed { snapshots, questions }, Feeding { thread, stop })
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
    /// Stops the thread, and gives the report on everything.
    pub(super) fn stop(self) -> anyhow::Result<Report> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the thread that feeds has failed"))
    }
}
