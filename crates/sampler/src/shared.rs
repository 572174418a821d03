//! What all epochs and workers of a loader share, and what one worker has for itself.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Features, Graph, PageReader};
use tiergraph_mem::Reservation;

use crate::batch::MiniBatch;
use crate::options::LoaderOptions;
use crate::order::permutation;
use crate::philox::{EpochKey, Purpose};
use crate::sample::Sampler;
use crate::store::RowStore;
use crate::topology::Topology;
use crate::window::{SampleReads, Seeds};

/// What workers share.
pub(crate) struct Shared {
    pub(crate) graph: Arc<Graph>,
    pub(crate) topology: Topology,
    pub(crate) rows: Option<RowStore>,
    pub(crate) options: LoaderOptions,
    pub(crate) tools: Mutex<Vec<Tools>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("options", &self.options).finish_non_exhaustive()
    }
}

/// What one worker has for itself, from epoch to epoch.
pub(crate) struct Tools {
    pub(crate) sampler: Sampler,
    pub(crate) reader: PageReader,
    held: Vec<Reservation>,
}

impl Tools {
    /// Reserves what the tables have grown by.
    fn reserve_growth(&mut self, graph: &Graph, retained: u64) -> Result<()> {
        let held: u64 = self.held.iter().map(Reservation::bytes).sum();
        let bytes = self.sampler.resident_bytes() + self.reader.resident_bytes() + retained;
        if bytes > held {
            self.held.push(graph.reserve(bytes - held, "the tables and buffers of a sampler")?);
        }
        Ok(())
    }
}

/// The seeds of an epoch in its order.
#[derive(Debug)]
pub(crate) struct SeedOrder {
    /// Places in the caller's list, where they were shuffled.
    pub(crate) places: Option<Vec<u32>>,
    /// The seeds, in order.
    pub(crate) seeds: Vec<u32>,
}

impl SeedOrder {
    /// Batches that the seeds make.
    pub(crate) fn batches(&self, options: &LoaderOptions) -> usize {
        match options.drop_last {
            true => self.seeds.len() / options.batch_size,
            false => self.seeds.len().div_ceil(options.batch_size),
        }
    }

    /// The places of a batch's seeds in the order.
    pub(crate) fn range(&self, batch: usize, options: &LoaderOptions) -> Range<usize> {
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

    pub(crate) fn order(&self, epoch: u64, seeds: &[u32]) -> Result<SeedOrder> {
        let vertices = self.graph.vertices();
        if let Some(seed) = seeds.iter().find(|&&seed| seed as usize >= vertices) {
            return Err(Error::new(ErrorKind::Input, "sample from seed")
                .object(seed)
                .expected(format!("one of {vertices} vertices")));
        }
        let count = u32::try_from(seeds.len()).map_err(|_| {
            Error::new(ErrorKind::Input, "load batches").expected("fewer than 2^32 seeds")
        })?;
        if !self.options.shuffle {
            return Ok(SeedOrder { places: None, seeds: seeds.to_vec() });
        }
        let key = EpochKey::new(self.options.seed, epoch, Purpose::Shuffle);
        let places = permutation(key, count);
        let seeds = places.iter().map(|&place| seeds[place as usize]).collect();
        Ok(SeedOrder { places: Some(places), seeds })
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
        };
        let seeds: Vec<Seeds<'_>> = window.map(seeds).collect();
        batches.resize_with(seeds.len(), MiniBatch::default);
        let Tools { sampler, reader, .. } = tools;
        let retain_bytes = self.options.retain_bytes;
        let reads =
            sampler.sample_window(&self.topology, reader, key, &seeds, batches, retain_bytes)?;
        tools.reserve_growth(&self.graph, self.retained_bytes())?;
        Ok(reads)
    }

    /// Bytes of pages that a window keeps at most.
    fn retained_bytes(&self) -> u64 {
        if self.topology.is_resident() { 0 } else { self.options.retain_bytes as u64 }
    }

    /// A worker's tools: used ones, or new.
    pub(crate) fn take_tools(&self) -> Result<Tools> {
        let kept = self.tools.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.map_or_else(|| self.new_tools(), Ok)
    }

    pub(crate) fn new_tools(&self) -> Result<Tools> {
        let sampler = Sampler::new(self.graph.vertices(), &self.options.sample)?;
        let reader = self.graph.page_reader()?;
        let mut tools = Tools { sampler, reader, held: Vec::new() };
        tools.reserve_growth(&self.graph, self.retained_bytes())?;
        Ok(tools)
    }

    /// Keeps a worker's tools for the next epoch.
    pub(crate) fn give_tools(&self, tools: Tools) {
        // A failed engine may still bring what nobody waits for.
        if !tools.reader.is_idle() {
            return;
        }
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).push(tools);
    }
}
