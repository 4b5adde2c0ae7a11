//! Answers with their certainty, as immutable objects of Python.

use crate::{
    error::{OrRaise, Raise},
    shape::to_python,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::{
    exceptions::{PyIndexError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use serde_json::json;
use sidon::{
    Bound as Side, Certainty, Estimate, Lookup, Refused,
    count::{Bounds, Interval},
    set::Stats,
};

/// The certainty of an answer.
#[pyclass(frozen, eq, name = "Certainty", module = "sidon")]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PyCertainty(pub(crate) Certainty);

#[pymethods]
impl PyCertainty {
    /// The probability of being wrong, over the choice of the seed: 0.0 if the answer is a fact.
    #[getter]
    fn error(&self) -> f64 {
        self.0.error()
    }

    fn __float__(&self) -> f64 {
        self.0.error()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Certainty: {}>", self.0)
    }
}

/// A count with its bounds.
#[pyclass(frozen, eq, name = "Estimate", module = "sidon")]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PyEstimate(pub(crate) Estimate);

#[pymethods]
impl PyEstimate {
    #[getter]
    fn value(&self) -> u64 {
        self.0.value
    }

    /// The side of the truth on which ``value`` may lie.
    #[getter]
    fn bound(&self) -> &'static str {
        match self.0.bound {
            Side::Exact => "exact",
            Side::AtMost => "at_most",
            Side::AtLeast => "at_least",
        }
    }

    /// The truth is at least this, as far as ``certainty`` goes.
    #[getter]
    fn lower(&self) -> u64 {
        bounds(&self.0)[0]
    }

    /// The truth is at most this. ``None`` without an upper bound.
    #[getter]
    fn upper(&self) -> Option<u64> {
        Some(bounds(&self.0)[1]).filter(|&upper| upper < u64::MAX)
    }

    #[getter]
    fn slack(&self) -> u64 {
        self.0.slack
    }

    #[getter]
    fn certainty(&self) -> PyCertainty {
        PyCertainty(self.0.certainty)
    }

    fn __int__(&self) -> u64 {
        self.0.value
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Estimate: {}>", self.0)
    }
}

/// The lower and the upper bound of an estimate; `u64::MAX` without an upper bound.
pub(crate) fn bounds(estimate: &Estimate) -> [u64; 2] {
    let lower = estimate.value.saturating_sub(estimate.slack);
    match estimate.bound {
        Side::Exact => [estimate.value; 2],
        Side::AtMost => [lower, estimate.value],
        Side::AtLeast => [lower, u64::MAX],
    }
}

/// A lower and an upper bound of an amount.
#[pyclass(frozen, eq, hash, name = "Bounds", module = "sidon")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyBounds {
    least: u64,
    most: u64,
}

impl From<Bounds> for PyBounds {
    fn from(Bounds { least, most }: Bounds) -> Self {
        PyBounds { least, most }
    }
}

impl PyBounds {
    fn bounds(&self) -> Bounds {
        Bounds { least: self.least, most: self.most }
    }
}

#[pymethods]
impl PyBounds {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str, &'static str) = ("lower", "upper");

    /// The truth is at least this.
    #[getter]
    fn lower(&self) -> u64 {
        self.least
    }

    /// ``None`` without an upper bound.
    #[getter]
    fn upper(&self) -> Option<u64> {
        Some(self.most).filter(|&most| most < u64::MAX)
    }

    /// Whether both bounds are equal.
    #[getter]
    fn exact(&self) -> bool {
        self.bounds().is_exact()
    }

    fn __str__(&self) -> String {
        self.bounds().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Bounds: {}>", self.bounds())
    }
}

/// A number of distinct elements, with an interval that contains the truth for 99 % of the seeds.
#[pyclass(frozen, eq, hash, name = "Interval", module = "sidon")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyInterval(pub(crate) Interval);

#[pymethods]
impl PyInterval {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str, &'static str, &'static str) = ("lower", "value", "upper");

    /// The lower end of the interval.
    #[getter]
    fn lower(&self) -> u64 {
        self.0.least
    }

    /// The most likely number.
    #[getter]
    fn value(&self) -> u64 {
        self.0.value
    }

    /// ``None`` without an upper end.
    #[getter]
    fn upper(&self) -> Option<u64> {
        Some(self.0.most).filter(|&most| most < u64::MAX)
    }

    /// Whether both ends are equal.
    #[getter]
    fn exact(&self) -> bool {
        self.0.is_exact()
    }

    fn __contains__(&self, number: u64) -> bool {
        self.0.contains(number)
    }

    fn __int__(&self) -> u64 {
        self.0.value
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Interval: {}>", self.0)
    }
}

/// The answer of a state map: the key is in this state.
///
/// >>> import sidon
/// >>> match sidon.State(2):
/// ...     case sidon.State(number):
/// ...         number
/// ...     case sidon.Absent() | sidon.DontKnow():
/// ...         None
/// 2
#[pyclass(frozen, eq, hash, name = "State", module = "sidon")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyState {
    #[pyo3(get)]
    state: u16,
}

#[pymethods]
impl PyState {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str,) = ("state",);

    #[new]
    fn new(state: u16) -> Self {
        PyState { state }
    }

    fn __repr__(&self) -> String {
        format!("State({})", self.state)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        (slf.get_type(), (slf.get().state,)).into_pyobject(slf.py())
    }
}

/// An answer without content: all objects of the class are equal.
macro_rules! answers {
    ($($(#[$doc:meta])* $rust:ident $name:literal;)*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, eq, hash, name = $name, module = "sidon")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) struct $rust;

        #[pymethods]
        impl $rust {
            #[new]
            fn new() -> Self {
                $rust
            }

            fn __repr__(&self) -> &'static str {
                concat!($name, "()")
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
                (slf.get_type(), ()).into_pyobject(slf.py())
            }
        }
    )*};
}
answers! {
    /// The answer of a state map: the key has no state.
    PyAbsent "Absent";
    /// The answer of a state map: the cells of the key do not determine its state.
    PyDontKnow "DontKnow";
}

/// The answer of a state map as an object of its class.
pub(crate) fn lookup(py: Python<'_>, answer: Lookup<u16>) -> PyResult<Bound<'_, PyAny>> {
    Ok(match answer {
        Lookup::State(state) => Bound::new(py, PyState { state })?.into_any(),
        Lookup::Absent => Bound::new(py, PyAbsent)?.into_any(),
        Lookup::DontKnow => Bound::new(py, PyDontKnow)?.into_any(),
    })
}

/// The keys of a batch that were refused: a sequence of pairs of the index and a ``Refused``.
#[pyclass(frozen, name = "Refusals", module = "sidon", sequence)]
#[derive(Default)]
pub(crate) struct PyRefusals {
    all: Vec<(usize, Refused)>,
}

impl PyRefusals {
    /// Adds a refusal.
    pub(crate) fn add(&mut self, index: usize, why: Refused) {
        self.all.push((index, why));
    }
}

#[pymethods]
impl PyRefusals {
    /// The indices of the refused keys.
    fn indices<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.all.iter().map(|&(index, _)| index as u64).collect::<Vec<_>>().into_pyarray(py)
    }

    fn __len__(&self) -> usize {
        self.all.len()
    }

    fn __getitem__<'py>(
        &self,
        index: isize,
        py: Python<'py>,
    ) -> PyResult<(usize, Bound<'py, PyAny>)> {
        let from_end = if index < 0 { self.all.len() } else { 0 };
        let at = from_end.checked_add_signed(index).and_then(|at| self.all.get(at));
        let &(index, why) = at.ok_or_else(|| PyIndexError::new_err("no such refusal"))?;
        Ok((index, why.raise(py).into_value(py).into_bound(py).into_any()))
    }

    fn __repr__(&self) -> String {
        match &self.all[..] {
            [] => "<Refusals: none>".to_owned(),
            [(index, why), ..] => {
                format!("<Refusals: {}, the first is row {index}: {why}>", self.all.len())
            }
        }
    }
}

/// The counts about a table, as a dict.
pub(crate) fn stats(py: Python<'_>, stats: Stats) -> PyResult<Bound<'_, PyAny>> {
    let Stats { load, largest, at_ceiling, overflowed, unknown, stashed, .. } = stats;
    let Stats { searches, resolved, moved, followed, exceptions, .. } = stats;
    to_python(
        py,
        &json!({
            "load": load,
            "largest": largest,
            "at_ceiling": at_ceiling,
            "overflowed": overflowed,
            "unknown": unknown,
            "stashed": stashed,
            "searches": searches,
            "resolved": resolved,
            "moved": moved,
            "followed": followed,
            "exceptions": exceptions,
        }),
    )
}

/// The bytes of a structure, as an argument.
pub(crate) struct ImageArg(pub(crate) pyo3::pybacked::PyBackedBytes);

impl<'py> FromPyObject<'_, 'py> for ImageArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract() {
            Ok(bytes) => Ok(ImageArg(bytes)),
            // A memoryview or another buffer.
            Err(_) => Ok(ImageArg(
                object.py().get_type::<pyo3::types::PyBytes>().call1((&object,))?.extract()?,
            )),
        }
    }
}

/// An error about an argument.
pub(crate) fn wrong(why: impl ToString) -> PyErr {
    PyValueError::new_err(why.to_string())
}

/// Raises a refusal of a single key.
pub(crate) fn accepted(result: Result<(), Refused>, py: Python<'_>) -> PyResult<()> {
    result.or_raise(py)
}
