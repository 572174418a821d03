//! The loader of several types: what all epochs share, and how it is set up.

use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Direction, Graph, HeteroGraph};

use super::batch::HeteroBatch;
use super::options::HeteroOptions;
use super::shared::HeteroShared;
use crate::pipeline::epoch::Epoch;
use crate::pipeline::scratch::Chest;
use crate::pipeline::shared::Inputs;
use crate::residency::neighbors::Keep;
use crate::residency::rows::RowStore;
use crate::residency::topology::{Sides, Topology};

/// What a loader of several types keeps in memory.
#[derive(Debug, Clone, Default)]
pub struct HeteroKept {
    /// Neighbours, by edge type.
    pub neighbors: Vec<Keep>,
    /// Nodes whose rows of features are kept, by node type.
    pub rows: Vec<Vec<u32>>,
}

/// Prepares batches of one heterogeneous graph, epoch after epoch.
#[derive(Debug, Clone)]
pub struct HeteroLoader(pub(crate) Arc<HeteroShared>);

impl HeteroLoader {
    /// A loader that keeps this in memory.
    ///
    /// # Errors
    /// Options that make no batches of this graph, features that it does not have, what does not
    /// fit its memory, and what reading gives.
    pub fn new(graph: Arc<HeteroGraph>, options: HeteroOptions, kept: HeteroKept) -> Result<Self> {
        options.check((graph.nodes().len(), graph.edges().len()))?;
        let topologies = (0..graph.edges().len()).zip(&kept.neighbors);
        let topologies = topologies
            .map(|(edge_type, keep)| open_topology(&graph, edge_type, keep))
            .collect::<Result<Vec<Topology>>>()?;
        let mut rows = Vec::new();
        for ((graph, name), kept) in graph.nodes().iter().zip(&options.features).zip(kept.rows) {
            rows.push(match name {
                Some(name) => Some(RowStore::load(graph, graph.features(name)?, kept)?),
                None => None,
            });
        }
        let tools = Chest::default();
        let shared = HeteroShared { graph, topologies, rows, options, tools };
        shared.tools.fill(shared.any(), shared.options.batches.threads, || shared.new_tools())?;
        Ok(Self(Arc::new(shared)))
    }

    /// The options.
    pub fn options(&self) -> &HeteroOptions {
        &self.0.options
    }

    /// The neighbours, by edge type.
    pub fn topologies(&self) -> &[Topology] {
        &self.0.topologies
    }

    /// Begins epoch `epoch` over `seeds`, nodes of the input type, from batch `first` on.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a seed that the graph does not have, or too many; what the system
    /// refuses threads for.
    pub fn epoch<'a>(
        &self,
        epoch: u64,
        seeds: impl Into<Inputs<'a>>,
        first: usize,
    ) -> Result<Epoch<HeteroShared>> {
        let order = self.0.order(epoch, seeds.into())?;
        Epoch::start(Arc::clone(&self.0), epoch, order, first)
    }

    /// Samples the first `batches` of an epoch and shows them, a window at a time.
    pub(crate) fn for_each_window(
        &self,
        epoch: u64,
        seeds: &[u32],
        batches: usize,
        mut visit: impl FnMut(&[HeteroBatch]) -> Result<()>,
    ) -> Result<()> {
        let (shared, options) = (&*self.0, &self.0.options.batches);
        let order = shared.order(epoch, seeds.into())?;
        let count = order.batches().min(batches);
        let mut tools = shared.take_tools()?;
        let mut batches = Vec::new();
        let visited = (0..count).step_by(options.window).try_for_each(|begin| {
            shared.any().cancel().check("count what batches want")?;
            let window = begin..count.min(begin + options.window);
            shared.sample(&mut tools, epoch, &order, window, &mut batches)?;
            visit(&batches)
        });
        shared.tools.give(tools);
        visited
    }
}

/// The neighbours that edges of a type lead to: the destination's nodes come first in the type's
/// graph, then the source's, unless they are the same.
fn open_topology(graph: &HeteroGraph, edge_type: usize, keep: &Keep) -> Result<Topology> {
    let (source, destination) = graph.ends()[edge_type];
    let count = |node_type: usize| vertices(&graph.nodes()[node_type]);
    let base = if source == destination { 0 } else { count(destination)? };
    let neighbors = base..base + count(source)?;
    let sides = Sides { expanded: count(destination)?, neighbors };
    Topology::open_between(&graph.edges()[edge_type], Direction::In, sides, keep)
}

fn vertices(graph: &Graph) -> Result<u32> {
    u32::try_from(graph.vertices()).map_err(|_| {
        Error::new(ErrorKind::Input, "sample nodes").expected("fewer than 2^32 of a type")
    })
}
