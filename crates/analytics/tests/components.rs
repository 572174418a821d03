//! Components of graphs with more hubs' arcs than others', whichever way those apart from the hubs are joined.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;

use common::{Built, Edge, Layout};
use tiergraph_analytics::wcc;
use tiergraph_core::{Draws, Silent};
use tiergraph_graph::{Graph, OpenOptions};
use tiergraph_ingest::build::{OrderChoice, Purpose};

/// Enough for several strips of rows.
const VERTICES: u64 = 200_000;

/// Of 64 vertices one has arcs to others of its kind alone, if any. The rest have arcs from or to a hub, as many
/// in a hundred as `of_hubs` says, and to `more` others, and some to one of the vertices after them.
fn with_hubs(seed: u64, of_hubs: u64, more: u64) -> Vec<Edge> {
    let mut draws = Draws::new(seed);
    let mut edges = Vec::new();
    for v in 0..VERTICES {
        let is_apart = |v: u64| v % 64 == 5;
        let next = (v + 64 * (1 + draws.below(3))).min(VERTICES - 1);
        let mut add = |draws: &mut Draws, other: u64| {
            if is_apart(v) == is_apart(other) {
                let arc = if draws.below(2) == 0 { (v, other) } else { (other, v) };
                edges.push((arc.0, arc.1, 1.0));
            }
        };
        if draws.below(100) < of_hubs {
            let hub = draws.below(16) * (VERTICES / 16);
            add(&mut draws, hub);
        }
        for _ in 0..more {
            let other = draws.below(VERTICES);
            add(&mut draws, if is_apart(v) { v } else { other });
        }
        if draws.below(100) < 30 {
            add(&mut draws, next);
        }
    }
    edges
}

#[test]
fn vertices_apart_from_the_largest_tree_join_by_lists_and_by_tiles() {
    let mut ways = BTreeSet::new();
    for (seed, of_hubs, more) in [(1, 100, 6), (2, 80, 0), (3, 10, 0), (4, 0, 1)] {
        let edges = with_hubs(seed, of_hubs, more);
        for directed in [false, true] {
            for (order, purpose) in [
                (OrderChoice::Degree, Purpose::Analytics),
                (OrderChoice::Degree, Purpose::Both),
                (OrderChoice::None, Purpose::Both),
            ] {
                let layout =
                    Layout { directed, order, purpose, block_bytes: 64 << 10, ..Layout::default() };
                let layout = Layout { strip_arcs: 1 << 12, ..layout };
                let built = Built::new(&edges, &layout);
                let expected: Vec<u32> =
                    built.reference.components().iter().map(|&label| label as u32).collect();
                for memory in [32 << 20, 256 << 20] {
                    let options = OpenOptions {
                        threads: Some(3),
                        memory: Some(memory),
                        ..OpenOptions::default()
                    };
                    let graph = Graph::open(&built.path, &options).unwrap();
                    for _ in 0..2 {
                        let (labels, report) = wcc(&graph, &Silent).unwrap();
                        assert!(labels == expected, "{seed} {layout:?} {memory}");
                        ways.insert((directed, report.details[0].how));
                    }
                }
            }
        }
    }
    for directed in [false, true] {
        for how in ["lists", "tiles"] {
            assert!(ways.contains(&(directed, how)), "{ways:?}");
        }
    }
}
