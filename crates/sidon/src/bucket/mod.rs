//! Buckets: small runs of cells that are read together.
//!
//! The width and number of the cells select one of these layouts. Zero is the empty cell in all.
//!
//! - [`Lanes`]: 8-, 16- or 32-bit cells in 16, 32 or 64 bytes, compared in one or two vector operations.
//! - [`Split`]: 24-bit cells in 32 or 64 bytes, stored in two planes of 16 and of 8 bits.
//! - [`Eights`]: other widths up to 25 bits, eight cells compared at a time.
//! - [`Odd`]: other widths up to 32 bits, a 64-bit word of several cells compared at a time.
//! - [`Wide`]: widths up to 64 bits, compared cell by cell.

mod any_width;

use crate::simd::{BASE, Isa};
pub(crate) use any_width::{Eights, Odd, Wide};

/// The positions of a bucket's cells in its bytes.
pub(crate) trait Layout: Copy {
    /// The cells of the bucket at `bytes[0]` that hold `value` outside the `ignored` bits, as a
    /// mask.
    fn matches<I: Isa>(self, isa: I, bytes: &[u8], value: u64, ignored: u64) -> u64;

    /// Bits per cell in [`marks`](Self::marks).
    const SPAN: u32 = 1;

    /// The cells that equal `value` after the bits of `set` are set in them, as a mask with
    /// [`SPAN`](Self::SPAN) bits per cell. Takes fewer steps than [`matches`](Self::matches).
    #[inline(always)]
    fn marks<I: Isa>(self, isa: I, bytes: &[u8], value: u64, set: u64) -> u64 {
        self.matches(isa, bytes, value, set)
    }

    /// The offset of a bucket in a table's bytes.
    fn offset(self, bucket: usize) -> usize;

    /// The bytes of a table starting at a bucket, or those of the bucket alone.
    #[inline(always)]
    fn bucket(self, table: &[u8], bucket: usize) -> &[u8] {
        &table[self.offset(bucket)..]
    }

    /// [`bucket`](Self::bucket), as mutable bytes.
    #[inline(always)]
    fn bucket_mut(self, table: &mut [u8], bucket: usize) -> &mut [u8] {
        &mut table[self.offset(bucket)..]
    }

    /// The value of a cell of the bucket at `bytes[0]`.
    fn read(self, bytes: &[u8], cell: u32) -> u64;

    /// Writes `value` to a cell of the bucket at `bytes[0]`.
    fn write(self, bytes: &mut [u8], cell: u32, value: u64);

    /// Clears the lowest bit of all `cells` cells of the bucket at `bytes[0]`.
    #[inline(always)]
    fn clear_lowest(self, bytes: &mut [u8], cells: u32) {
        for cell in 0..cells {
            let value = self.read(bytes, cell);
            self.write(bytes, cell, value & !1);
        }
    }
}

/// Cells that are lanes of a vector: of `BYTES` bytes each, filling `N` bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes<const BYTES: usize, const N: usize>;

impl<const BYTES: usize, const N: usize> Layout for Lanes<BYTES, N> {
    #[inline(always)]
    fn matches<I: Isa>(self, isa: I, bytes: &[u8], value: u64, ignored: u64) -> u64 {
        match bytes.first_chunk::<N>() {
            Some(bucket) => isa.matches::<BYTES, N>(bucket, value as u32, ignored as u32),
            None => unreachable!("every bucket is whole"),
        }
    }

    const SPAN: u32 = BYTES as u32;

    #[inline(always)]
    fn marks<I: Isa>(self, isa: I, bytes: &[u8], value: u64, set: u64) -> u64 {
        match bytes.first_chunk::<N>() {
            Some(bucket) => isa.marks::<BYTES, N>(bucket, value as u32, set as u32),
            None => unreachable!("every bucket is whole"),
        }
    }

    #[inline(always)]
    fn offset(self, bucket: usize) -> usize {
        bucket * N
    }

    // Indexing an array of buckets takes one bounds check; slicing bytes takes three.
    #[inline(always)]
    fn bucket(self, table: &[u8], bucket: usize) -> &[u8] {
        &table.as_chunks::<N>().0[bucket]
    }

    #[inline(always)]
    fn bucket_mut(self, table: &mut [u8], bucket: usize) -> &mut [u8] {
        &mut table.as_chunks_mut::<N>().0[bucket]
    }

    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u32) -> u64 {
        let cell = cell as usize % (N / BYTES);
        let mut word = [0; 4];
        word[..BYTES].copy_from_slice(&bytes[cell * BYTES..][..BYTES]);
        u32::from_le_bytes(word).into()
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8], cell: u32, value: u64) {
        let cell = cell as usize % (N / BYTES);
        bytes[cell * BYTES..][..BYTES].copy_from_slice(&(value as u32).to_le_bytes()[..BYTES]);
    }

    #[inline(always)]
    fn clear_lowest(self, bytes: &mut [u8], _: u32) {
        let lowest = u64::MAX / (u64::MAX >> (64 - 8 * BYTES));
        for word in bytes[..N].as_chunks_mut::<8>().0 {
            *word = (u64::from_le_bytes(*word) & !lowest).to_le_bytes();
        }
    }
}

/// `CELLS` cells of 24 bits in `N` bytes, `N = 2 * HALF`: the upper 16 bits of all cells, then the
/// lower eight of all, then unused bytes. A cache line has 21 cells, half a line 10.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Split<const CELLS: usize, const N: usize, const HALF: usize>;

impl<const CELLS: usize, const N: usize, const HALF: usize> Layout for Split<CELLS, N, HALF> {
    #[inline(always)]
    fn matches<I: Isa>(self, isa: I, bytes: &[u8], value: u64, ignored: u64) -> u64 {
        let Some(bucket) = bytes.first_chunk::<N>() else { unreachable!("every bucket is whole") };
        let Some(lower) = bucket.last_chunk::<HALF>() else { unreachable!("half a bucket") };
        let upper = isa.matches::<2, N>(bucket, (value >> 8) as u32, (ignored >> 8) as u32);
        let lower = isa.matches::<1, HALF>(lower, value as u32, ignored as u32);
        // The second half of the bucket starts before the plane of lower bytes.
        upper & (lower >> (2 * CELLS - HALF)) & const { (1 << CELLS) - 1 }
    }

    #[inline(always)]
    fn offset(self, bucket: usize) -> usize {
        bucket * N
    }

    #[inline(always)]
    fn bucket(self, table: &[u8], bucket: usize) -> &[u8] {
        &table.as_chunks::<N>().0[bucket]
    }

    #[inline(always)]
    fn bucket_mut(self, table: &mut [u8], bucket: usize) -> &mut [u8] {
        &mut table.as_chunks_mut::<N>().0[bucket]
    }

    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u32) -> u64 {
        let cell = cell as usize;
        let upper = u64::from(u16::from_le_bytes([bytes[2 * cell], bytes[2 * cell + 1]]));
        upper << 8 | u64::from(bytes[2 * CELLS + cell])
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8], cell: u32, value: u64) {
        let cell = cell as usize;
        bytes[2 * cell..][..2].copy_from_slice(&((value >> 8) as u16).to_le_bytes());
        bytes[2 * CELLS + cell] = value as u8;
    }

    #[inline(always)]
    fn clear_lowest(self, bytes: &mut [u8], _: u32) {
        for byte in &mut bytes[2 * CELLS..N] {
            *byte &= !1;
        }
    }
}

/// Any of the layouts above, selected again at every call. For code outside hot loops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Any {
    pub(crate) cells: u32,
    pub(crate) width: u32,
}

impl Any {
    #[inline(never)]
    fn matching(self, bytes: &[u8], value: u64, ignored: u64) -> u64 {
        with_layout!(self, |layout| layout.matches(BASE, bytes, value, ignored))
    }
}

impl Layout for Any {
    fn matches<I: Isa>(self, _: I, bytes: &[u8], value: u64, ignored: u64) -> u64 {
        self.matching(bytes, value, ignored)
    }

    #[inline(always)]
    fn marks<I: Isa>(self, _: I, bytes: &[u8], value: u64, set: u64) -> u64 {
        // Cells that equal `value` after `set` was set in them: none unless `value` has these bits.
        if value & set == set { self.matching(bytes, value, set) } else { 0 }
    }

    #[inline(always)]
    fn offset(self, bucket: usize) -> usize {
        bucket * bucket_bytes(self.cells, self.width) as usize
    }

    #[inline(never)]
    fn read(self, bytes: &[u8], cell: u32) -> u64 {
        with_layout!(self, |layout| layout.read(bytes, cell))
    }

    #[inline(never)]
    fn write(self, bytes: &mut [u8], cell: u32, value: u64) {
        with_layout!(self, |layout| layout.write(bytes, cell, value));
    }
}

/// The bytes of a bucket. 21 cells of 24 bits take a cache line of 64 bytes, 10 take 32 bytes.
pub(crate) fn bucket_bytes(cells: u32, width: u32) -> u64 {
    match (cells, width) {
        (21, 24) => 64,
        (10, 24) => 32,
        _ => u64::from(cells) * u64::from(width) / 8,
    }
}

/// The most buckets of a key, one in each subtable. As a constant `D`, it stands for any number.
pub(crate) const ANY: usize = 8;

/// Runs a body with the layout of a shape as a value of its own type, so that the body is compiled
/// for it. Each rule is a compromise between speed and the number of copies of the body:
///
/// - `with_layout!(shape, |layout| ..)`: eleven copies, for any width and number of cells.
/// - `with_layout!(shape, |layout, D| ..)`: 19 copies, for hot code that is compiled once. Buckets
///   are compared eight cells at a time where vectors have no lanes of the width, and the usual
///   numbers of subtables are constants.
/// - `with_layout!(shape, few |layout, D| ..)`: five copies, for hot code that is compiled for each
///   closure of a caller. Buckets of two subtables that fill a cache line, or half of one, have
///   copies of their own.
macro_rules! with_layout {
    ($shape:expr, |$layout:ident| $body:expr) => {{
        use $crate::bucket::{Lanes, Odd, Split, Wide};
        with_layout!(@match ($shape.width, $shape.cells), $layout, $body,
            (8, 16) => Lanes::<1, 16>,
            (8, 32) => Lanes::<1, 32>,
            (16, 8) => Lanes::<2, 16>,
            (16, 16) => Lanes::<2, 32>,
            (16, 32) => Lanes::<2, 64>,
            (24, 10) => Split::<10, 32, 16>,
            (24, 21) => Split::<21, 64, 32>,
            (32, 8) => Lanes::<4, 32>,
            (32, 16) => Lanes::<4, 64>,
            (33.., _) => Wide { cells: $shape.cells, width: $shape.width },
            _ => Odd { cells: $shape.cells, width: $shape.width },
        )
    }};
    ($shape:expr, few |$layout:ident, $D:ident| $body:expr) => {{
        use $crate::bucket::{ANY, Any, Lanes, Split};
        with_layout!(@match ($shape.subtables, $shape.width, $shape.cells), $layout, $D, $body,
            (2, 16, 32) => 2, Lanes::<2, 64>;
            (2, 24, 10) => 2, Split::<10, 32, 16>;
            (2, 24, 21) => 2, Split::<21, 64, 32>;
            (2, 32, 16) => 2, Lanes::<4, 64>;
            _ => ANY, Any { cells: $shape.cells, width: $shape.width };
        )
    }};
    ($shape:expr, |$layout:ident, $D:ident| $body:expr) => {{
        use $crate::{bucket::{ANY, Any, Eights, Lanes, Odd, Split}, simd::Eight};
        const EIGHTS: u32 = Eight::WIDTH_MAX;
        with_layout!(@match ($shape.subtables, $shape.width, $shape.cells), $layout, $D, $body,
            (2, 8, 16) => 2, Lanes::<1, 16>;
            (2, 8, 32) => 2, Lanes::<1, 32>;
            (2, 16, 8) => 2, Lanes::<2, 16>;
            (2, 16, 16) => 2, Lanes::<2, 32>;
            (2, 16, 32) => 2, Lanes::<2, 64>;
            (2, 24, 10) => 2, Split::<10, 32, 16>;
            (2, 24, 21) => 2, Split::<21, 64, 32>;
            (2, 32, 8) => 2, Lanes::<4, 32>;
            (2, 32, 16) => 2, Lanes::<4, 64>;
            (2, ..=EIGHTS, 8 | 16 | 32) => 2, Eights::new($shape.cells, $shape.width);
            (4, 16, 8) => 4, Lanes::<2, 16>;
            (4, 16, 16) => 4, Lanes::<2, 32>;
            (4, ..=EIGHTS, 8 | 16 | 32) => 4, Eights::new($shape.cells, $shape.width);
            (_, 16, 8) => ANY, Lanes::<2, 16>;
            (_, 16, 16) => ANY, Lanes::<2, 32>;
            (_, ..=EIGHTS, 8 | 16 | 32) => ANY, Eights::new($shape.cells, $shape.width);
            (_, 24, 10 | 21) | (_, 33.., _) => ANY, Any { cells: $shape.cells, width: $shape.width };
            _ => ANY, Odd { cells: $shape.cells, width: $shape.width };
        )
    }};
    (@match $of:expr, $layout:ident, $body:expr, $($shape:pat => $new:expr,)*) => {
        match $of {
            $($shape => {
                let $layout = $new;
                $body
            })*
        }
    };
    (@match $of:expr, $layout:ident, $D:ident, $body:expr, $($shape:pat => $subtables:expr, $new:expr;)*) => {
        match $of {
            $($shape => {
                const $D: usize = $subtables;
                let $layout = $new;
                $body
            })*
        }
    };
}
pub(crate) use with_layout;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Eight, Portable};
    use sidon_kit::Rng;

    /// Compares random writes with a vector of integers, and matches with a loop over it.
    fn is_a_vector<L: Layout>(layout: L, cells: u32, width: u32) {
        let mut rng = Rng::seeded(u64::from(width));
        let ceiling = u64::MAX >> (64 - width);
        let len = bucket_bytes(cells, width) as usize;
        // A bucket on each side of the one under test shows that writes stay inside it.
        let mut bytes = vec![0u8; 3 * len + 16];
        let mut values = vec![0u64; cells as usize];
        for _ in 0..2_000 {
            let cell = rng.below(cells.into()) as u32;
            let value = match rng.below(3) {
                0 => 0,
                1 => rng.below(4) & ceiling,
                _ => rng.next_u64() & ceiling,
            };
            layout.write(&mut bytes[len..], cell, value);
            values[cell as usize] = value;
            let bucket = &bytes[len..];
            assert!((0..cells).all(|cell| layout.read(bucket, cell) == values[cell as usize]));
            let wanted = values[rng.below(cells.into()) as usize];
            for (value, ignored) in [(0, 0), (wanted, 0), (wanted, 3), (1, 1), (ceiling, ceiling)] {
                let by_hand: u64 = (0..cells)
                    .map(|i| u64::from((values[i as usize] ^ value) & !ignored == 0) << i)
                    .sum();
                assert_eq!(layout.matches(Portable, bucket, value, ignored), by_hand);
                assert_eq!(layout.matches(BASE, bucket, value, ignored), by_hand);
                let marks = layout.marks(BASE, bucket, value | ignored, ignored);
                let span = |i| u64::MAX >> (64 - L::SPAN) << (i * L::SPAN);
                let spans = (0..cells).filter(|i| by_hand >> i & 1 == 1).map(span);
                assert_eq!(marks, spans.sum::<u64>());
            }
        }
        layout.clear_lowest(&mut bytes[len..], cells);
        let cleared = |cell: u32| values[cell as usize] & !1;
        assert!((0..cells).all(|cell| layout.read(&bytes[len..], cell) == cleared(cell)));
        assert!(bytes[..len].iter().all(|&byte| byte == 0));
        assert!(bytes[2 * len..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_bucket_is_a_vector_of_integers_in_every_layout() {
        for width in 5..=32 {
            for cells in [8, 16, 32] {
                is_a_vector(Odd { cells, width }, cells, width);
                if width <= Eight::WIDTH_MAX {
                    is_a_vector(Eights::new(cells, width), cells, width);
                }
            }
        }
        for width in [33, 40, 47, 56, 57, 63, 64] {
            is_a_vector(Wide { cells: 8, width }, 8, width);
        }
        for (width, cells) in
            [(16, 32), (16, 8), (24, 10), (24, 21), (24, 8), (32, 16), (8, 32), (50, 8)]
        {
            is_a_vector(Any { cells, width }, cells, width);
        }
        is_a_vector(Split::<10, 32, 16>, 10, 24);
        is_a_vector(Split::<21, 64, 32>, 21, 24);
        is_a_vector(Lanes::<1, 16>, 16, 8);
        is_a_vector(Lanes::<1, 32>, 32, 8);
        is_a_vector(Lanes::<2, 16>, 8, 16);
        is_a_vector(Lanes::<2, 32>, 16, 16);
        is_a_vector(Lanes::<2, 64>, 32, 16);
        is_a_vector(Lanes::<4, 32>, 8, 32);
        is_a_vector(Lanes::<4, 64>, 16, 32);
    }
}
