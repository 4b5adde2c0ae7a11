//! Count-Min sketches.

use crate::{
    answer::{ImageArg, PyCertainty, PyEstimate, PyRefusals, accepted, bounds, stats, wrong},
    error::OrRaise,
    key::{Column, Value},
    seed::{PySeed, SeedArg},
    shape::{from_python, in_words, to_python},
    shared::Shared,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};
use sidon::{Estimate, count::Min};

/// A Count-Min sketch: an upper bound of the count of any key.
///
/// >>> import sidon
/// >>> counts = sidon.Min(sidon.plan.count(0.001, 0.01), seed=1)
/// >>> counts.add_batch([80, 443, 80], [10, 20, 30])
/// <Refusals: none>
/// >>> counts.estimate(80).value, counts.estimate(22).value, counts.total
/// (40, 0, 60)
/// >>> lower, upper, error = counts.estimate_batch([80, 443])
/// >>> upper.tolist()
/// [40, 20]
#[pyclass(frozen, name = "Min", module = "sidon")]
pub(crate) struct PyMin(Shared<Min>);

impl PyMin {
    fn of(sketch: Min) -> Self {
        PyMin(Shared::new(sketch))
    }
}

/// The error about amounts.
pub(crate) const NOT_AMOUNTS: &str =
    "there must be one amount per key, an integer from 0 to 2**64 - 1";

type Bounded<'py> =
    (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl PyMin {
    #[new]
    fn new(shape: &Bound<'_, PyAny>, seed: SeedArg) -> PyResult<Self> {
        let sketch = Min::new(from_python("shape of a sketch", shape)?, seed.0);
        Ok(PyMin::of(sketch.or_raise(shape.py())?))
    }

    #[staticmethod]
    fn from_bytes(image: ImageArg, seed: SeedArg, py: Python<'_>) -> PyResult<Self> {
        let sketch = py.detach(|| Min::from_bytes(&image.0, seed.0));
        Ok(PyMin::of(sketch.or_raise(py)?))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let sketch = self.0.read(py)?;
        let sketch = &*sketch;
        Ok(PyBytes::new(py, &py.detach(|| sketch.to_bytes())))
    }

    #[pyo3(signature = (key, amount = 1))]
    fn add(&self, key: Value, amount: u64, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.add(&key, amount), py)
    }

    #[pyo3(signature = (key, amount = 1))]
    fn subtract(&self, key: Value, amount: u64, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.subtract(&key, amount), py)
    }

    #[pyo3(signature = (keys, amounts = None))]
    fn add_batch(
        &self,
        keys: Column,
        amounts: Option<Column>,
        py: Python<'_>,
    ) -> PyResult<PyRefusals> {
        let amounts = match &amounts {
            Some(amounts) => amounts.amounts(keys.len()).ok_or_else(|| wrong(NOT_AMOUNTS))?,
            None => vec![1; keys.len()].into(),
        };
        let mut sketch = self.0.write(py)?;
        let (sketch, mut refusals) = (&mut *sketch, PyRefusals::default());
        py.detach(|| {
            keys.each(sketch.seed(), |first, keys| {
                let amounts = &amounts[first..first + keys.len()];
                sketch.add_batch(keys, amounts, &mut |i, why| refusals.add(first + i, why));
            });
        });
        Ok(refusals)
    }

    fn estimate(&self, key: Value, py: Python<'_>) -> PyResult<PyEstimate> {
        Ok(PyEstimate(self.0.read(py)?.estimate(&key)))
    }

    /// Lower bounds, upper bounds, and the probability that a lower bound is wrong.
    ///
    /// ``2**64 - 1`` means no upper bound.
    fn estimate_batch<'py>(&self, keys: Column, py: Python<'py>) -> PyResult<Bounded<'py>> {
        let sketch = self.0.read(py)?;
        let sketch = &*sketch;
        let (lower, upper, error) = py.detach(|| {
            let mut answers = vec![Estimate::default(); keys.len()];
            keys.each(sketch.seed(), |first, keys| {
                sketch.estimate_batch(keys, &mut answers[first..first + keys.len()]);
            });
            let bounds = answers.iter().map(bounds);
            let (lower, upper): (Vec<_>, Vec<_>) =
                bounds.map(|[lower, upper]| (lower, upper)).unzip();
            (
                lower,
                upper,
                answers.iter().map(|answer| answer.certainty.error()).collect::<Vec<_>>(),
            )
        });
        Ok((lower.into_pyarray(py), upper.into_pyarray(py), error.into_pyarray(py)))
    }

    fn merge(&self, other: &Bound<'_, PyMin>) -> PyResult<()> {
        let py = other.py();
        let merged = match self.0.write_and_read(&other.get().0, py)? {
            Some((mut own, other)) => {
                let (own, other) = (&mut *own, &*other);
                py.detach(|| own.merge(other))
            }
            None => {
                let mut own = self.0.write(py)?;
                let copy = own.try_clone().or_raise(py)?;
                own.merge(&copy)
            }
        };
        accepted(merged, py)
    }

    /// Multiplies every count by a fraction of at most 1.
    fn decay(&self, numerator: u32, denominator: u32, py: Python<'_>) -> PyResult<()> {
        self.0.write(py)?.decay(numerator, denominator).or_raise(py)
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.0.write(py)?.clear();
        Ok(())
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(PyMin::of(self.0.read(py)?.try_clone().or_raise(py)?))
    }

    #[getter]
    fn total(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.read(py)?.total())
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.0.read(py)?.shape();
        to_python(py, &shape)
    }

    #[getter]
    fn seed(&self, py: Python<'_>) -> PyResult<PySeed> {
        Ok(PySeed::of(self.0.read(py)?.seed()))
    }

    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.read(py)?.memory_bytes())
    }

    /// The probability that the lower bound of an estimate does not hold. Upper bounds are certain.
    #[getter]
    fn certainty(&self, py: Python<'_>) -> PyResult<PyCertainty> {
        Ok(PyCertainty(self.0.read(py)?.certainty()))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.0.read(py)?.stats();
        stats(py, found)
    }

    fn __eq__(&self, other: &Bound<'_, PyMin>) -> PyResult<bool> {
        let py = other.py();
        let Some((own, other)) = self.0.write_and_read(&other.get().0, py)? else {
            return Ok(true);
        };
        let (own, other) = (&*own, &*other);
        Ok(py.detach(|| own == other))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let read = slf.get_type().getattr("from_bytes")?;
        (read, (own.to_bytes(py)?, own.seed(py)?)).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let sketch = self.0.read(py)?;
        let (shape, load) = (in_words(&sketch.shape()), sketch.stats().load);
        let certainty = sketch.certainty();
        Ok(format!(
            "<Min: {shape}, total {}, load {load:.4}, lower bounds {certainty}>",
            sketch.total()
        ))
    }
}
