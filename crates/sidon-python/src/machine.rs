//! State machines as data.

use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyTuple},
};
use sidon::state::{Faulty, Machine, Rule};

/// A state machine: named states, and the rules of named events.
///
/// A rule is a tuple. A key that reaches a terminal state is removed.
///
/// ====================== =======================================================
/// ``("open", state)``     inserts an absent key
/// ``("open_new", state)`` inserts a key, whose first event this certainly is
/// ``("go", state)``       goes to this state from any state
/// ``("if", from, to)``    goes from one state to another
/// ``("add", n)``          adds to the number of the state
/// ``("mix", state)``      makes keys in this state unknown
/// ====================== =======================================================
///
/// >>> import sidon
/// >>> tcp = sidon.Machine(
/// ...     ["opening", "open", "closed"],
/// ...     {"syn": [("open", "opening")], "ack": [("if", "opening", "open")], "rst": [("go", "closed")]},
/// ...     terminal=["closed"],
/// ... )
/// >>> tcp.states, tcp.events
/// (['opening', 'open', 'closed'], ['syn', 'ack', 'rst'])
#[pyclass(frozen, eq, name = "Machine", module = "sidon")]
#[derive(PartialEq)]
pub(crate) struct PyMachine {
    pub(crate) machine: Machine,
    /// The arguments, for a pickle.
    given: Given,
}

#[derive(PartialEq, Clone)]
struct Given {
    states: Vec<String>,
    terminal: Vec<String>,
    events: Vec<(String, Vec<OwnRule>)>,
}

/// A [`Rule`] that owns its names.
#[derive(PartialEq, Clone)]
enum OwnRule {
    Open(String),
    OpenNew(String),
    Go(String),
    If(String, String),
    Add(i32),
    Mix(String),
}

impl OwnRule {
    fn rule(&self) -> Rule<'_> {
        match self {
            OwnRule::Open(state) => Rule::Open(state),
            OwnRule::OpenNew(state) => Rule::OpenNew(state),
            OwnRule::Go(state) => Rule::Go(state),
            OwnRule::If(from, to) => Rule::If(from, to),
            OwnRule::Add(amount) => Rule::Add(*amount),
            OwnRule::Mix(state) => Rule::Mix(state),
        }
    }

    fn tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self {
            OwnRule::Open(state) => ("open", state).into_pyobject(py),
            OwnRule::OpenNew(state) => ("open_new", state).into_pyobject(py),
            OwnRule::Go(state) => ("go", state).into_pyobject(py),
            OwnRule::If(from, to) => ("if", from, to).into_pyobject(py),
            OwnRule::Add(amount) => ("add", *amount).into_pyobject(py),
            OwnRule::Mix(state) => ("mix", state).into_pyobject(py),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for OwnRule {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let wrong = || PyValueError::new_err(format!("{} is not a rule of a machine", &*object));
        let parts = object.cast::<PyTuple>().map_err(|_| wrong())?;
        let name: String =
            parts.get_item(0).and_then(|name| name.extract()).map_err(|_| wrong())?;
        let text = |at: usize| {
            let item = parts.get_item(at).and_then(|item| item.extract::<String>());
            item.map_err(|_| wrong())
        };
        Ok(match (&name[..], parts.len()) {
            ("open", 2) => OwnRule::Open(text(1)?),
            ("open_new", 2) => OwnRule::OpenNew(text(1)?),
            ("go", 2) => OwnRule::Go(text(1)?),
            ("if", 3) => OwnRule::If(text(1)?, text(2)?),
            ("add", 2) => OwnRule::Add(parts.get_item(1)?.extract().map_err(|_| wrong())?),
            ("mix", 2) => OwnRule::Mix(text(1)?),
            _ => return Err(wrong()),
        })
    }
}

#[pymethods]
impl PyMachine {
    #[new]
    #[pyo3(signature = (states, events, *, terminal = Vec::new()))]
    fn new(
        states: Vec<String>,
        events: &Bound<'_, PyDict>,
        terminal: Vec<String>,
    ) -> PyResult<Self> {
        let read = |(name, rules): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((name.extract()?, rules.extract::<Vec<OwnRule>>()?))
        };
        let events = events.iter().map(read).collect::<PyResult<Vec<(String, _)>>>()?;
        let given = Given { states, terminal, events };
        let machine = given.compile().map_err(|why| PyValueError::new_err(why.to_string()))?;
        Ok(PyMachine { machine, given })
    }

    /// The names of the states, by number.
    #[getter]
    fn states(&self) -> Vec<String> {
        self.machine.states().to_vec()
    }

    /// The names of the events, by number.
    #[getter]
    fn events(&self) -> Vec<String> {
        self.machine.events().to_vec()
    }

    fn __repr__(&self) -> String {
        let (states, events) = (self.machine.states().join(", "), self.machine.events().join(", "));
        format!("<Machine: states {states}; events {events}>")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, given) = (slf.py(), &slf.get().given);
        let events = PyDict::new(py);
        for (name, rules) in &given.events {
            let rules = rules.iter().map(|rule| rule.tuple(py)).collect::<PyResult<Vec<_>>>()?;
            events.set_item(name, rules)?;
        }
        let named = PyDict::new(py);
        named.set_item("terminal", &given.terminal)?;
        let partial = py.import("functools")?.getattr("partial")?;
        let build = partial.call((slf.get_type(),), Some(&named))?;
        (build, (given.states.clone(), events)).into_pyobject(py)
    }
}

impl Given {
    fn compile(&self) -> Result<Machine, Faulty> {
        let rules: Vec<Vec<Rule<'_>>> = self
            .events
            .iter()
            .map(|(_, rules)| rules.iter().map(OwnRule::rule).collect())
            .collect();
        let events: Vec<(&str, &[Rule<'_>])> = self
            .events
            .iter()
            .zip(&rules)
            .map(|((name, _), rules)| (&name[..], &rules[..]))
            .collect();
        let states: Vec<&str> = self.states.iter().map(|name| &name[..]).collect();
        let terminal: Vec<&str> = self.terminal.iter().map(|name| &name[..]).collect();
        Machine::new(&states, &terminal, &events)
    }
}
