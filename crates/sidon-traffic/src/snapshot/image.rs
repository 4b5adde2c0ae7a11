//! A snapshot as one image of kind 18: a sequence of parts, each with its name and length.
//!
//! ```text
//! | header, 12 fields | ledger | expression | subnets | shard 0: counts, flows, .. | .. | crc32 |
//! part: | name 2 | shard 2 | zero 4 | length 8 | bytes |
//! ```
//! Each table is a separate image with its own checksum, so that the damaged part of a file can be
//! named. The order of the parts is fixed. An accepted file is written back byte for byte.

use super::{
    Snapshot,
    encode::{In, Out},
};
use crate::{
    Tunnels,
    budget::SHARDS,
    engine::Settings,
    ledger::Ledger,
    monitor::{
        addresses::Addresses,
        alarms::{Alarm, Alarms, Evidence},
        connections::{Connections, Counts, Merged, Sampling},
        machine::{self, Stay},
        p2p::{Reason, Suspect},
        sizes::Sizes,
        sources::{Sources, Subnet},
        subnet::{Network, Watched},
    },
    shard::Shard,
};
use sidon::{
    Malformed, Seed,
    bytes::{self, Image},
    state::{Fingerprint, fingerprint::CLASSES},
};
use std::io;

/// The number of a snapshot in the format.
pub const KIND: u16 = 18;
/// Bytes before a part.
pub(super) const PART: usize = 16;

/// The names of the parts, by their numbers, which start at 1.
pub(super) const NAMES: [&str; 14] = [
    "ledger",
    "expression",
    "subnets",
    "counts",
    "flows",
    "hosts",
    "ports",
    "sources_v4",
    "sources_v6",
    "connections",
    "connection_counts",
    "alarms",
    "peers",
    "machines",
];
const LEDGER: u16 = 1;
const EXPRESSION: u16 = 2;
const SUBNETS: u16 = 3;
const COUNTS: u16 = 4;
const FLOWS: u16 = 5;
const HOSTS: u16 = 6;
const PORTS: u16 = 7;
const SOURCES_V4: u16 = 8;
const SOURCES_V6: u16 = 9;
const MAP: u16 = 10;
const STATES: u16 = 11;
const ALARMS: u16 = 12;
const PEERS: u16 = 13;
const MACHINES: u16 = 14;

/// A callback for parts: receives the number, the shard and the bytes.
type Act<'a> = &'a mut dyn FnMut(u16, u16, &[u8]) -> io::Result<()>;

impl Snapshot {
    /// Writes the image, one part at a time.
    pub fn write(&self, out: impl io::Write) -> io::Result<()> {
        let mut payload = 0;
        self.each_part(&mut |_, _, bytes| {
            payload += (PART + bytes.len()) as u64;
            Ok(())
        })?;
        let Settings { seed, memory, top, .. } = self.settings;
        let fields = [
            seed.0 as u64,
            (seed.0 >> 64) as u64,
            memory,
            self.allocated,
            top as u64,
            self.shards.len() as u64,
            u64::from(self.first_ns.is_some()),
            self.first_ns.unwrap_or(0),
            self.last_ns,
            u64::from(self.tunnels == Tunnels::Inner),
            u64::from(self.partial),
            self.engines,
        ];
        let mut image = bytes::Writer::new(out, KIND, seed, &fields, payload)?;
        self.each_part(&mut |name, shard, bytes| {
            let mut head = [0; PART];
            head[..2].copy_from_slice(&name.to_le_bytes());
            head[2..4].copy_from_slice(&shard.to_le_bytes());
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
        act(LEDGER, 0, &ledger(&self.ledger))?;
        act(EXPRESSION, 0, &text(&self.expression))?;
        act(SUBNETS, 0, &subnets(&self.subnets))?;
        for (number, shard) in (0..).zip(&self.shards) {
            let Sizes { flows, hosts, ports, refused } = &shard.sizes;
            act(COUNTS, number, &counts([*refused, shard.unlearnt], &shard.sources))?;
            act(FLOWS, number, &flows.to_bytes())?;
            act(HOSTS, number, &hosts.to_bytes())?;
            act(PORTS, number, &ports.to_bytes())?;
            act(SOURCES_V4, number, &shard.sources.v4.to_bytes())?;
            act(SOURCES_V6, number, &shard.sources.v6.to_bytes())?;
        }
        act(MAP, 0, &self.connections.map().to_bytes())?;
        act(STATES, 0, &states(&self.connections.raw_counts()))?;
        act(ALARMS, 0, &alarms(&self.alarms))?;
        act(PEERS, 0, &peers(&self.peers))?;
        act(MACHINES, 0, &machines(&self.machines))
    }

    /// Reads a snapshot from bytes. Invalid bytes give [`Malformed`].
    pub fn from_bytes(image: &[u8]) -> Result<Self, Malformed> {
        let parts = bytes::Parts::of(image)?;
        if parts.kind != KIND {
            return Err(Malformed::Kind { expected: KIND, got: parts.kind });
        }
        let Ok(fields) = <[u64; 12]>::try_from(parts.fields.as_slice()) else {
            return Err(Malformed::Field { name: "fields" });
        };
        let [low, high, memory, allocated, top, shards, fields @ ..] = fields;
        let [packets, first, last_ns, tunnels, partial, engines] = fields;
        let seed = Seed(u128::from(high) << 64 | u128::from(low));
        let holds = |name, holds: bool| if holds { Ok(()) } else { Err(Malformed::Field { name }) };
        if parts.seed_check != seed.check_value() {
            return Err(Malformed::Seed);
        }
        holds("shards", shards == SHARDS as u64)?;
        holds("top", top <= 1 << 20)?;
        holds("times", packets <= 1 && (packets == 1 || (first, last_ns) == (0, 0)))?;
        holds("tunnels", tunnels <= 1)?;
        holds("partial", partial <= 1)?;
        holds("engines", (1..1 << 32).contains(&engines))?;
        let mut payload = In { bytes: parts.payload, name: "parts" };
        let rest = &mut payload;
        let ledger = read_ledger(part(rest, LEDGER, 0)?)?;
        let expression = read_text(part(rest, EXPRESSION, 0)?)?;
        let subnets = read_subnets(part(rest, SUBNETS, 0)?)?;
        let mut read = Vec::with_capacity(SHARDS);
        for number in 0..SHARDS as u16 {
            let counts = part(rest, COUNTS, number)?;
            let mut next = |name| part(rest, name, number).map(|part| part.bytes);
            let flows = Image::from_bytes(next(FLOWS)?, seed)?;
            let hosts = Image::from_bytes(next(HOSTS)?, seed)?;
            let ports = Image::from_bytes(next(PORTS)?, seed)?;
            let v4 = Image::from_bytes(next(SOURCES_V4)?, seed)?;
            let v6 = Image::from_bytes(next(SOURCES_V6)?, seed)?;
            let ([refused, unlearnt], sources) = read_counts(counts, v4, v6)?;
            let sizes = Sizes { flows, hosts, ports, refused };
            let shard = Shard::of(number.into(), sizes, sources, unlearnt);
            holds("shard", shard.owns_all())?;
            read.push(shard);
        }
        let alike = |shard: &Shard| shard.shapes() == read[0].shapes();
        holds("shapes", read.iter().all(alike))?;
        let map = Fingerprint::from_bytes(part(rest, MAP, 0)?.bytes, seed)?;
        let counts = read_states(part(rest, STATES, 0)?)?;
        let alarms = read_alarms(part(rest, ALARMS, 0)?, seed)?;
        let peers = read_peers(part(rest, PEERS, 0)?)?;
        let machines = read_machines(part(rest, MACHINES, 0)?)?;
        payload.end()?;
        let mut settings = Settings { memory, top: top as usize, ..Settings::new(seed) };
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
            alarms,
            peers,
            peers_audit: None,
            services_audit: None,
            machines,
            first_ns: (packets == 1).then_some(first),
            last_ns,
            partial: partial == 1,
            engines,
        })
    }
}

/// Reads the next part, which must have this number and shard.
fn part<'a>(payload: &mut In<'a>, number: u16, shard: u16) -> Result<In<'a>, Malformed> {
    let name = NAMES[usize::from(number) - 1];
    payload.name = name;
    let [n0, n1, s0, s1, zero @ ..] = payload.array::<8>()?;
    let length = payload.number()?;
    let found = (u16::from_le_bytes([n0, n1]), u16::from_le_bytes([s0, s1]));
    if found != (number, shard) || zero != [0; 4] {
        return payload.wrong();
    }
    Ok(In { bytes: payload.take(length)?, name })
}

fn ledger(ledger: &Ledger) -> Vec<u8> {
    let Ledger { seen, filtered, behind_tag, decoded, wire_bytes, .. } = *ledger;
    let Ledger { services, guessed, undecoded, refused, dont_know, source, .. } = ledger;
    let mut out = Out::default();
    out.numbers(&[seen, filtered, behind_tag, decoded, wire_bytes]);
    out.numbers(services);
    out.numbers(guessed);
    out.numbers(&[ledger.misnamed, ledger.late, ledger.time_jumps, ledger.time_steps]);
    out.numbers(&[ledger.late_ns]);
    out.list(undecoded);
    out.list(refused);
    out.list(dont_know);
    out.list(source);
    out.0
}

fn read_ledger(mut bytes: In<'_>) -> Result<Ledger, Malformed> {
    let [seen, filtered, behind_tag, decoded, wire_bytes] = bytes.counts()?;
    let services = bytes.counts()?;
    let guessed = bytes.counts()?;
    let [misnamed, late, time_jumps, time_steps] = bytes.counts()?;
    let late_ns = bytes.number()?;
    let (undecoded, refused, dont_know) = (bytes.list()?, bytes.list()?, bytes.list()?);
    let source = bytes.list()?;
    bytes.end()?;
    let read = Ledger {
        seen,
        filtered,
        behind_tag,
        decoded,
        services,
        guessed,
        misnamed,
        late,
        late_ns,
        time_jumps,
        time_steps,
        undecoded,
        refused,
        dont_know,
        wire_bytes,
        source,
    };
    let adds_up = read.balance() == 0
        && services.iter().map(|&n| u128::from(n)).sum::<u128>() <= decoded.into();
    if behind_tag > filtered || !adds_up { bytes.wrong() } else { Ok(read) }
}

fn text(text: &str) -> Vec<u8> {
    let mut out = Out::default();
    out.text(text);
    out.0
}

fn read_text(mut bytes: In<'_>) -> Result<String, Malformed> {
    let text = bytes.text()?.to_owned();
    bytes.end()?;
    Ok(text)
}

fn subnets(subnets: &[Watched]) -> Vec<u8> {
    let mut out = Out::default();
    out.number(subnets.len() as u64);
    for subnet in subnets {
        out.text(&subnet.network().to_string());
        let hosts = subnet.list();
        out.number(hosts.len() as u64);
        for (host, sent, received) in hosts {
            out.numbers(&[host.to_bits().into(), sent, received]);
        }
    }
    out.0
}

fn read_subnets(mut bytes: In<'_>) -> Result<Vec<Watched>, Malformed> {
    let mut subnets = Vec::new();
    for _ in 0..bytes.number()? {
        let text = bytes.text()?;
        let network = text.parse::<Network>().ok().filter(|one| one.to_string() == text);
        let Some(network) = network else { return bytes.wrong() };
        let mut subnet = Watched::new(network)?;
        let mut before = None;
        for _ in 0..bytes.number()? {
            let [host, sent, received] = bytes.counts()?;
            let in_order = before.replace(host).is_none_or(|before| before < host);
            if !in_order || sent + received == 0 || !subnet.put(host, sent, received) {
                return bytes.wrong();
            }
        }
        subnets.push(subnet);
    }
    bytes.end()?;
    Ok(subnets)
}

fn counts([refused, unlearnt]: [u64; 2], sources: &Sources) -> Vec<u8> {
    let mut out = Out::default();
    let [v4, v6] = sources.refused;
    out.numbers(&[
        refused,
        unlearnt,
        sources.new,
        v4,
        v6,
        sources.known_check,
        sources.known.len() as u64,
    ]);
    for (subnet, &hosts) in &sources.known {
        let (version, upper) = match *subnet {
            Subnet::V4(upper) => (4, upper.into()),
            Subnet::V6(upper) => (6, upper),
        };
        out.numbers(&[version, upper, hosts.into()]);
    }
    out.0
}

fn read_counts(
    mut bytes: In<'_>,
    v4: sidon::zone::Subnets,
    v6: Addresses,
) -> Result<([u64; 2], Sources), Malformed> {
    let [sizes, unlearnt, new, refused_v4, refused_v6] = bytes.counts()?;
    let mut sources = Sources::of(v4, v6);
    (sources.new, sources.refused) = (new, [refused_v4, refused_v6]);
    sources.known_check = bytes.number()?;
    for _ in 0..bytes.number()? {
        let [version, upper, hosts] = [bytes.number()?, bytes.number()?, bytes.count()?];
        let subnet = match version {
            4 if upper < 1 << 24 => Subnet::V4(upper as u32),
            6 => Subnet::V6(upper),
            _ => return bytes.wrong(),
        };
        let in_order = sources.known.last_key_value().is_none_or(|(last, _)| *last < subnet);
        let Some(hosts) = u32::try_from(hosts).ok().filter(|&hosts| in_order && hosts > 0) else {
            return bytes.wrong();
        };
        sources.known.insert(subnet, hosts);
    }
    bytes.end()?;
    if !sources.adds_up() { bytes.wrong() } else { Ok(([sizes, unlearnt], sources)) }
}

fn states(counts: &Counts) -> Vec<u8> {
    // `half_open` and `open` are not written: they follow from the map of connections.
    let Counts { by_state, half_open: _, open: _, peak_half_open, dont_know, refused, .. } =
        *counts;
    let Counts { one_way, came_about, in_both, mistaken, merged, ref sampling, .. } = *counts;
    let mut out = Out::default();
    out.numbers(&by_state);
    out.numbers(&[peak_half_open, dont_know, refused, one_way, came_about, in_both]);
    let Sampling { level, highest, since, unsampled, .. } = *sampling;
    out.numbers(&[level, highest].map(u64::from));
    out.numbers(&[since.is_some().into(), since.unwrap_or(0), unsampled]);
    out.numbers(&sampling.by_state);
    out.numbers(&[sampling.came_about, sampling.one_way]);
    out.number(mistaken.to_bits());
    let Merged { crossing, open_now, open: [least, most], peak_least } = merged.unwrap_or_default();
    out.number(merged.is_some().into());
    out.numbers(&[crossing, open_now, least, most, peak_least]);
    out.0
}

fn read_states(mut bytes: In<'_>) -> Result<Counts, Malformed> {
    let by_state = bytes.counts()?;
    let [peak_half_open, dont_know, refused, one_way, came_about, in_both] = bytes.counts()?;
    let [level, highest] = bytes.counts()?;
    let (is_sampled, since, unsampled) = (bytes.flag()?, bytes.number()?, bytes.count()?);
    let variances = bytes.counts()?;
    let [came_about_variance, one_way_variance] = bytes.counts()?;
    let (mistaken, is_merged) = (bytes.expected()?, bytes.flag()?);
    let [crossing, open_now, least, most, peak_least] = bytes.counts()?;
    let merged = Merged { crossing, open_now, open: [least, most], peak_least };
    if least > most || (!is_merged && merged != Merged::default()) {
        return bytes.wrong();
    }
    let in_order = level <= highest && highest <= u64::from(CLASSES);
    if !in_order || is_sampled != (highest > 0) || (!is_sampled && since != 0) {
        return bytes.wrong();
    }
    bytes.end()?;
    Ok(Counts {
        present: [0; _],
        by_state,
        half_open: 0,
        peak_half_open,
        open: 0,
        dont_know,
        refused,
        one_way,
        came_about,
        in_both,
        mistaken,
        merged: is_merged.then_some(merged),
        sampling: Sampling {
            level: level as u32,
            highest: highest as u32,
            since: is_sampled.then_some(since),
            unsampled,
            by_state: variances,
            came_about: came_about_variance,
            one_way: one_way_variance,
        },
    })
}

fn alarms(alarms: &Alarms) -> Vec<u8> {
    let mut out = Out::default();
    out.numbers(&[alarms.unlisted(), alarms.alarms().len() as u64]);
    for alarm in alarms.alarms() {
        let Alarm { kind, subject, text, opened, closed, evidence, filter } = alarm;
        out.text(kind);
        out.address(*subject);
        out.text(text);
        out.numbers(&[*opened, closed.is_some().into(), closed.unwrap_or(0)]);
        out.number(evidence.len() as u64);
        for (name, figure) in evidence {
            out.text(name);
            out.figure(figure);
        }
        out.text(filter);
    }
    out.0
}

fn read_alarms(mut bytes: In<'_>, seed: Seed) -> Result<Alarms, Malformed> {
    let (unlisted, length) = (bytes.count()?, bytes.number()?);
    let mut list = Vec::new();
    for _ in 0..length {
        let (kind, subject, text) = (bytes.name()?, bytes.address()?, bytes.text()?.to_owned());
        let (opened, is_closed, closed) = (bytes.number()?, bytes.flag()?, bytes.number()?);
        if !is_closed && closed != 0 {
            return bytes.wrong();
        }
        let closed = is_closed.then_some(closed);
        let mut evidence = Evidence::new();
        for _ in 0..bytes.number()? {
            let (name, figure) = (bytes.name()?, bytes.figure()?);
            if evidence.iter().any(|(had, _)| *had == name) {
                return bytes.wrong();
            }
            evidence.push((name, figure));
        }
        let filter = bytes.text()?.to_owned();
        list.push(Alarm { kind, subject, text, opened, closed, evidence, filter });
    }
    bytes.end()?;
    match Alarms::of(list, unlisted, seed)? {
        Some(alarms) => Ok(alarms),
        None => bytes.wrong(),
    }
}

fn peers(peers: &[Suspect]) -> Vec<u8> {
    let mut out = Out::default();
    out.number(peers.len() as u64);
    for Suspect { host, score, reasons } in peers {
        out.address(*host);
        out.figure(score);
        out.number(reasons.len() as u64);
        for reason in reasons {
            let (kind, port, peers, ports) = match reason {
                Reason::BothProtocols { peers } => (1, 0, peers, None),
                Reason::PortsOfTheirOwn { port, peers, ports } => (2, *port, peers, Some(ports)),
                Reason::Scattered { peers, ports } => (3, 0, peers, Some(ports)),
                Reason::KnownPorts { peers } => (4, 0, peers, None),
            };
            out.numbers(&[kind, port.into()]);
            out.figure(peers);
            if let Some(ports) = ports {
                out.figure(ports);
            }
        }
    }
    out.0
}

fn read_peers(mut bytes: In<'_>) -> Result<Vec<Suspect>, Malformed> {
    let mut peers: Vec<Suspect> = Vec::new();
    for _ in 0..bytes.number()? {
        let (host, score, length) = (bytes.address()?, bytes.figure()?, bytes.number()?);
        let mut reasons = Vec::new();
        for _ in 0..length {
            let ([kind, port], peers) = (bytes.counts()?, bytes.figure()?);
            reasons.push(match (kind, u16::try_from(port)) {
                (1, Ok(0)) => Reason::BothProtocols { peers },
                (2, Ok(port)) => Reason::PortsOfTheirOwn { port, peers, ports: bytes.figure()? },
                (3, Ok(0)) => Reason::Scattered { peers, ports: bytes.figure()? },
                (4, Ok(0)) => Reason::KnownPorts { peers },
                _ => return bytes.wrong(),
            });
        }
        let next = Suspect { host, score, reasons };
        let in_order = peers.last().is_none_or(|last| last.order() < next.order());
        if !in_order || score.most().is_none_or(|most| most > 100) {
            return bytes.wrong();
        }
        peers.push(next);
    }
    bytes.end()?;
    Ok(peers)
}

fn machines(machines: &[machine::Counts]) -> Vec<u8> {
    let mut out = Out::default();
    out.number(machines.len() as u64);
    for counts in machines {
        let machine::Counts { name, flows, states, events, refused, dont_know, .. } = counts;
        out.text(name);
        out.numbers(&[counts.mistaken.to_bits(), counts.crossing]);
        out.numbers(&[*flows, *refused, *dont_know, states.len() as u64]);
        for (name, Stay { entered, now, expired }) in states {
            out.text(name);
            out.numbers(&[*entered, *now, *expired]);
        }
        out.number(events.len() as u64);
        for (name, times) in events {
            out.text(name);
            out.number(*times);
        }
    }
    out.0
}

fn read_machines(mut bytes: In<'_>) -> Result<Vec<machine::Counts>, Malformed> {
    let mut machines = Vec::new();
    for _ in 0..bytes.number()? {
        let name = bytes.text()?.to_owned();
        let (mistaken, crossing) = (bytes.expected()?, bytes.count()?);
        let [flows, refused, dont_know, length] = bytes.counts()?;
        let (mut states, mut events) = (Vec::new(), Vec::new());
        for _ in 0..length {
            let (name, [entered, now, expired]) = (bytes.text()?.to_owned(), bytes.counts()?);
            states.push((name, Stay { entered, now, expired }));
        }
        for _ in 0..bytes.number()? {
            events.push((bytes.text()?.to_owned(), bytes.count()?));
        }
        let counts = machine::Counts {
            name,
            flows,
            states,
            events,
            refused,
            dont_know,
            mistaken,
            crossing,
            is_inferred: false,
        };
        machines.push(counts);
    }
    bytes.end()?;
    Ok(machines)
}
