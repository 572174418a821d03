//! Sizes of batches in bytes: of a batch that was sampled, and of the largest that may come.

use tiergraph_core::Result;

use crate::gathering::edges::EdgeValues;
use crate::gathering::matrix::Matrix;
use crate::options::LoaderOptions;
use crate::pipeline::types::{Ends, GraphTypes};
use crate::residency::columns::Columns;
use crate::residency::extent::Extent;
use crate::residency::room::BatchBytes;
use crate::residency::topology::Topology;
use crate::sampling::batch::MiniBatch;
use crate::sampling::table::TableKind;

/// Bytes by which a batch's size follows from its numbers of nodes and edges.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    /// Bytes of a node's features and of the arrays that it is handed over in, by node type.
    node_bytes: Vec<u64>,
    /// Bytes of an edge's values and of the arrays that it is handed over in, by edge type.
    edge_bytes: Vec<u64>,
    disjoint: bool,
    /// Bytes of the seeds' times.
    times: u64,
    ends: Vec<Ends>,
    /// Whether a type's nodes are looked up in a hash table.
    hashed: Vec<bool>,
    /// The most neighbours that are taken of one node.
    fanout: u64,
}

impl Sizes {
    /// Sizes of batches whose edges have the values `columns`, by edge type.
    pub(crate) fn of<'a>(
        types: &GraphTypes,
        columns: impl Iterator<Item = &'a Columns>,
        options: &LoaderOptions,
    ) -> Result<Self> {
        let handed = options.handed_over;
        let features = types.features(options)?.into_iter();
        let x = |of| handed.node_bytes + Matrix::bytes_of(of, 1, options.delivery);
        let of_edges = columns.zip(types.edge_features(options)?);
        let values = |(columns, features)| EdgeValues::bytes_of(1, columns, features);
        let fanouts = options.sample.iter().flat_map(|sample| &sample.fanouts);
        let hashed = |&vertices: &usize| TableKind::for_graph(vertices) == TableKind::Hashed;
        Ok(Self {
            node_bytes: features.map(|of| of.map_or(handed.node_bytes, x)).collect(),
            edge_bytes: of_edges.map(|of| handed.edge_bytes + values(of)).collect(),
            disjoint: options.disjoint(),
            times: if options.timed() { 8 * options.batch_size as u64 } else { 0 },
            ends: types.ends.clone(),
            hashed: types.vertices().iter().map(hashed).collect(),
            fanout: fanouts.map(|fanout| fanout.most()).max().unwrap_or(0),
        })
    }

    /// Bytes of a batch with its features, values and arrays.
    pub(crate) fn batch(&self, batch: &MiniBatch) -> u64 {
        batch.resident_bytes() + self.values(&Extent::of(batch))
    }

    /// The most bytes of what is sampled. Lists that grow are up to twice as long as what is in them.
    fn places(&self, extent: &Extent) -> u64 {
        let node = if self.disjoint { 8 } else { 4 };
        2 * (node * extent.all_nodes() + 16 * extent.all_edges()) + self.times
    }

    /// Bytes of features, of edges' values, and of the arrays that are handed over.
    fn values(&self, extent: &Extent) -> u64 {
        let sum = |counts: &[u64], bytes: &[u64]| -> u64 {
            counts.iter().zip(bytes).map(|(count, bytes)| count * bytes).sum()
        };
        sum(&extent.nodes, &self.node_bytes) + sum(&extent.edges, &self.edge_bytes)
    }

    /// The bytes of batches of which the largest counted one has `usual` bytes, and the largest that may
    /// come has `extent`.
    pub(crate) fn batch_bytes(&self, usual: u64, extent: &Extent) -> BatchBytes {
        let slot = if self.disjoint { 16 } else { 8 };
        let ends = || self.ends.iter().zip(&extent.edges);
        // At most half full, of a power of two.
        let hashed = self.hashed.iter().enumerate().filter(|(_, hashed)| **hashed);
        let tables = hashed.map(|(of, _)| {
            let edges = ends().filter(|(ends, _)| ends.source == of).map(|(_, edges)| edges);
            4 * slot * (extent.nodes[of] + edges.sum::<u64>())
        });
        let most_edges = extent.edges.iter().max().copied().unwrap_or(0);
        // A list that grows is up to twice as long as what is in it.
        let list = 2 * 8 * Topology::most_unpacked(self.fanout.min(most_edges));
        let (growth, scratch) = (tables.sum::<u64>() + 8 * most_edges + list, self.places(extent));
        BatchBytes { usual, most: scratch + self.values(extent), growth, scratch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batchs_bytes_are_those_of_its_lists_twice_and_of_its_values() {
        let sizes = |disjoint, fanout| Sizes {
            node_bytes: vec![100, 0],
            edge_bytes: vec![7],
            disjoint,
            times: 24,
            ends: vec![Ends { source: 1, destination: 0 }],
            hashed: vec![true, true],
            fanout,
        };
        let extent = Extent { nodes: vec![10, 20], edges: vec![30] };
        let values = 10 * 100 + 30 * 7;
        // Nodes, and 16 bytes an edge; times of seeds.
        let places = 2 * (4 * 30 + 16 * 30) + 24;
        // A slot of 8 bytes for four times as many nodes as there may be of a type; a number an edge;
        // a list of 64 neighbours that grew.
        let growth = 8 * 4 * (10 + 20 + 30) + 8 * 30 + 2 * 8 * 64;
        let batch = BatchBytes { usual: 5, most: places + values, growth, scratch: places };
        assert_eq!(sizes(false, 3).batch_bytes(5, &extent), batch);
        // A tree's number beside each node; lists of as many neighbours as a batch has edges.
        let places = 2 * (8 * 30 + 16 * 30) + 24;
        let growth = 16 * 4 * (10 + 20 + 30) + 8 * 30 + 2 * 8 * 4 * 30;
        let batch = BatchBytes { usual: 5, most: places + values, growth, scratch: places };
        assert_eq!(sizes(true, u64::MAX).batch_bytes(5, &extent), batch);
        let listed = Sizes { hashed: vec![false, true], ..sizes(false, 3) };
        let growth = 8 * 4 * (20 + 30) + 8 * 30 + 2 * 8 * 64;
        assert_eq!(
            listed.batch_bytes(5, &extent).growth,
            growth,
            "a list of all nodes does not grow"
        );
    }
}
