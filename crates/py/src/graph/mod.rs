//! An opened graph, and its algorithms, as Python sees them.

pub(crate) mod checkpoints;
pub(crate) mod edges;

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArrayDyn,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tiergraph_analytics::edges as of_graph;
use tiergraph_analytics::gpu::{self, Gpu};
use tiergraph_analytics::registry::{self, Column, Outcome};
use tiergraph_analytics::{
    ComponentSizes, LoopCheckpoints as Checkpoints, PageRank, Propagate, Reduce, RunReport,
    UNREACHED, Value, Walks, Weighed, bfs, pagerank, pagerank_memory, propagate, propagate_bytes,
    sssp, walks, wcc,
};
use tiergraph_core::trace::Trace;
use tiergraph_core::{Error, ErrorKind, Progress, Result};
use tiergraph_gpu::{DevicePtr, DeviceView};
use tiergraph_graph::{Checkpointing, Direction, Every, Graph as Opened, Names, OpenOptions};
use tiergraph_io::EngineChoice;

use crate::calls::{Call, Locked};
use crate::device::DeviceOptions;
use crate::errors::{raise, spoilt, to_json};
use crate::info::describe;
use crate::of_process::OfProcess;
use crate::reads::{ceiling, modelled_drive};
use checkpoints::LoopCheckpoints;
use edges::EdgeBatches;

/// The time between looks at whether another thread's call has ended.
const BUSY_POLL: Duration = Duration::from_millis(2);

/// An opened graph under a memory budget. It runs one algorithm at a time.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct Graph {
    opened: OfProcess<Mutex<Opened>>,
    /// The GPU that algorithms run on; `None` for the CPU.
    gpu: OfProcess<Option<Gpu>>,
}

/// Texts one after the other, and where each begins and the last ends.
type Texts<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>);

/// Sums and numbers of neighbours of pairs.
type Common<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<u32>>);

/// A run's report, with the sizes of components if they were asked for.
#[derive(Serialize)]
struct WithSizes {
    #[serde(flatten)]
    report: RunReport,
    #[serde(flatten)]
    sizes: Option<ComponentSizes>,
}

/// A run's report, with what was found of the whole graph.
#[derive(Serialize)]
struct WithFound {
    #[serde(flatten)]
    report: RunReport,
    #[serde(flatten)]
    found: Map<String, Json>,
}

/// Opens the graph in the directory `path`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the contract of `_native.pyi`")]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    memory: Option<u64>,
    io: &str,
    threads: Option<usize>,
    modelled: Option<f64>,
    device: DeviceOptions,
    keep_freed: bool,
) -> PyResult<Graph> {
    Call::new(None).run(py, || {
        let engine: EngineChoice = io.parse()?;
        let gpu = device.open()?;
        if gpu.is_none() {
            engine.check_for_host()?;
        }
        let factory =
            modelled.map(|bandwidth| modelled_drive(engine.clone(), bandwidth)).transpose()?;
        let unchecked = !device.checksums();
        let options = OpenOptions {
            memory,
            engine,
            threads,
            factory,
            unchecked,
            refuse_later: true,
            keep_freed,
            ..OpenOptions::default()
        };
        let opened = OfProcess::new(Mutex::new(Opened::open(&path, &options)?));
        Ok(Graph { opened, gpu: OfProcess::new(gpu) })
    })
}

#[pymethods]
impl Graph {
    /// Fails if the memory budget does not hold the opened graph's indexes and buffers.
    fn check_memory(&self, py: Python<'_>) -> PyResult<()> {
        let graph = self.lock(py)?;
        graph.memory().check().map_err(|e| raise(py, &e))
    }

    /// Has runs leave checkpoints in a folder, after so many iterations or seconds, and perhaps go on from them.
    fn leave_checkpoints(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        every: (Option<u64>, f64),
        resume: bool,
    ) -> PyResult<()> {
        let (iterations, seconds) = every;
        let every =
            iterations.map_or(Every::Time(Duration::from_secs_f64(seconds)), Every::Iterations);
        self.lock(py)?.set_checkpointing(Checkpointing { directory, every, resume });
        Ok(())
    }

    /// The checkpoints of a loop in Python, of this name and these options; None where the graph has none.
    fn loop_checkpoints(
        &self,
        py: Python<'_>,
        name: &str,
        options: &str,
    ) -> PyResult<Option<LoopCheckpoints>> {
        let graph = self.lock(py)?;
        let begun = Call::new(None).run(py, || Checkpoints::begin(&graph, name, options))?;
        Ok(begun.map(|checkpoints| LoopCheckpoints(Mutex::new(checkpoints))))
    }

    /// The manifest and the bytes an edge of each file, as JSON.
    fn info(&self, py: Python<'_>) -> PyResult<String> {
        let graph = self.lock(py)?;
        to_json(py, &describe(&graph))
    }

    /// The user's ids of all vertices, ascending; None when they are 0 to |V| - 1.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<u64>>>> {
        let graph = self.lock(py)?;
        let ids = Call::new(None).run(py, || graph.ids().all())?;
        Ok(ids.map(|ids| ids.into_pyarray(py)))
    }

    /// The user's ids at positions `start` to `stop` (excluded) of the user's order.
    fn ids_of<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        stop: u64,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let graph = self.lock(py)?;
        let ids = Call::new(None).run(py, || graph.ids().in_range(start..stop))?;
        Ok(ids.into_pyarray(py))
    }

    /// Whether ids are the user's own, and not 0 to |V| - 1.
    fn has_own_ids(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.ids().are_own())
    }

    /// The names of vertices `start` to `stop` (excluded): their text, and where each begins and the last ends.
    fn names<'py>(&self, py: Python<'py>, start: u64, stop: u64) -> PyResult<Texts<'py>> {
        let graph = self.lock(py)?;
        let texts = Call::new(None).run(py, || named(&graph)?.in_range(start..stop))?;
        Ok((texts.text.into_pyarray(py), texts.offsets.into_pyarray(py)))
    }

    /// The ids of the vertices with these names.
    fn find_names<'py>(
        &self,
        py: Python<'py>,
        names: Vec<PyBackedStr>,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let graph = self.lock(py)?;
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let ids = Call::new(None).run(py, || named(&graph)?.find(&names))?;
        Ok(ids.into_pyarray(py))
    }

    /// The degree of every vertex, in the user's order.
    fn degrees<'py>(
        &self,
        py: Python<'py>,
        direction: &str,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let graph = self.lock(py)?;
        let degrees = Call::new(None).run(py, || {
            let direction = direction_of(direction)?;
            let copies = if graph.order().is_reordered() { 2 } else { 1 };
            let _held =
                graph.memory().reserve(graph.vertices() as u64 * 4 * copies, "the degrees")?;
            graph.order().to_user(graph.degrees().of(direction)?, 1)
        })?;
        Ok(degrees.into_pyarray(py))
    }

    /// The numbers of vertices whose degrees have 0, 1, 2 … binary digits.
    fn degree_histogram(&self, py: Python<'_>, direction: &str) -> PyResult<Vec<u64>> {
        let graph = self.lock(py)?;
        Call::new(None).run(py, || graph.degrees().histogram(direction_of(direction)?))
    }

    /// The feature rows of the vertices that the user calls `ids`, as float32 of shape (n, D).
    fn read_features<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        ids: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let graph = self.lock(py)?;
        let ids = ids.as_slice()?;
        let (values, dim) = Call::new(None).run(py, || {
            let values = graph.features().read(name, &graph.ids().find(ids)?)?;
            Ok((values, graph.features().get(name)?.dim()))
        })?;
        Ok(values.into_pyarray(py).reshape([ids.len(), dim])?.into_any())
    }

    /// Runs PageRank; returns ranks in the user's order, and the run's report as JSON.
    #[expect(clippy::too_many_arguments, reason = "the contract of `_native.pyi`")]
    fn pagerank<'py>(
        &self,
        py: Python<'py>,
        damping: f64,
        iterations: Option<usize>,
        tolerance: Option<f64>,
        sources: Option<PyReadonlyArray1<'py, u64>>,
        trace: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, String)> {
        let defaults = PageRank::default();
        let sources = match &sources {
            Some(ids) => ids.as_slice()?.to_vec(),
            None => Vec::new(),
        };
        let limits = match (iterations, tolerance) {
            (None, None) => (defaults.iterations, defaults.tolerance),
            (iterations, tolerance) => (iterations.unwrap_or(defaults.iterations), tolerance),
        };
        let (ranks, report) = self.run(py, trace, progress, |graph, progress| {
            if self.gpu.here()?.is_none() && !sources.is_empty() {
                // To find many ids takes memory too, but less.
                drop(graph.memory().reserve_all(&pagerank_memory(graph, true)?)?);
            }
            let sources = graph.ids().find(&sources)?;
            let options = PageRank { damping, iterations: limits.0, tolerance: limits.1, sources };
            match self.gpu.here()? {
                Some(gpu) => gpu::pagerank(graph, gpu, &options, progress),
                None => pagerank(graph, &options, progress),
            }
        })?;
        Ok((ranks.into_pyarray(py), report))
    }

    /// Returns each vertex's component, named by the smallest user id in it, and the run's report as
    /// JSON; where `largest` is given, with component sizes and the names of so many of the largest.
    fn wcc<'py>(
        &self,
        py: Python<'py>,
        largest: Option<usize>,
        trace: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<u64>>, String)> {
        let (components, report) = self.run(py, trace, progress, |graph, progress| {
            let (positions, report) = match self.gpu.here()? {
                Some(gpu) => gpu::wcc(graph, gpu, progress)?,
                None => wcc(graph, progress)?,
            };
            let sizes = largest.map(|most| ComponentSizes::of(&positions, most)).transpose()?;
            let names = graph.ids().of_positions(positions)?;
            let sizes = sizes.map(|mut sizes| {
                let named = sizes.largest.iter_mut();
                named.for_each(|(name, _)| *name = names[*name as usize]);
                sizes
            });
            Ok((names, WithSizes { report, sizes }))
        })?;
        Ok((components.into_pyarray(py), report))
    }

    /// Runs BFS; returns hops from `source` (-1 where no path leads), and the run's report as JSON.
    fn bfs<'py>(
        &self,
        py: Python<'py>,
        source: u64,
        trace: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<i32>>, String)> {
        const { assert!(UNREACHED.cast_signed() == -1) };
        let (depths, report) = self.run(py, trace, progress, |graph, progress| {
            let source = self.find(graph, source)?;
            let (depths, report) = match self.gpu.here()? {
                Some(gpu) => gpu::bfs(graph, gpu, source, progress)?,
                None => bfs(graph, source, progress)?,
            };
            // In place: nothing is allocated or moved.
            Ok((depths.into_iter().map(u32::cast_signed).collect::<Vec<i32>>(), report))
        })?;
        Ok((depths.into_pyarray(py), report))
    }

    /// Runs SSSP; returns least distances from `source` (infinity without a path), and the report as
    /// JSON.
    fn sssp<'py>(
        &self,
        py: Python<'py>,
        source: u64,
        trace: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, String)> {
        let (distances, report) = self.run(py, trace, progress, |graph, progress| {
            let source = self.find(graph, source)?;
            match self.gpu.here()? {
                Some(gpu) => gpu::sssp(graph, gpu, source, progress),
                None => sssp(graph, source, progress),
            }
        })?;
        Ok((distances.into_pyarray(py), report))
    }

    /// Runs one pass over the edges for float32 or float64 `x` of shape (|V|,) or (|V|, F); returns an
    /// array like it, and the run's report as JSON.
    #[expect(clippy::too_many_arguments, reason = "the contract of `_native.pyi`")]
    fn propagate<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        reduce: &str,
        transpose: bool,
        weights: bool,
        trace: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, String)> {
        let reduce = self::reduce(reduce).map_err(|e| raise(py, &e))?;
        let how = Propagate { reduce, transpose, weights, width: 1 };
        match x.extract::<PyReadonlyArrayDyn<'py, f32>>() {
            Ok(x) => self.propagate_values(py, &x, how, trace, progress),
            Err(_) => self.propagate_values::<f64>(py, &x.extract()?, how, trace, progress),
        }
    }

    /// Propagates values in GPU memory: of shape (|V|, `width`), float64 if `is_double`, at address `x`;
    /// the result is written to address `y`. Returns the run's report as JSON.
    #[expect(clippy::too_many_arguments, reason = "the contract of `_native.pyi`")]
    fn propagate_on_device(
        &self,
        py: Python<'_>,
        x: u64,
        y: u64,
        width: usize,
        is_double: bool,
        reduce: &str,
        transpose: bool,
        weights: bool,
        trace: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let reduce = self::reduce(reduce).map_err(|e| raise(py, &e))?;
        let how = Propagate { reduce, transpose, weights, width };
        let ((), report) = self.run(py, trace, progress, |graph, progress| {
            let gpu = self.gpu.here()?.as_ref().ok_or_else(not_on_a_gpu)?;
            let len = graph.vertices() * width;
            let report = match is_double {
                true => {
                    let values = |address| DeviceView::<f64>::at(DevicePtr::at(address), len);
                    gpu::propagate_on_device(graph, gpu, values(x), values(y), &how, progress)
                }
                false => {
                    let values = |address| DeviceView::<f32>::at(DevicePtr::at(address), len);
                    gpu::propagate_on_device(graph, gpu, values(x), values(y), &how, progress)
                }
            }?;
            Ok(((), report))
        })?;
        Ok(report)
    }

    /// An iterator over the edges.
    fn edges(this: Py<Self>, py: Python<'_>) -> PyResult<EdgeBatches> {
        EdgeBatches::new(py, this)
    }

    /// The ids of the neighbours of vertex `id`, ascending, once for each edge.
    fn neighbors<'py>(
        &self,
        py: Python<'py>,
        id: u64,
        direction: &str,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let graph = self.lock(py)?;
        let ids = Call::new(None).run(py, || {
            let vertex = graph.ids().find(&[id])?[0];
            let found = of_graph::neighbors(&graph, vertex, direction_of(direction)?)?;
            let mut ids = graph.ids().of(&found)?;
            ids.sort_unstable();
            Ok(ids)
        })?;
        Ok(ids.into_pyarray(py))
    }

    /// Random walks of `length` steps from the vertices `starts`: ids of shape (n, `length` + 1), and the run's
    /// report as JSON. `first` is the number of the first walk.
    #[expect(clippy::too_many_arguments, reason = "the contract of `_native.pyi`")]
    fn walks<'py>(
        &self,
        py: Python<'py>,
        starts: PyReadonlyArray1<'py, u64>,
        length: usize,
        p: f64,
        q: f64,
        seed: u64,
        first: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, String)> {
        let starts = starts.as_slice()?.to_vec();
        let count = starts.len();
        let (ids, report) = self.run(py, None, progress, |graph, progress| {
            let starts = graph.ids().find(&starts)?;
            let how = Walks { length, p, q, seed, first };
            let (steps, report) = walks(graph, &starts, &how, progress)?;
            let bytes = steps.len() as u64 * 12 + graph.manifest().vertices * 20;
            let _held = graph.memory().reserve(bytes, "the walks by ids")?;
            let ids = match of_graph::names(graph)? {
                Some(names) => steps.into_iter().map(|v| names[v as usize]).collect(),
                None => steps.into_iter().map(u64::from).collect::<Vec<u64>>(),
            };
            Ok((ids, report))
        })?;
        Ok((ids.into_pyarray(py).reshape([count, length + 1])?.into_any(), report))
    }

    /// What the vertices of each pair, ids of shape (p, 2), have in common: sums over the neighbours of both, as
    /// `weighed` says, how many neighbours each has, shape (p, 2), and the run's report as JSON.
    fn in_common<'py>(
        &self,
        py: Python<'py>,
        pairs: PyReadonlyArray1<'py, u64>,
        weighed: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Common<'py>, String)> {
        let ids = pairs.as_slice()?.to_vec();
        let (found, report) = self.run(py, None, progress, |graph, progress| {
            let weighed = weighed_of(weighed)?;
            let bytes = ids.len() as u64 * 20;
            let _held = graph.memory().reserve(bytes, "the pairs' vertices")?;
            let vertices = graph.ids().find(&ids)?;
            let (gpu, pairs) = (self.gpu.here()?.as_ref(), vertices.as_chunks().0);
            let (common, report, found) =
                registry::compare_pairs(graph, gpu, pairs, weighed, progress)?;
            Ok((common, WithFound { report, found }))
        })?;
        let count = found.sums.len();
        let neighbors = found.neighbors.into_flattened().into_pyarray(py).reshape([count, 2])?;
        Ok(((found.sums.into_pyarray(py), neighbors), report))
    }

    /// Runs the algorithm `name` with `options`, a JSON object; returns a value a vertex, in the user's order,
    /// and the run's report with what was found, as JSON.
    fn algorithm<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        options: &str,
        trace: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, String)> {
        let (column, report) = self.run(py, trace, progress, |graph, progress| {
            let gpu = self.gpu.here()?.as_ref();
            let Outcome { column, found, report } =
                registry::run(graph, gpu, name, options, progress)?;
            let column = match column {
                Column::Vertices(positions) => Column::U64(graph.ids().of_positions(positions)?),
                column => column,
            };
            Ok((column, WithFound { report, found }))
        })?;
        let values = match column {
            Column::Vertices(values) | Column::U32(values) => values.into_pyarray(py).into_any(),
            Column::U64(values) => values.into_pyarray(py).into_any(),
            Column::F64(values) => values.into_pyarray(py).into_any(),
        };
        Ok((values, report))
    }

    /// Bytes of memory that `propagate` reserves for `width` float32 values a vertex.
    fn propagate_bytes(&self, py: Python<'_>, width: usize) -> PyResult<u64> {
        Ok(propagate_bytes::<f32>(&*self.lock(py)?, width))
    }

    /// Bytes of memory that `pagerank` reserves.
    fn pagerank_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(pagerank_memory(&*self.lock(py)?, false).map_err(|e| raise(py, &e))?.bytes())
    }

    /// Bytes a second that the engine reads from the file of passes, with no work on the bytes.
    fn measure_ceiling(&self, py: Python<'_>, seconds: f64) -> PyResult<f64> {
        let graph = self.lock(py)?;
        let ceiling = Call::new(None).run(py, || ceiling(&graph, seconds))?;
        Ok(ceiling.bandwidth)
    }
}

impl Graph {
    /// Runs an algorithm with cancellation, a trace and progress; returns its report as JSON.
    fn run<T: Send, R: Serialize + Send>(
        &self,
        py: Python<'_>,
        trace: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
        algorithm: impl FnOnce(&Opened, &dyn Progress) -> Result<(T, R)> + Send,
    ) -> PyResult<(T, String)> {
        let mut locked = self.lock(py)?;
        let graph: &mut Opened = &mut locked;
        let call = Call::new(progress);
        let (values, report) = call.run(py, || {
            graph.set_cancel(call.cancel.clone());
            graph.set_trace(if trace.is_some() { Trace::on() } else { Trace::off() });
            let done = algorithm(graph, &call)?;
            if let Some(path) = &trace {
                graph.trace().write(path)?;
            }
            Ok(done)
        })?;
        Ok((values, to_json(py, &report)?))
    }

    fn propagate_values<'py, T: Value + Element>(
        &self,
        py: Python<'py>,
        x: &PyReadonlyArrayDyn<'py, T>,
        how: Propagate,
        trace: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, String)> {
        let shape = x.shape().to_vec();
        let how = Propagate { width: shape.iter().skip(1).product(), ..how };
        let values = x.as_slice()?;
        let (y, report) =
            self.run(py, trace, progress, |graph, progress| match self.gpu.here()? {
                Some(gpu) => gpu::propagate(graph, gpu, values, &how, progress),
                None => propagate(graph, values, &how, progress),
            })?;
        Ok((y.into_pyarray(py).reshape(shape)?.into_any(), report))
    }

    /// The internal id of the vertex with the user's id `id`.
    fn find(&self, graph: &Opened, id: u64) -> Result<u32> {
        match self.gpu.here()? {
            Some(gpu) => gpu.find(graph, id),
            None => Ok(graph.ids().find(&[id])?[0]),
        }
    }

    /// Locks the graph for one call. A thread that waits for another's call releases the GIL, and looks
    /// for Ctrl-C.
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<InUse<'_>> {
        let opened = self.opened.here().map_err(|e| raise(py, &e))?;
        let locked = Locked::by_this_call(py, self, "the graph")?;
        loop {
            match opened.try_lock() {
                Ok(graph) => return Ok(InUse { graph, _locked: locked }),
                Err(TryLockError::Poisoned(_)) => return Err(spoilt(py, "the graph")),
                Err(TryLockError::WouldBlock) => {
                    py.detach(|| thread::sleep(BUSY_POLL));
                    py.check_signals()?;
                }
            }
        }
    }
}

/// A graph that one call has to itself.
pub(crate) struct InUse<'a> {
    graph: MutexGuard<'a, Opened>,
    _locked: Locked,
}

impl Deref for InUse<'_> {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.graph
    }
}

impl DerefMut for InUse<'_> {
    fn deref_mut(&mut self) -> &mut Opened {
        &mut self.graph
    }
}

fn not_on_a_gpu() -> Error {
    Error::new(ErrorKind::Input, "propagate values in GPU memory")
        .expected("a graph that was opened with `--device cuda`")
        .got("one on the CPU")
}

/// What a common neighbour counts by the way called `name`: `alike`, `logarithm` or `arcs`.
fn weighed_of(name: &str) -> Result<Weighed> {
    match name {
        "alike" => Ok(Weighed::Alike),
        "logarithm" => Ok(Weighed::ByLogarithm),
        "arcs" => Ok(Weighed::ByArcs),
        _ => Err(Error::new(ErrorKind::Input, "weigh neighbours by")
            .object(name)
            .expected("`alike`, `logarithm` or `arcs`")),
    }
}

/// The direction called `name`: `out` or `in`.
fn direction_of(name: &str) -> Result<Direction> {
    match name {
        "out" => Ok(Direction::Out),
        "in" => Ok(Direction::In),
        _ => Err(Error::new(ErrorKind::Input, "give the degrees of direction")
            .object(name)
            .expected("`out` or `in`")),
    }
}

fn reduce(name: &str) -> Result<Reduce> {
    match name {
        "sum" => Ok(Reduce::Sum),
        "min" => Ok(Reduce::Min),
        "max" => Ok(Reduce::Max),
        _ => Err(Error::new(ErrorKind::Input, "propagate with reduction")
            .object(name)
            .expected("`sum`, `min` or `max`")),
    }
}

/// A graph's names; an error where it has none.
fn named(graph: &Opened) -> Result<Names<'_>> {
    graph.names().ok_or_else(|| {
        Error::new(ErrorKind::Input, "find vertices by name in")
            .object(graph.dir().path().display())
            .expected("a graph with names")
            .got("one whose ids are numbers")
            .hint("`--ids names` builds one from text, and tables with columns of text are")
    })
}
