//! An engine as bytes, and back: a run that is cut and resumed reports what one that was not reports.
//!
//! ```text
//! engine --checkpoint--> | snapshot without seed | engine | batch | .. | machines | --resume--> engine
//! ```
//! A snapshot leaves out what only a running engine needs. A checkpoint adds it, in one part for each
//! monitor ([`Resume`]). Packets that wait in the batch are saved, too, and none is passed on early:
//! batches keep their boundaries, so the answers stay the same. Number of threads, length of the top
//! lists and receiver of events may differ afterwards. All other settings must be equal.
//!
//! A checkpoint contains neither the seed nor exact references. Its bytes are made on request; while
//! they are, memory holds the tables twice more. Reading takes as much as the bytes and the settings.

use super::{Engine, Settings};
use crate::{
    Decoder, Filter, Packet, Snapshot, batch,
    monitor::machine::Runner,
    resume::{self, Resume},
    shard::Shard,
    snapshot::encode::{In, Out},
};
use sidon::{
    Infeasible, Malformed, Refused, Seed,
    saved::{Parts, Writer},
};
use std::fmt;

/// The number of a checkpoint in the format.
pub const CHECKPOINT: u16 = sidon::internals::CHECKPOINT.number;
/// The version of the parts.
const VERSION: u64 = 2;
/// Bytes before a part: its length.
const HEAD: usize = 8;

/// Why an engine could not be resumed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Unresumed {
    /// The bytes are no checkpoint, or one of another seed.
    Malformed(Malformed),
    /// The checkpoint was made with another value of this setting.
    Mismatch {
        /// The setting.
        field: &'static str,
    },
    /// There is no engine of these settings that can be resumed.
    Settings(Infeasible),
}

impl fmt::Display for Unresumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unresumed::Malformed(why) => why.fmt(f),
            Unresumed::Mismatch { field } => {
                write!(f, "the checkpoint was made with another {field}; resume with the same one")
            }
            Unresumed::Settings(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for Unresumed {}

impl From<Malformed> for Unresumed {
    fn from(why: Malformed) -> Self {
        Unresumed::Malformed(why)
    }
}

impl From<Infeasible> for Unresumed {
    fn from(why: Infeasible) -> Self {
        Unresumed::Settings(why)
    }
}

impl Engine {
    /// The complete state as bytes, from which [`resume`](Self::resume) goes on. The engine itself
    /// goes on as if this had not been called. [`Infeasible`] if exact references run.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn checkpoint(&mut self) -> Result<Vec<u8>, Infeasible> {
        without_references(&self.state.settings)?;
        let at_work = self.crew.is_at_work();
        self.recall();
        let mut snapshot = Vec::new();
        self.state.write_without_seed(&mut snapshot).expect("nothing fails in memory");
        let mut parts = vec![snapshot];
        let saved: Result<(), Malformed> = self.each_part(|_, part| {
            let mut out = Out::default();
            part.save(&mut out);
            parts.push(out.0);
            Ok(())
        });
        saved.expect("saving refuses nothing");
        if at_work {
            self.start_or_stay();
        }
        let length = parts.iter().map(|part| (HEAD + part.len()) as u64).sum();
        let seed = self.state.settings.seed;
        let definitions = self.machines.iter().map(Runner::definition_digest);
        let thresholds = self.state.settings.thresholds.digest();
        let fields: Vec<u64> = [VERSION, thresholds].into_iter().chain(definitions).collect();
        let write = || {
            let mut image = Writer::new(Vec::new(), CHECKPOINT, seed, &fields, length)?;
            for part in parts {
                image.piece(&(part.len() as u64).to_le_bytes())?;
                image.piece(&part)?;
            }
            image.finish()
        };
        Ok(write().expect("nothing fails in memory"))
    }

    /// The engine of a [`checkpoint`](Self::checkpoint). It has no receiver of events, and the calling
    /// thread owns all shards until [`start`](Self::start).
    pub fn resume(
        image: &[u8],
        settings: Settings,
        filter: Filter,
        decoder: Decoder,
    ) -> Result<Self, Unresumed> {
        without_references(&settings)?;
        let seed = settings.seed;
        let image = Parts::of(image)?;
        if image.room != 0 {
            return Err(Malformed::Field { name: "room" }.into());
        }
        let (thresholds, definitions) = digests(&image, seed)?;
        let mut payload = In { bytes: image.payload, part: "parts" };
        let read = Snapshot::from_bytes_under(payload.nested()?.bytes, seed)?;
        let mut engine = Engine::new(settings, filter, decoder)?;
        engine.state.same_settings(&read).map_err(|why| match why {
            Refused::Mismatch { field } => Unresumed::Mismatch { field },
            _ => Unresumed::Malformed(Malformed::Field { name: "snapshot" }),
        })?;
        if engine.state.settings.thresholds.digest() != thresholds {
            return Err(Unresumed::Mismatch { field: "thresholds" });
        }
        if !engine.machines.iter().map(Runner::definition_digest).eq(definitions.iter().copied()) {
            return Err(Unresumed::Mismatch { field: "machines" });
        }
        engine.take_over(read, payload)?;
        engine.each_part(|name, part| {
            let mut bytes = In { part: name, ..payload.nested()? };
            part.resume(&mut bytes)?;
            bytes.end()
        })?;
        payload.end()?;
        Ok(engine)
    }

    /// Takes the state of a snapshot, except connections' counts of a report.
    fn take_over(&mut self, read: Snapshot, bytes: In<'_>) -> Result<(), Malformed> {
        let snapshot = In { part: "snapshot", ..bytes };
        for Shard { unlearnt, sources, .. } in &read.shards {
            snapshot.are_counts("counts", &[*unlearnt, sources.refused[0], sources.refused[1]])?;
        }
        snapshot.check("engines", read.engines == 1)?;
        let Snapshot {
            settings: _,
            expression: _,
            tunnels: _,
            ledger,
            allocated: _,
            shards,
            subnets,
            connections,
            alarms,
            peers,
            peers_audit: _,
            services_audit: _,
            machines,
            first_ns,
            last_ns,
            until_ns,
            partial,
            engines: _,
            crossing: _,
        } = read;
        let state = &mut self.state;
        (state.ledger, state.shards, state.subnets) = (ledger, shards, subnets);
        (state.peers, state.machines) = (peers, machines);
        (state.first_ns, state.last_ns, state.partial) = (first_ns, last_ns, partial);
        state.until_ns = until_ns;
        state.alarms.resume_list(alarms);
        state.connections.resume_map(connections, &snapshot)
    }

    /// Calls `act` for every part that a snapshot leaves out, with its name for errors. A new field of
    /// the engine does not compile until it is saved here, or named as one that is not.
    fn each_part(
        &mut self,
        mut act: impl FnMut(&'static str, &mut dyn Resume) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let Engine {
            state,
            staging,
            crew,
            services,
            p2p,
            p2p_twin: _,
            machines,
            sink: _,
            recorder: _,
            last_packet,
            source_before,
        } = self;
        act("engine", &mut Around { last_packet, source_before })?;
        let batch = crew.filling();
        act("batch", batch)?;
        let seed = state.settings.seed;
        for (number, lane) in batch.lanes.iter().enumerate() {
            let is_own = |&address| batch::shard_of_source(address, seed) == number;
            if !lane.known.iter().all(is_own) {
                return Err(Malformed::Part { part: "batch", field: "known" });
            }
        }
        act("arriving", staging)?;
        if !staging.fits(batch) {
            return Err(Malformed::Part { part: "arriving", field: "packets" });
        }
        act("connections", &mut state.connections)?;
        act("alarms", &mut state.alarms)?;
        act("services", services)?;
        act("p2p", p2p)?;
        machines.iter_mut().try_for_each(|machine| act("machines", machine))
    }
}

/// The fields of the engine itself.
struct Around<'a> {
    last_packet: &'a mut Option<Packet>,
    source_before: &'a mut Vec<(&'static str, u64)>,
}

impl Resume for Around<'_> {
    fn save(&self, out: &mut Out) {
        out.list(self.source_before);
        out.flag(self.last_packet.is_some());
        if let Some(packet) = &*self.last_packet {
            resume::save_packet(packet, out);
        }
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        *self.source_before = bytes.list("source")?;
        let has_packet = bytes.flag("last_packet")?;
        *self.last_packet = has_packet.then(|| resume::read_packet(bytes)).transpose()?;
        Ok(())
    }
}

/// The digests of the thresholds and of the machines' definitions, from the header of a checkpoint of
/// this seed.
fn digests<'a>(image: &'a Parts<'_>, seed: Seed) -> Result<(u64, &'a [u64]), Malformed> {
    if image.kind != CHECKPOINT {
        return Err(Malformed::Kind { expected: CHECKPOINT, got: image.kind });
    }
    if image.seed_check != seed.check_value() {
        return Err(Malformed::Seed);
    }
    match &image.fields[..] {
        [VERSION, thresholds, definitions @ ..] => Ok((*thresholds, definitions)),
        [VERSION] | [] => Err(Malformed::Field { name: "fields" }),
        [other, ..] => Err(Malformed::Version { got: u16::try_from(*other).unwrap_or(u16::MAX) }),
    }
}

/// Refuses exact references: they grow with the traffic, and only tests and audits run them.
fn without_references(settings: &Settings) -> Result<(), Infeasible> {
    if !settings.audit {
        return Ok(());
    }
    let (name, got) = ("audit", "on".to_owned());
    Err(Infeasible::Conflict { name, got, must: "be off, because exact references are not saved" })
}
