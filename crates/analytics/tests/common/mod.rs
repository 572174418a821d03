//! Edges of every shape, and the graphs that are built of them.
// Each test crate uses a part of this, and a helper that fails must fail the test.
#![allow(dead_code, clippy::unwrap_used)]

pub mod verify;

use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;
use tiergraph_core::{Cancel, ErrorKind, Result, Silent};
use tiergraph_format::manifest::Codec;
use tiergraph_graph::{Graph, OpenOptions};
use tiergraph_ingest::build::{
    BuildOptions, Direction, Ids, OrderChoice, Purpose, WeightChoice, build,
};
use tiergraph_ingest::source::memory::{ArraySource, MemorySpec};
use tiergraph_ingest::{EdgeBatch, Endpoints};
use tiergraph_io::EngineChoice;
use tiergraph_io::engine::uring;

use verify::Reference;

/// Source, destination, weight.
pub type Edge = (u64, u64, f64);

/// A part of a graph: what it looks like, and the seed of what is random in it.
#[derive(Debug, Clone)]
pub enum Shape {
    /// `edges` edges between vertices below `below`.
    Random { below: u64, edges: usize, seed: u64 },
    /// Edges of one vertex with many, in both directions.
    Hub { hub: u64, below: u64, edges: usize, seed: u64 },
    /// A path through `len` vertices; its ids jump if `stride` is not 1.
    Path { len: u64, stride: u64 },
    /// Edges between few vertices: duplicates, self-loops.
    Dense { below: u64, edges: usize, seed: u64 },
    /// One self-loop on a high vertex: every id below it is an isolated vertex, or none.
    Lonely { vertex: u64 },
}

/// Splitmix64: the next of a stream of random numbers.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

const WEIGHTS: [f64; 6] = [0.0, 0.1, 0.5, 1.0, 2.75, 1e-3];

impl Shape {
    /// The edges.
    pub fn edges(&self) -> Vec<Edge> {
        let pairs: Vec<(u64, u64)> = match *self {
            Self::Random { below, edges, mut seed } | Self::Dense { below, edges, mut seed } => {
                (0..edges).map(|_| (draw(&mut seed) % below, draw(&mut seed) % below)).collect()
            }
            Self::Hub { hub, below, edges, mut seed } => (0..edges)
                .map(|_| match draw(&mut seed) {
                    other if other % 2 == 0 => (hub, (other >> 8) % below),
                    other => ((other >> 8) % below, hub),
                })
                .collect(),
            Self::Path { len, stride } => {
                let id = |i: u64| i * stride % PATH_IDS;
                (1..len).map(|i| (id(i - 1), id(i))).collect()
            }
            Self::Lonely { vertex } => vec![(vertex, vertex)],
        };
        let mut seed = pairs.len() as u64;
        let weight = |seed: &mut u64| WEIGHTS[(draw(seed) % WEIGHTS.len() as u64) as usize];
        pairs.into_iter().map(|(s, d)| (s, d, weight(&mut seed))).collect()
    }
}

/// A prime: strides below it visit every id once.
const PATH_IDS: u64 = 4099;

fn shape() -> impl Strategy<Value = Shape> {
    let below = prop_oneof![1..40u64, 500..6000u64];
    prop_oneof![
        (below, 0..2500usize, any::<u64>()).prop_map(|(below, edges, seed)| Shape::Random {
            below,
            edges,
            seed
        }),
        (0..4000u64, 1..5000u64, 200..2500usize, any::<u64>())
            .prop_map(|(hub, below, edges, seed)| Shape::Hub { hub, below, edges, seed }),
        (300..700u64, prop_oneof![Just(1), 2..PATH_IDS])
            .prop_map(|(len, stride)| Shape::Path { len, stride }),
        (1..5u64, 1..200usize, any::<u64>()).prop_map(|(below, edges, seed)| Shape::Dense {
            below,
            edges,
            seed
        }),
        (0..5000u64).prop_map(|vertex| Shape::Lonely { vertex }),
    ]
}

/// Edges of up to three shapes; none at times.
pub fn edges() -> impl Strategy<Value = Vec<Edge>> {
    prop::collection::vec(shape(), 0..=3)
        .prop_map(|shapes| shapes.iter().flat_map(Shape::edges).collect())
}

/// How a graph is built.
#[derive(Debug, Clone)]
pub struct Layout {
    pub directed: bool,
    pub codec: Codec,
    pub order: OrderChoice,
    pub purpose: Purpose,
    pub columns_log2: u32,
    pub strip_arcs: u64,
    pub block_bytes: u32,
    pub stripes: usize,
    pub weights: WeightChoice,
    /// Ids are spread out and mapped.
    pub sparse_ids: bool,
    /// Bytes of an id of codec `raw`.
    pub id_width: Option<u8>,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            directed: true,
            codec: Codec::Packed,
            order: OrderChoice::None,
            purpose: Purpose::Analytics,
            columns_log2: 10,
            strip_arcs: 64,
            block_bytes: 4 << 10,
            stripes: 0,
            weights: WeightChoice::None,
            sparse_ids: false,
            id_width: None,
        }
    }
}

pub fn layout() -> impl Strategy<Value = Layout> {
    use prop::sample::select;
    let choices = (
        any::<bool>(),
        select(vec![Codec::Packed, Codec::Packed, Codec::Raw]),
        select(vec![OrderChoice::None, OrderChoice::Degree]),
        select(vec![Purpose::Analytics, Purpose::Both]),
        select(vec![10u32, 11, 13]),
        select(vec![32u64, 200, 5000]),
        select(vec![4u32 << 10, 16 << 10, 64 << 10]),
        0..=3usize,
        select(vec![WeightChoice::None, WeightChoice::F32, WeightChoice::F64]),
        any::<bool>(),
        select(vec![None, Some(8u8)]),
    );
    choices.prop_map(|c| Layout {
        directed: c.0,
        codec: c.1,
        order: c.2,
        purpose: c.3,
        columns_log2: c.4,
        strip_arcs: c.5,
        block_bytes: c.6,
        stripes: c.7,
        weights: c.8,
        sparse_ids: c.9,
        id_width: c.10,
    })
}

/// A built graph and what is known of it.
pub struct Built {
    _directory: TempDir,
    pub path: PathBuf,
    pub reference: Reference,
    pub weighted: bool,
    pub directed: bool,
}

impl Built {
    pub fn new(edges: &[Edge], layout: &Layout) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("g.tg");
        let stripes: Vec<PathBuf> =
            (0..layout.stripes).map(|i| directory.path().join(format!("stripe{i}"))).collect();
        stripes.iter().for_each(|stripe| std::fs::create_dir(stripe).unwrap());
        let edges: Vec<Edge> = match layout.sparse_ids {
            true => edges.iter().map(|e| (spread(e.0), spread(e.1), e.2)).collect(),
            false => edges.to_vec(),
        };
        let weighted = layout.weights != WeightChoice::None;
        let batch = EdgeBatch {
            ends: Endpoints::U64 {
                src: edges.iter().map(|e| e.0).collect(),
                dst: edges.iter().map(|e| e.1).collect(),
            },
            weights: Some(edges.iter().map(|e| e.2).collect()),
        };
        let spec = MemorySpec { name: "a test".into(), weighted: true, ..MemorySpec::default() };
        let mut source = ArraySource::new(spec, vec![batch]).unwrap();
        let options = BuildOptions {
            direction: if layout.directed { Direction::Directed } else { Direction::Undirected },
            ids: if layout.sparse_ids { Ids::Map } else { Ids::Dense },
            weights: layout.weights,
            order: layout.order,
            codec: layout.codec,
            purpose: layout.purpose,
            stripes,
            block_bytes: layout.block_bytes,
            memory: Some(12 << 20),
            threads: 1,
            columns_log2: Some(layout.columns_log2),
            strip_arcs: Some(layout.strip_arcs),
            id_width: layout.id_width,
            ..BuildOptions::default()
        };
        build(&mut source, &path, &options, &Silent, &Cancel::default()).unwrap();
        let reference = Reference::new(&edges, layout);
        Self { _directory: directory, path, reference, weighted, directed: layout.directed }
    }
}

/// Ascending in `id`, far apart.
fn spread(id: u64) -> u64 {
    id * 1_000_003 + 17
}

/// How a graph is opened and run.
#[derive(Debug, Clone)]
pub struct Running {
    pub engine: EngineChoice,
    pub threads: usize,
    pub residency: bool,
    /// Bytes above the least memory that the run says will do.
    pub extra_memory: u64,
}

pub fn running() -> impl Strategy<Value = Running> {
    use prop::sample::select;
    let mut engines = vec![EngineChoice::Posix, EngineChoice::Auto];
    match uring::probe() {
        Ok(()) => engines.push(EngineChoice::Uring),
        Err(reason) => println!("skipped uring: {reason}"),
    }
    let extra = select(vec![0u64, 4 << 10, 64 << 10, 1 << 20, 64 << 20]);
    (select(engines), 1..=3usize, any::<bool>(), extra).prop_map(
        |(engine, threads, residency, extra_memory)| Running {
            engine,
            threads,
            residency,
            extra_memory,
        },
    )
}

impl Running {
    /// Opens the graph and runs `job` in the least memory with which both go, as their errors say
    /// it, and `extra_memory`.
    pub fn run<T>(&self, built: &Built, job: impl Fn(&Graph) -> Result<T>) -> T {
        let mut memory = 1 << 20;
        for _ in 0..8 {
            let options = OpenOptions {
                memory: Some(memory),
                engine: self.engine.clone(),
                threads: Some(self.threads),
                residency: Some(self.residency),
                ..OpenOptions::default()
            };
            match Graph::open(&built.path, &options).and_then(|graph| job(&graph)) {
                Ok(answer) => return answer,
                Err(e) if e.kind() == ErrorKind::Budget => {
                    memory = match self.extra_memory {
                        // To the byte, so that nothing fits that is not needed.
                        0 => e.enough_bytes().unwrap(),
                        extra => least_memory(&e.to_string()) + extra,
                    };
                }
                Err(e) => panic!("{e}"),
            }
        }
        panic!("the hints of budget errors do not lead to enough memory");
    }
}

/// The bytes of "run with `--memory 123MiB` or more".
fn least_memory(message: &str) -> u64 {
    let (_, hint) = message.split_once("`--memory ").expect(message);
    let (mebibytes, _) = hint.split_once("MiB`").expect(message);
    mebibytes.parse::<u64>().unwrap() << 20
}
