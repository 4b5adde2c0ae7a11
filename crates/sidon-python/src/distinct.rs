//! Counters of distinct keys.

use crate::{
    answer::{ImageArg, PyCertainty, PyInterval, accepted},
    error::OrRaise,
    key::{Column, Value},
    seed::{PySeed, SeedArg},
    shape::{from_python, in_words, to_python},
    shared::Shared,
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};
use sidon::count::Distinct;

/// The number of distinct keys in a fixed number of bytes: exact up to 256 keys, then with an interval.
///
/// >>> import sidon
/// >>> hosts = sidon.Distinct(sidon.plan.distinct(0.01), seed=1)
/// >>> hosts.add_batch(["10.0.0.1", "10.0.0.2", "10.0.0.1"])
/// >>> str(hosts.count()), hosts.memory_bytes
/// ('= 2', 4592)
/// >>> hosts.add_batch(range(100_000))
/// >>> 100_002 in hosts.count()
/// True
#[pyclass(frozen, name = "Distinct", module = "sidon")]
pub(crate) struct PyDistinct(Shared<Distinct>);

impl PyDistinct {
    fn of(counter: Distinct) -> Self {
        PyDistinct(Shared::new(counter))
    }
}

#[pymethods]
impl PyDistinct {
    #[new]
    fn new(shape: &Bound<'_, PyAny>, seed: SeedArg) -> PyResult<Self> {
        let counter = Distinct::new(from_python("shape of a counter", shape)?, seed.0);
        Ok(PyDistinct::of(counter.or_raise(shape.py())?))
    }

    #[staticmethod]
    fn from_bytes(image: ImageArg, seed: SeedArg, py: Python<'_>) -> PyResult<Self> {
        let counter = py.detach(|| Distinct::from_bytes(&image.0, seed.0));
        Ok(PyDistinct::of(counter.or_raise(py)?))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let counter = self.0.read(py)?;
        let counter = &*counter;
        Ok(PyBytes::new(py, &py.detach(|| counter.to_bytes())))
    }

    fn add(&self, key: Value, py: Python<'_>) -> PyResult<()> {
        self.0.write(py)?.add(&key);
        Ok(())
    }

    fn add_batch(&self, keys: Column, py: Python<'_>) -> PyResult<()> {
        let mut counter = self.0.write(py)?;
        let counter = &mut *counter;
        py.detach(|| keys.each(counter.seed(), |_, keys| counter.add_batch(keys)));
        Ok(())
    }

    /// The number of distinct keys.
    fn count(&self, py: Python<'_>) -> PyResult<PyInterval> {
        Ok(PyInterval(self.0.read(py)?.count()))
    }

    fn merge(&self, other: &Bound<'_, PyDistinct>) -> PyResult<()> {
        let py = other.py();
        let merged = match self.0.write_and_read(&other.get().0, py)? {
            Some((mut own, other)) => {
                let (own, other) = (&mut *own, &*other);
                py.detach(|| own.merge(other))
            }
            // The union with itself is the counter.
            None => Ok(()),
        };
        accepted(merged, py)
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.0.write(py)?.clear();
        Ok(())
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(PyDistinct::of(self.0.read(py)?.try_clone().or_raise(py)?))
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

    /// The probability that the interval of a count does not contain the truth.
    #[getter]
    fn certainty(&self, py: Python<'_>) -> PyResult<PyCertainty> {
        Ok(PyCertainty(self.0.read(py)?.certainty()))
    }

    fn __eq__(&self, other: &Bound<'_, PyDistinct>) -> PyResult<bool> {
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
        let counter = self.0.read(py)?;
        Ok(format!("<Distinct: {}, keys {}>", in_words(&counter.shape()), counter.count()))
    }
}
