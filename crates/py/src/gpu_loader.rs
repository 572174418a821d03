//! Loaders on a GPU: the native part samples and gathers into memory that PyTorch allocated.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;
use tiergraph_gpu::DevicePtr;
use tiergraph_graph::Graph;
use tiergraph_sampler::gpu::{
    Filled, GpuBatch, GpuEpoch as EngineEpoch, GpuEpochStats, GpuLoader as Engine, GpuTiers,
    Outputs,
};
use tiergraph_sampler::{Inputs, Rank};

use crate::batch::widen;
use crate::calls::Call;
use crate::errors::{detached, from_json, raise, spoilt, to_json};
use crate::loader::SIGNAL_POLL;
use crate::loader_options::Options;
use crate::of_process::OfProcess;

/// Makes mini-batches of one graph on a GPU, one after the other.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct GpuLoader {
    engine: OfProcess<Arc<Mutex<Engine>>>,
    seeds: Vec<u32>,
}

#[pymethods]
impl GpuLoader {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options_json: &str,
        seeds: PyReadonlyArray1<'_, u64>,
        ordinal: usize,
        device_memory: Option<u64>,
    ) -> PyResult<Self> {
        let seeds = seeds.as_slice()?;
        let call = Call::new(None);
        call.run(py, || {
            let options: Options = from_json(options_json)?;
            let loader = options.loader()?;
            let open = options.open()?;
            let mut graph = Graph::open(&path, &open)?;
            graph.set_cancel(call.cancel.clone());
            let seeds = graph.ids().find(seeds)?;
            let places: Option<Vec<u32>> = match graph.order().is_reordered() {
                true => {
                    let all: Vec<u32> = (0..graph.vertices() as u32).collect();
                    Some(graph.order().from_user(&all, 1)?)
                }
                false => None,
            };
            let Options { multiprocessors, prefetch, presample, .. } = options;
            let tiers = GpuTiers { ordinal, device_memory, multiprocessors, prefetch };
            let presample = presample.unwrap_or(usize::MAX);
            let graph = Arc::new(graph);
            let engine = Engine::new(&graph, tiers, &loader, &seeds, places.as_deref(), presample)?;
            Ok(Self { engine: OfProcess::new(Arc::new(Mutex::new(engine))), seeds })
        })
    }

    /// Where neighbours and rows are, and how many multiprocessors prepare batches, as JSON.
    fn placed(&self, py: Python<'_>) -> PyResult<String> {
        to_json(py, self.locked(py)?.placed())
    }

    /// The CUDA stream that batches are made on.
    fn stream(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.locked(py)?.stream())
    }

    /// Begins epoch `number` at batch `first` of rank `rank` of `ranks`. `allocate` is called with
    /// the numbers of nodes and edges of a batch, and its seeds' places; it gives an object with the
    /// `addresses` of the arrays, and a method `filled` that is called when work was given to the
    /// stream that fills them.
    fn epoch(
        &self,
        py: Python<'_>,
        number: u64,
        first: usize,
        rank: usize,
        ranks: usize,
        allocate: Py<PyAny>,
    ) -> PyResult<GpuEpoch> {
        let begun = detached(py, || {
            let rank = Rank::new(rank, ranks)?;
            let inputs = Inputs { seeds: &self.seeds, times: None, rank, bounds: None };
            EngineEpoch::start(self.engine.here()?, number, inputs, first)
        })?;
        Ok(GpuEpoch::new(begun, allocate))
    }

    /// Begins to hand over the features of all vertices, at most `most` at a time, in the order of
    /// the graph: batches without edges and seeds, in arrays from `allocate`.
    fn rows(&self, py: Python<'_>, most: usize, allocate: Py<PyAny>) -> PyResult<GpuEpoch> {
        let begun = detached(py, || Ok(EngineEpoch::of_all_rows(self.engine.here()?, most)))?;
        Ok(GpuEpoch::new(begun, allocate))
    }
}

impl GpuLoader {
    fn locked(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Engine>> {
        let engine = self.engine.here().map_err(|e| raise(py, &e))?;
        Ok(engine.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }
}

/// The batches of one epoch on a GPU.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct GpuEpoch(OfProcess<Mutex<State>>);

struct State {
    /// None once the epoch was closed.
    batches: Option<EngineEpoch<Py<PyAny>>>,
    allocate: Py<PyAny>,
    stats: GpuEpochStats,
}

#[pymethods]
impl GpuEpoch {
    /// The next batch; None after the last. Others are begun before it is waited for.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut state = self.lock(py)?;
        let State { batches, allocate, .. } = &mut *state;
        let Some(batches) = batches else { return Ok(None) };
        let since = Instant::now();
        while begin(py, batches, allocate)? {}
        let ready = loop {
            match detached(py, || batches.poll(SIGNAL_POLL))? {
                None if !batches.is_done() => py.check_signals()?,
                ready => break ready,
            }
        };
        batches.waited(since.elapsed());
        ready.map(|ready| to_dict(py, ready)).transpose()
    }

    /// What was done so far, as JSON.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let mut state = self.lock(py)?;
        if let Some(batches) = &state.batches {
            state.stats = batches.stats();
        }
        to_json(py, &state.stats)
    }

    /// Gives up the batches that were begun.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.lock(py)?;
        if let Some(batches) = state.batches.take() {
            state.stats = batches.stats();
            py.detach(|| drop(batches));
        }
        Ok(())
    }
}

impl GpuEpoch {
    fn new(batches: EngineEpoch<Py<PyAny>>, allocate: Py<PyAny>) -> Self {
        let state = State { batches: Some(batches), allocate, stats: GpuEpochStats::default() };
        Self(OfProcess::new(Mutex::new(state)))
    }

    /// Another Python thread may hold the lock and wait for a batch: so does this one, without
    /// the GIL.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        let state = self.0.here().map_err(|e| raise(py, &e))?;
        state.lock_py_attached(py).map_err(|_| spoilt(py, "the loader"))
    }
}

/// Begins another batch, if one may be begun.
fn begin(
    py: Python<'_>,
    batches: &mut EngineEpoch<Py<PyAny>>,
    allocate: &Py<PyAny>,
) -> PyResult<bool> {
    let sampled = detached(py, || {
        let batch = batches.sample()?;
        let sizes = |batch: &GpuBatch| (batch.sampled.nodes(), batch.sampled.edges());
        Ok(batch.map(|batch| (sizes(batch), widen(&batch.input_id))))
    })?;
    let Some(((nodes, edges), input_id)) = sampled else { return Ok(false) };
    let buffers = allocate.call1(py, (nodes, edges, input_id.into_pyarray(py)))?;
    let (n_id, edge_index, e_id, x) = buffers.getattr(py, "addresses")?.extract(py)?;
    let to = Outputs {
        nodes: DevicePtr::at(n_id),
        edge_index: DevicePtr::at(edge_index),
        e_id: DevicePtr::at(e_id),
        x: DevicePtr::at(x),
    };
    let owner = buffers.clone_ref(py);
    detached(py, || batches.fill(owner, &to))?;
    buffers.call_method0(py, "filled")?;
    Ok(true)
}

/// Hands a batch to Python, as `GpuBatch` in `_native.pyi`.
fn to_dict<'py>(py: Python<'py>, filled: Filled<Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
    let late_rows = filled.has_late_rows();
    let Filled { batch, buffers, .. } = filled;
    if late_rows {
        buffers.call_method0(py, "filled")?;
    }
    let dict = PyDict::new(py);
    dict.set_item("number", batch.number)?;
    dict.set_item("batch_size", batch.input_id.len())?;
    dict.set_item("buffers", buffers)?;
    dict.set_item("num_sampled_nodes", batch.sampled.num_sampled_nodes)?;
    dict.set_item("num_sampled_edges", batch.sampled.num_sampled_edges)?;
    Ok(dict)
}
