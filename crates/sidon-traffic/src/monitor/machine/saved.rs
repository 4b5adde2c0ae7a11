//! A machine in a checkpoint: a digest of its definition, its counts and its flows.

use super::{Counts, Runner};
use crate::{
    resume::Resume,
    snapshot::{
        encode::{In, Out},
        parts,
    },
};
use sidon::{Key, Malformed};

impl Runner {
    /// A digest of the whole definition. Two definitions with one digest are equal, except with
    /// probability 2^-64.
    pub(crate) fn definition_digest(&self) -> u64 {
        let definition = &self.rules.definition;
        format!("{definition:?}").digest(self.flows.map().seed()).0
    }
}

impl Resume for Runner {
    fn save(&self, out: &mut Out) {
        out.nested(&parts::machines(std::slice::from_ref(&self.rules.counts)));
        out.numbers(&[self.rules.packets, self.rules.compared]);
        self.flows.save(out);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let [counts] = &parts::read_machines(bytes.nested()?)?[..] else {
            return bytes.wrong("machines");
        };
        bytes.check("names", names(counts).eq(names(&self.rules.counts)))?;
        let Counts { flows, refused, dont_know, .. } = *counts;
        bytes.are_counts("flows", &[flows, refused, dont_know])?;
        for (_, stay) in &counts.states {
            bytes.are_counts("states", &[stay.entered, stay.now, stay.expired])?;
        }
        for (_, times) in &counts.events {
            bytes.are_counts("events", &[*times])?;
        }
        self.rules.counts = counts.clone();
        [self.rules.packets, self.rules.compared] = bytes.counts("packets")?;
        self.flows.resume(bytes)
    }
}

/// The names of a machine, of its states and of its events.
fn names(counts: &Counts) -> impl Iterator<Item = &String> {
    let states = counts.states.iter().map(|(name, _)| name);
    let events = counts.events.iter().map(|(name, _)| name);
    [&counts.name].into_iter().chain(states).chain(events)
}
