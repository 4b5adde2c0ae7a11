//! The definition of every operation, in plain Rust.

use super::{Eight, Isa, LINE, Sieve, aes};

/// Plain Rust, for any processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

impl Isa for Portable {
    type Block = [u64; 2];

    #[inline(always)]
    fn block(self, halves: [u64; 2]) -> [u64; 2] {
        halves
    }

    #[inline(always)]
    fn low_half(self, block: [u64; 2]) -> u64 {
        block[0]
    }

    #[inline(always)]
    fn xor(self, one: [u64; 2], other: [u64; 2]) -> [u64; 2] {
        [one[0] ^ other[0], one[1] ^ other[1]]
    }

    #[inline(always)]
    fn add(self, one: [u64; 2], other: [u64; 2]) -> [u64; 2] {
        [one[0].wrapping_add(other[0]), one[1].wrapping_add(other[1])]
    }

    #[inline(always)]
    fn aes_round(self, block: [u64; 2], key: [u64; 2]) -> [u64; 2] {
        aes::round(block, key)
    }

    #[inline(always)]
    fn matches<const BYTES: usize, const N: usize>(
        self,
        bucket: &[u8; N],
        value: u32,
        ignored: u32,
    ) -> u64 {
        const { assert!(N == 16 || N == 32 || N == 64, "a bucket has 16, 32 or 64 bytes") };
        let mut mask = 0;
        for (i, lane) in bucket.as_chunks::<BYTES>().0.iter().enumerate() {
            mask |= u64::from(differ(*lane, value) & !ignored == 0) << i;
        }
        mask
    }

    #[inline(always)]
    fn marks<const BYTES: usize, const N: usize>(
        self,
        bucket: &[u8; N],
        value: u32,
        set: u32,
    ) -> u64 {
        const { assert!(N == 16 || N == 32 || N == 64, "a bucket has 16, 32 or 64 bytes") };
        let lane_bits = u64::MAX >> (64 - BYTES);
        let mut marks = 0;
        for (i, lane) in bucket.as_chunks::<BYTES>().0.iter().enumerate() {
            // Bits of `set` are compared with one.
            let differ = (differ(*lane, value) & !set) | differ([0xff; BYTES], value) & set;
            marks |= (lane_bits * u64::from(differ == 0)) << (i * BYTES);
        }
        marks
    }

    #[inline(always)]
    fn any_nibble_zero(self, line: &[u8; LINE], word: u64, cells: u32) -> bool {
        debug_assert!(cells <= super::NIBBLES_MAX, "the word names no more cells");
        let (mut rest, mut zero) = (word, false);
        for _ in 0..cells {
            let cell = (rest >> 57) as usize;
            zero |= (line[cell / 2] >> (cell % 2 * 4)) & 15 == 0;
            rest <<= 7;
        }
        zero
    }

    #[inline(always)]
    fn nibble_ones(self, word: u64, cells: u32) -> [u64; LINE / 8] {
        debug_assert!(cells <= super::NIBBLES_MAX, "the word names no more cells");
        let (mut rest, mut ones) = (word, [0; LINE / 8]);
        for _ in 0..cells {
            let cell = rest >> 57;
            ones[(cell / 16) as usize] |= 1 << (cell % 16 * 4);
            rest <<= 7;
        }
        ones
    }

    #[inline(always)]
    fn all_admitted(self, line: &[u8; LINE], word: u64, sieve: &Sieve) -> bool {
        let mut excluded = 0;
        for factor in &sieve.factors[..sieve.cells as usize] {
            let named = word.wrapping_mul(*factor);
            let value = u32::from(line[(named >> 58) as usize]);
            let index = value + sieve.marks[(named >> 55) as usize % 8];
            excluded |= sieve.excluded >> index.min(31);
        }
        excluded & 1 == 0
    }

    #[inline(always)]
    fn eight(self, bytes: &[u8], eight: &Eight, value: u32, set: u32) -> u64 {
        let mut mask = 0;
        for i in 0..8 {
            let bit = (i * eight.width) as usize;
            let word = bytes[bit / 8..][..4].try_into().expect("a slice of four bytes");
            let cell = (u32::from_le_bytes(word) >> (bit % 8)) & eight.ceiling();
            mask |= u64::from(cell | set == value) << i;
        }
        mask
    }
}

/// The bits in which a lane differs from the lowest bits of `value`.
#[inline(always)]
fn differ<const BYTES: usize>(lane: [u8; BYTES], value: u32) -> u32 {
    let mut word = [0; 4];
    word[..BYTES].copy_from_slice(&lane);
    (u32::from_le_bytes(word) ^ value) & (u32::MAX >> (32 - 8 * BYTES))
}
