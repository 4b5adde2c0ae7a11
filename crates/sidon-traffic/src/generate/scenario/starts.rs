//! When flows start: evenly, with exponential gaps, and in pulses.
//!
//! ```text
//! active time  |--x--x--x--|--x--x--x--|           the time of all pulses, without the pauses
//! time         |--x--x--x--|...........|--x--x--x--|...........|
//! ```
//! The next start is computed in active time from the one before, and then placed in its pulse.
//! Exponential gaps are drawn by von Neumann's method, which only compares integers, so that every
//! machine draws the same ones. The last start of them varies around `until`.

use sidon_kit::Rng;

/// The most units of a gap, and the most comparisons for one of its units. A larger gap has a chance
/// of 2^-92.
const LONGEST: u32 = 64;

/// The times at which flows start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starts {
    /// When the first flow starts and when the last one has started, in nanoseconds.
    pub time_ns: [u64; 2],
    /// Whether gaps are exponential; otherwise all are equal.
    pub random: bool,
    /// The length of a pulse, and nanoseconds from one to the next; `None` without pauses.
    pub pulses: Option<[u64; 2]>,
}

impl Starts {
    /// Even starts between two times.
    pub fn even(time_ns: [u64; 2]) -> Self {
        Starts { time_ns, random: false, pulses: None }
    }

    /// Nanoseconds in which flows may start.
    pub(super) fn active_ns(&self) -> u64 {
        let [from, until] = self.time_ns;
        let all = until.saturating_sub(from);
        match self.pulses {
            Some([on, every]) => all / every * on + on.min(all % every),
            None => all,
        }
    }

    /// The active time of the flow with this number, of `all`. The one before has active time `last`.
    pub(super) fn next_active_ns(&self, last: u64, number: u64, all: u64, rng: &mut Rng) -> u64 {
        let part = |of: u128| of * u128::from(self.active_ns()) / u128::from(all.max(1));
        match self.random {
            true => last.saturating_add((part(exponential(rng)) >> 64) as u64),
            false => part(number.into()) as u64,
        }
    }

    /// The time of a moment of active time.
    pub(super) fn time_ns(&self, active: u64) -> u64 {
        let passed = match self.pulses {
            Some([on, every]) => (active / on).saturating_mul(every).saturating_add(active % on),
            None => active,
        };
        self.time_ns[0].saturating_add(passed)
    }
}

/// An exponential variate of mean one, in units of 2^-64. Below [`LONGEST`] in any case.
fn exponential(rng: &mut Rng) -> u128 {
    for whole in 0..LONGEST - 1 {
        let first = rng.next_u64();
        // The length of the first run of falling numbers is odd with probability e^-first.
        let (mut last, mut length) = (first, 1);
        while length < LONGEST {
            let next = rng.next_u64();
            if next >= last {
                break;
            }
            (last, length) = (next, length + 1);
        }
        if length % 2 == 1 {
            return u128::from(whole) << 64 | u128::from(first);
        }
    }
    u128::from(LONGEST - 1) << 64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn exponential_gaps_have_the_mean_and_the_tail_of_their_law() {
        let mut rng = Rng::seeded(7);
        let n = 200_000;
        let one = 1u128 << 64;
        let (mut sum, mut beyond) = (0, [0usize; 3]);
        for _ in 0..n {
            let gap = exponential(&mut rng);
            sum += gap >> 32;
            for (more, count) in (1u128..).zip(&mut beyond) {
                *count += usize::from(gap > more * one);
            }
        }
        // The standard deviation of the mean of n exponential variates is 1 / sqrt(n).
        let mean = sum as f64 / (1u64 << 32) as f64 / f64::from(n);
        assert!((mean - 1.0).abs() < 6.0 / f64::from(n).sqrt(), "{mean}");
        for (more, count) in (1..).zip(beyond) {
            sidon_kit::assert_rate(count, n as usize, f64::exp(-f64::from(more)));
        }
    }

    #[test]
    fn pulses_start_flows_only_while_they_last() {
        let starts = Starts {
            time_ns: [5 * SECOND, 26 * SECOND],
            random: false,
            pulses: Some([2 * SECOND, 10 * SECOND]),
        };
        // Two whole periods, and the first second of a third.
        assert_eq!(starts.active_ns(), 5 * SECOND);
        let mut rng = Rng::seeded(1);
        let mut each = [0; 3];
        for number in 0..500 {
            let active = starts.next_active_ns(0, number, 500, &mut rng);
            let passed = starts.time_ns(active) - 5 * SECOND;
            assert!(passed % (10 * SECOND) < 2 * SECOND, "{number}: {passed}");
            each[(passed / (10 * SECOND)) as usize] += 1;
        }
        assert_eq!(each, [200, 200, 100]);
    }

    #[test]
    fn the_largest_times_do_not_overflow() {
        let week = 604_800 * SECOND;
        for pulses in [None, Some([1, week]), Some([week, week])] {
            for random in [false, true] {
                let starts = Starts { time_ns: [week, 2 * week], random, pulses };
                let mut rng = Rng::seeded(2);
                let last = starts.active_ns();
                let next = starts.next_active_ns(last, (1 << 32) - 1, 1, &mut rng);
                assert!(starts.time_ns(next) >= week);
                assert!(starts.time_ns(u64::MAX) >= week);
            }
        }
    }
}
