//! Graphs with long diameters: what a level or a step reads and reports follows what it touches.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Built, Edge, Layout, Running};
use tiergraph_analytics::{RunReport, bfs, core_numbers, sssp};
use tiergraph_core::Silent;
use tiergraph_format::manifest::Codec;
use tiergraph_graph::{Direction, Graph, NearLists, OpenOptions};
use tiergraph_ingest::build::WeightChoice;
use tiergraph_io::EngineChoice;

const LAYOUTS: [(Codec, bool); 4] =
    [(Codec::Packed, true), (Codec::Packed, false), (Codec::Raw, true), (Codec::Raw, false)];

/// A grid of vertices, of whose edges three in ten are missing.
fn road(rows: u64, columns: u64) -> Vec<Edge> {
    let mut state = 7u64;
    let mut draw = move || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        state >> 33
    };
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let mut edges = Vec::new();
    for (row, column) in places {
        let here = row * columns + column;
        let right = (column + 1 < columns).then_some(here + 1);
        let down = (row + 1 < rows).then_some(here + columns);
        for other in right.into_iter().chain(down) {
            if draw() % 10 >= 3 {
                edges.push((here, other, (draw() % 10_000 + 1) as f64));
                // Directed, too, most of it can be reached.
                edges.push((other, here, (draw() % 10_000 + 1) as f64));
            }
        }
    }
    edges
}

/// A path whose vertices have ids in no order.
fn path(len: u64) -> Vec<Edge> {
    let id = |i: u64| i * 7919 % len;
    (1..len).map(|i| (id(i - 1), id(i), (i % 97 + 1) as f64)).collect()
}

fn built(edges: &[Edge], codec: Codec, directed: bool) -> Built {
    let (weights, block_bytes) = (WeightChoice::F32, 64 << 10);
    let (columns_log2, strip_arcs) = (13, 1 << 16);
    let layout = Layout {
        codec,
        directed,
        weights,
        block_bytes,
        columns_log2,
        strip_arcs,
        ..Layout::default()
    };
    Built::new(edges, &layout)
}

fn open(built: &Built, memory: Option<u64>) -> Graph {
    let options = OpenOptions { threads: Some(2), memory, ..OpenOptions::default() };
    Graph::open(&built.path, &options).unwrap()
}

fn ways(report: &RunReport) -> Vec<&'static str> {
    let mut ways: Vec<_> = report.details.iter().map(|step| step.how).collect();
    ways.dedup();
    ways
}

#[test]
fn resident_searches_go_over_to_lists_and_equal_the_verifier() {
    for how in LAYOUTS {
        let built = built(&road(150, 150), how.0, how.1);
        let graph = open(&built, Some(256 << 20));
        for source in [0, 10_000] {
            let (hops, report) = bfs(&graph, source, &Silent).unwrap();
            assert_eq!(hops, built.reference.hops(source as usize), "{how:?}");
            assert!(ways(&report).contains(&"lists"), "{how:?}: {:?}", ways(&report));
            let (distances, report) = sssp(&graph, source, &Silent).unwrap();
            assert_eq!(distances, built.reference.distances(source as usize), "{how:?}");
            assert!(ways(&report).contains(&"lists"), "{how:?}: {:?}", ways(&report));
            assert!(report.iterations < 100, "{how:?}: {} passes", report.iterations);
        }
    }
}

/// A report has as many entries of a path of 60,000 levels as of one of thousands, and what was
/// reserved is given back.
#[test]
fn a_path_is_reported_in_few_entries() {
    for how in LAYOUTS {
        let built = built(&path(60_000), how.0, how.1);
        let graph = open(&built, Some(256 << 20));
        let before = graph.memory().budget().used();
        let (hops, report) = bfs(&graph, 0, &Silent).unwrap();
        assert_eq!(hops, built.reference.hops(0), "{how:?}");
        assert_eq!(report.iterations, 59_999, "{how:?}");
        let counted: usize = report.details.iter().map(|step| step.iterations).sum();
        assert!(counted == 59_999 && report.details.len() < 1100, "{how:?}");
        assert_eq!(graph.memory().budget().used(), before, "{how:?}");
    }
}

/// Where neither blocks nor lists fit, a page is read about once and not once a level.
#[test]
fn out_of_core_pages_are_read_about_once() {
    for directed in [true, false] {
        let built = built(&road(3000, 100), Codec::Packed, directed);
        let files = &open(&built, None).manifest().files.clone();
        let rows = files["out.rows"].bytes;
        let state = 3000 * 100 * 9;
        let needed = open(&built, None).memory().budget().used() + state;
        // Less than the rows, which are smaller than tiles and lists.
        let graph = open(&built, Some(needed + rows / 2));
        let (hops, report) = bfs(&graph, 0, &Silent).unwrap();
        assert_eq!(hops, built.reference.hops(0));
        println!("{} of {rows} by {:?}", report.bytes_read, ways(&report));
        assert!(ways(&report).contains(&"pages"), "{:?}", ways(&report));
        assert!(report.iterations > 1000, "{} levels", report.iterations);
        assert!(report.bytes_read < 2 * rows, "{} of {rows}", report.bytes_read);
    }
}

/// Raw blocks, too, where lists of all arcs do not fit: in the least memory that a search takes.
#[test]
fn out_of_core_raw_blocks_are_read_about_once() {
    let (len, block_bytes) = (5000, 4 << 10);
    let edges: Vec<Edge> = (1..len).map(|i| (i - 1, i, 1.0)).collect();
    for directed in [true, false] {
        let layout = Layout { codec: Codec::Raw, directed, block_bytes, ..Layout::default() };
        let built = Built::new(&edges, &layout);
        let graph = open(&built, None);
        let needed = graph.memory().budget().used()
            + len * 9
            + NearLists::least_bytes(&graph, Direction::Out);
        let graph = open(&built, Some(needed));
        let (hops, report) = bfs(&graph, 0, &Silent).unwrap();
        assert_eq!(hops, built.reference.hops(0));
        assert_eq!(ways(&report), ["push", "pages"], "directed: {directed}");
        // All blocks until all were seen, and then each once.
        let most = 3 * report.pass_bytes;
        assert!(report.bytes_read <= most, "{} of {most}", report.bytes_read);
    }
}

/// A run in the least memory that it takes.
const LEAST: Running =
    Running { engine: EngineChoice::Auto, threads: 2, residency: true, extra_memory: 0 };

/// Without weights, shortest paths are searches, which read pages of the vertices that they are at; the least
/// memory holds none, and then passes say what memory does.
#[test]
fn paths_without_weights_read_pages_about_once() {
    for directed in [true, false] {
        let layout = Layout { directed, block_bytes: 64 << 10, ..Layout::default() };
        let built = Built::new(&path(40_000), &layout);
        let (distances, report) = LEAST.run(&built, |graph| sssp(graph, 0, &Silent));
        assert_eq!(distances, built.reference.distances(0), "directed: {directed}");
        assert_eq!(report.algorithm, "sssp");
        let graph = open(&built, Some(enough(&report.lists_why.unwrap())));
        let (same, report) = sssp(&graph, 0, &Silent).unwrap();
        assert_eq!(distances, same, "directed: {directed}");
        assert!(report.passes < 8.0, "directed {directed}: {} passes", report.passes);
        assert_eq!(report.lists_why, None);
    }
}

/// The bytes of "a memory of `123MiB`".
fn enough(why: &str) -> u64 {
    let (_, memory) = why.split_once("a memory of `").unwrap();
    memory.split_once("MiB`").unwrap().0.parse::<u64>().unwrap() << 20
}

/// With weights, paths whose lists do not fit say what memory these fit; in it, lists are made.
#[test]
fn many_passes_say_what_memory_makes_them_fewer() {
    let built = built(&road(60, 60), Codec::Packed, false);
    let (distances, report) = LEAST.run(&built, |graph| sssp(graph, 0, &Silent));
    let graph = open(&built, Some(enough(&report.lists_why.unwrap())));
    let (same, report) = sssp(&graph, 0, &Silent).unwrap();
    assert_eq!(distances, same);
    assert!(ways(&report).contains(&"lists") && report.lists_why.is_none());
}

/// A path's bounds fall from its ends, a vertex after the other: that is one iteration, not one for each.
#[test]
fn cores_of_a_path_take_few_iterations() {
    let len = 60_000;
    for how in LAYOUTS {
        let built = built(&path(len), how.0, how.1);
        let graph = open(&built, Some(256 << 20));
        let (cores, report) = core_numbers(&graph, &Silent).unwrap();
        assert!(cores.iter().all(|&core| core == 1), "{how:?}");
        assert!(report.iterations < 5, "{how:?}: {} iterations", report.iterations);
    }
}
