//! Communities of a graph whose lists, and whose smaller networks' lists, do not fit the memory.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Built, Edge, Layout, Running};
use tiergraph_analytics::{Communities, Method, Objective, communities};
use tiergraph_core::{Draws, ErrorKind, Silent};
use tiergraph_format::manifest::Codec;
use tiergraph_graph::{Graph, OpenOptions};
use tiergraph_ingest::build::WeightChoice;
use tiergraph_io::EngineChoice;

/// Groups of 40 vertices that know each other, and a hub that all know: its community has more neighbours than
/// the least memory has room for.
fn groups_with_a_hub() -> Vec<Edge> {
    let mut draws = Draws::new(5);
    let mut edges: Vec<Edge> = (1..120_000).map(|leaf| (leaf, 0, 1.0)).collect();
    for v in 0..40_000u64 {
        for _ in 0..8 {
            let other = v / 40 * 40 + draws.below(40);
            edges.push((v, other, (draws.below(97) + 1) as f64 / 8.0));
        }
    }
    edges
}

#[test]
fn any_memory_and_number_of_threads_find_the_same_communities() {
    let edges = groups_with_a_hub();
    for (codec, directed, weights) in [
        (Codec::Packed, false, WeightChoice::None),
        (Codec::Raw, true, WeightChoice::None),
        (Codec::Packed, false, WeightChoice::F64),
    ] {
        let block_bytes = 64 << 10;
        let layout = Layout { codec, directed, weights, block_bytes, ..Layout::default() };
        let built = Built::new(&edges, &layout);
        for method in [Method::Louvain, Method::Leiden] {
            let objective = Objective::Modularity;
            let options =
                Communities { method, objective, resolution: 1.0, iterations: 2, seed: 3 };
            let found_by = |threads: usize, extra_memory: u64| {
                let job = |graph: &Graph| communities(graph, &options, &Silent);
                let (engine, residency) = (EngineChoice::Auto, false);
                Running { engine, threads, residency, extra_memory }.run(&built, job)
            };
            let found = |extra_memory: u64| found_by(2, extra_memory);
            let ((least, read), (plenty, read_once)) = (found(0), found(256 << 20));
            // Of lists that do not all fit, some are packed.
            let (more, _) = found(3 << 20);
            let what = format!("{codec:?}, directed {directed}, {weights:?}, {method:?}");
            assert!(least.labels == plenty.labels, "{what}");
            assert!(more.labels == plenty.labels, "{what}");
            for threads in [1, 5] {
                let (others, _) = found_by(threads, 256 << 20);
                assert!(others.labels == plenty.labels, "{what}, {threads} threads");
            }
            assert_eq!(least.modularity.to_bits(), plenty.modularity.to_bits(), "{what}");
            assert!(least.modularity > 0.3, "{what}: {}", least.modularity);
            let scratch = read.scratch.unwrap();
            assert!(scratch.scratch_bytes <= scratch.scratch_bytes_written, "{what}: {scratch:?}");
            assert!(scratch.scratch_bytes_read > 0 && read_once.scratch.is_none(), "{what}");
            if weights == WeightChoice::None {
                assert!(read.bytes_read > 4 * read_once.bytes_read, "{what}: all was in memory");
            }
        }
    }
}

#[test]
fn weights_whose_sum_overflows_are_refused() {
    let layout = Layout { weights: WeightChoice::F64, ..Layout::default() };
    let built = Built::new(&[(0, 1, 1e308), (1, 2, 1e308)], &layout);
    let graph = Graph::open(&built.path, &OpenOptions::default()).unwrap();
    for method in [Method::Louvain, Method::Leiden] {
        let objective = Objective::Modularity;
        let options = Communities { method, objective, resolution: 1.0, iterations: 1, seed: 3 };
        let error = communities(&graph, &options, &Silent).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("a sum that overflows"), "{error}");
    }
}
