//! Graphs of GAP's benchmark suite are read, and what is not one is refused.
#![allow(clippy::unwrap_used)]

mod common;

use common::{drain, file, message};
use tiergraph_ingest::source::{OpenOptions, Weights, open};

/// The arcs of each vertex, with weights.
type Lists<'a> = &'a [&'a [(i32, i32)]];

fn serialized(directed: bool, lists: Lists<'_>, weighted: bool) -> Vec<u8> {
    let arcs: usize = lists.iter().map(|list| list.len()).sum();
    let mut bytes = vec![u8::from(directed)];
    bytes.extend((arcs as u64).to_le_bytes());
    bytes.extend((lists.len() as u64).to_le_bytes());
    let mut one = Vec::new();
    let mut end = 0u64;
    one.extend(end.to_le_bytes());
    for list in lists {
        end += list.len() as u64;
        one.extend(end.to_le_bytes());
    }
    for &(target, weight) in lists.iter().copied().flatten() {
        one.extend(target.to_le_bytes());
        if weighted {
            one.extend(weight.to_le_bytes());
        }
    }
    bytes.extend(&one);
    if directed {
        bytes.extend(&one);
    }
    bytes
}

const BOTH_WAYS: Lists<'static> = &[&[(1, 5), (3, 7)], &[(0, 5)], &[], &[(0, 7)], &[]];
const ONE_WAY: Lists<'static> = &[&[], &[(0, 2), (0, 3)], &[(1, 1)]];

#[test]
fn graphs_are_read_with_their_vertices_weights_and_directions() {
    let dir = tempfile::tempdir().unwrap();
    for (name, directed, lists, edges, weights) in [
        ("u.wsg", false, BOTH_WAYS, vec![(0, 1), (0, 3)], vec![5.0, 7.0]),
        ("u.sg", false, BOTH_WAYS, vec![(0, 1), (0, 3)], vec![]),
        ("d.wsg", true, ONE_WAY, vec![(1, 0), (1, 0), (2, 1)], vec![2.0, 3.0, 1.0]),
        ("d.sg", true, ONE_WAY, vec![(1, 0), (1, 0), (2, 1)], vec![]),
        ("none.sg", true, &[&[], &[]], vec![], vec![]),
    ] {
        let path = file(&dir, name, serialized(directed, lists, name.ends_with(".wsg")));
        let mut source = open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(source.directed(), Some(directed), "{name}");
        assert_eq!(source.size_hint().vertices, Some(lists.len() as u64), "{name}");
        for _ in 0..2 {
            let found = drain(source.as_mut()).unwrap();
            assert_eq!(found, (edges.clone(), weights.clone()), "{name}");
            source.restart().unwrap();
        }
    }
    let options = OpenOptions { weights: Weights::Ignore, ..OpenOptions::default() };
    assert!(!open(&dir.path().join("u.wsg"), &options).unwrap().weighted());
}

#[test]
fn a_graph_of_many_chunks_is_read_whole() {
    let dir = tempfile::tempdir().unwrap();
    let lists: Vec<Vec<(i32, i32)>> = (0..200_000)
        .map(|v: i32| (0..v % 5).map(|i| ((v * 7 + i) % 200_000, i)).collect())
        .collect();
    let slices: Vec<&[(i32, i32)]> = lists.iter().map(Vec::as_slice).collect();
    let path = file(&dir, "large.wsg", serialized(true, &slices, true));
    let (edges, weights) = drain(open(&path, &OpenOptions::default()).unwrap().as_mut()).unwrap();
    let expected = lists
        .iter()
        .zip(0u64..)
        .flat_map(|(list, v)| list.iter().map(move |&(target, weight)| (v, target, weight)));
    assert_eq!(edges.len(), expected.clone().count());
    for ((edge, weight), (v, target, expected)) in edges.iter().zip(weights).zip(expected) {
        assert_eq!((*edge, weight), ((v, target as u64), f64::from(expected)));
    }
}

#[test]
fn files_that_are_no_such_graph_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let said =
        |name: &str, bytes: &[u8]| message(&file(&dir, name, bytes), &OpenOptions::default());
    let sound = serialized(false, BOTH_WAYS, false);
    assert_eq!(
        said("a.sg", &sound[..9]),
        "cannot read `a.sg`: expected a header of 17 bytes, got 9 bytes"
    );
    assert_eq!(
        said("a.sg", &sound[..sound.len() - 1]),
        "cannot read `a.sg`: expected a .sg file of 5 vertices and 4 arcs, got 80 bytes\n\n\
         hint: `.sg` is without weights, `.wsg` with"
    );
    assert!(said("a.wsg", &sound).contains("expected a .wsg file of 5 vertices and 4 arcs"));
    let with = |at: usize, byte: u8| {
        let mut bytes = sound.clone();
        bytes[at] = byte;
        bytes
    };
    assert!(said("a.sg", &with(0, 7)).contains("expected a first byte of 0 or 1, got 7"));
    assert!(said("a.sg", &with(17, 1)).contains("expected the first place to be 0, got 1"));
    assert!(
        said("a.sg", &with(25, 9))
            .contains("read the arcs of vertex 0 of `a.sg`: expected an end from 0 to 4")
    );
    assert!(
        said("a.sg", &with(65, 200))
            .contains("read arc 0 of `a.sg`: expected a vertex below 5, got 200")
    );
    assert!(said("a.sg", &with(69, 2)).contains("expected every edge from both ends"));
    let mut negative = serialized(true, ONE_WAY, true);
    let at = 17 + 4 * 8 + 4;
    negative[at..at + 4].copy_from_slice(&(-1i32).to_le_bytes());
    assert!(said("a.wsg", &negative).contains("expected a weight of 0 or more, got -1"));
    // Offsets that end before all arcs.
    assert!(said("a.sg", &with(57, 3)).contains("`a.sg`: expected"));
}
