//! Buckets: small runs of cells that are read together.
//!
//! The width and number of the cells select one of these layouts. Zero is the empty cell in all.
//!
//! - [`Lanes`]: 8-, 16- or 32-bit cells in 16, 32 or 64 bytes, compared in one or two vector operations.
//! - [`Split`]: 24-bit cells in 32 or 64 bytes, stored in two planes of 16 and of 8 bits.
//! - [`Eights`]: other widths up to 25 bits, eight cells compared at a time.
//! - [`Odd`]: other widths up to 32 bits, a 64-bit word of several cells compared at a time.
//! - [`Wide`]: widths up to 64 bits, compared cell by cell.

use crate::probe::{BASE, Eight, Isa, Lane};

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

/// Cells that are lanes of a vector: of type `L`, filling `N` bytes.
#[derive(Debug)]
pub(crate) struct Lanes<L, const N: usize>(std::marker::PhantomData<L>);

impl<L, const N: usize> Lanes<L, N> {
    pub(crate) const NEW: Self = Lanes(std::marker::PhantomData);
}

impl<L, const N: usize> Clone for Lanes<L, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L, const N: usize> Copy for Lanes<L, N> {}

impl<L: Lane, const N: usize> Layout for Lanes<L, N> {
    #[inline(always)]
    fn matches<I: Isa>(self, isa: I, bytes: &[u8], value: u64, ignored: u64) -> u64 {
        let (value, ignored) = (value as u32, ignored as u32);
        match bytes.first_chunk::<N>() {
            Some(bucket) => isa.matches_but(bucket, L::from_u32(value), L::from_u32(ignored)),
            None => unreachable!("every bucket is whole"),
        }
    }

    const SPAN: u32 = L::BYTES as u32;

    #[inline(always)]
    fn marks<I: Isa>(self, isa: I, bytes: &[u8], value: u64, set: u64) -> u64 {
        match bytes.first_chunk::<N>() {
            Some(bucket) => isa.marks(bucket, L::from_u32(value as u32), L::from_u32(set as u32)),
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
        let cell = cell as usize % (N / L::BYTES);
        L::read(&bytes[cell * L::BYTES..][..L::BYTES]).to_u32().into()
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8], cell: u32, value: u64) {
        let cell = cell as usize % (N / L::BYTES);
        L::from_u32(value as u32).write(&mut bytes[cell * L::BYTES..][..L::BYTES]);
    }

    #[inline(always)]
    fn clear_lowest(self, bytes: &mut [u8], _: u32) {
        let lowest = u64::MAX / (u64::MAX >> (64 - 8 * L::BYTES));
        for word in bytes[..N].as_chunks_mut::<8>().0 {
            *word = (u64::from_le_bytes(*word) & !lowest).to_le_bytes();
        }
    }
}

/// Cells of any width from 5 to 32 bits, without gaps. The number of cells times the width must be
/// a whole number of bytes, and eight more bytes must be readable after the last bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Odd {
    pub(crate) cells: u32,
    pub(crate) width: u32,
}

impl Odd {
    /// Cells compared at a time: as many as fit in a word that starts at any bit of a byte.
    #[inline(always)]
    fn group(self) -> u32 {
        57 / self.width
    }

    #[inline(always)]
    fn ceiling(self) -> u64 {
        u64::from(u32::MAX >> (32 - self.width))
    }
}

#[inline(always)]
fn word(bytes: &[u8], bit: u32) -> u64 {
    let at = (bit / 8) as usize;
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a slice of eight bytes")) >> (bit % 8)
}

impl Layout for Odd {
    #[inline(always)]
    fn matches<I: Isa>(self, _: I, bytes: &[u8], value: u64, ignored: u64) -> u64 {
        let group = self.group();
        // The lowest bit of each cell of a group, and the highest.
        let low = (0..group).fold(0u64, |low, i| low | 1 << (i * self.width));
        let high = low << (self.width - 1);
        let (value, blind) = (low * value, low * ignored);
        let lanes = low * self.ceiling();
        let mut mask = 0;
        for first in (0..self.cells).step_by(group as usize) {
            let differ = (word(bytes, first * self.width) ^ value) & lanes & !blind;
            // A carry reaches the highest bit of every cell in which some bit differs.
            let equal = !(((differ & !high) + (lanes & !high)) | differ) & high;
            for i in 0..group.min(self.cells - first) {
                mask |= (equal >> ((i + 1) * self.width - 1) & 1) << (first + i);
            }
        }
        mask
    }

    #[inline(always)]
    fn offset(self, bucket: usize) -> usize {
        bucket * (self.cells * self.width / 8) as usize
    }

    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u32) -> u64 {
        word(bytes, cell * self.width) & self.ceiling()
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8], cell: u32, value: u64) {
        let bit = cell * self.width;
        let (at, shift) = ((bit / 8) as usize, bit % 8);
        let old = word(bytes, bit / 8 * 8);
        let new = (old & !(self.ceiling() << shift)) | (value << shift);
        bytes[at..at + 8].copy_from_slice(&new.to_le_bytes());
    }
}

/// [`Odd`] for widths up to [`Eight::WIDTH_MOST`] and a multiple of eight cells, compared eight at
/// a time. Sixteen more bytes must be readable after the last bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Eights {
    odd: Odd,
    eight: Eight,
}

impl Eights {
    pub(crate) fn new(cells: u32, width: u32) -> Self {
        Eights { odd: Odd { cells, width }, eight: Eight::new(width) }
    }
}

impl Layout for Eights {
    #[inline(always)]
    fn matches<I: Isa>(self, isa: I, bytes: &[u8], value: u64, ignored: u64) -> u64 {
        self.marks(isa, bytes, value | ignored, ignored)
    }

    #[inline(always)]
    fn marks<I: Isa>(self, isa: I, bytes: &[u8], value: u64, set: u64) -> u64 {
        let mut marks = 0;
        for i in 0..self.odd.cells / 8 {
            let bytes = &bytes[(i * self.odd.width) as usize..];
            marks |= isa.eight(bytes, &self.eight, value as u32, set as u32) << (8 * i);
        }
        marks
    }

    #[inline(always)]
    fn offset(self, bucket: usize) -> usize {
        self.odd.offset(bucket)
    }

    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u32) -> u64 {
        self.odd.read(bytes, cell)
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8], cell: u32, value: u64) {
        self.odd.write(bytes, cell, value);
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
        let upper = isa.matches_but(bucket, (value >> 8) as u16, (ignored >> 8) as u16);
        let lower = isa.matches_but(lower, value as u8, ignored as u8);
        // The second half of the bucket starts before the plane of lower bytes.
        upper & (lower >> (2 * CELLS - HALF)) & const { (1 << CELLS) - 1 }
    }

    #[inline(always)]
    fn offset(self, bucket: usize) -> usize {
        bucket * N
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

/// Cells of any width up to 64 bits, without gaps. The number of cells times the width must be a
/// whole number of bytes, and sixteen more bytes must be readable after the last bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide {
    pub(crate) cells: u32,
    pub(crate) width: u32,
}

impl Wide {
    #[inline(always)]
    fn words(bytes: &[u8], at: usize) -> u128 {
        u128::from_le_bytes(bytes[at..at + 16].try_into().expect("a slice of sixteen bytes"))
    }

    #[inline(always)]
    fn ceiling(self) -> u64 {
        u64::MAX >> (64 - self.width)
    }
}

impl Layout for Wide {
    #[inline(always)]
    fn matches<I: Isa>(self, _: I, bytes: &[u8], value: u64, ignored: u64) -> u64 {
        let mut mask = 0;
        for cell in 0..self.cells {
            mask |= u64::from((self.read(bytes, cell) ^ value) & !ignored == 0) << cell;
        }
        mask
    }

    #[inline(always)]
    fn offset(self, bucket: usize) -> usize {
        bucket * (self.cells * self.width / 8) as usize
    }

    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u32) -> u64 {
        let bit = cell * self.width;
        (Self::words(bytes, (bit / 8) as usize) >> (bit % 8)) as u64 & self.ceiling()
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8], cell: u32, value: u64) {
        let bit = cell * self.width;
        let (at, shift) = ((bit / 8) as usize, bit % 8);
        let old = Self::words(bytes, at) & !(u128::from(self.ceiling()) << shift);
        let new = old | u128::from(value) << shift;
        bytes[at..at + 16].copy_from_slice(&new.to_le_bytes());
    }
}

/// Any of the layouts above, selected again at every call. For code outside hot loops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Any {
    pub(crate) cells: u32,
    pub(crate) width: u32,
}

/// Runs a body with the layout that the shape selects.
macro_rules! as_it_is {
    ($any:expr, |$layout:ident| $body:expr) => {
        match ($any.width, $any.cells) {
            (8, 16) => {
                let $layout = Lanes::<u8, 16>::NEW;
                $body
            }
            (8, 32) => {
                let $layout = Lanes::<u8, 32>::NEW;
                $body
            }
            (16, 8) => {
                let $layout = Lanes::<u16, 16>::NEW;
                $body
            }
            (16, 16) => {
                let $layout = Lanes::<u16, 32>::NEW;
                $body
            }
            (16, 32) => {
                let $layout = Lanes::<u16, 64>::NEW;
                $body
            }
            (24, 10) => {
                let $layout = Split::<10, 32, 16>;
                $body
            }
            (24, 21) => {
                let $layout = Split::<21, 64, 32>;
                $body
            }
            (32, 8) => {
                let $layout = Lanes::<u32, 32>::NEW;
                $body
            }
            (32, 16) => {
                let $layout = Lanes::<u32, 64>::NEW;
                $body
            }
            (33.., cells) => {
                let $layout = Wide { cells, width: $any.width };
                $body
            }
            (width, cells) => {
                let $layout = Odd { cells, width };
                $body
            }
        }
    };
}

impl Any {
    #[inline(never)]
    fn matching(self, bytes: &[u8], value: u64, ignored: u64) -> u64 {
        as_it_is!(self, |layout| layout.matches(BASE, bytes, value, ignored))
    }
}

impl Layout for Any {
    fn matches<I: Isa>(self, _: I, bytes: &[u8], value: u64, ignored: u64) -> u64 {
        self.matching(bytes, value, ignored)
    }

    #[inline(always)]
    fn offset(self, bucket: usize) -> usize {
        bucket * crate::left::bucket_bytes(self.cells, self.width) as usize
    }

    #[inline(never)]
    fn read(self, bytes: &[u8], cell: u32) -> u64 {
        as_it_is!(self, |layout| layout.read(bytes, cell))
    }

    #[inline(never)]
    fn write(self, bytes: &mut [u8], cell: u32, value: u64) {
        as_it_is!(self, |layout| layout.write(bytes, cell, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Portable;
    use sidon_kit::Rng;

    /// Compares random writes with a vector of integers, and matches with a loop over it.
    fn is_a_vector<L: Layout>(layout: L, cells: u32, width: u32) {
        let mut rng = Rng::seeded(u64::from(width));
        let ceiling = u64::MAX >> (64 - width);
        let len = crate::left::bucket_bytes(cells, width) as usize;
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
                if width <= Eight::WIDTH_MOST {
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
        is_a_vector(Lanes::<u8, 16>::NEW, 16, 8);
        is_a_vector(Lanes::<u8, 32>::NEW, 32, 8);
        is_a_vector(Lanes::<u16, 16>::NEW, 8, 16);
        is_a_vector(Lanes::<u16, 32>::NEW, 16, 16);
        is_a_vector(Lanes::<u16, 64>::NEW, 32, 16);
        is_a_vector(Lanes::<u32, 32>::NEW, 8, 32);
        is_a_vector(Lanes::<u32, 64>::NEW, 16, 32);
    }
}
