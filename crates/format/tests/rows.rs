//! Codec `packed`, rows: every list and every k-th neighbour comes back from its pages.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use tiergraph_format::rows::{PAGE_BYTES, RowsIndex, RowsPage, RowsWriter, check_page};
use tiergraph_format::salt::Salt;
use tiergraph_format::sink::VecSink;

type Adjacency = BTreeMap<u64, Vec<u64>>;

struct Rows {
    bytes: Vec<u8>,
    index: RowsIndex,
}

impl Rows {
    fn write(graph: &Adjacency) -> Self {
        let mut writer = RowsWriter::new(VecSink::default(), 16_384);
        for (&vertex, neighbors) in graph {
            writer.push(vertex, neighbors).unwrap();
        }
        let (sink, index, arcs) = writer.finish().unwrap();
        assert_eq!(arcs, graph.values().map(|list| list.len() as u64).sum::<u64>());
        let index = RowsIndex::from_words(&index.to_words()).unwrap();
        let rows = Self { bytes: sink.blocks.concat(), index };
        assert_eq!(rows.bytes.len(), rows.index.len() * PAGE_BYTES);
        rows
    }

    fn page(&self, number: u64) -> RowsPage<'_> {
        let page = &self.bytes[number as usize * PAGE_BYTES..][..PAGE_BYTES];
        check_page(page, "out.rows", number, Salt::NONE).unwrap();
        RowsPage::parse(page).unwrap()
    }

    fn neighbors(&self, vertex: u64) -> Vec<u64> {
        let mut all = Vec::new();
        for page in self.index.pages_of(vertex) {
            let piece = self.page(page).piece(vertex).unwrap();
            assert!(piece.len == 0 || piece.first == all.len() as u64);
            self.page(page).neighbors(vertex, &mut all).unwrap();
        }
        all
    }

    /// The first `most` neighbours, by a walk that then stops.
    fn walked(&self, vertex: u64, most: usize) -> Vec<u64> {
        let mut all = Vec::new();
        for page in self.index.pages_of(vertex) {
            if all.len() == most {
                break;
            }
            let walk = |neighbor| {
                all.push(neighbor);
                all.len() < most
            };
            self.page(page).walk(vertex, walk).unwrap();
        }
        all
    }

    fn kth(&self, vertex: u64, k: u64) -> u64 {
        let page = self.index.page_of_kth(vertex, k).unwrap();
        self.page(page).kth(vertex, k).unwrap()
    }

    /// Reads everything in both ways and compares.
    fn check(&self, graph: &Adjacency) {
        let mut arcs = 0;
        for number in 0..self.index.len() as u64 {
            assert_eq!(self.page(number).first_arc(), arcs, "page {number}");
            for vertex in self.page(number).vertices() {
                arcs += self.page(number).piece(vertex).unwrap().len;
            }
        }
        let mut from = 0;
        for (&vertex, neighbors) in graph {
            let pages = self.index.pages_of(vertex);
            assert_eq!(self.index.pages_of_after(vertex, from), pages, "vertex {vertex}");
            from = pages.start;
            for page in pages.filter(|_| !neighbors.is_empty()) {
                assert!(self.index.vertices_on(page).contains(&vertex), "{vertex} on {page}");
            }
            assert_eq!(&self.neighbors(vertex), neighbors, "vertex {vertex}");
            for most in [1, 2, 16, 17, 33, neighbors.len().max(1)] {
                let expected = &neighbors[..most.min(neighbors.len())];
                assert_eq!(self.walked(vertex, most), expected, "{most} of vertex {vertex}");
            }
            let step = neighbors.len() / 300 + 1;
            for k in (0..neighbors.len()).step_by(step).chain(neighbors.len().checked_sub(1)) {
                assert_eq!(self.kth(vertex, k as u64), neighbors[k], "vertex {vertex}, k {k}");
            }
            if let Some(page) = self.index.page_of_kth(vertex, 0).filter(|_| !neighbors.is_empty())
            {
                assert_eq!(self.page(page).degree(vertex).unwrap(), neighbors.len() as u64);
            }
        }
    }
}

/// Ascending lists of every density, with repetitions and self-loops, some longer than a page.
fn graphs(ids: u64) -> impl Strategy<Value = Adjacency> {
    let list = (0..64u32, prop_oneof![9 => 0..100usize, 1 => 500..6000usize])
        .prop_flat_map(move |(narrow, n)| prop::collection::vec(0..=(ids >> narrow), n))
        .prop_map(|mut list| {
            list.sort_unstable();
            list
        });
    (0..64u32).prop_flat_map(move |narrow| {
        prop::collection::btree_map(0..(ids >> narrow).max(100), list.clone(), 0..60)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn graphs_round_trip(graph in graphs(u64::from(u32::MAX))) {
        Rows::write(&graph).check(&graph);
    }

    #[test]
    fn wide_ids_round_trip(graph in graphs(u64::MAX - 1)) {
        Rows::write(&graph).check(&graph);
    }

    #[test]
    fn garbage_never_panics(
        mut page in prop::collection::vec(any::<u8>(), PAGE_BYTES),
        vertices in 0..2100u16,
        vertex: u16,
        k: u64,
        cut in 0..PAGE_BYTES,
    ) {
        prop_assert!(RowsPage::parse(&page[..cut]).is_err());
        page[4] = b'R';
        page[6..8].copy_from_slice(&vertices.to_le_bytes());
        page[8..16].copy_from_slice(&0u64.to_le_bytes());
        read_all(&page, u64::from(vertex), k);
    }

    #[test]
    fn a_flipped_bit_in_a_list_never_panics(graph in graphs(1 << 30), at: usize, bit in 0..8u32) {
        let mut bytes = Rows::write(&graph).bytes;
        if !bytes.is_empty() {
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let number = at / PAGE_BYTES;
            let page = &bytes[number * PAGE_BYTES..][..PAGE_BYTES];
            prop_assert!(check_page(page, "out.rows", number as u64, Salt::NONE).is_err());
            read_all(page, 5, 3);
        }
    }

    #[test]
    fn a_garbage_index_never_panics(words in prop::collection::vec(any::<u64>(), 0..9), v: u64) {
        if let Ok(index) = RowsIndex::from_words(&words) {
            prop_assert!(index.pages_of(v).end <= index.len() as u64);
            prop_assert!(index.pages_of_after(v, 0) == index.pages_of(v));
            prop_assert!(index.pages_of_after(v, v).end <= v.max(index.len() as u64));
            prop_assert!(index.vertices_on(v).start <= index.vertices_on(v).end);
            prop_assert!(index.page_of_kth(v, v).is_none_or(|page| page < index.len() as u64));
        }
    }
}

fn read_all(page: &[u8], vertex: u64, k: u64) {
    let Ok(page) = RowsPage::parse(page) else { return };
    let mut out = Vec::new();
    for vertex in page.vertices().take(2100).chain([vertex]) {
        let before = out.len();
        if page.neighbors(vertex, &mut out).is_err() {
            assert_eq!(out.len(), before, "an error leaves nothing behind");
        }
        let mut walked = Vec::new();
        let walk = page.walk(vertex, |neighbor| {
            walked.push(neighbor);
            true
        });
        assert!(walk.is_err() || walked == out[before..], "a walk sees what is read");
        let _ = (page.kth(vertex, k), page.kth(vertex, k % 70), page.piece(vertex));
    }
}

#[test]
fn small_graphs_and_hubs() {
    for graph in [
        Adjacency::new(),
        Adjacency::from([(0, vec![])]),
        Adjacency::from([(0, vec![0])]),
        Adjacency::from([(7, vec![7, 7, 7])]),
        Adjacency::from([(0, (0..150_000).collect()), (1, vec![0])]),
        Adjacency::from([(3, vec![9; 120_000]), (4, (0..130_000).map(|i| i * i).collect())]),
        (0..3000).map(|vertex| (vertex * 1000, vec![vertex])).collect(),
        (0..50).map(|vertex| (vertex, (0..2000).map(|i| i * 9 + vertex).collect())).collect(),
    ] {
        Rows::write(&graph).check(&graph);
    }
}

#[test]
fn a_list_shorter_than_a_page_lies_on_one() {
    let graph: Adjacency =
        (0..400).map(|v| (v, (0..5 + v * 4).map(|i| i * 1000).collect())).collect();
    let rows = Rows::write(&graph);
    for vertex in graph.keys() {
        let holding = |page: &u64| rows.page(*page).piece(*vertex).unwrap().len > 0;
        assert_eq!(rows.index.pages_of(*vertex).filter(holding).count(), 1, "vertex {vertex}");
    }
}

#[test]
fn what_cannot_be_written_or_read_is_refused() {
    let mut writer = RowsWriter::new(VecSink::default(), 4096);
    writer.push(3, &[1, 2]).unwrap();
    assert_eq!(
        writer.push(4, &[2, 1]).unwrap_err().to_string(),
        "cannot write the neighbours of vertex `4`: expected ascending neighbours after 2, got 1"
    );
    let rows = Rows::write(&Adjacency::from([(3, vec![1, 2])]));
    assert_eq!(
        rows.page(0).kth(3, 2).unwrap_err().to_string(),
        "cannot take a neighbour of vertex `3`: expected one of 2 from 0, got 2"
    );
    let mut page = rows.bytes.clone();
    page[4095] = 1;
    let e = check_page(&page, "g.tg/out.rows", 0, Salt::NONE).unwrap_err().to_string();
    assert!(e.starts_with("cannot use page 0 (offset 0) of `g.tg/out.rows`: expected CRC-32C "));
    assert!(
        check_page(&rows.bytes, "g.tg/out.rows", 1, Salt::NONE).is_err(),
        "a page in a wrong place"
    );
}
