//! Sampled batches are those of the definition, whatever is in memory.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Layout, Sample, adjacency, mix, plain_batch, small};
use proptest::prelude::*;
use std::slice::from_ref;
use tiergraph_core::ErrorKind;
use tiergraph_graph::{Direction, Graph, OpenOptions, PageReader};
use tiergraph_sampler::{
    EpochKey, Fanout, MiniBatch, Purpose, Residency, SampleOptions, SampledTypes, Sampler, Seeds,
    TableKind, Topology, WindowSource,
};

const TABLES: [TableKind; 2] = [TableKind::Dense, TableKind::Hashed];

/// Everything, half of the pages, and nothing in memory.
fn keeps(graph: &Graph, direction: Direction) -> Vec<Residency> {
    let pages = graph.rows(direction).pages().unwrap().index.len() as u64;
    vec![
        Residency::Decoded,
        Residency::Pages((0..pages).collect()),
        Residency::Pages((0..pages).filter(|&page| mix(page).is_multiple_of(2)).collect()),
        Residency::Nothing,
    ]
}

/// Samples `batches` by every way there is and compares with the definition.
fn check(sample: &Sample, options: &SampleOptions, direction: Direction, batches: &[Vec<u32>]) {
    let graph = sample.open();
    let adjacency = adjacency(&graph, direction);
    let (seed, epoch) = (77, 5);
    let expected: Vec<MiniBatch> = batches
        .iter()
        .zip(3..)
        .map(|(seeds, number)| {
            let name = (seed, epoch, number);
            plain_batch(&adjacency, &options.fanouts, options.disjoint, name, seeds)
        })
        .collect();
    let key = EpochKey::new(seed, epoch, Purpose::Sample);
    for keep in keeps(&graph, direction) {
        let topology = Topology::open(&graph, direction, &keep).unwrap();
        for table in TABLES {
            let mut sampler =
                Sampler::new(SampledTypes::of_one(graph.vertices(), options), Some(table)).unwrap();
            let mut reader = PageReader::new(&graph).unwrap();
            for retain_bytes in [0, 8 << 10, 1 << 20] {
                let seeds: Vec<Seeds<'_>> = batches
                    .iter()
                    .zip(3..)
                    .map(|(vertices, number)| Seeds { number, vertices, times: &[] })
                    .collect();
                let mut found = vec![MiniBatch::default(); batches.len()];
                let topologies = std::slice::from_ref(&topology);
                let source = WindowSource { topologies, keys: &[key], retain_bytes };
                let reads = sampler.sample_window(source, &mut reader, &seeds, &mut found).unwrap();
                assert_eq!(found, expected, "{keep:?} {table:?} {options:?}");
                assert_eq!(reads.read.bytes, reads.read.pages * 4096);
                let again = reads.read.pages - reads.distinct_pages;
                assert!(again == 0 || retain_bytes < 1 << 20, "{again} pages came again");
            }
        }
    }
}

fn of(number: u32, vertices: &[u32]) -> Seeds<'_> {
    Seeds { number, vertices, times: &[] }
}

fn most(fanouts: &[u32]) -> Vec<Fanout> {
    fanouts.iter().map(|&k| Fanout::Most(k)).collect()
}

#[test]
fn batches_are_those_of_the_definition() {
    for directed in [true, false] {
        for stripes in [0, 3] {
            let sample = Layout { stripes, dim: 0, ..Layout::mixed(directed) }.build();
            let graph = sample.open();
            let hub = graph.ids().find(&[7]).unwrap()[0];
            let batches: Vec<Vec<u32>> = vec![
                (0..40).map(|i| (i * 73) % 3000).collect(),
                vec![hub, 2999, 1, 0],
                vec![2999],
                vec![],
            ];
            for fanouts in [most(&[25, 10]), most(&[3, 0, 2]), vec![Fanout::Most(400)], vec![]] {
                for disjoint in [false, true] {
                    let options = SampleOptions {
                        fanouts: fanouts.clone(),
                        disjoint,
                        ..SampleOptions::default()
                    };
                    check(&sample, &options, Direction::In, &batches);
                    check(&sample, &options, Direction::Out, &batches[..2]);
                }
            }
            let all = SampleOptions { fanouts: vec![Fanout::All; 2], ..SampleOptions::default() };
            check(&sample, &all, Direction::In, &batches);
        }
    }
}

#[test]
fn small_graphs_of_every_shape() {
    let shapes: [(u64, Vec<(u64, u64)>); 5] = [
        (1, vec![]),
        (1, vec![(0, 0)]),
        (3, vec![(0, 1)]),
        (70, (1..70).map(|v| (v, 0)).collect()),
        (20_000, (1..20_000).map(|v| (v, 0)).collect()),
    ];
    for (vertices, edges) in shapes {
        let layout = Layout { vertices, edges, dim: 0, ..Layout::mixed(true) };
        let sample = layout.build();
        for fanouts in [vec![Fanout::All, Fanout::Most(2)], most(&[5, 5])] {
            let options = SampleOptions { fanouts, ..SampleOptions::default() };
            let seeds = (0..vertices.min(10) as u32).collect();
            check(&sample, &options, Direction::In, &[seeds]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn random_graphs(
        edges in prop::collection::vec((0u64..60, 0u64..60), 0..600),
        seeds in prop::collection::vec(0u32..60, 0..20),
        fanouts in prop::collection::vec(0u32..8, 0..4),
        (directed, disjoint) in (any::<bool>(), any::<bool>()),
    ) {
        let layout = Layout { vertices: 60, edges, dim: 0, ..Layout::mixed(directed) };
        // Seeds may repeat: each keeps its place, and the same neighbours.
        let options = SampleOptions { fanouts: most(&fanouts), disjoint, ..SampleOptions::default() };
        check(&layout.build(), &options, Direction::In, &[seeds]);
    }
}

#[test]
fn a_batch_keeps_pygs_contract() {
    let sample = Layout { dim: 0, ..Layout::mixed(true) }.build();
    let graph = sample.open();
    let topology = Topology::open(&graph, Direction::In, &Residency::Decoded).unwrap();
    let options = SampleOptions { fanouts: most(&[10, 5]), ..SampleOptions::default() };
    let mut sampler = Sampler::new(SampledTypes::of_one(graph.vertices(), &options), None).unwrap();
    let key = EpochKey::new(1, 1, Purpose::Sample);
    let seeds: Vec<u32> = (0..200).map(|i| i * 13).collect();
    let mut batch = MiniBatch::default();
    sampler.sample(from_ref(&topology), &[key], of(0, &seeds), &mut batch).unwrap();
    let nodes = batch.nodes[0].n_id.len();
    assert_eq!(batch.nodes[0].n_id[..200], seeds, "seeds first");
    assert_eq!(batch.batch_size(), 200);
    assert_eq!(batch.nodes[0].num_sampled.iter().sum::<usize>(), nodes);
    assert_eq!(batch.edges[0].num_sampled.iter().sum::<usize>(), batch.edges[0].e_id.len());
    assert!(
        batch.edges[0].row.iter().chain(&batch.edges[0].col).all(|&node| (node as usize) < nodes)
    );
    let different: std::collections::HashSet<_> = batch.nodes[0].n_id.iter().collect();
    assert_eq!(different.len(), nodes, "every vertex once");
    let (lists, firsts) = adjacency(&graph, Direction::In);
    for ((&row, &col), &arc) in
        batch.edges[0].row.iter().zip(&batch.edges[0].col).zip(&batch.edges[0].e_id)
    {
        let (source, target) =
            (batch.nodes[0].n_id[row as usize], batch.nodes[0].n_id[col as usize] as usize);
        assert_eq!(lists[target][(arc - firsts[target]) as usize], source, "an edge of the graph");
    }
}

/// Each in-neighbour of the hub, over many batches.
#[test]
fn every_neighbour_is_equally_likely() {
    let edges = (1..=50).map(|v| (v, 0)).collect();
    let sample = Layout { vertices: 51, edges, dim: 0, ..Layout::mixed(true) }.build();
    let graph = sample.open();
    let hub = graph.ids().find(&[0]).unwrap()[0];
    let topology = Topology::open(&graph, Direction::In, &Residency::Decoded).unwrap();
    let options = SampleOptions { fanouts: most(&[10]), ..SampleOptions::default() };
    let mut sampler = Sampler::new(SampledTypes::of_one(graph.vertices(), &options), None).unwrap();
    let (mut counts, mut batch) = (vec![0u32; 51], MiniBatch::default());
    for number in 0..10_000 {
        let key = EpochKey::new(4, u64::from(number % 7), Purpose::Sample);
        sampler.sample(from_ref(&topology), &[key], of(number, &[hub]), &mut batch).unwrap();
        assert_eq!(batch.nodes[0].n_id.len(), 11, "without replacement");
        batch.nodes[0].n_id[1..].iter().for_each(|&v| counts[v as usize] += 1);
    }
    counts.remove(hub as usize);
    let square = |&c: &u32| (f64::from(c) - 2000.0).powi(2) / 2000.0;
    // 85.4 is the 0.999 quantile of 49 degrees of freedom; without replacement it is less likely.
    assert!(counts.iter().map(square).sum::<f64>() < 85.4, "{counts:?}");
}

#[test]
fn what_cannot_be_sampled_is_said() {
    let sample = Layout { dim: 0, ..Layout::mixed(true) }.build();
    let graph = sample.open();
    let options = SampleOptions { fanouts: most(&[2]), ..SampleOptions::default() };
    let key = EpochKey::new(1, 1, Purpose::Sample);
    let mut sampler = Sampler::new(SampledTypes::of_one(graph.vertices(), &options), None).unwrap();
    let mut batch = MiniBatch::default();
    let topology = Topology::open(&graph, Direction::In, &Residency::Decoded).unwrap();
    let error =
        sampler.sample(from_ref(&topology), &[key], of(0, &[3000]), &mut batch).unwrap_err();
    assert_eq!(error.to_string(), "cannot sample from seed `3000`: expected one of 3000 vertices");
    let nothing = Topology::open(&graph, Direction::In, &Residency::Nothing).unwrap();
    let error = sampler.sample(from_ref(&nothing), &[key], of(0, &[0]), &mut batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let large = SampleOptions { fanouts: most(&[u32::MAX]), ..SampleOptions::default() };
    let error = Sampler::new(SampledTypes::of_one(10, &large), None).unwrap_err();
    assert!(error.to_string().contains("at most 33554432 neighbours"), "{error}");
    let full = sample.open_as(&OpenOptions { memory: Some(25 << 20), ..small() });
    let held = full.memory().reserve(full.memory().budget().left(), "everything").unwrap();
    let error = Topology::open(&full, Direction::In, &Residency::Decoded).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Budget);
    drop(held);
}
