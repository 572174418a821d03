//! Builds a graph on disk from an [`EdgeSource`], in a given amount of memory.
//!
//! | stage | does | moves, an edge |
//! |---|---|---|
//! | `scan` | counts vertices and degrees, spools the edges, finds ids that none has | 8 bytes to disk |
//! | `order` | ranks vertices by degree, or keeps the user's order | |
//! | `partition` | gives each arc to the bucket of its row | 8 from disk, 4 to 8 a family to disk |
//! | `tiles.blocks` | loads a bucket, sorts it part by part, encodes, writes | 4 to 8 from disk |
//! | `*.rows` | reads the tiles again, gives each arc to the lists of its ends, packs, writes | 2 to 4 from disk |
//!
//! What of the buckets memory has room for stays there. A bucket is what fits in memory and a part
//! what fits in a core's first cache: two distributions by the leading bits on the way to a radix
//! sort by the rest (compare the external distribution sorts of
//! A. Aggarwal and J. Vitter, "The input/output complexity of sorting", 1988). No edge is sorted by
//! comparisons unless the same edge has several weights. A family is all arcs in buckets by one kind of row: tiles
//! have one, raw blocks and rows without tiles one for each file. Nothing depends on the number of threads
//! but the time. The temporary file bypasses the page cache and has no name.
//!
//! Memory: 16 bytes a vertex at most, 12 where edges have no direction (32 more where ids are mapped), and the rest
//! of the budget for buffers. Disk: 8 bytes an edge, whose places the arcs take (only these, 4 to 8 bytes each, for
//! sources that are read again), besides the graph, until it is in its place.

mod ahead;
mod array;
mod commit;
mod graph;
mod input;
mod needs;
mod options;
mod outputs;
mod partition;
mod plan;
mod progress;
mod report;
mod scratch;
mod spool;
mod vertices;
mod write;

use std::path::Path;

use tiergraph_core::{Cancel, Error, ErrorKind, Progress, Result, threads};
use tiergraph_format::directory::{Assembled, GraphDir};
use tiergraph_format::features::NewFiles;
use tiergraph_format::manifest::Codec;
use tiergraph_mem::{Budget, MemoryPlan};

pub use options::{
    BuildOptions, Direction, Duplicates, Ids, OrderChoice, Purpose, SelfLoops, WeightChoice,
};
pub use report::{BuildReport, Stage, Unfinished};

pub(crate) use input::visit_source;
pub(crate) use progress::Ticker;

use crate::edges::{EdgeAddition, NewColumn, NodeTimes};
use crate::source::EdgeSource;
use array::Array;
use commit::Written;
use graph::Graph;
use input::Input;
use needs::{Needs, Seen};
use report::Stages;
use scratch::{Expected, Room, Scratch};
use vertices::Vertices;
use vertices::order::{Ordering, decide, permuted};
use vertices::scan::{Scanned, too_many_edges};

/// Builds the graph of `source`'s edges at `path`.
///
/// An error, a cancellation or a crash leaves what was at `path` before.
///
/// # Errors
/// The source's; input errors for options and edges that do not fit together; a budget error when
/// `options.memory` cannot hold what is needed, with how much could; I/O errors.
///
/// # Example
/// ```
/// use tiergraph_core::{Cancel, Silent};
/// use tiergraph_ingest::build::{BuildOptions, build};
/// use tiergraph_ingest::source::memory::{ArraySource, MemorySpec};
/// use tiergraph_ingest::{EdgeBatch, Endpoints};
///
/// let ends = Endpoints::U32 { src: vec![0, 1, 2, 3, 4, 5], dst: vec![1, 2, 0, 4, 5, 3] };
/// let mut source = ArraySource::new(
///     MemorySpec { name: "two triangles".into(), ..MemorySpec::default() },
///     vec![EdgeBatch { ends, weights: None }],
/// )?;
/// let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("triangles.tg");
/// let report =
///     build(&mut source, &path, &BuildOptions::default(), &Silent, &Cancel::default())?;
/// assert_eq!((report.vertices, report.edges), (6, 6));
/// # Ok::<(), tiergraph_core::Error>(())
/// ```
pub fn build(
    source: &mut dyn EdgeSource,
    path: &Path,
    options: &BuildOptions,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<BuildReport> {
    assemble(source, path, options, progress, cancel)?.commit()
}

/// A graph that is written but for its manifest. Dropped, it leaves what was at its path before.
pub struct Assembly {
    graph: Assembled,
    report: Unfinished,
    memory: Option<u64>,
    /// With the temporary file, dropped last: a file system that tells the device of free space (`discard`) does
    /// so before it forces anything else to it.
    _scratch: Scratch,
}

impl Assembly {
    /// Writes the manifest and puts the graph in its place.
    ///
    /// # Errors
    /// I/O errors.
    pub fn commit(self) -> Result<BuildReport> {
        let graph = self.graph.commit(NewFiles::default())?;
        self.report.finish(graph.manifest())
    }

    /// Begins to add values of the edges, which the caller then pushes in the order of the source.
    /// Finishing that addition puts the graph in its place; its manifest then finishes the report.
    ///
    /// # Errors
    /// As [`EdgeAddition::to`].
    pub fn with_values(
        self,
        columns: Vec<NewColumn>,
        node_times: Vec<NodeTimes>,
    ) -> Result<(EdgeAddition, Unfinished)> {
        let budget = Budget::of(self.memory)?;
        let addition = EdgeAddition::to(Box::new(self.graph), columns, node_times, &budget)?;
        Ok((addition, self.report))
    }
}

/// Builds as [`build`] does, but leaves it to the caller to commit the graph.
///
/// # Errors
/// As [`build`].
pub fn assemble(
    source: &mut dyn EdgeSource,
    path: &Path,
    options: &BuildOptions,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Assembly> {
    write_all(source, path, options, progress, cancel).map_err(scratch::full)
}

/// Runs every stage of a build.
fn write_all(
    source: &mut dyn EdgeSource,
    path: &Path,
    options: &BuildOptions,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Assembly> {
    options.check()?;
    let names = source.names();
    if names.is_none() && options.ids == Ids::Names {
        let error = Error::new(ErrorKind::Input, "read names of vertices from");
        return Err(error.object(source.describe()).expected("text or a table").got("numbers"));
    }
    // Every name is a vertex, and its number is the vertex.
    let numbered = names.is_some().then(|| BuildOptions { ids: Ids::Dense, ..options.clone() });
    let options = numbered.as_ref().unwrap_or(options);
    let weighted = wants_weights(source, options)?;
    let undirected = match options.direction {
        Direction::Auto => source.directed() == Some(false),
        Direction::Directed => false,
        Direction::Undirected => true,
    };
    let mut notes = source.notes();
    let synthetic = source.synthetic();
    let mut stages = Stages::start();
    let (budget, refused) = plan::budget(options)?;
    names.iter().try_for_each(|names| names.count_in(&budget))?;
    let building = GraphDir::create(path, options.overwrite, &options.stripes)?;
    let described = source.describe();
    source.keep_within(budget.limit());
    let needs = Needs {
        options,
        undirected,
        weighted,
        memory: budget.limit(),
        source: source.held_bytes(),
        source_at_most: source.held_bytes_at_most(),
        claimed: None,
        mapped: None,
    };
    let piece_edges = plan::piece_edges(budget.limit());
    let spool_bytes = (spool::PIECES * piece_edges * spool::EDGE_BYTES) as u64;
    let page_cache_bytes = plan::page_cache_bytes(budget.limit());
    let fixed = MemoryPlan::default()
        .and("the process", options.process_bytes)
        .and("the edges that are being read", needs.source)
        .and("the page cache", page_cache_bytes)
        .and("the edges written aside", spool_bytes);
    // Where this does not fit already, the edges are looked at, to say at once what does.
    let does_not_fit = || fixed.refused(&budget, &MemoryPlan::default());
    let refused = refused.or_else(|| (fixed.bytes() > budget.limit()).then(does_not_fit));
    let _process = budget.count(options.process_bytes + page_cache_bytes);
    let (source_held, spool_held) = (budget.count(needs.source), budget.count(spool_bytes));
    let scratch = Scratch::new(options.scratch.as_deref(), building.flat(""))?;
    let (expected_edges, is_spooled) = (scratch::expected_edges(source), !source.reads_again());
    let room = |vertices, edges| {
        let written = Expected { undirected, weighted, vertices, edges, is_spooled };
        Room::new(options, written, budget.limit())
    };
    if refused.is_none() {
        scratch.check(room(source.size_hint().vertices, expected_edges), &building.flat(""))?;
    }
    let mut input = Input::new(source, weighted, &scratch, progress, piece_edges);
    let job = Job { options, undirected, budget: &budget, needs, progress, cancel };

    let mut found = job.identify(&mut input, refused, &mut notes, &mut stages)?;
    let scanned = &mut found.scanned;
    // A source that is not read again is done with.
    let source_held = (!input.is_spooled()).then_some(source_held);
    let (n, weights, edges_read) = (scanned.vertices, scanned.weights, scanned.edges_read);
    let seen = Seen::counted(n as u64, scanned.edges, [&scanned.sources, &scanned.targets]);
    let needs = found.needs;
    scratch.check(room(Some(n as u64), scanned.edges), &building.flat(""))?;
    let refuse = |error| needs.refuse(error, budget.limit(), &seen);
    let (mut ordering, out, into) = job.order(scanned).map_err(refuse)?;
    let mut graph = Graph::new(building, options, &budget, &scratch, undirected, n, weights)?;
    graph.write_ids(found.user_ids(), ordering.ranks.as_ref()).map_err(refuse)?;
    graph.write_names(names, n)?;
    found.arrange(&mut ordering.ranks, &budget).map_err(refuse)?;
    stages.end("order");

    let mut graph = graph.plan(out, into, &seen).map_err(refuse)?;
    let spooled = input.is_spooled();
    {
        let drop_loops = options.self_loops == SelfLoops::Remove;
        let vertices = Vertices { ids: found.ids.as_ref(), drop_loops };
        let mut ticker = Ticker::new(progress, "partition", "edges", edges_read);
        let ranks = found.lookup(ordering.ranks.as_ref());
        graph.partition(&mut input, &vertices, ranks, &mut ticker, cancel)?;
    }
    stages.end("partition");
    drop((input, found, ordering.ranks, spool_held, source_held));

    let written = graph.encode(&mut stages, progress, cancel).map_err(refuse)?;
    let Written { edges, arcs, strip_arcs, repeats } = written.counts;
    if undirected && !synthetic {
        notes.extend(report::reciprocal(arcs, repeats));
    }
    let graph = written.assemble(described, ordering.order, progress, cancel)?;
    let report = BuildReport {
        vertices: n as u64,
        edges,
        arcs,
        edges_read,
        bytes: 0,
        files: 0,
        stages: Vec::new(),
        seconds: 0.0,
        edges_per_second: 0.0,
        scratch_bytes: scratch.most(),
        peak_rss_bytes: 0,
        order: ordering.order,
        why: ordering.why,
        spooled,
        strip_arcs,
        notes,
    };
    let report = Unfinished { report, stages };
    Ok(Assembly { graph, report, memory: options.memory, _scratch: scratch })
}

/// The settings that the stages share until the graph's vertices are known.
struct Job<'a> {
    options: &'a BuildOptions,
    undirected: bool,
    budget: &'a Budget,
    needs: Needs<'a>,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
}

impl Job<'_> {
    /// Chooses the order of vertices, and permutes the degrees to it: of both directions if directed.
    fn order(&self, scanned: &mut Scanned) -> Result<(Ordering, Array<u32>, Option<Array<u32>>)> {
        let (mut out, into) =
            (std::mem::take(&mut scanned.sources), std::mem::take(&mut scanned.targets));
        let (n, sample) = (scanned.vertices, std::mem::take(&mut scanned.sample));
        let decide = |degree: &dyn Fn(usize) -> u64| {
            decide(self.options.order, n, degree, sample, self.budget)
        };
        if self.undirected {
            for (out, into) in out.iter_mut().zip(into.iter()) {
                *out = out.checked_add(*into).ok_or_else(too_many_edges)?;
            }
            drop(into);
            let ordering = decide(&|vertex| u64::from(out[vertex]))?;
            let out = permuted(out, n, ordering.ranks.as_ref(), self.budget)?;
            return Ok((ordering, out, None));
        }
        let ordering = decide(&|vertex| u64::from(out[vertex]) + u64::from(into[vertex]))?;
        let ranks = ordering.ranks.as_ref();
        let (into, out) = std::thread::scope(|scope| -> Result<_> {
            let into =
                threads::start_in(scope, "permute", || permuted(into, n, ranks, self.budget))?;
            let out = permuted(out, n, ranks, self.budget);
            let into = into.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((into?, out?))
        })?;
        Ok((ordering, out, Some(into)))
    }
}

/// Whether the source's weights are kept.
fn wants_weights(source: &dyn EdgeSource, options: &BuildOptions) -> Result<bool> {
    let refuse = |expected: &str, got: &str, hint: &str| {
        let error = Error::new(ErrorKind::Input, "keep the weights of").object(source.describe());
        Err(error.expected(expected).got(got).hint(hint))
    };
    match (options.weights, source.weighted()) {
        (WeightChoice::None, _) | (WeightChoice::Auto, false) => Ok(false),
        (_, false) => refuse("a weighted source", "no weights", "`--weights none`"),
        (_, true)
            if options.codec == Codec::Packed
                && matches!(options.purpose, Purpose::Training | Purpose::Sampling) =>
        {
            refuse(
                "a layout that has weights",
                "rows only",
                "`--for both` adds tiles, which have weights; `--weights none` drops them",
            )
        }
        (_, true) => Ok(true),
    }
}
