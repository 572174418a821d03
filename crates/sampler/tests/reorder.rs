//! Rows in another order: every vertex keeps its values, whatever the layout and the memory.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tiergraph_core::{Cancel, ErrorKind, Silent};
use tiergraph_format::features::FeatureType;
use tiergraph_format::manifest::Manifest;
use tiergraph_format::verify::verify;
use tiergraph_graph::{Graph, OpenOptions};
use tiergraph_ingest::build::{BuildOptions, OrderChoice, Purpose, build};
use tiergraph_ingest::features::{
    Attachment, Attachments, MemoryRows, NewFeatures, RowOrder, relay,
};
use tiergraph_ingest::source::memory::{ArraySource, MemorySpec};
use tiergraph_ingest::{EdgeBatch, Endpoints};

const VERTICES: u32 = 1500;

/// A star in the order of degrees, with features of this type and width, over so many stripes.
fn graph(directory: &Path, dtype: FeatureType, dim: usize, stripes: usize) -> PathBuf {
    let path = directory.join("g.tg");
    let ends = Endpoints::U32 { src: vec![700; VERTICES as usize], dst: (0..VERTICES).collect() };
    let mut source =
        ArraySource::new(MemorySpec::default(), vec![EdgeBatch { ends, weights: None }]).unwrap();
    let values = (0..VERTICES as usize * dim).map(|i| (i * 37 % 1009) as f32 - 500.0).collect();
    let new = NewFeatures { dtype, ..NewFeatures::new("x", MemoryRows::new(values, dim, 100)) };
    let stripes: Vec<PathBuf> = (0..stripes).map(|i| directory.join(format!("s{i}"))).collect();
    stripes.iter().for_each(|stripe| std::fs::create_dir(stripe).unwrap());
    let options = BuildOptions {
        memory: Some(16 << 20),
        order: OrderChoice::Degree,
        purpose: Purpose::Training,
        block_bytes: 8192,
        stripes,
        attachments: Attachments::new(vec![Attachment::Features(new)]).unwrap(),
        ..BuildOptions::default()
    };
    build(&mut source, &path, &options, &Silent, &Cancel::default()).unwrap();
    path
}

/// A permutation of the vertices.
fn shuffled(step: u64) -> Vec<u32> {
    (0..u64::from(VERTICES)).map(|v| (v * step % u64::from(VERTICES)) as u32).collect()
}

fn move_to(path: &Path, rows: Option<Vec<u32>>, memory: u64) -> tiergraph_core::Result<Manifest> {
    let order = RowOrder { name: "a test's".into(), rows };
    relay(path, "x", &order, Some(memory), &Silent, &Cancel::default())
}

fn values(path: &Path) -> Vec<f32> {
    let options =
        OpenOptions { memory: Some(64 << 20), threads: Some(1), ..OpenOptions::default() };
    let graph = Graph::open(path, &options).unwrap();
    graph.features().read("x", &(0..VERTICES).collect::<Vec<_>>()).unwrap()
}

fn assert_sound(path: &Path) {
    let report = verify(path, &Silent, &Cancel::default()).unwrap();
    assert_eq!(report.damage, []);
}

#[test]
fn every_vertex_keeps_its_row() {
    use FeatureType::{F16, F32, Int8};
    // Memory for a few buckets of the two larger ones.
    for (dtype, dim, stripes, small) in [
        (F32, 3, 0, 256 << 10),
        (F32, 700, 2, 1 << 20),
        (F16, 100, 3, 256 << 10),
        (Int8, 33, 0, 256 << 10),
    ] {
        let directory = TempDir::new().unwrap();
        let path = graph(directory.path(), dtype, dim, stripes);
        let before = values(&path);
        let first_file = std::fs::metadata(path.join("features/x.crc")).unwrap().len();
        // In memory, through buckets, from an order into an order, and back.
        for (rows, memory) in
            [(Some(shuffled(7)), 16 << 20), (Some(shuffled(1001)), small), (None, small)]
        {
            let reordered = rows.is_some();
            let manifest = move_to(&path, rows, memory).unwrap();
            assert_eq!(manifest.files.contains_key("features/x.ids"), reordered);
            assert_eq!(path.join("features/x.ids").exists(), reordered);
            assert_eq!(values(&path), before, "{dtype} {dim} in {memory} bytes");
            assert_sound(&path);
        }
        assert_eq!(std::fs::metadata(path.join("features/x.crc")).unwrap().len(), first_file);
    }
}

#[test]
fn rows_lie_where_the_order_says() {
    let directory = TempDir::new().unwrap();
    let path = graph(directory.path(), FeatureType::F32, 128, 0);
    let before = values(&path);
    let rows = shuffled(11);
    move_to(&path, Some(rows.clone()), 16 << 20).unwrap();
    let bytes = std::fs::read(path.join("features/x.rows")).unwrap();
    for (vertex, &row) in rows.iter().enumerate() {
        let stored: Vec<f32> = bytes[row as usize * 512..][..512]
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect();
        assert_eq!(stored, before[vertex * 128..][..128]);
    }
}

#[test]
fn what_cannot_be_moved_leaves_the_graph_as_it_was() {
    let directory = TempDir::new().unwrap();
    let path = graph(directory.path(), FeatureType::F32, 20, 0);
    let before = values(&path);
    let mut twice = shuffled(7);
    twice[3] = twice[4];
    let error = move_to(&path, Some(twice), 16 << 20).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("expected each of 0 to 1499 once"), "{error}");
    let error = move_to(&path, Some(vec![0]), 16 << 20).unwrap_err();
    assert!(error.to_string().contains("got 1 rows"), "{error}");
    let error = move_to(&path, Some(shuffled(7)), 4 << 10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Budget);
    let order = RowOrder { name: String::new(), rows: None };
    let error = relay(&path, "z", &order, None, &Silent, &Cancel::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot re-lay the features `z`: expected one of the graph's: x");
    let cancelled = Cancel::default();
    cancelled.cancel();
    let error = relay(&path, "x", &order, None, &Silent, &cancelled).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(values(&path), before);
    let files = |folder: PathBuf| std::fs::read_dir(folder).unwrap().count();
    assert_eq!(files(path.join("features")), 3, "nothing is left behind");
    assert_sound(&path);
}

#[test]
fn a_damaged_page_is_told_and_not_moved() {
    let directory = TempDir::new().unwrap();
    let path = graph(directory.path(), FeatureType::F32, 128, 0);
    let file = path.join("features/x.rows");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[5 * 4096 + 17] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let error = move_to(&path, Some(shuffled(7)), 16 << 20).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    let text = error.to_string();
    assert!(text.contains("page 5 (offset 20480) of `features/x.rows`"), "{text}");
}
