//! What a loader keeps where nobody says: what its graph's memory holds beside the batches.
//!
//! The first batches of an epoch are sampled to see how large they are. If neighbours and features
//! fit beside as many batches as may be under way, all is kept; else presampling
//! ([`Hotness`](crate::Hotness)) counts what is wanted, and a [`Plan`] chooses.
//!
//! Weights and times come before both, because every vertex that is expanded wants those of all its
//! arcs: each is kept if it fits whole. The edges' numbers, of which only the chosen arcs' are wanted,
//! are kept where they take no more than half of what is left then. What is not kept is read.

use std::sync::Arc;

use serde::Serialize;
use tiergraph_cache::RankedSet;
use tiergraph_core::Result;
use tiergraph_graph::Graph;

use crate::columns::Columns;
use crate::edges::EdgeValues;
use crate::hotness::{Hotness, Kept, Plan};
use crate::keep::Keep;
use crate::loader::Loader;
use crate::matrix::Matrix;
use crate::offsets::Offsets;
use crate::options::{LoaderOptions, Resident};
use crate::page_map::PageMap;
use crate::sample::Sampler;
use crate::shared::Inputs;
use crate::store::RowStore;

/// Batches that the caller holds: the one that is trained on, and the one that it takes next.
pub(crate) const HELD: u64 = 2;

/// The part of the memory, one in so many, that pages may take from hop to hop of a window.
pub(crate) const PAGES_SHARE: u64 = 8;

/// What a loader keeps in memory, and why no more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Fitted {
    /// Pages of neighbours that are kept, of how many.
    pub kept_pages: u64,
    /// Pages of neighbours.
    pub pages: u64,
    /// Whether all neighbours are kept unpacked.
    pub decoded: bool,
    /// Rows of features that are kept, of how many.
    pub kept_rows: u64,
    /// Rows of features.
    pub rows: u64,
    /// Bytes of weights, times and numbers of edges that are kept, of how many.
    pub kept_values_bytes: u64,
    /// Bytes of those that batches are made of.
    pub values_bytes: u64,
    /// Bytes for pages, rows and values.
    pub capacity_bytes: u64,
    /// Bytes of the largest batch of the first ones.
    pub batch_bytes: u64,
}

impl Loader {
    /// A loader for epochs over `seeds` that keeps what fits, chosen as `plan` says after sampling
    /// at most `presample` batches.
    ///
    /// # Errors
    /// As [`Loader::new`] and [`Loader::presample`]. What does not fit is said with the memory that
    /// all parts of the loader take, and not the one alone that was refused.
    pub fn fitted<'a>(
        graph: &Arc<Graph>,
        options: &LoaderOptions,
        seeds: impl Into<Inputs<'a>>,
        plan: &Plan,
        presample: usize,
    ) -> Result<(Self, Fitted)> {
        let least = least_bytes(graph, options)?;
        let opened = graph.budget().used();
        Self::fit(graph, options, seeds.into(), (plan, presample), least).map_err(|error| {
            match error.enough_bytes() {
                Some(enough) => error.enough(enough.max(opened + least)),
                None => error,
            }
        })
    }

    fn fit(
        graph: &Arc<Graph>,
        options: &LoaderOptions,
        seeds: Inputs<'_>,
        (plan, presample): (&Plan, usize),
        least: u64,
    ) -> Result<(Self, Fitted)> {
        let row_bytes = match &options.features {
            Some(name) => graph.features(name)?.row_bytes(),
            None => 0,
        };
        let before = graph.budget().left();
        let retain_bytes = (before / PAGES_SHARE) as usize / options.threads.max(1);
        let retain_bytes = options.retain_bytes.min(retain_bytes);
        let options = &LoaderOptions { retain_bytes, ..options.clone() };
        let counter = LoaderOptions { features: None, edge_features: None, ..options.clone() };
        // Counting is faster with neighbours in memory, but must not fail for them.
        let spare = before.saturating_sub(least).min(before / 2);
        let keep = Keep::all_within(graph, options.direction, spare);
        let all = column_bytes(graph, options)?;
        let (counted, _) = fit_columns(all, before / 4);
        let counter = LoaderOptions { resident: counted, ..counter };
        let counter = Self::new(Arc::clone(graph), counter, &keep, [])?;
        let mut fitted = Fitted {
            pages: counter.topology().map().pages(),
            rows: if row_bytes > 0 { graph.manifest().vertices } else { 0 },
            values_bytes: all.iter().sum(),
            batch_bytes: largest(&counter, options, seeds)?,
            ..Fitted::default()
        };
        let arcs = graph.manifest().arcs;
        // Offsets, maps and tables, which any loader of these batches holds.
        let fixed = (before - graph.budget().left())
            .saturating_sub(keep.bytes(fitted.pages, arcs) + bytes_of(all, counted))
            + (options.threads * options.retain_bytes) as u64
            + RankedSet::bytes_below(fitted.pages)
            + RowStore::bytes_of(0, fitted.rows, row_bytes);
        let under_way = (options.window + options.prefetch) as u64 + HELD;
        fitted.capacity_bytes = before.saturating_sub(fixed + under_way * fitted.batch_bytes);
        let (mut resident, mut left) = fit_columns(all, fitted.capacity_bytes);
        if !(resident.weights && resident.times) {
            fitted.capacity_bytes =
                fitted.capacity_bytes.saturating_sub(bytes_to_choose(&counter, options));
            (resident, left) = fit_columns(all, fitted.capacity_bytes);
        }
        fitted.kept_values_bytes = bytes_of(all, resident);
        let options = &LoaderOptions { resident, ..options.clone() };
        let all = Keep::Decoded.bytes(fitted.pages, arcs);
        let kept = match all + fitted.rows * row_bytes as u64 <= left {
            true => Kept {
                pages: (0..fitted.pages).collect(),
                vertices: (0..fitted.rows as u32).collect(),
            },
            false => {
                let hotness = counter.presample(0, seeds, presample)?;
                hotness.plan(plan, row_bytes, left)
            }
        };
        // What counted goes before what is kept comes.
        drop(counter);
        (fitted.kept_pages, fitted.kept_rows) =
            (kept.pages.len() as u64, kept.vertices.len() as u64);
        fitted.decoded =
            fitted.kept_pages == fitted.pages && all + fitted.kept_rows * row_bytes as u64 <= left;
        let keep = if fitted.decoded { Keep::Decoded } else { Keep::Pages(kept.pages) };
        let loader = Self::new(Arc::clone(graph), options.clone(), &keep, kept.vertices)?;
        Ok((loader, fitted))
    }
}

/// Bytes that a loader takes which keeps nothing that it can read, but for its batches: of
/// everything that it looks up in, of its threads, and of counting what batches want.
fn least_bytes(graph: &Graph, options: &LoaderOptions) -> Result<u64> {
    let (vertices, arcs) = (graph.manifest().vertices, graph.manifest().arcs);
    let pages = graph.row_pages(options.direction).map_or(0, |rows| rows.index.len() as u64);
    let row_bytes = match &options.features {
        Some(name) => graph.features(name)?.row_bytes(),
        None => 0,
    };
    let rows = if row_bytes > 0 { vertices } else { 0 };
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

/// Bytes of the columns that batches are made of: weights, times, numbers.
fn column_bytes(graph: &Arc<Graph>, options: &LoaderOptions) -> Result<[u64; 3]> {
    Ok(Columns::load(graph, options.direction, &options.sample, Resident::NONE)?.bytes())
}

/// Which columns stay in memory, and the bytes that are left of `capacity` then.
fn fit_columns([weights, times, numbers]: [u64; 3], capacity: u64) -> (Resident, u64) {
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
fn bytes_of([weights, times, numbers]: [u64; 3], resident: Resident) -> u64 {
    let of = |kept: bool, bytes: u64| if kept { bytes } else { 0 };
    of(resident.weights, weights) + of(resident.times, times) + of(resident.numbers, numbers)
}

/// Bytes that threads want to choose by weights and times that are read, beyond what `counter` holds.
fn bytes_to_choose(counter: &Loader, options: &LoaderOptions) -> u64 {
    let (topology, retain_bytes) = (counter.topology(), options.retain_bytes as u64);
    let bytes = |columns| topology.bytes_to_choose(columns, retain_bytes);
    let columns = topology.columns();
    let more = bytes(columns.chosen_by()).saturating_sub(bytes(columns.read_to_choose()));
    options.threads as u64 * more
}

/// The most bytes of one of the first batches, with the features that it comes with.
fn largest(counter: &Loader, options: &LoaderOptions, seeds: Inputs<'_>) -> Result<u64> {
    let graph = &counter.0.graph;
    let features = options.features.as_ref().map(|name| graph.features(name)).transpose()?;
    let of_edges =
        options.edge_features.as_ref().map(|name| graph.edge_features(name)).transpose()?;
    let columns = counter.topology().columns();
    let mut most = 0;
    for prepared in counter.epoch(0, seeds, 0)?.take(options.window) {
        let batch = prepared?.batch;
        let rows = batch.n_id.len();
        let x = features.map_or(0, |f| Matrix::bytes_of(f, rows, options.delivery));
        let edges = EdgeValues::bytes_of(batch.e_id.len(), columns, of_edges);
        most = most.max(x + edges + batch.resident_bytes());
    }
    Ok(most)
}
