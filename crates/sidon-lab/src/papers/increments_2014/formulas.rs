//! Rates, sizes and overflow of 004, without sampling.

use super::{facts, sequences::all_b3};
use crate::{
    claim::Value,
    experiment::Experiment,
    formulas::{
        bloom::{best_hashes, overflow_bound},
        increments, sequences,
    },
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible, plan,
    set::{Decode, Increments, Overflow, Spread, bh, counting, variable},
};
use std::f64::consts::{E, LN_2};

/// Keys of figures 5 and 6 and of table II.
pub const KEYS: u64 = 1024;
/// Keys and rate of table I.
pub const TARGET: (u64, f64) = (2000, 0.001);
/// The increments of pairs of counters: the best B_3 sequence of four up to 15.
pub const PAIRS: Increments = Increments::of([1, 4, 13, 15]);
/// Pairs of counters as in figure 5.
pub const SHAPE: bh::Shape = bh::Shape {
    cells: 2560,
    hashes: 5,
    keys_bits: 4,
    sum_bits: 8,
    increments: PAIRS,
    decode: Decode::Improved(15),
    centred: false,
    overflow: Overflow::Refuse,
    spread: Spread::Anywhere,
};

/// A counting filter with a number of counters.
pub fn counting(counters: u64, hashes: u32) -> counting::Shape {
    let (width, overflow, spread) = (4, Overflow::Refuse, Spread::Anywhere);
    counting::Shape { counters, hashes, width, overflow, spread }
}

/// A filter of variable increments.
pub fn variable(
    values: &[u8],
    width: u32,
    counters: u64,
    hashes: u32,
) -> Result<variable::Shape, Infeasible> {
    let (increments, overflow) = (Increments::set(values)?, Overflow::Refuse);
    let spread = Spread::Anywhere;
    Ok(variable::Shape { counters, hashes, width, increments, overflow, spread })
}

/// The increments of the paper's two filters.
pub const D_4: [u8; 4] = [4, 5, 6, 7];
/// The second one, which was searched.
pub const GENERAL: [u8; 4] = [8, 12, 14, 15];

/// Figures 4 and 6, table II, theorem 3.
pub fn rates(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let example = Increments::of([1, 4, 8, 13]);
    let (told, all) = increments::detection(example, 4).unwrap_or((0, 0));
    let agree = [2, 4, 8, 16].into_iter().all(coefficients_agree);
    let [example_6, curve, coefficients, improved_30, improved_50, equation_9, tables @ ..] =
        &facts::RATES;
    let [best_b3, best_set, bits_for_cbf, figure_6 @ .., p0, mixed_hashes, hash_bits] = tables;
    let [l2, l4, l8, l16, h1, h2, h3, h12] = figure_6;
    Ok(vec![
        Row::computed(example_6, list([told as f64, all as f64])),
        Row::computed(curve, list((0..16).map(|keys| detection(example, keys)))),
        Row::computed(coefficients, f64::from(agree)),
        Row::computed(improved_30, improved_at_its_best(2560)?),
        Row::computed(improved_50, improved_at_its_best(4266)?),
        Row::computed(equation_9, enumerated_improved_rate()?),
        Row::computed(best_b3, best_of_all_b3()?),
        Row::computed(best_set, best_set_of_four()?),
        Row::computed(bits_for_cbf, bits_for_rate_of_cbf()?),
        Row::computed(l2, range_rate(2, 6)?),
        Row::computed(l4, range_rate(4, 7)?),
        Row::computed(l8, range_rate(8, 8)?),
        Row::computed(l16, range_rate(16, 9)?),
        Row::computed(h1, table_2(1, 15)),
        Row::computed(h2, table_2(2, 5)),
        Row::computed(h3, table_2(3, 4)),
        Row::computed(h12, table_2(12, 3)),
        Row::computed(p0, bound_of_theorem_3()),
        Row::computed(mixed_hashes, increments::two_hashes(5.2)[0].1),
        Row::computed(hash_bits, bits_hashed()),
    ])
}

/// The rate by enumeration at the parameters of equation 9, if both give the same rate.
fn enumerated_improved_rate() -> Result<Value, Infeasible> {
    let wide = bh::Shape { keys_bits: 6, sum_bits: 10, decode: Decode::Improved(63), ..SHAPE };
    let enumerated = plan::bh::rate(wide, KEYS)?;
    let formula = increments::improved_rate(PAIRS, 2560, 5, KEYS);
    let same = (enumerated / formula - 1.0).abs() < 1e-9;
    Ok(if same { enumerated.into() } else { Value::Nothing })
}

/// The B_3 sequences of the lowest rate at 30 bits a key.
fn best_of_all_b3() -> Result<Value, Infeasible> {
    let rate = |set| plan::bh::rate(bh::Shape { increments: set, ..SHAPE }, KEYS);
    let all: Result<Vec<_>, _> = all_b3().into_iter().map(|set| Ok((rate(set)?, set))).collect();
    let all = all?;
    let least = all.iter().map(|(rate, _)| *rate).fold(1.0, f64::min);
    let best = all.iter().filter(|(rate, _)| *rate < least * (1.0 + 1e-9));
    Ok(list(best.flat_map(|(_, set)| set.values()).map(|&v| f64::from(v))))
}

/// The set of four increments up to 15 of the lowest rate at 30 bits a key.
fn best_set_of_four() -> Result<Value, Infeasible> {
    let mut best = (1.0, Increments::of([1]));
    for least in 1..=12 {
        for set in sequences::search(4, least..=15, |_| true) {
            let rate = best_rate(set.values(), 8, 3840)?;
            if rate < best.0 {
                best = (rate, set);
            }
        }
    }
    Ok(list(best.1.values().iter().map(|&v| f64::from(v))))
}

/// The bits a key for which [`GENERAL`] has the rate of a counting filter of 50 bits a key.
fn bits_for_rate_of_cbf() -> Result<Value, Infeasible> {
    let shape = counting(12_800, best_hashes(12_800, KEYS));
    let same = plan::counting::rate(shape, KEYS);
    for tenths in 100..500 {
        let bits = f64::from(tenths) / 10.0;
        if best_rate(&GENERAL, 8, (KEYS as f64 * bits / 8.0) as u64)? <= same {
            return Ok(bits.into());
        }
    }
    Ok(Value::Nothing)
}

/// Theorem 3's lower bound of the chance that a counter excludes a key.
fn bound_of_theorem_3() -> f64 {
    let (m, l, r) = (20.0f64, 4.0, 0.5);
    let none = (1.0 - 1.0 / (m * r)).powf(m * LN_2);
    let one = (l - 1.0) / l * LN_2 / r;
    let two = (l - 1.0) * (l + 1.0) / (6.0 * l * l) * LN_2 * (LN_2 - 1.0 / m) / (2.0 * r * r);
    none * (1.0 + one + two)
}

/// Section IV: bits that the hashes of a key take.
fn bits_hashed() -> u64 {
    let (hashes, counters) = (5, 7680u64 / 2);
    let bits = counters.next_power_of_two().ilog2() + D_4.len().ilog2();
    u64::from(hashes * bits)
}

/// Table I.
pub fn memory(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    const LAYERS: [(u64, u32); 4] = [(12_842, 4), (802, 3), (100, 3), (6, 3)];
    let bits = |layers: &[(u64, u32)]| layers.iter().map(|&(m, w)| m * u64::from(w)).sum::<u64>();
    let saving = |from: f64, to: f64| 100.0 * (from - to) / from;
    let of = |values: &[u8]| {
        let (keys, rate) = TARGET;
        increments::least_variable(Increments::set(values)?, keys, rate, 1.0)
    };
    let d4 = |hashes| {
        let meets = |m: &u64| increments::range_rate(4, *m, hashes, TARGET.0) <= TARGET.1;
        (1..).find(meets).unwrap_or(0)
    };
    let pairs = |decode| {
        let shape = increments::least_pairs(PAIRS, decode, TARGET.0, TARGET.1)?;
        Ok::<_, Infeasible>(kilobytes(shape.cells * u64::from(shape.keys_bits + shape.sum_bits)))
    };
    // The decoding tables as the paper bounds them: keys squared times the largest increment.
    let bound = |keys: u64| keys * keys * 15;
    let layered = variable(&D_4, 7, 12_842, 5)?;
    let spilling = |level| 12_842.0 * increments::counter_at_least(layered, TARGET.0, level);
    let beyond = spilling(37);
    let holds = LAYERS.iter().map(|&(_, width)| (1u64 << width) - 1).sum::<u64>();
    let cbf = plan::counting::shape(plan::Target::new(TARGET.0, TARGET.1))?;

    let [d4_kb, general_kb, bh_table, improved_table, general_table, general_total, more @ ..] =
        &facts::MEMORY;
    let [first, rest, total, general_first, savings @ .., layers, capacity] = more;
    let [d4_saves, general_saves, of_d4, of_cbf, least @ ..] = savings;
    let [d4_five_hashes, d4_least, general_least, bh_least, improved_least, cbf_least] = least;
    Ok(vec![
        Row::computed(d4_kb, kilobytes(d4(5) * 7)),
        Row::computed(general_kb, kilobytes(9500 * 8)),
        Row::computed(bh_table, kilobytes(bound(3))),
        Row::computed(improved_table, kilobytes(bound(6))),
        Row::computed(general_table, kilobytes(15 * 15)),
        Row::computed(general_total, kilobytes(9500 * 8 + 15 * 15)),
        Row::computed(first, kilobytes(bits(&LAYERS[..1]))),
        Row::computed(rest, kilobytes(bits(&LAYERS[1..]))),
        Row::computed(total, kilobytes(bits(&LAYERS))),
        Row::computed(general_first, kilobytes(9500 * 5)),
        Row::computed(d4_saves, saving(14.1, kilobytes(12_842 * 7))),
        Row::computed(general_saves, saving(14.1, kilobytes(9500 * 8 + 225))),
        Row::computed(of_d4, saving(kilobytes(12_842 * 7), kilobytes(bits(&LAYERS)))),
        Row::computed(of_cbf, saving(14.1, kilobytes(bits(&LAYERS)))),
        Row::computed(d4_five_hashes, d4(5)),
        Row::computed(d4_least, of(&D_4)?.counters),
        Row::computed(general_least, of(&GENERAL)?.counters),
        Row::computed(bh_least, pairs(Decode::Basic)?),
        Row::computed(improved_least, pairs(Decode::Improved(6))?),
        Row::computed(cbf_least, kilobytes(cbf.counters * u64::from(cbf.width))),
        Row::computed(layers, list([spilling(16), spilling(23), spilling(30)])),
        Row::computed(capacity, holds).note(&format!(
            "{beyond:.2} counters a filter hold more, so {:.0} % of filters overflow",
            100.0 * -(-beyond).exp_m1()
        )),
    ])
}

/// Equation 8, theorem 3, section VIII.D.
pub fn overflow(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    // Equation 8 at k n / m = ln 2, a counter.
    let shape = counting(14_426_950, 10);
    let r = 4.0 / 7.0;
    let met = |keys: i32| (E * LN_2 / (f64::from(keys) * r)).powi(keys);
    let [equation_8, eight_bits, seven_bits, wide, wide_rate, narrow, narrow_rate, centred @ ..] =
        &facts::OVERFLOW;
    let [centred, centred_rate] = centred;
    Ok(vec![
        Row::computed(equation_8, overflow_bound(shape, 1_000_000) / 14_426_950.0),
        // A counter of the plain filter, of which there are 1 / r as many.
        Row::computed(eight_bits, 0.5 * (E * LN_2 / 16.0).powi(37)),
        // Nineteen keys pass 127 only if 14 of them add seven, the others' chance as well.
        Row::computed(seven_bits, r * (0.25 * met(19) + met(20))),
        Row::computed(wide, plan::bh::overflow(cells(4, 6, false), KEYS)?),
        Row::computed(wide_rate, plan::bh::rate(cells(4, 6, false), KEYS)?),
        Row::computed(narrow, plan::bh::overflow(cells(3, 5, false), KEYS)?),
        Row::computed(narrow_rate, plan::bh::rate(cells(3, 5, false), KEYS)?),
        Row::computed(centred, plan::bh::overflow(cells(4, 6, true), KEYS)?),
        Row::computed(centred_rate, plan::bh::rate(cells(4, 6, true), KEYS)?),
    ])
}

/// Narrow cells at 30 bits a key and five hashes, pinned where they leave their range.
pub fn cells(keys_bits: u32, sum_bits: u32, centred: bool) -> bh::Shape {
    let cells = KEYS * 30 / u64::from(keys_bits + sum_bits);
    bh::Shape { cells, keys_bits, sum_bits, centred, overflow: Overflow::Pin, ..SHAPE }
}

/// The rate of a scheme of figure 5 by formula, at a number of bits a key.
pub fn figure_5(name: &str, bits: u64) -> Result<f64, Infeasible> {
    let memory = KEYS * bits;
    let pairs = |decode| bh::Shape {
        cells: memory / 12,
        hashes: basic_hashes(memory / 12),
        decode,
        ..SHAPE
    };
    match name {
        "cbf" => {
            let hashes = best_hashes(memory / 4, KEYS);
            Ok(plan::counting::rate(counting(memory / 4, hashes), KEYS))
        }
        "bh" => Ok(increments::basic_rate(3, 4, memory / 12, basic_hashes(memory / 12), KEYS)),
        "bh_improved" => plan::bh::rate(pairs(Decode::Improved(15)), KEYS),
        "vi_D4" => best_rate(&D_4, 7, memory / 7),
        _ => best_rate(&GENERAL, 8, memory / 8),
    }
}

/// The best hashes of the basic scheme, which the paper takes for the improved one too.
pub fn basic_hashes(cells: u64) -> u32 {
    best(|hashes| increments::basic_rate(3, 4, cells, hashes, KEYS))
}

/// The rate of a filter of variable increments with its best hashes.
pub fn best_rate(values: &[u8], width: u32, counters: u64) -> Result<f64, Infeasible> {
    let hashes = increments::variable_best_hashes(Increments::set(values)?, counters, KEYS);
    plan::variable::rate(variable(values, width, counters, hashes)?, KEYS)
}

fn best(rate: impl Fn(u32) -> f64) -> u32 {
    (1..=32).min_by(|&a, &b| rate(a).total_cmp(&rate(b))).unwrap_or(1)
}

fn range_rate(least: u32, width: u64) -> Result<Value, Infeasible> {
    let counters = KEYS * 30 / width;
    let rate = |hashes| increments::range_rate(least, counters, hashes, KEYS);
    Ok(rate(best(rate)).into())
}

fn table_2(order: u32, count: u32) -> Value {
    let rate = |hashes| increments::basic_rate(order, count, 2560, hashes, KEYS);
    let hashes = best(rate);
    list([rate(hashes), f64::from(hashes)])
}

fn improved_at_its_best(cells: u64) -> Result<Value, Infeasible> {
    let shape = bh::Shape { cells, ..SHAPE };
    let hashes = increments::pairs_best_hashes(shape.increments, shape.decode, cells, KEYS);
    Ok(plan::bh::rate(bh::Shape { hashes, ..shape }, KEYS)?.into())
}

fn detection(set: Increments, keys: u32) -> f64 {
    let (told, all) = increments::detection(set, keys).unwrap_or((0, 1));
    told as f64 / all as f64
}

/// Whether one key, and two keys, exclude as many increments as equation 4 says.
fn coefficients_agree(least: u32) -> bool {
    let set = || least..2 * least;
    let admits = |sum: u32, own: u32| sum == own || sum >= own + least;
    let one = set().flat_map(|a| set().filter(move |&own| !admits(a, own))).count() as u32;
    let pairs = || set().flat_map(|a| set().map(move |b| a + b));
    let two = pairs().flat_map(|sum| set().filter(move |&own| !admits(sum, own))).count() as u32;
    // Out of L squared, and out of L cubed.
    one == (least - 1) * least && two * 6 == (least - 1) * (least + 1) * least
}

pub(super) fn kilobytes(bits: u64) -> f64 {
    bits as f64 / 8.0 / 1024.0
}

fn list(numbers: impl IntoIterator<Item = f64>) -> Value {
    Value::Numbers(numbers.into_iter().collect())
}
