//! Codec `raw`: what is written is read back, in place, for every id width and weight.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use tiergraph_format::block;
use tiergraph_format::manifest::Weights;
use tiergraph_format::raw::{IdWidth, Ids, RawBlock, RawWriter, WeightSlice};
use tiergraph_format::salt::Salt;
use tiergraph_format::sink::VecSink;

type Adjacency = BTreeMap<u64, Vec<(u64, f64)>>;

fn write(graph: &Adjacency, ids: IdWidth, weights: Weights) -> Vec<Vec<u8>> {
    let mut writer = RawWriter::new(VecSink::default(), 4096, ids, weights);
    for (&vertex, arcs) in graph {
        let (targets, w): (Vec<u64>, Vec<f64>) = arcs.iter().copied().unzip();
        writer.push(vertex, &targets, (weights != Weights::None).then_some(&w)).unwrap();
    }
    writer.finish().unwrap().blocks
}

fn read(blocks: &[Vec<u8>]) -> Adjacency {
    let mut graph = Adjacency::new();
    let mut goes_on = false;
    for (number, bytes) in blocks.iter().enumerate() {
        block::check(bytes, "out.blocks", number as u64, Salt::NONE).unwrap();
        let words = aligned(bytes);
        let block = RawBlock::parse(bytemuck::cast_slice(&words)).unwrap();
        assert_eq!(block.began_earlier(), goes_on, "block {number}");
        goes_on = block.goes_on();
        let mut arcs = 0;
        for (vertex, neighbors) in block.iter() {
            assert_eq!(block.find(vertex), Some(neighbors));
            let ids: Vec<u64> = match neighbors.ids {
                Ids::U32(ids) => ids.iter().map(|&id| id.into()).collect(),
                Ids::U64(ids) => ids.to_vec(),
            };
            let weights = match neighbors.weights {
                WeightSlice::None => vec![0.0; ids.len()],
                WeightSlice::F32(w) => w.iter().map(|&w| w.into()).collect(),
                WeightSlice::F64(w) => w.to_vec(),
            };
            arcs += ids.len();
            graph.entry(vertex).or_default().extend(ids.into_iter().zip(weights));
        }
        assert_eq!(arcs, block.header().arcs as usize);
    }
    assert!(!goes_on);
    graph
}

fn aligned(bytes: &[u8]) -> Vec<u64> {
    let (words, rest) = bytes.as_chunks();
    assert!(rest.is_empty());
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Lists of any order with repetitions and self-loops, some longer than a block.
fn graphs(ids: u64) -> impl Strategy<Value = Adjacency> {
    let weight = (0..1000u32).prop_map(|w| f64::from(w) / 8.0);
    let list = prop_oneof![
        9 => prop::collection::vec((0..=ids, weight.clone()), 1..40),
        1 => prop::collection::vec((0..=ids, weight), 400..3000),
    ];
    prop::collection::btree_map(0..ids, list, 0..60)
}

fn unweighted(graph: &Adjacency) -> Adjacency {
    let bare = |arcs: &Vec<(u64, f64)>| arcs.iter().map(|arc| (arc.0, 0.0)).collect();
    graph.iter().map(|(vertex, arcs)| (*vertex, bare(arcs))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn narrow_ids_round_trip(graph in graphs(u64::from(u32::MAX))) {
        prop_assert_eq!(read(&write(&graph, IdWidth::Four, Weights::F32)), graph.clone());
        prop_assert_eq!(read(&write(&graph, IdWidth::Four, Weights::F64)), graph.clone());
        prop_assert_eq!(read(&write(&graph, IdWidth::Four, Weights::None)), unweighted(&graph));
    }

    #[test]
    fn wide_ids_round_trip(graph in graphs(u64::MAX - 1)) {
        prop_assert_eq!(read(&write(&graph, IdWidth::Eight, Weights::F64)), graph.clone());
        prop_assert_eq!(read(&write(&graph, IdWidth::Eight, Weights::None)), unweighted(&graph));
    }

    #[test]
    fn garbage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..4096), real: bool) {
        if real && bytes.len() >= 64 {
            // A header that is believed, so that the table and arrays are looked at.
            let header = block::Header {
                layout: block::Layout::Raw, flags: u16::from(bytes[6]),
                number: 0, first_vertex: u64::from(bytes[16]), arcs: u32::from(bytes[24]),
                payload_bytes: bytes.len() as u32 - 64, items: u32::from(bytes[32] % 8),
            };
            header.write(&mut bytes);
        }
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        let padded: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        padded[..bytes.len()].copy_from_slice(&bytes);
        if let Ok(block) = RawBlock::parse(&padded[..bytes.len()]) {
            prop_assert!(block.iter().count() == block.len());
        }
    }
}

#[test]
fn a_hub_spans_blocks() {
    let hub: Vec<(u64, f64)> = (0..120_000).map(|i| (i * 7 % 131_072, 1.0)).collect();
    let graph = Adjacency::from([(0, vec![(0, 2.0)]), (5, hub), (6, vec![(5, 0.5)])]);
    let blocks = write(&graph, IdWidth::Four, Weights::F32);
    assert!(blocks.len() > 200, "{} blocks", blocks.len());
    assert_eq!(read(&blocks), graph);
}

#[test]
fn no_arcs_make_no_block() {
    let graph = Adjacency::from([(0, vec![])]);
    assert!(write(&graph, IdWidth::Four, Weights::None).is_empty());
}

#[test]
fn what_cannot_be_written_is_refused() {
    let mut writer = RawWriter::new(VecSink::default(), 4096, IdWidth::Four, Weights::F32);
    writer.push(3, &[1], Some(&[1.0])).unwrap();
    let message = |result: tiergraph_core::Result<()>| result.unwrap_err().to_string();
    assert_eq!(
        message(writer.push(3, &[1], Some(&[1.0]))),
        "cannot write the neighbours of vertex `3`: expected a vertex from 4, got 3"
    );
    assert_eq!(
        message(writer.push(4, &[1, 2], Some(&[1.0]))),
        "cannot write the neighbours of vertex `4`: expected 2 weights, got 1"
    );
    assert_eq!(
        message(writer.push(4, &[1 << 32], Some(&[1.0]))),
        "cannot write the neighbours of vertex `4`: expected ids of 4 bytes, got 4294967296"
    );
}

#[test]
fn an_unaligned_block_is_refused() {
    let graph = Adjacency::from([(0, vec![(1, 0.0)])]);
    let block = &write(&graph, IdWidth::Four, Weights::None)[0];
    let mut words = vec![0u64; 4096 / 8 + 1];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    bytes[1..4097].copy_from_slice(block);
    let e = RawBlock::parse(&bytes[1..4097]).unwrap_err();
    assert_eq!(e.to_string(), "cannot read raw block `0`: expected a block at an 8-byte boundary");
}
