//! Which thread a ring belongs to, and how deep it is.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::thread;

use common::{PAGE, TestFile, check, run};
use tiergraph_io::engine::{Uring, uring};
use tiergraph_io::{ReadEngine, Wait};

/// A ring for so many reads; none where the system gives no io_uring.
fn ring(test: &TestFile, depth: usize) -> Option<Uring> {
    match uring::probe() {
        Ok(()) => Some(Uring::new(Arc::clone(&test.files), depth).unwrap()),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

#[test]
fn a_ring_with_reads_in_flight_serves_its_own_thread_only() {
    let test = TestFile::new(4 << 20, 1, PAGE);
    let Some(mut engine) = ring(&test, 4) else { return };
    (0..4)
        .for_each(|tag| engine.submit(&mut [test.read((tag << 20) as usize, 1 << 20, tag)].into()));
    let mut done = Vec::new();
    engine.poll(&mut done, Wait::One).unwrap();
    engine.submit(&mut [test.read(0, 1 << 20, 9)].into());
    let elsewhere = std::thread::spawn(move || {
        let error = engine.poll(&mut Vec::new(), Wait::All).unwrap_err();
        drop(engine);
        error
    });
    assert_eq!(
        elsewhere.join().unwrap().to_string(),
        "cannot poll an io_uring: expected the thread that polled it first, while reads are in \
         flight, got another thread"
    );
}

#[test]
fn a_ring_belongs_to_the_thread_that_polls_it_first() {
    let test = TestFile::new(8 * PAGE, 1, PAGE);
    let Some(mut engine) = ring(&test, 4) else { return };
    engine.submit(&mut (0..4).map(|page| test.read(page * PAGE, PAGE, page as u64)).collect());
    let elsewhere = thread::spawn(move || {
        let mut done = Vec::new();
        engine.poll(&mut done, Wait::All).unwrap();
        (engine, done)
    });
    let (mut engine, done) = elsewhere.join().unwrap();
    assert_eq!((done.len(), engine.in_flight(), engine.name()), (4, 0, "uring"));
    done.iter().for_each(|done| check(&test, done.tag as usize * PAGE, PAGE, done));
    // Idle, it moves on.
    let done = run(&mut engine, vec![test.read(4 * PAGE, PAGE, 0)], Wait::One);
    check(&test, 4 * PAGE, PAGE, &done[0]);
}

#[test]
fn a_ring_holds_as_many_reads_as_it_was_asked_for_within_its_bounds() {
    let test = TestFile::new(PAGE, 1, PAGE);
    for (asked, depth) in [(0, 1), (1, 1), (5, 5), (100_000, 4096)] {
        let Some(engine) = ring(&test, asked) else { return };
        assert_eq!(engine.capacity(), depth);
    }
}

#[test]
fn a_read_that_is_refused_is_given_back_without_waiting_for_others() {
    let test = TestFile::new(8 * PAGE, 1, PAGE);
    let Some(mut engine) = ring(&test, 4) else { return };
    engine.submit(&mut [test.read(512, PAGE, 1)].into());
    assert_eq!(engine.in_flight(), 1);
    let mut done = Vec::new();
    engine.poll(&mut done, Wait::One).unwrap();
    assert_eq!((done.len(), engine.in_flight()), (1, 0));
    assert!(done[0].result.is_err());
    engine.submit(&mut [test.read(512, PAGE, 2), test.read(0, PAGE, 3)].into());
    assert_eq!(engine.in_flight(), 2);
    engine.poll(&mut done, Wait::All).unwrap();
    let tags: Vec<u64> = done.iter().map(|done| done.tag).collect();
    assert_eq!((tags, engine.in_flight()), (vec![1, 2, 3], 0));
    check(&test, 0, PAGE, &done[2]);
    // It takes a place until then.
    let mut reads = (0..5).map(|tag| test.read(512, PAGE, tag)).collect();
    engine.submit(&mut reads);
    assert_eq!((reads.len(), engine.in_flight()), (1, 4));
}
