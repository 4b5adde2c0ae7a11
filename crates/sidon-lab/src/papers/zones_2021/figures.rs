//! The worked examples of 003.

use super::{
    facts,
    zones::{ols, pol},
};
use crate::{claim::Value, experiment::Experiment, row::Row, trials::Run};
use sidon::{
    Infeasible,
    count::Update,
    zone::{Code, Sketch},
};

/// Figures 3, 4, 6 and 8, and two columns of section 5.
pub fn figures(_: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let square = ols(25, 5, 4)?;
    let cube = pol(343, 7, 3, 5, false)?;
    let value = |y: u64, group: u32| square.position(square.split(y), group) - square.start(group);
    let counters = |flows: u64| -> Result<Sketch<_>, Infeasible> {
        let mut sketch = Sketch::new(square.clone(), 32, Update::Plain)?;
        for &(flow, size) in &FLOWS[..flows as usize] {
            sketch.add(&flow, size).expect("a few packets fit a counter of 32 bits");
        }
        Ok(sketch)
    };
    let query = |flow: u64| -> Result<Value, Infeasible> {
        let all: Vec<u64> = counters(4)?.counters().collect();
        Ok(list(square.positions(flow).map(|cell| all[cell as usize])))
    };
    let column = |flow| list(square.positions(flow));
    let stage = |flows| Ok::<_, Infeasible>(list(counters(flows)?.counters()));
    let mut estimates = Vec::new();
    for flows in 1..=4 {
        estimates.push(counters(flows)?.minimum(10));
    }
    let [hamming_code, superposition, parity_bits, shape, codes @ .., xi, i, xx, flows, flow_xi] =
        &facts::FIGURES;
    let [column_0, column_7, column_10, column_13, column_19, pol_7, pol_50, stages @ ..] = codes;
    let [stage_1, stage_2, stage_3, stage_4] = stages;
    Ok(vec![
        Row::computed(hamming_code, list(hamming())),
        Row::computed(superposition, list((0..25).flat_map(|y| [value(y, 2), value(y, 3)]))),
        Row::computed(parity_bits, list((0..25).filter(|&y| value(y, 2) == 0))),
        Row::computed(shape, list([square.cells(), square.universe()])),
        Row::computed(column_0, column(0)),
        Row::computed(column_7, column(7)),
        Row::computed(column_10, column(10)),
        Row::computed(column_13, column(13)),
        Row::computed(column_19, column(19)),
        Row::computed(pol_7, list(cube.positions(7))),
        Row::computed(pol_50, list(cube.positions(50))),
        Row::computed(stage_1, stage(1)?),
        Row::computed(stage_2, stage(2)?),
        Row::computed(stage_3, stage(3)?),
        Row::computed(stage_4, stage(4)?),
        Row::computed(xi, query(10)?),
        Row::computed(i, query(0)?),
        Row::computed(xx, query(19)?),
        Row::computed(flows, list(FLOWS.map(|(flow, _)| flow + 1))),
        Row::computed(flow_xi, list(estimates)),
    ])
}

/// Figure 8: flows I, VIII, XIV and XX with their sizes.
const FLOWS: [(u64, u64); 4] = [(0, 5), (7, 3), (13, 4), (19, 2)];

/// Figure 3: the entries of H G that are not zero, and the data columns that the fourth covers.
fn hamming() -> [u64; 2] {
    const G: [[u64; 4]; 7] = [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [1, 0, 1, 1],
        [1, 1, 0, 1],
        [0, 1, 1, 1],
    ];
    const H: [[u64; 7]; 3] = [[1, 0, 1, 1, 1, 0, 0], [1, 1, 0, 1, 0, 1, 0], [0, 1, 1, 1, 0, 0, 1]];
    let entry = |row: &[u64; 7], col: usize| (0..7).map(|i| row[i] * G[i][col]).sum::<u64>() % 2;
    let wrong = H.iter().flat_map(|row| (0..4).map(move |col| entry(row, col))).sum();
    let covers = |col: &usize| H.iter().all(|row| row[*col] <= row[3]);
    [wrong, (0..3).filter(covers).count() as u64]
}

/// Whole numbers as a value.
pub fn list(numbers: impl IntoIterator<Item = u64>) -> Value {
    Value::Numbers(numbers.into_iter().map(|number| number as f64).collect())
}
