//! The engine: takes in packets, fills the tables, and reports on them.
//!
//! ```text
//! frames -> filter -> decode -> batch of 512 -> hashed, sorted to lanes -> shards
//!                 \-> ledger                                            (one thread or many)
//! ```
//! The thread that feeds the engine filters, decodes and hashes packets. It also keeps the states
//! of connections and of pairs of hosts. The shards belong to this thread or to workers. Every
//! shard receives its keys in packet order, so the answers are the same for any number of threads.
//! The tables are allocated before the first packet.

use crate::{
    Decoder, Filter, Frame, Packet, Verdict,
    audit::{Audit, Peers},
    batch::{self, Batch},
    budget::{self, Budget, SHARDS},
    event::Event,
    export::Record,
    ledger::Ledger,
    monitor::{
        alarms::Alarms,
        connections::Connections,
        machine::{self, Definition, Runner},
        p2p::{self, All, Keeping, P2p},
        sizes,
        subnet::Watched,
    },
    query::{self, Answer, Question},
    report::{self, Report},
    shard::Shard,
    snapshot::Snapshot,
};
use sidon::{Infeasible, Key, Seed};
use std::{
    net::IpAddr,
    sync::{Arc, Mutex, mpsc},
    thread,
};

/// The receiver of events, shared by all threads.
pub type Sink = Arc<Mutex<dyn FnMut(Event) + Send>>;

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
    /// The receiver of events, if any.
    pub events: Option<Sink>,
    /// Subnets whose hosts are counted exactly.
    pub subnets: Vec<Watched>,
    /// State machines that users define, up to [`MACHINES_MOST`](crate::budget::MACHINES_MOST).
    pub machines: Vec<Arc<Definition>>,
    /// Length of the top lists in the report.
    pub top: usize,
}

impl Settings {
    /// 16 MiB, one thread, top lists of ten, everything else off.
    pub fn new(seed: Seed) -> Self {
        let memory = 16 << 20;
        let (subnets, machines) = (Vec::new(), Vec::new());
        Settings {
            memory,
            threads: 1,
            seed,
            audit: false,
            events: None,
            subnets,
            machines,
            top: 10,
        }
    }
}

/// The engine: monitors, their tables, and the threads that fill them.
pub struct Engine {
    settings: Settings,
    budget: Budget,
    ledger: Ledger,
    filter: Filter,
    decoder: Decoder,
    /// Packets not yet moved to the batch that is being filled.
    arriving: Vec<Packet>,
    /// Free positions in that batch.
    room: usize,
    crew: Crew,
    connections: Connections,
    alarms: Alarms,
    p2p: P2p,
    p2p_twin: Option<P2p<All>>,
    machines: Vec<Runner>,
    first_ns: Option<u64>,
    last_ns: u64,
    last_packet: Option<Packet>,
    /// Counters of the source at the start of this period.
    source_before: Vec<(&'static str, u64)>,
}

/// The owner of the shards: the feeding thread, or workers.
enum Crew {
    Alone { shards: Vec<Shard>, batch: Box<Batch> },
    Many { workers: Vec<Worker>, ring: Vec<Arc<Batch>>, next: usize },
}

struct Worker {
    batches: mpsc::SyncSender<Arc<Batch>>,
    thread: thread::JoinHandle<Vec<Shard>>,
}

/// Batches that may wait in a worker's queue.
const QUEUE: usize = 2;
/// Batches in memory: those in the queues, one being read, one being filled.
const RING: usize = QUEUE + 2;

impl Engine {
    /// An engine with all its tables allocated.
    pub fn new(settings: Settings, filter: Filter, decoder: Decoder) -> Result<Self, Infeasible> {
        let budget = Budget::with_machines(settings.memory, settings.machines.len())?;
        let Settings { seed, audit, .. } = settings;
        let events = settings.events.is_some();
        let shards = (0..SHARDS).map(|number| Shard::new(number, &budget, seed, audit, events));
        let shards: Vec<_> = shards.collect::<Result<_, _>>()?;
        let connections = Connections::new(budget.connections, seed, audit)?;
        let machines = settings.machines.iter();
        let machines = machines.map(|one| Runner::new(Arc::clone(one), budget.machines.1, seed));
        Ok(Engine {
            machines: machines.collect::<Result<_, _>>()?,
            connections,
            alarms: Alarms::new(budget.alarms, seed)?,
            p2p: P2p::new(budget.p2p, seed)?,
            p2p_twin: audit.then(|| P2p::exact(Keeping::Exact, seed)).transpose()?,
            arriving: Vec::with_capacity(batch::PACKETS),
            room: batch::PACKETS,
            crew: Crew::Alone { shards, batch: Box::default() },
            settings,
            budget,
            ledger: Ledger::default(),
            filter,
            decoder,
            first_ns: None,
            last_ns: 0,
            last_packet: None,
            source_before: Vec::new(),
        })
    }

    /// Adds source addresses that later packets do not report as new. Returns how many were refused
    /// because the table was full. Once workers run, it returns 0: they add the addresses with
    /// their next batch, and the ledger counts refusals at the end.
    pub fn learn(&mut self, addresses: impl IntoIterator<Item = IpAddr>) -> u64 {
        let seed = self.settings.seed;
        // Packets that arrived earlier are processed first, without these addresses.
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

    /// Moves the shards to worker threads, as many as the settings say.
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

    /// Counts a frame, filters it and decodes it.
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

    /// Adds a packet that needs no decoding.
    #[inline]
    pub fn packet(&mut self, packet: &Packet) {
        self.ledger.seen += 1;
        self.ledger.wire_bytes += u64::from(packet.wire_len);
        self.accept(packet);
    }

    /// Adds a record of many packets of one flow, as routers export them.
    ///
    /// Sizes use the counts of the record; sources use its source address. The states of
    /// connections use the packets that its TCP flags imply, see [`Record::signs`], in the order
    /// that TCP requires.
    pub fn record(&mut self, record: &Record) {
        let [bytes, packets] = [record.bytes, record.packets];
        self.ledger.seen = self.ledger.seen.saturating_add(packets);
        self.ledger.decoded = self.ledger.decoded.saturating_add(packets);
        self.ledger.wire_bytes = self.ledger.wire_bytes.saturating_add(bytes);
        self.first_ns.get_or_insert(record.time_ns);
        self.last_ns = self.last_ns.max(record.time_ns);
        // The first packet in the record's direction gets all bytes and packets; the other packets
        // get zero.
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
            self.board();
            let batch = self.filling();
            batch.push_weighted(&packet, weight);
            let full = batch.is_full();
            self.room -= 1;
            if full {
                self.flush();
            }
        }
    }

    /// Advances the clock to `now_ns` without a packet: attempts time out, alarms are raised or
    /// closed.
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

    /// Stores the counters of a source that is not a file, and replaces those of the last call.
    /// Counts from before a [rotation](Self::rotate) are subtracted.
    pub fn note_source(&mut self, counts: Vec<(&'static str, u64)>) {
        let since = |(name, times): (&'static str, u64)| {
            let before = self.source_before.iter().find(|(known, _)| *known == name);
            (name, times.saturating_sub(before.map_or(0, |(_, before)| *before)))
        };
        self.ledger.source = counts.into_iter().map(since).collect();
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
        self.arriving.push(*packet);
        if self.arriving.len() >= self.room {
            self.flush();
        }
    }

    /// Moves the packets that have arrived into the batch that is being filled.
    fn board(&mut self) {
        let mut arriving = std::mem::take(&mut self.arriving);
        self.room -= arriving.len();
        let batch = self.filling();
        if batch.packets.is_empty() {
            std::mem::swap(&mut batch.packets, &mut arriving);
        } else {
            batch.packets.append(&mut arriving);
        }
        self.arriving = arriving;
    }

    /// The batch that is being filled.
    #[inline]
    fn filling(&mut self) -> &mut Batch {
        match &mut self.crew {
            Crew::Alone { batch, .. } => batch,
            Crew::Many { ring, next, .. } => loop {
                // The workers still read this batch: wait for them.
                if Arc::get_mut(&mut ring[*next]).is_some() {
                    break Arc::get_mut(&mut ring[*next]).expect("asked just before");
                }
                thread::yield_now();
            },
        }
    }

    /// Passes the batch to the monitors and the shards, and starts an empty one.
    pub fn flush(&mut self) {
        let seed = self.settings.seed;
        self.board();
        self.room = batch::PACKETS;
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
                    // Sending fails only if the worker has panicked; `recall` then panics.
                    let _ = worker.batches.send(Arc::clone(&ring[*next]));
                }
                *next = (*next + 1) % ring.len();
                self.filling().clear();
            }
        }
    }

    /// Passes the batch to the monitors of the feeding thread.
    fn connect(&mut self) {
        // No worker holds the batch that is being filled.
        let Batch { packets, flows, .. } = match &self.crew {
            Crew::Alone { batch, .. } => &**batch,
            Crew::Many { ring, next, .. } => &*ring[*next],
        };
        let before = self.connections.level();
        self.connections.take(packets, flows);
        let sampled = before > 0 || self.connections.level() > 0;
        self.alarms.take(packets, self.connections.verdicts(), sampled);
        self.p2p.take(packets);
        if let Some(twin) = &mut self.p2p_twin {
            twin.take(packets);
        }
        for machine in &mut self.machines {
            machine.take(packets, flows);
        }
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

    /// The monitor of P2P-like hosts.
    pub fn p2p(&self) -> &P2p {
        &self.p2p
    }

    /// The states of connections.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// The counts of frames so far, by outcome. Refusals by full tables are added at the end.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The size of the tables in bytes.
    pub fn allocated(&self) -> u64 {
        self.budget.bytes().unwrap_or(u64::MAX)
    }

    /// The report on all packets so far, while more packets arrive. It lists alarms raised so far.
    /// A condition that has not lasted its minimum time is not listed.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn report(&mut self) -> Report {
        self.flush();
        self.recall();
        self.age();
        let Crew::Alone { shards, .. } = &self.crew else {
            unreachable!("the shards were called back");
        };
        let (peers, peers_audit) = self.peers();
        let report = report::of(report::Parts {
            connections: &self.connections,
            alarms: &self.alarms,
            peers: &peers,
            peers_audit,
            machines: &self.machine_counts(),
            allocated: self.allocated(),
            settings: &self.settings,
            ledger: self.settled(),
            shards,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
        });
        self.start();
        report
    }

    /// Looks up a flow, an address or a service in the tables of all packets so far.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn answer(&mut self, question: &Question) -> Answer {
        self.flush();
        self.recall();
        self.age();
        let Crew::Alone { shards, .. } = &self.crew else {
            unreachable!("the shards were called back");
        };
        let answer = query::answer(question, shards, &self.connections, self.settings.seed);
        self.start();
        answer
    }

    /// Ends the input: raises the alarms whose condition holds now.
    pub fn end(&mut self) {
        self.flush();
        self.age();
        self.alarms.end(self.last_ns);
        if let (Some(sink), Some(packet)) = (&self.settings.events, &self.last_packet)
            && let Ok(mut sink) = sink.lock()
        {
            self.alarms.drain_events(packet, &mut *sink);
        }
    }

    /// The report after the last packet, and the shards, which hold every source address.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn finish(self) -> (Report, Vec<Shard>) {
        let snapshot = self.snapshot();
        (snapshot.report(), snapshot.into_shards())
    }

    /// The complete state of the engine after the last packet.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn snapshot(mut self) -> Snapshot {
        self.end();
        self.recall();
        let (peers, peers_audit) = self.peers();
        let (ledger, machines, allocated) =
            (self.settled(), self.machine_counts(), self.allocated());
        let Crew::Alone { shards, .. } = self.crew else {
            unreachable!("the shards were called back");
        };
        Snapshot {
            peers_audit,
            peers,
            machines,
            allocated,
            settings: self.settings,
            expression: self.filter.text().to_owned(),
            tunnels: self.decoder.tunnels,
            ledger,
            shards,
            connections: self.connections,
            alarms: self.alarms,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            partial: false,
            engines: 1,
        }
    }

    /// Passes the state of the engine to `act`, then starts again with empty tables. Source
    /// addresses added before are forgotten, too. New tables are allocated only after `act`
    /// returns, so that memory never holds both.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn rotate<R>(&mut self, act: impl FnOnce(Snapshot) -> R) -> Result<R, Infeasible> {
        let subnets = self.settings.subnets.iter().map(Watched::emptied).collect();
        let settings = Settings { subnets, ..self.settings.clone() };
        let (filter, decoder) = (self.filter.clone(), self.decoder);
        let small = Settings { memory: budget::LEAST, audit: false, ..settings.clone() };
        let small = Engine::new(small, Filter::default(), decoder)?;
        let mut old = std::mem::replace(self, small);
        let mut source_before = std::mem::take(&mut old.source_before);
        for &(name, times) in &old.ledger.source {
            match source_before.iter_mut().find(|(known, _)| *known == name) {
                Some((_, before)) => *before = before.saturating_add(times),
                None => source_before.push((name, times)),
            }
        }
        let done = act(old.snapshot());
        *self = Engine { source_before, ..Engine::new(settings, filter, decoder)? };
        self.start();
        Ok(done)
    }

    /// Advances the clock to the last packet: old connections and old flows of machines expire.
    fn age(&mut self) {
        self.connections.pass(self.last_ns);
        for machine in &mut self.machines {
            machine.pass(self.last_ns);
        }
    }

    /// Moves the shards back from the worker threads.
    fn recall(&mut self) {
        let Crew::Many { workers, .. } = &mut self.crew else { return };
        let parts = workers.drain(..).map(|worker| {
            drop(worker.batches);
            worker.thread.join().expect("a worker does not panic")
        });
        let mut shards: Vec<_> = parts.flatten().collect();
        shards.sort_by_key(Shard::number);
        self.crew = Crew::Alone { shards, batch: Box::default() };
    }

    /// The ledger, with the refusals of the P2P tables and of the machines. Shards keep their own.
    fn settled(&self) -> Ledger {
        let mut ledger = self.ledger.clone();
        for machine in &self.machines {
            ledger.refused("machines", machine.counts().refused);
            ledger.dont_know("machines", machine.counts().dont_know);
        }
        ledger.refused("p2p_pairs", self.p2p.refused());
        ledger.refused("p2p_pairs_evicted", self.p2p.evicted());
        ledger.refused("p2p_hosts", self.p2p.displaced());
        ledger.dont_know("p2p_pairs", self.p2p.dont_know());
        ledger
    }

    /// P2P-like hosts, and their comparison with exact maps, if those run.
    fn peers(&self) -> (Vec<p2p::Suspect>, Option<Peers>) {
        let peers = self.p2p.suspects(p2p::LISTED);
        let twin = self.p2p_twin.as_ref();
        let audit = twin.map(|twin| Audit::default().and_p2p(&peers, Some(twin)).p2p);
        (peers, audit)
    }

    fn machine_counts(&self) -> Vec<machine::Counts> {
        self.machines.iter().map(Runner::counts).collect()
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

/// Sends the events of a shard to the sink.
fn tell(shard: &mut Shard, sink: &Option<Sink>) {
    let Some(sink) = sink else { return };
    if let Ok(mut sink) = sink.lock() {
        shard.drain_events(&mut *sink);
    }
}
