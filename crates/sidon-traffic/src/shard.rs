//! One part of every table, with one owner thread at a time.

use crate::{
    Packet,
    audit::{Audit, Twin},
    batch::{self, Batch},
    budget::Budget,
    event::Event,
    monitor::{sizes::Sizes, sources::Sources},
};
use sidon::{
    Infeasible, Key, Seed,
    count::{Stored, Top, top},
    zone::subnets,
};
use std::net::IpAddr;

/// The monitors' tables for the keys of one shard.
#[derive(Debug)]
pub struct Shard {
    number: usize,
    /// Bytes and packets.
    pub sizes: Sizes,
    /// Source addresses.
    pub sources: Sources,
    twin: Option<Twin>,
    /// Known addresses that were added while running and did not fit.
    pub unlearnt: u64,
    /// Events not read yet; `None` if no caller reads events.
    events: Option<Vec<Event>>,
    seed: Seed,
}

impl Shard {
    /// An empty shard with this number.
    pub fn new(
        number: usize,
        budget: &Budget,
        seed: Seed,
        audit: bool,
    ) -> Result<Self, Infeasible> {
        Ok(Shard {
            number,
            sizes: Sizes::new(budget, seed)?,
            sources: Sources::new(budget, seed)?,
            twin: audit.then(Twin::default),
            unlearnt: 0,
            events: None,
            seed,
        })
    }

    /// A shard with these tables, which are not updated any more.
    pub(crate) fn of(number: usize, sizes: Sizes, sources: Sources, unlearnt: u64) -> Self {
        let seed = sources.seed();
        Shard { number, sizes, sources, twin: None, unlearnt, events: None, seed }
    }

    /// Whether every key in the tables belongs to this shard.
    pub(crate) fn owns_all(&self) -> bool {
        fn owns<K: Stored>(shard: &Shard, table: &Top<K, 2>) -> bool {
            table.heaviest(usize::MAX).entries.iter().all(|entry| shard.owns(&entry.key))
        }
        owns(self, &self.sizes.flows)
            && owns(self, &self.sizes.hosts)
            && owns(self, &self.sizes.ports)
            && self.sources.addresses().into_iter().all(|address| self.owns_source(address))
    }

    /// Whether a flow, host or port belongs to this shard.
    pub(crate) fn owns(&self, key: &impl Key) -> bool {
        batch::shard(key.digest(self.seed)) == self.number
    }

    /// Whether a source address belongs to this shard.
    pub(crate) fn owns_source(&self, address: IpAddr) -> bool {
        batch::shard_of_source(address, self.seed) == self.number
    }

    /// The integers that fix the memory of the tables.
    pub(crate) fn shapes(&self) -> ([top::Shape; 3], (subnets::Shape, u64)) {
        let Sizes { flows, hosts, ports, .. } = &self.sizes;
        ([flows.shape(), hosts.shape(), ports.shape()], self.sources.shapes())
    }

    /// The number of the shard.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Adds a source address that was known before the first packet; `false` if the table is full.
    pub fn learn(&mut self, address: IpAddr) -> bool {
        let learnt = self.sources.learn(address);
        if let Some(twin) = &mut self.twin {
            twin.learn(address, learnt);
        }
        learnt
    }

    /// Adds this shard's part of a batch.
    pub fn take(&mut self, batch: &Batch) {
        let lane = &batch.lanes[self.number];
        for &address in &lane.known {
            let learnt = self.learn(address);
            self.unlearnt += u64::from(!learnt);
        }
        let columns = &batch.columns;
        self.sizes.add(lane, columns);
        let Shard { sources, twin, events, .. } = self;
        sources.observe_batch(&lane.sources, columns, |index, new| {
            let packet: &Packet = &batch.packets[usize::from(index)];
            if let Some(twin) = twin {
                twin.source(packet.flow.source(), new);
            }
            if new == Some(true)
                && let Some(events) = events
            {
                events.push(Event::new_source(packet));
            }
        });
        if let Some(twin) = &mut self.twin {
            twin.add(self.number, self.seed, batch);
        }
    }

    /// Records the events of later packets.
    pub(crate) fn record_events(&mut self) {
        self.events.get_or_insert_default();
    }

    /// Calls `to` with each event since the last call.
    pub fn drain_events(&mut self, mut to: impl FnMut(Event)) {
        if let Some(events) = &mut self.events {
            events.drain(..).for_each(&mut to);
        }
    }

    /// Compares the tables, and their lists of the `top` heaviest keys, with the twin; `None`
    /// without a twin.
    pub fn audit(&self, top: usize) -> Option<Audit> {
        self.twin.as_ref().map(|twin| twin.audit(&self.sizes, &self.sources, top))
    }
}
