//! A small graph directory with a file of every kind.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tiergraph_core::Result;
use tiergraph_format::directory::{Building, Existing, GraphDir};
use tiergraph_format::flat::FlatWriter;
use tiergraph_format::manifest::*;
use tiergraph_format::raw::{IdWidth, RawWriter};
use tiergraph_format::rows::RowsWriter;

pub const BLOCK_BYTES: u32 = 8192;
const VERTICES: u64 = 600;

/// A manifest without files.
pub fn manifest(files: BTreeMap<String, FileEntry>) -> Manifest {
    Manifest {
        format_version: FORMAT_VERSION,
        vertices: VERTICES,
        edges: 4,
        arcs: 4,
        directed: true,
        weighted: Weights::None,
        id_width: 4,
        block_bytes: BLOCK_BYTES,
        codec: Codec::Raw,
        layouts: vec![LayoutName::Raw, LayoutName::Rows],
        stripes: Vec::new(),
        checksum: Checksum::Crc32c,
        order: Order::None,
        tiles: Some(TilesParameters {
            columns_log2: 16,
            strip_arcs: 1 << 24,
            stored_once: false,
            min_gap: 1,
        }),
        build_id: String::new(),
        provenance: Provenance {
            source: "ring".into(),
            options: BTreeMap::from([("seed".into(), salt(0).to_string())]),
            tiergraph: "0.1.0".into(),
        },
        features: BTreeMap::new(),
        edge_features: BTreeMap::new(),
        files,
    }
}

fn salt(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

/// Writes every file; `seed` makes graphs of equal shape differ.
pub fn fill(building: &Building, seed: u64) -> Result<Manifest> {
    let mut raw = building.sink("out.blocks", FileKind::Blocks, BLOCK_BYTES)?;
    let mut packed = building.sink("out.rows", FileKind::Rows, BLOCK_BYTES)?;
    let mut raw_writer = RawWriter::new(&mut raw, BLOCK_BYTES, IdWidth::Four, Weights::None);
    let mut rows_writer = RowsWriter::new(&mut packed, BLOCK_BYTES);
    let mut degrees = FlatWriter::create(&building.flat("out.degrees"))?;
    for vertex in 0..VERTICES {
        let mut list: Vec<u64> = (0..vertex % 40).map(|i| salt(seed + vertex * 64 + i)).collect();
        list.sort_unstable();
        raw_writer.push(vertex, &list, None)?;
        rows_writer.push(vertex, &list)?;
        degrees.extend(&[list.len() as u32])?;
    }
    raw_writer.finish()?;
    let (_, index, _) = rows_writer.finish()?;
    let mut index_file = FlatWriter::create(&building.flat("out.index"))?;
    index_file.extend(&index.to_words())?;
    let files = BTreeMap::from([
        ("out.blocks".to_owned(), raw.finish()?),
        ("out.rows".to_owned(), packed.finish()?),
        ("out.degrees".to_owned(), degrees.finish()?),
        ("out.index".to_owned(), index_file.finish()?),
    ]);
    Ok(manifest(files))
}

/// Builds a graph at `path`.
pub fn build(path: &Path, stripes: &[PathBuf], seed: u64) -> GraphDir {
    let building = GraphDir::create(path, Existing::Replace, stripes).unwrap();
    let manifest = fill(&building, seed).unwrap();
    building.commit(manifest).unwrap()
}

/// Every file of a graph, stripes included.
pub fn files(graph: &GraphDir) -> Vec<PathBuf> {
    let dirs = std::iter::once(graph.path()).chain(graph.manifest().stripes.iter().map(|s| &**s));
    dirs.flat_map(|dir| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()))
        .collect()
}
