//! Counters of 8, 16, 32 or 64 bits, and the positions of those of a key.
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
    hash::spread,
    probe::{self, LINE},
};

/// The most rows of a sketch.
pub(crate) const ROWS_MOST: u32 = 16;
/// [`ROWS_MOST`] as the length of an array.
pub(super) const MOST: usize = ROWS_MOST as usize;

/// A counter in memory, little-endian.
pub(super) trait Cell {
    /// Its bytes.
    type Bytes: Copy;
    const BYTES: usize;
    /// The largest value. A counter at this value means it or more.
    const CEILING: u64;
    /// The counters of a table.
    fn cells(table: &[u8]) -> &[Self::Bytes];
    /// The counters of a table, mutable.
    fn cells_mut(table: &mut [u8]) -> &mut [Self::Bytes];
    fn get(cell: Self::Bytes) -> u64;
    /// The bytes of a value, which must not be above the ceiling.
    fn put(value: u64) -> Self::Bytes;
    /// Adds an amount. A counter at its ceiling stays there.
    fn raise(cell: &mut Self::Bytes, amount: u64);
}

macro_rules! cell {
    ($($int:ty),*) => {$(
        impl Cell for $int {
            type Bytes = [u8; size_of::<$int>()];
            const BYTES: usize = size_of::<$int>();
            const CEILING: u64 = <$int>::MAX as u64;

            #[inline(always)]
            fn cells(table: &[u8]) -> &[Self::Bytes] {
                table.as_chunks().0
            }

            #[inline(always)]
            fn cells_mut(table: &mut [u8]) -> &mut [Self::Bytes] {
                table.as_chunks_mut().0
            }

            #[inline(always)]
            fn get(cell: Self::Bytes) -> u64 {
                u64::from(<$int>::from_le_bytes(cell))
            }

            #[inline(always)]
            fn put(value: u64) -> Self::Bytes {
                (value as $int).to_le_bytes()
            }

            #[inline(always)]
            fn raise(cell: &mut Self::Bytes, amount: u64) {
                let amount = amount.min(Self::CEILING) as $int;
                *cell = <$int>::from_le_bytes(*cell).saturating_add(amount).to_le_bytes();
            }
        }
    )*};
}
cell!(u8, u16, u32, u64);

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
        Infeasible::unless_within("rows", shape.rows.into(), 1, ROWS_MOST.into())?;
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
    pub(super) fn places<C: Cell, const D: usize>(&self, digest: Digest, at: &mut Places<D>) {
        if self.segment == 0 {
            for (i, at) in at[..self.rows::<D>()].iter_mut().enumerate() {
                *at = spread::position_in_row(digest, i as u32, self.columns) as usize;
            }
            return;
        }
        let (line, mut word) = spread::split(digest, 0, self.lines);
        let mut cell = line as usize * (LINE / C::BYTES);
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
    pub(super) fn prefetch<C: Cell, const D: usize>(&self, table: &[u8], digest: Digest) {
        let mut at = [0; D];
        self.places::<C, D>(digest, &mut at);
        let lines = if self.segment == 0 { self.rows::<D>() } else { 1 };
        for &at in &at[..lines] {
            probe::prefetch(table, at * C::BYTES);
        }
    }

    /// The segment of row 0 in the line of a place.
    #[inline(always)]
    pub(super) fn segment<C: Cell>(&self, place: usize) -> std::ops::Range<usize> {
        let start = place / (LINE / C::BYTES) * (LINE / C::BYTES);
        start..start + self.segment as usize
    }
}

/// An operation that is compiled for each width, and for four rows separately.
pub(super) trait Job {
    type Output;
    fn run<C: Cell, const D: usize>(self) -> Self::Output;
}

/// Runs the job for the shape.
#[inline(always)]
pub(super) fn by_shape<J: Job>(shape: Shape, job: J) -> J::Output {
    match (shape.width, shape.rows) {
        (8, 4) => job.run::<u8, 4>(),
        (8, _) => job.run::<u8, MOST>(),
        (16, 4) => job.run::<u16, 4>(),
        (16, _) => job.run::<u16, MOST>(),
        (32, 4) => job.run::<u32, 4>(),
        (32, _) => job.run::<u32, MOST>(),
        (_, 4) => job.run::<u64, 4>(),
        _ => job.run::<u64, MOST>(),
    }
}
