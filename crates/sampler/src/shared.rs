//! What all epochs and workers of a loader share.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Features, Graph};

use crate::batch::{MiniBatch, Seeds};
use crate::options::LoaderOptions;
use crate::order::permutation;
use crate::philox::{EpochKey, Purpose};
use crate::sample::Sampler;
use crate::store::RowStore;
use crate::tools::{Chest, Tools};
use crate::topology::Topology;
use crate::window::SampleReads;

/// What workers share.
pub struct Shared {
    pub(crate) graph: Arc<Graph>,
    pub(crate) topology: Topology,
    pub(crate) rows: Option<RowStore>,
    /// No rows: what says so when features of edges are gathered.
    pub(crate) edge_rows: Option<RowStore>,
    pub(crate) options: LoaderOptions,
    pub(crate) tools: Chest<Sampler>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The seeds of an epoch, as the caller lists them.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The graph's vertices.
    pub seeds: &'a [u32],
    /// A time for each, where edges are sampled by time.
    pub times: Option<&'a [i64]>,
}

impl<'a> From<&'a [u32]> for Inputs<'a> {
    fn from(seeds: &'a [u32]) -> Self {
        Self { seeds, times: None }
    }
}

impl<'a> From<&'a Vec<u32>> for Inputs<'a> {
    fn from(seeds: &'a Vec<u32>) -> Self {
        Self { seeds, times: None }
    }
}

impl<'a, const N: usize> From<&'a [u32; N]> for Inputs<'a> {
    fn from(seeds: &'a [u32; N]) -> Self {
        Self { seeds, times: None }
    }
}

/// The seeds of an epoch in its order.
#[derive(Debug)]
pub struct SeedOrder {
    /// Places in the caller's list, where they were shuffled.
    pub(crate) places: Option<Vec<u32>>,
    /// The seeds, in order.
    pub(crate) seeds: Vec<u32>,
    /// Their times, where they have some.
    pub(crate) times: Option<Vec<i64>>,
    /// Where each batch begins among them, and the last one ends, where batches differ in size.
    pub(crate) bounds: Option<Vec<usize>>,
}

impl SeedOrder {
    /// The order of an epoch over seeds among so many vertices.
    pub(crate) fn new(
        options: &LoaderOptions,
        vertices: usize,
        epoch: u64,
        inputs: Inputs<'_>,
    ) -> Result<Self> {
        let Inputs { seeds, times } = inputs;
        if let Some(seed) = seeds.iter().find(|&&seed| seed as usize >= vertices) {
            return Err(Error::new(ErrorKind::Input, "sample from seed")
                .object(seed)
                .expected(format!("one of {vertices} vertices")));
        }
        let count = u32::try_from(seeds.len()).map_err(|_| {
            Error::new(ErrorKind::Input, "load batches").expected("fewer than 2^32 seeds")
        })?;
        if !options.shuffle {
            let times = times.map(<[i64]>::to_vec);
            return Ok(Self { places: None, seeds: seeds.to_vec(), times, bounds: None });
        }
        let key = EpochKey::new(options.seed, epoch, Purpose::Shuffle);
        let places = permutation(key, count);
        let seeds = places.iter().map(|&place| seeds[place as usize]).collect();
        let times = times.map(|all| places.iter().map(|&place| all[place as usize]).collect());
        Ok(Self { places: Some(places), seeds, times, bounds: None })
    }

    /// Batches that the seeds make.
    pub(crate) fn batches(&self, options: &LoaderOptions) -> usize {
        if let Some(bounds) = &self.bounds {
            return bounds.len().saturating_sub(1);
        }
        match options.drop_last {
            true => self.seeds.len() / options.batch_size,
            false => self.seeds.len().div_ceil(options.batch_size),
        }
    }

    /// The places of a batch's seeds in the order.
    pub(crate) fn range(&self, batch: usize, options: &LoaderOptions) -> Range<usize> {
        if let Some(bounds) = &self.bounds {
            return bounds[batch]..bounds[batch + 1];
        }
        let begin = batch * options.batch_size;
        begin..self.seeds.len().min(begin + options.batch_size)
    }
}

impl Shared {
    /// The features that batches come with.
    pub(crate) fn features(&self) -> Result<Option<(&Features, &RowStore)>> {
        match (&self.options.features, &self.rows) {
            (Some(name), Some(rows)) => Ok(Some((self.graph.features(name)?, rows))),
            _ => Ok(None),
        }
    }

    /// The features of edges that batches come with.
    pub(crate) fn edge_features(&self) -> Result<Option<(&Features, &RowStore)>> {
        match (&self.options.edge_features, &self.edge_rows) {
            (Some(name), Some(rows)) => Ok(Some((self.graph.edge_features(name)?, rows))),
            _ => Ok(None),
        }
    }

    /// The order of batches of any sizes: batch i has the seeds from `bounds[i]` to `bounds[i + 1]`.
    pub(crate) fn order_of(&self, seeds: &[u32], bounds: Vec<usize>) -> Result<SeedOrder> {
        let ascending = bounds.is_sorted() && bounds.first() == Some(&0);
        if self.options.shuffle || !ascending || bounds.last() != Some(&seeds.len()) {
            return Err(Error::new(ErrorKind::Input, "load batches of several sizes")
                .expected("unshuffled seeds, and where each batch begins among them"));
        }
        Ok(SeedOrder { bounds: Some(bounds), ..self.order(0, seeds.into())? })
    }

    pub(crate) fn order(&self, epoch: u64, inputs: Inputs<'_>) -> Result<SeedOrder> {
        self.check_times(inputs.seeds.len(), inputs.times)?;
        SeedOrder::new(&self.options, self.graph.vertices(), epoch, inputs)
    }

    /// Refuses seeds without times where edges have some, and the other way round.
    fn check_times(&self, seeds: usize, times: Option<&[i64]>) -> Result<()> {
        let error = || Error::new(ErrorKind::Input, "sample by time");
        match (&self.options.sample.times, times) {
            (None, None) => Ok(()),
            (Some(_), Some(times)) if times.len() == seeds => Ok(()),
            (Some(_), Some(times)) => {
                Err(error().expected(format!("a time for each of {seeds} seeds")).got(times.len()))
            }
            (Some(_), None) => Err(error().expected("a time for each seed").got("none")),
            (None, Some(_)) => {
                Err(error().expected("times of edges, for times of seeds").got("none"))
            }
        }
    }

    /// Samples the batches `window` into as many of `batches`.
    pub(crate) fn sample(
        &self,
        tools: &mut Tools,
        epoch: u64,
        order: &SeedOrder,
        window: Range<usize>,
        batches: &mut Vec<MiniBatch>,
    ) -> Result<SampleReads> {
        let key = EpochKey::new(self.options.seed, epoch, Purpose::Sample);
        let seeds = |number: usize| Seeds {
            number: number as u32,
            vertices: &order.seeds[order.range(number, &self.options)],
            times: match &order.times {
                Some(times) => &times[order.range(number, &self.options)],
                None => &[],
            },
        };
        let seeds: Vec<Seeds<'_>> = window.map(seeds).collect();
        batches.resize_with(seeds.len(), MiniBatch::default);
        let Tools { sampler, reader, .. } = tools;
        let retain_bytes = self.options.retain_bytes;
        let reads =
            sampler.sample_window(&self.topology, reader, key, &seeds, batches, retain_bytes)?;
        let tables = tools.sampler.resident_bytes();
        tools.reserve_growth(&self.graph, tables, self.retained_bytes())?;
        Ok(reads)
    }

    /// Bytes of pages that a window keeps at most, of neighbours and of what they are chosen by, and
    /// of choosing from the longest list.
    fn retained_bytes(&self) -> u64 {
        let retain_bytes = self.options.retain_bytes as u64;
        let neighbors = if self.topology.is_resident() { 0 } else { retain_bytes };
        let columns = self.topology.columns().read_to_choose();
        neighbors
            + self.topology.bytes_to_choose(columns, retain_bytes)
            + self.topology.bytes_of_choice()
    }

    /// A worker's tools: used ones, or new.
    pub(crate) fn take_tools(&self) -> Result<Tools> {
        self.tools.take().map_or_else(|| self.new_tools(), Ok)
    }

    pub(crate) fn new_tools(&self) -> Result<Tools> {
        let sampler = Sampler::new(self.graph.vertices(), &self.options.sample)?;
        let mut tools = Tools::new(sampler, self.graph.page_reader()?);
        let tables = tools.sampler.resident_bytes();
        tools.reserve_growth(&self.graph, tables, self.retained_bytes())?;
        Ok(tools)
    }
}
