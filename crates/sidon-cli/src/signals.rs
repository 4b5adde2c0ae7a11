//! Signals to a running program: end with a report, print the counters, read the known sources.

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

/// Signals that arrived and were not yet handled.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    say: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

impl Signals {
    /// Handles SIGINT and SIGTERM: the first ends the run with a report, a second one exits at once.
    pub(crate) fn stopping() -> io::Result<Self> {
        let signals = Signals::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&signals.stop))?;
            flag::register(signal, Arc::clone(&signals.stop))?;
        }
        Ok(signals)
    }

    /// Also handles SIGUSR1, which prints the counters, and SIGHUP, which reads the known sources.
    pub(crate) fn all() -> io::Result<Self> {
        let signals = Self::stopping()?;
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
