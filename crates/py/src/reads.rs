//! Bare reads: what an engine reaches on a file with nothing done to the bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::manifest::FileKind;
use tiergraph_io::{Ceiling, EngineChoice, FileSet, Pattern, Workload, measure};

use crate::calls::Call;
use crate::errors::to_json;

/// Random reads of a file, or of a graph's blocks: one measurement, as JSON.
#[pyfunction]
pub(crate) fn bench_io(
    py: Python<'_>,
    path: PathBuf,
    engine: &str,
    block_bytes: usize,
    depth: usize,
    threads: Option<usize>,
    seconds: f64,
) -> PyResult<String> {
    let work = || -> Result<Ceiling> {
        let duration = Duration::try_from_secs_f64(seconds).map_err(|e| {
            Error::new(ErrorKind::Input, "measure for")
                .object(seconds)
                .expected("seconds")
                .source(e)
        })?;
        let workload = Workload {
            engine: engine.parse::<EngineChoice>()?,
            block_bytes,
            depth,
            threads: threads
                .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)),
            pattern: Pattern::Random,
            duration,
            bytes: u64::MAX,
        };
        measure(&Arc::new(files(&path)?), &workload)
    };
    let measured = Call::new(None).run(py, work)?;
    to_json(&measured)
}

/// The file at `path`, or the blocks of the graph there.
fn files(path: &Path) -> Result<FileSet> {
    let mut files = FileSet::new();
    if !path.is_dir() {
        files.open(path)?;
        return Ok(files);
    }
    let graph = GraphDir::open(path)?;
    for (name, file) in &graph.manifest().files {
        if file.kind != FileKind::Flat {
            let unit = u64::from(graph.manifest().block_bytes);
            files.open_striped(&graph.paths(name)?, unit)?;
        }
    }
    Ok(files)
}
