//! What a loader keeps where nobody says: what its graph's memory holds beside the batches.
//!
//! The first batches of an epoch are sampled to see how large they are. If neighbours and features
//! fit beside as many batches as may be under way, all is kept; else presampling
//! ([`Hotness`](crate::Hotness)) counts what is wanted, and a [`Plan`] chooses.
//!
//! The largest batch that may come ([`extent`](crate::residency::extent)) has room before anything is kept, so
//! that no epoch ends for lack of memory. Where fewer batches fit than were asked for, the others wait
//! ([`room`](crate::residency::room)); where not even one fits beside those that the caller holds, there is no
//! loader.
//!
//! Weights and times come before both, because every vertex that is expanded wants those of all its
//! arcs: each is kept if it fits whole. The edges' numbers, of which only the chosen arcs' are wanted,
//! are kept where they take no more than half of what is left then. What is not kept is read.

use std::sync::Arc;

use serde::Serialize;
use tiergraph_cache::RankedSet;
use tiergraph_core::{ByteSize, Error, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::PAGE_BYTES;

use crate::options::{LoaderOptions, PerThread, Resident};
use crate::pipeline::loader::Loader;
use crate::pipeline::shared::Inputs;
use crate::residency::extent::{Counted, Extent};
use crate::residency::hotness::{Hotness, Kept, Plan};
use crate::residency::needs::{
    PAGES_SHARE, bounded_bytes, bytes_of, bytes_to_choose, column_bytes, fit_columns, least_bytes,
    rows_of,
};
use crate::residency::neighbors::Keep;
use crate::residency::room::{BatchBytes, UnderWay};
use crate::residency::rows::RowStore;
use crate::residency::sizes::Sizes;
use crate::sampling::table::TableKind;

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
    /// Bytes of the largest batch that was counted.
    pub batch_bytes: u64,
    /// The most bytes of any batch that may come.
    pub most_batch_bytes: u64,
    /// The most nodes of any batch that may come.
    pub most_nodes: u64,
    /// The most edges of any batch that may come.
    pub most_edges: u64,
    /// Nodes of the largest batch that was counted: seeds, then each hop's.
    pub hop_nodes: Vec<usize>,
    /// Edges of that batch by hop.
    pub hop_edges: Vec<usize>,
    /// Batches that are prepared together: fewer than asked for where more do not fit.
    pub window: usize,
    /// Threads that prepare batches: one where windows would not fit beside each other.
    pub threads: usize,
    /// Batches that were to be prepared together.
    pub asked_window: usize,
    /// The least memory that a loader of these batches runs in.
    pub enough_bytes: u64,
}

impl Loader {
    /// A loader for epochs over `seeds` that keeps what fits, chosen as `plan` says after sampling
    /// at most `presample` batches.
    ///
    /// # Errors
    /// As [`Loader::new`] and [`Loader::presample`]; [`ErrorKind::Budget`](tiergraph_core::ErrorKind)
    /// where the largest batch that may come has no room. What does not fit is said with the memory
    /// that all parts of the loader take, and not the one alone that was refused.
    pub fn fitted<'a>(
        graph: &Arc<Graph>,
        options: &LoaderOptions,
        seeds: impl Into<Inputs<'a>>,
        plan: &Plan,
        presample: usize,
    ) -> Result<(Self, Fitted)> {
        let (opened, seeds) = (graph.budget().used(), seeds.into());
        let bounded = |error: Error| match error.enough_bytes() {
            Some(enough) => match bounded_bytes(graph, options, seeds) {
                Ok(bytes) => error.enough(enough.max(opened + bytes)),
                Err(other) => other,
            },
            None => error,
        };
        let mut fitting = Fitting::begin(graph, options, seeds, presample).map_err(bounded)?;
        let hotness = fitting.count_if_tight().map_err(bounded)?;
        fitting.place(plan, hotness)
    }

    /// The least memory of the graph that [`fitted`](Self::fitted) makes a loader of these in. The
    /// graph must have been opened with enough for counting.
    ///
    /// # Errors
    /// As [`Loader::fitted`].
    pub fn enough_bytes<'a>(
        graph: &Arc<Graph>,
        options: &LoaderOptions,
        seeds: impl Into<Inputs<'a>>,
        presample: usize,
    ) -> Result<u64> {
        let least = graph.budget().used() + least_bytes(graph, options)?;
        let mut fitting = Fitting::begin(graph, options, seeds.into(), presample)?;
        fitting.count_all()?;
        let batch = fitting.batch_bytes(fitting.most())?;
        Ok(fitting.enough_bytes(batch).max(least))
    }
}

/// A loader that is being fitted to its graph's memory.
struct Fitting<'a> {
    graph: &'a Arc<Graph>,
    options: LoaderOptions,
    seeds: Inputs<'a>,
    presample: usize,
    /// Bytes reserved before there is anything of a loader, and bytes that are left then.
    opened: u64,
    before: u64,
    /// Bytes of offsets, maps and tables, which any loader of these batches holds.
    fixed: u64,
    /// Bytes of the weights, times and numbers of edges.
    columns: [u64; 3],
    counter: Loader,
    counted: Counted,
    bound: Extent,
    fitted: Fitted,
}

impl<'a> Fitting<'a> {
    /// Looks at the first batches of an epoch.
    fn begin(
        graph: &'a Arc<Graph>,
        options: &LoaderOptions,
        seeds: Inputs<'a>,
        presample: usize,
    ) -> Result<Self> {
        let (opened, before) = (graph.budget().used(), graph.budget().left());
        let retain_bytes = (before / PAGES_SHARE) as usize / options.threads.max(1);
        let retain_bytes = options.retain_bytes.min(retain_bytes);
        let options = LoaderOptions { retain_bytes, ..options.clone() };
        let least = least_bytes(graph, &options)?;
        let counting = LoaderOptions { features: None, edge_features: None, ..options.clone() };
        // Counting is faster with neighbours in memory, but must not fail for them.
        let spare = before.saturating_sub(least).min(before / 2);
        let keep = Keep::all_within(graph, options.direction, spare);
        let columns = column_bytes(graph, &options)?;
        let (resident, _) = fit_columns(columns, before / 4);
        let counter =
            Loader::new(Arc::clone(graph), LoaderOptions { resident, ..counting }, &keep, [])?;
        let (row_bytes, rows) = rows_of(graph, &options)?;
        let fitted = Fitted {
            pages: counter.topology().map().pages(),
            rows,
            values_bytes: columns.iter().sum(),
            ..Fitted::default()
        };
        let kept = keep.bytes(fitted.pages, graph.manifest().arcs) + bytes_of(columns, resident);
        let edge_rows = match &options.edge_features {
            Some(name) => graph.edge_features(name)?.rows().max(graph.manifest().vertices),
            None => 0,
        };
        let pages = match counter.topology().is_resident() {
            true => 0,
            false => (options.threads * options.retain_bytes) as u64,
        };
        let fixed = (before - graph.budget().left()).saturating_sub(kept + pages)
            + RankedSet::bytes_below(fitted.pages)
            + RankedSet::bytes_below(edge_rows)
            + RowStore::bytes_of(0, rows, row_bytes);
        let bound = Extent::bound(counter.topology().offsets(), &options, seeds.seeds);
        let counted = Counted::default();
        let mut this = Self {
            graph,
            options,
            seeds,
            presample,
            opened,
            before,
            fixed,
            columns,
            counter,
            counted,
            bound,
            fitted,
        };
        this.count(this.options.window, None)?;
        Ok(this)
    }

    /// Samples the first `batches` of an epoch and counts what they have, and what they want.
    fn count(&mut self, batches: usize, mut hotness: Option<&mut Hotness>) -> Result<()> {
        let (counter, mut counted) = (&self.counter, Counted::default());
        let sizes = Sizes::of(self.graph, counter.topology().columns(), &self.options)?;
        counter.for_each_window(0, self.seeds, batches, |window| {
            window.iter().for_each(|batch| counted.add(batch, sizes.batch(batch)));
            if let Some(hotness) = &mut hotness {
                hotness.record(counter.topology(), window);
            }
        })?;
        self.counted = counted;
        Ok(())
    }

    /// Counts what the batches of an epoch have and want, as many as may be presampled.
    fn count_all(&mut self) -> Result<Hotness> {
        let topology = self.counter.topology();
        let counts = Hotness::bytes_of(topology.map().pages(), self.graph.manifest().vertices);
        let _held = self.graph.reserve(counts, "the counts of what batches want")?;
        let mut hotness = Hotness::new(topology);
        self.count(self.presample, Some(&mut hotness))?;
        Ok(hotness)
    }

    /// The most nodes and edges of a batch, as far as it was counted.
    fn most(&self) -> Extent {
        let batches = match self.options.drop_last {
            true => self.seeds.seeds.len() / self.options.batch_size,
            false => self.seeds.seeds.len().div_ceil(self.options.batch_size),
        };
        match self.counted.expected(&self.options, batches) {
            Some(expected) => self.bound.min(expected),
            None => self.bound,
        }
    }

    fn batch_bytes(&self, most: Extent) -> Result<BatchBytes> {
        let sizes = Sizes::of(self.graph, self.counter.topology().columns(), &self.options)?;
        let kind = TableKind::for_graph(self.graph.vertices());
        let (growth, scratch) = sizes.thread(most, kind == TableKind::Hashed);
        Ok(BatchBytes { usual: self.counted.bytes, most: sizes.most(most), growth, scratch })
    }

    /// Bytes for batches and for what is kept.
    fn room(&self) -> u64 {
        let pages = (self.options.threads * self.options.retain_bytes) as u64;
        self.before.saturating_sub(self.fixed + pages)
    }

    /// The least memory of the graph that holds such batches, and no rows or pages that can be read.
    fn enough_bytes(&self, batch: BatchBytes) -> u64 {
        let threads = self.options.threads;
        let to_choose = bytes_to_choose(&self.counter, &self.options);
        let least = self.fixed + UnderWay::least().bytes(batch) + to_choose;
        // Of any memory, one part in so many goes to pages, and no more than so many bytes.
        let pages = LoaderOptions::RETAIN_BYTES.max(self.options.retain_bytes) * threads;
        let pages = (pages as u64).min(least.div_ceil(PAGES_SHARE - 1));
        // Shares that are rounded differ by some bytes from memory to memory.
        self.opened + least + pages + PAGE_BYTES as u64
    }

    /// Bytes for batches where nothing is kept.
    fn room_for_batches(&self) -> u64 {
        self.room().saturating_sub(bytes_to_choose(&self.counter, &self.options))
    }

    /// How many batches may be under way, no more than asked for.
    fn under_way(&self, batch: BatchBytes) -> Result<UnderWay> {
        let room = self.room_for_batches();
        if let Some(fitting) = UnderWay::asked(&self.options).fitting(batch, room) {
            return Ok(fitting);
        }
        let most = ByteSize(batch.most);
        let what =
            format!("batches of up to {most} (a smaller `--batch-size` or `--fanout` needs less)");
        let error = self.graph.budget().refusal(UnderWay::least().bytes(batch), room, &what);
        Err(error.enough(self.enough_bytes(batch)))
    }

    /// Counts an epoch, unless everything fits beside as many of the largest batches as asked for.
    fn count_if_tight(&mut self) -> Result<Option<Hotness>> {
        let (row_bytes, rows) = rows_of(self.graph, &self.options)?;
        let neighbors = Keep::Decoded.bytes(self.fitted.pages, self.graph.manifest().arcs);
        let everything = neighbors + rows * row_bytes as u64 + self.fitted.values_bytes;
        let batch = self.batch_bytes(self.bound)?;
        let asked = UnderWay::asked(&self.options).bytes(batch);
        match asked.saturating_add(everything) > self.room() {
            true => self.count_all().map(Some),
            false => Ok(None),
        }
    }

    /// Chooses what is kept beside the batches, and makes the loader. `hotness` is of an epoch that
    /// was counted.
    fn place(self, plan: &Plan, hotness: Option<Hotness>) -> Result<(Loader, Fitted)> {
        let (row_bytes, arcs) = (rows_of(self.graph, &self.options)?.0, self.graph.manifest().arcs);
        let neighbors = Keep::Decoded.bytes(self.fitted.pages, arcs);
        let all_rows = self.fitted.rows * row_bytes as u64;
        let most = if hotness.is_some() { self.most() } else { self.bound };
        let batch = self.batch_bytes(most)?;
        let under_way = self.under_way(batch)?;
        let together = under_way.together(batch, self.room_for_batches());
        let (resident, left) = self.fit_columns(under_way.bytes(batch));
        let kept = match hotness {
            Some(hotness) if neighbors + all_rows > left => hotness.plan(plan, row_bytes, left),
            _ => Kept {
                pages: (0..self.fitted.pages).collect(),
                vertices: (0..self.fitted.rows as u32).collect(),
            },
        };
        let enough_bytes = self.enough_bytes(batch);
        let Self { graph, options, counter, counted, mut fitted, columns, .. } = self;
        // What counted goes before what is kept comes.
        drop(counter);
        fitted.capacity_bytes = left + bytes_of(columns, resident);
        fitted.kept_values_bytes = bytes_of(columns, resident);
        (fitted.kept_pages, fitted.kept_rows) =
            (kept.pages.len() as u64, kept.vertices.len() as u64);
        fitted.decoded = fitted.kept_pages == fitted.pages
            && neighbors + fitted.kept_rows * row_bytes as u64 <= left;
        (fitted.batch_bytes, fitted.most_batch_bytes) = (batch.usual, batch.most);
        (fitted.most_nodes, fitted.most_edges) = (most.nodes, most.edges);
        (fitted.hop_nodes, fitted.hop_edges) = (counted.hops.nodes, counted.hops.edges);
        (fitted.window, fitted.asked_window) = (together, options.window);
        fitted.threads = under_way.threads;
        fitted.enough_bytes = enough_bytes;
        let keep = if fitted.decoded { Keep::Decoded } else { Keep::Pages(kept.pages) };
        let UnderWay { window, prefetch, threads } = under_way;
        let per_thread =
            PerThread { growth_bytes: batch.growth, scratch_bytes: window as u64 * batch.scratch };
        let options = LoaderOptions { resident, window, prefetch, threads, per_thread, ..options };
        let loader = Loader::new(Arc::clone(graph), options, &keep, kept.vertices)?;
        Ok((loader, fitted))
    }

    /// Which columns stay in memory beside batches of so many bytes, and the bytes left then.
    fn fit_columns(&self, batches: u64) -> (Resident, u64) {
        let capacity = self.room().saturating_sub(batches);
        let (resident, left) = fit_columns(self.columns, capacity);
        if resident.weights && resident.times {
            return (resident, left);
        }
        let to_choose = bytes_to_choose(&self.counter, &self.options);
        fit_columns(self.columns, capacity.saturating_sub(to_choose))
    }
}
