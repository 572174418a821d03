//! Mini-batches as NumPy arrays, in PyG's names and types and the user's ids.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;
use tiergraph_sampler::residency::offsets::Offsets;
use tiergraph_sampler::{HandedOver, MiniBatch, Prepared};

use crate::errors::detached;
use crate::rows::{to_array, to_index};

/// Bytes of the arrays of a batch: of a node its position, id and degree; of an edge its ends. Edges'
/// numbers are handed over as they are.
pub(crate) const HANDED_OVER: HandedOver = HandedOver { node_bytes: 3 * 8, edge_bytes: 2 * 8 };

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
        let bytes = 4 * u64::from(graph.is_reordered()) + 8 * u64::from(mapped);
        let held = graph.reserve(bytes * vertices as u64, "the vertices' ids")?;
        let positions = match graph.is_reordered() {
            true => Some(graph.from_user_order(&(0..vertices as u32).collect::<Vec<_>>(), 1)?),
            false => None,
        };
        Ok(Self { positions, ids: graph.user_ids()?, _held: held })
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

/// A batch's arrays, as `Batch` in `_native.pyi` has them.
struct Arrays {
    positions: Vec<i64>,
    n_id: Option<Vec<i64>>,
    degree: Vec<i64>,
    /// Sources, then destinations.
    edge_index: Vec<i64>,
    e_id: Vec<i64>,
    tree: Vec<i64>,
    input_id: Vec<i64>,
}

impl Arrays {
    fn of(
        batch: &MiniBatch,
        numbers: Vec<u64>,
        input_id: &[u32],
        names: &Names,
        offsets: &Offsets,
    ) -> Self {
        let degree = |&vertex: &u32| {
            let arcs = offsets.arcs(vertex);
            (arcs.end - arcs.start) as i64
        };
        let positions = names.positions(&batch.n_id);
        let mut edge_index = Vec::with_capacity(2 * batch.row.len());
        edge_index.extend(batch.row.iter().map(|&node| i64::from(node)));
        edge_index.extend(batch.col.iter().map(|&node| i64::from(node)));
        Self {
            n_id: names.ids(&positions),
            positions,
            degree: batch.n_id.iter().map(degree).collect(),
            edge_index,
            // Reuses the memory.
            e_id: numbers.into_iter().map(|edge| edge as i64).collect(),
            tree: widen(&batch.tree),
            input_id: widen(input_id),
        }
    }
}

/// Hands a batch to Python. The features stay where they were gathered.
pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    mut prepared: Prepared,
    names: &Names,
    offsets: &Offsets,
) -> PyResult<Bound<'py, PyDict>> {
    let mut batch = std::mem::take(&mut prepared.batch);
    let dict = PyDict::new(py);
    dict.set_item("number", batch.number)?;
    dict.set_item("batch_size", batch.batch_size())?;
    dict.set_item("num_sampled_nodes", &batch.num_sampled_nodes)?;
    dict.set_item("num_sampled_edges", &batch.num_sampled_edges)?;
    let arcs = std::mem::take(&mut batch.e_id);
    let numbers = prepared.edges.numbers.take().unwrap_or(arcs);
    let arrays = || Ok(Arrays::of(&batch, numbers, &prepared.input_id, names, offsets));
    let arrays = detached(py, arrays)?;
    let edges = arrays.e_id.len();
    let positions = arrays.positions.into_pyarray(py);
    let n_id = match arrays.n_id {
        Some(ids) => ids.into_pyarray(py),
        None => positions.clone(),
    };
    let edge_index = to_index(py, arrays.edge_index, edges, prepared.held())?;
    dict.set_item("edge_index", edge_index)?;
    dict.set_item("n_id", n_id)?;
    dict.set_item("position", positions)?;
    dict.set_item("degree", arrays.degree.into_pyarray(py))?;
    dict.set_item("e_id", arrays.e_id.into_pyarray(py))?;
    dict.set_item("batch", arrays.tree.into_pyarray(py))?;
    dict.set_item("input_id", arrays.input_id.into_pyarray(py))?;
    dict.set_item("seed_time", batch.seed_time.into_pyarray(py))?;
    dict.set_item("weight", prepared.edges.weights.take().map(|all| all.into_pyarray(py)))?;
    dict.set_item("time", prepared.edges.times.take().map(|all| all.into_pyarray(py)))?;
    dict.set_item("edge_attr", to_array(py, prepared.take_edge_features())?)?;
    dict.set_item("x", to_array(py, prepared.take_x())?)?;
    Ok(dict)
}

pub(crate) fn widen(numbers: &[u32]) -> Vec<i64> {
    numbers.iter().map(|&number| number.into()).collect()
}
