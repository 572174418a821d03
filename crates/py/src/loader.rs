//! Loaders of mini-batches, and their epochs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;
use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::hetero::{HeteroManifest, NodeType};
use tiergraph_graph::{Graph, HeteroGraph, OpenOptions};
use tiergraph_mem::Reservation;
use tiergraph_sampler::{
    Epoch as Prepared, EpochStats, GraphTypes, Inputs, Loader as Engine, LoaderOptions, MemoryPlan,
    Rank,
};

use crate::batch::{Names, to_dict};
use crate::calls::Call;
use crate::errors::{detached, from_json, raise, spoilt, to_json};
use crate::loader_options::{HELD, Options};
use crate::of_process::OfProcess;

/// The time that a wait for a batch lasts before it looks for Ctrl-C.
pub(crate) const SIGNAL_POLL: Duration = Duration::from_millis(100);

/// A loader of mini-batches of one graph, heterogeneous or not, which it opens for itself.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct Loader(OfProcess<Opened>);

struct Opened {
    engine: Engine,
    plan: MemoryPlan,
    graph: Seeded,
    times: Option<Vec<i64>>,
}

/// A graph that is open for a loader, with the loader's seeds by internal number.
struct Seeded {
    names_of_seeds: SeedNames,
    types: GraphTypes,
    options: LoaderOptions,
    seeds: Vec<u32>,
    /// The user's ids of vertices, for each node type.
    names: Arc<[Names]>,
    /// The memory of seeds, times and what the caller holds beside them.
    _held: Reservation,
}

impl Seeded {
    fn open(
        path: &Path,
        open: &OpenOptions,
        cancel: &Cancel,
        options: &Options,
        seeds: &[u64],
        timed: bool,
    ) -> Result<Self> {
        let reserve =
            |graph: &Graph| graph.memory().reserve(options.held_bytes(seeds.len(), timed), HELD);
        if HeteroManifest::is_at(path) {
            let graph = HeteroGraph::open(path, open, cancel)?;
            let _held = reserve(&graph.nodes()[0])?;
            let options = options.loader(true)?;
            let names_of_seeds = SeedNames::of_types(graph.manifest(), &options.inputs);
            let seeds = names_of_seeds.find(seeds)?;
            let names = graph.nodes().iter().map(|graph| Names::of(graph));
            let names = names.collect::<Result<_>>()?;
            let types = (&graph).into();
            return Ok(Self { names_of_seeds, types, options, seeds, names, _held });
        }
        let mut graph = Graph::open(path, open)?;
        graph.set_cancel(cancel.clone());
        let _held = reserve(&graph)?;
        let (options, seeds) = (options.loader(false)?, graph.ids().find(seeds)?);
        let names = Arc::from([Names::of(&graph)?]);
        let graph = Arc::new(graph);
        let types = (&graph).into();
        Ok(Self { types, names_of_seeds: SeedNames::Graph(graph), options, seeds, names, _held })
    }

    fn inputs<'a>(&'a self, times: Option<&'a [i64]>, rank: Rank) -> Inputs<'a> {
        Inputs { seeds: &self.seeds, times, rank, bounds: None }
    }
}

/// The names by which the user passes seeds.
enum SeedNames {
    /// User ids of a graph's vertices.
    Graph(Arc<Graph>),
    /// Numbers of nodes of some types, counted through the types.
    Types { nodes: u64, names: String },
}

impl SeedNames {
    fn of_types(types: &HeteroManifest, inputs: &[usize]) -> Self {
        let types = inputs.iter().map(|&input| &types.node_types[input]);
        let names: Vec<&str> = types.clone().map(|NodeType { name, .. }| name.as_str()).collect();
        Self::Types { nodes: types.map(|of| of.vertices).sum(), names: names.join("` or `") }
    }

    /// The numbers that loaders use for the seeds `ids`; an error for one that there is not.
    fn find(&self, ids: &[u64]) -> Result<Vec<u32>> {
        let (nodes, names) = match self {
            Self::Graph(graph) => return graph.ids().find(ids),
            Self::Types { nodes, names } => (nodes, names),
        };
        let node = |&id: &u64| {
            u32::try_from(id).ok().filter(|_| id < *nodes).ok_or_else(|| {
                Error::new(ErrorKind::Input, "sample from seed")
                    .object(id)
                    .expected(format!("one of {nodes} nodes of type `{names}`"))
            })
        };
        ids.iter().map(node).collect()
    }
}

#[pymethods]
impl Loader {
    #[new]
    #[pyo3(signature = (path, options_json, seeds, times=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options_json: &str,
        seeds: PyReadonlyArray1<'_, u64>,
        times: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<Self> {
        let seeds = seeds.as_slice()?;
        let times = times.map(|times| times.as_slice().map(<[i64]>::to_vec)).transpose()?;
        let call = Call::new(None);
        call.run(py, || {
            let options: Options = from_json(options_json)?;
            let how = options.plan()?;
            options.open()?.engine.check_for_host()?;
            let presample = options.presample.unwrap_or(usize::MAX);
            let open = |memory| {
                let open = OpenOptions { memory, ..options.open()? };
                Seeded::open(&path, &open, &call.cancel, &options, seeds, times.is_some())
            };
            let plan = || {
                let graph = open(options.memory)?;
                let inputs = graph.inputs(times.as_deref(), Rank::default());
                let (engine, plan) =
                    Engine::planned(graph.types.clone(), &graph.options, inputs, &how, presample)?;
                Ok((engine, plan, graph))
            };
            let (engine, plan, graph) = plan().map_err(|error: Error| {
                if error.kind() != ErrorKind::Budget {
                    return error;
                }
                // What all parts need is found in the memory that the machine has.
                let enough = || {
                    let graph = open(None)?;
                    let inputs = graph.inputs(times.as_deref(), Rank::default());
                    let (types, options) = (graph.types.clone(), &graph.options);
                    Engine::enough_bytes(types, options, inputs, presample)
                };
                match enough() {
                    Ok(enough) => error.enough(enough),
                    Err(other) if other.kind() == ErrorKind::Interrupted => other,
                    Err(_) => error,
                }
            })?;
            Ok(Self(OfProcess::new(Opened { engine, plan, graph, times })))
        })
    }

    /// The memory plan: what is kept in memory, as JSON.
    fn kept(&self, py: Python<'_>) -> PyResult<String> {
        to_json(py, &self.here(py)?.plan)
    }

    /// Begins epoch `number` at batch `first` of rank `rank` of `ranks`. With `seeds` (user ids) in
    /// place of the loader's, the rank's batch i has those from `bounds[i]` to `bounds[i + 1]`.
    #[expect(clippy::too_many_arguments, reason = "the contract of `_native.pyi`")]
    #[pyo3(signature = (number, first, rank, ranks, seeds=None, bounds=None))]
    fn epoch(
        &self,
        py: Python<'_>,
        number: u64,
        first: usize,
        rank: usize,
        ranks: usize,
        seeds: Option<PyReadonlyArray1<'_, u64>>,
        bounds: Option<Vec<usize>>,
    ) -> PyResult<Epoch> {
        let opened = self.here(py)?;
        let others = seeds.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let begun = detached(py, || {
            let others = others.map(|ids| opened.graph.names_of_seeds.find(ids)).transpose()?;
            let inputs = opened.graph.inputs(opened.times.as_deref(), Rank::new(rank, ranks)?);
            opened.engine.epoch(number, inputs.or(others.as_deref(), bounds.as_deref()), first)
        })?;
        Ok(opened.started(begun))
    }
}

impl Loader {
    fn here(&self, py: Python<'_>) -> PyResult<&Opened> {
        self.0.here().map_err(|e| raise(py, &e))
    }
}

impl Opened {
    fn started(&self, batches: Prepared) -> Epoch {
        let (engine, names) = (self.engine.clone(), Arc::clone(&self.graph.names));
        let batches = Some(Named { batches, engine, names });
        Epoch(OfProcess::new(Mutex::new(State { batches, stats: EpochStats::default() })))
    }
}

/// An epoch's batches, with the ids that their arrays are made with.
struct Named {
    batches: Prepared,
    engine: Engine,
    names: Arc<[Names]>,
}

/// An epoch of mini-batches.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct Epoch(OfProcess<Mutex<State>>);

struct State {
    /// `None` once the epoch was closed.
    batches: Option<Named>,
    stats: EpochStats,
}

#[pymethods]
impl Epoch {
    /// The next batch as a dictionary of arrays; None after the last.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        let mut locked = self.lock(py)?;
        let Some(Named { batches, engine, names }) = &mut locked.batches else { return Ok(None) };
        loop {
            match detached(py, || batches.poll(SIGNAL_POLL))? {
                Some(batch) => {
                    let dict = to_dict(py, batch, names, engine.topologies())?;
                    return Ok(Some(dict.unbind()));
                }
                None if batches.is_done() => return Ok(None),
                None => py.check_signals()?,
            }
        }
    }

    /// Counts and times of the epoch so far, as JSON.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let mut state = self.lock(py)?;
        if let Some(batches) = &state.batches {
            state.stats = batches.batches.stats();
        }
        to_json(py, &state.stats)
    }

    /// Ends the epoch: stops the threads that prepare batches, and waits for them.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.lock(py)?;
        if let Some(batches) = state.batches.take() {
            state.stats = batches.batches.stats();
            py.detach(|| drop(batches));
        }
        Ok(())
    }
}

impl Epoch {
    /// Locks the epoch, without the GIL: another Python thread may hold the lock and wait for a batch.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        let state = self.0.here().map_err(|e| raise(py, &e))?;
        state.lock_py_attached(py).map_err(|_| spoilt(py, "the loader"))
    }
}
