//! State maps of any structure.

use crate::{
    answer::{ImageArg, PyCertainty, PyRefusals, accepted, lookup, stats},
    error::{BadKey, OrRaise},
    key::{Column, Value},
    machine::PyMachine,
    seed::{PySeed, SeedArg},
    shape::{from_python, in_words, to_python},
    shared::Shared,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};
use serde::{Deserialize, Serialize};
use sidon::{
    Digest, Infeasible, Lookup, Malformed, Refused, Seed,
    saved::{self, Save},
    set::Stats,
    state::{self, Direct, Fingerprint, Next, Stateful},
};

/// The shape of any state map, as Python code names it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MapShape {
    Direct(state::direct::Shape),
    Stateful(state::stateful::Shape),
    Fingerprint(state::fingerprint::Shape),
}

/// A state map whose structure is known at run time.
#[derive(PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a program has few maps, and their tables are elsewhere"
)]
pub(crate) enum AnyMap {
    Direct(Direct),
    Stateful(Stateful),
    Fingerprint(Fingerprint),
}

/// Evaluates `$do` with the map inside.
macro_rules! each {
    ($map:expr, $inside:ident => $do:expr) => {
        match $map {
            AnyMap::Direct($inside) => $do,
            AnyMap::Stateful($inside) => $do,
            AnyMap::Fingerprint($inside) => $do,
        }
    };
}

impl AnyMap {
    fn new(shape: MapShape, seed: Seed, room: u32) -> Result<Self, Infeasible> {
        Ok(match shape {
            MapShape::Direct(shape) => {
                let map = Direct::new(shape, seed)?;
                AnyMap::Direct(if room == 0 { map } else { map.with_exceptions(room)? })
            }
            MapShape::Stateful(shape) => {
                let map = Stateful::new(shape, seed)?;
                AnyMap::Stateful(if room == 0 { map } else { map.with_exceptions(room)? })
            }
            MapShape::Fingerprint(shape) => {
                let map = Fingerprint::new(shape, seed)?;
                AnyMap::Fingerprint(if room == 0 { map } else { map.with_exceptions(room)? })
            }
        })
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Ok(match saved::kind(image)? {
            Direct::KIND => AnyMap::Direct(Direct::from_bytes(image, seed)?),
            Stateful::KIND => AnyMap::Stateful(Stateful::from_bytes(image, seed)?),
            _ => AnyMap::Fingerprint(Fingerprint::from_bytes(image, seed)?),
        })
    }

    fn shape(&self) -> MapShape {
        match self {
            AnyMap::Direct(map) => MapShape::Direct(map.shape()),
            AnyMap::Stateful(map) => MapShape::Stateful(map.shape()),
            AnyMap::Fingerprint(map) => MapShape::Fingerprint(map.shape()),
        }
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(match self {
            AnyMap::Direct(map) => AnyMap::Direct(map.try_clone()?),
            AnyMap::Stateful(map) => AnyMap::Stateful(map.try_clone()?),
            AnyMap::Fingerprint(map) => AnyMap::Fingerprint(map.try_clone()?),
        })
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        match (self, other) {
            (AnyMap::Direct(own), AnyMap::Direct(other)) => own.merge(other),
            (AnyMap::Stateful(own), AnyMap::Stateful(other)) => own.merge(other),
            (AnyMap::Fingerprint(own), AnyMap::Fingerprint(other)) => own.merge(other),
            _ => Err(Refused::Mismatch { field: "structure" }),
        }
    }

    fn seed(&self) -> Seed {
        each!(self, map => map.seed())
    }

    fn stats(&self) -> Stats {
        each!(self, map => map.stats())
    }

    fn to_bytes(&self) -> Vec<u8> {
        each!(self, map => map.to_bytes())
    }

    fn transition_batch(
        &mut self,
        keys: &[Digest],
        mut change: impl FnMut(usize, Lookup<u16>) -> Next<u16>,
        refused: &mut dyn FnMut(usize, Refused),
    ) {
        each!(self, map => map.transition_batch(keys, &mut change, refused));
    }
}

/// An answer as a number: the state, -1 if the key is absent, -2 if the cells do not determine it.
fn number(answer: Lookup<u16>) -> i32 {
    match answer {
        Lookup::State(state) => state.into(),
        Lookup::Absent => -1,
        Lookup::DontKnow => -2,
    }
}

/// A map from keys to states (a maplet), in memory that its shape fixes.
///
/// Insert only keys that are not stored, and modify or forget only keys that are. Then no answer about a stored key
/// is a wrong state. If the cells cannot distinguish a key from another, the answer is ``DontKnow()``. A key that is
/// not stored is answered a state with the probability of ``certainty``.
///
/// >>> import sidon
/// >>> flows = sidon.Map(sidon.plan.states(flows=1000, states=3, error=1e-6), seed=1)
/// >>> flows.insert("10.0.0.1:443", 0)
/// >>> flows.modify("10.0.0.1:443", 2)
/// >>> flows.lookup("10.0.0.1:443"), flows.lookup("10.0.0.2:443")
/// (State(2), Absent())
/// >>> match flows.lookup("10.0.0.1:443"):
/// ...     case sidon.State(number):
/// ...         print("in state", number)
/// ...     case sidon.Absent():
/// ...         print("not stored")
/// ...     case sidon.DontKnow():
/// ...         print("not known")
/// in state 2
#[pyclass(frozen, name = "Map", module = "sidon")]
pub(crate) struct PyMap(Shared<AnyMap>);

impl PyMap {
    fn of(map: AnyMap) -> Self {
        PyMap(Shared::new(map))
    }
}

type Applied<'py> = (Bound<'py, PyArray1<i32>>, PyRefusals);

#[pymethods]
impl PyMap {
    #[new]
    #[pyo3(signature = (shape, seed, *, exceptions = 0))]
    fn new(shape: &Bound<'_, PyAny>, seed: SeedArg, exceptions: u32) -> PyResult<Self> {
        let map = AnyMap::new(from_python("shape of a map", shape)?, seed.0, exceptions);
        Ok(PyMap::of(map.or_raise(shape.py())?))
    }

    /// The map of bytes that were written under this seed.
    #[staticmethod]
    fn from_bytes(image: ImageArg, seed: SeedArg, py: Python<'_>) -> PyResult<Self> {
        let map = py.detach(|| AnyMap::from_bytes(&image.0, seed.0));
        Ok(PyMap::of(map.or_raise(py)?))
    }

    /// The byte image, without the seed.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let map = self.0.read(py)?;
        let map = &*map;
        Ok(PyBytes::new(py, &py.detach(|| map.to_bytes())))
    }

    /// Stores a key that is not stored, or raises ``Refused``.
    fn insert(&self, key: Value, state: u16, py: Python<'_>) -> PyResult<()> {
        let mut map = self.0.write(py)?;
        accepted(each!(&mut *map, map => map.insert(&key, state)), py)
    }

    /// Changes the state of a key that is stored, or raises ``Refused``.
    fn modify(&self, key: Value, state: u16, py: Python<'_>) -> PyResult<()> {
        let mut map = self.0.write(py)?;
        accepted(each!(&mut *map, map => map.modify(&key, state)), py)
    }

    /// Removes a key that is stored, or raises ``Refused``.
    fn forget(&self, key: Value, py: Python<'_>) -> PyResult<()> {
        let mut map = self.0.write(py)?;
        accepted(each!(&mut *map, map => map.forget(&key)), py)
    }

    /// Excepts a key that is not stored, so that a known false positive does not repeat.
    fn except_key(&self, key: Value, py: Python<'_>) -> PyResult<()> {
        let mut map = self.0.write(py)?;
        accepted(each!(&mut *map, map => map.except(&key)), py)
    }

    /// ``State(number)``, ``Absent()`` or ``DontKnow()``.
    fn lookup<'py>(&self, key: Value, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let map = self.0.read(py)?;
        lookup(py, each!(&*map, map => map.lookup(&key)))
    }

    /// The number of each key's state; -1 for an absent key, and -2 if the cells do not determine the state.
    fn lookup_batch<'py>(
        &self,
        keys: Column,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let map = self.0.read(py)?;
        let map = &*map;
        let numbers = py.detach(|| {
            let mut answers = vec![Lookup::Absent; keys.len()];
            keys.each(map.seed(), |first, keys| {
                let answers = &mut answers[first..first + keys.len()];
                each!(map, map => map.lookup_batch(keys, answers));
            });
            answers.into_iter().map(number).collect::<Vec<_>>()
        });
        Ok(numbers.into_pyarray(py))
    }

    /// Applies an event of a machine to a key, by its name. Returns the answer before it.
    fn apply<'py>(
        &self,
        machine: &Bound<'py, PyMachine>,
        key: Value,
        event: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, machine) = (machine.py(), &machine.get().machine);
        let event = machine.event(event).ok_or_else(|| unknown(event, None)).or_raise(py)?;
        let mut map = self.0.write(py)?;
        let step = |now| machine.next(now, event);
        lookup(py, each!(&mut *map, map => map.transition(&key, step)).or_raise(py)?)
    }

    /// Applies one event per key, in order. ``events`` has names, or numbers of ``machine.events``.
    ///
    /// Returns the numbers of the states before, as ``lookup_batch`` does, and the keys whose event was refused.
    fn apply_batch<'py>(
        &self,
        machine: &Bound<'py, PyMachine>,
        keys: Column,
        events: Column,
    ) -> PyResult<Applied<'py>> {
        let (py, machine) = (machine.py(), &machine.get().machine);
        let mut map = self.0.write(py)?;
        let (map, mut refusals) = (&mut *map, PyRefusals::default());
        let before = py.detach(|| {
            let events = numbers(machine, &events, keys.len())?;
            let mut before = vec![-1; keys.len()];
            keys.each(map.seed(), |first, keys| {
                let step = |i: usize, now| {
                    before[first + i] = number(now);
                    machine.next(now, events[first + i])
                };
                map.transition_batch(keys, step, &mut |i, why| refusals.add(first + i, why));
            });
            Ok::<_, BadKey>(before)
        });
        Ok((before.or_raise(py)?.into_pyarray(py), refusals))
    }

    /// Adds the keys of another map of the same shape and seed, whose keys must not be stored in this one.
    fn merge(&self, other: &Bound<'_, PyMap>) -> PyResult<()> {
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
        let mut map = self.0.write(py)?;
        each!(&mut *map, map => map.clear());
        Ok(())
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(PyMap::of(self.0.read(py)?.try_clone().or_raise(py)?))
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
        let map = self.0.read(py)?;
        Ok(each!(&*map, map => map.memory_bytes()))
    }

    /// The probability that a key that was never inserted is not answered ``Absent()``.
    #[getter]
    fn certainty(&self, py: Python<'_>) -> PyResult<PyCertainty> {
        let map = self.0.read(py)?;
        Ok(PyCertainty(each!(&*map, map => map.certainty())))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.0.read(py)?.stats();
        stats(py, found)
    }

    fn __contains__(&self, key: Value, py: Python<'_>) -> PyResult<bool> {
        let map = self.0.read(py)?;
        Ok(each!(&*map, map => map.contains(&key)))
    }

    fn __eq__(&self, other: &Bound<'_, PyMap>) -> PyResult<bool> {
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
        let map = self.0.read(py)?;
        let (shape, load) = (in_words(&map.shape()), map.stats().load);
        let certainty = each!(&*map, map => map.certainty());
        Ok(format!("<Map: {shape}, load {load:.4}, {certainty}>"))
    }
}

/// The error about an event that the machine does not have.
fn unknown(event: &str, row: Option<usize>) -> BadKey {
    BadKey { row, why: format!("the machine has no event {event:?}") }
}

/// The numbers of the events of a column, `len` of them.
fn numbers(
    machine: &sidon::state::Machine,
    events: &Column,
    len: usize,
) -> Result<Vec<u16>, BadKey> {
    let all = machine.events().len();
    if events.len() != len {
        return Err(BadKey { row: None, why: "there must be one event per key".to_owned() });
    }
    if let Some(given) = events.amounts(len) {
        let known = |(row, &number): (usize, &u64)| match u16::try_from(number) {
            Ok(event) if usize::from(event) < all => Ok(event),
            _ => Err(BadKey { row: Some(row), why: format!("the machine has {all} events") }),
        };
        return given.iter().enumerate().map(known).collect();
    }
    let (mut found, mut wrong) = (Vec::with_capacity(len), None);
    for (_, rows) in events.parts() {
        rows.each_key(&mut |name| {
            let named = str::from_utf8(name).ok().and_then(|name| machine.event(name));
            if named.is_none() && wrong.is_none() {
                wrong = Some(unknown(&String::from_utf8_lossy(name), Some(found.len())));
            }
            found.push(named.unwrap_or_default());
        });
    }
    wrong.map_or(Ok(found), Err)
}
