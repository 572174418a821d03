//! Checks of a graph's bytes against its checksums.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::json;
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat;

use crate::calls::Call;
use crate::errors::to_json;

/// Compares the array file `name` of the graph at `path`, which NumPy will map, with its checksums.
#[pyfunction]
pub(crate) fn check_array(py: Python<'_>, path: PathBuf, name: &str) -> PyResult<()> {
    Call::new(None).run(py, || {
        let graph = GraphDir::open(&path)?;
        flat::check(&graph.path().join(name), graph.entry(name)?)
    })
}

/// Reads and checks every byte of a graph; returns a report as JSON that lists all damage.
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
