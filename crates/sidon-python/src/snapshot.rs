//! Captures: from packets to snapshots and reports.

use crate::{
    answer::{ImageArg, wrong},
    error::{OrRaise, Raise, malformed},
    seed::{PySeed, SeedArg},
    shared::Shared,
};
use pyo3::{
    exceptions::PyOSError,
    prelude::*,
    types::{PyBytes, PyDict, PyTuple},
};
use sidon::{Infeasible, Malformed};
use sidon_traffic::{
    Decoder, Engine, Filter, Generator, Mix, Settings, Snapshot, Source, SourceError, Tunnels,
    drive::{self, Capture, End, Go, Host, Limits, Moment},
    files::{self, Access, System},
    generate,
    snapshot::Merged,
};
use std::{
    io::Cursor,
    path::{Path, PathBuf},
    time::Duration,
};

/// The complete state of an engine after its last packet: to report on, to save, to merge.
#[pyclass(frozen, name = "Snapshot", module = "sidon")]
pub(crate) struct PySnapshot(Shared<Snapshot>);

impl PySnapshot {
    fn of(snapshot: Snapshot) -> Self {
        PySnapshot(Shared::new(snapshot))
    }
}

/// The snapshot of these bytes, which contain its seed unless it is given.
fn read(image: &ImageArg, seed: Option<SeedArg>) -> Result<Snapshot, Malformed> {
    match seed {
        Some(seed) => Snapshot::from_bytes_under(&image.0, seed.0),
        None => Snapshot::from_bytes(&image.0),
    }
}

/// The counts of a merge as a dict.
fn counts(py: Python<'_>, merged: Merged) -> PyResult<Bound<'_, PyDict>> {
    let counts = PyDict::new(py);
    counts.set_item("in_both", merged.in_both)?;
    counts.set_item("refused_connections", merged.refused_connections)?;
    counts.set_item("refused_sources", merged.refused_sources)?;
    Ok(counts)
}

/// The bytes of a snapshot, with or without its seed.
fn image(snapshot: &Snapshot, seed: bool) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let written = match seed {
        true => snapshot.write(&mut bytes),
        false => snapshot.write_without_seed(&mut bytes),
    };
    written.map_err(|why| PyOSError::new_err(why.to_string()))?;
    Ok(bytes)
}

#[pymethods]
impl PySnapshot {
    /// The snapshot of these bytes. They may contain the seed, or ``seed`` gives it.
    #[staticmethod]
    #[pyo3(signature = (image, seed = None))]
    fn from_bytes(image: ImageArg, seed: Option<SeedArg>, py: Python<'_>) -> PyResult<Self> {
        Ok(PySnapshot::of(py.detach(|| read(&image, seed)).or_raise(py)?))
    }

    /// The bytes, with the seed unless ``seed`` is false. Equal snapshots have equal bytes.
    #[pyo3(signature = (*, seed = true))]
    fn to_bytes<'py>(&self, seed: bool, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let snapshot = self.0.read(py)?;
        let snapshot = &*snapshot;
        Ok(PyBytes::new(py, &py.detach(|| image(snapshot, seed))?))
    }

    /// Writes the file that ``sidon show`` and ``sidon merge`` read. A file of this name is replaced as a whole.
    #[pyo3(signature = (path, *, seed = true))]
    fn save(&self, path: PathBuf, seed: bool, py: Python<'_>) -> PyResult<()> {
        let snapshot = self.0.read(py)?;
        let snapshot = &*snapshot;
        let write = || {
            files::replace(&System, &path, Access::Owner, |out| match seed {
                true => snapshot.write(out),
                false => snapshot.write_without_seed(out),
            })
        };
        py.detach(write).map_err(|why| PyOSError::new_err(format!("{}: {why}", path.display())))?;
        Ok(())
    }

    /// The report as a dict: the JSON of ``sidon watch --json``, with lists of ``top`` entries.
    #[pyo3(signature = (top = None))]
    fn report<'py>(&self, top: Option<usize>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut snapshot = self.0.write(py)?;
        let snapshot = &mut *snapshot;
        let json = py.detach(|| {
            let own = snapshot.settings().top;
            snapshot.set_top(top.unwrap_or(own));
            let mut json = snapshot.report().to_json();
            snapshot.set_top(own);
            json["partial"] = snapshot.is_partial().into();
            json.to_string()
        });
        py.import("json")?.call_method1("loads", (json,))
    }

    /// Adds another snapshot of the same settings. With ``by_flow``, no flow is in both, and counts of flows
    /// stay exact. Returns counts of what could not be distinguished or stored.
    #[pyo3(signature = (other, *, by_flow = false))]
    fn merge<'py>(
        &self,
        other: &Bound<'py, PySnapshot>,
        by_flow: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = other.py();
        // A merge consumes the other snapshot, which stays in use.
        let (copy, seed) = {
            let other = other.get().0.read(py)?;
            let other = &*other;
            (py.detach(|| image(other, true))?, other.settings().seed)
        };
        let mut own = self.0.write(py)?;
        let own = &mut *own;
        let merged = py.detach(|| {
            let other = Snapshot::from_bytes_under(&copy, seed);
            other.map(|other| if by_flow { own.merge_parts(other) } else { own.merge(other) })
        });
        counts(py, merged.or_raise(py)?.or_raise(py)?)
    }

    /// ``merge`` for the snapshot of these bytes, without a copy of it.
    #[pyo3(signature = (image, seed = None, *, by_flow = false))]
    fn merge_bytes<'py>(
        &self,
        image: ImageArg,
        seed: Option<SeedArg>,
        by_flow: bool,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let other = py.detach(|| read(&image, seed)).or_raise(py)?;
        let mut own = self.0.write(py)?;
        let own = &mut *own;
        let merged = py.detach(|| if by_flow { own.merge_parts(other) } else { own.merge(other) });
        counts(py, merged.or_raise(py)?)
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let snapshot = self.0.read(py)?;
        let snapshot = &*snapshot;
        let seed = snapshot.settings().seed;
        let copy = py.detach(|| Ok(Snapshot::from_bytes_under(&image(snapshot, true)?, seed)));
        Ok(PySnapshot::of(copy.and_then(|copy: Result<_, _>| copy.or_raise(py))?))
    }

    /// The number of packets that arrived.
    #[getter]
    fn packets(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.read(py)?.ledger().seen)
    }

    /// The times of the first and the last packet in nanoseconds since 1970.
    #[getter]
    fn times(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        Ok(self.0.read(py)?.times())
    }

    /// The number of engines whose states are merged here.
    #[getter]
    fn engines(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.read(py)?.engines())
    }

    /// Whether an input broke off.
    #[getter]
    fn partial(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.read(py)?.is_partial())
    }

    /// The filter expression of the engine.
    #[getter]
    fn expression(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.0.read(py)?.expression().to_owned())
    }

    /// The memory budget of the tables in bytes.
    #[getter]
    fn memory(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.read(py)?.settings().memory)
    }

    #[getter]
    fn seed(&self, py: Python<'_>) -> PyResult<PySeed> {
        Ok(PySeed::of(self.0.read(py)?.settings().seed))
    }

    fn __eq__(&self, other: &Bound<'_, PySnapshot>) -> PyResult<bool> {
        let py = other.py();
        let Some((own, other)) = self.0.write_and_read(&other.get().0, py)? else {
            return Ok(true);
        };
        Ok(image(&own, true)? == image(&other, true)?)
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
        (read, (own.to_bytes(true, py)?,)).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let one = self.0.read(py)?;
        let (memory, seen) = (one.settings().memory, one.ledger().seen);
        let (engines, partial) =
            (one.engines(), if one.is_partial() { ", broken off" } else { "" });
        Ok(format!("<Snapshot: memory {memory}, {seen} packets, engines {engines}{partial}>"))
    }
}

/// Why a run ended early.
enum Early {
    Infeasible(Infeasible),
    Raised(PyErr),
}

impl From<Infeasible> for Early {
    fn from(why: Infeasible) -> Self {
        Early::Infeasible(why)
    }
}

/// The host of a run: passes periods on to Python, and lets Ctrl-C end the run.
struct Caller<'a> {
    each: Option<&'a Py<PyAny>>,
}

impl Caller<'_> {
    fn pass(&self, start_ns: u64, snapshot: Snapshot) -> PyResult<()> {
        let Some(each) = self.each else { return Ok(()) };
        Python::attach(|py| each.call1(py, (start_ns, PySnapshot::of(snapshot)))).map(drop)
    }
}

impl Host for Caller<'_> {
    type Error = Early;

    fn look(&mut self, _: &mut Engine, _: &Moment<'_>) -> Result<Go, Early> {
        Python::attach(|py| py.check_signals()).map_err(Early::Raised)?;
        Ok(Go::On(Duration::ZERO))
    }

    fn period(&mut self, start_ns: u64, snapshot: Snapshot) -> Result<(), Early> {
        self.pass(start_ns, snapshot).map_err(Early::Raised)
    }

    fn warn(&mut self, _: &str) {}
}

/// A capture as an argument.
#[derive(FromPyObject)]
pub(crate) enum CaptureArg {
    Path(PathBuf),
    Bytes(ImageArg),
}

/// Runs an engine over a capture. With `period_ns` and `each`, every period but the last is passed to `each`, and
/// the start of the last one is returned.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "python/sidon/traffic.py names them")]
pub(crate) fn run_capture(
    source: CaptureArg,
    seed: SeedArg,
    memory: u64,
    filter: &str,
    top: usize,
    subnets: Vec<String>,
    threads: usize,
    inner: bool,
    partial: bool,
    period_ns: Option<u64>,
    each: Option<Py<PyAny>>,
    py: Python<'_>,
) -> PyResult<(PySnapshot, Option<u64>)> {
    let (path, bytes) = match source {
        CaptureArg::Path(path) => (path, None),
        CaptureArg::Bytes(bytes) => (PathBuf::from("bytes"), Some(bytes.0)),
    };
    let name = path.display().to_string();
    let filter: Filter = filter.parse().map_err(|why| wrong(format!("filter: {why}")))?;
    let subnet = |text: String| {
        text.parse().map_err(|_| wrong(format!("{text:?} is no IPv4 subnet from /16 to /32")))
    };
    let subnets = subnets.into_iter().map(subnet).collect::<PyResult<_>>()?;
    let settings = Settings { memory, top, subnets, threads, ..Settings::new(seed.0) };
    let decoder = Decoder { tunnels: if inner { Tunnels::Inner } else { Tunnels::Outer } };
    let limits = Limits { period_ns, ..Limits::default() };
    let mut engine = Engine::new(settings, filter, decoder).or_raise(py)?;
    engine.start().map_err(|why| PyOSError::new_err(why.to_string()))?;
    let opened = match bytes {
        Some(bytes) => Source::from_reader(Cursor::new(bytes)),
        None => Source::open(&path),
    };
    let opened = opened.map_err(|why| unopened(py, &name, why))?;
    let mut host = Caller { each: each.as_ref() };
    let done = py.detach(|| {
        let mut capture = Capture::new(opened, Path::new(&name), None);
        drive::drive(&mut engine, &mut capture, limits, &mut host)
    });
    let done = done.map_err(|why| match why {
        Early::Infeasible(why) => why.raise(py),
        Early::Raised(why) => why,
    })?;
    let mut snapshot = py.detach(|| engine.snapshot());
    if let End::Broken(why) = done.end {
        if !partial {
            return Err(malformed(py, &name, &why.to_string()));
        }
        snapshot.set_partial();
    }
    Ok((PySnapshot::of(snapshot), done.period_ns))
}

fn unopened(py: Python<'_>, path: &str, why: SourceError) -> PyErr {
    match why {
        SourceError::Open { why, .. } => match why.raw_os_error() {
            Some(number) => PyOSError::new_err((number, why.to_string(), path.to_owned())),
            None => PyOSError::new_err(format!("{path}: {why}")),
        },
        why => malformed(py, path, &why.to_string()),
    }
}

/// A generated capture of an office as the bytes of a pcap file, for tests and examples.
#[pyfunction]
pub(crate) fn run_generator<'py>(
    packets: u64,
    seed: u64,
    rate: u64,
    clients: u32,
    start_ns: u64,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mix = Mix { packets, rate, clients, start_ns, ..Mix::default() };
    let generator = Generator::new(mix, seed).map_err(|why| wrong(why.to_string()))?;
    let mut bytes = Vec::new();
    let written = py.detach(|| generate::write_pcap(generator, 128, &mut bytes));
    written.map_err(|why| PyOSError::new_err(why.to_string()))?;
    Ok(PyBytes::new(py, &bytes))
}
