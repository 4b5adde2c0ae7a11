//! Sets of any structure.

use crate::{
    answer::{ImageArg, PyCertainty, PyRefusals, accepted, stats},
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
use sidon::{Infeasible, plan::SetShape, set::AnySet};

/// A set of keys, in memory that its shape fixes.
///
/// ``key in set`` never misses a stored key. It is true for another key with the probability of ``certainty``.
/// Sets whose keys can leave are multisets.
///
/// A batch is an Arrow array or stream, a numpy array or any iterable. Arrow and numpy arrays are read in place, and
/// other threads run meanwhile: do not change an array while a batch reads it. A row of a two-dimensional array of
/// bytes is one key. An integer is hashed as eight bytes, so ``-1`` and ``2**64 - 1`` are one key.
///
/// >>> import numpy, sidon
/// >>> seen = sidon.Set({"bloom": {"bits": 9600, "hashes": 7}}, seed=1)
/// >>> seen.insert_batch(numpy.arange(1000))
/// <Refusals: none>
/// >>> seen.contains_batch([1, 999]).tolist(), len(seen)
/// ([True, True], 1000)
/// >>> 5 in seen, "never inserted" in seen
/// (True, False)
#[pyclass(frozen, name = "Set", module = "sidon")]
pub(crate) struct PySet(Shared<AnySet>);

impl PySet {
    fn of(set: AnySet) -> Self {
        PySet(Shared::new(set))
    }
}

#[pymethods]
impl PySet {
    #[new]
    #[pyo3(signature = (shape, seed, *, exceptions = 0))]
    fn new(shape: &Bound<'_, PyAny>, seed: SeedArg, exceptions: u32) -> PyResult<Self> {
        let py = shape.py();
        let shape: SetShape = from_python("shape of a set", shape)?;
        let set = AnySet::new(shape, seed.0).or_raise(py)?;
        let room =
            |set: AnySet| if exceptions == 0 { Ok(set) } else { set.with_exceptions(exceptions) };
        Ok(PySet::of(room(set).or_raise(py)?))
    }

    /// The set of bytes that were written under this seed.
    #[staticmethod]
    fn from_bytes(image: ImageArg, seed: SeedArg, py: Python<'_>) -> PyResult<Self> {
        let set = py.detach(|| AnySet::from_bytes(&image.0, seed.0));
        Ok(PySet::of(set.or_raise(py)?))
    }

    /// A set of these keys. ``Infeasible`` if it refuses one of them.
    #[staticmethod]
    fn from_keys(shape: &Bound<'_, PyAny>, seed: SeedArg, keys: Column) -> PyResult<Self> {
        let py = shape.py();
        let shape: SetShape = from_python("shape of a set", shape)?;
        let fill = || {
            let mut set = AnySet::new(shape, seed.0)?;
            let mut failed = None;
            keys.each(seed.0, |first, keys| {
                set.insert_batch(keys, &mut |i, why| {
                    failed.get_or_insert(Infeasible::Key { index: first + i, why });
                });
            });
            failed.map_or(Ok(set), Err)
        };
        Ok(PySet::of(py.detach(fill).or_raise(py)?))
    }

    /// The byte image, without the seed.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let set = self.0.read(py)?;
        let set = &*set;
        Ok(PyBytes::new(py, &py.detach(|| set.to_bytes())))
    }

    /// Stores one more copy of the key, or raises ``Refused``.
    fn insert(&self, key: Value, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.insert(&key), py)
    }

    /// Removes one copy of a key that is stored, or raises ``Refused``.
    fn remove(&self, key: Value, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.remove(&key), py)
    }

    /// Excepts a key that is not stored, so that a known false positive does not repeat.
    fn except_key(&self, key: Value, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.except(&key), py)
    }

    fn contains(&self, key: Value, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.read(py)?.contains(&key))
    }

    /// Inserts the keys in order. Returns those that were refused; the others are stored.
    fn insert_batch(&self, keys: Column, py: Python<'_>) -> PyResult<PyRefusals> {
        let mut set = self.0.write(py)?;
        let (set, mut refusals) = (&mut *set, PyRefusals::default());
        py.detach(|| {
            keys.each(set.seed(), |first, keys| {
                set.insert_batch(keys, &mut |i, why| refusals.add(first + i, why));
            });
        });
        Ok(refusals)
    }

    fn remove_batch(&self, keys: Column, py: Python<'_>) -> PyResult<PyRefusals> {
        let mut set = self.0.write(py)?;
        let (set, mut refusals) = (&mut *set, PyRefusals::default());
        py.detach(|| {
            keys.each(set.seed(), |first, keys| {
                set.remove_batch(keys, &mut |i, why| refusals.add(first + i, why));
            });
        });
        Ok(refusals)
    }

    fn contains_batch<'py>(
        &self,
        keys: Column,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let set = self.0.read(py)?;
        let set = &*set;
        let found = py.detach(|| {
            let mut found = vec![false; keys.len()];
            keys.each(set.seed(), |first, keys| {
                set.contains_batch(keys, &mut found[first..first + keys.len()]);
            });
            found
        });
        Ok(found.into_pyarray(py))
    }

    /// Adds the keys of another set of the same shape and seed, or raises ``Refused``.
    fn merge(&self, other: &Bound<'_, PySet>) -> PyResult<()> {
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

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.0.write(py)?.clear();
        Ok(())
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let set = self.0.read(py)?;
        let set = &*set;
        Ok(PySet::of(py.detach(|| set.try_clone()).or_raise(py)?))
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

    /// The probability that a key that was never inserted is found, from the present cells.
    #[getter]
    fn certainty(&self, py: Python<'_>) -> PyResult<PyCertainty> {
        Ok(PyCertainty(self.0.read(py)?.certainty()))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.0.read(py)?.stats();
        stats(py, found)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.0.read(py)?.len())?)
    }

    fn __contains__(&self, key: Value, py: Python<'_>) -> PyResult<bool> {
        self.contains(key, py)
    }

    fn __eq__(&self, other: &Bound<'_, PySet>) -> PyResult<bool> {
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
        let set = self.0.read(py)?;
        let (shape, load) = (in_words(&set.shape()), set.stats().load);
        Ok(format!("<Set: {shape}, len {}, load {load:.4}, {}>", set.len(), set.certainty()))
    }
}
