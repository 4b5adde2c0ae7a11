//! Ranks by Zipf's law: rank `k` comes `k^-s` as often as the first, as flow sizes do.

use crate::Rng;

/// Draws ranks `1..=ranks`, rank `k` with a probability in proportion to `k^-exponent`.
///
/// By rejection from the law's continuous hull: no table, and nearly one draw a rank. Hörmann and
/// Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
/// 1996.
#[derive(Debug, Clone, Copy)]
pub struct Zipf {
    ranks: f64,
    exponent: f64,
    from: f64,
    to: f64,
}

impl Zipf {
    /// The law over so many ranks, at least one, with an exponent above zero.
    pub fn new(ranks: u64, exponent: f64) -> Self {
        assert!(ranks > 0 && exponent > 0.0, "{ranks} ranks, exponent {exponent}");
        let mut law = Zipf { ranks: ranks as f64, exponent, from: 0.0, to: 0.0 };
        law.from = law.area(1.5) - 1.0;
        law.to = law.area(law.ranks + 0.5);
        law
    }

    /// The next rank.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let under = self.to + unit * (self.from - self.to);
            let rank = self.inverse(under).round().clamp(1.0, self.ranks);
            if under >= self.area(rank + 0.5) - rank.powf(-self.exponent) {
                return rank as u64;
            }
        }
    }

    /// The probability of a rank. Sums over all ranks.
    pub fn probability(&self, rank: u64) -> f64 {
        let sum: f64 = (1..=self.ranks as u64).map(|k| (k as f64).powf(-self.exponent)).sum();
        (rank as f64).powf(-self.exponent) / sum
    }

    /// The integral of `x^-exponent`.
    fn area(&self, x: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 { x.ln() } else { x.powf(rest) / rest }
    }

    fn inverse(&self, area: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 { area.exp() } else { (area * rest).powf(1.0 / rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_rate;

    #[test]
    fn ranks_come_as_often_as_the_law_says() {
        for exponent in [0.8, 1.0, 1.3] {
            let law = Zipf::new(1000, exponent);
            let mut rng = Rng::seeded(9);
            let n = 400_000;
            let mut counts = vec![0; 1001];
            for _ in 0..n {
                counts[law.draw(&mut rng) as usize] += 1;
            }
            for rank in [1, 2, 3, 10, 100, 1000] {
                assert_rate(counts[rank], n, law.probability(rank as u64));
            }
        }
    }
}
