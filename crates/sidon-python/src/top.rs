//! The heaviest keys, with bounds: one class over the tables of every type of keys.

pub(crate) mod kind;
pub(crate) mod table;

use crate::{
    answer::{ImageArg, PyBounds, accepted, wrong},
    error::OrRaise,
    key::{Column, Value},
    min::NOT_AMOUNTS,
    seed::{PySeed, SeedArg},
    shape::{from_python, in_words, to_python},
    shared::Shared,
};
pub(crate) use kind::Kind;
use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};
use sidon::{Infeasible, count::Bounds, saved::Parts};
use std::borrow::Cow;
use table::{Source, Table};

/// The heaviest keys in fixed memory, each amount between a lower and an upper bound.
///
/// ``key`` is the type of the keys: ``"int"``, ``"str"`` (up to 64 bytes), ``"ipv4"``, ``"ipv6"`` or ``"ip"``. For
/// keys of bytes it is their length: 4, 8, 13, 16, 32, 37 or 64. A key has one or two amounts. The first one decides
/// which keys are evicted.
///
/// >>> import sidon
/// >>> hosts = sidon.Top(sidon.plan.top(1 << 16, 64, amounts=2), seed=1, key="str", amounts=2)
/// >>> hosts.add("a.example", 1500, 1)
/// >>> hosts.add_batch(["b.example", "a.example"], ([40, 60], [1, 1]))
/// >>> [(key, str(size)) for key, (size, packets) in hosts.heaviest(2)]
/// [('a.example', '= 1560'), ('b.example', '= 40')]
#[pyclass(frozen, name = "Top", module = "sidon")]
pub(crate) struct PyTop {
    table: Shared<Box<dyn Table>>,
    kind: Kind,
}

/// The heaviest keys of a table, and what is certain about them.
#[pyclass(frozen, get_all, name = "Ranking", module = "sidon")]
pub(crate) struct PyRanking {
    entries: Py<PyTuple>,
    others: u64,
    complete: usize,
    leading: usize,
}

#[pymethods]
impl PyRanking {
    fn __len__(&self, py: Python<'_>) -> usize {
        self.entries.bind(py).len()
    }

    fn __getitem__<'py>(&self, index: usize, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.entries.bind(py).get_item(index)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let Self { others, complete, leading, .. } = self;
        let listed = self.__len__(py);
        format!(
            "<Ranking: {listed} entries, complete {complete}, leading {leading}, others at most {others}>"
        )
    }
}

impl PyTop {
    fn of(table: Box<dyn Table>, kind: Kind) -> Self {
        PyTop { table: Shared::new(table), kind }
    }
}

/// The columns of amounts: one of them, or a tuple of several.
pub(crate) fn columns(amounts: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Column>> {
    match amounts {
        None => Ok(Vec::new()),
        Some(amounts) => match amounts.cast::<PyTuple>() {
            Ok(several) => several.iter().map(|column| column.extract()).collect(),
            Err(_) => Ok(vec![amounts.extract()?]),
        },
    }
}

type Bounded<'py> = (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray2<u64>>);

#[pymethods]
impl PyTop {
    #[new]
    #[pyo3(signature = (shape, seed, *, key, amounts = 1))]
    fn new(shape: &Bound<'_, PyAny>, seed: SeedArg, key: Kind, amounts: usize) -> PyResult<Self> {
        let source = Source::Shape(from_python("shape of a table", shape)?);
        let table = table::build(key, amounts, &source, seed.0).or_raise(shape.py())?;
        Ok(PyTop::of(table, key))
    }

    #[staticmethod]
    #[pyo3(signature = (image, seed, *, key))]
    fn from_bytes(image: ImageArg, seed: SeedArg, key: Kind, py: Python<'_>) -> PyResult<Self> {
        let amounts = Parts::of(&image.0).or_raise(py)?.fields.get(1).copied().unwrap_or(1);
        let amounts = if amounts == 2 { 2 } else { 1 };
        let read = py.detach(|| table::build(key, amounts, &Source::Image(&image.0), seed.0));
        Ok(PyTop::of(read.or_raise(py)?, key))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let table = self.table.read(py)?;
        let table = &**table;
        Ok(PyBytes::new(py, &py.detach(|| table.to_bytes())))
    }

    /// Adds the amounts to those of the key; 1 if there is none.
    #[pyo3(signature = (key, *amounts))]
    fn add(&self, key: Value, amounts: Vec<u64>, py: Python<'_>) -> PyResult<()> {
        let amounts = if amounts.is_empty() { vec![1] } else { amounts };
        let column = Column::one(key);
        self.kind
            .check(&column)
            .map_err(|why| crate::error::BadKey { row: None, ..why })
            .or_raise(py)?;
        let mut table = self.table.write(py)?;
        let all: Vec<&[u64]> = amounts.chunks(1).collect();
        if all.len() != table.total().len() {
            return Err(wrong(format!("a key of this table has {} amounts", table.total().len())));
        }
        table.add_batch(&column, &all);
        Ok(())
    }

    /// Adds one amount per key, or a tuple of two columns. A wrong row raises ``BadKey`` and adds nothing.
    #[pyo3(signature = (keys, amounts = None))]
    fn add_batch(
        &self,
        keys: Column,
        amounts: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<()> {
        let columns = columns(amounts)?;
        let read = columns
            .iter()
            .map(|column| column.amounts(keys.len()).ok_or_else(|| wrong(NOT_AMOUNTS)));
        let mut all = read.collect::<PyResult<Vec<_>>>()?;
        if all.is_empty() {
            all.push(Cow::Owned(vec![1; keys.len()]));
        }
        let mut table = self.table.write(py)?;
        if all.len() != table.total().len() {
            return Err(wrong(format!(
                "keys of this table have {} columns of amounts",
                table.total().len()
            )));
        }
        let (table, kind) = (&mut **table, self.kind);
        let add = || {
            kind.check(&keys)?;
            let amounts: Vec<&[u64]> = all.iter().map(|column| &column[..]).collect();
            table.add_batch(&keys, &amounts);
            Ok::<_, crate::error::BadKey>(())
        };
        py.detach(add).or_raise(py)
    }

    /// The bounds of each amount of the key.
    fn bounds(&self, key: Value, py: Python<'_>) -> PyResult<Vec<PyBounds>> {
        let column = Column::one(key);
        self.kind
            .check(&column)
            .map_err(|why| crate::error::BadKey { row: None, ..why })
            .or_raise(py)?;
        Ok(self.table.read(py)?.bounds(&column).into_iter().map(PyBounds::from).collect())
    }

    /// Lower and upper bounds: a row per key, a column per amount.
    fn bounds_batch<'py>(&self, keys: Column, py: Python<'py>) -> PyResult<Bounded<'py>> {
        let table = self.table.read(py)?;
        let (table, kind) = (&**table, self.kind);
        let ask = || {
            kind.check(&keys)?;
            let all = table.bounds(&keys);
            let lower: Vec<_> = all.iter().map(|bounds| bounds.least).collect();
            let upper: Vec<_> = all.iter().map(|bounds| bounds.most).collect();
            Ok::<_, crate::error::BadKey>((lower, upper))
        };
        let (lower, upper) = py.detach(ask).or_raise(py)?;
        let form = [keys.len(), table.total().len()];
        Ok((lower.into_pyarray(py).reshape(form)?, upper.into_pyarray(py).reshape(form)?))
    }

    fn heaviest(&self, count: usize, py: Python<'_>) -> PyResult<PyRanking> {
        let table = self.table.read(py)?;
        let table = &**table;
        let listed = py.detach(|| table.heaviest(count));
        let entry = |(key, amounts): &(Vec<u8>, Vec<Bounds>)| {
            let amounts: Vec<PyBounds> = amounts.iter().map(|&bounds| bounds.into()).collect();
            (self.kind.object(py, key)?, PyTuple::new(py, amounts)?).into_pyobject(py)
        };
        let entries = listed.entries.iter().map(entry).collect::<PyResult<Vec<_>>>()?;
        let entries = PyTuple::new(py, entries)?.unbind();
        Ok(PyRanking {
            entries,
            others: listed.others,
            complete: listed.complete,
            leading: listed.leading,
        })
    }

    /// Adds another table of the same shape and seed. With ``disjoint``, no key may be in both.
    #[pyo3(signature = (other, *, disjoint = false))]
    fn merge(&self, other: &Bound<'_, PyTop>, disjoint: bool) -> PyResult<()> {
        let py = other.py();
        let merged = match self.table.write_and_read(&other.get().table, py)? {
            Some((mut own, other)) => {
                let (own, other) = (&mut **own, &**other);
                py.detach(|| own.merge(other, disjoint))
            }
            None => {
                let mut own = self.table.write(py)?;
                let copy = own.try_clone().or_raise(py)?;
                own.merge(&*copy, disjoint)
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
        Ok(PyTop::of(copy.or_raise(py)?, self.kind))
    }

    /// The sums of all amounts added.
    #[getter]
    fn total<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.table.read(py)?.total())
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

    fn __eq__(&self, other: &Bound<'_, PyTop>) -> PyResult<bool> {
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
        let rebuild = py.import("sidon._errors")?.getattr("rebuild_top")?;
        (rebuild, (own.to_bytes(py)?, own.seed(py)?, own.kind)).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let table = self.table.read(py)?;
        let (shape, keys) = (in_words(&table.shape()), self.kind.in_words());
        let load = table.len() as f64 / (table.shape().buckets as f64 * 8.0);
        let (len, total) = (table.len(), table.total());
        Ok(format!(
            "<Top: {shape}, keys {keys}, len {len}, load {load:.4}, totals {total:?}, bounds certain>"
        ))
    }
}
