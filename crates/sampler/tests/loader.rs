//! Epochs: the same batches however they are prepared, every byte accounted for.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Layout, Sample, factory, mix, small, value, within};
use std::slice::from_ref;
use tiergraph_cache::placement::Placement;
use tiergraph_core::{Cancel, ErrorKind, Silent};
use tiergraph_format::features::FeatureType;
use tiergraph_graph::{Direction, Graph, OpenOptions};
use tiergraph_ingest::features::{RowOrder, relay};
use tiergraph_io::engine::{ModelledDrive, Posix, Throttle};
use tiergraph_sampler::{
    Delivery, EpochKey, EpochStats, Fanout, Hotness, Loader, LoaderOptions, MiniBatch, Plan,
    Prepared, Purpose, Residency, SampleOptions, SampledTypes, Sampler, Seeds, Topology,
};

const LIMIT: Duration = Duration::from_secs(60);
const EPOCH: u64 = 3;

fn options() -> LoaderOptions {
    let fanouts = vec![Fanout::Most(5), Fanout::Most(3)];
    LoaderOptions {
        batch_size: 50,
        seed: 9,
        features: vec![Some("x".into())],
        ..LoaderOptions::new(SampleOptions { fanouts, ..SampleOptions::default() })
    }
}

fn seeds() -> Vec<u32> {
    (0..1013).map(|i| (mix(i) % 3000) as u32).collect::<HashSet<_>>().into_iter().collect()
}

/// Rows that are kept: every third.
fn some_rows() -> impl Iterator<Item = u32> {
    (0..3000).filter(|v| v % 3 == 0)
}

fn run(loader: &Loader, seeds: &[u32]) -> (Vec<Prepared>, EpochStats) {
    let mut epoch = loader.epoch(EPOCH, seeds, 0).unwrap();
    let batches = epoch.by_ref().collect::<Result<Vec<_>, _>>().unwrap();
    assert!(epoch.is_done() && batches.len() == epoch.len());
    (batches, epoch.stats())
}

/// Every row of `x` is the user's.
fn assert_rows(graph: &Graph, prepared: &Prepared, dim: usize, bound: f32) {
    let user: Vec<u32> = (0..graph.vertices() as u32).collect();
    let order = graph.order().to_user(user, 1).unwrap();
    let mut position = vec![0u64; order.len()];
    order.iter().zip(0..).for_each(|(&vertex, user)| position[vertex as usize] = user);
    let x = prepared.x[0].as_ref().unwrap();
    assert_eq!((x.rows, x.dim), (prepared.batch.nodes[0].n_id.len(), dim));
    let rows = x.floats().unwrap().chunks_exact(dim);
    for (row, &vertex) in rows.zip(&prepared.batch.nodes[0].n_id) {
        for (column, &found) in row.iter().enumerate() {
            let expected = value(position[vertex as usize], column);
            assert!((found - expected).abs() <= bound, "{found} is not {expected}");
        }
    }
}

#[test]
fn the_same_batches_whatever_prepares_them() {
    within(LIMIT, || {
        for (stripes, dim) in [(0, 20), (2, 700), (3, 1433)] {
            let sample = Layout { stripes, dim, ..Layout::mixed(true) }.build();
            let graph = sample.open();
            let seeds = seeds();
            let mut expected: Option<Vec<MiniBatch>> = None;
            for (window, threads, prefetch) in [(1, 1, 0), (4, 2, 6), (100, 3, 7), (3, 2, 0)] {
                for keep in [Residency::Decoded, Residency::Pages(vec![0, 3]), Residency::Nothing] {
                    let options = LoaderOptions { window, threads, prefetch, ..options() };
                    let rows: Vec<u32> = some_rows().collect();
                    let loader = Loader::new(Arc::clone(&graph), options, &keep, rows).unwrap();
                    let (prepared, stats) = run(&loader, &seeds);
                    for one in prepared.iter().step_by(7) {
                        assert_rows(&graph, one, dim, 0.0);
                        let inputs: Vec<u32> =
                            one.input_id.iter().map(|&i| seeds[i as usize]).collect();
                        assert_eq!(inputs, one.batch.nodes[0].n_id[..one.batch.batch_size()]);
                    }
                    let found: Vec<MiniBatch> = prepared.into_iter().map(|p| p.batch).collect();
                    assert_eq!(
                        stats.edges,
                        found.iter().map(|b| b.edges[0].e_id.len() as u64).sum::<u64>()
                    );
                    assert_eq!(&found, expected.get_or_insert_with(|| found.clone()));
                }
            }
            // And they are the sampler's.
            let topology = Topology::open(&graph, Direction::In, &Residency::Decoded).unwrap();
            let mut sampler =
                Sampler::new(SampledTypes::of_one(graph.vertices(), &options().sample[0]), None)
                    .unwrap();
            let key = EpochKey::new(9, EPOCH, Purpose::Sample);
            for batch in expected.unwrap() {
                let (seeds, mut twin) =
                    (&batch.nodes[0].n_id[..batch.batch_size()], MiniBatch::default());
                let seeds = Seeds { number: batch.number, vertices: seeds, times: &[] };
                sampler.sample(from_ref(&topology), &[key], seeds, &mut twin).unwrap();
                assert_eq!(batch, twin);
            }
        }
    });
}

/// A drive of 200 reads a second: what is in flight must end, what is not must not begin.
#[test]
fn dropping_an_epoch_does_not_wait_for_its_window() {
    within(LIMIT, || {
        let sample = Layout { dim: 1433, ..Layout::mixed(true) }.build();
        let drive = ModelledDrive::new(1e12, 200.0, Duration::from_millis(1)).unwrap();
        let factory = factory(move |files| {
            Box::new(Throttle::new(Posix::new(Arc::clone(files), 4), drive.clone()))
        });
        let graph = sample.open_as(&OpenOptions { factory: Some(factory), ..small() });
        let options = LoaderOptions { window: 21, ..options() };
        let loader = Loader::new(graph, options, &Residency::Nothing, []).unwrap();
        let mut epoch = loader.epoch(EPOCH, &seeds(), 0).unwrap();
        assert!(epoch.poll(Duration::from_millis(50)).unwrap().is_none());
        let since = Instant::now();
        drop(epoch);
        // The window's thousands of pages would take longer than the limit.
        assert!(since.elapsed() < LIMIT / 4);
    });
}

/// The pages that a window of batches wants and that are not in memory, counted plainly.
fn missed_pages(graph: &Graph, window: &[Prepared], kept_pages: &HashSet<u64>) -> (u64, u64) {
    let features = graph.features().get("x").unwrap();
    let index = graph.rows(Direction::In).pages().unwrap().index;
    let (mut rows, mut pages) = (HashSet::new(), HashSet::new());
    let (_, firsts) = common::adjacency(graph, Direction::In);
    for Prepared { batch, .. } in window {
        for &vertex in batch.nodes[0].n_id.iter().filter(|&&v| v % 3 != 0) {
            rows.extend(features.page_span(vertex));
        }
        for (&col, &arc) in batch.edges[0].col.iter().zip(&batch.edges[0].e_id) {
            let vertex = batch.nodes[0].n_id[col as usize];
            pages.extend(index.page_of_kth(vertex.into(), arc - firsts[vertex as usize]));
        }
    }
    (rows.len() as u64, pages.difference(kept_pages).count() as u64)
}

#[test]
fn bytes_read_are_distinct_missed_pages_to_the_byte() {
    within(LIMIT, || {
        for dim in [20, 128, 1433] {
            let sample = Layout { dim, ..Layout::mixed(true) }.build();
            let graph = sample.open();
            for (window, keep) in [
                (1, Residency::Nothing),
                (4, Residency::Nothing),
                (4, Residency::Pages(vec![0, 1, 5])),
                (50, Residency::Decoded),
            ] {
                let kept: HashSet<u64> = match &keep {
                    Residency::Decoded => (0..10_000).collect(),
                    Residency::Pages(pages) => pages.iter().copied().collect(),
                    Residency::Nothing => HashSet::new(),
                };
                let options = LoaderOptions { window, ..options() };
                let rows = some_rows();
                let loader = Loader::new(Arc::clone(&graph), options, &keep, rows).unwrap();
                let (prepared, stats) = run(&loader, &seeds());
                let counts = prepared.chunks(window).map(|w| missed_pages(&graph, w, &kept));
                let (rows, pages) = counts.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
                assert_eq!(stats.bytes_ssd_topology, pages * 4096, "window {window}");
                assert_eq!(stats.bytes_ssd, (rows + pages) * 4096, "window {window}");
                assert_eq!(stats.distinct_pages, rows + pages);
                assert_eq!(stats.repeated_pages, 0);
                assert!(stats.reads <= stats.distinct_pages);
                let missed =
                    |p: &Prepared| p.batch.nodes[0].n_id.iter().filter(|&&v| v % 3 != 0).count();
                assert_eq!(stats.missed_rows, prepared.iter().map(missed).sum::<usize>() as u64);
            }
        }
    });
}

#[test]
fn narrow_types_come_as_floats_or_as_they_are() {
    within(LIMIT, || {
        for (dtype, bound) in [(FeatureType::F16, 5.0 / 2048.0), (FeatureType::Int8, 5.0 / 254.0)] {
            let sample = Layout { dtype, ..Layout::mixed(false) }.build();
            let graph = sample.open();
            for delivery in [Delivery::Floats, Delivery::Stored] {
                let options = LoaderOptions { delivery, ..options() };
                let loader =
                    Loader::new(Arc::clone(&graph), options, &Residency::Nothing, some_rows())
                        .unwrap();
                for prepared in run(&loader, &seeds()).0.iter().take(3) {
                    match delivery {
                        Delivery::Floats => assert_rows(&graph, prepared, 20, bound),
                        Delivery::Stored => {
                            let x = prepared.x[0].as_ref().unwrap();
                            assert!(x.dtype == dtype && x.floats().is_none());
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn epochs_differ_and_a_resumed_one_goes_on_where_it_was() {
    within(LIMIT, || {
        let sample = Layout::mixed(true).build();
        let loader =
            Loader::new(sample.open(), options(), &Residency::Nothing, some_rows()).unwrap();
        let seeds = seeds();
        let whole: Vec<MiniBatch> = run(&loader, &seeds).0.into_iter().map(|p| p.batch).collect();
        let resumed = loader.epoch(EPOCH, &seeds, 9).unwrap();
        let rest: Vec<MiniBatch> = resumed.map(|p| p.unwrap().batch).collect();
        assert_eq!(rest, whole[9..]);
        let other = loader.epoch(EPOCH + 1, &seeds, 0).unwrap().next().unwrap().unwrap();
        assert_ne!(other.batch.nodes[0].n_id[..50], whole[0].nodes[0].n_id[..50]);
        assert_eq!(loader.epoch(EPOCH, &seeds, 1000).unwrap().count(), 0);
    });
}

#[test]
fn odd_epochs() {
    within(LIMIT, || {
        let sample = Layout::mixed(true).build();
        let graph = sample.open();
        let count = |options: LoaderOptions, seeds: &[u32]| {
            let rows = Vec::new();
            let loader =
                Loader::new(Arc::clone(&graph), options, &Residency::Nothing, rows).unwrap();
            let batches = loader.epoch(0, seeds, 0).unwrap().map(|p| p.unwrap().batch);
            batches.map(|b| b.batch_size()).collect::<Vec<_>>()
        };
        let in_order = LoaderOptions { shuffle: false, ..options() };
        let few: Vec<u32> = (0..120).collect();
        assert_eq!(count(in_order.clone(), &few), [50, 50, 20]);
        assert_eq!(count(LoaderOptions { drop_last: true, ..in_order.clone() }, &few), [50, 50]);
        assert_eq!(count(LoaderOptions { batch_size: 1000, ..in_order.clone() }, &few), [120]);
        assert!(count(in_order.clone(), &[]).is_empty());
        assert_eq!(
            count(LoaderOptions { features: vec![None], ..in_order.clone() }, &few).len(),
            3
        );
        let error = |options: LoaderOptions| {
            Loader::new(Arc::clone(&graph), options, &Residency::Nothing, [])
                .unwrap_err()
                .to_string()
        };
        let none = LoaderOptions { batch_size: 0, ..in_order.clone() };
        assert_eq!(
            error(none),
            "cannot load batches with `batch_size`: expected 1 or more, below 2^32, got 0"
        );
        let missing = LoaderOptions { features: vec![Some("y".into())], ..in_order.clone() };
        assert!(error(missing).starts_with("cannot use the features `y`"));
        let loader = Loader::new(Arc::clone(&graph), in_order, &Residency::Nothing, []).unwrap();
        let outside = loader.epoch(0, &[3000], 0).unwrap_err();
        assert_eq!(outside.kind(), ErrorKind::Input);
    });
}

#[test]
fn an_epoch_that_is_dropped_gives_everything_back() {
    within(LIMIT, || {
        let sample = Layout::mixed(true).build();
        let graph = sample.open();
        let loader =
            Loader::new(Arc::clone(&graph), options(), &Residency::Nothing, some_rows()).unwrap();
        let seeds = seeds();
        run(&loader, &seeds);
        let used = graph.memory().budget().used();
        for taken in 0..15 {
            let mut epoch = loader.epoch(EPOCH, &seeds, 0).unwrap();
            let held: Vec<Prepared> = epoch.by_ref().take(taken).map(Result::unwrap).collect();
            drop(epoch);
            drop(held);
            assert_eq!(graph.memory().budget().used(), used, "after {taken} batches");
        }
    });
}

#[test]
fn no_more_is_begun_than_was_allowed() {
    within(LIMIT, || {
        let sample = Layout::mixed(true).build();
        let graph = sample.open();
        let options = LoaderOptions { window: 2, prefetch: 3, threads: 3, ..options() };
        let loader =
            Loader::new(Arc::clone(&graph), options, &Residency::Nothing, some_rows()).unwrap();
        let mut epoch = loader.epoch(EPOCH, &seeds(), 0).unwrap();
        epoch.next().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        // Two windows of two; a third would make six that are not taken, and five are allowed.
        let nodes = epoch.stats().nodes;
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(epoch.stats().nodes, nodes, "the workers wait");
        let prepared: u64 =
            epoch.by_ref().take(5).map(|p| p.unwrap().batch.nodes[0].n_id.len() as u64).sum();
        assert!(prepared <= epoch.stats().nodes);
    });
}

#[test]
fn too_little_memory_is_an_error_and_enough_for_one_window_is_enough() {
    within(LIMIT, || {
        let sample = Layout { dim: 1433, ..Layout::mixed(true) }.build();
        let graph = sample.open_as(&OpenOptions { memory: Some(96 << 20), ..small() });
        let options = LoaderOptions { window: 2, prefetch: 50, threads: 3, ..options() };
        let loader = Loader::new(Arc::clone(&graph), options, &Residency::Nothing, []).unwrap();
        let left = graph.memory().budget().left();
        let rest = graph.memory().reserve(left - (14 << 20), "all but a few batches").unwrap();
        let count = loader.epoch(EPOCH, &seeds(), 0).unwrap().map(|p| drop(p.unwrap())).count();
        assert!(count > 10, "{count}");
        drop(rest);
        let rest = graph.memory().reserve(left - (1 << 20), "all but less than a window").unwrap();
        let error = loader.epoch(EPOCH, &seeds(), 0).unwrap().find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::Budget, "{error}");
        assert!(error.to_string().contains("`batch "), "{error}");
        drop(rest);
    });
}

#[test]
fn a_cancelled_epoch_ends() {
    within(LIMIT, || {
        let sample = Layout::mixed(true).build();
        let graph = sample.open();
        let loader = Loader::new(Arc::clone(&graph), options(), &Residency::Nothing, []).unwrap();
        let mut epoch = loader.epoch(EPOCH, &seeds(), 0).unwrap();
        epoch.next().unwrap().unwrap();
        graph.cancel().cancel();
        let error = epoch.by_ref().find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        assert!(epoch.next().is_none());
    });
}

fn bytes_of(sample: &Sample, loader: Loader, how: &Plan, capacity: u64) -> EpochStats {
    let seeds = seeds();
    let hotness = loader.presample(EPOCH + 10, &seeds, usize::MAX).unwrap();
    let row_bytes = sample.open().features().get("x").unwrap().row_bytes();
    let kept = hotness.place(how, &[row_bytes], capacity);
    let Residency::Pages(pages) = &kept.neighbors[0] else { panic!("pages are placed") };
    let bytes = pages.len() * 4096 + kept.rows[0].len() * row_bytes;
    // Only a fixed share may leave memory empty.
    let full = bytes as u64 > capacity - 20_000 || matches!(how.placement, Placement::Hybrid(_));
    assert!(bytes as u64 <= capacity && full, "{bytes}");
    let loader = Loader::of_types(sample.open(), loader.options().clone(), kept).unwrap();
    run(&loader, &seeds).1
}

#[test]
fn what_presampling_keeps_saves_reads() {
    within(LIMIT, || {
        let sample = Layout { dim: 128, ..Layout::mixed(true) }.build();
        let graph = sample.open();
        // Small windows: what is wanted differs from one to the next.
        let options = LoaderOptions { window: 1, batch_size: 10, ..options() };
        let loader =
            || Loader::new(Arc::clone(&graph), options.clone(), &Residency::Nothing, []).unwrap();
        let cold = run(&loader(), &seeds()).1;
        let how = |placement| Plan { placement, chunk_bytes: 8192, ..Plan::default() };
        let bytes = |placement| bytes_of(&sample, loader(), &how(placement), 800_000).bytes_ssd;
        let unified = bytes(Placement::Unified);
        let others = [Placement::TOPOLOGY_FIRST, Placement::FEATURES_FIRST, Placement::Hybrid(0.5)];
        for placement in others {
            let other = bytes(placement);
            assert!(other <= cold.bytes_ssd, "{placement:?}: {other}");
            assert!(unified <= other + other / 10, "{placement:?}: {other} beats {unified}");
        }
        assert!(unified * 10 < cold.bytes_ssd * 9, "{unified} of {}", cold.bytes_ssd);
    });
}

#[test]
fn scores_of_any_origin_can_say_what_is_hot() {
    let sample = Layout { dim: 128, ..Layout::mixed(true) }.build();
    let graph = sample.open();
    let topology = Topology::open(&graph, Direction::In, &Residency::Nothing).unwrap();
    let degrees = graph.degrees().of(Direction::Out).unwrap();
    let mut hotness = Hotness::of_one(&topology);
    hotness.rows[0].uses.copy_from_slice(&degrees);
    let kept = hotness.place(&Plan { chunk_bytes: 512, ..Plan::default() }, &[512], 100 * 512);
    let least = kept.rows[0].iter().map(|&v| degrees[v as usize]).min().unwrap();
    let left = (0..3000).filter(|v| !kept.rows[0].contains(v));
    assert!(left.map(|v| degrees[v as usize]).max().unwrap() <= least);
}

#[test]
fn the_fastest_form_that_fits_is_kept() {
    let sample = Layout { dim: 0, ..Layout::mixed(true) }.build();
    let graph = sample.open();
    let within = |bytes| Residency::all_within(&graph, Direction::In, bytes);
    let arcs = graph.manifest().arcs;
    assert!(matches!(within(arcs * 4), Residency::Decoded));
    assert!(matches!(within(arcs * 4 - 1), Residency::Pages(pages) if pages.len() > 3));
    assert!(matches!(within(arcs), Residency::Nothing));
}

/// Rows that were moved: the same batches, and still no byte but the missed pages'.
#[test]
fn an_order_of_rows_changes_what_is_read_and_nothing_else() {
    within(LIMIT, || {
        let sample = Layout { dim: 128, ..Layout::mixed(true) }.build();
        let mut seeds = seeds();
        seeds.sort_unstable();
        let options = LoaderOptions { window: 2, batch_size: 20, ..options() };
        let epoch = |rows: Vec<u32>| {
            let graph = sample.open();
            let loader =
                Loader::new(Arc::clone(&graph), options.clone(), &Residency::Decoded, rows)
                    .unwrap();
            let (prepared, stats) = run(&loader, &seeds);
            prepared.iter().step_by(5).for_each(|one| assert_rows(&graph, one, 128, 0.0));
            let pages: u64 = prepared
                .chunks(2)
                .map(|window| missed_pages(&graph, window, &(0..10_000).collect()).0)
                .sum();
            assert_eq!(stats.bytes_ssd, pages * 4096);
            (prepared.into_iter().map(|p| p.batch).collect::<Vec<_>>(), stats)
        };
        let (batches, before) = epoch(some_rows().collect());
        let graph = sample.open();
        let loader =
            Loader::new(Arc::clone(&graph), options.clone(), &Residency::Decoded, []).unwrap();
        let layout = graph.manifest().features["x"].layout;
        let reordered = loader.reorder_rows(layout, EPOCH, &seeds, usize::MAX).unwrap();
        let again = loader.reorder_rows(layout, EPOCH, &seeds, usize::MAX).unwrap();
        assert!(reordered.rows == again.rows);
        let best = reordered.trials.iter().map(|(_, pages)| *pages).min().unwrap();
        assert!(reordered.trials.contains(&(reordered.by, best)));
        assert!(best < reordered.trial_rows && reordered.wanted_rows < 3000);
        let order = RowOrder { name: "hot".into(), rows: Some(reordered.rows) };
        relay(&sample.path, "x", &order, None, &Silent, &Cancel::default()).unwrap();
        let (moved, after) = epoch(some_rows().collect());
        assert_eq!(moved, batches);
        assert_eq!(after.missed_rows, before.missed_rows);
        assert!(after.bytes_ssd < before.bytes_ssd, "{} {}", after.bytes_ssd, before.bytes_ssd);
        let error = loader.reorder_rows(layout, 0, &[], usize::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    });
}
