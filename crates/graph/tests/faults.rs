//! Drives that fail: passing faults change nothing, lasting ones are errors that name the place,
//! and neither leaves an opened graph worse than it was.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Job, Layout, PACKED, Sample, base_engine, cold, factory, sound_answers, within};
use tiergraph_core::{Cancel, Error, ErrorKind};
use tiergraph_format::manifest::Codec;
use tiergraph_graph::{Graph, OpenOptions};
use tiergraph_io::engine::{
    Fault, FaultSettings, ModelledDrive, Posix, Retry, RetrySettings, Throttle,
};
use tiergraph_io::{Done, Read, ReadEngine, Wait};

const LIMIT: Duration = Duration::from_secs(60);
const RAW: Layout = Layout { codec: Codec::Raw, ..PACKED };

/// Options whose engines have these faults below their retries.
fn faulty(settings: FaultSettings, attempts: u32, ring: bool, threads: usize) -> OpenOptions {
    let factory = factory(move |files| {
        let fault = Fault::new(base_engine(files, ring), Arc::clone(files), settings);
        let retry = RetrySettings { attempts, first_pause: Duration::from_micros(10) };
        Box::new(Retry::new(fault, Arc::clone(files), retry))
    });
    OpenOptions { factory: Some(factory), ..cold(threads) }
}

#[test]
fn passing_faults_change_no_answer() {
    within(LIMIT, || {
        for layout in [PACKED, Layout { stripes: 2, directed: false, ..PACKED }, RAW] {
            let sample = Sample::new(layout);
            let jobs = Job::all(layout.codec);
            let expected = sound_answers(&sample, &jobs);
            for seed in 0..4 {
                let settings = FaultSettings {
                    seed,
                    transient: 0.2,
                    short: 0.3,
                    reorder: true,
                    delay_polls: 3,
                    lasting: 0.0,
                };
                let options = faulty(settings, 40, seed % 2 == 0, 1 + seed as usize % 3);
                let residency = Some(seed > 1);
                let graph = sample.open(&OpenOptions { residency, ..options }).unwrap();
                for (job, expected) in jobs.iter().zip(&expected) {
                    let answer = job.run(&graph).unwrap();
                    assert!(job.agree(&answer, expected), "{job:?} of {layout:?}, seed {seed}");
                }
            }
        }
    });
}

/// The jobs that read through engines.
fn passes(codec: Codec) -> impl Iterator<Item = Job> {
    Job::all(codec).into_iter().filter(|job| !matches!(job, Job::Degrees(_)))
}

/// An error that says which file and where in it.
fn assert_names_the_place(error: &Error, sample: &Sample) {
    let message = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Io, "{message}");
    let directory = sample.directory.path().display().to_string();
    assert!(message.contains(&directory) && message.contains("at offset `"), "{message}");
}

#[test]
fn lasting_faults_name_file_and_offset_every_time() {
    within(LIMIT, || {
        for layout in [PACKED, Layout { stripes: 3, ..PACKED }, RAW] {
            let sample = Sample::new(layout);
            for ring in [true, false] {
                let settings = FaultSettings { lasting: 1.0, ..FaultSettings::default() };
                let graph = sample.open(&faulty(settings, 2, ring, 2)).unwrap();
                for job in passes(layout.codec) {
                    for _ in 0..2 {
                        assert_names_the_place(&job.run(&graph).unwrap_err(), &sample);
                    }
                }
            }
        }
    });
}

#[test]
fn a_few_lost_pages_give_an_error_or_the_right_answer() {
    within(LIMIT, || {
        let sample = Sample::new(PACKED);
        let jobs = Job::all(Codec::Packed);
        let expected = sound_answers(&sample, &jobs);
        let (mut failed, mut right) = (0, 0);
        for seed in 0..12 {
            let settings = FaultSettings { seed, lasting: 0.03, ..FaultSettings::default() };
            let graph = sample.open(&faulty(settings, 2, true, 2)).unwrap();
            for (job, expected) in jobs.iter().zip(&expected) {
                match job.run(&graph) {
                    Ok(answer) => {
                        assert!(job.agree(&answer, expected), "{job:?}, seed {seed}");
                        right += 1;
                    }
                    Err(e) => {
                        assert_names_the_place(&e, &sample);
                        failed += 1;
                    }
                }
            }
        }
        assert!(failed > 0 && right > 0, "{failed} failed, {right} right");
    });
}

/// An engine whose reads all fail while `broken` is set.
struct Switch {
    inner: Box<dyn ReadEngine>,
    broken: Arc<AtomicBool>,
}

impl ReadEngine for Switch {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        self.inner.submit(reads);
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> tiergraph_core::Result<()> {
        let first = done.len();
        self.inner.poll(done, wait)?;
        if self.broken.load(Ordering::Relaxed) {
            for done in &mut done[first..] {
                done.to.bytes_mut().fill(0xEE);
                let eio = io::Error::from_raw_os_error(5);
                done.result = Err(Error::io("read", "a broken drive", eio));
            }
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}

/// Errors take buffers and leave completions behind: a graph that met many must lose neither.
#[test]
fn a_graph_answers_rightly_once_its_drive_is_back() {
    within(LIMIT, || {
        let small = Layout { block_bytes: 64 << 10, edges: 100_000, ..RAW };
        for layout in [PACKED, RAW, small, Layout { block_bytes: 128 << 10, ..small }] {
            let sample = Sample::new(layout);
            let jobs = Job::all(layout.codec);
            let expected = sound_answers(&sample, &jobs);
            for (threads, residency) in [(1, false), (2, true)] {
                let broken = Arc::new(AtomicBool::new(false));
                let switch = Arc::clone(&broken);
                let factory = factory(move |files| {
                    let broken = Arc::clone(&switch);
                    Box::new(Switch { inner: base_engine(files, true), broken })
                });
                let residency = Some(residency);
                let options = OpenOptions { factory: Some(factory), residency, ..cold(threads) };
                let graph = sample.open(&options).unwrap();
                broken.store(true, Ordering::Relaxed);
                for _ in 0..20 {
                    let error = Job::Components.run(&graph).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Io);
                }
                broken.store(false, Ordering::Relaxed);
                for (job, expected) in jobs.iter().zip(&expected) {
                    let answer = job.run(&graph).unwrap();
                    assert!(job.agree(&answer, expected), "{job:?} of {layout:?}");
                }
            }
        }
    });
}

#[test]
fn a_run_ends_when_another_thread_cancels_it() {
    within(LIMIT, || {
        let sample = Sample::new(PACKED);
        // The whole pass would take minutes.
        let drive = ModelledDrive::new(1e12, 10.0, Duration::from_millis(1)).unwrap();
        let factory = factory(move |files| {
            Box::new(Throttle::new(Posix::new(Arc::clone(files), 1), drive.clone()))
        });
        let options = OpenOptions { factory: Some(factory), ..cold(1) };
        let mut graph = sample.open(&options).unwrap();
        for job in passes(Codec::Packed) {
            graph.set_cancel(Cancel::default());
            let cancel = graph.cancel().clone();
            let canceller = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(150));
                cancel.cancel();
            });
            let error = job.run(&graph).unwrap_err();
            canceller.join().unwrap();
            assert_eq!(error.kind(), ErrorKind::Interrupted, "{job:?}: {error}");
        }
    });
}

#[test]
fn budget_errors_name_what_does_not_fit() {
    let sample = Sample::new(PACKED);
    let options = OpenOptions { memory: Some(1 << 20), ..cold(1) };
    let error = Graph::open(&sample.path, &options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Budget);
    assert!(error.to_string().contains("(the process 24.0 MiB, buffers of 1 workers"), "{error}");
    let graph = sample.open(&cold(1)).unwrap();
    let held = graph.memory().reserve(graph.memory().budget().left(), "everything").unwrap();
    let names = [
        (Job::PageRank, "`the ranks, the workers' sums`"),
        (Job::Components, "`the components`"),
        (Job::Hops, "`the distances and the frontier, the pages of small levels`"),
        (Job::Distances, "`the distances`"),
        (Job::LeastTransposed, "`the values`"),
    ];
    for (job, name) in names {
        let error = job.run(&graph).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Budget);
        assert!(error.to_string().contains(name), "{error}");
    }
    drop(held);
    let used = graph.memory().budget().used();
    Job::Hops.run(&graph).unwrap();
    assert_eq!(graph.memory().budget().used(), used, "the run gave its memory back");
}
