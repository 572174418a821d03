//! Shortest paths in graphs with short diameters end along the arcs that can still lower a distance, in whatever memory.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Built, Edge, Layout};
use tiergraph_analytics::{RunReport, sssp};
use tiergraph_core::Silent;
use tiergraph_format::manifest::Codec;
use tiergraph_graph::{Graph, OpenOptions};
use tiergraph_ingest::build::WeightChoice;

/// Edges between random vertices, most of them between few, whose weights `weigh` makes of random numbers.
fn skewed(vertices: u64, edges: usize, weigh: impl Fn(u64) -> f64) -> Vec<Edge> {
    let mut state = 11u64;
    let mut draw = move || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        state >> 33
    };
    let mut end = move || {
        let (a, b) = (draw() % vertices, draw() % vertices);
        (a * b / vertices, draw())
    };
    let edge = |_| {
        let ((from, weight), (to, _)) = (end(), end());
        (from, to, weigh(weight))
    };
    (0..edges).map(edge).collect()
}

fn open(built: &Built, memory: u64) -> Graph {
    let options = OpenOptions { threads: Some(2), memory: Some(memory), ..OpenOptions::default() };
    Graph::open(&built.path, &options).unwrap()
}

fn has_lists(report: &RunReport) -> bool {
    report.details.iter().any(|step| step.how == "lists")
}

#[test]
fn few_passes_and_then_lists_in_whatever_memory() {
    let fractions = |n: u64| (n % 100_000) as f64 / 1e5;
    let whole = |n: u64| (n % 255 + 1) as f64;
    let all = [
        (WeightChoice::F64, skewed(20_000, 400_000, fractions)),
        (WeightChoice::F32, skewed(20_000, 400_000, whole)),
        (WeightChoice::None, skewed(20_000, 400_000, |_| 1.0)),
    ];
    for (weights, edges) in all {
        for (codec, directed) in
            [(Codec::Packed, true), (Codec::Packed, false), (Codec::Raw, true), (Codec::Raw, false)]
        {
            let (block_bytes, strip_arcs) = (16 << 10, 1 << 16);
            let layout = Layout {
                codec,
                directed,
                weights,
                block_bytes,
                strip_arcs,
                columns_log2: 13,
                ..Layout::default()
            };
            let built = Built::new(&edges, &layout);
            let graph = open(&built, 1 << 30);
            let (opened, vertices) = (graph.memory().budget().used(), graph.vertices() as u64);
            // From the least that a run takes to all lists and blocks: too little for useful arcs, at the first try, or not.
            let least = opened + vertices * 16;
            let mut with_lists = 0;
            for room in [0, vertices * 24, 1 << 20, 2 << 20, 4 << 20, 64 << 20] {
                let graph = open(&built, least + room);
                let source = room as u32 % 1000;
                let (distances, report) = sssp(&graph, source, &Silent).unwrap();
                let case = format!("{weights:?} {codec:?} directed: {directed} room: {room}");
                assert_eq!(distances, built.reference.distances(source as usize), "{case}");
                assert_eq!(graph.memory().budget().used(), opened, "{case}");
                with_lists += u32::from(has_lists(&report));
                if weights != WeightChoice::None && room >= 4 << 20 {
                    assert!(has_lists(&report), "{case}");
                    assert!(report.iterations <= 7, "{case}: {} iterations", report.iterations);
                    assert!(report.passes <= 3.5, "{case}: {} passes", report.passes);
                }
            }
            assert!(
                with_lists < 6 || weights == WeightChoice::None,
                "the least memory has no room"
            );
        }
    }
}
