//! A batch's nodes and their places: one of three tables.

use tiergraph_core::{Error, ErrorKind, Result};

use crate::pipeline::types::Ends;
use crate::sampling::batch::{MiniBatch, SampledNodes};
use crate::sampling::relabel::{Dense, Hashed, Labels, MAX_PLACES};
use crate::sampling::steps::AHEAD;

/// Dense tables are used for graphs of up to so many vertices: 64 MiB a worker.
const DENSE_VERTICES: usize = 16 << 20;

/// Which table turns vertices into places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// 4 bytes a vertex of the graph.
    Dense,
    /// 16 to 32 bytes a node of the batch.
    Hashed,
}

/// The places of the nodes of one type in a batch: each node once, or once a tree.
#[derive(Debug)]
pub(crate) enum Table {
    Dense(Dense),
    Hashed(Hashed<u32>),
    Trees(Hashed<u64>),
}

impl TableKind {
    /// The fastest for a graph.
    pub(crate) fn for_graph(vertices: usize) -> Self {
        if vertices <= DENSE_VERTICES { Self::Dense } else { Self::Hashed }
    }
}

impl Table {
    pub(crate) fn new(vertices: usize, disjoint: bool, kind: TableKind) -> Result<Self> {
        Ok(match kind {
            _ if disjoint => Self::Trees(Hashed::default()),
            TableKind::Dense => Self::Dense(Dense::new(vertices)?),
            TableKind::Hashed => Self::Hashed(Hashed::default()),
        })
    }

    /// Bytes in memory.
    pub(crate) fn resident_bytes(&self) -> u64 {
        match self {
            Self::Dense(table) => table.resident_bytes(),
            Self::Hashed(table) => table.resident_bytes(),
            Self::Trees(table) => table.resident_bytes(),
        }
    }

    /// Enters all of a batch's nodes of a type, and forgets those of the batch before.
    pub(crate) fn enter(&mut self, nodes: &SampledNodes) -> Result<()> {
        let SampledNodes { n_id, tree, .. } = nodes;
        match self {
            Self::Dense(table) => enter(table, n_id.len(), |i| n_id[i]),
            Self::Hashed(table) => enter(table, n_id.len(), |i| n_id[i]),
            Self::Trees(table) => enter(table, n_id.len(), |i| tree_key(tree[i], n_id[i])),
        }
    }

    /// Appends the places of `neighbors`, which the last edges of a type lead to, and the new ones
    /// among them.
    ///
    /// # Errors
    /// More nodes than have places.
    pub(crate) fn relabel(
        &mut self,
        batch: &mut MiniBatch,
        edge_type: usize,
        ends: Ends,
        neighbors: &[u32],
    ) -> Result<()> {
        let n_id = &mut batch.nodes[ends.source].n_id;
        if n_id.len() + neighbors.len() >= MAX_PLACES {
            return Err(Error::new(ErrorKind::Input, "sample a batch")
                .expected(format!("fewer than {MAX_PLACES} nodes"))
                .hint("use a smaller batch or smaller fanouts"));
        }
        let row = &mut batch.edges[edge_type].row;
        match self {
            Self::Dense(table) => relabel_flat(table, n_id, row, neighbors),
            Self::Hashed(table) => relabel_flat(table, n_id, row, neighbors),
            Self::Trees(table) => relabel_trees(table, batch, edge_type, ends, neighbors),
        }
    }
}

/// A node's tree and vertex in one.
fn tree_key(tree: u32, vertex: u32) -> u64 {
    u64::from(tree) << 32 | u64::from(vertex)
}

fn enter<L: Labels>(table: &mut L, nodes: usize, key: impl Fn(usize) -> L::Key) -> Result<()> {
    table.start(nodes)?;
    for node in 0..nodes {
        if node + AHEAD < nodes {
            table.prefetch(key(node + AHEAD));
        }
        table.place(key(node), node as u32);
    }
    Ok(())
}

fn relabel_flat<L: Labels<Key = u32>>(
    table: &mut L,
    n_id: &mut Vec<u32>,
    row: &mut Vec<u32>,
    neighbors: &[u32],
) -> Result<()> {
    table.reserve(neighbors.len())?;
    neighbors.iter().take(AHEAD).for_each(|&vertex| table.prefetch(vertex));
    for (i, &vertex) in neighbors.iter().enumerate() {
        if let Some(&ahead) = neighbors.get(i + AHEAD) {
            table.prefetch(ahead);
        }
        let next = n_id.len() as u32;
        let place = table.place(vertex, next);
        if place == next {
            n_id.push(vertex);
        }
        row.push(place);
    }
    Ok(())
}

fn relabel_trees(
    table: &mut Hashed<u64>,
    batch: &mut MiniBatch,
    edge_type: usize,
    ends: Ends,
    neighbors: &[u32],
) -> Result<()> {
    table.reserve(neighbors.len())?;
    let edges = &mut batch.edges[edge_type];
    for &vertex in neighbors {
        let expanded = edges.col[edges.row.len()] as usize;
        let tree = batch.nodes[ends.destination].tree[expanded];
        let nodes = &mut batch.nodes[ends.source];
        let next = nodes.n_id.len() as u32;
        let place = table.place(tree_key(tree, vertex), next);
        if place == next {
            nodes.n_id.push(vertex);
            nodes.tree.push(tree);
        }
        edges.row.push(place);
    }
    Ok(())
}
