//! Tables in lines: how many keys a line gets, and which lines of a key coincide.
//!
//! A key draws `L` of the table's `A` lines, with repetition. A non-member that draws a line twice
//! draws twice as many cells there, and must pass in all of them. That is more likely than passing in
//! two lines. In a small table the numbers of keys of two lines are not independent either: a key in
//! one line is missing in the other.

use super::tail;

/// Up to this many lines, the numbers of keys of several lines are walked through together. With
/// more lines, they are treated as independent Poisson numbers, and the rate is corrected.
const TOGETHER: u64 = 64;
/// From this mean number of keys on, lines are treated as independent: each differs little from the
/// mean.
const KEYS_TOGETHER: f64 = 300.0;
/// From this mean number of keys on, every line is treated as having the mean number.
const KEYS_MAX: f64 = 1e4;

/// A table: its lines, the lines of a key, and the keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines {
    pub(super) all: u64,
    pub(super) of_key: u32,
    pub(super) keys: u64,
}

impl Lines {
    /// The share of non-members that pass. `passes(times, draws)` is the chance to pass in a line that
    /// the non-member draws `times` times and that members drew `draws` times.
    pub(super) fn rate(self, passes: impl Fn(u32, u64) -> f64) -> f64 {
        if self.all == 0 || self.of_key == 0 {
            return 1.0;
        }
        let (from, to) = self.window();
        let by_times: Vec<Vec<f64>> = (1..=self.of_key)
            .map(|times| (from..=to).map(|draws| passes(times, draws)).collect())
            .collect();
        let of = |times: u32| &by_times[times as usize - 1];
        let together = self.all <= TOGETHER && (self.mean() <= KEYS_TOGETHER || self.all == 1);
        let mut means = Vec::new();
        if !together {
            let chances: Vec<f64> = (from..=to).map(|draws| self.chance(draws)).collect();
            means =
                (1..=self.of_key).map(|times| self.mean_and_slope(of(times), &chances)).collect();
        }
        let mut rate = 0.0;
        each_pattern(self.of_key, &mut vec![], &mut |pattern| {
            let chance = self.chance_of(pattern);
            if chance > 0.0 {
                rate += chance
                    * if together {
                        self.walk(pattern, from, to, &by_times)
                    } else {
                        self.apart(pattern, &means)
                    };
            }
        });
        rate.min(1.0)
    }

    /// The mean of the chance to pass in a line, and its logarithmic slope in the mean number of draws.
    fn mean_and_slope(self, passes: &[f64], chances: &[f64]) -> (f64, f64) {
        let (from, to) = self.window();
        let (mut mean, mut slope) = (0.0, 0.0);
        for ((draws, passes), chance) in (from..).zip(passes).zip(chances) {
            mean += passes * chance;
            slope += passes * chance * (draws as f64 / self.mean() - 1.0);
        }
        if from == to || mean <= 0.0 { (mean, 0.0) } else { (mean, slope / mean) }
    }

    /// The chance to pass in all lines of the pattern, if members draw each line a Poisson number of
    /// times. All draws of the members add up to a fixed number, not to a Poisson number: the second
    /// factor takes that variance out again, to first order.
    fn apart(self, pattern: &[u32], means: &[(f64, f64)]) -> f64 {
        let lines = pattern.iter().map(|&times| means[times as usize - 1]);
        let (product, slope) =
            lines.fold((1.0, 0.0), |(product, sum), (mean, slope)| (product * mean, sum + slope));
        product * (-0.5 * slope * slope * self.mean() / self.all as f64).exp()
    }

    /// The mean of `f` over the number of times that members draw a given line.
    pub(super) fn mean_of(self, f: impl Fn(u64) -> f64) -> f64 {
        if self.all == 0 {
            return f(0);
        }
        let (from, to) = self.window();
        (from..=to).map(|draws| self.chance(draws) * f(draws)).sum()
    }

    /// How often members draw a line, on average.
    fn mean(self) -> f64 {
        self.draws() / self.all as f64
    }

    /// How often members draw lines.
    fn draws(self) -> f64 {
        self.keys as f64 * f64::from(self.of_key)
    }

    /// The numbers of draws that a line gets with a chance worth naming.
    fn window(self) -> (u64, u64) {
        let mean = self.mean();
        if self.all == 1 || mean > KEYS_MAX {
            return (mean as u64, mean as u64);
        }
        // The chance to lie outside is below 1e-20.
        let reach = 10.0 * mean.sqrt() + 30.0;
        ((mean - reach).max(0.0) as u64, (mean + reach).min(self.draws()) as u64)
    }

    /// The chance that a given line is drawn `draws` times.
    fn chance(self, draws: u64) -> f64 {
        let (from, to) = self.window();
        if from == to {
            1.0
        } else if self.all <= TOGETHER {
            binomial(self.draws(), 1.0 / self.all as f64, draws)
        } else {
            tail::poisson(self.mean(), draws)
        }
    }

    /// The chance that a key draws `pattern.len()` distinct lines, each as many times as the pattern says.
    fn chance_of(self, pattern: &[u32]) -> f64 {
        let mut ways = tail::ln_factorial(self.of_key.into()).exp();
        for (i, &times) in pattern.iter().enumerate() {
            let equal = pattern[..=i].iter().filter(|&&other| other == times).count();
            ways /= tail::ln_factorial(times.into()).exp() * equal as f64;
        }
        let all = self.all as f64;
        let distinct: f64 = (0..pattern.len()).map(|i| (all - i as f64).max(0.0) / all).product();
        ways.round() * distinct / all.powi(self.of_key as i32 - pattern.len() as i32)
    }

    /// The chance to pass in all lines of the pattern. Each line gets a share of the members' draws that
    /// the lines before it did not get.
    fn walk(self, pattern: &[u32], from: u64, to: u64, by_times: &[Vec<f64>]) -> f64 {
        let mut passed = vec![1.0];
        for (i, &times) in (0..).zip(pattern) {
            let mut next = vec![0.0; passed.len() + to as usize];
            for (used, passed) in passed.iter().enumerate().filter(|(_, passed)| **passed > 0.0) {
                let left = self.draws() - used as f64;
                let share = 1.0 / (self.all - i) as f64;
                let mut chance = 0.0;
                for draws in from..=to.min(left as u64) {
                    chance = if share >= 1.0 {
                        f64::from(u8::from(draws as f64 == left))
                    } else if draws == from {
                        binomial(left, share, draws)
                    } else {
                        let before = draws as f64 - 1.0;
                        chance * (left - before) / draws as f64 * share / (1.0 - share)
                    };
                    let here = by_times[times as usize - 1][(draws - from) as usize];
                    next[used + draws as usize] += passed * chance * here;
                }
            }
            passed = next;
        }
        passed.iter().sum()
    }
}

/// The chance of `hits` hits in `tries` tries, of chance `share` each.
fn binomial(tries: f64, share: f64, hits: u64) -> f64 {
    if hits as f64 > tries {
        return 0.0;
    }
    let rest = tries as u64 - hits;
    let ways =
        tail::ln_factorial(tries as u64) - tail::ln_factorial(hits) - tail::ln_factorial(rest);
    (ways + hits as f64 * share.ln() + rest as f64 * (-share).ln_1p()).exp()
}

/// Every way to write `left` as a sum of numbers, none larger than the one before it.
fn each_pattern(left: u32, pattern: &mut Vec<u32>, f: &mut impl FnMut(&[u32])) {
    if left == 0 {
        return f(pattern);
    }
    let most = pattern.last().copied().unwrap_or(left).min(left);
    for next in 1..=most {
        pattern.push(next);
        each_pattern(left - next, pattern, f);
        pattern.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn every_way_of_lines_to_coincide_is_counted() {
        for (all, of_key) in [(1, 3), (2, 2), (3, 4), (7, 8), (300, 3), (1 << 40, 8)] {
            let lines = Lines { all, of_key, keys: 5 };
            assert_close(lines.rate(|_, _| 1.0), 1.0, 1e-9);
            assert_close(lines.mean_of(|_| 1.0), 1.0, 1e-9);
            let mut sum = 0.0;
            each_pattern(of_key, &mut vec![], &mut |pattern| sum += lines.chance_of(pattern));
            assert_close(sum, 1.0, 1e-12);
        }
        // Two draws of three lines: one in three coincides.
        let lines = Lines { all: 3, of_key: 2, keys: 5 };
        assert_close(lines.rate(|times, _| f64::from(times == 2)), 1.0 / 3.0, 1e-12);
    }

    #[test]
    fn two_lines_share_all_draws() {
        // One key, two draws of two lines. A non-member passes in a line that the key drew. With chance
        // 1/2 its lines coincide, and the key drew that line in three of four ways. Otherwise the key
        // must have drawn both lines: two of four ways.
        let lines = Lines { all: 2, of_key: 2, keys: 1 };
        let rate = lines.rate(|_, draws| f64::from(u8::from(draws > 0)));
        assert_close(rate, 0.5 * 0.75 + 0.5 * 0.5, 1e-12);
        // One line gets every draw.
        let lines = Lines { all: 1, of_key: 3, keys: 7 };
        assert_eq!(lines.rate(|times, draws| f64::from(times == 3 && draws == 21)), 1.0);
    }

    #[test]
    fn independent_lines_differ_little_from_lines_together() {
        let passes =
            |times: u32, draws: u64| (1.0 - (-(draws as f64) / 30.0).exp()).powi(4 * times as i32);
        for (of_key, keys) in [(2, 10), (3, 7), (8, 3)] {
            let rate = |all| Lines { all, of_key, keys: all * keys }.rate(passes);
            // One more line changes the rate, too: about as much as the line before did.
            let expected = rate(TOGETHER) * rate(TOGETHER) / rate(TOGETHER - 1);
            assert_close(rate(TOGETHER + 1), expected, 0.01);
        }
    }
}
