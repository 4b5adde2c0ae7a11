//! Buckets: small runs of cells that are read together.
//!
//! A bucket of 8-, 16- or 32-bit cells in 16, 32 or 64 bytes is compared in one or two vector
//! operations ([`Lanes`]); a bucket of any other width lies without gaps and is compared a 64-bit
//! word of several cells at a time ([`Odd`]). Zero is the empty cell in both.

use crate::probe::{Isa, Lane};

/// How the cells of a bucket lie in its bytes.
pub(crate) trait Layout: Copy {
    /// Which cells of the bucket that starts at `bytes[0]` hold `value` outside the `ignored` bits.
    fn matches<I: Isa>(self, isa: I, bytes: &[u8], value: u32, ignored: u32) -> u64;

    /// The value of a cell of the bucket that starts at `bytes[0]`.
    fn read(self, bytes: &[u8], cell: u32) -> u32;

    /// Makes a cell of the bucket that starts at `bytes[0]` hold `value`.
    fn write(self, bytes: &mut [u8], cell: u32, value: u32);
}

/// Cells that are lanes of a vector: `L` wide, filling `N` bytes.
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
    fn matches<I: Isa>(self, isa: I, bytes: &[u8], value: u32, ignored: u32) -> u64 {
        match bytes.first_chunk::<N>() {
            Some(bucket) => isa.matches_but(bucket, L::from_u32(value), L::from_u32(ignored)),
            None => unreachable!("every bucket is whole"),
        }
    }

    #[inline(always)]
    fn read(self, bytes: &[u8], cell: u32) -> u32 {
        L::read(&bytes[cell as usize * L::BYTES..][..L::BYTES]).to_u32()
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8], cell: u32, value: u32) {
        L::from_u32(value).write(&mut bytes[cell as usize * L::BYTES..][..L::BYTES]);
    }
}

/// Cells of any width from 5 to 32 bits, without gaps. Their number times their width is a whole
/// number of bytes, and eight more bytes can be read after the last bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Odd {
    pub(crate) cells: u32,
    pub(crate) width: u32,
}

impl Odd {
    /// Cells compared at a time: as many as a word holds from any bit of a byte on.
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
    fn matches<I: Isa>(self, _: I, bytes: &[u8], value: u32, ignored: u32) -> u64 {
        let group = self.group();
        // The lowest bit of each cell of a group, and the highest.
        let low = (0..group).fold(0u64, |low, i| low | 1 << (i * self.width));
        let high = low << (self.width - 1);
        let (value, blind) = (low * u64::from(value), low * u64::from(ignored));
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
    fn read(self, bytes: &[u8], cell: u32) -> u32 {
        (word(bytes, cell * self.width) & self.ceiling()) as u32
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8], cell: u32, value: u32) {
        let bit = cell * self.width;
        let (at, shift) = ((bit / 8) as usize, bit % 8);
        let old = word(bytes, bit / 8 * 8);
        let new = (old & !(self.ceiling() << shift)) | (u64::from(value) << shift);
        bytes[at..at + 8].copy_from_slice(&new.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Portable;
    use sidon_kit::Rng;

    /// Random writes against a vector of integers, matches against a loop over it.
    fn is_a_vector<L: Layout>(layout: L, cells: u32, width: u32) {
        let mut rng = Rng::seeded(u64::from(width));
        let ceiling = u32::MAX >> (32 - width);
        let len = (cells * width / 8) as usize;
        // Two buckets beside the one under test, to see that writes stay inside.
        let mut bytes = vec![0u8; 3 * len + 8];
        let mut values = vec![0u32; cells as usize];
        for _ in 0..2_000 {
            let cell = rng.below(cells.into()) as u32;
            let value = match rng.below(3) {
                0 => 0,
                1 => rng.below(4) as u32 & ceiling,
                _ => rng.next_u64() as u32 & ceiling,
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
            }
        }
        assert!(bytes[..len].iter().all(|&byte| byte == 0));
        assert!(bytes[2 * len..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_bucket_is_a_vector_of_integers_in_every_layout() {
        for width in 5..=32 {
            for cells in [8, 16, 32] {
                is_a_vector(Odd { cells, width }, cells, width);
            }
        }
        is_a_vector(Lanes::<u8, 16>::NEW, 16, 8);
        is_a_vector(Lanes::<u8, 32>::NEW, 32, 8);
        is_a_vector(Lanes::<u16, 16>::NEW, 8, 16);
        is_a_vector(Lanes::<u16, 32>::NEW, 16, 16);
        is_a_vector(Lanes::<u16, 64>::NEW, 32, 16);
        is_a_vector(Lanes::<u32, 32>::NEW, 8, 32);
        is_a_vector(Lanes::<u32, 64>::NEW, 16, 32);
    }
}
