//! Small graphs of many blocks, every algorithm over them, and what their answers must be.
// Each test crate uses a part of this, and a helper that fails must fail the test.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;
use tiergraph_analytics::{PageRank, Propagate, Reduce, bfs, pagerank, propagate, sssp, wcc};
use tiergraph_core::{Cancel, Result, Silent};
use tiergraph_format::manifest::Codec;
use tiergraph_graph::{Direction, Graph, OpenOptions};
use tiergraph_ingest::build::{self, BuildOptions, Ids, OrderChoice, Purpose, WeightChoice};
use tiergraph_ingest::source::memory::{ArraySource, MemorySpec};
use tiergraph_ingest::{EdgeBatch, Endpoints};
use tiergraph_io::engine::{Posix, Uring, uring};
use tiergraph_io::{EngineFactory, EngineReport, FileSet, ReadEngine};

/// A graph on disk, gone with the value.
pub struct Sample {
    pub directory: TempDir,
    pub path: PathBuf,
}

/// How a sample is built; the rest is the same for all.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub codec: Codec,
    pub stripes: usize,
    pub block_bytes: u32,
    pub edges: u64,
    pub directed: bool,
}

pub const PACKED: Layout =
    Layout { codec: Codec::Packed, stripes: 0, block_bytes: 16 << 10, edges: 9000, directed: true };

impl Sample {
    /// A long path and edges at random between 4,001 vertices with ids far apart.
    pub fn new(layout: Layout) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("g.tg");
        let stripes: Vec<PathBuf> =
            (0..layout.stripes).map(|i| directory.path().join(format!("stripe{i}"))).collect();
        stripes.iter().for_each(|stripe| std::fs::create_dir(stripe).unwrap());
        let mut pairs: Vec<(u64, u64)> = (0..400).map(|i| (i * 10, i * 10 + 10)).collect();
        pairs.extend((0..layout.edges).map(|i| (mix(i) % 2000, mix(i + (1 << 40)) % 4001)));
        let batch = EdgeBatch {
            ends: Endpoints::U64 {
                src: pairs.iter().map(|e| e.0 * 1009).collect(),
                dst: pairs.iter().map(|e| e.1 * 1009).collect(),
            },
            weights: Some(pairs.iter().map(|e| (e.0 * e.1 % 97) as f64 + 0.1).collect()),
        };
        let spec = MemorySpec { name: "a test".into(), weighted: true, ..MemorySpec::default() };
        let directed = layout.directed;
        let options = BuildOptions {
            direction: if directed {
                build::Direction::Directed
            } else {
                build::Direction::Undirected
            },
            ids: Ids::Map,
            weights: WeightChoice::F64,
            order: OrderChoice::Degree,
            codec: layout.codec,
            purpose: Purpose::Both,
            stripes,
            block_bytes: layout.block_bytes,
            memory: Some(64 << 20),
            columns_log2: Some(10),
            strip_arcs: Some(500),
            id_width: (layout.codec == Codec::Raw).then_some(8),
            ..BuildOptions::default()
        };
        let mut source = ArraySource::new(spec, vec![batch]).unwrap();
        build::build(&mut source, &path, &options, &Silent, &Cancel::default()).unwrap();
        Self { directory, path }
    }

    pub fn open(&self, options: &OpenOptions) -> Result<Graph> {
        Graph::open(&self.path, options)
    }
}

/// Splitmix64's finaliser.
pub fn mix(i: u64) -> u64 {
    let z = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What reads a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    PageRank,
    Components,
    Hops,
    Distances,
    LeastTransposed,
    Neighbors(Direction),
    Degrees(Direction),
}

impl Job {
    /// All that a graph of this codec has the files for.
    pub fn all(codec: Codec) -> Vec<Self> {
        let mut all = vec![
            Self::PageRank,
            Self::Components,
            Self::Hops,
            Self::Distances,
            Self::LeastTransposed,
            Self::Degrees(Direction::In),
        ];
        if codec == Codec::Packed {
            all.extend([Self::Neighbors(Direction::Out), Self::Neighbors(Direction::In)]);
        }
        all
    }

    /// The answer in the user's order, as numbers.
    pub fn run(self, graph: &Graph) -> Result<Vec<f64>> {
        let source = graph.ids().find(&[10 * 1009])?[0];
        let numbers = |values: Vec<u32>| values.into_iter().map(f64::from).collect();
        Ok(match self {
            Self::PageRank => {
                let options = PageRank { iterations: 3, tolerance: None, ..PageRank::default() };
                pagerank(graph, &options, &Silent)?.0.into_iter().map(f64::from).collect()
            }
            Self::Components => numbers(wcc(graph, &Silent)?.0),
            Self::Hops => numbers(bfs(graph, source, &Silent)?.0),
            Self::Distances => sssp(graph, source, &Silent)?.0,
            Self::LeastTransposed => {
                let how =
                    Propagate { reduce: Reduce::Min, transpose: true, weights: true, width: 1 };
                let x: Vec<f64> = (0..graph.vertices()).map(|v| v as f64).collect();
                propagate(graph, &x, &how, &Silent)?.0
            }
            Self::Degrees(direction) => {
                numbers(graph.order().to_user(graph.degrees().of(direction)?, 1)?)
            }
            Self::Neighbors(direction) => neighbor_sums(graph, direction)?,
        })
    }

    /// Whether two answers are one: exactly, but for sums of float32 in any order.
    pub fn agree(self, a: &[f64], b: &[f64]) -> bool {
        let rounding = if self == Self::PageRank { 1e-4 } else { 0.0 };
        let one = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= rounding * b;
        a.len() == b.len() && a.iter().zip(b).all(one)
    }
}

/// For every vertex, the sum of its neighbours, read from rows.
fn neighbor_sums(graph: &Graph, direction: Direction) -> Result<Vec<f64>> {
    let vertices: Vec<u32> = (0..graph.vertices() as u32).collect();
    let selection = graph.rows(direction).select(&vertices).unwrap();
    let sums = std::sync::Mutex::new(vec![0.0; vertices.len()]);
    graph.rows(direction).pass(
        &selection,
        |_| (),
        |(), page| {
            // Pages that nobody checks may be of vertices that the graph does not have.
            for v in page.vertices().filter(|&v| v < graph.vertices() as u64) {
                let mut sum = 0.0;
                page.walk(v, |u| {
                    sum += u as f64 + 1.0;
                    true
                })?;
                sums.lock().unwrap()[v as usize] += sum;
            }
            Ok(())
        },
        |()| Ok(()),
    )?;
    graph.order().to_user(sums.into_inner().unwrap(), 1)
}

/// Options that keep nothing in memory, so that every pass reads.
pub fn cold(threads: usize) -> OpenOptions {
    OpenOptions {
        memory: Some(128 << 20),
        threads: Some(threads),
        residency: Some(false),
        ..OpenOptions::default()
    }
}

/// The answers of a sound graph.
pub fn sound_answers(sample: &Sample, jobs: &[Job]) -> Vec<Vec<f64>> {
    let graph = sample.open(&cold(1)).unwrap();
    jobs.iter().map(|job| job.run(&graph).unwrap()).collect()
}

/// An engine bare of retries: io_uring, or `pread` where that is not to be had or not wanted.
pub fn base_engine(files: &Arc<FileSet>, ring: bool) -> Box<dyn ReadEngine> {
    const DEPTH: usize = 16;
    match ring && uring::probe().is_ok() {
        true => Box::new(Uring::new(Arc::clone(files), DEPTH).unwrap()),
        false => Box::new(Posix::new(Arc::clone(files), DEPTH)),
    }
}

/// A factory of engines that `make` wraps.
pub fn factory(
    make: impl Fn(&Arc<FileSet>) -> Box<dyn ReadEngine> + Send + Sync + 'static,
) -> EngineFactory {
    Arc::new(move |files: &Arc<FileSet>| {
        let engine = make(files);
        let report =
            EngineReport { engine: engine.name(), why: "a test".into(), depth: engine.capacity() };
        Ok((engine, report))
    })
}

/// Runs `job` on a thread of its own and fails if it takes longer than `limit`.
pub fn within<T: Send + 'static>(limit: Duration, job: impl FnOnce() -> T + Send + 'static) -> T {
    let (finished, result) = mpsc::channel();
    std::thread::spawn(move || finished.send(job()));
    result.recv_timeout(limit).expect("the job hangs or has failed")
}
