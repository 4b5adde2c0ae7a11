//! Counting Bloom filters: the rate of a Bloom filter, and how high the counters go.
//!
//! A Poisson number of keys increments a counter, `kn/m` on average: `ln 2` at the best `k`. Four bits
//! then overflow in 6.8e-17 of the counters, so a table of a million counters does not overflow in 10^10
//! snapshots. Bonomi et al., ESA 2006, section 5.1; Rottenstreich et al., equation 8.

use super::{Prefer, Target, bloom, dleft::least_from, draws, lines::Lines, tail};
use crate::{
    Infeasible,
    key::spread,
    set::{LINES_MAX, Overflow, Spread, counting::Shape},
    simd::LINE,
};
use std::cell::RefCell;

/// The width that four papers of five take.
const WIDTH: u32 = 4;

/// The smallest table of 4-bit counters that meets the target.
///
/// With [`Prefer::Speed`], the table with the fewest cache lines per key, if it takes at most 8 % more
/// memory than the smallest.
///
/// ```
/// use sidon::{set::Spread, plan::{Prefer, Target, counting}};
///
/// // Table I of Rottenstreich et al.: 28,756 counters of four bits, 14.04 KiB.
/// let small = counting::shape(Target::new(2_000, 0.001))?;
/// assert_eq!((small.counters, small.hashes, small.spread), (28_756, 10, Spread::Anywhere));
/// let fast = counting::shape(Target { prefer: Prefer::Speed, ..Target::new(2_000_000, 0.001) })?;
/// assert_eq!(fast.spread, Spread::Lines(2));
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
    let (counters, hashes) = bloom::least_cells(target)?;
    let (width, overflow, spread) = (WIDTH, Overflow::Refuse, Spread::Anywhere);
    Ok(Shape { counters, hashes, width, overflow, spread })
}

/// Above this share of memory, fewer lines a key are not worth it.
const WORTH: f64 = 1.08;

fn fewest_lines(target: Target) -> Result<Shape, Infeasible> {
    let smallest = smallest(target)?;
    let worth = smallest.counters as f64 * WORTH;
    // Up to eight counters in each line; more are never better at these rates.
    let tables: Vec<_> = (1..=8).map(|each| Passes::new(WIDTH, each)).collect();
    // No mapping takes fewer counters than the one that puts them anywhere.
    let least = (smallest.counters / in_line(WIDTH)).max(1);
    let few = (2..=LINES_MAX).find_map(|lines| {
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
fn in_lines(target: Target, least: u64, lines: u32, passes: &Passes) -> Option<Shape> {
    const MOST: u64 = 1 << 48;
    let hashes = lines * passes.each;
    if hashes > spread::MAX {
        return None;
    }
    let of = |all| Lines { all, of_key: lines, keys: target.keys };
    let all = least_from(least, MOST, |all| passes.rate(of(all)) <= target.false_positives);
    let group = LINE as u64 * 8 / u64::from(WIDTH);
    (all < MOST).then_some(Shape {
        counters: all * group,
        hashes,
        width: WIDTH,
        overflow: Overflow::Refuse,
        spread: Spread::Lines(lines),
    })
}

/// The false-positive rate of a table that holds `keys` keys; 1 for a shape that cannot be built.
///
/// ```
/// use sidon::{set::{Overflow, Spread, counting::Shape}, plan::counting};
///
/// // Bonomi et al., ESA 2006, section 5.1: 13.5 counters per key and nine hashes.
/// let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
/// let shape = Shape { counters: 663_552, hashes: 9, width: 4, overflow, spread };
/// assert!((counting::rate(shape, 49_152) - 0.001_529_02).abs() < 1e-8);
/// ```
pub fn rate(shape: Shape, keys: u64) -> f64 {
    if shape.check().is_err() {
        return 1.0;
    }
    match shape.spread {
        Spread::Anywhere => bloom::rate_of(shape.counters as f64, shape.hashes, keys as f64),
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
    /// Indexed by how many times the line is drawn, and how many times members drew it. Computed on demand.
    known: RefCell<Vec<Vec<f64>>>,
}

impl Passes {
    /// For lines of counters of `width` bits, `each` of which a key draws.
    fn new(width: u32, each: u32) -> Self {
        let known = RefCell::new(vec![vec![]; LINES_MAX as usize]);
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

/// How many counters would be above their ceiling while `keys` keys are stored, on average. A small
/// number is about the chance that storing the keys overflows at all.
///
/// ```
/// use sidon::{set::{Overflow, Spread, counting::Shape}, plan::counting};
///
/// // A counter of two bits is above its ceiling of 3 if four keys or more hash to it: with a mean of
/// // 7 * 100,000 / 1,000,000, that is 1 - (1 + 0.7 + 0.7^2/2 + 0.7^3/6) e^-0.7.
/// let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
/// let shape = Shape { counters: 1_000_000, hashes: 7, width: 2, overflow, spread };
/// assert!((counting::overflow(shape, 100_000) - 5_753.457_592).abs() < 1e-2);
/// ```
pub fn overflow(shape: Shape, keys: u64) -> f64 {
    shape.counters as f64 * at_least(shape, keys, 1u64.checked_shl(shape.width).unwrap_or(u64::MAX))
}

/// The chance that a given counter is at `level` or above while `keys` keys are stored; 1 for a shape
/// that cannot be built.
fn at_least(shape: Shape, keys: u64, level: u64) -> f64 {
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

fn mean(shape: Shape, keys: u64) -> f64 {
    f64::from(shape.hashes) * keys as f64 / shape.counters as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    fn fast(keys: u64, false_positives: f64) -> Shape {
        shape(Target { prefer: Prefer::Speed, ..Target::new(keys, false_positives) }).unwrap()
    }

    #[test]
    fn few_lines_cost_a_few_per_cent() {
        for false_positives in [0.01, 0.001, 1e-4] {
            let smallest = shape(Target::new(1_000_000, false_positives)).unwrap();
            let few = fast(1_000_000, false_positives);
            let Spread::Lines(lines) = few.spread else { panic!("{few:?}") };
            assert!((2..=3).contains(&lines), "{few:?}");
            assert!(rate(few, 1_000_000) <= false_positives);
            let more = few.counters as f64 / smallest.counters as f64;
            assert!(more > 1.0 && more <= WORTH, "{more}");
        }
    }

    #[test]
    fn small_tables_in_lines_meet_their_target() {
        for keys in [1, 10, 100, 1000] {
            for false_positives in [0.3, 0.01, 1e-6] {
                let shape = fast(keys, false_positives);
                assert!(rate(shape, keys) <= false_positives, "{shape:?}");
            }
        }
    }

    #[test]
    fn counters_reach_the_levels_of_a_poisson_law() {
        // 002.cbf.counter16: a counter that 16 keys or more hash to, at the best number of hashes.
        let spread = Spread::Anywhere;
        let shape =
            Shape { counters: 1 << 20, hashes: 10, width: 4, overflow: Overflow::Refuse, spread };
        let keys = ((1u64 << 20) as f64 / 10.0 * std::f64::consts::LN_2) as u64;
        assert_close(at_least(shape, keys, 16), 7.0734e-17, 1e-3);
        assert_eq!(at_least(shape, keys, 0), 1.0);
        assert_eq!(overflow(shape, keys), (1u64 << 20) as f64 * at_least(shape, keys, 16));
    }
}
