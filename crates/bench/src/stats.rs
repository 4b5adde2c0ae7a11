//! Several timings of one thing become three numbers.

/// The median of a few rounds, and how far they lay apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    /// The middle round, or the mean of the two middle ones.
    pub(crate) median: f64,
    /// The fastest round.
    pub(crate) least: f64,
    /// The slowest round.
    pub(crate) most: f64,
}

impl Summary {
    /// Of at least one round; of none, all three are not a number.
    pub(crate) fn of(rounds: &[f64]) -> Self {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let end = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        Summary { median: median(&sorted), least: end(sorted.first()), most: end(sorted.last()) }
    }
}

/// The middle of sorted numbers.
fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

/// How many times as fast as the peer we are: above 1 we are faster.
pub(crate) fn ratio(peer_ns: f64, our_ns: f64) -> f64 {
    peer_ns / our_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(Summary::of(&[3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(Summary::of(&[4.0, 1.0, 3.0, 2.0]).median, 2.5);
        assert_eq!(Summary::of(&[7.0]), Summary { median: 7.0, least: 7.0, most: 7.0 });
        assert!(Summary::of(&[]).median.is_nan());
    }

    #[test]
    fn one_slow_round_moves_the_spread_and_not_the_median() {
        let summary = Summary::of(&[10.0, 11.0, 900.0]);
        assert_eq!((summary.median, summary.least, summary.most), (11.0, 10.0, 900.0));
    }

    #[test]
    fn twice_the_time_is_half_the_speed() {
        assert_eq!(ratio(20.0, 10.0), 2.0);
        assert_eq!(ratio(10.0, 20.0), 0.5);
    }
}
