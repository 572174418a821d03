//! A mini-batch: a small graph, whose nodes have local numbers.

use std::ops::Range;

use crate::pipeline::types::Ends;
use crate::sampling::sampler::SampledTypes;
use crate::sampling::steps::Taken;

/// The seeds of one batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seeds<'a> {
    /// The batch's number in its epoch.
    pub number: u32,
    /// The seeds of the batch: nodes of the input types, numbered through where there are several.
    pub vertices: &'a [u32],
    /// The time of each seed; empty where edges have no times.
    pub times: &'a [i64],
}

/// The sampled nodes and edges of one batch, by the graph's order of types. An ordinary graph has one
/// type of nodes and one of edges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MiniBatch {
    /// The batch's number in its epoch.
    pub number: u32,
    /// The nodes of each type.
    pub nodes: Vec<SampledNodes>,
    /// The edges of each type.
    pub edges: Vec<SampledEdges>,
    /// The times of the seeds, where edges have times: what is later is not sampled. Else empty.
    pub seed_time: Vec<i64>,
}

/// The sampled nodes of one type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledNodes {
    /// The nodes as the graph numbers those of the type: seeds first, in their order, then each hop's
    /// new ones in the order in which they were found.
    pub n_id: Vec<u32>,
    /// In disjoint batches, the index of each node's seed among the seeds; else empty.
    pub tree: Vec<u32>,
    /// The number of seeds, then of the new nodes of each hop.
    pub num_sampled: Vec<usize>,
}

/// The sampled edges of one type, each from `row` to `col`, the direction of its messages: places
/// among the nodes of the source's and of the destination's type. `col` is the node that was expanded,
/// `row` the neighbour that was sampled for it. That is PyG's convention, with its names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledEdges {
    /// The sampled neighbour of each edge.
    pub row: Vec<u32>,
    /// The expanded node of each edge.
    pub col: Vec<u32>,
    /// Each edge's number in the graph of its type: the place of its arc in the rows file.
    pub e_id: Vec<u64>,
    /// The number of edges of each hop.
    pub num_sampled: Vec<usize>,
}

impl MiniBatch {
    /// The number of seeds.
    pub fn batch_size(&self) -> usize {
        self.nodes.iter().filter_map(|nodes| nodes.num_sampled.first()).sum()
    }

    /// The number of nodes of all types.
    pub fn node_count(&self) -> u64 {
        self.nodes.iter().map(|nodes| nodes.n_id.len() as u64).sum()
    }

    /// The number of edges of all types.
    pub fn edge_count(&self) -> u64 {
        self.edges.iter().map(|edges| edges.e_id.len() as u64).sum()
    }

    /// Bytes that the batch takes in memory.
    pub fn resident_bytes(&self) -> u64 {
        let nodes = self.nodes.iter().map(|nodes| nodes.n_id.capacity() + nodes.tree.capacity());
        let edges = self
            .edges
            .iter()
            .map(|edges| edges.row.capacity() + edges.col.capacity() + 2 * edges.e_id.capacity());
        let words = nodes.sum::<usize>() + edges.sum::<usize>() + 2 * self.seed_time.capacity();
        4 * words as u64
    }

    /// Starts a new batch with `seeds`, in the same memory.
    pub(crate) fn begin(&mut self, types: &SampledTypes, seeds: Seeds<'_>) {
        self.number = seeds.number;
        self.seed_time.clear();
        self.seed_time.extend_from_slice(seeds.times);
        self.nodes.resize_with(types.vertices.len(), SampledNodes::default);
        self.edges.resize_with(types.ends.len(), SampledEdges::default);
        self.nodes.iter_mut().for_each(SampledNodes::clear);
        self.edges.iter_mut().for_each(SampledEdges::clear);
        for (&seed, tree) in seeds.vertices.iter().zip(0..) {
            let Some((input, node)) = types.node(seed) else { continue };
            self.nodes[input].n_id.push(node);
            if types.is_disjoint() {
                self.nodes[input].tree.push(tree);
            }
        }
        for nodes in &mut self.nodes {
            nodes.num_sampled.push(nodes.n_id.len());
        }
    }

    /// For each type, the nodes that the last hop found, which the next one expands.
    pub(crate) fn frontiers(&self) -> Vec<Range<usize>> {
        self.nodes.iter().map(SampledNodes::frontier).collect()
    }

    /// Ends a hop: counts the nodes that came after the last hop's `frontiers` as its own.
    pub(crate) fn end_hop(&mut self, frontiers: &[Range<usize>]) {
        for (nodes, frontier) in self.nodes.iter_mut().zip(frontiers) {
            nodes.num_sampled.push(nodes.n_id.len() - frontier.end);
        }
    }

    /// The edges of a type, with the nodes that were expanded for them.
    pub(crate) fn taken(&self, edge_type: usize, ends: Ends, edges: Range<usize>) -> Taken<'_> {
        let SampledEdges { col, e_id, .. } = &self.edges[edge_type];
        let n_id = &self.nodes[ends.destination].n_id;
        Taken { n_id, col: &col[edges.clone()], e_id: &e_id[edges] }
    }
}

impl SampledNodes {
    /// The nodes that the last hop found, which the next one expands.
    pub(crate) fn frontier(&self) -> Range<usize> {
        let new = self.num_sampled.last().copied().unwrap_or(0);
        self.n_id.len() - new..self.n_id.len()
    }

    fn clear(&mut self) {
        self.n_id.clear();
        self.tree.clear();
        self.num_sampled.clear();
    }
}

impl SampledEdges {
    /// Ends a hop: counts the edges from `first` on as its own.
    pub(crate) fn end_hop(&mut self, first: usize) {
        self.num_sampled.push(self.row.len() - first);
    }

    fn clear(&mut self) {
        self.row.clear();
        self.col.clear();
        self.e_id.clear();
        self.num_sampled.clear();
    }
}
