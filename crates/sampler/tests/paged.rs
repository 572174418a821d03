//! Values of edges on storage: the same batches in any memory, each page once a window, and clear
//! errors for what cannot be read.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/values.rs"]
mod values;

use std::collections::BTreeSet;
use std::fs::OpenOptions as FileOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use common::{Layout, factory, mix, small};
use proptest::prelude::*;
use tiergraph_core::{Cancel, ErrorKind, Silent};
use tiergraph_format::directory::Existing;
use tiergraph_format::edges::ValueType;
use tiergraph_format::verify::verify;
use tiergraph_graph::{Graph, OpenOptions};
use tiergraph_ingest::edges::{Column, EdgeAddition, NewColumn};
use tiergraph_ingest::{EdgeBatch, Endpoints};
use tiergraph_io::engine::{Fault, FaultSettings, Posix, Retry, RetrySettings};
use tiergraph_sampler::{
    EpochStats, Fanout, Inputs, Loader, LoaderOptions, MiniBatch, Plan, Rank, Residency, Resident,
    SampleOptions, Strategy as Choice, Times,
};
use values::{time, weight, with_values};

const PAGE: u64 = 4096;

fn by(weights: bool, times: Option<Choice>) -> SampleOptions {
    SampleOptions {
        fanouts: vec![Fanout::Most(6), Fanout::Most(4)],
        disjoint: times.is_some(),
        weights: weights.then(|| "w".into()),
        times: times.map(|strategy| Times { name: "time".into(), strategy }),
        ..SampleOptions::default()
    }
}

/// Every way to sample, evenly included, and with values that nothing is sampled by.
fn ways() -> [SampleOptions; 6] {
    [
        by(false, None),
        by(true, None),
        by(false, Some(Choice::Uniform)),
        by(false, Some(Choice::Last)),
        by(true, Some(Choice::Uniform)),
        SampleOptions { values: vec!["time".into(), "w".into()], ..by(false, None) },
    ]
}

type Known = (MiniBatch, Option<Vec<u64>>, Option<Vec<f32>>, Option<Vec<i64>>, Vec<Vec<u64>>);

/// All that an epoch's batches say of their edges, up to an error.
fn epoch(loader: &Loader, seeds: &[u32]) -> tiergraph_core::Result<(Vec<Known>, EpochStats)> {
    let timed = loader.options().sample[0].times.is_some();
    let times: Vec<i64> = seeds.iter().map(|&seed| time(seed.into()) + 300).collect();
    let inputs =
        Inputs { seeds, times: timed.then_some(&times), rank: Rank::default(), bounds: None };
    let mut epoch = loader.epoch(2, inputs, 0)?;
    let batches = epoch.by_ref().map(|prepared| {
        let prepared = prepared?;
        let mut prepared = prepared;
        let edges = std::mem::take(&mut prepared.edges[0]);
        Ok((prepared.batch, edges.numbers, edges.weights, edges.times, edges.others))
    });
    let batches = batches.collect::<tiergraph_core::Result<_>>()?;
    Ok((batches, epoch.stats()))
}

fn options(sample: SampleOptions) -> LoaderOptions {
    LoaderOptions { batch_size: 30, window: 3, ..LoaderOptions::new(sample) }
}

fn layout(directed: bool) -> Layout {
    Layout { dim: 0, stripes: 2, ..Layout::mixed(directed) }
}

#[test]
fn what_is_read_makes_the_same_batches() {
    for directed in [true, false] {
        let sample = with_values(&layout(directed));
        let graph = sample.open();
        let seeds: Vec<u32> = (0..400).map(|i| i * 7).collect();
        for way in ways() {
            let kept =
                Loader::new(Arc::clone(&graph), options(way.clone()), &Residency::Decoded, []);
            let (expected, stats) = epoch(&kept.unwrap(), &seeds).unwrap();
            assert_eq!((stats.bytes_ssd, stats.bytes_ssd_values), (0, 0));
            for (batch, numbers, weights, times, others) in &expected {
                let numbers = numbers.as_ref().unwrap();
                assert_eq!(numbers.len(), batch.edges[0].e_id.len());
                let all = |of: &dyn Fn(usize, u64) -> bool| {
                    numbers.iter().enumerate().all(|(i, &edge)| of(i, edge))
                };
                assert!(weights.as_ref().is_none_or(|w| all(&|i, edge| w[i] == weight(edge))));
                assert!(times.as_ref().is_none_or(|t| all(&|i, edge| t[i] == time(edge))));
                assert_eq!(others.len(), way.values.len());
                if let [times, weights] = &others[..] {
                    assert!(all(&|i, edge| times[i] as i64 == time(edge)));
                    assert!(all(&|i, edge| f32::from_bits(weights[i] as u32) == weight(edge)));
                }
            }
            for keep in [Residency::Decoded, Residency::Pages(vec![0, 2]), Residency::Nothing] {
                for retain_bytes in [0, 8 << 10, 16 << 20] {
                    let resident = Resident::NONE;
                    let way = SampleOptions { resident, ..way.clone() };
                    let options = LoaderOptions { retain_bytes, ..options(way.clone()) };
                    let loader = Loader::new(Arc::clone(&graph), options, &keep, []).unwrap();
                    let (found, stats) = epoch(&loader, &seeds).unwrap();
                    assert!(found == expected, "{way:?} {keep:?} {retain_bytes}");
                    let pages = stats.distinct_pages + stats.repeated_pages;
                    assert_eq!(stats.bytes_ssd, pages * PAGE);
                    assert_eq!(stats.bytes_ssd, stats.bytes_ssd_topology + stats.bytes_ssd_values);
                    assert!(stats.bytes_ssd_values > 0);
                    // The last hop's pages are not kept, nor wanted again.
                    assert!(retain_bytes < 1 << 20 || stats.repeated_pages == 0, "{stats:?}");
                }
            }
        }
        assert_eq!(verify(&sample.path, &Silent, &Cancel::default()).unwrap().damage, []);
    }
}

#[test]
fn numbers_are_read_of_the_chosen_arcs_only() {
    let sample = with_values(&layout(true));
    let graph = sample.open();
    let resident = Resident { numbers: false, ..Resident::ALL };
    let way = SampleOptions { resident, ..by(false, None) };
    let options = LoaderOptions { threads: 1, window: 100, ..options(way) };
    let loader = Loader::new(graph, options, &Residency::Decoded, []).unwrap();
    let (batches, stats) = epoch(&loader, &[5, 6, 70]).unwrap();
    let arcs = batches.iter().flat_map(|(batch, ..)| batch.edges[0].e_id.iter());
    let pages: BTreeSet<u64> = arcs.map(|arc| arc / (PAGE / 4)).collect();
    assert_eq!(stats.bytes_ssd_values, pages.len() as u64 * PAGE);
    assert_eq!((stats.bytes_ssd, stats.repeated_pages), (stats.bytes_ssd_values, 0));
}

/// A star: every arc leads to or from vertex 0, more than a step's pages hold.
#[test]
fn a_hub_of_many_pages_is_chosen_from() {
    let edges: Vec<(u64, u64)> = (1..150_000).map(|leaf| (leaf % 3000, 0)).collect();
    let layout = Layout { vertices: 3000, edges, ..layout(true) };
    let sample = with_values(&layout);
    let graph = sample.open();
    let hub = graph.ids().find(&[0]).unwrap();
    for way in ways() {
        let load = |resident| {
            let options = options(SampleOptions { resident, ..way.clone() });
            Loader::new(Arc::clone(&graph), options, &Residency::Nothing, []).unwrap()
        };
        let (expected, _) = epoch(&load(Resident::ALL), &hub).unwrap();
        let before = graph.memory().budget().used();
        let loader = load(Resident::NONE);
        let (found, stats) = epoch(&loader, &hub).unwrap();
        assert!(found == expected, "{way:?}");
        assert_eq!(stats.repeated_pages, 0);
        let columns = 4 * u64::from(way.weights.is_some()) + 8 * u64::from(way.times.is_some());
        let whole = columns * layout.edges.len() as u64;
        assert!(
            graph.memory().budget().used() >= before + 2 * whole,
            "a hub's values are accounted for"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Whatever memory a loader has, and whatever it keeps of it: the same batches.
    #[test]
    fn memory_changes_no_batch(
        edges in prop::collection::vec((0u64..50, 0u64..50), 1..20_000),
        seeds in prop::collection::vec(0u32..50, 1..60),
        directed in any::<bool>(),
        way in 0usize..6,
        mebibytes in 36u64..60,
        (weights, times, numbers) in any::<(bool, bool, bool)>(),
        keep in 0usize..3,
        retain_bytes in 0usize..40_000,
    ) {
        let layout = Layout { vertices: 50, edges, ..layout(directed) };
        let sample = with_values(&layout);
        let options = LoaderOptions { threads: 1, prefetch: 1, ..options(ways()[way].clone()) };
        let kept = Loader::new(sample.open(), options.clone(), &Residency::Decoded, []).unwrap();
        let (expected, _) = epoch(&kept, &seeds).unwrap();
        let memory = Some(mebibytes << 20);
        let graph = sample.open_as(&OpenOptions { memory, ..small() });
        let timed = options.sample[0].times.is_some();
        let until: Vec<i64> = vec![0; seeds.len()];
        let inputs = Inputs { seeds: &seeds, times: timed.then_some(&until), rank: Rank::default(), bounds: None };
        let (loader, fitted) =
            Loader::planned(&graph, &options, inputs, &Plan::default(), 4).unwrap();
        let (found, _) = epoch(&loader, &seeds).unwrap();
        prop_assert!(found == expected, "{fitted:?}");
        prop_assert!(graph.memory().budget().used() <= mebibytes << 20);
        let keep = vec![Residency::Decoded, Residency::Pages(vec![0]), Residency::Nothing].swap_remove(keep);
        let resident = Resident { weights, times, numbers, values: numbers };
        let way = SampleOptions { resident, ..options.sample[0].clone() };
        let options = LoaderOptions { sample: vec![way], retain_bytes, ..options };
        let loader = Loader::new(sample.open(), options, &keep, []).unwrap();
        let (found, _) = epoch(&loader, &seeds).unwrap();
        prop_assert!(found == expected, "{keep:?} {resident:?} {retain_bytes}");
    }
}

#[test]
fn less_memory_keeps_fewer_columns_and_changes_no_batch() {
    let edges = (0..400_000u64).map(|e| (mix(e) % 2000, mix(e + 7) % 2000)).collect();
    let sample = with_values(&Layout { vertices: 2000, edges, ..layout(true) });
    let seeds: Vec<u32> = (0..100).collect();
    let times = vec![500; seeds.len()];
    let inputs = Inputs { seeds: &seeds, times: Some(&times), rank: Rank::default(), bounds: None };
    let way = LoaderOptions {
        batch_size: 10,
        window: 1,
        prefetch: 1,
        threads: 1,
        retain_bytes: 1 << 20,
        ..options(by(true, Some(Choice::Uniform)))
    };
    let (mut kept, mut expected) = (Vec::new(), None);
    for memory in [33 << 20, 36 << 20, 80 << 20] {
        let graph = sample.open_as(&OpenOptions { memory: Some(memory), ..small() });
        let (loader, fitted) = Loader::planned(&graph, &way, inputs, &Plan::default(), 4).unwrap();
        assert_eq!(fitted.values_bytes, (4 + 8 + 4) * 400_000);
        let (found, stats) = epoch(&loader, &seeds).unwrap();
        assert!(&found == expected.get_or_insert_with(|| found.clone()), "{fitted:?}");
        let all = fitted.kept_values_bytes == fitted.values_bytes;
        assert_eq!(all, stats.bytes_ssd_values == 0);
        assert!(graph.memory().budget().used() <= memory);
        kept.push(fitted.kept_values_bytes);
    }
    assert!(kept[0] < kept[1] && kept[1] < kept[2], "{kept:?}");
    assert_eq!(kept[2], 16 * 400_000);
}

fn stored(graph: Arc<Graph>, way: SampleOptions) -> Loader {
    let options = options(SampleOptions { resident: Resident::NONE, ..way });
    Loader::new(graph, options, &Residency::Decoded, []).unwrap()
}

#[test]
fn damaged_values_end_the_epoch_and_are_named() {
    let seeds: Vec<u32> = (0..3000).collect();
    for (file, way) in [
        ("in.w.f32", by(true, None)),
        ("in.time.i64", by(false, Some(Choice::Last))),
        ("in.edges", by(false, None)),
    ] {
        let sample = with_values(&Layout { stripes: 0, ..layout(true) });
        let path = sample.path.join("edges").join(file);
        let damaged = FileOptions::new().write(true).open(path).unwrap();
        damaged.write_all_at(&[0xA5; 8], PAGE * 2 + 100).unwrap();
        let error = epoch(&stored(sample.open(), way.clone()), &seeds).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        let place = format!("page 2 (offset 8192) of `edges/{file}`");
        assert!(error.to_string().contains(&place), "{error}");
        let kept = Loader::new(sample.open(), options(way), &Residency::Decoded, []).unwrap_err();
        assert!(kept.to_string().contains(&place), "{kept}");
        let damage = verify(&sample.path, &Silent, &Cancel::default()).unwrap().damage;
        assert_eq!(damage.len(), 1, "{damage:?}");
        assert_eq!((damage[0].file.as_str(), damage[0].offset), (&*format!("edges/{file}"), 8192));
    }
}

#[test]
fn drives_that_fail_end_the_epoch_and_passing_faults_do_not() {
    let sample = with_values(&layout(true));
    let seeds: Vec<u32> = (0..900).collect();
    let way = by(true, Some(Choice::Uniform));
    let (expected, _) = epoch(&stored(sample.open(), way.clone()), &seeds).unwrap();
    let faulty = |settings: FaultSettings, attempts: u32| {
        let factory = factory(move |files| {
            let engine = Posix::new(Arc::clone(files), 16);
            let fault = Fault::new(engine, Arc::clone(files), settings);
            let first_pause = std::time::Duration::from_micros(10);
            let retry = RetrySettings { attempts, first_pause };
            Box::new(Retry::new(fault, Arc::clone(files), retry))
        });
        sample.open_as(&OpenOptions { factory: Some(factory), ..small() })
    };
    let settings = FaultSettings {
        seed: 1,
        transient: 0.2,
        short: 0.3,
        reorder: true,
        delay_polls: 3,
        lasting: 0.0,
    };
    let (found, _) = epoch(&stored(faulty(settings, 40), way.clone()), &seeds).unwrap();
    assert!(found == expected);
    // Neighbours are read too, so that the loader can be made at all.
    let settings = FaultSettings { lasting: 0.3, seed: 5, ..FaultSettings::default() };
    let options = options(SampleOptions { resident: Resident::NONE, ..way });
    let loader = Loader::new(faulty(settings, 2), options, &Residency::Nothing, []).unwrap();
    let error = epoch(&loader, &seeds).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let text = error.to_string();
    assert!(text.contains("edges/in.") && text.contains("at offset `"), "{text}");
}

#[test]
fn weights_below_zero_end_the_epoch_that_meets_them() {
    let layout = Layout { vertices: 3, edges: vec![(0, 1), (1, 2)], ..layout(true) };
    let sample = layout.build();
    let columns = vec![NewColumn { name: "w".into(), kind: ValueType::F32 }];
    let mut addition =
        EdgeAddition::begin(&sample.path, columns, Existing::Refuse, Some(64 << 20)).unwrap();
    let ends = Endpoints::U32 { src: vec![0, 1], dst: vec![1, 2] };
    addition.push(&EdgeBatch { ends, weights: None }, &[Column::F32(&[1.0, -0.5])]).unwrap();
    addition.finish(vec![], &Silent, &Cancel::default()).unwrap();
    let graph = sample.open();
    let sound = graph.ids().find(&[1]).unwrap();
    assert!(epoch(&stored(Arc::clone(&graph), by(true, None)), &sound).is_ok());
    let error = epoch(&stored(graph, by(true, None)), &[0, 1, 2]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let text = error.to_string();
    assert!(text.contains("weights `w`: expected weights of 0 or more, got -0.5 of"), "{text}");
}
