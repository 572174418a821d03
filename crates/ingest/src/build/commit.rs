//! The manifest, which turns a folder of files into a graph.

use std::collections::BTreeMap;

use tiergraph_core::{Cancel, Progress, Result};
use tiergraph_format::directory::Assembled;
use tiergraph_format::manifest::{
    Checksum, FORMAT_VERSION, LayoutName, Manifest, Order, Provenance, TilesParameters,
};
use tiergraph_format::raw::IdWidth;

use super::graph::Graph;
use super::outputs::Output;
use crate::features::{OrderFile, Target};

/// Counts of what a build wrote.
pub(super) struct Written {
    pub(super) edges: u64,
    pub(super) arcs: u64,
    pub(super) strip_arcs: u64,
    /// Arcs that are equal to another, where edges have no direction and duplicates are kept.
    pub(super) repeats: u64,
}

/// A graph whose adjacency is written, and whose attachments and manifest are not.
pub(super) struct Encoded<'a> {
    pub(super) graph: Graph<'a>,
    pub(super) counts: Written,
}

impl Encoded<'_> {
    /// Writes the attachments of vertices, and makes the manifest of all files.
    pub(super) fn assemble(
        self,
        source: String,
        order: Order,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Assembled> {
        let mut graph = self.graph;
        let attached =
            graph.options.attachments.write(&mut target(&mut graph), progress, cancel)?;
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
        let mut manifest = Manifest {
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
            features: BTreeMap::new(),
            edge_features: BTreeMap::new(),
            files: graph.files,
        };
        attached.enter(&mut manifest);
        Ok(graph.building.assemble(manifest))
    }
}

/// The graph as the place that features, labels and splits are written to.
fn target<'g>(graph: &'g mut Graph<'_>) -> Target<'g> {
    const ORDER: &str = "order.ids";
    let wide = graph.ids == IdWidth::Eight;
    let (path, entry) = (graph.building.flat(ORDER), graph.files.get(ORDER).cloned());
    Target {
        vertices: graph.vertices as u64,
        block_bytes: graph.options.block_bytes,
        order: entry.map(|entry| OrderFile { path, entry, wide }),
        budget: graph.budget,
        to: &mut graph.building,
    }
}
