//! The definition of every operation, in plain Rust.

use super::{Eight, Isa, LINE, Lane, LineChoice, SALT, Sieve, aes};

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
    fn matches<L: Lane, const N: usize>(self, bucket: &[u8; N], value: L) -> u64 {
        self.matches_but(bucket, value, L::from_u32(0))
    }

    #[inline(always)]
    fn matches_but<L: Lane, const N: usize>(self, bucket: &[u8; N], value: L, ignored: L) -> u64 {
        const { assert!(N == 16 || N == 32 || N == 64, "a bucket has 16, 32 or 64 bytes") };
        let mut mask = 0;
        for (i, lane) in bucket.chunks_exact(L::BYTES).enumerate() {
            let differ = (L::read(lane).to_u32() ^ value.to_u32()) & !ignored.to_u32();
            mask |= u64::from(differ == 0) << i;
        }
        mask
    }

    #[inline(always)]
    fn marks<L: Lane, const N: usize>(self, bucket: &[u8; N], value: L, set: L) -> u64 {
        const { assert!(N == 16 || N == 32 || N == 64, "a bucket has 16, 32 or 64 bytes") };
        let lane_bits = u64::MAX >> (64 - L::BYTES);
        let mut marks = 0;
        for (i, lane) in bucket.chunks_exact(L::BYTES).enumerate() {
            let equal = L::read(lane).to_u32() | set.to_u32() == value.to_u32();
            marks |= (lane_bits * u64::from(equal)) << (i * L::BYTES);
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

    type Sieve = (Sieve, u32);

    #[inline(always)]
    fn sieve(self, sieve: &Sieve, cells: u32) -> (Sieve, u32) {
        debug_assert!(cells <= super::SIEVED_MAX, "the word names no more cells");
        debug_assert!(sieve.excluded >> 31 == 0, "what lies beyond is not excluded");
        (*sieve, cells)
    }

    #[inline(always)]
    fn all_admitted(self, line: &[u8; LINE], word: u64, sieve: &(Sieve, u32)) -> bool {
        let (sieve, cells) = sieve;
        let mut excluded = 0;
        for factor in &sieve.factors[..*cells as usize] {
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

    #[inline(always)]
    fn line_contains(self, line: &[u8; LINE], choice: LineChoice) -> bool {
        let wanted = line_bits(choice);
        (0..8).all(|i| word(line, i) & wanted[i] == wanted[i])
    }

    #[inline(always)]
    fn line_insert(self, line: &mut [u8; LINE], choice: LineChoice) {
        for (i, wanted) in line_bits(choice).into_iter().enumerate() {
            let united = word(line, i) | wanted;
            line[i * 8..][..8].copy_from_slice(&united.to_le_bytes());
        }
    }
}

/// The bits of the choice as eight words.
#[inline(always)]
pub(super) fn line_bits(choice: LineChoice) -> [u64; 8] {
    let mut bits = [0; 8];
    for i in 0..usize::from(choice.hashes) {
        let place = choice.word.wrapping_mul(SALT[i]) >> 26;
        bits[(i + usize::from(choice.start)) % 8] |= 1 << place;
    }
    bits
}

#[inline(always)]
fn word(line: &[u8; LINE], i: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&line[i * 8..][..8]);
    u64::from_le_bytes(word)
}
