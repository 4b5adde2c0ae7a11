//! AVX2 and AES.

use super::{
    super::{Eight, Isa, Kernel, LINE, NIBBLES_MAX, Sieve},
    sse2::{Sse2, load128},
};
use std::{
    arch::x86_64::*,
    sync::atomic::{AtomicU8, Ordering},
};

/// A proof that the processor has AVX2, BMI1, BMI2, LZCNT, POPCNT and AES. Every x86-64 server since
/// 2015 has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, if this processor has the instructions.
    #[inline]
    pub(crate) fn detect() -> Option<Self> {
        // Features that the compiler may assume need no detection.
        if cfg!(all(
            target_feature = "avx2",
            target_feature = "bmi1",
            target_feature = "bmi2",
            target_feature = "lzcnt",
            target_feature = "popcnt",
            target_feature = "aes"
        )) {
            return Some(Avx2(()));
        }
        // Caches the result of six checks, since every batch calls `detect`.
        static FOUND: AtomicU8 = AtomicU8::new(UNASKED);
        const UNASKED: u8 = 0;
        const YES: u8 = 1;
        const NO: u8 = 2;

        #[cold]
        #[inline(never)]
        fn ask() -> u8 {
            let all = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("aes");
            let found = if all { YES } else { NO };
            FOUND.store(found, Ordering::Relaxed);
            found
        }

        let found = match FOUND.load(Ordering::Relaxed) {
            UNASKED => ask(),
            found => found,
        };
        (found == YES).then_some(Avx2(()))
    }

    /// Runs the kernel in a function that is compiled with these instructions.
    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,aes")]
        fn inner<K: Kernel>(isa: Avx2, kernel: K) -> K::Output {
            kernel.run(isa)
        }
        // SAFETY: a value of `Avx2` proves that this processor has all of them.
        unsafe { inner(self, kernel) }
    }
}

/// The 32 bytes that start at `bytes[at]`.
///
/// # Safety
/// The processor must have AVX.
#[inline(always)]
unsafe fn load256(bytes: &[u8], at: usize) -> __m256i {
    let part = &bytes[at..at + 32];
    // SAFETY: `part` has 32 readable bytes; the load allows any alignment; the caller has AVX.
    unsafe { _mm256_loadu_si256(part.as_ptr().cast()) }
}

/// `value` in every lane of `BYTES` bytes.
///
/// # Safety
/// The processor must have AVX.
#[inline(always)]
unsafe fn splat<const BYTES: usize>(value: u32) -> __m256i {
    // SAFETY: the caller has AVX.
    unsafe {
        match BYTES {
            1 => _mm256_set1_epi8(value as i8),
            2 => _mm256_set1_epi16(value as i16),
            _ => _mm256_set1_epi32(value as i32),
        }
    }
}

/// All bits of each lane of `BYTES` bytes that is the same in both, and no bit of the others.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn equal<const BYTES: usize>(one: __m256i, other: __m256i) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe {
        match BYTES {
            1 => _mm256_cmpeq_epi8(one, other),
            2 => _mm256_cmpeq_epi16(one, other),
            _ => _mm256_cmpeq_epi32(one, other),
        }
    }
}

impl Isa for Avx2 {
    type Block = __m128i;

    #[inline(always)]
    fn block(self, halves: [u64; 2]) -> __m128i {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_set_epi64x(halves[1] as i64, halves[0] as i64) }
    }

    #[inline(always)]
    fn low_half(self, block: __m128i) -> u64 {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_cvtsi128_si64(block) as u64 }
    }

    #[inline(always)]
    fn xor(self, one: __m128i, other: __m128i) -> __m128i {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_xor_si128(one, other) }
    }

    #[inline(always)]
    fn add(self, one: __m128i, other: __m128i) -> __m128i {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_add_epi64(one, other) }
    }

    #[inline(always)]
    fn aes_round(self, block: __m128i, key: __m128i) -> __m128i {
        // SAFETY: a value of `Avx2` proves AES.
        unsafe { _mm_aesenc_si128(block, key) }
    }

    #[inline(always)]
    fn apart<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,aes")]
        #[inline(never)]
        fn inner<K: Kernel>(isa: Avx2, kernel: K) -> K::Output {
            kernel.run(isa)
        }
        // SAFETY: a value of `Avx2` proves that this processor has all of them.
        unsafe { inner(self, kernel) }
    }

    #[inline(always)]
    fn matches<const BYTES: usize, const N: usize>(
        self,
        bucket: &[u8; N],
        value: u32,
        ignored: u32,
    ) -> u64 {
        if N == 16 {
            return Sse2::ALWAYS.matches::<BYTES, N>(bucket, value, ignored);
        }
        const { assert!(N == 16 || N == 32 || N == 64, "a bucket has 16, 32 or 64 bytes") };
        let mut mask = 0;
        // SAFETY: a value of `Avx2` proves AVX2; `load256` checks its own bounds.
        unsafe {
            let (wanted, ignored) = (splat::<BYTES>(value | ignored), splat::<BYTES>(ignored));
            for i in 0..N / 32 {
                let lanes = _mm256_or_si256(load256(bucket, i * 32), ignored);
                let equal = equal::<BYTES>(lanes, wanted);
                let bits = match BYTES {
                    1 => _mm256_movemask_epi8(equal) as u32,
                    2 => {
                        let low = _mm256_castsi256_si128(equal);
                        let high = _mm256_extracti128_si256::<1>(equal);
                        _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
                    }
                    _ => _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u32,
                };
                mask |= u64::from(bits) << (i * 32 / BYTES);
            }
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
        if N == 16 {
            return Sse2::ALWAYS.marks::<BYTES, N>(bucket, value, set);
        }
        let mut marks = 0;
        // SAFETY: a value of `Avx2` proves AVX2; `load256` checks its own bounds.
        unsafe {
            let (wanted, set) = (splat::<BYTES>(value), splat::<BYTES>(set));
            for i in 0..N / 32 {
                let lanes = _mm256_or_si256(load256(bucket, i * 32), set);
                let part = _mm256_movemask_epi8(equal::<BYTES>(lanes, wanted)) as u32;
                marks |= u64::from(part) << (i * 32);
            }
        }
        marks
    }

    #[inline(always)]
    fn eight(self, bytes: &[u8], eight: &Eight, value: u32, set: u32) -> u64 {
        // SAFETY: a value of `Avx2` proves AVX2; `load128` checks its own bounds; the fields have
        // the 32 bytes that are read, and the loads allow any alignment.
        unsafe {
            let places = _mm256_loadu_si256(eight.bytes.as_ptr().cast());
            let shifts = _mm256_loadu_si256(eight.shifts.as_ptr().cast());
            let ceiling = _mm256_set1_epi32(eight.ceiling() as i32);
            // One bounds check for both loads.
            let bytes = &bytes[..eight.width as usize / 2 + 16];
            let (four, others) = (load128(bytes, 0), load128(bytes, eight.width as usize / 2));
            let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(four), others);
            let cells = _mm256_srlv_epi32(_mm256_shuffle_epi8(both, places), shifts);
            let cells = _mm256_and_si256(cells, ceiling);
            let cells = _mm256_or_si256(cells, _mm256_set1_epi32(set as i32));
            let equal = _mm256_cmpeq_epi32(cells, _mm256_set1_epi32(value as i32));
            u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u32)
        }
    }

    #[inline(always)]
    fn eight_lines(self, lines: [&[u8; LINE]; 8], values: &[u16; 8]) -> ([bool; 8], u8) {
        let mut last = [0; 8];
        // SAFETY: a value of `Avx2` proves AVX2; `load256` checks its own bounds; `values` and `last` have
        // the 16 bytes that are read, and the loads allow any alignment.
        unsafe {
            let zero = _mm_setzero_si128();
            let mut equal = [_mm256_setzero_si256(); 8];
            for i in 0..8 {
                // Two vectors of sixteen lanes that overlap in one lane cover all lanes except the
                // last.
                let wanted = _mm256_set1_epi16(values[i] as i16);
                let lower = _mm256_cmpeq_epi16(load256(lines[i], 0), wanted);
                let upper = _mm256_cmpeq_epi16(load256(lines[i], LINE / 2 - 2), wanted);
                equal[i] = _mm256_or_si256(lower, upper);
                let [.., low, high] = *lines[i];
                last[i] = u16::from_le_bytes([low, high]);
            }
            let [a, b, c, d, e, f, g, h] = equal;
            let held = _mm_packs_epi32(four_any([a, b, c, d]), four_any([e, f, g, h]));
            let absent = _mm_cmpeq_epi16(held, zero);
            let values = _mm_loadu_si128(values.as_ptr().cast());
            let last = _mm_loadu_si128(last.as_ptr().cast());
            let room = _mm_xor_si128(last, _mm_cmpeq_epi16(zero, zero));
            let fits = _mm_cmpeq_epi16(_mm_subs_epu16(values, room), zero);
            let beyond = _mm_andnot_si128(fits, absent);
            let both = _mm_packs_epi16(absent, beyond);
            // A `bool` is a byte that is 0 or 1, so eight of them are written as one word.
            let bytes = (!_mm_cvtsi128_si64(both) & 0x0101_0101_0101_0101).to_le_bytes();
            let mut held = [false; 8];
            for (held, byte) in held.iter_mut().zip(bytes) {
                *held = byte != 0;
            }
            (held, (_mm_movemask_epi8(both) >> 8) as u8)
        }
    }

    #[inline(always)]
    fn any_nibble_zero(self, line: &[u8; LINE], word: u64, cells: u32) -> bool {
        debug_assert!(cells <= NIBBLES_MAX, "the word names no more cells");
        // SAFETY: a value of `Avx2` proves AVX2; `load256` checks its own bounds.
        let zero = unsafe {
            // Each lane takes the two bytes that contain the seven bits of its cell, and moves them
            // down.
            let bytes = _mm256_setr_epi8(
                7, -1, -1, -1, 6, 7, -1, -1, 5, 6, -1, -1, 4, 5, -1, -1, //
                3, 4, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
            );
            let shifts = _mm256_setr_epi32(1, 2, 3, 4, 5, 0, 0, 0);
            let named = _mm256_shuffle_epi8(_mm256_set1_epi64x(word as i64), bytes);
            let named = _mm256_srlv_epi32(named, shifts);
            // The upper four bits select a dword, the lower three its nibble. `permutevar8x32` uses
            // the lower three bits of an index.
            let dword = _mm256_srli_epi32::<3>(named);
            let low = _mm256_permutevar8x32_epi32(load256(line, 0), dword);
            let high = _mm256_permutevar8x32_epi32(load256(line, 32), dword);
            let upper_half = _mm256_castsi256_ps(_mm256_slli_epi32::<25>(named));
            let values = _mm256_castps_si256(_mm256_blendv_ps(
                _mm256_castsi256_ps(low),
                _mm256_castsi256_ps(high),
                upper_half,
            ));
            let place = _mm256_and_si256(_mm256_slli_epi32::<2>(named), _mm256_set1_epi32(28));
            let values = _mm256_and_si256(_mm256_srlv_epi32(values, place), _mm256_set1_epi32(15));
            let zero = _mm256_cmpeq_epi32(values, _mm256_setzero_si256());
            _mm256_movemask_ps(_mm256_castsi256_ps(zero)) as u32
        };
        zero & ((1 << cells) - 1) != 0
    }

    #[inline(always)]
    fn nibble_ones(self, word: u64, cells: u32) -> [u64; LINE / 8] {
        // `cells` is the same for every key, so this branch is always predicted, and the loop is
        // unrolled.
        match cells {
            0 => [0; LINE / 8],
            1 => nibble_ones::<1>(self, word),
            2 => nibble_ones::<2>(self, word),
            3 => nibble_ones::<3>(self, word),
            4 => nibble_ones::<4>(self, word),
            5 => nibble_ones::<5>(self, word),
            _ => unreachable!("the word names no more cells"),
        }
    }

    #[inline(always)]
    fn all_admitted(self, line: &[u8; LINE], word: u64, sieve: &Sieve) -> bool {
        // SAFETY: a value of `Avx2` proves AVX2; `load256` checks its own bounds; `factors` and `marks`
        // have the 64 and 32 bytes that are read, and the loads allow any alignment.
        unsafe {
            // These depend on the sieve alone, so the compiler moves them out of a loop over words.
            let factors = sieve.factors.as_ptr().cast::<__m256i>();
            let (a, b) = (_mm256_loadu_si256(factors), _mm256_loadu_si256(factors.add(1)));
            let (low_factors, high_factors) = (even_halves(a, b), odd_halves(a, b));
            let marks = _mm256_loadu_si256(sieve.marks.as_ptr().cast());
            // The excluded values in reverse: bit 31 is value 0. Lanes beyond the cells exclude none.
            // `cells` has the order of lanes after `even_halves` and `odd_halves`.
            let cells = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
            let selected = _mm256_cmpgt_epi32(_mm256_set1_epi32(sieve.cells as i32), cells);
            let excluded = _mm256_set1_epi32(sieve.excluded.reverse_bits() as i32);
            let excluded = _mm256_and_si256(excluded, selected);

            // The upper half of each 64-bit product, computed from 32-bit parts.
            let low = _mm256_set1_epi32(word as i32);
            let high = _mm256_set1_epi32((word >> 32) as i32);
            let carried = odd_halves(_mm256_mul_epu32(low, a), _mm256_mul_epu32(low, b));
            let crossed = _mm256_add_epi32(
                _mm256_mullo_epi32(low, high_factors),
                _mm256_mullo_epi32(high, low_factors),
            );
            let named = _mm256_add_epi32(carried, crossed);

            // Four bits select a dword of the line, the highest of them the half. `permutevar8x32`
            // uses the lower three bits of an index, and a blend uses the highest.
            let dword = _mm256_srli_epi32::<28>(named);
            let lower = _mm256_permutevar8x32_epi32(load256(line, 0), dword);
            let upper = _mm256_permutevar8x32_epi32(load256(line, 32), dword);
            let values = _mm256_castps_si256(_mm256_blendv_ps(
                _mm256_castsi256_ps(lower),
                _mm256_castsi256_ps(upper),
                _mm256_castsi256_ps(named),
            ));
            // Two bits select the byte of the dword, the next three the mark.
            let rest = _mm256_srli_epi32::<23>(named);
            let place = _mm256_and_si256(rest, _mm256_set1_epi32(24));
            let values = _mm256_and_si256(_mm256_srlv_epi32(values, place), _mm256_set1_epi32(255));
            let index = _mm256_add_epi32(values, _mm256_permutevar8x32_epi32(marks, rest));
            // The shift moves the bit of the index to the sign bit. An index above 31 gives zero.
            let excluded = _mm256_castsi256_ps(_mm256_sllv_epi32(excluded, index));
            _mm256_testz_ps(excluded, excluded) == 1
        }
    }
}

/// [`Isa::nibble_ones`] for a constant number of cells.
#[inline(always)]
fn nibble_ones<const CELLS: usize>(_: Avx2, word: u64) -> [u64; LINE / 8] {
    let mut ones = [0; LINE / 8];
    // SAFETY: a value of `Avx2` proves AVX2; `ones` has 64 writable bytes, and the stores allow
    // any alignment.
    unsafe {
        // Each lane takes the two bytes that contain the seven bits of its cell, and moves them
        // down. The upper half of a product with a power of two is a shift to the right, by a
        // different amount per lane.
        let bytes = _mm_setr_epi8(7, -1, 6, 7, 5, 6, 4, 5, 3, 4, -1, -1, -1, -1, -1, -1);
        let shifts = _mm_setr_epi16(i16::MIN, 1 << 14, 1 << 13, 1 << 12, 1 << 11, 0, 0, 0);
        let named = _mm_shuffle_epi8(_mm_set1_epi64x(word as i64), bytes);
        let named = _mm_and_si128(_mm_mulhi_epu16(named, shifts), _mm_set1_epi16(127));
        // The upper six bits select a byte, the lowest bit its half.
        let halves = _mm_and_si128(named, _mm_set1_epi16(1));
        let value = _mm_shuffle_epi8(_mm_set1_epi16(0x1001), halves);
        let byte = _mm_srli_epi16::<1>(named);
        let value = _mm256_broadcastsi128_si256(value);
        let byte = _mm256_broadcastsi128_si256(byte);
        let places = _mm256_setr_epi8(
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, //
            16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
        );
        let upper_places = _mm256_add_epi8(places, _mm256_set1_epi8(32));
        let (mut low, mut high) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for i in 0..CELLS {
            let all = _mm256_set1_epi8(2 * i as i8);
            let (byte, value) = (_mm256_shuffle_epi8(byte, all), _mm256_shuffle_epi8(value, all));
            let here = _mm256_and_si256(_mm256_cmpeq_epi8(byte, places), value);
            let there = _mm256_and_si256(_mm256_cmpeq_epi8(byte, upper_places), value);
            low = _mm256_or_si256(low, here);
            high = _mm256_or_si256(high, there);
        }
        _mm256_storeu_si256(ones.as_mut_ptr().cast(), low);
        _mm256_storeu_si256(ones.as_mut_ptr().add(4).cast(), high);
    }
    ones
}

/// Four lanes of 32 bits, one per register, which are zero exactly if the register is. Saturated
/// narrowing, done twice here, keeps a value other than zero.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn four_any([a, b, c, d]: [__m256i; 4]) -> __m128i {
    // SAFETY: the caller has AVX2.
    unsafe {
        let all = _mm256_packs_epi16(_mm256_packs_epi16(a, b), _mm256_packs_epi16(c, d));
        _mm_or_si128(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all))
    }
}

/// The lower halves of eight words, those of `a` first in each half of the register.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn even_halves(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe {
        let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
        _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(a, b))
    }
}

/// The upper halves of eight words, those of `a` first in each half of the register.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn odd_halves(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe {
        let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
        _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(a, b))
    }
}
