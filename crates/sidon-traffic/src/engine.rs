//! Packets in, tables filled, a report out.
//!
//! ```text
//! frames -> filter -> decode -> batch of 512 -> hashed, sorted to lanes -> shards
//!                 \-> ledger                                            (one thread or many)
//! ```
//! The thread that feeds the engine filters, decodes and hashes, and keeps the states of
//! connections; the shards are its own or belong to workers. Every shard sees its keys in the order of the packets, so that answers are the same
//! for any number of threads. All memory is there before the first packet.

use crate::{
    Decoder, Filter, Frame, Packet, Verdict,
    batch::{self, Batch},
    budget::{Budget, SHARDS},
    event::Event,
    export::Record,
    ledger::Ledger,
    monitor::{alarms::Alarms, connections::Connections, sizes, subnet::Watched},
    report::{self, Report},
    shard::Shard,
};
use sidon::{Infeasible, Key, Seed};
use std::{
    net::IpAddr,
    sync::{Arc, Mutex, mpsc},
    thread,
};

/// Where events go.
pub type Sink = Arc<Mutex<dyn FnMut(Event) + Send>>;

/// What an engine is to be like.
#[derive(Clone)]
pub struct Settings {
    /// Bytes for all tables of all monitors.
    pub memory: u64,
    /// Threads that own shards, 1 to [`SHARDS`]; with 1 the feeding thread owns all.
    pub threads: usize,
    /// The secret of every table.
    pub seed: Seed,
    /// Whether exact twins run beside the monitors.
    pub audit: bool,
    /// Where events go, if anywhere.
    pub events: Option<Sink>,
    /// Subnets whose hosts are counted exactly.
    pub subnets: Vec<Watched>,
    /// How many of the heaviest are reported.
    pub top: usize,
}

impl Settings {
    /// 16 MiB, one thread, the ten heaviest, nothing else.
    pub fn new(seed: Seed) -> Self {
        let memory = 16 << 20;
        let subnets = Vec::new();
        Settings { memory, threads: 1, seed, audit: false, events: None, subnets, top: 10 }
    }
}

/// The monitors at work.
pub struct Engine {
    settings: Settings,
    budget: Budget,
    ledger: Ledger,
    filter: Filter,
    decoder: Decoder,
    crew: Crew,
    connections: Connections,
    alarms: Alarms,
    first_ns: Option<u64>,
    last_ns: u64,
    last_packet: Option<Packet>,
}

/// Who owns the shards.
enum Crew {
    Alone { shards: Vec<Shard>, batch: Box<Batch> },
    Many { workers: Vec<Worker>, ring: Vec<Arc<Batch>>, next: usize },
}

struct Worker {
    batches: mpsc::SyncSender<Arc<Batch>>,
    thread: thread::JoinHandle<Vec<Shard>>,
}

/// Batches that a worker may be behind.
const QUEUE: usize = 2;
/// Batches under way: those in the queues, one in work, one being filled.
const RING: usize = QUEUE + 2;

impl Engine {
    /// An engine with all its memory.
    pub fn new(settings: Settings, filter: Filter, decoder: Decoder) -> Result<Self, Infeasible> {
        let budget = Budget::of(settings.memory)?;
        let Settings { seed, audit, .. } = settings;
        let events = settings.events.is_some();
        let shards = (0..SHARDS).map(|number| Shard::new(number, &budget, seed, audit, events));
        let shards: Vec<_> = shards.collect::<Result<_, _>>()?;
        let connections = Connections::new(budget.connections, seed, audit)?;
        Ok(Engine {
            connections,
            alarms: Alarms::new(budget.alarms, seed)?,
            crew: Crew::Alone { shards, batch: Box::default() },
            settings,
            budget,
            ledger: Ledger::default(),
            filter,
            decoder,
            first_ns: None,
            last_ns: 0,
            last_packet: None,
        })
    }

    /// Takes in source addresses that are not new from here on, and says how many there was no room
    /// for. Workers learn them with their next batch, and the ledger says at the end what they
    /// refused.
    pub fn learn(&mut self, addresses: impl IntoIterator<Item = IpAddr>) -> u64 {
        let seed = self.settings.seed;
        // What came before does not know them.
        self.flush();
        let Crew::Alone { shards, .. } = &mut self.crew else {
            for address in addresses {
                let subnet = batch::subnet(&sizes::host(address));
                let lane = &mut self.filling().lanes[batch::shard(subnet.digest(seed))];
                lane.known.push(address);
                if lane.known.len() >= batch::PACKETS {
                    self.flush();
                }
            }
            return 0;
        };
        let mut refused = 0;
        for address in addresses {
            let subnet = batch::subnet(&sizes::host(address));
            let shard = batch::shard(subnet.digest(self.settings.seed));
            refused += u64::from(!shards[shard].learn(address));
        }
        self.ledger.refused("known_sources", refused);
        refused
    }

    /// Hands the shards to threads, as many as the settings say.
    pub fn start(&mut self) {
        let threads = self.settings.threads.clamp(1, SHARDS);
        let Crew::Alone { shards, .. } = &mut self.crew else { return };
        if threads == 1 {
            return;
        }
        let mut parts: Vec<Vec<Shard>> = (0..threads).map(|_| Vec::new()).collect();
        for (number, shard) in shards.drain(..).enumerate() {
            parts[number % threads].push(shard);
        }
        let sink = &self.settings.events;
        let workers = parts.into_iter().map(|shards| Worker::start(shards, sink.clone())).collect();
        let ring = (0..RING).map(|_| Arc::new(Batch::new())).collect();
        self.crew = Crew::Many { workers, ring, next: 0 };
    }

    /// Takes in a frame.
    #[inline]
    pub fn frame(&mut self, frame: &Frame<'_>) {
        self.ledger.seen += 1;
        self.ledger.wire_bytes += u64::from(frame.wire_len);
        match self.filter.verdict(frame) {
            Verdict::Match => {}
            Verdict::NoMatch => {
                self.ledger.filtered += 1;
                return;
            }
            Verdict::BehindTag => {
                self.ledger.filtered += 1;
                self.ledger.behind_tag += 1;
                return;
            }
        }
        match self.decoder.decode(frame) {
            Ok(packet) => self.accept(&packet),
            Err(why) => self.ledger.undecoded(why),
        }
    }

    /// Takes in a packet that needs no decoding.
    #[inline]
    pub fn packet(&mut self, packet: &Packet) {
        self.ledger.seen += 1;
        self.ledger.wire_bytes += u64::from(packet.wire_len);
        self.accept(packet);
    }

    /// Takes in a record of many packets of one flow, as routers export them.
    ///
    /// Sizes take its counts; sources take its source address. The states of connections take the
    /// packets that its flags tell of, see [`Record::signs`], in the order in which they must have
    /// been.
    pub fn record(&mut self, record: &Record) {
        let [bytes, packets] = [record.bytes, record.packets];
        self.ledger.seen = self.ledger.seen.saturating_add(packets);
        self.ledger.decoded = self.ledger.decoded.saturating_add(packets);
        self.ledger.wire_bytes = self.ledger.wire_bytes.saturating_add(bytes);
        self.first_ns.get_or_insert(record.time_ns);
        self.last_ns = self.last_ns.max(record.time_ns);
        // The first of its own direction stands for all, the others for nothing but themselves.
        let mut amounts = [bytes, packets];
        for packet in record.signs() {
            let mut weight = [0, 0];
            if packet.flow == record.flow {
                weight = std::mem::take(&mut amounts);
            }
            for watched in &mut self.settings.subnets {
                if !watched.count_many(&packet, weight[1]) {
                    self.ledger.refused("subnet_counts", 1);
                }
            }
            let batch = self.filling();
            batch.push_weighted(&packet, weight);
            if batch.is_full() {
                self.flush();
            }
        }
    }

    /// It is so late now, though no packet says so: attempts end, alarms are raised or closed.
    pub fn pass(&mut self, now_ns: u64) {
        self.flush();
        self.connections.pass(now_ns);
        self.alarms.pass(now_ns);
        if let (Some(sink), Some(packet)) = (&self.settings.events, &self.last_packet)
            && let Ok(mut sink) = sink.lock()
        {
            self.alarms.drain_events(packet, &mut *sink);
        }
    }

    /// Notes what a source that is not a file says of itself, in place of what it said before.
    pub fn note_source(&mut self, counts: Vec<(&'static str, u64)>) {
        self.ledger.source = counts;
    }

    #[inline]
    fn accept(&mut self, packet: &Packet) {
        self.ledger.decoded += 1;
        self.first_ns.get_or_insert(packet.time_ns);
        self.last_ns = self.last_ns.max(packet.time_ns);
        for watched in &mut self.settings.subnets {
            if !watched.count(packet) {
                self.ledger.refused("subnet_counts", 1);
            }
        }
        let batch = self.filling();
        batch.packets.push(*packet);
        if batch.is_full() {
            self.flush();
        }
    }

    /// The batch that is being filled.
    #[inline]
    fn filling(&mut self) -> &mut Batch {
        match &mut self.crew {
            Crew::Alone { batch, .. } => batch,
            Crew::Many { ring, next, .. } => loop {
                // Not yet given back: the workers are behind. A packet that is being added finds
                // the batch free at once.
                if Arc::get_mut(&mut ring[*next]).is_some() {
                    break Arc::get_mut(&mut ring[*next]).expect("asked just before");
                }
                thread::yield_now();
            },
        }
    }

    /// Shows the shards what is in the batch.
    pub fn flush(&mut self) {
        let seed = self.settings.seed;
        self.filling().sort(seed);
        self.connect();
        match &mut self.crew {
            Crew::Alone { shards, batch } => {
                for shard in shards {
                    shard.take(batch);
                    tell(shard, &self.settings.events);
                }
                batch.clear();
            }
            Crew::Many { workers, ring, next } => {
                for worker in workers {
                    // A worker that is gone has panicked; `finish` says so.
                    let _ = worker.batches.send(Arc::clone(&ring[*next]));
                }
                *next = (*next + 1) % ring.len();
                self.filling().clear();
            }
        }
    }

    /// Shows the batch to the monitors of the feeding thread.
    fn connect(&mut self) {
        // Nobody else has the batch that is being filled.
        let packets = match &self.crew {
            Crew::Alone { batch, .. } => &batch.packets,
            Crew::Many { ring, next, .. } => &ring[*next].packets,
        };
        let verdicts = self.connections.take(packets);
        self.alarms.take(packets, verdicts);
        if let (Some(sink), Some(packet)) = (&self.settings.events, packets.last())
            && let Ok(mut sink) = sink.lock()
        {
            self.alarms.drain_events(packet, &mut *sink);
        }
        if let Some(packet) = packets.last() {
            self.last_packet = Some(*packet);
        }
    }

    /// The alarms so far.
    pub fn alarms(&self) -> &Alarms {
        &self.alarms
    }

    /// The states of connections.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// What became of the frames so far. What full tables refused is added at the end.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The bytes that the tables take.
    pub fn allocated(&self) -> u64 {
        self.budget.bytes().unwrap_or(u64::MAX)
    }

    /// The report on everything so far, the shards as they are, and every source address.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn finish(mut self) -> (Report, Vec<Shard>) {
        self.flush();
        let mut shards = match self.crew {
            Crew::Alone { shards, .. } => shards,
            Crew::Many { workers, .. } => {
                let parts = workers.into_iter().map(|worker| {
                    drop(worker.batches);
                    worker.thread.join().expect("a worker does not panic")
                });
                parts.flatten().collect()
            }
        };
        shards.sort_by_key(Shard::number);
        for shard in &shards {
            self.ledger.refused("known_sources", shard.unlearnt);
            self.ledger.refused("sizes", shard.sizes.refused);
            self.ledger.refused("sources_v4", shard.sources.refused[0]);
            self.ledger.refused("sources_v6", shard.sources.refused[1]);
        }
        self.connections.pass(self.last_ns);
        self.alarms.end(self.last_ns);
        if let (Some(sink), Some(packet)) = (&self.settings.events, &self.last_packet)
            && let Ok(mut sink) = sink.lock()
        {
            self.alarms.drain_events(packet, &mut *sink);
        }
        let counts = self.connections.counts();
        self.ledger.refused("connections", counts.refused);
        self.ledger.dont_know("connections", counts.dont_know);
        let report = report::of(report::Parts {
            connections: &self.connections,
            alarms: &self.alarms,
            allocated: self.budget.bytes().unwrap_or(u64::MAX),
            settings: &self.settings,
            ledger: self.ledger,
            shards: &shards,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
        });
        (report, shards)
    }
}

impl Worker {
    fn start(mut shards: Vec<Shard>, sink: Option<Sink>) -> Self {
        let (batches, incoming) = mpsc::sync_channel::<Arc<Batch>>(QUEUE);
        let thread = thread::spawn(move || {
            for batch in incoming {
                for shard in &mut shards {
                    shard.take(&batch);
                    tell(shard, &sink);
                }
            }
            shards
        });
        Worker { batches, thread }
    }
}

/// Hands a shard's events on.
fn tell(shard: &mut Shard, sink: &Option<Sink>) {
    let Some(sink) = sink else { return };
    if let Ok(mut sink) = sink.lock() {
        shard.drain_events(&mut *sink);
    }
}
