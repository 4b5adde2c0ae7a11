//! Packets in, tables filled, a report out.
//!
//! ```text
//! frames -> filter -> decode -> batch of 512 -> hashed, sorted to lanes -> shards
//!                 \-> ledger                                            (one thread or many)
//! ```
//! The thread that feeds the engine filters, decodes and hashes, and keeps the states of
//! connections and of pairs of hosts; the shards are its own or belong to workers. Every shard sees
//! its keys in the order of the packets, so that answers are the same for any number of threads. All memory is there before the first packet.

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
    /// Machines of users, up to [`MACHINES_MOST`](crate::budget::MACHINES_MOST).
    pub machines: Vec<Arc<Definition>>,
    /// How many of the heaviest are reported.
    pub top: usize,
}

impl Settings {
    /// 16 MiB, one thread, the ten heaviest, nothing else.
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

/// The monitors at work.
pub struct Engine {
    settings: Settings,
    budget: Budget,
    ledger: Ledger,
    filter: Filter,
    decoder: Decoder,
    /// Packets on their way to the batch that is being filled.
    arriving: Vec<Packet>,
    /// How many of them it has room for.
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
    /// What the source had said of itself when this period began.
    source_before: Vec<(&'static str, u64)>,
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

    /// Notes what a source that is not a file says of itself, in place of what it said before. Of
    /// what it said before a [rotation](Self::rotate), nothing is counted again.
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
                // Not yet given back: the workers are behind.
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
        let Batch { packets, flows, .. } = match &self.crew {
            Crew::Alone { batch, .. } => &**batch,
            Crew::Many { ring, next, .. } => &*ring[*next],
        };
        let sampled = self.connections.level() > 0;
        let verdicts = self.connections.take(packets, flows);
        self.alarms.take(packets, verdicts, sampled);
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

    /// Hosts that are like peers.
    pub fn p2p(&self) -> &P2p {
        &self.p2p
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

    /// The report on everything so far, while packets go on coming. Alarms are those that were
    /// raised: what has not yet held long enough is not.
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

    /// What is known of a flow, an address or a service, of all packets so far.
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

    /// No more packets come: alarms whose condition holds now are raised.
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

    /// The report on everything so far, the shards as they are, and every source address.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn finish(self) -> (Report, Vec<Shard>) {
        let snapshot = self.snapshot();
        (snapshot.report(), snapshot.into_shards())
    }

    /// Everything that is known, after the last packet.
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

    /// Hands over everything that is known so far, and starts anew with nothing, not even what was
    /// learnt: the next packet is the first. While `act` has the old tables there are no new ones, so
    /// that there is never memory for both.
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

    /// It is as late as the last packet says: what is too old goes.
    fn age(&mut self) {
        self.connections.pass(self.last_ns);
        for machine in &mut self.machines {
            machine.pass(self.last_ns);
        }
    }

    /// Takes the shards back from the threads.
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

    /// The ledger with what the tables of hosts and machines refused; the shards' is with them.
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

    /// Hosts like peers, and what exact maps say of them, if they run.
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

/// Hands a shard's events on.
fn tell(shard: &mut Shard, sink: &Option<Sink>) {
    let Some(sink) = sink else { return };
    if let Ok(mut sink) = sink.lock() {
        shard.drain_events(&mut *sink);
    }
}
