//! The operations that use SIMD instructions, and the library's only unsafe code.
//!
//! [`Isa`] lists eight primitives: five on blocks for the cipher, and three that compare cells. It also
//! lists four steps of structures, because the primitives and plain Rust would take more instructions:
//!
//! | step | without it |
//! |---|---|
//! | `any_nibble_zero` | 73 to 114 % more for lookups of many keys by `Counting` in lines |
//! | `nibble_ones` | 4 to 7 % more for its insertions of many keys |
//! | `eight_lines` | 83 to 95 % more for lookups of many keys by `Backyard` |
//! | `all_admitted` | 102 to 154 % more for lookups of many keys by `Variable` in lines |
//!
//! [`Portable`] defines all of them in plain Rust and is the specification. `Sse2` and `Avx2` implement
//! them for x86-64, `Neon` and `NeonAes` for AArch64; tests compare them with `Portable`. A hot loop
//! is a [`Kernel`], generic over the instruction set. [`dispatch`] runs it with the best set that
//! this processor has. The choice is made once per batch and costs nothing inside the loop.
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

    /// The lanes of `BYTES` bytes, 1, 2 or 4, that equal `value` outside the bits of `ignored`: bit
    /// `i` of the result is lane `i`. A lane is little-endian, and the bucket has 16, 32 or 64 bytes.
    /// Bits of `value` that a lane does not have are ignored, too.
    fn matches<const BYTES: usize, const N: usize>(
        self,
        bucket: &[u8; N],
        value: u32,
        ignored: u32,
    ) -> u64;

    /// The bytes of lanes that equal `value` after the bits of `set` are set in them. Bit `i` of
    /// the result is byte `i`, so a lane has as many bits as bytes. This takes fewer steps than
    /// [`matches`](Self::matches).
    fn marks<const BYTES: usize, const N: usize>(
        self,
        bucket: &[u8; N],
        value: u32,
        set: u32,
    ) -> u64;

    /// The cells among [`Eight`], stored without gaps from `bytes[0]`, that equal `value` after the
    /// bits of `set` are set in them. Bit `i` of the result is cell `i`. At least `width / 2 + 16`
    /// bytes must be readable.
    fn eight(self, bytes: &[u8], eight: &Eight, value: u32, set: u32) -> u64;

    // Each operation below is a step of one structure. The module's header says why they are here.

    /// Whether one of the 4-bit cells of the line that `word` selects is zero. The upper seven bits
    /// of `word` select cell 0, the next seven cell 1, and so on, for `cells` cells, at most
    /// [`NIBBLES_MAX`].
    #[inline(always)]
    fn any_nibble_zero(self, line: &[u8; LINE], word: u64, cells: u32) -> bool {
        Portable.any_nibble_zero(line, word, cells)
    }

    /// A line of zeros with a one in the lowest bit of each cell that `word` selects: eight
    /// little-endian words.
    #[inline(always)]
    fn nibble_ones(self, word: u64, cells: u32) -> [u64; LINE / 8] {
        Portable.nibble_ones(word, cells)
    }

    /// For each of eight lines, whether one of its 16-bit lanes except the last holds the value
    /// with the line's index. The second result has a bit for each line without its value: whether
    /// the value plus the last lane is above the largest lane value.
    #[inline(always)]
    fn eight_lines(self, lines: [&[u8; LINE]; 8], values: &[u16; 8]) -> ([bool; 8], u8) {
        let (mut held, mut beyond) = ([false; 8], 0);
        for (i, (line, &value)) in lines.into_iter().zip(values).enumerate() {
            held[i] = self.marks::<2, LINE>(line, value.into(), 0) << 2 != 0;
            let [.., low, high] = *line;
            let carries = value.checked_add(u16::from_le_bytes([low, high])).is_none();
            beyond |= u8::from(!held[i] & carries) << i;
        }
        (held, beyond)
    }

    /// Whether the sieve excludes none of the 8-bit cells of the line that `word` selects.
    #[inline(always)]
    fn all_admitted(self, line: &[u8; LINE], word: u64, sieve: &Sieve) -> bool {
        Portable.all_admitted(line, word, sieve)
    }
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
    /// The number of cells, at most [`SIEVED_MAX`].
    pub cells: u32,
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
    /// The bits of a cell, 5 to [`Eight::WIDTH_MAX`].
    width: u32,
    /// Four bytes for each cell that contain it. The first four cells count bytes from the first
    /// byte, the others from byte `width / 2`.
    bytes: [u8; 32],
    /// The shift to the right that moves each cell to the lowest bits.
    shifts: [u32; 8],
}

impl Eight {
    /// The widest cell that four bytes contain wherever it starts.
    pub(crate) const WIDTH_MAX: u32 = 25;

    /// Cells of this width.
    ///
    /// # Panics
    /// Unless the width is 5 to [`Eight::WIDTH_MAX`].
    pub(crate) fn new(width: u32) -> Self {
        assert!((5..=Self::WIDTH_MAX).contains(&width), "no cell of {width} bits");
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
pub(crate) mod tests;
