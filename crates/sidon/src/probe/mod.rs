//! The few operations worth a SIMD instruction, and the library's only unsafe code.
//!
//! [`Isa`] names them. [`Portable`] defines them in plain Rust and is the specification;
//! `Sse2` and `Avx2` are its twins on x86-64, tested to be equal to it. A hot loop is a
//! [`Kernel`], generic over the instruction set, and [`dispatch`] runs it with the best one this
//! processor has: the question is asked once a batch, and costs nothing inside the loop.
//!
//! ```text
//! dispatch(kernel) --+-- AVX2 found --> kernel.run(Avx2)      compiled with AVX2 and AES throughout
//!                    +-- x86-64 ------> kernel.run(Sse2)      SSE2 is part of x86-64
//!                    +-- otherwise ---> kernel.run(Portable)
//! ```

mod aes;
mod portable;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86;

pub(crate) use portable::Portable;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Sse2};

/// Bytes in a cache line, the unit in which memory moves.
pub const LINE: usize = 64;

/// How many bits of a [`Blocked`](crate::member::Blocked) line one key may set.
pub(crate) const LINE_HASHES_MAX: u32 = 16;

/// How many 4-bit cells of a line one word names.
pub(crate) const NIBBLES_MAX: u32 = 5;

/// An instruction set: a proof, held by value, that its operations may be executed.
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

    /// A round of AES (FIPS 197): SubBytes, ShiftRows, MixColumns, and the round's key is added.
    fn aes_round(self, block: Self::Block, key: Self::Block) -> Self::Block;

    /// Runs a kernel in a function of its own, compiled for this instruction set: for loops that
    /// would take registers from each other.
    #[inline(always)]
    fn apart<K: Kernel>(self, kernel: K) -> K::Output {
        #[inline(never)]
        fn inner<I: Isa, K: Kernel>(isa: I, kernel: K) -> K::Output {
            kernel.run(isa)
        }
        inner(self, kernel)
    }

    /// Which lanes of the bucket hold `value`: bit `i` of the answer is lane `i`. A lane is
    /// little-endian, and the bucket has 16, 32 or 64 bytes.
    fn matches<L: Lane, const N: usize>(self, bucket: &[u8; N], value: L) -> u64;

    /// Which lanes of the bucket hold `value` where the bits of `ignored` are not looked at.
    fn matches_but<L: Lane, const N: usize>(self, bucket: &[u8; N], value: L, ignored: L) -> u64;

    /// Which bytes of the bucket lie in lanes that are `value` once the bits of `set` are set in
    /// them: bit `i` of the answer is byte `i`, so a lane has as many bits as bytes. The fewest steps
    /// from a bucket to a number.
    fn marks<L: Lane, const N: usize>(self, bucket: &[u8; N], value: L, set: L) -> u64;

    /// For each of eight lines, whether one of its 16-bit lanes but the last holds the value of the same
    /// index. And of those that do not, whether the value and the last lane add up to more than a lane
    /// holds: a bit each.
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

    /// Whether one of the 4-bit cells of the line that `word` names is zero: cell `i` is named by
    /// the seven bits below the upper `7 * i`, for `i` below `cells`, at most [`NIBBLES_MAX`].
    fn any_nibble_zero(self, line: &[u8; LINE], word: u64, cells: u32) -> bool;

    /// A one in the lowest bit of each of those cells, in a line of zeros: eight little-endian words.
    fn nibble_ones(self, word: u64, cells: u32) -> [u64; LINE / 8];

    /// A [`Sieve`] and a number of cells, made ready for a loop.
    type Sieve: Copy;

    /// Makes a sieve ready for so many cells of a line, at most [`SIEVED_MAX`].
    fn sieve(self, sieve: &Sieve, cells: u32) -> Self::Sieve;

    /// Whether none of the 8-bit cells of the line that `word` names is excluded.
    fn all_admitted(self, line: &[u8; LINE], word: u64, sieve: &Self::Sieve) -> bool;

    /// Which of [`Eight`] cells that lie without gaps from `bytes[0]` on are `value` once the bits of
    /// `set` are set in them: bit `i` of the answer is cell `i`. There are sixteen bytes from byte
    /// `width / 2` on.
    fn eight(self, bytes: &[u8], eight: &Eight, value: u32, set: u32) -> u64;

    /// Whether all bits that `choice` names in the line are set.
    fn line_contains(self, line: &[u8; LINE], choice: LineChoice) -> bool;

    /// Sets all bits that `choice` names in the line.
    fn line_insert(self, line: &mut [u8; LINE], choice: LineChoice);
}

/// How many 8-bit cells of a line one word names.
pub const SIEVED_MAX: u32 = 8;

/// Which 8-bit cells of a line a word names, and which values exclude a key there.
///
/// Cell `i` is named by the product of the word and `factors[i]`, modulo 2^64: by its upper six bits.
/// The three bits below pick one of `marks`. The key is excluded if bit `value + mark` of `excluded` is
/// set. The highest bit is not, nor are those beyond.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sieve {
    /// One factor a cell.
    pub factors: [u64; SIEVED_MAX as usize],
    /// One mark for each value of the three bits.
    pub marks: [u32; 8],
    /// One bit for each sum of value and mark.
    pub excluded: u32,
}

/// Eight cells of one width, without gaps: where each lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Eight {
    /// The bits of a cell, 5 to [`Eight::WIDTH_MOST`].
    width: u32,
    /// For each cell four bytes that hold it, from the first byte on for the first four, from byte
    /// `width / 2` on for the others.
    bytes: [u8; 32],
    /// How far the cell is to be moved down in them.
    shifts: [u32; 8],
}

impl Eight {
    /// The widest cell that four bytes hold wherever it begins.
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

/// Which bits of a 64-byte line stand for a key.
///
/// The line is eight little-endian words of 64 bits. Bit `i` of a key lies in word
/// `(i + start) mod 8`, at the place that the upper six bits of `word * SALT[i]` name. Thus a key
/// spreads over as many words as it can, and `start` evens out the words if the number of bits is
/// no multiple of eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineChoice {
    /// 32 digest bits that pick the places.
    pub word: u32,
    /// The first word, below 8; zero if `hashes` is 8 or 16.
    pub start: u8,
    /// How many bits a key sets, 1 to [`LINE_HASHES_MAX`].
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

/// An unsigned integer that a bucket has in each lane.
pub(crate) trait Lane: Copy + Eq {
    /// Its bytes in memory.
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

/// A loop that wants the best instruction set there is.
///
/// Its `run` should be `#[inline(always)]`, and so should all it calls in the loop: what is
/// inlined into the dispatcher's arm is compiled for that arm's instructions, and what is not is
/// called instruction by instruction. Closures given to iterator adapters often are not.
pub(crate) trait Kernel {
    /// What the loop yields.
    type Output;
    /// The loop.
    fn run<I: Isa>(self, isa: I) -> Self::Output;
}

/// Runs the kernel with the best instruction set of this processor.
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        match Avx2::detect() {
            Some(isa) => x86::run_avx2(isa, kernel),
            // Not inlined: its room on the stack is nothing to the other arm.
            None => Sse2::ALWAYS.apart(kernel),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    kernel.run(Portable)
}

/// The best instruction set that needs no question: for single operations.
#[cfg(target_arch = "x86_64")]
pub(crate) const BASE: Sse2 = Sse2::ALWAYS;
/// The best instruction set that needs no question: for single operations.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const BASE: Portable = Portable;

/// Asks for the cache line that holds `bytes[index]`, without waiting. Any index is allowed.
#[inline(always)]
pub fn prefetch(bytes: &[u8], index: usize) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(bytes, index);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, index);
}

#[cfg(test)]
mod tests;
