//! Cells of variable increments, without sampling: what a cell says after so many keys, and what a
//! filter of such cells is worth.
//!
//! A cell meets a binomial number of keys, `kn` tries of chance `1/m`. Given how many, its value is
//! walked through exactly, increment by increment, as the filter's own code adds them, ceilings
//! included; what it then admits gives the chance that a stranger passes, to the power of `k`.
//! Equations 1, 4 and 9 of Rottenstreich et al. are the cases in which the walk has a closed form;
//! they are here too, and the tests compare them.

use super::{bloom, lines::Lines};
use crate::{
    hash::spread,
    member::{Increments, code::Code},
};

/// More keys in one cell than a table that is any use ever has.
const KEYS_MOST: usize = 96;
/// What a cell says after 0, 1, 2, .. keys.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    /// The chance that it excludes a stranger's increment; zero from some number of keys on.
    excludes: Vec<f64>,
    /// The chance that it is pinned, or would have left its range.
    pinned: Vec<f64>,
    /// The chance that it admits 0, 1, .. all of the increments.
    admits: Vec<Vec<f64>>,
}

impl Cell {
    /// Walks the `values` values of a code. A cell that leaves its range admits all increments.
    pub(super) fn walk(code: &impl Code, values: usize) -> Self {
        let count = code.marks().len();
        let (mut chances, mut next) = (vec![0.0; values], vec![0.0; values]);
        let (mut met, mut out) = (vec![0], 0.0);
        chances[0] = 1.0;
        let mut cell = Cell { excludes: vec![], pinned: vec![], admits: vec![] };
        for _ in 0..KEYS_MOST {
            let (mut admits, mut pinned) = (vec![0.0; count + 1], out);
            admits[count] = out;
            let mut raised = vec![];
            for value in met {
                let chance = std::mem::take(&mut chances[value as usize]);
                admits[code.admitted(value)] += chance;
                pinned += if code.is_pinned(value) { chance } else { 0.0 };
                let chance = chance / count as f64;
                for &mark in code.marks().iter().filter(|_| chance > 0.0) {
                    let Some(value) = code.raise(value, mark) else {
                        out += chance;
                        continue;
                    };
                    if next[value as usize] == 0.0 {
                        raised.push(value);
                    }
                    next[value as usize] += chance;
                }
            }
            let share = |(admitted, chance)| chance * (1.0 - admitted as f64 / count as f64);
            cell.excludes.push(admits.iter().enumerate().map(share).sum());
            cell.pinned.push(pinned);
            cell.admits.push(admits);
            std::mem::swap(&mut chances, &mut next);
            met = raised;
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
                return Cell { excludes, pinned: vec![], admits: vec![] };
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
        if bloom::is_small(cells, hashes) {
            return Line::new(self, hashes, 1).passes(cells, 1, keys);
        }
        self.equation(cells, hashes, keys)
    }

    /// The share of strangers that pass, by equations 1, 4 and 9. They assume that the draws of a
    /// stranger are independent. Each draw that passes makes it more likely that others do, but in a
    /// large table by very little.
    pub(super) fn equation(&self, cells: f64, hashes: u32, keys: f64) -> f64 {
        (1.0 - met(&self.excludes, cells, f64::from(hashes) * keys)).powi(hashes as i32)
    }

    /// The share of cells that are pinned.
    pub(super) fn overflow(&self, cells: f64, hashes: u32, keys: f64) -> f64 {
        met(&self.pinned, cells, f64::from(hashes) * keys)
    }

    /// The share of cells that are pinned, in a table of lines of `cells` cells each.
    pub(super) fn overflow_in_lines(&self, lines: Lines, cells: f64, each: u32) -> f64 {
        lines.mean_of(|draws| met(&self.pinned, cells, f64::from(each) * draws as f64))
    }

    /// By power and number of keys: the mean of that power of the share it admits.
    fn shares(&self, powers: usize) -> Vec<Vec<f64>> {
        let mean = |power: usize, admits: &Vec<f64>| {
            let all = (admits.len() - 1).max(1) as f64;
            let share = |(i, chance): (usize, &f64)| chance * (i as f64 / all).powi(power as i32);
            admits.iter().enumerate().map(share).sum()
        };
        (0..=powers)
            .map(|power| self.admits.iter().map(|admits| mean(power, admits)).collect())
            .collect()
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
/// Several draws may fall into one cell. The number of members' draws that fall into the cells of the
/// stranger is binomial. A table anywhere is a single line.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The chance that all draws pass, times the ways to meet `met` cells. Indexed by how many times
    /// the stranger draws the line, less one; by `met`; by the number of members' draws in those cells.
    passes: Vec<Vec<Vec<f64>>>,
    each: u32,
}

impl Line {
    /// A line of which a key draws `each` cells, up to `times` times.
    pub(super) fn new(cell: &Cell, each: u32, times: u32) -> Self {
        let draws = (each * times) as usize;
        let shares = cell.shares(draws);
        // `all[left][members]` is the chance that `left` draws meet exactly `met` cells and all pass,
        // times the ways to meet them.
        let none = vec![vec![0.0; KEYS_MOST]; draws + 1];
        let mut all = none.clone();
        all[0] = vec![1.0; KEYS_MOST];
        let mut passes: Vec<_> = (0..times).map(|_| vec![vec![0.0; KEYS_MOST]]).collect();
        for met in 1..=draws {
            let mut next = none.clone();
            for members in 0..KEYS_MOST {
                let split = binomial(members, 1.0 / met as f64);
                for here in 1..=draws - met + 1 {
                    let here_passes: Vec<f64> = split
                        .iter()
                        .zip(&shares[here])
                        .map(|(chance, share)| chance * share)
                        .collect();
                    // The first of the remaining draws opens a cell; some of the others join it.
                    for left in met - 1 + here..=draws {
                        let rest = all[left - here][..=members].iter().rev();
                        let sum: f64 =
                            here_passes.iter().zip(rest).map(|(here, rest)| here * rest).sum();
                        next[left][members] += choose(left - 1, here - 1) * sum;
                    }
                }
            }
            all = next;
            for (i, passes) in passes.iter_mut().enumerate() {
                passes.push(all[(i + 1) * each as usize].clone());
            }
        }
        Line { passes, each }
    }

    /// For a line of `cells` cells that the stranger draws `times` times and members `drawn` times.
    pub(super) fn passes(&self, cells: f64, times: u32, drawn: f64) -> f64 {
        let members = drawn * f64::from(self.each);
        let (mut sum, mut ways) = (0.0, 1.0);
        for (met, passes) in self.passes[times as usize - 1].iter().enumerate() {
            // The ways to name the cells met, over all there are to draw.
            let share = met as f64 / cells;
            let mean = if met as f64 >= cells {
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
                // Cells with more draws admit nearly everything. A remainder below 1e-9 is a rounding error.
                let beyond = if left > 1e-9 { left } else { 0.0 };
                mean + beyond * passes.last().copied().unwrap_or(0.0)
            };
            sum += ways * mean;
            ways *= (cells - met as f64).max(0.0);
        }
        (sum / cells.powi((times * self.each) as i32)).min(1.0)
    }

    /// The share of strangers that pass a table of lines of `cells` cells each.
    pub(super) fn rate(&self, lines: Lines, cells: f64) -> f64 {
        lines.rate(|times, drawn| self.passes(cells, times, drawn as f64))
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

/// More cells than any target needs.
const CELLS_MOST: u64 = 1 << 56;

/// The least number of cells for some number of hashes, and that number, by [`Cell::equation`]. A rate
/// falls with cells.
pub(super) fn least_cells(fpr: f64, cell: &Cell, keys: f64) -> Option<(u64, u32)> {
    let of = |hashes| {
        let meets = |cells: u64| cell.equation(cells as f64, hashes, keys) <= fpr;
        (bloom::least(CELLS_MOST, meets), hashes)
    };
    (1..=spread::MOST).map(of).filter(|&(cells, _)| cells < CELLS_MOST).min()
}

/// The least number of cells by [`Cell::rate`], given what [`least_cells`] found. A small table is best
/// with about as many hashes, or with fewer.
pub(super) fn exactly(
    fpr: f64,
    cell: &Cell,
    keys: f64,
    (cells, hashes): (u64, u32),
) -> Option<(u64, u32)> {
    if !bloom::is_small(cells as f64, hashes) {
        return Some((cells, hashes));
    }
    // One walk for all numbers of hashes: a line of which a key draws one cell as often.
    let most = (hashes + 2).min(spread::MOST);
    let line = Line::new(cell, 1, most);
    let of = |hashes| {
        let meets = |cells: u64| {
            let cells = cells as f64;
            let rate = if bloom::is_small(cells, hashes) {
                line.passes(cells, hashes, f64::from(hashes) * keys)
            } else {
                cell.equation(cells, hashes, keys)
            };
            rate <= fpr
        };
        (bloom::least(CELLS_MOST, meets), hashes)
    };
    (1..=most).map(of).filter(|&(cells, _)| cells < CELLS_MOST).min()
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
    // Cells of 65,536 keys or more are as good as full.
    let excludes: Vec<f64> = (0..=order.min(1 << 16)).map(|keys| other.powi(keys as i32)).collect();
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
/// section VI. `None` beyond 64 bits, and for more than 512 keys.
pub fn bh_detection(increments: Increments, keys: u32) -> Option<(u64, u64)> {
    if keys > 512 {
        return None;
    }
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
/// that tell them apart. No code that does takes fewer. `None` beyond 64 bits.
pub fn bh_floor(order: u32, count: u32) -> Option<(u64, u32)> {
    let (total, fewer) = (u64::from(order) + u64::from(count), u64::from(order.min(count)));
    let mut ways = 1u128;
    for i in 1..=fewer {
        // A product of `i` consecutive numbers is a multiple of `i!`.
        ways = ways * u128::from(total - fewer + i) / u128::from(i);
        if ways > 1 << 64 {
            return None;
        }
    }
    let bits = (ways - 1).checked_ilog2().map_or(0, |bits| bits + 1);
    Some((u64::try_from(ways).ok()?, bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::draws;
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
        Ok(Cell::walk(&shape.code()?, 1 << width))
    }

    #[test]
    fn equation_4_is_a_walk_through_sums() {
        for least in [2, 4, 8, 16] {
            let cell = variable(Increments::range(least).unwrap(), 10).unwrap();
            for (cells, hashes, keys) in [(4388, 5, 1024), (999, 3, 1024), (20, 1, 7)] {
                let walked = cell.equation(cells as f64, hashes, keys as f64);
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
        let basic = Cell::walk(&shape(Decode::Basic).code().unwrap(), 1 << 14);
        assert_close(basic.equation(2560.0, 5, 1024.0), bh_basic_rate(3, 4, 2560, 5, 1024), 1e-9);
        // And equation 9, with the detection function.
        let improved = Cell::walk(&shape(Decode::Improved(31)).code().unwrap(), 1 << 14);
        let excludes: Vec<f64> = (0..24)
            .map(|keys| {
                let (told, all) = bh_detection(Increments::of([1, 4, 13, 15]), keys).unwrap();
                told as f64 / all as f64 * 0.75f64.powi(keys as i32)
            })
            .collect();
        let rate = (1.0 - met(&excludes, 2560.0, 5.0 * 1024.0)).powi(5);
        assert_close(improved.equation(2560.0, 5, 1024.0), rate, 1e-9);
    }

    #[test]
    fn a_line_by_hand() {
        // One draw: as anywhere, in a table of 64 cells and a fixed number of keys.
        let cell = variable(Increments::of([8, 12, 14, 15]), 8).unwrap();
        let line = Line::new(&cell, 1, 1);
        assert_close(line.passes(64.0, 1, 40.0), 1.0 - met(&cell.excludes, 64.0, 40.0), 1e-9);
        // Two draws of one cell that must hold one key's two increments and their sum's.
        let unit = variable(Increments::UNIT, 4).unwrap();
        let line = Line::new(&unit, 2, 2);
        // One key with two draws of two cells: both met half of the time, else one.
        assert_close(line.passes(2.0, 1, 1.0), 0.5 + 0.5 * 0.25, 1e-12);
        // Four draws instead.
        assert_close(line.passes(2.0, 2, 1.0), 0.5 + 0.5 / 16.0, 1e-12);
        let line = Line::new(&unit, 4, 1);
        assert_eq!(line.passes(64.0, 1, 0.0), 0.0);
        assert_close(line.passes(64.0, 1, 1000.0), 1.0, 1e-9);
        // Where every counter is one bit, a line is a Bloom filter.
        let line = Line::new(&unit, 6, 2);
        for (cells, drawn) in [(64.0, 10.0), (300.0, 30.0)] {
            let bloom = draws::all_met_before(cells, 12, 6.0 * drawn);
            assert_close(line.passes(cells, 2, drawn), bloom, 1e-9);
        }
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
        assert_eq!(bh_floor(3, 4), Some((35, 6)));
        assert_eq!((bh_floor(0, 7), bh_floor(7, 0)), (Some((1, 0)), Some((1, 0))));
        // C(66, 33) is the largest in the middle that 64 bits hold; C(68, 34) is beyond.
        assert_eq!(bh_floor(33, 33), Some((7_219_428_434_016_265_740, 63)));
        for (order, count) in [(34, 34), (60, 60), (u32::MAX, u32::MAX), (u32::MAX, 3)] {
            assert_eq!(bh_floor(order, count), None);
        }
        assert_eq!(bh_floor(u32::MAX, 1), Some((1 << 32, 32)));
    }
}
