//! Poisson probabilities, down to where a double ends.

/// `ln(n!)`, to twelve digits.
pub(super) fn ln_factorial(n: u64) -> f64 {
    if n < 32 {
        return (2..=n).map(|i| (i as f64).ln()).sum();
    }
    // Stirling's series; the next term is below 1e-13 from 32 on.
    let x = n as f64;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    x * x.ln() - x + 0.5 * (std::f64::consts::TAU * x).ln() + series
}

/// The chance of exactly `count` events where `mean` are expected; NaN if `mean` is NaN or negative.
pub(super) fn poisson(mean: f64, count: u64) -> f64 {
    if mean == 0.0 {
        return if count == 0 { 1.0 } else { 0.0 };
    }
    if mean == f64::INFINITY {
        return 0.0;
    }
    (count as f64 * mean.ln() - mean - ln_factorial(count)).exp()
}

/// The chance of `count` events or more where `mean` are expected. From a mean of 10^9 on, it is one
/// or zero: a standard deviation is then less than one part in 30,000 of the mean.
pub(super) fn poisson_at_least(mean: f64, count: u64) -> f64 {
    if count == 0 {
        return 1.0;
    }
    if mean > 1e9 {
        return f64::from(u8::from(count as f64 <= mean));
    }
    if (count as f64) <= mean {
        // The tail is the larger part: sum the smaller one. The terms left out add up to less than 1e-30.
        let from = (mean - 12.0 * mean.sqrt() - 40.0).max(0.0) as u64;
        return 1.0 - (from..count).map(|i| poisson(mean, i)).sum::<f64>();
    }
    // Each term is a smaller fraction of the one before: sum until it no longer matters.
    let mut term = poisson(mean, count);
    let mut sum = 0.0;
    let mut i = count;
    while term > sum * 1e-17 {
        sum += term;
        i += 1;
        term *= mean / i as f64;
    }
    sum
}

/// The mean of `f` over a Poisson number of events. From ten thousand on the number is within one
/// per cent of its own mean, and `f` is taken there.
pub(super) fn poisson_mean(mean: f64, f: impl Fn(u64) -> f64) -> f64 {
    if mean > 1e4 {
        return f(mean as u64);
    }
    // The chance of more than twelve standard deviations and 40 is below 1e-30.
    let reach = 12.0 * mean.sqrt() + 40.0;
    let from = (mean - reach).max(0.0) as u64;
    let to = (mean + reach) as u64;
    (from..=to).map(|count| poisson(mean, count) * f(count)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn factorials_agree_across_the_seam() {
        let exact = |n: u64| (2..=n).map(|i| (i as f64).ln()).sum::<f64>();
        for n in [0, 1, 2, 10, 31, 32, 33, 100, 1000] {
            assert!((ln_factorial(n) - exact(n)).abs() <= 1e-12 * exact(n).max(1.0), "{n}");
        }
    }

    #[test]
    fn tails_are_the_sums_of_their_terms() {
        for mean in [0.01, 0.7, 3.0, 25.0] {
            assert_close((0..200).map(|i| poisson(mean, i)).sum(), 1.0, 1e-12);
            for count in [0, 1, 2, 5, 20, 40] {
                let sum: f64 = (count..300).map(|i| poisson(mean, i)).sum();
                let tail = poisson_at_least(mean, count);
                assert!((tail - sum).abs() <= 1e-12 * sum.max(1e-3), "{mean} {count}");
            }
            assert_close(poisson_mean(mean, |count| count as f64), mean, 1e-12);
        }
        // Far out the first term is nearly all: 16 events where ln 2 are expected.
        assert_close(poisson_at_least(std::f64::consts::LN_2, 16), 7.0734e-17, 1e-4);
    }
}
