//! Real graphs in every format give the counts that are known of them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{data, distinct, drain, edges};
use tiergraph_ingest::source::{Format, OpenOptions, Weights, open};

fn check(path: &str, vertices: usize, count: usize) {
    let Some(path) = data(path) else { return };
    let edges = edges(&path, &OpenOptions::default());
    assert_eq!((distinct(&edges), edges.len()), (vertices, count), "{}", path.display());
}

#[test]
fn snap_edge_lists() {
    check("graphs/snap/wiki-Vote.txt", 7_115, 103_689);
    check("graphs/snap/facebook_combined.txt.gz", 4_039, 88_234);
    check("graphs/snap/email-Enron.txt.gz", 36_692, 367_662);
}

#[test]
fn small_dialects() {
    check("graphs/dialects/karate.csv", 34, 156);
    let Some(el) = data("graphs/dialects/4.el") else { return };
    let Some(wel) = data("graphs/dialects/4.wel") else { return };
    let plain = edges(&el, &OpenOptions::default());
    let mut weighted = open(&wel, &OpenOptions::default()).unwrap();
    assert!(weighted.weighted());
    let (ends, weights) = drain(weighted.as_mut()).unwrap();
    assert_eq!(ends, plain);
    assert_eq!(weights[..4], [92.0, 95.0, 152.0, 110.0]);
}

#[test]
fn the_weights_of_a_csv() {
    let Some(path) = data("graphs/dialects/karate.csv") else { return };
    let options = OpenOptions { weights: Weights::Column(3), ..OpenOptions::default() };
    let (edges, weights) = drain(open(&path, &options).unwrap().as_mut()).unwrap();
    assert_eq!(edges[..2], [(1, 0), (2, 0)]);
    assert!(weights.iter().all(|&weight| weight == 1.0));
}

#[test]
fn bvgraph_equals_its_ascii_twin() {
    let Some(path) = data("graphs/cnr-2000-ascii/cnr-2000.graph") else { return };
    let Some(ascii) = data("graphs/cnr-2000-ascii/cnr-2000.graph-txt.gz") else { return };
    let decoded = edges(&path, &OpenOptions::default());
    assert_eq!(decoded.len(), 3_216_152);
    let options = OpenOptions { format: Some(Format::AsciiGraph), ..OpenOptions::default() };
    assert!(decoded == edges(&ascii, &options), "the ASCII graph has other arcs");
}

#[test]
fn bvgraph_and_its_transpose() {
    let Some(graph) = data("graphs/cnr-2000/cnr-2000.graph") else { return };
    let Some(transpose) = data("graphs/cnr-2000/cnr-2000-t.properties") else { return };
    // What the files share is a path too.
    let mut forward = edges(&graph.with_extension(""), &OpenOptions::default());
    assert_eq!(forward.len(), 3_216_152);
    assert_eq!(forward.iter().filter(|(src, dst)| src == dst).count(), 87_442);
    assert!(forward.windows(2).all(|pair| pair[0] < pair[1]), "rows ascend, no duplicates");
    let mut backward = edges(&transpose, &OpenOptions::default());
    backward.iter_mut().for_each(|edge| *edge = (edge.1, edge.0));
    forward.sort_unstable();
    backward.sort_unstable();
    assert!(forward == backward, "the transpose has other arcs");
}

#[test]
fn graphalytics_edge_files() {
    let root = "conformance/ldbc-graphalytics/validation-graphs";
    for (name, vertices, count, first) in [
        ("example/example-directed", 10, 17, 0.5),
        ("example/example-undirected", 9, 12, 0.9),
        ("sssp/dir-input", 10, 13, 0.5),
    ] {
        let Some(path) = data(&format!("{root}/{name}.e")) else { return };
        let mut source = open(&path, &OpenOptions::default()).unwrap();
        assert!(source.weighted());
        let listed = source.vertices().unwrap().unwrap();
        let (edges, weights) = drain(source.as_mut()).unwrap();
        assert_eq!((listed.len(), edges.len(), weights[0]), (vertices, count, first), "{name}");
        assert!(edges.iter().all(|(src, dst)| listed.contains(src) && listed.contains(dst)));
    }
}

#[test]
fn graphalytics_adjacency_lists() {
    let root = "conformance/ldbc-graphalytics/validation-graphs/example";
    for (kind, directed) in [("directed", true), ("undirected", false)] {
        let Some(lines) = data(&format!("{root}/example-{kind}-input")) else { return };
        let options = OpenOptions {
            format: Some(Format::Adjacency),
            directed: Some(directed),
            ..OpenOptions::default()
        };
        let mut from_lines = edges(&lines, &options);
        let path = data(&format!("{root}/example-{kind}.e")).expect("beside the lines");
        let mut from_edges = edges(&path, &OpenOptions::default());
        if !directed {
            from_edges.iter_mut().for_each(|e| *e = (e.0.min(e.1), e.0.max(e.1)));
        }
        from_lines.sort_unstable();
        from_edges.sort_unstable();
        assert_eq!(from_lines, from_edges, "{kind}");
    }
}

#[test]
fn a_vertex_without_a_line_is_an_end_of_edges() {
    let path = "conformance/ldbc-graphalytics/validation-graphs/bfs/dir-input";
    let Some(path) = data(path) else { return };
    let options = OpenOptions { format: Some(Format::Adjacency), ..OpenOptions::default() };
    let mut source = open(&path, &options).unwrap();
    let listed = source.vertices().unwrap().unwrap();
    assert!(!listed.contains(&10));
    assert!(edges(&path, &options).iter().any(|&(_, dst)| dst == 10));
}
