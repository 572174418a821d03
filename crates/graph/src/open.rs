//! Opening a graph: its files, its engines, its memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tiergraph_cache::BlockCache;
use tiergraph_core::metrics::Totals;
use tiergraph_core::trace::Trace;
use tiergraph_core::{Cancel, Error, ErrorKind, Result, ThreadPool};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::manifest::Manifest;
use tiergraph_io::pipeline::{Buffers, ReadWorkers};
use tiergraph_io::temporary::Held;
use tiergraph_io::{EngineChoice, EngineFactory, EnginePool, EngineReport, FileId, FileSet};
use tiergraph_mem::{Budget, Keeping, MemoryPlan, Reservation, available_memory_bytes};

use crate::edges::open_columns;
use crate::features::FeaturesFile;
use crate::raw_rows::RawFile;
use crate::rows::{Direction, RowFile};
use crate::tiles::TileFile;

/// Blocks in flight for each worker.
pub(crate) const BLOCKS_IN_FLIGHT: usize = 8;
/// Blocks that a worker holds at most, to go over them together.
pub(crate) const MOST_HELD: usize = 48;
/// Reads in flight for each engine of a graph: enough small ones to fill a drive.
pub const ENGINE_DEPTH: usize = 64;
/// Bytes that a process holds beside state, indexes and large buffers: code, stacks, small buffers.
const OVERHEAD_BYTES: u64 = 24 << 20;

/// Options for opening a graph.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// Bytes that the graph and its algorithms may hold; by default, three quarters of free memory.
    pub memory: Option<u64>,
    /// The engine that reads the files.
    pub engine: EngineChoice,
    /// The number of worker threads; by default, one for each core.
    pub threads: Option<usize>,
    /// A factory of engines that replaces `engine`: modelled drives, injected faults.
    pub factory: Option<EngineFactory>,
    /// Whether blocks may stay in memory from pass to pass; by default, they may.
    pub residency: Option<bool>,
    /// Whether passes skip the comparison of the blocks that they read with their checksums.
    pub unchecked: bool,
    /// Whether a graph opens although its indexes and buffers do not fit `memory`: the first run is then
    /// refused, with an error that lists all that it and they need.
    pub refuse_later: bool,
    /// Whether memory that a run frees stays with the process for the next run, while the graph is open.
    pub keep_freed: bool,
}

/// Where runs over a graph leave checkpoints, and how often.
#[derive(Debug, Clone)]
pub struct Checkpointing {
    /// The folder of the files, which is made if it is not there.
    pub directory: PathBuf,
    /// How long a run goes on without one.
    pub every: Every,
    /// Whether a run goes on from one that is there; otherwise it is refused.
    pub resume: bool,
}

/// How often runs leave a checkpoint.
#[derive(Debug, Clone, Copy)]
pub enum Every {
    /// After so many iterations.
    Iterations(u64),
    /// After the iteration that ends so long after the last one.
    Time(Duration),
}

/// The number that the next opened graph gets.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// An opened graph, shared by the algorithms that run over it, one at a time.
pub struct Graph {
    number: u64,
    dir: GraphDir,
    engines: Arc<EnginePool>,
    threads: Arc<ThreadPool>,
    pub(crate) budget: Budget,
    pub(crate) cache: BlockCache,
    pub(crate) residency: bool,
    unchecked: bool,
    workers: Mutex<ReadWorkers>,
    engine: EngineReport,
    totals: Totals,
    scratch: Arc<Held>,
    cancel: Cancel,
    trace: Trace,
    checkpointing: Option<Checkpointing>,
    pub(crate) tile_file: Option<TileFile>,
    pub(crate) row_files: Vec<(Direction, RowFile)>,
    pub(crate) raw_files: Vec<(Direction, RawFile)>,
    pub(crate) feature_files: Vec<FeaturesFile>,
    pub(crate) edge_feature_files: Vec<FeaturesFile>,
    /// Files with a value for each arc, by name.
    pub(crate) columns: BTreeMap<String, FileId>,
    /// The end of the vertices with arcs, found when it is first asked for.
    pub(crate) vertices_with_arcs: OnceLock<usize>,
    /// The memory of graphs opened together, from opening on: its plan, and its reservation.
    pub(crate) opened: Arc<(MemoryPlan, Reservation)>,
    /// Keeps memory that a run frees for the next. The last field: it drops after those that have memory.
    pub(crate) keeping: Option<Keeping>,
}

/// Opens a file of the graph in `dir` that engines read, under its identity.
pub(crate) fn open_file(dir: &GraphDir, files: &mut FileSet, name: &str) -> Result<FileId> {
    let unit_bytes = u64::from(dir.manifest().block_bytes);
    let file = files.open_striped(&dir.paths(name)?, unit_bytes)?;
    files.identify(file, identity(dir.manifest(), name));
    Ok(file)
}

/// What tells a file of one build from all others.
fn identity(manifest: &Manifest, name: &str) -> String {
    format!("{}/{name}", manifest.build_id)
}

/// The files of one graph's directory, opened.
pub(crate) struct Opened {
    dir: GraphDir,
    tiles: Option<TileFile>,
    rows: Vec<(Direction, RowFile)>,
    raw: Vec<(Direction, RawFile)>,
    features: Vec<FeaturesFile>,
    edge_features: Vec<FeaturesFile>,
    columns: BTreeMap<String, FileId>,
}

impl Opened {
    pub(crate) fn open(path: &Path, files: &mut FileSet) -> Result<Self> {
        let dir = GraphDir::open(path)?;
        let mut open = |name: &str| -> Result<Option<FileId>> {
            match dir.manifest().files.contains_key(name) {
                true => open_file(&dir, files, name).map(Some),
                false => Ok(None),
            }
        };
        let tiles = open("tiles.blocks")?.map(|file| TileFile::open(&dir, file)).transpose()?;
        let mut rows = Vec::new();
        let mut raw = Vec::new();
        for direction in [Direction::Out, Direction::In] {
            if let Some(file) = open(&format!("{direction}.rows"))? {
                rows.push((direction, RowFile::open(&dir, direction, file)?));
            }
            if let Some(file) = open(&format!("{direction}.blocks"))? {
                let blocks = dir.entry(&format!("{direction}.blocks"))?.blocks;
                raw.push((direction, RawFile::new(file, blocks)));
            }
        }
        let features = FeaturesFile::open_all(&dir, files)?;
        let edge_features = FeaturesFile::open_all_of_edges(&dir, files)?;
        let columns = open_columns(&dir, files)?;
        Ok(Self { dir, tiles, rows, raw, features, edge_features, columns })
    }

    /// Bytes of the resident indexes.
    fn index_bytes(&self) -> u64 {
        self.tiles.as_ref().map_or(0, TileFile::resident_bytes)
            + self.rows.iter().map(|(_, rows)| rows.resident_bytes()).sum::<u64>()
            + self.raw.iter().map(|(_, raw)| raw.resident_bytes()).sum::<u64>()
    }
}

impl Graph {
    /// Opens the graph in the directory `path`.
    ///
    /// # Errors
    /// A directory that is no graph, a damaged index, an engine that does not work here, a memory
    /// budget that does not hold the resident indexes and the buffers of the workers.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let mut graphs = Self::open_all(&[path], options)?;
        // One path makes one graph.
        Ok(graphs.remove(0))
    }

    /// Opens several graphs that share a memory budget; an engine of any of them reads the files of all.
    ///
    /// # Errors
    /// As [`open`](Self::open), for any of them.
    pub fn open_all(paths: &[&Path], options: &OpenOptions) -> Result<Vec<Self>> {
        let mut files = FileSet::new();
        let opened = paths.iter().map(|path| Opened::open(path, &mut files));
        let opened = opened.collect::<Result<Vec<Opened>>>()?;
        let files = Arc::new(files);
        let threads = options.threads.unwrap_or_else(cores).max(1);
        let memory = match options.memory {
            Some(bytes) => bytes,
            None => available_memory_bytes()? / 4 * 3,
        };
        let budget = Budget::new(memory);
        // Passes of several graphs do not run at once.
        let block_bytes = opened.iter().map(|graph| graph.dir.manifest().block_bytes).max();
        let buffers =
            threads as u64 * BLOCKS_IN_FLIGHT as u64 * u64::from(block_bytes.unwrap_or(0));
        let plan = MemoryPlan::default()
            .and("the process", OVERHEAD_BYTES)
            .and(format!("buffers of {threads} workers"), buffers)
            .and("indexes", opened.iter().map(Opened::index_bytes).sum());
        let reserved = match options.refuse_later {
            true => budget.count(plan.bytes()),
            false => plan.reserve(&budget, &MemoryPlan::default())?,
        };
        let reserved = Arc::new((plan, reserved));
        let of_choice = || options.engine.clone().factory(ENGINE_DEPTH);
        let factory = options.factory.clone().unwrap_or_else(of_choice);
        let engines = EnginePool::new(Arc::clone(&files), factory, threads);
        // Of several graphs, those that run passes make theirs then.
        let report = engines.prepare(if opened.len() == 1 { threads } else { 1 })?;
        let graph = |opened: Opened| {
            let threads = Arc::new(ThreadPool::new(threads));
            let block_bytes = opened.dir.manifest().block_bytes as usize;
            let (large, more) = (BLOCKS_IN_FLIGHT, 2 * MOST_HELD);
            let buffers = move |_| Buffers::of_blocks(block_bytes, large, more, ENGINE_DEPTH);
            let workers = ReadWorkers::new(Arc::clone(&threads), Arc::clone(&engines), buffers);
            Self {
                number: NUMBERS.fetch_add(1, Ordering::Relaxed),
                engines: Arc::clone(&engines),
                cache: BlockCache::new(0),
                residency: options.residency.unwrap_or(true),
                unchecked: options.unchecked,
                budget: budget.clone(),
                workers: Mutex::new(workers),
                threads,
                engine: report.clone(),
                totals: Totals::default(),
                scratch: Arc::default(),
                cancel: Cancel::default(),
                trace: Trace::off(),
                checkpointing: None,
                tile_file: opened.tiles,
                row_files: opened.rows,
                raw_files: opened.raw,
                feature_files: opened.features,
                edge_feature_files: opened.edge_features,
                columns: opened.columns,
                vertices_with_arcs: OnceLock::new(),
                opened: Arc::clone(&reserved),
                dir: opened.dir,
                keeping: options.keep_freed.then(Keeping::start),
            }
        };
        Ok(opened.into_iter().map(graph).collect())
    }

    /// The number of this graph: no other graph opened in this process has it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The graph's manifest: its size, layout and files.
    pub fn manifest(&self) -> &Manifest {
        self.dir.manifest()
    }

    /// The graph's directory, with its manifest and paths.
    pub fn dir(&self) -> &GraphDir {
        &self.dir
    }

    /// The number of vertices.
    pub fn vertices(&self) -> usize {
        self.manifest().vertices as usize
    }

    /// The thread pool of the graph's workers, for loops between passes.
    pub fn thread_pool(&self) -> &ThreadPool {
        &self.threads
    }

    /// The engine that reads the graph, and why it was chosen.
    pub fn engine(&self) -> &EngineReport {
        &self.engine
    }

    /// The pool of engines over the graph's files, for threads that read on their own.
    pub fn engines(&self) -> &Arc<EnginePool> {
        &self.engines
    }

    /// Bytes read, reads and workers' seconds since the graph was opened.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Counts of temporary files of runs over the graph.
    pub fn scratch(&self) -> &Arc<Held> {
        &self.scratch
    }

    /// The flag that stops running passes when set.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The trace that spans are recorded in.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Where runs leave checkpoints; `None`: nowhere.
    pub fn checkpointing(&self) -> Option<&Checkpointing> {
        self.checkpointing.as_ref()
    }

    /// Has runs leave checkpoints from now on.
    pub fn set_checkpointing(&mut self, asked: Checkpointing) {
        self.checkpointing = Some(asked);
    }

    /// Replaces the trace: spans are recorded in `trace` from now on.
    pub fn set_trace(&mut self, trace: Trace) {
        self.trace = trace;
    }

    /// Replaces the cancellation flag that passes look at.
    pub fn set_cancel(&mut self, cancel: Cancel) {
        self.cancel = cancel;
    }

    /// The main file of passes, for measuring its drive: tiles, raw blocks or rows; `None` without any.
    pub fn pass_file(&self) -> Option<&'static str> {
        ["tiles.blocks", "in.blocks", "out.blocks", "out.rows", "in.rows"]
            .into_iter()
            .find(|name| self.manifest().files.contains_key(*name))
    }

    /// The file `name` of the graph, as its engines read it; `None` for a file that they do not read.
    pub fn file(&self, name: &str) -> Option<FileId> {
        self.engines.files().find(&identity(self.manifest(), name))
    }

    pub(crate) fn cache(&self) -> &BlockCache {
        &self.cache
    }

    /// Whether passes skip checksums, so that a damaged block may hold anything.
    pub fn is_unchecked(&self) -> bool {
        self.unchecked
    }

    /// Bytes of a block, the unit in which files are read.
    pub fn block_bytes(&self) -> usize {
        self.manifest().block_bytes as usize
    }

    /// Locks the read workers for one pass. If the last pass panicked, the next one drains its reads.
    pub(crate) fn workers(&self) -> MutexGuard<'_, ReadWorkers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of the operation `op`, which needs a layout (`needs`) that the graph does not have.
    pub fn missing_layout(&self, op: &str, needs: &str) -> Error {
        let has: Vec<&str> = self.manifest().files.keys().map(String::as_str).collect();
        Error::new(ErrorKind::Input, op)
            .object(self.dir.path().display())
            .expected(format!("a graph with {needs}"))
            .got(has.join(", "))
            .hint("rebuild it with `tiergraph build --for both`")
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
