//! Whether a graph's bytes are what was written.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::json;
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat;

use crate::calls::Call;
use crate::errors::to_json;

/// Compares the array file `name` of the graph at `path`, which NumPy maps, with the manifest.
#[pyfunction]
pub(crate) fn check_array(py: Python<'_>, path: PathBuf, name: &str) -> PyResult<()> {
    Call::new(None).run(py, || {
        let graph = GraphDir::open(&path)?;
        flat::check(&graph.path().join(name), graph.entry(name)?)
    })
}

/// Reads every byte of a graph; what is damaged is in the report, as JSON.
#[pyfunction]
pub(crate) fn verify(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let call = Call::new(progress);
    let report = call.run(py, || tiergraph_format::verify::verify(&path, &call, &call.cancel))?;
    let damage: Vec<_> = report
        .damage
        .iter()
        .map(|d| json!({ "file": d.file, "block": d.block, "offset": d.offset, "what": d.what }))
        .collect();
    to_json(
        py,
        &json!({
            "graph": path,
            "files": report.files,
            "blocks": report.blocks,
            "bytes": report.bytes,
            "damage": damage,
        }),
    )
}
