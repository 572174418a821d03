//! A mini-batch: a small graph of its own, with local numbers.

use std::ops::Range;

use crate::sampling::steps::Taken;

/// The seeds of one batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seeds<'a> {
    /// The batch's number in its epoch.
    pub number: u32,
    /// Its seeds.
    pub vertices: &'a [u32],
    /// The time of each, where edges have times; else none.
    pub times: &'a [i64],
}

/// What was sampled for one batch of seeds.
///
/// Numbers of nodes are local: places in [`n_id`](Self::n_id). An edge leads from `row` to `col`,
/// the direction of its messages: `col` is the node that was expanded, `row` the neighbour that was
/// sampled for it. That is PyG's convention, with its names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MiniBatch {
    /// The batch's number in its epoch.
    pub number: u32,
    /// The vertices, as the graph numbers them: seeds first, in their order, then each hop's new
    /// ones in the order in which they were found.
    pub n_id: Vec<u32>,
    /// The sampled neighbour of each edge.
    pub row: Vec<u32>,
    /// The expanded node of each edge.
    pub col: Vec<u32>,
    /// Each edge's number in the graph: the place of its arc in the rows file.
    pub e_id: Vec<u64>,
    /// Disjoint batches: each node's seed, as its place among the seeds. Else empty.
    pub tree: Vec<u32>,
    /// The times of the seeds, where edges have times: what is later is not sampled. Else empty.
    pub seed_time: Vec<i64>,
    /// Seeds, then the new nodes of each hop.
    pub num_sampled_nodes: Vec<usize>,
    /// Edges of each hop.
    pub num_sampled_edges: Vec<usize>,
}

impl MiniBatch {
    /// Seeds.
    pub fn batch_size(&self) -> usize {
        self.num_sampled_nodes.first().copied().unwrap_or(0)
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> u64 {
        let words = 2 * self.seed_time.capacity()
            + self.n_id.capacity()
            + self.row.capacity()
            + self.col.capacity()
            + self.tree.capacity()
            + self.e_id.capacity() * 2;
        4 * words as u64
    }

    /// Begins anew with `seeds`, keeping the memory.
    pub(crate) fn begin(&mut self, seeds: Seeds<'_>, disjoint: bool) {
        let Seeds { number, vertices: seeds, times } = seeds;
        self.number = number;
        self.seed_time.clear();
        self.seed_time.extend_from_slice(times);
        self.row.clear();
        self.col.clear();
        self.e_id.clear();
        self.n_id.clear();
        self.n_id.extend_from_slice(seeds);
        self.tree.clear();
        if disjoint {
            self.tree.extend(0..seeds.len() as u32);
        }
        self.num_sampled_nodes.clear();
        self.num_sampled_nodes.push(seeds.len());
        self.num_sampled_edges.clear();
    }

    /// Edges with the nodes that were expanded for them.
    pub(crate) fn taken(&self, edges: Range<usize>) -> Taken<'_> {
        let (col, e_id) = (&self.col[edges.clone()], &self.e_id[edges]);
        Taken { n_id: &self.n_id, col, e_id }
    }

    /// The nodes that the last hop found, which the next one expands.
    pub(crate) fn frontier(&self) -> Range<usize> {
        let new = self.num_sampled_nodes.last().copied().unwrap_or(0);
        self.n_id.len() - new..self.n_id.len()
    }
}
