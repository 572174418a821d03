//! How batches of several types are made.

use tiergraph_core::{Error, ErrorKind, Result};

use crate::options::LoaderOptions;
use crate::options::{Fanout, SampleOptions, check_fanouts};

/// How batches of several types are made.
#[derive(Debug, Clone, PartialEq)]
pub struct HeteroOptions {
    /// Of each edge type, one fanout a hop; as many for all.
    pub fanouts: Vec<Vec<Fanout>>,
    /// Of each node type, which features batches come with.
    pub features: Vec<Option<String>>,
    /// The type of the seeds, by its place among the node types.
    pub input: usize,
    /// Sizes, order, threads and memory. What is sampled and gathered is said above, and messages
    /// go along edges: `sample`, `direction`, `features` and `edge_features` are not looked at.
    pub batches: LoaderOptions,
}

impl HeteroOptions {
    /// Batches without features, as [`LoaderOptions::new`] has them.
    pub fn new(fanouts: Vec<Vec<Fanout>>, node_types: usize, input: usize) -> Self {
        let batches = LoaderOptions::new(SampleOptions::default());
        Self { fanouts, features: vec![None; node_types], input, batches }
    }

    /// Hops.
    pub fn hops(&self) -> usize {
        self.fanouts.first().map_or(0, Vec::len)
    }

    /// Refuses what makes no batches of a graph of so many types of nodes and edges.
    pub(crate) fn check(&self, (nodes, edges): (usize, usize)) -> Result<()> {
        self.batches.check()?;
        self.fanouts.iter().try_for_each(|fanouts| check_fanouts(fanouts))?;
        let error = || Error::new(ErrorKind::Input, "sample with the fanouts");
        if self.fanouts.len() != edges {
            return Err(error()
                .expected(format!("those of {edges} edge types"))
                .got(self.fanouts.len()));
        }
        if let Some(other) = self.fanouts.iter().find(|fanouts| fanouts.len() != self.hops()) {
            return Err(error()
                .expected(format!("{} hops for every edge type", self.hops()))
                .got(other.len()));
        }
        if self.features.len() != nodes || self.input >= nodes {
            return Err(Error::new(ErrorKind::Input, "sample nodes of the type")
                .object(self.input)
                .expected(format!("one of {nodes} types, and whose features for each")));
        }
        Ok(())
    }
}
