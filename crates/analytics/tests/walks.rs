//! Random walks: node2vec's parameters at their extremes, and how often a step goes where.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Built, Layout};
use tiergraph_analytics::{Walks, walks};
use tiergraph_core::{Error, ErrorKind, Silent};
use tiergraph_graph::{Graph, OpenOptions};

const TWICE: Walks = Walks { length: 2, p: 1.0, q: 1.0, seed: 5, first: 0 };

fn open(edges: &[(u64, u64)], threads: usize) -> (Built, Graph) {
    let edges: Vec<_> = edges.iter().map(|&(source, to)| (source, to, 1.0)).collect();
    let built = Built::new(&edges, &Layout { directed: false, ..Layout::default() });
    let options = OpenOptions { threads: Some(threads), ..OpenOptions::default() };
    let graph = Graph::open(&built.path, &options).unwrap();
    (built, graph)
}

fn go(graph: &Graph, starts: &[u32], how: Walks) -> Result<Vec<Vec<u32>>, Error> {
    let (steps, _) = walks(graph, starts, &how, &Silent)?;
    Ok(steps.chunks_exact(how.length + 1).map(<[u32]>::to_vec).collect())
}

#[test]
fn a_leaf_is_left_by_its_edge_however_large_p_is() {
    let (_built, graph) = open(&[(0, 1), (1, 2)], 2);
    for p in [1e9, f64::MAX] {
        let of_zero = &go(&graph, &[0], Walks { length: 80, p, ..TWICE }).unwrap()[0];
        assert!(of_zero.windows(2).all(|step| step[0].abs_diff(step[1]) == 1));
        // From the middle it goes on, for what is back weighs next to nothing.
        assert_eq!(of_zero[..6], [0, 1, 2, 1, 0, 1]);
    }
}

#[test]
fn edges_that_are_repeated_do_not_keep_a_walk() {
    // Both arcs of vertex 1 lead back.
    let (_built, graph) = open(&[(0, 1), (0, 1)], 2);
    for p in [1e9, f64::MAX] {
        let how = Walks { length: 4, p, q: 1e-300, ..TWICE };
        assert_eq!(go(&graph, &[0], how).unwrap(), [[0, 1, 0, 1, 0]]);
    }
}

#[test]
fn steps_that_candidates_do_not_decide_follow_the_weights() {
    // From 1, which came from 0: back to 0 weighs a million times less than to its neighbours 2 and 3.
    let (_built, graph) = open(&[(0, 1), (0, 1), (1, 2), (0, 2), (1, 3), (0, 3), (4, 5)], 1);
    let (_same, others) = open(&[(0, 1), (0, 1), (1, 2), (0, 2), (1, 3), (0, 3), (4, 5)], 3);
    // A step to what is no neighbour of 0 would weigh 1e12, so that hardly any candidate is taken.
    let how = Walks { p: 1e6, q: 1e-12, ..TWICE };
    let starts = vec![0; 20_000];
    let found = go(&graph, &starts, how).unwrap();
    assert_eq!(found, go(&others, &starts, how).unwrap());
    let ends = |last| found.iter().filter(|walk| walk[1] == 1 && walk[2] == last).count();
    let (back, two, three) = (ends(0), ends(2), ends(3));
    let all = back + two + three;
    assert!(all > 9_000, "{all} of 20,000 walks go by two arcs of four");
    assert!(back < 5, "{back} of {all} went back");
    let off = (two as f64 / all as f64 - 0.5).abs();
    assert!(off < 0.03, "{two} to one of two like vertices, {three} to the other");
}

#[test]
fn walks_that_candidates_decide_are_those_of_their_seed() {
    let ring: Vec<_> = (0..8).flat_map(|v| [(v, (v + 1) % 8), (v, (v + 3) % 8)]).collect();
    let (_built, graph) = open(&ring, 2);
    let go = |p, q| go(&graph, &[0, 5], Walks { length: 12, p, q, seed: 9, first: 0 }).unwrap();
    let near = [[0, 7, 0, 7, 0, 7, 0, 7, 0, 7, 0, 3, 2], [5, 4, 7, 4, 7, 4, 7, 4, 7, 0, 7, 0, 7]];
    let far = [[0, 7, 6, 5, 4, 3, 0, 7, 4, 7, 6, 3, 2], [5, 4, 1, 2, 3, 6, 5, 4, 3, 0, 7, 6, 1]];
    assert_eq!(go(0.25, 4.0), near);
    assert_eq!(go(4.0, 0.5), far);
}

#[test]
fn parameters_without_a_finite_inverse_are_refused() {
    let (_built, graph) = open(&[(0, 1), (1, 2)], 1);
    for how in [Walks { p: 1e-320, ..TWICE }, Walks { q: 1e-320, ..TWICE }] {
        let error = go(&graph, &[0], how).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("is finite"), "{error}");
    }
}
