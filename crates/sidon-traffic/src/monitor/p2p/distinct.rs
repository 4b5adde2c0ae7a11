//! Counters of distinct peers and ports: exact while few, then estimated with an interval.

use crate::{
    Figure,
    flow_map::EXACT,
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::Malformed;
use std::{collections::HashSet, fmt};

/// A counter of distinct values, exact or approximate.
pub trait Distinct: Default + Clone + fmt::Debug {
    /// Adds the value with this hash.
    fn see(&mut self, hash: u32);

    /// A lower bound on the number of distinct values.
    fn least(&self) -> u64;

    /// The number of distinct values.
    fn figure(&self) -> Figure;
}

/// Values that [`Few`] stores. A reason with this many peers decides that a host is listed, so the
/// count is exact wherever one peer more or less matters.
const VALUES: usize = 21;
/// Bytes of a stored value, and of all of them.
const WIDTH: usize = 3;
const BYTES: usize = VALUES * WIDTH;
/// Bits of the same bytes.
const BITS: u64 = 8 * BYTES as u64;
/// The last byte of a counter that no longer stores values.
const MANY: u8 = u8::MAX;
/// The half width of a 95% interval, in standard errors.
const SIGMAS: f64 = 2.0;
/// Empty bits below which the number has no upper bound. At eight, it is about 2,000.
const SATURATED: u64 = 8;

/// A counter in 64 bytes: the first 21 distinct values, in 24 bits of their hashes each. Two of 21
/// values are mistaken for one with probability 1 in 80,000.
///
/// The 22nd value turns the same bytes into a linear counter of 504 bits: each value sets the bit
/// that its hash selects. The estimate is `504 ln(504 / empty)`, with a standard error of 4% at 500
/// values and 8% at 2,000. Whang et al., "A linear-time probabilistic counting algorithm", 1990.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Few {
    bytes: [u8; BYTES],
    /// The number of stored values, or [`MANY`].
    used: u8,
}

impl Default for Few {
    fn default() -> Self {
        Few { bytes: [0; BYTES], used: 0 }
    }
}

impl Few {
    fn set(&mut self, value: [u8; WIDTH]) {
        let [high, middle, low] = value.map(u64::from);
        let bit = ((high << 16 | middle << 8 | low) * BITS) >> 24;
        self.bytes[(bit / 8) as usize] |= 1 << (bit % 8);
    }

    fn ones(&self) -> u64 {
        let words = self.bytes.chunks(8).map(|chunk| {
            chunk.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte)).count_ones()
        });
        words.map(u64::from).sum()
    }
}

impl Resume for Few {
    fn save(&self, out: &mut Out) {
        out.raw(&self.bytes);
        out.raw(&[self.used]);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.bytes = bytes.array()?;
        [self.used] = bytes.array()?;
        let used = usize::from(self.used) * WIDTH;
        let rest = self.bytes.get(used..).unwrap_or(&[MANY]);
        bytes.check("distinct", self.used == MANY || rest.iter().all(|&byte| byte == 0))
    }
}

impl Distinct for Few {
    fn see(&mut self, hash: u32) {
        let [value @ .., _] = hash.to_be_bytes();
        if self.used == MANY {
            return self.set(value);
        }
        let used = usize::from(self.used);
        if self.bytes.chunks_exact(WIDTH).take(used).any(|known| known == value) {
            return;
        }
        if used < VALUES {
            self.bytes[used * WIDTH..][..WIDTH].copy_from_slice(&value);
            self.used += 1;
            return;
        }
        let known = std::mem::replace(&mut self.bytes, [0; BYTES]);
        self.used = MANY;
        known.as_chunks().0.iter().for_each(|known| self.set(*known));
        self.set(value);
    }

    fn least(&self) -> u64 {
        match self.used {
            MANY => self.ones().max(VALUES as u64 + 1),
            used => used.into(),
        }
    }

    fn figure(&self) -> Figure {
        if self.used != MANY {
            let used = u64::from(self.used);
            let pairs = (used * used.saturating_sub(1) / 2) as f64;
            let is_exact = pairs < EXACT * f64::from(1u32 << (8 * WIDTH));
            return if is_exact { Figure::exact(used) } else { Figure::estimate(used, used, used) };
        }
        let (bits, empty) = (BITS as f64, BITS - self.ones());
        let load = (bits / empty.max(1) as f64).ln();
        let about = bits * load;
        let error = SIGMAS * (bits * (load.exp() - load - 1.0)).sqrt();
        let least = ((about - error) as u64).max(self.least());
        if empty < SATURATED {
            return Figure::at_least(least, None);
        }
        let value = (about.round() as u64).max(least);
        Figure::estimate(value, least, (about + error).ceil() as u64)
    }
}

/// A set of all hashes, in memory that grows.
#[derive(Debug, Clone, Default)]
pub struct All(HashSet<u32>);

impl Distinct for All {
    fn see(&mut self, hash: u32) {
        self.0.insert(hash);
    }

    fn least(&self) -> u64 {
        self.0.len() as u64
    }

    fn figure(&self) -> Figure {
        Figure::exact(self.least())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::{Key, Seed};

    fn counted(all: u64, seed: u64) -> Few {
        let mut few = Few::default();
        for number in (0..all).chain(0..all / 2) {
            few.see((number.digest(Seed(seed.into())).0 >> 32) as u32);
        }
        few
    }

    #[test]
    fn few_values_are_exact_and_many_are_within_their_interval() {
        const SEEDS: u64 = 1_000;
        for all in 0..=VALUES as u64 {
            // Two of six values share 24 bits for one seed in a million, two of 21 for one in 80,000.
            let expected =
                if all <= 6 { Figure::exact(all) } else { Figure::estimate(all, all, all) };
            let right = (0..SEEDS).filter(|&seed| counted(all, seed).figure() == expected);
            assert_eq!(right.count() as u64, SEEDS, "{all}");
        }
        // Six standard deviations below 95%: 950 - 6 * sqrt(1000 * 0.95 * 0.05) = 908.6.
        let least = SEEDS as f64 * 0.95 - 6.0 * (SEEDS as f64 * 0.95 * 0.05).sqrt();
        for (all, width) in
            [(22, 0.2), (30, 0.1), (60, 0.1), (200, 0.1), (567, 0.11), (1_500, 0.16)]
        {
            let (mut held, mut sum) = (0, 0.0);
            for seed in 0..SEEDS {
                let figure = counted(all, seed).figure();
                held += u64::from(figure.allows(all));
                sum += (figure.most().unwrap() - figure.least()) as f64 / all as f64 / 2.0;
            }
            assert!(held as f64 >= least, "{held} of {SEEDS} intervals hold {all}");
            assert!(sum / (SEEDS as f64) < width, "+-{} for {all}", sum / SEEDS as f64);
        }
        // Without an upper bound.
        for all in [4_000, 100_000] {
            let figure = counted(all, 1).figure();
            assert!(figure.most().is_none() && figure.allows(all) && figure.least() > 1_000);
        }
    }
}
