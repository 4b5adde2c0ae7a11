//! Evidence about a host, and the score that follows from it.
//!
//! A score is a hint, not a verdict. A reason with `n` peers is worth `1 - 2^(-n/h)`, so `h` peers
//! are worth one half. Independent reasons combine like independent probabilities: `1 - (1 - a)(1 -
//! b)(1 - c)`.
//!
//! Some reasons are worth less the more a host resembles a server. Their factors fall from 1 to 0
//! without a step, so a small error of an estimate changes the score by little. The interval of a
//! score follows from those of its counts, each widened to three standard errors. A host is listed
//! if the upper end reaches 50 of 100. Only a larger error can hide a host that exact counts list.

use super::{
    distinct::{Distinct, Few},
    table::Weigh,
};
use crate::{
    Figure,
    figure::{Kind, grouped},
    resume::Resume,
    snapshot::encode::{In, Out},
};
use serde_json::{Value, json};
use sidon::Malformed;
use std::{cmp::Reverse, fmt, net::IpAddr};

/// Peers at which a reason is worth one half. `BOTH`: peers spoken to over TCP and UDP. `OWN`:
/// peers that each use a different port. `KNOWN`: peers at default ports of P2P programs, if at least
/// `REACHED` of them answered.
const BOTH: f64 = 3.0;
const OWN: f64 = 10.0;
const KNOWN: f64 = 20.0;
const REACHED: u16 = 2;
/// Ports per peer, or peers per port, at which the factor of a reason begins to fall and is zero. It
/// is one half at three halves.
const EVEN: [f64; 2] = [6.0 / 5.0, 9.0 / 5.0];
/// The width of the interval of a count inside a score: three standard errors instead of two.
const WIDER: f64 = 1.5;
/// The shares of peers spoken to first at which the factor is zero, as for a server, and one.
const FIRST: [f64; 2] = [1.0 / 8.0, 3.0 / 8.0];
/// Distinct packet sizes up to which a port counts as that of a game or of malware that scans.
const SIZES: u32 = 3;

/// The evidence about a host.
#[derive(Debug, Clone, Default)]
pub(super) struct Host<D> {
    /// Peers that answered and were spoken to over both TCP and UDP, and the ports of these
    /// conversations.
    pub(super) both: D,
    pub(super) both_ports: D,
    /// Peers that answered over TCP after this host spoke first, and the ports they answered from.
    pub(super) opened: D,
    pub(super) ports: D,
    /// Peers at default ports of P2P programs.
    pub(super) known: D,
    /// How often such a peer answered, up to a ceiling.
    pub(super) reached: u16,
    /// Answered conversations that this host began, and those that others began with it since this
    /// entry exists, up to a ceiling.
    pub(super) began: u16,
    pub(super) met: u16,
}

/// The evidence about a port of a host.
#[derive(Debug, Clone, Default)]
pub(super) struct End<D> {
    /// Peers that spoke with the port over UDP and were answered, or answered, and their ports.
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

impl Resume for Host<Few> {
    fn save(&self, out: &mut Out) {
        let Host { both, both_ports, opened, ports, known, reached, began, met } = self;
        [both, both_ports, opened, ports, known].into_iter().for_each(|few| few.save(out));
        out.numbers(&[reached, began, met].map(|count| u64::from(*count)));
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let Host { both, both_ports, opened, ports, known, reached, began, met } = self;
        let counters = [both, both_ports, opened, ports, known];
        counters.into_iter().try_for_each(|few| few.resume(bytes))?;
        for count in [reached, began, met] {
            *count = bytes.below("answers", 1 << 16)? as u16;
        }
        Ok(())
    }
}

impl Resume for End<Few> {
    fn save(&self, out: &mut Out) {
        let End { peers, ports, first, sizes } = self;
        [peers, ports].into_iter().for_each(|few| few.save(out));
        out.numbers(&[u64::from(*first), *sizes]);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let End { peers, ports, .. } = self;
        [peers, ports].into_iter().try_for_each(|few| few.resume(bytes))?;
        self.first = bytes.below("first", 1 << 16)? as u16;
        self.sizes = bytes.number()?;
        Ok(())
    }
}

/// The most reasons of a host: one of each kind.
pub const REASONS_MAX: usize = 4;

/// A reason to call a host P2P-like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The host speaks to `peers` hosts over both TCP and UDP, and they answer.
    BothProtocols {
        /// Number of hosts.
        peers: Figure,
    },
    /// One port of the host has about as many peers as these peers have ports.
    PortsOfTheirOwn {
        /// The port.
        port: u16,
        /// Its peers.
        peers: Figure,
        /// Their ports.
        ports: Figure,
    },
    /// Hosts that answered this host did so from about as many ports as there are hosts.
    Scattered {
        /// The hosts.
        peers: Figure,
        /// Their ports.
        ports: Figure,
    },
    /// The host speaks to `peers` hosts at default ports of P2P programs.
    KnownPorts {
        /// Number of hosts.
        peers: Figure,
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
        if let Reason::PortsOfTheirOwn { port, .. } = self {
            json["port"] = (*port).into();
        }
        let (peers, ports) = self.figures();
        peers.set(&mut json, "peers");
        if let Some(ports) = ports {
            ports.set(&mut json, "ports");
        }
        json
    }

    fn figures(&self) -> (Figure, Option<Figure>) {
        match *self {
            Reason::BothProtocols { peers } | Reason::KnownPorts { peers } => (peers, None),
            Reason::PortsOfTheirOwn { peers, ports, .. } | Reason::Scattered { peers, ports } => {
                (peers, Some(ports))
            }
        }
    }

    /// Whether the reason is about one port of the host. Only the best port counts.
    fn is_own(&self) -> bool {
        matches!(self, Reason::PortsOfTheirOwn { .. })
    }

    /// The reason, of traffic of which a part may be missing. An exact count becomes a lower bound.
    /// An estimate has no bound, nor has a number of scattered peers: more traffic can show that a
    /// host answers from one port.
    fn at_least(self) -> Self {
        match self {
            Reason::Scattered { .. } => self.with(|figure| Figure::unknown(figure.value())),
            _ => self.with(|figure| match figure.kind() {
                Kind::Exact | Kind::AtLeast => Figure::at_least(figure.least(), None),
                _ => Figure::unknown(figure.value()),
            }),
        }
    }

    /// The reason with other figures.
    fn with(self, change: fn(Figure) -> Figure) -> Self {
        match self {
            Reason::BothProtocols { peers } => Reason::BothProtocols { peers: change(peers) },
            Reason::PortsOfTheirOwn { port, peers, ports } => {
                Reason::PortsOfTheirOwn { port, peers: change(peers), ports: change(ports) }
            }
            Reason::Scattered { peers, ports } => {
                Reason::Scattered { peers: change(peers), ports: change(ports) }
            }
            Reason::KnownPorts { peers } => Reason::KnownPorts { peers: change(peers) },
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peers, ports) = self.figures();
        let (peers, ports) = (words(&peers), ports.as_ref().map(words).unwrap_or_default());
        match self {
            Reason::BothProtocols { .. } => write!(f, "TCP and UDP with {peers} hosts"),
            Reason::PortsOfTheirOwn { port, .. } => {
                write!(f, "port {port} with {peers} hosts on {ports} ports")
            }
            Reason::Scattered { .. } => write!(f, "answers from {peers} hosts on {ports} ports"),
            Reason::KnownPorts { .. } => write!(f, "{peers} hosts at P2P ports"),
        }
    }
}

/// A figure inside a sentence: the plain number if it is exact.
fn words(figure: &Figure) -> String {
    let value = grouped(figure.value());
    match (figure.kind(), figure.most()) {
        (Kind::Exact, _) => value,
        (Kind::Estimate, Some(most)) if figure.least() < most => {
            format!("about {value} [{}, {}]", grouped(figure.least()), grouped(most))
        }
        (Kind::AtLeast, _) => format!("at least {value}"),
        _ => format!("about {value}"),
    }
}

/// A P2P-like host, its score of at most 100, and the reasons, the strongest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// The host.
    pub host: IpAddr,
    /// Its score.
    pub score: Figure,
    /// The reasons for the score.
    pub reasons: Vec<Reason>,
}

impl Suspect {
    /// One object.
    pub fn to_json(&self) -> Value {
        let reasons: Value = self.reasons.iter().map(Reason::to_json).collect();
        let mut json = json!({ "host": self.host, "reasons": reasons });
        self.score.set(&mut json, "score");
        json
    }

    /// The position in a list: the highest score first, then by address.
    pub(crate) fn order(&self) -> (Reverse<u64>, IpAddr) {
        (Reverse(self.score.value()), self.host)
    }

    /// Turns exact counts into lower bounds, for a monitor that refused pairs or evicted hosts, for a
    /// source that lost packets, or for merged parts. The score then has no bound: lost peers can
    /// also be those of a server.
    pub(crate) fn at_least(self) -> Self {
        let reasons = self.reasons.into_iter().map(Reason::at_least).collect();
        let score = Figure::estimate(self.score.value(), 0, 100);
        Suspect { score, reasons, ..self }
    }

    /// Turns exact counts into estimates, for a monitor that may have mistaken a pair for another.
    pub(super) fn about(self) -> Self {
        let reasons = self.reasons.into_iter().map(|reason| reason.with(about)).collect();
        Suspect { score: about(self.score), reasons, ..self }
    }
}

fn about(figure: Figure) -> Figure {
    match figure.kind() {
        Kind::Exact => Figure::estimate(figure.value(), figure.value(), figure.value()),
        _ => figure,
    }
}

/// A number with its interval: the worth of a reason or a factor of it, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Worth {
    least: f64,
    value: f64,
    most: f64,
}

impl Worth {
    /// The worth of `peers` peers, if `half` are worth one half.
    fn of(peers: &Figure, half: f64) -> Self {
        wide(peers).map(|peers| 1.0 - (-peers / half).exp2())
    }

    /// One if there are about as many ports as peers, zero if one number is far above the other.
    /// Also zero for fewer than three peers, which are always counted exactly.
    fn even(peers: &Figure, ports: &Figure) -> Self {
        if peers.value().min(ports.value()) == 0 || peers.value() < 3 {
            return Worth { least: 0.0, value: 0.0, most: 0.0 };
        }
        let [near, far] = EVEN;
        let factor = |ratio: f64| ((far - ratio) / (far - near)).clamp(0.0, 1.0);
        // The logarithms of two independent estimates differ by an error whose square is the sum of
        // the squares of theirs.
        let [peers, ports] =
            [peers, ports].map(|figure| wide(figure).map(|count| count.max(1.0).ln()));
        let ratio = ports.value - peers.value;
        let lowest = ratio - (ports.value - ports.least).hypot(peers.most - peers.value);
        let highest = ratio + (ports.most - ports.value).hypot(peers.value - peers.least);
        let nearest = if lowest * highest <= 0.0 { 0.0 } else { lowest.abs().min(highest.abs()) };
        Worth {
            least: factor(lowest.abs().max(highest.abs()).exp()),
            value: factor(ratio.abs().exp()),
            most: factor(nearest.exp()),
        }
    }

    /// One if the port spoke first to many of its peers, zero if to few, as a server does.
    fn begins(first: u16, peers: &Figure) -> Self {
        let factor = |peers: f64| begins(f64::from(first) / peers.max(1.0));
        // More peers make a smaller share.
        let Worth { least, value, most } = wide(peers).map(factor);
        Worth { least: most, value, most: least }
    }

    fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Worth { least: change(self.least), value: change(self.value), most: change(self.most) }
    }

    fn with(self, other: Worth, combine: fn(f64, f64) -> f64) -> Self {
        Worth {
            least: combine(self.least, other.least),
            value: combine(self.value, other.value),
            most: combine(self.most, other.most),
        }
    }

    fn is_exact(&self) -> bool {
        self.least == self.most
    }
}

/// The factor of a host or port that began this share of its conversations.
fn begins(share: f64) -> f64 {
    let [none, all] = FIRST;
    ((share - none) / (all - none)).clamp(0.0, 1.0)
}

/// A count with a wider interval.
fn wide(figure: &Figure) -> Worth {
    let [least, value] = [figure.least(), figure.value()].map(|count| count as f64);
    let most = figure.most().map_or(f64::INFINITY, |most| most as f64);
    let least = (value - WIDER * (value - least)).max(0.0);
    Worth { least, value, most: value + WIDER * (most - value) }
}

/// The reasons that the evidence about a whole host gives.
pub(super) fn of_host<D: Distinct>(host: &Host<D>) -> Vec<(Reason, Worth)> {
    let (peers, ports) = (host.both.figure(), host.both_ports.figure());
    let answered = f64::from(host.began) + f64::from(host.met);
    let share = begins(f64::from(host.began) / answered.max(1.0));
    let even = Worth::even(&peers, &ports).map(|even| share * even);
    let both = (Reason::BothProtocols { peers }, Worth::of(&peers, BOTH).with(even, |a, b| a * b));
    let (peers, ports) = (host.opened.figure(), host.ports.figure());
    let even = Worth::even(&peers, &ports);
    let scattered =
        (Reason::Scattered { peers, ports }, Worth::of(&peers, OWN).with(even, |a, b| a * b));
    let peers = host.known.figure();
    let reached = f64::from(host.reached.min(REACHED)) / f64::from(REACHED);
    let known =
        (Reason::KnownPorts { peers }, Worth::of(&peers, KNOWN).map(|worth| reached * worth));
    [both, scattered, known].into_iter().filter(|(_, worth)| worth.most > 0.0).collect()
}

/// The reason that the evidence about one port gives. `None` if the port spoke first to few of its
/// peers, like a server. Also `None` if at most `SIZES` packet sizes occur, as in games and in
/// malware that scans.
pub(super) fn of_end<D: Distinct>(port: u16, end: &End<D>) -> Option<(Reason, Worth)> {
    let (peers, ports) = (end.peers.figure(), end.ports.figure());
    let worth = Worth::of(&peers, OWN)
        .with(Worth::even(&peers, &ports), |a, b| a * b)
        .with(Worth::begins(end.first, &peers), |a, b| a * b);
    let counts = worth.most > 0.0 && end.sizes.count_ones() > SIZES;
    counts.then_some((Reason::PortsOfTheirOwn { port, peers, ports }, worth))
}

/// The score of a host, and the reasons that count, the strongest first. `PortsOfTheirOwn` is about
/// UDP and `Scattered` about TCP, so both count, but only one port of the host.
pub(super) fn judge(mut reasons: Vec<(Reason, Worth)>) -> (Figure, Vec<Reason>) {
    reasons.sort_by(|(one, its), (other, others)| {
        others.value.total_cmp(&its.value).then(one.name().cmp(other.name()))
    });
    let nothing = Worth { least: 0.0, value: 0.0, most: 0.0 };
    let (mut own, mut others) = (nothing, nothing);
    let mut counted: Vec<Reason> = Vec::new();
    for (reason, worth) in reasons {
        if !reason.is_own() {
            others = others.with(worth, |a, b| 1.0 - (1.0 - a) * (1.0 - b));
        } else {
            own = own.with(worth, f64::max);
            if counted.iter().any(Reason::is_own) {
                continue;
            }
        }
        counted.push(reason);
    }
    let all = own.with(others, |a, b| 1.0 - (1.0 - a) * (1.0 - b));
    let of_100 = |worth: f64| (100.0 * worth).round() as u64;
    let score = of_100(all.value);
    let is_exact = |reason: &Reason| {
        let (peers, ports) = reason.figures();
        peers.kind() == Kind::Exact && ports.is_none_or(|ports| ports.kind() == Kind::Exact)
    };
    let figure = if all.is_exact() && counted.iter().all(is_exact) {
        Figure::exact(score)
    } else {
        Figure::estimate(score, of_100(all.least), of_100(all.most))
    };
    (figure, counted)
}

#[cfg(test)]
mod tests {
    use super::super::{All, Few};
    use super::*;
    use sidon::{Key, Seed};

    fn both(peers: u64) -> (Reason, Worth) {
        let peers = Figure::exact(peers);
        (Reason::BothProtocols { peers }, Worth::of(&peers, BOTH))
    }

    fn known(peers: u64) -> (Reason, Worth) {
        let peers = Figure::exact(peers);
        (Reason::KnownPorts { peers }, Worth::of(&peers, KNOWN))
    }

    fn own(peers: u64, ports: u64) -> (Reason, Worth) {
        let (peers, ports) = (Figure::exact(peers), Figure::exact(ports));
        let worth = Worth::of(&peers, OWN).with(Worth::even(&peers, &ports), |a, b| a * b);
        (Reason::PortsOfTheirOwn { port: 5, peers, ports }, worth)
    }

    fn scattered(peers: u64, ports: u64) -> (Reason, Worth) {
        let (_, worth) = own(peers, ports);
        let (peers, ports) = (Figure::exact(peers), Figure::exact(ports));
        (Reason::Scattered { peers, ports }, worth)
    }

    #[test]
    fn a_part_of_the_traffic_bounds_only_what_more_traffic_cannot_lower() {
        let reasons = [both(3), own(10, 9), known(20), scattered(20, 19)].map(|(reason, _)| reason);
        let kinds = |reasons: Vec<Reason>| -> Vec<Kind> {
            let suspect = Suspect { host: [10, 0, 0, 1].into(), score: Figure::exact(90), reasons };
            let suspect = suspect.at_least();
            assert_eq!((suspect.score.least(), suspect.score.most()), (0, Some(100)));
            suspect.reasons.iter().map(|reason| reason.figures().0.kind()).collect()
        };
        let estimates = reasons.iter().map(|reason| reason.with(about)).collect();
        let [bound, none] = [Kind::AtLeast, Kind::Unknown];
        assert_eq!(kinds(reasons.to_vec()), [bound, bound, bound, none]);
        assert_eq!(kinds(estimates), [none; 4]);
    }

    #[test]
    fn scores_are_even_at_their_halves_and_add_up_as_chances() {
        let score = |reasons: &[(Reason, Worth)]| {
            let (figure, _) = judge(reasons.to_vec());
            assert_eq!(figure.kind(), Kind::Exact);
            figure.value()
        };
        for reason in [both(3), known(20), own(10, 9)] {
            assert_eq!(score(&[reason]), 50);
        }
        assert_eq!(score(&[both(3), known(20)]), 75);
        assert_eq!(score(&[scattered(20, 19)]), 75);
        let (_, reasons) = judge(vec![own(10, 9), own(20, 19), both(3)]);
        assert_eq!(reasons, [own(20, 19).0, both(3).0], "one port counts");
        assert_eq!(score(&[own(10, 9), both(3), own(20, 19)]), 88);
        assert_eq!(score(&[own(10, 9), both(3), scattered(20, 19)]), 94);
        assert_eq!(score(&[]), 0);
        // Many peers, with three halves as many ports or two thirds: one half.
        assert_eq!(score(&[own(1_000, 1_500)]), 50);
        assert_eq!(score(&[own(1_500, 1_000)]), 50);
        assert_eq!([score(&[own(1_000, 1_200)]), score(&[own(1_000, 1_800)])], [100, 0]);
    }

    #[test]
    fn a_small_change_of_a_count_changes_a_score_by_little() {
        let score = |peers, ports, first| {
            let peers = Figure::exact(peers);
            let worth = Worth::of(&peers, OWN)
                .with(Worth::even(&peers, &Figure::exact(ports)), |a, b| a * b)
                .with(Worth::begins(first, &peers), |a, b| a * b);
            100.0 * worth.value
        };
        // The ratio changes by at most 1,000/555 - 1,000/556 = 0.0032, and the factor by
        // 1 / (9/5 - 6/5) = 5/3 times that.
        for ports in 500..2_000 {
            let step = score(1_000, ports + 1, 1_000) - score(1_000, ports, 1_000);
            assert!(step.abs() <= 0.55, "{step} from {ports} ports on");
        }
        // One peer in 1,000 changes the share by 0.001, and 4 times the factor.
        for first in 0..1_000 {
            let step = score(1_000, 1_000, first + 1) - score(1_000, 1_000, first);
            assert!((0.0..0.41).contains(&step), "{step} from {first} on");
        }
    }

    #[test]
    fn servers_and_games_are_no_reason_to_list_a_host() {
        let mut end = End::<All>::default();
        for number in 0..40u32 {
            end.peers.see(number);
            end.ports.see(number);
        }
        let score = |end: &End<All>| judge(of_end(9, end).into_iter().collect()).0.value();
        (end.first, end.sizes) = (30, 0xff);
        let (peers, ports) = (Figure::exact(40), Figure::exact(40));
        let reason = of_end(9, &end).map(|(reason, _)| reason);
        assert_eq!(reason, Some(Reason::PortsOfTheirOwn { port: 9, peers, ports }));
        assert_eq!(score(&end), 94);
        assert_eq!(score(&End { first: 9, ..end.clone() }), 38, "others begin");
        assert_eq!(of_end(9, &End { first: 5, ..end.clone() }), None, "others begin");
        assert_eq!(of_end(9, &End { sizes: 0b111, ..end.clone() }), None, "three sizes");
        for number in 40..61 {
            end.ports.see(number);
        }
        // Several connections per client, as for a web server.
        assert_eq!(score(&end), 43);
        (61..72).for_each(|number| end.ports.see(number));
        assert_eq!(of_end(9, &end), None);
    }

    /// A port with `peers` peers at `ports` ports.
    fn end<D: Distinct>(peers: u64, ports: u64, seed: u128) -> End<D> {
        let mut end = End::<D> { first: 1_000, sizes: 0xff, ..End::default() };
        let hash = |number: u64| (number.digest(Seed(seed)).0 >> 32) as u32;
        (0..peers).for_each(|number| end.peers.see(hash(number)));
        (0..ports).for_each(|number| end.ports.see(hash(number + (1 << 32))));
        end
    }

    #[test]
    fn the_interval_of_a_score_holds_the_score_of_exact_counts() {
        const SEEDS: u128 = 1_000;
        // Three standard errors: 0.27% of seeds miss. Of 1,000, 2.7 + 6 * sqrt(2.7) = 12.6 at the
        // most.
        let least = SEEDS as u64 - 12;
        for (peers, ports) in [(15, 20), (100, 140), (100, 150), (300, 460), (500, 500), (500, 800)]
        {
            let score = |reason: Option<_>| judge(reason.into_iter().collect()).0;
            let truth = score(of_end(9, &end::<All>(peers, ports, 1))).value();
            let (mut held, mut width) = (0, 0);
            for seed in 0..SEEDS {
                let figure = score(of_end(9, &end::<Few>(peers, ports, seed)));
                held += u64::from(figure.allows(truth));
                width += figure.most().unwrap() - figure.least();
            }
            assert!(held >= least, "{held} of {SEEDS} hold {truth}: {peers}, {ports}");
            let width = width as f64 / SEEDS as f64;
            assert!(width < 80.0, "{width} wide: {peers}, {ports}");
        }
    }

    #[test]
    fn figures_are_printed_with_their_certainty() {
        let reason = |peers, ports| Reason::Scattered { peers, ports }.to_string();
        let about = Figure::estimate(1_200, 1_100, 1_300);
        assert_eq!(reason(Figure::exact(8), Figure::exact(9)), "answers from 8 hosts on 9 ports");
        assert_eq!(
            reason(about, Figure::at_least(22, None)),
            "answers from about 1,200 [1,100, 1,300] hosts on at least 22 ports"
        );
    }
}
