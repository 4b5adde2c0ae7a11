//! Incidents as the bytes of their part of a snapshot, and back.

use super::{
    EVIDENCE_MAX, Ends, Evidence, Example, Incident, KINDS, Severity, TEXT_MAX,
    absorb::{OTHERS, RULES_MAX, UNKNOWN_MAX},
    example::EXAMPLES_MAX,
    kinds,
    list::{LISTED_MAX, List},
    series::Series,
};
use crate::{
    Prefix,
    snapshot::encode::{In, Out},
};
use sidon::{Malformed, Seed};

/// The most kinds with a count.
const NAMES_MAX: usize = KINDS.len() + UNKNOWN_MAX + 1;

/// The part of a snapshot.
pub(crate) fn write(list: &List) -> Vec<u8> {
    let mut out = Out::default();
    out.number(list.unlisted().len() as u64);
    for (kind, times) in list.unlisted() {
        out.text(kind);
        out.number(*times);
    }
    out.number(list.allowed().len() as u64);
    for (rule, times) in list.allowed() {
        out.text(rule);
        out.number(*times);
    }
    out.number(list.incidents().len() as u64);
    list.incidents().for_each(|incident| incident.save(&mut out));
    out.0
}

/// The list of such a part.
pub(crate) fn read(mut bytes: In<'_>, seed: Seed) -> Result<List, Malformed> {
    let mut unlisted: Vec<(&'static str, u64)> = Vec::new();
    for _ in 0..bytes.length("unlisted", NAMES_MAX)? {
        let (kind, times) = (bytes.name("unlisted")?, bytes.number()?);
        bytes.check("unlisted", unlisted.iter().all(|(known, _)| *known != kind))?;
        unlisted.push((kind, times));
    }
    let is_unknown = |kind: &str| kind != OTHERS && kinds::number(kind).is_none();
    let unknown = unlisted.iter().filter(|(kind, _)| is_unknown(kind)).count();
    bytes.check("unlisted", unknown <= UNKNOWN_MAX)?;
    let mut allowed: Vec<(String, u64)> = Vec::new();
    for _ in 0..bytes.length("allowed", RULES_MAX + 1)? {
        let (rule, times) = (bytes.text("allowed")?, bytes.number()?);
        let is_new = allowed.iter().all(|(known, _)| known != rule);
        bytes.check("allowed", is_new && rule.len() <= TEXT_MAX)?;
        allowed.push((rule.to_owned(), times));
    }
    // The last entry of a full list is `OTHERS`.
    let named = allowed.iter().filter(|(rule, _)| rule != OTHERS).count();
    bytes.check("allowed", named <= RULES_MAX)?;
    let mut incidents = Vec::new();
    for _ in 0..bytes.length("incidents", LISTED_MAX)? {
        incidents.push(Incident::read(&mut bytes)?);
    }
    bytes.end()?;
    Ok(List::of(incidents, unlisted, allowed, seed))
}

/// A list of these contents.
#[cfg(test)]
pub(crate) fn of(
    incidents: Vec<Incident>,
    unlisted: Vec<(&'static str, u64)>,
    allowed: Vec<(String, u64)>,
    seed: Seed,
) -> List {
    List::of(incidents, unlisted, allowed, seed)
}

impl Incident {
    fn save(&self, out: &mut Out) {
        let Incident { id, kind, subject, ends, network, severity, text, .. } = self;
        let Incident { opened, updated, closed, filter, size, examples, evidence, .. } = self;
        out.number(*id);
        out.text(kind);
        subject.save(out);
        let Ends { peer, protocol, subject_port, peer_port } = *ends;
        out.flag(peer.is_some());
        if let Some(peer) = peer {
            out.address(peer);
        }
        out.optional(protocol.map(u64::from));
        out.optional(subject_port.map(u64::from));
        out.optional(peer_port.map(u64::from));
        out.text(network);
        out.number(*severity as u64);
        out.text(text);
        out.numbers(&[*opened, *updated]);
        out.optional(*closed);
        out.text(filter);
        size.save(out);
        out.number(examples.len() as u64);
        examples.iter().for_each(|example| example.save(out));
        out.number(evidence.len() as u64);
        for (name, figure) in evidence {
            out.text(name);
            out.figure(figure);
        }
    }

    fn read(bytes: &mut In<'_>) -> Result<Self, Malformed> {
        let (id, kind) = (bytes.number()?, bytes.name("kind")?);
        let subject = Prefix::read(bytes, "subject")?;
        let has_peer = bytes.flag("peer")?;
        let ends = Ends {
            peer: has_peer.then(|| bytes.address("peer")).transpose()?,
            protocol: small(bytes, "protocol")?,
            subject_port: small(bytes, "subject_port")?,
            peer_port: small(bytes, "peer_port")?,
        };
        let network = text(bytes, "network")?;
        let severity = Severity::ALL[bytes.below("severity", Severity::ALL.len())?];
        let words = text(bytes, "text")?;
        let [opened, updated] = bytes.numbers()?;
        let closed = bytes.optional("closed")?;
        let filter = text(bytes, "filter")?;
        let size = Series::read(bytes)?;
        let mut examples = Vec::new();
        for _ in 0..bytes.length("examples", EXAMPLES_MAX)? {
            examples.push(Example::read(bytes)?);
        }
        let mut evidence = Evidence::new();
        for _ in 0..bytes.length("evidence", EVIDENCE_MAX)? {
            let (name, figure) = (bytes.name("evidence")?, bytes.figure("evidence")?);
            bytes.check("evidence", evidence.iter().all(|(had, _)| *had != name))?;
            evidence.push((name, figure));
        }
        let text = words;
        Ok(Incident {
            id,
            kind,
            subject,
            ends,
            network,
            severity,
            text,
            opened,
            updated,
            closed,
            filter,
            size,
            examples,
            evidence,
        })
    }
}

fn text(bytes: &mut In<'_>, field: &'static str) -> Result<String, Malformed> {
    let text = bytes.text(field)?;
    bytes.check(field, text.len() <= TEXT_MAX)?;
    Ok(text.to_owned())
}

/// A number of a smaller type, if there is one.
fn small<T: TryFrom<u64>>(bytes: &mut In<'_>, field: &'static str) -> Result<Option<T>, Malformed> {
    let Some(number) = bytes.optional(field)? else { return Ok(None) };
    match T::try_from(number) {
        Ok(number) => Ok(Some(number)),
        Err(_) => bytes.wrong(field),
    }
}
