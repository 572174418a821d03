//! Searches of one opened graph, one after the other: what they read for those that follow.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Built, Edge, Layout};
use tiergraph_analytics::{bfs, wcc};
use tiergraph_core::{Draws, Silent};
use tiergraph_format::manifest::Codec;
use tiergraph_graph::{Graph, OpenOptions};

/// Vertices that have an edge to about every tenth other.
fn dense(vertices: u64) -> Vec<Edge> {
    let mut draws = Draws::new(11);
    let pairs = (0..vertices).flat_map(|from| (0..from).map(move |to| (from, to, 1.0)));
    pairs.filter(|_| draws.below(10) == 0).collect()
}

/// A search passes over tiles, which are in memory, rather than read rows for itself alone. After some searches rows
/// are read: they stay in memory, and those that follow cost less.
#[test]
fn rows_that_stay_in_memory_are_read_when_searches_before_would_have_gained_as_much() {
    let layout = Layout { codec: Codec::Packed, block_bytes: 64 << 10, ..Layout::default() };
    let built = Built::new(&dense(2000), &Layout { directed: false, ..layout });
    let options =
        OpenOptions { threads: Some(2), memory: Some(256 << 20), ..OpenOptions::default() };
    let graph = Graph::open(&built.path, &options).unwrap();
    // Tiles are in memory then.
    wcc(&graph, &Silent).unwrap();
    let mut ways = Vec::new();
    for source in 0..12 {
        let (hops, report) = bfs(&graph, source, &Silent).unwrap();
        assert_eq!(hops, built.reference.hops(source as usize), "from {source}");
        let widest = report.details.iter().max_by_key(|step| step.measure as u64).unwrap();
        ways.push((widest.how, report.bytes_read));
    }
    let read = ways.iter().position(|(how, _)| *how == "pull").unwrap();
    assert!((1..8).contains(&read), "{ways:?}");
    assert!(ways[..read].iter().all(|(how, _)| *how == "tiles"), "{ways:?}");
    assert!(ways[read].1 > 0, "{ways:?}");
    assert!(ways[read + 1..].iter().all(|&(how, read)| how != "tiles" && read == 0), "{ways:?}");
}
