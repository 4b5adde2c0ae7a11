//! Counters of variable increments and pairs of counters: the equations of 004, and the searches.

use super::sequences;
use sidon::{
    Infeasible, plan,
    set::{Decode, Increments, Overflow, Spread, bh, variable},
};
use std::f64::consts::E;

/// The most hashes of a filter.
const HASHES_MAX: u32 = 32;
/// More keys in one cell than a useful table ever has.
const KEYS_MAX: usize = 96;

/// Two numbers of hashes and their shares of the keys, for a number that is no integer: the lower
/// one's share is the distance to the upper one.
pub fn two_hashes(hashes: f64) -> [(u32, f64); 2] {
    let (low, high) = (hashes.floor(), hashes.ceil());
    let share = if low == high { 1.0 } else { high - hashes };
    [(low as u32, share), (high as u32, 1.0 - share)]
}

/// Equation 1: the rate of pairs of counters that distinguish `count` increments of up to `order` keys.
/// No cell of more keys excludes any increment.
pub fn basic_rate(order: u32, count: u32, cells: u64, hashes: u32, keys: u64) -> f64 {
    let other = 1.0 - 1.0 / f64::from(count);
    // Cells of 65,536 keys or more are as good as full.
    let excludes: Vec<f64> = (0..=order.min(1 << 16)).map(|keys| other.powi(keys as i32)).collect();
    rate(&excludes, cells, hashes, keys)
}

/// Equation 4: the rate of counters whose increments are `least` to `2 * least - 1`.
pub fn range_rate(least: u32, counters: u64, hashes: u32, keys: u64) -> f64 {
    let l = f64::from(least);
    let excludes = [1.0, (l - 1.0) / l, (l - 1.0) * (l + 1.0) / (6.0 * l * l)];
    rate(&excludes, counters, hashes, keys)
}

/// Equation 9: the rate of pairs of counters with improved decoding.
pub fn improved_rate(increments: Increments, cells: u64, hashes: u32, keys: u64) -> f64 {
    rate(&pairs_exclude(increments, Decode::Improved(u32::MAX)), cells, hashes, keys)
}

/// The rate of cells that exclude an increment with the chance `excludes[j]` while they hold `j` keys.
/// Cells of more keys exclude none.
fn rate(excludes: &[f64], cells: u64, hashes: u32, keys: u64) -> f64 {
    let tries = f64::from(hashes) * keys as f64;
    (1.0 - mean(excludes, cells as f64, tries)).powi(hashes as i32)
}

/// The mean of `of[keys]` over the binomial number of keys of a cell; beyond its end, `of` is zero.
fn mean(of: &[f64], cells: f64, tries: f64) -> f64 {
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

/// The largest increment.
fn largest(increments: Increments) -> u32 {
    increments.values().last().map_or(0, |&value| value.into())
}

/// The chances that a counter without a ceiling excludes an increment, by its number of keys.
fn sums_exclude(increments: Increments) -> Vec<f64> {
    // Counters from 256 on exclude nothing with small increments, and little with large ones.
    const VALUES: usize = 256;
    let gaps = sequences::gaps(increments, VALUES as u32);
    let values = increments.values();
    let excluded: Vec<f64> = (0..VALUES)
        .map(|value| {
            let may = |&v: &u8| {
                let rest = value.checked_sub(v.into());
                rest.is_some_and(|rest| !gaps.contains(&(rest as u32)))
            };
            1.0 - values.iter().filter(|&v| may(v)).count() as f64 / values.len() as f64
        })
        .collect();
    let mut chances = vec![0.0; VALUES];
    chances[0] = 1.0;
    let mut excludes = vec![];
    loop {
        let all: f64 = chances.iter().zip(&excluded).map(|(chance, share)| chance * share).sum();
        excludes.push(all);
        if all < 1e-15 {
            return excludes;
        }
        (chances, _) = added(&chances, increments);
    }
}

/// The chances of the sums after one more increment, and the chance that the sum passes the end.
fn added(chances: &[f64], increments: Increments) -> (Vec<f64>, f64) {
    let values = increments.values();
    let (mut next, mut beyond) = (vec![0.0; chances.len()], 0.0);
    for (value, chance) in chances.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
        for &v in values {
            let sum = next.get_mut(value + usize::from(v)).unwrap_or(&mut beyond);
            *sum += chance / values.len() as f64;
        }
    }
    (next, beyond)
}

/// The chances that a pair of counters excludes an increment, by its number of keys.
fn pairs_exclude(increments: Increments, decode: Decode) -> Vec<f64> {
    let other = 1.0 - 1.0 / increments.values().len() as f64;
    let most = match decode {
        Decode::Basic => sequences::order(increments, 1 << 8),
        // Cells of more keys exclude next to nothing.
        Decode::Improved(keys) => keys.min(27),
    };
    let told = |keys| match detection(increments, keys) {
        Some((told, all)) => told as f64 / all as f64,
        None => 0.0,
    };
    (0..=most).map(|keys| other.powi(keys as i32) * told(keys)).collect()
}

fn best_hashes(excludes: &[f64], cells: u64, keys: u64) -> u32 {
    let rate = |hashes: &u32| rate(excludes, cells, *hashes, keys);
    (1..=HASHES_MAX).min_by(|a, b| rate(a).total_cmp(&rate(b))).unwrap_or(1)
}

/// The number of hashes with the least rate, for a filter of variable increments.
pub fn variable_best_hashes(increments: Increments, counters: u64, keys: u64) -> u32 {
    best_hashes(&sums_exclude(increments), counters, keys)
}

/// The number of hashes with the least rate, for pairs of counters.
pub fn pairs_best_hashes(increments: Increments, decode: Decode, cells: u64, keys: u64) -> u32 {
    best_hashes(&pairs_exclude(increments, decode), cells, keys)
}

/// The fewest counters with this rate, and their hashes.
fn least_cells(excludes: &[f64], keys: u64, false_positives: f64) -> (u64, u32) {
    let of = |hashes| {
        let meets = |cells| rate(excludes, cells, hashes, keys) <= false_positives;
        let (mut fails, mut holds) = (0, 1u64);
        while holds < 1 << 56 && !meets(holds) {
            (fails, holds) = (holds, holds * 2);
        }
        while holds - fails > 1 {
            let middle = fails + (holds - fails) / 2;
            if meets(middle) { holds = middle } else { fails = middle }
        }
        (holds, hashes)
    };
    (1..=HASHES_MAX).map(of).min().unwrap_or((1, 1))
}

/// The least number near `near` that meets a condition which all larger numbers meet.
fn least_near(
    near: u64,
    meets: impl Fn(u64) -> Result<bool, Infeasible>,
) -> Result<u64, Infeasible> {
    let mut least = near;
    while !meets(least)? {
        least += 1;
    }
    while least > 1 && meets(least - 1)? {
        least -= 1;
    }
    Ok(least)
}

/// The smallest table of these increments with this rate and at most `overflows` counters above their
/// ceiling, on average.
pub fn least_variable(
    increments: Increments,
    keys: u64,
    false_positives: f64,
    overflows: f64,
) -> Result<variable::Shape, Infeasible> {
    let (near, hashes) = least_cells(&sums_exclude(increments), keys, false_positives);
    let mut shape = table(near, hashes, largest(increments).ilog2() + 1, increments);
    while plan::variable::overflow(shape, keys)? > overflows {
        shape.width += 1;
    }
    let meets = |counters| {
        let rate = plan::variable::rate(variable::Shape { counters, ..shape }, keys)?;
        Ok(rate <= false_positives)
    };
    shape.counters = least_near(near, meets)?;
    Ok(shape)
}

/// The smallest table of these increments with this rate, with counters of four and eight bits.
pub fn least_pairs(
    increments: Increments,
    decode: Decode,
    keys: u64,
    false_positives: f64,
) -> Result<bh::Shape, Infeasible> {
    let (near, hashes) = least_cells(&pairs_exclude(increments, decode), keys, false_positives);
    let shape = bh::Shape {
        cells: near,
        hashes,
        keys_bits: 4,
        sum_bits: 8,
        increments,
        decode,
        centred: false,
        overflow: Overflow::Refuse,
        spread: Spread::Anywhere,
    };
    let meets = |cells| Ok(plan::bh::rate(bh::Shape { cells, ..shape }, keys)? <= false_positives);
    Ok(bh::Shape { cells: least_near(near, meets)?, ..shape })
}

fn table(counters: u64, hashes: u32, width: u32, increments: Increments) -> variable::Shape {
    let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
    variable::Shape { counters, hashes, width, increments, overflow, spread }
}

/// The chance that a given counter without a ceiling is at `level` or above while `keys` keys are
/// stored.
pub fn counter_at_least(shape: variable::Shape, keys: u64, level: usize) -> f64 {
    if level == 0 {
        return 1.0;
    }
    let mut chances = vec![0.0; level];
    chances[0] = 1.0;
    let mut reached = vec![0.0];
    for keys in 1..KEYS_MAX {
        let (next, beyond) = added(&chances, shape.increments);
        reached.push(reached[keys - 1] + beyond);
        chances = next;
    }
    mean(&reached, shape.counters as f64, f64::from(shape.hashes) * keys as f64)
}

/// The upper bound of theorem 3: a counter above its ceiling has at least `a` keys, the ceiling over the
/// largest increment, and at most `m (e k n / (a m))^a` counters have.
pub fn overflow_bound(shape: variable::Shape, keys: u64) -> f64 {
    let met = (1u32 << shape.width.min(31)).div_ceil(largest(shape.increments));
    let mean = f64::from(shape.hashes) * keys as f64 / shape.counters as f64;
    shape.counters as f64 * (E * mean / f64::from(met)).powi(met as i32)
}

/// The result of [`search`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The increments.
    pub increments: Increments,
    /// The bits of a counter.
    pub width: u32,
    /// The number of hashes.
    pub hashes: u32,
    /// The false-positive rate.
    pub false_positives: f64,
}

/// The best of all sets of `count` increments up to `most`, counter widths and numbers of hashes, for a
/// million keys at `bits_per_key` bits each. At most one table in a million has a counter above its
/// ceiling. The sets that [`plan::variable`] chooses from were found with it.
pub fn search(bits_per_key: f64, count: usize, most: u8) -> Result<Found, Infeasible> {
    const KEYS: u64 = 1_000_000;
    let mut best: Option<Found> = None;
    for least in 1..=most {
        for increments in sequences::search(count, least..=most, |_| true) {
            // If all values share a divisor, a smaller set tells the same.
            if increments.values().iter().copied().fold(0, divisor) > 1 {
                continue;
            }
            let excludes = sums_exclude(increments);
            let narrow = largest(increments).ilog2() + 1;
            for width in narrow + 2..=narrow + 5 {
                let counters = (bits_per_key * KEYS as f64 / f64::from(width)) as u64;
                // Fewer hashes than are best overflow less.
                for hashes in 1..=best_hashes(&excludes, counters, KEYS) {
                    let false_positives = rate(&excludes, counters, hashes, KEYS);
                    if best.is_some_and(|best| best.false_positives <= false_positives) {
                        continue;
                    }
                    let shape = table(counters, hashes, width, increments);
                    if plan::variable::overflow(shape, KEYS)? <= 1e-6 {
                        best = Some(Found { increments, width, hashes, false_positives });
                    }
                }
            }
        }
    }
    best.ok_or(Infeasible::Memory { bytes: u64::MAX })
}

fn divisor(a: u8, b: u8) -> u8 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The ways in which `keys` keys can add increments other than a given one such that their sum rules it
/// out, and all such ways, over all given increments. Their ratio is the detection function of section
/// VI. `None` beyond 64 bits, and for more than 512 keys.
pub fn detection(increments: Increments, keys: u32) -> Option<(u64, u64)> {
    if keys > 512 {
        return None;
    }
    let fewer = keys.checked_sub(1).map(|fewer| sequences::sums_of(increments, fewer));
    let (mut told, mut all) = (0u64, 0u64);
    for &given in increments.values() {
        let mut ways = vec![1u64];
        for _ in 0..keys {
            let mut next = vec![0u64; ways.len() + largest(increments) as usize];
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
pub fn floor(order: u32, count: u32) -> Option<(u64, u32)> {
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
    use sidon_kit::rate::assert_close;

    const PAIRS: Increments = Increments::of([1, 4, 13, 15]);

    #[test]
    fn plans_of_variable_increments_follow_equation_4() {
        for least in [2, 4, 8, 16] {
            let values: Vec<u8> = (least as u8..2 * least as u8).collect();
            let increments = Increments::set(&values).unwrap();
            for (counters, hashes, keys) in [(4388, 5, 1024), (999, 3, 1024), (20, 1, 7)] {
                let planned =
                    plan::variable::rate(table(counters, hashes, 10, increments), keys).unwrap();
                assert_close(planned, range_rate(least, counters, hashes, keys), 1e-9);
                let walked = rate(&sums_exclude(increments), counters, hashes, keys);
                assert_close(planned, walked, 1e-9);
            }
        }
    }

    #[test]
    fn plans_of_pairs_follow_equations_1_and_9() {
        let planned = |decode| {
            let shape = bh::Shape {
                cells: 2560,
                hashes: 5,
                keys_bits: 5,
                sum_bits: 9,
                increments: PAIRS,
                decode,
                centred: false,
                overflow: Overflow::Pin,
                spread: Spread::Anywhere,
            };
            plan::bh::rate(shape, 1024).unwrap()
        };
        assert_close(planned(Decode::Basic), basic_rate(3, 4, 2560, 5, 1024), 1e-9);
        assert_close(planned(Decode::Improved(31)), improved_rate(PAIRS, 2560, 5, 1024), 1e-9);
        let basic = rate(&pairs_exclude(PAIRS, Decode::Basic), 2560, 5, 1024);
        assert_close(basic, basic_rate(3, 4, 2560, 5, 1024), 1e-12);
    }

    #[test]
    fn the_search_finds_the_sets_that_plans_choose_from() {
        for bits in [20.0, 30.0] {
            let found = search(bits, 3, 12).unwrap();
            assert_eq!((found.increments, found.width), (Increments::of([6, 7, 9]), 7));
        }
        // Four increments: as the paper found, at 30 bits a key.
        let found = search(30.0, 4, 15).unwrap();
        let paper = Increments::of([8, 12, 14, 15]);
        assert_eq!((found.increments, found.width, found.hashes), (paper, 8, 6));
        assert_close(found.false_positives, 3.9817e-3, 1e-4);
    }

    #[test]
    fn the_bound_of_theorem_3_is_above_the_truth() {
        let shape = table(12_842, 5, 7, Increments::of([4, 5, 6, 7]));
        let exact = plan::variable::overflow(shape, 2000).unwrap();
        assert!(exact > 0.0 && exact < overflow_bound(shape, 2000));
        assert_close(12_842.0 * counter_at_least(shape, 2000, 128), exact, 1e-6);
        assert_eq!(counter_at_least(shape, 2000, 0), 1.0);
    }

    #[test]
    fn shares_of_two_hashes_make_their_mean() {
        for hashes in [5.2, 1.0, 7.75] {
            let [(low, share), (high, rest)] = two_hashes(hashes);
            assert!(share >= 0.0 && rest >= 0.0 && (share + rest - 1.0).abs() < 1e-12);
            assert_close(f64::from(low) * share + f64::from(high) * rest, hashes, 1e-12);
        }
        assert_close(two_hashes(5.2)[0].1, 0.8, 1e-12);
    }

    #[test]
    fn multisets_beyond_64_bits_have_no_number() {
        assert_eq!(floor(3, 4), Some((35, 6)));
        assert_eq!((floor(0, 7), floor(7, 0)), (Some((1, 0)), Some((1, 0))));
        // C(66, 33) is the largest in the middle that 64 bits hold; C(68, 34) is beyond.
        assert_eq!(floor(33, 33), Some((7_219_428_434_016_265_740, 63)));
        for (order, count) in [(34, 34), (60, 60), (u32::MAX, u32::MAX), (u32::MAX, 3)] {
            assert_eq!(floor(order, count), None);
        }
        assert_eq!(floor(u32::MAX, 1), Some((1 << 32, 32)));
        assert_eq!(detection(PAIRS, 100), None);
        assert_eq!(detection(Increments::of([1]), u32::MAX), None);
        assert_eq!(basic_rate(u32::MAX, 4, 1, 40, u64::MAX), 1.0);
    }
}
