//! Linear permutations of a fingerprint, `x -> a * x mod M`, and their inverses.
//!
//! `M = buckets * 2^r` need not be a power of two. `a` is coprime to `M`, which makes the map a
//! bijection, so a stored cell determines its fingerprint. The product is reduced without division:
//! with `q = floor(a * 2^64 / M)` precomputed, the upper half of `q * x` is at most one below the
//! quotient.

/// A multiplication modulo `M` with its inverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Permutation {
    modulus: u64,
    forward: Multiplier,
    backward: Multiplier,
}

/// A factor below the modulus, and its 64-bit fraction of the modulus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Multiplier {
    factor: u64,
    quotient: u64,
}

/// The largest modulus for which remainders are corrected in 64 bits without overflow.
pub(crate) const MODULUS_MAX: u64 = 1 << 63;

impl Permutation {
    /// The permutation by the smallest factor at or after `wish mod modulus` that is coprime to the
    /// modulus, continuing at 0 after the last. `None` unless `1 <= modulus <= MODULUS_MAX`.
    pub(crate) fn near(modulus: u64, wish: u64) -> Option<Self> {
        if modulus == 0 || modulus > MODULUS_MAX {
            return None;
        }
        let mut factor = wish % modulus;
        loop {
            if let Some(inverse) = inverse(factor, modulus) {
                let forward = Multiplier::new(factor, modulus);
                let backward = Multiplier::new(inverse, modulus);
                return Some(Permutation { modulus, forward, backward });
            }
            // One is coprime to every modulus, so this loop ends.
            factor = (factor + 1) % modulus;
        }
    }

    /// The value that `x` maps to. `x` must be below the modulus.
    #[inline(always)]
    pub(crate) fn apply(&self, x: u64) -> u64 {
        self.forward.times(x, self.modulus)
    }

    /// The value that maps to `y`. `y` must be below the modulus.
    #[inline(always)]
    pub(crate) fn invert(&self, y: u64) -> u64 {
        self.backward.times(y, self.modulus)
    }
}

impl Multiplier {
    fn new(factor: u64, modulus: u64) -> Self {
        let quotient = (u128::from(factor) << 64) / u128::from(modulus);
        Multiplier { factor, quotient: quotient as u64 }
    }

    #[inline(always)]
    fn times(self, x: u64, modulus: u64) -> u64 {
        debug_assert!(x < modulus, "{x} is not below the modulus {modulus}");
        let quotient = ((u128::from(self.quotient) * u128::from(x)) >> 64) as u64;
        // The true remainder or one modulus more: below 2^64, so arithmetic modulo 2^64 is exact.
        let rest = self.factor.wrapping_mul(x).wrapping_sub(quotient.wrapping_mul(modulus));
        if rest >= modulus { rest - modulus } else { rest }
    }
}

/// The inverse of `x` modulo `modulus`, if they are coprime: Euclid's algorithm.
fn inverse(x: u64, modulus: u64) -> Option<u64> {
    if modulus == 1 {
        return Some(0);
    }
    let (mut r0, mut r1) = (i128::from(modulus), i128::from(x));
    let (mut t0, mut t1) = (0i128, 1i128);
    while r1 != 0 {
        let quotient = r0 / r1;
        (r0, r1) = (r1, r0 - quotient * r1);
        (t0, t1) = (t1, t0 - quotient * t1);
    }
    (r0 == 1).then(|| t0.rem_euclid(i128::from(modulus)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_small_modulus_and_factor_is_a_bijection_with_its_inverse() {
        for modulus in 1..=192 {
            for wish in 0..modulus {
                let permutation = Permutation::near(modulus, wish).unwrap();
                let mut seen = vec![false; modulus as usize];
                for x in 0..modulus {
                    let y = permutation.apply(x);
                    assert_eq!(u128::from(y), {
                        let factor = u128::from(permutation.forward.factor);
                        factor * u128::from(x) % u128::from(modulus)
                    });
                    assert!(!std::mem::replace(&mut seen[y as usize], true), "{y} comes twice");
                    assert_eq!(permutation.invert(y), x);
                }
            }
        }
    }

    #[test]
    fn the_factor_is_the_first_coprime_one_from_the_wish_on() {
        assert_eq!(Permutation::near(12, 8).unwrap().forward.factor, 11);
        assert_eq!(Permutation::near(12, 7).unwrap().forward.factor, 7);
        assert_eq!(Permutation::near(6, 6 + 2).unwrap().forward.factor, 5);
        assert_eq!(Permutation::near(0, 1), None);
        assert_eq!(Permutation::near(MODULUS_MAX + 1, 1), None);
    }

    proptest! {
        #[test]
        fn large_moduli_are_undone(
            buckets in 1u64..1 << 40,
            bits in 0u32..23,
            wish: u64,
            xs in prop::collection::vec(any::<u64>(), 32),
        ) {
            let modulus = buckets << bits;
            let permutation = Permutation::near(modulus, wish).unwrap();
            for x in xs.into_iter().map(|x| x % modulus).chain([0, modulus - 1]) {
                let y = permutation.apply(x);
                let factor = u128::from(permutation.forward.factor);
                prop_assert_eq!(u128::from(y), factor * u128::from(x) % u128::from(modulus));
                prop_assert_eq!(permutation.invert(y), x);
            }
        }

        #[test]
        fn the_largest_modulus_is_exact(wish: u64, x in 0..MODULUS_MAX) {
            let permutation = Permutation::near(MODULUS_MAX, wish).unwrap();
            let y = permutation.apply(x);
            prop_assert_eq!(y, permutation.forward.factor.wrapping_mul(x) % MODULUS_MAX);
            prop_assert_eq!(permutation.invert(y), x);
        }
    }
}
