//! Connections in a checkpoint: the counts as they are kept, all of the flow map but its map, and the
//! directions that are missing. A snapshot holds the map, and the counts as a report shows them.

use super::Connections;
use crate::{
    resume::Resume,
    snapshot::{
        encode::{In, Out},
        parts,
    },
};
use sidon::Malformed;

impl Connections {
    /// Takes the map of connections read from a snapshot.
    pub(crate) fn resume_map(
        &mut self,
        read: Connections,
        bytes: &In<'_>,
    ) -> Result<(), Malformed> {
        self.flows.resume_map(read.flows.into_map(), bytes)
    }
}

impl Resume for Connections {
    fn save(&self, out: &mut Out) {
        out.nested(&parts::states(&self.rules.counts));
        self.flows.save_around(out);
        self.directions.save(out);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.rules.counts = parts::read_states(bytes.nested()?)?;
        let peak = self.rules.counts.peak_half_open;
        // Counts the half-open and open connections of the map. While sampling, their number may be
        // above the estimates that gave the peak.
        self.recount();
        self.rules.counts.peak_half_open = peak;
        self.flows.resume_around(bytes)?;
        self.directions.resume(bytes)
    }
}
