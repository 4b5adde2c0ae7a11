//! Filters of variable increments: the increments, counters and hashes that take the least memory.
//!
//! More increments tell more and need wider counters. Which set is best was searched by formula;
//! [`variable_search`] is that search, and its winners are [`SETS`].

use super::{
    Target,
    increments::{Cell, Line, best_hashes, exactly, least_cells},
    lines::Lines,
};
use crate::{
    Infeasible,
    hash::spread,
    member::{Increments, Overflow, Spread, code::Sums, variable},
    probe::LINE,
};

/// How many counters may be at their ceiling or above at a time, on average: one table in a million
/// has one.
pub const OVERFLOWS: f64 = 1e-6;

/// The sets that plans choose from: the paper's two, and the winners among all of three and of four
/// increments up to 31, by [`variable_search`] for 15 to 70 bits a key. The last two, in nine bits,
/// err 10 % (at 15 bits a key), 20 % (30), 32 % (50) and 41 % (70) less than the paper's
/// `{8, 12, 14, 15}` in eight, at equal memory.
pub const SETS: [Increments; 6] = [
    Increments::of([4, 5, 6, 7]),
    Increments::of([8, 12, 14, 15]),
    Increments::of([4, 6, 7]),
    Increments::of([6, 7, 9]),
    Increments::of([21, 27, 30, 31]),
    Increments::of([21, 24, 29, 30]),
];
/// The best of them in eight bits, which lines need.
const IN_LINES: Increments = SETS[1];

/// The smallest table that meets the target, and overflows as rarely as a counting filter.
pub fn variable(target: Target) -> Result<variable::Shape, Infeasible> {
    // The equation chooses the best set. The exact rate of that set then gives the size.
    let shapes = SETS.iter().map(|&set| by_equation(target, set, OVERFLOWS));
    let shapes: Result<Vec<_>, _> = shapes.collect();
    let least = shapes?.into_iter().min_by_key(|shape| shape.counters * u64::from(shape.width));
    exact(target, least.ok_or(Infeasible::Memory { bytes: u64::MAX })?, OVERFLOWS)
}

/// The smallest table of these increments that meets the target with at most `overflows` counters
/// at their ceiling or above, on average.
pub fn variable_of(
    target: Target,
    increments: Increments,
    overflows: f64,
) -> Result<variable::Shape, Infeasible> {
    exact(target, by_equation(target, increments, overflows)?, overflows)
}

fn by_equation(
    target: Target,
    increments: Increments,
    overflows: f64,
) -> Result<variable::Shape, Infeasible> {
    target.check()?;
    let near = |_: &Cell, near| Some(near);
    least_width_of(target, increments, least_width(increments), overflows, near)
}

/// A table as small as the exact rate allows, in counters of as many bits or more.
fn exact(
    target: Target,
    found: variable::Shape,
    overflows: f64,
) -> Result<variable::Shape, Infeasible> {
    let (fpr, keys) = (target.false_positives, target.keys as f64);
    let near = |cell: &Cell, near| exactly(fpr, cell, keys, near);
    least_width_of(target, found.increments, found.width, overflows, near)
}

/// The table of the least width, from `width` bits on, that overflows rarely enough.
fn least_width_of(
    target: Target,
    increments: Increments,
    width: u32,
    overflows: f64,
    size: impl Fn(&Cell, (u64, u32)) -> Option<(u64, u32)>,
) -> Result<variable::Shape, Infeasible> {
    let (fpr, keys) = (target.false_positives, target.keys as f64);
    for width in width..=variable::WIDTH_MOST {
        let cell = cell(shape(1, 1, width, increments, Spread::Anywhere))?;
        let least = least_cells(fpr, &cell, keys).and_then(|near| size(&cell, near));
        let Some((counters, hashes)) = least else { continue };
        let above = counters as f64 * cell.overflow(counters as f64, hashes, keys);
        if above <= overflows {
            return Ok(shape(counters, hashes, width, increments, Spread::Anywhere));
        }
    }
    Err(Infeasible::Memory { bytes: u64::MAX })
}

/// The table with the fewest lines a key, two or more, that meets the target in at most 12 % more
/// memory than the smallest; counters have eight bits.
pub fn variable_in_lines(target: Target) -> Result<variable::Shape, Infeasible> {
    const WORTH: f64 = 1.12;
    let smallest = variable(target)?;
    let bits = |shape: &variable::Shape| shape.counters * u64::from(shape.width);
    let worth = bits(&smallest) as f64 * WORTH;
    let cell = cell(shape(1, 1, WIDTH, IN_LINES, Spread::Anywhere))?;
    let mut best: Option<variable::Shape> = None;
    for lines in 2..=3 {
        // As many hashes as are best anywhere, or one or two fewer.
        let most = smallest.hashes.div_ceil(lines);
        for each in most.saturating_sub(1).max(1)..=most {
            if lines * each > spread::MOST {
                continue;
            }
            let Some(found) = in_lines(target, &cell, bits(&smallest), lines, each) else {
                continue;
            };
            if best.is_none_or(|best| bits(&found) < bits(&best)) {
                best = Some(found);
            }
        }
        if best.is_some_and(|best| bits(&best) as f64 <= worth) {
            break;
        }
    }
    Ok(best.unwrap_or(smallest))
}

const WIDTH: u32 = 8;

/// The least whole number of lines, to one in a thousand, for `each` counters in each of `lines`
/// lines a key; a table anywhere takes so many `bits`.
fn in_lines(
    target: Target,
    cell: &Cell,
    bits: u64,
    lines: u32,
    each: u32,
) -> Option<variable::Shape> {
    const MOST: u64 = 1 << 48;
    let in_line = LINE as u64 * 8 / u64::from(WIDTH);
    let line = Line::new(cell, each, lines);
    let of = |all| Lines { all, of_key: lines, keys: target.keys };
    let meets = |all| line.rate(of(all), in_line as f64) <= target.false_positives;
    let mut all = (bits / (LINE as u64 * 8)).max(1);
    while !meets(all) {
        // Steps of an eighth, then back by bisection.
        all = (all + all.div_ceil(8)).min(MOST);
        if all == MOST {
            return None;
        }
    }
    let mut fails = all - all / 8;
    while all > fails + 1 + all / 1024 {
        let middle = fails + (all - fails) / 2;
        if meets(middle) { all = middle } else { fails = middle }
    }
    let found = shape(all * in_line, lines * each, WIDTH, IN_LINES, Spread::Lines(lines));
    let above = cell.overflow_in_lines(of(all), in_line as f64, each);
    (found.counters as f64 * above <= OVERFLOWS).then_some(found)
}

/// The false-positive rate of a table that holds `keys` keys. Counters that would pass their
/// ceiling are taken for pinned.
pub fn variable_rate(shape: variable::Shape, keys: u64) -> Result<f64, Infeasible> {
    shape.check()?;
    let cell = cell(shape)?;
    match shape.spread {
        Spread::Anywhere => Ok(cell.rate(shape.counters as f64, shape.hashes, keys as f64)),
        Spread::Lines(of_key) => {
            let in_line = LINE as u64 * 8 / u64::from(shape.width);
            let line = Line::new(&cell, shape.hashes / of_key, of_key);
            Ok(line.rate(Lines { all: shape.counters / in_line, of_key, keys }, in_line as f64))
        }
    }
}

/// How many counters would be above their ceiling while `keys` keys are stored, on average.
pub fn variable_overflow(shape: variable::Shape, keys: u64) -> Result<f64, Infeasible> {
    let Some(above) = 1u64.checked_shl(shape.width) else { return Ok(0.0) };
    Ok(shape.counters as f64 * variable_at_least(shape, keys, above)?)
}

/// The chance that a given counter would be at `level` or above while `keys` keys are stored, if it
/// had no ceiling; levels of up to 2^16.
pub fn variable_at_least(shape: variable::Shape, keys: u64, level: u64) -> Result<f64, Infeasible> {
    shape.check()?;
    Infeasible::unless_within("level", level, shape.increments.most().into(), 1 << 16)?;
    // A counter that is pinned from there on.
    let cell = Cell::walk(&Sums::new(shape.increments, level, Overflow::Pin)?, level as usize + 1);
    match shape.spread {
        Spread::Anywhere => Ok(cell.overflow(shape.counters as f64, shape.hashes, keys as f64)),
        Spread::Lines(of_key) => {
            let in_line = LINE as u64 * 8 / u64::from(shape.width);
            let lines = Lines { all: shape.counters / in_line, of_key, keys };
            Ok(cell.overflow_in_lines(lines, in_line as f64, shape.hashes / of_key))
        }
    }
}

/// The upper bound of the same that theorem 3 rests on: a counter above its ceiling has met at least
/// `a` keys, the ceiling over the largest increment, and that happens to at most
/// `m (e k n / (a m))^a` of them.
pub fn variable_overflow_bound(shape: variable::Shape, keys: u64) -> f64 {
    let met = (1u32 << shape.width.min(31)).div_ceil(shape.increments.most());
    let mean = f64::from(shape.hashes) * keys as f64 / shape.counters as f64;
    let base = std::f64::consts::E * mean / f64::from(met);
    shape.counters as f64 * base.powi(met as i32)
}

/// The integer number of hashes with the least rate for this many counters and keys.
pub fn variable_best_hashes(
    increments: Increments,
    width: u32,
    counters: u64,
    keys: u64,
) -> Result<u32, Infeasible> {
    let cell = cell(shape(1, 1, width, increments, Spread::Anywhere))?;
    Ok(best_hashes(|hashes| cell.equation(counters as f64, hashes, keys as f64)))
}

/// What a search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The increments.
    pub increments: Increments,
    /// The bits of a counter.
    pub width: u32,
    /// The number of hashes.
    pub hashes: u32,
    /// The false-positive rate.
    pub false_positives: f64,
}

/// The best of all sets of `count` increments up to `most`, counter widths and numbers of hashes,
/// for a million keys in a table of so many bits a key, with at most [`OVERFLOWS`] counters above
/// their ceiling.
pub fn variable_search(bits_per_key: f64, count: usize, most: u8) -> Result<Found, Infeasible> {
    const KEYS: f64 = 1e6;
    let mut best: Option<Found> = None;
    for least in 1..=most {
        for increments in Increments::search(count, least..=most, |_| true) {
            // Where all values share a divisor, a smaller set says the same.
            if increments.values().iter().copied().fold(0, divisor) > 1 {
                continue;
            }
            let cell = Cell::excluding(increments);
            for width in least_width(increments) + 2..=least_width(increments) + 5 {
                let counters = (bits_per_key * KEYS / f64::from(width)).floor();
                // Fewer hashes than are best overflow less.
                for hashes in 1..=best_hashes(|hashes| cell.equation(counters, hashes, KEYS)) {
                    let false_positives = cell.equation(counters, hashes, KEYS);
                    if best.is_some_and(|best| best.false_positives <= false_positives) {
                        continue;
                    }
                    // Only what would win is worth the walk to its ceiling.
                    let shape = shape(counters as u64, hashes, width, increments, Spread::Anywhere);
                    if variable_overflow(shape, KEYS as u64)? <= OVERFLOWS {
                        best = Some(Found { increments, width, hashes, false_positives });
                    }
                }
            }
        }
    }
    best.ok_or(Infeasible::Memory { bytes: u64::MAX })
}

fn divisor(a: u8, b: u8) -> u8 {
    if b == 0 { a } else { divisor(b, a % b) }
}

fn shape(
    counters: u64,
    hashes: u32,
    width: u32,
    increments: Increments,
    spread: Spread,
) -> variable::Shape {
    variable::Shape { counters, hashes, width, increments, overflow: Overflow::Refuse, spread }
}

/// The bits of the largest increment.
fn least_width(increments: Increments) -> u32 {
    increments.most().ilog2() + 1
}

fn cell(shape: variable::Shape) -> Result<Cell, Infeasible> {
    Ok(Cell::walk(&shape.code()?, 1 << shape.width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn the_search_finds_what_plans_choose_from() {
        for bits in [20.0, 30.0] {
            let found = variable_search(bits, 3, 12).unwrap();
            assert_eq!((found.increments, found.width), (SETS[3], 7));
        }
        // Four increments: as the paper found, at 30 bits a key.
        let found = variable_search(30.0, 4, 15).unwrap();
        assert_eq!((found.increments, found.width, found.hashes), (SETS[1], 8, 6));
        assert_close(found.false_positives, 3.9817e-3, 1e-4);
    }

    #[test]
    fn the_winners_beat_the_papers_set_at_equal_memory() {
        const KEYS: u64 = 1_000_000;
        let rate = |set, width, bits: u64, hashes| {
            let counters = bits * KEYS / u64::from(width);
            let shape = shape(counters, hashes, width, set, Spread::Anywhere);
            assert!(variable_overflow(shape, KEYS).unwrap() <= OVERFLOWS, "{shape:?}");
            variable_rate(shape, KEYS).unwrap()
        };
        // The best hashes of both that overflow as rarely as they must.
        for (bits, winner, hashes, papers, less) in
            [(20, SETS[4], 4, 4, 0.13), (30, SETS[4], 6, 6, 0.19), (50, SETS[5], 11, 10, 0.31)]
        {
            let (ours, papers) = (rate(winner, 9, bits, hashes), rate(SETS[1], 8, bits, papers));
            assert!(ours < papers * (1.0 - less), "{bits} bits: {ours} against {papers}");
        }
    }

    #[test]
    fn plans_meet_their_target_and_no_smaller_table_does() {
        for keys in [1, 2000, 1_000_000] {
            for false_positives in [0.1, 0.001, 1e-6] {
                let target = Target { keys, false_positives };
                let planned = variable(target).unwrap();
                assert!(variable_rate(planned, keys).unwrap() <= false_positives);
                assert!(variable_overflow(planned, keys).unwrap() <= OVERFLOWS);
                for hashes in 1..=16 {
                    let smaller =
                        variable::Shape { counters: planned.counters - 1, hashes, ..planned };
                    let rate = |shape| variable_rate(shape, keys).unwrap();
                    assert!(
                        smaller.counters == 0 || rate(smaller) > false_positives,
                        "{smaller:?}"
                    );
                }
                let lines = variable_in_lines(target).unwrap();
                assert!(variable_rate(lines, keys).unwrap() <= false_positives, "{lines:?}");
            }
        }
        // The paper's own bounds hold above the exact chances.
        let shape = shape(12_842, 5, 7, SETS[0], Spread::Anywhere);
        let exact = variable_overflow(shape, 2000).unwrap();
        assert!(exact > 0.0 && exact < variable_overflow_bound(shape, 2000));
    }
}
