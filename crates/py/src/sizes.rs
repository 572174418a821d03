//! Byte sizes as users write and read them.

use pyo3::prelude::*;
use tiergraph_core::ByteSize;

use crate::errors::raise;

/// Reads `2GiB`, `512M` or `1048576` as bytes.
#[pyfunction]
pub(crate) fn parse_size(py: Python<'_>, text: &str) -> PyResult<u64> {
    text.parse::<ByteSize>().map(|size| size.0).map_err(|e| raise(py, &e))
}

/// Writes bytes as `1.5 GiB`.
#[pyfunction]
pub(crate) fn format_size(size: u64) -> String {
    ByteSize(size).to_string()
}

/// The most memory that this process has had resident so far, in bytes.
#[pyfunction]
pub(crate) fn peak_rss_bytes(py: Python<'_>) -> PyResult<u64> {
    tiergraph_mem::peak_rss_bytes().map_err(|e| raise(py, &e))
}
