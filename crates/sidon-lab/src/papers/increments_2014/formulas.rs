//! Rates, sizes and overflow of 004, without sampling.

use super::sequences::all_b3;
use crate::{
    claim::{Claim, Value},
    experiment::Experiment,
    formulas::{
        bloom::{best_hashes, overflow_bound},
        increments, sequences,
    },
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible,
    member::{Decode, Increments, Overflow, Spread, bh, counting, variable},
    plan,
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

/// The counting filter of so many counters.
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
pub fn rates(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let example = Increments::of([1, 4, 8, 13]);
    rows(experiment.claims, |id| match id {
        "004.fD.4" => {
            let (told, all) = increments::detection(example, 4).unwrap_or((0, 0));
            Ok(list([told as f64, all as f64]))
        }
        "004.fD.curve" => Ok(list((0..16).map(|keys| detection(example, keys)))),
        "004.thm2.coefficients" => {
            Ok(f64::from([2, 4, 8, 16].into_iter().all(coefficients_agree)).into())
        }
        "004.fig5.bh_improved_best_k.30" => improved_at_its_best(2560),
        "004.fig5.bh_improved_best_k.50" => improved_at_its_best(4266),
        "004.eq9.equals_enumeration" => {
            let wide =
                bh::Shape { keys_bits: 6, sum_bits: 10, decode: Decode::Improved(63), ..SHAPE };
            let walked = plan::bh::rate(wide, KEYS)?;
            let formula = increments::improved_rate(PAIRS, 2560, 5, KEYS);
            // Both, or no number at all.
            let same = (walked / formula - 1.0).abs() < 1e-9;
            Ok(if same { walked.into() } else { Value::Nothing })
        }
        "004.bh.best_of_48" => {
            let rate = |set| plan::bh::rate(bh::Shape { increments: set, ..SHAPE }, KEYS);
            let all: Result<Vec<_>, _> =
                all_b3().into_iter().map(|set| Ok((rate(set)?, set))).collect();
            let all = all?;
            let least = all.iter().map(|(rate, _)| *rate).fold(1.0, f64::min);
            let best = all.iter().filter(|(rate, _)| *rate < least * (1.0 + 1e-9));
            Ok(list(best.flat_map(|(_, set)| set.values()).map(|&v| f64::from(v))))
        }
        "004.vi.best_D" => {
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
        "004.vi.bits_for_cbf50" => {
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
        "004.fig6.L2" => range_rate(2, 6),
        "004.fig6.L4" => range_rate(4, 7),
        "004.fig6.L8" => range_rate(8, 8),
        "004.fig6.L16" => range_rate(16, 9),
        "004.table2.h1_l15" => Ok(table_2(1, 15)),
        "004.table2.h2_l5" => Ok(table_2(2, 5)),
        "004.table2.h3_l4" => Ok(table_2(3, 4)),
        "004.table2.h12_l3" => Ok(table_2(12, 3)),
        "004.thm3.p0" => {
            let (m, l, r) = (20.0f64, 4.0, 0.5);
            let none = (1.0 - 1.0 / (m * r)).powf(m * LN_2);
            let one = (l - 1.0) / l * LN_2 / r;
            let two =
                (l - 1.0) * (l + 1.0) / (6.0 * l * l) * LN_2 * (LN_2 - 1.0 / m) / (2.0 * r * r);
            Ok((none * (1.0 + one + two)).into())
        }
        "004.thm3.pk_sign" => Ok(increments::two_hashes(5.2)[0].1.into()),
        "004.hash_bits" => {
            let (hashes, counters) = (5, 7680u64 / 2);
            let bits = counters.next_power_of_two().ilog2() + D_4.len().ilog2();
            Ok(u64::from(hashes * bits).into())
        }
        _ => Ok(Value::Nothing),
    })
}

/// Table I.
pub fn memory(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    const LAYERS: [(u64, u32); 4] = [(12_842, 4), (802, 3), (100, 3), (6, 3)];
    let bits = |layers: &[(u64, u32)]| layers.iter().map(|&(m, w)| m * u64::from(w)).sum::<u64>();
    let saving = |from: f64, to: f64| Ok((100.0 * (from - to) / from).into());
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
        Ok::<_, Infeasible>(
            kilobytes(shape.cells * u64::from(shape.keys_bits + shape.sum_bits)).into(),
        )
    };
    // The decoding tables as the paper bounds them: keys squared times the largest increment.
    let bound = |keys: u64| keys * keys * 15;
    let layered = variable(&D_4, 7, 12_842, 5)?;
    let spilling = |level| 12_842.0 * increments::counter_at_least(layered, TARGET.0, level);
    let rows = rows(experiment.claims, |id| match id {
        "004.table1.vi_D4.main" => Ok(kilobytes(d4(5) * 7).into()),
        "004.table1.vi_general.main" => Ok(kilobytes(9500 * 8).into()),
        "004.table1.bh.table" => Ok(kilobytes(bound(3)).into()),
        "004.table1.bh_improved.table" => Ok(kilobytes(bound(6)).into()),
        "004.table1.vi_general.table" => Ok(kilobytes(15 * 15).into()),
        "004.table1.vi_general.total" => Ok(kilobytes(9500 * 8 + 15 * 15).into()),
        "004.table1.ml_D4.first" => Ok(kilobytes(bits(&LAYERS[..1])).into()),
        "004.table1.ml_D4.rest" => Ok(kilobytes(bits(&LAYERS[1..])).into()),
        "004.table1.ml_D4.total" => Ok(kilobytes(bits(&LAYERS)).into()),
        "004.table1.ml_general.first" => Ok(kilobytes(9500 * 5).into()),
        "004.table1.saving.vi_D4" => saving(14.1, kilobytes(12_842 * 7)),
        "004.table1.saving.vi_general" => saving(14.1, kilobytes(9500 * 8 + 225)),
        "004.table1.saving.ml_vs_vi" => saving(kilobytes(12_842 * 7), kilobytes(bits(&LAYERS))),
        "004.table1.saving.ml_vs_cbf" => saving(14.1, kilobytes(bits(&LAYERS))),
        "004.table1.vi_D4.min_m_k5" => Ok(d4(5).into()),
        "004.table1.vi_D4.min_m" => Ok(of(&D_4)?.counters.into()),
        "004.table1.vi_general.min_m" => Ok(of(&GENERAL)?.counters.into()),
        "004.table1.bh.main" => pairs(Decode::Basic),
        "004.table1.bh_improved.main" => pairs(Decode::Improved(6)),
        "004.table1.cbf.main" => {
            let shape = plan::counting::shape(plan::Target::new(TARGET.0, TARGET.1))?;
            Ok(kilobytes(shape.counters * u64::from(shape.width)).into())
        }
        "004.table1.ml_D4.layers" => Ok(list([spilling(16), spilling(23), spilling(30)])),
        "004.table1.ml_D4.capacity" => {
            let holds = LAYERS.iter().map(|&(_, width)| (1u64 << width) - 1).sum::<u64>();
            Ok(holds.into())
        }
        _ => Ok(Value::Nothing),
    })?;
    let beyond = spilling(37);
    let note = format!(
        "{beyond:.2} counters a filter hold more, so {:.0} % of filters overflow",
        100.0 * -(-beyond).exp_m1()
    );
    let rows = rows.into_iter().map(|row| match row.claim.id {
        "004.table1.ml_D4.capacity" => row.note(&note),
        _ => row,
    });
    Ok(rows.collect())
}

/// Equation 8, theorem 3, section VIII.D.
pub fn overflow(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    rows(experiment.claims, |id| match id {
        "004.eq8" => {
            // At k n / m = ln 2, a counter.
            let shape = counting(14_426_950, 10);
            Ok((overflow_bound(shape, 1_000_000) / 14_426_950.0).into())
        }
        // A counter of the plain filter, of which there are 1 / r as many.
        "004.thm3.overflow8" => Ok((0.5 * (E * LN_2 / 16.0).powi(37)).into()),
        "004.s8C.overflow7" => {
            let r = 4.0 / 7.0;
            let met = |keys: i32| (E * LN_2 / (f64::from(keys) * r)).powi(keys);
            // Nineteen keys pass 127 only if 14 of them add seven, the others' chance as well.
            Ok((r * (0.25 * met(19) + met(20))).into())
        }
        "004.overflow.4_6" => Ok(plan::bh::overflow(cells(4, 6, false), KEYS)?.into()),
        "004.overflow.fpr.4_6" => Ok(plan::bh::rate(cells(4, 6, false), KEYS)?.into()),
        "004.overflow.3_5" => Ok(plan::bh::overflow(cells(3, 5, false), KEYS)?.into()),
        "004.overflow.fpr.3_5" => Ok(plan::bh::rate(cells(3, 5, false), KEYS)?.into()),
        "004.overflow.signed" => Ok(plan::bh::overflow(cells(4, 6, true), KEYS)?.into()),
        "004.overflow.signed_fpr" => Ok(plan::bh::rate(cells(4, 6, true), KEYS)?.into()),
        _ => Ok(Value::Nothing),
    })
}

/// Narrow cells at 30 bits a key and five hashes, pinned where they leave their range.
pub fn cells(keys_bits: u32, sum_bits: u32, centred: bool) -> bh::Shape {
    let cells = KEYS * 30 / u64::from(keys_bits + sum_bits);
    bh::Shape { cells, keys_bits, sum_bits, centred, overflow: Overflow::Pin, ..SHAPE }
}

/// The five schemes of figure 5 by name, at so many bits a key: their rates by formula.
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

/// A row for each claim; one without a value fails.
pub(super) fn rows(
    claims: &'static [Claim],
    value: impl Fn(&str) -> Result<Value, Infeasible>,
) -> Result<Vec<Row>, Infeasible> {
    claims.iter().map(|claim| Ok(Row::computed(claim, value(claim.id)?))).collect()
}
