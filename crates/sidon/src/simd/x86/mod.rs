//! x86-64: the dispatcher, the prefetch, and the instruction sets [`Sse2`] and [`Avx2`].

mod avx2;
mod sse2;

pub(super) use avx2::Avx2;
pub(super) use sse2::Sse2;

use super::{Isa, Kernel};
use std::arch::x86_64::*;

/// The instruction set for single operations.
pub(crate) const BASE: Sse2 = Sse2::ALWAYS;

/// Runs the kernel with AVX2, if this processor has it.
#[inline]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    match Avx2::detect() {
        Some(isa) => isa.run(kernel),
        // Not inlined, so that its stack frame does not enlarge that of the other arm.
        None => Sse2::ALWAYS.apart(kernel),
    }
}

#[inline(always)]
pub(super) fn prefetch(bytes: &[u8], index: usize) {
    let address = bytes.as_ptr().wrapping_add(index);
    // SAFETY: a prefetch never faults, whatever the address; SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
}
