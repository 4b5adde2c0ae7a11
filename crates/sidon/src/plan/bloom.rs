//! Bloom filters, whole and blocked: bits, hashes, rates.
//!
//! With `n` keys of `k` bits each in a table of `m`, a bit is still zero with probability
//! `(1 - 1/m)^(kn)`, and a stranger passes with probability `(1 - (1 - 1/m)^(kn))^k`: equation 7
//! of Rottenstreich et al. Plans of small tables use the exact rate instead. The best `k` is near `(m/n) ln 2`, where half the bits are set and the
//! rate is `0.6185^(m/n)`: Bonomi et al., ESA 2006, section 2.1.

use super::{Target, draws, tail};
use crate::{
    Infeasible,
    hash::spread,
    member::{blocked, bloom},
    probe::LINE_HASHES_MAX,
};
use std::f64::consts::LN_2;

/// The false-positive rate of a table that holds `keys` keys.
pub fn bloom_rate(shape: bloom::Shape, keys: u64) -> f64 {
    rate(shape.bits as f64, shape.hashes, keys as f64)
}

/// The same for a table of endless size: `(1 - e^(-k/c))^k` for `c` cells a key.
pub fn bloom_rate_limit(cells_per_key: f64, hashes: u32) -> f64 {
    let hashes = f64::from(hashes);
    (-(-hashes / cells_per_key).exp_m1()).powf(hashes)
}

/// The bits a key that a rate needs if `k` need not be an integer: `ln(1/rate) / (ln 2)^2`.
pub fn bloom_bits_per_key(false_positives: f64) -> f64 {
    -false_positives.ln() / (LN_2 * LN_2)
}

/// The integer `k` with the least rate for this many cells and keys.
pub fn bloom_best_hashes(cells: u64, keys: u64) -> u32 {
    let rate = |hashes: &u32| rate(cells as f64, *hashes, keys as f64);
    let best = (1..=spread::MOST).min_by(|a, b| rate(a).total_cmp(&rate(b)));
    best.unwrap_or(1)
}

/// The smallest table that meets the target.
pub fn bloom(target: Target) -> Result<bloom::Shape, Infeasible> {
    let (bits, hashes) = least_cells(target)?;
    Ok(bloom::Shape { bits, hashes })
}

/// Whether equation 7 is more than half a per cent below the truth, for rates of any use. It takes the
/// bits of a stranger for independent, and is off by about `0.15 k (k - 1) / m` of itself.
pub(super) fn is_small(cells: f64, hashes: u32) -> bool {
    hashes <= spread::MOST && cells < 32.0 * f64::from(hashes) * (f64::from(hashes) - 1.0)
}

pub(super) fn rate(cells: f64, hashes: u32, keys: f64) -> f64 {
    if cells < 1.0 {
        return 1.0;
    }
    if is_small(cells, hashes) {
        return draws::all_met_before(cells, hashes, f64::from(hashes) * keys);
    }
    let hashes = f64::from(hashes);
    let draws = hashes * keys;
    // A draw from one cell leaves no cell out, and the logarithm has no product with zero draws.
    let set = if draws > 0.0 { -(draws * (-1.0 / cells).ln_1p()).exp_m1() } else { 0.0 };
    set.powf(hashes)
}

/// The least cells, and the hashes that go with them, for a scattered filter of this target.
pub(super) fn least_cells(target: Target) -> Result<(u64, u32), Infeasible> {
    target.check()?;
    let keys = target.keys as f64;
    let cells_for = |hashes| {
        let meets = |cells| rate(cells as f64, hashes, keys) <= target.false_positives;
        (least(CELLS_MOST, meets), hashes)
    };
    let best = (1..=spread::MOST).map(cells_for).min();
    Ok(best.unwrap_or((1, 1)))
}

/// Below this rate the digest word of a line is too narrow, and a blocked table wastes memory.
const BLOCKED_RATE_LEAST: f64 = 1e-8;
/// Above this share of memory saved, another number of hashes is worth leaving eight, the fast one.
const WORTH: f64 = 0.05;
const FAST_HASHES: u32 = 8;

/// The smallest table that meets the target, with eight hashes unless others save 5 % or more.
pub fn blocked(target: Target) -> Result<blocked::Shape, Infeasible> {
    target.check()?;
    let (name, got) = ("false_positives", target.false_positives);
    if got < BLOCKED_RATE_LEAST {
        return Err(Infeasible::Rate { name, got, least: BLOCKED_RATE_LEAST, most: 1.0 });
    }
    let lines_for = |hashes| least_lines(target, hashes);
    let fast = lines_for(FAST_HASHES);
    let least = (1..=LINE_HASHES_MAX).map(|hashes| (lines_for(hashes), hashes)).min();
    let shape = match least {
        Some((lines, hashes)) if (lines as f64) < fast as f64 * (1.0 - WORTH) => {
            blocked::Shape { lines, hashes }
        }
        _ => blocked::Shape { lines: fast, hashes: FAST_HASHES },
    };
    Ok(shape)
}

fn least_lines(target: Target, hashes: u32) -> u64 {
    least(CELLS_MOST, |lines| {
        blocked_rate(blocked::Shape { lines, hashes }, target.keys) <= target.false_positives
    })
}

/// More cells or lines than any target needs.
const CELLS_MOST: u64 = 1 << 58;

/// The least number from 1 to `most` that meets a condition which all larger numbers meet too;
/// `most` if none does.
pub(super) fn least(most: u64, meets: impl Fn(u64) -> bool) -> u64 {
    let (mut fails, mut holds) = (0, 1);
    while holds < most && !meets(holds) {
        (fails, holds) = (holds, holds * 2);
    }
    while holds - fails > 1 {
        let middle = fails + (holds - fails) / 2;
        if meets(middle) { holds = middle } else { fails = middle }
    }
    holds
}

/// Two keys that share line and digest word are one: the floor of every rate, times keys a line.
const FLOOR: f64 = 1.0 / (1u64 << 32) as f64;

/// The false-positive rate of a blocked table that holds `keys` keys.
///
/// A line gets a Poisson number of keys. Each puts `k / 8` bits into every word of 64, and one more
/// into `k mod 8` of them; a stranger asks likewise.
pub fn blocked_rate(shape: blocked::Shape, keys: u64) -> f64 {
    let (often, extra) = (shape.hashes / 8, shape.hashes % 8);
    let mean = keys as f64 / shape.lines as f64;
    tail::poisson_mean(mean, |keys| {
        let keys = keys as f64;
        // The chance that `d` given bits of a word are all still zero.
        let zero = |d: f64| {
            let always = (1.0 - d / 64.0).powf(keys * f64::from(often));
            always * (1.0 - d * f64::from(extra) / 512.0).powf(keys)
        };
        // The chance that one, two or three places drawn in a word are all set.
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
    fn the_planned_table_is_the_smallest_that_meets_the_target() {
        for keys in [1, 10, 1000, 1_000_000] {
            for false_positives in [0.3, 0.01, 1e-4, 1e-8] {
                let shape = bloom(Target { keys, false_positives }).unwrap();
                assert!(bloom_rate(shape, keys) <= false_positives);
                for hashes in 1..=spread::MOST {
                    let smaller = bloom::Shape { bits: shape.bits - 1, hashes };
                    assert!(shape.bits == 1 || bloom_rate(smaller, keys) > false_positives);
                }
            }
        }
    }

    #[test]
    fn the_blocked_plan_meets_the_target_and_one_line_less_does_not() {
        for keys in [100, 10_000, 1_000_000] {
            for false_positives in [0.3, 0.01, 1e-4, 1e-6] {
                let shape = blocked(Target { keys, false_positives }).unwrap();
                assert!(blocked_rate(shape, keys) <= false_positives);
                let smaller = blocked::Shape { lines: shape.lines - 1, ..shape };
                assert!(shape.lines == 1 || blocked_rate(smaller, keys) > false_positives);
            }
        }
    }

    #[test]
    fn a_single_word_of_a_line_follows_the_classic_formula() {
        // Eight hashes with all keys in one line: eight classic tables of 64 bits with k = 1.
        let line = |keys: f64| (1.0 - (63.0f64 / 64.0).powf(keys)).powi(8);
        let shape = blocked::Shape { lines: 1_000_000, hashes: 8 };
        // At 20 keys a line on average, the mean over the Poisson number of keys by hand.
        let by_hand: f64 =
            (0..400).map(|j| tail::poisson(20.0, j) * (line(j as f64) + j as f64 * FLOOR)).sum();
        assert_close(blocked_rate(shape, 20_000_000), by_hand, 1e-9);
    }

    #[test]
    fn impossible_targets_say_so() {
        for false_positives in [0.0, 1.0, -0.1, f64::NAN, 1e-13] {
            assert!(bloom(Target { keys: 10, false_positives }).is_err());
            assert!(blocked(Target { keys: 10, false_positives }).is_err());
        }
        assert!(bloom(Target { keys: 0, false_positives: 0.1 }).is_err());
        assert!(bloom(Target { keys: u64::MAX, false_positives: 0.1 }).is_err());
    }
}
