//! Values of edges: every arc has its own edge's, and batches are sampled by them.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/values.rs"]
mod values;

use std::sync::Arc;

use common::{Layout, Sample, adjacency, draw, plain_batch_by, plain_choice, sample_key, small};
use proptest::prelude::*;
use tiergraph_core::{Cancel, ErrorKind, Result, Silent};
use tiergraph_format::directory::Existing;
use tiergraph_format::edges::ValueType;
use tiergraph_format::verify::verify;
use tiergraph_graph::{Direction, Graph, PageReader};
use tiergraph_ingest::edges::{Column, EdgeAddition, NewColumn};
use tiergraph_ingest::{EdgeBatch, Endpoints};
use tiergraph_sampler::{
    Columns, EpochKey, Fanout, Inputs, Loader, LoaderOptions, MiniBatch, Purpose, Rank, Residency,
    Resident, SampleOptions, SampledTypes, Sampler, Seeds, Strategy as Choice, Times, Topology,
    WindowSource,
};
use values::{DIM, add, announced, time, weight, with_values};

/// The user's id of each vertex.
fn user_ids(graph: &Graph) -> Vec<u64> {
    let users: Vec<u32> = (0..graph.vertices() as u32).collect();
    let vertices = graph.ids().find(&users.iter().map(|&u| u.into()).collect::<Vec<_>>()).unwrap();
    let mut ids = vec![0; users.len()];
    vertices.iter().zip(users).for_each(|(&vertex, user)| ids[vertex as usize] = user.into());
    ids
}

#[test]
fn every_arc_has_the_values_of_its_edge() {
    for directed in [true, false] {
        for (stripes, piece, memory) in [(0, 100_000, 64 << 20), (2, 999, 1500 << 10)] {
            let layout = Layout { stripes, dim: 0, ..Layout::mixed(directed) };
            let sample = layout.build();
            add(&sample, &layout.edges, piece, Existing::Refuse, memory).unwrap();
            let graph = sample.open();
            let ids = user_ids(&graph);
            for direction in [Direction::In, Direction::Out] {
                let (lists, _) = adjacency(&graph, direction);
                let numbers = graph.edge_values().numbers(direction).unwrap().unwrap();
                let weights = graph.edge_values().floats(direction, "w").unwrap();
                let times = graph.edge_values().integers(direction, "time").unwrap();
                let mut seen = vec![0; layout.edges.len()];
                let (mut arc, mut before) = (0, (0, 0, 0));
                for (row, list) in lists.iter().enumerate() {
                    for &column in list {
                        let edge = numbers.get(arc as u64);
                        let ends = (ids[row], ids[column as usize]);
                        let (source, target) = match direction {
                            Direction::Out => ends,
                            Direction::In => (ends.1, ends.0),
                        };
                        let given = layout.edges[edge as usize];
                        let turned = !directed && given == (target, source);
                        assert!(given == (source, target) || turned, "arc {arc}, edge {edge}");
                        assert_eq!((weights[arc], times[arc]), (weight(edge), time(edge)));
                        let now = (row as u32, column, edge);
                        assert!(arc == 0 || before < now, "equal arcs are in the edges' order");
                        seen[edge as usize] += 1;
                        (arc, before) = (arc + 1, now);
                    }
                }
                for (&(source, target), &count) in layout.edges.iter().zip(&seen) {
                    assert_eq!(count, if directed || source == target { 1 } else { 2 });
                }
            }
            assert_eq!(verify(&sample.path, &Silent, &Cancel::default()).unwrap().damage, []);
        }
    }
}

/// The positions that the definition takes of one vertex's arcs.
fn plain_pick(
    (n, first): (u64, u64),
    fanout: Fanout,
    columns: &Columns,
    until: Option<i64>,
    draw: impl Fn(u64) -> u64,
) -> Vec<u64> {
    let at = |position: u64| (first + position) as usize;
    let weight =
        |p: u64| columns.weights.as_ref().map_or(1.0, |c| f64::from(c.resident().unwrap()[at(p)]));
    let time = |p: u64| columns.times.as_ref().map_or(0, |c| c.resident().unwrap()[at(p)]);
    let mut candidates: Vec<u64> =
        (0..n).filter(|&p| weight(p) > 0.0 && until.is_none_or(|until| time(p) <= until)).collect();
    let k = match fanout {
        Fanout::All => candidates.len(),
        Fanout::Most(k) => candidates.len().min(k as usize),
    };
    if k == candidates.len() {
        return candidates;
    }
    if columns.times.is_some() && columns.strategy == Choice::Last {
        candidates.sort_by_key(|&p| std::cmp::Reverse((time(p), p)));
    } else if columns.weights.is_some() {
        let key = |p: u64| {
            let u = ((draw(p) >> 11) + 1) as f64 / 2f64.powi(53);
            -u.ln() / weight(p)
        };
        candidates.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
    } else {
        let chosen = plain_choice(candidates.len() as u64, fanout, draw);
        return chosen.into_iter().map(|i| candidates[i as usize]).collect();
    }
    candidates.truncate(k);
    candidates
}

fn times(strategy: Choice) -> Option<Times> {
    Some(Times { name: "time".into(), strategy })
}

/// Every way to sample by values.
fn ways(fanouts: &[Fanout]) -> Vec<SampleOptions> {
    let by = |weights: Option<&str>, times: Option<Times>, disjoint| SampleOptions {
        fanouts: fanouts.to_vec(),
        disjoint,
        weights: weights.map(str::to_owned),
        times,
        ..SampleOptions::default()
    };
    vec![
        by(Some("w"), None, false),
        by(Some("w"), None, true),
        by(None, times(Choice::Uniform), true),
        by(None, times(Choice::Last), true),
        by(Some("w"), times(Choice::Uniform), true),
    ]
}

/// Samples `seeds` by every way there is and compares with the definition.
fn check(sample: &Sample, options: &SampleOptions, direction: Direction, seeds: &[u32]) {
    let graph = sample.open();
    let adjacency = adjacency(&graph, direction);
    let columns = Columns::load(&graph, direction, options, Resident::ALL).unwrap();
    let until: Vec<i64> = match &options.times {
        Some(_) => seeds.iter().map(|&seed| time(u64::from(seed) * 3)).collect(),
        None => Vec::new(),
    };
    let (seed, epoch, number) = (5, 1, 9);
    let key = sample_key(seed, epoch);
    let pick = |hop: usize, tree: u32, vertex: u32| {
        let n = adjacency.0[vertex as usize].len() as u64;
        let draw = |i: u64| draw(key, hop as u32, vertex, number, tree, i as u32);
        let until = until.get(tree as usize).copied();
        let arcs = (n, adjacency.1[vertex as usize]);
        plain_pick(arcs, options.fanouts[hop], &columns, until, draw)
    };
    let hops = options.fanouts.len();
    let mut expected = plain_batch_by(&adjacency, hops, options.disjoint, number, seeds, pick);
    expected.seed_time.clone_from(&until);
    let of = Seeds { number, vertices: seeds, times: &until };
    let key = EpochKey::new(seed, epoch, Purpose::Sample);
    let pages = || Residency::Pages(vec![1, 3]);
    let kept = [Residency::Decoded, pages(), Residency::Nothing].map(|keep| (keep, Resident::ALL));
    let mixed = Resident { weights: false, ..Resident::ALL };
    let read = [
        (Residency::Decoded, Resident::NONE),
        (pages(), mixed),
        (Residency::Nothing, Resident::NONE),
    ];
    for (keep, resident) in kept.into_iter().chain(read) {
        let columns = Columns::load(&graph, direction, options, resident).unwrap();
        let topology = Topology::open(&graph, direction, &keep).unwrap().with_columns(columns);
        let mut sampler =
            Sampler::new(SampledTypes::of_one(graph.vertices(), options), None).unwrap();
        let mut reader = PageReader::new(&graph).unwrap();
        for retain_bytes in [0, 1 << 20] {
            let mut found = [MiniBatch::default()];
            let topologies = std::slice::from_ref(&topology);
            let source = WindowSource { topologies, keys: &[key], retain_bytes };
            sampler.sample_window(source, &mut reader, &[of], &mut found).unwrap();
            assert!(found[0] == expected, "{keep:?} {resident:?} {retain_bytes} {options:?}");
        }
    }
}

#[test]
fn batches_are_those_of_the_definition() {
    for directed in [true, false] {
        let sample = with_values(&Layout { dim: 0, ..Layout::mixed(directed) });
        let hub = sample.open().ids().find(&[7]).unwrap()[0];
        let mut seeds: Vec<u32> = (0..40).map(|i| (i * 73) % 3000).collect();
        seeds.extend([hub, hub, 2999]);
        for fanouts in [vec![Fanout::Most(10), Fanout::Most(5)], vec![Fanout::All]] {
            for options in ways(&fanouts) {
                check(&sample, &options, Direction::In, &seeds);
                check(&sample, &options, Direction::Out, &seeds[..10]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]
    /// Whatever is sampled by time: no edge is later than the seed that it was sampled for.
    #[test]
    fn the_future_never_leaks(
        edges in prop::collection::vec((0u64..40, 0u64..40), 1..400),
        seeds in prop::collection::vec(0u32..40, 1..20),
        fanouts in prop::collection::vec(1u32..6, 1..4),
        directed in any::<bool>(),
        keep_all in any::<bool>(),
    ) {
        let layout = Layout { vertices: 40, edges, dim: 0, ..Layout::mixed(directed) };
        let sample = with_values(&layout);
        let fanouts: Vec<Fanout> = fanouts.into_iter().map(Fanout::Most).collect();
        for options in ways(&fanouts).into_iter().filter(|options| options.times.is_some()) {
            let keep = if keep_all { Residency::Decoded } else { Residency::Nothing };
            let options = SampleOptions { features: Some("attr".into()), ..options };
            let options = LoaderOptions { batch_size: 7, ..LoaderOptions::new(options) };
            let loader = Loader::new(sample.open(), options, &keep, []).unwrap();
            let of_seeds: Vec<i64> = (0..seeds.len() as u64).map(time).collect();
            let inputs = Inputs { seeds: &seeds, times: Some(&of_seeds), rank: Rank::default(), bounds: None };
            for prepared in loader.epoch(3, inputs, 0).unwrap() {
                let prepared = prepared.unwrap();
                let batch = &prepared.batch;
                for (i, &place) in prepared.input_id.iter().enumerate() {
                    prop_assert_eq!(batch.seed_time[i], of_seeds[place as usize]);
                    prop_assert_eq!(batch.nodes[0].n_id[i], seeds[place as usize]);
                }
                let stored = prepared.edges[0].times.as_ref().unwrap();
                prop_assert_eq!(stored.len(), batch.edges[0].e_id.len());
                for ((&col, &number), &stored) in
                    batch.edges[0].col.iter().zip(prepared.edges[0].numbers.as_ref().unwrap()).zip(stored)
                {
                    let until = batch.seed_time[batch.nodes[0].tree[col as usize] as usize];
                    prop_assert!(time(number) <= until && stored == time(number));
                }
            }
        }
    }
}

#[test]
fn edges_come_with_their_features() {
    let layout = Layout::mixed(false);
    let sample = with_values(&layout);
    let fanouts = vec![Fanout::Most(5), Fanout::Most(3)];
    let features = Some("attr".into());
    let weights = Some("w".into());
    let sampled = SampleOptions { fanouts, weights, features, ..Default::default() };
    let graph = sample.open();
    let ids = user_ids(&graph);
    for features in [None, Some("x".to_owned())] {
        let options = LoaderOptions {
            features: vec![features],
            batch_size: 100,
            ..LoaderOptions::new(sampled.clone())
        };
        let seeds: Vec<u32> = (0..1000).collect();
        let loader = Loader::new(Arc::clone(&graph), options, &Residency::Nothing, []).unwrap();
        let mut epoch = loader.epoch(0, &seeds, 0).unwrap();
        let mut pages = 0;
        for prepared in epoch.by_ref() {
            let mut prepared = prepared.unwrap();
            let rows = prepared.take_edge_features(0).unwrap();
            let rows = rows.matrix.floats().unwrap();
            let batch = &prepared.batch;
            let weights = prepared.edges[0].weights.as_ref().unwrap();
            let numbers = prepared.edges[0].numbers.as_ref().unwrap();
            for (i, &edge) in numbers.iter().enumerate() {
                let first = edge as usize * DIM;
                let expected: Vec<f32> = (first..first + DIM).map(|i| i as f32).collect();
                assert_eq!(rows[i * DIM..][..DIM], expected);
                assert_eq!(weights[i], weight(edge));
                let ends = [batch.edges[0].row[i], batch.edges[0].col[i]]
                    .map(|node| ids[batch.nodes[0].n_id[node as usize] as usize]);
                let (source, target) = layout.edges[edge as usize];
                assert!(ends == [source, target] || ends == [target, source]);
            }
            pages += 1;
        }
        assert_eq!(pages, 10);
        let stats = epoch.stats();
        assert_eq!(stats.bytes_ssd, (stats.distinct_pages + stats.repeated_pages) * 4096);
    }
}

fn refused(result: Result<impl Sized>) -> String {
    let Err(error) = result else { panic!("it was taken") };
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    error.to_string()
}

#[test]
fn edges_that_are_not_the_graphs_are_refused() {
    let layout = Layout { dim: 0, ..Layout::mixed(true) };
    let sample = layout.build();
    let with = |edges: &[(u64, u64)]| refused(add(&sample, edges, 999, Existing::Refuse, 64 << 20));
    let text = with(&layout.edges[1..]);
    assert!(text.contains("hint: give all edges that the graph was built from"), "{text}");
    let text = with(&[layout.edges.clone(), vec![(5, 5)]].concat());
    assert!(text.contains("got more") && text.contains("removed duplicates"), "{text}");
    let text = with(&[(3000, 1)]);
    assert!(text.contains("of vertex `3000`: expected a vertex of the graph"), "{text}");
    let graph = sample.open();
    assert!(
        !graph.edge_values().has_numbers(Direction::In) && graph.edge_values().columns().is_empty()
    );
    add(&sample, &layout.edges, 999, Existing::Refuse, 64 << 20).unwrap();
    let text = with(&layout.edges);
    assert!(text.contains("`--overwrite` replaces it"), "{text}");
    // Another order of the edges: other numbers, and the old values are gone.
    let turned: Vec<(u64, u64)> = layout.edges.iter().rev().copied().collect();
    let mut addition =
        EdgeAddition::begin(&sample.path, vec![], Existing::Replace, Some(64 << 20)).unwrap();
    let ends = Endpoints::U64 {
        src: turned.iter().map(|e| e.0).collect(),
        dst: turned.iter().map(|e| e.1).collect(),
    };
    addition.push(&EdgeBatch { ends, weights: None }, &[]).unwrap();
    addition.finish(vec![], &Silent, &Cancel::default()).unwrap();
    let graph = sample.open();
    assert!(
        graph.edge_values().columns().is_empty() && graph.edge_values().features("attr").is_err()
    );
    assert!(!sample.path.join("edges/in.w.f32").exists());
    assert_eq!(verify(&sample.path, &Silent, &Cancel::default()).unwrap().damage, []);
}

#[test]
fn values_that_cannot_be_stored_or_used_are_refused() {
    let layout = Layout { dim: 0, ..Layout::mixed(true) };
    let sample = layout.build();
    let begin = || {
        EdgeAddition::begin(&sample.path, announced(), Existing::Refuse, Some(64 << 20)).unwrap()
    };
    let batch =
        || EdgeBatch { ends: Endpoints::U32 { src: vec![0, 1], dst: vec![1, 2] }, weights: None };
    let (good, late) = ([1.0, 2.0], [1, 2]);
    let text = refused(begin().push(&batch(), &[Column::F32(&good)]));
    assert!(text.contains("expected 2 columns, got 1"), "{text}");
    let text = refused(begin().push(&batch(), &[Column::F32(&good[..1]), Column::I64(&late)]));
    assert!(text.contains("`w`: expected f32 for each of 2 edges, got 1 of f32"), "{text}");
    let text = refused(begin().push(&batch(), &[Column::I64(&late), Column::I64(&late)]));
    assert!(text.contains("got 2 of i64"), "{text}");
    let bad = [1.0, f32::NAN];
    let text = refused(begin().push(&batch(), &[Column::F32(&bad), Column::I64(&late)]));
    assert!(text.contains("finite numbers, got NaN of edge 1"), "{text}");
    let path = sample.path.join("edges");
    let left = std::fs::read_dir(&path).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left behind");

    let graph = sample.open();
    let sampled = |weights: Option<&str>, times: Option<Times>, disjoint| SampleOptions {
        fanouts: vec![Fanout::Most(2)],
        disjoint,
        weights: weights.map(str::to_owned),
        times,
        ..SampleOptions::default()
    };
    let load = |graph: &Arc<Graph>, sample: SampleOptions, edge_features: Option<&str>| {
        let features = edge_features.map(str::to_owned);
        let options = LoaderOptions::new(SampleOptions { features, ..sample });
        Loader::new(Arc::clone(graph), options, &Residency::Nothing, [])
    };
    let text = refused(load(&graph, sampled(Some("w"), None, false), None));
    assert!(text.contains("cannot use the edges' f32 column `w`"), "{text}");
    let text = refused(load(&graph, sampled(None, None, false), Some("attr")));
    assert!(text.contains("cannot use the edges' features `attr`"), "{text}");
    add(&sample, &layout.edges, 999, Existing::Refuse, 64 << 20).unwrap();
    let graph = sample.open();
    let text = refused(load(&graph, sampled(Some("time"), None, false), None));
    assert!(text.contains("column `time`: expected one of w"), "{text}");
    let text = refused(load(&graph, sampled(None, times(Choice::Last), false), None));
    assert!(text.contains("expected disjoint batches"), "{text}");
    let text = refused(load(&graph, sampled(Some("w"), times(Choice::Last), true), None));
    assert!(text.contains("`uniform`, for weights"), "{text}");
    let timed = load(&graph, sampled(None, times(Choice::Last), true), None).unwrap();
    let text = refused(timed.epoch(0, &[1, 2], 0));
    assert!(text.contains("expected a time for each seed, got none"), "{text}");
    let text = refused(timed.epoch(
        0,
        Inputs { seeds: &[1, 2], times: Some(&[1]), rank: Rank::default(), bounds: None },
        0,
    ));
    assert!(text.contains("expected a time for each of 2 seeds, got 1"), "{text}");
    let plain = load(&graph, sampled(None, None, false), None).unwrap();
    let text = refused(plain.epoch(
        0,
        Inputs { seeds: &[1], times: Some(&[1]), rank: Rank::default(), bounds: None },
        0,
    ));
    assert!(text.contains("expected times of edges"), "{text}");
    let tight = sample.open_as(&tiergraph_graph::OpenOptions { memory: Some(25 << 20), ..small() });
    let held = tight.memory().reserve(tight.memory().budget().left(), "everything").unwrap();
    let error = load(&tight, sampled(Some("w"), None, false), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Budget);
    drop(held);
}

#[test]
fn damaged_values_are_told_with_their_file() {
    let sample = with_values(&Layout { dim: 0, ..Layout::mixed(true) });
    let options = SampleOptions { weights: Some("w".into()), ..Default::default() };
    for name in ["edges/in.w.f32", "edges/in.edges"] {
        let file = sample.path.join(name);
        let sound = std::fs::read(&file).unwrap();
        let mut bytes = sound.clone();
        bytes[1001] ^= 4;
        std::fs::write(&file, bytes).unwrap();
        let error =
            Columns::load(&sample.open(), Direction::In, &options, Resident::ALL).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(verify(&sample.path, &Silent, &Cancel::default()).unwrap().damage.len(), 1);
        std::fs::write(&file, sound).unwrap();
    }
    let file = sample.path.join("edges/attr.rows");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4096 * 3] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let options = LoaderOptions::new(SampleOptions {
        fanouts: vec![Fanout::All],
        features: Some("attr".into()),
        ..Default::default()
    });
    let loader = Loader::new(sample.open(), options, &Residency::Decoded, []).unwrap();
    let seeds: Vec<u32> = (0..3000).collect();
    let error = loader.epoch(0, &seeds, 0).unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().contains("page 3 (offset 12288) of `edges/attr.rows`"), "{error}");
}

#[test]
fn weights_below_zero_are_not_sampled_by() {
    let layout = Layout { vertices: 3, edges: vec![(0, 1), (1, 2)], dim: 0, ..Layout::mixed(true) };
    let sample = layout.build();
    let columns = vec![NewColumn { name: "w".into(), kind: ValueType::F32 }];
    let mut addition =
        EdgeAddition::begin(&sample.path, columns, Existing::Refuse, Some(64 << 20)).unwrap();
    let ends = Endpoints::U32 { src: vec![0, 1], dst: vec![1, 2] };
    addition.push(&EdgeBatch { ends, weights: None }, &[Column::F32(&[1.0, -0.5])]).unwrap();
    addition.finish(vec![], &Silent, &Cancel::default()).unwrap();
    let options = SampleOptions { weights: Some("w".into()), ..Default::default() };
    let text = refused(Columns::load(&sample.open(), Direction::In, &options, Resident::ALL));
    assert!(text.contains("expected weights of 0 or more, got -0.5 of edge 1"), "{text}");
}
