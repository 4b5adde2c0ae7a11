//! Distinct elements per key: one class over the tables of every type of keys.

mod table;

use crate::{
    answer::{ImageArg, PyInterval, accepted, wrong},
    error::OrRaise,
    key::{Column, Value},
    seed::{PySeed, SeedArg},
    shape::{from_python, in_words, to_python},
    shared::Shared,
    top::kind::Kind,
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};
use sidon::{Digest, Infeasible, count::Interval};
use table::{Source, Table};

/// The number of distinct elements of each key, for the keys that have most: hosts that scan.
///
/// ``key`` is the type of the keys, as for ``Top``. Elements are of any type. Times ``now`` are integers in the unit
/// that the shape's ``pane`` has; without ageing they may be left out.
///
/// >>> import sidon
/// >>> ports = sidon.FanOut(sidon.plan.fan_out(100, 0.13), seed=1, key="str")
/// >>> for port in range(1000):
/// ...     _ = ports.add("10.0.0.1", port)
/// >>> ports.add_batch(["10.0.0.2", "10.0.0.3"], [443, 443])
/// >>> [(host, count)] = ports.largest(1)
/// >>> host, 1000 in count
/// ('10.0.0.1', True)
#[pyclass(frozen, name = "FanOut", module = "sidon")]
pub(crate) struct PyFanOut {
    table: Shared<Box<dyn Table>>,
    kind: Kind,
}

impl PyFanOut {
    fn of(table: Box<dyn Table>, kind: Kind) -> Self {
        PyFanOut { table: Shared::new(table), kind }
    }

    /// A column of one key that the table can keep.
    fn one(&self, key: Value, py: Python<'_>) -> PyResult<Column> {
        let column = Column::one(key);
        let checked = self.kind.check(&column);
        checked.map_err(|why| crate::error::BadKey { row: None, ..why }).or_raise(py)?;
        Ok(column)
    }
}

#[pymethods]
impl PyFanOut {
    #[new]
    #[pyo3(signature = (shape, seed, *, key))]
    fn new(shape: &Bound<'_, PyAny>, seed: SeedArg, key: Kind) -> PyResult<Self> {
        let source = Source::Shape(from_python("shape of a table", shape)?);
        let table = table::build(key, &source, seed.0).or_raise(shape.py())?;
        Ok(PyFanOut::of(table, key))
    }

    #[staticmethod]
    #[pyo3(signature = (image, seed, *, key))]
    fn from_bytes(image: ImageArg, seed: SeedArg, key: Kind, py: Python<'_>) -> PyResult<Self> {
        let read = py.detach(|| table::build(key, &Source::Image(&image.0), seed.0));
        Ok(PyFanOut::of(read.or_raise(py)?, key))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let table = self.table.read(py)?;
        let table = &**table;
        Ok(PyBytes::new(py, &py.detach(|| table.to_bytes())))
    }

    /// Adds an element to those of the key. Returns the estimate of the key's entry, or 0 without one.
    #[pyo3(signature = (key, element, now = 0))]
    fn add(&self, key: Value, element: Value, now: u64, py: Python<'_>) -> PyResult<u64> {
        let column = self.one(key, py)?;
        let mut table = self.table.write(py)?;
        let element = sidon::Key::digest(&element, table.seed());
        table.add_batch(&column, &[element], now);
        Ok(table.estimate(&column, now).first().map_or(0, |interval| interval.value))
    }

    /// Adds one element per key. A wrong row raises ``BadKey`` and adds nothing.
    #[pyo3(signature = (keys, elements, now = 0))]
    fn add_batch(&self, keys: Column, elements: Column, now: u64, py: Python<'_>) -> PyResult<()> {
        if keys.len() != elements.len() {
            return Err(wrong("there must be one element per key"));
        }
        let mut table = self.table.write(py)?;
        let (table, kind) = (&mut **table, self.kind);
        let add = || {
            kind.check(&keys)?;
            let mut digests = vec![Digest(0); elements.len()];
            elements.each(table.seed(), |first, found| {
                digests[first..first + found.len()].copy_from_slice(found);
            });
            table.add_batch(&keys, &digests, now);
            Ok::<_, crate::error::BadKey>(())
        };
        py.detach(add).or_raise(py)
    }

    /// The number of distinct elements of a key in the panes up to ``now``.
    #[pyo3(signature = (key, now = 0))]
    fn estimate(&self, key: Value, now: u64, py: Python<'_>) -> PyResult<PyInterval> {
        let column = self.one(key, py)?;
        let found = self.table.read(py)?.estimate(&column, now);
        Ok(PyInterval(found.first().copied().unwrap_or_default()))
    }

    /// The keys with the most elements, largest first, each with its number.
    #[pyo3(signature = (count, now = 0))]
    fn largest<'py>(
        &self,
        count: usize,
        now: u64,
        py: Python<'py>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, PyInterval)>> {
        let table = self.table.read(py)?;
        let table = &**table;
        let listed = py.detach(|| table.largest(count, now));
        let entry = |(key, interval): &(Vec<u8>, Interval)| -> PyResult<_> {
            Ok((self.kind.object(py, key)?, PyInterval(*interval)))
        };
        listed.iter().map(entry).collect()
    }

    /// An upper bound of the elements of every key without an entry.
    #[pyo3(signature = (now = 0))]
    fn others(&self, now: u64, py: Python<'_>) -> PyResult<u64> {
        let table = self.table.read(py)?;
        let table = &**table;
        Ok(py.detach(|| table.others(now)))
    }

    /// Adds another table of the same shape and seed.
    fn merge(&self, other: &Bound<'_, PyFanOut>) -> PyResult<()> {
        let py = other.py();
        let merged = match self.table.write_and_read(&other.get().table, py)? {
            Some((mut own, other)) => {
                let (own, other) = (&mut **own, &**other);
                py.detach(|| own.merge(other))
            }
            None => {
                let mut own = self.table.write(py)?;
                let copy = own.try_clone().or_raise(py)?;
                own.merge(&*copy)
            }
        };
        accepted(merged, py)
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.table.write(py)?.clear();
        Ok(())
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let copy: Result<_, Infeasible> = self.table.read(py)?.try_clone();
        Ok(PyFanOut::of(copy.or_raise(py)?, self.kind))
    }

    #[getter]
    fn key(&self) -> Kind {
        self.kind
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.table.read(py)?.shape();
        to_python(py, &shape)
    }

    #[getter]
    fn seed(&self, py: Python<'_>) -> PyResult<PySeed> {
        Ok(PySeed::of(self.table.read(py)?.seed()))
    }

    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.table.read(py)?.memory_bytes())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.table.read(py)?.len())?)
    }

    fn __eq__(&self, other: &Bound<'_, PyFanOut>) -> PyResult<bool> {
        let py = other.py();
        let Some((own, its)) = self.table.write_and_read(&other.get().table, py)? else {
            return Ok(true);
        };
        let same = self.kind == other.get().kind && own.seed() == its.seed();
        Ok(same && own.to_bytes() == its.to_bytes())
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let rebuild = py.import("sidon._errors")?.getattr("rebuild_fan_out")?;
        (rebuild, (own.to_bytes(py)?, own.seed(py)?, own.kind)).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let table = self.table.read(py)?;
        let (shape, keys) = (in_words(&table.shape()), self.kind.in_words());
        Ok(format!("<FanOut: {shape}, keys {keys}, len {}>", table.len()))
    }
}
