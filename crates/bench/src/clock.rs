//! Time an operation takes.

use std::time::Instant;

/// The nanoseconds an operation takes if `work` does `operations` of them.
pub(crate) fn ns_each(operations: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / operations as f64
}
