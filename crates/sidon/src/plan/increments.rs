//! Cells of variable increments, without sampling: what a cell says after so many keys, and what a
//! filter of such cells is worth.
//!
//! A cell meets a binomial number of keys, `kn` tries of chance `1/m`. Given how many, its value is
//! walked through exactly, increment by increment, as the filter's own code adds them, ceilings
//! included; what it then admits gives the chance that a stranger passes, to the power of `k`.
//! Equations 1, 4 and 9 of Rottenstreich et al. are the cases in which the walk has a closed form;
//! they are here too, and the tests compare them.

use super::{bloom, tail};
use crate::{
    hash::spread,
    member::{Increments, code::Code},
};

/// More keys in one cell than a table that is any use ever has.
const KEYS_MOST: usize = 96;
/// Draws of a stranger from one line, at the most.
pub(super) const DRAWS_MOST: usize = 16;

/// What a cell says after 0, 1, 2, .. keys.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    /// The chance that it excludes a stranger's increment; zero from some number of keys on.
    excludes: Vec<f64>,
    /// The chance that it is pinned.
    pinned: Vec<f64>,
    /// By power, up to [`DRAWS_MOST`]: the mean of that power of the share it admits.
    shares: Vec<Vec<f64>>,
}

impl Cell {
    /// Walks the values of a code that pins what it cannot hold.
    pub(super) fn walk(code: &impl Code, values: usize, powers: usize) -> Self {
        let share: Vec<f64> = (0..values as u64).map(|value| code.share(value)).collect();
        let count = code.marks().len() as f64;
        let mut chances = vec![0.0; values];
        chances[0] = 1.0;
        let mut cell = Cell { excludes: vec![], pinned: vec![], shares: vec![vec![]; powers + 1] };
        for _ in 0..KEYS_MOST {
            let mean = |f: &dyn Fn(usize) -> f64| -> f64 {
                let met = chances.iter().enumerate().filter(|(_, chance)| **chance > 0.0);
                met.map(|(value, chance)| chance * f(value)).sum()
            };
            cell.excludes.push(mean(&|value| 1.0 - share[value]));
            cell.pinned.push(mean(&|value| f64::from(code.is_pinned(value as u64))));
            for power in 0..=powers {
                cell.shares[power].push(mean(&|value| share[value].powi(power as i32)));
            }
            let mut next = vec![0.0; values];
            for (value, chance) in chances.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
                for &mark in code.marks() {
                    if let Some(raised) = code.raise(value as u64, mark) {
                        next[raised as usize] += chance / count;
                    }
                }
            }
            chances = next;
        }
        cell
    }

    /// The same of counters without a ceiling, and only as far as they exclude anything: what a
    /// search needs.
    pub(super) fn excluding(increments: Increments) -> Self {
        // Sums from 256 on are beyond all that small sets exclude; of large ones it loses
        // a little.
        const VALUES: usize = 256;
        let sums = increments.sums(VALUES);
        let values = increments.values();
        let share: Vec<f64> = (0..VALUES)
            .map(|value| {
                let rest = |&v: &u8| value.checked_sub(v.into()).is_some_and(|rest| sums[rest]);
                values.iter().filter(|&v| rest(v)).count() as f64 / values.len() as f64
            })
            .collect();
        let mut chances = vec![0.0; VALUES];
        chances[0] = 1.0;
        let mut excludes = vec![];
        loop {
            let excluded = chances.iter().zip(&share).map(|(chance, share)| chance * (1.0 - share));
            excludes.push(excluded.sum::<f64>());
            if excludes.last().is_none_or(|&excluded| excluded < 1e-15) {
                return Cell { excludes, pinned: vec![], shares: vec![] };
            }
            let mut next = vec![0.0; VALUES];
            for (value, chance) in chances.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
                for &v in values {
                    if let Some(place) = next.get_mut(value + usize::from(v)) {
                        *place += chance / values.len() as f64;
                    }
                }
            }
            chances = next;
        }
    }

    /// The share of strangers that pass a table of such cells, anywhere.
    pub(super) fn rate(&self, cells: f64, hashes: u32, keys: f64) -> f64 {
        (1.0 - met(&self.excludes, cells, f64::from(hashes) * keys)).powi(hashes as i32)
    }

    /// The share of cells that are pinned.
    pub(super) fn overflow(&self, cells: f64, hashes: u32, keys: f64) -> f64 {
        met(&self.pinned, cells, f64::from(hashes) * keys)
    }
}

/// The mean of `of[keys]` over the binomial number of keys that a cell meets in `tries`; beyond its
/// end it is zero.
pub(super) fn met(of: &[f64], cells: f64, tries: f64) -> f64 {
    if cells <= 1.0 {
        return of.get(tries as usize).copied().unwrap_or(0.0);
    }
    let mut chance = (tries * (-1.0 / cells).ln_1p()).exp();
    let mut sum = 0.0;
    for (keys, value) in of.iter().enumerate() {
        sum += chance * value;
        chance *= (tries - keys as f64).max(0.0) / (keys as f64 + 1.0) / (cells - 1.0);
    }
    sum
}

/// The chance that all of a stranger's draws from one line pass, by the number of keys it has.
///
/// The draws fall into some of the line's cells, several into one now and then, and the members'
/// draws that fall into those same cells are a binomial number, spread evenly.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// By the number of cells that the stranger's draws meet, and the number of members' draws in
    /// them: the chance that all pass, times the ways to meet so many.
    passes: Vec<Vec<f64>>,
    cells: f64,
    each: u32,
}

impl Line {
    pub(super) fn new(cell: &Cell, cells: u64, each: u32) -> Self {
        let draws = each as usize;
        // `all[cells][left][members]`: that `left` draws meet exactly so many cells, as a number of
        // ways, and all pass.
        let none = vec![vec![0.0; KEYS_MOST]; draws + 1];
        let mut all = vec![none.clone(); draws + 1];
        all[0][0] = vec![1.0; KEYS_MOST];
        for met in 1..=draws {
            let split: Vec<Vec<f64>> =
                (0..KEYS_MOST).map(|members| binomial(members, 1.0 / met as f64)).collect();
            let mut next = none.clone();
            for left in met..=draws {
                // The first of the remaining draws opens a cell; some of the others join it.
                for here in 1..=left {
                    let ways = choose(left - 1, here - 1);
                    for members in 0..KEYS_MOST {
                        let mut sum = 0.0;
                        for (own, chance) in split[members].iter().enumerate() {
                            let rest = all[met - 1][left - here][members - own];
                            sum += chance * cell.shares[here][own] * rest;
                        }
                        next[left][members] += ways * sum;
                    }
                }
            }
            all[met] = next;
        }
        let passes = all.into_iter().map(|mut met| met.swap_remove(draws)).collect();
        Line { passes, cells: cells as f64, each }
    }

    /// For a line of so many keys.
    fn passes(&self, keys: u64) -> f64 {
        let members = keys as f64 * f64::from(self.each);
        let (mut sum, mut ways) = (0.0, 1.0);
        for (met, passes) in self.passes.iter().enumerate() {
            // The ways to name the cells met, over all there are to draw.
            let share = met as f64 / self.cells;
            let mean = if met as f64 >= self.cells {
                passes.get(members as usize).copied().unwrap_or(1.0)
            } else {
                let odds = share / (1.0 - share);
                let mut chance = (members * (-share).ln_1p()).exp();
                let (mut mean, mut left) = (0.0, 1.0);
                for (inside, passes) in passes.iter().enumerate() {
                    mean += chance * passes;
                    left -= chance;
                    chance *= (members - inside as f64).max(0.0) / (inside as f64 + 1.0) * odds;
                }
                // What lies beyond is as good as full.
                mean + left.max(0.0) * passes.last().copied().unwrap_or(0.0)
            };
            sum += ways * mean;
            ways *= self.cells - met as f64;
        }
        sum / self.cells.powi(self.each as i32)
    }

    /// The share of strangers that pass a table of `all` lines, `lines` a key.
    pub(super) fn rate(&self, all: f64, lines: u32, keys: f64) -> f64 {
        let mean = f64::from(lines) * keys / all;
        tail::poisson_mean(mean, |keys| self.passes(keys)).powi(lines as i32)
    }
}

fn binomial(tries: usize, chance: f64) -> Vec<f64> {
    (0..=tries)
        .map(|hits| {
            choose(tries, hits)
                * chance.powi(hits as i32)
                * (1.0 - chance).powi((tries - hits) as i32)
        })
        .collect()
}

fn choose(n: usize, k: usize) -> f64 {
    (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}

/// The integer number of hashes with the least rate.
pub(super) fn best_hashes(rate: impl Fn(u32) -> f64) -> u32 {
    (1..=spread::MOST).min_by(|&a, &b| rate(a).total_cmp(&rate(b))).unwrap_or(1)
}

/// The least number of cells for some number of hashes, and that number. A rate falls with cells.
pub(super) fn least_cells(fpr: f64, rate: impl Fn(u64, u32) -> f64) -> Option<(u64, u32)> {
    const MOST: u64 = 1 << 56;
    let of = |hashes| (bloom::least(MOST, |cells| rate(cells, hashes) <= fpr), hashes);
    (1..=spread::MOST).map(of).filter(|&(cells, _)| cells < MOST).min()
}

/// Two numbers of hashes and their shares of the keys, for a number that is no integer: the lower
/// one's share is the distance to the upper one.
pub fn two_hashes(hashes: f64) -> [(u32, f64); 2] {
    let (low, high) = (hashes.floor(), hashes.ceil());
    let share = if low == high { 1.0 } else { high - hashes };
    [(low as u32, share), (high as u32, 1.0 - share)]
}

/// Equation 1: the rate of pairs of counters where `count` increments are told apart for up to
/// `order` keys, and no cell of more excludes any.
pub fn bh_basic_rate(order: u32, count: u32, cells: u64, hashes: u32, keys: u64) -> f64 {
    let other = 1.0 - 1.0 / f64::from(count);
    let excludes: Vec<f64> = (0..=order).map(|keys| other.powi(keys as i32)).collect();
    let tries = f64::from(hashes) * keys as f64;
    (1.0 - met(&excludes, cells as f64, tries)).powi(hashes as i32)
}

/// Equation 4: the rate of counters whose increments are `least` to `2 * least - 1`.
pub fn variable_range_rate(least: u32, cells: u64, hashes: u32, keys: u64) -> f64 {
    let l = f64::from(least);
    let excludes = [1.0, (l - 1.0) / l, (l - 1.0) * (l + 1.0) / (6.0 * l * l)];
    let tries = f64::from(hashes) * keys as f64;
    (1.0 - met(&excludes, cells as f64, tries)).powi(hashes as i32)
}

/// Of all ways in which `keys` keys can add increments other than a given one, and of all given
/// ones, how many rule it out, and how many there are: their ratio is the detection function of
/// section VI. `None` beyond 64 bits.
pub fn bh_detection(increments: Increments, keys: u32) -> Option<(u64, u64)> {
    let fewer = keys.checked_sub(1).map(|fewer| increments.sums_of(fewer));
    let (mut told, mut all) = (0u64, 0u64);
    for &given in increments.values() {
        let mut ways = vec![1u64];
        for _ in 0..keys {
            let mut next = vec![0u64; ways.len() + increments.most() as usize];
            for (sum, &ways) in ways.iter().enumerate() {
                for &value in increments.values().iter().filter(|&&value| value != given) {
                    let place = &mut next[sum + usize::from(value)];
                    *place = place.checked_add(ways)?;
                }
            }
            ways = next;
        }
        for (sum, ways) in ways.into_iter().enumerate() {
            let rest = sum.checked_sub(given.into());
            let may = |fewer: &Vec<bool>| rest.and_then(|rest| fewer.get(rest)) == Some(&true);
            told = told.checked_add(if fewer.as_ref().is_some_and(may) { 0 } else { ways })?;
            all = all.checked_add(ways)?;
        }
    }
    Some((told, all))
}

/// Equation 10: how many multisets of up to `order` of `count` increments there are, and the bits
/// that tell them apart. No code that does takes fewer.
pub fn bh_floor(order: u32, count: u32) -> (u64, u32) {
    let ways = choose((order + count) as usize, order as usize).round() as u64;
    (ways, ways.next_power_of_two().ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Infeasible,
        member::{Decode, Overflow, Spread, bh, variable},
    };
    use sidon_kit::rate::assert_close;

    fn variable(increments: Increments, width: u32) -> Result<Cell, Infeasible> {
        let shape = variable::Shape {
            counters: 1,
            hashes: 1,
            width,
            increments,
            overflow: Overflow::Pin,
            spread: Spread::Anywhere,
        };
        Ok(Cell::walk(&shape.code()?, 1 << width, 8))
    }

    #[test]
    fn equation_4_is_a_walk_through_sums() {
        for least in [2, 4, 8, 16] {
            let cell = variable(Increments::range(least).unwrap(), 10).unwrap();
            for (cells, hashes, keys) in [(4388, 5, 1024), (999, 3, 1024), (20, 1, 7)] {
                let walked = cell.rate(cells as f64, hashes, keys as f64);
                assert_close(walked, variable_range_rate(least, cells, hashes, keys), 1e-9);
            }
        }
    }

    #[test]
    fn equation_1_is_a_walk_through_pairs() {
        let shape = |decode| bh::Shape {
            cells: 1,
            hashes: 1,
            keys_bits: 5,
            sum_bits: 9,
            increments: Increments::of([1, 4, 13, 15]),
            decode,
            centred: false,
            overflow: Overflow::Pin,
            spread: Spread::Anywhere,
        };
        let basic = Cell::walk(&shape(Decode::Basic).code().unwrap(), 1 << 14, 0);
        assert_close(basic.rate(2560.0, 5, 1024.0), bh_basic_rate(3, 4, 2560, 5, 1024), 1e-9);
        // And equation 9, with the detection function.
        let improved = Cell::walk(&shape(Decode::Improved(31)).code().unwrap(), 1 << 14, 0);
        let excludes: Vec<f64> = (0..24)
            .map(|keys| {
                let (told, all) = bh_detection(Increments::of([1, 4, 13, 15]), keys).unwrap();
                told as f64 / all as f64 * 0.75f64.powi(keys as i32)
            })
            .collect();
        let rate = (1.0 - met(&excludes, 2560.0, 5.0 * 1024.0)).powi(5);
        assert_close(improved.rate(2560.0, 5, 1024.0), rate, 1e-9);
    }

    #[test]
    fn a_line_by_hand() {
        // One draw: as anywhere, in a table of 64 cells and a fixed number of keys.
        let cell = variable(Increments::of([8, 12, 14, 15]), 8).unwrap();
        let line = Line::new(&cell, 64, 1);
        assert_close(line.passes(40), 1.0 - met(&cell.excludes, 64.0, 40.0), 1e-9);
        // Two draws of one cell that must hold one key's two increments and their sum's.
        let unit = variable(Increments::UNIT, 4).unwrap();
        let line = Line::new(&unit, 2, 2);
        // One key with two draws of two cells: both met half of the time, else one.
        assert_close(line.passes(1), 0.5 + 0.5 * 0.25, 1e-12);
        assert_eq!(Line::new(&unit, 64, 4).passes(0), 0.0);
        assert_close(Line::new(&unit, 64, 4).passes(1000), 1.0, 1e-9);
    }

    #[test]
    fn shares_of_two_hashes_make_their_mean() {
        for hashes in [5.2, 1.0, 7.75] {
            let [(low, share), (high, rest)] = two_hashes(hashes);
            assert!(share >= 0.0 && rest >= 0.0 && (share + rest - 1.0).abs() < 1e-12);
            assert_close(f64::from(low) * share + f64::from(high) * rest, hashes, 1e-12);
        }
        assert_close(two_hashes(5.2)[0].1, 0.8, 1e-12);
        assert_eq!(best_hashes(|k| (f64::from(k) - 6.0).powi(2)), 6);
        assert_eq!(bh_floor(3, 4), (35, 6));
    }
}
