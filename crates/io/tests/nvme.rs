//! The engine of queue pairs, over software controllers that fail in every way.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use common::{PAGE, TestFile, check, check_bytes, run};
use tiergraph_core::ErrorKind;
use tiergraph_io::engine::{Nvme, Retry, RetrySettings};
use tiergraph_io::{Extent, FileSet, NvmeDrives, ReadEngine, StripeSource, Wait};
use tiergraph_nvme::{Faults, SoftwareOptions, Status, Timing};

const LEN: usize = 300 * PAGE + 100;

/// Drives that have a fifth of a second for a command.
fn drives(test: &TestFile, count: usize, options: SoftwareOptions) -> std::sync::Arc<NvmeDrives> {
    let timing = Timing { command: Duration::from_millis(200), ..Timing::default() };
    NvmeDrives::software(&test.files, count, &options, timing).unwrap()
}

fn options(faults: Faults) -> SoftwareOptions {
    SoftwareOptions { faults, ..SoftwareOptions::default() }
}

#[test]
fn blocks_of_any_size_lie_on_any_number_of_drives() {
    for (stripes, unit) in [(1, PAGE), (3, 8 * PAGE)] {
        let test = TestFile::new(LEN, stripes, unit);
        for count in [1, 2, 3, 7] {
            for (block_bytes, most_bytes) in [(512, 8192), (4096, 1 << 20)] {
                let options =
                    SoftwareOptions { block_bytes, most_bytes, ..options(Faults::default()) };
                let mut engine = Nvme::new(&drives(&test, count, options), 5).unwrap();
                let size = if stripes == 1 { 70 * PAGE } else { 4 * PAGE };
                let offsets: Vec<usize> = (0..LEN + 2 * size).step_by(size).collect();
                let read = |(tag, &offset): (usize, &usize)| test.read(offset, size, tag as u64);
                let reads = offsets.iter().enumerate().map(read);
                // A read past the last stripe's end is refused by the file set, as for every engine.
                let reads =
                    reads.filter(|read| (read.offset as usize) < LEN || stripes == 1).collect();
                for done in run(&mut engine, reads, Wait::One) {
                    let offset = offsets[done.tag as usize];
                    check(&test, offset, size, &done);
                }
            }
        }
    }
}

#[test]
fn files_in_extents_of_a_drive_end_where_the_extents_do() {
    let device = TestFile::new(64 * PAGE, 1, PAGE);
    let extents = [(40, 3 * PAGE as u64), (8, 2 * PAGE as u64 + 100)]
        .map(|(page, len)| Extent { start: page * PAGE as u64, len });
    let mut files = FileSet::new();
    let source = StripeSource { path: device.paths[0].clone(), extents: extents.to_vec() };
    let file = files.open_extents(&[source], PAGE as u64).unwrap();
    let test = TestFile { files: std::sync::Arc::new(files), file, ..device };
    let mut engine = Nvme::new(&drives(&test, 1, SoftwareOptions::default()), 4).unwrap();
    let reads = (0..7).map(|page| test.read(page * PAGE, PAGE, page as u64)).collect();
    for done in run(&mut engine, reads, Wait::One) {
        let (first, count) =
            [(40, PAGE), (41, PAGE), (42, PAGE), (8, PAGE), (9, PAGE), (10, 100), (0, 0)]
                [done.tag as usize];
        assert_eq!(*done.result.as_ref().unwrap(), count, "page {}", done.tag);
        check_bytes(first * PAGE, &done.to.bytes()[..count]);
    }
}

#[test]
fn a_failed_command_is_the_reads_error_with_the_drives_status() {
    let test = TestFile::new(LEN, 1, PAGE);
    let failing =
        Faults { failed: 1.0, status: Status::UNRECOVERED_READ_ERROR, ..Faults::default() };
    let mut engine = Nvme::new(&drives(&test, 1, options(failing)), 4).unwrap();
    let done = run(&mut engine, vec![test.read(PAGE, 2 * PAGE, 9)], Wait::All).remove(0);
    let error = done.result.unwrap_err();
    assert_eq!((done.tag, error.kind()), (9, ErrorKind::Io));
    let said = format!("{error:#}");
    assert!(said.contains("stripe0.blocks"), "{said}");
    assert!(said.contains("unrecovered read error"), "{said}");
}

#[test]
fn failures_that_pass_are_mended() {
    let test = TestFile::new(LEN, 1, PAGE);
    let faults = Faults {
        seed: 1,
        failed: 0.1,
        late: 0.2,
        delay: Duration::from_micros(200),
        shuffled: true,
        ..Faults::default()
    };
    let engine = Nvme::new(&drives(&test, 1, options(faults)), 8).unwrap();
    let settings = RetrySettings { attempts: 10, first_pause: Duration::from_micros(10) };
    let mut engine = Retry::new(engine, test.files.clone(), settings);
    let reads = (0..300).map(|page| test.read(page * PAGE, PAGE, page as u64)).collect();
    for done in run(&mut engine, reads, Wait::One) {
        check_bytes(done.tag as usize * PAGE, &done.to.bytes()[..PAGE]);
    }
}

#[test]
fn lost_and_repeated_completions_end_the_engine_in_an_error_and_its_time() {
    let test = TestFile::new(LEN, 1, PAGE);
    for faults in [
        Faults { dropped: 0.05, ..Faults::default() },
        Faults { repeated: 0.2, seed: 2, ..Faults::default() },
    ] {
        let drives = drives(&test, 1, options(faults));
        let mut engine = Nvme::new(&drives, 8).unwrap();
        let read = |number: usize| test.read(number % 300 * PAGE, PAGE, number as u64);
        let mut reads: VecDeque<_> = (0..20_000).map(read).collect();
        let (begin, mut done) = (Instant::now(), Vec::new());
        let error = loop {
            engine.submit(&mut reads);
            match engine.poll(&mut done, Wait::One) {
                Ok(()) => assert!(!reads.is_empty() || engine.in_flight() > 0, "all were read"),
                Err(error) => break error,
            }
            // Whatever was completed holds its own bytes.
            for done in done.drain(..) {
                check_bytes(done.tag as usize % 300 * PAGE, &done.to.bytes()[..PAGE]);
            }
        };
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(begin.elapsed() < Duration::from_secs(20));
        let again = engine.poll(&mut done, Wait::One).unwrap_err();
        assert!(again.to_string().contains("an earlier failure"), "{again}");
        drop(engine);
        // Its queue pairs are not used again; those of the next engine are others.
        assert!(Nvme::new(&drives, 8).is_ok());
    }
}

#[test]
fn a_command_that_is_lost_among_others_is_told_in_its_own_time() {
    let test = TestFile::new(LEN, 1, PAGE);
    // One of a thousand; and no other takes longer than a millisecond.
    let faults = Faults { dropped: 0.001, seed: 5, ..Faults::default() };
    let drives = drives(&test, 1, options(faults));
    let mut engine = Nvme::new(&drives, 8).unwrap();
    let (mut reads, mut done, mut number) = (VecDeque::new(), Vec::new(), 0);
    let mut oldest = std::collections::HashMap::new();
    let error = loop {
        while reads.len() < 8 {
            reads.push_back(test.read(number % 300 * PAGE, PAGE, number as u64));
            number += 1;
        }
        let before = reads.len();
        let first = number as u64 - before as u64;
        engine.submit(&mut reads);
        let taken = (before - reads.len()) as u64;
        oldest.extend((first..first + taken).map(|tag| (tag, Instant::now())));
        match engine.poll(&mut done, Wait::One) {
            Ok(()) => done.drain(..).for_each(|done| {
                oldest.remove(&done.tag);
            }),
            Err(error) => break error,
        }
    };
    let lost = oldest.values().min().unwrap().elapsed();
    assert!(lost > Duration::from_millis(190) && lost < Duration::from_millis(700), "{lost:?}");
    assert!(
        error.to_string().contains("expected a completion within `200 ms`, got none"),
        "{error}"
    );
}

#[test]
fn queue_pairs_go_from_engine_to_engine_and_end_where_the_drives_do() {
    let test = TestFile::new(LEN, 1, PAGE);
    let few = SoftwareOptions { queue_pairs: 2, ..SoftwareOptions::default() };
    let drives = drives(&test, 1, few);
    for _ in 0..10 {
        let mut engines = [(); 2].map(|()| Nvme::new(&drives, 2).unwrap());
        let error = Nvme::new(&drives, 2).err().unwrap();
        assert!(error.to_string().contains("use fewer `--threads`"), "{error}");
        for engine in &mut engines {
            let done = run(engine, vec![test.read(0, 40 * PAGE, 1)], Wait::All).remove(0);
            check(&test, 0, 40 * PAGE, &done);
            // Dropped with reads in flight.
            engine.submit(&mut VecDeque::from([test.read(0, 40 * PAGE, 2)]));
        }
    }
}
