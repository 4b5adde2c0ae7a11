//! Scans: sources whose tries at many targets fail, over TCP, UDP and ICMP.
//!
//! A try is the first packet of a flow: a SYN, a TCP segment without a connection, a datagram, an echo
//! request. It counts in three tables, because a scan varies the host, the port, or both:
//! ```text
//! (source, port)    hosts that did not answer     address_scan; of ICMP a ping sweep
//! (source, victim)  ports that did not answer     port_scan
//! (source)          hosts and ports               random_scan
//! ```
//! A target answers with a SYN+ACK, a datagram or an echo reply; a RST and silence are failures. So a
//! client whose tries mostly succeed is no scanner, and neither is a load balancer that resets each
//! connection once it is accepted. All findings about a source become one incident.

mod lost;
mod saved;
mod scan;

pub(super) use scan::Technique;

use crate::{
    FlowKey,
    monitor::{
        alarms::table::{Suspect, Table},
        incidents::{List, kinds},
        sizes::Host,
    },
    thresholds::Thresholds,
};
use lost::Lost;
use scan::{Rule, Scan, Try, anywhere, by_port, by_victim, mixed};
use sidon::{Infeasible, Seed};

/// The tables of sources.
#[derive(Debug)]
pub(super) struct Scans {
    seed: Seed,
    /// Of hosts, of ports, of both.
    rules: [Rule; 3],
    hosts: Table<Scan>,
    ports: Table<Scan>,
    random: Table<Scan>,
    lost: Lost,
    /// Whether SYNs to the victim of a flood were left out.
    skipped: bool,
}

/// A try, its answer or its refusal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) now: u64,
    /// In the direction of the try.
    pub(super) flow: &'a FlowKey,
    /// The source and the target, and their hashes.
    pub(super) ends: [Host; 2],
    pub(super) hashes: [u32; 2],
    pub(super) technique: Technique,
    /// Whether only a share of the connections is followed.
    pub(super) sampled: bool,
}

/// Bytes of one subject in each of the three tables.
const BYTES: u64 = 3 * size_of::<Option<Scan>>() as u64;

/// Sources without an entry, for each that has one.
const LOST: u64 = 48;

/// The bytes of the tables for `subjects` subjects of each kind.
pub(super) fn bytes(subjects: u64) -> u64 {
    subjects.saturating_mul(BYTES + 8 * LOST)
}

/// The number of subjects of each kind that fit in `bytes` bytes, a multiple of eight.
pub(super) fn subjects(bytes: u64) -> u64 {
    (bytes / (BYTES + 8 * LOST) / 8).max(1) * 8
}

impl Scans {
    pub(super) fn new(
        subjects: u64,
        seed: Seed,
        thresholds: &Thresholds,
    ) -> Result<Self, Infeasible> {
        let rules = [kinds::ADDRESS_SCAN, kinds::PORT_SCAN, kinds::RANDOM_SCAN].map(|kind| {
            let floor = thresholds.floor(kind);
            let targets = u32::try_from(floor.targets).unwrap_or(u32::MAX).max(1);
            Rule { targets, ratio: floor.ratio, enabled: floor.enabled }
        });
        Ok(Scans {
            seed,
            rules,
            hosts: Table::new(subjects, seed)?,
            ports: Table::new(subjects, seed)?,
            random: Table::new(subjects, seed)?,
            lost: Lost::new(subjects.saturating_mul(LOST), seed)?,
            skipped: false,
        })
    }

    /// Leaves a try out, because its target is under attack and its source may be forged.
    pub(super) fn skip(&mut self) {
        self.skipped = true;
    }

    /// The subjects of an attempt, and its targets for each of them.
    fn subjects(&self, of: &Attempt<'_>) -> ([[u8; 36]; 3], [u32; 3]) {
        let [source, victim] = &of.ends;
        let (port, protocol) = (of.flow.destination_port(), of.technique.protocol());
        let subjects = [
            by_port(source, port, protocol),
            by_victim(source, victim, protocol),
            anywhere(source, protocol),
        ];
        let host = of.hashes[1];
        let number = mixed(u32::from(port), self.seed);
        (subjects, [host, number, host.rotate_left(16) ^ number])
    }

    /// Whether the source of a try may be a scanner of this port or of this host.
    pub(super) fn is_scanner(&self, attempt: &Attempt<'_>) -> bool {
        let (subjects, _) = self.subjects(attempt);
        let Scans { rules, hosts, ports, random, .. } = self;
        [hosts, ports, random].into_iter().zip(subjects).zip(rules).any(
            |((table, subject), rule)| {
                table.peek(&subject).is_some_and(|scan| scan.is_suspect(rule))
            },
        )
    }

    /// Counts a try. Returns whether its source may be a scanner.
    pub(super) fn try_at(&mut self, attempt: &Attempt<'_>) -> bool {
        let ([by_port, by_victim, anywhere], targets) = self.subjects(attempt);
        let Attempt { now, flow, technique, sampled, .. } = *attempt;
        let [host, port, _] = targets;
        let one = |target| Try { now, flow, target, host, port, technique, sampled };
        let Scans { rules, hosts, ports, random, lost, .. } = self;
        let mut is_suspect = false;
        let mut count = |table: &mut Table<Scan>, subject, target, rule: &Rule| {
            match table.enter(&subject, now) {
                Some(scan) => {
                    if scan.attempts == 0 {
                        scan.carried = lost.take(&subject, now);
                    }
                    is_suspect |= scan.try_at(&one(target), rule);
                }
                None => lost.add(&subject, lost::bit(target), now),
            }
            if let Some(old) = table.take_displaced() {
                lost.add(old.subject(), old.failed_bits(), now);
            }
        };
        count(hosts, by_port, targets[0], &rules[0]);
        // A ping has no port.
        if technique != Technique::Icmp {
            count(random, anywhere, targets[2], &rules[2]);
            count(ports, by_victim, targets[1], &rules[1]);
        }
        is_suspect
    }

    /// Notes that the target of a try answered, or that it refused.
    pub(super) fn settle(&mut self, attempt: &Attempt<'_>, answered: bool) {
        let (subjects, targets) = self.subjects(attempt);
        let Scans { hosts, ports, random, lost, .. } = self;
        for ((table, subject), target) in
            [hosts, ports, random].into_iter().zip(subjects).zip(targets)
        {
            if let Some(scan) = table.find(&subject) {
                match answered {
                    true => scan.answer(target, attempt.now),
                    false => scan.refuse(attempt.now),
                }
            } else if answered {
                lost.answer(&subject, target, attempt.now);
            }
        }
    }

    /// Notes that a source reset a connection that its target had accepted: a health check, or a scan
    /// of many ports.
    pub(super) fn abort(&mut self, attempt: &Attempt<'_>) {
        let ([by_port, by_victim, anywhere], targets) = self.subjects(attempt);
        let Scans { hosts, ports, random, .. } = self;
        for (table, subject, target) in
            [(hosts, by_port, targets[0]), (random, anywhere, targets[2])]
        {
            if let Some(scan) = table.find(&subject) {
                scan.answer(target, attempt.now);
            }
        }
        if let Some(scan) = ports.find(&by_victim) {
            scan.abort(attempt.now);
        }
    }

    /// Raises and closes incidents. `is_two_way`: the capture would show answers.
    pub(super) fn look(
        &mut self,
        now: u64,
        over: bool,
        followed: bool,
        is_two_way: bool,
        list: &mut List,
    ) {
        let Scans { rules, hosts, ports, random, skipped, .. } = self;
        let all = followed && !*skipped;
        let mut look = |scan: &mut Scan, rule: &Rule| {
            if is_two_way || scan.is_one_sided() {
                scan.look(now, over, rule, all, list);
            }
        };
        // Answers of connections that were left out or evicted were not seen, so that tries before an
        // overload seem to fail. A host that looks for peers is then no random scanner.
        random.judge(|scan| {
            if followed || !scan.is_over_tcp() || scan.is_listed() {
                look(scan, &rules[2]);
            }
        });
        for (table, rule) in [hosts, ports].into_iter().zip(rules) {
            table.judge(|scan| {
                // A gateway or a crawler, most of whose tries succeed, needs more failures at one port.
                let mostly = random.peek(&scan.source()).is_some_and(Scan::mostly_succeeds);
                let times = if mostly { 4 } else { 1 };
                look(scan, &Rule { targets: rule.targets.saturating_mul(times), ..*rule });
            });
        }
    }

    /// Updates the evidence of the open incidents.
    pub(super) fn refresh(&self, followed: bool, list: &mut List) {
        let all = followed && !self.skipped;
        for scan in self.tables().into_iter().flat_map(Table::entries) {
            list.show(scan.alarm, || scan.evidence(all));
        }
    }

    fn tables(&self) -> [&Table<Scan>; 3] {
        [&self.hosts, &self.ports, &self.random]
    }

    /// The numbers of the open incidents.
    pub(super) fn open(&self) -> impl Iterator<Item = Option<usize>> {
        self.tables().into_iter().flat_map(Table::entries).map(|scan| scan.alarm)
    }

    /// Subjects that were judged so far.
    pub(super) fn judged(&self) -> u64 {
        self.tables().into_iter().map(Table::judged).sum()
    }

    /// Suspects that were evicted or not stored, though they had some evidence.
    pub(super) fn evicted(&self) -> u64 {
        self.tables().into_iter().map(Table::evicted).sum()
    }
}
