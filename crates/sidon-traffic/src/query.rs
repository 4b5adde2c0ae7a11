//! Queries about one key, answered from the tables with their certainty.
//!
//! ```text
//! "10.0.0.1:443 -> 10.0.0.2:5555 tcp"   seen? how big? in which state?
//! "10.0.0.1"                            seen? how big? a source?
//! "443/tcp"                             seen? how big?
//! ```
//! *Yes* is certain: the key has an entry. *No* is certain: the upper bound of its packets is 0.
//! Any other key is *unknown*, with upper bounds of its bytes and packets. A query changes no
//! table.

use crate::{
    Figure, FlowKey, Snapshot,
    flow::protocol,
    monitor::{
        connections::{Connections, OUTCOMES, life::Life},
        sizes::{self, Port},
    },
    shard::Shard,
};
use serde_json::{Value, json};
use sidon::{Certainty, Lookup, count::Bounds};
use std::{fmt, net::IpAddr, str::FromStr};

/// The key of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// A five-tuple, in both directions.
    Flow(FlowKey),
    /// An address.
    Address(IpAddr),
    /// A service: protocol and port.
    Port(Port),
}

/// The error for a text that names no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAQuestion;

impl fmt::Display for NotAQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected a flow such as \"10.0.0.1:443 10.0.0.2:5555 tcp\", an address such as \
             \"10.0.0.1\" or a service such as \"443/tcp\""
        )
    }
}

impl std::error::Error for NotAQuestion {}

/// Parses a flow as [`FlowKey`] displays it, with or without the arrow, the protocol first or last.
impl FromStr for Question {
    type Err = NotAQuestion;

    fn from_str(text: &str) -> Result<Self, NotAQuestion> {
        let words = text.split_whitespace().filter(|word| !matches!(*word, "->" | "<->" | "-"));
        let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [word] => one(word),
            [a, b, name] if protocol::number(name).is_some() => flow(a, b, name),
            [name, a, b] => flow(a, b, name),
            [a, b, "proto", number] | ["proto", number, a, b] => {
                flow(a, b, &format!("proto {number}"))
            }
            _ => Err(NotAQuestion),
        }
    }
}

fn one(word: &str) -> Result<Question, NotAQuestion> {
    if let Ok(address) = word.parse() {
        return Ok(Question::Address(address));
    }
    let (port, name) = word.split_once('/').ok_or(NotAQuestion)?;
    let port: u16 = port.parse().map_err(|_| NotAQuestion)?;
    let number = protocol::number(name).filter(|&number| protocol::has_ports(number));
    let [high, low] = port.to_be_bytes();
    Ok(Question::Port([number.ok_or(NotAQuestion)?, high, low]))
}

fn flow(a: &str, b: &str, protocol: &str) -> Result<Question, NotAQuestion> {
    let key = format!("{a} -> {b} {protocol}").parse();
    key.map(Question::Flow).map_err(|_| NotAQuestion)
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Question::Flow(key) => write!(f, "{key}"),
            Question::Address(address) => write!(f, "{address}"),
            Question::Port(port) => write!(f, "{}", sizes::port_name(*port)),
        }
    }
}

/// The answer of the tables to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The key of the query.
    pub question: Question,
    /// Bytes and packets: of a flow in both directions, of an address both sent and received.
    pub amounts: [Bounds; 2],
    /// The amounts with their certainty.
    pub figures: [Figure; 2],
    /// The connection, if the key is a TCP flow.
    pub connection: Option<Connection>,
    /// Whether an address was seen as a source or known before. `None` if the address is not stored
    /// and the table refused one of its IP version, or if the key is no address.
    pub is_source: Option<bool>,
}

/// The state of a connection, with its certainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Connection {
    /// The state now.
    pub state: Lookup<Life>,
    /// The certainty of the state.
    pub certainty: Certainty,
    /// Packets of connections that did not fit in the map, perhaps of this connection.
    pub refused: u64,
}

impl Answer {
    /// The answer from the facts of all shards and the states of connections.
    pub(crate) fn of(question: &Question, facts: Facts, state: &Snapshot) -> Self {
        let connections = &state.connections;
        let amounts = facts.amounts.unwrap_or_default();
        let mut answer = Answer {
            question: *question,
            amounts,
            figures: amounts.map(|bounds| match question {
                Question::Port(_) => {
                    state.ledger.service_amount(bounds, state.connections.mistaken())
                }
                _ => state.ledger.amount(bounds),
            }),
            connection: None,
            is_source: facts.is_source,
        };
        if let Question::Flow(key) = question
            && key.protocol() == protocol::TCP
        {
            let seen = answer.is_seen();
            answer.connection = Some(connection(&key.undirected(), seen, connections));
        }
        answer
    }

    /// Whether the key was ever seen; `None` if that is uncertain.
    pub fn is_seen(&self) -> Option<bool> {
        let [_, packets] = self.amounts;
        match packets {
            Bounds { least: 1.., .. } => Some(true),
            Bounds { most: 0, .. } => Some(false),
            _ => None,
        }
    }

    /// The answer as one JSON object, described in `docs/SERVE.md`.
    pub fn to_json(&self) -> Value {
        let [bytes, packets] = self.figures;
        let kind = match self.question {
            Question::Flow(_) => "flow",
            Question::Address(_) => "address",
            Question::Port(_) => "port",
        };
        let mut json = json!({
            "kind": kind,
            "key": self.question.to_string(),
            "seen": word(self.is_seen()),
            "bytes": amount(&bytes),
            "packets": amount(&packets),
        });
        if let Question::Flow(key) = self.question {
            json["community_id"] = key.community_id(0, None).into();
            if let Some(connection) = &self.connection {
                json["connection"] = connection.to_json(&key);
            }
        }
        if let Question::Address(_) = self.question {
            json["source"] = word(self.is_source).into();
        }
        json
    }
}

impl Connection {
    fn to_json(self, key: &FlowKey) -> Value {
        let wrong = self.certainty.error();
        let mut json = match self.state {
            Lookup::Absent => json!({ "answer": "absent" }),
            Lookup::DontKnow => json!({ "answer": "dont_know" }),
            Lookup::State(life) => {
                let phase = match () {
                    () if life.is_half_open() => "half_open",
                    () if life.is_open() => "open",
                    () if life.is_over() => "over",
                    () => "other",
                };
                let key = key.undirected();
                let opener = if life.is_turned() { key.reversed() } else { key };
                let opener = std::net::SocketAddr::new(opener.source(), opener.source_port());
                json!({
                    "answer": "state",
                    "outcome": OUTCOMES[life.outcome()],
                    "phase": phase,
                    "opened_by": opener.to_string(),
                })
            }
        };
        json["certainty"] = if wrong == 0.0 { "exact" } else { "wrong_at_most" }.into();
        json["wrong_at_most"] = wrong.into();
        json["refused_for_lack_of_room"] = self.refused.into();
        json
    }
}

fn word(answer: Option<bool>) -> &'static str {
    match answer {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

fn amount(figure: &Figure) -> Value {
    json!({
        "most": figure.most().unwrap_or(figure.value()),
        "least": figure.least(),
        "certainty": figure.kind().name(),
        "value": figure.value(),
        "interval": [figure.least(), figure.most()],
    })
}

/// What shards know about a key. The shard that owns the key knows its amounts. The shard that owns
/// the subnet of an address knows whether it is a source.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    amounts: Option<[Bounds; 2]>,
    is_source: Option<bool>,
}

impl Facts {
    /// The facts of one shard.
    pub(crate) fn of(question: &Question, shard: &Shard) -> Self {
        let mut facts = Facts::default();
        match question {
            Question::Flow(key) => {
                let both = key.undirected();
                facts.amounts = shard.owns(&both).then(|| shard.sizes.flows.bounds(&both));
            }
            Question::Address(address) => {
                let host = sizes::host(*address);
                facts.amounts = shard.owns(&host).then(|| shard.sizes.hosts.bounds(&host));
                if shard.owns_source(*address) {
                    let sources = &shard.sources;
                    let contains = sources.contains(*address);
                    // The table never stores the address `::`, which marks a free slot.
                    let told = *address != IpAddr::from([0; 16])
                        && sources.refused[usize::from(address.is_ipv6())] == 0;
                    facts.is_source = (contains || told).then_some(contains);
                }
            }
            Question::Port(port) => {
                facts.amounts = shard.owns(port).then(|| shard.sizes.ports.bounds(port));
            }
        }
        facts
    }

    /// The facts of different shards together.
    pub(crate) fn or(self, other: Facts) -> Facts {
        Facts {
            amounts: self.amounts.or(other.amounts),
            is_source: self.is_source.or(other.is_source),
        }
    }
}

fn connection(key: &FlowKey, seen: Option<bool>, connections: &Connections) -> Connection {
    // Connections that the sampling valve passed over are as unknown as refused ones.
    let refused = connections.refused().saturating_add(connections.unsampled());
    let state = connections.lookup(key);
    match (state, seen) {
        // A flow without a packet has no connection, so the matching cell belongs to another flow.
        (_, Some(false)) => {
            Connection { state: Lookup::Absent, certainty: Certainty::Certain, refused: 0 }
        }
        (Lookup::State(_), _) => {
            let certainty = Certainty::from_rate(connections.stranger_rate());
            Connection { state, certainty, refused: 0 }
        }
        // The flow may be one of those that the map does not follow.
        (Lookup::Absent, _) if refused > 0 => {
            Connection { state: Lookup::DontKnow, certainty: Certainty::Certain, refused }
        }
        _ => Connection { state, certainty: Certainty::Certain, refused },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_in_any_usual_order() {
        let tcp = "10.0.0.1:443 -> 10.0.0.2:5555 tcp".parse().map(Question::Flow).unwrap();
        for text in [
            "10.0.0.1:443 -> 10.0.0.2:5555 tcp",
            "10.0.0.1:443 <-> 10.0.0.2:5555 TCP",
            " tcp 10.0.0.1:443  10.0.0.2:5555 ",
        ] {
            assert_eq!(text.parse(), Ok(tcp), "{text}");
        }
        let ping = "10.0.0.1 -> 10.0.0.2 icmp".parse().map(Question::Flow).unwrap();
        assert_eq!("10.0.0.1 10.0.0.2 icmp".parse(), Ok(ping));
        let other = "10.0.0.1 -> 10.0.0.2 proto 200".parse().map(Question::Flow).unwrap();
        assert_eq!("proto 200 10.0.0.1 10.0.0.2".parse(), Ok(other));
        assert_eq!("::1".parse(), Ok(Question::Address([0, 0, 0, 0, 0, 0, 0, 1].into())));
        assert_eq!("443/tcp".parse(), Ok(Question::Port([6, 1, 187])));
        for text in
            ["", "tcp", "443", "443/icmp", "70000/tcp", "10.0.0.1 tcp", "a b c", "1 2 3 4 5"]
        {
            assert_eq!(text.parse::<Question>(), Err(NotAQuestion), "{text}");
        }
    }
}
