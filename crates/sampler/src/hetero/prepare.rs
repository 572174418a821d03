//! How a thread makes the batches of a window: sample, reserve, gather type by type.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tiergraph_core::Result;
use tiergraph_graph::{Graph, PageReader};
use tiergraph_mem::Reservation;

use super::batch::HeteroBatch;
use super::fit::batch_bytes;
use super::sampler::HeteroSampler;
use super::shared::HeteroShared;
use crate::gathering::edges::Held;
use crate::gathering::gather::{GatherReads, gather_matrices};
use crate::gathering::matrix::Matrix;
use crate::options::LoaderOptions;
use crate::pipeline::queue::{Board, Workshop};
use crate::pipeline::scratch::Tools;
use crate::pipeline::stats::EpochStats;
use crate::residency::rows::RowStore;
use crate::sampling::window::SampleReads;

/// A batch that is ready to train on.
#[derive(Debug)]
pub struct HeteroPrepared {
    /// What was sampled.
    pub batch: HeteroBatch,
    /// The places of its seeds in the caller's list.
    pub input_id: Vec<u32>,
    /// The features of its nodes, by type.
    pub x: Vec<Option<Matrix>>,
    /// What of the graph's memory it holds.
    held: Arc<Reservation>,
}

impl HeteroPrepared {
    /// Takes the features of a node type, with the memory that they count for.
    pub fn take_x(&mut self, node_type: usize) -> Option<Held> {
        let matrix = self.x[node_type].take()?;
        Some(Held::new(matrix, &self.held))
    }
}

impl Workshop for HeteroShared {
    type Tools = Tools<HeteroSampler>;
    type Prepared = HeteroPrepared;

    fn graph(&self) -> &Graph {
        self.any()
    }

    fn options(&self) -> &LoaderOptions {
        &self.options.batches
    }

    fn reads(&self) -> bool {
        let in_memory = |(graph, rows): (&Arc<Graph>, &Option<RowStore>)| {
            rows.as_ref().is_none_or(|rows| rows.len() == graph.vertices() as u64)
        };
        !(self.are_resident() && self.graph.nodes().iter().zip(&self.rows).all(in_memory))
    }

    fn take_tools(&self) -> Result<Self::Tools> {
        Self::take_tools(self)
    }

    fn give_tools(&self, tools: Self::Tools) {
        self.tools.give(tools);
    }

    fn reader(tools: &mut Self::Tools) -> &mut PageReader {
        &mut tools.reader
    }

    fn prepare(board: &Board<Self>, tools: &mut Self::Tools, window: Range<usize>) -> Result<()> {
        let since = Instant::now();
        let shared = &*board.shared;
        let mut batches = Vec::new();
        let reads =
            shared.sample(tools, board.epoch, &board.order, window.clone(), &mut batches)?;
        let mut stats =
            EpochStats::of(&reads, &GatherReads::default(), (since.elapsed().as_secs_f64(), 0.0));
        let mut left = window;
        while !left.is_empty() {
            let size = |batch| batch_bytes(&shared.graph, &shared.options, batch);
            let sizes = batches.iter().map(size).collect::<Result<Vec<u64>>>()?;
            let held = board.reserve(&left, sizes)?;
            let later = batches.split_off(held.len());
            let since = Instant::now();
            let (features, gathered) = shared.gather(tools, &batches)?;
            let seconds = (0.0, since.elapsed().as_secs_f64());
            stats.add(&EpochStats::of(&SampleReads::default(), &gathered, seconds));
            let mut ready = Vec::new();
            for ((batch, held), x) in batches.into_iter().zip(held).zip(features) {
                stats.nodes += batch.nodes.iter().map(|nodes| nodes.n_id.len() as u64).sum::<u64>();
                stats.edges += batch.edges.iter().map(|edges| edges.e_id.len() as u64).sum::<u64>();
                let (number, held) = (left.start, Arc::new(held));
                let input_id = board.input_id(number);
                ready.push((number, HeteroPrepared { batch, input_id, x, held }));
                left.start += 1;
            }
            board.deliver(ready, &std::mem::take(&mut stats));
            batches = later;
        }
        Ok(())
    }
}

impl HeteroShared {
    /// The features of each batch of a window, by node type.
    fn gather(
        &self,
        tools: &mut Tools<HeteroSampler>,
        batches: &[HeteroBatch],
    ) -> Result<(Vec<Vec<Option<Matrix>>>, GatherReads)> {
        let mut all: Vec<Vec<Option<Matrix>>> = batches.iter().map(|_| Vec::new()).collect();
        let mut reads = GatherReads::default();
        for node_type in 0..self.rows.len() {
            let Some((features, rows)) = self.features(node_type)? else {
                all.iter_mut().for_each(|x| x.push(None));
                continue;
            };
            let nodes: Vec<&[u32]> =
                batches.iter().map(|batch| batch.nodes[node_type].n_id.as_slice()).collect();
            let (matrices, read) =
                gather_matrices(rows, features, &mut tools.reader, &nodes, &self.options.batches)?;
            reads += read;
            all.iter_mut().zip(matrices).for_each(|(x, matrix)| x.push(Some(matrix)));
        }
        Ok((all, reads))
    }
}
