//! Work, counted in steps and not in seconds, with the limit that follows from the input.
//!
//! Most of the cost of a packet is constant: it is hashed once, and each table reads a few buckets.
//! The rest depends on time and on how full a table is. This rest is counted here, so that tests can
//! check that no input makes it exceed a constant per packet.
//!
//! A frame can also chain headers, and a filter can be long. Each header, each node of a filter and
//! each VLAN tag that a filter skips is one step, see [`steps`].

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Counts one step of a loop over headers, or one node of a filter.
#[inline]
pub(crate) fn step() {
    STEPS.set(STEPS.get().wrapping_add(1));
}

/// Steps of the decoder and of filters in this thread so far. The difference of two calls is the work
/// between them. The decoder reads the most common frames without a loop, which is no step.
pub fn steps() -> u64 {
    STEPS.get()
}

/// One kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// The part of the engine and the unit.
    pub what: &'static str,
    /// The work so far.
    pub done: u64,
    /// The most work that the packets so far may have caused.
    pub most: u64,
}
