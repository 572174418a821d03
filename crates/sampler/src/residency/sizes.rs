//! How many bytes a batch takes, of a batch that is there and of the largest that may come.

use tiergraph_core::Result;
use tiergraph_graph::{Features, Graph};

use crate::gathering::edges::EdgeValues;
use crate::gathering::matrix::Matrix;
use crate::options::LoaderOptions;
use crate::residency::columns::Columns;
use crate::residency::extent::Extent;
use crate::sampling::batch::MiniBatch;

/// What a batch's bytes follow from, beside its nodes and edges.
pub(crate) struct Sizes<'a> {
    features: Option<&'a Features>,
    edge_features: Option<&'a Features>,
    columns: &'a Columns,
    options: &'a LoaderOptions,
}

impl<'a> Sizes<'a> {
    pub(crate) fn of(
        graph: &'a Graph,
        columns: &'a Columns,
        options: &'a LoaderOptions,
    ) -> Result<Self> {
        let features = options.features.as_ref().map(|name| graph.features(name)).transpose()?;
        let edge_features =
            options.edge_features.as_ref().map(|name| graph.edge_features(name)).transpose()?;
        Ok(Self { features, edge_features, columns, options })
    }

    /// Bytes of a batch with everything that it comes with.
    pub(crate) fn batch(&self, batch: &MiniBatch) -> u64 {
        let (nodes, edges) = (batch.n_id.len() as u64, batch.e_id.len() as u64);
        batch.resident_bytes() + self.values(Extent { nodes, edges })
    }

    /// The most bytes of a batch of so many nodes and edges.
    pub(crate) fn most(&self, extent: Extent) -> u64 {
        self.places(extent) + self.values(extent)
    }

    /// The most bytes of what is sampled. Lists that grow are up to twice as long as what is in them.
    pub(crate) fn places(&self, Extent { nodes, edges }: Extent) -> u64 {
        let tree = u64::from(self.options.sample.disjoint);
        let times = 8 * u64::from(self.options.sample.times.is_some());
        2 * ((4 + 4 * tree) * nodes + 16 * edges) + times * self.options.batch_size as u64
    }

    /// Bytes of features, of what is known about edges, and of the arrays that are handed over.
    fn values(&self, Extent { nodes, edges }: Extent) -> u64 {
        let x = self
            .features
            .map_or(0, |all| Matrix::bytes_of(all, nodes as usize, self.options.delivery));
        let handed = &self.options.handed_over;
        x + EdgeValues::bytes_of(edges as usize, self.columns, self.edge_features)
            + handed.node_bytes * nodes
            + handed.edge_bytes * edges
    }

    /// The most bytes that a thread's table and lists grow by while it samples such a batch, and
    /// that it has of each batch of a window which is not reserved for yet.
    pub(crate) fn thread(&self, extent: Extent, hashed: bool) -> (u64, u64) {
        let Extent { nodes, edges } = extent;
        let slot = if self.options.sample.disjoint { 16 } else { 8 };
        // At most half full, of a power of two.
        let table = if hashed { 4 * slot * (nodes + edges) } else { 0 };
        (table + 8 * edges + LIST_BYTES, self.places(extent))
    }
}

/// Neighbours of one page while they are looked up.
const LIST_BYTES: u64 = 1 << 20;
