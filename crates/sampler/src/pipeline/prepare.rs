//! Preparing the batches of a window: sample, reserve, gather.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tiergraph_core::Result;
use tiergraph_graph::PagesRead;
use tiergraph_mem::Reservation;

use crate::gathering::edges::{EdgeValues, gather_features, read_columns};
use crate::gathering::gather::{GatherReads, gather};
use crate::gathering::matrix::Matrix;
use crate::options::LoaderOptions;
use crate::pipeline::epoch::Prepared;
use crate::pipeline::queue::PrefetchQueue;
use crate::pipeline::scratch::Scratch;
use crate::pipeline::stats::EpochStats;
use crate::sampling::batch::{MiniBatch, SampledEdges};

/// Sampled batches, with the values of each one's edges, by edge type.
#[derive(Default)]
struct Sampled {
    batches: Vec<MiniBatch>,
    edges: Vec<Vec<EdgeValues>>,
}

impl Sampled {
    /// Cuts off what comes after the first `count` batches.
    fn split_off(&mut self, count: usize) -> Self {
        Self { batches: self.batches.split_off(count), edges: self.edges.split_off(count) }
    }
}

impl PrefetchQueue {
    /// Makes the batches of a window ready. Where not all of them have room at once, those that have
    /// are handed over before the others.
    pub(crate) fn prepare(&self, scratch: &mut Scratch, window: Range<usize>) -> Result<()> {
        let since = Instant::now();
        let mut sampled = Sampled::default();
        let reads = self.shared.sample(
            scratch,
            self.epoch,
            &self.order,
            window.clone(),
            &mut sampled.batches,
        )?;
        let mut stats = EpochStats::sampled(&reads, since.elapsed().as_secs_f64());
        sampled.edges = std::mem::take(&mut scratch.sampler.values);
        let mut left = window;
        while !left.is_empty() {
            let bytes =
                sampled.batches.iter().map(|batch| self.shared.sizes.batch(batch)).collect();
            let held = self.reserve(&left, bytes)?;
            let now = left.start..left.start + held.len();
            left.start = now.end;
            let later = sampled.split_off(held.len());
            self.gather_and_deliver(scratch, now, sampled, held, &mut stats)?;
            sampled = later;
        }
        Ok(())
    }

    /// Reads features and values of sampled batches, and delivers them with their reservations. `stats`
    /// has the counts that were not delivered yet.
    fn gather_and_deliver(
        &self,
        scratch: &mut Scratch,
        numbers: Range<usize>,
        mut sampled: Sampled,
        held: Vec<Reservation>,
        stats: &mut EpochStats,
    ) -> Result<()> {
        let since = Instant::now();
        let (features, mut gathered) = self.gather(scratch, &sampled.batches)?;
        let (read, of_edges) = self.gather_edges(scratch, &mut sampled)?;
        gathered += of_edges;
        gathered.read += read;
        stats.add(&EpochStats::gathered(&gathered, since.elapsed().as_secs_f64()));
        stats.bytes_ssd_values += read.bytes;
        let parts = sampled.batches.into_iter().zip(sampled.edges).zip(features);
        let mut ready = Vec::new();
        for ((number, held), ((batch, edges), x)) in numbers.zip(held).zip(parts) {
            stats.nodes += batch.node_count();
            stats.edges += batch.edge_count();
            let (input_id, held) = (self.order.input_id(number), Arc::new(held));
            ready.push((number, Prepared { batch, input_id, x, edges, held }));
        }
        self.deliver(ready, &std::mem::take(stats));
        Ok(())
    }

    /// Reads the values of batches' edges that were not read to choose the edges.
    fn gather_edges(
        &self,
        scratch: &mut Scratch,
        sampled: &mut Sampled,
    ) -> Result<(PagesRead, GatherReads)> {
        let (mut read, mut reads) = (PagesRead::default(), GatherReads::default());
        let features = self.shared.types.edge_features(&self.shared.options)?;
        let edge_rows = features.into_iter().zip(&self.shared.edge_rows);
        let topologies = self.shared.topologies.iter().zip(edge_rows);
        for (edge_type, (topology, (features, rows))) in topologies.enumerate() {
            let columns = topology.columns();
            let edges: Vec<&SampledEdges> =
                sampled.batches.iter().map(|batch| &batch.edges[edge_type]).collect();
            let mut values: Vec<&mut EdgeValues> =
                sampled.edges.iter_mut().map(|values| &mut values[edge_type]).collect();
            for (values, edges) in values.iter_mut().zip(&edges) {
                values.look_up(edges, columns);
            }
            read += read_columns(columns, &mut scratch.reader, &edges, &mut values)?;
            if let Some((features, rows)) = features.zip(rows.as_ref()) {
                reads += gather_features(features, rows, &mut scratch.reader, &mut values)?;
            }
        }
        Ok((read, reads))
    }

    /// The features of each batch of a window, by node type.
    fn gather(
        &self,
        scratch: &mut Scratch,
        batches: &[MiniBatch],
    ) -> Result<(Vec<Vec<Option<Matrix>>>, GatherReads)> {
        let mut all: Vec<Vec<Option<Matrix>>> = batches.iter().map(|_| Vec::new()).collect();
        let mut reads = GatherReads::default();
        let features = self.shared.types.features(&self.shared.options)?;
        for (node_type, (features, rows)) in features.iter().zip(&self.shared.rows).enumerate() {
            let Some((features, rows)) = features.zip(rows.as_ref()) else {
                all.iter_mut().for_each(|x| x.push(None));
                continue;
            };
            let nodes: Vec<&[u32]> =
                batches.iter().map(|batch| batch.nodes[node_type].n_id.as_slice()).collect();
            let LoaderOptions { sharing, delivery, .. } = self.shared.options;
            let reader = &mut scratch.reader;
            let (matrices, read) = gather(rows, features, reader, &nodes, sharing, delivery)?;
            reads += read;
            all.iter_mut().zip(matrices).for_each(|(x, matrix)| x.push(Some(matrix)));
        }
        Ok((all, reads))
    }
}
