//! Builds a graph on disk from an [`EdgeSource`], in a given amount of memory.
//!
//! | stage | does | moves, an edge |
//! |---|---|---|
//! | `scan` | counts vertices and degrees, spools the edges | 8 bytes to disk |
//! | `order` | ranks vertices by degree, or keeps the user's order | |
//! | `partition` | gives each arc to the bucket of its row, by target and by source | 8 from disk, 5 to 8 a family to disk |
//! | a file each | loads a bucket, sorts it cell by cell, encodes, writes | 5 to 8 from disk |
//!
//! A bucket is what fits in memory and a cell what fits in a cache: two distributions by the
//! leading bits on the way to a radix sort by the rest (compare the external distribution sorts of
//! A. Aggarwal and J. Vitter, "The input/output complexity of sorting", 1988). No edge is sorted by
//! comparisons unless the same edge has several weights. Nothing depends on the number of threads
//! but the time. Temporary files bypass the page cache and have no names.
//!
//! Memory: 16 bytes a vertex at most (32 more where ids are mapped), and the rest of the budget for
//! buffers. Disk: 8 bytes an edge and 5 to 8 an arc besides the graph.

mod array;
mod cell;
mod commit;
mod counts;
mod family;
mod graph;
mod ids;
mod input;
mod lists;
mod load;
mod options;
mod order;
mod outputs;
mod partition;
mod parts;
mod plan;
mod progress;
mod report;
mod sample;
mod scan;
mod sort;
mod spool;
mod strips;
mod temporary;
mod tiles;
mod vertices;
mod write;

use std::path::Path;

use tiergraph_core::{Cancel, Error, ErrorKind, Progress, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::manifest::Codec;

pub use options::{
    BuildOptions, Direction, Duplicates, Ids, OrderChoice, Purpose, SelfLoops, WeightChoice,
};
pub use report::{BuildReport, Stage};

use crate::source::EdgeSource;
use commit::Written;
use graph::Graph;
use input::Input;
use order::{decide, permuted};
use progress::Ticker;
use report::Stages;
use vertices::Vertices;

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
    options.check()?;
    let weighted = wants_weights(source, options)?;
    let undirected = match options.direction {
        Direction::Auto => source.directed() == Some(false),
        Direction::Directed => false,
        Direction::Undirected => true,
    };
    let mut stages = Stages::start();
    let budget = plan::budget(options)?;
    let building = GraphDir::create(path, options.overwrite, &options.stripes)?;
    let dir = building.flat("");
    let hint = source.size_hint();
    let described = source.describe();
    let _page_cache = budget.reserve(plan::page_cache_bytes(&budget), "the page cache")?;
    let piece_edges = plan::piece_edges(&budget);
    let pieces = spool::WRITE_PIECES + spool::READ_PIECES;
    let spool_bytes = (pieces * piece_edges * spool::EDGE_BYTES) as u64;
    let spool_held = budget.reserve(spool_bytes, "the edges written aside")?;
    let mut input = Input::new(source, weighted, dir, piece_edges);

    let edges = hint.edges.unwrap_or(0);
    let ids = match options.ids {
        // All ids from 0 on are vertices: the map would be the identity.
        Ids::Map if hint.vertices.is_some() && input.source().vertices()?.is_none() => None,
        Ids::Map => {
            let run = (budget.left() / 64).clamp(1 << 12, 1 << 22) as usize;
            let mut ticker = Ticker::new(progress, "ids", "edges", edges);
            let ids = ids::collect(&mut input, run, &budget, &mut ticker, cancel)?;
            stages.end("ids");
            Some(ids)
        }
        Ids::Dense => None,
    };
    let scanned = {
        let mut ticker = Ticker::new(progress, "scan", "edges", edges);
        let sample = plan::sample_arcs(&budget);
        let ids = ids.as_ref();
        scan::scan(&mut input, ids, undirected, options, &budget, sample, &mut ticker, cancel)?
    };
    stages.end("scan");

    let (mut out, into, n) = (scanned.sources, scanned.targets, scanned.vertices);
    let total = |vertex: usize| u64::from(out[vertex]) + u64::from(into[vertex]);
    let ordering = decide(options.order, n, total, scanned.sample, &budget)?;
    let into = if undirected {
        for (out, into) in out.iter_mut().zip(into.iter()) {
            *out = out.checked_add(*into).ok_or_else(scan::too_many_edges)?;
        }
        None
    } else {
        Some(permuted(into, n, ordering.ranks.as_ref(), &budget)?)
    };
    let out = permuted(out, n, ordering.ranks.as_ref(), &budget)?;
    let mut graph = Graph::new(building, options, &budget, undirected, n, scanned.weights)?;
    graph.write_ids(ids.as_ref(), ordering.ranks.as_ref())?;
    stages.end("order");

    let mut graph = graph.plan(out, into, scanned.edges)?;
    let spooled = input.is_spooled();
    {
        let vertices =
            Vertices { ids: ids.as_ref(), drop_loops: options.self_loops == SelfLoops::Remove };
        let mut ticker = Ticker::new(progress, "partition", "edges", scanned.edges_read);
        let ranks = ordering.ranks.as_ref();
        graph.partition(&mut input, &vertices, ranks, &mut ticker, cancel)?;
    }
    stages.end("partition");
    drop((input, ids, ordering.ranks, spool_held));

    let written = graph.encode(&mut stages, progress, cancel)?;
    let Written { edges, arcs, strip_arcs } = written.counts;
    let manifest = written.commit(described, ordering.order)?;
    stages.end("commit");
    let (stages, seconds) = stages.finish();
    Ok(BuildReport {
        vertices: n as u64,
        edges,
        arcs,
        edges_read: scanned.edges_read,
        bytes: manifest.files.values().map(|file| file.bytes).sum(),
        files: manifest.files.len() as u64,
        stages,
        seconds,
        edges_per_second: scanned.edges_read as f64 / seconds.max(1e-9),
        order: ordering.order,
        why: ordering.why,
        spooled,
        strip_arcs,
    })
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
        (_, true) if options.codec == Codec::Packed && options.purpose == Purpose::Training => {
            refuse(
                "a layout that has weights",
                "rows only",
                "`--for both` adds tiles, which have weights; `--weights none` drops them",
            )
        }
        (_, true) => Ok(true),
    }
}
