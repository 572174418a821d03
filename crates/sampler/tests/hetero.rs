//! Batches of several types are the same whatever is in memory, type by type.
//!
//! `python/tests/test_hetero_loader.py` compares them with a twin written from the definition.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{mix, small};
use tempfile::TempDir;
use tiergraph_core::{Cancel, ErrorKind, Silent};
use tiergraph_format::directory::Existing;
use tiergraph_format::hetero::{EdgeType, HeteroBuilding, HeteroManifest, NodeType};
use tiergraph_graph::{Direction, HeteroGraph, OpenOptions};
use tiergraph_ingest::build::{BuildOptions, OrderChoice, Purpose, build};
use tiergraph_ingest::source::memory::{ArraySource, MemorySpec};
use tiergraph_ingest::{EdgeBatch, Endpoints, SizeHint};
use tiergraph_sampler::{
    Fanout, Loader, LoaderOptions, MiniBatch, Plan, Residency, Residents, SampleOptions,
};

/// Users, items and shops; who bought what, what is like what, and what shops have.
const NODES: [(&str, u64); 3] = [("user", 700), ("item", 900), ("shop", 3)];
const EDGES: [(usize, usize, u64); 4] = [(0, 1, 3000), (1, 1, 4000), (1, 0, 2500), (1, 2, 100_000)];

/// Edge `i` of a type. Shops have far more items than a page has room for.
fn edge(of: usize, i: u64) -> (u64, u64) {
    let (source, destination, _) = EDGES[of];
    let word = mix((of as u64) << 32 | i);
    (word % NODES[source].1, (word >> 32) % NODES[destination].1)
}

fn build_part(path: &Path, vertices: u64, edges: Vec<(u64, u64)>) {
    let (src, dst) = edges.into_iter().unzip();
    let batch = EdgeBatch { ends: Endpoints::U64 { src, dst }, weights: None };
    let size = SizeHint { vertices: Some(vertices), ..SizeHint::default() };
    let spec = MemorySpec { name: "a part".into(), size, ..MemorySpec::default() };
    let (purpose, order) = (Purpose::Sampling, OrderChoice::None);
    let options = BuildOptions { purpose, order, block_bytes: 8192, ..BuildOptions::default() };
    let mut source = ArraySource::new(spec, vec![batch]).unwrap();
    build(&mut source, path, &options, &Silent, &Cancel::default()).unwrap();
}

fn sample() -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let building = HeteroBuilding::begin(&folder.path().join("h.tg"), Existing::Refuse).unwrap();
    let node_types = NODES.iter().enumerate().map(|(number, &(name, vertices))| {
        let graph = format!("node-{number}.tg");
        build_part(&building.folder().join(&graph), vertices, Vec::new());
        NodeType { name: name.into(), vertices, graph }
    });
    let node_types = node_types.collect();
    let edge_types = EDGES.iter().enumerate().map(|(number, &(source, destination, edges))| {
        let graph = format!("edge-{number}.tg");
        let base = if source == destination { 0 } else { NODES[destination].1 };
        let all = base + NODES[source].1;
        let shifted = (0..edges).map(|i| edge(number, i)).map(|(s, d)| (s + base, d));
        build_part(&building.folder().join(&graph), all, shifted.collect());
        let name = |place: usize| NODES[place].0.to_owned();
        let (source, destination) = (name(source), name(destination));
        EdgeType { source, relation: format!("r{number}"), destination, edges, graph }
    });
    let manifest = HeteroManifest::new(node_types, edge_types.collect());
    let path = building.commit(&manifest).unwrap();
    (folder, path)
}

fn open(path: &Path) -> Arc<HeteroGraph> {
    let options = OpenOptions { memory: Some(256 << 20), ..small() };
    Arc::new(HeteroGraph::open(path, &options, &Cancel::default()).unwrap())
}

fn options(input: usize) -> LoaderOptions {
    let fanouts = vec![Fanout::Most(4), Fanout::All, Fanout::Most(2)];
    let sample = SampleOptions { fanouts, ..SampleOptions::default() };
    LoaderOptions {
        sample: vec![sample.clone(); EDGES.len()],
        features: vec![None; NODES.len()],
        inputs: vec![input],
        batch_size: 5,
        ..LoaderOptions::new(sample)
    }
}

fn batches(loader: &Loader, seeds: &[u32]) -> Vec<MiniBatch> {
    loader.epoch(1, seeds, 0).unwrap().map(|prepared| prepared.unwrap().batch).collect()
}

/// What every type keeps: `keep` tells by the type's number and its pages.
fn kept(graph: &HeteroGraph, keep: impl Fn(usize, u64) -> Residency) -> Residents {
    let pages = |edge_type: usize| {
        graph.edges()[edge_type].rows(Direction::In).pages().unwrap().index.len() as u64
    };
    let neighbors = (0..EDGES.len()).map(|edge_type| keep(edge_type, pages(edge_type)));
    Residents { neighbors: neighbors.collect(), rows: vec![Vec::new(); NODES.len()] }
}

#[test]
fn batches_are_the_same_whatever_each_type_keeps() {
    let (_folder, path) = sample();
    let graph = open(&path);
    assert!(graph.edges()[3].rows(Direction::In).pages().unwrap().index.len() > 3, "cut lists");
    let half = |pages: u64| (0..pages).filter(|&page| mix(page).is_multiple_of(2)).collect();
    for (input, &(_, count)) in NODES.iter().enumerate() {
        let seeds: Vec<u32> = (0..count.min(33) as u32).rev().collect();
        let new = |keep: Residents, retain_bytes| {
            let mut options = options(input);
            options.retain_bytes = retain_bytes;
            Loader::of_types(&*graph, options, keep).unwrap()
        };
        let expected = batches(&new(kept(&graph, |_, _| Residency::Decoded), 0), &seeds);
        assert!(expected.iter().all(|batch| batch.nodes.iter().all(|n| n.num_sampled.len() == 4)));
        let all = |_, pages| Residency::Pages((0..pages).collect());
        let mixed = |edge_type, pages| match edge_type {
            0 => Residency::Decoded,
            1 => Residency::Pages(half(pages)),
            2 => Residency::Pages((0..pages).collect()),
            _ => Residency::Nothing,
        };
        for retain_bytes in [0, 1 << 20] {
            for keep in [
                kept(&graph, all),
                kept(&graph, |_, pages| Residency::Pages(half(pages))),
                kept(&graph, |_, _| Residency::Nothing),
                kept(&graph, mixed),
            ] {
                assert_eq!(batches(&new(keep, retain_bytes), &seeds), expected);
            }
        }
    }
}

#[test]
fn edges_are_edges_of_their_type() {
    let (_folder, path) = sample();
    let (graph, seeds) = (open(&path), [3, 8, 100, 899]);
    let (loader, fitted) =
        Loader::planned(&*graph, &options(1), &seeds, &Plan::default(), 2).unwrap();
    assert!(fitted.decoded && fitted.kept_pages == fitted.pages);
    for batch in batches(&loader, &seeds) {
        for (of, &(source, destination, count)) in EDGES.iter().enumerate() {
            let all: std::collections::HashSet<_> = (0..count).map(|i| edge(of, i)).collect();
            let edges = &batch.edges[of];
            for (&row, &col) in edges.row.iter().zip(&edges.col) {
                let ends = (
                    batch.nodes[source].n_id[row as usize].into(),
                    batch.nodes[destination].n_id[col as usize].into(),
                );
                assert!(all.contains(&ends), "{ends:?} is no edge of type {of}");
            }
        }
        for (nodes, (name, count)) in batch.nodes.iter().zip(NODES) {
            let different: std::collections::HashSet<_> = nodes.n_id.iter().collect();
            assert_eq!(different.len(), nodes.n_id.len(), "{name} twice");
            assert!(nodes.n_id.iter().all(|&node| u64::from(node) < count));
        }
    }
}

#[test]
fn trees_of_several_types_share_no_node() {
    let (_folder, path) = sample();
    let (graph, seeds) = (open(&path), [3, 8, 100, 899, 8]);
    let mut options = options(1);
    options.sample.iter_mut().for_each(|sample| sample.disjoint = true);
    let new = |keep| {
        let residents = kept(&graph, |_, _| Residency::clone(&keep));
        Loader::of_types(&*graph, options.clone(), residents).unwrap()
    };
    let found = batches(&new(Residency::Nothing), &seeds);
    assert_eq!(found, batches(&new(Residency::Decoded), &seeds));
    for batch in found {
        for nodes in &batch.nodes {
            let pairs: std::collections::HashSet<_> = nodes.tree.iter().zip(&nodes.n_id).collect();
            assert_eq!(pairs.len(), nodes.n_id.len(), "a node twice in a tree");
        }
        for (edges, &(source, destination, _)) in batch.edges.iter().zip(&EDGES) {
            for (&row, &col) in edges.row.iter().zip(&edges.col) {
                let tree = batch.nodes[source].tree[row as usize];
                assert_eq!(tree, batch.nodes[destination].tree[col as usize]);
            }
        }
    }
    options.sample[2].disjoint = false;
    let residents = kept(&graph, |_, _| Residency::Nothing);
    assert!(Loader::of_types(&*graph, options, residents).is_err());
}

#[test]
fn seeds_of_several_types_are_numbered_through_them() {
    let (_folder, path) = sample();
    let graph = open(&path);
    let first = NODES[1].1 as u32;
    let mut options = options(0);
    options.inputs = vec![1, 0];
    options.shuffle = false;
    options.sample.iter_mut().for_each(|sample| sample.disjoint = true);
    let last = first + NODES[0].1 as u32 - 1;
    let seeds = [last, 0, first, first - 1, last];
    let new = |keep: Residency| {
        Loader::of_types(&*graph, options.clone(), kept(&graph, |_, _| keep.clone())).unwrap()
    };
    let found = batches(&new(Residency::Decoded), &seeds);
    assert_eq!(found, batches(&new(Residency::Nothing), &seeds));
    let [batch] = &found[..] else { panic!("{} batches", found.len()) };
    assert_eq!(batch.batch_size(), 5);
    assert_eq!(
        (&batch.nodes[0].n_id[..3], batch.nodes[0].num_sampled[0]),
        (&[last - first, 0, last - first][..], 3)
    );
    assert_eq!(
        (&batch.nodes[1].n_id[..2], batch.nodes[1].num_sampled[0]),
        (&[0, first - 1][..], 2)
    );
    assert_eq!(
        (&batch.nodes[0].tree[..3], &batch.nodes[1].tree[..2]),
        (&[0, 2, 4][..], &[1, 3][..])
    );
    let error = new(Residency::Nothing).epoch(0, &[last + 1], 0).unwrap_err();
    assert!(error.to_string().contains(&format!("expected one of {} ", last + 1)), "{error}");
    let planned = Loader::planned(&*graph, &options, &seeds, &Plan::default(), 2).unwrap();
    assert!(
        planned.1.most_nodes >= batch.node_count() && planned.1.most_edges >= batch.edge_count()
    );
    assert_eq!(batches(&planned.0, &seeds), found);
    options.inputs.clear();
    let none = Loader::of_types(&*graph, options, kept(&graph, |_, _| Residency::Nothing));
    assert_eq!(none.unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn what_makes_no_batches_is_said() {
    let (_folder, path) = sample();
    let graph = open(&path);
    let new = |options| Loader::of_types(&*graph, options, kept(&graph, |_, _| Residency::Nothing));
    let mut few = options(0);
    few.sample.pop();
    let mut uneven = options(0);
    uneven.sample[2].fanouts.pop();
    for bad in [few, uneven, options(3)] {
        assert_eq!(new(bad).unwrap_err().kind(), ErrorKind::Input);
    }
    let error = new(options(2)).unwrap().epoch(0, &[3], 0).unwrap_err();
    assert_eq!(error.to_string(), "cannot sample from seed `3`: expected one of 3 vertices");
}

#[test]
fn neighbours_of_another_type_are_damage() {
    let (_folder, path) = sample();
    // Users where shops were: as many vertices in all, but other neighbours.
    let types = HeteroManifest::read(&path).unwrap();
    let mut edge_types = types.edge_types.clone();
    edge_types[3].source = "shop".into();
    edge_types[3].destination = "item".into();
    std::fs::remove_file(path.join("hetero.json")).unwrap();
    let other = HeteroManifest::new(types.node_types, edge_types);
    let building = HeteroBuilding::begin(&path.with_file_name("o.tg"), Existing::Refuse).unwrap();
    for graph in other.graphs() {
        std::fs::rename(path.join(graph), building.folder().join(graph)).unwrap();
    }
    let graph = open(&building.commit(&other).unwrap());
    for keep in [Residency::Decoded, Residency::Nothing] {
        let kept = kept(&graph, |_, _| keep.clone());
        let error = match Loader::of_types(&*graph, options(1), kept) {
            Ok(loader) => loader.epoch(0, &[0, 1, 2], 0).unwrap().find_map(Result::err).unwrap(),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::Format, "{error}");
    }
}
