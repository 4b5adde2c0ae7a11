//! Sections II and III of 004: sequences and single cells, by enumeration.

use super::{facts, formulas::SHAPE};
use crate::{
    claim::Value,
    experiment::Experiment,
    formulas::{increments::floor, sequences},
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible,
    set::{Decode, Increments, bh},
};

const EXAMPLE: Increments = Increments::of([1, 4, 8, 13]);
const GENERAL: Increments = Increments::of([8, 12, 14, 15]);

/// Definitions 1 and 2, the search of section VIII.D, tables, the bound of section VII.
pub fn sequences(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let is_bh =
        |values: &[u8], addends| Ok(yes(sequences::is_bh(Increments::set(values)?, addends)));
    let longest = [1, 2, 3, 4, 12, 13, 14].map(|h| {
        sequences::longest(1..=15, |set| sequences::is_bh(set, h))
            .map_or(0.0, |set| set.values().len() as f64)
    });
    let (ways, bits) = floor(3, 4).unwrap_or_default();
    let [
        sums_3,
        sums_2,
        not_b4,
        tilde,
        count,
        max_size,
        examples @ ..,
        gaps,
        table_3,
        table_6,
        bound,
    ] = &facts::SEQUENCES;
    let [b2_of_5, b3_of_4, b12_of_3, b13_of_3, best_b3] = examples;
    Ok(vec![
        Row::computed(sums_3, list(multisets(EXAMPLE, 3).iter().map(|m| sum(m)))),
        Row::computed(sums_2, list(multisets(EXAMPLE, 2).iter().map(|m| sum(m)))),
        Row::computed(not_b4, list([3, 4].map(|h| f64::from(sequences::is_bh(EXAMPLE, h))))),
        Row::computed(tilde, yes(sequences::is_tilde_bh(Increments::of([3, 4]), 2))),
        Row::computed(count, all_b3().len() as u64),
        Row::computed(max_size, list(longest)),
        Row::computed(b2_of_5, is_bh(&[1, 2, 4, 8, 13], 2)?),
        Row::computed(b3_of_4, is_bh(&[1, 2, 5, 14], 3)?),
        Row::computed(b12_of_3, is_bh(&[1, 2, 15], 12)?),
        Row::computed(b13_of_3, is_bh(&[1, 2, 15], 13)?),
        Row::computed(best_b3, is_bh(&[1, 4, 13, 15], 3)?),
        Row::computed(gaps, list(sequences::gaps(GENERAL, 1000).into_iter().map(f64::from))),
        Row::computed(table_3, table_bits(3)?),
        Row::computed(table_6, table_bits(6)?),
        Row::computed(bound, list([ways as f64, f64::from(bits)])),
    ])
}

/// Figure 1(c) and examples 3, 4 and 7.
pub fn examples(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let [figure_1, insert, basic, decompositions, improved] = &facts::EXAMPLES;
    Ok(vec![
        Row::computed(figure_1, queries_of_figure_1()?),
        Row::computed(insert, inserted()),
        Row::computed(basic, basic_queries()),
        Row::computed(decompositions, decomposed()),
        Row::computed(improved, yes(may(4, 13, 8))),
    ])
}

/// Whether three counters of figure 1(c) admit the increment beside them.
fn queries_of_figure_1() -> Result<Value, Infeasible> {
    let set = Increments::of([4, 5, 6, 7]);
    let admits = |[counter, own]: [u32; 2]| {
        // The key's own increment, and any sum of others.
        counter >= own && !sequences::gaps(set, counter - own + 1).contains(&(counter - own))
    };
    Ok(list([[9, 7], [5, 6], [5, 5]].map(|cell| f64::from(admits(cell)))))
}

/// Example 3: the four cells that an insertion changes.
fn inserted() -> Value {
    // Cells 1, 3, 5 and 7 and the places of the increments there, all counted from one.
    let added = [(1, 3), (3, 2), (5, 4), (7, 2)];
    let mut cells = [[0.0; 2]; 8];
    for (cell, which) in added {
        cells[cell][0] += 1.0;
        cells[cell][1] += f64::from(EXAMPLE.values()[which - 1]);
    }
    list([1, 3, 5, 7].into_iter().flat_map(|cell| cells[cell]))
}

/// Example 4: which cells admit the key by the basic scheme.
fn basic_queries() -> Value {
    let cells = [(0, 0, 1), (3, 25, 4), (3, 30, 8), (4, 13, 8)];
    let admits = |(keys, sum, own)| keys != 0 && (keys > 3 || may(keys, sum, own));
    list(cells.map(|cell| f64::from(admits(cell))))
}

/// Example 4: the addends of its two sums of three.
fn decomposed() -> Value {
    let of = |wanted: f64| multisets(EXAMPLE, 3).into_iter().filter(move |m| sum(m) == wanted);
    list(of(25.0).chain(of(30.0)).flatten().map(f64::from))
}

/// Every B_3 sequence of four increments that begins with one and ends at 15 or below.
pub fn all_b3() -> Vec<Increments> {
    sequences::search(4, 1..=15, |set| sequences::is_bh(set, 3))
}

/// Whether `keys` keys can add up to the sum, one of them adding `own`.
fn may(keys: u32, sum: usize, own: usize) -> bool {
    let rest = sum
        .checked_sub(own)
        .map(|rest| sequences::sums_of(EXAMPLE, keys - 1).get(rest) == Some(&true));
    rest.unwrap_or(false)
}

/// All multisets of `addends` increments, in the order of their places.
fn multisets(set: Increments, addends: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for _ in 0..addends {
        let longer = |multiset: &Vec<u8>| {
            let from = multiset.last().copied().unwrap_or(0);
            let values: Vec<u8> = set.values().iter().copied().filter(|&v| v >= from).collect();
            let multiset = multiset.clone();
            values.into_iter().map(move |value| [&multiset[..], &[value]].concat())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

fn sum(multiset: &[u8]) -> f64 {
    multiset.iter().map(|&value| f64::from(value)).sum()
}

fn table_bits(keys: u32) -> Result<Value, Infeasible> {
    let shape = bh::Shape { decode: Decode::Improved(keys), ..SHAPE };
    Ok(shape.table_bits()?.into())
}

fn yes(is: bool) -> Value {
    f64::from(is).into()
}

fn list(numbers: impl IntoIterator<Item = f64>) -> Value {
    Value::Numbers(numbers.into_iter().collect())
}
