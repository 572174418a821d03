//! Heterogeneous graphs: what they hold, and how they are put together from built parts.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::hetero::{EdgeType, HeteroBuilding as Building, HeteroManifest, NodeType};

use crate::errors::{detached, from_json, raise, to_json};
use crate::info::{attached, bytes, node_times, of_edges};

/// Whether there is a heterogeneous graph at `path`.
#[pyfunction]
pub(crate) fn is_hetero(path: PathBuf) -> bool {
    HeteroManifest::is_at(&path)
}

/// The node types and edge types of a heterogeneous graph, with what each stores, as JSON.
#[pyfunction]
pub(crate) fn hetero_info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let info = detached(py, || describe(&path))?;
    to_json(py, &info)
}

fn describe(path: &Path) -> Result<Value> {
    let types = HeteroManifest::read(path)?;
    let graphs = types.graphs().map(|graph| GraphDir::open(&path.join(graph)));
    let graphs = graphs.collect::<Result<Vec<GraphDir>>>()?;
    types.check(&graphs.iter().map(GraphDir::manifest).collect::<Vec<_>>())?;
    let (node_graphs, edge_graphs) = graphs.split_at(types.node_types.len());
    let nodes = types.node_types.iter().zip(node_graphs).map(|(t, graph)| {
        let mut node_type = json!({
            "name": t.name,
            "vertices": t.vertices,
            "graph": t.graph,
            "node_times": node_times(graph.manifest()),
            "bytes": bytes(graph.manifest()),
        });
        extend(&mut node_type, attached(graph.manifest()));
        node_type
    });
    let edges = types.edge_types.iter().zip(edge_graphs).map(|(t, graph)| {
        let mut edge_type = json!({
            "name": [t.source, t.relation, t.destination],
            "edges": t.edges,
            "graph": t.graph,
            "bytes": bytes(graph.manifest()),
        });
        extend(&mut edge_type, of_edges(graph.manifest()));
        edge_type
    });
    Ok(json!({
        "graph": path,
        "node_types": nodes.collect::<Vec<Value>>(),
        "edge_types": edges.collect::<Vec<Value>>(),
        "bytes": graphs.iter().map(|graph| bytes(graph.manifest())).sum::<u64>(),
        "format_version": types.format_version,
    }))
}

/// Adds the entries of the object `more` to `object`.
fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(all), Value::Object(more)) = (object, more) {
        all.extend(more);
    }
}

/// A heterogeneous graph under construction: its parts are being built in a folder.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct HeteroBuilding(Mutex<Option<Building>>);

/// The types whose parts were built.
#[derive(Deserialize)]
struct Types {
    node_types: Vec<NodeType>,
    edge_types: Vec<EdgeType>,
}

#[pymethods]
impl HeteroBuilding {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<Self> {
        let existing = if overwrite { Existing::Replace } else { Existing::Refuse };
        let begun = Building::begin(&path, existing).map_err(|e| raise(py, &e))?;
        Ok(Self(Mutex::new(Some(begun))))
    }

    /// The folder in which the parts are built.
    fn folder(&self, py: Python<'_>) -> PyResult<PathBuf> {
        let building = self.0.lock().map_err(|_| over(py))?;
        Ok(building.as_ref().ok_or_else(|| over(py))?.folder().to_owned())
    }

    /// Puts the graph, with the types in `types_json`, in its place.
    fn commit(&self, py: Python<'_>, types_json: &str) -> PyResult<()> {
        let building = self.0.lock().map_err(|_| over(py))?.take().ok_or_else(|| over(py))?;
        detached(py, || {
            let Types { node_types, edge_types } = from_json(types_json)?;
            building.commit(&HeteroManifest::new(node_types, edge_types))
        })?;
        Ok(())
    }

    /// Removes the parts that were built; a graph that stood at the path stays.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let building = self.0.lock().map_err(|_| over(py))?.take();
        py.detach(|| drop(building));
        Ok(())
    }
}

fn over(py: Python<'_>) -> PyErr {
    raise(py, &Error::new(ErrorKind::Input, "go on building").got("this build has ended"))
}
