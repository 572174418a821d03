//! Every algorithm meets a serial verifier, whatever the graph's shape and layout, the engine, the
//! threads and the memory. Exact results are compared bit by bit, sums within rounding.

#![allow(clippy::unwrap_used)]

mod common;

use common::verify::Propagation;
use common::{Built, Layout, Running, edges, layout, running};
use proptest::prelude::*;
use std::fmt::Debug;
use tiergraph_analytics::{
    Communities, Method, Objective, PageRank, Propagate, Reduce, Value, Weighed, betweenness, bfs,
    clustering, coloring, communities, core_numbers, harmonic, in_common, independent_set, k_core,
    label_propagation, mutual, pagerank, propagate, scc, sssp, triangles, wcc,
};
use tiergraph_core::{Result, Silent};
use tiergraph_format::manifest::Codec;
use tiergraph_graph::Graph;
use tiergraph_ingest::build::{OrderChoice, Purpose, WeightChoice};
use tiergraph_io::EngineChoice;

/// The graph's vertex at `position` of the user's order.
fn vertex(graph: &Graph, built: &Built, position: usize) -> Result<u32> {
    Ok(graph.ids().find(&[built.reference.ids[position]])?[0])
}

/// Fails with the first place where two results differ.
fn assert_same<T: PartialEq + Debug>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(v) = found.iter().zip(expected).position(|(a, b)| a != b) {
        panic!("{what}: vertex {v} has {:?}, not {:?}", found[v], expected[v]);
    }
}

fn check_components(built: &Built, running: &Running) {
    let labels = running.run(built, |graph| Ok(wcc(graph, &Silent)?.0));
    let expected = built.reference.components();
    assert!(labels.iter().map(|&l| l as usize).eq(expected), "components differ");
}

fn check_hops(built: &Built, running: &Running, source: usize) {
    let hops = running.run(built, |g| Ok(bfs(g, vertex(g, built, source)?, &Silent)?.0));
    assert_eq!(hops, built.reference.hops(source), "hops from {source}");
}

fn check_distances(built: &Built, running: &Running, source: usize) {
    let found = running.run(built, |g| Ok(sssp(g, vertex(g, built, source)?, &Silent)?.0));
    let bits = |distances: Vec<f64>| distances.into_iter().map(f64::to_bits).collect::<Vec<_>>();
    let expected = built.reference.distances(source);
    assert_eq!(bits(found), bits(expected), "distances from {source}");
}

fn check_triangles(built: &Built, running: &Running) {
    let found = running.run(built, |g| Ok(triangles(g, &Silent)?.0));
    let expected = built.reference.triangles();
    assert_eq!(found.all, expected.iter().sum::<u64>() / 3);
    assert_same(&found.of, &expected, "triangles");
}

fn check_clustering(built: &Built, running: &Running) {
    let found = running.run(built, |g| Ok(clustering(g, &Silent)?.0));
    assert_same(&found, &built.reference.clustering(), "clustering coefficients");
}

fn check_cores(built: &Built, running: &Running) {
    let found = running.run(built, |g| Ok(core_numbers(g, &Silent)?.0));
    let cores = built.reference.cores();
    assert_same(&found, &cores, "core numbers");
    for k in [1, 2, 3, cores.iter().copied().max().unwrap_or(0).max(1)] {
        let found = running.run(built, |g| Ok(k_core(g, k, &Silent)?.0));
        let expected: Vec<u32> = cores.iter().map(|&c| if c >= k { k } else { 0 }).collect();
        assert_same(&found, &expected, "a k-core");
    }
}

fn check_strong_components(built: &Built, running: &Running) {
    let found = running.run(built, |g| Ok(scc(g, &Silent)?.0));
    assert_same(&found, &built.reference.strong_components(), "strong components");
}

fn check_communities(built: &Built, running: &Running, method: Method) {
    let options = Communities {
        method,
        objective: Objective::Modularity,
        resolution: 1.0,
        iterations: 2,
        seed: 7,
    };
    let find = |running: &Running| running.run(built, |g| Ok(communities(g, &options, &Silent)?.0));
    let found = find(running);
    let expected = built.reference.modularity(&found.labels, built.directed);
    let off = (found.modularity - expected).abs();
    assert!(off < 1e-9, "modularity {} is not {expected}", found.modularity);
    // A label is the first vertex that has it.
    let is_first =
        |(v, &label): (usize, &u32)| label as usize <= v && found.labels[label as usize] == label;
    assert!(found.labels.iter().enumerate().all(is_first));
    if method == Method::Leiden {
        assert!(built.reference.are_connected(&found.labels), "a community is in pieces");
    }
    let others =
        Running { threads: 4 - running.threads, extra_memory: 64 << 20, ..running.clone() };
    assert_same(&find(&others).labels, &found.labels, "communities");
}

fn check_betweenness(built: &Built, running: &Running, sources: &[usize]) {
    let found = running.run(built, |graph| {
        let sources =
            sources.iter().map(|&s| vertex(graph, built, s)).collect::<Result<Vec<u32>>>()?;
        Ok(betweenness(graph, &sources, &Silent)?.0)
    });
    let expected = built.reference.betweenness(sources);
    for (v, (&found, &expected)) in found.iter().zip(&expected).enumerate() {
        let off = (found - expected).abs();
        assert!(off <= 1e-9 * expected.max(1.0), "betweenness of {v}: {found} is not {expected}");
    }
}

fn check_greedy(built: &Built, running: &Running) {
    let others =
        Running { threads: 4 - running.threads, extra_memory: 64 << 20, ..running.clone() };
    let set = running.run(built, |g| Ok(independent_set(g, 3, &Silent)?.0));
    assert!(built.reference.is_maximal_set(&set), "not a maximal independent set");
    let colors = running.run(built, |g| Ok(coloring(g, &Silent)?.0));
    assert!(built.reference.is_greedy_coloring(&colors), "not a greedy colouring");
    assert_same(&others.run(built, |g| Ok(independent_set(g, 3, &Silent)?.0)), &set, "sets");
    assert_same(&others.run(built, |g| Ok(coloring(g, &Silent)?.0)), &colors, "colours");
}

/// With so many registers, an estimate of few vertices is off by little, and all estimates by less.
fn check_closeness(built: &Built, running: &Running) {
    if built.reference.vertices() > 1500 {
        return;
    }
    let found = running.run(built, |g| Ok(harmonic(g, 1024, 5, &Silent)?.0));
    let expected = built.reference.harmonic();
    let mut all_off = 0.0;
    for (v, (&found, &expected)) in found.harmonic.iter().zip(&expected).enumerate() {
        let off = (found - expected).abs();
        // Five standard errors, and a few vertices in one register.
        assert!(off <= 0.17 * expected + 3.0, "closeness of {v}: {found} is not {expected}");
        all_off += off / expected.max(1.0);
    }
    assert!(all_off <= 0.06 * expected.len() as f64 + 3.0, "closeness is off by {all_off} in all");
}

fn check_mutual(built: &Built, running: &Running) {
    let found = running.run(built, |g| Ok(mutual(g, &Silent)?.0));
    let (expected, reciprocity) = built.reference.mutual(built.directed);
    assert_same(&found.of, &expected, "mutual neighbours");
    assert!((found.reciprocity - reciprocity).abs() < 1e-12);
}

fn check_similarity(built: &Built, running: &Running) {
    let n = built.reference.vertices();
    let pairs: Vec<[usize; 2]> = (0..3 * n).map(|i| [i * 7 % n, (i * i + i / 3) % n]).collect();
    let value = |weighed, arcs: usize| match weighed {
        Weighed::Alike => 1.0,
        Weighed::ByArcs => 1.0 / arcs as f64,
        Weighed::ByLogarithm if arcs < 2 => 0.0,
        Weighed::ByLogarithm => 1.0 / (arcs as f64).ln(),
    };
    for weighed in [Weighed::Alike, Weighed::ByArcs, Weighed::ByLogarithm] {
        let found = running.run(built, |graph| {
            let one =
                |&[a, b]: &[usize; 2]| Ok([vertex(graph, built, a)?, vertex(graph, built, b)?]);
            let pairs: Vec<[u32; 2]> = pairs.iter().map(one).collect::<Result<_>>()?;
            Ok(in_common(graph, &pairs, weighed, &Silent)?.0)
        });
        let expected = built.reference.in_common(&pairs, |arcs| value(weighed, arcs));
        let neighbors: Vec<_> = expected.iter().map(|(_, neighbors)| *neighbors).collect();
        assert_same(&found.neighbors, &neighbors, "neighbours of pairs");
        for (sum, (expected, _)) in found.sums.iter().zip(&expected) {
            assert!(
                (sum - expected).abs() <= 1e-9 * expected.abs(),
                "{weighed:?}: {sum} in common, not {expected}"
            );
        }
    }
}

fn check_label_propagation(built: &Built, running: &Running, rounds: usize) {
    let found = running.run(built, |g| Ok(label_propagation(g, rounds, &Silent)?.0));
    let expected = built.reference.label_propagation(rounds, built.directed);
    assert_same(&found, &expected, "labels");
}

fn check_pagerank(built: &Built, running: &Running, sources: &[usize], tolerance: Option<f64>) {
    const DAMPING: f64 = 0.85;
    let limit = if tolerance.is_some() { 100 } else { 12 };
    let (ranks, report) = running.run(built, |graph| {
        let sources =
            sources.iter().map(|&s| vertex(graph, built, s)).collect::<Result<Vec<u32>>>()?;
        let options = PageRank { damping: DAMPING, iterations: limit, tolerance, sources };
        pagerank(graph, &options, &Silent)
    });
    assert!(report.iterations == limit || tolerance.is_some());
    let expected = built.reference.pagerank(DAMPING, report.iterations, sources);
    assert_eq!(ranks.len(), expected.len());
    let relative = 1e-5;
    for (v, (&rank, &expected)) in ranks.iter().zip(&expected).enumerate() {
        let off = (f64::from(rank) - expected).abs();
        assert!(off <= relative * expected + 1e-30, "rank of {v}: {rank} is not {expected}");
    }
    if let Some(tolerance) = tolerance.filter(|_| report.converged && report.iterations > 0) {
        let before = built.reference.pagerank(DAMPING, report.iterations - 1, sources);
        let change: f64 = before.iter().zip(&expected).map(|(a, b)| (a - b).abs()).sum();
        // Both vectors of ranks, which sum to 1, are off by as much.
        assert!(change < tolerance + 2.0 * relative, "it ended at a change of {change}");
    }
}

/// `x[i]` for the places of vertex values: both signs, few repeats.
fn values<T: Value>(len: usize) -> Vec<T> {
    (0..len).map(|i| T::from_f64((i * 7919 % 1009) as f64 * 0.37 - 180.0)).collect()
}

fn check_propagate<T>(built: &Built, running: &Running, how: Propagation, width: usize)
where
    T: Value + Into<f64>,
{
    let Propagation { reduce, transpose, weights } = how;
    let x: Vec<T> = values(built.reference.vertices() * width);
    let options = Propagate { reduce, transpose, weights, width };
    let y = running.run(built, |graph| Ok(propagate(graph, &x, &options, &Silent)?.0));
    let y: Vec<f64> = y.into_iter().map(Into::into).collect();
    if reduce != Reduce::Sum {
        assert_eq!(y, built.reference.extremes(&x, &how), "{how:?}");
        return;
    }
    let rounding = if size_of::<T>() == 4 { 1e-5 } else { 1e-12 };
    let expected = built.reference.sums(&x, &how);
    assert_eq!(y.len(), expected.len());
    for (i, (&y, &(sum, size))) in y.iter().zip(&expected).enumerate() {
        assert!((y - sum).abs() <= rounding * size, "{how:?}: value {i}: {y} is not {sum}");
    }
}

/// What a case propagates.
fn propagation() -> impl Strategy<Value = (Propagation, usize, bool)> {
    let reduce = prop::sample::select(vec![Reduce::Sum, Reduce::Min, Reduce::Max]);
    let width = prop::sample::select(vec![1usize, 3]);
    (reduce, any::<bool>(), any::<bool>(), width, any::<bool>()).prop_map(
        |(reduce, transpose, weights, width, wide)| {
            (Propagation { reduce, transpose, weights }, width, wide)
        },
    )
}

fn check_a_propagation(built: &Built, running: &Running, what: (Propagation, usize, bool)) {
    let (how, width, wide) = what;
    let how = Propagation { weights: how.weights && built.weighted, ..how };
    match wide {
        true => check_propagate::<f64>(built, running, how, width),
        false => check_propagate::<f32>(built, running, how, width),
    }
}

/// What is made of whole lists of neighbours.
fn check_lists(built: &Built, running: &Running) {
    check_triangles(built, running);
    check_clustering(built, running);
    check_cores(built, running);
    check_strong_components(built, running);
    check_greedy(built, running);
    check_mutual(built, running);
    check_similarity(built, running);
    check_communities(built, running, Method::Louvain);
    check_communities(built, running, Method::Leiden);
    check_label_propagation(built, running, 4);
}

/// Everything but `propagate`, from the vertices that `picks` chooses.
fn check_all(built: &Built, runnings: &[Running], picks: &[prop::sample::Index]) {
    let n = built.reference.vertices();
    let sources: Vec<usize> =
        if n == 0 { Vec::new() } else { picks.iter().map(|pick| pick.index(n)).collect() };
    for running in runnings {
        check_components(built, running);
        check_lists(built, running);
        check_closeness(built, running);
        check_pagerank(built, running, &[], None);
        check_pagerank(built, running, &[], Some(1e-4));
        if let Some(&first) = sources.first() {
            check_hops(built, running, first);
            check_betweenness(built, running, &sources);
            check_distances(built, running, first);
            check_pagerank(built, running, &sources, None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        // More of them where `TIERGRAPH_CASES` says so.
        cases: std::env::var("TIERGRAPH_CASES").map_or(96, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn results_are_the_verifiers(
        edges in edges(),
        layout in layout(),
        runnings in prop::collection::vec(running(), 2),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        propagations in prop::collection::vec(propagation(), 3),
    ) {
        let built = Built::new(&edges, &layout);
        check_all(&built, &runnings, &picks);
        for what in propagations {
            check_a_propagation(&built, &runnings[0], what);
        }
    }
}

/// The graphs at the edges of what a graph is, in each layout.
#[test]
fn graphs_of_nothing_of_one_vertex_and_of_one_path() {
    let running =
        Running { engine: EngineChoice::Posix, threads: 2, residency: true, extra_memory: 0 };
    let shapes = [
        Vec::new(),
        common::Shape::Lonely { vertex: 0 }.edges(),
        common::Shape::Lonely { vertex: 2047 }.edges(),
        common::Shape::Path { len: 400, stride: 1777 }.edges(),
    ];
    for edges in shapes {
        for directed in [true, false] {
            for codec in [Codec::Packed, Codec::Raw] {
                let built = Built::new(&edges, &Layout { directed, codec, ..Layout::default() });
                let n = built.reference.vertices();
                check_components(&built, &running);
                check_lists(&built, &running);
                check_pagerank(&built, &running, &[], Some(1e-4));
                for source in [0, n / 2, n.saturating_sub(1)].into_iter().filter(|&s| s < n) {
                    check_hops(&built, &running, source);
                    check_distances(&built, &running, source);
                    check_pagerank(&built, &running, &[source, 0], None);
                }
            }
        }
    }
}

/// Lists that do not fit the memory at once come in ranges, edges in parts, and components by passes.
#[test]
fn lists_that_do_not_fit_the_memory() {
    let shapes = [
        common::Shape::Random { below: 20_000, edges: 50_000, seed: 11 },
        common::Shape::Hub { hub: 11_000, below: 20_000, edges: 20_000, seed: 12 },
        common::Shape::Dense { below: 200, edges: 10_000, seed: 13 },
        common::Shape::Path { len: 4000, stride: 1777 },
    ];
    let edges: Vec<common::Edge> = shapes.iter().flat_map(common::Shape::edges).collect();
    let running =
        Running { engine: EngineChoice::Auto, threads: 2, residency: true, extra_memory: 0 };
    for directed in [true, false] {
        for (codec, order, purpose) in [
            (Codec::Packed, OrderChoice::None, Purpose::Analytics),
            (Codec::Packed, OrderChoice::Degree, Purpose::Both),
            (Codec::Raw, OrderChoice::None, Purpose::Analytics),
        ] {
            let strip_arcs = 50_000;
            let layout =
                Layout { directed, codec, order, purpose, strip_arcs, ..Layout::default() };
            let built = Built::new(&edges, &layout);
            check_lists(&built, &running);
            check_betweenness(&built, &running, &[0, 11_000, 19_999]);
        }
    }
}

/// Every way to propagate, on one graph with all kinds of arcs, in each layout.
#[test]
fn every_propagation_of_every_layout() {
    let shapes = [
        common::Shape::Random { below: 3000, edges: 1500, seed: 5 },
        common::Shape::Hub { hub: 1100, below: 3000, edges: 600, seed: 6 },
        common::Shape::Dense { below: 4, edges: 60, seed: 7 },
    ];
    let edges: Vec<common::Edge> = shapes.iter().flat_map(common::Shape::edges).collect();
    let running =
        Running { engine: EngineChoice::Auto, threads: 2, residency: true, extra_memory: 0 };
    for directed in [true, false] {
        for codec in [Codec::Packed, Codec::Raw] {
            let weights = WeightChoice::F64;
            let layout = Layout { directed, codec, weights, ..Layout::default() };
            let built = Built::new(&edges, &layout);
            for reduce in [Reduce::Sum, Reduce::Min, Reduce::Max] {
                for (transpose, weights) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let how = Propagation { reduce, transpose, weights };
                    check_propagate::<f32>(&built, &running, how, 1);
                    check_propagate::<f64>(&built, &running, how, 3);
                }
            }
        }
    }
}
