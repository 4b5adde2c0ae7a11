//! Count-Min sketches: rows and columns from an error or from memory, and the error of a shape.
//!
//! A row of `w` columns errs by more than `e/w` of the total for one key in `e`, whatever the
//! amounts are. All `u` rows do for one key in `e^u`. That is the guarantee. The mean error is smaller.
//! Of `n` keys of equal size, a Poisson number shares a counter of a row, `n/w` on average. The answer is
//! the least of `u` such counters.

use super::tail;
use crate::{
    Infeasible,
    count::{Layout, ROWS_MAX, Update, min::Shape},
    simd::LINE,
};
use std::f64::consts::E;

/// The rows that keep all but a share `delta` of the keys within the error.
fn rows(delta: f64) -> Result<u32, Infeasible> {
    let least = (-f64::from(ROWS_MAX)).exp();
    // Written so that a share that is no number is refused too.
    if !(delta >= least && delta < 1.0) {
        return Err(Infeasible::Rate { name: "delta", got: delta, least, most: 1.0 });
    }
    // A share that was meant as a power of e stays one.
    let exact = (1.0 / delta).ln();
    Ok((exact - 1e-12).ceil().max(1.0) as u32)
}

/// The rows and columns of 32-bit counters that keep errors within a limit.
///
/// A count exceeds the truth by at most a share `epsilon` of the sum of all amounts. A share `delta` of the
/// keys may exceed it by more. Both are above 0 and below 1.
///
/// ```
/// use sidon::plan::count;
///
/// // ceil(ln(1/0.01)) rows and ceil(e/0.01) columns.
/// let shape = count::shape(0.01, 0.01)?;
/// assert_eq!((shape.rows, shape.columns), (5, 272));
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(epsilon: f64, delta: f64) -> Result<Shape, Infeasible> {
    let rows = rows(delta)?;
    let (got, least) = (epsilon, E / (1u64 << 48) as f64);
    if !(got >= least && got < 1.0) {
        return Err(Infeasible::Rate { name: "epsilon", got, least, most: 1.0 });
    }
    let columns = (E / got).ceil() as u64;
    Ok(Shape { rows, columns, width: 32, update: Update::Plain, layout: Layout::Rows })
}

/// The most columns that `bytes` bytes hold, with the rows that `delta` needs and counters of `width`
/// bits.
///
/// ```
/// use sidon::{count::Layout, plan::count};
///
/// // ceil(ln(1/0.02)) = 4 rows of 32-bit counters in 64 KiB.
/// let shape = count::shape_in(65_536, 0.02, 32, Layout::Rows)?;
/// assert_eq!((shape.rows, shape.columns), (4, 65_536 / 4 / 4));
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape_in(bytes: u64, delta: f64, width: u32, layout: Layout) -> Result<Shape, Infeasible> {
    let rows = rows(delta)?;
    Infeasible::unless_within("width", width.into(), 8, 64)?;
    let cell = u64::from(width / 8);
    let columns = match layout {
        Layout::Rows => bytes / (cell * u64::from(rows)),
        Layout::Line => bytes / LINE as u64 * (LINE as u64 / cell / u64::from(rows)),
    };
    let shape = Shape { rows, columns, width, update: Update::Plain, layout };
    // The structure checks whether rows, columns and width are possible together.
    shape.check()?;
    Ok(shape)
}

/// The mean error of a count, if `keys` keys of equal size make up the total, under plain update. It is
/// smaller for keys of unequal size and under conservative update.
///
/// ```
/// use sidon::{count::{Layout, Update, min::Shape}, plan::count};
///
/// // One row of 100 columns: 500 other keys of size 3 share each counter by fives, on average.
/// let (update, layout) = (Update::Plain, Layout::Rows);
/// let shape = Shape { rows: 1, columns: 100, width: 32, update, layout };
/// assert!((count::excess(shape, 500, 1_500) - 15.0).abs() < 1e-9);
/// ```
pub fn excess(shape: Shape, keys: u64, total: u64) -> f64 {
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

/// A Poisson number of a larger mean is replaced by its mean: six standard deviations are 0.6 % of it.
const MEAN_MAX: f64 = 1e6;

/// The mean of the least of `rows` Poisson numbers: the sum over all levels of the chance that
/// every one of them reaches the level.
fn least_of_poissons(mean: f64, rows: u32) -> f64 {
    if mean > MEAN_MAX {
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
    if keys as f64 * chance > MEAN_MAX {
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

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn rows_and_columns_are_the_papers() {
        // 003.cm.params: ceil(ln 100) = 5 and ceil(e / 0.01) = 272.
        let planned = shape(0.01, 0.01).unwrap();
        assert_eq!((planned.rows, planned.columns), (5, 272));
        assert!(E / 272.0 <= 0.01 && (-5f64).exp() <= 0.01);
        let planned = shape(0.5, (-4f64).exp()).unwrap();
        assert_eq!((planned.rows, planned.columns), (4, 6));
        for (epsilon, delta) in [(0.0, 0.1), (1.0, 0.1), (f64::NAN, 0.1), (0.1, 0.0), (0.1, 1.0)] {
            assert!(shape(epsilon, delta).is_err(), "{epsilon} {delta}");
        }
    }

    #[test]
    fn memory_is_used_and_not_exceeded() {
        for bytes in [1000, 4096, 1 << 20, 40 << 20] {
            for (width, layout) in [(8, Layout::Rows), (32, Layout::Line), (64, Layout::Rows)] {
                let shape = shape_in(bytes, 0.02, width, layout).unwrap();
                let used = shape.bytes();
                assert!(used <= bytes && used + 64 > bytes, "{used} of {bytes}");
            }
        }
        assert!(shape_in(10, 0.02, 32, Layout::Rows).is_err());
        assert!(shape_in(1 << 20, 0.02, 33, Layout::Rows).is_err());
    }

    #[test]
    fn excess_by_hand() {
        // One row: the mean itself. In a line: the mean of the means.
        for (keys, columns) in [(10, 100), (1000, 10), (1 << 20, 16)] {
            let mean = keys as f64 / columns as f64;
            assert_close(least_of_poissons(mean, 1), mean, 1e-9);
            let shape =
                Shape { rows: 1, columns, width: 64, update: Update::Plain, layout: Layout::Rows };
            assert_close(excess(shape, keys, 3 * keys), 3.0 * mean, 1e-9);
        }
        assert_close(least_of_binomials(50, 0.25, 1), 12.5, 1e-9);
        // Two draws at one half, twice: at least one in both 9/16, two in both 1/16.
        assert_close(least_of_binomials(2, 0.5, 2), 10.0 / 16.0, 1e-12);
        // Four Poissons of mean 1: sum of the tails to the fourth.
        let tails = (1..30).map(|level| tail::poisson_at_least(1.0, level).powi(4)).sum();
        assert_close(least_of_poissons(1.0, 4), tails, 1e-9);
    }
}
