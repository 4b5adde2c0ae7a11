//! Counting Bloom filters: the rate of a Bloom filter, and how high the counters go.
//!
//! A counter is raised by a Poisson number of keys, `kn/m` on average: `ln 2` at the best `k`.
//! Four bits then overflow in 6.8e-17 of the counters, so a table of a million keeps clear of it
//! for 10^10 snapshots. Bonomi et al., ESA 2006, section 5.1; Rottenstreich et al., equation 8.

use super::{Target, bloom, dleft::least_from, draws, lines::Lines, tail};
use crate::{
    Infeasible,
    hash::spread,
    member::{LINES_MOST, Overflow, Spread, counting},
    probe::LINE,
};
use std::cell::RefCell;

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
    // Up to eight counters in each line; more are never better at these rates.
    let tables: Vec<_> = (1..=8).map(|each| Passes::new(WIDTH, each)).collect();
    // No mapping takes fewer counters than the one that puts them anywhere.
    let least = (smallest.counters / in_line(WIDTH)).max(1);
    let few = (2..=LINES_MOST).find_map(|lines| {
        let shapes = tables.iter().map(|passes| in_lines(target, least, lines, passes));
        let best = shapes.flatten().min_by_key(|shape| shape.counters)?;
        (best.counters as f64 <= worth).then_some(best)
    });
    // A small table rounds up to whole lines by more than is worth it.
    let each = smallest.hashes.div_ceil(2).min(8);
    Ok(few.or_else(|| in_lines(target, least, 2, &tables[each as usize - 1])).unwrap_or(smallest))
}

/// The least whole number of lines, `least` or more, for `passes.each` counters in each of `lines` lines
/// a key.
fn in_lines(target: Target, least: u64, lines: u32, passes: &Passes) -> Option<counting::Shape> {
    const MOST: u64 = 1 << 48;
    let hashes = lines * passes.each;
    if hashes > spread::MOST {
        return None;
    }
    let of = |all| Lines { all, of_key: lines, keys: target.keys };
    let all = least_from(least, MOST, |all| passes.rate(of(all)) <= target.false_positives);
    let group = LINE as u64 * 8 / u64::from(WIDTH);
    (all < MOST).then_some(counting::Shape {
        counters: all * group,
        hashes,
        width: WIDTH,
        overflow: Overflow::Refuse,
        spread: Spread::Lines(lines),
    })
}

/// The false-positive rate of a table that holds `keys` keys; 1 for a shape that cannot be built.
pub fn counting_rate(shape: counting::Shape, keys: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    match shape.spread {
        Spread::Anywhere => bloom::rate(shape.counters as f64, shape.hashes, keys as f64),
        Spread::Lines(of_key) => {
            let all = shape.counters / in_line(shape.width);
            let passes = Passes::new(shape.width, shape.hashes / of_key);
            passes.rate(Lines { all, of_key, keys })
        }
    }
}

/// Counters of `width` bits in a line.
fn in_line(width: u32) -> u64 {
    LINE as u64 * 8 / u64::from(width)
}

/// The chance to pass in one line: the counters drawn there must all be in use.
struct Passes {
    cells: f64,
    each: u32,
    /// By how many times the line is drawn, and by how many times members drew it: made when asked for.
    known: RefCell<Vec<Vec<f64>>>,
}

impl Passes {
    /// For lines of counters of `width` bits, `each` of which a key draws.
    fn new(width: u32, each: u32) -> Self {
        let known = RefCell::new(vec![vec![]; LINES_MOST as usize]);
        Passes { cells: in_line(width) as f64, each, known }
    }

    /// In a line that is drawn `times` times, and that members drew `drawn` times.
    fn of(&self, times: u32, drawn: u64) -> f64 {
        let of = |drawn: usize| {
            let raised = drawn as f64 * f64::from(self.each);
            draws::all_met_before(self.cells, times * self.each, raised)
        };
        let (mut known, drawn) = (self.known.borrow_mut(), drawn as usize);
        let known = &mut known[times as usize - 1];
        if drawn >= KNOWN {
            return of(drawn);
        }
        if known.len() <= drawn {
            known.resize(drawn + 1, f64::NAN);
        }
        if known[drawn].is_nan() {
            known[drawn] = of(drawn);
        }
        known[drawn]
    }

    fn rate(&self, lines: Lines) -> f64 {
        lines.rate(|times, drawn| self.of(times, drawn))
    }
}

/// Numbers of draws below this are remembered.
const KNOWN: usize = 1 << 12;

/// The chance that a given counter is at `level` or above while `keys` keys are stored; 1 for a shape
/// that cannot be built.
pub fn counting_at_least(shape: counting::Shape, keys: u64, level: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    match shape.spread {
        Spread::Anywhere => tail::poisson_at_least(mean(shape, keys), level),
        Spread::Lines(of_key) => {
            let group = in_line(shape.width);
            let of_draw = f64::from(shape.hashes / of_key) / group as f64;
            let lines = Lines { all: shape.counters / group, of_key, keys };
            lines.mean_of(|drawn| tail::poisson_at_least(of_draw * drawn as f64, level))
        }
    }
}

/// How many counters would be above their ceiling while `keys` keys are stored, on average. While
/// it is small, this is the chance that storing them overflows at all.
pub fn counting_overflow(shape: counting::Shape, keys: u64) -> f64 {
    shape.counters as f64
        * counting_at_least(shape, keys, 1u64.checked_shl(shape.width).unwrap_or(u64::MAX))
}

/// The classic upper bound of the same: `m (e k n / (level m))^level`.
pub fn counting_overflow_bound(shape: counting::Shape, keys: u64) -> f64 {
    let level = 2f64.powi(shape.width.min(64) as i32);
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
    fn small_tables_in_lines_meet_their_target() {
        for keys in [1, 10, 100, 1000] {
            for false_positives in [0.3, 0.01, 1e-6] {
                let shape = counting_in_lines(Target { keys, false_positives }).unwrap();
                assert!(counting_rate(shape, keys) <= false_positives, "{shape:?}");
            }
        }
    }
}
