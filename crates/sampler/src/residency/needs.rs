//! The bytes that a loader's parts take, before there is a loader.

use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_graph::Graph;

use crate::options::{LoaderOptions, Resident};
use crate::pipeline::loader::Loader;
use crate::pipeline::shared::Inputs;
use crate::residency::columns::Columns;
use crate::residency::extent::Extent;
use crate::residency::hotness::Hotness;
use crate::residency::offsets::Offsets;
use crate::residency::page_map::PageMap;
use crate::residency::room::{BatchBytes, UnderWay};
use crate::residency::rows::RowStore;
use crate::residency::sizes::Sizes;
use crate::sampling::sampler::Sampler;
use crate::sampling::table::TableKind;

/// The part of the memory, one in so many, that pages may take from hop to hop of a window.
pub(crate) const PAGES_SHARE: u64 = 8;

/// Bytes of a row of the features that batches come with, and how many rows there are.
pub(crate) fn rows_of(graph: &Graph, options: &LoaderOptions) -> Result<(usize, u64)> {
    let row_bytes = match &options.features {
        Some(name) => graph.features(name)?.row_bytes(),
        None => 0,
    };
    Ok((row_bytes, if row_bytes > 0 { graph.manifest().vertices } else { 0 }))
}

/// Bytes that a loader takes which keeps nothing that it can read, but for its batches: of
/// everything that it looks up in, of its threads, and of counting what batches want.
pub(crate) fn least_bytes(graph: &Graph, options: &LoaderOptions) -> Result<u64> {
    let (vertices, arcs) = (graph.manifest().vertices, graph.manifest().arcs);
    let pages = graph.row_pages(options.direction).map_or(0, |rows| rows.index.len() as u64);
    let (row_bytes, rows) = rows_of(graph, options)?;
    let sampler = Sampler::new(graph.vertices(), &options.sample)?.resident_bytes();
    let thread = sampler + graph.page_reader()?.resident_bytes();
    let least = Offsets::bytes_of(vertices, arcs)
        + PageMap::bytes_of(pages, vertices)
        + RowStore::bytes_of(0, rows, row_bytes)
        + Hotness::bytes_of(pages, vertices)
        + options.threads as u64 * thread;
    // Of any memory, one part in so many goes to pages.
    let pages = options.threads as u64 * options.retain_bytes as u64;
    Ok(least + pages.min(least.div_ceil(PAGES_SHARE - 1)))
}

/// As [`least_bytes`], with the largest batch that degrees allow.
pub(crate) fn bounded_bytes(
    graph: &Arc<Graph>,
    options: &LoaderOptions,
    seeds: Inputs<'_>,
) -> Result<u64> {
    let columns = Columns::load(graph, options.direction, &options.sample, Resident::NONE)?;
    let degrees = graph.degrees(options.direction)?;
    let offsets = Offsets::new(&degrees, graph.manifest().arcs)?;
    let most = Extent::bound(&offsets, options, seeds.seeds);
    let sizes = Sizes::of(graph, &columns, options)?;
    let hashed = TableKind::for_graph(graph.vertices()) == TableKind::Hashed;
    let (growth, scratch) = sizes.thread(most, hashed);
    let batch = BatchBytes { usual: 0, most: sizes.most(most), growth, scratch };
    let batches = UnderWay::least().bytes(batch);
    // Of any memory, one part in so many goes to pages.
    Ok(least_bytes(graph, options)? + batches + batches.div_ceil(PAGES_SHARE - 1))
}

/// Bytes of the columns that batches are made of: weights, times, numbers.
pub(crate) fn column_bytes(graph: &Arc<Graph>, options: &LoaderOptions) -> Result<[u64; 3]> {
    Ok(Columns::load(graph, options.direction, &options.sample, Resident::NONE)?.bytes())
}

/// Which columns stay in memory, and the bytes that are left of `capacity` then.
pub(crate) fn fit_columns([weights, times, numbers]: [u64; 3], capacity: u64) -> (Resident, u64) {
    let mut left = capacity;
    let mut fits = |bytes: u64, most: u64| {
        let fits = bytes <= most;
        left -= if fits { bytes } else { 0 };
        (fits, left)
    };
    let (weights, rest) = fits(weights, capacity);
    let (times, rest) = fits(times, rest);
    let (numbers, rest) = fits(numbers, rest / 2);
    (Resident { weights, times, numbers }, rest)
}

/// Bytes of the columns that stay in memory.
pub(crate) fn bytes_of([weights, times, numbers]: [u64; 3], resident: Resident) -> u64 {
    let of = |kept: bool, bytes: u64| if kept { bytes } else { 0 };
    of(resident.weights, weights) + of(resident.times, times) + of(resident.numbers, numbers)
}

/// Bytes that threads want to choose by weights and times that are read, beyond what `counter` holds.
pub(crate) fn bytes_to_choose(counter: &Loader, options: &LoaderOptions) -> u64 {
    let (topology, retain_bytes) = (counter.topology(), options.retain_bytes as u64);
    let bytes = |columns| topology.bytes_to_choose(columns, retain_bytes);
    let columns = topology.columns();
    let more = bytes(columns.chosen_by()).saturating_sub(bytes(columns.read_to_choose()));
    options.threads as u64 * more
}
