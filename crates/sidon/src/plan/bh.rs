//! Pairs of counters: the smallest table, and how often a cell leaves its range.

use super::{
    OVERFLOWS, Target,
    increments::{Cell, Line, best_hashes, exactly, least_cells},
    lines::Lines,
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
    let (fpr, cell, keys) = (target.false_positives, cell(shape(1, 1))?, target.keys as f64);
    let least = least_cells(fpr, &cell, keys).and_then(|near| exactly(fpr, &cell, keys, near));
    least.map(|(cells, hashes)| shape(cells, hashes)).ok_or(Infeasible::Memory { bytes: u64::MAX })
}

/// The false-positive rate of a table that holds `keys` keys: equation 9, unless the table is small.
/// A cell that would leave its range is taken for pinned, wherever on its way it would.
pub fn bh_rate(shape: bh::Shape, keys: u64) -> Result<f64, Infeasible> {
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
pub fn bh_overflow(shape: bh::Shape, keys: u64) -> Result<f64, Infeasible> {
    shape.check()?;
    // A cell of all ones is in its range, unlike one that a pin made so.
    let pins = bh::Shape { overflow: Overflow::Pin, ..shape };
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

/// The integer number of hashes with the least rate for this many cells and keys.
pub fn bh_best_hashes(shape: bh::Shape, keys: u64) -> Result<u32, Infeasible> {
    let cell = cell(shape)?;
    Ok(best_hashes(|hashes| cell.equation(shape.cells as f64, hashes, keys as f64)))
}

fn cell(shape: bh::Shape) -> Result<Cell, Infeasible> {
    Ok(Cell::walk(&shape.code()?, 1 << shape.width()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

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

    #[test]
    fn a_cell_of_all_ones_is_in_its_range() {
        // Both values were computed independently.
        for (increments, cells, hashes, sum_bits, expected) in [
            (Increments::of([1, 4, 8, 13]), 4000, 6, 6, 2.905_398_743_914_692e-4),
            (Increments::of([1, 2, 5, 14]), 2500, 4, 5, 0.028_991_700_558_799_013),
        ] {
            for overflow in [Overflow::Refuse, Overflow::Pin] {
                let shape = bh::Shape {
                    cells,
                    hashes,
                    keys_bits: 3,
                    sum_bits,
                    increments,
                    decode: Decode::Improved(7),
                    centred: false,
                    overflow,
                    spread: Spread::Anywhere,
                };
                assert_close(bh_overflow(shape, 1000).unwrap(), expected, 1e-12);
            }
        }
    }
}
