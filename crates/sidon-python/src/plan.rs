//! Plans: from a target to a shape.

use crate::map::MapShape;
use crate::{
    answer::wrong,
    error::OrRaise,
    shape::{from_python, to_python},
};
use pyo3::prelude::*;
use serde_json::json;
use sidon::plan::{self, Prefer, SetRow, States, Target};

/// `"memory"` or `"speed"`.
pub(crate) fn prefer(name: &str) -> PyResult<Prefer> {
    match name {
        "memory" => Ok(Prefer::Memory),
        "speed" => Ok(Prefer::Speed),
        _ => Err(wrong(format!("prefer is {name:?}, and must be \"memory\" or \"speed\""))),
    }
}

fn row<'py>(py: Python<'py>, row: &SetRow) -> PyResult<Bound<'py, PyAny>> {
    let SetRow { bytes, false_positives, lines, shape } = row;
    let fields = json!({
        "name": shape.name(),
        "bytes": bytes,
        "false_positives": false_positives,
        "lines": lines,
        "shape": shape,
    });
    to_python(py, &fields)
}

#[pyfunction]
pub(crate) fn plan_set<'py>(
    keys: u64,
    false_positives: f64,
    deletes: bool,
    growth: u32,
    prefer: &str,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let target = Target { keys, false_positives, deletes, growth, prefer: self::prefer(prefer)? };
    row(py, &plan::set(target).or_raise(py)?)
}

#[pyfunction]
pub(crate) fn plan_sets<'py>(
    keys: u64,
    false_positives: f64,
    growth: u32,
    py: Python<'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let target = Target { growth, ..Target::new(keys, false_positives) };
    plan::sets(target).or_raise(py)?.iter().map(|found| row(py, found)).collect()
}

#[pyfunction]
pub(crate) fn plan_count<'py>(
    epsilon: f64,
    delta: f64,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &plan::count::shape(epsilon, delta).or_raise(py)?)
}

#[pyfunction]
pub(crate) fn plan_count_in<'py>(
    bytes: u64,
    delta: f64,
    width: u32,
    layout: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = layout.py();
    let layout = from_python("layout", layout)?;
    to_python(py, &plan::count::shape_in(bytes, delta, width, layout).or_raise(py)?)
}

#[pyfunction]
pub(crate) fn plan_top<'py>(
    bytes: u64,
    key_bytes: usize,
    amounts: usize,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &plan::top::shape(bytes, key_bytes, amounts).or_raise(py)?)
}

#[pyfunction]
pub(crate) fn plan_distinct<'py>(error: f64, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &plan::distinct::shape(error).or_raise(py)?)
}

#[pyfunction]
pub(crate) fn plan_fan_out<'py>(
    keys: u64,
    error: f64,
    panes: u32,
    pane: u64,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let target = plan::fan_out::Target { keys, error, panes, pane };
    to_python(py, &plan::fan_out::shape(target).or_raise(py)?)
}

#[pyfunction]
pub(crate) fn plan_prefixes<'py>(
    bytes: u64,
    amounts: usize,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &plan::prefixes::shape(bytes, amounts).or_raise(py)?)
}

#[pyfunction]
pub(crate) fn plan_states<'py>(
    flows: u64,
    states: u32,
    error: f64,
    prefer: &str,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let target = States { flows, states, error };
    let shape = plan::fingerprint::shape(target, self::prefer(prefer)?).or_raise(py)?;
    to_python(py, &MapShape::Fingerprint(shape))
}

#[pyfunction]
pub(crate) fn plan_zones<'py>(
    universe: u64,
    members: u64,
    py: Python<'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let shapes = plan::zone::shapes(plan::zone::Target { universe, members }).or_raise(py)?;
    shapes.iter().map(|shape| to_python(py, shape)).collect()
}
