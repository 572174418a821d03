//! The memory that the machine has free.

use pyo3::prelude::*;

use crate::errors::raise;

/// Bytes that this process can take without swapping or being killed.
#[pyfunction]
pub(crate) fn free_memory(py: Python<'_>) -> PyResult<u64> {
    tiergraph_mem::available_memory_bytes().map_err(|e| raise(py, &e))
}
