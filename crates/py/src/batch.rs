//! Mini-batches as NumPy arrays, with PyG's names and types and the user's ids of vertices.

use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tiergraph_core::Result;
use tiergraph_format::edges::ValueType;
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;
use tiergraph_sampler::residency::offsets::Offsets;
use tiergraph_sampler::{
    EdgeValues, HandedOver, Held, NamedColumn, Prepared, SampledEdges, SampledNodes, Topology,
};

use crate::rows::{to_array, to_index};

/// Counts bytes, for each node and each edge, of the arrays made of a batch for Python, for memory
/// plans. A node has a position, in graphs of one type (not `typed`) an id and a degree, and in disjoint
/// batches its tree; an edge has its two ends: 8 bytes each. Edge numbers need no further array.
pub(crate) fn handed_over(disjoint: bool, typed: bool) -> HandedOver {
    let of_node = if typed { 1 } else { 3 };
    HandedOver { node_bytes: (of_node + u64::from(disjoint)) * 8, edge_bytes: 2 * 8 }
}

/// The user's ids of one graph's vertices, and the vertices' positions in the user's order.
pub(crate) struct Names {
    /// The position of each vertex in the user's order; `None` where the graph's order is the same.
    positions: Option<Vec<u32>>,
    /// The user's id at each position; `None` where ids are the positions.
    ids: Option<Vec<u64>>,
    _held: Reservation,
}

impl Names {
    /// Reads a graph's positions and ids, as far as they are stored: up to 12 bytes a vertex.
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

    /// The positions of `vertices` in the user's order.
    fn positions(&self, vertices: &[u32]) -> Vec<i64> {
        match &self.positions {
            Some(all) => vertices.iter().map(|&v| i64::from(all[v as usize])).collect(),
            None => widen(vertices),
        }
    }

    /// The user's ids at `positions`, bit for bit; `None` where ids are the positions.
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
    /// Degrees in the whole graph; `None` where there is more than one edge type.
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
    /// The indices of all sources among the batch's nodes, then those of all destinations.
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
        let e_id = integers(numbers);
        Self { edge_index, e_id, num_sampled: edges.num_sampled }
    }

    fn into_dict<'py>(
        self,
        py: Python<'py>,
        values: EdgeValues,
        others: &[NamedColumn],
        attributes: Option<Held>,
        held: Arc<Reservation>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let edges = self.e_id.len();
        dict.set_item("edge_index", to_index(py, self.edge_index, edges, held)?)?;
        dict.set_item("e_id", self.e_id.into_pyarray(py))?;
        dict.set_item("weight", values.weights.map(|all| all.into_pyarray(py)))?;
        dict.set_item("time", values.times.map(|all| all.into_pyarray(py)))?;
        let named = PyDict::new(py);
        for (column, words) in others.iter().zip(values.others) {
            let array = match column.kind {
                ValueType::F32 => floats(words).into_pyarray(py).into_any(),
                ValueType::I64 => integers(words).into_pyarray(py).into_any(),
            };
            named.set_item(&column.name, array)?;
        }
        dict.set_item("values", named)?;
        dict.set_item("edge_attr", to_array(py, attributes)?)?;
        dict.set_item("num_sampled_edges", self.num_sampled)?;
        Ok(dict)
    }
}

/// Converts a batch to the arrays of `Batch` in `_native.pyi`. `names` has the ids of each node type's
/// vertices, `topologies` the neighbours of each edge type, which tell degrees where there is one of
/// either. Features are not copied.
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
        let others = &topologies[edge_type].columns().values;
        of_edges.append(arrays.into_dict(py, values, others, attributes, prepared.held())?)?;
    }
    dict.set_item("edges", of_edges)?;
    Ok(dict)
}

fn integers(words: Vec<u64>) -> Vec<i64> {
    words.into_iter().map(|word| word as i64).collect()
}

fn floats(words: Vec<u64>) -> Vec<f32> {
    words.into_iter().map(|word| f32::from_bits(word as u32)).collect()
}

pub(crate) fn widen(numbers: &[u32]) -> Vec<i64> {
    numbers.iter().map(|&number| number.into()).collect()
}
