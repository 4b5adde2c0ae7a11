//! The settings of an engine: plain data.

use crate::{
    budget::SHARDS,
    monitor::{machine::Definition, subnet::Network},
    thresholds::Thresholds,
};
use sidon::Seed;
use std::sync::Arc;

/// The settings of an engine.
#[derive(Clone)]
pub struct Settings {
    /// Bytes for all tables of all monitors.
    pub memory: u64,
    /// Threads that own shards, 1 to [`SHARDS`]; with 1 the feeding thread owns all.
    pub threads: usize,
    /// The secret of every table.
    pub seed: Seed,
    /// Whether exact references run beside the monitors.
    pub audit: bool,
    /// Subnets whose hosts are counted exactly.
    pub subnets: Vec<Network>,
    /// State machines that users define, up to [`MACHINES_MAX`](crate::budget::MACHINES_MAX).
    pub machines: Vec<Arc<Definition>>,
    /// The least evidence of incidents, allowed subjects and names of networks.
    pub thresholds: Arc<Thresholds>,
    /// Length of the top lists in the report.
    pub top: usize,
}

impl Settings {
    /// 16 MiB, one thread, top lists of ten, everything else off.
    pub fn new(seed: Seed) -> Self {
        Settings {
            memory: 16 << 20,
            threads: 1,
            seed,
            audit: false,
            subnets: Vec::new(),
            machines: Vec::new(),
            thresholds: Arc::default(),
            top: 10,
        }
    }

    /// The number of worker threads; 0 if the feeding thread owns the shards.
    pub(super) fn workers(&self) -> usize {
        match self.threads.clamp(1, SHARDS) {
            1 => 0,
            threads => threads,
        }
    }
}
