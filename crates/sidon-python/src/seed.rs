//! Seeds: numbers that Python code passes on, and that no `repr` shows.

use pyo3::{exceptions::PyOSError, prelude::*, types::PyTuple};
use sidon::Seed;

/// A secret number of 128 bits that selects the hash function. ``repr`` does not show it.
///
/// Structures merge only under equal seeds. A program whose keys come from a network should use ``Seed.random()``.
/// A pickle of a seed, or of a structure, contains the number.
#[pyclass(frozen, eq, hash, name = "Seed", module = "sidon")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PySeed {
    number: u128,
}

#[pymethods]
impl PySeed {
    #[new]
    #[pyo3(signature = (number, /))]
    fn new(number: u128) -> Self {
        PySeed { number }
    }

    /// A seed from the operating system's source of randomness.
    #[staticmethod]
    fn random() -> PyResult<Self> {
        let seed = Seed::random().map_err(|why| PyOSError::new_err(why.to_string()))?;
        Ok(PySeed { number: seed.0 })
    }

    fn __int__(&self) -> u128 {
        self.number
    }

    fn __repr__(&self) -> &'static str {
        "Seed(..)"
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let number = slf.get().number;
        (slf.get_type(), (number,)).into_pyobject(slf.py())
    }
}

impl PySeed {
    pub(crate) fn of(seed: Seed) -> Self {
        PySeed { number: seed.0 }
    }
}

/// A seed as an argument: a `Seed` or an `int`.
pub(crate) struct SeedArg(pub(crate) Seed);

impl<'py> FromPyObject<'_, 'py> for SeedArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PySeed>() {
            Ok(seed) => Ok(SeedArg(Seed(seed.get().number))),
            Err(_) => Ok(SeedArg(Seed(object.extract()?))),
        }
    }
}
