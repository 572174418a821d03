//! What a loader keeps by itself: all that fits, what is wanted most of what does not, and never
//! more than the graph's memory holds beside the batches.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Layout, mix, small, within};
use tiergraph_cache::RankedSet;
use tiergraph_graph::OpenOptions;
use tiergraph_sampler::{
    Fanout, Loader, LoaderOptions, MiniBatch, Plan, Prepared, Residency, SampleOptions, Sharing,
};

const LIMIT: Duration = Duration::from_secs(60);

fn options(features: bool) -> LoaderOptions {
    let fanouts = vec![Fanout::Most(5), Fanout::Most(3)];
    LoaderOptions {
        batch_size: 10,
        window: 1,
        prefetch: 1,
        threads: 1,
        features: vec![features.then(|| "x".into())],
        ..LoaderOptions::new(SampleOptions { fanouts, ..SampleOptions::default() })
    }
}

#[test]
fn more_memory_keeps_more_and_changes_no_batch() {
    within(LIMIT, || {
        let sample = Layout { dim: 2048, ..Layout::mixed(true) }.build();
        let seeds: Vec<u32> = (0..400).collect();
        let mut expected: Option<Vec<MiniBatch>> = None;
        let mut kept = Vec::new();
        for memory in [38 << 20, 44 << 20, 160 << 20] {
            let graph = sample.open_as(&OpenOptions { memory: Some(memory), ..small() });
            let (loader, fitted) =
                Loader::planned(&graph, &options(true), &seeds, &Plan::default(), usize::MAX)
                    .unwrap();
            assert!(graph.memory().budget().used() <= memory);
            assert_eq!((fitted.rows, fitted.kept_pages <= fitted.pages), (3000, true));
            let epoch = loader.epoch(1, &seeds, 0).unwrap();
            let found: Vec<MiniBatch> = epoch.map(|prepared| prepared.unwrap().batch).collect();
            assert_eq!(&found, expected.get_or_insert_with(|| found.clone()));
            kept.push((fitted.kept_rows, fitted.decoded));
        }
        assert!(kept[0].0 < kept[1].0 && kept[1].0 < kept[2].0, "{kept:?}");
        assert_eq!(kept[2], (3000, true));
    });
}

#[test]
fn memory_that_is_left_holds_what_no_counted_batch_wanted() {
    within(LIMIT, || {
        let sample = Layout { dim: 2048, ..Layout::mixed(true) }.build();
        let (seeds, plan): (Vec<u32>, _) = ((0..400).collect(), Plan::default());
        let all = Loader::new(sample.open(), options(true), &Residency::Nothing, []).unwrap();
        let uses = all.presample(0, &seeds, 1).unwrap().rows.swap_remove(0).uses;
        let wanted = uses.iter().filter(|&&uses| uses > 0).count() as u64;
        let mut with_others = 0;
        for memory in (36..60).map(|mebibytes| mebibytes << 20) {
            let graph = sample.open_as(&OpenOptions { memory: Some(memory), ..small() });
            let made = Loader::planned(&graph, &options(true), &seeds, &plan, 1);
            let Ok((_, fitted)) = made else { continue };
            if fitted.kept_rows <= wanted || fitted.kept_rows == fitted.rows {
                continue;
            }
            with_others += 1;
            let held = fitted.kept_rows * 8192 + fitted.kept_pages * 4096;
            let idle = fitted.capacity_bytes - held;
            assert!(idle < 2 * plan.chunk_bytes, "{idle} bytes are idle: {fitted:?}");
        }
        assert!(with_others >= 5 && wanted > 0, "{with_others} loaders, {wanted} rows");
    });
}

#[test]
fn an_epoch_that_was_left_early_stops_no_later_reads() {
    within(LIMIT, || {
        let graph = Layout::mixed(true).build();
        let loader = Loader::new(graph.open(), options(false), &Residency::Nothing, []).unwrap();
        let seeds: Vec<u32> = (0..400).collect();
        let begun = loader.epoch(0, &seeds, 0).unwrap();
        assert_eq!(begun.take(1).map(|prepared| prepared.unwrap().batch.number).sum::<u32>(), 0);
        let hotness = loader.presample(0, &seeds, usize::MAX).unwrap();
        assert!(hotness.pages[0].uses.iter().any(|&windows| windows > 0));
    });
}

#[test]
fn rows_that_share_no_reads_are_the_same_rows() {
    within(LIMIT, || {
        let graph = Layout { dim: 16, ..Layout::mixed(true) }.build();
        let seeds: Vec<u32> = (0..400).collect();
        let mut found = Vec::new();
        for sharing in [Sharing::Pages, Sharing::Nothing] {
            let options = LoaderOptions { sharing, ..options(true) };
            let loader = Loader::new(graph.open(), options, &Residency::Decoded, []).unwrap();
            let mut epoch = loader.epoch(0, &seeds, 0).unwrap();
            let rows =
                |prepared: Prepared| prepared.x[0].as_ref().unwrap().floats().unwrap().to_vec();
            let all: Vec<Vec<f32>> = epoch.by_ref().map(|batch| rows(batch.unwrap())).collect();
            found.push((all, epoch.stats()));
        }
        let [(shared, few), (alone, many)] = &found[..] else { unreachable!("two epochs") };
        assert_eq!(shared, alone);
        assert!(few.bytes_ssd < many.bytes_ssd);
        assert_eq!(many.distinct_pages, many.missed_rows);
    });
}

#[test]
fn without_features_no_row_is_kept() {
    let graph = Layout::mixed(true).build();
    let graph = graph.open();
    let seeds = [1, 2, 3];
    let (_, fitted) =
        Loader::planned(&graph, &options(false), &seeds, &Plan::default(), 2).unwrap();
    assert_eq!((fitted.rows, fitted.kept_rows, fitted.decoded), (0, 0, true));
}

#[test]
fn threads_that_do_not_fit_are_counted_together() {
    let sample = Layout::mixed(true).build();
    let options = LoaderOptions { threads: 6, retain_bytes: 0, ..options(false) };
    let open = |memory| sample.open_as(&OpenOptions { memory: Some(memory), ..small() });
    let make = |graph| Loader::new(graph, options.clone(), &Residency::Nothing, []);
    let roomy = open(160 << 20);
    let opened = roomy.memory().budget().used();
    let loader = make(Arc::clone(&roomy)).unwrap();
    let needed = roomy.memory().budget().used();
    drop(loader);
    let error = make(open(opened.midpoint(needed))).unwrap_err();
    assert!(error.to_string().contains("the tables and buffers of 5 more samplers"), "{error}");
    assert_eq!(error.enough_bytes(), Some(needed));
    assert!(make(open(needed)).is_ok());
    assert!(make(open(needed - 1)).is_err());
}

#[test]
fn memory_that_is_too_little_is_said_for_all_parts_at_once() {
    within(LIMIT, || {
        let sample = Layout { dim: 64, ..Layout::mixed(true) }.build();
        let seeds: Vec<u32> = (0..400).collect();
        for threads in [1, 2, 8] {
            let options = LoaderOptions { threads, ..options(true) };
            let fit = |memory| {
                let graph = sample.open_as(&OpenOptions { memory: Some(memory), ..small() });
                Loader::planned(&graph, &options, &seeds, &Plan::default(), usize::MAX)
            };
            let opened = sample.open().memory().budget().used();
            let error = fit(opened + (256 << 10)).unwrap_err();
            let enough = error.enough_bytes().unwrap_or_else(|| panic!("{error}"));
            assert!(fit(enough).is_ok(), "{threads} threads, {error}");
            assert!(fit(opened.midpoint(enough)).is_err(), "{threads} threads, {error}");
        }
    });
}

#[test]
fn a_loader_in_its_least_memory_ends_every_epoch() {
    within(LIMIT, || {
        let sample = Layout { dim: 512, ..Layout::mixed(true) }.build();
        let seeds: Vec<u32> = (0..400).collect();
        for fanout in [Fanout::Most(4), Fanout::All] {
            let way = SampleOptions { fanouts: vec![fanout; 2], ..SampleOptions::default() };
            let options = LoaderOptions {
                batch_size: 20,
                window: 4,
                threads: 2,
                features: vec![Some("x".into())],
                ..LoaderOptions::new(way)
            };
            let open = |memory| sample.open_as(&OpenOptions { memory, ..small() });
            let enough = Loader::enough_bytes(open(None), &options, &seeds, usize::MAX).unwrap();
            let fit = |memory| {
                Loader::planned(open(Some(memory)), &options, &seeds, &Plan::default(), usize::MAX)
            };
            let (loader, fitted) = fit(enough).unwrap();
            assert!(fitted.window < 4 && fitted.asked_window == 4, "{}", fitted.window);
            assert!(loader.options().window < 4, "{}", loader.options().window);
            for epoch in 0..6 {
                let nodes =
                    |prepared: Result<Prepared, _>| prepared.unwrap().batch.nodes[0].n_id.len();
                let nodes: Vec<usize> =
                    loader.epoch(epoch, &seeds, 0).unwrap().map(nodes).collect();
                assert_eq!(nodes.len(), 20);
                assert!(nodes.iter().all(|&nodes| nodes as u64 <= fitted.most_nodes));
            }
            let error = fit(enough - (64 << 10)).unwrap_err();
            assert!(
                error.enough_bytes().is_some_and(|bytes| bytes.abs_diff(enough) < 4096),
                "{error}"
            );
        }
    });
}

#[test]
fn a_plan_counts_what_its_loader_then_holds_to_the_byte() {
    let seeds: Vec<u32> = (0..400).collect();
    let mut decoded = Vec::new();
    for (dim, threads, window, retain_bytes, edges) in [
        (20, 1, 1, 0, 0),
        (512, 2, 1, 0, 0),
        (512, 3, 2, 100_000, 0),
        (0, 2, 3, 50_000, 0),
        // Neighbours that do not fit while they are counted.
        (0, 2, 1, 20_000, 1_000_000),
    ] {
        let mut layout = Layout { dim, ..Layout::mixed(true) };
        layout.edges.extend((0..edges).map(|i| (mix(i) % 3000, mix(i + (1 << 40)) % 3000)));
        let sample = layout.build();
        let options = LoaderOptions { threads, window, retain_bytes, ..options(dim > 0) };
        let arcs = sample.open().manifest().arcs;
        let enough = Loader::enough_bytes(sample.open(), &options, &seeds, usize::MAX).unwrap();
        for more in [0, 50_000, 100_000, 300_000, 1_000_000, 5_000_000, 50_000_000] {
            let memory = Some(enough + more);
            let graph = sample.open_as(&OpenOptions { memory, ..small() });
            let (loader, plan) =
                Loader::planned(&graph, &options, &seeds, &Plan::default(), usize::MAX).unwrap();
            let LoaderOptions { threads, per_thread, retain_bytes, .. } = *loader.options();
            assert_eq!(threads, plan.threads);
            assert!(per_thread.growth_bytes > 0 && per_thread.scratch_bytes > 0);
            if plan.capacity_bytes == 0 {
                continue;
            }
            // What finds kept pages is counted, and not held where neighbours are unpacked.
            let set = RankedSet::bytes_below(plan.pages);
            let neighbors = match plan.decoded {
                true => arcs * 4,
                false => plan.kept_pages * 4096,
            };
            let kept = neighbors + plan.kept_rows * dim as u64 * 4;
            // Pages of a window are retained only where some are read.
            let retained = if plan.kept_pages == plan.pages { retain_bytes as u64 } else { 0 };
            let held = per_thread.growth_bytes + per_thread.scratch_bytes;
            let left = plan.capacity_bytes - kept
                + plan.in_flight_bytes
                + threads as u64 * retained
                + if plan.decoded { set } else { 0 }
                - threads as u64 * held;
            let what = format!("{dim} {threads} {window} {more}: {plan:?}");
            assert_eq!(graph.memory().budget().left(), left, "{what}");
            decoded.push(plan.decoded);
        }
    }
    assert!(decoded.contains(&true) && decoded.contains(&false));
}

#[test]
fn a_thread_has_room_for_the_lists_of_each_batch_of_its_window() {
    let graph = Layout::mixed(true).build();
    let graph = graph.open();
    let seeds: Vec<u32> = (0..400).collect();
    let scratch = |window| {
        let options = LoaderOptions { window, ..options(true) };
        let (loader, plan) =
            Loader::planned(&graph, &options, &seeds, &Plan::default(), usize::MAX).unwrap();
        assert_eq!((plan.window, loader.options().window), (window, window));
        loader.options().per_thread.scratch_bytes
    };
    assert_eq!([2, 5].map(scratch), [2, 5].map(|window| window * scratch(1)));
}
