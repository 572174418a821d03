//! What the tests of sources share.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use tiergraph_ingest::source::open;
use tiergraph_ingest::source::{EdgeBatch, EdgeSource, OpenOptions};

/// A file of the shared test data; `None`, with a printed reason, where it is missing.
pub fn data(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is missing", path.display());
    None
}

/// Edges in order, and the weight of each if they have weights.
pub type Edges = (Vec<(u64, u64)>, Vec<f64>);

/// Every edge of a source, and its weights.
pub fn drain(source: &mut dyn EdgeSource) -> tiergraph_core::Result<Edges> {
    let (mut edges, mut weights, mut batch) = (Vec::new(), Vec::new(), EdgeBatch::default());
    while source.next_batch(&mut batch)? {
        assert!(!batch.is_empty(), "only the end of a source is empty");
        assert_eq!(batch.weights.is_some(), source.weighted());
        edges.extend(batch.pairs());
        weights.extend(batch.weights.iter().flatten());
        if source.weighted() {
            assert_eq!(edges.len(), weights.len());
        }
    }
    assert!(batch.is_empty());
    Ok((edges, weights))
}

/// Every edge of a file, read twice.
pub fn edges(path: &Path, options: &OpenOptions) -> Vec<(u64, u64)> {
    let mut source = open(path, options).unwrap();
    let first = drain(source.as_mut()).unwrap();
    assert!(source.can_restart());
    source.restart().unwrap();
    assert_eq!(drain(source.as_mut()).unwrap(), first, "the second pass differs");
    first.0
}

/// The number of distinct ids among the ends of edges.
pub fn distinct(edges: &[(u64, u64)]) -> usize {
    let mut ids: Vec<u64> = edges.iter().flat_map(|&(src, dst)| [src, dst]).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

/// Writes a file of a temporary directory.
pub fn file(dir: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

/// The message of what opening and reading a file gives, with the directory cut out.
pub fn message(path: &Path, options: &OpenOptions) -> String {
    let error = match open(path, options) {
        Ok(mut source) => drain(source.as_mut()).map(|(edges, _)| edges.len()),
        Err(error) => Err(error),
    };
    let dir = path.parent().unwrap().display().to_string();
    error.expect_err("the input is malformed").to_string().replace(&format!("{dir}/"), "")
}
