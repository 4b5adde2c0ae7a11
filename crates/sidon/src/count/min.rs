//! The Count-Min sketch: an upper bound of the count of any key, in counters that keys share.
//!
//! Every key has one counter in each of a few rows. An amount is added to all of them, and the
//! smallest is the answer. It holds the key's own amounts and those of the keys that share it.
//! ```text
//! row 0  | . . 7 . . . . . |
//! row 1  | . . . . . 5 . . |        the key's count is at most 5
//! row 2  | 9 . . . . . . . |
//! ```
//! Other keys add `total / columns` to a counter on average. The answer is therefore less than `e *
//! total / columns` too high, except for one key in `e^rows`. With conservative update a counter is
//! incremented only as far as the answer needs. The errors are smaller, several times on few
//! columns, but amounts cannot be subtracted. With all counters of a key in one cache line, an
//! operation reads one line instead of `rows`. The answers are less accurate, because keys that
//! share a line share more counters.
//!
//! A counter that reaches its ceiling stays there and means that value or more. If all counters of
//! a key are at their ceiling, its answer is [`Bound::AtLeast`](crate::Bound::AtLeast). Cormode and Muthukrishnan, J.
//! Algorithms 2005; conservative update by Estan and Varghese, 2002; the unbiased median by
//! Krishnamurthy et al., IMC 2003.

mod estimate;
mod shape;
mod unbiased;

pub use shape::{Layout, Shape, Update};
pub(crate) use unbiased::{median, unbiased};

use self::estimate::Slack;
use super::cell::{self, Job, Mapping};
use crate::{
    Certainty, Digest, Estimate, Infeasible, Key, Refused, Seed,
    memory::Memory,
    set::{Stats, same},
};
use std::hint::select_unpredictable;

/// Counts under keys. See the [module](self).
///
/// ```
/// use sidon::{Bound, Seed, count::{Layout, Min, Update, min::Shape}};
///
/// let (update, layout) = (Update::Plain, Layout::Rows);
/// let mut bytes = Min::new(Shape { rows: 4, columns: 1_000, width: 32, update, layout }, Seed(1))?;
/// bytes.add("10.0.0.1", 1_500)?;
/// bytes.add("10.0.0.1", 60)?;
/// bytes.add("10.0.0.2", 40)?;
/// let estimate = bytes.estimate("10.0.0.1");
/// assert_eq!((estimate.value, estimate.bound), (1_560, Bound::AtMost));
/// assert_eq!((bytes.total(), bytes.estimate("10.0.0.3").value), (1_600, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Min {
    pub(super) shape: Shape,
    pub(super) seed: Seed,
    pub(super) memory: Memory,
    pub(super) mapping: Mapping,
    /// The bytes of the table that hold counters.
    pub(super) used: usize,
    /// The sum of all amounts added, less those subtracted.
    pub(super) total: u64,
    /// The least count that a counter at its ceiling means: the ceiling, until counts decay.
    pub(super) floor: u64,
    /// The most by which decay may have rounded a counter up.
    pub(super) rounding: u64,
    slack: Slack,
}

impl Min {
    /// An empty sketch.
    pub fn new(shape: Shape, seed: Seed) -> Result<Self, Infeasible> {
        let (mapping, bytes) = Mapping::new(shape)?;
        let memory = Memory::zeroed(bytes)?;
        let (floor, slack) = (shape.ceiling(), Slack::new(shape, mapping));
        let used = bytes as usize;
        Ok(Min { shape, seed, memory, mapping, used, total: 0, floor, rounding: 0, slack })
    }

    /// The bytes that the counters of a sketch of this shape take, or `u64::MAX` if there are more or no
    /// such sketch exists.
    pub fn planned_bytes(shape: Shape) -> u64 {
        shape.bytes()
    }

    /// The seed that digests the keys.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Whether nothing was added, or all of it was subtracted or has decayed.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The bytes of the table.
    pub fn memory_bytes(&self) -> u64 {
        self.shape.bytes()
    }

    /// The probability that the lower bound of an estimate does not hold: `1 / e^rows`. Upper bounds are
    /// certain.
    pub fn certainty(&self) -> Certainty {
        Certainty::from_rate(self.slack.error)
    }

    /// Adds an amount to the count of the key. On `Err`, nothing has changed.
    ///
    /// Refused only if the total would exceed 2^64 - 1. A counter that would exceed its ceiling
    /// stays at it, and estimates report that.
    #[inline]
    pub fn add<K: Key + ?Sized>(&mut self, key: &K, amount: u64) -> Result<(), Refused> {
        struct Add<'a>(&'a mut Min, Digest, u64);
        impl Job for Add<'_> {
            type Output = Result<(), Refused>;
            #[inline(always)]
            fn run<const B: usize, const D: usize>(self) -> Result<(), Refused> {
                let Add(sketch, digest, amount) = self;
                sketch.total = grown(sketch.total, amount)?;
                let mut at = [0; D];
                sketch.mapping.places::<B, D>(digest, &mut at);
                let at = &at[..sketch.mapping.rows::<D>()];
                let cells = cell::cells_mut::<B>(sketch.memory.bytes_mut());
                raise::<B>(cells, at, sketch.shape.update, amount);
                Ok(())
            }
        }
        let digest = key.digest(self.seed);
        cell::by_shape(self.shape, Add(self, digest, amount))
    }

    /// The count of the key.
    ///
    /// Exact if a counter of the key is zero. Otherwise the value is an upper bound, and the truth
    /// is at least the value less the slack, except for one key in `e^rows`. If all counters of the
    /// key are at their ceiling, only the lower bound holds.
    #[inline]
    pub fn estimate<K: Key + ?Sized>(&self, key: &K) -> Estimate {
        struct Ask<'a>(&'a Min, Digest);
        impl Job for Ask<'_> {
            type Output = Estimate;
            #[inline(always)]
            fn run<const B: usize, const D: usize>(self) -> Estimate {
                let mut at = [0; D];
                self.0.mapping.places::<B, D>(self.1, &mut at);
                let least =
                    least::<B>(cell::cells::<B>(self.0.table()), &at[..self.0.mapping.rows::<D>()]);
                self.0.estimate_from::<B>(least, at[0])
            }
        }
        cell::by_shape(self.shape, Ask(self, key.digest(self.seed)))
    }

    /// Adds the counts of another sketch of the same shape and seed. On `Err`, nothing has changed.
    ///
    /// With plain update, the result is the sketch of both streams. With conservative update the
    /// sums are still upper bounds, a little higher than those of one sketch of both streams.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        struct Sum<'a>(&'a mut Min, &'a Min);
        impl Job for Sum<'_> {
            type Output = ();
            fn run<const B: usize, const D: usize>(self) {
                let used = self.0.used;
                let cells = cell::cells_mut::<B>(&mut self.0.memory.bytes_mut()[..used]);
                for (cell, part) in cells.iter_mut().zip(cell::cells::<B>(self.1.table())) {
                    cell::raise(cell, cell::get(*part));
                }
            }
        }
        self.like(other)?;
        self.total = grown(self.total, other.total)?;
        self.floor = self.floor.min(other.floor);
        self.rounding = self.rounding.saturating_add(other.rounding);
        cell::by_shape(self.shape, Sum(self, other));
        Ok(())
    }

    /// Subtracts an amount from the key's count. Subtract only amounts that were added: otherwise
    /// the counts of other keys become too small.
    ///
    /// Refused if a counter is below the amount or at its ceiling, if the sketch has decayed, or if the
    /// update is conservative.
    pub fn subtract<K: Key + ?Sized>(&mut self, key: &K, amount: u64) -> Result<(), Refused> {
        struct Subtract<'a>(&'a mut Min, Digest, u64);
        impl Job for Subtract<'_> {
            type Output = Result<(), Refused>;
            fn run<const B: usize, const D: usize>(self) -> Result<(), Refused> {
                let Subtract(sketch, digest, amount) = self;
                let mut at = [0; D];
                sketch.mapping.places::<B, D>(digest, &mut at);
                let at = &at[..sketch.mapping.rows::<D>()];
                let cells = cell::cells_mut::<B>(sketch.memory.bytes_mut());
                for &at in at {
                    match cell::get(cells[at]) {
                        value if value == cell::ceiling::<B>() => {
                            return Err(Refused::Overflow { ceiling: cell::ceiling::<B>() });
                        }
                        value if value < amount => return Err(Refused::NotStored),
                        _ => {}
                    }
                }
                sketch.total = sketch.total.checked_sub(amount).ok_or(Refused::NotStored)?;
                for &at in at {
                    cells[at] = cell::put::<B>(cell::get(cells[at]) - amount);
                }
                Ok(())
            }
        }
        self.exact_sums()?;
        let digest = key.digest(self.seed);
        cell::by_shape(self.shape, Subtract(self, digest, amount))
    }

    /// Subtracts another sketch, all of whose amounts were added to this one, too: of a part of the
    /// same stream, or an earlier copy of this sketch.
    ///
    /// Refused if a counter is below the other's or at its ceiling, if one of the two has decayed, or
    /// if the update is conservative.
    pub fn unmerge(&mut self, other: &Self) -> Result<(), Refused> {
        struct Unmerge<'a>(&'a mut Min, &'a Min);
        impl Job for Unmerge<'_> {
            type Output = Result<(), Refused>;
            fn run<const B: usize, const D: usize>(self) -> Result<(), Refused> {
                let Unmerge(sketch, other) = self;
                let cells = cell::cells_mut::<B>(&mut sketch.memory.bytes_mut()[..sketch.used]);
                let parts = cell::cells::<B>(other.table());
                for (cell, part) in cells.iter().zip(parts) {
                    let (value, part) = (cell::get(*cell), cell::get(*part));
                    if value == cell::ceiling::<B>() || part == cell::ceiling::<B>() {
                        return Err(Refused::Overflow { ceiling: cell::ceiling::<B>() });
                    }
                    if value < part {
                        return Err(Refused::NotStored);
                    }
                }
                sketch.total = sketch.total.checked_sub(other.total).ok_or(Refused::NotStored)?;
                for (cell, part) in cells.iter_mut().zip(parts) {
                    *cell = cell::put::<B>(cell::get(*cell) - cell::get(*part));
                }
                Ok(())
            }
        }
        self.exact_sums()?;
        self.like(other)?;
        other.exact_sums()?;
        cell::by_shape(self.shape, Unmerge(self, other))
    }

    /// Multiplies every count by `numerator / denominator`, at most 1, and rounds up. Afterwards an
    /// answer is an upper bound of the decayed amounts.
    pub fn decay(&mut self, numerator: u32, denominator: u32) -> Result<(), Infeasible> {
        struct Decay<'a, F>(&'a mut Min, F);
        impl<F: Fn(u64) -> u64> Job for Decay<'_, F> {
            type Output = ();
            fn run<const B: usize, const D: usize>(self) {
                let used = self.0.used;
                for cell in cell::cells_mut::<B>(&mut self.0.memory.bytes_mut()[..used]) {
                    // The true value of a counter at its ceiling is not known, so it stays.
                    let value = cell::get(*cell);
                    if value != cell::ceiling::<B>() {
                        *cell = cell::put::<B>(self.1(value));
                    }
                }
            }
        }
        Infeasible::unless_within("numerator", numerator.into(), 0, denominator.into())?;
        Infeasible::unless_within("denominator", denominator.into(), 1, u32::MAX.into())?;
        if numerator == denominator {
            return Ok(());
        }
        let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
        let part = |value: u64| (u128::from(value) * numerator).div_ceil(denominator) as u64;
        cell::by_shape(self.shape, Decay(self, part));
        self.total = part(self.total);
        // A counter at its ceiling may have been well above it, but that is not known.
        self.floor = (u128::from(self.floor) * numerator / denominator) as u64;
        self.rounding = part(self.rounding).saturating_add(1);
        Ok(())
    }

    /// Sets every count to zero.
    pub fn clear(&mut self) {
        self.memory.bytes_mut().fill(0);
        (self.total, self.floor, self.rounding) = (0, self.shape.ceiling(), 0);
    }

    /// The integers that fix the memory.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The sum of all amounts added, less those subtracted, after decay.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The load and the counters at their ceiling. Reads the whole table.
    pub fn stats(&self) -> Stats {
        let cells = self.shape.columns as f64 * f64::from(self.shape.rows);
        let load = self.count(|value, _| value != 0) as f64 / cells;
        let at_ceiling = self.count(|value, ceiling| value == ceiling);
        Stats { load, at_ceiling, ..Stats::default() }
    }

    /// An independent copy.
    pub fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(Min { memory: self.memory.try_clone()?, ..*self })
    }

    fn count(&self, which: fn(u64, u64) -> bool) -> u64 {
        struct Tally<'a>(&'a Min, fn(u64, u64) -> bool);
        impl Job for Tally<'_> {
            type Output = u64;
            fn run<const B: usize, const D: usize>(self) -> u64 {
                let values = cell::cells::<B>(self.0.table()).iter().map(|cell| cell::get(*cell));
                values.filter(|&value| self.1(value, cell::ceiling::<B>())).count() as u64
            }
        }
        cell::by_shape(self.shape, Tally(self, which))
    }

    /// Refused unless counters are sums of amounts.
    pub(super) fn sums(&self) -> Result<(), Refused> {
        if self.shape.update == Update::Plain { Ok(()) } else { Err(Refused::NotSums) }
    }

    /// Refused unless amounts can be subtracted: a decay rounds the amounts added before it.
    fn exact_sums(&self) -> Result<(), Refused> {
        if self.rounding == 0 { self.sums() } else { Err(Refused::NotSums) }
    }

    /// Refused unless both have the same seed and shape.
    fn like(&self, other: &Self) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("rows", self.shape.rows == other.shape.rows)?;
        same("columns", self.shape.columns == other.shape.columns)?;
        same("width", self.shape.width == other.shape.width)?;
        same("update", self.shape.update == other.shape.update)?;
        same("layout", self.shape.layout == other.shape.layout)
    }

    /// The bytes that hold counters.
    #[inline(always)]
    pub(super) fn table(&self) -> &[u8] {
        &self.memory.bytes()[..self.used]
    }
}

/// The smallest counter of a key.
#[inline(always)]
pub(super) fn least<const B: usize>(cells: &[[u8; B]], at: &[usize]) -> u64 {
    let mut least = cell::ceiling::<B>();
    for &at in at {
        least = least.min(cell::get(cells[at]));
    }
    least
}

/// Adds an amount to the counters of a key.
#[inline(always)]
pub(super) fn raise<const B: usize>(
    cells: &mut [[u8; B]],
    at: &[usize],
    update: Update,
    amount: u64,
) {
    if update == Update::Plain {
        for &at in at {
            cell::raise(&mut cells[at], amount);
        }
        return;
    }
    let mut answer = cell::put::<B>(least::<B>(cells, at));
    cell::raise(&mut answer, amount);
    let answer = cell::get(answer);
    for &at in at {
        // The processor would mispredict every second branch. Without this hint the compiler makes
        // branches of `max` in some loops, and an addition takes twice the time.
        let value = cell::get(cells[at]);
        cells[at] = cell::put::<B>(select_unpredictable(value < answer, answer, value));
    }
}

/// The total after adding an amount.
#[inline(always)]
pub(super) fn grown(total: u64, amount: u64) -> Result<u64, Refused> {
    total.checked_add(amount).ok_or(Refused::Overflow { ceiling: u64::MAX })
}

/// Two sketches are equal if their images are: shape, seed, total and all counters.
impl PartialEq for Min {
    fn eq(&self, other: &Self) -> bool {
        self.seed == other.seed && self.to_bytes() == other.to_bytes()
    }
}
