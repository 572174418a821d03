//! The types of nodes and edges that batches are of.
//!
//! A heterogeneous graph has a graph a node type and a graph an edge type; an ordinary graph is one
//! node type and one edge type, which are itself. So everything that makes batches is written once.

use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Direction, Graph, HeteroGraph};

use crate::residency::neighbors::Residency;
use crate::residency::topology::{Sides, Topology};

/// The node types that an edge type's edges lead from and to, by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The type of the neighbours that are sampled.
    pub source: usize,
    /// The type of the nodes that are expanded.
    pub destination: usize,
}

impl Ends {
    /// Both ends of the edges of a graph with one node type.
    pub const SAME: Self = Self { source: 0, destination: 0 };
}

/// The graphs of the node types and of the edge types. They share one budget, and an engine of any of
/// them reads the files of all.
#[derive(Clone)]
pub struct GraphTypes {
    pub(crate) nodes: Vec<Arc<Graph>>,
    pub(crate) edges: Vec<Arc<Graph>>,
    pub(crate) ends: Vec<Ends>,
}

impl From<Arc<Graph>> for GraphTypes {
    fn from(graph: Arc<Graph>) -> Self {
        Self { nodes: vec![Arc::clone(&graph)], edges: vec![graph], ends: vec![Ends::SAME] }
    }
}

impl From<&Arc<Graph>> for GraphTypes {
    fn from(graph: &Arc<Graph>) -> Self {
        Arc::clone(graph).into()
    }
}

impl From<&HeteroGraph> for GraphTypes {
    fn from(graph: &HeteroGraph) -> Self {
        let ends = graph.ends().iter().map(|&(source, destination)| Ends { source, destination });
        Self { nodes: graph.nodes().to_vec(), edges: graph.edges().to_vec(), ends: ends.collect() }
    }
}

impl GraphTypes {
    /// A graph of them, for what all have in common: the budget, the engines, the cancellation.
    pub(crate) fn any(&self) -> &Arc<Graph> {
        &self.nodes[0]
    }

    /// Nodes of each type.
    pub(crate) fn vertices(&self) -> Vec<usize> {
        self.nodes.iter().map(|graph| graph.vertices()).collect()
    }

    /// Pages of the neighbours of each edge type.
    pub(crate) fn pages(&self, direction: Direction) -> Vec<u64> {
        let pages = |graph: &Arc<Graph>| {
            graph.rows(direction).pages().map_or(0, |rows| rows.index.len() as u64)
        };
        self.edges.iter().map(pages).collect()
    }

    /// Arcs of each edge type.
    pub(crate) fn arcs(&self) -> Vec<u64> {
        self.edges.iter().map(|graph| graph.manifest().arcs).collect()
    }

    /// Opens the neighbours of an edge type. In the type's graph the destination's nodes come first,
    /// then the source's, unless both are of one type.
    pub(crate) fn topology(
        &self,
        edge_type: usize,
        direction: Direction,
        keep: &Residency,
    ) -> Result<Topology> {
        let Ends { source, destination } = self.ends[edge_type];
        let base = if source == destination { 0 } else { count(&self.nodes[destination])? };
        let neighbors = base..base + count(&self.nodes[source])?;
        let sides = Sides { expanded: count(&self.nodes[destination])?, neighbors };
        Topology::open_between(&self.edges[edge_type], direction, sides, keep)
    }
}

fn count(graph: &Graph) -> Result<u32> {
    u32::try_from(graph.vertices()).map_err(|_| {
        Error::new(ErrorKind::Input, "sample nodes").expected("fewer than 2^32 of a type")
    })
}
