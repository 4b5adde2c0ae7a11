//! Sets and counts of few numbers of a universe, without a false positive.
//!
//! Keys are the numbers below the universe, not hashed, so these structures have no seed.

use crate::{
    answer::{ImageArg, PyCertainty, PyEstimate, PyRefusals, accepted, wrong},
    error::OrRaise,
    key::Column,
    min::NOT_AMOUNTS,
    shape::{from_python, in_words, to_python},
    shared::Shared,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyString, PyTuple},
};
use sidon::{
    Refused, Seed,
    count::Update,
    saved::Save,
    zone::{Adaptive, Any, Code, Filter, Hosts, Shape, Sketch},
};

/// The seed of structures that have none.
const NONE: Seed = Seed(0);

/// The numbers of a column.
fn numbers(column: &Column) -> PyResult<Vec<u64>> {
    let numbers = column.amounts(column.len());
    let wrong = || wrong("keys of a zone are integers from 0 to 2**64 - 1");
    Ok(numbers.ok_or_else(wrong)?.into_owned())
}

/// A class of a structure without a seed: what it does, and what all of them have.
macro_rules! zone {
    (
        $(#[$doc:meta])*
        $class:ident $name:literal $structure:ty, |$own:ident| $words:expr;
        $($items:tt)*
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, name = $name, module = "sidon.zone")]
        pub(crate) struct $class(Shared<$structure>);

        impl $class {
            fn of(structure: $structure) -> Self {
                $class(Shared::new(structure))
            }
        }

        #[pymethods]
        impl $class {
            $($items)*

            /// The structure of these bytes.
            #[staticmethod]
            fn from_bytes(image: ImageArg, py: Python<'_>) -> PyResult<Self> {
                Ok($class::of(<$structure>::from_bytes(&image.0, NONE).or_raise(py)?))
            }

            /// The byte image.
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                Ok(PyBytes::new(py, &Save::to_bytes(&*self.0.read(py)?)))
            }

            /// Adds what another one of the same shape stores, or raises ``Refused``.
            fn merge(&self, other: &Bound<'_, $class>) -> PyResult<()> {
                let py = other.py();
                let copy = other.get().copy(py)?;
                let its = copy.0.read(py)?;
                accepted(self.0.write(py)?.merge(&its), py)
            }

            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                self.0.write(py)?.clear();
                Ok(())
            }

            fn copy(&self, py: Python<'_>) -> PyResult<Self> {
                let image = Save::to_bytes(&*self.0.read(py)?);
                Ok($class::of(<$structure>::from_bytes(&image, NONE).or_raise(py)?))
            }

            #[getter]
            fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
                Ok(self.0.read(py)?.memory_bytes())
            }

            #[getter]
            fn certainty(&self, py: Python<'_>) -> PyResult<PyCertainty> {
                Ok(PyCertainty(self.0.read(py)?.certainty()))
            }

            fn __eq__(&self, other: &Bound<'_, $class>) -> PyResult<bool> {
                let py = other.py();
                let pair = self.0.write_and_read(&other.get().0, py)?;
                Ok(pair.is_none_or(|(own, other)| *own == *other))
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
                self.copy(py)
            }

            fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<Self> {
                self.copy(py)
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
                let read = slf.get_type().getattr("from_bytes")?;
                (read, (slf.get().to_bytes(slf.py())?,)).into_pyobject(slf.py())
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let $own = self.0.read(py)?;
                Ok(format!("<{}: {}, {}>", $name, $words, $own.certainty()))
            }
        }
    };
}

/// Calls `act` for every key, and collects the refusals.
fn refusals(keys: &[u64], mut act: impl FnMut(usize, u64) -> Result<(), Refused>) -> PyRefusals {
    let mut refusals = PyRefusals::default();
    for (row, &key) in keys.iter().enumerate() {
        act(row, key).unwrap_or_else(|why| refusals.add(row, why));
    }
    refusals
}

zone! {
    /// A set of few numbers of a universe: exact while it holds few, then as a Bloom filter.
    ///
    /// >>> from sidon import plan, zone
    /// >>> ports = zone.Filter(plan.zones(universe=65536, members=3)[0])
    /// >>> ports.insert_batch([22, 80, 443])
    /// <Refusals: none>
    /// >>> sorted(ports.list()), 22 in ports, 23 in ports, ports.certainty.error
    /// ([22, 80, 443], True, False, 0.0)
    PyZoneFilter "Filter" Filter<Any>,
    |own| format!("{}, members {}", in_words(&own.code().shape()), members(own.len()));

    #[new]
    fn new(shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (py, shape) = (shape.py(), from_python::<Shape>("shape of a zone", shape)?);
        Ok(PyZoneFilter::of(Filter::new(shape.code().or_raise(py)?).or_raise(py)?))
    }

    fn insert(&self, key: u64, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.insert(&key), py)
    }

    /// Inserts the keys in order. Returns those that were refused; the others are stored.
    fn insert_batch(&self, keys: Column, py: Python<'_>) -> PyResult<PyRefusals> {
        let keys = numbers(&keys)?;
        let mut own = self.0.write(py)?;
        let own = &mut *own;
        Ok(py.detach(|| refusals(&keys, |_, key| own.insert(&key))))
    }

    fn contains(&self, key: u64, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.read(py)?.contains(&key))
    }

    fn contains_batch<'py>(&self, keys: Column, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let keys = numbers(&keys)?;
        let own = self.0.read(py)?;
        let own = &*own;
        let found = py.detach(|| keys.iter().map(|key| own.contains(key)).collect::<Vec<_>>());
        Ok(found.into_pyarray(py))
    }

    fn __contains__(&self, key: u64, py: Python<'_>) -> PyResult<bool> {
        self.contains(key, py)
    }

    /// All numbers that may be stored, in order.
    fn list(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        Ok(self.0.read(py)?.list())
    }

    /// The number of keys stored; ``None`` beyond the zone.
    #[getter]
    fn members(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.0.read(py)?.len())
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.0.read(py)?.code().shape();
        to_python(py, &shape)
    }
}

zone! {
    /// Counts of few numbers of a universe: exact while it holds few, then upper bounds.
    ///
    /// ``update`` is ``"plain"`` or ``"conservative"``.
    ///
    /// >>> from sidon import plan, zone
    /// >>> hosts = zone.Sketch(plan.zones(universe=256, members=3)[0], width=32)
    /// >>> hosts.add(17, 1500)
    /// >>> str(hosts.estimate(17)), str(hosts.estimate(18)), hosts.list()
    /// ('= 1500', '= 0', [(17, 1500)])
    PyZoneSketch "Sketch" Sketch<Any>,
    |own| format!("{}, members {}", in_words(&own.code().shape()), members(own.len()));

    #[new]
    #[pyo3(signature = (shape, width, update = "plain"))]
    fn new(shape: &Bound<'_, PyAny>, width: u32, update: &str) -> PyResult<Self> {
        let (py, shape) = (shape.py(), from_python::<Shape>("shape of a zone", shape)?);
        let update: Update = from_python("update", PyString::new(py, update).as_any())?;
        let sketch = Sketch::new(shape.code().or_raise(py)?, width, update);
        Ok(PyZoneSketch::of(sketch.or_raise(py)?))
    }

    #[pyo3(signature = (key, amount = 1))]
    fn add(&self, key: u64, amount: u64, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.add(&key, amount), py)
    }

    #[pyo3(signature = (key, amount = 1))]
    fn subtract(&self, key: u64, amount: u64, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.subtract(key, amount), py)
    }

    /// Adds one amount per key, in order. Returns those that were refused.
    #[pyo3(signature = (keys, amounts = None))]
    fn add_batch(&self, keys: Column, amounts: Option<Column>, py: Python<'_>) -> PyResult<PyRefusals> {
        let amounts = match &amounts {
            Some(amounts) => {
                amounts.amounts(keys.len()).ok_or_else(|| wrong(NOT_AMOUNTS))?.into_owned()
            }
            None => vec![1; keys.len()],
        };
        let keys = numbers(&keys)?;
        let mut own = self.0.write(py)?;
        let own = &mut *own;
        Ok(py.detach(|| refusals(&keys, |row, key| own.add(&key, amounts[row]))))
    }

    fn estimate(&self, key: u64, py: Python<'_>) -> PyResult<PyEstimate> {
        Ok(PyEstimate(self.0.read(py)?.estimate(&key)))
    }

    /// The numbers with a count, and their counts; ``None`` beyond the zone.
    fn list(&self, py: Python<'_>) -> PyResult<Option<Vec<(u64, u64)>>> {
        Ok(self.0.read(py)?.list())
    }

    /// The number of keys with a count; ``None`` beyond the zone.
    #[getter]
    fn members(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.0.read(py)?.len())
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.0.read(py)?.code().shape();
        to_python(py, &shape)
    }
}

zone! {
    /// A set of numbers of a small universe, always exact: a list, then a bitmap.
    ///
    /// >>> from sidon import zone
    /// >>> hosts = zone.Adaptive(256)
    /// >>> hosts.insert(17)
    /// >>> len(hosts), hosts.list()
    /// (1, [17])
    PyAdaptive "Adaptive" Adaptive,
    |own| format!("members {}", own.len());

    #[new]
    fn new(universe: u64, py: Python<'_>) -> PyResult<Self> {
        Ok(PyAdaptive::of(Adaptive::new(universe).or_raise(py)?))
    }

    fn insert(&self, key: u64, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.insert(&key), py)
    }

    /// Inserts the keys in order. Returns those that were refused; the others are stored.
    fn insert_batch(&self, keys: Column, py: Python<'_>) -> PyResult<PyRefusals> {
        let keys = numbers(&keys)?;
        let mut own = self.0.write(py)?;
        let own = &mut *own;
        Ok(py.detach(|| refusals(&keys, |_, key| own.insert(&key))))
    }

    fn contains(&self, key: u64, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.read(py)?.contains(&key))
    }

    fn contains_batch<'py>(&self, keys: Column, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let keys = numbers(&keys)?;
        let own = self.0.read(py)?;
        let own = &*own;
        let found = py.detach(|| keys.iter().map(|key| own.contains(key)).collect::<Vec<_>>());
        Ok(found.into_pyarray(py))
    }

    fn __contains__(&self, key: u64, py: Python<'_>) -> PyResult<bool> {
        self.contains(key, py)
    }

    /// All numbers stored, in order.
    fn list(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        Ok(self.0.read(py)?.list())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.0.read(py)?.len())?)
    }
}

zone! {
    /// Counts of numbers of a small universe, always exact.
    ///
    /// >>> from sidon import zone
    /// >>> hosts = zone.Hosts(256)
    /// >>> hosts.add_batch([1, 2, 1], [10, 20, 30])
    /// <Refusals: none>
    /// >>> hosts.list()
    /// [(1, 40), (2, 20)]
    PyHosts "Hosts" Hosts,
    |own| format!("members {}", own.len());

    #[new]
    fn new(universe: u64, py: Python<'_>) -> PyResult<Self> {
        Ok(PyHosts::of(Hosts::new(universe).or_raise(py)?))
    }

    #[pyo3(signature = (key, amount = 1))]
    fn add(&self, key: u64, amount: u64, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.add(&key, amount), py)
    }

    #[pyo3(signature = (key, amount = 1))]
    fn subtract(&self, key: u64, amount: u64, py: Python<'_>) -> PyResult<()> {
        accepted(self.0.write(py)?.subtract(key, amount), py)
    }

    /// Adds one amount per key, in order. Returns those that were refused.
    #[pyo3(signature = (keys, amounts = None))]
    fn add_batch(&self, keys: Column, amounts: Option<Column>, py: Python<'_>) -> PyResult<PyRefusals> {
        let amounts = match &amounts {
            Some(amounts) => {
                amounts.amounts(keys.len()).ok_or_else(|| wrong(NOT_AMOUNTS))?.into_owned()
            }
            None => vec![1; keys.len()],
        };
        let keys = numbers(&keys)?;
        let mut own = self.0.write(py)?;
        let own = &mut *own;
        Ok(py.detach(|| refusals(&keys, |row, key| own.add(&key, amounts[row]))))
    }

    fn estimate(&self, key: u64, py: Python<'_>) -> PyResult<PyEstimate> {
        Ok(PyEstimate(self.0.read(py)?.estimate(&key)))
    }

    /// The numbers with a count, and their counts.
    fn list(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64)>> {
        Ok(self.0.read(py)?.list())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.0.read(py)?.len())?)
    }
}

/// The number of members in a `repr`.
fn members(known: Option<u64>) -> String {
    known.map_or_else(|| "beyond the zone".to_owned(), |known| known.to_string())
}
