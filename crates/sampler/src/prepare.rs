//! How a loader's thread makes the batches of a window: sample, reserve, gather.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tiergraph_core::Result;
use tiergraph_graph::{Graph, PageReader, PagesRead};

use crate::batch::MiniBatch;
use crate::board::{Board, Workshop};
use crate::edges::{EdgeValues, gather_features, read_numbers};
use crate::epoch::Prepared;
use crate::gather::{GatherReads, gather_matrices};
use crate::matrix::Matrix;
use crate::options::LoaderOptions;
use crate::shared::Shared;
use crate::stats::EpochStats;
use crate::tools::Tools;

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
    /// Makes the batches of a window ready.
    fn prepare(&self, tools: &mut Tools, window: Range<usize>) -> Result<()> {
        let since = Instant::now();
        let mut batches = Vec::new();
        let reads =
            self.shared.sample(tools, self.epoch, &self.order, window.clone(), &mut batches)?;
        let seconds_sample = since.elapsed().as_secs_f64();
        let held = self.reserve(&window, self.sizes(&batches)?.into_iter())?;
        let since = Instant::now();
        let (features, mut gathered) = self.gather(tools, &batches)?;
        let (edges, numbers, of_edges) = self.edges(tools, &batches)?;
        gathered += of_edges;
        gathered.read += numbers;
        let seconds = (seconds_sample, since.elapsed().as_secs_f64());
        let mut stats = EpochStats::of(&reads, &gathered, seconds);
        stats.bytes_ssd_values += numbers.bytes;
        let (mut features, mut edges) = (features.into_iter(), edges.into_iter());
        let mut ready = Vec::new();
        for ((number, batch), held) in window.zip(batches).zip(held) {
            stats.nodes += batch.n_id.len() as u64;
            stats.edges += batch.e_id.len() as u64;
            let (input_id, x) = (self.input_id(number), features.next());
            let edges = edges.next().unwrap_or_default();
            ready.push((number, Prepared { batch, input_id, x, edges, held: Arc::new(held) }));
        }
        self.deliver(ready, &stats);
        Ok(())
    }

    /// The bytes of a window's batches.
    fn sizes(&self, batches: &[MiniBatch]) -> Result<Vec<u64>> {
        let features = self.shared.features()?;
        let edge_features = self.shared.edge_features()?.map(|(features, _)| features);
        let columns = self.shared.topology.columns();
        let delivery = self.shared.options.delivery;
        let size = |batch: &MiniBatch| {
            let rows = batch.n_id.len();
            let x = features.map_or(0, |(f, _)| Matrix::bytes_of(f, rows, delivery));
            let edges = EdgeValues::bytes_of(batch.e_id.len(), columns, edge_features);
            x + edges + batch.resident_bytes()
        };
        Ok(batches.iter().map(size).collect())
    }

    /// What is known about the edges of a window's batches.
    fn edges(
        &self,
        tools: &mut Tools,
        batches: &[MiniBatch],
    ) -> Result<(Vec<EdgeValues>, PagesRead, GatherReads)> {
        let columns = self.shared.topology.columns();
        let mut edges = tools.sampler.take_values();
        edges.resize_with(batches.len(), EdgeValues::default);
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
