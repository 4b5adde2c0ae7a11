//! The list of the parts of a snapshot, and those that are not tables as bytes and back.
//!
//! The list has the number, the name and the version of each part. A part whose bytes change gets a new
//! version, and its reader keeps reading the old one. Parts of other kinds keep their versions. Numbers
//! are never used again.
//!
//! Each reader accepts what its writer writes, and nothing else. It names the part and the field
//! that it refuses. Lists have limits, so that reading takes time in proportion to the bytes.

use super::encode::{In, Out};
use crate::{
    budget::MACHINES_MAX,
    ledger::Ledger,
    monitor::{
        addresses::Addresses,
        connections::{Counts, Merged, Sampling},
        machine::{self, Stay},
        p2p::{REASONS_MAX, Reason, SUSPECTS_MAX, Suspect},
        sources::{Sources, Subnet},
        subnet::{Network, SUBNETS_MAX, Watched},
    },
};
use sidon::{Malformed, internals::CLASSES, zone::Subnets};
use std::{collections::HashSet, net::IpAddr};

/// A kind of part of a snapshot: its number, its name and its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) number: u16,
    pub(super) name: &'static str,
    /// The version that is written.
    pub(super) version: u16,
    /// Whether every shard has one.
    pub(super) is_sharded: bool,
    /// Whether its bytes are an image of the library's format, which has a checksum.
    pub(super) is_image: bool,
}

impl Part {
    /// Every part, by its number, which starts at 1.
    pub(super) const ALL: [Part; 14] = [
        LEDGER, EXPRESSION, SUBNETS, COUNTS, FLOWS, HOSTS, PORTS, SOURCES_V4, SOURCES_V6, MAP,
        STATES, INCIDENTS, PEERS, MACHINES,
    ];

    /// The part of this number.
    pub(super) fn of(number: u16) -> Option<Part> {
        Self::ALL.into_iter().find(|part| part.number == number)
    }

    const fn list(number: u16, name: &'static str) -> Self {
        Part { number, name, version: 0, is_sharded: false, is_image: false }
    }

    const fn table(number: u16, name: &'static str) -> Self {
        Part { is_sharded: true, is_image: true, ..Self::list(number, name) }
    }
}

pub(super) const LEDGER: Part = Part::list(1, "ledger");
pub(super) const EXPRESSION: Part = Part::list(2, "expression");
pub(super) const SUBNETS: Part = Part::list(3, "subnets");
pub(super) const COUNTS: Part = Part { is_sharded: true, ..Part::list(4, "counts") };
pub(super) const FLOWS: Part = Part::table(5, "flows");
pub(super) const HOSTS: Part = Part::table(6, "hosts");
pub(super) const PORTS: Part = Part::table(7, "ports");
pub(super) const SOURCES_V4: Part = Part::table(8, "sources_v4");
pub(super) const SOURCES_V6: Part = Part::table(9, "sources_v6");
pub(super) const MAP: Part = Part { is_sharded: false, ..Part::table(10, "connections") };
pub(super) const STATES: Part = Part::list(11, "connection_counts");
pub(super) const INCIDENTS: Part = Part { version: 1, ..Part::list(12, "incidents") };
pub(super) const PEERS: Part = Part::list(13, "peers");
pub(super) const MACHINES: Part = Part::list(14, "machines");

pub(super) fn ledger(ledger: &Ledger) -> Vec<u8> {
    let Ledger { seen, filtered, behind_tag, decoded, wire_bytes, .. } = *ledger;
    let Ledger { services, guessed, undecoded, refused, dont_know, source, .. } = ledger;
    let mut out = Out::default();
    out.numbers(&[seen, filtered, behind_tag, decoded, wire_bytes]);
    out.numbers(services);
    out.numbers(guessed);
    out.numbers(&[ledger.misnamed, ledger.late, ledger.time_jumps, ledger.time_steps]);
    out.number(ledger.late_ns);
    out.list(undecoded);
    out.list(refused);
    out.list(dont_know);
    out.list(source);
    out.0
}

pub(super) fn read_ledger(mut bytes: In<'_>) -> Result<Ledger, Malformed> {
    let [seen, filtered, behind_tag, decoded, wire_bytes] = bytes.numbers()?;
    let services: [u64; _] = bytes.numbers()?;
    let guessed = bytes.numbers()?;
    let [misnamed, late, time_jumps, time_steps, late_ns] = bytes.numbers()?;
    let (undecoded, refused) = (bytes.list("undecoded")?, bytes.list("refused")?);
    let (dont_know, source) = (bytes.list("dont_know")?, bytes.list("source")?);
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
        time_jumps,
        time_steps,
        late_ns,
        undecoded,
        refused,
        dont_know,
        wire_bytes,
        source,
    };
    bytes.check("seen", read.balance() == 0)?;
    bytes.check("behind_tag", behind_tag <= filtered)?;
    let named = services.iter().fold(0, |sum: u64, packets| sum.saturating_add(*packets));
    bytes.check("services", named <= decoded)?;
    Ok(read)
}

pub(super) fn text(text: &str) -> Vec<u8> {
    let mut out = Out::default();
    out.text(text);
    out.0
}

pub(super) fn read_text(mut bytes: In<'_>) -> Result<String, Malformed> {
    let text = bytes.text("text")?.to_owned();
    bytes.end()?;
    Ok(text)
}

pub(super) fn subnets(subnets: &[Watched]) -> Vec<u8> {
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

pub(super) fn read_subnets(mut bytes: In<'_>) -> Result<Vec<Watched>, Malformed> {
    let mut subnets = Vec::new();
    for _ in 0..bytes.length("subnets", SUBNETS_MAX)? {
        let text = bytes.text("network")?;
        let network = text.parse::<Network>().ok().filter(|one| one.to_string() == text);
        let Some(network) = network else { return bytes.wrong("network") };
        let mut subnet = Watched::new(network)?;
        let mut before = None;
        for _ in 0..bytes.number()? {
            let [host, sent, received] = bytes.numbers()?;
            let in_order = before.replace(host).is_none_or(|before| before < host);
            bytes.check("host", in_order)?;
            bytes.check("packets", (sent, received) != (0, 0))?;
            bytes.check("packets", subnet.put(host, sent, received))?;
        }
        subnets.push(subnet);
    }
    bytes.end()?;
    Ok(subnets)
}

pub(super) fn counts(unlearnt: u64, sources: &Sources) -> Vec<u8> {
    let mut out = Out::default();
    let [v4, v6] = sources.refused;
    let known = sources.known.len() as u64;
    out.numbers(&[unlearnt, sources.new, v4, v6, sources.known_check, known]);
    for (subnet, &hosts) in &sources.known {
        let (version, upper) = match *subnet {
            Subnet::V4(upper) => (4, upper.into()),
            Subnet::V6(upper) => (6, upper),
        };
        out.numbers(&[version, upper, hosts.into()]);
    }
    out.0
}

pub(super) fn read_counts(
    mut bytes: In<'_>,
    v4: Subnets,
    v6: Addresses,
) -> Result<(u64, Sources), Malformed> {
    let [unlearnt, new, refused_v4, refused_v6, known_check, known] = bytes.numbers()?;
    // Every subnet with known hosts is in a table.
    bytes.check("known", known <= v4.len() + v6.stored())?;
    let mut sources = Sources::of(v4, v6);
    (sources.new, sources.refused) = (new, [refused_v4, refused_v6]);
    sources.known_check = known_check;
    for _ in 0..known {
        let [version, upper, hosts] = bytes.numbers()?;
        let subnet = match version {
            4 if upper < 1 << 24 => Subnet::V4(upper as u32),
            6 => Subnet::V6(upper),
            _ => return bytes.wrong("known"),
        };
        let in_order = sources.known.last_key_value().is_none_or(|(last, _)| *last < subnet);
        let Some(hosts) = u32::try_from(hosts).ok().filter(|&hosts| in_order && hosts > 0) else {
            return bytes.wrong("known");
        };
        sources.known.insert(subnet, hosts);
    }
    bytes.end()?;
    bytes.check("new", sources.adds_up())?;
    Ok((unlearnt, sources))
}

pub(crate) fn states(counts: &Counts) -> Vec<u8> {
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
    out.expected(mistaken);
    let Merged { crossing, open_now, open: [least, most], peak_least } = merged.unwrap_or_default();
    out.number(merged.is_some().into());
    out.numbers(&[crossing, open_now, least, most, peak_least]);
    out.0
}

pub(crate) fn read_states(mut bytes: In<'_>) -> Result<Counts, Malformed> {
    let by_state = bytes.numbers()?;
    let [peak_half_open, dont_know, refused, one_way, came_about, in_both] = bytes.numbers()?;
    let [level, highest] = bytes.numbers()?;
    let (is_sampled, [since, unsampled]) = (bytes.flag("sampled")?, bytes.numbers()?);
    let variances = bytes.numbers()?;
    let [came_about_variance, one_way_variance] = bytes.numbers()?;
    let (mistaken, is_merged) = (bytes.expected("mistaken")?, bytes.flag("merged")?);
    let [crossing, open_now, least, most, peak_least] = bytes.numbers()?;
    let merged = Merged { crossing, open_now, open: [least, most], peak_least };
    bytes.check("open", least <= most)?;
    bytes.check("merged", is_merged || merged == Merged::default())?;
    bytes.check("level", level <= highest && highest <= u64::from(CLASSES))?;
    bytes.check("sampled", is_sampled == (highest > 0) && (is_sampled || since == 0))?;
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

pub(super) fn peers(peers: &[Suspect]) -> Vec<u8> {
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

pub(super) fn read_peers(mut bytes: In<'_>) -> Result<Vec<Suspect>, Malformed> {
    let (mut peers, mut hosts): (Vec<Suspect>, HashSet<IpAddr>) = Default::default();
    for _ in 0..bytes.length("hosts", SUSPECTS_MAX)? {
        let (host, score) = (bytes.address("host")?, bytes.figure("score")?);
        let mut reasons = Vec::new();
        for _ in 0..bytes.length("reasons", REASONS_MAX)? {
            let ([kind, port], peers) = (bytes.numbers()?, bytes.figure("peers")?);
            reasons.push(match (kind, u16::try_from(port)) {
                (1, Ok(0)) => Reason::BothProtocols { peers },
                (2, Ok(port)) => {
                    Reason::PortsOfTheirOwn { port, peers, ports: bytes.figure("ports")? }
                }
                (3, Ok(0)) => Reason::Scattered { peers, ports: bytes.figure("ports")? },
                (4, Ok(0)) => Reason::KnownPorts { peers },
                _ => return bytes.wrong("reasons"),
            });
        }
        let next = Suspect { host, score, reasons };
        let in_order = peers.last().is_none_or(|last| last.order() < next.order());
        bytes.check("host", in_order && hosts.insert(host))?;
        bytes.check("score", score.most().is_some_and(|most| most <= 100))?;
        peers.push(next);
    }
    bytes.end()?;
    Ok(peers)
}

pub(crate) fn machines(machines: &[machine::Counts]) -> Vec<u8> {
    let mut out = Out::default();
    out.number(machines.len() as u64);
    for counts in machines {
        let machine::Counts { name, flows, states, events, refused, dont_know, .. } = counts;
        out.text(name);
        out.expected(counts.mistaken);
        out.numbers(&[counts.crossing, *flows, *refused, *dont_know, states.len() as u64]);
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

pub(crate) fn read_machines(mut bytes: In<'_>) -> Result<Vec<machine::Counts>, Malformed> {
    let mut machines = Vec::new();
    for _ in 0..bytes.length("machines", MACHINES_MAX)? {
        let name = bytes.text("name")?.to_owned();
        let mistaken = bytes.expected("mistaken")?;
        let [crossing, flows, refused, dont_know] = bytes.numbers()?;
        let (mut states, mut events) = (Vec::new(), Vec::new());
        for _ in 0..bytes.length("states", machine::STATES_MAX)? {
            let name = bytes.text("states")?.to_owned();
            let [entered, now, expired] = bytes.numbers()?;
            states.push((name, Stay { entered, now, expired }));
        }
        for _ in 0..bytes.length("events", machine::EVENTS_MAX)? {
            events.push((bytes.text("events")?.to_owned(), bytes.number()?));
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
