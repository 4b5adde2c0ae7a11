//! The four figures, worked on the structures themselves.
//!
//! Flows are found whose cells are those of the figure: among twelve cells, some thousands of keys
//! are enough. If all cells of a flow coincide, the flow has one cell alone.

use super::facts;
use crate::{
    claim::{Claim, Value},
    experiment::Experiment,
    row::Row,
    trials::Run,
};
use sidon::{
    Digest, Infeasible, Lookup, Seed,
    internals::Sweep,
    state::{
        Direct, Fingerprint, Next, State, Stateful, direct,
        fingerprint::{self, Moves, Placing},
        stateful::{self, Keeping},
    },
};
use std::borrow::Cow;

const SEED: Seed = Seed(2006);
/// More keys than a search for the cells of a figure needs.
const KEYS: u64 = 20_000_000;

/// Figures 3 and 4.
pub fn figures_3_4(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let [three, four] = &facts::FIGURES_3_4;
    Ok(vec![row(three, figure_3()?), row(four, figure_4()?)])
}

/// Figures 1 and 2.
pub fn figures_1_2(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let [one, two] = &facts::FIGURES_1_2;
    Ok(vec![row(one, figure_1()?), row(two, figure_2()?)])
}

fn row(claim: &'static Claim, cells: Vec<f64>) -> Row {
    Row::computed(claim, Value::Numbers(Cow::Owned(cells)))
}

/// The cells of a pair filter, from its bytes.
fn cells(map: &Direct) -> Vec<u64> {
    let (shape, image) = (map.shape(), map.to_bytes());
    let payload = &image[image.len() - 4 - Direct::planned_bytes(shape) as usize..];
    let bit = |at: u64| u64::from(payload[at as usize / 8] >> (at % 8) & 1);
    let width = u64::from(shape.width());
    let cell = |i: u64| (0..width).map(|j| bit(i * width + j) << j).sum();
    (0..shape.cells).map(cell).collect()
}

/// Which cells of an empty filter a flow in a state has.
fn cells_of(empty: &mut Direct, key: u64, state: State) -> Vec<u64> {
    empty.clear();
    if empty.insert(&key, state).is_err() {
        return Vec::new();
    }
    (0..).zip(cells(empty)).filter(|&(_, value)| value != 0).map(|(i, _)| i).collect()
}

fn figure_1() -> Result<Vec<f64>, Infeasible> {
    let shape = direct::Shape { cells: 12, hashes: 3, states: 8, counter: 4, timed: false };
    let (mut map, mut empty) = (Direct::new(shape, SEED)?, Direct::new(shape, SEED)?);
    let mut find = |wanted: &dyn Fn(&mut Direct, u64) -> bool| {
        (0..KEYS).find(|&key| wanted(&mut empty, key)).unwrap_or(0)
    };
    let x = find(&|empty, key| {
        cells_of(empty, key, 3) == [2, 4, 7] && cells_of(empty, key, 5) == [6, 8, 10]
    });
    let mut done = map.insert(&x, 3);
    for (cell, copies) in [(4, 1), (5, 3), (8, 1)] {
        let single = find(&|empty, key| cells_of(empty, key, 0) == [cell]);
        for _ in 0..copies {
            done = done.and(map.insert(&single, 0));
        }
    }
    done = done.and(map.modify_from(&x, 3, 5));
    Ok(if done.is_ok() { numbers(cells(&map)) } else { Vec::new() })
}

fn figure_2() -> Result<Vec<f64>, Infeasible> {
    let shape = direct::Shape { cells: 8, hashes: 3, states: 8, counter: 4, timed: true };
    let (mut map, mut empty) = (Direct::new(shape, SEED)?, Direct::new(shape, SEED)?);
    let mut single =
        |cell: u64| (0..KEYS).find(|&key| cells_of(&mut empty, key, 0) == [cell]).unwrap_or(0);
    let before = [(true, 2), (false, 1), (false, 0), (false, 0)];
    let before = before.into_iter().chain([(true, 2), (true, 3), (false, 2), (true, 1)]);
    let mut touched = Vec::new();
    for (cell, (flag, copies)) in (0..).zip(before) {
        let key = single(cell);
        for _ in 0..copies {
            if map.insert(&key, 0).is_err() {
                return Ok(Vec::new());
            }
        }
        if flag {
            touched.push(key);
        }
    }
    // The end of an earlier phase, after which some cells are touched and some are not.
    let units = map.units();
    map.sweep(units);
    for key in touched {
        // Only the cell in question: what other states seem to hold is not asked.
        let kept = map.insert(&key, 0).and_then(|()| map.forget_from(&key, 0));
        if kept.is_err() {
            return Ok(Vec::new());
        }
    }
    map.sweep(units);
    Ok(numbers(cells(&map).into_iter().map(|cell| cell >> 1)))
}

fn figure_3() -> Result<Vec<f64>, Infeasible> {
    let shape = stateful::Shape { cells: 12, hashes: 3, states: 8, keeping: Keeping::Counted(3) };
    let mut map = Stateful::new(shape, SEED)?;
    // The cells of a flow are those of the pair filter's first pair: the same mapping of a digest.
    // They are found here by what a flow leaves in an empty table.
    let single = |cells: &[u64]| -> Option<u64> {
        (0..KEYS).find(|&key| {
            let mut spots: Vec<u64> = (0..3).map(|i| position(key, i)).collect();
            spots.sort_unstable();
            spots.dedup();
            spots == cells
        })
    };
    let mut done = Ok(());
    let mut insert = |map: &mut Stateful, cells: &[u64], state| {
        if let Some(key) = single(cells) {
            done = done.and(map.insert(&key, state));
        }
    };
    for (cell, state) in [(0, 2), (1, 1), (5, 2), (8, 1)] {
        insert(&mut map, &[cell], state);
    }
    insert(&mut map, &[2, 4, 7], 3);
    insert(&mut map, &[7], 6);
    let Some(x) = single(&[2, 4, 7]) else { return Ok(Vec::new()) };
    done = done.and(map.modify(&x, 5));
    let cell = |cell: u64| match single(&[cell]).map(|key| map.lookup(&key)) {
        Some(Lookup::State(state)) => f64::from(state),
        Some(Lookup::Absent) => 0.0,
        _ => -1.0,
    };
    Ok(if done.is_ok() { (0..12).map(cell).collect() } else { Vec::new() })
}

/// Cell `i` of a key among twelve, as in every structure of the library.
fn position(key: u64, i: u32) -> u64 {
    use sidon::Key;
    key.digest(SEED).position(i, 12)
}

fn figure_4() -> Result<Vec<f64>, Infeasible> {
    let texts = [
        "10001110011111100",
        "01110100100010111",
        "01110010010101111",
        "11110101001000111",
        "11110111001001011",
        "00011110011101101",
        "11111111110000000",
        "10101110010101011",
        "01110010001011111",
        "11100010010111110",
    ];
    let states = [3, 1, 6, 3, 2, 1, 4, 2, 3, 1];
    let shape = fingerprint::Shape {
        subtables: 3,
        buckets: 1,
        cells: 4,
        width: 24,
        remainder: 17,
        states: 8,
        shared: 3,
        placing: Placing::Permuted,
        moves: Moves::Never,
        reinsert: false,
        stash: 0,
        growths: 0,
        grows: false,
        listed: 0,
    };
    let mut map = Fingerprint::new(shape, SEED)?;
    // One bucket a subtable: the fingerprint is the upper 17 bits of a digest.
    let digest = |text: &str| Digest(u64::from_str_radix(text, 2).unwrap_or(0) << (64 - 17));
    let mut done = Ok(());
    for (text, state) in texts.iter().zip(states) {
        done = done.and(map.insert(&digest(text), state));
    }
    let before = map.transition(&digest(texts[3]), |now| match now {
        Lookup::State(3) => Next::Modify(5),
        _ => Next::Stay,
    });
    if done.is_err() || before != Ok(Lookup::State(3)) {
        return Ok(Vec::new());
    }
    let state = |text: &&str| match map.lookup(&digest(text)) {
        Lookup::State(state) => f64::from(state),
        Lookup::Absent => 0.0,
        Lookup::DontKnow => -1.0,
    };
    Ok(texts.iter().map(state).collect())
}

fn numbers(values: impl IntoIterator<Item = u64>) -> Vec<f64> {
    values.into_iter().map(|value| value as f64).collect()
}
