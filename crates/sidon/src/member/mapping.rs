//! From a digest to the `k` cells of a key: anywhere in the table, or in a few cache lines of it.
//!
//! ```text
//! Anywhere      | . . x . . . | . . . . . . | x . . . x . | . . . x . . |   k lines a key
//! Lines(2)      | . . . . . . | x . x . . . | . . . . . . | . x . . . x |   2 lines a key
//! ```
//! A table larger than the cache costs a memory access for each line that a key touches, and
//! nearly nothing for further cells of the same line. Some lines get more keys than others, which
//! costs false positives; with two or three lines a key the price is a few per cent of memory,
//! with one line it is a third at a rate of 0.1 %.

use crate::{Digest, Infeasible, hash::spread, probe::LINE};

/// Where the cells of a key lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// Anywhere in the table, each on its own: the classic mapping, and the fewest cells.
    #[default]
    Anywhere,
    /// In this many cache lines, the same number of cells in each; 1 to 8. The width of a cell
    /// must then be a power of two, and the table is a whole number of lines.
    Lines(u32),
}

/// The most lines a key is spread over.
pub const LINES_MOST: u32 = 8;
/// Bits that pick a cell of a line, and how many such fields a word is good for.
const FIELD_BITS: u32 = 10;
const FIELDS: u32 = 4;

/// A mapping from digests to cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mapping {
    hashes: u32,
    /// Cells of a key that lie together; one if they lie anywhere.
    each: u32,
    /// Cells of a line; one if they lie anywhere.
    group: u64,
    /// Lines of the table, or cells if they lie anywhere.
    groups: u64,
}

impl Mapping {
    /// The mapping onto a table of `cells` cells of `width` bits.
    pub(super) fn new(
        cells: u64,
        width: u32,
        hashes: u32,
        spread: Spread,
    ) -> Result<Self, Infeasible> {
        Infeasible::unless_within("hashes", hashes.into(), 1, spread::MOST.into())?;
        Infeasible::unless_within("cells", cells, 1, u64::MAX)?;
        let Spread::Lines(lines) = spread else {
            return Ok(Mapping { hashes, each: 1, group: 1, groups: cells });
        };
        Infeasible::unless_within("lines", lines.into(), 1, LINES_MOST.min(hashes).into())?;
        Infeasible::unless_within("hashes beyond whole lines", (hashes % lines).into(), 0, 0)?;
        let group = LINE as u64 * 8 / u64::from(width.max(1));
        Infeasible::unless_within("bits beyond whole cells", 512 % u64::from(width.max(1)), 0, 0)?;
        Infeasible::unless_within("cells beyond whole lines", cells % group, 0, 0)?;
        Ok(Mapping { hashes, each: hashes / lines, group, groups: cells / group })
    }

    pub(super) fn hashes(self) -> u32 {
        self.hashes
    }

    /// Cells that a batch looks at before it asks for the others. Of a half-full table three cells
    /// tell seven strangers of eight apart, and a line is read as a whole anyway.
    #[inline(always)]
    pub(super) fn first(self) -> u32 {
        if self.each > 1 { self.each } else { self.hashes.min(3) }
    }

    /// How many cells follow each other on one line.
    #[inline(always)]
    pub(super) fn together(self) -> u32 {
        self.each
    }

    /// Writes the cells `from..to` of the digest to the same places of `cells`; some may be equal.
    /// Both are multiples of [`together`](Self::together).
    #[inline(always)]
    pub(super) fn positions(self, digest: Digest, from: u32, to: u32, cells: &mut [u64]) {
        if self.each == 1 && self.group == 1 {
            for i in from..to {
                cells[i as usize] = spread::position(digest, i, self.groups);
            }
            return;
        }
        let mut i = from;
        while i < to {
            // The whole part is the line, and the fraction is left to pick the cells in it.
            let (line, mut rest) = spread::split(digest, i / self.each, self.groups);
            let first = line * self.group;
            for j in 0..self.each {
                if j != 0 && j % FIELDS == 0 {
                    rest = spread::again(rest);
                }
                let field = (rest >> (64 - FIELD_BITS - FIELD_BITS * (j % FIELDS)))
                    & ((1 << FIELD_BITS) - 1);
                cells[(i + j) as usize] = first + ((field * self.group) >> FIELD_BITS);
            }
            i += self.each;
        }
    }
}
