//! The node types and edge types of batches.
//!
//! A heterogeneous graph has a graph for each node type and for each edge type; an ordinary graph is its
//! own only node type and edge type. So all that makes batches is written once.

use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Direction, Features, Graph, HeteroGraph};

use crate::options::LoaderOptions;
use crate::residency::neighbors::{NeighborFile, Residency};
use crate::residency::topology::{Sides, Topology};

/// The ends of an edge type. The fields are indices of node types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The node type of the neighbours that are sampled.
    pub source: usize,
    /// The node type of the nodes that are expanded.
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
    /// Any one of the graphs, for what all share: the budget, the engines, the cancellation flag.
    pub(crate) fn any(&self) -> &Arc<Graph> {
        &self.nodes[0]
    }

    /// The number of nodes of each type.
    pub(crate) fn vertices(&self) -> Vec<usize> {
        self.nodes.iter().map(|graph| graph.vertices()).collect()
    }

    /// The sizes of the neighbour files of each edge type.
    pub(crate) fn neighbors(&self, direction: Direction) -> Vec<NeighborFile> {
        self.edges.iter().map(|graph| NeighborFile::of(graph, direction)).collect()
    }

    /// The features of each node type that batches come with; `None` for none.
    pub(crate) fn features(&self, options: &LoaderOptions) -> Result<Vec<Option<&Features>>> {
        let nodes = self.nodes.iter().zip(&options.features);
        let of = nodes.map(|(graph, name)| Some(graph.features().get(name.as_ref()?)));
        of.map(Option::transpose).collect()
    }

    /// The features of each edge type that batches come with; `None` for none.
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
