//! A further layer of a [`Multilayer`](super::Multilayer): an exact map from the position of a
//! counter to its part above the ceilings of the layers before.
//!
//! ```text
//! position --------> bucket, tag      in the left half     | tag rest | tag rest | ... | 8 cells
//! position * a mod m -> bucket, tag   in the right half    | tag rest | tag rest | ... |
//! ```
//! A position has a bucket of eight cells in each half. It is stored in the emptier one, ties to
//! the left. Bucket and tag together determine the position, so lookups are exact: two counters are
//! never mistaken for each other. Only counters at their ceiling are looked up.

use super::increment_code;
use crate::{Infeasible, Refused, key::permute::Permutation, packed::Packed};

/// Cells per bucket.
pub(in crate::set) const BUCKET: u64 = 8;

/// An exact map from positions to small numbers, in fixed memory.
#[derive(Debug)]
pub(in crate::set) struct OverflowMap {
    pub(in crate::set) cells: Packed,
    positions: u64,
    /// Buckets per half.
    buckets: u64,
    right: Permutation,
    rest_bits: u32,
    used: u64,
}

/// The bits of a tag, which distinguishes the positions of one bucket. Zero is a free cell.
pub(crate) fn tag_bits(positions: u64, buckets: u64) -> u32 {
    positions.max(1).div_ceil(buckets.max(1)).ilog2() + 1
}

impl OverflowMap {
    pub(in crate::set) fn new(
        positions: u64,
        buckets: u64,
        rest_bits: u32,
    ) -> Result<Self, Infeasible> {
        Infeasible::unless_within("buckets", buckets, 1, 1 << 48)?;
        Infeasible::unless_within("rest", rest_bits.into(), 1, increment_code::WIDTH_MAX.into())?;
        let wish = 0x9e37_79b9_7f4a_7c15 % positions.max(1);
        let right =
            Permutation::near(positions, wish).ok_or(Infeasible::Memory { bytes: u64::MAX })?;
        let cells = buckets * 2 * BUCKET;
        let cells = Packed::zeroed(cells, tag_bits(positions, buckets) + rest_bits)?;
        Ok(OverflowMap { cells, positions, buckets, right, rest_bits, used: 0 })
    }

    /// The bytes of a map of this size.
    pub(in crate::set) fn bytes(
        positions: u64,
        buckets: u64,
        rest_bits: u32,
    ) -> Result<u64, Infeasible> {
        let cells =
            buckets.checked_mul(2 * BUCKET).ok_or(Infeasible::Memory { bytes: u64::MAX })?;
        Packed::payload_bytes(cells, tag_bits(positions, buckets).saturating_add(rest_bits))
    }

    /// The number of positions stored.
    pub(in crate::set) fn used(&self) -> u64 {
        self.used
    }

    /// The first cell of the position's bucket in each half, and its tag there.
    #[inline(always)]
    fn homes(&self, position: u64) -> [(u64, u64); 2] {
        let right = self.right.apply(position);
        [
            (position % self.buckets * BUCKET, position / self.buckets + 1),
            ((self.buckets + right % self.buckets) * BUCKET, right / self.buckets + 1),
        ]
    }

    fn cell_of(&self, position: u64) -> Option<u64> {
        self.homes(position).into_iter().find_map(|(first, tag)| {
            (first..first + BUCKET).find(|&cell| self.cells.get(cell) >> self.rest_bits == tag)
        })
    }

    /// The number stored for the position.
    pub(in crate::set) fn get(&self, position: u64) -> Option<u64> {
        self.cell_of(position).map(|cell| self.cells.get(cell) & self.top())
    }

    /// The largest number that a position can have.
    pub(in crate::set) fn top(&self) -> u64 {
        (1 << self.rest_bits) - 1
    }

    /// How many positions have this number.
    pub(in crate::set) fn holding(&self, rest: u64) -> u64 {
        self.cells.iter().filter(|&cell| cell != 0 && cell & self.top() == rest).count() as u64
    }

    /// Stores a number for the position. On `Err`, nothing has changed.
    pub(in crate::set) fn set(&mut self, position: u64, rest: u64) -> Result<(), Refused> {
        let homes = self.homes(position);
        if let Some(cell) = self.cell_of(position) {
            let tag = self.cells.get(cell) >> self.rest_bits;
            return self.cells.set(cell, tag << self.rest_bits | rest);
        }
        let free = |first: u64| (first..first + BUCKET).filter(|&cell| self.cells.get(cell) == 0);
        let [left, right] = homes.map(|(first, _)| free(first).count());
        let (first, tag) = homes[usize::from(right > left)];
        let Some(cell) = free(first).next() else {
            return Err(Refused::Full { stored: self.used, cells: self.cells.cells() });
        };
        self.cells.set(cell, tag << self.rest_bits | rest)?;
        self.used += 1;
        Ok(())
    }

    /// Removes the position, if it is stored.
    pub(in crate::set) fn forget(&mut self, position: u64) {
        if let Some(cell) = self.cell_of(position) {
            let freed = self.cells.set(cell, 0);
            debug_assert!(freed.is_ok(), "zero fits every cell");
            self.used -= 1;
        }
    }

    pub(in crate::set) fn clear(&mut self) {
        self.cells.clear();
        self.used = 0;
    }

    /// Loads a payload. Returns `false` unless every cell in use is the only one of a position
    /// that `spills`.
    pub(in crate::set) fn load(&mut self, payload: &[u8], spills: impl Fn(u64) -> bool) -> bool {
        if !self.cells.load(payload) {
            return false;
        }
        self.used = self.cells.occupied();
        (0..self.cells.cells()).all(|cell| {
            let tag = self.cells.get(cell) >> self.rest_bits;
            if tag == 0 {
                return self.cells.get(cell) == 0;
            }
            let bucket = cell / BUCKET;
            let place = (tag - 1) * self.buckets + bucket % self.buckets;
            if place >= self.positions {
                return false;
            }
            let position = if bucket < self.buckets { place } else { self.right.invert(place) };
            self.cell_of(position) == Some(cell) && spills(position)
        })
    }

    pub(in crate::set) fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(OverflowMap { cells: self.cells.try_clone()?, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::Rng;
    use std::collections::HashMap;

    #[test]
    fn it_is_a_map_that_says_when_it_is_full() {
        let mut rng = Rng::seeded(5);
        for (positions, buckets) in [(1000, 9), (12_842, 40), (7, 1), (64, 200)] {
            let mut spill = OverflowMap::new(positions, buckets, 5).unwrap();
            let mut twin = HashMap::new();
            let (mut refused, mut kept) = (0, 0);
            for _ in 0..20_000 {
                let (position, rest) = (rng.below(positions), rng.below(32));
                if rng.chance(0.45) {
                    spill.forget(position);
                    twin.remove(&position);
                } else {
                    match spill.set(position, rest) {
                        Ok(()) => {
                            twin.insert(position, rest);
                            kept += 1;
                        }
                        Err(why) => {
                            assert!(
                                matches!(why, Refused::Full { .. })
                                    && !twin.contains_key(&position)
                            );
                            refused += 1;
                        }
                    }
                }
                assert_eq!(spill.get(position), twin.get(&position).copied());
                assert_eq!(spill.used(), twin.len() as u64);
            }
            assert!((0..positions).all(|p| spill.get(p) == twin.get(&p).copied()));
            assert!(kept > 1000 && (positions < 1000 || refused > 100), "{kept} {refused}");
            let mut again = OverflowMap::new(positions, buckets, 5).unwrap();
            assert!(again.load(spill.cells.payload(), |p| twin.contains_key(&p)));
            assert!(!twin.is_empty() && !again.load(spill.cells.payload(), |_| false));
        }
    }
}
