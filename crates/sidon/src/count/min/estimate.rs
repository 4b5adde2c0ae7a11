//! Estimates: from the smallest counter of a key to a value, its bound and its slack.
//!
//! Other keys with amounts of `rest` in total add `rest / columns` to a counter on average. Markov's
//! inequality bounds the share of keys for which they add more than `e` times that in every row.
//! ```text
//! smallest counter, rest of the sums --> value, and slack = rest * e / (columns - e)
//! ```
//! The factor is computed once for a sketch, as an integer and a fraction of 2^64, so that an
//! estimate takes a multiplication and no division.

use super::{Layout, Min, Shape, Update};
use crate::{
    Bound, Certainty, Estimate,
    count::cell::{self, Mapping},
};
use std::f64::consts::E;

/// The rule that computes the slack of an answer from the amounts of other keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slack {
    /// Slack per unit of other keys' amounts: the whole part, and the fraction of 2^64. The whole
    /// part is `u64::MAX` if there is no bound.
    whole: u64,
    part: u64,
    pub(super) rest: Rest,
    /// The probability that an answer exceeds the slack.
    pub(super) error: f64,
}

/// The amounts of other keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rest {
    /// The total, less the answer.
    Total,
    /// The sum of a row's counters in the key's line, less the answer.
    Line,
    /// The total.
    All,
}

impl Slack {
    /// Each row errs by more than `e` times its mean with probability below `1/e`, by Markov's
    /// inequality. Rows err independently: `X < e (mass - count) / columns`, where `count = value -
    /// X`.
    pub(super) fn new(shape: Shape, mapping: Mapping) -> Self {
        let error = (-f64::from(shape.rows)).exp();
        let per = |columns: u64| {
            let columns = columns as f64;
            if columns > E { E / (columns - E) } else { f64::INFINITY }
        };
        let (factor, rest) = match (shape.layout, shape.update) {
            (Layout::Rows, _) => (per(shape.columns), Rest::Total),
            // In the key's line the rows are independent, and the sum of their counters can be
            // read.
            (Layout::Line, Update::Plain) => (per(mapping.segment), Rest::Line),
            // The sum of the amounts in a line is not known, so the bound is that of one row's
            // mean.
            (Layout::Line, Update::Conservative) => {
                (1.0 / (error * shape.columns as f64), Rest::All)
            }
        };
        // Rounded up: the slack may be one unit too large, never too small.
        let (whole, part) = (factor as u64, (factor.fract() * 2f64.powi(64)) as u64);
        Slack { whole, part: part.saturating_add(1 << 11), rest, error }
    }

    /// The slack if other keys have amounts of `rest`.
    #[inline(always)]
    fn of(&self, rest: u64) -> u64 {
        let part = ((u128::from(rest) * u128::from(self.part)) >> 64) as u64;
        match self.whole {
            0 => part,
            u64::MAX => u64::MAX,
            whole => rest.saturating_mul(whole).saturating_add(part),
        }
    }
}

impl Min {
    /// The sum of row 0's counters in the line of a place. `None` if one of them is at its ceiling.
    #[inline(always)]
    pub(super) fn in_line<const B: usize>(&self, place: usize) -> Option<u64> {
        let (mut sum, mut hidden) = (0u64, false);
        for cell in &cell::cells::<B>(self.table())[self.mapping.segment::<B>(place)] {
            let value = cell::get(*cell);
            sum = sum.saturating_add(value);
            hidden |= value == cell::ceiling::<B>();
        }
        (!hidden).then_some(sum)
    }

    /// The answer for a key with this smallest counter. Its first counter gives the line.
    #[inline(always)]
    pub(in crate::count) fn estimate_from<const B: usize>(
        &self,
        least: u64,
        first: usize,
    ) -> Estimate {
        let reading = self.reading();
        match self.slack.rest {
            Rest::Line => match self.in_line::<B>(first) {
                Some(mass) => reading.with(mass).estimate(least),
                None => reading.blind().estimate(least),
            },
            _ => reading.estimate(least),
        }
    }

    /// The reading of counters, as far as it is the same for all keys.
    #[inline(always)]
    pub(in crate::count) fn reading(&self) -> Reading {
        let Min { floor, rounding, slack, .. } = *self;
        let own = if slack.rest == Rest::All { 0 } else { u64::MAX };
        let reading =
            Reading { ceiling: self.shape.ceiling(), floor, mass: 0, own, rounding, slack };
        reading.with(self.total)
    }

    /// Whether the slack depends on the key's line.
    #[inline(always)]
    pub(in crate::count) fn reads_lines(&self) -> bool {
        self.slack.rest == Rest::Line
    }
}

/// Turns a smallest counter into an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::count) struct Reading {
    ceiling: u64,
    floor: u64,
    /// The most that a row holds.
    mass: u64,
    /// The mask of the answer that is subtracted from `mass` as the key's own part: all bits or
    /// none.
    own: u64,
    rounding: u64,
    slack: Slack,
}

impl Reading {
    /// This reading for a row that holds `mass`.
    #[inline(always)]
    fn with(self, mass: u64) -> Self {
        Reading { mass: mass.saturating_add(self.rounding), ..self }
    }

    /// This reading without a bound of the slack.
    #[inline(always)]
    fn blind(self) -> Self {
        Reading { slack: Slack { whole: u64::MAX, ..self.slack }, ..self }
    }

    /// The estimates for these smallest counters.
    pub(in crate::count) fn estimates(self, values: &[u64], estimates: &mut [Estimate]) {
        // The common case has its own loop: more than two columns, and no decay.
        let slack = Slack { whole: 0, rest: Rest::Total, ..self.slack };
        let usual = Reading { own: u64::MAX, rounding: 0, slack, ..self };
        if self == usual {
            usual.each(values, estimates);
        } else {
            self.each(values, estimates);
        }
    }

    #[inline(always)]
    fn each(self, values: &[u64], estimates: &mut [Estimate]) {
        for (estimate, value) in estimates.iter_mut().zip(values) {
            *estimate = self.estimate(*value);
        }
    }

    /// The estimate for this smallest counter. It uses conditional moves, because branches on the
    /// values of random keys would be mispredicted.
    #[inline(always)]
    fn estimate(&self, least: u64) -> Estimate {
        let full = least == self.ceiling;
        let value = if full { self.floor } else { least };
        let bound = if full { Bound::AtLeast } else { Bound::AtMost };
        let bound = if least == 0 { Bound::Exact } else { bound };
        let rest = self.mass.saturating_sub(value & self.own);
        // Counts are not negative, so a slack equal to the value is certain.
        let slack = self.slack.of(rest).saturating_add(self.rounding).min(value);
        let certainty = if slack == value {
            Certainty::Certain
        } else {
            Certainty::WrongAtMost(self.slack.error)
        };
        Estimate { value, bound, slack, certainty }
    }
}
