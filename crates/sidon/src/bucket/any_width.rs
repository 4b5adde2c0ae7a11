//! Buckets whose cells have any width and no gaps between them.
//!
//! A cell starts at any bit of a byte. It is read and written through a word of 64 or 128 bits that
//! starts at that byte, so some bytes after the last bucket must be readable.

use super::Layout;
use crate::simd::{Eight, Isa};

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

/// [`Odd`] for widths up to [`Eight::WIDTH_MAX`] and a multiple of eight cells, compared eight at
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
