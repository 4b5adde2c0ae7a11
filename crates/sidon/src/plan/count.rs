//! Counts: rows and columns from an error, or from memory, and what the error will be.
//!
//! A row of `w` columns errs by more than `e/w` of the total for one key in `e`, whatever the
//! amounts are, and all `u` rows do for one in `e^u`. That is the guarantee. The mean is smaller: of
//! `n` keys of equal size a row's counter is shared by a Poisson number, `n/w` on average, and the
//! answer by the least of `u` of them.

use super::tail;
use crate::{
    Infeasible,
    count::{
        Layout, ROWS_MOST, Update,
        min::Shape,
        top::{self, ENTRIES},
    },
    probe::LINE,
};
use std::f64::consts::E;

/// How far above the truth a count may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountTarget {
    /// The error, as a share of all that is added: above 0 and below 1.
    pub epsilon: f64,
    /// The share of keys whose error may be larger: above 0 and below 1.
    pub delta: f64,
}

/// The rows that keep all but a share `delta` of the keys within the error.
fn rows(delta: f64) -> Result<u32, Infeasible> {
    let least = (-f64::from(ROWS_MOST)).exp();
    // Written so that a share that is no number is refused too.
    if !(delta >= least && delta < 1.0) {
        return Err(Infeasible::Rate { name: "delta", got: delta, least, most: 1.0 });
    }
    // A share that was meant as a power of e stays one.
    let exact = (1.0 / delta).ln();
    Ok((exact - 1e-12).ceil().max(1.0) as u32)
}

/// The rows and columns of 32-bit counters that meet the target.
pub fn count(target: CountTarget) -> Result<Shape, Infeasible> {
    let rows = rows(target.delta)?;
    let (got, least) = (target.epsilon, E / (1u64 << 48) as f64);
    if !(got >= least && got < 1.0) {
        return Err(Infeasible::Rate { name: "epsilon", got, least, most: 1.0 });
    }
    let columns = (E / got).ceil() as u64;
    Ok(Shape { rows, columns, width: 32, update: Update::Plain, layout: Layout::Rows })
}

/// The most columns that so many bytes hold, with the rows that `delta` needs and counters of
/// `width` bits.
pub fn count_in(bytes: u64, delta: f64, width: u32, layout: Layout) -> Result<Shape, Infeasible> {
    let rows = rows(delta)?;
    Infeasible::unless_within("width", width.into(), 8, 64)?;
    let cell = u64::from(width / 8);
    let columns = match layout {
        Layout::Rows => bytes / (cell * u64::from(rows)),
        Layout::Line => bytes / LINE as u64 * (LINE as u64 / cell / u64::from(rows)),
    };
    let shape = Shape { rows, columns, width, update: Update::Plain, layout };
    // Whether the parts fit each other is for the structure to say.
    shape.check()?;
    Ok(shape)
}

/// The error, as a share of all that is added, that all keys but a share `e^-rows` keep to.
///
/// For counters in a line this holds whatever the other keys are; an answer knows its own line and
/// is mostly much better.
pub fn count_epsilon(shape: Shape) -> f64 {
    let columns = shape.columns as f64;
    match shape.layout {
        Layout::Rows => E / columns,
        Layout::Line => f64::from(shape.rows).exp() / columns,
    }
}

/// By how much a count is too high on average, if `keys` keys of equal size make up the total,
/// under plain update. Keys of unequal size make it smaller, conservative update too.
pub fn count_excess(shape: Shape, keys: u64, total: u64) -> f64 {
    if keys == 0 || shape.columns == 0 {
        return 0.0;
    }
    let size = total as f64 / keys as f64;
    let sharing = match shape.layout {
        Layout::Rows => least_of_poissons(keys as f64 / shape.columns as f64, shape.rows),
        Layout::Line => {
            let cells = LINE as u64 * 8 / u64::from(shape.width.max(8));
            let segment = cells / u64::from(shape.rows.max(1));
            let lines = shape.columns as f64 / segment as f64;
            let share = 1.0 / segment as f64;
            tail::poisson_mean(keys as f64 / lines, |keys| {
                least_of_binomials(keys, share, shape.rows)
            })
        }
    };
    sharing * size
}

/// Numbers of a larger mean are taken for the mean: six standard deviations are 0.6 % of it.
const MEAN_MOST: f64 = 1e6;

/// The mean of the least of `rows` Poisson numbers: the sum over all levels of the chance that
/// every one of them reaches the level.
fn least_of_poissons(mean: f64, rows: u32) -> f64 {
    if mean > MEAN_MOST {
        return mean;
    }
    let reach = 12.0 * mean.sqrt() + 40.0;
    let from = (mean - reach).max(0.0) as u64;
    let mut below = 0.0;
    let mut sum = from as f64;
    for level in from..(mean + reach) as u64 {
        below += tail::poisson(mean, level);
        sum += (1.0 - below).max(0.0).powi(rows as i32);
    }
    sum
}

/// The mean of the least of `rows` numbers of `keys` keys that each fall with this chance.
fn least_of_binomials(keys: u64, chance: f64, rows: u32) -> f64 {
    if chance >= 1.0 {
        return keys as f64;
    }
    if keys as f64 * chance > MEAN_MOST {
        return keys as f64 * chance;
    }
    // The chance of exactly `level`, by its logarithm: the first may be too small for a double.
    let mut ln = keys as f64 * (-chance).ln_1p();
    let odds = (chance / (1.0 - chance)).ln();
    let (mut below, mut sum) = (0.0, 0.0);
    for level in 0..keys {
        below += ln.exp();
        let all = (1.0 - below).max(0.0).powi(rows as i32);
        sum += all;
        if all == 0.0 {
            break;
        }
        ln += odds + ((keys - level) as f64 / (level + 1) as f64).ln();
    }
    sum
}

/// Of the memory of a table of the heaviest keys, one part in this many is its filter: on Zipf streams
/// a fourth to a sixth leaves the fewest keys in doubt.
const FILTER_SHARE: u64 = 5;
/// Rows of its filter.
const FILTER_ROWS: u32 = 2;

/// The table of the heaviest keys that so many bytes hold, for keys of `key_bytes` bytes with so
/// many amounts.
pub fn top(bytes: u64, key_bytes: usize, amounts: usize) -> Result<top::Shape, Infeasible> {
    let one = top::Shape { buckets: 1, rows: FILTER_ROWS, columns: 1 };
    let (buckets, filter) = one.parts(key_bytes, amounts)?;
    let all = buckets + filter;
    let column = u64::from(FILTER_ROWS) * 4 * amounts as u64;
    let bucket = all - column;
    Infeasible::unless_within("bytes", bytes, bucket + column, 1 << 48)?;
    let buckets = ((bytes - bytes / FILTER_SHARE) / bucket).max(1);
    let columns = (bytes - buckets * bucket) / column;
    Ok(top::Shape { buckets, rows: FILTER_ROWS, columns })
}

/// How many of the heaviest keys a table has room for.
pub fn top_entries(shape: top::Shape) -> u64 {
    shape.buckets.saturating_mul(ENTRIES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn rows_and_columns_are_the_papers() {
        // 003.cm.params: ceil(ln 100) = 5 and ceil(e / 0.01) = 272.
        let shape = count(CountTarget { epsilon: 0.01, delta: 0.01 }).unwrap();
        assert_eq!((shape.rows, shape.columns), (5, 272));
        assert!(count_epsilon(shape) <= 0.01 && (-5f64).exp() <= 0.01);
        let shape = count(CountTarget { epsilon: 0.5, delta: (-4f64).exp() }).unwrap();
        assert_eq!((shape.rows, shape.columns), (4, 6));
        for (epsilon, delta) in [(0.0, 0.1), (1.0, 0.1), (f64::NAN, 0.1), (0.1, 0.0), (0.1, 1.0)] {
            assert!(count(CountTarget { epsilon, delta }).is_err(), "{epsilon} {delta}");
        }
    }

    #[test]
    fn memory_is_used_and_not_exceeded() {
        for bytes in [1000, 4096, 1 << 20, 40 << 20] {
            for (width, layout) in [(8, Layout::Rows), (32, Layout::Line), (64, Layout::Rows)] {
                let shape = count_in(bytes, 0.02, width, layout).unwrap();
                let used = shape.bytes();
                assert!(used <= bytes && used + 64 > bytes, "{used} of {bytes}");
            }
        }
        assert!(count_in(10, 0.02, 32, Layout::Rows).is_err());
        assert!(count_in(1 << 20, 0.02, 33, Layout::Rows).is_err());
        for (key, amounts) in [(13, 1), (13, 2), (37, 2)] {
            for bytes in [1 << 10, 1 << 20, 16 << 20] {
                let shape = top(bytes, key, amounts).unwrap();
                let (buckets, filter) = shape.parts(key, amounts).unwrap();
                let used = buckets + filter;
                assert!(used <= bytes && used + 64 > bytes, "{used} of {bytes}");
            }
        }
        assert!(top(100, 13, 1).is_err() && top(1 << 20, 0, 1).is_err());
    }

    #[test]
    fn excess_by_hand() {
        // One row: the mean itself. In a line: the mean of the means.
        for (keys, columns) in [(10, 100), (1000, 10), (1 << 20, 16)] {
            let mean = keys as f64 / columns as f64;
            assert_close(least_of_poissons(mean, 1), mean, 1e-9);
            let shape =
                Shape { rows: 1, columns, width: 64, update: Update::Plain, layout: Layout::Rows };
            assert_close(count_excess(shape, keys, 3 * keys), 3.0 * mean, 1e-9);
        }
        assert_close(least_of_binomials(50, 0.25, 1), 12.5, 1e-9);
        // Two draws at one half, twice: at least one in both 9/16, two in both 1/16.
        assert_close(least_of_binomials(2, 0.5, 2), 10.0 / 16.0, 1e-12);
        // Four Poissons of mean 1: sum of the tails to the fourth.
        let tails = (1..30).map(|level| tail::poisson_at_least(1.0, level).powi(4)).sum();
        assert_close(least_of_poissons(1.0, 4), tails, 1e-9);
    }
}
