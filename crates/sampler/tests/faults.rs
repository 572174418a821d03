//! Drives that fail while batches are prepared.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs::OpenOptions as FileOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use common::{Layout, factory, small, within};
use tiergraph_core::{Error, ErrorKind};
use tiergraph_graph::OpenOptions;
use tiergraph_io::engine::{Fault, FaultSettings, Posix, Retry, RetrySettings};
use tiergraph_sampler::{Fanout, Loader, LoaderOptions, MiniBatch, Residency, SampleOptions};

const LIMIT: Duration = Duration::from_secs(60);

fn faulty(settings: FaultSettings, attempts: u32) -> OpenOptions {
    let factory = factory(move |files| {
        let engine = Posix::new(Arc::clone(files), 16);
        let fault = Fault::new(engine, Arc::clone(files), settings);
        let retry = RetrySettings { attempts, first_pause: Duration::from_micros(10) };
        Box::new(Retry::new(fault, Arc::clone(files), retry))
    });
    OpenOptions { factory: Some(factory), ..small() }
}

fn options() -> LoaderOptions {
    let fanouts = vec![Fanout::Most(5), Fanout::Most(3)];
    LoaderOptions {
        batch_size: 40,
        features: vec![Some("x".into())],
        ..LoaderOptions::new(SampleOptions { fanouts, ..SampleOptions::default() })
    }
}

/// The batches and the bytes of their features, up to an error.
fn epoch(loader: &Loader) -> Result<Vec<(MiniBatch, Vec<u8>)>, Error> {
    let seeds: Vec<u32> = (0..900).collect();
    let batches = loader.epoch(1, &seeds, 0)?;
    batches.map(|p| p.map(|p| (p.batch, p.x[0].as_ref().unwrap().bytes.to_vec()))).collect()
}

#[test]
fn passing_faults_change_nothing() {
    within(LIMIT, || {
        let sample = Layout { stripes: 2, dim: 700, ..Layout::mixed(true) }.build();
        let sound = Loader::new(sample.open(), options(), &Residency::Nothing, []).unwrap();
        let expected = epoch(&sound).unwrap();
        for seed in 0..3 {
            let settings = FaultSettings {
                seed,
                transient: 0.2,
                short: 0.3,
                reorder: true,
                delay_polls: 3,
                lasting: 0.0,
            };
            let graph = sample.open_as(&faulty(settings, 40));
            let loader = Loader::new(graph, options(), &Residency::Nothing, 0..1000).unwrap();
            assert!(epoch(&loader).unwrap() == expected, "seed {seed}");
        }
    });
}

#[test]
fn lasting_faults_end_the_epoch_and_name_the_place() {
    within(LIMIT, || {
        let sample = Layout::mixed(true).build();
        let settings = FaultSettings { lasting: 0.05, ..FaultSettings::default() };
        let loader =
            Loader::new(sample.open_as(&faulty(settings, 2)), options(), &Residency::Nothing, [])
                .unwrap();
        for _ in 0..3 {
            let error = epoch(&loader).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            let message = error.to_string();
            assert!(message.contains("g.tg") && message.contains("at offset `"), "{message}");
        }
    });
}

#[test]
fn damaged_pages_end_the_epoch_and_are_named() {
    within(LIMIT, || {
        for file in ["features/x.rows", "in.rows"] {
            let sample = Layout::mixed(true).build();
            let damaged = FileOptions::new().write(true).open(sample.path.join(file)).unwrap();
            damaged.write_all_at(&[0xA5; 8], 4096 * 2 + 100).unwrap();
            let loader = Loader::new(sample.open(), options(), &Residency::Nothing, []).unwrap();
            let error = epoch(&loader).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format);
            let message = error.to_string();
            assert!(message.contains("page 2 (offset 8192)"), "{message}");
            assert!(message.contains(file), "{message}");
        }
    });
}
