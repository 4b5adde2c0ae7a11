//! A source that tries targets: how many of them did not answer.
//!
//! A target has one of 512 bits. A first set says which were tried, a second which answered; both
//! forget half of their bits in turn, so that a target counts for half an hour to an hour. The first
//! hour forgets nothing: one try a minute is found.
//! ```text
//! tried     1 1 0 1 1 0 1 ..
//! answered  1 0 0 0 1 0 0 ..     failed = tried and not answered, without those of the last second
//! ```
//! A target that was tried in the last one to two seconds may still answer. The table counts these as
//! young, and young targets are neither failed nor answered.
//!
//! The condition is a number of failed targets, and their share of all that are not young. Targets that
//! share a bit with one that answered do not count as failed, so a client of many hosts is judged by
//! its share of failures with a bias in its favour.

use super::lost;
use crate::{
    FlowKey, Prefix,
    monitor::{
        alarms::{
            distinct::Distinct,
            table::{Subject, Suspect},
        },
        floods::amplifiers,
        incidents::{self, Ends, Evidence, Finding, List, kinds},
        p2p::ports::is_registered,
        sizes::{self, Host},
    },
};
use sidon::{Key, Seed};
use std::net::IpAddr;

const SECOND: u64 = 1_000_000_000;
/// The time after which half of the bits are forgotten, in turn.
const HALF: u64 = 1_800 * SECOND;
/// The time without a try after which an incident closes.
pub(super) const WINDOW: u64 = 300 * SECOND;
/// The bits for targets.
const BITS: usize = 512;
/// Ports of one host from which on nobody checks their health by resets.
const CHECKED: u32 = 100;
/// Tries at one target, on average, from which on a source is no scanner.
const REPEATS: u64 = 12;

/// How a target is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Technique {
    /// A SYN, or a handshake.
    Syn,
    /// A FIN without an ACK.
    Fin,
    /// FIN, PSH and URG.
    Xmas,
    /// No flags.
    Null,
    /// An ACK of no connection.
    Ack,
    /// A datagram.
    Udp,
    /// An ICMP request.
    Icmp,
}

const TECHNIQUES: [Technique; 7] = [
    Technique::Syn,
    Technique::Fin,
    Technique::Xmas,
    Technique::Null,
    Technique::Ack,
    Technique::Udp,
    Technique::Icmp,
];

impl Technique {
    fn name(self) -> &'static str {
        match self {
            Technique::Syn => "SYN",
            Technique::Fin => "FIN",
            Technique::Xmas => "Xmas",
            Technique::Null => "Null",
            Technique::Ack => "ACK",
            Technique::Udp => "UDP",
            Technique::Icmp => "ICMP",
        }
    }

    /// The protocol of its packets, as a number in a subject.
    pub(super) fn protocol(self) -> u8 {
        match self {
            Technique::Udp => 1,
            Technique::Icmp => 2,
            _ => 0,
        }
    }
}

/// What a subject stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One port of many hosts.
    Hosts,
    /// Many ports of one host.
    Ports,
    /// Any ports of any hosts.
    Anywhere,
}

/// The byte of a subject that marks any port and any victim.
const ANYWHERE: usize = 33;

/// A source, and one port of many hosts. The protocol is in the upper half of the first byte.
pub(super) fn by_port(source: &Host, port: u16, protocol: u8) -> Subject {
    let mut subject = [0; 36];
    subject[..17].copy_from_slice(source);
    subject[0] |= protocol << 4;
    subject[34..].copy_from_slice(&port.to_be_bytes());
    subject
}

/// A source, and many ports of one victim.
pub(super) fn by_victim(source: &Host, victim: &Host, protocol: u8) -> Subject {
    let mut subject = by_port(source, 0, protocol);
    subject[17..34].copy_from_slice(victim);
    subject
}

/// A source, and any ports of any victims.
pub(super) fn anywhere(source: &Host, protocol: u8) -> Subject {
    let mut subject = by_port(source, 0, protocol);
    subject[ANYWHERE] = 1;
    subject
}

fn shape(subject: &Subject) -> Shape {
    match (subject[17], subject[ANYWHERE]) {
        (0, 0) => Shape::Hosts,
        (0, _) => Shape::Anywhere,
        _ => Shape::Ports,
    }
}

/// The source, the victim if there is one, the port and the protocol of a subject.
fn parts(subject: &Subject) -> (IpAddr, Option<IpAddr>, u16, u8) {
    let mut source: Host = std::array::from_fn(|i| subject[i]);
    let protocol = source[0] >> 4;
    source[0] &= 0x0f;
    let victim = (shape(subject) == Shape::Ports)
        .then(|| sizes::address(std::array::from_fn(|i| subject[17 + i])));
    (sizes::address(source), victim, u16::from_be_bytes([subject[34], subject[35]]), protocol)
}

/// What a source must do at least, by the shape of its scan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rule {
    /// Failed targets.
    pub(super) targets: u32,
    /// Their share of all targets.
    pub(super) ratio: f64,
    pub(super) enabled: bool,
}

/// A source, and its targets.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    pub(super) subject: Subject,
    pub(super) tried: [u64; BITS / 64],
    pub(super) answered: [u64; BITS / 64],
    /// New targets that may still answer: of this second, and of the one before.
    pub(super) young: [u32; 2],
    /// The start of this second of the young targets.
    pub(super) second: u64,
    /// When half of the bits are forgotten next, and how often that was done.
    pub(super) forgets: u64,
    pub(super) halves: u64,
    /// Bits of hashes of hosts and of ports, for tries at random.
    pub(super) hosts: u64,
    pub(super) ports: u64,
    /// Stretches of ten seconds with new targets.
    pub(super) stretches: u32,
    pub(super) stretch: u64,
    pub(super) start: u64,
    pub(super) last: u64,
    pub(super) since: Option<u64>,
    pub(super) alarm: Option<usize>,
    /// Whether no attempt was lost before `start`.
    pub(super) is_first: bool,
    pub(super) attempts: u64,
    /// Whether connections were sampled during the attempts.
    pub(super) sampled: bool,
    /// One bit for each technique.
    pub(super) techniques: u8,
    /// Connections that a target accepted and the source reset.
    pub(super) aborted: u32,
    /// Failed targets from before the source had this entry, by the bits of [`super::lost`].
    pub(super) carried: u32,
    /// Whether young targets may complete a scan, so that time alone may.
    pub(super) waits: bool,
    pub(super) distinct: Distinct,
    pub(super) example: Option<FlowKey>,
}

/// A try at a target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Try<'a> {
    pub(super) now: u64,
    pub(super) flow: &'a FlowKey,
    /// The target of this shape, hashed.
    pub(super) target: u32,
    /// The host and the port, hashed.
    pub(super) host: u32,
    pub(super) port: u32,
    pub(super) technique: Technique,
    pub(super) sampled: bool,
}

impl Suspect for Scan {
    fn new(subject: Subject, now: u64, is_first: bool) -> Self {
        Scan {
            subject,
            tried: [0; BITS / 64],
            answered: [0; BITS / 64],
            young: [0; 2],
            second: now,
            forgets: now.saturating_add(2 * HALF),
            halves: 0,
            hosts: 0,
            ports: 0,
            stretches: 0,
            stretch: 0,
            start: now,
            last: now,
            since: None,
            alarm: None,
            is_first,
            attempts: 0,
            sampled: false,
            techniques: 0,
            aborted: 0,
            carried: 0,
            waits: false,
            distinct: Distinct::default(),
            example: None,
        }
    }

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn weight(&self, now: u64) -> Option<f64> {
        if self.since.is_some() || self.alarm.is_some() {
            return None;
        }
        let age = now.saturating_sub(self.last);
        if age > 2 * HALF {
            return Some(0.0);
        }
        // Of sources with as many failures, the one that tried last is the most suspect: a scan in
        // progress must not be evicted by single attempts of forged sources. One that has gone on for
        // long is worth more than one with as many failures at once.
        let recent = 1.0 / (1.0 + age as f64 / SECOND as f64);
        let (failed, settled) = self.settled();
        if 3 * failed < settled {
            return Some(recent);
        }
        let all = failed + self.young_now(now);
        Some(f64::from(all + 2 * self.stretches.min(all)) + recent)
    }

    fn is_active(&self, now: u64) -> bool {
        now.saturating_sub(self.last) < SECOND
    }

    fn is_open(&self) -> bool {
        self.since.is_some() || self.alarm.is_some() || self.waits
    }
}

fn ones(words: impl IntoIterator<Item = u64>) -> u32 {
    words.into_iter().map(u64::count_ones).sum()
}

impl Scan {
    fn place(target: u32) -> (usize, u64) {
        let bit = target as usize % BITS;
        (bit / 64, 1 << (bit % 64))
    }

    /// Targets that were tried and have not answered.
    fn open(&self) -> u32 {
        let open = self.tried.iter().zip(&self.answered).map(|(tried, answered)| tried & !answered);
        ones(open) + self.carried.count_ones()
    }

    /// The failed targets, by the bits of [`super::lost`].
    pub(super) fn failed_bits(&self) -> u32 {
        let open = self.tried.iter().zip(&self.answered).map(|(tried, answered)| tried & !answered);
        open.fold(self.carried, |all, word| all | word as u32 | (word >> 32) as u32)
    }

    fn young_now(&self, now: u64) -> u32 {
        match now.saturating_sub(self.second) / SECOND {
            0 => self.young[0].saturating_add(self.young[1]),
            1 => self.young[0],
            _ => 0,
        }
    }

    /// Failed targets and all, without young ones, by the last try.
    fn settled(&self) -> (u32, u32) {
        self.settled_at(self.last)
    }

    fn settled_at(&self, now: u64) -> (u32, u32) {
        let young = self.young_now(now);
        let all = ones(self.tried) + self.carried.count_ones();
        (self.open().saturating_sub(young), all.saturating_sub(young))
    }

    fn turn(&mut self, now: u64) {
        let seconds = now.saturating_sub(self.second) / SECOND;
        if seconds > 0 {
            self.young = [0, if seconds == 1 { self.young[0] } else { 0 }];
            self.second += seconds * SECOND;
        }
        if self.alarm.is_some() || now < self.forgets {
            return;
        }
        // A gap of an hour forgets everything.
        let times = (now - self.forgets) / HALF + 1;
        for _ in 0..times.min(2) {
            let half = (self.halves % 2) as usize * (BITS / 128);
            self.tried[half..half + BITS / 128].fill(0);
            self.answered[half..half + BITS / 128].fill(0);
            self.halves += 1;
        }
        self.forgets = self.forgets.saturating_add(times.saturating_mul(HALF));
        (self.hosts, self.ports, self.carried) = (0, 0, 0);
        self.stretches /= 2;
        // A source whose last target was forgotten starts again as a new one.
        if ones(self.tried) == 0 {
            *self = Scan::new(self.subject, now, false);
        }
    }

    /// Counts a try. Returns whether the source may be a scanner, before that is certain.
    pub(super) fn try_at(&mut self, one: &Try<'_>, rule: &Rule) -> bool {
        let now = one.now;
        self.turn(now);
        self.attempts += 1;
        self.sampled |= one.sampled;
        self.last = now;
        self.techniques |= 1 << one.technique as u8;
        self.distinct.see(one.target);
        self.hosts |= 1 << (one.host & 63);
        self.ports |= 1 << (one.port & 63);
        self.example = Some(*one.flow);
        let (word, bit) = Scan::place(one.target);
        if self.tried[word] & bit == 0 && self.carried & lost::bit(one.target) == 0 {
            self.tried[word] |= bit;
            if matches!(
                one.technique,
                Technique::Syn | Technique::Udp | Technique::Icmp | Technique::Ack
            ) {
                self.young[0] += 1;
            }
            let stretch = now / (10 * SECOND) + 1;
            if stretch != self.stretch {
                (self.stretch, self.stretches) = (stretch, self.stretches.saturating_add(1));
            }
        }
        if self.since.is_none() && self.holds(now, rule) {
            self.since = Some(now);
        }
        self.is_suspect(rule)
    }

    /// The subject of any tries of this source over this protocol.
    pub(super) fn source(&self) -> Subject {
        let source = std::array::from_fn(|i| self.subject[i]);
        anywhere(&source, 0)
    }

    /// Whether two of three targets answered, of twenty or more.
    pub(super) fn mostly_succeeds(&self) -> bool {
        let (failed, settled) = self.settled();
        settled >= 20 && 3 * failed < settled
    }

    /// A target accepted, and the source reset the connection at once.
    pub(super) fn abort(&mut self, now: u64) {
        self.turn(now);
        self.aborted = self.aborted.saturating_add(1);
        self.grow_up();
    }

    /// Whether the source may be a scanner, before that is certain.
    pub(super) fn is_suspect(&self, rule: &Rule) -> bool {
        let open = self.open();
        let fails = 2 * open > ones(self.answered) && open >= rule.targets * 2 / 5;
        (self.alarm.is_some() || fails) && !self.repeats()
    }

    /// Whether the source tries its targets again and again.
    fn repeats(&self) -> bool {
        let bits = ones(self.tried);
        // Beyond 400 bits the number of targets is not known.
        if bits > 400 { self.attempts > 20_000 } else { self.attempts > REPEATS * u64::from(bits) }
    }

    /// A target answered.
    pub(super) fn answer(&mut self, target: u32, now: u64) {
        self.turn(now);
        self.carried &= !lost::bit(target);
        let (word, bit) = Scan::place(target);
        if self.tried[word] & bit != 0 && self.answered[word] & bit == 0 {
            self.answered[word] |= bit;
            self.grow_up();
        }
    }

    /// A target refused.
    pub(super) fn refuse(&mut self, now: u64) {
        self.turn(now);
        self.grow_up();
    }

    /// One of the young targets is settled.
    fn grow_up(&mut self) {
        let at = usize::from(self.young[1] > 0);
        self.young[at] = self.young[at].saturating_sub(1);
    }

    /// Whether the failed targets are a scan.
    fn holds(&self, now: u64, rule: &Rule) -> bool {
        let (failed, settled) = self.settled_at(now);
        self.are_scan(failed, settled, rule)
    }

    fn are_scan(&self, failed: u32, settled: u32, rule: &Rule) -> bool {
        if !rule.enabled || failed < rule.targets || self.repeats() {
            return false;
        }
        let is_udp = self.subject[0] >> 4 == Technique::Udp.protocol();
        let is_peers = is_udp && shape(&self.subject) != Shape::Ports && !self.is_at_service();
        let ratio = match (is_udp, is_peers) {
            // Peers that are gone do not refuse datagrams, and some always answer.
            (_, true) => rule.ratio.max(0.95),
            // Datagrams get lost.
            (true, _) => (1.5 * rule.ratio).min(0.95),
            _ => rule.ratio,
        };
        let least = if is_peers { rule.targets + rule.targets / 2 } else { rule.targets };
        if f64::from(failed) < ratio * f64::from(settled) || failed < least {
            return false;
        }
        match shape(&self.subject) {
            // A load balancer checks some ports of a host again and again.
            Shape::Ports => failed.saturating_sub(self.aborted) >= least || failed >= CHECKED,
            // The ratio of failures in a sample is too uncertain to accuse a host of random tries.
            // 15 of 64 bits are those of 17 hosts.
            // A peer that looks for others finds some of them.
            Shape::Anywhere if is_udp && ones(self.answered) > 0 => false,
            Shape::Anywhere => {
                !self.sampled && self.hosts.count_ones() >= 13 && self.ports.count_ones() >= 13
            }
            _ => true,
        }
    }

    /// Whether the tries are at one port, that of a service.
    fn is_at_service(&self) -> bool {
        let (_, _, port, _) = parts(&self.subject);
        shape(&self.subject) == Shape::Hosts
            && (is_registered(port) || amplifiers::name(port).is_some())
    }

    /// Whether the tries are TCP segments.
    pub(super) fn is_over_tcp(&self) -> bool {
        self.subject[0] >> 4 == Technique::Syn.protocol()
    }

    /// Whether the incident of this source is listed.
    pub(super) fn is_listed(&self) -> bool {
        self.alarm.is_some()
    }

    /// Whether answers do not matter: a handshake that goes on counts as answered, and no client sends
    /// the odd flags of other techniques.
    pub(super) fn is_one_sided(&self) -> bool {
        let others =
            1 << Technique::Ack as u8 | 1 << Technique::Udp as u8 | 1 << Technique::Icmp as u8;
        self.techniques & others == 0
    }

    /// Whether it is a scan if nothing comes after this: young targets fail, if none has answered or
    /// there are twice as many as needed.
    fn holds_at_the_end(&self, now: u64, rule: &Rule) -> bool {
        let open = self.open();
        let is_clear = ones(self.answered) == 0 || open >= 2 * rule.targets;
        self.holds(now, rule) || (is_clear && self.are_scan(open, ones(self.tried), rule))
    }

    /// Once per second: raises, updates or closes the incident.
    pub(super) fn look(&mut self, now: u64, over: bool, rule: &Rule, all: bool, list: &mut List) {
        self.turn(now);
        let (failed, _) = self.settled_at(now);
        self.waits = self.young_now(now) > 0 && self.open() >= rule.targets;
        if let Some(number) = self.alarm {
            if now.saturating_sub(self.last) >= WINDOW {
                list.show(self.alarm, || self.evidence(all));
                list.close(number, now);
                *self = Scan::new(self.subject, now, self.is_first);
                return;
            }
            list.update(self.alarm, self.last.max(self.since.unwrap_or(0)), failed.into());
            if let Some(flow) = self.example.take() {
                list.example(self.alarm, now, &flow);
            }
            return;
        }
        if !(self.holds(now, rule) || (over && self.holds_at_the_end(now, rule))) {
            self.since = None;
            return;
        }
        let since = *self.since.get_or_insert(self.last);
        self.alarm = list.raise(self.finding(since, failed, rule, all));
        if let Some(flow) = self.example.take() {
            list.example(self.alarm, now, &flow);
        }
        // An incident that cannot be listed is counted once: the condition must begin again.
        self.since = self.since.filter(|_| self.alarm.is_some());
    }

    fn finding(&self, opened: u64, failed: u32, rule: &Rule, all: bool) -> Finding {
        let (source, victim, port, protocol) = parts(&self.subject);
        let names = TECHNIQUES.into_iter().filter(|one| self.techniques >> *one as u8 & 1 == 1);
        let names: Vec<_> = names.map(Technique::name).collect();
        let how = if names == ["SYN"] { String::new() } else { format!(" ({})", names.join(", ")) };
        let word = ["tcp", "udp", "(icmp or icmp6)"][usize::from(protocol).min(2)];
        let (kind, text, filter) = match (shape(&self.subject), victim) {
            (Shape::Ports, Some(victim)) => (
                kinds::PORT_SCAN,
                format!("{source} tries one port of {victim} after the other{how}"),
                format!("src host {source} and dst host {victim} and {word}"),
            ),
            (Shape::Anywhere, _) => (
                kinds::RANDOM_SCAN,
                format!("{source} tries ports of hosts at random{how}"),
                format!("src host {source} and {word}"),
            ),
            _ if protocol == 2 => (
                kinds::ADDRESS_SCAN,
                format!("{source} pings one host after the other"),
                format!("src host {source} and {word}"),
            ),
            _ => (
                kinds::ADDRESS_SCAN,
                format!("{source} tries port {port} of one host after the other{how}"),
                format!("src host {source} and {word} dst port {port}"),
            ),
        };
        let is_v4 = source.is_ipv4();
        let number = match protocol {
            0 => crate::flow::protocol::TCP,
            1 => crate::flow::protocol::UDP,
            _ if is_v4 => crate::flow::protocol::ICMP,
            _ => crate::flow::protocol::ICMPV6,
        };
        let is_one_port = shape(&self.subject) == Shape::Hosts && protocol < 2;
        Finding {
            kind,
            subject: Prefix::from(source),
            ends: Ends {
                peer: victim,
                protocol: Some(number),
                subject_port: None,
                peer_port: is_one_port.then_some(port),
            },
            text,
            filter,
            opened,
            size: failed.max(rule.targets).into(),
            least: rule.targets.into(),
            evidence: self.evidence(all),
        }
    }

    pub(super) fn evidence(&self, all: bool) -> Evidence {
        // A random scan counts only the first attempt of its source at each port.
        let counted = all && self.is_first && shape(&self.subject) != Shape::Anywhere;
        let attempts = incidents::count(self.attempts, counted);
        let failed = crate::Figure::at_least(self.open().into(), None);
        let about = incidents::estimate(self.distinct.figure(), attempts, all);
        vec![("attempts", attempts), ("targets_at_least", failed), ("targets_about", about)]
    }
}

/// Hashes a port, which is a small number; [`Distinct`] needs uniform bits.
pub(super) fn mixed(target: u32, seed: Seed) -> u32 {
    (u64::from(target).digest(seed).0 >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { targets: 25, ratio: 0.5, enabled: true };

    fn scan() -> Scan {
        let source = sizes::host([203, 0, 113, 9].into());
        Scan::new(by_port(&source, 445, 0), 0, true)
    }

    fn one(number: u32, now: u64, flow: &FlowKey) -> Try<'_> {
        let target = mixed(number, Seed(1));
        let technique = Technique::Syn;
        Try { now, flow, target, host: target, port: 0, technique, sampled: false }
    }

    #[test]
    fn a_try_a_minute_is_found_within_the_hour_and_a_client_of_many_hosts_is_none() {
        let flow = FlowKey::v4([203, 0, 113, 9], [10, 0, 0, 1], [40_000, 445], 6);
        let minute = 60 * SECOND;
        let mut slow = scan();
        let found = (0..60).find(|&at| {
            slow.try_at(&one(at, u64::from(at) * minute, &flow), &RULE);
            slow.since.is_some()
        });
        // Two targets may share a bit, and the last try is young.
        assert!(found.is_some_and(|at| (25..35).contains(&at)), "{found:?}");

        // A hundred connections a second, each answered after a tenth; one of twenty fails.
        let mut crawler = scan();
        for at in 0..20_000u32 {
            let now = u64::from(at) * SECOND / 100;
            crawler.try_at(&one(at, now, &flow), &RULE);
            if at >= 10 && at % 20 != 0 {
                crawler.answer(one(at - 10, 0, &flow).target, now);
            }
            assert!(crawler.since.is_none(), "{at}: {:?}", crawler.settled());
        }
    }

    #[test]
    fn targets_are_forgotten_half_by_half() {
        let flow = FlowKey::v4([203, 0, 113, 9], [10, 0, 0, 1], [40_000, 445], 6);
        let mut scan = scan();
        for at in 0..20 {
            scan.try_at(&one(at, 0, &flow), &RULE);
        }
        let all = scan.open();
        scan.turn(2 * HALF - 1);
        assert_eq!(scan.open(), all);
        scan.turn(2 * HALF);
        assert!(scan.open() < all && scan.open() > 0);
        scan.turn(3 * HALF);
        assert_eq!(scan.open(), 0);
        let mut gap = super::tests::scan();
        gap.try_at(&one(1, 0, &flow), &RULE);
        gap.turn(u64::MAX);
        assert_eq!(gap.open(), 0);
    }

    /// An attacker who does not know the seed cannot choose ports that the estimate misses.
    #[test]
    fn the_ports_of_a_scan_are_hashed_with_the_seed() {
        let flow = FlowKey::v4([203, 0, 113, 9], [10, 0, 0, 1], [40_000, 445], 6);
        let counter = |seed: Seed| {
            let mut scan = scan();
            for port in 1..=1_000 {
                scan.try_at(&Try { target: mixed(port, seed), ..one(0, 0, &flow) }, &RULE);
            }
            format!("{:?}", scan.distinct)
        };
        assert_eq!(counter(Seed(1)), counter(Seed(1)));
        assert_ne!(counter(Seed(1)), counter(Seed(2)));
    }
}
