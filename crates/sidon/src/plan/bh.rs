//! Pairs of counters: the smallest table, and how often a cell leaves its range.

use super::{
    Target,
    increments::{Cell, Line, exactly, least_cells},
    lines::Lines,
    variable::OVERFLOWS,
};
use crate::{
    Infeasible,
    set::{Decode, Increments, Overflow, Spread, bh::Shape},
    simd::LINE,
};

/// The best B_3 sequence of four increments up to 15; its mirror `{1, 3, 12, 15}` is as good.
const SET: Increments = Increments::of([1, 4, 13, 15]);

/// The bits of the two counters of a cell, from few to many: of keys, and of sums.
const WIDTHS: [(u32, u32); 5] = [(4, 8), (5, 8), (5, 9), (6, 9), (6, 10)];

/// The smallest table of the increments 1, 4, 13 and 15 that meets the target and overflows as rarely
/// as a counting filter. It decodes cells of any number of keys.
///
/// ```
/// use sidon::{set::bh::Shape, plan::{Target, bh}};
///
/// let shape = bh::shape(Target::new(50_000, 0.001))?;
/// let less = Shape { cells: shape.cells - 1, ..shape };
/// assert!(bh::rate(shape, 50_000)? <= 0.001 && bh::rate(less, 50_000)? > 0.001);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn shape(target: Target) -> Result<Shape, Infeasible> {
    target.check_fixed()?;
    for widths in WIDTHS {
        let shape = least(target, SET, Decode::Improved(15), widths)?;
        if shape.cells as f64 * overflow(shape, target.keys)? <= OVERFLOWS {
            return Ok(shape);
        }
    }
    Err(Infeasible::Memory { bytes: u64::MAX })
}

fn least(
    target: Target,
    increments: Increments,
    decode: Decode,
    (keys_bits, sum_bits): (u32, u32),
) -> Result<Shape, Infeasible> {
    target.check()?;
    let (centred, overflow, spread) = (false, Overflow::Refuse, Spread::Anywhere);
    let shape = |cells, hashes| Shape {
        cells,
        hashes,
        keys_bits,
        sum_bits,
        increments,
        decode,
        centred,
        overflow,
        spread,
    };
    let (fpr, cell, keys) = (target.false_positives, cell(shape(1, 1))?, target.keys as f64);
    let least = least_cells(fpr, &cell, keys).and_then(|near| exactly(fpr, &cell, keys, near));
    least.map(|(cells, hashes)| shape(cells, hashes)).ok_or(Infeasible::Memory { bytes: u64::MAX })
}

/// The false-positive rate of a table that holds `keys` keys: equation 9 of Rottenstreich et al.,
/// unless the table is small. A cell that would leave its range counts as pinned.
///
/// ```
/// use sidon::{set::{Decode, Increments, Overflow, Spread, bh::Shape}, plan::bh};
///
/// // Figure 5 of the paper, 30 bits per key.
/// let shape = Shape {
///     cells: 2_560,
///     hashes: 5,
///     keys_bits: 4,
///     sum_bits: 8,
///     increments: Increments::of([1, 4, 13, 15]),
///     decode: Decode::Improved(15),
///     centred: false,
///     overflow: Overflow::Refuse,
///     spread: Spread::Anywhere,
/// };
/// assert!((bh::rate(shape, 1_024)? - 0.009_763_344_4).abs() < 1e-9);
/// // Basic decoding reads only cells of up to three keys: equation 1.
/// assert!((bh::rate(Shape { decode: Decode::Basic, ..shape }, 1_024)? - 0.015_272_219_0).abs() < 1e-9);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn rate(shape: Shape, keys: u64) -> Result<f64, Infeasible> {
    shape.check()?;
    let cell = cell(shape)?;
    match shape.spread {
        Spread::Anywhere => Ok(cell.rate(shape.cells as f64, shape.hashes, keys as f64)),
        Spread::Lines(of_key) => {
            let in_line = LINE as u64 * 8 / u64::from(shape.width());
            let line = Line::new(&cell, shape.hashes / of_key, of_key);
            Ok(line.rate(Lines { all: shape.cells / in_line, of_key, keys }, in_line as f64))
        }
    }
}

/// The share of cells that would have left their range with `keys` keys stored.
///
/// ```
/// use sidon::{set::{Decode, Increments, Overflow, Spread, bh::Shape}, plan::bh};
///
/// // Computed independently, by exact enumeration.
/// let shape = Shape {
///     cells: 4_000,
///     hashes: 6,
///     keys_bits: 3,
///     sum_bits: 6,
///     increments: Increments::of([1, 4, 8, 13]),
///     decode: Decode::Improved(7),
///     centred: false,
///     overflow: Overflow::Refuse,
///     spread: Spread::Anywhere,
/// };
/// assert!((bh::overflow(shape, 1_000)? - 2.905_398_743_9e-4).abs() < 1e-12);
/// # Ok::<(), sidon::Infeasible>(())
/// ```
pub fn overflow(shape: Shape, keys: u64) -> Result<f64, Infeasible> {
    shape.check()?;
    // A cell of all ones is in its range, unlike one that a pin made so.
    let pins = Shape { overflow: Overflow::Pin, ..shape };
    let cell = Cell::walk(&pins.code()?.without_pins(), 1 << shape.width());
    match shape.spread {
        Spread::Anywhere => Ok(cell.overflow(shape.cells as f64, shape.hashes, keys as f64)),
        Spread::Lines(of_key) => {
            let in_line = LINE as u64 * 8 / u64::from(shape.width());
            let lines = Lines { all: shape.cells / in_line, of_key, keys };
            Ok(cell.overflow_in_lines(lines, in_line as f64, shape.hashes / of_key))
        }
    }
}

fn cell(shape: Shape) -> Result<Cell, Infeasible> {
    Ok(Cell::walk(&shape.code()?, 1 << shape.width()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn a_plan_overflows_as_rarely_as_it_says_and_is_the_smallest_that_does() {
        for (keys, false_positives) in [(100, 1e-2), (50_000, 1.5e-3), (1_000_000, 1e-3)] {
            let target = Target::new(keys, false_positives);
            let shape = shape(target).unwrap();
            let overflows = shape.cells as f64 * overflow(shape, keys).unwrap();
            assert!(overflows <= OVERFLOWS, "{overflows} of {shape:?}");
            assert!(rate(shape, keys).unwrap() <= false_positives);
            // The paper's widths would be smaller, and overflow too often.
            let paper = least(target, SET, Decode::Improved(15), WIDTHS[0]).unwrap();
            let more = paper.cells as f64 * overflow(paper, keys).unwrap();
            assert_eq!(more > OVERFLOWS, paper.width() < shape.width(), "{more} of {paper:?}");
        }
    }

    #[test]
    fn a_cell_of_all_ones_is_in_its_range() {
        // Both values were computed independently.
        for (increments, cells, hashes, sum_bits, expected) in [
            (Increments::of([1, 4, 8, 13]), 4000, 6, 6, 2.905_398_743_914_692e-4),
            (Increments::of([1, 2, 5, 14]), 2500, 4, 5, 0.028_991_700_558_799_013),
        ] {
            for how in [Overflow::Refuse, Overflow::Pin] {
                let shape = Shape {
                    cells,
                    hashes,
                    keys_bits: 3,
                    sum_bits,
                    increments,
                    decode: Decode::Improved(7),
                    centred: false,
                    overflow: how,
                    spread: Spread::Anywhere,
                };
                assert_close(overflow(shape, 1000).unwrap(), expected, 1e-12);
            }
        }
    }
}
