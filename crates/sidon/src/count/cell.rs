//! Counters of 1, 2, 4 or 8 bytes, little-endian, and the positions of those of a key.
//!
//! ```text
//! Rows   | row 0: . . x . . . | row 1: x . . . . . | row 2: . . . . x . |      one line per row
//! Line   | . . . . | . . . . | x . / . x / . x | . . . . |                     one line
//! ```
//! In rows, counter `i` of a key is anywhere in row `i`. In a line, the digest selects a line of 64
//! bytes. Each row has its own segment of every line, and counter `i` is in the segment of row `i`.

use super::min::{Layout, Shape};
use crate::{
    Digest, Infeasible,
    key::spread,
    simd::{self, LINE},
};

/// The most rows of a sketch.
pub(crate) const ROWS_MAX: u32 = 16;
/// [`ROWS_MAX`] as the length of an array.
pub(super) const MOST: usize = ROWS_MAX as usize;

/// The counters of a table, of `B` bytes each.
#[inline(always)]
pub(super) fn cells<const B: usize>(table: &[u8]) -> &[[u8; B]] {
    table.as_chunks().0
}

/// The counters of a table, mutable.
#[inline(always)]
pub(super) fn cells_mut<const B: usize>(table: &mut [u8]) -> &mut [[u8; B]] {
    table.as_chunks_mut().0
}

/// The largest value of a counter. A counter at this value means it or more.
pub(super) const fn ceiling<const B: usize>() -> u64 {
    u64::MAX >> (64 - 8 * B)
}

/// The value of a counter.
#[inline(always)]
pub(super) fn get<const B: usize>(cell: [u8; B]) -> u64 {
    let mut word = [0; 8];
    word[..B].copy_from_slice(&cell);
    u64::from_le_bytes(word)
}

/// The bytes of a value, which must not be above the ceiling.
#[inline(always)]
pub(super) fn put<const B: usize>(value: u64) -> [u8; B] {
    let mut cell = [0; B];
    cell.copy_from_slice(&value.to_le_bytes()[..B]);
    cell
}

/// Adds an amount. A counter at its ceiling stays there.
#[inline(always)]
pub(super) fn raise<const B: usize>(cell: &mut [u8; B], amount: u64) {
    let (value, amount) = (get(*cell), amount.min(ceiling::<B>()));
    // Sums of the counter's own width need no comparison with the ceiling.
    *cell = put(match B {
        1 => (value as u8).saturating_add(amount as u8).into(),
        2 => (value as u16).saturating_add(amount as u16).into(),
        4 => (value as u32).saturating_add(amount as u32).into(),
        _ => value.saturating_add(amount),
    });
}

/// The mapping from a digest to the positions of its counters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mapping {
    rows: u32,
    columns: u64,
    /// Lines of the table, and cells of a row in each. Both are zero with [`Layout::Rows`].
    lines: u64,
    pub(super) segment: u64,
}

/// The positions of a key's counters. Those beyond the number of rows are unused.
pub(super) type Places<const D: usize> = [usize; D];

impl Mapping {
    /// The mapping of a shape, and the bytes of its table.
    pub(super) fn new(shape: Shape) -> Result<(Self, u64), Infeasible> {
        if !matches!(shape.width, 8 | 16 | 32 | 64) {
            let (name, got, allowed) = ("width", shape.width.into(), "8, 16, 32 or 64");
            let near = shape.width.clamp(8, 64).next_power_of_two().into();
            return Err(Infeasible::NotOneOf { name, got, allowed, near });
        }
        Infeasible::unless_within("rows", shape.rows.into(), 1, ROWS_MAX.into())?;
        Infeasible::unless_within("columns", shape.columns, 1, 1 << 48)?;
        let (rows, columns) = (shape.rows, shape.columns);
        let cell = u64::from(shape.width / 8);
        if shape.layout == Layout::Rows {
            // At most 2^48 * 2^4 * 2^3 bytes.
            let bytes = columns * u64::from(rows) * cell;
            return Ok((Mapping { rows, columns, lines: 0, segment: 0 }, bytes));
        }
        let cells = LINE as u64 / cell;
        Infeasible::unless_within("rows", rows.into(), 1, cells)?;
        let segment = cells / u64::from(rows);
        Infeasible::unless_multiple("columns", columns, segment)?;
        let lines = columns / segment;
        Ok((Mapping { rows, columns, lines, segment }, lines * LINE as u64))
    }

    /// The positions of a digest: `D` of them, or one per row if `D` is [`MOST`].
    #[inline(always)]
    pub(super) fn places<const B: usize, const D: usize>(
        &self,
        digest: Digest,
        at: &mut Places<D>,
    ) {
        if self.segment == 0 {
            for (i, at) in at[..self.rows::<D>()].iter_mut().enumerate() {
                *at = spread::position_in_row(digest, i as u32, self.columns) as usize;
            }
            return;
        }
        let (line, mut word) = spread::split(digest, 0, self.lines);
        let mut cell = line as usize * (LINE / B);
        for at in &mut at[..self.rows::<D>()] {
            // The whole part selects a cell of the segment, and the fraction selects the next. All
            // rows use at most 32 bits, and with up to 2^32 lines as many bits are uniform.
            let product = u128::from(word) * u128::from(self.segment);
            *at = cell + (product >> 64) as usize;
            word = product as u64;
            cell += self.segment as usize;
        }
    }

    /// The number of rows: `D`, unless `D` is [`MOST`].
    #[inline(always)]
    pub(super) fn rows<const D: usize>(&self) -> usize {
        if D == MOST { self.rows as usize } else { D }
    }

    /// Prefetches the lines of a key.
    #[inline(always)]
    pub(super) fn prefetch<const B: usize, const D: usize>(&self, table: &[u8], digest: Digest) {
        let mut at = [0; D];
        self.places::<B, D>(digest, &mut at);
        let lines = if self.segment == 0 { self.rows::<D>() } else { 1 };
        for &at in &at[..lines] {
            simd::prefetch(table, at * B);
        }
    }

    /// The segment of row 0 in the line of a place.
    #[inline(always)]
    pub(super) fn segment<const B: usize>(&self, place: usize) -> std::ops::Range<usize> {
        let start = place / (LINE / B) * (LINE / B);
        start..start + self.segment as usize
    }
}

/// An operation that is compiled for each width, and for four rows separately.
pub(super) trait Job {
    type Output;
    fn run<const B: usize, const D: usize>(self) -> Self::Output;
}

/// Runs the job for the shape.
#[inline(always)]
pub(super) fn by_shape<J: Job>(shape: Shape, job: J) -> J::Output {
    match (shape.width, shape.rows) {
        (8, 4) => job.run::<1, 4>(),
        (8, _) => job.run::<1, MOST>(),
        (16, 4) => job.run::<2, 4>(),
        (16, _) => job.run::<2, MOST>(),
        (32, 4) => job.run::<4, 4>(),
        (32, _) => job.run::<4, MOST>(),
        (_, 4) => job.run::<8, 4>(),
        _ => job.run::<8, MOST>(),
    }
}
