//! Better counts from a sketch when all keys are known: those that explain all counters best.
//!
//! A plain [`Min`] is a linear system: every counter is the sum of the counts of its keys. An
//! estimate looks at a key's own counters alone; here the counts of all keys are sought together,
//! with the least sum of squared differences from the counters, none negative and none above its
//! estimate.
//! ```text
//! counters = A * counts,     0 <= counts <= estimates,     a column of A has a one in each row
//! ```
//! Solved key by key: each count in turn is moved to where the differences at its own counters
//! cancel, or to its bound. Every step lowers the sum, and a sweep over all keys touches `rows`
//! counters each. If there are fewer keys than counters the answer mostly is the truth itself.
//! Lee, Liu, Yoon and Zhang, IMC 2005.

use super::{
    cell::{self, Cell, Job},
    min::{self, Min},
};
use crate::{Key, Refused};

/// Counts that explain the counters.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Solution {
    /// The count of each key, in the order of the keys.
    pub counts: Vec<f64>,
    /// The root of the mean squared difference between a counter and what the counts make of it:
    /// near zero if the keys are all there were.
    pub residual: f64,
    /// How many sweeps were made.
    pub sweeps: u32,
}

/// A sweep that moves no count by more than this, relative to the largest, is the last.
const STILL: f64 = 1e-9;

/// The counts of distinct keys that explain the sketch best, after at most `sweeps` sweeps.
///
/// The keys should be all that were added: what others have added is put down to these. Counters at
/// their ceiling are left out. Refused under conservative update.
pub fn solve<K: Key>(sketch: &Min, keys: &[K], sweeps: u32) -> Result<Solution, Refused> {
    struct Solve<'a, K>(&'a Min, &'a [K], u32);
    impl<K: Key> Job for Solve<'_, K> {
        type Output = Solution;
        fn run<C: Cell, const D: usize>(self) -> Solution {
            System::new::<K, C, D>(self.0, self.1).solve(self.2)
        }
    }
    sketch.sums()?;
    Ok(cell::by_shape(sketch.shape(), Solve(sketch, keys, sweeps)))
}

/// Bounded least squares over a matrix of ones.
struct System {
    /// The unknowns of each equation that takes part, less what the counts make of it.
    rest: Vec<f64>,
    /// Which equations each unknown is in: those of unknown `i` end at `ends[i]`.
    places: Vec<usize>,
    ends: Vec<usize>,
    most: Vec<f64>,
}

impl System {
    fn new<K: Key, C: Cell, const D: usize>(sketch: &Min, keys: &[K]) -> Self {
        let cells = C::cells(sketch.table());
        let value = |cell: &C::Bytes| match C::get(*cell) {
            value if value == C::CEILING => 0.0,
            value => value as f64,
        };
        let rest = cells.iter().map(value).collect();
        let (mut places, mut ends, mut most) = (Vec::new(), Vec::new(), Vec::new());
        for key in keys {
            let mut at = [0; D];
            sketch.mapping.places::<C, D>(key.digest(sketch.seed), &mut at);
            let at = &at[..sketch.mapping.rows::<D>()];
            let least = min::least::<C>(cells, at);
            places.extend(at.iter().filter(|&&at| C::get(cells[at]) != C::CEILING));
            ends.push(places.len());
            most.push(least as f64);
        }
        System { rest, places, ends, most }
    }

    fn solve(mut self, sweeps: u32) -> Solution {
        let mut counts = vec![0.0; self.ends.len()];
        let largest = self.most.iter().copied().fold(1.0, f64::max);
        let mut made = 0;
        while made < sweeps {
            let moved = self.sweep(&mut counts);
            made += 1;
            if moved <= STILL * largest {
                break;
            }
        }
        // Equations without an unknown count too: a stranger shows in them.
        let squares: f64 = self.rest.iter().map(|rest| rest * rest).sum();
        let residual = (squares / self.rest.len().max(1) as f64).sqrt();
        Solution { counts, residual, sweeps: made }
    }

    /// Moves each count to its best place while the others stay, and returns the longest move.
    fn sweep(&mut self, counts: &mut [f64]) -> f64 {
        let (mut longest, mut start) = (0.0f64, 0);
        for (i, count) in counts.iter_mut().enumerate() {
            let places = &self.places[start..self.ends[i]];
            start = self.ends[i];
            if places.is_empty() {
                // Nothing is known but that all of its counters are at their ceiling.
                *count = self.most[i];
                continue;
            }
            let rest: f64 = places.iter().map(|&place| self.rest[place]).sum();
            let to = (*count + rest / places.len() as f64).clamp(0.0, self.most[i]);
            let step = to - *count;
            for &place in places {
                self.rest[place] -= step;
            }
            *count = to;
            longest = longest.max(step.abs());
        }
        longest
    }
}
