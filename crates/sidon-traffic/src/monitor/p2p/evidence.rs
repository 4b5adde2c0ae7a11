//! Evidence about a host, and the score that follows from it.
//!
//! A score is a hint, not a verdict. A reason with `n` peers is worth `1 - 2^(-n/h)`, so `h` peers
//! are worth one half. Independent reasons combine like independent probabilities: `1 - (1 - a)(1 -
//! b)(1 - c)`. A host with a score of at least 50 of 100 is listed.

use super::table::Weigh;
use serde_json::{Value, json};
use std::{collections::HashSet, fmt, net::IpAddr};

/// Peers at which a reason is worth one half. `BOTH`: peers spoken to over TCP and UDP. `OWN`:
/// peers that each use a different port. `KNOWN`: peers at default ports of P2P programs.
const BOTH: f64 = 3.0;
const OWN: f64 = 10.0;
const KNOWN: f64 = 20.0;
/// Distinct packet sizes up to which a port counts as that of a game or of malware that scans.
const SIZES: u32 = 3;

/// A counter of distinct values, exact or approximate.
pub trait Distinct: Default + Clone + fmt::Debug {
    /// Adds the value with this hash.
    fn see(&mut self, hash: u32);

    /// A lower bound on the number of distinct values.
    fn least(&self) -> u64;

    /// An estimate of the number of distinct values.
    fn about(&self) -> u64;
}

/// A linear counter of 256 bits: each value sets the bit that its hash selects. The estimate is
/// `256 ln(256 / empty)`, with an error of about one in ten up to 500 values. Whang et al., "A
/// linear-time probabilistic counting algorithm", 1990.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Few([u64; 4]);

impl Distinct for Few {
    #[inline]
    fn see(&mut self, hash: u32) {
        self.0[hash as usize >> 30] |= 1 << (hash >> 24 & 63);
    }

    #[inline]
    fn least(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn about(&self) -> u64 {
        let empty = (256 - self.least()).max(1);
        (256.0 * (256.0 / empty as f64).ln()).round() as u64
    }
}

/// A set of all hashes, in memory that grows.
#[derive(Debug, Clone, Default)]
pub struct All(HashSet<u32>);

impl Distinct for All {
    fn see(&mut self, hash: u32) {
        self.0.insert(hash);
    }

    fn least(&self) -> u64 {
        self.0.len() as u64
    }

    fn about(&self) -> u64 {
        self.least()
    }
}

/// The evidence about a host.
#[derive(Debug, Clone, Default)]
pub(super) struct Host<D> {
    /// Peers spoken to over both TCP and UDP.
    pub(super) both: D,
    /// Peers that answered after this host spoke first, and the ports they answered from.
    pub(super) opened: D,
    pub(super) ports: D,
    /// Peers at default ports of P2P programs.
    pub(super) known: D,
}

/// The evidence about a port of a host.
#[derive(Debug, Clone, Default)]
pub(super) struct End<D> {
    /// Peers of the port, and their ports.
    pub(super) peers: D,
    pub(super) ports: D,
    /// Peers that the port spoke to first, up to a ceiling.
    pub(super) first: u16,
    /// Payload lengths, each hashed to one bit.
    pub(super) sizes: u64,
}

impl<D: Distinct> Weigh for Host<D> {
    fn weight(&self) -> u64 {
        self.both.least().max(self.opened.least()).max(self.known.least())
    }
}

impl<D: Distinct> Weigh for End<D> {
    fn weight(&self) -> u64 {
        self.peers.least()
    }
}

/// A reason to call a host P2P-like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The host speaks to `peers` hosts over both TCP and UDP.
    BothProtocols {
        /// Number of hosts, estimated.
        peers: u64,
    },
    /// One port of the host has about as many peers as these peers have ports.
    PortsOfTheirOwn {
        /// The port.
        port: u16,
        /// Its peers.
        peers: u64,
        /// Their ports.
        ports: u64,
    },
    /// Hosts that answered this host did so from about as many ports as there are hosts.
    Scattered {
        /// The hosts.
        peers: u64,
        /// Their ports.
        ports: u64,
    },
    /// The host speaks to `peers` hosts at default ports of P2P programs.
    KnownPorts {
        /// Number of hosts, estimated.
        peers: u64,
    },
}

impl Reason {
    /// The reason in one word.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::BothProtocols { .. } => "tcp_and_udp",
            Reason::PortsOfTheirOwn { .. } => "ports_of_their_own",
            Reason::Scattered { .. } => "scattered_peers",
            Reason::KnownPorts { .. } => "known_ports",
        }
    }

    /// One object.
    pub fn to_json(&self) -> Value {
        let mut json = json!({ "kind": self.name(), "text": self.to_string() });
        match *self {
            Reason::BothProtocols { peers } | Reason::KnownPorts { peers } => {
                json["peers"] = peers.into();
            }
            Reason::PortsOfTheirOwn { port, peers, ports } => {
                (json["port"], json["peers"]) = (port.into(), peers.into());
                json["ports"] = ports.into();
            }
            Reason::Scattered { peers, ports } => {
                (json["peers"], json["ports"]) = (peers.into(), ports.into());
            }
        }
        json
    }

    /// The worth of the reason, from 0 to 1.
    fn worth(&self) -> f64 {
        let (peers, even) = match *self {
            Reason::BothProtocols { peers } => (peers, BOTH),
            Reason::PortsOfTheirOwn { peers, .. } | Reason::Scattered { peers, .. } => (peers, OWN),
            Reason::KnownPorts { peers } => (peers, KNOWN),
        };
        1.0 - (-(peers as f64) / even).exp2()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::BothProtocols { peers } => write!(f, "TCP and UDP with about {peers} hosts"),
            Reason::PortsOfTheirOwn { port, peers, ports } => {
                write!(f, "port {port} with about {peers} hosts at {ports} ports")
            }
            Reason::Scattered { peers, ports } => {
                write!(f, "answers from about {peers} hosts at {ports} ports")
            }
            Reason::KnownPorts { peers } => write!(f, "about {peers} hosts at ports of peers"),
        }
    }
}

/// A P2P-like host, its score of at most 100, and the reasons, the strongest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// The host.
    pub host: IpAddr,
    /// Its score.
    pub score: u8,
    /// The reasons for the score.
    pub reasons: Vec<Reason>,
}

impl Suspect {
    /// One object.
    pub fn to_json(&self) -> Value {
        let reasons: Value = self.reasons.iter().map(Reason::to_json).collect();
        json!({ "host": self.host, "score": self.score, "reasons": reasons })
    }
}

/// The reasons that the evidence about a whole host gives.
pub(super) fn of_host<D: Distinct>(host: &Host<D>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let both = host.both.about();
    if both > 0 {
        reasons.push(Reason::BothProtocols { peers: both });
    }
    let (peers, ports) = (host.opened.about(), host.ports.about());
    if are_close(peers, ports) {
        reasons.push(Reason::Scattered { peers, ports });
    }
    let known = host.known.about();
    if known > 0 {
        reasons.push(Reason::KnownPorts { peers: known });
    }
    reasons
}

/// The reason that the evidence about one port gives. `None` if the port spoke first to fewer than
/// a quarter of its peers, like a server. Also `None` if at most `SIZES` packet sizes occur, as in
/// games and in malware that scans.
pub(super) fn of_end<D: Distinct>(port: u16, end: &End<D>) -> Option<Reason> {
    let (peers, ports) = (end.peers.about(), end.ports.about());
    let begins = u64::from(end.first) * 4 >= peers;
    (are_close(peers, ports) && begins && end.sizes.count_ones() > SIZES)
        .then_some(Reason::PortsOfTheirOwn { port, peers, ports })
}

/// Whether each peer has about one port: neither number exceeds 3/2 of the other.
fn are_close(peers: u64, ports: u64) -> bool {
    peers > 2 && 3 * peers >= 2 * ports && 3 * ports >= 2 * peers
}

/// The score of `reasons`, and the reasons that count, the strongest first. `PortsOfTheirOwn` and
/// `Scattered` both show that peers use different ports, so only the strongest of them counts.
pub(super) fn judge(mut reasons: Vec<Reason>) -> (u8, Vec<Reason>) {
    reasons.sort_by(|one, other| {
        other.worth().total_cmp(&one.worth()).then(one.name().cmp(other.name()))
    });
    let is_own = |reason: &Reason| {
        matches!(reason, Reason::PortsOfTheirOwn { .. } | Reason::Scattered { .. })
    };
    let best = reasons.iter().position(is_own);
    let mut at = 0;
    reasons.retain(|reason| {
        let keep = !is_own(reason) || best == Some(at);
        at += 1;
        keep
    });
    let not: f64 = reasons.iter().map(|reason| 1.0 - reason.worth()).product();
    ((100.0 * (1.0 - not)).round() as u8, reasons)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::{Key, Seed};

    #[test]
    fn few_bits_count_about_as_many_as_there_are() {
        for all in [3u64, 30, 300] {
            let mut few = Few::default();
            for number in 0..all {
                for _ in 0..3 {
                    few.see((number.digest(Seed(2)).0 >> 32) as u32);
                }
            }
            // Six standard errors of linear counting, and 0.5 for rounding.
            let load = all as f64 / 256.0;
            let error = (256.0 * (load.exp() - load - 1.0)).sqrt();
            let off = (few.about() as f64 - all as f64).abs();
            assert!(off <= 6.0 * error + 0.5, "{} for {all}", few.about());
        }
        assert_eq!(Few::default().about(), 0);
    }

    #[test]
    fn scores_are_even_at_their_halves_and_add_up_as_chances() {
        let score = |reasons: &[Reason]| judge(reasons.to_vec()).0;
        let both = Reason::BothProtocols { peers: 3 };
        let known = Reason::KnownPorts { peers: 20 };
        let own = Reason::PortsOfTheirOwn { port: 5, peers: 10, ports: 9 };
        let scattered = Reason::Scattered { peers: 20, ports: 19 };
        for reason in [both, known, own] {
            assert_eq!(score(&[reason]), 50);
        }
        assert_eq!(score(&[both, known]), 75);
        assert_eq!(score(&[scattered]), 75);
        assert_eq!(judge(vec![own, scattered]), (75, vec![scattered]), "one of a kind counts");
        assert_eq!(score(&[own, both, scattered]), 88);
        assert_eq!(score(&[]), 0);
    }

    #[test]
    fn servers_and_games_are_no_reason() {
        let mut end = End::<All>::default();
        for number in 0..40u32 {
            end.peers.see(number);
            end.ports.see(number);
        }
        (end.first, end.sizes) = (30, 0xff);
        let reason = Reason::PortsOfTheirOwn { port: 9, peers: 40, ports: 40 };
        assert_eq!(of_end(9, &end), Some(reason));
        assert_eq!(of_end(9, &End { first: 9, ..end.clone() }), None, "others begin");
        assert_eq!(of_end(9, &End { sizes: 0b111, ..end.clone() }), None, "three sizes");
        for number in 40..61 {
            end.ports.see(number);
        }
        assert_eq!(of_end(9, &end), None, "many connections a client, as for a web server");
    }
}
