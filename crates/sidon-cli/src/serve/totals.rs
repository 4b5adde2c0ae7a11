//! What only grows, of all periods of a run: an engine that begins anew begins at zero.

use sidon_traffic::{
    Report,
    monitor::{
        alarms::{Alarm, KINDS},
        connections::OUTCOMES,
    },
};
use std::collections::VecDeque;

/// Alarms of earlier periods that are kept.
const ALARMS: usize = 256;

/// Names, each with its count.
pub(super) type Counts = Vec<(&'static str, u64)>;

/// Figures that only grow.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    pub(super) seen: u64,
    pub(super) wire_bytes: u64,
    pub(super) decoded: u64,
    pub(super) filtered: u64,
    pub(super) undecoded: u64,
    pub(super) refused: Counts,
    pub(super) dont_know: Counts,
    /// What the source said of itself.
    pub(super) source: Counts,
    /// Connections that ended, in the order of [`OUTCOMES`].
    pub(super) ended: [u64; OUTCOMES.len()],
    pub(super) came_about: u64,
    pub(super) new_sources: u64,
    /// Alarms, in the order of [`KINDS`].
    pub(super) alarms: [u64; KINDS.len()],
    pub(super) alarms_unlisted: u64,
}

impl Totals {
    /// Those of one period so far.
    fn of(report: &Report) -> Self {
        let (ledger, connections) = (&report.ledger, &report.connections);
        let ended = |i: usize| connections.by_state[i].saturating_sub(connections.present[i]);
        Totals {
            seen: ledger.seen,
            wire_bytes: ledger.wire_bytes,
            decoded: ledger.decoded,
            filtered: ledger.filtered,
            undecoded: ledger.undecoded_total(),
            refused: ledger.refused.clone(),
            dont_know: ledger.dont_know.clone(),
            source: ledger.source.clone(),
            ended: std::array::from_fn(ended),
            came_about: connections.came_about,
            new_sources: report.new_sources_total,
            alarms: report.alarms_raised,
            alarms_unlisted: report.alarms_unlisted,
        }
    }

    /// Packets that nobody can account for.
    pub(super) fn balance(&self) -> i128 {
        let accounted = [self.decoded, self.filtered, self.undecoded];
        i128::from(self.seen) - accounted.into_iter().map(i128::from).sum::<i128>()
    }

    fn add(&mut self, more: &Totals) {
        for (sum, more) in [
            (&mut self.seen, more.seen),
            (&mut self.wire_bytes, more.wire_bytes),
            (&mut self.decoded, more.decoded),
            (&mut self.filtered, more.filtered),
            (&mut self.undecoded, more.undecoded),
            (&mut self.came_about, more.came_about),
            (&mut self.new_sources, more.new_sources),
            (&mut self.alarms_unlisted, more.alarms_unlisted),
        ] {
            *sum = sum.saturating_add(more);
        }
        for (sums, more) in [
            (&mut self.refused, &more.refused),
            (&mut self.dont_know, &more.dont_know),
            (&mut self.source, &more.source),
        ] {
            for &(name, times) in more {
                match sums.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, sum)) => *sum = sum.saturating_add(times),
                    None => sums.push((name, times)),
                }
            }
        }
        for (sum, more) in self.ended.iter_mut().zip(more.ended) {
            *sum += more;
        }
        for (sum, more) in self.alarms.iter_mut().zip(more.alarms) {
            *sum += more;
        }
    }
}

/// What is kept of the periods that are over.
#[derive(Debug, Default)]
pub(super) struct Past {
    totals: Totals,
    /// Their alarms, the oldest first.
    pub(super) alarms: VecDeque<Alarm>,
}

impl Past {
    /// A period is over.
    pub(super) fn add(&mut self, report: Report) {
        self.totals.add(&Totals::of(&report));
        self.alarms.extend(report.alarms);
        self.alarms.drain(..self.alarms.len().saturating_sub(ALARMS));
    }

    /// Everything up to now.
    pub(super) fn with(&self, report: &Report) -> Totals {
        let mut totals = Totals::of(report);
        totals.add(&self.totals);
        totals
    }
}
