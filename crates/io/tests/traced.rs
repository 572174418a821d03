//! The timeline of reads: one span for each, from when it was taken until it ended.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/scripted.rs"]
mod scripted;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{PAGE, TestFile};
use scripted::{Fails, Pages, Scripted, ended};
use tiergraph_core::trace::{Trace, Track};
use tiergraph_io::engine::{Posix, Traced};
use tiergraph_io::{Read, ReadEngine, Wait};

#[test]
fn each_read_that_ended_is_a_span_of_its_worker() {
    let test = TestFile::new(8 * PAGE, 1, PAGE);
    let trace = Trace::on();
    let mut engine = Traced::new(Scripted::new(&[Pages(1), Fails(libc::EIO)]), trace.clone(), 9);
    assert_eq!((engine.capacity(), engine.name()), (3, "scripted"));
    assert!(!engine.reads_when_polled());
    let posix = Posix::new(Arc::clone(&test.files), 1);
    assert!(Traced::new(posix, trace.clone(), 1).reads_when_polled());
    let mut reads: VecDeque<Read> = (1..5).map(|tag| test.read(0, PAGE, tag)).collect();
    engine.submit(&mut reads);
    assert_eq!((reads.len(), engine.in_flight()), (1, 3));
    let spans = || {
        let path = test.directory.path().join("trace.json");
        trace.write(&path).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        (text.matches("\"name\":\"read\"").count(), text.matches("\"tid\":9").count())
    };
    assert_eq!(ended(&mut engine, Wait::No), []);
    assert_eq!(spans(), (0, 0));
    assert_eq!(ended(&mut engine, Wait::One), [(1, Some(1))]);
    assert_eq!(spans(), (1, 1));
    assert_eq!(ended(&mut engine, Wait::One), [(2, None)]);
    assert_eq!(spans(), (2, 2));
}

#[test]
fn a_span_begins_when_its_read_was_taken() {
    let test = TestFile::new(8 * PAGE, 1, PAGE);
    let trace = Trace::on();
    let mut engine = Traced::new(Scripted::new(&[Pages(1); 5]), trace.clone(), 0);
    let mut reads: VecDeque<Read> = (1..6).map(|tag| test.read(0, PAGE, tag)).collect();
    let later = || {
        let now = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        (now, Instant::now())
    };
    // Seconds from `since` on in which a read was in flight that has ended.
    let busy = |since| trace.busy_seconds(Track::Storage, since).unwrap();
    let begin = Instant::now();
    let mut rest = reads.split_off(1);
    engine.submit(&mut reads);
    let (taken, end) = later();
    // Of these it takes two.
    engine.submit(&mut rest);
    assert_eq!(rest.len(), 2);
    assert_eq!(ended(&mut engine, Wait::One), [(1, Some(1))]);
    assert!(busy(begin) >= (end - taken).as_secs_f64(), "the first is not taken for the second");
    (2..4).for_each(|tag| assert_eq!(ended(&mut engine, Wait::One), [(tag, Some(1))]));
    let (before, taken) = later();
    engine.submit(&mut rest);
    (4..6).for_each(|tag| assert_eq!(ended(&mut engine, Wait::One), [(tag, Some(1))]));
    let most = taken.elapsed().as_secs_f64();
    assert!(busy(before) <= most + 1e-9, "what there was no room for was not taken yet");
}
