//! Graphs of several types: what they are, how they are put together, and their loader.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use numpy::{IntoPyArray, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::Deserialize;
use serde_json::{Value, json};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::hetero::{EdgeType, HeteroBuilding as Building, HeteroManifest, NodeType};
use tiergraph_graph::HeteroGraph;
use tiergraph_sampler::hetero::{
    HeteroLoader as Engine, HeteroOptions, HeteroPrepared, HeteroShared, SampledEdges,
};
use tiergraph_sampler::{Epoch as Prepared, EpochStats, Fitted, Inputs, Rank};

use crate::batch::widen;
use crate::calls::Call;
use crate::errors::{detached, from_json, raise, to_json};
use crate::info::{attached, bytes};
use crate::loader::{Batches, Epoch, Options, Ready, fanout};
use crate::of_process::OfProcess;
use crate::rows::to_array;

/// Whether there is a heterogeneous graph at `path`.
#[pyfunction]
pub(crate) fn is_hetero(path: PathBuf) -> bool {
    HeteroManifest::is_at(&path)
}

/// The types of a heterogeneous graph and what each has, as JSON.
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
    let (of_nodes, of_edges) = graphs.split_at(types.node_types.len());
    let nodes = types.node_types.iter().zip(of_nodes).map(|(t, graph)| {
        let mut node_type = json!({
            "name": t.name,
            "vertices": t.vertices,
            "graph": t.graph,
            "bytes": bytes(graph.manifest()),
        });
        if let (Value::Object(all), Value::Object(more)) =
            (&mut node_type, attached(graph.manifest()))
        {
            all.extend(more);
        }
        node_type
    });
    let edges = types.edge_types.iter().zip(of_edges).map(|(t, graph)| {
        json!({
            "name": [t.source, t.relation, t.destination],
            "edges": t.edges,
            "graph": t.graph,
            "bytes": bytes(graph.manifest()),
        })
    });
    Ok(json!({
        "graph": path,
        "node_types": nodes.collect::<Vec<Value>>(),
        "edge_types": edges.collect::<Vec<Value>>(),
        "bytes": graphs.iter().map(|graph| bytes(graph.manifest())).sum::<u64>(),
        "format_version": types.format_version,
    }))
}

/// A heterogeneous graph whose parts are being built.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct HeteroBuilding(Mutex<Option<Building>>);

/// The types of the parts that were built.
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

    /// The folder where the parts are built.
    fn folder(&self, py: Python<'_>) -> PyResult<PathBuf> {
        let building = self.0.lock().map_err(|_| over(py))?;
        Ok(building.as_ref().ok_or_else(|| over(py))?.folder().to_owned())
    }

    /// Puts the graph of these types in its place.
    fn commit(&self, py: Python<'_>, types_json: &str) -> PyResult<()> {
        let building = self.0.lock().map_err(|_| over(py))?.take().ok_or_else(|| over(py))?;
        detached(py, || {
            let Types { node_types, edge_types } = from_json(types_json)?;
            building.commit(&HeteroManifest::new(node_types, edge_types))
        })?;
        Ok(())
    }

    /// Removes what was built; a graph that stood at the path stays.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let building = self.0.lock().map_err(|_| over(py))?.take();
        py.detach(|| drop(building));
        Ok(())
    }
}

fn over(py: Python<'_>) -> PyErr {
    raise(py, &Error::new(ErrorKind::Input, "go on building").got("this build has ended"))
}

/// What loaders of several types are told beside the options of others.
#[derive(Deserialize)]
struct TypedOptions {
    /// Of each edge type, one a hop.
    fanouts: Vec<Vec<i64>>,
    /// Of each node type.
    node_features: Vec<Option<String>>,
    /// The node type of the seeds.
    input: String,
}

/// Makes mini-batches of one heterogeneous graph, which it opens for itself.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct HeteroLoader(OfProcess<Opened>);

struct Opened {
    engine: Engine,
    fitted: Fitted,
    seeds: Vec<u32>,
}

#[pymethods]
impl HeteroLoader {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options_json: &str,
        seeds: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<Self> {
        let seeds = seeds.as_slice()?;
        let call = Call::new(None);
        call.run(py, || {
            let (options, typed): (Options, TypedOptions) =
                (from_json(options_json)?, from_json(options_json)?);
            let open = options.open()?;
            let graph = Arc::new(HeteroGraph::open(&path, &open, &call.cancel)?);
            let (loader, plan) = (typed.loader(&options, graph.manifest())?, options.plan()?);
            let seeds = nodes(seeds, graph.manifest(), loader.input)?;
            let presample = options.presample.unwrap_or(usize::MAX);
            let (engine, fitted) = Engine::fitted(&graph, &loader, &seeds, &plan, presample)?;
            Ok(Self(OfProcess::new(Opened { engine, fitted, seeds })))
        })
    }

    /// What is kept in memory, as JSON.
    fn kept(&self, py: Python<'_>) -> PyResult<String> {
        to_json(py, &self.0.here().map_err(|e| raise(py, &e))?.fitted)
    }

    /// Begins epoch `number` at batch `first` of rank `rank` of `ranks`.
    fn epoch(
        &self,
        py: Python<'_>,
        number: u64,
        first: usize,
        rank: usize,
        ranks: usize,
    ) -> PyResult<Epoch> {
        let begun = detached(py, || {
            let (opened, rank) = (self.0.here()?, Rank::new(rank, ranks)?);
            let inputs = Inputs { seeds: &opened.seeds, times: None, rank };
            opened.engine.epoch(number, inputs, first)
        })?;
        Ok(Epoch::new(Box::new(begun)))
    }
}

impl TypedOptions {
    fn loader(&self, options: &Options, types: &HeteroManifest) -> Result<HeteroOptions> {
        let fanouts = self.fanouts.iter().map(|hops| hops.iter().map(|&k| fanout(k)).collect());
        let input = types.node_type(&self.input).ok_or_else(|| {
            let names: Vec<&str> = types.node_types.iter().map(|t| t.name.as_str()).collect();
            Error::new(ErrorKind::Input, "sample nodes of the type")
                .object(&self.input)
                .expected(format!("one of {}", names.join(", ")))
        })?;
        Ok(HeteroOptions {
            fanouts: fanouts.collect::<Result<_>>()?,
            features: self.node_features.clone(),
            input,
            batches: options.loader()?,
        })
    }
}

/// Seeds as nodes of their type.
fn nodes(ids: &[u64], types: &HeteroManifest, input: usize) -> Result<Vec<u32>> {
    let NodeType { name, vertices, .. } = &types.node_types[input];
    let node = |&id: &u64| {
        u32::try_from(id).ok().filter(|_| id < *vertices).ok_or_else(|| {
            Error::new(ErrorKind::Input, "sample from seed")
                .object(id)
                .expected(format!("one of {vertices} nodes of type `{name}`"))
        })
    };
    ids.iter().map(node).collect()
}

impl Batches for Prepared<HeteroShared> {
    fn poll(&mut self, limit: Duration) -> Result<Option<Ready>> {
        let prepared = Prepared::poll(self, limit)?;
        Ok(prepared.map(|prepared| Box::new(|py: Python<'_>| to_dict(py, prepared)) as Ready))
    }

    fn is_done(&self) -> bool {
        Prepared::is_done(self)
    }

    fn stats(&self) -> EpochStats {
        Prepared::stats(self)
    }
}

/// Hands a batch to Python, as `HeteroBatch` in `_native.pyi`.
fn to_dict(py: Python<'_>, mut prepared: HeteroPrepared) -> PyResult<Py<PyDict>> {
    let batch = std::mem::take(&mut prepared.batch);
    let dict = PyDict::new(py);
    dict.set_item("number", batch.number)?;
    dict.set_item("batch_size", prepared.input_id.len())?;
    dict.set_item("input_id", widen(&prepared.input_id).into_pyarray(py))?;
    let nodes = PyList::empty(py);
    for (node_type, sampled) in batch.nodes.into_iter().enumerate() {
        let of = PyDict::new(py);
        let n_id = py.detach(|| widen(&sampled.n_id));
        of.set_item("n_id", n_id.into_pyarray(py))?;
        of.set_item("num_sampled_nodes", sampled.num_sampled)?;
        of.set_item("x", to_array(py, prepared.take_x(node_type))?)?;
        nodes.append(of)?;
    }
    dict.set_item("nodes", nodes)?;
    let edges = PyList::empty(py);
    for sampled in batch.edges {
        let SampledEdges { row, col, e_id, num_sampled } = sampled;
        let of = PyDict::new(py);
        let index: Vec<i64> =
            py.detach(|| row.iter().chain(&col).map(|&node| i64::from(node)).collect());
        of.set_item("edge_index", index.into_pyarray(py).reshape([2, row.len()])?)?;
        // Reuses the memory.
        let e_id: Vec<i64> = e_id.into_iter().map(|arc| arc as i64).collect();
        of.set_item("e_id", e_id.into_pyarray(py))?;
        of.set_item("num_sampled_edges", num_sampled)?;
        edges.append(of)?;
    }
    dict.set_item("edges", edges)?;
    Ok(dict.unbind())
}
