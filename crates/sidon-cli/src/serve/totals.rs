//! Counts of the whole run: the sum over all periods, since a new period starts at zero.

use sidon_traffic::{
    Report,
    figure::{Figure, Kind},
    monitor::{
        connections::OUTCOMES,
        incidents::{Incident, KINDS},
        services::RULES,
    },
};
use std::collections::VecDeque;

/// Alarms of earlier periods that are kept.
const ALARMS: usize = 256;

/// Names, each with its count.
pub(super) type Counts = Vec<(&'static str, u64)>;

/// Counts that never decrease.
#[derive(Debug, Clone)]
pub(super) struct Totals {
    pub(super) packets: Figure,
    pub(super) wire_bytes: Figure,
    pub(super) seen: u64,
    pub(super) decoded: u64,
    pub(super) filtered: u64,
    pub(super) undecoded: u64,
    /// Packets with a service, in the order of [`RULES`].
    pub(super) services: [u64; RULES.len()],
    pub(super) refused: Counts,
    pub(super) dont_know: Counts,
    /// Counters of the source.
    pub(super) source: Counts,
    /// Connections that ended, in the order of [`OUTCOMES`].
    pub(super) ended: [Figure; OUTCOMES.len()],
    pub(super) came_about: Figure,
    pub(super) new_sources: Figure,
    /// Alarms, in the order of [`KINDS`].
    pub(super) alarms: [u64; KINDS.len()],
    pub(super) alarms_unlisted: u64,
}

impl Totals {
    /// The counts of one period so far.
    fn of(report: &Report) -> Self {
        let (ledger, connections) = (&report.ledger, report.connection_figures());
        Totals {
            packets: report.packets(),
            wire_bytes: report.bytes(),
            seen: ledger.seen,
            decoded: ledger.decoded,
            filtered: ledger.filtered,
            undecoded: ledger.undecoded_total(),
            services: ledger.services,
            refused: ledger.refused.clone(),
            dont_know: ledger.dont_know.clone(),
            source: ledger.source.clone(),
            ended: std::array::from_fn(|i| minus(connections.by_state[i], connections.present[i])),
            came_about: connections.came_about,
            new_sources: report.new_addresses(),
            alarms: report.alarms_raised,
            alarms_unlisted: report.alarms_unlisted,
        }
    }

    /// Frames seen minus frames accounted for. Always 0.
    pub(super) fn balance(&self) -> i128 {
        let accounted = self.decoded.saturating_add(self.filtered).saturating_add(self.undecoded);
        i128::from(self.seen) - i128::from(accounted)
    }

    fn add(&mut self, more: &Totals) {
        for (sum, more) in [
            (&mut self.seen, more.seen),
            (&mut self.decoded, more.decoded),
            (&mut self.filtered, more.filtered),
            (&mut self.undecoded, more.undecoded),
            (&mut self.alarms_unlisted, more.alarms_unlisted),
        ] {
            *sum = sum.saturating_add(more);
        }
        for (sum, more) in [
            (&mut self.packets, more.packets),
            (&mut self.wire_bytes, more.wire_bytes),
            (&mut self.came_about, more.came_about),
            (&mut self.new_sources, more.new_sources),
        ] {
            *sum = plus(*sum, more);
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
            *sum = plus(*sum, more);
        }
        let services = self.services.iter_mut().zip(more.services);
        for (sum, more) in services.chain(self.alarms.iter_mut().zip(more.alarms)) {
            *sum = sum.saturating_add(more);
        }
    }
}

/// The counts and alarms of earlier periods.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// `None` before the first period has ended.
    totals: Option<Totals>,
    /// The alarms, the oldest first.
    pub(super) alarms: VecDeque<Incident>,
}

impl Past {
    /// Adds a period that has ended.
    pub(super) fn add(&mut self, report: Report) {
        self.totals = Some(self.with(&report));
        self.alarms.extend(report.alarms);
        self.alarms.drain(..self.alarms.len().saturating_sub(ALARMS));
    }

    /// The counts of all periods, including the current one with this report.
    pub(super) fn with(&self, report: &Report) -> Totals {
        let mut totals = Totals::of(report);
        if let Some(past) = &self.totals {
            totals.add(past);
        }
        totals
    }
}

/// The sum of two figures. It is no more certain than the less certain of the two.
pub(super) fn plus(a: Figure, b: Figure) -> Figure {
    let value = a.value().saturating_add(b.value());
    let least = a.least().saturating_add(b.least());
    let most = a.most().zip(b.most()).and_then(|(a, b)| a.checked_add(b));
    let all = |kind| [a, b].iter().all(|one| [Kind::Exact, kind].contains(&one.kind()));
    match most {
        _ if a.kind() == Kind::Unknown || b.kind() == Kind::Unknown => Figure::unknown(value),
        Some(most) if all(Kind::AtMost) => Figure::at_most(least, most),
        Some(most) if !all(Kind::AtLeast) => Figure::estimate(value, least, most),
        most => Figure::at_least(least, most),
    }
}

/// The part of `whole` that is not in `part`.
fn minus(whole: Figure, part: Figure) -> Figure {
    let value = whole.value().saturating_sub(part.value());
    let least = part.most().map_or(0, |most| whole.least().saturating_sub(most));
    let most = whole.most().map(|most| most.saturating_sub(part.least()));
    match (whole.kind(), part.kind(), most) {
        (Kind::Unknown, ..) | (_, Kind::Unknown, _) => Figure::unknown(value),
        (Kind::Exact, Kind::Exact, _) => Figure::exact(value),
        (.., Some(most)) => Figure::estimate(value, least, most),
        (.., None) => Figure::at_least(least, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_differences_contain_the_truth_and_claim_no_more_than_their_parts() {
        let figures = |n: u64| {
            [
                Figure::exact(n),
                Figure::at_most(n - 2, n + 3),
                Figure::at_least(n - 2, Some(n + 3)),
                Figure::at_least(n - 2, None),
                Figure::estimate(n + 1, n - 2, n + 3),
                Figure::unknown(n + 1),
            ]
        };
        for a in figures(100) {
            for b in figures(10) {
                let (sum, rest) = (plus(a, b), minus(a, b));
                assert!(sum.allows(110) && rest.allows(90), "{a} {b}: {sum} {rest}");
                assert_eq!(sum, plus(b, a));
                for result in [sum, rest] {
                    let both = a.kind() == Kind::Exact && b.kind() == Kind::Exact;
                    assert_eq!(result.kind() == Kind::Exact, both, "{a} {b}");
                    let either = a.kind() == Kind::Unknown || b.kind() == Kind::Unknown;
                    assert_eq!(result.kind() == Kind::Unknown, either, "{a} {b}");
                }
            }
        }
        let [exact, at_most, at_least, ..] = figures(100);
        assert_eq!(plus(exact, at_most), Figure::at_most(198, 203));
        assert_eq!(plus(exact, at_least), Figure::at_least(198, Some(203)));
        assert_eq!(plus(at_most, at_least), Figure::estimate(201, 196, 206));
        assert_eq!(minus(exact, Figure::exact(1)), Figure::exact(99));
        // A sum that does not fit is a lower bound.
        assert_eq!(plus(exact, Figure::exact(u64::MAX)), Figure::at_least(u64::MAX, None));
    }
}
