//! The bits of a 64-byte line that represent a key.
//!
//! The line is eight little-endian words of 64 bits. Bit `i` of a key is in word `(i + start) mod
//! 8`, at the position given by the upper six bits of `word * SALT[i]`, where `word` is the lower
//! half of the digest. A key therefore uses as many words as possible. If the number of bits is no
//! multiple of eight, three other bits of the digest are `start`, which makes all words equally
//! likely. Otherwise it is zero.
//!
//! The loops treat the eight words in the same way, so that the compiler turns each into a few vector
//! instructions. With eight bits per key, a lookup compiled for AVX2 takes 17 instructions.

use crate::{Digest, simd::LINE};

/// The most bits of a line that one key may set.
pub(crate) const HASHES_MAX: u32 = 16;

/// Odd multipliers: the upper halves of the first 16 multiples of the golden ratio's 64 bits under
/// the SplitMix64 finaliser, made odd. They are part of the byte format.
const SALT: [u32; HASHES_MAX as usize] = salts();

const fn salts() -> [u32; HASHES_MAX as usize] {
    let mut salts = [0; HASHES_MAX as usize];
    let mut i = 0;
    while i < salts.len() {
        let mut x = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i as u64 + 1);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        salts[i] = ((x ^ (x >> 31)) >> 32) as u32 | 1;
        i += 1;
    }
    salts
}

/// The bits of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineBits {
    /// 32 digest bits that select the positions.
    word: u32,
    /// The first word, below 8.
    start: u8,
    /// The number of bits.
    hashes: u8,
}

impl LineBits {
    /// The bits of a digest: `hashes` of them, 1 to [`HASHES_MAX`]. Some may coincide.
    #[inline(always)]
    pub(super) fn of(digest: Digest, hashes: u32) -> Self {
        let start = if hashes.is_multiple_of(8) { 0 } else { (digest.0 >> 32) as u8 % 8 };
        LineBits { word: digest.0 as u32, start, hashes: hashes as u8 }
    }

    /// Whether all of them are set in the line.
    #[inline(always)]
    pub(super) fn are_set(self, line: &[u8; LINE]) -> bool {
        let mut missing = 0;
        for (word, bits) in line.as_chunks().0.iter().zip(self.words()) {
            missing |= bits & !u64::from_le_bytes(*word);
        }
        missing == 0
    }

    /// Sets all of them in the line.
    #[inline(always)]
    pub(super) fn set(self, line: &mut [u8; LINE]) {
        for (word, bits) in line.as_chunks_mut().0.iter_mut().zip(self.words()) {
            *word = (u64::from_le_bytes(*word) | bits).to_le_bytes();
        }
    }

    /// The bits by word of the line.
    #[inline(always)]
    fn words(self) -> [u64; LINE / 8] {
        if self.hashes == 8 { self.eight() } else { self.any() }
    }

    /// Bit `i`, as a word.
    #[inline(always)]
    fn bit(self, i: usize) -> u64 {
        1 << (self.word.wrapping_mul(SALT[i]) >> 26)
    }

    /// Eight bits by word of the line, one in each.
    #[inline(always)]
    fn eight(self) -> [u64; LINE / 8] {
        let mut words = [0; LINE / 8];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.bit(i);
        }
        words
    }

    /// Any number of bits by word of the line.
    #[inline(always)]
    fn any(self) -> [u64; LINE / 8] {
        let mut words = [0; LINE / 8];
        for i in 0..usize::from(self.hashes) {
            words[(i + usize::from(self.start)) % 8] |= self.bit(i);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Isa, Kernel, tests::with_every_isa};
    use proptest::prelude::*;

    /// The definition, bit by bit.
    fn by_hand(digest: u64, hashes: u32) -> [u8; LINE] {
        let start = if hashes.is_multiple_of(8) { 0 } else { digest >> 32 & 7 };
        let mut line = [0; LINE];
        for (i, salt) in (0..u64::from(hashes)).zip(SALT) {
            let position = u64::from((digest as u32).wrapping_mul(salt) >> 26);
            let bit = (i + start) % 8 * 64 + position;
            line[bit as usize / 8] |= 1 << (bit % 8);
        }
        line
    }

    /// The line of one key, and the answers about it, another key, and the line with one bit less.
    #[derive(Clone, Copy)]
    struct Try(Digest, Digest, u32);

    impl Kernel for Try {
        type Output = ([u8; LINE], [bool; 3]);

        #[inline(always)]
        fn run<I: Isa>(self, _: I) -> Self::Output {
            let Try(digest, other, hashes) = self;
            let mut line = [0; LINE];
            let bits = LineBits::of(digest, hashes);
            bits.set(&mut line);
            let mut fewer = line;
            let byte = line.iter().position(|&byte| byte != 0).unwrap();
            fewer[byte] &= fewer[byte] - 1;
            let found = LineBits::of(other, hashes).are_set(&line);
            (line, [bits.are_set(&line), found, bits.are_set(&fewer)])
        }
    }

    proptest! {
        #[test]
        fn the_bits_are_the_documented_ones(digest: u64, other: u64, hashes in 1u32..=16) {
            let (line, others) = (by_hand(digest, hashes), by_hand(other, hashes));
            let found = line.iter().zip(others).all(|(line, other)| line & other == other);
            let attempt = Try(Digest(digest), Digest(other), hashes);
            prop_assert_eq!(with_every_isa(attempt), (line, [true, found, false]));
        }
    }
}
