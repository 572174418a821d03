//! Measurements of reading alone: the bandwidth of an engine on a file, with no work on the bytes.

pub(crate) mod drives;
pub(crate) mod gpu;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::manifest::FileKind;
use tiergraph_gpu::{Compiler, CuFile, Device};
use tiergraph_graph::{ENGINE_DEPTH, Graph};
use tiergraph_io::engine::{ModelledDrive, Throttle, uring};
use tiergraph_io::{
    Ceiling, EngineChoice, EngineFactory, EnginePool, EngineReport, FileId, FileSet, Pattern,
    ReadEngine, Workload, measure,
};

use crate::build::options::cores;
use crate::calls::Call;
use crate::errors::to_json;

/// The most reads in flight for each worker while a graph's ceiling is measured.
const CEILING_DEPTH: u64 = 8;

/// The latency of a modelled drive: what NVMe drives of 7 GB/s take to answer a large read.
const MODELLED_LATENCY: Duration = Duration::from_micros(100);

/// Measures random reads of a file, or of a graph's blocks; returns a report as JSON.
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
        let threads = threads.unwrap_or_else(cores);
        let workload = Workload {
            block_bytes,
            depth,
            threads,
            pattern: Pattern::Random,
            duration: duration(seconds)?,
            bytes: u64::MAX,
        };
        let choice: EngineChoice = engine.parse()?;
        choice.check_for_host()?;
        let factory = choice.factory(depth);
        let engines = EnginePool::new(Arc::new(files(&path)?), factory, threads);
        let files: Vec<FileId> = engines.files().ids().collect();
        measure(&engines, &files, &workload)
    };
    let measured = Call::new(None).run(py, work)?;
    to_json(py, &measured)
}

/// Opens the file at `path`, or the files of blocks and pages of the graph there.
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

/// Measures the bandwidth of reading the graph's main file as its passes do, by its engines, with no work
/// on the bytes.
pub(crate) fn ceiling(graph: &Graph, seconds: f64) -> Result<Ceiling> {
    let block_bytes = graph.manifest().block_bytes as usize;
    let file = graph.pass_file().and_then(|name| graph.file(name)).ok_or_else(|| {
        Error::new(ErrorKind::Input, "measure the ceiling of")
            .object(graph.dir().path().display())
            .expected("a graph with edges")
    })?;
    let threads = graph.thread_pool().size();
    let round = (threads * block_bytes) as u64;
    let depth = (graph.memory().budget().left() / round).clamp(1, CEILING_DEPTH);
    // One block a worker is read even where nothing is left: what a run needs is the run's to say.
    let _reserved = graph.memory().budget().count(round * depth);
    let workload = Workload {
        block_bytes,
        depth: depth as usize,
        threads,
        pattern: Pattern::Sequential,
        duration: duration(seconds)?,
        bytes: u64::MAX,
    };
    measure(graph.engines(), &[file], &workload)
}

/// A factory of engines that together read `bandwidth` bytes a second: a modelled drive. Reports say so.
pub(crate) fn modelled_drive(choice: EngineChoice, bandwidth: f64) -> Result<EngineFactory> {
    choice.check_for_host()?;
    let drive = ModelledDrive::new(bandwidth, f64::INFINITY, MODELLED_LATENCY)?;
    let factory = choice.factory(ENGINE_DEPTH);
    Ok(Arc::new(move |files: &Arc<FileSet>| {
        let (engine, report) = factory.open(files)?;
        let why =
            format!("a drive of {bandwidth} bytes a second is modelled over {}", report.engine);
        let engine: Box<dyn ReadEngine> = Box::new(Throttle::new(engine, drive.clone()));
        let report = EngineReport { engine: engine.name(), why, depth: report.depth };
        Ok((engine, report))
    }))
}

/// Why something of this machine (`io_uring`, `nvrtc`, `cufile`) cannot be used; `None` if it can.
#[pyfunction]
pub(crate) fn why_not(py: Python<'_>, what: &str) -> PyResult<Option<String>> {
    Call::new(None).run(py, || match what {
        "io_uring" => Ok(uring::probe().err()),
        "nvrtc" => Ok(Compiler::get().err().map(|error| error.to_string())),
        "cufile" => {
            let found = Device::open(0).and_then(|device| CuFile::get(&device).map(drop));
            Ok(found.err().map(|error| error.to_string()))
        }
        other => Err(Error::new(ErrorKind::Input, "look for").object(other)),
    })
}

/// A time that a user gave.
pub(crate) fn duration(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|e| {
        Error::new(ErrorKind::Input, "measure for").object(seconds).expected("seconds").source(e)
    })
}
