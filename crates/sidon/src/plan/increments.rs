//! Cells of variable increments: the value of a cell after `n` keys, and the rate of a filter of such
//! cells.
//!
//! A binomial number of keys uses a cell: `kn` tries of chance `1/m`. For each number of keys, the exact
//! distribution of its value is computed increment by increment, by the filter's own code and with its
//! ceilings. The increments that these values admit give the chance that a key never inserted passes in
//! one cell, and the rate is its `k`-th power.
//! Equations 1, 4 and 9 of Rottenstreich et al. are the cases in which the walk has a closed form.

use super::{bloom, lines::Lines};
use crate::{key::spread, set::increment_code::IncrementCode};

/// More keys in one cell than a table that is any use ever has.
const KEYS_MAX: usize = 96;
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
    pub(super) fn walk(code: &impl IncrementCode, values: usize) -> Self {
        let count = code.marks().len();
        let (mut chances, mut next) = (vec![0.0; values], vec![0.0; values]);
        let (mut met, mut out) = (vec![0], 0.0);
        chances[0] = 1.0;
        let mut cell = Cell { excludes: vec![], pinned: vec![], admits: vec![] };
        for _ in 0..KEYS_MAX {
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
        let none = vec![vec![0.0; KEYS_MAX]; draws + 1];
        let mut all = none.clone();
        all[0] = vec![1.0; KEYS_MAX];
        let mut passes: Vec<_> = (0..times).map(|_| vec![vec![0.0; KEYS_MAX]]).collect();
        for met in 1..=draws {
            let mut next = none.clone();
            for members in 0..KEYS_MAX {
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
            // The ways to choose the cells met, of all cells.
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

/// More cells than any target needs.
const CELLS_MAX: u64 = 1 << 56;

/// The least number of cells for some number of hashes, and that number, by [`Cell::equation`]. A rate
/// falls with cells.
pub(super) fn least_cells(fpr: f64, cell: &Cell, keys: f64) -> Option<(u64, u32)> {
    let of = |hashes| {
        let meets = |cells: u64| cell.equation(cells as f64, hashes, keys) <= fpr;
        (bloom::least(CELLS_MAX, meets), hashes)
    };
    (1..=spread::MAX).map(of).filter(|&(cells, _)| cells < CELLS_MAX).min()
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
    let most = (hashes + 2).min(spread::MAX);
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
        (bloom::least(CELLS_MAX, meets), hashes)
    };
    (1..=most).map(of).filter(|&(cells, _)| cells < CELLS_MAX).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::draws;
    use crate::{
        Infeasible,
        set::{Increments, Overflow, Spread, variable},
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
}
