//! A source whose handshakes fail: one port of many hosts, many ports of one host, or both at random.

use super::{
    HOLDS, SECOND,
    distinct::Distinct,
    parts,
    table::{Subject, Suspect},
};
use crate::{
    Figure,
    flow::protocol,
    monitor::incidents::{Ends, Evidence, Finding, List, count, estimate, kinds},
};
use sidon::{Key, Seed};

/// The numbers of hosts and of ports that are a scan.
pub(super) const HOSTS: usize = 25;
pub(super) const PORTS: usize = 15;
/// The time that failed targets count.
pub(super) const WINDOW: u64 = 300 * SECOND;
/// Failed targets that are stored; the number of further ones is estimated.
pub(super) const TARGETS: usize = 32;
/// The byte of a subject that marks any port and any victim.
pub(super) const ANYWHERE: usize = 33;

/// A source, and the targets with which it completed no handshake.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    pub(super) subject: Subject,
    pub(super) targets: [u32; TARGETS],
    pub(super) used: u8,
    pub(super) start: u64,
    pub(super) last: u64,
    pub(super) since: Option<u64>,
    pub(super) alarm: Option<usize>,
    /// Whether no attempt was lost before `start`.
    pub(super) is_first: bool,
    pub(super) attempts: u64,
    /// The number of handshakes that completed.
    pub(super) let_in: u64,
    /// Whether connections were sampled during the attempts.
    pub(super) sampled: bool,
    /// Targets since the condition holds, and the failed ones before that.
    pub(super) distinct: Distinct,
}

impl Suspect for Scan {
    fn new(subject: Subject, now: u64, is_first: bool) -> Self {
        Scan {
            subject,
            targets: [0; TARGETS],
            used: 0,
            start: now,
            last: now,
            since: None,
            alarm: None,
            is_first,
            attempts: 0,
            let_in: 0,
            sampled: false,
            distinct: Distinct::default(),
        }
    }

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn weight(&self, now: u64) -> Option<f64> {
        let counts = now.saturating_sub(self.start) < WINDOW;
        // Of sources with as many targets, the one that tried last is the most suspect: a scan in
        // progress must not be evicted by single attempts of forged sources.
        let age = now.saturating_sub(self.last) as f64 / SECOND as f64;
        let weight = f64::from(self.used) + 1.0 / (1.0 + age);
        self.alarm.is_none().then_some(if counts { weight } else { 0.0 })
    }

    fn is_active(&self, now: u64) -> bool {
        now.saturating_sub(self.last) < SECOND
    }

    fn is_open(&self) -> bool {
        self.since.is_some() || self.alarm.is_some()
    }
}

impl Scan {
    fn known(&mut self) -> &mut [u32] {
        &mut self.targets[..usize::from(self.used)]
    }

    pub(super) fn try_at(&mut self, target: u32, now: u64, most: usize, sampled: bool, seed: Seed) {
        if self.alarm.is_none() && now.saturating_sub(self.start) >= WINDOW {
            *self = Scan::new(self.subject, now, false);
        }
        self.attempts += 1;
        self.sampled |= sampled;
        self.last = now;
        if usize::from(self.used) < TARGETS && !self.known().contains(&target) {
            self.targets[usize::from(self.used)] = target;
            self.used += 1;
        }
        if self.since.is_some() {
            self.distinct.see(mixed(target, seed));
        } else if self.holds(most) {
            self.since = Some(now);
            self.distinct = Distinct::default();
            for target in &self.targets[..usize::from(self.used)] {
                self.distinct.see(mixed(*target, seed));
            }
        }
    }

    /// Whether the failed targets are a scan: at least `most` of them. A random scan also needs
    /// many hosts and many ports, and few completed handshakes.
    fn holds(&self, most: usize) -> bool {
        if usize::from(self.used) < most {
            return false;
        }
        if !self.is_random() {
            return true;
        }
        // The ratio of failed to completed tries in a sample is too uncertain to accuse a host.
        if self.sampled {
            return false;
        }
        let different = |part: fn(u32) -> u32| {
            let known = &self.targets[..usize::from(self.used)];
            let first = |&(index, target): &(usize, &u32)| {
                !known[..index].iter().any(|other| part(*other) == part(*target))
            };
            known.iter().enumerate().filter(first).count()
        };
        self.let_in * 9 <= u64::from(self.used)
            && different(|target| target >> 16) >= PORTS
            && different(|target| target & 0xffff) >= PORTS
    }

    /// Whether the subject is a source with any port and any victim.
    fn is_random(&self) -> bool {
        self.subject[17] == 0 && self.subject[ANYWHERE] == 1
    }

    pub(super) fn let_in(&mut self, target: u32) {
        self.let_in += 1;
        let last = self.known().last().copied();
        if let Some(place) = self.known().iter_mut().find(|known| **known == target) {
            *place = last.unwrap_or(0);
            self.used -= 1;
        }
    }

    pub(super) fn look(
        &mut self,
        now: u64,
        over: bool,
        most: usize,
        followed: bool,
        list: &mut List,
    ) {
        if let Some(index) = self.alarm {
            if now.saturating_sub(self.last) >= WINDOW {
                list.show(self.alarm, || self.evidence(most, followed));
                list.close(index, now);
                *self = Scan::new(self.subject, now, self.is_first);
            } else {
                list.update(self.alarm, self.last, self.targets(most).value());
            }
            return;
        }
        let Some(since) = self.since else { return };
        if !self.holds(most) {
            self.since = None;
        } else if over || now >= since.saturating_add(HOLDS) {
            self.alarm = list.raise(self.raised(most, since, followed));
            // An incident that is not listed is raised again when the condition has held once more.
            self.since = self.since.filter(|_| self.alarm.is_some());
        }
    }

    fn raised(&self, most: usize, opened: u64, followed: bool) -> Finding {
        let (source, victim, port) = parts(&self.subject);
        let tcp = Ends { protocol: Some(protocol::TCP), ..Ends::default() };
        let (kind, ends, text, filter) = match victim {
            None if self.is_random() => (
                kinds::RANDOM_SCAN,
                tcp,
                format!("{source} tries ports of hosts at random"),
                format!("src host {source} and tcp"),
            ),
            None => (
                kinds::ADDRESS_SCAN,
                Ends { peer_port: Some(port), ..tcp },
                format!("{source} tries port {port} of one host after the other"),
                format!("src host {source} and tcp dst port {port}"),
            ),
            Some(victim) => (
                kinds::PORT_SCAN,
                Ends { peer: Some(victim), ..tcp },
                format!("{source} tries one port of {victim} after the other"),
                format!("src host {source} and dst host {victim} and tcp"),
            ),
        };
        Finding {
            kind,
            subject: source.into(),
            ends,
            text,
            filter,
            opened,
            size: self.targets(most).value(),
            least: most as u64,
            evidence: self.evidence(most, followed),
        }
    }

    /// Estimates the number of targets, `most` at least.
    fn targets(&self, most: usize) -> Figure {
        let least = u64::from(self.used).max(most as u64);
        let about = self.distinct.figure();
        let [value, low] = [about.value(), about.least()].map(|number| number.max(least));
        Figure::estimate(value, low, about.most().unwrap_or(value))
    }

    pub(super) fn evidence(&self, most: usize, followed: bool) -> Evidence {
        // A random scan counts only the first attempt of its source at each port.
        let counted = followed && self.is_first && !self.is_random();
        let attempts = count(self.attempts, counted);
        let least = u64::from(self.used).max(most as u64);
        let about = self.targets(most);
        vec![
            ("attempts", attempts),
            ("targets_at_least", Figure::at_least(least, None)),
            ("targets_about", estimate(about, attempts, followed)),
        ]
    }
}

/// Hashes a target, since a port is a small number and `Distinct` needs uniform bits.
fn mixed(target: u32, seed: Seed) -> u32 {
    (u64::from(target).digest(seed).0 >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attacker who does not know the seed cannot choose ports that the estimate misses.
    #[test]
    fn the_ports_of_a_scan_are_hashed_with_the_seed() {
        let counter = |seed: Seed| {
            let mut scan = Scan::new([0; 36], 0, true);
            (1..=1_000).for_each(|port| scan.try_at(port, 0, PORTS, false, seed));
            format!("{:?}", scan.distinct)
        };
        assert_eq!(counter(Seed(1)), counter(Seed(1)));
        assert_ne!(counter(Seed(1)), counter(Seed(2)));
    }
}
