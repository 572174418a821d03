//! Broken reads: never wrong bytes, never a hang, and an error that names the place.

mod common;

use std::fs::OpenOptions;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{PAGE, TestFile, check, run};
use proptest::prelude::*;
use tiergraph_core::ErrorKind;
use tiergraph_io::engine::{
    Fault, FaultSettings, ModelledDrive, Null, Posix, Retry, RetrySettings, Throttle, Uring, uring,
};
use tiergraph_io::{Done, ReadEngine, Wait};

/// No pause worth waiting for.
const QUICK: RetrySettings = RetrySettings { attempts: 5, first_pause: Duration::from_micros(10) };

/// A whole-reading engine over `inner` with faults.
fn faulty(
    test: &TestFile,
    inner: Box<dyn ReadEngine>,
    settings: FaultSettings,
) -> Retry<Fault<Box<dyn ReadEngine>>> {
    let fault = Fault::new(inner, Arc::clone(&test.files), settings);
    Retry::new(fault, Arc::clone(&test.files), QUICK)
}

/// Runs `job` on a thread of its own and fails if it takes longer than `limit`.
fn within<T: Send + 'static>(limit: Duration, job: impl FnOnce() -> T + Send + 'static) -> T {
    let (finished, result) = mpsc::channel();
    std::thread::spawn(move || finished.send(job()));
    result.recv_timeout(limit).expect("the job hangs or has failed")
}

/// Each completion is right or says where it failed; returns how many failed.
fn right_or_named(test: &TestFile, done: &[Done], places: &[(usize, usize)]) -> usize {
    let mut failed = 0;
    for completion in done {
        let (at, len) = places[completion.tag as usize];
        match &completion.result {
            Ok(_) => check(test, at, len, completion),
            Err(error) => {
                let message = error.to_string();
                assert_eq!(error.kind(), ErrorKind::Io);
                assert!(message.contains(".blocks`") && message.contains("at offset `"));
                failed += 1;
            }
        }
    }
    failed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn faults_never_hang_and_never_give_wrong_bytes(
        seed: u64,
        transient in 0.0..0.5f64,
        lasting in prop_oneof![Just(0.0), 0.0..0.1f64],
        short in 0.0..0.9f64,
        reorder: bool,
        delay_polls in 0u32..4,
        stripes in 1usize..=3,
        wait in prop_oneof![Just(Wait::No), Just(Wait::One), Just(Wait::All)],
    ) {
        let settings = FaultSettings { seed, transient, lasting, short, reorder, delay_polls };
        within(Duration::from_secs(60), move || {
            let test = TestFile::new(100_001, stripes, 4 * PAGE);
            let places: Vec<_> = (0..7).map(|unit| (unit * 4 * PAGE, 4 * PAGE)).collect();
            for inner in test.engines(4) {
                let mut engine = faulty(&test, inner, settings);
                let reads = places.iter().zip(0..).map(|(&(at, len), tag)| test.read(at, len, tag));
                let mut done = run(&mut engine, reads.collect(), wait);
                done.sort_by_key(|d| d.tag);
                assert!(done.iter().map(|d| d.tag).eq(0..7), "each read completes once");
                let failed = right_or_named(&test, &done, &places);
                assert!(lasting > 0.0 || transient > 0.0 || failed == 0);
            }
        });
    }
}

#[test]
fn passing_faults_are_repeated_away() {
    let test = TestFile::new(256 * PAGE, 1, PAGE);
    let settings = FaultSettings { seed: 7, transient: 0.2, short: 0.5, ..Default::default() };
    let places: Vec<_> = (0..64).map(|block| (block * 4 * PAGE, 4 * PAGE)).collect();
    let stubborn = RetrySettings { attempts: 40, ..QUICK };
    for inner in test.engines(8) {
        let fault = Fault::new(inner, Arc::clone(&test.files), settings);
        let mut engine = Retry::new(fault, Arc::clone(&test.files), stubborn);
        let reads = places.iter().zip(0..).map(|(&(at, len), tag)| test.read(at, len, tag));
        let done = run(&mut engine, reads.collect(), Wait::One);
        assert_eq!(right_or_named(&test, &done, &places), 0);
    }
}

#[test]
fn without_retry_the_faults_are_there() {
    let test = TestFile::new(256 * PAGE, 1, PAGE);
    let settings = FaultSettings { seed: 7, transient: 0.2, short: 0.5, ..Default::default() };
    let null = Null::new(Arc::clone(&test.files), 8);
    let mut engine = Fault::new(null, Arc::clone(&test.files), settings);
    let done = run(&mut engine, (0..64).map(|b| test.read(b * PAGE, PAGE, 0)).collect(), Wait::One);
    let failed = done.iter().filter(|d| d.result.is_err()).count();
    let short = done.iter().filter(|d| d.result.as_ref().is_ok_and(|&n| n < PAGE)).count();
    assert!(failed > 3 && short > 10, "{failed} failed, {short} short");
}

#[test]
fn reordering_reorders() {
    let test = TestFile::new(256 * PAGE, 1, PAGE);
    let settings = FaultSettings { seed: 3, reorder: true, delay_polls: 3, ..Default::default() };
    let null = Null::new(Arc::clone(&test.files), 64);
    let mut engine = Fault::new(null, Arc::clone(&test.files), settings);
    let reads = (0..64).map(|b| test.read(b * PAGE, PAGE, b as u64)).collect();
    let done = run(&mut engine, reads, Wait::All);
    assert!(!done.is_sorted_by_key(|d| d.tag));
}

#[test]
fn a_lasting_fault_names_file_and_offset() {
    let test = TestFile::new(64 * PAGE, 2, 4 * PAGE);
    let settings = FaultSettings { seed: 1, lasting: 1.0, ..Default::default() };
    for inner in test.engines(4) {
        let mut engine = faulty(&test, inner, settings);
        let done = run(&mut engine, vec![test.read(13 * PAGE, PAGE, 0)], Wait::One);
        let error = done[0].result.as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(
            error.to_string(),
            format!(
                "cannot read `{}`: expected `4096` bytes at offset `20480`, got `5` failed \
                 attempts: Input/output error (os error 5)\n\nhint: look for the drive's errors \
                 with `dmesg`; other blocks may still be read",
                test.paths[1].display()
            )
        );
    }
}

#[test]
fn a_file_cut_short_after_opening_is_an_error_and_not_a_hang() {
    let test = TestFile::new(64 * PAGE, 1, PAGE);
    OpenOptions::new().write(true).open(&test.paths[0]).unwrap().set_len(100).unwrap();
    for inner in test.engines(4).into_iter().filter(|engine| engine.name() != "null") {
        let is_drive = inner.name() == "nvme";
        let mut engine = Retry::new(inner, Arc::clone(&test.files), QUICK);
        let done = run(&mut engine, vec![test.read(0, 2 * PAGE, 0)], Wait::One);
        assert_eq!(done[0].to.len(), 2 * PAGE, "the caller's buffer comes back");
        if is_drive {
            // A drive knows blocks; the controller in front of the file has lost these.
            let error = done[0].result.as_ref().unwrap_err().to_string();
            assert!(error.contains("unrecovered read error"), "{error}");
            continue;
        }
        assert_eq!(
            done[0].result.as_ref().unwrap_err().to_string(),
            format!(
                "cannot read `{}`: expected `8192` bytes at offset `0`, got `100` after `5` \
                 attempts: unexpected end of file\n\nhint: the file was cut short after it was \
                 opened: build or copy the graph again",
                test.paths[0].display()
            )
        );
    }
}

#[test]
fn dropping_faulty_engines_with_reads_in_flight_is_safe() {
    if let Err(reason) = uring::probe() {
        println!("skipped: {reason}");
        return;
    }
    let test = TestFile::new(4 << 20, 1, PAGE);
    let settings =
        FaultSettings { transient: 0.5, short: 0.5, delay_polls: 3, ..Default::default() };
    for seed in 0..16 {
        let inner = Box::new(Uring::new(Arc::clone(&test.files), 4).unwrap());
        let mut engine = faulty(&test, inner, FaultSettings { seed, ..settings });
        (0..4).for_each(|i| engine.submit(&mut [test.read((i << 20) as usize, 1 << 20, i)].into()));
        engine.poll(&mut Vec::new(), Wait::No).unwrap();
        drop(engine);
    }
}

#[test]
fn a_modelled_drive_is_no_faster_than_its_model() {
    let test = TestFile::new(64 * PAGE, 1, PAGE);
    // 40 reads of 4 KiB at 4 MiB/s take 39 ms, at 500 a second 80 ms.
    for (bandwidth, iops, least) in [(4.0 * 1048576.0, f64::INFINITY, 39), (1e12, 500.0, 80)] {
        let drive = ModelledDrive::new(bandwidth, iops, Duration::from_millis(1)).unwrap();
        let began = Instant::now();
        // Two engines share the drive.
        for half in 0..2 {
            let posix = Posix::new(Arc::clone(&test.files), 8);
            let mut engine = Throttle::new(posix, drive.clone());
            assert_eq!(engine.name(), "modelled");
            let reads = (0..20).map(|page| test.read(page * PAGE, PAGE, page as u64)).collect();
            let wait = if half == 0 { Wait::One } else { Wait::All };
            for done in run(&mut engine, reads, wait) {
                check(&test, done.tag as usize * PAGE, PAGE, &done);
            }
        }
        assert!(began.elapsed() >= Duration::from_millis(least));
    }
}
