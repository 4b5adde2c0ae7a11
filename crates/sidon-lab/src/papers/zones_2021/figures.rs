//! The worked examples of 003.

use super::zones::{ols, pol};
use crate::{claim::Value, experiment::Experiment, row::Row, trials::Run};
use sidon::internals::Cells;
use sidon::{Infeasible, zone::Sketch};

/// Figures 3, 4, 6 and 8, and two columns of section 5.
pub fn figures(experiment: &Experiment, _: &Run<'_>, _: u64) -> Result<Vec<Row>, Infeasible> {
    let square = ols(25, 5, 4)?;
    let cube = pol(343, 7, 3, 5, false)?;
    let value = |y: u64, group: u32| square.position(square.split(y), group) - square.start(group);
    let counters = |flows: u64| -> Result<Sketch<_>, Infeasible> {
        let mut sketch = Sketch::new(square.clone(), 32)?;
        for &(flow, size) in &FLOWS[..flows as usize] {
            sketch.add(&flow, size).expect("a few packets fit a counter of 32 bits");
        }
        Ok(sketch)
    };
    let query = |flow: u64| -> Result<Value, Infeasible> {
        let all: Vec<u64> = counters(4)?.counters().collect();
        Ok(list(square.positions(flow).map(|cell| all[cell as usize])))
    };
    let mut rows = Vec::new();
    for claim in experiment.claims {
        let last = claim.id.rsplit('.').next().unwrap_or_default();
        let number: u64 = last.trim_start_matches("stage").parse().unwrap_or_default();
        let measured = match claim.id {
            "003.fig3.hamming" => list(hamming()),
            "003.fig4.superposition" => list((0..25).flat_map(|y| [value(y, 2), value(y, 3)])),
            "003.fig4.parity_bits" => list((0..25).filter(|&y| value(y, 2) == 0)),
            "003.fig6.shape" => list([square.cells(), square.universe()]),
            "003.fig8.query.XI" => query(10)?,
            "003.fig8.query.I" => query(0)?,
            "003.fig8.query.XX" => query(19)?,
            "003.fig8.flow_numbers" => list(FLOWS.map(|(flow, _)| flow + 1)),
            "003.fig8.flow_XI" => {
                let mut estimates = Vec::new();
                for flows in 1..=4 {
                    estimates.push(counters(flows)?.minimum(10));
                }
                list(estimates)
            }
            id if id.starts_with("003.fig6.column") => list(square.positions(number)),
            id if id.starts_with("003.pol.column") => list(cube.positions(number)),
            id if id.starts_with("003.fig8.stage") => list(counters(number)?.counters()),
            _ => Value::Nothing,
        };
        rows.push(Row::computed(claim, measured));
    }
    Ok(rows)
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
