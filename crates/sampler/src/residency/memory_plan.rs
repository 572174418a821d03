//! The memory plan of a loader: what fits its graph's memory beside the batches, and so is kept.
//!
//! The first batches of an epoch are sampled to see how large they are. If neighbours and features
//! fit beside as many batches as may be in flight, all is kept; else presampling
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

use serde::Serialize;
use tiergraph_cache::RankedSet;
use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_mem::PAGE_BYTES;

use crate::options::{LoaderOptions, PerThread, Resident, SampleOptions};
use crate::pipeline::loader::Loader;
use crate::pipeline::order::Inputs;
use crate::pipeline::types::GraphTypes;
use crate::residency::extent::{Counted, Extent};
use crate::residency::hotness::{Hotness, Plan};
use crate::residency::needs::{
    FeatureRows, PAGES_SHARE, bounded_bytes, bytes_of, bytes_to_choose, column_bytes, fit_columns,
    least_bytes,
};
use crate::residency::neighbors::{NeighborFile, Residency, Residents};
use crate::residency::offsets::Offsets;
use crate::residency::room::{BatchBytes, InFlight};
use crate::residency::sizes::Sizes;
use crate::residency::topology::Topology;
use crate::sampling::sampler::SampledTypes;

/// The memory plan of a loader: what it keeps in memory, and why no more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MemoryPlan {
    /// The number of pages of neighbours that are kept.
    pub kept_pages: u64,
    /// The number of all pages of neighbours.
    pub pages: u64,
    /// Whether all neighbours are kept unpacked.
    pub decoded: bool,
    /// The number of rows of features that are kept.
    pub kept_rows: u64,
    /// The number of all rows of features.
    pub rows: u64,
    /// Bytes of edges' values and numbers that are kept.
    pub kept_values_bytes: u64,
    /// Bytes of all edges' values and numbers that batches are made with.
    pub values_bytes: u64,
    /// Bytes for pages, rows and values.
    pub capacity_bytes: u64,
    /// Bytes of the largest batch that was counted.
    pub batch_bytes: u64,
    /// The most bytes of any batch that may come.
    pub most_batch_bytes: u64,
    /// Bytes for the batches in flight and the threads that prepare them.
    pub in_flight_bytes: u64,
    /// The most nodes of any batch that may come.
    pub most_nodes: u64,
    /// The most edges of any batch that may come.
    pub most_edges: u64,
    /// The number of nodes of the largest batch that was counted: seeds, then each hop's.
    pub hop_nodes: Vec<usize>,
    /// The number of edges of that batch, hop by hop.
    pub hop_edges: Vec<usize>,
    /// The number of batches that are prepared together: fewer than asked for where more do not fit.
    pub window: usize,
    /// The number of threads that prepare batches: one where windows would not fit beside each other.
    pub threads: usize,
    /// The number of batches that were asked to be prepared together.
    pub asked_window: usize,
    /// The least memory that a loader of these batches runs in.
    pub enough_bytes: u64,
}

impl Loader {
    /// A loader for epochs over `seeds` that keeps what fits, chosen as `plan` says after sampling
    /// at most `presample` batches. If fewer threads do, there are half as many until they fit.
    ///
    /// # Errors
    /// As [`Loader::new`] and [`Loader::presample`]; [`ErrorKind::Budget`](tiergraph_core::ErrorKind)
    /// where the largest batch that may come has no room. What does not fit is said with the memory
    /// that all parts of the loader take, and not the one alone that was refused.
    pub fn planned<'a>(
        types: impl Into<GraphTypes>,
        options: &LoaderOptions,
        seeds: impl Into<Inputs<'a>>,
        plan: &Plan,
        presample: usize,
    ) -> Result<(Self, MemoryPlan)> {
        let (types, seeds, mut options) = (types.into(), seeds.into(), options.clone());
        options.check(types.nodes.len(), types.edges.len())?;
        loop {
            let fewer_do = options.threads > options.least_threads();
            match Self::planned_by(&types, &options, seeds, plan, presample) {
                Err(error) if fewer_do && error.kind() == ErrorKind::Budget => options.threads /= 2,
                ended => return ended,
            }
        }
    }

    /// A loader as [`planned`](Self::planned) makes it, with as many threads as `options` say.
    fn planned_by(
        types: &GraphTypes,
        options: &LoaderOptions,
        seeds: Inputs<'_>,
        plan: &Plan,
        presample: usize,
    ) -> Result<(Self, MemoryPlan)> {
        let opened = types.any().memory().budget().used();
        let bounded = |error: Error| match error.enough_bytes() {
            Some(enough) => match bounded_bytes(types, options, seeds) {
                Ok(bytes) => error.enough(enough.max(opened + bytes)),
                Err(other) => other,
            },
            None => error,
        };
        let mut planner = Planner::begin(types, options, seeds, presample).map_err(bounded)?;
        let hotness = planner.count_if_tight().map_err(bounded)?;
        planner.place(plan, hotness)
    }

    /// The least memory of the graph that [`planned`](Self::planned) makes a loader of these in. The
    /// graph must have been opened with enough for counting.
    ///
    /// # Errors
    /// As [`Loader::planned`].
    pub fn enough_bytes<'a>(
        types: impl Into<GraphTypes>,
        options: &LoaderOptions,
        seeds: impl Into<Inputs<'a>>,
        presample: usize,
    ) -> Result<u64> {
        let types = types.into();
        options.check(types.nodes.len(), types.edges.len())?;
        let options = &LoaderOptions { threads: options.least_threads(), ..options.clone() };
        let least = types.any().memory().budget().used() + least_bytes(&types, options)?;
        let mut planner = Planner::begin(&types, options, seeds.into(), presample)?;
        planner.count_all()?;
        let batch = planner.batch_bytes(&planner.most());
        Ok(planner.enough_bytes(batch).max(least))
    }
}

/// A planner that divides a graph's memory for a loader.
struct Planner<'a> {
    types: &'a GraphTypes,
    options: LoaderOptions,
    seeds: Inputs<'a>,
    presample: usize,
    /// Bytes that the opened graph has reserved, and bytes that are left then.
    opened: u64,
    before: u64,
    /// Bytes of offsets, maps and tables, which any loader of these batches holds.
    fixed: u64,
    /// Bytes of the weights, times, numbers and other values of edges, by edge type.
    columns: Vec<[u64; 4]>,
    /// The files of neighbours, by edge type.
    files: Vec<NeighborFile>,
    /// The feature rows, by node type.
    rows: Vec<FeatureRows>,
    counter: Loader,
    sizes: Sizes,
    counted: Counted,
    bound: Extent,
}

impl<'a> Planner<'a> {
    /// Samples the first batches of an epoch, as a planner begins.
    fn begin(
        types: &'a GraphTypes,
        options: &LoaderOptions,
        seeds: Inputs<'a>,
        presample: usize,
    ) -> Result<Self> {
        let (budget, mut options) = (types.any().memory().budget(), options.clone());
        let (opened, before) = (budget.used(), budget.left());
        let threads = options.threads;
        let most = (before / PAGES_SHARE) as usize / threads.max(1);
        options.retain_bytes = options.retain_bytes.min(most);
        let direction = options.direction;
        let least = least_bytes(types, &options)?;
        // Counting is faster with neighbours in memory, but must not fail for them.
        let spare = before.saturating_sub(least).min(before / 2);
        let files = types.neighbors(direction);
        let neighbors = all_within(&files, spare);
        let columns = column_bytes(types, &options)?;
        let (resident, _) = fit_columns(&columns, before / 4);
        let kept = keep_bytes(&neighbors, &files) + bytes_of(&columns, &resident);
        let sample = options.sample.iter().zip(&resident);
        let sample = sample.map(|(sample, &resident)| SampleOptions {
            features: None,
            resident,
            ..sample.clone()
        });
        let counting = LoaderOptions {
            features: vec![None; options.features.len()],
            sample: sample.collect(),
            ..options.clone()
        };
        let nothing = vec![Vec::new(); types.nodes.len()];
        let residents = Residents { neighbors, rows: nothing };
        let counter = Loader::of_types(types.clone(), counting, residents)?;
        let rows = FeatureRows::of(types, &options)?;
        let edge_features = types.edges.iter().zip(types.edge_features(&options)?);
        let edge_sets = edge_features.filter_map(|(graph, features)| {
            Some(RankedSet::bytes_below(features?.rows().max(graph.manifest().vertices)))
        });
        let retained = match counter.topologies().iter().all(Topology::is_resident) {
            true => 0,
            false => (threads * options.retain_bytes) as u64,
        };
        let fixed = (before - budget.left()).saturating_sub(kept + retained)
            + files.iter().map(|file| RankedSet::bytes_below(file.pages)).sum::<u64>()
            + edge_sets.sum::<u64>()
            + rows.iter().map(|rows| rows.set_bytes()).sum::<u64>();
        let offsets: Vec<&Offsets> = counter.topologies().iter().map(Topology::offsets).collect();
        let of_types = SampledTypes::of(types, &options);
        let bound = Extent::bound(&of_types, &offsets, &options, seeds.seeds);
        let mut this = Self {
            types,
            seeds,
            presample,
            opened,
            before,
            fixed,
            columns,
            files,
            rows,
            sizes: Sizes::of(types, counter.topologies().iter().map(Topology::columns), &options)?,
            counter,
            counted: Counted::default(),
            bound,
            options,
        };
        this.count(this.options.window, None)?;
        Ok(this)
    }

    /// Samples the first `batches` of an epoch and counts their sizes, and what they want.
    fn count(&mut self, batches: usize, mut hotness: Option<&mut Hotness>) -> Result<()> {
        let (counter, sizes, mut counted) = (&self.counter, &self.sizes, Counted::default());
        counter.for_each_window(0, self.seeds, batches, |window| {
            window.iter().for_each(|batch| counted.add(batch, sizes.batch(batch)));
            if let Some(hotness) = &mut hotness {
                hotness.record(counter.topologies(), window);
            }
        })?;
        self.counted = counted;
        Ok(())
    }

    /// Counts the batches of an epoch that may be presampled: their sizes, and what they want.
    fn count_all(&mut self) -> Result<Hotness> {
        let (mut hotness, _held) = self.counter.no_counts()?;
        self.count(self.presample, Some(&mut hotness))?;
        hotness.of_windows(self.batches().div_ceil(self.options.window.max(1)) as u32);
        Ok(hotness)
    }

    /// The number of an epoch's batches.
    fn batches(&self) -> usize {
        let LoaderOptions { batch_size, drop_last, .. } = self.options;
        match drop_last {
            true => self.seeds.seeds.len() / batch_size,
            false => self.seeds.seeds.len().div_ceil(batch_size),
        }
    }

    /// The most nodes and edges that a batch may have, as far as batches were counted.
    fn most(&self) -> Extent {
        match self.counted.expected(&self.options, self.batches()) {
            Some(expected) => self.bound.min(&expected),
            None => self.bound.clone(),
        }
    }

    fn batch_bytes(&self, most: &Extent) -> BatchBytes {
        self.sizes.batch_bytes(self.counted.bytes, most)
    }

    /// Bytes for batches and for what is kept.
    fn room(&self) -> u64 {
        let pages = (self.options.threads * self.options.retain_bytes) as u64;
        self.before.saturating_sub(self.fixed + pages)
    }

    fn bytes_to_choose(&self) -> u64 {
        bytes_to_choose(self.counter.topologies(), &self.options)
    }

    /// The least memory of the graph that holds such batches, and no rows or pages that can be read.
    fn enough_bytes(&self, batch: BatchBytes) -> u64 {
        let LoaderOptions { threads, retain_bytes, .. } = self.options;
        let least = self.fixed + InFlight::least().bytes(batch) + self.bytes_to_choose();
        // Of any memory, one part in so many goes to pages, and no more than so many bytes.
        let pages = LoaderOptions::RETAIN_BYTES.max(retain_bytes) * threads;
        let pages = (pages as u64).min(least.div_ceil(PAGES_SHARE - 1));
        // Shares that are rounded differ by some bytes from memory to memory.
        self.opened + least + pages + PAGE_BYTES as u64
    }

    /// Bytes for batches where nothing is kept.
    fn room_for_batches(&self) -> u64 {
        self.room().saturating_sub(self.bytes_to_choose())
    }

    /// The batches that may be in flight, no more than asked for; an error if not one fits.
    fn in_flight(&self, batch: BatchBytes) -> Result<InFlight> {
        let room = self.room_for_batches();
        if let Some(fitting) = InFlight::asked(&self.options).fitting(batch, room) {
            return Ok(fitting);
        }
        let most = ByteSize(batch.most);
        let what =
            format!("batches of up to {most} (a smaller `--batch-size` or `--fanout` needs less)");
        let budget = self.types.any().memory().budget();
        let error = budget.refusal(InFlight::least().bytes(batch), room, &what);
        Err(error.enough(self.enough_bytes(batch)))
    }

    /// Bytes of all neighbours, unpacked, and of all rows.
    fn everything(&self) -> u64 {
        let neighbors = self.files.iter().map(|file| file.kept(&Residency::Decoded));
        neighbors.sum::<u64>() + self.rows.iter().map(|rows| rows.bytes()).sum::<u64>()
    }

    /// Counts an epoch, unless everything fits beside as many of the largest batches as asked for.
    fn count_if_tight(&mut self) -> Result<Option<Hotness>> {
        let values: u64 = self.columns.iter().flatten().sum();
        let batch = self.batch_bytes(&self.bound);
        let asked = InFlight::asked(&self.options).bytes(batch);
        match asked.saturating_add(self.everything() + values) > self.room() {
            true => self.count_all().map(Some),
            false => Ok(None),
        }
    }

    /// Chooses what is kept beside the batches, and makes the loader. `hotness` is of an epoch that
    /// was counted.
    fn place(self, plan: &Plan, hotness: Option<Hotness>) -> Result<(Loader, MemoryPlan)> {
        let most = if hotness.is_some() { self.most() } else { self.bound.clone() };
        let batch = self.batch_bytes(&most);
        let in_flight = self.in_flight(batch)?;
        let together = in_flight.together(batch, self.room_for_batches());
        let (resident, left) = self.fit_columns(in_flight.bytes(batch));
        let placed = match hotness {
            Some(hotness) if self.everything() > left => {
                let row_bytes: Vec<usize> = self.rows.iter().map(|rows| rows.row_bytes).collect();
                hotness.place(plan, &row_bytes, left)
            }
            _ => Residents {
                neighbors: self.files.iter().map(|file| file.all_pages()).collect(),
                rows: self.rows.iter().map(|rows| (0..rows.rows as u32).collect()).collect(),
            },
        };
        let residents = self.unpacked(placed, left);
        let kept_pages = self.files.iter().zip(&residents.neighbors);
        let kept_values_bytes = bytes_of(&self.columns, &resident);
        let asked = &self.options;
        let plan = MemoryPlan {
            kept_pages: kept_pages.map(|(file, keep)| file.kept_pages(keep)).sum(),
            pages: self.files.iter().map(|file| file.pages).sum(),
            decoded: residents.neighbors.iter().all(|keep| matches!(keep, Residency::Decoded)),
            kept_rows: residents.rows.iter().map(|rows| rows.len() as u64).sum(),
            rows: self.rows.iter().map(|rows| rows.rows).sum(),
            kept_values_bytes,
            values_bytes: self.columns.iter().flatten().sum(),
            capacity_bytes: left + kept_values_bytes,
            batch_bytes: batch.usual,
            most_batch_bytes: batch.most,
            in_flight_bytes: in_flight.bytes(batch),
            most_nodes: most.all_nodes(),
            most_edges: most.all_edges(),
            hop_nodes: self.counted.hop_nodes.clone(),
            hop_edges: self.counted.hop_edges.clone(),
            window: together,
            threads: in_flight.threads,
            asked_window: asked.window,
            enough_bytes: self.enough_bytes(batch),
        };
        let InFlight { window, prefetch, threads } = in_flight;
        let per_thread =
            PerThread { growth_bytes: batch.growth, scratch_bytes: window as u64 * batch.scratch };
        let Self { types, mut options, counter, .. } = self;
        options = LoaderOptions { window, prefetch, threads, per_thread, ..options };
        options.sample.iter_mut().zip(resident).for_each(|(of, resident)| of.resident = resident);
        // What counted goes before what is kept comes.
        drop(counter);
        Ok((Loader::of_types(types.clone(), options, residents)?, plan))
    }

    /// The residents `placed` in `capacity` bytes: neighbours unpacked where all pages of a type were
    /// placed and there is room.
    fn unpacked(&self, mut placed: Residents, capacity: u64) -> Residents {
        let rows = placed.rows.iter().zip(&self.rows);
        let rows = rows.map(|(placed, rows)| placed.len() as u64 * rows.row_bytes as u64);
        let packed =
            |file: &NeighborFile, keep: &Residency| file.kept_pages(keep) * PAGE_BYTES as u64;
        let pages = self.files.iter().zip(&placed.neighbors);
        let pages: u64 = pages.map(|(file, keep)| packed(file, keep)).sum();
        let mut left = capacity.saturating_sub(pages + rows.sum::<u64>());
        for (file, keep) in self.files.iter().zip(&mut placed.neighbors) {
            let more = file.kept(&Residency::Decoded).saturating_sub(packed(file, keep));
            if file.kept_pages(keep) == file.pages && more <= left {
                left -= more;
                *keep = Residency::Decoded;
            }
        }
        placed
    }

    /// The columns that stay in memory beside `batches` bytes of batches, and the bytes left then.
    fn fit_columns(&self, batches: u64) -> (Vec<Resident>, u64) {
        let capacity = self.room().saturating_sub(batches);
        let (resident, left) = fit_columns(&self.columns, capacity);
        if resident.iter().all(|resident| resident.weights && resident.times) {
            return (resident, left);
        }
        fit_columns(&self.columns, capacity.saturating_sub(self.bytes_to_choose()))
    }
}

/// For each edge type in turn the fastest that keeps all of its neighbours in what is left of
/// `bytes`.
fn all_within(files: &[NeighborFile], mut bytes: u64) -> Vec<Residency> {
    let each = files.iter().map(|file| {
        let keep = file.all_within(bytes);
        bytes -= file.kept(&keep);
        keep
    });
    each.collect()
}

/// Bytes that the kept neighbours of all edge types take.
fn keep_bytes(neighbors: &[Residency], files: &[NeighborFile]) -> u64 {
    files.iter().zip(neighbors).map(|(file, keep)| file.kept(keep)).sum()
}
