//! The state that all epochs and workers of a loader share.

use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Graph, PageReader};

use crate::options::LoaderOptions;
use crate::pipeline::order::{Inputs, SeedOrder};
use crate::pipeline::scratch::{Scratch, ScratchPool};
use crate::pipeline::types::GraphTypes;
use crate::residency::columns::Columns;
use crate::residency::needs::choosing_bytes;
use crate::residency::rows::RowStore;
use crate::residency::sizes::Sizes;
use crate::residency::topology::Topology;
use crate::sampling::batch::{MiniBatch, Seeds};
use crate::sampling::philox::EpochKey;
use crate::sampling::sampler::{SampledTypes, Sampler};
use crate::sampling::window::{SampleReads, WindowSource};

/// The shared state of a loader: its graphs, neighbours, rows, options and scratch.
pub(crate) struct Shared {
    pub(crate) types: GraphTypes,
    /// The neighbours, by edge type.
    pub(crate) topologies: Vec<Topology>,
    /// The rows in memory of each node type whose features batches come with.
    pub(crate) rows: Vec<Option<RowStore>>,
    /// An empty store for each edge type whose features batches come with: all its rows are read.
    pub(crate) edge_rows: Vec<Option<RowStore>>,
    pub(crate) options: LoaderOptions,
    /// The sizes of batches in bytes.
    pub(crate) sizes: Sizes,
    pub(crate) scratch: ScratchPool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Shared {
    /// The graph whose budget, engines and cancellation all types share.
    pub(crate) fn any(&self) -> &Graph {
        self.types.any()
    }

    /// Whether anything is read, so that the batches of a window share reads.
    pub(crate) fn reads(&self) -> bool {
        let mut nodes = self.types.nodes.iter().zip(&self.rows);
        let all_rows = nodes.all(|(graph, rows)| {
            rows.as_ref().is_none_or(|rows| rows.len() == graph.vertices() as u64)
        });
        let in_memory = |topology: &Topology| {
            topology.samples_in_memory() && !topology.columns().reads_for_chosen()
        };
        let no_edges = self.edge_rows.iter().all(Option::is_none);
        !(all_rows && no_edges && self.topologies.iter().all(in_memory))
    }

    /// The order of an epoch's seeds.
    pub(crate) fn order(&self, epoch: u64, inputs: Inputs<'_>) -> Result<SeedOrder> {
        self.check_times(inputs.seeds.len(), inputs.times)?;
        let nodes = |&input: &usize| self.types.nodes[input].vertices();
        let vertices = self.options.inputs.iter().map(nodes).sum();
        SeedOrder::new(&self.options, vertices, epoch, inputs)
    }

    /// Refuses seeds without times where edges are sampled by time, and times where they are not.
    fn check_times(&self, seeds: usize, times: Option<&[i64]>) -> Result<()> {
        let error = || Error::new(ErrorKind::Input, "sample by time");
        match (self.options.timed(), times) {
            (false, None) => Ok(()),
            (true, Some(times)) if times.len() == seeds => Ok(()),
            (true, Some(times)) => {
                Err(error().expected(format!("a time for each of {seeds} seeds")).got(times.len()))
            }
            (true, None) => Err(error().expected("a time for each seed").got("none")),
            (false, Some(_)) => {
                Err(error().expected("times of edges, for times of seeds").got("none"))
            }
        }
    }

    /// Samples the batches numbered `window` into `batches`, which becomes as long.
    pub(crate) fn sample(
        &self,
        scratch: &mut Scratch,
        epoch: u64,
        order: &SeedOrder,
        window: Range<usize>,
        batches: &mut Vec<MiniBatch>,
    ) -> Result<SampleReads> {
        let options = &self.options;
        let key = |edge_type| EpochKey::of_edge_type(options.seed, epoch, edge_type);
        let keys: Vec<EpochKey> = (0..self.topologies.len() as u32).map(key).collect();
        let seeds: Vec<Seeds<'_>> = window.map(|batch| order.seeds_of(batch)).collect();
        batches.resize_with(seeds.len(), MiniBatch::default);
        let Scratch { sampler, reader, .. } = scratch;
        let (topologies, retain_bytes) = (&self.topologies[..], options.retain_bytes);
        let source = WindowSource { topologies, keys: &keys, retain_bytes };
        let reads = sampler.sample_window(source, reader, &seeds, batches)?;
        let tables = scratch.sampler.resident_bytes();
        scratch.reserve_growth(self.any(), tables, self.retained_bytes())?;
        Ok(reads)
    }

    /// The most bytes that a window holds: of kept pages (of neighbours, weights and times), of the
    /// longest list's choice, and of batches that have no memory of their own yet.
    fn retained_bytes(&self) -> u64 {
        let retain_bytes = self.options.retain_bytes as u64;
        let resident = self.topologies.iter().all(Topology::is_resident);
        let neighbors = if resident { 0 } else { retain_bytes };
        neighbors
            + choosing_bytes(&self.topologies, retain_bytes, Columns::read_to_choose)
            + self.topologies.iter().map(Topology::bytes_of_choice).max().unwrap_or(0)
            + self.options.per_thread.scratch_bytes
    }

    /// Scratch for a worker: used scratch, or new.
    pub(crate) fn take_scratch(&self) -> Result<Scratch> {
        self.scratch.take().map_or_else(|| self.new_scratch(), Ok)
    }

    pub(crate) fn new_scratch(&self) -> Result<Scratch> {
        let sampler = Sampler::new(SampledTypes::of(&self.types, &self.options), None)?;
        let mut scratch = Scratch::new(sampler, PageReader::new(self.any())?);
        let growth = self.options.per_thread.growth_bytes;
        let tables = scratch.sampler.resident_bytes() + growth;
        scratch.reserve_growth(self.any(), tables, self.retained_bytes())?;
        Ok(scratch)
    }
}
