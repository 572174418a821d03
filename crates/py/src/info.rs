//! What a graph says about itself.

use serde_json::{Map, Value, json};
use tiergraph_format::features::FeaturesEntry;
use tiergraph_format::manifest::{Manifest, Weights};
use tiergraph_graph::Graph;

/// The manifest in the names that every face uses, bytes an edge by file (without features, labels
/// and splits), and the memory that the opened graph holds for indexes and buffers.
pub(crate) fn describe(graph: &Graph) -> Value {
    let manifest = graph.manifest();
    let edges = manifest.edges.max(1) as f64;
    let bytes: u64 = manifest.files.values().map(|file| file.bytes).sum();
    // What is in a folder goes with vertices.
    let of_edges = || manifest.files.iter().filter(|(name, _)| !name.contains('/'));
    let edge_bytes: u64 = of_edges().map(|(_, file)| file.bytes).sum();
    let by_file: Map<String, Value> =
        of_edges().map(|(name, file)| (name.clone(), json!(file.bytes as f64 / edges))).collect();
    let mut described = json!({
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
        "bytes_per_edge": edge_bytes as f64 / edges,
        "bytes_per_edge_by_file": by_file,
        "reserved_bytes": graph.budget().used(),
        "source": manifest.provenance.source,
        "format_version": manifest.format_version,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut described, attached(manifest)) {
        all.extend(more);
    }
    described
}

/// What goes with the vertices: features by name, and the names of labels and splits.
pub(crate) fn attached(manifest: &Manifest) -> Value {
    let describe = |(name, entry): (&String, &FeaturesEntry)| {
        let layout = &entry.layout;
        let value = json!({
            "rows": entry.rows,
            "dim": layout.dim(),
            "dtype": layout.dtype(),
            "row_bytes": layout.row_bytes(),
            "stride": layout.stride(),
            "bytes": layout.file_bytes(entry.rows),
        });
        (name.clone(), value)
    };
    let features: Map<String, Value> = manifest.features.iter().map(describe).collect();
    let names = |folder: &str| -> Vec<String> {
        let name = |file: &String| {
            let name = file.strip_prefix(folder)?.strip_suffix(".npy")?;
            Some(name.to_owned())
        };
        manifest.files.keys().filter_map(name).collect()
    };
    json!({ "features": features, "labels": names("labels/"), "splits": names("splits/") })
}
