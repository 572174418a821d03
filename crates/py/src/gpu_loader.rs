//! Loaders on a GPU: the engine samples and gathers into memory that PyTorch allocated. Batches that
//! kernels cannot sample are sampled on the CPU, and still gathered on the GPU.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;
use tiergraph_gpu::DevicePtr;
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;
use tiergraph_sampler::gpu::{
    BatchSize, Filled, GpuEpoch as EngineEpoch, GpuEpochStats, GpuLoader as Engine, GpuTiers,
    Outputs,
};
use tiergraph_sampler::{Inputs, Loader, Rank};

use crate::batch::{Names, to_dict as by_cpu_to_dict};
use crate::calls::Call;
use crate::errors::{detached, from_json, raise, spoilt, to_json};
use crate::loader::SIGNAL_POLL;
use crate::loader_options::{HELD, Options};
use crate::of_process::OfProcess;

/// A loader that makes mini-batches of one graph on a GPU, one after the other.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct GpuLoader {
    engine: OfProcess<Arc<Mutex<Engine>>>,
    graph: Arc<Graph>,
    seeds: Vec<u32>,
    times: Option<Vec<i64>>,
    cpu: Option<CpuPart>,
    /// The memory of seeds, times and what the caller holds beside them.
    _held: Reservation,
}

/// The loader that samples batches on the CPU, and the ids that their arrays are made with.
#[derive(Clone)]
struct CpuPart {
    loader: Loader,
    /// The ids of the graph's vertices.
    names: Arc<[Names]>,
}

#[pymethods]
impl GpuLoader {
    #[new]
    #[pyo3(signature = (path, options_json, seeds, times, ordinal, device_memory, sampled_on_cpu))]
    #[expect(clippy::too_many_arguments, reason = "the contract of `_native.pyi`")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options_json: &str,
        seeds: PyReadonlyArray1<'_, u64>,
        times: Option<PyReadonlyArray1<'_, i64>>,
        ordinal: usize,
        device_memory: Option<u64>,
        sampled_on_cpu: bool,
    ) -> PyResult<Self> {
        let seeds = seeds.as_slice()?;
        let times = times.map(|times| times.as_slice().map(<[i64]>::to_vec)).transpose()?;
        let call = Call::new(None);
        call.run(py, || {
            let options: Options = from_json(options_json)?;
            let loader = options.loader(false)?;
            let open = options.open()?;
            let mut graph = Graph::open(&path, &open)?;
            graph.set_cancel(call.cancel.clone());
            let held = options.held_bytes(seeds.len(), times.is_some());
            let _held = graph.memory().reserve(held, HELD)?;
            let seeds = graph.ids().find(seeds)?;
            let places: Option<Vec<u32>> = match graph.order().is_reordered() {
                true => {
                    let all: Vec<u32> = (0..graph.vertices() as u32).collect();
                    Some(graph.order().from_user(&all, 1)?)
                }
                false => None,
            };
            let how = options.plan()?;
            let Options { multiprocessors, prefetch, presample, .. } = options;
            let tiers = GpuTiers { ordinal, device_memory, multiprocessors, prefetch };
            let presample = presample.unwrap_or(usize::MAX);
            let (graph, places) = (Arc::new(graph), places.as_deref());
            if !sampled_on_cpu {
                let engine = Engine::new(&graph, tiers, &loader, &seeds, places, &how, presample)?;
                let engine = OfProcess::new(Arc::new(Mutex::new(engine)));
                return Ok(Self { engine, graph, seeds, times, cpu: None, _held });
            }
            let names = Arc::from([Names::of(&graph)?]);
            let (times_of, rank) = (times.as_deref(), Rank::default());
            let inputs = Inputs { seeds: &seeds, times: times_of, rank, bounds: None };
            let engine = Engine::of_cpus(&graph, tiers, &loader, inputs, places, &how, presample)?;
            let cpu = engine.sampled_by().cloned().map(|loader| CpuPart { loader, names });
            Ok(Self {
                engine: OfProcess::new(Arc::new(Mutex::new(engine))),
                graph,
                seeds,
                times,
                cpu,
                _held,
            })
        })
    }

    /// Where neighbours and rows are kept, and the number of multiprocessors that make batches, as JSON.
    fn placed(&self, py: Python<'_>) -> PyResult<String> {
        to_json(py, self.locked(py)?.placed())
    }

    /// The memory plan of the CPU's sampling, as JSON: null where the GPU samples.
    fn kept_to_sample(&self, py: Python<'_>) -> PyResult<String> {
        to_json(py, &self.locked(py)?.kept_to_sample())
    }

    /// The handle of the CUDA stream that the arrays of batches are allocated on.
    fn allocating(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.locked(py)?.allocating())
    }

    /// The handle of the CUDA stream that has waited for each batch when it is handed over.
    fn handing(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.locked(py)?.handing())
    }

    /// Begins epoch `number` at batch `first` of rank `rank` of `ranks`. `allocate` is called with the
    /// numbers of nodes and edges that arrays should have room for; it returns an object with their `addresses`. Other `seeds` and `bounds` are as for `Loader.epoch`.
    #[expect(clippy::too_many_arguments, reason = "the contract of `_native.pyi`")]
    #[pyo3(signature = (number, first, rank, ranks, allocate, seeds=None, bounds=None))]
    fn epoch(
        &self,
        py: Python<'_>,
        number: u64,
        first: usize,
        rank: usize,
        ranks: usize,
        allocate: Py<PyAny>,
        seeds: Option<PyReadonlyArray1<'_, u64>>,
        bounds: Option<Vec<usize>>,
    ) -> PyResult<GpuEpoch> {
        let others = seeds.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let begun = detached(py, || {
            let others = others.map(|ids| self.graph.ids().find(ids)).transpose()?;
            let (rank, times) = (Rank::new(rank, ranks)?, self.times.as_deref());
            let inputs = Inputs { seeds: &self.seeds, times, rank, bounds: None };
            let inputs = inputs.or(others.as_deref(), bounds.as_deref());
            EngineEpoch::start(self.engine.here()?, number, inputs, first)
        })?;
        Ok(GpuEpoch::new(begun, allocate, self.cpu.clone()))
    }

    /// Begins to copy the features of all vertices to the device, at most `most` rows at a time, in the
    /// graph's order: as batches without edges and seeds, in arrays from `allocate`.
    fn rows(&self, py: Python<'_>, most: usize, allocate: Py<PyAny>) -> PyResult<GpuEpoch> {
        let begun = detached(py, || EngineEpoch::of_all_rows(self.engine.here()?, most))?;
        Ok(GpuEpoch::new(begun, allocate, None))
    }
}

impl GpuLoader {
    fn locked(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Engine>> {
        let engine = self.engine.here().map_err(|e| raise(py, &e))?;
        Ok(engine.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }
}

/// An epoch of batches made on a GPU.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct GpuEpoch(OfProcess<Mutex<State>>);

struct State {
    /// `None` once the epoch was closed.
    batches: Option<EngineEpoch<Py<PyAny>>>,
    allocate: Py<PyAny>,
    cpu: Option<CpuPart>,
    stats: GpuEpochStats,
}

#[pymethods]
impl GpuEpoch {
    /// The next batch; None after the last. Others are begun before it is waited for.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut state = self.lock(py)?;
        let State { batches, allocate, cpu, .. } = &mut *state;
        let Some(batches) = batches else { return Ok(None) };
        let since = Instant::now();
        let ready = loop {
            while begin(py, batches, allocate)? {}
            match detached(py, || batches.poll(SIGNAL_POLL))? {
                None if !batches.is_done() => py.check_signals()?,
                ready => break ready,
            }
        };
        batches.waited(since.elapsed());
        ready.map(|ready| to_dict(py, ready, cpu.as_ref())).transpose()
    }

    /// Counts and times of the epoch so far, as JSON.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let mut state = self.lock(py)?;
        if let Some(batches) = &state.batches {
            state.stats = batches.stats();
        }
        to_json(py, &state.stats)
    }

    /// Ends the epoch and drops the batches that were begun.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.lock(py)?;
        if let Some(mut batches) = state.batches.take() {
            state.stats = py.detach(|| {
                batches.end();
                batches.stats()
            });
        }
        Ok(())
    }
}

impl GpuEpoch {
    fn new(batches: EngineEpoch<Py<PyAny>>, allocate: Py<PyAny>, cpu: Option<CpuPart>) -> Self {
        let stats = GpuEpochStats::default();
        let state = State { batches: Some(batches), allocate, cpu, stats };
        Self(OfProcess::new(Mutex::new(state)))
    }

    /// Locks the epoch, without the GIL: another Python thread may hold the lock and wait for a batch.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        let state = self.0.here().map_err(|e| raise(py, &e))?;
        state.lock_py_attached(py).map_err(|_| spoilt(py, "the loader"))
    }
}

/// Begins another batch and returns true, if there is one and a place for it.
fn begin(
    py: Python<'_>,
    batches: &mut EngineEpoch<Py<PyAny>>,
    allocate: &Py<PyAny>,
) -> PyResult<bool> {
    let Some(room) = detached(py, || batches.wanted())? else { return Ok(false) };
    let BatchSize { nodes, edges } = room;
    let buffers = allocate.call1(py, (nodes, edges))?;
    let addresses = buffers.getattr(py, "addresses")?;
    let (n_id, degree, edge_index, e_id, x, input_id): (_, Option<u64>, _, _, _, _) =
        addresses.extract(py)?;
    let to = Outputs {
        nodes: DevicePtr::at(n_id),
        degree: degree.map(DevicePtr::at),
        edge_index: DevicePtr::at(edge_index),
        e_id: DevicePtr::at(e_id),
        x: DevicePtr::at(x),
        input_id: DevicePtr::at(input_id),
        room,
    };
    batches.give(buffers, &to);
    Ok(true)
}

/// Converts a batch to `GpuBatch` of `_native.pyi`.
fn to_dict<'py>(
    py: Python<'py>,
    filled: Filled<Py<PyAny>>,
    cpu: Option<&CpuPart>,
) -> PyResult<Bound<'py, PyDict>> {
    let Filled { batch, buffers, .. } = filled;
    let dict = PyDict::new(py);
    dict.set_item("number", batch.number)?;
    dict.set_item("batch_size", batch.seeds)?;
    dict.set_item("buffers", buffers)?;
    dict.set_item("num_sampled_nodes", batch.sampled.num_sampled_nodes)?;
    dict.set_item("num_sampled_edges", batch.sampled.num_sampled_edges)?;
    let by_cpu = batch
        .by_cpu
        .zip(cpu)
        .map(|(batch, cpu)| by_cpu_to_dict(py, batch, &cpu.names, cpu.loader.topologies()));
    dict.set_item("by_cpu", by_cpu.transpose()?)?;
    Ok(dict)
}
