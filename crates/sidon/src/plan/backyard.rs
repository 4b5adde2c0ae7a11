//! Lines with an overflow table: how often they err, and how many lines keep the overflow table from
//! filling.
//!
//! A key hashes to a random line, so a line has a Poisson number of keys. Those beyond its 31 cells are
//! stored in the overflow table:
//! ```text
//!   rate = n / (lines * 65535)          overflowed = lines * E[(X - 31)+],  X ~ Poisson(n / lines)
//! ```
//! | keys per line | bits per key | rate | overflowed | lines that are full | lookups of absent keys that read the overflow table |
//! |---|---|---|---|---|---|
//! | 22 | 23.6 | 0.00034 | 0.3 % | 4 % | 0.2 % |
//! | 24 | 21.7 | 0.00037 | 0.8 % | 10 % | 0.55 % |
//! | 26 | 20.9 | 0.00040 | 1.8 % | 19 % | 1.3 % |
//! | 28 | 20.6 | 0.00043 | 3.5 % | 31 % | 2.6 % |
//!
//! Plans take 24. More keys per line save little memory, and at 24 one write in ten meets a full line.

use super::{
    Target,
    bloom::least,
    tail::{poisson_at_least, poisson_mean},
};
use crate::{
    Infeasible,
    set::backyard::{CELLS, Shape},
};

/// The most keys per line, on average, and the fewest that a low rate may need.
const LOAD_MAX: f64 = 24.0;
const LOAD_LEAST: f64 = 15.0;
/// How many lines may share a bucket of the overflow table, as a power of two.
const SHARING: [u32; 5] = [7, 6, 5, 4, 3];
/// The share of the overflow table that may be in use, six standard deviations above the mean.
const BACK_MAX: f64 = 0.9;
const DEVIATIONS: f64 = 6.0;
/// How many lines may have more keys than they and their overflow buckets hold, on average.
const OVERFULL: f64 = 1e-3;

/// The smallest lines and overflow table that meet the target: a line for every 24 keys, or a little
/// more. Rates are at least 0.00023, because a cell has 16 bits.
///
/// ```
/// use sidon::plan::{Target, backyard};
///
/// let shape = backyard::shape(Target::new(1_000_000, 0.001))?;
/// assert!((1_000_000..1_002_000).contains(&(24 * shape.lines)));
/// assert!(backyard::shape(Target::new(1_000_000, 0.0002)).is_err());
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: Target) -> Result<Shape, Infeasible> {
    target.check_fixed()?;
    let Target { keys, false_positives: got, .. } = target;
    let line = Shape { lines: 1, sharing: 1 }.fingerprints() as f64;
    if got < LOAD_LEAST / line {
        let least = LOAD_LEAST / line;
        return Err(Infeasible::Rate { name: "false_positives", got, least, most: 1.0 });
    }
    let smallest = |sharing| {
        let lines = least(keys, |lines| {
            let shape = Shape { lines, sharing };
            keys as f64 <= LOAD_MAX * lines as f64
                && rate(shape, keys) <= got
                && back_holds(shape, keys)
        });
        Shape { lines, sharing }
    };
    let shapes = SHARING.map(smallest);
    Ok(shapes.into_iter().min_by_key(Shape::bytes).unwrap_or(shapes[0]))
}

/// The false-positive rate of a filter that holds `keys` keys; 1 for a shape that cannot be built.
///
/// ```
/// use sidon::{set::backyard::Shape, plan::backyard};
///
/// // 24 keys per line share 65,535 values: 1 - (1 - 1/65535)^24 at one line.
/// let rate = backyard::rate(Shape { lines: 1, sharing: 3 }, 24);
/// assert!((rate - 3.661_522_69e-4).abs() < 1e-10);
/// ```
pub fn rate(shape: Shape, keys: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    -(keys as f64 * (-1.0 / shape.fingerprints() as f64).ln_1p()).exp_m1()
}

/// How many of `keys` keys are in the overflow table, on average.
fn overflowed(shape: Shape, keys: u64) -> f64 {
    shape.lines as f64 * spilled(shape, keys, 1)
}

/// The mean of a power of the number of keys of a line that overflow.
fn spilled(shape: Shape, keys: u64, power: i32) -> f64 {
    let beyond = |count: u64| (count.saturating_sub(CELLS.into()) as f64).powi(power);
    poisson_mean(keys as f64 / shape.lines as f64, beyond)
}

fn back_holds(shape: Shape, keys: u64) -> bool {
    let load = keys as f64 / shape.lines as f64;
    if shape.lines as f64 * poisson_at_least(load, u64::from(Shape::LINE_MAX) + 1) > OVERFULL {
        return false;
    }
    let deviation = (shape.lines as f64 * spilled(shape, keys, 2)).sqrt();
    let most = overflowed(shape, keys) + DEVIATIONS * deviation;
    most <= BACK_MAX * shape.back_cells() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, set::Backyard};
    use sidon_kit::{FiveTuples, rate::assert_close};

    #[test]
    fn plans_meet_the_target_at_twenty_four_keys_a_line() {
        let bits = |shape: Shape, keys: u64| shape.bytes() as f64 * 8.0 / keys as f64;
        for (keys, most) in [(1000, 28.0), (50_000, 22.8), (1_000_000, 22.05), (30_000_000, 21.7)] {
            for false_positives in [0.3, 0.0015, 0.0004] {
                let shape = shape(Target::new(keys, false_positives)).unwrap();
                assert!(rate(shape, keys) <= false_positives);
                assert!(keys as f64 / shape.lines as f64 <= LOAD_MAX && back_holds(shape, keys));
                assert!(bits(shape, keys) <= most, "{keys} {shape:?} {}", bits(shape, keys));
            }
        }
        // Of 2^40 lines, some would have 64 keys at 24 on average.
        let keys = 1 << 45;
        let shape = shape(Target::new(keys, 0.01)).unwrap();
        assert!(shape.lines > keys / 22, "{shape:?}");
    }

    #[test]
    fn rates_that_16_bits_cannot_have_are_infeasible() {
        let refused = |rate| shape(Target::new(1000, rate)).is_err();
        assert!(!refused(2.3e-4) && refused(2.2e-4) && refused(1e-9) && refused(0.0));
    }

    #[test]
    fn as_many_keys_overflow_as_planned() {
        const KEYS: u64 = 300_000;
        let shape = shape(Target::new(KEYS, 0.001)).unwrap();
        let mut filter = Backyard::new(shape, Seed(3)).unwrap();
        for key in FiveTuples::seeded(4).take(KEYS as usize) {
            filter.insert(&key).unwrap();
        }
        // The overflowed keys of a line are 0.2 on average, with a variance of 0.86: six standard
        // deviations of 12,500 lines are a quarter of the mean.
        assert_close(filter.stats().overflowed as f64, overflowed(shape, KEYS), 0.25);
    }
}
