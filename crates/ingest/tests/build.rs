//! What is built is what the source had: every graph is read back through the format's own readers
//! and compared with a reference made from the edges in memory.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/read_back.rs"]
mod read_back;

use std::path::Path;

use proptest::prelude::*;
use read_back::{Arcs, ReadBack};
use tempfile::TempDir;
use tiergraph_core::{Cancel, ErrorKind, Progress, Result, Silent};
use tiergraph_format::block::HEADER_BYTES;
use tiergraph_format::directory::Existing;
use tiergraph_format::manifest::{Codec, FileKind, Manifest, Order, Weights};
use tiergraph_format::rows::PAGE_BYTES;
use tiergraph_ingest::build::{
    BuildOptions, BuildReport, Direction, Duplicates, Ids, OrderChoice, Purpose, SelfLoops,
    WeightChoice, build,
};
use tiergraph_ingest::generate::{Generated, GeneratorOptions, Rmat, WeightRange};
use tiergraph_ingest::source::memory::{ArraySource, MemorySpec, channel};
use tiergraph_ingest::source::{OpenOptions, open};
use tiergraph_ingest::{EdgeBatch, Endpoints, SizeHint};

/// Edges with weights, and how to build a graph of them.
#[derive(Debug, Clone)]
struct Case {
    edges: Vec<(u64, u64, f64)>,
    weighted: bool,
    options: BuildOptions,
}

impl Case {
    fn new(edges: &[(u64, u64, f64)], options: BuildOptions) -> Self {
        Self { edges: edges.to_vec(), weighted: true, options }
    }

    fn source(&self) -> ArraySource {
        let batch = |edges: &[(u64, u64, f64)]| EdgeBatch {
            ends: Endpoints::U64 {
                src: edges.iter().map(|e| e.0).collect(),
                dst: edges.iter().map(|e| e.1).collect(),
            },
            weights: self.weighted.then(|| edges.iter().map(|e| e.2).collect()),
        };
        let spec = MemorySpec {
            name: "edges of a test".into(),
            weighted: self.weighted,
            ..MemorySpec::default()
        };
        ArraySource::new(spec, self.edges.chunks(97).map(batch).collect()).unwrap()
    }

    fn build(&self, path: &Path) -> Result<BuildReport> {
        build(&mut self.source(), path, &self.options, &Silent, &Cancel::default())
    }

    /// The arcs that a pass visits, by the user's ids, sorted.
    fn expected(&self) -> Arcs {
        let undirected = self.options.direction == Direction::Undirected;
        let mut edges = self.edges.clone();
        if self.options.self_loops == SelfLoops::Remove {
            edges.retain(|e| e.0 != e.1);
        }
        if undirected {
            edges.iter_mut().for_each(|e| *e = (e.0.max(e.1), e.0.min(e.1), e.2));
        }
        edges.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        if self.options.duplicates == Duplicates::Remove {
            edges.dedup_by_key(|e| (e.0, e.1));
        }
        let mut arcs = edges.clone();
        if undirected {
            arcs.extend(edges.iter().filter(|e| e.0 != e.1).map(|e| (e.1, e.0, e.2)));
        }
        if !self.weighted || self.options.weights == WeightChoice::None {
            arcs.iter_mut().for_each(|arc| arc.2 = 0.0);
        }
        Arcs::of(arcs)
    }

    /// Builds the graph, reads it back and compares everything.
    fn check(&self) -> BuildReport {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("g.tg");
        let report = self.build(&path).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "something is left behind");
        let graph = ReadBack::open(&path);
        let expected = self.expected();
        let undirected = self.options.direction == Direction::Undirected;
        for (file, found) in graph.adjacency() {
            let stores_weights = !file.ends_with("rows");
            let expected = if stores_weights { expected.clone() } else { expected.unweighted() };
            assert_eq!(found, expected, "{file}");
        }
        graph.check_degrees();
        let manifest = graph.dir.manifest();
        let loops = expected.0.iter().filter(|arc| arc.0 == arc.1).count() as u64;
        let arcs = expected.0.len() as u64;
        let edges = if undirected { (arcs + loops) / 2 } else { arcs };
        assert_eq!((report.edges, report.arcs), (edges, arcs));
        assert_eq!((manifest.edges, manifest.arcs), (edges, arcs));
        assert_eq!(manifest.vertices, report.vertices);
        report
    }
}

/// The edges of an R-MAT graph, of a star over all its vertices, of loops and of one edge many times.
fn with_hub(scale: u32) -> Vec<(u64, u64, f64)> {
    let model = Rmat::new(scale, 16, Rmat::GRAPH500, 5).unwrap();
    let mut edges: Vec<(u64, u64, f64)> =
        common::drain(&mut Generated::new(model, 5, GeneratorOptions::default()))
            .unwrap()
            .0
            .into_iter()
            .map(|(src, dst)| (src, dst, 1.0))
            .collect();
    edges.extend((0..1 << scale).map(|vertex| (vertex, 77, 1.0)));
    edges.extend((0..1000).map(|vertex| (3 * vertex, 3 * vertex, 1.0)));
    edges.extend([(5, 9, 1.0); 5000]);
    edges
}

#[test]
fn lists_are_the_same_in_ranges_of_any_size() {
    let edges = with_hub(14);
    for direction in [Direction::Directed, Direction::Undirected] {
        for (duplicates, threads, memory) in [
            (Duplicates::Keep, 1, 6 << 20),
            (Duplicates::Keep, 3, 8 << 20),
            (Duplicates::Remove, 2, 6 << 20),
            (Duplicates::Remove, 2, 64 << 20),
        ] {
            let options = BuildOptions {
                direction,
                duplicates,
                threads,
                memory: Some(memory),
                purpose: Purpose::Both,
                columns_log2: Some(12),
                weights: WeightChoice::None,
                ..BuildOptions::default()
            };
            Case::new(&edges, options).check();
        }
    }
}

/// Tiny everything, so that small graphs have many blocks, strips and buckets.
fn tiny() -> BuildOptions {
    BuildOptions {
        memory: Some(8 << 20),
        block_bytes: 16 << 10,
        strip_arcs: Some(64),
        columns_log2: Some(10),
        ..BuildOptions::default()
    }
}

fn options() -> impl Strategy<Value = BuildOptions> {
    let choices = (
        prop::sample::select(vec![Direction::Directed, Direction::Undirected]),
        prop::sample::select(vec![Duplicates::Keep, Duplicates::Remove]),
        prop::sample::select(vec![SelfLoops::Keep, SelfLoops::Remove]),
        prop::sample::select(vec![OrderChoice::None, OrderChoice::Degree, OrderChoice::Auto]),
        prop::sample::select(vec![Codec::Packed, Codec::Raw]),
        prop::sample::select(vec![Purpose::Analytics, Purpose::Training, Purpose::Both]),
        prop::sample::select(vec![4u32 << 10, 64 << 10]),
        prop::sample::select(vec![Ids::Auto, Ids::Dense, Ids::Map]),
        prop::sample::select(vec![None, Some(8u8)]),
        1usize..4,
    );
    choices.prop_map(
        |(
            direction,
            duplicates,
            self_loops,
            order,
            codec,
            purpose,
            block_bytes,
            ids,
            id_width,
            threads,
        )| {
            BuildOptions {
                direction,
                duplicates,
                self_loops,
                order,
                codec,
                purpose,
                block_bytes,
                ids,
                id_width,
                threads,
                ..tiny()
            }
        },
    )
}

fn edges() -> impl Strategy<Value = Vec<(u64, u64, f64)>> {
    let weight = prop::sample::select(vec![0.0, 0.1, 1.0, 2.5]);
    // Some vertices have many edges and some edges occur often.
    let end = prop_oneof![0..6u64, 0..3000u64];
    prop::collection::vec((end.clone(), end, weight), 0..600)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn every_combination_reads_back(edges in edges(), options in options(), weighted: bool) {
        let options = BuildOptions {
            weights: match options.purpose {
                Purpose::Training if options.codec == Codec::Packed => WeightChoice::None,
                _ => WeightChoice::Auto,
            },
            ..options
        };
        Case { edges, weighted, options }.check();
    }
}

/// A skewed graph with many duplicates, larger than a tiny budget's buckets.
fn skewed(edges: u64) -> Vec<(u64, u64, f64)> {
    let model = Rmat::new(12, edges >> 12, Rmat::GRAPH500, 7).unwrap();
    let weights = Some(WeightRange::Unit);
    let mut source =
        Generated::new(model, 3, GeneratorOptions { weights, ..GeneratorOptions::default() });
    let (pairs, weights) = common::drain(&mut source).unwrap();
    pairs.into_iter().zip(weights).map(|((s, d), w)| (s, d, w)).collect()
}

/// All files of a graph with their bytes, but for what names the build: the manifest, and the salt
/// of checksums.
fn files(path: &Path) -> Vec<(String, Vec<u8>)> {
    let manifest = Manifest::read(path).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
        .filter(|(name, _)| name != "manifest.json")
        .collect();
    for (name, bytes) in &mut files {
        let (unit, crc_end) = match manifest.files[name.as_str()].kind {
            FileKind::Blocks => (manifest.block_bytes as usize, HEADER_BYTES),
            FileKind::Rows => (PAGE_BYTES, 4),
            FileKind::Features | FileKind::Flat => continue,
        };
        for part in bytes.chunks_mut(unit) {
            let crc = part[..crc_end].last_chunk_mut::<4>().unwrap();
            *crc = manifest.salt(name).on(u32::from_le_bytes(*crc)).to_le_bytes();
        }
    }
    files.sort();
    files
}

#[test]
fn threads_and_memory_do_not_change_a_byte() {
    let edges = skewed(1 << 18);
    for direction in [Direction::Directed, Direction::Undirected] {
        for (codec, duplicates) in [
            (Codec::Packed, Duplicates::Keep),
            (Codec::Packed, Duplicates::Remove),
            (Codec::Raw, Duplicates::Keep),
        ] {
            let mut first = None;
            for (threads, memory) in [(1, 1 << 30), (2, 16 << 20), (5, 64 << 20), (32, 20 << 20)] {
                let options = BuildOptions {
                    direction,
                    codec,
                    duplicates,
                    purpose: Purpose::Both,
                    threads,
                    memory: Some(memory),
                    strip_arcs: Some(20_000),
                    ..BuildOptions::default()
                };
                let dir = TempDir::new().unwrap();
                let path = dir.path().join("g.tg");
                Case::new(&edges, options).build(&path).unwrap();
                let files = files(&path);
                let first = first.get_or_insert_with(|| files.clone());
                for (a, b) in first.iter().zip(&files) {
                    assert_eq!(a.0, b.0);
                    assert!(a.1 == b.1, "{} of {threads} threads, {memory} bytes differs", a.0);
                }
                assert_eq!(first.len(), files.len());
            }
        }
    }
}

#[test]
fn buckets_and_hubs_larger_than_memory_read_back() {
    let mut edges = skewed(1 << 17);
    // Two hubs whose arcs alone are more than a bucket.
    edges.extend((0..150_000u64).map(|i| (i % 50_000, 3, 1.0)));
    edges.extend((0..150_000u64).map(|i| (5, i % 70_000, 0.5)));
    for direction in [Direction::Directed, Direction::Undirected] {
        for (codec, purpose) in [(Codec::Packed, Purpose::Both), (Codec::Raw, Purpose::Both)] {
            let options = BuildOptions {
                direction,
                codec,
                purpose,
                memory: Some(48 << 20),
                ..BuildOptions::default()
            };
            Case::new(&edges, options).check();
        }
    }
}

#[test]
fn weights_take_32_bits_where_that_loses_nothing() {
    for (weight, choice, expected) in [
        (0.5, WeightChoice::Auto, Weights::F32),
        (0.1, WeightChoice::Auto, Weights::F64),
        (0.5, WeightChoice::F64, Weights::F64),
        (0.5, WeightChoice::None, Weights::None),
    ] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("g.tg");
        let options = BuildOptions { weights: choice, ..tiny() };
        Case::new(&[(0, 1, 1.0), (1, 2, weight)], options).build(&path).unwrap();
        assert_eq!(ReadBack::open(&path).dir.manifest().weighted, expected);
    }
}

#[test]
fn graphs_without_edges_or_vertices_build() {
    for undirected in [Direction::Directed, Direction::Undirected] {
        for codec in [Codec::Packed, Codec::Raw] {
            for vertices in [None, Some(0), Some(1), Some(70_000)] {
                let spec = MemorySpec {
                    name: "nothing".into(),
                    size: SizeHint { vertices, ..SizeHint::default() },
                    ..MemorySpec::default()
                };
                let mut source = ArraySource::new(spec, Vec::new()).unwrap();
                let options = BuildOptions { direction: undirected, codec, ..tiny() };
                let dir = TempDir::new().unwrap();
                let path = dir.path().join("g.tg");
                let report =
                    build(&mut source, &path, &options, &Silent, &Cancel::default()).unwrap();
                assert_eq!((report.vertices, report.edges), (vertices.unwrap_or(0), 0));
                ReadBack::open(&path).check_degrees();
            }
        }
    }
}

#[test]
fn listed_and_sparse_ids_become_vertices() {
    let listed = vec![1 << 50, 7, 3];
    let spec = MemorySpec { name: "ids".into(), vertices: Some(listed), ..MemorySpec::default() };
    let ends = Endpoints::U64 { src: vec![u64::MAX, 7], dst: vec![7, 1 << 40] };
    let mut source = ArraySource::new(spec, vec![EdgeBatch { ends, weights: None }]).unwrap();
    let options = BuildOptions { ids: Ids::Map, ..tiny() };
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("g.tg");
    let report = build(&mut source, &path, &options, &Silent, &Cancel::default()).unwrap();
    assert_eq!(report.vertices, 5);
    let graph = ReadBack::open(&path);
    assert_eq!(graph.user_ids, [3, 7, 1 << 40, 1 << 50, u64::MAX]);
    let expected = Arcs::of(vec![(u64::MAX, 7, 0.0), (7, 1 << 40, 0.0)]);
    for (file, found) in graph.adjacency() {
        assert_eq!(found, expected, "{file}");
    }
}

#[test]
fn a_source_that_cannot_restart_is_spooled() {
    let (mut sender, mut source) =
        channel(MemorySpec { name: "pushed".into(), ..MemorySpec::default() }, 2);
    let push = std::thread::spawn(move || {
        for i in 0..50u32 {
            let ends = Endpoints::U32 { src: vec![i, i + 1], dst: vec![i + 1, 0] };
            sender.send(EdgeBatch { ends, weights: None }).unwrap();
        }
        sender.finish().unwrap();
    });
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("g.tg");
    let report = build(&mut source, &path, &tiny(), &Silent, &Cancel::default()).unwrap();
    push.join().unwrap();
    assert!(report.spooled);
    assert_eq!((report.vertices, report.edges), (51, 100));
}

#[test]
fn one_graph_in_two_dialects_has_one_golden_answer() {
    let mut arcs = Vec::new();
    for file in ["graphs/dialects/4.el", "graphs/dialects/4.wel"] {
        let Some(path) = common::data(file) else { return };
        let mut source = open(&path, &OpenOptions::default()).unwrap();
        let (pairs, weights) = common::drain(source.as_mut()).unwrap();
        let weighted = source.weighted();
        let weight = |i: usize| weights.get(i).copied().unwrap_or(0.0);
        let edges = pairs.iter().enumerate().map(|(i, &(s, d))| (s, d, weight(i))).collect();
        let options = BuildOptions {
            duplicates: Duplicates::Remove,
            self_loops: SelfLoops::Remove,
            ..tiny()
        };
        let case = Case { edges, weighted, options };
        let report = case.check();
        assert_eq!((report.vertices, report.edges), (14, 53), "{file}");
        arcs.push(case.expected().unweighted());
        let direction = Direction::Undirected;
        Case { options: BuildOptions { direction, ..case.options.clone() }, ..case }.check();
    }
    assert_eq!(arcs[0], arcs[1]);
}

#[test]
fn a_crawl_keeps_its_order_and_a_random_graph_does_not() {
    let Some(path) = common::data("graphs/cnr-2000/cnr-2000.graph") else { return };
    let mut source = open(&path, &OpenOptions::default()).unwrap();
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("g.tg");
    let options = BuildOptions { memory: Some(256 << 20), ..BuildOptions::default() };
    let report = build(source.as_mut(), &path, &options, &Silent, &Cancel::default()).unwrap();
    assert_eq!((report.order, report.vertices, report.edges), (Order::None, 325_557, 3_216_152));
    let case = Case::new(&skewed(1 << 16), BuildOptions::default());
    assert_eq!(case.build(&dir.path().join("r.tg")).unwrap().order, Order::Degree);
}

fn message(edges: &[(u64, u64, f64)], options: BuildOptions) -> (ErrorKind, String) {
    let dir = TempDir::new().unwrap();
    let error = Case::new(edges, options).build(&dir.path().join("g.tg")).unwrap_err();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "something is left behind");
    (error.kind(), error.to_string())
}

#[test]
fn errors_say_what_to_do_and_leave_nothing() {
    let edge = [(0, 1, 0.5)];
    let dense = || BuildOptions { ids: Ids::Dense, ..tiny() };
    let (kind, text) = message(&[(0, 1 << 17, 0.5)], dense());
    assert_eq!(kind, ErrorKind::Input);
    assert_eq!(
        text,
        "cannot use ids up to `131072`: expected at most 64 vertices an edge, got 131073 \
         vertices, 1 edges\n\nhint: `--ids map` makes only ids that occur vertices"
    );
    let (_, text) = message(&[(0, 1 << 40, 0.5)], dense());
    assert_eq!(
        text,
        "cannot use the id `1099511627776`: expected ids up to 4294967294, as a build keeps \
         4-byte ids in memory\n\nhint: `--ids map` gives large ids to few vertices; split larger \
         graphs"
    );
    let (_, text) = message(&[(0, 50 << 20, 0.5)], dense());
    assert!(text.contains("52428801 vertices, 1 edges"), "{text}");
    assert!(text.ends_with("hint: `--ids map` makes only ids that occur vertices"), "{text}");
    let path: Vec<_> = (0..1 << 20).map(|v| (v, v + 1, 0.5)).collect();
    let (kind, text) = message(&path, tiny());
    assert_eq!(kind, ErrorKind::Budget);
    assert!(
        text.starts_with("cannot build a graph within `8.0 MiB`: expected at least `"),
        "{text}"
    );
    assert!(text.contains("1048577 vertices"), "{text}");
    let (_, text) = message(&edge, BuildOptions { block_bytes: 1000, ..tiny() });
    assert_eq!(
        text,
        "cannot use the option `block_bytes`: expected a multiple of 4096 up to 1 GiB, got 1000"
    );
    let (_, text) = message(&edge, BuildOptions { purpose: Purpose::Training, ..tiny() });
    assert!(text.contains("expected a layout that has weights, got rows only"), "{text}");
    let huge = BuildOptions { weights: WeightChoice::F32, ..tiny() };
    let (_, text) = message(&[(0, 1, 1e300)], huge);
    assert!(text.contains("expected weights from 0 to 3.4e38"), "{text}");
    let (kind, text) = message(&edge, BuildOptions { memory: Some(1 << 20), ..tiny() });
    assert_eq!(kind, ErrorKind::Budget);
    assert_eq!(
        text,
        "cannot build a graph within `1.0 MiB`: expected at least `4.0 MiB` (the process, the edges \
         that are being read and written aside, the page cache 1016.0 KiB, 2 vertices 40 B, 1 edges being sorted 3.0 MiB)\n\n\
         hint: run with `--memory 4MiB` or more"
    );
}

/// Cancels when a stage begins.
struct CancelAt(&'static str, Cancel);

impl Progress for CancelAt {
    fn update(&self, stage: &str, _done: u64, _total: u64, _unit: &str) {
        if stage == self.0 {
            self.1.cancel();
        }
    }
}

#[test]
fn a_cancelled_build_leaves_the_old_graph() {
    let edges = skewed(1 << 14);
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("g.tg");
    let case = Case::new(&edges[..100], tiny());
    case.build(&path).unwrap();
    let before = files(&path);
    for stage in ["scan", "partition", "tiles.blocks", "out.rows"] {
        let case = Case::new(&edges, BuildOptions { overwrite: Existing::Replace, ..tiny() });
        let cancel = Cancel::default();
        let progress = CancelAt(stage, cancel.clone());
        let error =
            build(&mut case.source(), &path, &case.options, &progress, &cancel).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{stage}: {error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "{stage}");
        assert_eq!(files(&path), before, "{stage}");
    }
}

/// Takes edges from a file when they are read again.
struct TakeAt<'p>(&'p Path);

impl Progress for TakeAt<'_> {
    fn update(&self, stage: &str, _done: u64, _total: u64, _unit: &str) {
        if stage == "partition" {
            std::fs::write(self.0, pairs(&[(0, 1), (1, 2)])).unwrap();
        }
    }
}

fn pairs(edges: &[(u32, u32)]) -> Vec<u8> {
    edges.iter().flat_map(|(s, d)| [s.to_le_bytes(), d.to_le_bytes()]).flatten().collect()
}

#[test]
fn edges_that_go_between_passes_are_missed() {
    let dir = TempDir::new().unwrap();
    let (input, path) = (dir.path().join("edges.u32"), dir.path().join("g.tg"));
    std::fs::write(&input, pairs(&[(0, 1), (1, 2), (2, 0)])).unwrap();
    let mut source = open(&input, &OpenOptions::default()).unwrap();
    let progress = TakeAt(&input);
    let error = build(&mut *source, &path, &tiny(), &progress, &Cancel::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert_eq!(
        error.to_string(),
        "cannot read the edges again: expected those of the first pass over the input, got \
         others\n\nhint: do not write to the input while a graph is built from it"
    );
    assert!(!path.exists());
}

#[test]
fn stripes_hold_the_blocks() {
    let dir = TempDir::new().unwrap();
    let stripes: Vec<_> = (0..3).map(|i| dir.path().join(format!("ssd{i}"))).collect();
    stripes.iter().for_each(|stripe| std::fs::create_dir(stripe).unwrap());
    let case = Case::new(&skewed(1 << 14), BuildOptions { stripes, ..tiny() });
    let path = dir.path().join("g.tg");
    case.build(&path).unwrap();
    let graph = ReadBack::open(&path);
    assert_eq!(graph.dir.paths("tiles.blocks").unwrap().len(), 3);
    for (file, found) in graph.adjacency() {
        let expected = case.expected();
        let rows = file.ends_with("rows");
        assert_eq!(found, if rows { expected.unweighted() } else { expected }, "{file}");
    }
}
