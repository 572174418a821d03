//! The table of a batch's nodes and their places, in one of three kinds.

use tiergraph_core::{Error, ErrorKind, Result};

use crate::pipeline::types::Ends;
use crate::sampling::batch::{MiniBatch, SampledEdges, SampledNodes};
use crate::sampling::relabel::{Dense, Hashed, Key, Labels, MAX_PLACES};
use crate::sampling::steps::AHEAD;

/// The most vertices of a graph for which tables are dense: 64 MiB a worker.
const DENSE_VERTICES: usize = 16 << 20;

/// The kind of table from vertices to places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A dense table: 4 bytes for each vertex of the graph.
    Dense,
    /// A hash table: 16 to 32 bytes for each node of the batch.
    Hashed,
}

/// A table of the places of one type's nodes in a batch: each node once, or once in each tree.
pub(crate) trait Table: std::fmt::Debug + Send {
    /// Bytes that the table takes in memory.
    fn resident_bytes(&self) -> u64;

    /// Enters all of a batch's nodes of a type, and forgets those of the batch before.
    fn enter(&mut self, nodes: &SampledNodes) -> Result<()>;

    /// Appends the places of `neighbors`, which the last edges of a type lead to, and the new ones
    /// among them.
    fn relabel(
        &mut self,
        batch: &mut MiniBatch,
        edge_type: usize,
        ends: Ends,
        neighbors: &[u32],
    ) -> Result<()>;
}

impl TableKind {
    /// The kind of table that is fastest for a graph of `vertices` vertices.
    pub(crate) fn for_graph(vertices: usize) -> Self {
        if vertices <= DENSE_VERTICES { Self::Dense } else { Self::Hashed }
    }

    /// A table for a graph's vertices, in one tree or in several `disjoint` ones.
    pub(crate) fn table(self, vertices: usize, disjoint: bool) -> Result<Box<dyn Table>> {
        Ok(match self {
            _ if disjoint => Box::new(Hashed::<u64>::default()),
            Self::Dense => Box::new(Dense::new(vertices)?),
            Self::Hashed => Box::new(Hashed::<u32>::default()),
        })
    }
}

impl<L: Labels + std::fmt::Debug + Send> Table for L {
    fn resident_bytes(&self) -> u64 {
        Labels::resident_bytes(self)
    }

    fn enter(&mut self, nodes: &SampledNodes) -> Result<()> {
        let SampledNodes { n_id, tree, .. } = nodes;
        let key = |i: usize| L::Key::of(if L::Key::HAS_TREE { tree[i] } else { 0 }, n_id[i]);
        self.start(n_id.len())?;
        for node in 0..n_id.len() {
            if node + AHEAD < n_id.len() {
                self.prefetch(key(node + AHEAD));
            }
            self.place(key(node), node as u32);
        }
        Ok(())
    }

    fn relabel(
        &mut self,
        batch: &mut MiniBatch,
        edge_type: usize,
        ends: Ends,
        neighbors: &[u32],
    ) -> Result<()> {
        let SampledEdges { row, col, .. } = &mut batch.edges[edge_type];
        let mut trees = Vec::new();
        if L::Key::HAS_TREE {
            let of_nodes = &batch.nodes[ends.destination].tree;
            trees.extend(col[row.len()..].iter().map(|&expanded| of_nodes[expanded as usize]));
        }
        let tree = |i: usize| if L::Key::HAS_TREE { trees[i] } else { 0 };
        let SampledNodes { n_id, tree: all_trees, .. } = &mut batch.nodes[ends.source];
        if n_id.len() + neighbors.len() >= MAX_PLACES {
            return Err(Error::new(ErrorKind::Input, "sample a batch")
                .expected(format!("fewer than {MAX_PLACES} nodes"))
                .hint("use a smaller batch or smaller fanouts"));
        }
        self.reserve(neighbors.len())?;
        let first = neighbors.iter().take(AHEAD).enumerate();
        first.for_each(|(i, &vertex)| self.prefetch(L::Key::of(tree(i), vertex)));
        for (i, &vertex) in neighbors.iter().enumerate() {
            if let Some(&ahead) = neighbors.get(i + AHEAD) {
                self.prefetch(L::Key::of(tree(i + AHEAD), ahead));
            }
            let next = n_id.len() as u32;
            let place = self.place(L::Key::of(tree(i), vertex), next);
            if place == next {
                n_id.push(vertex);
                if L::Key::HAS_TREE {
                    all_trees.push(tree(i));
                }
            }
            row.push(place);
        }
        Ok(())
    }
}
