//! Work, counted in steps and not in seconds, with the limit that follows from the input.
//!
//! Most of the cost of a packet is constant: it is hashed once, and each table reads a few buckets.
//! The rest depends on time and on how full a table is. This rest is counted here, so that tests can
//! check that no input makes it exceed a constant per packet.

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
