//! Estimates beyond the zone that err less than the smallest counter, and stay exact inside it.

use super::Sketch;
use crate::{
    Refused,
    count::{Solution, min, solve::System},
    zone::{code::Code, within},
};

impl<C: Code> Sketch<C> {
    /// The key's count without the bias of shared counters, as in
    /// [`Min::estimate_unbiased`](crate::count::Min::estimate_unbiased). Where estimates are exact,
    /// the exact count.
    ///
    /// `None` if counters are not sums, if no group has several counters, or for a number outside
    /// the universe.
    pub fn estimate_unbiased(&self, &key: &u64) -> Option<f64> {
        if key >= self.code.universe() {
            return None;
        }
        if self.is_exact() {
            return Some(self.value(key) as f64);
        }
        self.sums().ok()?;
        let mass = (0..self.code.start(1)).map(|cell| self.counter(cell)).sum::<u64>() as f64;
        // Of the other elements, this share has the same cell in a group of `size` cells. It is
        // exact if the groups divide the universe evenly.
        let others = (self.code.universe() - 1) as f64;
        let columns = |size: u64| others / ((others + 1.0) / size as f64 - 1.0).max(0.0);
        let split = self.code.split(key);
        let sizes = (0..self.code.groups())
            .map(|group| (group, self.code.start(group + 1) - self.code.start(group)));
        let values = sizes.filter(|&(_, size)| size > 1).map(|(group, size)| {
            let counter = self.counter(self.code.position(split, group));
            min::unbiased(counter, mass, columns(size))
        });
        min::median(&mut values.collect::<Vec<_>>())
    }

    /// The counts of distinct keys that fit the counters best, as
    /// [`count::solve`](crate::count::solve()) computes them for a plain sketch. Where estimates are
    /// exact, the exact counts.
    ///
    /// `keys` should be all keys that have a count, because the amounts of others are assigned to
    /// these. Refused with conservative update, and for a number outside the universe.
    ///
    /// ```
    /// use sidon::{count::Update, zone::{Ols, Sketch, ols::Shape}};
    ///
    /// let code = Ols::new(Shape { universe: 25, order: 5, groups: 4 })?;
    /// let mut packets = Sketch::new(code, 32, Update::Plain)?;
    /// let keys: Vec<u64> = (0..8).collect();
    /// for key in &keys {
    ///     packets.add(key, 10 + key)?;
    /// }
    /// // Eight keys are far beyond the zone of three.
    /// assert_eq!((packets.len(), packets.estimate(&7).value), (None, 29));
    /// let solution = packets.solve(&keys, 10_000)?;
    /// assert!((solution.counts[7] - 17.0).abs() < 0.01 && solution.residual < 1e-3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn solve(&self, keys: &[u64], sweeps: u32) -> Result<Solution, Refused> {
        self.sums()?;
        keys.iter().try_for_each(|&key| within(key, self.code.universe()))?;
        let mut counters: Vec<f64> = self.counters.iter().map(|counter| counter as f64).collect();
        let places = |key| self.code.positions(key).map(|cell| cell as usize);
        if self.is_exact() {
            // The counts are known: their counters do not have to be divided.
            for &key in keys {
                places(key).for_each(|place| counters[place] -= self.value(key) as f64);
            }
        }
        let mut system = System::of(counters);
        for &key in keys {
            let unknown = places(key).filter(|_| !self.is_exact());
            system.unknown(unknown, self.value(key) as f64);
        }
        Ok(system.solve(sweeps))
    }
}
