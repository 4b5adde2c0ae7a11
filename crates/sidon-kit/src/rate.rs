//! Rates that are held to six standard deviations.
//!
//! The seed makes a test repeatable; six sigma, two in a billion, make it hold for any other
//! seed. A failure is then a fault, and nobody shops for a lucky number.

/// The width of the gate, in standard deviations.
pub const SIGMAS: f64 = 6.0;

/// Trials that make a relative error of `tolerance` in a rate `p` six standard deviations wide.
pub fn trials(p: f64, tolerance: f64) -> usize {
    (SIGMAS * SIGMAS * (1.0 - p) / (p * tolerance * tolerance)).ceil() as usize
}

/// How many standard deviations `hits` of `n` lie from a binomial rate `p`.
pub fn sigmas(hits: usize, n: usize, p: f64) -> f64 {
    let (hits, n) = (hits as f64, n as f64);
    (hits - n * p) / (n * p * (1.0 - p)).sqrt()
}

/// Fails unless `hits` of `n` lie within six standard deviations of the rate `p`.
#[track_caller]
pub fn assert_rate(hits: usize, n: usize, p: f64) {
    assert!(p > 0.0 && p < 1.0 && n > 0, "a rate of {p} over {n} trials tests nothing");
    let distance = sigmas(hits, n, p);
    assert!(
        distance.abs() <= SIGMAS,
        "{hits} of {n} is a rate of {:.6e}, expected {p:.6e}: {distance:+.1} sigma away",
        hits as f64 / n as f64,
    );
}

/// Fails unless `got` is within the relative `tolerance` of `expected`.
#[track_caller]
pub fn assert_close(got: f64, expected: f64, tolerance: f64) {
    let off = (got - expected).abs() / expected.abs();
    assert!(off <= tolerance, "got {got:.9e}, expected {expected:.9e}: off by {off:.2e}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_tolerance_cannot_hide() {
        let n = trials(0.01, 0.10);
        let expected = (n as f64 * 0.01) as usize;
        assert_rate(expected, n, 0.01);
        for off in [0.79, 1.21] {
            let hits = (expected as f64 * off) as usize;
            assert!(std::panic::catch_unwind(|| assert_rate(hits, n, 0.01)).is_err());
        }
    }

    #[test]
    fn an_empty_test_fails() {
        assert!(std::panic::catch_unwind(|| assert_rate(0, 0, 0.5)).is_err());
        assert!(std::panic::catch_unwind(|| assert_rate(0, 10, 0.0)).is_err());
    }
}
