//! What a run did, in the names that every face of tiergraph uses.

use std::time::Instant;

use serde::Serialize;
use tiergraph_core::{Progress, Result};
use tiergraph_graph::{Graph, PassStats};
use tiergraph_mem::peak_rss_bytes;

use crate::gpu::{Busy, GpuReport};

/// One iteration or level, or several side by side that were done alike: a run of a million levels is
/// reported in as many entries as one of a thousand.
#[derive(Debug, Clone, Serialize)]
pub struct Iteration {
    /// How many they are.
    pub iterations: usize,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Bytes read from storage.
    pub bytes_read: u64,
    /// What the iteration did, where algorithms choose: `push`, `pull`, `tiles`, `memory`,
    /// `lists`.
    pub how: &'static str,
    /// What the algorithm counts, summed: active vertices, changed vertices, the ranks' change.
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

/// A finished run. Bytes and seconds are plain numbers.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// `pagerank`, `wcc`, …
    pub algorithm: &'static str,
    /// The graph's directory.
    pub graph: String,
    /// |V|.
    pub vertices: u64,
    /// |E| as the user counts it.
    pub edges: u64,
    /// Arcs that a pass over all edges visits.
    pub arcs: u64,
    /// `cpu`, or the GPU's name.
    pub device: String,
    /// The engine that read, and why it was chosen.
    pub io_engine: &'static str,
    /// See `io_engine`.
    pub io_engine_why: String,
    /// Workers.
    pub threads: usize,
    /// Iterations, levels or passes.
    pub iterations: usize,
    /// Wall-clock seconds of the run, loading on a GPU included.
    pub seconds: f64,
    /// The mean of the iterations' seconds: of `seconds` without `load_seconds`.
    pub seconds_per_iteration: f64,
    /// Edges visited a second, if every iteration visits all of them.
    pub edges_per_second: f64,
    /// The same for arcs.
    pub arcs_per_second: f64,
    /// Bytes read from storage.
    pub bytes_read: u64,
    /// `bytes_read / seconds`.
    pub read_bandwidth: f64,
    /// Bytes of the file that passes read.
    pub pass_bytes: u64,
    /// `bytes_read / pass_bytes`.
    pub passes: f64,
    /// Bytes of blocks in memory at the end.
    pub resident_bytes: u64,
    /// Seconds that workers waited for reads, and processed blocks, summed over workers.
    pub wait_seconds: f64,
    /// See `wait_seconds`.
    pub compute_seconds: f64,
    /// The process's largest resident set so far.
    pub peak_rss_bytes: u64,
    /// Whether the algorithm reached its own end and not a limit of iterations.
    pub converged: bool,
    /// What a run on a GPU says beside.
    #[serde(flatten)]
    pub gpu: Option<GpuReport>,
    /// Every iteration, those after the first thousand together where they follow each other.
    pub details: Vec<Iteration>,
}

/// Iterations are listed one by one up to this many entries.
const ENTRIES: usize = 1000;

/// Measures a run while it goes on.
pub(crate) struct Run<'a> {
    graph: &'a Graph,
    progress: &'a dyn Progress,
    algorithm: &'static str,
    start: Instant,
    last: Instant,
    before: PassStats,
    last_stats: PassStats,
    expected: u64,
    iterations: usize,
    details: Vec<Iteration>,
    gpu: Option<GpuReport>,
}

impl<'a> Run<'a> {
    /// Starts the clock. `expected` iterations are shown as the total; 0 if unknown.
    pub(crate) fn start(
        graph: &'a Graph,
        algorithm: &'static str,
        expected: u64,
        progress: &'a dyn Progress,
    ) -> Self {
        let (now, stats) = (Instant::now(), graph.stats());
        let (before, last_stats) = (stats, stats);
        let details = Vec::new();
        let (start, last) = (now, now);
        Self {
            graph,
            progress,
            algorithm,
            start,
            last,
            before,
            last_stats,
            expected,
            iterations: 0,
            details,
            gpu: None,
        }
    }

    /// Says that the run is one on a GPU, and that the first iteration begins: blocks that stay there
    /// have arrived.
    pub(crate) fn begin_on(&mut self, gpu: GpuReport) {
        self.gpu = Some(gpu);
        self.last = Instant::now();
        self.last_stats = self.graph.stats();
    }

    /// Notes the end of an iteration.
    pub(crate) fn iteration(&mut self, how: &'static str, measure: f64) {
        self.iterations(how, 1, measure);
    }

    /// Notes the end of so many iterations that were done alike.
    pub(crate) fn iterations(&mut self, how: &'static str, count: u32, measure: f64) {
        let stats = self.graph.stats();
        let bytes_read = stats.since(&self.last_stats).bytes_read;
        let seconds = self.last.elapsed().as_secs_f64();
        self.graph.trace().span("stage", how, self.graph.threads() as u32, self.last);
        let entry = Iteration { iterations: count as usize, seconds, bytes_read, how, measure };
        let is_full = self.details.len() >= ENTRIES;
        match self.details.last_mut().filter(|last| is_full && last.how == how) {
            Some(last) => last.add(&entry),
            None => self.details.push(entry),
        }
        self.iterations += count as usize;
        self.last = Instant::now();
        self.last_stats = stats;
        self.progress.update(self.algorithm, self.iterations as u64, self.expected, "iterations");
    }

    /// Iterations so far.
    pub(crate) fn steps(&self) -> usize {
        self.iterations
    }

    pub(crate) fn finish(self, converged: bool) -> Result<RunReport> {
        let graph = self.graph;
        let manifest = graph.manifest();
        let seconds = self.start.elapsed().as_secs_f64();
        let iterations = self.iterations;
        let stats = graph.stats().since(&self.before);
        let pass_bytes =
            graph.pass_file().and_then(|f| manifest.files.get(f)).map_or(0, |f| f.bytes);
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
            threads: graph.threads(),
            iterations,
            seconds,
            seconds_per_iteration: (seconds - load_seconds) / iterations.max(1) as f64,
            edges_per_second: per_second(manifest.edges),
            arcs_per_second: per_second(manifest.arcs),
            bytes_read: stats.bytes_read,
            read_bandwidth: stats.bytes_read as f64 / seconds,
            pass_bytes,
            passes: stats.bytes_read as f64 / pass_bytes.max(1) as f64,
            resident_bytes: graph.resident_bytes(),
            wait_seconds: stats.wait_seconds,
            compute_seconds: stats.compute_seconds,
            peak_rss_bytes: peak_rss_bytes()?,
            converged,
            gpu: self.gpu.map(|gpu| gpu.at_end(self.graph, busy)),
            details: self.details,
        })
    }
}
