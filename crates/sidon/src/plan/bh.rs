//! Pairs of counters: the smallest table, and how often a cell leaves its range.

use super::{
    OVERFLOWS, Target,
    increments::{Cell, Line, best_hashes, least_cells},
};
use crate::{
    Infeasible,
    member::{Decode, Increments, Overflow, Spread, bh},
    probe::LINE,
};

/// The best B_3 sequence of four increments up to 15; its mirror `{1, 3, 12, 15}` is as good.
pub const BH_SET: Increments = Increments::of([1, 4, 13, 15]);

/// The bits of the two counters of a cell, from few to many: of keys, and of sums.
const WIDTHS: [(u32, u32); 5] = [(4, 8), (5, 8), (5, 9), (6, 9), (6, 10)];

/// The smallest table of [`BH_SET`] that meets the target, its sums looked at whatever the number
/// of keys, and overflows as rarely as a counting filter.
pub fn bh(target: Target) -> Result<bh::Shape, Infeasible> {
    for widths in WIDTHS {
        let shape = least(target, BH_SET, Decode::Improved(15), widths)?;
        if shape.cells as f64 * bh_overflow(shape, target.keys)? <= OVERFLOWS {
            return Ok(shape);
        }
    }
    Err(Infeasible::Memory { bytes: u64::MAX })
}

/// The smallest table of these increments that meets the target, counters of four and eight bits.
pub fn bh_of(
    target: Target,
    increments: Increments,
    decode: Decode,
) -> Result<bh::Shape, Infeasible> {
    least(target, increments, decode, WIDTHS[0])
}

fn least(
    target: Target,
    increments: Increments,
    decode: Decode,
    (keys_bits, sum_bits): (u32, u32),
) -> Result<bh::Shape, Infeasible> {
    target.check()?;
    let (centred, overflow, spread) = (false, Overflow::Refuse, Spread::Anywhere);
    let shape = |cells, hashes| bh::Shape {
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
    let cell = cell(shape(1, 1), 0)?;
    let rate = |cells: u64, hashes| cell.rate(cells as f64, hashes, target.keys as f64);
    let least = least_cells(target.false_positives, rate);
    least.map(|(cells, hashes)| shape(cells, hashes)).ok_or(Infeasible::Memory { bytes: u64::MAX })
}

/// Equation 9: the false-positive rate of a table that holds `keys` keys. A cell that would leave
/// its range is taken for pinned, wherever on its way it would.
pub fn bh_rate(shape: bh::Shape, keys: u64) -> Result<f64, Infeasible> {
    let (cells, keys) = (shape.cells as f64, keys as f64);
    match shape.spread {
        Spread::Anywhere => Ok(cell(shape, 0)?.rate(cells, shape.hashes, keys)),
        Spread::Lines(lines) => {
            let each = shape.hashes / lines.max(1);
            let in_line = LINE as u64 * 8 / u64::from(shape.width());
            let line = Line::new(&cell(shape, each as usize)?, in_line, each);
            Ok(line.rate(cells / in_line as f64, lines, keys))
        }
    }
}

/// The share of cells that would have left their range with `keys` keys stored.
pub fn bh_overflow(shape: bh::Shape, keys: u64) -> Result<f64, Infeasible> {
    Ok(cell(shape, 0)?.overflow(shape.cells as f64, shape.hashes, keys as f64))
}

/// The integer number of hashes with the least rate for this many cells and keys.
pub fn bh_best_hashes(shape: bh::Shape, keys: u64) -> Result<u32, Infeasible> {
    let cell = cell(shape, 0)?;
    Ok(best_hashes(|hashes| cell.rate(shape.cells as f64, hashes, keys as f64)))
}

fn cell(shape: bh::Shape, powers: usize) -> Result<Cell, Infeasible> {
    let pins = bh::Shape { overflow: Overflow::Pin, ..shape };
    Ok(Cell::walk(&pins.code()?, 1 << shape.width().min(24), powers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_overflows_as_rarely_as_it_says_and_is_the_smallest_that_does() {
        for (keys, false_positives) in [(100, 1e-2), (50_000, 1.5e-3), (1_000_000, 1e-3)] {
            let target = Target { keys, false_positives };
            let shape = bh(target).unwrap();
            let overflows = shape.cells as f64 * bh_overflow(shape, keys).unwrap();
            assert!(overflows <= OVERFLOWS, "{overflows} of {shape:?}");
            assert!(bh_rate(shape, keys).unwrap() <= false_positives);
            // The paper's widths would be smaller, and overflow too often.
            let paper = bh_of(target, BH_SET, Decode::Improved(15)).unwrap();
            let more = paper.cells as f64 * bh_overflow(paper, keys).unwrap();
            assert_eq!(more > OVERFLOWS, paper.width() < shape.width(), "{more} of {paper:?}");
        }
    }
}
