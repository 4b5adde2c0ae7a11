//! Amounts of addresses and of the networks above them: one class over the tables of one to four amounts.

mod table;

use crate::{
    answer::{ImageArg, PyBounds, accepted, wrong},
    error::{BadKey, OrRaise},
    key::{Column, Value},
    min::NOT_AMOUNTS,
    seed::{PySeed, SeedArg},
    shape::{from_python, in_words, to_python},
    shared::Shared,
    top::{Kind, columns},
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};
use sidon::{
    Infeasible,
    count::{Bounds, Prefix},
    saved::Parts,
};
use std::{borrow::Cow, net::IpAddr};
use table::{Source, Table};

/// Amounts of addresses and networks in fixed memory, each between a lower and an upper bound.
///
/// An address has one to four amounts. The first one decides which entries are evicted. An evicted entry gives its
/// amounts to the next shorter prefix: /24, /20, /16 and /8 of IPv4, /64, /56, /48 and /32 of IPv6.
///
/// >>> import sidon
/// >>> from ipaddress import ip_address, ip_network
/// >>> victims = sidon.Prefixes(sidon.plan.prefixes(1 << 16, amounts=2), seed=1, amounts=2)
/// >>> victims.add_batch(list(ip_network("198.51.100.0/24")), ([60] * 256, [1] * 256))
/// >>> victims.add(ip_address("192.0.2.1"), 1500, 1)
/// >>> [str(size) for size in victims.bounds("198.51.100.0/24")]
/// ['= 15360', '= 256']
/// >>> [(str(network), str(size)) for network, (size, packets), residue in victims.heavy(1400)]
/// [('198.51.100.0/24', '= 15360'), ('192.0.2.1/32', '= 1500')]
#[pyclass(frozen, name = "Prefixes", module = "sidon")]
pub(crate) struct PyPrefixes(Shared<Box<dyn Table>>);

/// The heavy networks of a table, the largest residue first.
///
/// A row is a network, the bounds of its amounts, and the bounds of its residue: its amounts without those of the longest
/// listed networks inside it. No other network of the table's lengths has a residue above ``others``.
#[pyclass(frozen, get_all, name = "Heavy", module = "sidon")]
pub(crate) struct PyHeavy {
    rows: Py<PyTuple>,
    others: u64,
}

#[pymethods]
impl PyHeavy {
    fn __len__(&self, py: Python<'_>) -> usize {
        self.rows.bind(py).len()
    }

    fn __getitem__<'py>(&self, index: usize, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.rows.bind(py).get_item(index)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Heavy: {} networks, others at most {}>", self.__len__(py), self.others)
    }
}

/// A network as Python code names it: `"10.0.0.0/8"`, an address, or an object of the module `ipaddress`.
struct Network(Prefix);

impl<'py> FromPyObject<'_, 'py> for Network {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = object.str()?.to_string();
        let unread = || wrong(format!("{text:?} is no network; pass one such as \"10.0.0.0/8\""));
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text.as_str(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| unread())?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(whole), |length| length.parse().map_err(|_| unread()))?;
        Ok(Network(Prefix::new(address, length).or_raise(object.py())?))
    }
}

impl PyPrefixes {
    /// Adds the columns of amounts; a table of one amount adds 1 to each address without a column.
    fn add_all(&self, keys: &Column, columns: &[Column], py: Python<'_>) -> PyResult<()> {
        let read = columns
            .iter()
            .map(|column| column.amounts(keys.len()).ok_or_else(|| wrong(NOT_AMOUNTS)));
        let mut all = read.collect::<PyResult<Vec<_>>>()?;
        if all.is_empty() {
            all.push(Cow::Owned(vec![1; keys.len()]));
        }
        let mut table = self.0.write(py)?;
        if all.len() != table.total().len() {
            return Err(wrong(format!(
                "an address of this table has {} amounts",
                table.total().len()
            )));
        }
        let table = &mut **table;
        let add = || {
            Kind::Ip.check(keys)?;
            let amounts: Vec<&[u64]> = all.iter().map(|column| &column[..]).collect();
            Ok::<_, BadKey>(table.add_batch(keys, &amounts))
        };
        accepted(py.detach(add).or_raise(py)?, py)
    }
}

#[pymethods]
impl PyPrefixes {
    #[new]
    #[pyo3(signature = (shape, seed, *, amounts = 1))]
    fn new(shape: &Bound<'_, PyAny>, seed: SeedArg, amounts: u64) -> PyResult<Self> {
        let source = Source::Shape(from_python("shape of a table of prefixes", shape)?);
        let table = table::build(amounts, &source, seed.0).or_raise(shape.py())?;
        Ok(PyPrefixes(Shared::new(table)))
    }

    #[staticmethod]
    fn from_bytes(image: ImageArg, seed: SeedArg, py: Python<'_>) -> PyResult<Self> {
        let amounts = Parts::of(&image.0).or_raise(py)?.fields.first().copied().unwrap_or(1);
        let amounts = if (1..=4).contains(&amounts) { amounts } else { 1 };
        let read = py.detach(|| table::build(amounts, &Source::Image(&image.0), seed.0));
        Ok(PyPrefixes(Shared::new(read.or_raise(py)?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let table = self.0.read(py)?;
        let table = &**table;
        Ok(PyBytes::new(py, &py.detach(|| table.to_bytes())))
    }

    /// Adds the amounts to those of the address; 1 if there is none.
    #[pyo3(signature = (address, *amounts))]
    fn add(&self, address: Value, amounts: Vec<u64>, py: Python<'_>) -> PyResult<()> {
        let column = Column::one(address);
        Kind::Ip.check(&column).map_err(|why| BadKey { row: None, ..why }).or_raise(py)?;
        let amounts = if amounts.is_empty() { vec![1] } else { amounts };
        let mut table = self.0.write(py)?;
        let all: Vec<&[u64]> = amounts.chunks(1).collect();
        if all.len() != table.total().len() {
            return Err(wrong(format!(
                "an address of this table has {} amounts",
                table.total().len()
            )));
        }
        accepted(table.add_batch(&column, &all), py)
    }

    /// Adds one amount per address, or a tuple of columns. A wrong row raises ``BadKey`` and adds nothing.
    #[pyo3(signature = (addresses, amounts = None))]
    fn add_batch(
        &self,
        addresses: Column,
        amounts: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<()> {
        self.add_all(&addresses, &columns(amounts)?, py)
    }

    /// The bounds of each amount of a network of any length: ``"10.0.0.0/8"``, an address, or an object of ``ipaddress``.
    fn bounds(&self, network: Network, py: Python<'_>) -> PyResult<Vec<PyBounds>> {
        let table = self.0.read(py)?;
        let table = &**table;
        let bounds = py.detach(|| table.bounds(&network.0));
        Ok(bounds.into_iter().map(PyBounds::from).collect())
    }

    /// The networks whose residue of an amount may be ``least`` or more.
    #[pyo3(signature = (least, *, amount = 0))]
    fn heavy(&self, least: u64, amount: usize, py: Python<'_>) -> PyResult<PyHeavy> {
        let table = self.0.read(py)?;
        if amount >= table.total().len() {
            return Err(wrong(format!(
                "an address of this table has {} amounts",
                table.total().len()
            )));
        }
        let table = &**table;
        let (rows, others) = py.detach(|| table.heavy(amount, least));
        let network = py.import("ipaddress")?.getattr("ip_network")?;
        let bounds = |all: &[Bounds]| PyTuple::new(py, all.iter().map(|&one| PyBounds::from(one)));
        let row = |(prefix, amounts, residue): &table::Row| {
            let name = network.call1((prefix.to_string(),))?;
            (name, bounds(amounts)?, bounds(residue)?).into_pyobject(py)
        };
        let rows = rows.iter().map(row).collect::<PyResult<Vec<_>>>()?;
        Ok(PyHeavy { rows: PyTuple::new(py, rows)?.unbind(), others })
    }

    /// Halves all amounts, ``times`` times: the end of as many periods.
    #[pyo3(signature = (times = 1))]
    fn halve(&self, times: u32, py: Python<'_>) -> PyResult<()> {
        self.0.write(py)?.halve(times);
        Ok(())
    }

    /// Adds another table of the same shape and seed, halved at the same times.
    fn merge(&self, other: &Bound<'_, PyPrefixes>) -> PyResult<()> {
        let py = other.py();
        let merged = match self.0.write_and_read(&other.get().0, py)? {
            Some((mut own, other)) => {
                let (own, other) = (&mut **own, &**other);
                py.detach(|| own.merge(other))
            }
            None => {
                let mut own = self.0.write(py)?;
                let copy = own.try_clone().or_raise(py)?;
                own.merge(&*copy)
            }
        };
        accepted(merged, py)
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.0.write(py)?.clear();
        Ok(())
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let copy: Result<_, Infeasible> = self.0.read(py)?.try_clone();
        Ok(PyPrefixes(Shared::new(copy.or_raise(py)?)))
    }

    /// The sums of all amounts added, halved as they were, and rounded up.
    #[getter]
    fn total<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.read(py)?.total())
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

    /// The number of networks with an entry, at all levels.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.0.read(py)?.len())?)
    }

    fn __eq__(&self, other: &Bound<'_, PyPrefixes>) -> PyResult<bool> {
        let py = other.py();
        let Some((own, its)) = self.0.write_and_read(&other.get().0, py)? else {
            return Ok(true);
        };
        Ok(own.seed() == its.seed() && own.to_bytes() == its.to_bytes())
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let rebuild = slf.get_type().getattr("from_bytes")?;
        (rebuild, (own.to_bytes(py)?, own.seed(py)?)).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let table = self.0.read(py)?;
        let (shape, len, total) = (in_words(&table.shape()), table.len(), table.total());
        Ok(format!("<Prefixes: {shape}, len {len}, totals {total:?}, bounds certain>"))
    }
}
