//! The report of a build.

use std::time::Instant;

use serde::Serialize;
use tiergraph_core::Result;
use tiergraph_format::manifest::{Manifest, Order};
use tiergraph_mem::peak_rss_bytes;

/// The report of a build: what it wrote, and where its time went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BuildReport {
    /// The number of vertices, isolated ones included.
    pub vertices: u64,
    /// The number of edges as the user counts them, without those that were removed.
    pub edges: u64,
    /// The number of arcs that a pass visits.
    pub arcs: u64,
    /// The number of edges that the source handed out.
    pub edges_read: u64,
    /// Bytes of all files of the graph, without the manifest.
    pub bytes: u64,
    /// The number of files of the graph, without the manifest.
    pub files: u64,
    /// The seconds of each stage, in their order.
    pub stages: Vec<Stage>,
    /// Seconds of the whole build.
    pub seconds: f64,
    /// Edges read a second, over the whole build.
    pub edges_per_second: f64,
    /// The most bytes that temporary files held at a time.
    pub scratch_bytes: u64,
    /// The most memory that the process has had resident so far.
    pub peak_rss_bytes: u64,
    /// The order in which vertices are stored.
    pub order: Order,
    /// Why this order was chosen.
    pub why: String,
    /// Whether edges were spooled to a temporary file between passes, not read again from the source.
    pub spooled: bool,
    /// The most arcs of a strip, whose default depends on the memory budget.
    pub strip_arcs: u64,
    /// Sentences about what was noticed in the input, or decided for the user.
    pub notes: Vec<String>,
}

/// A report without the values that are known when the graph is in its place.
#[derive(Debug)]
pub struct Unfinished {
    pub(super) report: BuildReport,
    pub(super) stages: Stages,
}

impl Unfinished {
    /// Ends the last stage and completes the report; `manifest` is the graph's.
    ///
    /// # Errors
    /// The system does not say how much memory the process took.
    pub fn finish(mut self, manifest: &Manifest) -> Result<BuildReport> {
        self.stages.end("commit");
        let (stages, seconds) = self.stages.finish();
        let edges_per_second = self.report.edges_read as f64 / seconds.max(1e-9);
        Ok(BuildReport {
            bytes: manifest.files.values().map(|file| file.bytes).sum(),
            files: manifest.files.len() as u64,
            stages,
            seconds,
            edges_per_second,
            peak_rss_bytes: peak_rss_bytes()?,
            ..self.report
        })
    }
}

/// A note on an undirected graph of `arcs` arcs, of which `repeats` are equal to another; `None` if few
/// are. Where most edges are listed in both directions, every degree is twice what it should be.
pub(super) fn reciprocal(arcs: u64, repeats: u64) -> Option<String> {
    (repeats > 0 && repeats * 5 >= arcs * 2).then(|| {
        let percent = 100 * repeats / arcs;
        format!(
            "{percent} % of the edges are there once more, as those of a list that has each edge in \
             both directions are; `--dedup` keeps one of each"
        )
    })
}

/// A stage and its time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// The stage's name: `ids`, `scan`, `order`, `partition`, the file that it wrote, or `commit`.
    pub name: &'static str,
    /// Seconds since the stage before it ended.
    pub seconds: f64,
}

/// A stopwatch of stages.
#[derive(Debug)]
pub(super) struct Stages {
    begin: Instant,
    last: Instant,
    done: Vec<Stage>,
}

impl Stages {
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self { begin: now, last: now, done: Vec::new() }
    }

    /// Ends the stage that began when the last one ended.
    pub(super) fn end(&mut self, name: &'static str) {
        let now = Instant::now();
        let seconds = now.duration_since(self.last).as_secs_f64();
        self.last = now;
        self.done.push(Stage { name, seconds });
    }

    pub(super) fn finish(self) -> (Vec<Stage>, f64) {
        (self.done, self.begin.elapsed().as_secs_f64())
    }
}
