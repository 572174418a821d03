//! What a loader of several types keeps where nobody says: what its graph's memory holds beside the
//! batches. As [`fit`](crate::residency::memory_plan) does it for one type.

use std::sync::Arc;

use tiergraph_cache::RankedSet;
use tiergraph_core::Result;
use tiergraph_graph::{Direction, HeteroGraph};
use tiergraph_mem::PAGE_BYTES;

use super::batch::HeteroBatch;
use super::hotness::{Chosen, HeteroHotness};
use super::loader::{HeteroKept, HeteroLoader};
use super::options::HeteroOptions;
use crate::gathering::matrix::Matrix;
use crate::options::LoaderOptions;
use crate::residency::extent::Spread;
use crate::residency::hotness::Plan;
use crate::residency::memory_plan::Fitted;
use crate::residency::needs::PAGES_SHARE;
use crate::residency::neighbors::Keep;
use crate::residency::room::{BatchBytes, UnderWay};
use crate::residency::rows::RowStore;

/// What there is to keep, by type.
struct Sizes {
    arcs: Vec<u64>,
    pages: Vec<u64>,
    /// Rows of features, and bytes of one: 0 without features.
    rows: Vec<u64>,
    row_bytes: Vec<usize>,
}

impl Sizes {
    fn of(graph: &HeteroGraph, options: &HeteroOptions) -> Result<Self> {
        let (mut rows, mut row_bytes) = (Vec::new(), Vec::new());
        for (graph, name) in graph.nodes().iter().zip(&options.features) {
            let bytes = match name {
                Some(name) => graph.features(name)?.row_bytes(),
                None => 0,
            };
            rows.push(if bytes > 0 { graph.manifest().vertices } else { 0 });
            row_bytes.push(bytes);
        }
        let pages = |graph: &Arc<tiergraph_graph::Graph>| {
            graph.row_pages(Direction::In).map_or(0, |rows| rows.index.len() as u64)
        };
        let arcs = graph.edges().iter().map(|graph| graph.manifest().arcs).collect();
        Ok(Self { arcs, pages: graph.edges().iter().map(pages).collect(), rows, row_bytes })
    }

    /// Bytes of all neighbours unpacked, and of all rows.
    fn all_bytes(&self) -> u64 {
        let neighbors = self.pages.iter().zip(&self.arcs);
        let neighbors = neighbors.map(|(&pages, &arcs)| Keep::Decoded.bytes(pages, arcs));
        neighbors.sum::<u64>() + self.bytes_of_rows(self.rows.iter().copied())
    }

    fn bytes_of_rows(&self, rows: impl Iterator<Item = u64>) -> u64 {
        rows.zip(&self.row_bytes).map(|(rows, &bytes)| rows * bytes as u64).sum()
    }

    /// Bytes that finding what is kept takes.
    fn sets_bytes(&self) -> u64 {
        let rows = self.rows.iter().zip(&self.row_bytes);
        rows.map(|(&rows, &bytes)| RowStore::bytes_of(0, rows, bytes)).sum::<u64>()
            + self.pages.iter().map(|&pages| RankedSet::bytes_below(pages)).sum::<u64>()
    }

    /// Everything, unpacked.
    fn everything(&self) -> HeteroKept {
        HeteroKept {
            neighbors: vec![Keep::Decoded; self.pages.len()],
            rows: self.rows.iter().map(|&rows| (0..rows as u32).collect()).collect(),
        }
    }

    /// What was chosen, unpacked where all pages of a type were and there is room.
    fn kept(&self, (pages, rows): Chosen, capacity: u64) -> HeteroKept {
        let kept_pages: usize = pages.iter().map(Vec::len).sum();
        let kept_rows = self.bytes_of_rows(rows.iter().map(|rows| rows.len() as u64));
        let mut left = capacity.saturating_sub((kept_pages * PAGE_BYTES) as u64 + kept_rows);
        let neighbors = pages.into_iter().enumerate().map(|(edge_type, pages)| {
            let (all, arcs) = (self.pages[edge_type], self.arcs[edge_type]);
            let packed = pages.len() as u64 * PAGE_BYTES as u64;
            let more = Keep::Decoded.bytes(all, arcs).saturating_sub(packed);
            if pages.len() as u64 == all && more <= left {
                left -= more;
                return Keep::Decoded;
            }
            Keep::Pages(pages)
        });
        HeteroKept { neighbors: neighbors.collect(), rows }
    }
}

impl HeteroLoader {
    /// A loader for epochs over `seeds` that keeps what fits, chosen as `plan` says after sampling
    /// at most `presample` batches.
    ///
    /// # Errors
    /// As [`HeteroLoader::new`], and what sampling gives.
    pub fn fitted(
        graph: &Arc<HeteroGraph>,
        options: &HeteroOptions,
        seeds: &[u32],
        plan: &Plan,
        presample: usize,
    ) -> Result<(Self, Fitted)> {
        options.check((graph.nodes().len(), graph.edges().len()))?;
        let (budget, threads) = (graph.any().budget(), options.batches.threads as u64);
        let before = budget.left();
        let retain_bytes =
            options.batches.retain_bytes.min((before / PAGES_SHARE / threads) as usize);
        let mut options = options.clone();
        options.batches.retain_bytes = retain_bytes;
        let sizes = Sizes::of(graph, &options)?;
        let nothing = vec![None; options.features.len()];
        let counting = HeteroOptions { features: nothing, ..options.clone() };
        let neighbors = all_within(graph, before / 2);
        let rows = vec![Vec::new(); sizes.rows.len()];
        let held = neighbors.iter().zip(sizes.pages.iter().zip(&sizes.arcs));
        let held: u64 = held.map(|(keep, (&pages, &arcs))| keep.bytes(pages, arcs)).sum();
        let kept = HeteroKept { neighbors, rows };
        let counter = Self::new(Arc::clone(graph), counting, kept)?;
        // Offsets, maps and tables, which any loader of these batches holds.
        let fixed = (before - budget.left()).saturating_sub(held)
            + threads * retain_bytes as u64
            + sizes.sets_bytes();
        let room = before.saturating_sub(fixed);
        let mut bytes = Counted::default();
        let first = options.batches.window;
        counter.for_each_window(0, seeds, first, |window| {
            count(graph, &options, &mut bytes, window)
        })?;
        let asked = UnderWay::asked(&options.batches);
        let all = sizes.all_bytes();
        let mut hotness = None;
        if asked.bytes(batch_bytes_of(bytes)).saturating_add(all) > room {
            bytes = Counted::default();
            hotness =
                Some(counter.presample(&options, seeds, presample, (&sizes.rows, &mut bytes))?);
        }
        let batch = batch_bytes_of(bytes);
        let threads = options.batches.threads;
        let under_way = asked.fitting(batch, room).ok_or_else(|| {
            let least =
                fixed - threads as u64 * retain_bytes as u64 + UnderWay::least().bytes(batch);
            let pages = (LoaderOptions::RETAIN_BYTES * threads) as u64;
            let what = "batches (a smaller `--batch-size` or `--fanout` needs less)";
            let enough =
                budget.limit() - before + least + pages.min(least.div_ceil(PAGES_SHARE - 1));
            budget.refusal(UnderWay::least().bytes(batch), room, what).enough(enough)
        })?;
        let mut fitted = Fitted {
            pages: sizes.pages.iter().sum(),
            rows: sizes.rows.iter().sum(),
            batch_bytes: batch.usual,
            most_batch_bytes: batch.most,
            capacity_bytes: room.saturating_sub(under_way.bytes(batch)),
            window: under_way.together(batch, room),
            asked_window: asked.window,
            threads: under_way.threads,
            ..Fitted::default()
        };
        let kept = match hotness {
            Some(hotness) if all > fitted.capacity_bytes => {
                let chosen = hotness.plan(plan, &sizes.row_bytes, fitted.capacity_bytes);
                sizes.kept(chosen, fitted.capacity_bytes)
            }
            _ => sizes.everything(),
        };
        // What counted goes before what is kept comes.
        drop(counter);
        let kept_pages = kept.neighbors.iter().zip(&sizes.pages).map(|(keep, &pages)| match keep {
            Keep::Decoded => pages,
            Keep::Pages(kept) => kept.len() as u64,
            Keep::Nothing => 0,
        });
        fitted.kept_pages = kept_pages.sum();
        fitted.kept_rows = kept.rows.iter().map(|rows| rows.len() as u64).sum();
        fitted.decoded = kept.neighbors.iter().all(|keep| matches!(keep, Keep::Decoded));
        (options.batches.window, options.batches.threads) = (under_way.window, under_way.threads);
        Ok((Self::new(Arc::clone(graph), options, kept)?, fitted))
    }

    /// Counts what the first `batches` of an epoch want, and adds their bytes to `bytes`.
    fn presample(
        &self,
        options: &HeteroOptions,
        seeds: &[u32],
        batches: usize,
        (rows, bytes): (&[u64], &mut Counted),
    ) -> Result<HeteroHotness> {
        let (graph, topologies) = (&self.0.graph, self.topologies());
        let pages: u64 = topologies.iter().map(|topology| topology.map().pages()).sum();
        let counts = HeteroHotness::bytes_of(pages + rows.iter().sum::<u64>());
        let _held = graph.any().reserve(counts, "the counts of what batches want")?;
        let mut hotness = HeteroHotness::new(topologies, graph.ends(), rows);
        self.for_each_window(0, seeds, batches, |window| {
            hotness.record(topologies, window);
            count(graph, options, bytes, window)
        })?;
        Ok(hotness)
    }
}

/// What the batches that were counted take, and what of that was sampled.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    all: Spread,
    places: Spread,
}

/// Adds the bytes of a window's batches, with the features that `options` name.
fn count(
    graph: &HeteroGraph,
    options: &HeteroOptions,
    bytes: &mut Counted,
    window: &[HeteroBatch],
) -> Result<()> {
    window.iter().try_for_each(|batch| {
        bytes.places.add(batch.resident_bytes());
        bytes.all.add(batch_bytes(graph, options, batch)?);
        Ok(())
    })
}

/// What batches take whose bytes were counted. No bound by degrees is known for several types.
fn batch_bytes_of(Counted { all, places }: Counted) -> BatchBytes {
    BatchBytes {
        usual: all.most,
        most: all.expected(),
        scratch: places.expected(),
        ..BatchBytes::default()
    }
}

/// For each edge type in turn the fastest that keeps all of its neighbours in what is left of
/// `bytes`.
fn all_within(graph: &HeteroGraph, mut bytes: u64) -> Vec<Keep> {
    let each = graph.edges().iter().map(|graph| {
        let keep = Keep::all_within(graph, Direction::In, bytes);
        let pages = graph.row_pages(Direction::In).map_or(0, |rows| rows.index.len() as u64);
        bytes -= keep.bytes(pages, graph.manifest().arcs).min(bytes);
        keep
    });
    each.collect()
}

/// The bytes of a batch with the features that `options` name.
pub(crate) fn batch_bytes(
    graph: &HeteroGraph,
    options: &HeteroOptions,
    batch: &HeteroBatch,
) -> Result<u64> {
    let mut bytes = batch.resident_bytes();
    for ((nodes, graph), name) in batch.nodes.iter().zip(graph.nodes()).zip(&options.features) {
        if let Some(name) = name {
            let features = graph.features(name)?;
            bytes += Matrix::bytes_of(features, nodes.n_id.len(), options.batches.delivery);
        }
    }
    Ok(bytes)
}
