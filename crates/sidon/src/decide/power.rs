//! Powers, exponentials and logarithms whose bits are the same on every platform.
//!
//! The standard functions may differ in their last bit between platforms, and levels of tests are saved. These
//! use additions, multiplications and divisions only, which IEEE 754 defines to the bit.

use std::f64::consts::{LN_2, LOG2_E};

/// A positive number `mantissa * 2^exponent`, with the mantissa from 1 to 2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaled {
    mantissa: f64,
    exponent: i64,
}

impl Scaled {
    /// `base^count` for a positive normal `base`, by repeated squaring.
    pub(super) fn power(base: f64, count: u32) -> Self {
        let (mut square, mut left) = (Scaled { mantissa: base, exponent: 0 }.normal(), count);
        let mut product = Scaled { mantissa: 1.0, exponent: 0 };
        while left > 0 {
            if left & 1 == 1 {
                product = product.times(square);
            }
            left >>= 1;
            if left > 0 {
                square = square.times(square);
            }
        }
        product
    }

    /// The product. Exponents of powers stay below `2^43`, so their sums do not overflow.
    pub(super) fn times(self, other: Scaled) -> Self {
        let mantissa = self.mantissa * other.mantissa;
        Scaled { mantissa, exponent: self.exponent + other.exponent }.normal()
    }

    /// The number, or `2^-300` or `2^300` if it lies beyond.
    pub(super) fn value(self) -> f64 {
        self.mantissa * two_to(self.exponent.clamp(-300, 300))
    }

    fn normal(self) -> Self {
        let bits = self.mantissa.to_bits();
        let exponent = self.exponent + (bits >> 52) as i64 - 1023;
        Scaled { mantissa: f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52), exponent }
    }
}

/// `2^exponent`, from `2^-1022` to `2^1023`.
fn two_to(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// `e^x` to fifteen digits. Below -300 it is `e^-300`, above 300 it is `e^300`; NaN gives 0.
pub(super) fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return 0.0;
    }
    let x = x.clamp(-300.0, 300.0);
    let doublings = (x * LOG2_E).round();
    let rest = x - doublings * LN_2;
    // |rest| <= 0.35, so the 14th term is below 10^-17.
    let mut sum = 1.0;
    for i in (1..=14).rev() {
        sum = 1.0 + sum * rest / f64::from(i);
    }
    sum * two_to(doublings as i64)
}

/// `ln x` to fifteen digits, for a normal positive `x`.
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    // ln m = 2 artanh((m - 1) / (m + 1)); the argument is at most 1/3.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let mut sum = 0.0;
    for i in (0..18).rev() {
        sum = sum * ratio * ratio + 1.0 / f64::from(2 * i + 1);
    }
    2.0 * ratio * sum + exponent as f64 * LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_agree_with_the_standard_functions() {
        for i in -2_900..2_900 {
            let x = f64::from(i) / 10.0 + 0.037;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-13, "{x}");
        }
        for i in 1..10_000 {
            let x = f64::from(i) * 0.013;
            assert!((ln(x) - x.ln()).abs() <= 1e-14 * x.ln().abs().max(1.0), "{x}");
        }
        for (base, count) in [(1.5, 100), (0.99, 2_000), (20.0, 3), (0.3, 0), (7.0, 1)] {
            assert!(
                (Scaled::power(base, count).value() / base.powi(count as i32) - 1.0).abs() < 1e-12
            );
        }
    }

    #[test]
    fn results_stay_within_their_range() {
        let (up, down) = (Scaled::power(20.0, u32::MAX), Scaled::power(0.01, u32::MAX));
        assert!(up.value().is_finite() && down.value() > 0.0);
        assert!(up.times(down).value() < 2f64.powi(-298), "the smaller one decides");
        assert!(exp(f64::INFINITY).is_finite() && exp(f64::NEG_INFINITY) > 0.0);
        assert_eq!(exp(f64::NAN), 0.0);
    }
}
