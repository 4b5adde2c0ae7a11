//! The positions of a digest in a table of any size.
//!
//! A digest is read as a fraction of 2^64, and a position is that fraction of the table: the upper
//! half of a 128-bit product. Without a modulo, the bias is at most one part in `2^64 / m`, and
//! sizes need not be powers of two.
//!
//! ```text
//! position i  =  floor( (digest * A^i mod 2^64) / 2^64 * m )
//! ```
//!
//! `A` is a multiplier with good lattices in dimensions 2 to 8 (Steele and Vigna, "Computationally
//! easy, spectrally good multipliers for congruential pseudorandom number generators", 2022). The
//! usual double hashing `h1 + i * h2` saves one multiplication. But two keys that agree in two
//! positions then agree in all. This adds about `n (k / m)^2` to the false-positive rate: it
//! doubles the rate for a million keys at one in a million.

use super::Digest;

/// The most positions of a digest.
pub(crate) const MAX: u32 = 32;

/// `POWERS[i]` is `A^i` modulo 2^64. Part of the byte format.
const POWERS: [u64; MAX as usize] = {
    let mut powers = [1u64; MAX as usize];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1].wrapping_mul(0xd134_2543_de82_ef95);
        i += 1;
    }
    powers
};

/// `A^10` modulo 2^64 leads from one cell of a line to the next. Cell `j` in line `i` of a key comes
/// from `A^(i + 10 j)`. A key has at most 8 lines, so no two of these exponents are equal. Of the steps
/// 8 to 16, this one has the best worst lattice in dimensions 2 to 8: its figure of merit is 0.50.
const IN_LINE: u64 = POWERS[10];

/// `IN_LINE_POWERS[j]` is `A^(10 j)` modulo 2^64. Part of the byte format.
const IN_LINE_POWERS: [u64; MAX as usize] = {
    let mut powers = [1u64; MAX as usize];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1].wrapping_mul(IN_LINE);
        i += 1;
    }
    powers
};

/// The fraction `word / 2^64` of `size`: uniform in `0..size` if `word` is uniform.
#[inline(always)]
pub(crate) fn fraction(word: u64, size: u64) -> u64 {
    ((u128::from(word) * u128::from(size)) >> 64) as u64
}

/// Position `i` of the digest in a table of `size` cells, for `i` below [`MAX`].
#[inline(always)]
pub(crate) fn position(digest: Digest, i: u32, size: u64) -> u64 {
    fraction(digest.0.wrapping_mul(POWERS[i as usize]), size)
}

/// The whole part and the fraction, of 2^64, of position `i`: a line, and the word that selects
/// cells in it. The fraction is uniform in its upper `64 - log2(size)` bits.
#[inline(always)]
pub(crate) fn split(digest: Digest, i: u32, size: u64) -> (u64, u64) {
    halves(digest.0.wrapping_mul(POWERS[i as usize]), size)
}

/// [`split`] for each position `from..to`: one check of the bounds for all of them.
#[inline(always)]
pub(crate) fn splits(
    digest: Digest,
    from: usize,
    to: usize,
    size: u64,
) -> impl Iterator<Item = (u64, u64)> {
    POWERS[from..to].iter().map(move |power| halves(digest.0.wrapping_mul(*power), size))
}

/// The whole part and the fraction of a product.
#[inline(always)]
pub(crate) fn halves(word: u64, size: u64) -> (u64, u64) {
    let product = u128::from(word) * u128::from(size);
    ((product >> 64) as u64, product as u64)
}

/// The next word after one whose bits were used.
#[inline(always)]
pub(crate) fn again(word: u64) -> u64 {
    word.wrapping_mul(POWERS[1])
}

/// The whole part and the fraction, of 2^64, of cell `j` among the `size` cells of a line, for `j`
/// below [`MAX`]. The word is the fraction that [`split`] left of the line.
#[inline(always)]
pub(crate) fn split_in_line(word: u64, j: u32, size: u64) -> (u64, u64) {
    halves(word.wrapping_mul(IN_LINE_POWERS[j as usize]), size)
}

/// [`split_in_line`] for each cell `from..to`.
#[inline(always)]
pub(crate) fn splits_in_line(
    word: u64,
    from: usize,
    to: usize,
    size: u64,
) -> impl Iterator<Item = (u64, u64)> {
    IN_LINE_POWERS[from..to].iter().map(move |power| halves(word.wrapping_mul(*power), size))
}

/// The word of the next cells in the same line.
#[inline(always)]
pub(crate) fn again_in_line(word: u64) -> u64 {
    word.wrapping_mul(IN_LINE)
}

/// Position `i` of the digest in a table of rows of `width` cells each: always in row `i`.
#[inline(always)]
pub(crate) fn position_in_row(digest: Digest, i: u32, width: u64) -> u64 {
    u64::from(i) * width + position(digest, i, width)
}
