//! Shapes as dicts of Python, in the form that the library has for serde.

use pyo3::{exceptions::PyValueError, prelude::*};
use serde::{Serialize, de::DeserializeOwned};

/// The Python object of a value: by way of JSON, because shapes are small.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let json =
        serde_json::to_string(value).map_err(|why| PyValueError::new_err(why.to_string()))?;
    py.import("json")?.call_method1("loads", (json,))
}

/// The value of a Python object.
pub(crate) fn from_python<T: DeserializeOwned>(
    what: &str,
    object: &Bound<'_, PyAny>,
) -> PyResult<T> {
    let json: String = object.py().import("json")?.call_method1("dumps", (object,))?.extract()?;
    serde_json::from_str(&json)
        .map_err(|why| PyValueError::new_err(format!("the {what} is wrong: {why}")))
}

/// A shape in one line, without quotes: `bloom {bits: 9600, hashes: 7}`.
pub(crate) fn in_words(shape: &impl Serialize) -> String {
    let json = serde_json::to_string(shape).unwrap_or_default();
    let words = json.replace('"', "").replace(',', ", ").replace(':', ": ");
    match words
        .strip_prefix('{')
        .and_then(|words| words.strip_suffix('}'))
        .and_then(|words| words.split_once(": {"))
    {
        // One variant of an enumeration: its name, then its fields.
        Some((name, fields)) if !name.contains(',') && !name.contains(':') => {
            format!("{name} {{{fields}")
        }
        _ => words,
    }
}
