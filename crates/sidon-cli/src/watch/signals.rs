//! What can be asked of a program that runs: to report and end, to say where it stands, to read
//! its files again.

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1},
    flag,
};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Signals that came and were not looked at yet.
#[derive(Debug, Default)]
pub(super) struct Signals {
    stop: Arc<AtomicBool>,
    say: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

impl Signals {
    /// SIGINT and SIGTERM ask for the report, and a second one ends the program at once.
    pub(super) fn stopping() -> io::Result<Self> {
        let signals = Signals::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&signals.stop))?;
            flag::register(signal, Arc::clone(&signals.stop))?;
        }
        Ok(signals)
    }

    /// The same; SIGUSR1 asks for the counters, SIGHUP to read the known sources again.
    pub(super) fn all() -> io::Result<Self> {
        let signals = Self::stopping()?;
        flag::register(SIGUSR1, Arc::clone(&signals.say))?;
        flag::register(SIGHUP, Arc::clone(&signals.reload))?;
        Ok(signals)
    }

    /// Whether the end was asked for.
    pub(super) fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the counters were asked for since the last call.
    pub(super) fn say(&self) -> bool {
        self.say.swap(false, Ordering::Relaxed)
    }

    /// Whether another look at the files was asked for since the last call.
    pub(super) fn reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }
}
