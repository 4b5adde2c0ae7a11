//! How full the buckets of a d-left table are, without a simulation.
//!
//! Let `y(i, j)` be the share of subtable `i`'s buckets that hold `j` keys or more, and let buckets
//! and keys grow together without end. A key then goes to a bucket of subtable `i` that holds
//! exactly `j - 1` if that bucket is the emptiest, ties to the left:
//! ```text
//!   subtables left of i     subtable i                   subtables right of i
//!   hold j or more          holds exactly j - 1          hold j - 1 or more
//!   y(0,j) .. y(i-1,j)  *  ( y(i,j-1) - y(i,j) )   *   y(i+1,j-1) .. y(d-1,j-1)
//! ```
//! `d` times that is the growth of `y(i, j)` while one key per bucket arrives. If a random key leaves
//! for each that arrives, buckets of exactly `j` lose one at the rate `j / load`. In the steady state
//! both rates are equal. That is an equation for each `y(i, j)` in terms of its neighbours, and
//! iteration solves it.
//!
//! Tails are doubly exponential: 1e-27 where eight cells are followed by a ninth. Every quantity
//! here is a sum and product of positive numbers, so such a tail is as exact as the rest. A steady
//! state costs some hundred rounds over `d * height` numbers, well under a millisecond; filling
//! costs sixteen thousand. Bonomi et al., ESA 2006, section 2.3; Mitzenmacher's thesis of 1996.

/// The shares of buckets by load, in the limit of many buckets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fluid {
    subtables: usize,
    /// `y(i, j)` at `j * subtables + i`, for `j` up to one above the height, where it is zero.
    shares: Vec<f64>,
}

/// Steps of the integration from an empty table to a full one.
const STEPS: u32 = 4096;
/// The most subtables and the largest height: more than any table has.
const SUBTABLES_MAX: u32 = 16;
const HEIGHT_MAX: u32 = 256;
/// The relative change that ends a search for the steady state.
const STILL: f64 = 1e-13;
/// Rounds after which a search ends in any case; a few hundred are usual.
const ROUNDS_MAX: u32 = 100_000;
/// Below this, products have lost digits to the end of the range of a double.
const FAINT: f64 = 1e-290;

impl Fluid {
    /// After `load` keys a bucket were inserted into an empty table, and none left. No bucket takes
    /// more than `height` keys. Computes at most 16 subtables and a height of 256.
    pub(super) fn insert_only(subtables: u32, load: f64, height: u32) -> Fluid {
        let mut fluid = Fluid::empty(subtables, height);
        let size = fluid.shares.len();
        let step = load.max(0.0) / f64::from(STEPS);
        // Runge and Kutta's four slopes.
        let [mut k1, mut k2, mut k3, mut k4] = std::array::from_fn(|_| vec![0.0; size]);
        let mut there = fluid.clone();
        for _ in 0..STEPS {
            fluid.slope(&mut k1);
            there.set_ahead(&fluid, step / 2.0, &k1);
            there.slope(&mut k2);
            there.set_ahead(&fluid, step / 2.0, &k2);
            there.slope(&mut k3);
            there.set_ahead(&fluid, step, &k3);
            there.slope(&mut k4);
            for (i, share) in fluid.shares.iter_mut().enumerate() {
                *share += step / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
            }
        }
        fluid
    }

    /// While `load` keys a bucket are stored, and random ones leave as new ones arrive, for long. No
    /// bucket takes more than `height` keys: with a height well above the load, none would. Computes
    /// at most 16 subtables and a height of 256.
    pub(super) fn steady(subtables: u32, load: f64, height: u32) -> Fluid {
        let mut fluid = Fluid::empty(subtables, height);
        if load <= 0.0 {
            return fluid;
        }
        let d = fluid.subtables;
        for j in 1..=fluid.height() {
            // The iteration converges from any start. This one is close.
            let share = 0.5f64.powf((j as f64 - load).max(0.0));
            fluid.shares[j * d..(j + 1) * d].fill(share);
        }
        for _ in 0..ROUNDS_MAX {
            let mut change = 0f64;
            for j in 1..=fluid.height() {
                for i in 0..d {
                    let arrive = d as f64 * fluid.others_are_fuller(i, j);
                    let leave = j as f64 / load;
                    let (below, above) = (fluid.share(i, j - 1), fluid.share(i, j + 1));
                    let share = (arrive * below + leave * above) / (arrive + leave);
                    if share > FAINT {
                        change = change.max((share - fluid.share(i, j)).abs() / share);
                    }
                    fluid.shares[j * d + i] = share;
                }
            }
            if change < STILL {
                break;
            }
        }
        fluid
    }

    /// The share of all buckets that hold `count` keys or more.
    pub(super) fn at_least(&self, count: u32) -> f64 {
        (0..self.subtables).map(|i| self.share(i, count as usize)).sum::<f64>()
            / self.subtables as f64
    }

    /// The shares by subtable, then by number of keys.
    pub(super) fn loads(&self) -> Vec<Vec<f64>> {
        let shares = |i| (0..self.height() + 2).map(|count| self.share(i, count)).collect();
        (0..self.subtables).map(shares).collect()
    }

    /// The chance that a key finds `capacity` keys or more in each of its buckets.
    pub(super) fn overflow_chance(&self, capacity: u32) -> f64 {
        (0..self.subtables).map(|i| self.share(i, capacity as usize)).product()
    }

    fn empty(subtables: u32, height: u32) -> Fluid {
        let subtables = subtables.clamp(1, SUBTABLES_MAX) as usize;
        let height = height.min(HEIGHT_MAX);
        let mut shares = vec![0.0; (height as usize + 2) * subtables];
        shares[..subtables].fill(1.0);
        Fluid { subtables, shares }
    }

    fn height(&self) -> usize {
        self.shares.len() / self.subtables - 2
    }

    fn share(&self, subtable: usize, count: usize) -> f64 {
        self.shares.get(count * self.subtables + subtable).copied().unwrap_or(0.0)
    }

    /// The chance that a key's other buckets leave it to one of subtable `i` that holds `j - 1`.
    fn others_are_fuller(&self, i: usize, j: usize) -> f64 {
        let d = self.subtables;
        let left: f64 = self.shares[j * d..j * d + i].iter().product();
        let right: f64 = self.shares[(j - 1) * d + i + 1..j * d].iter().product();
        left * right
    }

    /// What one key a bucket would add.
    fn slope(&self, slope: &mut [f64]) {
        let d = self.subtables;
        for j in 1..=self.height() {
            for i in 0..d {
                let exactly = self.share(i, j - 1) - self.share(i, j);
                slope[j * d + i] = d as f64 * exactly * self.others_are_fuller(i, j);
            }
        }
    }

    fn set_ahead(&mut self, from: &Fluid, step: f64, slope: &[f64]) {
        for ((share, from), slope) in self.shares.iter_mut().zip(&from.shares).zip(slope) {
            *share = from + step * slope;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    /// The keys that a bucket holds on average.
    fn load_of(fluid: &Fluid) -> f64 {
        fluid.shares[fluid.subtables..].iter().sum::<f64>() / fluid.subtables as f64
    }

    #[test]
    fn the_fluid_limit_of_table_1_of_002() {
        // 002.table1.fluid.ge1 to ge9: four subtables, six keys a bucket.
        let fluid = Fluid::steady(4, 6.0, 12);
        let printed = [
            0.999_996_949_966,
            0.999_923_749_467,
            0.999_045_442_894,
            0.992_029_321_931,
            0.950_466_343_857,
            0.766_866_604_572,
            0.289_399_880_149,
            0.002_271_707_163_4,
            1.680_777_707_91e-27,
        ];
        for (count, expected) in (1..).zip(printed) {
            assert_close(fluid.at_least(count), expected, 1e-9);
        }
        // 002.fluid.overload_per_table: buckets above eight in a table of 8192.
        assert_close(8192.0 * fluid.at_least(9), 1.376_893_098_32e-23, 1e-9);
        // 002.fluid.load6_5.ge9, and the insertions of a trial that overflow.
        assert_close(Fluid::steady(4, 6.5, 12).at_least(9), 2.204_826_475_23e-8, 1e-9);
        // 002.fluid.load6_5.expected_overflows, at the load of distinct fingerprints.
        let overflows = Fluid::steady(4, 6.494_845_353_07, 12).overflow_chance(8) * 2f64.powi(20);
        assert_close(overflows, 0.025_739_190_671_6, 1e-6);
    }

    #[test]
    fn tables_that_only_fill() {
        // 002.fluid.insert_only.d4_load6.
        let expected = [
            0.999_999_999_706,
            0.999_999_978_938,
            0.999_998_874_482,
            0.999_942_832_258,
            0.997_123_89,
            0.874_653_342_422,
            0.128_281_082_067,
            1.273_200_519e-10,
        ];
        let fluid = Fluid::insert_only(4, 6.0, 12);
        for (count, expected) in (1..).zip(expected) {
            assert_close(fluid.at_least(count), expected, 1e-7);
        }
        // 000.fcf.overflow and 000.fcf.steady_overflow: three subtables, six cells, load four.
        assert_close(Fluid::insert_only(3, 4.0, 9).at_least(7), 5.567_158_584_66e-31, 1e-6);
        assert_close(Fluid::steady(3, 4.0, 9).at_least(7), 8.913_506_328_48e-9, 1e-9);
    }

    #[test]
    #[cfg_attr(not(feature = "slow-tests"), ignore = "slow: --features slow-tests")]
    fn shares_fall_with_the_count_and_add_up_to_the_load() {
        for subtables in 2..=8 {
            for load in [0.01, 0.5, 1.0, 3.3, 6.0, 14.0, 29.0] {
                let height = load as u32 + 24;
                let steady = Fluid::steady(subtables, load, height);
                let filled = Fluid::insert_only(subtables, load, height);
                assert_close(load_of(&steady), load, 1e-9);
                assert_close(load_of(&filled), load, 1e-9);
                let loads = [steady, filled].map(|fluid| fluid.loads());
                for count in 0..=height as usize {
                    for i in 0..subtables as usize {
                        let [s, f] = loads.each_ref().map(|loads| {
                            let share = loads[i][count];
                            assert!(share >= loads[i][count + 1]);
                            // The left is preferred.
                            assert!(i == 0 || share <= loads[i - 1][count] + 1e-12);
                            share
                        });
                        // Leaving keys make gaps at random: more buckets are empty, and more full.
                        let above = count as f64 > load + 1.0;
                        assert!(!above || f <= s, "{subtables} {load} {count}: {f} {s}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_single_subtable_is_a_poisson_law() {
        // One choice, so no choice: keys fall at random, and leave at random.
        for load in [0.3, 2.0, 9.0] {
            for fluid in [Fluid::steady(1, load, 60), Fluid::insert_only(1, load, 60)] {
                for count in 0..30 {
                    let expected = crate::plan::tail::poisson_at_least(load, u64::from(count));
                    assert_close(fluid.at_least(count), expected, 1e-8);
                }
            }
        }
    }

    #[test]
    fn nothing_stored_is_nothing() {
        for fluid in [Fluid::steady(3, 0.0, 8), Fluid::insert_only(3, 0.0, 8)] {
            assert_eq!((fluid.at_least(0), fluid.at_least(1), load_of(&fluid)), (1.0, 0.0, 0.0));
            assert_eq!(fluid.overflow_chance(8), 0.0);
            assert_eq!(fluid.at_least(u32::MAX), 0.0);
        }
    }
}
