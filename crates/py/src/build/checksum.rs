//! Checksums of rows, for features of graphs that have none.

use std::path::PathBuf;
use std::time::Instant;

use pyo3::prelude::*;
use serde_json::json;
use tiergraph_ingest::features::checksum;

use crate::calls::Call;
use crate::errors::to_json;

/// Stores the checksum of each row of the features `name`; returns a report as JSON.
#[pyfunction]
pub(crate) fn checksum_features(
    py: Python<'_>,
    path: PathBuf,
    name: &str,
    memory: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let call = Call::new(progress);
    let report = call.run(py, || {
        let since = Instant::now();
        let manifest = checksum(&path, name, memory, &call, &call.cancel)?;
        let entry = &manifest.features[name];
        Ok(json!({
            "rows": entry.rows,
            "bytes": entry.layout.file_bytes(entry.rows),
            "seconds": since.elapsed().as_secs_f64(),
        }))
    })?;
    to_json(py, &report)
}
