//! The least memory of a loader: enough for every epoch, and no less.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/values.rs"]
mod values;

use common::{Layout, Sample, small};
use tiergraph_core::Result;
use tiergraph_graph::OpenOptions;
use tiergraph_sampler::{Fanout, Inputs, Loader, LoaderOptions, MemoryPlan, Plan, SampleOptions};
use values::with_values;

/// More than what the least memory is rounded up by.
const LESS: u64 = 12 << 10;

fn planned(
    sample: &Sample,
    options: &LoaderOptions,
    memory: u64,
    seeds: &[u32],
) -> Result<(Loader, MemoryPlan)> {
    let graph = sample.open_as(&OpenOptions { memory: Some(memory), ..small() });
    Loader::planned(graph, options, seeds, &Plan::default(), usize::MAX)
}

#[test]
fn fewer_threads_do_where_so_many_have_no_room() {
    let sample = with_values(&Layout { dim: 0, ..Layout::mixed(true) });
    let seeds: Vec<u32> = (0..2050).collect();
    let fanouts = vec![Fanout::Most(4), Fanout::Most(3)];
    let sampled = SampleOptions { fanouts, ..SampleOptions::default() };
    let one = LoaderOptions { threads: 1, ..LoaderOptions::new(sampled) };
    let many = LoaderOptions { threads: 24, ..one.clone() };
    let fewer = LoaderOptions { fewer_threads: true, ..many.clone() };
    let [enough, of_many, of_fewer] = [&one, &many, &fewer]
        .map(|options| Loader::enough_bytes(sample.open(), options, &seeds, usize::MAX).unwrap());
    assert_eq!(enough, of_fewer);
    assert!(enough < of_many);

    let (mut met, between) = (Vec::new(), (enough + of_many) / 2);
    for (memory, options, threads) in
        [(enough, &fewer, 1..=1), (between, &fewer, 1..=23), (2 * of_many, &fewer, 24..=24)]
    {
        let (loader, plan) = planned(&sample, options, memory, &seeds).unwrap();
        assert!(threads.contains(&plan.threads), "{} threads in {memory}", plan.threads);
        let batches = loader.epoch(1, Inputs::from(&seeds[..]), 0).unwrap();
        let nodes = batches.map(|prepared| prepared.unwrap().batch.nodes[0].n_id.clone());
        met.push(nodes.collect::<Vec<_>>());
    }
    assert!(met.iter().all(|batches| *batches == met[0]));
    assert!(planned(&sample, &many, between, &seeds).is_err());
    assert!(planned(&sample, &fewer, enough - LESS, &seeds).is_err());
}

#[test]
fn the_least_memory_of_a_loader_is_enough_and_no_less() {
    let sample = with_values(&Layout { dim: 0, ..Layout::mixed(true) });
    let seeds: Vec<u32> = (0..2050).collect();
    let even = SampleOptions {
        fanouts: vec![Fanout::Most(4), Fanout::Most(3)],
        ..SampleOptions::default()
    };
    let described = SampleOptions { features: Some("attr".into()), ..even.clone() };
    for (sample_by, threads, drop_last) in [
        (even.clone(), 1, true),
        (even, 3, false),
        (described.clone(), 1, false),
        (described, 2, false),
    ] {
        let options = LoaderOptions {
            batch_size: 100,
            window: 2,
            threads,
            drop_last,
            ..LoaderOptions::new(sample_by)
        };
        let what = format!("{:?}, {threads} threads", options.sample);
        let enough = Loader::enough_bytes(sample.open(), &options, &seeds, usize::MAX).unwrap();
        let (loader, plan) = planned(&sample, &options, enough, &seeds).unwrap();
        for epoch in 0..3 {
            let batches = loader.epoch(epoch, Inputs::from(&seeds[..]), 0).unwrap();
            for prepared in batches {
                let nodes = prepared.unwrap().batch.nodes[0].n_id.len();
                assert!(nodes as u64 <= plan.most_nodes, "{what}");
            }
        }
        assert_eq!(plan.enough_bytes.abs_diff(enough) / LESS, 0, "{what}");
        let error = planned(&sample, &options, enough - LESS, &seeds).err();
        let error = error.unwrap_or_else(|| panic!("{what}: {enough} bytes are too many"));
        assert!(error.enough_bytes().is_some_and(|bytes| bytes > enough - LESS), "{error}");
    }
}
