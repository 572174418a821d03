//! A mini-batch of several types: a small graph of its own, with local numbers.

use std::ops::Range;

use crate::sampling::batch::Seeds;
use crate::sampling::steps::Taken;

/// What was sampled for one batch of seeds, by the graph's order of types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeteroBatch {
    /// The batch's number in its epoch.
    pub number: u32,
    /// The nodes of each type.
    pub nodes: Vec<SampledNodes>,
    /// The edges of each type.
    pub edges: Vec<SampledEdges>,
}

/// The nodes of one type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledNodes {
    /// The nodes as the graph numbers those of the type: seeds first, then each hop's new ones in
    /// the order in which they were found.
    pub n_id: Vec<u32>,
    /// Seeds, then the new nodes of each hop.
    pub num_sampled: Vec<usize>,
}

/// The edges of one type, each from `row` to `col`: places among the nodes of the source's and of
/// the destination's type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledEdges {
    /// The sampled neighbour of each edge.
    pub row: Vec<u32>,
    /// The expanded node of each edge.
    pub col: Vec<u32>,
    /// Each edge's number in the graph of its type: the place of its arc in the rows file.
    pub e_id: Vec<u64>,
    /// Edges of each hop.
    pub num_sampled: Vec<usize>,
}

impl HeteroBatch {
    /// Bytes in memory.
    pub fn resident_bytes(&self) -> u64 {
        let nodes: usize = self.nodes.iter().map(|nodes| nodes.n_id.capacity()).sum();
        let edges = self
            .edges
            .iter()
            .map(|edges| edges.row.capacity() + edges.col.capacity() + 2 * edges.e_id.capacity());
        4 * (nodes + edges.sum::<usize>()) as u64
    }

    /// Begins anew with `seeds` of one of the node types, keeping the memory.
    pub(crate) fn begin(&mut self, types: (usize, usize), input: usize, seeds: Seeds<'_>) {
        self.number = seeds.number;
        self.nodes.resize_with(types.0, SampledNodes::default);
        self.edges.resize_with(types.1, SampledEdges::default);
        for nodes in &mut self.nodes {
            nodes.n_id.clear();
            nodes.num_sampled.clear();
        }
        self.nodes[input].n_id.extend_from_slice(seeds.vertices);
        self.end_hop(&vec![0; types.0]);
        for edges in &mut self.edges {
            edges.row.clear();
            edges.col.clear();
            edges.e_id.clear();
            edges.num_sampled.clear();
        }
    }

    /// How many nodes of each type there are.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        self.nodes.iter().map(|nodes| nodes.n_id.len()).collect()
    }

    /// Counts the nodes that came after there were `before` of each type.
    pub(crate) fn end_hop(&mut self, before: &[usize]) {
        for (nodes, before) in self.nodes.iter_mut().zip(before) {
            nodes.num_sampled.push(nodes.n_id.len() - before);
        }
    }
}

impl SampledNodes {
    /// The nodes that the last hop found, which the next one expands.
    pub(crate) fn frontier(&self) -> Range<usize> {
        let new = self.num_sampled.last().copied().unwrap_or(0);
        self.n_id.len() - new..self.n_id.len()
    }
}

impl SampledEdges {
    /// Counts the edges from `first` on as a hop's.
    pub(crate) fn end_hop(&mut self, first: usize) {
        self.num_sampled.push(self.row.len() - first);
    }

    /// Edges with the nodes that were expanded for them.
    pub(crate) fn taken<'a>(&'a self, nodes: &'a SampledNodes, edges: Range<usize>) -> Taken<'a> {
        let (col, e_id) = (&self.col[edges.clone()], &self.e_id[edges]);
        Taken { n_id: &nodes.n_id, col, e_id }
    }
}
