//! The operations that use SIMD instructions, and the library's only unsafe code.
//!
//! [`Isa`] lists them. [`Portable`] defines them in plain Rust and is the specification. `Sse2` and
//! `Avx2` implement them for x86-64, `Neon` and `NeonAes` for AArch64; tests compare them with
//! `Portable`. A hot loop is a [`Kernel`], generic over the instruction set. [`dispatch`] runs it
//! with the best set that this processor has. The choice is made once per batch and costs nothing
//! inside the loop.
//!
//! ```text
//! dispatch(kernel) --+-- x86-64 ---+-- AVX2 found --> kernel.run(Avx2)     compiled with AVX2 and AES
//!                    |             +-- otherwise ---> kernel.run(Sse2)     SSE2 is part of x86-64
//!                    +-- AArch64 --+-- AES found ---> kernel.run(NeonAes)  compiled with AES
//!                    |             +-- otherwise ---> kernel.run(Neon)     NEON is part of AArch64
//!                    +-- otherwise -----------------> kernel.run(Portable)
//! ```

mod aes;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
#[allow(unsafe_code)]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86;

/// For this processor: the dispatcher, the prefetch and [`BASE`].
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use neon as native;
#[cfg(target_arch = "x86_64")]
use x86 as native;
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
mod native {
    use super::{Kernel, Portable};

    pub(crate) const BASE: Portable = Portable;

    #[inline(always)]
    pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
        kernel.run(Portable)
    }

    #[inline(always)]
    pub(super) fn prefetch(_: &[u8], _: usize) {}
}

/// The best instruction set that needs no detection: for single operations.
pub(crate) use native::BASE;
pub(crate) use portable::Portable;

/// Bytes per cache line, the unit of transfers from memory.
pub const LINE: usize = 64;

/// The most bits of a [`Blocked`](crate::member::Blocked) line that one key may set.
pub(crate) const LINE_HASHES_MAX: u32 = 16;

/// The most 4-bit cells of a line that one word selects.
pub(crate) const NIBBLES_MAX: u32 = 5;

/// An instruction set. Its value proves that the processor can execute its operations.
pub(crate) trait Isa: Copy {
    /// 16 bytes, the state of a cipher.
    type Block: Copy;

    /// The block of two little-endian words.
    fn block(self, halves: [u64; 2]) -> Self::Block;

    /// The block's first word.
    fn low_half(self, block: Self::Block) -> u64;

    /// Exclusive or.
    fn xor(self, one: Self::Block, other: Self::Block) -> Self::Block;

    /// The sums of the first and of the second words, modulo 2^64.
    fn add(self, one: Self::Block, other: Self::Block) -> Self::Block;

    /// A round of AES (FIPS 197): SubBytes, ShiftRows, MixColumns, then exclusive or with the round
    /// key.
    fn aes_round(self, block: Self::Block, key: Self::Block) -> Self::Block;

    /// Runs a kernel in a separate function, compiled for this instruction set. For loops that
    /// would compete for registers if they were inlined into one function.
    #[inline(always)]
    fn apart<K: Kernel>(self, kernel: K) -> K::Output {
        #[inline(never)]
        fn inner<I: Isa, K: Kernel>(isa: I, kernel: K) -> K::Output {
            kernel.run(isa)
        }
        inner(self, kernel)
    }

    /// The lanes of the bucket that hold `value`: bit `i` of the result is lane `i`. A lane is
    /// little-endian, and the bucket has 16, 32 or 64 bytes.
    fn matches<L: Lane, const N: usize>(self, bucket: &[u8; N], value: L) -> u64;

    /// The lanes of the bucket that hold `value` outside the bits of `ignored`, as a mask.
    fn matches_but<L: Lane, const N: usize>(self, bucket: &[u8; N], value: L, ignored: L) -> u64;

    /// The bytes of lanes that equal `value` after the bits of `set` are set in them. Bit `i` of
    /// the result is byte `i`, so a lane has as many bits as bytes. This takes fewer steps than
    /// [`matches_but`](Self::matches_but).
    fn marks<L: Lane, const N: usize>(self, bucket: &[u8; N], value: L, set: L) -> u64;

    /// For each of eight lines, whether one of its 16-bit lanes except the last holds the value
    /// with the line's index. The second result has a bit for each line without its value: whether
    /// the value plus the last lane is above the largest lane value.
    #[inline(always)]
    fn eight_lines(self, lines: [&[u8; LINE]; 8], values: &[u16; 8]) -> ([bool; 8], u8) {
        let (mut held, mut beyond) = ([false; 8], 0);
        for (i, (line, &value)) in lines.into_iter().zip(values).enumerate() {
            held[i] = self.marks(line, value, 0) << 2 != 0;
            let [.., low, high] = *line;
            let carries = value.checked_add(u16::from_le_bytes([low, high])).is_none();
            beyond |= u8::from(!held[i] & carries) << i;
        }
        (held, beyond)
    }

    /// Whether one of the 4-bit cells of the line that `word` selects is zero. The upper seven bits
    /// of `word` select cell 0, the next seven cell 1, and so on, for `cells` cells, at most
    /// [`NIBBLES_MAX`].
    fn any_nibble_zero(self, line: &[u8; LINE], word: u64, cells: u32) -> bool;

    /// A line of zeros with a one in the lowest bit of each selected cell: eight little-endian
    /// words.
    fn nibble_ones(self, word: u64, cells: u32) -> [u64; LINE / 8];

    /// A [`Sieve`] and a number of cells, prepared for a loop.
    type Sieve: Copy;

    /// Prepares a sieve for `cells` cells of a line, at most [`SIEVED_MAX`].
    fn sieve(self, sieve: &Sieve, cells: u32) -> Self::Sieve;

    /// Whether the sieve excludes none of the 8-bit cells of the line that `word` selects.
    fn all_admitted(self, line: &[u8; LINE], word: u64, sieve: &Self::Sieve) -> bool;

    /// The cells among [`Eight`], stored without gaps from `bytes[0]`, that equal `value` after the
    /// bits of `set` are set in them. Bit `i` of the result is cell `i`. At least `width / 2 + 16`
    /// bytes must be readable.
    fn eight(self, bytes: &[u8], eight: &Eight, value: u32, set: u32) -> u64;

    /// Whether all bits of `choice` are set in the line.
    fn line_contains(self, line: &[u8; LINE], choice: LineChoice) -> bool;

    /// Sets all bits of `choice` in the line.
    fn line_insert(self, line: &mut [u8; LINE], choice: LineChoice);
}

/// The most 8-bit cells of a line that one word selects.
pub const SIEVED_MAX: u32 = 8;

/// The 8-bit cells of a line that a word selects, and the values that exclude a key.
///
/// The product of the word and `factors[i]`, modulo 2^64, selects cell `i` by its upper six bits.
/// The three bits below pick one of `marks`. The key is excluded if bit `value + mark` of
/// `excluded` is set. Bit 31 must not be set; sums above 31 exclude no key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sieve {
    /// One factor per cell.
    pub factors: [u64; SIEVED_MAX as usize],
    /// One mark for each value of the three bits.
    pub marks: [u32; 8],
    /// One bit for each sum of value and mark.
    pub excluded: u32,
}

/// The positions of eight cells of one width, without gaps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Eight {
    /// The bits of a cell, 5 to [`Eight::WIDTH_MOST`].
    width: u32,
    /// Four bytes for each cell that contain it. The first four cells count bytes from the first
    /// byte, the others from byte `width / 2`.
    bytes: [u8; 32],
    /// The shift to the right that moves each cell to the lowest bits.
    shifts: [u32; 8],
}

impl Eight {
    /// The widest cell that four bytes contain wherever it starts.
    pub(crate) const WIDTH_MOST: u32 = 25;

    /// Cells of this width.
    ///
    /// # Panics
    /// Unless the width is 5 to [`Eight::WIDTH_MOST`].
    pub(crate) fn new(width: u32) -> Self {
        assert!((5..=Self::WIDTH_MOST).contains(&width), "no cell of {width} bits");
        let (mut bytes, mut shifts) = ([0; 32], [0; 8]);
        for (i, shift) in (0..).zip(&mut shifts) {
            let bit = i * width - if i < 4 { 0 } else { width / 2 * 8 };
            for byte in 0..4 {
                bytes[(4 * i + byte) as usize] = (bit / 8 + byte) as u8;
            }
            *shift = bit % 8;
        }
        Eight { width, bytes, shifts }
    }

    /// The largest value of a cell.
    #[inline(always)]
    fn ceiling(&self) -> u32 {
        u32::MAX >> (32 - self.width)
    }
}

/// The bits of a 64-byte line that represent a key.
///
/// The line is eight little-endian words of 64 bits. Bit `i` of a key is in word `(i + start) mod
/// 8`, at the position given by the upper six bits of `word * SALT[i]`. A key therefore uses as
/// many words as possible. If the number of bits is no multiple of eight, `start` makes all words
/// equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineChoice {
    /// 32 digest bits that select the positions.
    pub word: u32,
    /// The first word, below 8; zero if `hashes` is 8 or 16.
    pub start: u8,
    /// The number of bits that a key sets, 1 to [`LINE_HASHES_MAX`].
    pub hashes: u8,
}

/// Odd multipliers of [`LineChoice`]: the upper halves of the first 16 multiples of the golden
/// ratio's 64 bits under the SplitMix64 finaliser, made odd. They are part of the byte format.
pub(crate) const SALT: [u32; LINE_HASHES_MAX as usize] = salts();

const fn salts() -> [u32; LINE_HASHES_MAX as usize] {
    let mut salts = [0; LINE_HASHES_MAX as usize];
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

/// An unsigned integer type that fills the lanes of a bucket.
pub(crate) trait Lane: Copy + Eq {
    /// Its size in memory.
    const BYTES: usize;
    /// Reads a lane from exactly [`Self::BYTES`] bytes.
    fn read(bytes: &[u8]) -> Self;
    /// The value in the lowest bits.
    fn to_u32(self) -> u32;
    /// The lowest bits of a value.
    fn from_u32(value: u32) -> Self;
    /// Writes a lane to exactly [`Self::BYTES`] bytes.
    fn write(self, bytes: &mut [u8]);
}

macro_rules! lane {
    ($($int:ty),*) => {$(
        impl Lane for $int {
            const BYTES: usize = size_of::<$int>();
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut lane = [0; size_of::<$int>()];
                lane.copy_from_slice(bytes);
                <$int>::from_le_bytes(lane)
            }
            #[inline(always)]
            fn to_u32(self) -> u32 {
                u32::from(self)
            }
            #[inline(always)]
            fn from_u32(value: u32) -> Self {
                value as $int
            }
            #[inline(always)]
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
lane!(u8, u16, u32);

/// A loop that runs with the best available instruction set.
///
/// Its `run` and all functions that it calls in the loop should be `#[inline(always)]`. Code
/// inlined into an arm of the dispatcher is compiled for that arm's instructions. Other code calls
/// a function for each vector instruction. Closures given to iterator adapters are often not
/// inlined.
pub(crate) trait Kernel {
    /// The result of the loop.
    type Output;
    /// The loop.
    fn run<I: Isa>(self, isa: I) -> Self::Output;
}

/// Runs the kernel with the best instruction set of this processor.
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    native::run(kernel)
}

/// Prefetches the cache line that holds `bytes[index]`. Any index is allowed.
#[inline(always)]
pub fn prefetch(bytes: &[u8], index: usize) {
    native::prefetch(bytes, index);
}

#[cfg(test)]
mod tests;
