//! Loaders on a GPU: the native part samples and gathers into memory that PyTorch allocated.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::Sampled;
use tiergraph_graph::Graph;
use tiergraph_sampler::gpu::{GpuLoader as Engine, GpuTiers, Outputs};

use crate::calls::Call;
use crate::errors::{detached, from_json, raise, to_json};
use crate::loader::{Options, SIGNAL_POLL};
use crate::of_process::OfProcess;

/// Makes mini-batches of one graph on a GPU, one after the other.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct GpuLoader {
    state: OfProcess<Mutex<State>>,
    seeds: Vec<u32>,
}

struct State {
    engine: Engine,
    /// What was sampled last.
    sampled: Option<Sampled>,
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
            let seeds = graph.find(seeds)?;
            let places: Option<Vec<u32>> = match graph.is_reordered() {
                true => {
                    let all: Vec<u32> = (0..graph.vertices() as u32).collect();
                    Some(graph.from_user_order(&all, 1)?)
                }
                false => None,
            };
            let tiers =
                GpuTiers { ordinal, device_memory, multiprocessors: options.multiprocessors };
            let presample = options.presample.unwrap_or(usize::MAX);
            let graph = Arc::new(graph);
            let engine = Engine::new(&graph, tiers, &loader, &seeds, places.as_deref(), presample)?;
            let state = OfProcess::new(Mutex::new(State { engine, sampled: None }));
            Ok(Self { state, seeds })
        })
    }

    /// Where neighbours and rows are, and how many multiprocessors prepare batches, as JSON.
    fn placed(&self, py: Python<'_>) -> PyResult<String> {
        to_json(py, self.locked(py)?.engine.placed())
    }

    /// The CUDA stream that batches are made on.
    fn stream(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.locked(py)?.engine.stream())
    }

    /// The seeds' places in the caller's list, in the order of epoch `number`.
    fn order<'py>(&self, py: Python<'py>, number: u64) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let order = detached(py, || Ok(self.lock()?.engine.order(number, &self.seeds)))?;
        Ok(order.into_pyarray(py))
    }

    /// Samples batch `number` of `epoch`, whose seeds are those at `places`; gives its nodes and
    /// edges by hop.
    fn sample(
        &self,
        py: Python<'_>,
        epoch: u64,
        number: usize,
        places: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<(Vec<usize>, Vec<usize>)> {
        let places = places.as_slice()?;
        let sample = || -> Result<Sampled> {
            let seeds: Vec<u32> = places.iter().map(|&i| self.seeds[i as usize]).collect();
            let mut state = self.lock()?;
            let sampled = state.engine.sample(epoch, number, &seeds)?;
            state.sampled = Some(sampled.clone());
            Ok(sampled)
        };
        let sampled = detached(py, sample)?;
        Ok((sampled.num_sampled_nodes, sampled.num_sampled_edges))
    }

    /// The most vertices that `select` takes at once.
    fn most_selected(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.locked(py)?.engine.most_selected())
    }

    /// Makes a batch of the vertices that the graph numbers from `start` to `stop`, without edges.
    fn select(&self, py: Python<'_>, start: u32, stop: u32) -> PyResult<()> {
        let select = || -> Result<()> {
            let vertices: Vec<u32> = (start..stop).collect();
            let mut state = self.lock()?;
            state.sampled = Some(state.engine.select(&vertices)?);
            Ok(())
        };
        detached(py, select)
    }

    /// Writes what was sampled last to device memory at these addresses, in order with the stream;
    /// gives a ticket to `finish` it with, where rows of `x` are read from storage.
    fn fill(
        &self,
        py: Python<'_>,
        nodes: u64,
        edge_index: u64,
        e_id: u64,
        x: u64,
    ) -> PyResult<Option<u64>> {
        let fill = || {
            let mut state = self.lock()?;
            let Some(sampled) = state.sampled.clone() else {
                return Err(Error::new(ErrorKind::Input, "give a batch")
                    .expected("one that was sampled before"));
            };
            state.engine.fill(&sampled, &Outputs { nodes, edge_index, e_id, x })
        };
        detached(py, fill)
    }

    /// Waits a while for the rows of a batch; whether it has all, in order with the stream.
    fn finish(&self, py: Python<'_>, ticket: u64) -> PyResult<bool> {
        let finish = || self.lock()?.engine.finish(ticket, SIGNAL_POLL);
        detached(py, finish)
    }

    /// Forgets a batch whose rows nobody wants any more.
    fn give_up(&self, py: Python<'_>, ticket: u64) -> PyResult<()> {
        self.locked(py)?.engine.give_up(ticket);
        Ok(())
    }

    /// What was read from storage, and given to the GPU, so far, as JSON.
    fn done(&self, py: Python<'_>) -> PyResult<String> {
        to_json(py, &self.locked(py)?.engine.done())
    }
}

impl GpuLoader {
    /// One call at a time; a call that panicked left counts behind that the next one writes anew.
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        Ok(self.state.here()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn locked(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        self.lock().map_err(|e| raise(py, &e))
    }
}
