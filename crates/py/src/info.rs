//! What a graph says about itself.

use serde_json::{Map, Value, json};
use tiergraph_format::manifest::Weights;
use tiergraph_graph::Graph;

/// The manifest in the names that every face uses, bytes an edge by file, and the memory that the
/// opened graph holds for indexes and buffers.
pub(crate) fn describe(graph: &Graph) -> Value {
    let manifest = graph.manifest();
    let edges = manifest.edges.max(1) as f64;
    let bytes: u64 = manifest.files.values().map(|file| file.bytes).sum();
    let by_file: Map<String, Value> = manifest
        .files
        .iter()
        .map(|(name, file)| (name.clone(), json!(file.bytes as f64 / edges)))
        .collect();
    json!({
        "graph": graph.dir().path(),
        "vertices": manifest.vertices,
        "edges": manifest.edges,
        "arcs": manifest.arcs,
        "directed": manifest.directed,
        "weighted": manifest.weighted != Weights::None,
        "weights": manifest.weighted,
        "codec": manifest.codec,
        "layouts": manifest.layouts,
        "order": manifest.order,
        "block_bytes": manifest.block_bytes,
        "stripes": manifest.stripes,
        "bytes": bytes,
        "bytes_per_edge": bytes as f64 / edges,
        "bytes_per_edge_by_file": by_file,
        "reserved_bytes": graph.budget().used(),
        "source": manifest.provenance.source,
        "format_version": manifest.format_version,
    })
}
