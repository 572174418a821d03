//! Loaders of mini-batches, and their epochs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;
use serde::Deserialize;
use tiergraph_cache::placement::Placement;
use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_graph::{Direction, Graph, OpenOptions};
use tiergraph_sampler::{
    Epoch as Prepared, EpochStats, Fanout, Fitted, Inputs, Loader as Engine, LoaderOptions, Plan,
    Rank, SampleOptions, Sharing, Strategy, Times,
};

use crate::batch::{HANDED_OVER, Names, to_dict};
use crate::build::options::cores;
use crate::calls::Call;
use crate::errors::{detached, from_json, raise, spoilt, to_json};
use crate::of_process::OfProcess;

/// How long a wait for a batch lasts before it looks for Ctrl-C.
pub(crate) const SIGNAL_POLL: Duration = Duration::from_millis(100);

/// The options of `tiergraph.NeighborLoader`; what is not given has its default.
#[derive(Deserialize)]
pub(crate) struct Options {
    pub(crate) memory: Option<u64>,
    pub(crate) io: Option<String>,
    num_neighbors: Vec<i64>,
    disjoint: bool,
    batch_size: usize,
    shuffle: bool,
    drop_last: bool,
    direction: Option<String>,
    seed: Option<u64>,
    threads: Option<usize>,
    window: Option<usize>,
    prefetch: Option<usize>,
    features: Option<String>,
    share_pages: Option<bool>,
    edge_features: Option<String>,
    weight_attr: Option<String>,
    time_attr: Option<String>,
    temporal_strategy: Option<String>,
    placement: Option<PlacementName>,
    /// Whether epochs may have other seeds than the first.
    #[serde(default)]
    seeds_vary: bool,
    pub(crate) presample: Option<usize>,
    pub(crate) multiprocessors: Option<u32>,
}

/// A placement by name, or the share of memory that features get.
#[derive(Deserialize)]
#[serde(untagged)]
enum PlacementName {
    Share(f64),
    Name(String),
}

impl Options {
    /// How a loader opens its graph.
    pub(crate) fn open(&self) -> Result<OpenOptions> {
        Ok(OpenOptions {
            memory: self.memory,
            engine: self.io.as_deref().unwrap_or("auto").parse()?,
            // Passes have workers; loaders have threads of their own.
            threads: Some(1),
            ..OpenOptions::default()
        })
    }

    pub(crate) fn loader(&self) -> Result<LoaderOptions> {
        let fanouts = self.num_neighbors.iter().map(|&k| fanout(k)).collect::<Result<_>>()?;
        let sample = SampleOptions {
            fanouts,
            disjoint: self.disjoint,
            weights: self.weight_attr.clone(),
            times: self.times()?,
        };
        let defaults = LoaderOptions::new(sample);
        let threads = self.threads.unwrap_or_else(cores);
        let window = self.window.unwrap_or(defaults.window);
        Ok(LoaderOptions {
            direction: match self.direction.as_deref() {
                Some("out") => Direction::Out,
                Some("in") | None => Direction::In,
                Some(other) => {
                    return Err(Error::new(ErrorKind::Input, "sample in direction")
                        .object(other)
                        .expected("`in` or `out`"));
                }
            },
            batch_size: self.batch_size,
            drop_last: self.drop_last,
            shuffle: self.shuffle,
            seed: self.seed.unwrap_or(defaults.seed),
            window,
            threads,
            // Every thread has a window of its own.
            prefetch: self.prefetch.unwrap_or(window.saturating_mul(threads)),
            features: self.features.clone(),
            sharing: match self.share_pages {
                Some(false) => Sharing::Nothing,
                Some(true) | None => Sharing::Pages,
            },
            edge_features: self.edge_features.clone(),
            seeds_vary: self.seeds_vary,
            handed_over: HANDED_OVER,
            ..defaults
        })
    }

    fn times(&self) -> Result<Option<Times>> {
        let Some(name) = self.time_attr.clone() else { return Ok(None) };
        let strategy = match self.temporal_strategy.as_deref() {
            Some("uniform") | None => Strategy::Uniform,
            Some("last") => Strategy::Last,
            Some(other) => {
                return Err(Error::new(ErrorKind::Input, "sample with the temporal strategy")
                    .object(other)
                    .expected("`uniform` or `last`"));
            }
        };
        Ok(Some(Times { name, strategy }))
    }

    pub(crate) fn plan(&self) -> Result<Plan> {
        let placement = match &self.placement {
            None => Placement::default(),
            Some(PlacementName::Share(share)) => Placement::Hybrid(*share),
            Some(PlacementName::Name(name)) => match name.as_str() {
                "unified" => Placement::Unified,
                "topology" => Placement::TopologyFirst,
                "features" => Placement::FeaturesFirst,
                other => {
                    return Err(Error::new(ErrorKind::Input, "use the placement")
                        .object(other)
                        .expected("`unified`, `topology`, `features` or a share for features"));
                }
            },
        };
        Ok(Plan { placement, ..Plan::default() })
    }
}

pub(crate) fn fanout(count: i64) -> Result<Fanout> {
    match (count, u32::try_from(count)) {
        (-1, _) => Ok(Fanout::All),
        (_, Ok(count)) => Ok(Fanout::Most(count)),
        _ => Err(Error::new(ErrorKind::Input, "sample with the fanout")
            .object(count)
            .expected("a count of neighbours, or -1 for all")),
    }
}

/// Makes mini-batches of one graph, which it opens for itself.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct Loader(OfProcess<Opened>);

struct Opened {
    engine: Engine,
    graph: Arc<Graph>,
    fitted: Fitted,
    seeds: Vec<u32>,
    times: Option<Vec<i64>>,
    names: Arc<Names>,
}

/// A graph that is open for a loader, its names for vertices, and the seeds as it numbers them.
struct Seeded {
    graph: Arc<Graph>,
    seeds: Vec<u32>,
    names: Arc<Names>,
}

impl Seeded {
    fn open(path: &Path, open: &OpenOptions, cancel: &Cancel, seeds: &[u64]) -> Result<Self> {
        let mut graph = Graph::open(path, open)?;
        graph.set_cancel(cancel.clone());
        let seeds = graph.find(seeds)?;
        let names = Arc::new(Names::of(&graph)?);
        Ok(Self { graph: Arc::new(graph), seeds, names })
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
            let (loader, plan) = (options.loader()?, options.plan()?);
            let presample = options.presample.unwrap_or(usize::MAX);
            let rank = Rank::default();
            let fit = || {
                let named = Seeded::open(&path, &options.open()?, &call.cancel, seeds)?;
                let inputs = Inputs { seeds: &named.seeds, times: times.as_deref(), rank };
                let (engine, fitted) =
                    Engine::fitted(&named.graph, &loader, inputs, &plan, presample)?;
                Ok((engine, fitted, named))
            };
            let (engine, fitted, named) = fit().map_err(|error: Error| {
                if error.kind() != ErrorKind::Budget {
                    return error;
                }
                // What all parts need is found in the memory that the machine has.
                let enough = || {
                    let open = OpenOptions { memory: None, ..options.open()? };
                    let named = Seeded::open(&path, &open, &call.cancel, seeds)?;
                    let inputs = Inputs { seeds: &named.seeds, times: times.as_deref(), rank };
                    Engine::enough_bytes(&named.graph, &loader, inputs, presample)
                };
                match enough() {
                    Ok(enough) => error.enough(enough),
                    Err(other) if other.kind() == ErrorKind::Interrupted => other,
                    Err(_) => error,
                }
            })?;
            let Seeded { graph, seeds, names } = named;
            Ok(Self(OfProcess::new(Opened { engine, graph, fitted, seeds, times, names })))
        })
    }

    /// What is kept in memory, as JSON.
    fn kept(&self, py: Python<'_>) -> PyResult<String> {
        to_json(py, &self.here(py)?.fitted)
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
        let opened = self.here(py)?;
        let begun = detached(py, || {
            let rank = Rank::new(rank, ranks)?;
            let inputs = Inputs { seeds: &opened.seeds, times: opened.times.as_deref(), rank };
            opened.engine.epoch(number, inputs, first)
        })?;
        Ok(opened.started(begun))
    }

    /// Begins epoch `number` at batch `first` of rank `rank` of `ranks`, with these seeds (the user's
    /// ids): the rank's batch i has those from `bounds[i]` to `bounds[i + 1]`.
    #[expect(clippy::too_many_arguments, reason = "the contract of `_native.pyi`")]
    fn epoch_of(
        &self,
        py: Python<'_>,
        number: u64,
        seeds: PyReadonlyArray1<'_, u64>,
        bounds: Vec<usize>,
        first: usize,
        rank: usize,
        ranks: usize,
    ) -> PyResult<Epoch> {
        let opened = self.here(py)?;
        let seeds = seeds.as_slice()?;
        let begun = detached(py, || {
            let seeds = opened.graph.find(seeds)?;
            opened.engine.epoch_of(number, &seeds, bounds, Rank::new(rank, ranks)?, first)
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
        let (engine, names) = (self.engine.clone(), Arc::clone(&self.names));
        Epoch::new(Box::new(Named { batches, engine, names }))
    }
}

/// A batch's way to Python.
pub(crate) type Ready = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyDict>> + Send>;

/// The batches of an epoch, of whatever kind.
pub(crate) trait Batches: Send {
    /// The next batch, waiting no longer than `limit`; `Ok(None)` if it is not ready by then.
    fn poll(&mut self, limit: Duration) -> Result<Option<Ready>>;

    /// Whether there is none left.
    fn is_done(&self) -> bool;

    /// What was done so far.
    fn stats(&self) -> EpochStats;
}

/// Batches in the user's names for vertices.
struct Named {
    batches: Prepared,
    engine: Engine,
    names: Arc<Names>,
}

impl Batches for Named {
    fn poll(&mut self, limit: Duration) -> Result<Option<Ready>> {
        let Some(prepared) = self.batches.poll(limit)? else { return Ok(None) };
        let (engine, names) = (self.engine.clone(), Arc::clone(&self.names));
        Ok(Some(Box::new(move |py| {
            Ok(to_dict(py, prepared, &names, engine.topology().offsets())?.unbind())
        })))
    }

    fn is_done(&self) -> bool {
        self.batches.is_done()
    }

    fn stats(&self) -> EpochStats {
        self.batches.stats()
    }
}

/// The batches of one epoch.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct Epoch(OfProcess<Mutex<State>>);

struct State {
    /// None once the epoch was closed.
    batches: Option<Box<dyn Batches>>,
    stats: EpochStats,
}

#[pymethods]
impl Epoch {
    /// The next batch as arrays by name; None after the last.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        let mut locked = self.lock(py)?;
        let Some(batches) = &mut locked.batches else { return Ok(None) };
        loop {
            match detached(py, || batches.poll(SIGNAL_POLL))? {
                Some(ready) => return ready(py).map(Some),
                None if batches.is_done() => return Ok(None),
                None => py.check_signals()?,
            }
        }
    }

    /// What was done so far, as JSON.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let mut state = self.lock(py)?;
        if let Some(batches) = &state.batches {
            state.stats = batches.stats();
        }
        to_json(py, &state.stats)
    }

    /// Stops what prepares further batches and waits for it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.lock(py)?;
        if let Some(batches) = state.batches.take() {
            state.stats = batches.stats();
            py.detach(|| drop(batches));
        }
        Ok(())
    }
}

impl Epoch {
    pub(crate) fn new(batches: Box<dyn Batches>) -> Self {
        let state = State { batches: Some(batches), stats: EpochStats::default() };
        Self(OfProcess::new(Mutex::new(state)))
    }

    /// Another Python thread may hold the lock and wait for a batch: so does this one, without
    /// the GIL.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        let state = self.0.here().map_err(|e| raise(py, &e))?;
        state.lock_py_attached(py).map_err(|_| spoilt(py, "the loader"))
    }
}
