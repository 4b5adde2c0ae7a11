//! NEON and AES versions of the portable definition, for little-endian AArch64.
//!
//! Every AArch64 processor with an operating system has NEON. Most have the AES instructions as
//! well; the Raspberry Pi 4 does not. A value of [`Neon`] or [`NeonAes`] proves that the processor
//! has the instructions.
//!
//! NEON has no instruction that collects one bit of every byte in a word. [`collect`] keeps a
//! different bit of each of eight bytes and adds neighbours three times, which also joins the four
//! registers of a line.
//!
//! Operations on a [`Sieve`](super::Sieve) use the portable definition.

use super::{Eight, Isa, Kernel, LINE, Portable};
use std::arch::{aarch64::*, asm, is_aarch64_feature_detected};

/// NEON, which every AArch64 processor with an operating system has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    /// The proof, which needs no detection.
    pub(crate) const ALWAYS: Neon = Neon(());
}

/// NEON and the AES instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeonAes(());

impl NeonAes {
    /// The proof, if this processor has the instructions. The standard library caches the answer.
    #[inline]
    pub(crate) fn detect() -> Option<Self> {
        is_aarch64_feature_detected!("aes").then_some(NeonAes(()))
    }
}

/// The instruction set for single operations.
pub(crate) const BASE: Neon = Neon::ALWAYS;

/// Runs the kernel with the AES instructions, if this processor has them.
#[inline]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    match NeonAes::detect() {
        Some(isa) => run_aes(isa, kernel),
        // Not inlined, so that its stack frame does not enlarge that of the other arm.
        None => Neon::ALWAYS.apart(kernel),
    }
}

/// Runs the kernel in a function that is compiled with the AES instructions.
#[inline]
fn run_aes<K: Kernel>(isa: NeonAes, kernel: K) -> K::Output {
    #[target_feature(enable = "neon,aes")]
    fn inner<K: Kernel>(isa: NeonAes, kernel: K) -> K::Output {
        kernel.run(isa)
    }
    // SAFETY: `isa` was made by `NeonAes::detect`, so this processor has NEON and AES.
    unsafe { inner(isa, kernel) }
}

/// [`run_aes`] in a function that is never inlined.
#[inline(always)]
fn run_aes_apart<K: Kernel>(isa: NeonAes, kernel: K) -> K::Output {
    #[target_feature(enable = "neon,aes")]
    #[inline(never)]
    fn inner<K: Kernel>(isa: NeonAes, kernel: K) -> K::Output {
        kernel.run(isa)
    }
    // SAFETY: `isa` was made by `NeonAes::detect`, so this processor has NEON and AES.
    unsafe { inner(isa, kernel) }
}

#[inline(always)]
pub(super) fn prefetch(bytes: &[u8], index: usize) {
    let address = bytes.as_ptr().wrapping_add(index);
    // SAFETY: a prefetch never faults, whatever the address, and changes no register and no memory.
    unsafe {
        asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nomem, nostack, preserves_flags),
        );
    }
}

/// The 16 bytes that start at `bytes[at]`.
#[inline(always)]
fn load(bytes: &[u8], at: usize) -> uint8x16_t {
    let part = &bytes[at..at + 16];
    // SAFETY: `part` has 16 readable bytes; the load allows any alignment; AArch64 has NEON.
    unsafe { vld1q_u8(part.as_ptr()) }
}

/// For each lane of the bucket, all its bits if it equals `value` after the bits of `set` are set in
/// it, and none otherwise. Registers beyond the bucket are zero.
#[inline(always)]
fn equal<const BYTES: usize, const N: usize>(
    bucket: &[u8; N],
    value: u32,
    set: u32,
) -> [uint8x16_t; 4] {
    const { assert!(N == 16 || N == 32 || N == 64, "a bucket has 16, 32 or 64 bytes") };
    // SAFETY: all intrinsics of this block are NEON, which AArch64 has; `load` checks its own bounds.
    unsafe {
        let (value, set) = match BYTES {
            1 => (vdupq_n_u8(value as u8), vdupq_n_u8(set as u8)),
            2 => {
                let (value, set) = (vdupq_n_u16(value as u16), vdupq_n_u16(set as u16));
                (vreinterpretq_u8_u16(value), vreinterpretq_u8_u16(set))
            }
            _ => {
                let (value, set) = (vdupq_n_u32(value), vdupq_n_u32(set));
                (vreinterpretq_u8_u32(value), vreinterpretq_u8_u32(set))
            }
        };
        let mut equal = [vdupq_n_u8(0); 4];
        for i in 0..N / 16 {
            let lanes = vorrq_u8(load(bucket, i * 16), set);
            equal[i] = match BYTES {
                1 => vceqq_u8(lanes, value),
                2 => {
                    let (lanes, value) = (vreinterpretq_u16_u8(lanes), vreinterpretq_u16_u8(value));
                    vreinterpretq_u8_u16(vceqq_u16(lanes, value))
                }
                _ => {
                    let (lanes, value) = (vreinterpretq_u32_u8(lanes), vreinterpretq_u32_u8(value));
                    vreinterpretq_u8_u32(vceqq_u32(lanes, value))
                }
            };
        }
        equal
    }
}

/// One bit of each byte, for bytes that are `0` or `0xff`: bit `i` of the result is byte `i`.
#[inline(always)]
fn collect(bytes: [uint8x16_t; 4]) -> u64 {
    // SAFETY: all intrinsics of this block are NEON, which AArch64 has.
    unsafe {
        let bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
        let [a, b, c, d] = bytes.map(|bytes| vandq_u8(bytes, bits));
        let eights = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        low_half(vpaddq_u8(eights, eights))
    }
}

/// The first eight bytes as a little-endian word.
#[inline(always)]
fn low_half(block: uint8x16_t) -> u64 {
    // SAFETY: AArch64 has NEON.
    unsafe { vgetq_lane_u64::<0>(vreinterpretq_u64_u8(block)) }
}

impl Isa for Neon {
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
        let equal @ [a, b, c, d] = equal::<BYTES, N>(bucket, value | ignored, ignored);
        // SAFETY: all intrinsics of this block are NEON, which AArch64 has.
        unsafe {
            // The even bytes of two registers: one byte of each 16-bit lane, or two of 32 bits.
            let (none, low, high) = (vdupq_n_u8(0), vuzp1q_u8(a, b), vuzp1q_u8(c, d));
            match BYTES {
                1 => collect(equal),
                2 => collect([low, high, none, none]),
                _ => collect([vuzp1q_u8(low, high), none, none, none]),
            }
        }
    }

    #[inline(always)]
    fn marks<const BYTES: usize, const N: usize>(
        self,
        bucket: &[u8; N],
        value: u32,
        set: u32,
    ) -> u64 {
        collect(equal::<BYTES, N>(bucket, value, set))
    }

    #[inline(always)]
    fn eight_lines(self, lines: [&[u8; LINE]; 8], values: &[u16; 8]) -> ([bool; 8], u8) {
        let mut last = [0; 8];
        // SAFETY: all intrinsics of this block are NEON, which AArch64 has; `load` checks its own
        // bounds; `values` and `last` have the 16 bytes that are read.
        unsafe {
            let mut held = [vdupq_n_u16(0); 8];
            for i in 0..8 {
                // The last two registers overlap in one lane, so that together all four cover all
                // lanes except the last.
                let equal = [0, 16, 32, LINE - 18].map(|at| {
                    vceqq_u16(vreinterpretq_u16_u8(load(lines[i], at)), vdupq_n_u16(values[i]))
                });
                let [a, b, c, d] = equal;
                held[i] = vorrq_u16(vorrq_u16(a, b), vorrq_u16(c, d));
                let [.., low, high] = *lines[i];
                last[i] = u16::from_le_bytes([low, high]);
            }
            // The larger of neighbours, three times: lane `i` becomes the largest of line `i`.
            let [a, b, c, d, e, f, g, h] = held;
            let (ab, cd, ef, gh) =
                (vpmaxq_u16(a, b), vpmaxq_u16(c, d), vpmaxq_u16(e, f), vpmaxq_u16(g, h));
            let held = vpmaxq_u16(vpmaxq_u16(ab, cd), vpmaxq_u16(ef, gh));
            let room = vmvnq_u16(vld1q_u16(last.as_ptr()));
            let carries = vcgtq_u16(vld1q_u16(values.as_ptr()), room);
            let beyond = vmovn_u16(vbicq_u16(carries, held));
            let held = vmovn_u16(held);
            let none = vdupq_n_u8(0);
            let both = collect([vcombine_u8(held, beyond), none, none, none]) as u16;
            (std::array::from_fn(|i| both >> i & 1 == 1), (both >> 8) as u8)
        }
    }

    #[inline(always)]
    fn eight(self, bytes: &[u8], eight: &Eight, value: u32, set: u32) -> u64 {
        // SAFETY: all intrinsics of this block are NEON, which AArch64 has; `load` checks its own
        // bounds; the fields have the 32 bytes that are read.
        unsafe {
            let none = vdupq_n_u8(0);
            let four = |at, i| {
                let places = vld1q_u8(eight.bytes.as_ptr().add(4 * i));
                let shifts = vreinterpretq_s32_u32(vld1q_u32(eight.shifts.as_ptr().add(i)));
                let cells = vreinterpretq_u32_u8(vqtbl1q_u8(load(bytes, at), places));
                // NEON shifts right if the number is negative.
                let cells = vshlq_u32(cells, vnegq_s32(shifts));
                let cells = vandq_u32(cells, vdupq_n_u32(eight.ceiling()));
                let cells = vorrq_u32(cells, vdupq_n_u32(set));
                vreinterpretq_u8_u32(vceqq_u32(cells, vdupq_n_u32(value)))
            };
            let lanes = vuzp1q_u8(four(0, 0), four(eight.width as usize / 2, 4));
            collect([vuzp1q_u8(lanes, none), none, none, none])
        }
    }
}

/// [`Isa::aes_round`]. `vaeseq_u8` adds its key before SubBytes, so its key is zero here.
#[inline]
#[target_feature(enable = "neon,aes")]
fn aes_round(block: uint8x16_t, key: uint8x16_t) -> uint8x16_t {
    veorq_u8(vaesmcq_u8(vaeseq_u8(block, vdupq_n_u8(0))), key)
}

impl Isa for NeonAes {
    type Block = uint8x16_t;

    #[inline(always)]
    fn block(self, halves: [u64; 2]) -> uint8x16_t {
        // SAFETY: AArch64 has NEON.
        unsafe {
            vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(halves[0]), vcreate_u64(halves[1])))
        }
    }

    #[inline(always)]
    fn low_half(self, block: uint8x16_t) -> u64 {
        low_half(block)
    }

    #[inline(always)]
    fn xor(self, one: uint8x16_t, other: uint8x16_t) -> uint8x16_t {
        // SAFETY: AArch64 has NEON.
        unsafe { veorq_u8(one, other) }
    }

    #[inline(always)]
    fn add(self, one: uint8x16_t, other: uint8x16_t) -> uint8x16_t {
        // SAFETY: AArch64 has NEON.
        unsafe {
            let (one, other) = (vreinterpretq_u64_u8(one), vreinterpretq_u64_u8(other));
            vreinterpretq_u8_u64(vaddq_u64(one, other))
        }
    }

    #[inline(always)]
    fn aes_round(self, block: uint8x16_t, key: uint8x16_t) -> uint8x16_t {
        // SAFETY: a value of `NeonAes` proves AES.
        unsafe { aes_round(block, key) }
    }

    #[inline(always)]
    fn apart<K: Kernel>(self, kernel: K) -> K::Output {
        run_aes_apart(self, kernel)
    }

    #[inline(always)]
    fn matches<const BYTES: usize, const N: usize>(
        self,
        bucket: &[u8; N],
        value: u32,
        ignored: u32,
    ) -> u64 {
        Neon::ALWAYS.matches::<BYTES, N>(bucket, value, ignored)
    }

    #[inline(always)]
    fn marks<const BYTES: usize, const N: usize>(
        self,
        bucket: &[u8; N],
        value: u32,
        set: u32,
    ) -> u64 {
        Neon::ALWAYS.marks::<BYTES, N>(bucket, value, set)
    }

    #[inline(always)]
    fn eight_lines(self, lines: [&[u8; LINE]; 8], values: &[u16; 8]) -> ([bool; 8], u8) {
        Neon::ALWAYS.eight_lines(lines, values)
    }

    #[inline(always)]
    fn eight(self, bytes: &[u8], eight: &Eight, value: u32, set: u32) -> u64 {
        Neon::ALWAYS.eight(bytes, eight, value, set)
    }
}
