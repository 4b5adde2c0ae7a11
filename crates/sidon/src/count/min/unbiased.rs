//! The unbiased estimate: the median of a key's counters, each less the mean of the other keys.

use super::{Min, estimate::Rest};
use crate::{
    Digest, Key,
    count::cell::{self, Job, MOST},
};

impl Min {
    /// The key's count without the bias of shared counters. Subtracts from each of its counters the
    /// mean of the other keys, and takes the median. The result errs on both sides and may be
    /// negative. Its average error is smaller where columns are few.
    ///
    /// `None` if a counter is at its ceiling, if a row has a single column, or if the update is
    /// conservative.
    pub fn estimate_unbiased<K: Key + ?Sized>(&self, key: &K) -> Option<f64> {
        struct Unbiased<'a>(&'a Min, Digest);
        impl Job for Unbiased<'_> {
            type Output = Option<f64>;
            fn run<const B: usize, const D: usize>(self) -> Option<f64> {
                let Unbiased(sketch, digest) = self;
                let mut at = [0; D];
                sketch.mapping.places::<B, D>(digest, &mut at);
                let at = &at[..sketch.mapping.rows::<D>()];
                let (mass, columns) = match sketch.slack.rest {
                    Rest::Line => (sketch.in_line::<B>(at[0])?, sketch.mapping.segment),
                    _ => (sketch.total, sketch.shape.columns),
                };
                let (mass, columns) = (mass as f64, columns as f64);
                let cells = cell::cells::<B>(sketch.table());
                let mut values = [0.0; MOST];
                let values = &mut values[..at.len()];
                for (value, &at) in values.iter_mut().zip(at) {
                    let counter = cell::get(cells[at]);
                    if counter == cell::ceiling::<B>() {
                        return None;
                    }
                    *value = unbiased(counter, mass, columns);
                }
                median(values)
            }
        }
        self.sums().ok()?;
        cell::by_shape(self.shape, Unbiased(self, key.digest(self.seed)))
    }
}

/// A counter less the mean of the other keys, if one key in `columns` shares it and all keys have
/// `mass`.
#[inline(always)]
pub(crate) fn unbiased(counter: u64, mass: f64, columns: f64) -> f64 {
    (counter as f64 - mass / columns) / (1.0 - 1.0 / columns)
}

/// The median. `None` if there is no value, or if it is not finite.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    let even = values.len().is_multiple_of(2);
    let median = if even { values[middle - 1].midpoint(upper) } else { upper };
    median.is_finite().then_some(median)
}
