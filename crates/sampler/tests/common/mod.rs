//! Small graphs with features, and plain twins of what is tested.
// Each test crate uses a part of this, and a helper that fails must fail the test.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tempfile::TempDir;
use tiergraph_core::{Cancel, Silent};
use tiergraph_format::features::FeatureType;
use tiergraph_format::rows::RowsPage;
use tiergraph_graph::{Direction, Graph, OpenOptions};
use tiergraph_ingest::build::{self, BuildOptions, Ids, OrderChoice, Purpose};
use tiergraph_ingest::features::{Attachment, Attachments, MemoryRows, NewFeatures};
use tiergraph_ingest::source::memory::{ArraySource, MemorySpec};
use tiergraph_ingest::{EdgeBatch, Endpoints};
use tiergraph_io::{EngineFactory, EngineReport, FileSet, ReadEngine};
use tiergraph_sampler::sampling::philox::philox4x32;
use tiergraph_sampler::{Fanout, MiniBatch, SampledEdges, SampledNodes};

/// A graph on disk, gone with the value.
pub struct Sample {
    pub directory: TempDir,
    pub path: PathBuf,
}

/// How a sample is built.
#[derive(Debug, Clone)]
pub struct Layout {
    pub vertices: u64,
    pub edges: Vec<(u64, u64)>,
    pub directed: bool,
    pub stripes: usize,
    pub dim: usize,
    pub dtype: FeatureType,
}

/// Splitmix64's finaliser.
pub fn mix(i: u64) -> u64 {
    let z = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Layout {
    /// 3,000 vertices: a hub whose neighbours fill pages, random edges (some of them double), a
    /// self-loop, and the last hundred vertices alone.
    pub fn mixed(directed: bool) -> Self {
        let mut edges: Vec<(u64, u64)> = (0..9000).map(|i| (mix(i) % 2900, 7)).collect();
        edges.extend((0..20_000).map(|i| (mix(i) % 2000, mix(i + (1 << 40)) % 2900)));
        edges.extend([(5, 5), (5, 5), (2899, 2898)]);
        Self { vertices: 3000, edges, directed, stripes: 0, dim: 20, dtype: FeatureType::F32 }
    }

    pub fn build(&self) -> Sample {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("g.tg");
        let stripes: Vec<PathBuf> =
            (0..self.stripes).map(|i| directory.path().join(format!("stripe{i}"))).collect();
        stripes.iter().for_each(|stripe| std::fs::create_dir(stripe).unwrap());
        let ends = Endpoints::U64 {
            src: self.edges.iter().map(|e| e.0).collect(),
            dst: self.edges.iter().map(|e| e.1).collect(),
        };
        let spec = MemorySpec {
            name: "a test".into(),
            vertices: Some((0..self.vertices).collect()),
            ..MemorySpec::default()
        };
        let rows = (0..self.vertices).flat_map(|v| (0..self.dim).map(move |c| value(v, c)));
        let rows = MemoryRows::new(rows.collect(), self.dim.max(1), 100);
        let features = NewFeatures { dtype: self.dtype, ..NewFeatures::new("x", rows) };
        let attachments = match self.dim {
            0 => Vec::new(),
            _ => vec![Attachment::Features(features)],
        };
        let options = BuildOptions {
            direction: match self.directed {
                true => build::Direction::Directed,
                false => build::Direction::Undirected,
            },
            ids: Ids::Dense,
            order: OrderChoice::Degree,
            purpose: Purpose::Training,
            stripes,
            block_bytes: 16 << 10,
            memory: Some(64 << 20),
            attachments: Attachments::new(attachments).unwrap(),
            ..BuildOptions::default()
        };
        let batch = EdgeBatch { ends, weights: None };
        let mut source = ArraySource::new(spec, vec![batch]).unwrap();
        build::build(&mut source, &path, &options, &Silent, &Cancel::default()).unwrap();
        Sample { directory, path }
    }
}

/// A feature of a vertex of the user's.
pub fn value(vertex: u64, column: usize) -> f32 {
    (mix(vertex * 4096 + column as u64) % 1000) as f32 / 100.0 - 5.0
}

pub fn small() -> OpenOptions {
    OpenOptions { memory: Some(160 << 20), threads: Some(1), ..OpenOptions::default() }
}

impl Sample {
    pub fn open(&self) -> Arc<Graph> {
        self.open_as(&small())
    }

    pub fn open_as(&self, options: &OpenOptions) -> Arc<Graph> {
        Arc::new(Graph::open(&self.path, options).unwrap())
    }
}

/// The graph's neighbours and the number of each vertex's first arc, by a pass over its rows.
pub fn adjacency(graph: &Graph, direction: Direction) -> (Vec<Vec<u32>>, Vec<u64>) {
    let vertices: Vec<u32> = (0..graph.vertices() as u32).collect();
    let selection = graph.rows(direction).select(&vertices).unwrap();
    let lists = std::sync::Mutex::new(vec![Vec::new(); vertices.len()]);
    let visit = |list: &mut Vec<u64>, page: &RowsPage<'_>| {
        let mut lists = lists.lock().unwrap();
        for vertex in page.vertices() {
            list.clear();
            page.neighbors(vertex, list)?;
            lists[vertex as usize].extend(list.iter().map(|&u| u as u32));
        }
        Ok(())
    };
    graph.rows(direction).pass(&selection, |_| Vec::new(), visit, |_| Ok(())).unwrap();
    let mut lists = lists.into_inner().unwrap();
    // Pages of a hub may have come in any order.
    lists.iter_mut().for_each(|list| list.sort_unstable());
    let mut before = 0;
    let mut first = |list: &Vec<u32>| {
        before += list.len() as u64;
        before - list.len() as u64
    };
    let firsts = lists.iter().map(&mut first).collect();
    (lists, firsts)
}

/// Draw `t` of a stream, as `docs/sampling.md` says.
pub fn draw(key: [u32; 2], hop: u32, vertex: u32, batch: u32, tree: u32, t: u32) -> u64 {
    let words = philox4x32([hop * (1 << 24) + t / 2, vertex, batch, tree], key);
    let pair = &words[if t.is_multiple_of(2) { 0..2 } else { 2..4 }];
    u64::from(pair[0]) + u64::from(pair[1]) * (1 << 32)
}

/// The key of an epoch, as `docs/sampling.md` says.
pub fn sample_key(seed: u64, epoch: u64) -> [u32; 2] {
    let tag = u32::from_be_bytes(*b"SAMP");
    let words = philox4x32(
        [epoch as u32, (epoch >> 32) as u32, tag, 0],
        [seed as u32, (seed >> 32) as u32],
    );
    [words[0], words[1]]
}

/// A batch by the definition: maps and lists, a draw at a time.
pub fn plain_batch(
    adjacency: &(Vec<Vec<u32>>, Vec<u64>),
    fanouts: &[Fanout],
    disjoint: bool,
    (seed, epoch, number): (u64, u64, u32),
    seeds: &[u32],
) -> MiniBatch {
    let key = sample_key(seed, epoch);
    let pick = |hop: usize, tree: u32, vertex: u32| {
        let n = adjacency.0[vertex as usize].len() as u64;
        let draw = |i: u64| draw(key, hop as u32, vertex, number, tree, i as u32);
        plain_choice(n, fanouts[hop], draw)
    };
    plain_batch_by(adjacency, fanouts.len(), disjoint, number, seeds, pick)
}

/// Positions of up to a fanout of n neighbours, evenly.
pub fn plain_choice(n: u64, fanout: Fanout, draw: impl Fn(u64) -> u64) -> Vec<u64> {
    let k = match fanout {
        Fanout::All => n,
        Fanout::Most(k) => n.min(k.into()),
    };
    if k == n {
        return (0..n).collect();
    }
    let mut taken = Vec::new();
    for i in 0..k {
        let j = n - k + i;
        let t = (u128::from(draw(i)) * u128::from(j + 1) / (1 << 64)) as u64;
        taken.push(if taken.contains(&t) { j } else { t });
    }
    taken
}

/// A batch whose nodes get the neighbours at the positions `pick(hop, tree, vertex)`.
pub fn plain_batch_by(
    (lists, firsts): &(Vec<Vec<u32>>, Vec<u64>),
    hops: usize,
    disjoint: bool,
    number: u32,
    seeds: &[u32],
    pick: impl Fn(usize, u32, u32) -> Vec<u64>,
) -> MiniBatch {
    let tree_of = |i: usize| if disjoint { i as u32 } else { 0 };
    let mut nodes: Vec<(u32, u32)> =
        seeds.iter().enumerate().map(|(i, &v)| (tree_of(i), v)).collect();
    let mut places: HashMap<(u32, u32), u32> = HashMap::new();
    nodes.iter().zip(0..).for_each(|(&node, i)| {
        places.entry(node).or_insert(i);
    });
    let mut batch = MiniBatch {
        number,
        nodes: vec![SampledNodes { num_sampled: vec![seeds.len()], ..Default::default() }],
        edges: vec![SampledEdges::default()],
        ..Default::default()
    };
    let mut begin = 0;
    for hop in 0..hops {
        let end = nodes.len();
        let edges = batch.edges[0].e_id.len();
        for at in begin..end {
            let (tree, vertex) = nodes[at];
            for position in pick(hop, tree, vertex) {
                let neighbor = (tree, lists[vertex as usize][position as usize]);
                let place = *places.entry(neighbor).or_insert_with(|| {
                    nodes.push(neighbor);
                    nodes.len() as u32 - 1
                });
                batch.edges[0].row.push(place);
                batch.edges[0].col.push(at as u32);
                batch.edges[0].e_id.push(firsts[vertex as usize] + position);
            }
        }
        batch.nodes[0].num_sampled.push(nodes.len() - end);
        let taken = batch.edges[0].e_id.len() - edges;
        batch.edges[0].num_sampled.push(taken);
        begin = end;
    }
    batch.nodes[0].n_id = nodes.iter().map(|node| node.1).collect();
    if disjoint {
        batch.nodes[0].tree = nodes.iter().map(|node| node.0).collect();
    }
    batch
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
