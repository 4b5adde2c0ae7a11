//! The Python package `sidon`: classes over the library, without logic of their own.
//!
//! | file | content |
//! |---|---|
//! | `key` | Python objects, Arrow arrays and numpy arrays as keys |
//! | `shared` | a structure that several threads use |
//! | `seed`, `shape`, `answer`, `error` | arguments and results |
//! | `set`, `min`, `top`, `prefixes`, `distinct`, `fan_out`, `map`, `machine`, `zone` | the structures |
//! | `plan` | from targets to shapes |
//! | `snapshot` | from captures to snapshots and reports |
//!
//! The stubs in `python/sidon/_sidon.pyi` hold the types; a test compares them with this module.

mod answer;
mod distinct;
mod error;
mod fan_out;
mod key;
mod machine;
mod map;
mod min;
mod plan;
mod prefixes;
mod seed;
mod set;
mod shape;
mod shared;
mod snapshot;
mod top;
mod zone;

#[pyo3::pymodule]
mod _sidon {
    #[pymodule_export]
    use crate::{
        answer::{
            PyAbsent, PyBounds, PyCertainty, PyDontKnow, PyEstimate, PyInterval, PyRefusals,
            PyState,
        },
        distinct::PyDistinct,
        fan_out::PyFanOut,
        machine::PyMachine,
        map::PyMap,
        min::PyMin,
        plan::{
            plan_count, plan_count_in, plan_distinct, plan_fan_out, plan_prefixes, plan_set,
            plan_sets, plan_states, plan_top, plan_zones,
        },
        prefixes::{PyHeavy, PyPrefixes},
        seed::PySeed,
        set::PySet,
        snapshot::{PySnapshot, run_capture, run_generator},
        top::{PyRanking, PyTop},
        zone::{PyAdaptive, PyHosts, PyZoneFilter, PyZoneSketch},
    };
}
