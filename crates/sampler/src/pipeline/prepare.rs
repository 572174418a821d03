//! How a loader's thread makes the batches of a window: sample, reserve, gather.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tiergraph_core::Result;
use tiergraph_graph::{Graph, PageReader, PagesRead};
use tiergraph_mem::Reservation;

use crate::gathering::edges::{EdgeValues, gather_features, read_numbers};
use crate::gathering::gather::{GatherReads, gather_matrices};
use crate::gathering::matrix::Matrix;
use crate::options::LoaderOptions;
use crate::pipeline::epoch::Prepared;
use crate::pipeline::queue::{Board, Workshop};
use crate::pipeline::scratch::Tools;
use crate::pipeline::shared::Shared;
use crate::pipeline::stats::EpochStats;
use crate::residency::sizes::Sizes;
use crate::sampling::batch::MiniBatch;
use crate::sampling::window::SampleReads;

impl Workshop for Shared {
    type Tools = Tools;
    type Prepared = Prepared;

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn options(&self) -> &LoaderOptions {
        &self.options
    }

    fn reads(&self) -> bool {
        let rows = self.rows.as_ref().map_or(0, |rows| rows.len());
        let all = self.options.features.is_none() || rows == self.graph.vertices() as u64;
        let columns = self.topology.columns();
        let all = all && self.options.edge_features.is_none() && columns.read_numbers().is_none();
        !(all && columns.choose_in_memory() && self.topology.is_resident())
    }

    fn take_tools(&self) -> Result<Tools> {
        Self::take_tools(self)
    }

    fn give_tools(&self, tools: Tools) {
        self.tools.give(tools);
    }

    fn reader(tools: &mut Tools) -> &mut PageReader {
        &mut tools.reader
    }

    fn prepare(board: &Board<Self>, tools: &mut Tools, window: Range<usize>) -> Result<()> {
        board.prepare(tools, window)
    }
}

impl Board<Shared> {
    /// Makes the batches of a window ready. Where not all of them have room at once, those that have
    /// are handed over before the others.
    fn prepare(&self, tools: &mut Tools, window: Range<usize>) -> Result<()> {
        let since = Instant::now();
        let mut batches = Vec::new();
        let reads =
            self.shared.sample(tools, self.epoch, &self.order, window.clone(), &mut batches)?;
        let mut stats =
            EpochStats::of(&reads, &GatherReads::default(), (since.elapsed().as_secs_f64(), 0.0));
        let mut values = tools.sampler.take_values();
        values.resize_with(batches.len(), EdgeValues::default);
        let mut left = window;
        while !left.is_empty() {
            let held = self.reserve(&left, self.sizes(&batches)?)?;
            let now = left.start..left.start + held.len();
            left.start = now.end;
            let later = batches.split_off(held.len());
            let values_later = values.split_off(held.len());
            self.gather_and_deliver(tools, now, (batches, values, held), &mut stats)?;
            (batches, values) = (later, values_later);
        }
        Ok(())
    }

    /// Brings features and values of sampled batches, and hands them over with what they hold of the
    /// graph's memory. `stats` has what was not delivered yet.
    fn gather_and_deliver(
        &self,
        tools: &mut Tools,
        numbers: Range<usize>,
        (batches, values, held): (Vec<MiniBatch>, Vec<EdgeValues>, Vec<Reservation>),
        stats: &mut EpochStats,
    ) -> Result<()> {
        let since = Instant::now();
        let (features, mut gathered) = self.gather(tools, &batches)?;
        let (edges, read, of_edges) = self.edges(tools, &batches, values)?;
        gathered += of_edges;
        gathered.read += read;
        let seconds = (0.0, since.elapsed().as_secs_f64());
        stats.add(&EpochStats::of(&SampleReads::default(), &gathered, seconds));
        stats.bytes_ssd_values += read.bytes;
        let (mut features, mut edges) = (features.into_iter(), edges.into_iter());
        let mut ready = Vec::new();
        for ((number, batch), held) in numbers.zip(batches).zip(held) {
            stats.nodes += batch.n_id.len() as u64;
            stats.edges += batch.e_id.len() as u64;
            let (input_id, x) = (self.input_id(number), features.next());
            let edges = edges.next().unwrap_or_default();
            ready.push((number, Prepared { batch, input_id, x, edges, held: Arc::new(held) }));
        }
        self.deliver(ready, &std::mem::take(stats));
        Ok(())
    }

    /// The bytes of a window's batches.
    fn sizes(&self, batches: &[MiniBatch]) -> Result<Vec<u64>> {
        let columns = self.shared.topology.columns();
        let sizes = Sizes::of(&self.shared.graph, columns, &self.shared.options)?;
        Ok(batches.iter().map(|batch| sizes.batch(batch)).collect())
    }

    /// What is known about the edges of batches, beside what was read of them to choose.
    fn edges(
        &self,
        tools: &mut Tools,
        batches: &[MiniBatch],
        mut edges: Vec<EdgeValues>,
    ) -> Result<(Vec<EdgeValues>, PagesRead, GatherReads)> {
        let columns = self.shared.topology.columns();
        for (edges, batch) in edges.iter_mut().zip(batches) {
            edges.look_up(batch, columns);
        }
        let numbers = match columns.read_numbers() {
            Some(column) => read_numbers(column, &mut tools.reader, batches, &mut edges)?,
            None => PagesRead::default(),
        };
        let reads = match self.shared.edge_features()? {
            Some((features, rows)) => {
                gather_features(features, rows, &mut tools.reader, &mut edges)?
            }
            None => GatherReads::default(),
        };
        Ok((edges, numbers, reads))
    }

    /// The features of a window's batches.
    fn gather(
        &self,
        tools: &mut Tools,
        batches: &[MiniBatch],
    ) -> Result<(Vec<Matrix>, GatherReads)> {
        let Some((features, rows)) = self.shared.features()? else { return Ok(Default::default()) };
        let nodes: Vec<&[u32]> = batches.iter().map(|batch| batch.n_id.as_slice()).collect();
        gather_matrices(rows, features, &mut tools.reader, &nodes, &self.shared.options)
    }
}
