//! `hetero.json` says what a heterogeneous graph consists of, or is refused.

#![allow(clippy::unwrap_used)]

use std::fs;

use tempfile::TempDir;
use tiergraph_core::ErrorKind;
use tiergraph_format::directory::Existing;
use tiergraph_format::hetero::{EdgeType, HETERO, HeteroBuilding, HeteroManifest, NodeType};

fn node(name: &str, vertices: u64, graph: &str) -> NodeType {
    NodeType { name: name.into(), vertices, graph: graph.into() }
}

fn edge(source: &str, destination: &str) -> EdgeType {
    let (relation, graph) = ("r".into(), "e.tg".into());
    let (source, destination) = (source.into(), destination.into());
    EdgeType { source, relation, destination, edges: 1, graph }
}

#[test]
fn what_disagrees_with_itself_is_not_written() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("h.tg");
    let a = || node("a", 2, "a.tg");
    for (nodes, edges, what) in [
        (vec![], vec![], "no node type"),
        (vec![a(), a()], vec![], "two node types `a`"),
        (vec![a()], vec![edge("a", "a"), edge("a", "a")], "two edge types"),
        (vec![a()], vec![edge("a", "b")], "cannot find the node type `b`"),
        (vec![node("a", 1, "../a.tg")], vec![], "outside of the directory: `../a.tg`"),
        (vec![node("a", 1, "/a.tg")], vec![], "outside of the directory: `/a.tg`"),
        (vec![node("a", 1, "")], vec![], "outside of the directory: ``"),
        (vec![node("a", 1, "/")], vec![], "outside of the directory: `/`"),
        (vec![node("a", 1, "..")], vec![], "outside of the directory: `..`"),
        (vec![node("a", 1 << 31, "a"), node("b", 1 << 31, "b")], vec![edge("a", "b")], "2^32 - 1"),
    ] {
        let building = HeteroBuilding::begin(&path, Existing::Refuse).unwrap();
        let error = building.commit(&HeteroManifest::new(nodes, edges)).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }
}

#[test]
fn what_is_no_such_file_is_refused() {
    let folder = TempDir::new().unwrap();
    let error = HeteroManifest::read(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(!HeteroManifest::is_at(folder.path()));
    for (text, what) in [
        ("{\"format_version\": 3}", "got version 3"),
        ("{\"format_version\": 1}", "manifest_crc32c"),
        ("", "manifest_crc32c"),
    ] {
        fs::write(folder.path().join(HETERO), text).unwrap();
        let error = HeteroManifest::read(folder.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn a_part_that_is_missing_stops_the_commit() {
    let folder = TempDir::new().unwrap();
    let building = HeteroBuilding::begin(&folder.path().join("h.tg"), Existing::Refuse).unwrap();
    let manifest = HeteroManifest::new(vec![node("a", 2, "a.tg")], vec![]);
    assert_eq!(building.commit(&manifest).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let stranger = folder.path().join("thesis");
    fs::create_dir(&stranger).unwrap();
    let error = HeteroBuilding::begin(&stranger, Existing::Replace).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "no graph is replaced");
}
