//! Better counts from a sketch if all keys are known: a least-squares solution.
//!
//! A plain [`Min`] is a linear system: every counter is the sum of the counts of its keys. So is a
//! [`zone::Sketch`](crate::zone::Sketch), whose [`solve`](crate::zone::Sketch::solve) is this one. An
//! estimate uses only the counters of its key. This solver computes the counts of all keys
//! together. It minimises the sum of squared differences from the counters, with each count between
//! zero and its estimate.
//! ```text
//! counters = A * counts,     0 <= counts <= estimates,     a column of A has a one in each row
//! ```
//! The solver changes one count at a time to the value that cancels the differences at its own
//! counters, or to its bound. Every step reduces the sum. A sweep over all keys reads `rows`
//! counters per key. With fewer keys than counters, the solution is usually the truth. Lee, Liu,
//! Yoon and Zhang, IMC 2005.

use super::{
    cell::{self, Job},
    min::{self, Min},
};
use crate::{Key, Refused};

/// The counts that fit the counters best.
///
/// ```
/// use sidon::{Seed, count::{Layout, Min, Update, min::Shape, solve}};
///
/// let (update, layout) = (Update::Plain, Layout::Rows);
/// let mut counts = Min::new(Shape { rows: 3, columns: 20, width: 32, update, layout }, Seed(1))?;
/// counts.add("a", 10)?;
/// counts.add("b", 20)?;
/// // Without "b" among the keys, its counters do not fit.
/// assert!(solve(&counts, &["a", "b"], 100)?.residual < 1e-6);
/// assert!(solve(&counts, &["a"], 100)?.residual > 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Solution {
    /// The count of each key, in the order of the keys.
    pub counts: Vec<f64>,
    /// The root mean square of the differences between counters and the sums of the counts. It is
    /// near zero if the keys are all that were added.
    pub residual: f64,
    /// The number of sweeps.
    pub sweeps: u32,
}

/// The solver stops after a sweep that changes no count by more than this, relative to the largest.
const STILL: f64 = 1e-9;

/// The counts of distinct keys that fit the sketch best, after at most `sweeps` sweeps.
///
/// `keys` should be all keys that were added, because the amounts of others are assigned to these.
/// Counters at their ceiling are ignored. Refused with conservative update.
///
/// ```
/// use sidon::{Seed, count::{Layout, Min, Update, min::Shape, solve}};
///
/// let (update, layout) = (Update::Plain, Layout::Rows);
/// let mut counts = Min::new(Shape { rows: 3, columns: 10, width: 32, update, layout }, Seed(1))?;
/// let keys: Vec<u32> = (0..12).collect();
/// for key in &keys {
///     counts.add(key, 100 + u64::from(*key))?;
/// }
/// let solution = solve(&counts, &keys, 10_000)?;
/// assert!((0..12).all(|key| (solution.counts[key] - 100.0 - key as f64).abs() < 0.01));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn solve<K: Key>(sketch: &Min, keys: &[K], sweeps: u32) -> Result<Solution, Refused> {
    struct Solve<'a, K>(&'a Min, &'a [K], u32);
    impl<K: Key> Job for Solve<'_, K> {
        type Output = Solution;
        fn run<const B: usize, const D: usize>(self) -> Solution {
            System::new::<K, B, D>(self.0, self.1).solve(self.2)
        }
    }
    sketch.sums()?;
    Ok(cell::by_shape(sketch.shape(), Solve(sketch, keys, sweeps)))
}

/// Bounded least squares over a matrix of ones.
pub(crate) struct System {
    /// The value of each equation in use, less the sum of the present counts.
    rest: Vec<f64>,
    /// The equations of each unknown. Those of unknown `i` end at `ends[i]`.
    places: Vec<usize>,
    ends: Vec<usize>,
    most: Vec<f64>,
}

impl System {
    fn new<K: Key, const B: usize, const D: usize>(sketch: &Min, keys: &[K]) -> Self {
        let cells = cell::cells::<B>(sketch.table());
        let value = |cell: &[u8; B]| match cell::get(*cell) {
            value if value == cell::ceiling::<B>() => 0.0,
            value => value as f64,
        };
        let mut system = System::of(cells.iter().map(value).collect());
        for key in keys {
            let mut at = [0; D];
            sketch.mapping.places::<B, D>(key.digest(sketch.seed), &mut at);
            let at = &at[..sketch.mapping.rows::<D>()];
            let least = min::least::<B>(cells, at);
            let below =
                at.iter().copied().filter(|&at| cell::get(cells[at]) != cell::ceiling::<B>());
            system.unknown(below, least as f64);
        }
        system
    }

    /// The equations with these values, without an unknown.
    pub(crate) fn of(rest: Vec<f64>) -> Self {
        System { rest, places: Vec::new(), ends: Vec::new(), most: Vec::new() }
    }

    /// Adds an unknown of these equations, between zero and `most`. Without equations it is `most`.
    pub(crate) fn unknown(&mut self, places: impl Iterator<Item = usize>, most: f64) {
        self.places.extend(places);
        self.ends.push(self.places.len());
        self.most.push(most);
    }

    pub(crate) fn solve(mut self, sweeps: u32) -> Solution {
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
        // Equations without an unknown count, too: they show the amounts of keys not given.
        let squares: f64 = self.rest.iter().map(|rest| rest * rest).sum();
        let residual = (squares / self.rest.len().max(1) as f64).sqrt();
        Solution { counts, residual, sweeps: made }
    }

    /// Sets each count to its best value while the others stay, and returns the largest change.
    fn sweep(&mut self, counts: &mut [f64]) -> f64 {
        let (mut longest, mut start) = (0.0f64, 0);
        for (i, count) in counts.iter_mut().enumerate() {
            let places = &self.places[start..self.ends[i]];
            start = self.ends[i];
            if places.is_empty() {
                // All of its counters are at their ceiling, so the estimate is all that is known.
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
