//! Chances of random draws of cells, with repetition: how many cells are distinct, and whether a second
//! series of draws finds only cells of the first.
//!
//! Where a chance is small, it is a sum of positive terms. So small rates keep their digits.

use crate::key::spread;
use std::sync::OnceLock;

/// The most cells that [`onto`] knows.
const CELLS: usize = spread::MAX as usize;
/// Draws below this number are in the table of [`onto`].
const DRAWS: usize = 256;

/// The chance that each of `draws` draws from `cells` cells finds a cell that one of `raised` earlier
/// draws found. This is the exact false-positive rate of a Bloom filter (Bose et al., 2008).
pub(super) fn all_met_before(cells: f64, draws: u32, raised: f64) -> f64 {
    let distinct = distinct(cells, draws);
    let met = |(d, chance): (usize, &f64)| chance * all_met(cells, d, raised);
    distinct.iter().enumerate().map(met).sum::<f64>().min(1.0)
}

/// The chances that `draws` cells drawn with repetition are 0, 1, .. distinct ones.
fn distinct(cells: f64, draws: u32) -> Vec<f64> {
    let mut distinct = vec![1.0];
    for _ in 0..draws {
        let mut next = vec![0.0; distinct.len() + 1];
        for (had, chance) in distinct.iter().enumerate() {
            let known = (had as f64 / cells).min(1.0);
            next[had] += chance * known;
            next[had + 1] += chance * (1.0 - known);
        }
        distinct = next;
    }
    distinct
}

/// The chance that `d` given cells of `cells` are all met by `raised` draws.
fn all_met(cells: f64, d: usize, raised: f64) -> f64 {
    let share = (d as f64 / cells).min(1.0);
    let missed = |i: usize| (raised * (-(i as f64 / cells).min(1.0)).ln_1p()).exp();
    if d > CELLS || d as f64 * missed(1) < 0.5 {
        // Inclusion and exclusion: each term is less than half of the one before.
        let (mut sum, mut choose) = (0.0, 1.0);
        for i in 0..=d {
            let term = if raised == 0.0 { choose } else { choose * missed(i) };
            sum += if i % 2 == 0 { term } else { -term };
            choose *= (d - i) as f64 / (i + 1) as f64;
        }
        return sum.clamp(0.0, 1.0);
    }
    if share >= 1.0 {
        return onto(raised as usize, d);
    }
    // By the number of draws that fall into the given cells.
    let odds = share / (1.0 - share);
    let mut chance = (raised * (-share).ln_1p()).exp();
    let mut sum = 0.0;
    for inside in 0..DRAWS {
        sum += chance * onto(inside, d);
        chance *= (raised - inside as f64).max(0.0) / (inside as f64 + 1.0) * odds;
    }
    sum.min(1.0)
}

/// The chance that `draws` draws from `cells` cells, at most [`CELLS`], meet all of them.
fn onto(draws: usize, cells: usize) -> f64 {
    static TABLE: OnceLock<Vec<[f64; CELLS + 1]>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table = vec![[0.0; CELLS + 1]; DRAWS];
        table[0][0] = 1.0;
        for draws in 1..DRAWS {
            let before = table[draws - 1];
            for cells in 1..=CELLS {
                // The last draw meets a cell for the first time, or all were met before it.
                let others = (1.0 - 1.0 / cells as f64).powi(draws as i32 - 1);
                table[draws][cells] = before[cells] + before[cells - 1] * others;
            }
        }
        table
    });
    table[draws.min(DRAWS - 1)][cells]
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::rate::assert_close;

    #[test]
    fn draws_by_hand() {
        // One draw of 128 cells, after 128: 1 - (127/128)^128.
        let one = 1.0 - (127.0f64 / 128.0).powi(128);
        assert_close(all_met_before(128.0, 1, 128.0), one, 1e-12);
        // Two draws of two cells after one: both must be that cell.
        assert_close(all_met_before(2.0, 2, 1.0), 0.25, 1e-12);
        assert_close(all_met_before(2.0, 2, 2.0), 0.25 * 0.5 + 0.5, 1e-12);
        assert_eq!(all_met_before(128.0, 3, 0.0), 0.0);
        assert_eq!(all_met_before(1.0, 3, 1.0), 1.0);
        // Three draws meet three cells in 3! of 27 ways.
        assert_close(onto(3, 3), 6.0 / 27.0, 1e-12);
    }

    #[test]
    fn both_sums_agree_where_they_meet() {
        for (cells, d) in [(128.0, 5), (1000.0, 12), (40.0, 30)] {
            // `d` times the chance to miss a cell is a half.
            let seam = (0.5f64 / d as f64).ln() / (-1.0f64 / cells).ln_1p();
            let [below, above] = [seam * 0.999_999, seam * 1.000_001].map(|n| all_met(cells, d, n));
            assert_close(below, above, 1e-4);
        }
    }
}
