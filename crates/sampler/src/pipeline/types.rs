//! The types of nodes and edges that batches are of.
//!
//! A heterogeneous graph has a graph a node type and a graph an edge type; an ordinary graph is one
//! node type and one edge type, which are itself. So everything that makes batches is written once.

use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Direction, Features, Graph, HeteroGraph};

use crate::options::LoaderOptions;
use crate::residency::neighbors::{NeighborFile, Residency};
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

    /// The files of the neighbours of each edge type.
    pub(crate) fn neighbors(&self, direction: Direction) -> Vec<NeighborFile> {
        self.edges.iter().map(|graph| NeighborFile::of(graph, direction)).collect()
    }

    /// The features of each node type that batches come with.
    pub(crate) fn features(&self, options: &LoaderOptions) -> Result<Vec<Option<&Features>>> {
        let nodes = self.nodes.iter().zip(&options.features);
        let of = nodes.map(|(graph, name)| Some(graph.features().get(name.as_ref()?)));
        of.map(Option::transpose).collect()
    }

    /// The features of each edge type that batches come with.
    pub(crate) fn edge_features(&self, options: &LoaderOptions) -> Result<Vec<Option<&Features>>> {
        let edges = self.edges.iter().zip(&options.sample);
        let of = edges
            .map(|(graph, sample)| Some(graph.edge_values().features(sample.features.as_ref()?)));
        of.map(Option::transpose).collect()
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
