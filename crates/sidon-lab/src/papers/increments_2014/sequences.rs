//! Sections II and III of 004: sequences and single cells, by enumeration.

use super::formulas::{SHAPE, rows};
use crate::{
    claim::Value,
    experiment::Experiment,
    formulas::{increments::floor, sequences},
    row::Row,
    trials::Run,
};
use sidon::{
    Infeasible,
    member::{Decode, Increments, bh},
};

const EXAMPLE: Increments = Increments::of([1, 4, 8, 13]);
const GENERAL: Increments = Increments::of([8, 12, 14, 15]);

/// Definitions 1 and 2, the search of section VIII.D, tables, the bound of section VII.
pub fn sequences(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    rows(experiment.claims, |id| {
        let is_bh =
            |values: &[u8], addends| Ok(yes(sequences::is_bh(Increments::set(values)?, addends)));
        match id {
            "004.ex1.sums3" => Ok(list(multisets(EXAMPLE, 3).iter().map(|m| sum(m)))),
            "004.ex2.sums2" => Ok(list(multisets(EXAMPLE, 2).iter().map(|m| sum(m)))),
            "004.ex1.not_B4" => Ok(list([3, 4].map(|h| f64::from(sequences::is_bh(EXAMPLE, h))))),
            "004.ex5.tilde" => Ok(yes(sequences::is_tilde_bh(Increments::of([3, 4]), 2))),
            "004.bh.count48" => Ok((all_b3().len() as u64).into()),
            "004.bh.max_size" => Ok(list([1, 2, 3, 4, 12, 13, 14].map(|h| {
                sequences::longest(1..=15, |set| sequences::is_bh(set, h))
                    .map_or(0.0, |set| set.values().len() as f64)
            }))),
            "004.bh.example.1_2_4_8_13.h2" => is_bh(&[1, 2, 4, 8, 13], 2),
            "004.bh.example.1_2_5_14.h3" => is_bh(&[1, 2, 5, 14], 3),
            "004.bh.example.1_2_15.h12" => is_bh(&[1, 2, 15], 12),
            "004.bh.example.1_2_15.h13" => is_bh(&[1, 2, 15], 13),
            "004.bh.example.1_4_13_15.h3" => is_bh(&[1, 4, 13, 15], 3),
            "004.vi.gaps" => Ok(list(sequences::gaps(GENERAL, 1000).into_iter().map(f64::from))),
            "004.bh.table_bits.h3" => table_bits(3),
            "004.bh.table_bits.h6" => table_bits(6),
            "004.lower_bound.35" => {
                let (ways, bits) = floor(3, 4).unwrap_or_default();
                Ok(list([ways as f64, f64::from(bits)]))
            }
            _ => Ok(Value::Nothing),
        }
    })
}

/// Figure 1(c) and examples 3, 4 and 7.
pub fn examples(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    rows(experiment.claims, |id| match id {
        "004.fig1.query" => {
            let set = Increments::range(4)?;
            let admits = |[counter, own]: [u32; 2]| {
                // The key's own increment, and any sum of others.
                counter >= own
                    && !sequences::gaps(set, counter - own + 1).contains(&(counter - own))
            };
            Ok(list([[9, 7], [5, 6], [5, 5]].map(|cell| f64::from(admits(cell)))))
        }
        "004.ex3.insert" => {
            // Cells 1, 3, 5 and 7 and the places of the increments there, all counted from one.
            let added = [(1, 3), (3, 2), (5, 4), (7, 2)];
            let mut cells = [[0.0; 2]; 8];
            for (cell, which) in added {
                cells[cell][0] += 1.0;
                cells[cell][1] += f64::from(EXAMPLE.values()[which - 1]);
            }
            Ok(list([1, 3, 5, 7].into_iter().flat_map(|cell| cells[cell])))
        }
        "004.ex4.basic" => {
            let cells = [(0, 0, 1), (3, 25, 4), (3, 30, 8), (4, 13, 8)];
            let admits = |(keys, sum, own)| keys != 0 && (keys > 3 || may(keys, sum, own));
            Ok(list(cells.map(|cell| f64::from(admits(cell)))))
        }
        "004.ex4.decompositions" => {
            let of =
                |wanted: f64| multisets(EXAMPLE, 3).into_iter().filter(move |m| sum(m) == wanted);
            Ok(list(of(25.0).chain(of(30.0)).flatten().map(f64::from)))
        }
        "004.ex7.improved" => Ok(yes(may(4, 13, 8))),
        _ => Ok(Value::Nothing),
    })
}

/// Every B_3 sequence of four increments that begins with one and ends at 15 or below.
pub fn all_b3() -> Vec<Increments> {
    sequences::search(4, 1..=15, |set| sequences::is_bh(set, 3))
}

/// Whether so many keys can add up to the sum, one of them adding `own`.
fn may(keys: u32, sum: usize, own: usize) -> bool {
    let rest = sum
        .checked_sub(own)
        .map(|rest| sequences::sums_of(EXAMPLE, keys - 1).get(rest) == Some(&true));
    rest.unwrap_or(false)
}

/// All multisets of so many increments, in the order of their places.
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
