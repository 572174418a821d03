//! The manifest, which makes a graph of files.

use tiergraph_core::Result;
use tiergraph_format::manifest::{
    Checksum, FORMAT_VERSION, LayoutName, Manifest, Order, Provenance, TilesParameters,
};

use super::graph::Graph;
use super::outputs::Output;

/// What was written.
pub(super) struct Written {
    pub(super) edges: u64,
    pub(super) arcs: u64,
    pub(super) strip_arcs: u64,
}

/// A graph that lacks only its manifest.
pub(super) struct Encoded<'a> {
    pub(super) graph: Graph<'a>,
    pub(super) counts: Written,
}

impl Encoded<'_> {
    /// Writes the manifest and puts the graph in its place.
    pub(super) fn commit(self, source: String, order: Order) -> Result<Manifest> {
        let graph = self.graph;
        let mut layouts = Vec::new();
        for output in &graph.outputs {
            let layout = match output {
                Output::Tiles => LayoutName::Tiles,
                Output::OutRows | Output::InRows => LayoutName::Rows,
                Output::OutRaw | Output::InRaw => LayoutName::Raw,
            };
            if !layouts.contains(&layout) {
                layouts.push(layout);
            }
        }
        let options =
            graph.options.provenance().into_iter().map(|(name, value)| (name.into(), value));
        let manifest = Manifest {
            format_version: FORMAT_VERSION,
            vertices: graph.vertices as u64,
            edges: self.counts.edges,
            arcs: self.counts.arcs,
            directed: !graph.undirected,
            weighted: graph.weights,
            id_width: graph.ids.bytes() as u8,
            block_bytes: graph.options.block_bytes,
            codec: graph.options.codec,
            tiles: layouts.contains(&LayoutName::Tiles).then_some(TilesParameters {
                columns_log2: graph.tile_options.columns_log2,
                strip_arcs: self.counts.strip_arcs,
                stored_once: graph.undirected,
                min_gap: graph.tile_options.min_gap,
            }),
            layouts,
            stripes: Vec::new(),
            checksum: Checksum::Crc32c,
            order,
            build_id: String::new(),
            provenance: Provenance {
                source,
                options: options.collect(),
                tiergraph: env!("CARGO_PKG_VERSION").into(),
            },
            files: graph.files,
        };
        Ok(graph.building.commit(manifest)?.manifest().clone())
    }
}
