//! The checkpoints of loops that Python makes.

use std::sync::{Mutex, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use tiergraph_analytics::LoopCheckpoints as Checkpoints;

use crate::calls::Call;
use crate::errors::to_json;

/// The checkpoints of a loop whose state is one value a vertex.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct LoopCheckpoints(pub(crate) Mutex<Checkpoints>);

#[pymethods]
impl LoopCheckpoints {
    /// The iterations that an earlier run had done and its values after them; None where it begins anew.
    fn take<'py>(&self, py: Python<'py>) -> Option<(u64, Bound<'py, PyArray1<f64>>)> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        found.map(|(done, values)| (done, values.into_pyarray(py)))
    }

    /// Notes that an iteration ended with these values, and writes them if it is time to.
    fn keep(&self, py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let values = values.as_slice()?;
        Call::new(None)
            .run(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).keep(values))
    }

    /// What a report says of them, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        to_json(py, &self.0.lock().unwrap_or_else(PoisonError::into_inner).report())
    }
}
