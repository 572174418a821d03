//! Reports of runs, whose names the command line, Python and the documents share.

use std::time::Instant;

use serde::Serialize;
use tiergraph_core::{Progress, Result};
use tiergraph_graph::{Graph, PassStats};
use tiergraph_mem::peak_rss_bytes;

use crate::checkpoint::{Checkpoint, CheckpointReport, Kept, Stored};
use crate::gpu::{Busy, FrontierReads, GpuReport};

/// One iteration or level, or several in a row that were done alike: a run of a million levels is
/// reported in as few entries as one of a thousand.
#[derive(Debug, Clone, Serialize)]
pub struct Iteration {
    /// The number of iterations that the entry stands for.
    pub iterations: usize,
    /// Wall-clock seconds of these iterations.
    pub seconds: f64,
    /// Bytes that these iterations read from storage.
    pub bytes_read: u64,
    /// How these iterations were done, where algorithms choose: `push`, `pull`, `tiles`, `memory`,
    /// `lists`, `pages`.
    pub how: &'static str,
    /// The sum of what the algorithm counts: vertices reached, distances that fell, the ranks' change.
    pub measure: f64,
}

impl Iteration {
    fn add(&mut self, other: &Self) {
        self.iterations += other.iterations;
        self.seconds += other.seconds;
        self.bytes_read += other.bytes_read;
        self.measure += other.measure;
    }
}

/// The report of a finished run. Bytes and seconds are plain numbers.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// The name of the algorithm: `pagerank`, `wcc`, …
    pub algorithm: &'static str,
    /// The graph's directory.
    pub graph: String,
    /// The number of vertices.
    pub vertices: u64,
    /// The number of edges as the user counts them.
    pub edges: u64,
    /// The number of arcs that a pass over all edges visits.
    pub arcs: u64,
    /// Where the run computed: `cpu`, or the GPU's name.
    pub device: String,
    /// The name of the I/O engine that read.
    pub io_engine: &'static str,
    /// Why that engine was chosen.
    pub io_engine_why: String,
    /// The number of worker threads.
    pub threads: usize,
    /// The number of iterations, levels or passes.
    pub iterations: usize,
    /// Wall-clock seconds of the run, loading on a GPU included.
    pub seconds: f64,
    /// The mean of the iterations' seconds: of `seconds` without `load_seconds`.
    pub seconds_per_iteration: f64,
    /// Edges visited a second, if every iteration visits all of them.
    pub edges_per_second: f64,
    /// Arcs visited a second, if every iteration visits all of them.
    pub arcs_per_second: f64,
    /// Bytes that the run read from storage.
    pub bytes_read: u64,
    /// Bytes read a second: `bytes_read / seconds`.
    pub read_bandwidth: f64,
    /// Bytes of the file that passes read.
    pub pass_bytes: u64,
    /// How many times that file was read, as bytes: `bytes_read / pass_bytes`.
    pub passes: f64,
    /// Temporary files; `None` for a run without.
    #[serde(flatten)]
    pub scratch: Option<Scratch>,
    /// Bytes of blocks that are in host memory at the end.
    pub resident_bytes: u64,
    /// Where in the file that passes read the resident blocks are, in equal parts from its begin to its end.
    pub residency: Residency,
    /// Seconds that workers waited for reads, summed over workers.
    pub wait_seconds: f64,
    /// Seconds that workers processed blocks, summed over workers.
    pub compute_seconds: f64,
    /// Seconds of these in which they compared checksums of blocks that had been read.
    pub check_seconds: f64,
    /// The process's largest resident set so far.
    pub peak_rss_bytes: u64,
    /// Whether the algorithm reached its own end and not a limit of iterations.
    pub converged: bool,
    /// The GPU's part of the report; `None` for a run on the CPU.
    #[serde(flatten)]
    pub gpu: Option<GpuReport>,
    /// The run's checkpoints; `None` where the graph was opened without.
    #[serde(flatten)]
    pub checkpoints: Option<CheckpointReport>,
    /// Why there are none although the graph was opened with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_why: Option<String>,
    /// Why passes were many: what would have ended the run sooner, lists or a search, and the memory that it fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lists_why: Option<String>,
    /// All iterations; those after the first thousand entries together where they were done alike.
    pub details: Vec<Iteration>,
}

/// Temporary files of a run, whose bytes are not among those that it read from the graph.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Scratch {
    /// The most bytes that temporary files held at a time.
    pub scratch_bytes: u64,
    /// Bytes that were written to them.
    pub scratch_bytes_written: u64,
    /// Bytes that were read from them.
    pub scratch_bytes_read: u64,
}

impl Scratch {
    /// The counts of the graph's temporary files so far.
    fn of(graph: &Graph) -> Self {
        let held = graph.scratch();
        Self {
            scratch_bytes: held.most(),
            scratch_bytes_written: held.written(),
            scratch_bytes_read: held.read(),
        }
    }

    /// The counts since those of `earlier`; `None` if nothing was written.
    fn since(self, earlier: &Self) -> Option<Self> {
        let scratch_bytes_written = self.scratch_bytes_written - earlier.scratch_bytes_written;
        let scratch_bytes_read = self.scratch_bytes_read - earlier.scratch_bytes_read;
        (scratch_bytes_written > 0).then_some(Self {
            scratch_bytes_written,
            scratch_bytes_read,
            ..self
        })
    }
}

/// For each part of a file of blocks, the share of it that is in a memory.
#[derive(Debug, Clone, Serialize)]
pub struct Residency {
    /// In host memory; empty for files that have no blocks.
    pub host: Vec<f64>,
    /// In a GPU's memory; empty for a run on the CPU.
    pub device: Vec<f64>,
}

/// Parts of a file, at most, of which a report says what is in memory.
const PARTS: usize = 128;

/// Iterations are listed one by one up to this many entries.
const ENTRIES: usize = 1000;

/// A run that goes on, and what was measured of it so far.
pub(crate) struct Run<'a> {
    graph: &'a Graph,
    progress: &'a dyn Progress,
    algorithm: &'static str,
    start: Instant,
    last: Instant,
    before: PassStats,
    scratch: Scratch,
    last_stats: PassStats,
    expected: u64,
    iterations: usize,
    details: Vec<Iteration>,
    gpu: Option<GpuReport>,
    /// Bytes of a pass, where it is not over the graph's file of passes.
    pass_bytes: Option<u64>,
    checkpoint: Option<Checkpoint>,
    /// What would have ended the run sooner, and the bytes of memory that it fits; `None` where nothing would.
    shorter_way: Option<(&'static str, u64)>,
}

impl<'a> Run<'a> {
    /// Starts the clock. `expected` iterations are shown as the total; 0 if unknown.
    pub(crate) fn start(
        graph: &'a Graph,
        algorithm: &'static str,
        expected: u64,
        progress: &'a dyn Progress,
    ) -> Self {
        let (now, stats) = (Instant::now(), graph.totals().get());
        let (before, last_stats) = (stats, stats);
        graph.scratch().forget_most();
        let scratch = Scratch::of(graph);
        let details = Vec::new();
        let (start, last) = (now, now);
        Self {
            graph,
            progress,
            algorithm,
            start,
            last,
            before,
            scratch,
            last_stats,
            expected,
            iterations: 0,
            details,
            gpu: None,
            pass_bytes: None,
            checkpoint: None,
            shorter_way: None,
        }
    }

    /// The run, whose passes read so many bytes: over other files than most algorithms' passes.
    pub(crate) fn with_passes_of(self, bytes: u64) -> Self {
        Self { pass_bytes: Some(bytes), ..self }
    }

    /// Begins the run's checkpoints, if the graph was opened with any: from here on [`keep`](Self::keep) leaves them. The
    /// state of one that a run of the same `options` left goes to `read`; returns whether there was one.
    ///
    /// # Errors
    /// A checkpoint that this run may not or cannot go on from, a folder that cannot be made.
    pub(crate) fn resume(
        &mut self,
        options: &impl Serialize,
        read: impl FnOnce(&mut Stored<'_>) -> Result<()>,
    ) -> Result<bool> {
        self.checkpoint = Checkpoint::begin(self.graph, self.algorithm, options, read)?;
        self.last = Instant::now();
        Ok(self.checkpoint.as_ref().is_some_and(Checkpoint::is_resumed))
    }

    /// Leaves a checkpoint of the state that `write` gives, if it is time for one.
    ///
    /// # Errors
    /// A file that cannot be written; the one before it is whole then.
    pub(crate) fn keep(&mut self, write: impl FnOnce(&mut Kept) -> Result<()>) -> Result<()> {
        match &mut self.checkpoint {
            Some(checkpoint) if checkpoint.is_due() => checkpoint.write(write),
            _ => Ok(()),
        }
    }

    /// Notes that the run is on a GPU, and that its first iteration begins: resident blocks are loaded.
    pub(crate) fn begin_on(&mut self, gpu: GpuReport) {
        self.gpu = Some(gpu);
        self.last = Instant::now();
        self.last_stats = self.graph.totals().get();
    }

    /// Notes who read pages for small frontiers on the GPU, and how many.
    pub(crate) fn count_frontier(&mut self, reads: Option<FrontierReads>) {
        if let Some(gpu) = &mut self.gpu {
            gpu.frontier = reads;
        }
    }

    /// Notes the end of an iteration.
    pub(crate) fn iteration(&mut self, how: &'static str, measure: f64) {
        self.iterations(how, 1, measure);
    }

    /// Notes the end of `count` iterations that were done alike.
    pub(crate) fn iterations(&mut self, how: &'static str, count: u32, measure: f64) {
        let stats = self.graph.totals().get();
        let bytes_read = stats.since(&self.last_stats).bytes_read;
        let seconds = self.last.elapsed().as_secs_f64();
        self.graph.trace().span("stage", how, self.graph.thread_pool().size() as u32, self.last);
        let entry = Iteration { iterations: count as usize, seconds, bytes_read, how, measure };
        let is_full = self.details.len() >= ENTRIES;
        match self.details.last_mut().filter(|last| is_full && last.how == how) {
            Some(last) => last.add(&entry),
            None => self.details.push(entry),
        }
        self.iterations += count as usize;
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.advance(count.into());
        }
        self.last = Instant::now();
        self.last_stats = stats;
        self.progress.update(self.algorithm, self.iterations as u64, self.expected, "iterations");
    }

    /// Notes that `what` would end the run sooner, but fits a budget of no less than so many bytes.
    pub(crate) fn shorter_way(&mut self, what: &'static str, budget: u64) {
        self.shorter_way = Some((what, budget));
    }

    /// How many iterations ended so far.
    pub(crate) fn steps(&self) -> usize {
        self.iterations
    }

    fn residency(&self, pass_bytes: u64) -> Residency {
        let host = self.graph.memory().residency(PARTS);
        let device = match &self.gpu {
            None => Vec::new(),
            // The first blocks of the file are those on the device.
            Some(gpu) => {
                let share = gpu.device_resident_bytes as f64 / pass_bytes.max(1) as f64;
                let covered = share * host.len() as f64;
                (0..host.len()).map(|part| (covered - part as f64).clamp(0.0, 1.0)).collect()
            }
        };
        Residency { host, device }
    }

    /// Ends the run and makes its report.
    pub(crate) fn finish(self, converged: bool) -> Result<RunReport> {
        let graph = self.graph;
        let manifest = graph.manifest();
        let seconds = self.start.elapsed().as_secs_f64();
        let iterations = self.iterations;
        let stats = graph.totals().get().since(&self.before);
        let of_file =
            || graph.pass_file().and_then(|f| manifest.files.get(f)).map_or(0, |f| f.bytes);
        let pass_bytes = self.pass_bytes.unwrap_or_else(of_file);
        let busy = Busy::since(self.start, graph.trace());
        let engine = match self.gpu.as_ref().and_then(|gpu| gpu.direct.clone()) {
            Some(way) => ("cufile", way),
            None => (graph.engine().engine, graph.engine().why.clone()),
        };
        let load_seconds = self.gpu.as_ref().map_or(0.0, |gpu| gpu.load_seconds);
        let per_second = |count: u64| (count * iterations as u64) as f64 / seconds;
        Ok(RunReport {
            algorithm: self.algorithm,
            graph: graph.dir().path().display().to_string(),
            vertices: manifest.vertices,
            edges: manifest.edges,
            arcs: manifest.arcs,
            device: self.gpu.as_ref().map_or_else(|| "cpu".to_owned(), |gpu| gpu.name.clone()),
            io_engine: engine.0,
            io_engine_why: engine.1,
            threads: graph.thread_pool().size(),
            iterations,
            seconds,
            seconds_per_iteration: (seconds - load_seconds) / iterations.max(1) as f64,
            edges_per_second: per_second(manifest.edges),
            arcs_per_second: per_second(manifest.arcs),
            bytes_read: stats.bytes_read,
            read_bandwidth: stats.bytes_read as f64 / seconds,
            pass_bytes,
            passes: stats.bytes_read as f64 / pass_bytes.max(1) as f64,
            scratch: Scratch::of(graph).since(&self.scratch),
            resident_bytes: graph.memory().resident_bytes(),
            residency: self.residency(pass_bytes),
            wait_seconds: stats.wait_seconds,
            compute_seconds: stats.compute_seconds,
            check_seconds: stats.check_seconds,
            peak_rss_bytes: peak_rss_bytes()?,
            converged,
            checkpoint_why: (graph.checkpointing().is_some() && self.checkpoint.is_none()).then(
                || "this run leaves none: it is one pass, or in memory from then on".to_owned(),
            ),
            lists_why: self.shorter_way.map(|(what, bytes)| {
                let enough = bytes.div_ceil(1 << 20);
                format!("{what} would have ended it sooner, and fits a memory of `{enough}MiB`")
            }),
            checkpoints: self.checkpoint.as_ref().map(Checkpoint::report),
            gpu: self.gpu.map(|gpu| gpu.at_end(self.graph, busy)),
            details: self.details,
        })
    }
}
