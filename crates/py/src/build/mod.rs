//! Building graphs: from files, from generators, and from batches that Python pushes.

pub(crate) mod attach;
pub(crate) mod checksum;
pub(crate) mod columns;
pub(crate) mod components;
pub(crate) mod edge_reader;
pub(crate) mod edges;
pub(crate) mod generators;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod reorder;
pub(crate) mod values;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use serde::Deserialize;
use tiergraph_core::{ErrorKind, Result, threads};
use tiergraph_ingest::build::Assembly;
use tiergraph_ingest::features::Attachments;
use tiergraph_ingest::source::memory::{BatchSender, MemorySpec, channel};
use tiergraph_ingest::source::{OpenOptions, Weights, open_all};

use crate::calls::Call;
use crate::errors::{from_json, raise, spoilt, to_json};
use attach::{Given, attachments};
use edges::Ids;
use names::Names;
use options::{Options, write, write_assembly};
use values::{EdgeValues, Times, to_times};

/// Batches that may wait between Python and the build's thread.
const CHANNEL_BATCHES: usize = 2;

/// Options of builds from files only.
#[derive(Deserialize)]
struct FileOptions {
    format: Option<String>,
    columns: Option<Vec<String>>,
    weights: Option<Weights>,
}

/// Options of builds from pushed edges only.
#[derive(Deserialize)]
struct EdgeOptions {
    held_bytes: Option<u64>,
    held_bytes_at_most: Option<u64>,
    /// Notes about the input that Python made, for the build's report.
    notes: Option<Vec<String>>,
    /// All vertices' ids, where the caller lists them.
    listed: Option<Vec<u64>>,
}

/// Builds a graph from files; returns its statistics as JSON. `names` numbers the ids of text, if they are names.
#[pyfunction]
pub(crate) fn build_file(
    py: Python<'_>,
    paths_in: Vec<PathBuf>,
    path_out: PathBuf,
    options_json: &str,
    given: Vec<Given>,
    names: Option<PyRef<'_, Names>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let (call, names) = (Arc::new(Call::new(progress)), names.map(|names| names.0.clone()));
    let stats = call.run(py, || {
        let options: Options = from_json(options_json)?;
        let all = attachments(given, &call)?;
        let mut source = open_all(&paths_in, &open_options(options_json, &options, names)?)?;
        write(&mut *source, &path_out, &options, all, &call)
    })?;
    to_json(py, &stats)
}

/// Builds a graph from a file but does not commit it: it waits for its edges once more, with their
/// values, and is then put in its place.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the arguments are Python's")]
pub(crate) fn build_file_with_values(
    py: Python<'_>,
    paths_in: Vec<PathBuf>,
    path_out: PathBuf,
    options_json: &str,
    given: Vec<Given>,
    names: Option<PyRef<'_, Names>>,
    values_json: &str,
    node_times: Times<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<EdgeValues> {
    let (times, names) = (to_times(node_times)?, names.map(|names| names.0.clone()));
    let call = Arc::new(Call::new(progress));
    call.run(py, || {
        let options: Options = from_json(options_json)?;
        let all = attachments(given, &call)?;
        let mut source = open_all(&paths_in, &open_options(options_json, &options, names)?)?;
        let assembly = write_assembly(&mut *source, &path_out, &options, all, &call)?;
        EdgeValues::of(assembly, values_json, times)
    })
}

/// The options that a file is opened with, from JSON and from those of the build.
pub(crate) fn open_options(
    json: &str,
    options: &Options,
    names: Option<tiergraph_ingest::Names>,
) -> Result<OpenOptions> {
    let file: FileOptions = from_json(json)?;
    Ok(OpenOptions {
        format: file.format.map(|name| name.parse()).transpose()?,
        columns: file.columns,
        weights: file.weights.unwrap_or_default(),
        directed: options.undirected.map(|undirected| !undirected),
        names,
        threads: options.threads(),
    })
}

/// Builds a synthetic graph; returns its statistics as JSON.
#[pyfunction]
pub(crate) fn generate(
    py: Python<'_>,
    kind: &str,
    params_json: &str,
    path_out: PathBuf,
    options_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let call = Call::new(progress);
    let stats = call.run(py, || {
        let options: Options = from_json(options_json)?;
        let mut source = generators::source(kind, params_json, options.threads())?;
        let dtype = options.feature_dtype.unwrap_or_default();
        let all = generators::attachments(kind, params_json, dtype, options.threads())?;
        write(&mut *source, &path_out, &options, all, &call)
    })?;
    to_json(py, &stats)
}

/// A build from batches of edges that Python pushes; a thread sorts and writes them meanwhile.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct Builder {
    path: PathBuf,
    options: Options,
    edges: EdgeOptions,
    attachments: Attachments,
    /// What numbers the ids of the edges, where these are names.
    names: Option<tiergraph_ingest::Names>,
    call: Arc<Call>,
    running: Mutex<Option<Running>>,
}

struct Running {
    sender: BatchSender,
    build: JoinHandle<Result<Assembly>>,
}

#[pymethods]
impl Builder {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options_json: &str,
        given: Vec<Given>,
        names: Option<PyRef<'_, Names>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let names = names.map(|names| names.0.clone());
        let options: Options = from_json(options_json).map_err(|e| raise(py, &e))?;
        let edges: EdgeOptions = from_json(options_json).map_err(|e| raise(py, &e))?;
        let call = Arc::new(Call::new(progress));
        let attachments = call.run(py, || attachments(given, &call))?;
        Ok(Self { path, options, edges, attachments, names, call, running: Mutex::new(None) })
    }

    /// Adds a batch of edges; waits while the build is behind.
    fn push(
        &self,
        py: Python<'_>,
        src: Ids<'_>,
        dst: Ids<'_>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<()> {
        let mut running = self.running(py)?;
        let current = match &mut *running {
            Some(current) => current,
            none => none.insert(self.start(py, weights.is_some())?),
        };
        let mut batch = current.sender.spare();
        edges::fill(py, &mut batch, &src, &dst, weights.as_ref())?;
        let sent = self.call.run(py, || Ok(current.sender.send(batch)))?;
        let Err(error) = sent else { return Ok(()) };
        if error.kind() == ErrorKind::Interrupted
            && let Some(ended) = running.take()
        {
            // The build has ended before its edges did: its result says why.
            self.result(py, ended)?;
        }
        Err(raise(py, &error))
    }

    /// Ends the edges, waits until the graph is written and returns its statistics as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        let assembly = self.assembly(py)?;
        to_json(py, &self.call.run(py, || assembly.commit())?)
    }

    /// Ends the edges and waits until the graph is written, but does not commit it: it waits for its
    /// edges once more, with their values, and is then put in its place.
    fn finish_with_values(
        &self,
        py: Python<'_>,
        options_json: &str,
        node_times: Times<'_>,
    ) -> PyResult<EdgeValues> {
        let (times, assembly) = (to_times(node_times)?, self.assembly(py)?);
        self.call.run(py, || EdgeValues::of(assembly, options_json, times))
    }

    /// Ends the build and removes what it wrote; a graph that stood at the path stays.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.call.cancel.cancel();
        if let Some(Running { sender, build }) = self.running(py)?.take() {
            drop(sender);
            // Its error is this cancellation.
            let _ = py.detach(|| build.join());
        }
        Ok(())
    }
}

impl Builder {
    /// Locks the running build, without the GIL, for which the lock's holder may wait.
    fn running<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, Option<Running>>> {
        self.running.lock_py_attached(py).map_err(|_| spoilt(py, "the builder"))
    }

    fn start(&self, py: Python<'_>, weighted: bool) -> PyResult<Running> {
        let spec = MemorySpec {
            name: "arrays".to_owned(),
            weighted,
            held_bytes: self.edges.held_bytes.unwrap_or(0),
            held_bytes_at_most: self.edges.held_bytes_at_most.unwrap_or(0),
            notes: self.edges.notes.clone().unwrap_or_default(),
            names: self.names.clone(),
            vertices: self.edges.listed.clone(),
            ..MemorySpec::default()
        };
        let (sender, mut source) = channel(spec, CHANNEL_BATCHES);
        let (path, options, call) = (self.path.clone(), self.options.clone(), self.call.clone());
        let all = self.attachments.clone();
        let body = move || write_assembly(&mut source, &path, &options, all, &call);
        let build = threads::start("build", body).map_err(|e| raise(py, &e))?;
        Ok(Running { sender, build })
    }

    fn assembly(&self, py: Python<'_>) -> PyResult<Assembly> {
        let begun = self.running(py)?.take();
        let current = match begun {
            Some(current) => current,
            None => self.start(py, false)?,
        };
        self.result(py, current)
    }

    fn result(&self, py: Python<'_>, Running { sender, build }: Running) -> PyResult<Assembly> {
        self.call.run(py, || {
            // If the build is gone already, its result says why. If it is not, it may wait for Python
            // before it takes a batch, so that Python's lock is not held here.
            let _ = sender.finish();
            build.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
