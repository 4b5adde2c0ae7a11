//! Filters of variable increments: the increments, counters and hashes that take the least memory.
//!
//! More increments distinguish more keys and need wider counters. The best sets were found by formula:
//! all sets of three and four increments up to 31 were compared, for 15 to 70 bits per key.

use super::{
    Prefer, Target,
    increments::{Cell, Line, exactly, least_cells},
    lines::Lines,
};
use crate::{
    Infeasible,
    key::spread,
    set::{
        Increments, Overflow, Spread,
        increment_code::Sums,
        variable::{Shape, WIDTH_MAX},
    },
    simd::LINE,
};

/// How many counters may be at their ceiling or above at a time, on average: one table in a million
/// has one.
pub(super) const OVERFLOWS: f64 = 1e-6;

/// The sets that plans choose from: the paper's two, and the winners of the search. The last two, in
/// nine bits, err 10 % (at 15 bits per key), 20 % (30), 32 % (50) and 41 % (70) less than the paper's
/// `{8, 12, 14, 15}` in eight, at equal memory.
pub(super) const SETS: [Increments; 6] = [
    Increments::of([4, 5, 6, 7]),
    Increments::of([8, 12, 14, 15]),
    Increments::of([4, 6, 7]),
    Increments::of([6, 7, 9]),
    Increments::of([21, 27, 30, 31]),
    Increments::of([21, 24, 29, 30]),
];
/// The best of them in eight bits, which lines need.
const IN_LINES: Increments = SETS[1];

/// The smallest table that meets the target and overflows as rarely as a counting filter.
///
/// With [`Prefer::Speed`], the table with the fewest cache lines per key, two or more, if it takes at
/// most 12 % more memory than the smallest. Its counters have eight bits.
///
/// ```
/// use sidon::{set::{Spread, variable::Shape}, plan::{Prefer, Target, counting, variable}};
///
/// let target = Target::new(100_000, 0.001);
/// let shape = variable::shape(target)?;
/// // It takes less than 70 % of the memory of a counting filter, and one counter less is too few.
/// let bits = shape.counters * u64::from(shape.width);
/// assert!(bits * 10 < counting::shape(target)?.counters * 4 * 7);
/// let less = Shape { counters: shape.counters - 1, ..shape };
/// assert!(variable::rate(shape, 100_000)? <= 0.001 && variable::rate(less, 100_000)? > 0.001);
/// let fast = variable::shape(Target { prefer: Prefer::Speed, ..target })?;
/// assert_eq!((fast.spread, fast.width), (Spread::Lines(2), 8));
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: Target) -> Result<Shape, Infeasible> {
    target.check_fixed()?;
    match target.prefer {
        Prefer::Memory => smallest(target),
        Prefer::Speed => fewest_lines(target),
    }
}

fn smallest(target: Target) -> Result<Shape, Infeasible> {
    // The equation chooses the best set. The exact rate of that set then gives the size.
    let shapes = SETS.iter().map(|&set| by_equation(target, set, OVERFLOWS));
    let shapes: Result<Vec<_>, _> = shapes.collect();
    let least = shapes?.into_iter().min_by_key(|shape| shape.counters * u64::from(shape.width));
    exact(target, least.ok_or(Infeasible::Memory { bytes: u64::MAX })?, OVERFLOWS)
}

fn by_equation(
    target: Target,
    increments: Increments,
    overflows: f64,
) -> Result<Shape, Infeasible> {
    target.check()?;
    let near = |_: &Cell, near| Some(near);
    least_width_of(target, increments, least_width(increments), overflows, near)
}

/// A table as small as the exact rate allows, in counters of as many bits or more.
fn exact(target: Target, found: Shape, overflows: f64) -> Result<Shape, Infeasible> {
    let (fpr, keys) = (target.false_positives, target.keys as f64);
    let near = |cell: &Cell, near| exactly(fpr, cell, keys, near);
    least_width_of(target, found.increments, found.width, overflows, near)
}

/// The narrowest counters of `width` bits or more that overflow rarely enough.
fn least_width_of(
    target: Target,
    increments: Increments,
    width: u32,
    overflows: f64,
    size: impl Fn(&Cell, (u64, u32)) -> Option<(u64, u32)>,
) -> Result<Shape, Infeasible> {
    let (fpr, keys) = (target.false_positives, target.keys as f64);
    for width in width..=WIDTH_MAX {
        let cell = cell(table(1, 1, width, increments, Spread::Anywhere))?;
        let least = least_cells(fpr, &cell, keys).and_then(|near| size(&cell, near));
        let Some((counters, hashes)) = least else { continue };
        let above = counters as f64 * cell.overflow(counters as f64, hashes, keys);
        if above <= overflows {
            return Ok(table(counters, hashes, width, increments, Spread::Anywhere));
        }
    }
    Err(Infeasible::Memory { bytes: u64::MAX })
}

fn fewest_lines(target: Target) -> Result<Shape, Infeasible> {
    const WORTH: f64 = 1.12;
    let smallest = smallest(target)?;
    let bits = |shape: &Shape| shape.counters * u64::from(shape.width);
    let worth = bits(&smallest) as f64 * WORTH;
    let cell = cell(table(1, 1, WIDTH, IN_LINES, Spread::Anywhere))?;
    let mut best: Option<Shape> = None;
    for lines in 2..=3 {
        // As many hashes as are best anywhere, or one or two fewer.
        let most = smallest.hashes.div_ceil(lines);
        for each in most.saturating_sub(1).max(1)..=most {
            if lines * each > spread::MAX {
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
/// lines per key. A table with counters anywhere takes `bits` bits.
fn in_lines(target: Target, cell: &Cell, bits: u64, lines: u32, each: u32) -> Option<Shape> {
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
    let found = table(all * in_line, lines * each, WIDTH, IN_LINES, Spread::Lines(lines));
    let above = cell.overflow_in_lines(of(all), in_line as f64, each);
    (found.counters as f64 * above <= OVERFLOWS).then_some(found)
}

/// The false-positive rate of a table that holds `keys` keys. A counter that would exceed its ceiling
/// counts as pinned there.
///
/// ```
/// use sidon::{set::{Increments, Overflow, Spread, variable::Shape}, plan::variable};
///
/// // With one increment of 1 it is a counting filter: (1 - (1 - 1/10000)^7000)^7.
/// let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
/// let increments = Increments::of([1]);
/// let shape = Shape { counters: 10_000, hashes: 7, width: 8, increments, overflow, spread };
/// assert!((variable::rate(shape, 1_000)? - 0.008_195_702_596_8).abs() < 1e-12);
/// // Equation 4 of Rottenstreich et al. for increments from 4 to 7:
/// let shape = Shape { increments: Increments::of([4, 5, 6, 7]), ..shape };
/// assert!((variable::rate(shape, 1_000)? - 2.803_032_73e-5).abs() < 1e-12);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn rate(shape: Shape, keys: u64) -> Result<f64, Infeasible> {
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
///
/// ```
/// use sidon::{set::{Increments, Overflow, Spread, variable::Shape}, plan::variable};
///
/// // Four bits hold at most 15. Two increments from 4 to 7 never exceed that, three do in 44 of 64
/// // ways, four always. A counter gets a binomial number of increments, 0.1 on average.
/// let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
/// let increments = Increments::of([4, 5, 6, 7]);
/// let shape = Shape { counters: 1_000_000, hashes: 1, width: 4, increments, overflow, spread };
/// assert!((variable::overflow(shape, 100_000)? - 107.523_098).abs() < 1e-6);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn overflow(shape: Shape, keys: u64) -> Result<f64, Infeasible> {
    let Some(above) = 1u64.checked_shl(shape.width) else { return Ok(0.0) };
    Ok(shape.counters as f64 * at_least(shape, keys, above)?)
}

/// The chance that a given counter would be at `level` or above while `keys` keys are stored, if it
/// had no ceiling; levels of up to 2^16.
fn at_least(shape: Shape, keys: u64, level: u64) -> Result<f64, Infeasible> {
    shape.check()?;
    Infeasible::unless_within("level", level, shape.increments.most().into(), 1 << 16)?;
    // A counter that is pinned at `level`.
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

fn table(counters: u64, hashes: u32, width: u32, increments: Increments, spread: Spread) -> Shape {
    Shape { counters, hashes, width, increments, overflow: Overflow::Refuse, spread }
}

/// The bits of the largest increment.
fn least_width(increments: Increments) -> u32 {
    increments.most().ilog2() + 1
}

fn cell(shape: Shape) -> Result<Cell, Infeasible> {
    Ok(Cell::walk(&shape.code()?, 1 << shape.width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_winners_beat_the_papers_set_at_equal_memory() {
        const KEYS: u64 = 1_000_000;
        let rate = |set, width, bits: u64, hashes| {
            let counters = bits * KEYS / u64::from(width);
            let shape = table(counters, hashes, width, set, Spread::Anywhere);
            assert!(overflow(shape, KEYS).unwrap() <= OVERFLOWS, "{shape:?}");
            rate(shape, KEYS).unwrap()
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
                let target = Target::new(keys, false_positives);
                let planned = shape(target).unwrap();
                assert!(rate(planned, keys).unwrap() <= false_positives);
                assert!(overflow(planned, keys).unwrap() <= OVERFLOWS);
                for hashes in 1..=16 {
                    let smaller = Shape { counters: planned.counters - 1, hashes, ..planned };
                    let rate = |shape| rate(shape, keys).unwrap();
                    assert!(
                        smaller.counters == 0 || rate(smaller) > false_positives,
                        "{smaller:?}"
                    );
                }
                let lines = shape(Target { prefer: Prefer::Speed, ..target }).unwrap();
                assert!(rate(lines, keys).unwrap() <= false_positives, "{lines:?}");
            }
        }
    }
}
