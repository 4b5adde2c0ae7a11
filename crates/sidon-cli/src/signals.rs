//! Signals to a running program: end with a report, print the counters, read the known sources.

use crate::args::thread_refusal;
use sidon_traffic::threads;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ},
    flag,
};
use std::{
    ffi::c_int,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// How long after the first signal a second one is the same wish to end: some programs, such as
/// `timeout`, send a signal twice.
const SAME: Duration = Duration::from_secs(1);
/// How often a thread looks whether the first signal has arrived.
const LOOK: Duration = Duration::from_millis(200);

/// Whether SIGHUP ends a run: unless it was ignored at the start, as by `nohup`.
static HANGUP_ENDS: AtomicBool = AtomicBool::new(false);

/// Prepares for signals. Call this at the start: a confined process cannot read the list of ignored
/// signals.
pub(crate) fn prepare() {
    survive_file_size_limit();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let ends = ignored.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 0);
    HANGUP_ENDS.store(ends, Ordering::Relaxed);
}

/// Whether SIGHUP, which a terminal sends when it closes, ends a run as SIGTERM does.
pub(crate) fn hangup_ends() -> bool {
    HANGUP_ENDS.load(Ordering::Relaxed)
}

/// Turns SIGXFSZ into an error of the write that exceeds the file-size limit. Without this, the signal
/// ends the process.
fn survive_file_size_limit() {
    // The flag is not read: the write itself fails with EFBIG. An error here leaves the signal as it is.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Signals that arrived and were not yet handled.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    say: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

impl Signals {
    /// Handles SIGINT, SIGTERM and SIGHUP: the first ends the run with a report. A second one exits at
    /// once if it comes more than [`SAME`] after the first. Call this after the process has confined
    /// itself, because it starts a thread.
    pub(crate) fn stopping() -> anyhow::Result<Self> {
        let hangup = hangup_ends().then_some(SIGHUP);
        Self::ending([SIGINT, SIGTERM].into_iter().chain(hangup))
    }

    fn ending(all: impl IntoIterator<Item = c_int>) -> anyhow::Result<Self> {
        let signals = Signals::default();
        let armed = Arc::new(AtomicBool::new(false));
        for signal in all {
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&armed))?;
            flag::register(signal, Arc::clone(&signals.stop))?;
        }
        let stop = Arc::clone(&signals.stop);
        let waiting = move || {
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(LOOK);
            }
            thread::sleep(SAME);
            armed.store(true, Ordering::Relaxed);
        };
        threads::spawn("signals", waiting).map_err(thread_refusal)?;
        Ok(signals)
    }

    /// Handles SIGINT and SIGTERM as [`stopping`](Self::stopping) does, SIGUSR1, which prints the
    /// counters, and SIGHUP, which reads the known sources.
    pub(crate) fn all() -> anyhow::Result<Self> {
        let signals = Self::ending([SIGINT, SIGTERM])?;
        flag::register(SIGUSR1, Arc::clone(&signals.say))?;
        flag::register(SIGHUP, Arc::clone(&signals.reload))?;
        Ok(signals)
    }

    /// Whether SIGINT or SIGTERM arrived.
    pub(crate) fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether SIGUSR1 arrived since the last call.
    pub(crate) fn say(&self) -> bool {
        self.say.swap(false, Ordering::Relaxed)
    }

    /// Whether SIGHUP arrived since the last call.
    pub(crate) fn reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }
}
