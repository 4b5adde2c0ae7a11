//! Threads that the system may refuse: a limit of memory or of threads is an error, not a panic.

use std::{fmt, io, sync::mpsc, thread};

/// A thread that the system refused to start.
#[derive(Debug)]
pub struct NoThread {
    /// What the thread was for.
    pub name: &'static str,
    /// The answer of the system.
    pub why: io::Error,
}

impl fmt::Display for NoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the system refused a thread ({}): {}", self.name, self.why)
    }
}

impl std::error::Error for NoThread {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// Starts a thread. `name` says what it is for.
pub fn spawn<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<thread::JoinHandle<T>, NoThread> {
    // The kernel keeps 15 bytes of a name, which `ps -T` shows.
    let builder = thread::Builder::new().name(format!("sidon {}", &name[..name.len().min(9)]));
    builder.spawn(work).map_err(|why| NoThread { name, why })
}

/// Starts this number of threads at once and ends them: an error if the system refuses one. For
/// libraries that panic without a thread.
pub fn probe(name: &'static str, threads: usize) -> Result<(), NoThread> {
    let mut started = Vec::new();
    for _ in 0..threads {
        let (end, ended) = mpsc::channel::<()>();
        let thread = spawn(name, move || ended.recv().is_ok())?;
        started.push((end, thread));
    }
    for (end, thread) in started {
        drop(end);
        let _ = thread.join();
    }
    Ok(())
}
