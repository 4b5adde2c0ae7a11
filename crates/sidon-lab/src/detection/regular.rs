//! Scores of regular contact: [`Periods`] with its last twelve gaps beside RITA with all of them.
//!
//! RITA's score of timestamps has two parts here: one less the Bowley skew of the gaps, and one less
//! their median absolute deviation over 30 seconds. Its third part counts connections and says nothing about gaps.
//! <https://github.com/activecm/rita>, version 4.

use sidon::{Infeasible, Seed, count::Periods, plan};
use sidon_kit::Rng;

/// A kind of contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Every 60 seconds.
    Fixed,
    /// A pause of 60 seconds with 20 % jitter, and one contact in twenty lost.
    Jittered,
    /// NTP: polls every 64 to 1,024 seconds with small jitter. The interval doubles or halves at times.
    Ntp,
    /// Keep-alive packets after 75 seconds without data, and data now and then.
    KeepAlive,
    /// Gaps of a Poisson process with a mean of 60 seconds.
    Poisson,
    /// A person: bursts of short gaps, and long pauses.
    Browsing,
}

impl Kind {
    /// The kinds that have a period.
    pub const REGULAR: [Kind; 4] = [Kind::Fixed, Kind::Jittered, Kind::Ntp, Kind::KeepAlive];
    /// The kinds without.
    pub const RANDOM: [Kind; 2] = [Kind::Poisson, Kind::Browsing];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fixed => "fixed period",
            Kind::Jittered => "20 % jitter",
            Kind::Ntp => "NTP",
            Kind::KeepAlive => "keep-alive",
            Kind::Poisson => "random (Poisson)",
            Kind::Browsing => "browsing",
        }
    }

    /// The times of `contacts` contacts in seconds.
    fn times(self, contacts: usize, rng: &mut Rng) -> Vec<f64> {
        let mut now = uniform(rng) * 1e4;
        let mut interval = 64.0 * 2f64.powi(rng.below(3) as i32);
        let mut times = Vec::with_capacity(contacts);
        while times.len() < contacts {
            times.push(now);
            now += match self {
                Kind::Fixed => 60.0,
                Kind::Jittered => {
                    let lost = if rng.below(20) == 0 { 60.0 } else { 0.0 };
                    60.0 * (0.8 + 0.4 * uniform(rng)) + lost
                }
                Kind::Ntp => {
                    if rng.below(20) == 0 {
                        let factor = if rng.below(2) == 0 { 2.0 } else { 0.5 };
                        interval = f64::clamp(interval * factor, 64.0, 1_024.0);
                    }
                    interval + 3.0 * (uniform(rng) - 0.5)
                }
                Kind::KeepAlive if rng.below(5) == 0 => 5.0 + 70.0 * uniform(rng),
                Kind::KeepAlive => 75.0 + 0.1 * uniform(rng),
                Kind::Poisson => 1.0 - 60.0 * uniform(rng).ln(),
                Kind::Browsing if rng.below(6) == 0 => -900.0 * uniform(rng).ln(),
                Kind::Browsing => 1.0 - 8.0 * uniform(rng).ln(),
            };
        }
        times
    }
}

/// A number above 0 and below 1.
fn uniform(rng: &mut Rng) -> f64 {
    (rng.below(1 << 52) as f64 + 0.5) / (1u64 << 52) as f64
}

/// The scores of `pairs` pairs of a kind after `contacts` contacts: of the library, and of RITA.
pub fn scores(kind: Kind, pairs: u64, contacts: usize) -> Result<[Vec<f64>; 2], Infeasible> {
    let mut table: Periods<u64> = Periods::new(plan::periods::shape(pairs)?, Seed(1))?;
    let mut rng = Rng::seeded(100 + kind as u64);
    let mut rita = Vec::new();
    for pair in 0..pairs {
        let times = kind.times(contacts, &mut rng);
        for time in &times {
            // A planned table has an entry for every pair.
            table.see(&pair, (time * 1e9) as u64);
        }
        rita.push(rita_score(&times));
    }
    let score = |pair| table.get(&pair).map_or(0.0, |found| found.score);
    Ok([(0..pairs).map(score).collect(), rita])
}

/// RITA's score of ascending times in seconds, with exact quartiles.
pub fn rita_score(times: &[f64]) -> f64 {
    let sorted = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all
    };
    let gaps = sorted(times.windows(2).map(|pair| (pair[1] - pair[0]).round()).collect());
    if gaps.len() < 3 {
        return 0.0;
    }
    let at = |all: &[f64], share: f64| all[(share * all.len() as f64) as usize];
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| at(&gaps, share));
    let skew = if high - low < 1e-9 || middle == low || middle == high {
        0.0
    } else {
        (low + high - 2.0 * middle) / (high - low)
    };
    let distances = sorted(gaps.iter().map(|gap| (gap - middle).abs()).collect());
    let spread = (1.0 - at(&distances, 0.5) / 30.0).max(0.0);
    (1.0 - skew.abs() + spread) / 2.0
}

/// The points of a ROC curve: the share of random pairs and of regular pairs that reach each score.
pub fn roc(regular: &[f64], random: &[f64]) -> Vec<(f64, f64)> {
    let mut scores: Vec<f64> = regular.iter().chain(random).copied().collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    scores.dedup();
    let share = |all: &[f64], least: f64| {
        all.iter().filter(|&&score| score >= least).count() as f64 / all.len() as f64
    };
    let mut points = vec![(0.0, 0.0)];
    points.extend(scores.into_iter().map(|least| (share(random, least), share(regular, least))));
    points
}

/// The area under a ROC curve: the chance that a regular pair scores higher than a random one.
pub fn area(points: &[(f64, f64)]) -> f64 {
    points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_pairs_score_higher_than_random_ones() {
        for random in Kind::RANDOM {
            let [low, _] = scores(random, 300, 20).unwrap();
            for regular in Kind::REGULAR {
                let [high, _] = scores(regular, 300, 20).unwrap();
                let area = area(&roc(&high, &low));
                assert!(area > 0.97, "{} beside {}: {area}", regular.name(), random.name());
            }
        }
    }

    #[test]
    fn the_area_is_the_chance_to_score_higher() {
        let curve = roc(&[0.9, 0.8, 0.4], &[0.5, 0.1]);
        assert!((area(&curve) - 5.0 / 6.0).abs() < 1e-12);
        assert!((area(&roc(&[0.5; 4], &[0.5; 9])) - 0.5).abs() < 1e-12);
        assert_eq!(rita_score(&[0.0, 60.0, 120.0, 180.0, 240.0]), 1.0);
    }
}
