//! Descriptions of graphs, as JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tiergraph_format::edges::{NODE_TIMES, columns};
use tiergraph_format::features::{FeatureFiles, FeaturesEntry};
use tiergraph_format::manifest::{Manifest, Weights};
use tiergraph_graph::Graph;

/// The manifest with the names that all interfaces use, bytes an edge by file (without features, labels
/// and splits), and the memory that the opened graph holds for indexes and buffers.
pub(crate) fn describe(graph: &Graph) -> Value {
    let manifest = graph.manifest();
    let edges = manifest.edges.max(1) as f64;
    // What is in a folder goes with vertices.
    let adjacency = || manifest.files.iter().filter(|(name, _)| !name.contains('/'));
    let edge_bytes: u64 = adjacency().map(|(_, file)| file.bytes).sum();
    let by_file: Map<String, Value> =
        adjacency().map(|(name, file)| (name.clone(), json!(file.bytes as f64 / edges))).collect();
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
        "bytes": bytes(manifest),
        "bytes_per_edge": edge_bytes as f64 / edges,
        "bytes_per_edge_by_file": by_file,
        "reserved_bytes": graph.memory().budget().used(),
        "names": graph.names().is_some(),
        "source": manifest.provenance.source,
        "format_version": manifest.format_version,
    });
    for more in [attached(manifest), of_edges(manifest)] {
        if let (Value::Object(all), Value::Object(more)) = (&mut described, more) {
            all.extend(more);
        }
    }
    described
}

/// Bytes of all of a graph's files.
pub(crate) fn bytes(manifest: &Manifest) -> u64 {
    manifest.files.values().map(|file| file.bytes).sum()
}

/// The data stored for vertices: features by name, and the names of labels and splits.
pub(crate) fn attached(manifest: &Manifest) -> Value {
    let features = described(manifest, &manifest.features, FeatureFiles::of);
    let names = |folder: &str| -> Vec<String> {
        let name = |file: &String| {
            let name = file.strip_prefix(folder)?.strip_suffix(".npy")?;
            Some(name.to_owned())
        };
        manifest.files.keys().filter_map(name).collect()
    };
    json!({ "features": features, "labels": names("labels/"), "splits": names("splits/") })
}

/// The data stored for edges: columns of values with their types, and features, by name.
pub(crate) fn of_edges(manifest: &Manifest) -> Value {
    let names = manifest.files.keys().map(String::as_str);
    let columns: Map<String, Value> = columns(names)
        .into_iter()
        .map(|(name, kind)| (name.into(), json!(kind.to_string())))
        .collect();
    let features = described(manifest, &manifest.edge_features, FeatureFiles::of_edges);
    let node_times = node_times(manifest);
    json!({ "edge_values": columns, "edge_features": features, "node_times": node_times })
}

/// The names of the labels that hold times of vertices.
pub(crate) fn node_times(manifest: &Manifest) -> Vec<&str> {
    let options = manifest.provenance.options.keys();
    options.filter_map(|name| name.strip_prefix(NODE_TIMES)).collect()
}

/// The description of each table of rows, by its name; `files_of` names its files.
fn described(
    manifest: &Manifest,
    tables: &BTreeMap<String, FeaturesEntry>,
    files_of: fn(&str) -> FeatureFiles,
) -> Map<String, Value> {
    let describe = |(name, entry): (&String, &FeaturesEntry)| {
        let has_row_checksums = manifest.files.contains_key(&files_of(name).row_crc);
        (name.clone(), describe_rows(entry, has_row_checksums))
    };
    tables.iter().map(describe).collect()
}

fn describe_rows(entry: &FeaturesEntry, has_row_checksums: bool) -> Value {
    let layout = &entry.layout;
    json!({
        "rows": entry.rows,
        "dim": layout.dim(),
        "dtype": layout.dtype(),
        "row_bytes": layout.row_bytes(),
        "stride": layout.stride(),
        "bytes": layout.file_bytes(entry.rows),
        "row_checksums": has_row_checksums,
    })
}
