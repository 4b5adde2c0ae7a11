//! A structure that several threads of Python use: readers together, a writer alone.
//!
//! Batches release the interpreter lock, so another thread can call the same structure meanwhile. It waits.

use crate::error::poisoned;
use pyo3::{prelude::*, sync::RwLockExt};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A structure behind a lock.
pub(crate) struct Shared<T>(RwLock<T>);

impl<T> Shared<T> {
    pub(crate) fn new(structure: T) -> Self {
        Shared(RwLock::new(structure))
    }

    /// The structure, to read.
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<RwLockReadGuard<'_, T>> {
        self.0.read_py_attached(py).map_err(poisoned)
    }

    /// The structure, to change.
    pub(crate) fn write(&self, py: Python<'_>) -> PyResult<RwLockWriteGuard<'_, T>> {
        self.0.write_py_attached(py).map_err(poisoned)
    }

    /// Two structures, one to change and one to read. Locks them in the order of their addresses, so that two
    /// threads that merge two structures into each other cannot wait for each other.
    ///
    /// `None` if both are the same structure.
    pub(crate) fn write_and_read<'a>(
        &'a self,
        other: &'a Self,
        py: Python<'_>,
    ) -> PyResult<Option<(RwLockWriteGuard<'a, T>, RwLockReadGuard<'a, T>)>> {
        let [own, its] = [self, other].map(|one| std::ptr::from_ref(one).addr());
        if own == its {
            return Ok(None);
        }
        if own < its {
            let own = self.write(py)?;
            return Ok(Some((own, other.read(py)?)));
        }
        let its = other.read(py)?;
        Ok(Some((self.write(py)?, its)))
    }
}
