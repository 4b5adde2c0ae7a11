//! A snapshot as one image of kind 18: a sequence of parts, each with its name and length.
//!
//! ```text
//! | header, 14 fields | ledger | expression | subnets | shard 0: counts, flows, .. | .. | crc32 |
//! part: | name 2 | shard 2 | version 2 | zero 2 | length 8 | bytes |
//! ```
//! Each table is a separate image with its own checksum, so that the damaged part of a file can be
//! named. The order of the parts is fixed. An accepted file is written back byte for byte.

use super::{
    Snapshot,
    encode::In,
    parts::{
        self, COUNTS, EXPRESSION, FLOWS, HOSTS, INCIDENTS, LEDGER, MACHINES, MAP, PEERS, PORTS,
        Part, SOURCES_V4, SOURCES_V6, STATES, SUBNETS,
    },
};
use crate::{
    Tunnels,
    budget::SHARDS,
    engine::Settings,
    monitor::{alarms::Alarms, connections::Connections, incidents, sizes::Sizes, subnet::Watched},
    shard::Shard,
};
use sidon::{
    Malformed, Seed,
    saved::{self, Save},
    state::Fingerprint,
};
use std::io;

/// The number of a snapshot in the format.
pub const KIND: u16 = sidon::internals::SNAPSHOT.number;
/// Bytes before a part.
pub(super) const PART: usize = 16;

/// The fields of a seed that is left out.
const LEFT_OUT: Seed = Seed(0);

/// A callback for parts: receives the part, the shard and the bytes.
type Act<'a> = &'a mut dyn FnMut(Part, u16, &[u8]) -> io::Result<()>;

impl Snapshot {
    /// Writes the image, one part at a time. It contains the seed.
    pub fn write(&self, out: impl io::Write) -> io::Result<()> {
        self.write_with(self.settings.seed, out)
    }

    /// [`write`](Self::write) without the seed, which [`from_bytes_under`](Self::from_bytes_under)
    /// then needs.
    pub fn write_without_seed(&self, out: impl io::Write) -> io::Result<()> {
        self.write_with(LEFT_OUT, out)
    }

    fn write_with(&self, shown: Seed, out: impl io::Write) -> io::Result<()> {
        let mut payload = 0;
        self.each_part(&mut |_, _, bytes| {
            payload += (PART + bytes.len()) as u64;
            Ok(())
        })?;
        let Settings { seed, memory, top, .. } = self.settings;
        let fields = [
            shown.0 as u64,
            (shown.0 >> 64) as u64,
            memory,
            self.allocated,
            top as u64,
            self.shards.len() as u64,
            u64::from(self.first_ns.is_some()),
            self.first_ns.unwrap_or(0),
            self.last_ns,
            self.until_ns,
            u64::from(self.tunnels == Tunnels::Inner),
            u64::from(self.partial),
            self.engines,
            u64::from(self.crossing),
        ];
        let mut image = saved::Writer::new(out, KIND, seed, &fields, payload)?;
        self.each_part(&mut |part, shard, bytes| {
            let mut head = [0; PART];
            head[..2].copy_from_slice(&part.number.to_le_bytes());
            head[2..4].copy_from_slice(&shard.to_le_bytes());
            head[4..6].copy_from_slice(&part.version.to_le_bytes());
            head[8..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            image.piece(&head)?;
            image.piece(bytes)
        })?;
        image.finish()?.flush()
    }

    /// The image in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut image = Vec::new();
        self.write(&mut image).expect("nothing fails in memory");
        image
    }

    fn each_part(&self, act: Act<'_>) -> io::Result<()> {
        act(LEDGER, 0, &parts::ledger(&self.ledger))?;
        act(EXPRESSION, 0, &parts::text(&self.expression))?;
        act(SUBNETS, 0, &parts::subnets(&self.subnets))?;
        for (number, shard) in (0..).zip(&self.shards) {
            let Sizes { flows, hosts, ports } = &shard.sizes;
            act(COUNTS, number, &parts::counts(shard.unlearnt, &shard.sources))?;
            act(FLOWS, number, &flows.to_bytes())?;
            act(HOSTS, number, &hosts.to_bytes())?;
            act(PORTS, number, &ports.to_bytes())?;
            act(SOURCES_V4, number, &shard.sources.v4.to_bytes())?;
            act(SOURCES_V6, number, &shard.sources.v6.to_bytes())?;
        }
        act(MAP, 0, &self.connections.map().to_bytes())?;
        act(STATES, 0, &parts::states(&self.connections.raw_counts()))?;
        act(INCIDENTS, 0, &incidents::saved::write(self.alarms.list()))?;
        act(PEERS, 0, &parts::peers(&self.peers))?;
        act(MACHINES, 0, &parts::machines(&self.machines))
    }

    /// Reads a snapshot from bytes that contain its seed. Invalid bytes give [`Malformed`], and
    /// [`Malformed::Seed`] if the seed is left out.
    pub fn from_bytes(image: &[u8]) -> Result<Self, Malformed> {
        Snapshot::read(image, None)
    }

    /// Reads a snapshot of this seed. The bytes may contain the seed or leave it out.
    /// [`Malformed::Seed`] if they are of another seed.
    pub fn from_bytes_under(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Snapshot::read(image, Some(seed))
    }

    fn read(image: &[u8], known: Option<Seed>) -> Result<Self, Malformed> {
        let frame = saved::Parts::of(image)?;
        if frame.kind != KIND {
            return Err(Malformed::Kind { expected: KIND, got: frame.kind });
        }
        let Ok(fields) = <[u64; 14]>::try_from(frame.fields.as_slice()) else {
            return Err(Malformed::Field { name: "fields" });
        };
        let [low, high, memory, allocated, top, shards, fields @ ..] = fields;
        let [packets, first, last_ns, until_ns, tunnels, partial, engines, crossing] = fields;
        let shown = Seed(u128::from(high) << 64 | u128::from(low));
        // A seed that is left out reads as 0. Only a snapshot of seed 0 then has its check value.
        let is_left_out = shown == LEFT_OUT && frame.seed_check != shown.check_value();
        let seed = known.unwrap_or(shown);
        let holds = |name, holds: bool| if holds { Ok(()) } else { Err(Malformed::Field { name }) };
        if frame.seed_check != seed.check_value() || !is_left_out && shown != seed {
            return Err(Malformed::Seed);
        }
        holds("room", frame.room == 0)?;
        holds("shards", shards == SHARDS as u64)?;
        // A list is no longer than its table, whatever its length may be.
        let top = usize::try_from(top).unwrap_or(usize::MAX);
        holds("times", packets <= 1 && first <= last_ns && (packets == 1 || last_ns == 0))?;
        holds("end", last_ns <= until_ns)?;
        holds("tunnels", tunnels <= 1)?;
        holds("partial", partial <= 1)?;
        holds("engines", engines > 0)?;
        holds("crossing", crossing <= u64::from(engines > 1))?;
        let mut payload = In { bytes: frame.payload, part: "parts" };
        let rest = &mut payload;
        let ledger = parts::read_ledger(part(rest, LEDGER, 0)?)?;
        let expression = parts::read_text(part(rest, EXPRESSION, 0)?)?;
        let subnets = parts::read_subnets(part(rest, SUBNETS, 0)?)?;
        let mut read = Vec::with_capacity(SHARDS);
        for number in 0..SHARDS as u16 {
            let counts = part(rest, COUNTS, number)?;
            let mut next = |one| part(rest, one, number).map(|part| part.bytes);
            let flows = Save::from_bytes(next(FLOWS)?, seed)?;
            let hosts = Save::from_bytes(next(HOSTS)?, seed)?;
            let ports = Save::from_bytes(next(PORTS)?, seed)?;
            let v4 = Save::from_bytes(next(SOURCES_V4)?, seed)?;
            let v6 = Save::from_bytes(next(SOURCES_V6)?, seed)?;
            let (unlearnt, sources) = parts::read_counts(counts, v4, v6)?;
            let sizes = Sizes { flows, hosts, ports };
            let shard = Shard::of(number.into(), sizes, sources, unlearnt);
            holds("shard", shard.owns_all())?;
            read.push(shard);
        }
        let alike = |shard: &Shard| shard.shapes() == read[0].shapes();
        holds("shapes", read.iter().all(alike))?;
        let map = Fingerprint::from_bytes(part(rest, MAP, 0)?.bytes, seed)?;
        let counts = parts::read_states(part(rest, STATES, 0)?)?;
        let incidents = incidents::saved::read(part(rest, INCIDENTS, 0)?, seed)?;
        let peers = parts::read_peers(part(rest, PEERS, 0)?)?;
        let machines = parts::read_machines(part(rest, MACHINES, 0)?)?;
        payload.end()?;
        let mut settings = Settings { memory, top, ..Settings::new(seed) };
        settings.subnets = subnets.iter().map(Watched::network).collect();
        let Some(connections) = Connections::restored(map, counts, last_ns, seed)? else {
            return Err(Malformed::Field { name: "connections" });
        };
        Ok(Snapshot {
            settings,
            expression,
            tunnels: if tunnels == 1 { Tunnels::Inner } else { Tunnels::Outer },
            ledger,
            allocated,
            shards: read,
            subnets,
            connections,
            alarms: Alarms::of(incidents, seed)?,
            peers,
            peers_audit: None,
            services_audit: None,
            machines,
            first_ns: (packets == 1).then_some(first),
            last_ns,
            until_ns,
            partial: partial == 1,
            engines,
            crossing: crossing == 1,
        })
    }
}

/// Reads the next part, which must be this one of this shard. Its version must be known.
fn part<'a>(payload: &mut In<'a>, part: Part, shard: u16) -> Result<In<'a>, Malformed> {
    payload.part = part.name;
    let [n0, n1, s0, s1, v0, v1, zero @ ..] = payload.array::<8>()?;
    let length = payload.number()?;
    let found = (u16::from_le_bytes([n0, n1]), u16::from_le_bytes([s0, s1]));
    if found != (part.number, shard) || zero != [0; 2] {
        return payload.wrong("name");
    }
    if u16::from_le_bytes([v0, v1]) != part.version {
        return payload.wrong("version");
    }
    Ok(In { bytes: payload.take(length)?, part: part.name })
}
