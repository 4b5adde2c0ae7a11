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
//! a key are at their ceiling, its answer is [`Bound::AtLeast`]. Cormode and Muthukrishnan, J.
//! Algorithms 2005; conservative update by Estan and Varghese, 2002; the unbiased median by
//! Krishnamurthy et al., IMC 2003.

use super::cell::{self, Cell, Job, MOST, Mapping};
use crate::{
    Bound, Certainty, Digest, Estimate, Infeasible, Key, Refused, Seed,
    cells::Memory,
    member::{Stats, same},
};
use std::f64::consts::E;

/// The integers that fix a sketch.
///
/// ```
/// use sidon::count::{Layout, Min, Update, min::Shape};
///
/// let (update, layout) = (Update::Plain, Layout::Rows);
/// let shape = Shape { rows: 4, columns: 1_000, width: 32, update, layout };
/// assert_eq!((Min::planned_bytes(shape), shape.ceiling()), (16_000, u32::MAX.into()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Shape {
    /// The number of rows, each with one counter of a key: 1 to 16.
    pub rows: u32,
    /// The number of counters per row. With [`Layout::Line`], a multiple of the cells that a row
    /// has in a line, `512 / width / rows`.
    pub columns: u64,
    /// The bits of a counter: 8, 16, 32 or 64.
    pub width: u32,
    /// The rule of updates.
    pub update: Update,
    /// The positions of a key's counters.
    pub layout: Layout,
}

/// The rule by which an amount changes counters.
///
/// ```
/// use sidon::{Refused, Seed, count::{Layout, Min, Update, min::Shape}};
///
/// let (update, layout) = (Update::Conservative, Layout::Rows);
/// let mut counts = Min::new(Shape { rows: 4, columns: 100, width: 32, update, layout }, Seed(1))?;
/// counts.add("key", 5)?;
/// assert_eq!(counts.subtract("key", 5), Err(Refused::NotSums));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Update {
    /// Adds the amount to every counter of the key. Counters are sums, and amounts can be
    /// subtracted.
    #[default]
    Plain,
    /// Raises every counter of the key to the new answer, if it is below. Errors are smaller, but
    /// amounts cannot be subtracted.
    Conservative,
}

/// The positions of a key's counters.
///
/// ```
/// use sidon::{Seed, count::{Layout, Min, Update, min::Shape}};
///
/// // Each of four rows has four of the 16 counters of a line.
/// let (update, layout) = (Update::Plain, Layout::Line);
/// let shape = Shape { rows: 4, columns: 400, width: 32, update, layout };
/// let mut counts = Min::new(shape, Seed(1))?;
/// counts.add("key", 5)?;
/// assert_eq!(counts.estimate("key").value, 5);
/// let why = Min::new(Shape { columns: 401, ..shape }, Seed(1)).unwrap_err();
/// assert_eq!(why.name(), Some("columns"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Layout {
    /// Anywhere in their rows: one cache line per row.
    #[default]
    Rows,
    /// In one cache line of 64 bytes.
    Line,
}

impl Shape {
    /// The bytes of the table, or `u64::MAX` if there are more or no such table exists.
    pub(crate) fn bytes(&self) -> u64 {
        Mapping::new(*self).map_or(u64::MAX, |(_, bytes)| bytes)
    }

    /// Checks everything except the memory.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Infeasible> {
        Mapping::new(*self).map(|_| ())
    }

    /// The largest value of a counter.
    #[doc(hidden)]
    pub fn ceiling(&self) -> u64 {
        u64::MAX >> (64 - self.width.clamp(1, 64))
    }
}

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

/// The rule that computes the slack of an answer from the amounts of other keys.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Slack {
    /// Slack per unit of other keys' amounts: the whole part, and the fraction of 2^64. The whole
    /// part is `u64::MAX` if there is no bound.
    whole: u64,
    part: u64,
    rest: Rest,
    /// The probability that an answer exceeds the slack.
    error: f64,
}

/// The amounts of other keys.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rest {
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
    fn new(shape: Shape, mapping: Mapping) -> Self {
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
            fn run<C: Cell, const D: usize>(self) -> Result<(), Refused> {
                let Add(sketch, digest, amount) = self;
                sketch.total = grown(sketch.total, amount)?;
                let mut at = [0; D];
                sketch.mapping.places::<C, D>(digest, &mut at);
                let at = &at[..sketch.mapping.rows::<D>()];
                let cells = C::cells_mut(sketch.memory.bytes_mut());
                raise::<C>(cells, at, sketch.shape.update, amount);
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
            fn run<C: Cell, const D: usize>(self) -> Estimate {
                let mut at = [0; D];
                self.0.mapping.places::<C, D>(self.1, &mut at);
                let least = least::<C>(C::cells(self.0.table()), &at[..self.0.mapping.rows::<D>()]);
                self.0.estimate_from::<C>(least, at[0])
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
            fn run<C: Cell, const D: usize>(self) {
                let used = self.0.used;
                let cells = C::cells_mut(&mut self.0.memory.bytes_mut()[..used]);
                for (cell, part) in cells.iter_mut().zip(C::cells(self.1.table())) {
                    C::raise(cell, C::get(*part));
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
    /// Refused if a counter is below the amount or at its ceiling, or if the update is
    /// conservative.
    pub fn subtract<K: Key + ?Sized>(&mut self, key: &K, amount: u64) -> Result<(), Refused> {
        struct Subtract<'a>(&'a mut Min, Digest, u64);
        impl Job for Subtract<'_> {
            type Output = Result<(), Refused>;
            fn run<C: Cell, const D: usize>(self) -> Result<(), Refused> {
                let Subtract(sketch, digest, amount) = self;
                let mut at = [0; D];
                sketch.mapping.places::<C, D>(digest, &mut at);
                let at = &at[..sketch.mapping.rows::<D>()];
                let cells = C::cells_mut(sketch.memory.bytes_mut());
                for &at in at {
                    match C::get(cells[at]) {
                        value if value == C::CEILING => {
                            return Err(Refused::Overflow { ceiling: C::CEILING });
                        }
                        value if value < amount => return Err(Refused::NotStored),
                        _ => {}
                    }
                }
                sketch.total = sketch.total.checked_sub(amount).ok_or(Refused::NotStored)?;
                for &at in at {
                    cells[at] = C::put(C::get(cells[at]) - amount);
                }
                Ok(())
            }
        }
        self.sums()?;
        let digest = key.digest(self.seed);
        cell::by_shape(self.shape, Subtract(self, digest, amount))
    }

    /// Subtracts another sketch, all of whose amounts were added to this one, too: of a part of the
    /// same stream, or an earlier copy of this sketch.
    ///
    /// Refused if a counter is below the other's or at its ceiling, if the other has decayed, or if
    /// the update is conservative.
    pub fn unmerge(&mut self, other: &Self) -> Result<(), Refused> {
        struct Unmerge<'a>(&'a mut Min, &'a Min);
        impl Job for Unmerge<'_> {
            type Output = Result<(), Refused>;
            fn run<C: Cell, const D: usize>(self) -> Result<(), Refused> {
                let Unmerge(sketch, other) = self;
                let cells = C::cells_mut(&mut sketch.memory.bytes_mut()[..sketch.used]);
                let parts = C::cells(other.table());
                for (cell, part) in cells.iter().zip(parts) {
                    let (value, part) = (C::get(*cell), C::get(*part));
                    if value == C::CEILING || part == C::CEILING {
                        return Err(Refused::Overflow { ceiling: C::CEILING });
                    }
                    if value < part {
                        return Err(Refused::NotStored);
                    }
                }
                sketch.total = sketch.total.checked_sub(other.total).ok_or(Refused::NotStored)?;
                for (cell, part) in cells.iter_mut().zip(parts) {
                    *cell = C::put(C::get(*cell) - C::get(*part));
                }
                Ok(())
            }
        }
        self.sums()?;
        self.like(other)?;
        same("rounding", other.rounding == 0)?;
        cell::by_shape(self.shape, Unmerge(self, other))
    }

    /// Multiplies every count by `numerator / denominator`, at most 1, and rounds up. Afterwards an
    /// answer is an upper bound of the decayed amounts.
    pub fn decay(&mut self, numerator: u32, denominator: u32) -> Result<(), Infeasible> {
        struct Decay<'a, F>(&'a mut Min, F);
        impl<F: Fn(u64) -> u64> Job for Decay<'_, F> {
            type Output = ();
            fn run<C: Cell, const D: usize>(self) {
                let used = self.0.used;
                for cell in C::cells_mut(&mut self.0.memory.bytes_mut()[..used]) {
                    // The true value of a counter at its ceiling is not known, so it stays.
                    let value = C::get(*cell);
                    if value != C::CEILING {
                        *cell = C::put(self.1(value));
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
            fn run<C: Cell, const D: usize>(self) -> Option<f64> {
                let Unbiased(sketch, digest) = self;
                let mut at = [0; D];
                sketch.mapping.places::<C, D>(digest, &mut at);
                let at = &at[..sketch.mapping.rows::<D>()];
                let (mass, columns) = match sketch.slack.rest {
                    Rest::Line => (sketch.in_line::<C>(at[0])?, sketch.mapping.segment),
                    _ => (sketch.total, sketch.shape.columns),
                };
                let (mass, columns) = (mass as f64, columns as f64);
                let cells = C::cells(sketch.table());
                let mut values = [0.0; MOST];
                let values = &mut values[..at.len()];
                for (value, &at) in values.iter_mut().zip(at) {
                    let counter = C::get(cells[at]);
                    if counter == C::CEILING {
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
            fn run<C: Cell, const D: usize>(self) -> u64 {
                let values = C::cells(self.0.table()).iter().map(|cell| C::get(*cell));
                values.filter(|&value| self.1(value, C::CEILING)).count() as u64
            }
        }
        cell::by_shape(self.shape, Tally(self, which))
    }

    /// Refused unless counters are sums of amounts.
    pub(super) fn sums(&self) -> Result<(), Refused> {
        if self.shape.update == Update::Plain { Ok(()) } else { Err(Refused::NotSums) }
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

    /// The sum of row 0's counters in the line of a place. `None` if one of them is at its ceiling.
    #[inline(always)]
    fn in_line<C: Cell>(&self, place: usize) -> Option<u64> {
        let (mut sum, mut hidden) = (0u64, false);
        for cell in &C::cells(self.table())[self.mapping.segment::<C>(place)] {
            let value = C::get(*cell);
            sum = sum.saturating_add(value);
            hidden |= value == C::CEILING;
        }
        (!hidden).then_some(sum)
    }

    /// The answer for a key with this smallest counter. Its first counter gives the line.
    #[inline(always)]
    pub(super) fn estimate_from<C: Cell>(&self, least: u64, first: usize) -> Estimate {
        let reading = self.reading();
        match self.slack.rest {
            Rest::Line => match self.in_line::<C>(first) {
                Some(mass) => reading.with(mass).estimate(least),
                None => reading.blind().estimate(least),
            },
            _ => reading.estimate(least),
        }
    }

    /// The reading of counters, as far as it is the same for all keys.
    #[inline(always)]
    pub(super) fn reading(&self) -> Reading {
        let Min { floor, rounding, slack, .. } = *self;
        let own = if slack.rest == Rest::All { 0 } else { u64::MAX };
        let reading =
            Reading { ceiling: self.shape.ceiling(), floor, mass: 0, own, rounding, slack };
        reading.with(self.total)
    }

    /// Whether the slack depends on the key's line.
    #[inline(always)]
    pub(super) fn reads_lines(&self) -> bool {
        self.slack.rest == Rest::Line
    }
}

/// Turns a smallest counter into an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
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
    pub(super) fn estimates(self, values: &[u64], estimates: &mut [Estimate]) {
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

/// The smallest counter of a key.
#[inline(always)]
pub(super) fn least<C: Cell>(cells: &[C::Bytes], at: &[usize]) -> u64 {
    let mut least = C::CEILING;
    for &at in at {
        least = least.min(C::get(cells[at]));
    }
    least
}

/// Adds an amount to the counters of a key.
#[inline(always)]
pub(super) fn raise<C: Cell>(cells: &mut [C::Bytes], at: &[usize], update: Update, amount: u64) {
    if update == Update::Plain {
        for &at in at {
            C::raise(&mut cells[at], amount);
        }
        return;
    }
    let mut answer = C::put(least::<C>(cells, at));
    C::raise(&mut answer, amount);
    for &at in at {
        cells[at] = C::put(C::get(cells[at]).max(C::get(answer)));
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
