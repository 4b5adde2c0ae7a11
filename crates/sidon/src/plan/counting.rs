//! Counting Bloom filters: the rate of a Bloom filter, and how high the counters go.
//!
//! A counter is raised by a Poisson number of keys, `kn/m` on average: `ln 2` at the best `k`.
//! Four bits then overflow in 6.8e-17 of the counters, so a table of a million keeps clear of it
//! for 10^10 snapshots. Bonomi et al., ESA 2006, section 5.1; Rottenstreich et al., equation 8.

use super::{Target, bloom, tail};
use crate::{
    Infeasible,
    member::{LINES_MOST, Overflow, Spread, counting},
    probe::LINE,
};

/// The width that four papers of five take.
const WIDTH: u32 = 4;

/// The smallest table of 4-bit counters that meets the target.
pub fn counting(target: Target) -> Result<counting::Shape, Infeasible> {
    let (counters, hashes) = bloom::least_cells(target)?;
    let (width, overflow, spread) = (WIDTH, Overflow::Refuse, Spread::Anywhere);
    Ok(counting::Shape { counters, hashes, width, overflow, spread })
}

/// Above this share of memory, fewer lines a key are not worth it.
const WORTH: f64 = 1.08;

/// The table of 4-bit counters with the fewest lines a key that meets the target in at most 8 %
/// more memory than the smallest.
pub fn counting_in_lines(target: Target) -> Result<counting::Shape, Infeasible> {
    let smallest = counting(target)?;
    let worth = smallest.counters as f64 * WORTH;
    let few = (2..=LINES_MOST).find_map(|lines| {
        // Up to eight counters in each line; more are never better at these rates.
        let shapes = (1..=8).map(|each| in_lines(target, lines, each));
        let least = shapes.flatten().min_by_key(|shape| shape.counters)?;
        (least.counters as f64 <= worth).then_some(least)
    });
    // A small table rounds up to whole lines by more than is worth it.
    Ok(few.or_else(|| in_lines(target, 2, smallest.hashes.div_ceil(2).min(8))).unwrap_or(smallest))
}

/// The least whole number of lines for `each` counters in each of `lines` lines a key.
fn in_lines(target: Target, lines: u32, each: u32) -> Option<counting::Shape> {
    let group = LINE as u64 * 8 / u64::from(WIDTH);
    let shape = |all| counting::Shape {
        counters: all * group,
        hashes: lines * each,
        width: WIDTH,
        overflow: Overflow::Refuse,
        spread: Spread::Lines(lines),
    };
    const MOST: u64 = 1 << 48;
    let meets = |all| counting_rate(shape(all), target.keys) <= target.false_positives;
    let all = bloom::least(MOST, meets);
    (all < MOST).then(|| shape(all))
}

/// The false-positive rate of a table that holds `keys` keys.
pub fn counting_rate(shape: counting::Shape, keys: u64) -> f64 {
    match shape.spread {
        Spread::Anywhere => bloom::rate(shape.counters as f64, shape.hashes, keys as f64),
        Spread::Lines(lines) => lines_rate(shape, lines.max(1), keys),
    }
}

/// A line holds a Poisson number of keys, each with `e` counters in it; a stranger passes if in
/// each of its lines the `e` counters it draws are all in use.
fn lines_rate(shape: counting::Shape, lines: u32, keys: u64) -> f64 {
    let group = LINE as f64 * 8.0 / f64::from(shape.width);
    let each = shape.hashes / lines;
    let all_lines = shape.counters as f64 / group;
    let distinct = distinct(group, each);
    let passes = tail::poisson_mean(f64::from(lines) * keys as f64 / all_lines, |keys| {
        drawn_in_use(group, &distinct, keys as f64 * f64::from(each))
    });
    passes.powi(lines as i32)
}

/// The chances that `draws` cells drawn with repetition are 0, 1, .. distinct ones.
fn distinct(cells: f64, draws: u32) -> Vec<f64> {
    let mut distinct = vec![1.0];
    for _ in 0..draws {
        let mut next = vec![0.0; distinct.len() + 1];
        for (had, chance) in distinct.iter().enumerate() {
            let known = had as f64 / cells;
            next[had] += chance * known;
            next[had + 1] += chance * (1.0 - known);
        }
        distinct = next;
    }
    distinct
}

/// The chance that as many [`distinct`] cells are all among those that `raised` earlier draws from
/// the same `cells` met.
fn drawn_in_use(cells: f64, distinct: &[f64], raised: f64) -> f64 {
    // That `d` given cells are none of them met.
    let missed: Vec<f64> =
        (0..distinct.len()).map(|d| (1.0 - d as f64 / cells).max(0.0).powf(raised)).collect();
    // That `d` given cells are all met, by inclusion and exclusion.
    let met = |d: usize| {
        let (mut sum, mut choose) = (0.0, 1.0);
        for (i, missed) in missed.iter().enumerate().take(d + 1) {
            sum += if i % 2 == 0 { choose * missed } else { -choose * missed };
            choose *= (d - i) as f64 / (i + 1) as f64;
        }
        sum.max(0.0)
    };
    distinct.iter().enumerate().map(|(d, chance)| chance * met(d)).sum()
}

/// The chance that a given counter is at `level` or above while `keys` keys are stored.
pub fn counting_at_least(shape: counting::Shape, keys: u64, level: u64) -> f64 {
    tail::poisson_at_least(mean(shape, keys), level)
}

/// How many counters would be above their ceiling while `keys` keys are stored, on average. While
/// it is small, this is the chance that storing them overflows at all.
pub fn counting_overflow(shape: counting::Shape, keys: u64) -> f64 {
    shape.counters as f64 * counting_at_least(shape, keys, 1 << shape.width)
}

/// The classic upper bound of the same: `m (e k n / (level m))^level`.
pub fn counting_overflow_bound(shape: counting::Shape, keys: u64) -> f64 {
    let level = f64::from(1u32 << shape.width);
    let base = std::f64::consts::E * mean(shape, keys) / level;
    shape.counters as f64 * base.powf(level)
}

/// How often some counter is raised to exactly `level` in the course of `insertions` insertions
/// into a table that always holds `keys` keys, on average.
pub fn counting_raises(shape: counting::Shape, keys: u64, insertions: u64, level: u64) -> f64 {
    let Some(below) = level.checked_sub(1) else { return 0.0 };
    insertions as f64 * f64::from(shape.hashes) * tail::poisson(mean(shape, keys), below)
}

fn mean(shape: counting::Shape, keys: u64) -> f64 {
    f64::from(shape.hashes) * keys as f64 / shape.counters as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn few_lines_cost_a_few_per_cent() {
        for false_positives in [0.01, 0.001, 1e-4] {
            let target = Target { keys: 1_000_000, false_positives };
            let (smallest, few) = (counting(target).unwrap(), counting_in_lines(target).unwrap());
            let Spread::Lines(lines) = few.spread else { panic!("{few:?}") };
            assert!((2..=3).contains(&lines), "{few:?}");
            assert!(counting_rate(few, 1_000_000) <= false_positives);
            let more = few.counters as f64 / smallest.counters as f64;
            assert!(more > 1.0 && more <= WORTH, "{more}");
        }
    }

    #[test]
    fn draws_by_hand() {
        // One draw of 128 cells, after 128: 1 - (127/128)^128.
        let one = 1.0 - (127.0f64 / 128.0).powi(128);
        assert_close(drawn_in_use(128.0, &distinct(128.0, 1), 128.0), one, 1e-12);
        // Two draws of two cells after one: both must be that cell.
        assert_close(drawn_in_use(2.0, &distinct(2.0, 2), 1.0), 0.25, 1e-12);
        assert_close(drawn_in_use(2.0, &distinct(2.0, 2), 2.0), 0.25 * 0.5 + 0.5, 1e-12);
        assert_eq!(drawn_in_use(128.0, &distinct(128.0, 3), 0.0), 0.0);
    }

    #[test]
    fn small_tables_in_lines_meet_their_target() {
        for keys in [1, 10, 100, 1000] {
            for false_positives in [0.3, 0.01, 1e-6] {
                let shape = counting_in_lines(Target { keys, false_positives }).unwrap();
                assert!(counting_rate(shape, keys) <= false_positives, "{shape:?}");
            }
        }
    }
}
