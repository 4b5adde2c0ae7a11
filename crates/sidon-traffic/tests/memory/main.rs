//! Tests that measure memory: malformed input, reports, floods. They have a separate binary, because
//! other tests would disturb the figures. One test runs at a time.

mod hostile;
mod overload;
mod reports;

use peak_alloc::PeakAlloc;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

static ONE: Mutex<()> = Mutex::new(());

/// Waits until no other test of this binary runs.
fn alone() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A figure of the process in bytes, where the system reports it: `VmRSS`, `VmHWM`.
fn process(figure: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
