//! The counts of connections as figures: which of them are exact, and the interval of the others.
//!
//! A count is exact while the map could follow every connection and distinguish it from all others.
//! Otherwise it is an estimate, and its interval is wide enough for each of these causes:
//!
//! | cause | widens the interval by |
//! |---|---|
//! | sampling | the 99% interval of [`Sampling::interval`] |
//! | packets of connections that did not fit | one connection per packet |
//! | connections that cannot be distinguished | one each |
//! | connections mistaken for others | three for each; the 99% limit of their number |
//! | a merge of parts | the connections that may be in two of them |
//!
//! A count is exact only if the chance of a mistaken connection is below one in a million.
//!
//! A mistaken connection shares the cell of another one. The packets of both then appear as one
//! connection or as up to three, so that no count is wrong by more than three.

use super::{Counts, OUTCOMES, merge::total};
use crate::{
    figure::{CEILING, Figure},
    flow_map::{EXACT, mistaken_most},
};

/// Counts that a mistaken connection may change by.
const MISTAKEN: u64 = 3;
/// The confidence of an interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Confidence {
    /// Standard deviations of a sampled count.
    sigmas: f64,
    /// The chance of more mistaken connections.
    chance: f64,
}

/// 99%, for reports.
pub(super) const SHOWN: Confidence = Confidence { sigmas: 2.576, chance: 0.005 };
/// Six standard deviations, for audits.
pub(crate) const SURE: Confidence = Confidence { sigmas: 6.0, chance: 1e-9 };

/// The counts of connections, each with its certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// All connections.
    pub total: Figure,
    /// Connections by outcome, in the order of [`OUTCOMES`].
    pub by_state: [Figure; OUTCOMES.len()],
    /// Connections that have not ended, by outcome.
    pub present: [Figure; OUTCOMES.len()],
    /// Connections whose handshake is incomplete at the end.
    pub half_open: Figure,
    /// The largest number of half-open connections at a time.
    pub peak_half_open: Figure,
    /// Connections that are open at the end.
    pub open: Figure,
    /// Connections whose handshake completed.
    pub came_about: Figure,
    /// Connections of which only one side was captured.
    pub one_way: Figure,
    /// Connections that cannot be distinguished.
    pub dont_know: Figure,
}

impl Figures {
    /// All figures, each changed.
    pub(crate) fn map(self, change: impl Fn(Figure) -> Figure) -> Self {
        Figures {
            total: change(self.total),
            by_state: self.by_state.map(&change),
            present: self.present.map(&change),
            half_open: change(self.half_open),
            peak_half_open: change(self.peak_half_open),
            open: change(self.open),
            came_about: change(self.came_about),
            one_way: change(self.one_way),
            dont_know: change(self.dont_know),
        }
    }
}

impl Counts {
    /// The counts as figures.
    pub fn figures(&self) -> Figures {
        self.figures_at(SHOWN)
    }

    /// The figures, with intervals of this confidence.
    pub(crate) fn figures_at(&self, Confidence { sigmas, chance }: Confidence) -> Figures {
        let sampling = &self.sampling;
        let slack = self.slack(chance);
        let is_exact = !sampling.is_sampled() && self.slack(EXACT) == 0;
        let figure = |n: u64, variance: u64| {
            if is_exact {
                return Figure::exact(n);
            }
            let (least, most) = sampling.interval_at(n, variance, sigmas);
            Figure::estimate(n, least.saturating_sub(slack), most.saturating_add(slack))
        };
        let present = |n: u64| figure(n, sampling.present_variance(n));
        let all = total(&self.by_state).saturating_add(self.dont_know);
        let mut figures = Figures {
            total: figure(all, total(&sampling.by_state)),
            by_state: std::array::from_fn(|i| figure(self.by_state[i], sampling.by_state[i])),
            present: self.present.map(present),
            half_open: present(self.half_open),
            peak_half_open: present(self.peak_half_open),
            open: present(self.open),
            came_about: figure(self.came_about, sampling.came_about),
            one_way: figure(self.one_way, sampling.one_way),
            dont_know: match is_exact {
                true => Figure::exact(self.dont_know),
                // Connections that were not followed cannot be compared with others.
                false if sampling.is_sampled() || self.refused > 0 => {
                    Figure::at_least(self.dont_know, None)
                }
                false => {
                    let most = self.dont_know.saturating_add(slack);
                    Figure::estimate(self.dont_know, self.dont_know, most)
                }
            },
        };
        if let Some(merged) = &self.merged {
            let (open, [least, most]) = (figures.open, merged.open);
            if [least, most] != [open.value(); 2] {
                let upper = open.most().unwrap_or(CEILING).max(most);
                figures.open = Figure::estimate(open.value(), open.least().min(least), upper);
            }
            let peak = figures.peak_half_open;
            // A connection of an earlier part can look half open in a later one.
            let certain = !sampling.is_sampled() && self.refused == 0;
            let alone = merged.peak_least.saturating_sub(merged.crossing);
            // The count is the sum of peaks at different times, as far as no connection crosses.
            let sum = self.peak_half_open.saturating_sub(merged.peak_least);
            let least = peak.least().saturating_sub(sum.saturating_sub(merged.crossing));
            let least = if certain { least.max(alone) } else { least };
            let most = peak.most().unwrap_or(CEILING);
            figures.peak_half_open = Figure::estimate(peak.value(), least, most);
        }
        figures
    }

    /// The number of connections by which a count may be wrong, apart from the error of sampling.
    /// More mistaken connections have the probability `chance`.
    fn slack(&self, chance: f64) -> u64 {
        let refused = self.refused.saturating_mul(1 << self.sampling.highest);
        let mistaken = mistaken_most(self.mistaken, chance).saturating_mul(MISTAKEN);
        let crossing = self.merged.map_or(0, |merged| merged.crossing);
        [self.dont_know, mistaken, crossing]
            .iter()
            .fold(refused, |sum, more| sum.saturating_add(*more))
    }
}
