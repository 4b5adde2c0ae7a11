//! A flow map in a checkpoint: the map, the times of its timers, its valve and its counts of work.

use super::FlowMap;
use crate::{
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::{Malformed, internals::Moved, state::Fingerprint};

impl FlowMap {
    /// Takes a map from a file. An error if its shape differs.
    pub(crate) fn resume_map(&mut self, map: Fingerprint, bytes: &In<'_>) -> Result<(), Malformed> {
        bytes.check("shape", map.shape() == self.map.shape())?;
        self.restore(map);
        Ok(())
    }

    /// The map alone.
    pub(crate) fn into_map(self) -> Fingerprint {
        self.map
    }

    /// Writes everything except the map.
    pub(crate) fn save_around(&self, out: &mut Out) {
        let FlowMap { map, timers, swept, valve, mistaken, absent, cells_read, packets, .. } = self;
        out.optional(*swept);
        timers.iter().for_each(|timer| out.number(timer.rounds));
        out.expected(*mistaken);
        out.numbers(&[*absent, *cells_read, *packets]);
        let Moved { needed, resolved, cells, looked } = map.searches();
        out.numbers(&[map.search_tokens(), needed, resolved, cells, looked]);
        valve.save(out);
    }

    /// Reads everything except the map, which the caller has restored.
    pub(crate) fn resume_around(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.swept = bytes.optional("swept")?;
        for timer in &mut self.timers {
            timer.rounds = bytes.number()?;
        }
        self.mistaken = bytes.expected("mistaken")?;
        [self.absent, self.cells_read, self.packets] = bytes.counts("packets")?;
        let [tokens, needed, resolved, cells, looked] = bytes.counts("searches")?;
        let moved = Moved { needed, resolved, cells, looked };
        bytes.check("searches", self.map.resume_searches(tokens, moved))?;
        self.valve.resume(bytes)
    }
}

impl Resume for FlowMap {
    fn save(&self, out: &mut Out) {
        out.nested(&self.map.to_bytes());
        self.save_around(out);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let map = Fingerprint::from_bytes(bytes.nested()?.bytes, self.map.seed())?;
        self.resume_map(map, bytes)?;
        self.resume_around(bytes)
    }
}
