//! Blocked Bloom filters: lines, hashes and rate.
//!
//! All bits of a key are in one cache line of eight 64-bit words. A line gets a Poisson number of keys.
//! Each sets `k / 8` bits in every word, and one more in `k mod 8` of the words.

use super::{
    Target,
    bloom::{CELLS_MAX, least},
    tail,
};
use crate::{
    Infeasible,
    set::blocked::{HASHES_MAX, Shape},
};

/// Below this rate the digest word of a line is too narrow, and a blocked table wastes memory.
const RATE_LEAST: f64 = 1e-8;
/// Above this share of memory saved, another number of hashes is worth leaving eight, the fast one.
const WORTH: f64 = 0.05;
const FAST_HASHES: u32 = 8;

/// The smallest table that meets the target, with eight hashes unless others save 5 % or more. Keys
/// cannot leave it, it cannot grow, and its rate is at least `1e-8`.
///
/// ```
/// use sidon::plan::{Target, blocked};
///
/// let shape = blocked::shape(Target::new(1_000_000, 0.01))?;
/// assert_eq!(shape.hashes, 8);
/// // One line fewer errs more often than once in a hundred.
/// let fewer = sidon::set::blocked::Shape { lines: shape.lines - 1, ..shape };
/// assert!(blocked::rate(shape, 1_000_000) <= 0.01 && blocked::rate(fewer, 1_000_000) > 0.01);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: Target) -> Result<Shape, Infeasible> {
    target.check_permanent()?;
    let (name, got) = ("false_positives", target.false_positives);
    if got < RATE_LEAST {
        return Err(Infeasible::Rate { name, got, least: RATE_LEAST, most: 1.0 });
    }
    let lines_for = |hashes| least_lines(target, hashes);
    let fast = lines_for(FAST_HASHES);
    let least = (1..=HASHES_MAX).map(|hashes| (lines_for(hashes), hashes)).min();
    let shape = match least {
        Some((lines, hashes)) if (lines as f64) < fast as f64 * (1.0 - WORTH) => {
            Shape { lines, hashes }
        }
        _ => Shape { lines: fast, hashes: FAST_HASHES },
    };
    Ok(shape)
}

fn least_lines(target: Target, hashes: u32) -> u64 {
    least(CELLS_MAX, |lines| rate(Shape { lines, hashes }, target.keys) <= target.false_positives)
}

/// Two keys that share line and digest word cannot be distinguished: a lower bound of every rate, per
/// key of a line.
const FLOOR: f64 = 1.0 / (1u64 << 32) as f64;

/// The false-positive rate of a table that holds `keys` keys.
///
/// ```
/// use sidon::{set::blocked::Shape, plan::blocked};
///
/// // Eight hashes: one bit in each word of a line. The mean of (1 - (63/64)^j)^8 + j/2^32 over the
/// // keys j of a line, Poisson(20).
/// let rate = blocked::rate(Shape { lines: 1_000_000, hashes: 8 }, 20_000_000);
/// assert!((rate - 6.242_005_56e-5).abs() < 1e-9);
/// ```
pub fn rate(shape: Shape, keys: u64) -> f64 {
    let (often, extra) = (shape.hashes / 8, shape.hashes % 8);
    let mean = keys as f64 / shape.lines as f64;
    tail::poisson_mean(mean, |keys| {
        let keys = keys as f64;
        // The chance that `d` given bits of a word are all still zero.
        let zero = |d: f64| {
            let always = (1.0 - d / 64.0).powf(keys * f64::from(often));
            always * (1.0 - d * f64::from(extra) / 512.0).powf(keys)
        };
        // The chance that one, two or three bits drawn in a word are all set.
        let one = 1.0 - zero(1.0);
        let two = 1.0 - 2.0 * zero(1.0) + (zero(1.0) + 63.0 * zero(2.0)) / 64.0;
        let set = |bits: u32| match bits {
            0 => 1.0,
            1 => one,
            _ => two,
        };
        let words = set(often + 1).powi(extra as i32) * set(often).powi(8 - extra as i32);
        (words + keys * FLOOR).min(1.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn the_plan_meets_the_target_and_one_line_less_does_not() {
        for keys in [100, 10_000, 1_000_000] {
            for false_positives in [0.3, 0.01, 1e-4, 1e-6] {
                let planned = shape(Target::new(keys, false_positives)).unwrap();
                assert!(rate(planned, keys) <= false_positives);
                let smaller = Shape { lines: planned.lines - 1, ..planned };
                assert!(planned.lines == 1 || rate(smaller, keys) > false_positives);
            }
        }
    }

    #[test]
    fn a_single_word_of_a_line_follows_the_classic_formula() {
        // Eight hashes with all keys in one line: eight classic tables of 64 bits with k = 1.
        let line = |keys: f64| (1.0 - (63.0f64 / 64.0).powf(keys)).powi(8);
        // At 20 keys a line on average, the mean over the Poisson number of keys by hand.
        let by_hand: f64 =
            (0..400).map(|j| tail::poisson(20.0, j) * (line(j as f64) + j as f64 * FLOOR)).sum();
        assert_close(rate(Shape { lines: 1_000_000, hashes: 8 }, 20_000_000), by_hand, 1e-9);
    }

    #[test]
    fn impossible_targets_say_so() {
        for false_positives in [0.0, 1.0, -0.1, f64::NAN, 1e-9] {
            assert!(shape(Target::new(10, false_positives)).is_err());
        }
    }
}
