//! What all epochs and workers of a loader share.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Features, Graph};

use crate::options::LoaderOptions;
use crate::pipeline::cut::{Cut, Rank};
use crate::pipeline::scratch::{Chest, Tools};
use crate::residency::rows::RowStore;
use crate::residency::topology::Topology;
use crate::sampling::batch::{MiniBatch, Seeds};
use crate::sampling::permutation::permutation;
use crate::sampling::philox::{EpochKey, Purpose};
use crate::sampling::sampler::Sampler;
use crate::sampling::window::SampleReads;

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
    /// Who takes the batches.
    pub rank: Rank,
}

impl<'a> From<&'a [u32]> for Inputs<'a> {
    fn from(seeds: &'a [u32]) -> Self {
        Self { seeds, times: None, rank: Rank::default() }
    }
}

impl<'a> From<&'a Vec<u32>> for Inputs<'a> {
    fn from(seeds: &'a Vec<u32>) -> Self {
        seeds.as_slice().into()
    }
}

impl<'a, const N: usize> From<&'a [u32; N]> for Inputs<'a> {
    fn from(seeds: &'a [u32; N]) -> Self {
        seeds.as_slice().into()
    }
}

/// The seeds of an epoch in its order.
#[derive(Debug)]
pub struct SeedOrder {
    /// Places in the caller's list, where they are in another order or some come twice.
    pub(crate) places: Option<Vec<u32>>,
    /// The seeds, in order.
    pub(crate) seeds: Vec<u32>,
    /// Their times, where they have some.
    pub(crate) times: Option<Vec<i64>>,
    /// Which of them each batch has.
    cut: Batches,
}

/// The seeds of each of a rank's batches.
#[derive(Debug)]
enum Batches {
    /// Of one size.
    Cut(Cut),
    /// Of any sizes: where each begins, and the last one ends.
    Bounds(Vec<usize>, Rank),
}

impl SeedOrder {
    /// The order of an epoch over seeds among so many vertices.
    pub(crate) fn new(
        options: &LoaderOptions,
        vertices: usize,
        epoch: u64,
        inputs: Inputs<'_>,
    ) -> Result<Self> {
        let Inputs { seeds, times, rank } = inputs;
        if let Some(seed) = seeds.iter().find(|&&seed| seed as usize >= vertices) {
            return Err(Error::new(ErrorKind::Input, "sample from seed")
                .object(seed)
                .expected(format!("one of {vertices} vertices")));
        }
        let count = u32::try_from(seeds.len()).map_err(|_| {
            Error::new(ErrorKind::Input, "load batches").expected("fewer than 2^32 seeds")
        })?;
        let cut = Cut::new(seeds.len(), options.batch_size, options.drop_last, rank);
        if !options.shuffle && cut.places() <= seeds.len() {
            let times = times.map(<[i64]>::to_vec);
            let cut = Batches::Cut(cut);
            return Ok(Self { places: None, seeds: seeds.to_vec(), times, cut });
        }
        let mut places = match options.shuffle {
            true => permutation(EpochKey::new(options.seed, epoch, Purpose::Shuffle), count),
            false => (0..count).collect(),
        };
        for place in seeds.len()..cut.places() {
            places.push(places[place % seeds.len()]);
        }
        let seeds = places.iter().map(|&place| seeds[place as usize]).collect();
        let times = times.map(|all| places.iter().map(|&place| all[place as usize]).collect());
        Ok(Self { places: Some(places), seeds, times, cut: Batches::Cut(cut) })
    }

    /// Batches that the rank has.
    pub(crate) fn batches(&self) -> usize {
        match &self.cut {
            Batches::Cut(cut) => cut.batches(),
            Batches::Bounds(bounds, _) => bounds.len() - 1,
        }
    }

    /// The number in the whole epoch of the rank's batch `batch`.
    pub(crate) fn number(&self, batch: usize) -> u32 {
        match &self.cut {
            Batches::Cut(cut) => cut.number(batch) as u32,
            Batches::Bounds(_, rank) => rank.number(batch) as u32,
        }
    }

    /// The places of a batch's seeds in the order.
    pub(crate) fn range(&self, batch: usize) -> Range<usize> {
        match &self.cut {
            Batches::Cut(cut) => cut.range(batch),
            Batches::Bounds(bounds, _) => bounds[batch]..bounds[batch + 1],
        }
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

    /// The order of a rank's batches of any sizes: batch i has the seeds from `bounds[i]` to
    /// `bounds[i + 1]`.
    pub(crate) fn order_of(
        &self,
        seeds: &[u32],
        bounds: Vec<usize>,
        rank: Rank,
    ) -> Result<SeedOrder> {
        let ascending = bounds.is_sorted() && bounds.first() == Some(&0);
        if self.options.shuffle || !ascending || bounds.last() != Some(&seeds.len()) {
            return Err(Error::new(ErrorKind::Input, "load batches of several sizes")
                .expected("unshuffled seeds, and where each batch begins among them"));
        }
        Ok(SeedOrder { cut: Batches::Bounds(bounds, rank), ..self.order(0, seeds.into())? })
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
            number: order.number(number),
            vertices: &order.seeds[order.range(number)],
            times: match &order.times {
                Some(times) => &times[order.range(number)],
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

    /// Bytes of pages that a window keeps at most, of neighbours and of what they are chosen by, of
    /// choosing from the longest list, and of batches that have no memory of their own yet.
    fn retained_bytes(&self) -> u64 {
        let retain_bytes = self.options.retain_bytes as u64;
        let neighbors = if self.topology.is_resident() { 0 } else { retain_bytes };
        let columns = self.topology.columns().read_to_choose();
        neighbors
            + self.topology.bytes_to_choose(columns, retain_bytes)
            + self.topology.bytes_of_choice()
            + self.options.per_thread.scratch_bytes
    }

    /// A worker's tools: used ones, or new.
    pub(crate) fn take_tools(&self) -> Result<Tools> {
        self.tools.take().map_or_else(|| self.new_tools(), Ok)
    }

    pub(crate) fn new_tools(&self) -> Result<Tools> {
        let sampler = Sampler::new(self.graph.vertices(), &self.options.sample)?;
        let mut tools = Tools::new(sampler, self.graph.page_reader()?);
        let tables = tools.sampler.resident_bytes() + self.options.per_thread.growth_bytes;
        tools.reserve_growth(&self.graph, tables, self.retained_bytes())?;
        Ok(tools)
    }
}
