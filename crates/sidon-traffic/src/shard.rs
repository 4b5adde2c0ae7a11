//! One part of every table, with one owner thread at a time.

use crate::{
    Packet,
    audit::{Audit, Twin},
    batch::{self, Batch},
    budget::Budget,
    event::Event,
    monitor::{
        sizes::{self, Sizes},
        sources::Sources,
    },
};
use sidon::{
    Infeasible, Key, Seed,
    count::{Stored, Top, top},
    zone::subnets,
};

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
}

impl Shard {
    /// An empty shard with this number.
    pub fn new(
        number: usize,
        budget: &Budget,
        seed: Seed,
        audit: bool,
        events: bool,
    ) -> Result<Self, Infeasible> {
        Ok(Shard {
            number,
            sizes: Sizes::new(budget, seed)?,
            sources: Sources::new(budget, seed)?,
            twin: audit.then(Twin::default),
            unlearnt: 0,
            events: events.then(Vec::new),
        })
    }

    /// A shard with these tables, which are not updated any more.
    pub(crate) fn of(number: usize, sizes: Sizes, sources: Sources, unlearnt: u64) -> Self {
        Shard { number, sizes, sources, twin: None, unlearnt, events: None }
    }

    /// Whether every key in the tables belongs to this shard.
    pub(crate) fn owns_all(&self, seed: Seed) -> bool {
        fn owns<K: Stored>(number: usize, table: &Top<K, 2>, seed: Seed) -> bool {
            let entries = table.heaviest(usize::MAX).entries;
            entries.iter().all(|entry| batch::shard(entry.key.digest(seed)) == number)
        }
        let (number, sizes) = (self.number, &self.sizes);
        owns(number, &sizes.flows, seed)
            && owns(number, &sizes.hosts, seed)
            && owns(number, &sizes.ports, seed)
            && self.sources.addresses().into_iter().all(|address| {
                let subnet = batch::subnet(&sizes::host(address));
                batch::shard(subnet.digest(seed)) == number
            })
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
    pub fn learn(&mut self, address: std::net::IpAddr) -> bool {
        let learnt = self.sources.learn(address);
        if let Some(twin) = self.twin.as_mut().filter(|_| learnt) {
            twin.learn(address);
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
            twin.add(lane, columns);
        }
    }

    /// Calls `to` with each event since the last call.
    pub fn drain_events(&mut self, mut to: impl FnMut(Event)) {
        if let Some(events) = &mut self.events {
            events.drain(..).for_each(&mut to);
        }
    }

    /// Audits the tables against the twin; `None` without a twin.
    pub fn audit(&self) -> Option<Audit> {
        self.twin.as_ref().map(|twin| twin.audit(&self.sizes, &self.sources))
    }
}
