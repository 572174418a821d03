//! What a loader keeps by itself: all that fits, what is wanted most of what does not, and never
//! more than the graph's memory holds beside the batches.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Layout, small, within};
use tiergraph_graph::OpenOptions;
use tiergraph_sampler::{Fanout, Loader, LoaderOptions, MiniBatch, Plan, SampleOptions};

const LIMIT: Duration = Duration::from_secs(60);

fn options(features: bool) -> LoaderOptions {
    let fanouts = vec![Fanout::Most(5), Fanout::Most(3)];
    LoaderOptions {
        batch_size: 10,
        window: 1,
        prefetch: 1,
        threads: 1,
        features: features.then(|| "x".into()),
        ..LoaderOptions::new(SampleOptions { fanouts, disjoint: false })
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
                Loader::fitted(&graph, &options(true), &seeds, &Plan::default(), usize::MAX)
                    .unwrap();
            assert!(graph.budget().used() <= memory);
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
fn without_features_no_row_is_kept() {
    let graph = Layout::mixed(true).build();
    let graph = graph.open();
    let seeds = [1, 2, 3];
    let (_, fitted) =
        Loader::fitted(&Arc::clone(&graph), &options(false), &seeds, &Plan::default(), 2).unwrap();
    assert_eq!((fitted.rows, fitted.kept_rows, fitted.decoded), (0, 0, true));
}
