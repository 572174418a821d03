//! What stays in memory: exactly what was asked for, with its bytes reserved; and what batches want,
//! counted once a window.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;

use common::{Layout, adjacency, mix, plain_batch, value};
use tiergraph_cache::RankedSet;
use tiergraph_graph::{Direction, Graph};
use tiergraph_sampler::residency::offsets::Offsets;
use tiergraph_sampler::residency::page_map::PageMap;
use tiergraph_sampler::{Fanout, Hotness, MiniBatch, Residency, RowStore, Topology};

const PAGE: usize = 4096;
const VERTICES: u64 = 60_000;

fn used(graph: &Graph) -> u64 {
    graph.memory().budget().used()
}

#[test]
fn neighbours_that_stay_in_memory_are_reserved_and_are_those_that_were_asked_for() {
    let sample = Layout { dim: 0, ..Layout::mixed(true) }.build();
    let graph = sample.open();
    let before = used(&graph);
    let open = |keep: &Residency| Topology::open(&graph, Direction::In, keep).unwrap();
    let nothing = open(&Residency::Nothing);
    let (pages, arcs) = (nothing.map().pages(), nothing.offsets().total());
    let (lists, firsts) = adjacency(&graph, Direction::In);
    assert_eq!(arcs, lists.iter().map(|list| list.len() as u64).sum::<u64>());
    assert!((0..3000).all(|v| nothing.offsets().arcs(v).start == firsts[v as usize]));
    let least = Offsets::bytes_of(3000, arcs) + PageMap::bytes_of(pages, 3000);
    assert_eq!(used(&graph) - before, least);
    assert!(!nothing.is_resident() && nothing.decoded().is_none());
    assert!((0..pages).all(|page| nothing.resident_page(page).is_none()));
    drop(nothing);
    assert_eq!(used(&graph), before);

    let some: Vec<u64> = (0..pages).filter(|page| page % 3 == 1).collect();
    let paged = open(&Residency::Pages(some.clone()));
    let kept: Vec<u64> = (0..pages).filter(|&page| paged.resident_page(page).is_some()).collect();
    assert_eq!(kept, some);
    let bytes = RankedSet::bytes_below(pages) + (some.len() * PAGE) as u64;
    assert_eq!(used(&graph) - before, least + bytes);
    for page in 0..pages {
        if let Some(bytes) = paged.resident_page(page) {
            paged.check(page, bytes).unwrap();
            assert!(page == 0 || paged.check(page - 1, bytes).is_err(), "another page's bytes");
        }
    }
    assert!(!paged.is_resident() && open(&Residency::Pages((0..pages).collect())).is_resident());
    drop(paged);

    let decoded = open(&Residency::Decoded);
    assert!(decoded.is_resident() && decoded.resident_page(0).is_none());
    assert_eq!(decoded.decoded().unwrap(), lists.concat());
    assert_eq!(used(&graph) - before, least + arcs * 4);
}

#[test]
fn the_rows_that_stay_in_memory_are_reserved_and_are_those_that_were_asked_for() {
    let sample = Layout { dim: 20, ..Layout::mixed(false) }.build();
    let graph = sample.open();
    let features = graph.features().get("x").unwrap();
    let before = used(&graph);
    // A row as it is stored, of the vertex that the user's is.
    let positions = graph.order().positions().unwrap().unwrap();
    let row = |vertex: u32| -> Vec<u8> {
        let user = positions[vertex as usize].into();
        (0..20).flat_map(|column| value(user, column).to_le_bytes()).collect()
    };
    let wanted = [2999, 5, 0, 5, 1700];
    let store = RowStore::load(&graph, features, wanted).unwrap();
    assert_eq!((store.len(), store.is_empty(), store.row_bytes()), (4, false, 80));
    assert_eq!(used(&graph) - before, RowStore::bytes_of(4, 3000, 80));
    let kept: Vec<u32> = (0..3100).filter(|&vertex| store.contains(vertex)).collect();
    assert_eq!(kept, [0, 5, 1700, 2999]);
    for vertex in 0..3100 {
        let expected = wanted.contains(&vertex).then(|| row(vertex));
        assert_eq!(store.get(vertex).map(<[u8]>::to_vec), expected, "vertex {vertex}");
    }
    assert_eq!(store.bytes(), kept.iter().flat_map(|&vertex| row(vertex)).collect::<Vec<u8>>());
    drop(store);
    let none = RowStore::load(&graph, features, []).unwrap();
    assert_eq!((none.len(), none.is_empty(), none.bytes()), (0, true, &[][..]));
    assert_eq!(used(&graph) - before, RowStore::bytes_of(0, 3000, 80));
}

#[test]
fn a_page_or_row_is_counted_once_for_each_window_that_wants_it() {
    let mut edges: Vec<(u64, u64)> = (0..20_000).map(|i| (mix(i) % VERTICES, 7)).collect();
    edges.extend((0..20_000).map(|i| (mix(i) % 2000, mix(i + (1 << 40)) % 3000)));
    let sample = Layout { vertices: VERTICES, edges, dim: 0, ..Layout::mixed(true) }.build();
    let graph = sample.open();
    let topology = Topology::open(&graph, Direction::In, &Residency::Nothing).unwrap();
    let lists = adjacency(&graph, Direction::In);
    let fanouts = [Fanout::Most(5), Fanout::Most(3)];
    // The last seed has neighbours on several pages.
    let hub = (0..VERTICES as u32).max_by_key(|&vertex| lists.0[vertex as usize].len()).unwrap();
    assert!(topology.map().goes_on(hub, topology.map().page(hub, 0)));
    let batch = |number: u32| {
        let seeds: Vec<u32> = (1..20).map(|i| number * 20 + i).chain([hub]).collect();
        plain_batch(&lists, &fanouts, false, (1, 0, number), &seeds)
    };
    let windows: Vec<Vec<MiniBatch>> =
        (0..6).map(|w| (0..3).map(|b| batch(w * 3 + b)).collect()).collect();
    let mut hotness = Hotness::of_one(&topology);
    let (mut rows, mut pages) =
        (vec![0; VERTICES as usize], vec![0; topology.map().pages() as usize]);
    for window in &windows {
        hotness.record(std::slice::from_ref(&topology), window);
        let nodes: BTreeSet<u32> =
            window.iter().flat_map(|batch| batch.nodes[0].n_id.iter().copied()).collect();
        nodes.iter().for_each(|&node| rows[node as usize] += 1);
        let mut wanted = BTreeSet::new();
        for batch in window {
            for (&col, &arc) in batch.edges[0].col.iter().zip(&batch.edges[0].e_id) {
                let vertex = batch.nodes[0].n_id[col as usize];
                let ordinal = (arc - topology.offsets().arcs(vertex).start) as u32;
                wanted.insert(topology.map().page(vertex, ordinal));
            }
        }
        wanted.iter().for_each(|&page| pages[page as usize] += 1);
    }
    assert_eq!(hotness.rows[0].uses, rows);
    assert_eq!(hotness.pages[0].uses, pages);
    assert!(pages.iter().chain(&rows).any(|&uses| (2..6).contains(&uses)) && rows.contains(&0));
    let bytes = Hotness::bytes_of(pages.len() as u64, VERTICES);
    // Two counts an item, and each vertex's class.
    let counts = 2 * (size_of_val(&pages[..]) + size_of_val(&rows[..]));
    assert_eq!(bytes, counts as u64 + VERTICES);
}
