//! Mini-batches as NumPy arrays, in PyG's names and types and the user's ids.

use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;
use tiergraph_sampler::residency::offsets::Offsets;
use tiergraph_sampler::{
    EdgeValues, HandedOver, Held, Prepared, SampledEdges, SampledNodes, Topology,
};

use crate::rows::{to_array, to_index};

/// Bytes of the arrays of a batch: of a node its position, in a graph of one type its id and degree,
/// and in disjoint batches its tree; of an edge its ends. Edges' numbers are handed over as they are.
pub(crate) fn handed_over(disjoint: bool, typed: bool) -> HandedOver {
    let of_node = if typed { 1 } else { 3 };
    HandedOver { node_bytes: (of_node + u64::from(disjoint)) * 8, edge_bytes: 2 * 8 }
}

/// What the user calls the graph's vertices.
pub(crate) struct Names {
    /// Each vertex's place in the user's order, where that is another.
    positions: Option<Vec<u32>>,
    /// The user's ids in the user's order, where they are not their places.
    ids: Option<Vec<u64>>,
    _held: Reservation,
}

impl Names {
    /// Reads what is stored of a graph's names: up to 12 bytes a vertex.
    pub(crate) fn of(graph: &Graph) -> Result<Self> {
        let vertices = graph.vertices();
        let mapped = graph.manifest().files.contains_key("user.ids");
        let bytes = 4 * u64::from(graph.order().is_reordered()) + 8 * u64::from(mapped);
        let held = graph.memory().reserve(bytes * vertices as u64, "the vertices' ids")?;
        let positions = match graph.order().is_reordered() {
            true => Some(graph.order().from_user(&(0..vertices as u32).collect::<Vec<_>>(), 1)?),
            false => None,
        };
        Ok(Self { positions, ids: graph.ids().all()?, _held: held })
    }

    /// Places in the user's order.
    fn positions(&self, vertices: &[u32]) -> Vec<i64> {
        match &self.positions {
            Some(all) => vertices.iter().map(|&v| i64::from(all[v as usize])).collect(),
            None => widen(vertices),
        }
    }

    /// The user's ids, bit for bit, if they are not places.
    fn ids(&self, positions: &[i64]) -> Option<Vec<i64>> {
        let ids = self.ids.as_ref()?;
        Some(positions.iter().map(|&p| ids[p as usize] as i64).collect())
    }
}

/// The arrays of a batch's nodes of one type, as `NodesOfType` in `_native.pyi` has them.
struct NodeArrays {
    positions: Vec<i64>,
    n_id: Option<Vec<i64>>,
    tree: Vec<i64>,
    /// Neighbours in the whole graph, where there is one type of edges.
    degree: Option<Vec<i64>>,
    num_sampled: Vec<usize>,
}

impl NodeArrays {
    fn of(nodes: SampledNodes, names: &Names, offsets: Option<&Offsets>) -> Self {
        let degree = |&vertex: &u32, offsets: &Offsets| {
            let arcs = offsets.arcs(vertex);
            (arcs.end - arcs.start) as i64
        };
        let positions = names.positions(&nodes.n_id);
        Self {
            n_id: names.ids(&positions),
            positions,
            tree: widen(&nodes.tree),
            degree: offsets.map(|of| nodes.n_id.iter().map(|vertex| degree(vertex, of)).collect()),
            num_sampled: nodes.num_sampled,
        }
    }

    fn into_dict<'py>(self, py: Python<'py>, x: Option<Held>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let positions = self.positions.into_pyarray(py);
        let n_id = match self.n_id {
            Some(ids) => ids.into_pyarray(py),
            None => positions.clone(),
        };
        dict.set_item("n_id", n_id)?;
        dict.set_item("position", positions)?;
        dict.set_item("degree", self.degree.map(|degree| degree.into_pyarray(py)))?;
        dict.set_item("batch", self.tree.into_pyarray(py))?;
        dict.set_item("x", to_array(py, x)?)?;
        dict.set_item("num_sampled_nodes", self.num_sampled)?;
        Ok(dict)
    }
}

/// The arrays of a batch's edges of one type, as `EdgesOfType` in `_native.pyi` has them.
struct EdgeArrays {
    /// Sources, then destinations.
    edge_index: Vec<i64>,
    e_id: Vec<i64>,
    num_sampled: Vec<usize>,
}

impl EdgeArrays {
    fn of(edges: SampledEdges, numbers: Option<Vec<u64>>) -> Self {
        let mut edge_index = Vec::with_capacity(2 * edges.row.len());
        edge_index.extend(edges.row.iter().map(|&node| i64::from(node)));
        edge_index.extend(edges.col.iter().map(|&node| i64::from(node)));
        let numbers = numbers.unwrap_or(edges.e_id);
        // Reuses the memory.
        let e_id = numbers.into_iter().map(|edge| edge as i64).collect();
        Self { edge_index, e_id, num_sampled: edges.num_sampled }
    }

    fn into_dict<'py>(
        self,
        py: Python<'py>,
        values: EdgeValues,
        attributes: Option<Held>,
        held: Arc<Reservation>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let edges = self.e_id.len();
        dict.set_item("edge_index", to_index(py, self.edge_index, edges, held)?)?;
        dict.set_item("e_id", self.e_id.into_pyarray(py))?;
        dict.set_item("weight", values.weights.map(|all| all.into_pyarray(py)))?;
        dict.set_item("time", values.times.map(|all| all.into_pyarray(py)))?;
        dict.set_item("edge_attr", to_array(py, attributes)?)?;
        dict.set_item("num_sampled_edges", self.num_sampled)?;
        Ok(dict)
    }
}

/// Hands a batch to Python, as `Batch` in `_native.pyi`; `names` are by node type. Features stay where
/// they were gathered.
pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    mut prepared: Prepared,
    names: &[Names],
    topologies: &[Topology],
) -> PyResult<Bound<'py, PyDict>> {
    let batch = std::mem::take(&mut prepared.batch);
    let dict = PyDict::new(py);
    dict.set_item("number", batch.number)?;
    dict.set_item("batch_size", batch.batch_size())?;
    dict.set_item("input_id", widen(&prepared.input_id).into_pyarray(py))?;
    dict.set_item("seed_time", batch.seed_time.into_pyarray(py))?;
    // Of several types of nodes, those of a source have no neighbours of their own.
    let offsets = match (topologies, names) {
        ([one], [_]) => Some(one.offsets()),
        _ => None,
    };
    let of_nodes = PyList::empty(py);
    for (node_type, (nodes, names)) in batch.nodes.into_iter().zip(names).enumerate() {
        let arrays = py.detach(|| NodeArrays::of(nodes, names, offsets));
        of_nodes.append(arrays.into_dict(py, prepared.take_x(node_type))?)?;
    }
    dict.set_item("nodes", of_nodes)?;
    let of_edges = PyList::empty(py);
    for (edge_type, edges) in batch.edges.into_iter().enumerate() {
        let attributes = prepared.take_edge_features(edge_type);
        let mut values = std::mem::take(&mut prepared.edges[edge_type]);
        let numbers = values.numbers.take();
        let arrays = py.detach(|| EdgeArrays::of(edges, numbers));
        of_edges.append(arrays.into_dict(py, values, attributes, prepared.held())?)?;
    }
    dict.set_item("edges", of_edges)?;
    Ok(dict)
}

pub(crate) fn widen(numbers: &[u32]) -> Vec<i64> {
    numbers.iter().map(|&number| number.into()).collect()
}
