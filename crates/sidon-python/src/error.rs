//! Errors of the library as exceptions of the package, with the fields of the error.
//!
//! The classes are Python code (`sidon/_errors.py`), because the stable interface of Python 3.11 lets no
//! extension derive from `Exception`.

use pyo3::{exceptions::PyRuntimeError, prelude::*, sync::PyOnceLock, types::PyDict};
use sidon::{Infeasible, Malformed, Refused};

/// An attribute of a module of the package, imported once.
fn class<'py>(
    py: Python<'py>,
    once: &PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let class = once.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("sidon._errors")?.getattr(name)?.unbind())
    })?;
    Ok(class.bind(py).clone())
}

/// The exception of this class with these fields, or the error of building it.
fn error(
    py: Python<'_>,
    (once, name): (&PyOnceLock<Py<PyAny>>, &str),
    message: String,
    fields: &Bound<'_, PyDict>,
) -> PyErr {
    let built = class(py, once, name).and_then(|class| class.call((message,), Some(fields)));
    built.map_or_else(|why| why, PyErr::from_value)
}

/// A dict of the fields of an error.
macro_rules! fields {
    ($py:expr, $($name:literal: $value:expr),*) => {{
        let fields = PyDict::new($py);
        $(fields.set_item($name, $value)?;)*
        Ok::<_, PyErr>(fields)
    }};
}

/// Errors that become exceptions.
pub(crate) trait Raise {
    /// The exception.
    fn raise(self, py: Python<'_>) -> PyErr;
}

impl Raise for Refused {
    fn raise(self, py: Python<'_>) -> PyErr {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let fields = || match self {
            Refused::Full { stored, cells } => {
                fields!(py, "reason": "full", "stored": stored, "cells": cells)
            }
            Refused::Overflow { ceiling } => fields!(py, "reason": "overflow", "ceiling": ceiling),
            Refused::Outside { universe } => fields!(py, "reason": "outside", "universe": universe),
            Refused::NotStored => fields!(py, "reason": "not_stored"),
            Refused::Permanent => fields!(py, "reason": "permanent"),
            Refused::NotSums => fields!(py, "reason": "not_sums"),
            Refused::Ambiguous => fields!(py, "reason": "ambiguous"),
            Refused::Mismatch { field } => fields!(py, "reason": "mismatch", "field": field),
            _ => fields!(py, "reason": "other"),
        };
        fields().map_or_else(
            |why| why,
            |fields| error(py, (&CLASS, "Refused"), self.to_string(), &fields),
        )
    }
}

impl Raise for Infeasible {
    fn raise(self, py: Python<'_>) -> PyErr {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let fields = || match &self {
            Infeasible::OutOfRange { name, got, least, most } => {
                fields!(py, "reason": "out_of_range", "name": name, "got": got, "least": least, "most": most)
            }
            Infeasible::Rate { name, got, least, most } => {
                fields!(py, "reason": "rate", "name": name, "got": got, "least": least, "most": most)
            }
            Infeasible::NotAMultiple { name, got, of } => {
                fields!(py, "reason": "not_a_multiple", "name": name, "got": got, "of": of)
            }
            Infeasible::NotOneOf { name, got, allowed, near } => {
                fields!(py, "reason": "not_one_of", "name": name, "got": got, "allowed": allowed, "near": near)
            }
            Infeasible::Conflict { name, got, must } => {
                fields!(py, "reason": "conflict", "name": name, "got": got, "must": must)
            }
            Infeasible::Memory { bytes } => fields!(py, "reason": "memory", "bytes": bytes),
            Infeasible::Key { index, why } => {
                let why = why.raise(py);
                fields!(py, "reason": "key", "index": index, "why": why.value(py))
            }
            _ => fields!(py, "reason": "other"),
        };
        fields().map_or_else(
            |why| why,
            |fields| error(py, (&CLASS, "Infeasible"), self.to_string(), &fields),
        )
    }
}

impl Raise for Malformed {
    fn raise(self, py: Python<'_>) -> PyErr {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let fields = || match &self {
            Malformed::Length { expected, got } => {
                fields!(py, "reason": "length", "expected": expected, "got": got)
            }
            Malformed::Magic => fields!(py, "reason": "magic"),
            Malformed::Version { got } => fields!(py, "reason": "version", "got": got),
            Malformed::Kind { expected, got } => {
                fields!(py, "reason": "kind", "expected": expected, "got": got)
            }
            Malformed::Hash { got } => fields!(py, "reason": "hash", "got": got),
            Malformed::Seed => fields!(py, "reason": "seed"),
            Malformed::Checksum => fields!(py, "reason": "checksum"),
            Malformed::Field { name } => fields!(py, "reason": "field", "field": name),
            Malformed::Part { part, field } => {
                fields!(py, "reason": "part", "part": part, "field": field)
            }
            Malformed::Shape(why) => {
                let why = why.clone().raise(py);
                fields!(py, "reason": "shape", "why": why.value(py))
            }
            _ => fields!(py, "reason": "other"),
        };
        fields().map_or_else(
            |why| why,
            |fields| error(py, (&CLASS, "Malformed"), self.to_string(), &fields),
        )
    }
}

/// A key that is not one, and its row in a batch.
pub(crate) struct BadKey {
    /// The index in the batch; `None` for a single key.
    pub(crate) row: Option<usize>,
    /// What is wrong with it.
    pub(crate) why: String,
}

impl Raise for BadKey {
    fn raise(self, py: Python<'_>) -> PyErr {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let message = match self.row {
            Some(row) => format!("row {row}: {}", self.why),
            None => self.why,
        };
        let fields = || fields!(py, "row": self.row);
        fields().map_or_else(|why| why, |fields| error(py, (&CLASS, "BadKey"), message, &fields))
    }
}

/// Results whose error becomes an exception.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Raise> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|why| why.raise(py))
    }
}

/// The exception after a panic left a structure in an unknown state.
pub(crate) fn poisoned<T>(_: T) -> PyErr {
    PyRuntimeError::new_err(
        "an earlier operation panicked, so the content of this structure is not known",
    )
}

/// The exception about a capture that is none, or that breaks off.
pub(crate) fn malformed(py: Python<'_>, path: &str, why: &str) -> PyErr {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let fields = || fields!(py, "reason": "capture", "path": path);
    fields().map_or_else(
        |why| why,
        |fields| error(py, (&CLASS, "Malformed"), format!("{path}: {why}"), &fields),
    )
}
