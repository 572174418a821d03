//! A graph's edges as Python reads them back: batches of arrays.

use std::sync::Mutex;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tiergraph_analytics::edges::{Edges, edges_bytes, edges_from, names};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::{MemoryPlan, Reservation};

use crate::calls::Call;
use crate::graph::Graph;

/// An iterator over the edges of a graph, `(src, dst)` or `(src, dst, weights)` a batch, by the user's ids.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct EdgeBatches {
    graph: Py<Graph>,
    /// The vertices' ids; none where these are the graph's own numbers.
    names: Option<Vec<u64>>,
    /// Where the next batch begins; `None` after the last.
    next: Mutex<Option<u64>>,
    _held: Reservation,
}

impl EdgeBatches {
    pub(crate) fn new(py: Python<'_>, graph: Py<Graph>) -> PyResult<Self> {
        let (names, held) = {
            let opened = graph.get().lock(py)?;
            Call::new(None).run(py, || {
                let manifest = opened.manifest();
                let is_named = opened.order().is_reordered() || opened.ids().are_own();
                let ids = if is_named { manifest.vertices * 20 } else { 0 };
                let plan = MemoryPlan::default()
                    .and("the vertices' ids", ids)
                    .and("a batch of edges", edges_bytes(&opened));
                let held = opened.memory().reserve_all(&plan)?;
                Ok((names(&opened)?, held))
            })?
        };
        Ok(Self { graph, names, next: Mutex::new(Some(0)), _held: held })
    }

    fn ids(&self, vertices: Vec<u32>) -> Result<Vec<u64>> {
        let Some(names) = &self.names else {
            return Ok(vertices.into_iter().map(u64::from).collect());
        };
        let id = |v: u32| names.get(v as usize).copied();
        let ids: Option<Vec<u64>> = vertices.into_iter().map(id).collect();
        ids.ok_or_else(|| {
            Error::new(ErrorKind::Format, "read the edges of a graph")
                .expected("those of its vertices")
                .got("others: a file is damaged")
        })
    }
}

#[pymethods]
impl EdgeBatches {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The next batch; None after the last.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let opened = self.graph.get().lock(py)?;
        let batch = Call::new(None).run(py, || {
            let broken = |_| Error::new(ErrorKind::Input, "read edges").got("a panic before");
            let mut next = self.next.lock().map_err(broken)?;
            let Some(at) = *next else { return Ok(None) };
            let (Edges { src, dst, weights }, after) = edges_from(&opened, at)?;
            *next = after;
            Ok(Some((self.ids(src)?, self.ids(dst)?, weights)))
        })?;
        let Some((src, dst, weights)) = batch else { return Ok(None) };
        let mut arrays = vec![src.into_pyarray(py).into_any(), dst.into_pyarray(py).into_any()];
        if opened.manifest().weighted.bytes() > 0 {
            arrays.push(weights.into_pyarray(py).into_any());
        }
        PyTuple::new(py, arrays).map(Some)
    }
}
