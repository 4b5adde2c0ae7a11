//! A victim of unanswered handshakes: SYNs to one port of one host, most of which stay unanswered.

use super::{
    HOLDS, SECOND,
    distinct::Distinct,
    parts,
    table::{Subject, Suspect},
};
use crate::{
    flow::protocol,
    monitor::incidents::{Ends, Evidence, Finding, List, count, estimate, kinds},
};

/// The shortest time that a handshake counts; the longest is twice this.
pub(super) const SPAN: u64 = 5 * SECOND;
/// The number of unanswered handshakes that are a flood.
const PENDING: u64 = 50;

/// A victim, and the handshakes that were opened to it.
#[derive(Debug, Clone)]
pub(super) struct Flood {
    pub(super) subject: Subject,
    /// Connections opened in this span and in the one before.
    pub(super) asked: [u64; 2],
    /// Connections that completed, were refused or were reset, in the same spans.
    pub(super) answered: [u64; 2],
    /// Whether connections were sampled, in the same spans.
    pub(super) sampled: [bool; 2],
    /// The start of this span.
    pub(super) start: u64,
    pub(super) since: Option<u64>,
    pub(super) alarm: Option<usize>,
    /// Whether no attempt was lost before the subject was stored.
    pub(super) is_first: bool,
    pub(super) attempts: u64,
    /// The most unanswered connections at one time, of those that count.
    pub(super) peak: u64,
    pub(super) sources: Distinct,
}

impl Suspect for Flood {
    fn new(subject: Subject, now: u64, is_first: bool) -> Self {
        Flood {
            subject,
            asked: [0; 2],
            answered: [0; 2],
            sampled: [false; 2],
            start: now,
            since: None,
            alarm: None,
            is_first,
            attempts: 0,
            peak: 0,
            sources: Distinct::default(),
        }
    }

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn weight(&self, now: u64) -> Option<f64> {
        self.alarm.is_none().then(|| self.pending_at(now)[0] as f64)
    }

    fn is_active(&self, now: u64) -> bool {
        now.saturating_sub(self.start) < SPAN
    }

    fn is_open(&self) -> bool {
        self.since.is_some() || self.alarm.is_some()
    }
}

impl Flood {
    /// The unanswered connections and all connections that count at time `now`.
    fn pending_at(&self, now: u64) -> [u64; 2] {
        let sum = |spans: [u64; 2]| match now.saturating_sub(self.start) / SPAN {
            0 => spans[0] + spans[1],
            1 => spans[0],
            _ => 0,
        };
        let asked = sum(self.asked);
        [asked.saturating_sub(sum(self.answered)), asked]
    }

    /// Begins a new span if the current one is over.
    fn turn(&mut self, now: u64) {
        let spans = now.saturating_sub(self.start) / SPAN;
        if spans > 0 {
            let before = |counts: [u64; 2]| [0, if spans == 1 { counts[0] } else { 0 }];
            (self.asked, self.answered) = (before(self.asked), before(self.answered));
            self.sampled = [false, spans == 1 && self.sampled[0]];
            self.start += spans * SPAN;
        }
    }

    pub(super) fn ask(&mut self, now: u64, source: u32, sampled: bool) {
        self.turn(now);
        self.sampled[0] |= sampled;
        self.asked[0] += 1;
        self.attempts += 1;
        self.sources.see(source);
        self.settle(now);
    }

    pub(super) fn answer(&mut self, now: u64) {
        self.turn(now);
        self.answered[0] += 1;
        self.settle(now);
    }

    fn settle(&mut self, now: u64) {
        let [pending, asked] = self.pending_at(now);
        self.peak = self.peak.max(pending);
        match (self.holds(pending, asked), self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(_)) if self.alarm.is_none() => self.since = None,
            _ => {}
        }
    }

    pub(super) fn look(&mut self, now: u64, over: bool, followed: bool, list: &mut List) {
        if let Some(index) = self.alarm {
            if self.pending_at(now)[0] < PENDING / 2 {
                list.show(self.alarm, || self.evidence(followed));
                list.close(index, now);
                (self.alarm, self.since) = (None, None);
                (self.attempts, self.peak, self.sources) = (0, 0, Distinct::default());
            } else {
                list.update(self.alarm, now, self.pending_at(now)[0]);
            }
            return;
        }
        let Some(since) = self.since else { return };
        let then = since.saturating_add(HOLDS);
        let [pending, asked] = self.pending_at(now.min(then));
        if !self.holds(pending, asked) {
            self.since = None;
        } else if over || now >= then {
            let (victim, _, port) = parts(&self.subject);
            let ends =
                Ends { protocol: Some(protocol::TCP), subject_port: Some(port), ..Ends::default() };
            self.alarm = list.raise(Finding {
                kind: kinds::SYN_FLOOD,
                subject: victim.into(),
                ends,
                text: format!("SYN flood at {victim} port {port}"),
                filter: format!(
                    "dst host {victim} and tcp dst port {port} \
                     and tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn"
                ),
                opened: since,
                size: pending,
                least: PENDING,
                evidence: self.evidence(followed),
            });
            // An incident that is not listed is raised again when the condition has held once more.
            self.since = self.since.filter(|_| self.alarm.is_some());
        }
    }

    /// Whether `pending` unanswered handshakes, of `asked`, are a flood. Sampled handshakes are a
    /// lower bound of `pending`; half of `asked` must then be exceeded by six standard deviations.
    fn holds(&self, pending: u64, asked: u64) -> bool {
        let sampled = self.sampled[0] || self.sampled[1];
        let margin = if sampled { 3.0 * (asked as f64).sqrt() } else { 0.0 };
        pending >= PENDING && pending >= asked / 2 + margin as u64
    }

    pub(super) fn evidence(&self, followed: bool) -> Evidence {
        let counted = followed && self.is_first;
        let attempts = count(self.attempts, counted);
        vec![
            ("attempts", attempts),
            ("peak_pending", count(self.peak, counted)),
            ("sources_about", estimate(self.sources.figure(), attempts, followed)),
        ]
    }
}
