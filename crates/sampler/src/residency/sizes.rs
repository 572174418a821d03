//! How many bytes a batch takes, of a batch that is there and of the largest that may come.

use tiergraph_core::Result;
use tiergraph_graph::Features;

use crate::gathering::edges::EdgeValues;
use crate::gathering::matrix::Matrix;
use crate::options::TypedOptions;
use crate::pipeline::types::GraphTypes;
use crate::residency::columns::Columns;
use crate::residency::extent::Extent;
use crate::residency::topology::Topology;
use crate::sampling::batch::MiniBatch;
use crate::sampling::table::TableKind;

/// What a batch's bytes follow from, beside its nodes and edges.
pub(crate) struct Sizes<'a> {
    types: &'a GraphTypes,
    features: Vec<Option<&'a Features>>,
    edge_features: Vec<Option<&'a Features>>,
    columns: Vec<&'a Columns>,
    options: &'a TypedOptions,
}

impl<'a> Sizes<'a> {
    pub(crate) fn of(
        types: &'a GraphTypes,
        topologies: &'a [Topology],
        options: &'a TypedOptions,
    ) -> Result<Self> {
        Self::with_columns(types, topologies.iter().map(Topology::columns).collect(), options)
    }

    pub(crate) fn with_columns(
        types: &'a GraphTypes,
        columns: Vec<&'a Columns>,
        options: &'a TypedOptions,
    ) -> Result<Self> {
        let nodes = types.nodes.iter().zip(&options.features);
        let features = nodes
            .map(|(graph, name)| name.as_ref().map(|name| graph.features().get(name)).transpose())
            .collect::<Result<_>>()?;
        let edges = types.edges.iter().zip(&options.edge_features);
        let edge_features = edges
            .map(|(graph, name)| {
                name.as_ref().map(|name| graph.edge_values().features(name)).transpose()
            })
            .collect::<Result<_>>()?;
        Ok(Self { types, features, edge_features, columns, options })
    }

    /// Bytes of a batch with everything that it comes with.
    pub(crate) fn batch(&self, batch: &MiniBatch) -> u64 {
        batch.resident_bytes() + self.values(&Extent::of(batch))
    }

    /// The most bytes of a batch of so many nodes and edges.
    pub(crate) fn most(&self, extent: &Extent) -> u64 {
        self.places(extent) + self.values(extent)
    }

    /// The most bytes of what is sampled. Lists that grow are up to twice as long as what is in them.
    pub(crate) fn places(&self, extent: &Extent) -> u64 {
        let tree = u64::from(self.options.disjoint());
        let times = 8 * u64::from(self.options.timed());
        2 * ((4 + 4 * tree) * extent.all_nodes() + 16 * extent.all_edges())
            + times * self.options.batches.batch_size as u64
    }

    /// Bytes of features, of what is known about edges, and of the arrays that are handed over.
    fn values(&self, extent: &Extent) -> u64 {
        let delivery = self.options.batches.delivery;
        let x = self.features.iter().zip(&extent.nodes).map(|(features, &nodes)| {
            features.map_or(0, |all| Matrix::bytes_of(all, nodes as usize, delivery))
        });
        let of_edges = self.columns.iter().zip(&self.edge_features).zip(&extent.edges);
        let of_edges = of_edges.map(|((columns, features), &edges)| {
            EdgeValues::bytes_of(edges as usize, columns, *features)
        });
        let handed = &self.options.batches.handed_over;
        x.sum::<u64>()
            + of_edges.sum::<u64>()
            + handed.node_bytes * extent.all_nodes()
            + handed.edge_bytes * extent.all_edges()
    }

    /// The most bytes that a thread's tables and lists grow by while it samples such a batch, and
    /// that it has of each batch of a window which is not reserved for yet.
    pub(crate) fn thread(&self, extent: &Extent) -> (u64, u64) {
        let slot = if self.options.disjoint() { 16 } else { 8 };
        // At most half full, of a power of two.
        let tables = self.types.nodes.iter().enumerate().map(|(node_type, graph)| {
            let hashed = TableKind::for_graph(graph.vertices()) == TableKind::Hashed;
            let ends = self.types.ends.iter().zip(&extent.edges);
            let edges = ends.filter(|(ends, _)| ends.source == node_type).map(|(_, edges)| edges);
            if hashed { 4 * slot * (extent.nodes[node_type] + edges.sum::<u64>()) } else { 0 }
        });
        let most_edges = extent.edges.iter().max().copied().unwrap_or(0);
        let fanouts = self.options.sample.iter().flat_map(|sample| &sample.fanouts);
        let fanout = fanouts.map(|fanout| fanout.most()).max().unwrap_or(0).min(most_edges);
        // A list that grows is up to twice as long as what is in it.
        let list = 2 * 8 * Topology::most_unpacked(fanout);
        (tables.sum::<u64>() + 8 * most_edges + list, self.places(extent))
    }
}
