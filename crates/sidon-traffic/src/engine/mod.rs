//! The engine: takes in packets, fills the tables, and reports on them.
//!
//! ```text
//! frames -> filter -> decode -> batch of 512 -> hashed, sorted to lanes -> shards
//!                 \-> ledger                                            (one thread or many)
//! ```
//! The thread that feeds the engine filters, decodes and hashes packets. It also keeps the states
//! of connections, of flows and of pairs of hosts, and names the services of packets. The shards belong to this thread or to workers. Every
//! shard receives its keys in packet order, so the answers are the same for any number of threads.
//! The tables are allocated before the first packet.

mod checkpoint;
mod crew;
mod settings;
mod staging;

pub use checkpoint::{CHECKPOINT, Unresumed};
pub use settings::Settings;

use crate::{
    Decoder, Filter, Frame, Packet, Timing,
    audit::{self, Audit},
    batch::{self, Batch},
    budget::{self, Budget, SHARDS},
    event::Event,
    export::Record,
    ledger::Ledger,
    monitor::{
        alarms::Alarms,
        connections::Connections,
        machine::Runner,
        p2p::{self, All, Keeping, P2p},
        services::Services,
        subnet::{SUBNETS_MAX, Watched},
    },
    query::{Answer, Question},
    recorder::{self, Recorder},
    report::{self, Report},
    shard::Shard,
    snapshot::Snapshot,
    threads::NoThread,
    work::Work,
};
use crew::Crew;
use sidon::Infeasible;
use staging::Staging;
use std::{net::IpAddr, sync::Arc};

/// The receiver of events.
pub type Sink = Box<dyn FnMut(Event) + Send>;

/// The engine: monitors, their tables, and the threads that fill them.
pub struct Engine {
    /// Everything that a report shows and a file saves. Its list of shards is empty while workers
    /// own them.
    state: Snapshot,
    staging: Staging,
    crew: Crew,
    services: Services,
    p2p: P2p,
    p2p_twin: Option<P2p<All>>,
    machines: Vec<Runner>,
    sink: Option<Sink>,
    /// The packets of incidents, if they are kept.
    recorder: Option<Recorder>,
    last_packet: Option<Packet>,
    /// Counters of the source at the start of this period.
    source_before: Vec<(&'static str, u64)>,
}

impl Engine {
    /// An engine with all its tables allocated.
    pub fn new(settings: Settings, filter: Filter, decoder: Decoder) -> Result<Self, Infeasible> {
        let budget = Budget::with_machines(settings.memory, settings.machines.len())?;
        let Settings { seed, audit, .. } = settings;
        if settings.subnets.len() > SUBNETS_MAX {
            let (got, most) = (settings.subnets.len() as u64, SUBNETS_MAX as u64);
            return Err(Infeasible::OutOfRange { name: "subnets", got, least: 0, most });
        }
        let shards = (0..SHARDS).map(|number| Shard::new(number, &budget, seed, audit));
        let shards = shards.collect::<Result<_, _>>()?;
        let subnets = settings.subnets.iter().map(|&network| Watched::new(network));
        let subnets = subnets.collect::<Result<_, _>>()?;
        let machines = settings.machines.iter();
        let machines = machines.map(|one| Runner::new(Arc::clone(one), budget.machines.1, seed));
        Ok(Engine {
            machines: machines.collect::<Result<_, _>>()?,
            services: Services::new(budget.services, seed)?,
            p2p: P2p::new(budget.p2p, seed)?,
            p2p_twin: audit.then(|| P2p::exact(Keeping::Exact, seed)).transpose()?,
            state: Snapshot {
                expression: filter.text().to_owned(),
                tunnels: decoder.tunnels,
                ledger: Ledger::default(),
                allocated: budget.bytes(),
                shards,
                subnets,
                connections: Connections::new(budget.connections, seed, audit)?,
                alarms: Alarms::new(budget.alarms, seed, Arc::clone(&settings.thresholds))?,
                peers: Vec::new(),
                peers_audit: None,
                services_audit: audit.then(audit::Services::default),
                machines: Vec::new(),
                first_ns: None,
                last_ns: 0,
                until_ns: 0,
                partial: false,
                engines: 1,
                crossing: false,
                settings,
            },
            staging: Staging::new(filter, decoder),
            crew: Crew::alone(),
            sink: None,
            recorder: None,
            last_packet: None,
            source_before: Vec::new(),
        })
    }

    /// Sends later events to `sink`, which the feeding thread calls after each batch. Packets of a
    /// batch that is not full yet count as later.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn set_sink(&mut self, sink: Sink) {
        let at_work = self.crew.is_at_work();
        self.recall();
        self.tell();
        for shard in &mut self.state.shards {
            shard.record_events();
        }
        self.state.alarms.record_events();
        self.sink = Some(sink);
        if at_work {
            self.start_or_stay();
        }
    }

    /// Records packets of incidents, within these limits.
    pub fn record_packets(&mut self, limits: recorder::Limits) {
        self.recorder = Some(Recorder::new(limits));
    }

    /// The packets of incidents, if they are kept.
    pub fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_mut()
    }

    /// For tests: every table that can be full refuses new keys after this number of packets:
    /// connections, flows, pairs of hosts, machines' flows and, before [`start`](Self::start),
    /// sources.
    #[doc(hidden)]
    pub fn refuse_after(&mut self, packets: u64) {
        self.state.connections.refuse_after(packets);
        self.services.refuse_after(packets);
        self.p2p.refuse_after(packets);
        for machine in &mut self.machines {
            machine.refuse_after(packets);
        }
        for shard in &mut self.state.shards {
            shard.sources.refuse_after(packets / SHARDS as u64);
        }
    }

    /// Adds source addresses that later packets do not report as new. Returns how many were refused
    /// because the table was full. Once workers run, it returns 0: they add the addresses with
    /// their next batch, and the ledger counts refusals at the end.
    pub fn learn(&mut self, addresses: impl IntoIterator<Item = IpAddr>) -> u64 {
        let seed = self.state.settings.seed;
        // Packets that arrived earlier are processed first, without these addresses.
        self.flush();
        let mut refused = 0;
        for address in addresses {
            let shard = batch::shard_of_source(address, seed);
            if let Some(shard) = self.state.shards.get_mut(shard) {
                refused += u64::from(!shard.learn(address));
                continue;
            }
            let lane = &mut self.crew.filling().lanes[shard];
            lane.known.push(address);
            if lane.known.len() >= batch::PACKETS {
                self.flush();
            }
        }
        self.state.ledger.refused("known_sources", refused);
        refused
    }

    /// Moves the shards to worker threads, as many as the settings say. If the system refuses a
    /// thread, the feeding thread keeps the shards, and the engine works on.
    pub fn start(&mut self) -> Result<(), NoThread> {
        let workers = self.state.settings.workers();
        if workers > 0 && !self.crew.is_at_work() {
            let mut crew = Crew::start(&mut self.state.shards, workers)?;
            // Packets that wait stay in their batch, so that answers do not depend on this call.
            std::mem::swap(crew.filling(), self.crew.filling());
            self.crew = crew;
        }
        Ok(())
    }

    /// Moves the shards to worker threads again. Without them the run goes on with the same answers,
    /// and no packet is lost.
    fn start_or_stay(&mut self) {
        let _ = self.start();
    }

    /// Counts a frame, filters it and decodes it.
    #[inline]
    pub fn frame(&mut self, frame: &Frame<'_>) {
        if let Some(recorder) = &mut self.recorder {
            self.staging.keep(frame, recorder);
        }
        if self.staging.frame(frame, &mut self.state) {
            self.flush();
        }
    }

    /// Counts what was odd about the time of the next packet.
    pub fn note_timing(&mut self, timing: Timing) {
        self.state.ledger.timing(timing);
    }

    /// Adds a packet that needs no decoding.
    #[inline]
    pub fn packet(&mut self, packet: &Packet) {
        if self.staging.packet(packet, &mut self.state) {
            self.flush();
        }
    }

    /// Adds a record of many packets of one flow, as routers export them.
    ///
    /// Sizes use the counts of the record; sources use its source address. The states of
    /// connections use the packets that its TCP flags imply, see [`Record::signs`], in the order
    /// that TCP requires.
    pub fn record(&mut self, record: &Record) {
        self.staging.record(record, &mut self.state);
        // The first packet in the record's direction gets all bytes and packets; the other packets
        // get zero.
        let mut amounts = [record.bytes, record.packets];
        let is_unordered = !record.is_attempt();
        for packet in record.signs() {
            let mut weight = [0, 0];
            if packet.flow == record.flow {
                weight = std::mem::take(&mut amounts);
            }
            let batch = self.crew.filling();
            if self.staging.weighted(&packet, weight, is_unordered, &mut self.state, batch) {
                self.flush();
            }
        }
    }

    /// Advances the clock to `now_ns` without a packet: attempts time out, alarms are raised or
    /// closed.
    pub fn pass(&mut self, now_ns: u64) {
        self.flush();
        self.state.until_ns = self.state.until_ns.max(now_ns);
        self.state.connections.pass(now_ns);
        self.state.alarms.pass(now_ns);
        self.tell();
    }

    /// Stores the counters of a source that is not a file, and replaces those of the last call.
    /// Counts from before a [rotation](Self::rotate) are subtracted.
    pub fn note_source(&mut self, counts: Vec<(&'static str, u64)>) {
        let since = |(name, times): (&'static str, u64)| {
            let before = self.source_before.iter().find(|(known, _)| *known == name);
            (name, times.saturating_sub(before.map_or(0, |(_, before)| *before)))
        };
        self.state.ledger.source = counts.into_iter().map(since).collect();
    }

    /// Passes the packets that have arrived to the monitors and the shards.
    pub fn flush(&mut self) {
        let batch = self.crew.filling();
        self.staging.complete(batch);
        batch.sort(self.state.settings.seed);
        self.observe();
        self.crew.filling().sort_ports(self.state.settings.seed);
        self.crew.dispatch(&mut self.state.shards);
        self.tell();
    }

    /// Passes the batch to the monitors of the feeding thread.
    fn observe(&mut self) {
        let batch = self.crew.filling();
        let Snapshot { connections, alarms, services_audit, .. } = &mut self.state;
        let before = connections.evidence_level();
        connections.take(&batch.packets, &batch.flows);
        self.services.take(batch, connections);
        if let Some(reference) = services_audit {
            reference.take(batch);
        }
        let sampled = before > 0 || connections.evidence_level() > 0;
        alarms.take(batch, connections.verdicts(), sampled, connections.follows_all());
        let Batch { packets, flows, .. } = batch;
        self.p2p.take(packets);
        if let Some(twin) = &mut self.p2p_twin {
            twin.take(packets);
        }
        for machine in &mut self.machines {
            machine.take(packets, flows);
        }
        if let Some(packet) = packets.last() {
            self.last_packet = Some(*packet);
        }
    }

    /// Sends the events since the last call to the sink.
    fn tell(&mut self) {
        self.show_recorder(false);
        let Some(sink) = &mut self.sink else { return };
        self.crew.drain_events(&mut self.state.shards, sink);
        let loss = self.state.ledger.loss();
        let mistaken = self.state.connections.mistaken();
        let weaken = |incident: &mut _| loss.weaken(incident, mistaken);
        self.state.alarms.drain_events(self.state.until_ns, weaken, sink);
    }

    /// Shows the incidents to the recorder.
    fn show_recorder(&mut self, over: bool) {
        if let Some(recorder) = &mut self.recorder {
            let loss = self.state.ledger.loss();
            let mistaken = self.state.connections.mistaken();
            recorder.read(self.state.alarms.list(), over, |one| loss.weaken(one, mistaken));
        }
    }

    /// The work that depends on time and on full tables, by kind, see [`work`](crate::work). Covers
    /// this period and the tables of the feeding thread.
    pub fn work(&self) -> Vec<Work> {
        let mut all = vec![self.state.alarms.work()];
        all.extend(self.state.connections.work());
        all.extend(self.services.work());
        all.extend(self.p2p.work().into_iter().flatten());
        all.extend(self.machines.iter().flat_map(Runner::work));
        all
    }

    /// The alarms so far.
    pub fn alarms(&self) -> &Alarms {
        &self.state.alarms
    }

    /// The monitor of P2P-like hosts.
    pub fn p2p(&self) -> &P2p {
        &self.p2p
    }

    /// The states of connections.
    pub fn connections(&self) -> &Connections {
        &self.state.connections
    }

    /// The counts of frames so far, by outcome. Refusals by full tables and packets by service rule
    /// are those of the last report.
    pub fn ledger(&self) -> &Ledger {
        &self.state.ledger
    }

    /// The times of the first and the last packet, if any.
    pub fn times(&self) -> Option<(u64, u64)> {
        self.state.times()
    }

    /// The size of the tables in bytes.
    pub fn allocated(&self) -> u64 {
        self.state.allocated
    }

    /// The report on all packets so far, while more packets arrive. It lists alarms raised so far.
    /// A condition that has not lasted its minimum time is not listed.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn report(&mut self) -> Report {
        self.flush();
        self.age();
        self.settle();
        let parts = self.crew.parts(&self.state.shards, self.state.settings.top);
        self.tell();
        report::of(&self.state, parts)
    }

    /// Looks up a flow, an address or a service in the tables of all packets so far.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn answer(&mut self, question: &Question) -> Answer {
        self.flush();
        self.age();
        self.settle_services();
        let facts = self.crew.ask(&self.state.shards, question);
        Answer::of(question, facts, &self.state)
    }

    /// Ends the input: raises the alarms whose condition holds now.
    pub fn end(&mut self) {
        self.flush();
        self.age();
        self.state.alarms.end(self.state.last_ns);
        self.tell();
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
    pub fn snapshot(self) -> Snapshot {
        self.snapshot_and_recorder().0
    }

    /// The complete state of the engine after the last packet, and the packets of incidents, if they
    /// were kept.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn snapshot_and_recorder(mut self) -> (Snapshot, Option<Recorder>) {
        self.close();
        self.show_recorder(true);
        (self.state, self.recorder)
    }

    /// Passes the state of the engine to `act`, then starts again with empty tables. Source
    /// addresses added before are forgotten, too. New tables are allocated only after `act`
    /// returns, so that memory never holds both. The first senders of flows are kept: a datagram
    /// flow that goes on would otherwise be named by the sender of its first packet after this.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn rotate<R>(&mut self, act: impl FnOnce(Snapshot) -> R) -> Result<R, Infeasible> {
        let settings = self.state.settings.clone();
        let (filter, decoder) = (self.staging.filter.clone(), self.staging.decoder);
        let small =
            Settings { memory: budget::LEAST, audit: false, ..Settings::new(settings.seed) };
        let small = Engine::new(small, Filter::default(), decoder)?;
        let mut old = std::mem::replace(self, small);
        let mut source_before = std::mem::take(&mut old.source_before);
        for &(name, times) in &old.state.ledger.source {
            match source_before.iter_mut().find(|(known, _)| *known == name) {
                Some((_, before)) => *before = before.saturating_add(times),
                None => source_before.push((name, times)),
            }
        }
        old.close();
        let (state, mut services, sink, mut recorder) = old.into_parts();
        if let Some(recorder) = &mut recorder {
            recorder.cut();
        }
        let done = act(state);
        services.reset_counts();
        let new = Engine::new(settings, filter, decoder)?;
        *self = Engine { source_before, services, recorder, ..new };
        if let Some(sink) = sink {
            self.set_sink(sink);
        }
        self.start_or_stay();
        Ok(done)
    }

    /// The state, the services, the sink and the recorder. Everything else is freed.
    fn into_parts(self) -> (Snapshot, Services, Option<Sink>, Option<Recorder>) {
        (self.state, self.services, self.sink, self.recorder)
    }

    /// Ends the input, ends the workers, and completes the state.
    fn close(&mut self) {
        self.end();
        self.recall();
        self.tell();
        self.settle();
    }

    /// Advances all timers to one time: old connections and old flows of machines expire.
    fn age(&mut self) {
        self.state.alarms.refresh();
        self.state.connections.pass(self.state.until_ns);
        for machine in &mut self.machines {
            machine.pass(self.state.until_ns);
        }
    }

    /// Moves the shards back from the worker threads.
    fn recall(&mut self) {
        if self.crew.is_at_work() {
            self.state.shards = self.crew.stop();
        }
    }

    /// Copies the counts of services to the ledger.
    fn settle_services(&mut self) {
        let ledger = &mut self.state.ledger;
        ledger.services = self.services.counts();
        ledger.guessed = self.services.guessed();
        ledger.misnamed = (self.services.mistaken() * 1e9).ceil() as u64;
        ledger.set_refused("services", self.services.refused());
    }

    /// Updates the results of the tables that are not part of the state: P2P-like hosts and
    /// machines.
    fn settle(&mut self) {
        self.settle_services();
        let state = &mut self.state;
        state.machines = self.machines.iter().map(Runner::counts).collect();
        state.peers = self.p2p.suspects(p2p::LISTED);
        let unlisted = state.peers.len().saturating_sub(p2p::SUSPECTS_MAX);
        state.peers.truncate(p2p::SUSPECTS_MAX);
        let twin = self.p2p_twin.as_ref();
        state.peers_audit = twin.map(|twin| Audit::default().and_p2p(&state.peers, Some(twin)).p2p);
        let [mut refused, mut dont_know] = [0u64; 2];
        for counts in &state.machines {
            refused = refused.saturating_add(counts.refused);
            dont_know = dont_know.saturating_add(counts.dont_know);
        }
        let ledger = &mut state.ledger;
        ledger.set_refused("machines", refused);
        ledger.set_refused("p2p_unlisted", unlisted as u64);
        ledger.set_refused("p2p_pairs", self.p2p.refused());
        ledger.set_refused("p2p_pairs_evicted", self.p2p.evicted());
        ledger.set_refused("p2p_hosts", self.p2p.displaced());
        ledger.set_refused("suspects_evicted", state.alarms.evicted());
        ledger.set_refused("beacon_pairs", state.alarms.pairs_refused());
        ledger.set_dont_know("machines", dont_know);
        ledger.set_dont_know("p2p_pairs", self.p2p.dont_know());
    }
}
