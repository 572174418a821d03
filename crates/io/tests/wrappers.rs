//! What engines that wrap another ask of it, call by call.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/scripted.rs"]
mod scripted;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{PAGE, TestFile};
use scripted::{Fails, Outcome, Pages, Scripted, ended};
use tiergraph_io::engine::{ModelledDrive, Retry, RetrySettings, Throttle};
use tiergraph_io::{Read, ReadEngine, Wait};

/// An hour, which no test waits for.
const HOUR: Duration = Duration::from_secs(3600);

struct Scene {
    test: TestFile,
    calls: Arc<Mutex<Vec<String>>>,
    engine: Retry<Scripted>,
}

impl Scene {
    fn new(outcomes: &[Outcome], attempts: u32, first_pause: Duration) -> Self {
        let test = TestFile::new(8 * PAGE, 1, PAGE);
        let inner = Scripted::new(outcomes);
        let calls = Arc::clone(&inner.calls);
        let settings = RetrySettings { attempts, first_pause };
        let engine = Retry::new(inner, Arc::clone(&test.files), settings);
        Self { test, calls, engine }
    }

    fn submit(&mut self, pages: usize, tag: u64) {
        self.engine.submit(&mut [self.test.read(0, pages * PAGE, tag)].into());
    }

    fn calls(&self) -> String {
        std::mem::take(&mut *self.calls.lock().unwrap()).join(", ")
    }
}

#[test]
fn who_repeats_reads_is_called_what_reads_them() {
    let scene = Scene::new(&[], 1, HOUR);
    assert_eq!((scene.engine.name(), scene.engine.capacity()), ("scripted", 3));
}

#[test]
fn a_short_read_goes_on_at_once_where_it_ended_as_long_as_there_is_more() {
    let mut scene = Scene::new(&[Pages(1), Pages(2), Pages(1)], 2, HOUR);
    scene.submit(4, 5);
    assert_eq!(ended(&mut scene.engine, Wait::All), [(5, Some(4))]);
    assert_eq!(scene.calls(), "read 0 4 to 0, One, read 1 3 to 1, One, read 3 1 to 3, One");
}

#[test]
fn a_read_that_failed_is_repeated_when_its_pause_has_passed() {
    let pause = Duration::from_millis(5);
    let mut scene = Scene::new(&[Fails(libc::EIO), Pages(1)], 3, pause);
    scene.submit(1, 5);
    assert_eq!(ended(&mut scene.engine, Wait::One), [(5, Some(1))]);
    // It sleeps until then: the engine below is polled no more often.
    assert_eq!(scene.calls(), "read 0 1 to 0, One, read 0 1 to 0, One");
    let mut scene = Scene::new(&[Fails(libc::EIO), Pages(1)], 3, HOUR);
    scene.submit(1, 5);
    scene.submit(1, 6);
    assert_eq!(ended(&mut scene.engine, Wait::One), [(6, Some(1))]);
    assert_eq!(scene.calls(), "read 0 1 to 0, read 0 1 to 0, One, One", "one of each read");
    assert_eq!(ended(&mut scene.engine, Wait::No), []);
    assert_eq!((scene.calls().as_str(), scene.engine.in_flight()), ("No", 1));
}

#[test]
fn an_error_that_stays_is_not_repeated() {
    for code in [libc::EBADF, libc::EINVAL, libc::ENXIO] {
        let mut scene = Scene::new(&[Fails(code)], 3, Duration::ZERO);
        scene.submit(1, 5);
        assert_eq!(ended(&mut scene.engine, Wait::All), [(5, None)]);
        assert_eq!(scene.calls(), "read 0 1 to 0, One");
    }
    for code in [libc::EIO, libc::EAGAIN, libc::EINTR] {
        let mut scene = Scene::new(&[Fails(code); 3], 3, Duration::ZERO);
        scene.submit(1, 5);
        assert_eq!(ended(&mut scene.engine, Wait::All), [(5, None)]);
        assert_eq!(scene.calls().matches("read").count(), 3);
    }
}

#[test]
fn who_waits_for_one_read_gets_one() {
    let mut scene = Scene::new(&[Pages(1); 3], 3, HOUR);
    assert_eq!((scene.engine.capacity(), scene.engine.reads_when_polled()), (3, false));
    (1..4).for_each(|tag| scene.submit(1, tag));
    assert_eq!(ended(&mut scene.engine, Wait::One), [(1, Some(1))]);
    assert_eq!(ended(&mut scene.engine, Wait::All), [(2, Some(1)), (3, Some(1))]);
    assert_eq!(ended(&mut scene.engine, Wait::One), []);
}

#[test]
fn a_modelled_drive_holds_back_what_is_not_due_and_has_no_room_meanwhile() {
    let test = TestFile::new(8 * PAGE, 1, PAGE);
    let drive = |latency| ModelledDrive::new(f64::INFINITY, f64::INFINITY, latency).unwrap();
    let reads = || -> VecDeque<Read> { (1..5).map(|tag| test.read(0, PAGE, tag)).collect() };
    let mut engine = Throttle::new(Scripted::new(&[Pages(1); 3]), drive(HOUR));
    let mut all = reads();
    engine.submit(&mut all);
    assert_eq!((all.len(), engine.in_flight(), engine.capacity()), (1, 3, 3));
    assert_eq!(ended(&mut engine, Wait::No), []);
    engine.submit(&mut all);
    assert_eq!((all.len(), engine.in_flight()), (1, 3));
    // Those that are due come, one to who waits for one.
    let mut engine = Throttle::new(Scripted::new(&[Pages(1); 3]), drive(Duration::ZERO));
    engine.submit(&mut reads());
    assert_eq!(ended(&mut engine, Wait::One), [(1, Some(1))]);
    assert_eq!(ended(&mut engine, Wait::All), [(2, Some(1)), (3, Some(1))]);
    assert_eq!((ended(&mut engine, Wait::One), engine.in_flight()), (vec![], 0));
}

#[test]
fn a_modelled_drive_sleeps_until_the_next_read_is_due() {
    let test = TestFile::new(8 * PAGE, 1, PAGE);
    let latency = Duration::from_millis(5);
    let drive = ModelledDrive::new(f64::INFINITY, f64::INFINITY, latency).unwrap();
    let inner = Scripted::new(&[Pages(1)]);
    let calls = Arc::clone(&inner.calls);
    let mut engine = Throttle::new(inner, drive);
    engine.submit(&mut [test.read(0, PAGE, 1)].into());
    assert_eq!(ended(&mut engine, Wait::One), [(1, Some(1))]);
    let calls = calls.lock().unwrap().join(", ");
    // It may be due at the first poll, where this thread was kept waiting.
    assert!("read 0 1 to 0, One, No".starts_with(&calls), "{calls}");
}
