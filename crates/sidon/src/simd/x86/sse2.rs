//! SSE2, which every x86-64 processor has.

use super::super::{Eight, Isa, Portable};
use std::arch::x86_64::*;

/// A proof that the processor has SSE2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sse2(());

impl Sse2 {
    /// The proof, which needs no detection.
    pub(crate) const ALWAYS: Sse2 = Sse2(());
}

/// The 16 bytes that start at `bytes[at]`.
#[inline(always)]
pub(super) fn load128(bytes: &[u8], at: usize) -> __m128i {
    let part = &bytes[at..at + 16];
    // SAFETY: `part` has 16 readable bytes; the load allows any alignment; SSE2 is in x86-64.
    unsafe { _mm_loadu_si128(part.as_ptr().cast()) }
}

/// `value` in every lane of `BYTES` bytes.
#[inline(always)]
fn splat<const BYTES: usize>(value: u32) -> __m128i {
    // SAFETY: all intrinsics of this block are SSE2, which x86-64 has.
    unsafe {
        match BYTES {
            1 => _mm_set1_epi8(value as i8),
            2 => _mm_set1_epi16(value as i16),
            _ => _mm_set1_epi32(value as i32),
        }
    }
}

/// All bits of each lane of `BYTES` bytes that is the same in both, and no bit of the others.
#[inline(always)]
fn equal<const BYTES: usize>(one: __m128i, other: __m128i) -> __m128i {
    // SAFETY: all intrinsics of this block are SSE2, which x86-64 has.
    unsafe {
        match BYTES {
            1 => _mm_cmpeq_epi8(one, other),
            2 => _mm_cmpeq_epi16(one, other),
            _ => _mm_cmpeq_epi32(one, other),
        }
    }
}

impl Isa for Sse2 {
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
        Portable.xor(one, other)
    }

    #[inline(always)]
    fn add(self, one: [u64; 2], other: [u64; 2]) -> [u64; 2] {
        Portable.add(one, other)
    }

    #[inline(always)]
    fn aes_round(self, block: [u64; 2], key: [u64; 2]) -> [u64; 2] {
        Portable.aes_round(block, key)
    }

    #[inline(always)]
    fn matches<const BYTES: usize, const N: usize>(
        self,
        bucket: &[u8; N],
        value: u32,
        ignored: u32,
    ) -> u64 {
        const { assert!(N == 16 || N == 32 || N == 64, "a bucket has 16, 32 or 64 bytes") };
        let (wanted, ignored) = (splat::<BYTES>(value | ignored), splat::<BYTES>(ignored));
        let mut mask = 0;
        // SAFETY: all intrinsics of this block are SSE2, which x86-64 has; `load128` checks its
        // own bounds.
        unsafe {
            let part =
                |i: usize| equal::<BYTES>(_mm_or_si128(load128(bucket, i * 16), ignored), wanted);
            match BYTES {
                1 => {
                    for i in 0..N / 16 {
                        mask |= u64::from(_mm_movemask_epi8(part(i)) as u16) << (i * 16);
                    }
                }
                2 if N == 16 => {
                    let packed = _mm_packs_epi16(part(0), _mm_setzero_si128());
                    mask = u64::from(_mm_movemask_epi8(packed) as u16);
                }
                2 => {
                    for i in 0..N / 32 {
                        let packed = _mm_packs_epi16(part(2 * i), part(2 * i + 1));
                        mask |= u64::from(_mm_movemask_epi8(packed) as u16) << (i * 16);
                    }
                }
                _ => {
                    for i in 0..N / 16 {
                        let lanes = _mm_movemask_ps(_mm_castsi128_ps(part(i))) as u32;
                        mask |= u64::from(lanes) << (i * 4);
                    }
                }
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
        const { assert!(N == 16 || N == 32 || N == 64, "a bucket has 16, 32 or 64 bytes") };
        let (wanted, set) = (splat::<BYTES>(value), splat::<BYTES>(set));
        let mut marks = 0;
        for i in 0..N / 16 {
            // SAFETY: all intrinsics of this block are SSE2, which x86-64 has; `load128` checks its
            // own bounds.
            let part = unsafe {
                let lanes = _mm_or_si128(load128(bucket, i * 16), set);
                _mm_movemask_epi8(equal::<BYTES>(lanes, wanted))
            };
            marks |= u64::from(part as u16) << (i * 16);
        }
        marks
    }

    #[inline(always)]
    fn eight(self, bytes: &[u8], eight: &Eight, value: u32, set: u32) -> u64 {
        Portable.eight(bytes, eight, value, set)
    }
}
