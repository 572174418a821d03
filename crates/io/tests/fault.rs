//! What the fault engine does to reads: as often as it was told, the same way for the same seed, and so
//! that bytes nobody may look at are wrong.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/scripted.rs"]
mod scripted;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use common::{PAGE, TestFile, byte_at, run};
use scripted::{Pages, Scripted, ended};
use tiergraph_core::ErrorKind;
use tiergraph_io::engine::{Fault, FaultSettings, Null, Posix};
use tiergraph_io::{Done, Read, ReadEngine, Wait};

const READS: usize = 2000;

fn engine(test: &TestFile, settings: FaultSettings) -> Fault<Null> {
    Fault::new(Null::new(Arc::clone(&test.files), 64), Arc::clone(&test.files), settings)
}

/// What comes of reads of `pages` pages each, one after the other in the file, by their number.
fn outcomes(test: &TestFile, settings: FaultSettings, pages: usize) -> Vec<Done> {
    let read = |i: usize| test.read(i * pages * PAGE, pages * PAGE, i as u64);
    let reads = (0..test.len / (pages * PAGE)).map(read).collect();
    let mut done = run(&mut engine(test, settings), reads, Wait::All);
    done.sort_by_key(|done| done.tag);
    done
}

/// Whether so many of [`READS`] are the share that was asked for.
fn is_about(count: usize, share: f64) -> bool {
    (count as f64 / READS as f64 - share).abs() < 0.05
}

#[test]
fn faults_are_as_frequent_as_they_were_told_whatever_the_seed() {
    let test = TestFile::new(READS * PAGE, 1, PAGE);
    let none = FaultSettings::default();
    for seed in [0, 7, u64::MAX, 1 << 63] {
        for share in [0.0, 0.1, 0.5, 1.0] {
            let count = |settings: FaultSettings, is: fn(&Done) -> bool| {
                let settings = FaultSettings { seed, ..settings };
                outcomes(&test, settings, 1).iter().filter(|done| is(done)).count()
            };
            let has_failed = |done: &Done| done.result.is_err();
            let failed = count(FaultSettings { transient: share, ..none }, has_failed);
            assert!(is_about(failed, share), "{failed} reads fail at {share}, seed {seed}");
            let lost = count(FaultSettings { lasting: share, ..none }, has_failed);
            assert!(is_about(lost, share), "{lost} pages are lost at {share}, seed {seed}");
            let short = count(FaultSettings { short: share, ..none }, |done| {
                done.result.as_ref().is_ok_and(|&bytes| bytes < PAGE)
            });
            assert!(is_about(short, share), "{short} reads are short at {share}, seed {seed}");
        }
    }
}

#[test]
fn seeds_differ_and_one_seed_does_the_same_again() {
    let test = TestFile::new(READS * PAGE, 1, PAGE);
    let kinds = [
        FaultSettings { transient: 0.5, ..FaultSettings::default() },
        FaultSettings { lasting: 0.5, ..FaultSettings::default() },
    ];
    for kind in kinds {
        let failed = |seed| -> Vec<bool> {
            let done = outcomes(&test, FaultSettings { seed, ..kind }, 1);
            done.iter().map(|done| done.result.is_err()).collect()
        };
        assert_eq!(failed(6), failed(6));
        for pair in [[6, 7], [6, 4], [0, 1], [u64::MAX, u64::MAX - 1]] {
            let [one, other] = pair.map(failed);
            let differ = one.iter().zip(&other).filter(|(a, b)| a != b).count();
            assert!(is_about(differ, 0.5), "{differ} reads differ between seeds {pair:?}");
        }
    }
}

#[test]
fn a_lost_page_fails_every_read_that_it_is_in() {
    let test = TestFile::new(256 * PAGE, 1, PAGE);
    let settings = FaultSettings { seed: 5, lasting: 0.2, ..FaultSettings::default() };
    let failed = |pages| -> Vec<bool> {
        outcomes(&test, settings, pages).iter().map(|done| done.result.is_err()).collect()
    };
    let lost = failed(1);
    assert!(lost.contains(&true) && lost.contains(&false));
    for pages in [1, 2, 4] {
        let any: Vec<bool> = lost.chunks(pages).map(|pages| pages.contains(&true)).collect();
        assert_eq!(failed(pages), any, "{pages} pages at a time");
    }
}

#[test]
fn each_stripe_loses_pages_of_its_own() {
    let (stripes, pages) = (3, 256);
    let test = TestFile::new(stripes * pages * PAGE, stripes, PAGE);
    let settings = FaultSettings { seed: 5, lasting: 0.2, ..FaultSettings::default() };
    let mut lost = vec![BTreeSet::new(); stripes];
    for done in outcomes(&test, settings, 1).iter().filter(|done| done.result.is_err()) {
        let unit = done.tag as usize;
        lost[unit % stripes].insert(unit / stripes);
    }
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let both = lost[one].intersection(&lost[other]).count();
        let most = lost[one].len().max(lost[other].len());
        assert!(2 * both < most, "stripes {one} and {other}: {both} of {most} in common");
    }
}

#[test]
fn what_a_broken_read_was_to_bring_is_garbage_and_nothing_else_is() {
    let test = TestFile::new(64 * PAGE, 1, PAGE);
    let mut lengths = BTreeSet::new();
    for (transient, short) in [(1.0, 0.0), (0.0, 1.0)] {
        let settings = FaultSettings { transient, short, ..FaultSettings::default() };
        let mut engine = engine(&test, settings);
        let read = |i| Read { at: PAGE, len: 2 * PAGE, ..test.read(i * PAGE, 4 * PAGE, i as u64) };
        for done in run(&mut engine, (0..32).map(read).collect(), Wait::All) {
            let good = done.result.unwrap_or(0);
            assert!(good < 2 * PAGE);
            lengths.insert(good);
            let first = done.tag * PAGE as u64;
            let expected = |i: usize| match i {
                i if (PAGE..PAGE + good).contains(&i) => byte_at(first + (i - PAGE) as u64),
                i if (PAGE..3 * PAGE).contains(&i) => 0xEE,
                _ => 0x55,
            };
            assert!(done.to.bytes().iter().copied().eq((0..4 * PAGE).map(expected)));
        }
    }
    let (first, last) = (lengths.first().unwrap(), lengths.last().unwrap());
    assert!(lengths.len() > 16 && *first < PAGE && *last > PAGE, "{lengths:?}");
}

#[test]
fn a_read_that_the_engine_below_refuses_or_that_finds_nothing_is_not_broken() {
    let test = TestFile::new(4 * PAGE, 1, PAGE);
    let all = FaultSettings { transient: 1.0, lasting: 1.0, short: 1.0, ..Default::default() };
    let done = run(&mut engine(&test, all), vec![test.read(512, PAGE, 0)], Wait::One);
    assert_eq!(done[0].result.as_ref().unwrap_err().kind(), ErrorKind::Input);
    let short = FaultSettings { short: 1.0, ..Default::default() };
    let done = run(&mut engine(&test, short), vec![test.read(8 * PAGE, PAGE, 0)], Wait::One);
    assert_eq!(*done[0].result.as_ref().unwrap(), 0);
    assert!(done[0].to.bytes().iter().all(|&byte| byte == 0x55));
}

#[test]
fn completions_are_held_back_for_at_most_so_many_polls() {
    let test = TestFile::new(READS * PAGE, 1, PAGE);
    for most in [0, 1, 3] {
        let settings = FaultSettings { delay_polls: most, ..Default::default() };
        let mut engine = engine(&test, settings);
        engine.submit(&mut (0..64).map(|i| test.read(i * PAGE, PAGE, i as u64)).collect());
        let mut arrived = BTreeMap::new();
        for poll in 0..=most {
            let mut done = Vec::new();
            engine.poll(&mut done, Wait::No).unwrap();
            arrived.insert(poll, done.len());
        }
        assert_eq!(arrived.values().sum::<usize>(), 64, "{arrived:?}");
        assert!(arrived.values().all(|&count| count > 0), "{arrived:?}");
        assert_eq!(engine.in_flight(), 0);
    }
}

#[test]
fn shuffled_completions_come_in_any_order_behind_those_that_were_there() {
    let test = TestFile::new(READS * PAGE, 1, PAGE);
    let settings = FaultSettings { reorder: true, ..Default::default() };
    let mut engine = engine(&test, settings);
    let mut orders = BTreeSet::new();
    for _ in 0..200 {
        let mut done = Vec::new();
        for first in [0, 3] {
            engine.submit(&mut (first..first + 3).map(|i| test.read(0, PAGE, i)).collect());
            engine.poll(&mut done, Wait::All).unwrap();
        }
        let tags: Vec<u64> = done.iter().map(|done| done.tag).collect();
        assert!(tags[..3].iter().all(|&tag| tag < 3), "{tags:?}");
        orders.insert(tags[3..].to_vec());
    }
    assert_eq!(orders.len(), 6, "{orders:?}");
}

#[test]
fn who_waits_for_one_completion_that_is_held_back_gets_it() {
    let test = TestFile::new(8 * PAGE, 1, PAGE);
    let settings = FaultSettings { delay_polls: 5, ..Default::default() };
    let posix = Posix::new(Arc::clone(&test.files), 4);
    let mut engine = Fault::new(posix, Arc::clone(&test.files), settings);
    engine.submit(&mut (0..4).map(|i| test.read(0, PAGE, i)).collect());
    let mut done = Vec::new();
    for _ in 0..4 {
        let before = done.len();
        engine.poll(&mut done, Wait::One).unwrap();
        assert!(done.len() > before || engine.in_flight() == 0);
        assert_eq!(done.len() + engine.in_flight(), 4);
    }
    engine.poll(&mut done, Wait::All).unwrap();
    assert_eq!(done.len(), 4);
}

#[test]
fn faults_wait_below_only_while_they_hold_nothing_back() {
    let test = TestFile::new(8 * PAGE, 1, PAGE);
    let inner = Scripted::new(&[Pages(1); 3]);
    let calls = Arc::clone(&inner.calls);
    let mut engine = Fault::new(inner, Arc::clone(&test.files), FaultSettings::default());
    assert_eq!((engine.capacity(), engine.in_flight(), engine.name()), (3, 0, "fault"));
    engine.submit(&mut (1..4).map(|tag| test.read(0, PAGE, tag)).collect());
    assert_eq!((ended(&mut engine, Wait::No), engine.in_flight()), (vec![], 3));
    assert_eq!(ended(&mut engine, Wait::One), [(1, Some(1))]);
    assert_eq!(ended(&mut engine, Wait::All), [(2, Some(1)), (3, Some(1))]);
    assert_eq!(ended(&mut engine, Wait::One), []);
    let reads = "read 0 1 to 0, read 0 1 to 0, read 0 1 to 0";
    assert_eq!(calls.lock().unwrap().join(", "), format!("{reads}, No, One, All, All, One"));
}

#[test]
fn faults_that_hold_completions_back_have_no_room_for_others_and_only_look_below() {
    let test = TestFile::new(8 * PAGE, 1, PAGE);
    let inner = Scripted::new(&[Pages(1); 3]);
    let calls = Arc::clone(&inner.calls);
    let settings = FaultSettings { seed: 1, delay_polls: 1000, ..FaultSettings::default() };
    let mut engine = Fault::new(inner, Arc::clone(&test.files), settings);
    let mut reads: VecDeque<Read> = (1..6).map(|tag| test.read(0, PAGE, tag)).collect();
    engine.submit(&mut reads);
    assert_eq!((reads.len(), engine.in_flight()), (2, 3));
    assert_eq!(ended(&mut engine, Wait::One), [(1, Some(1))]);
    let waits = std::mem::take(&mut *calls.lock().unwrap()).split_off(3);
    assert!(waits.len() > 1 && waits[0] == "One" && waits[1..].iter().all(|wait| wait == "No"));
    engine.submit(&mut reads);
    assert_eq!((reads.len(), engine.in_flight()), (1, 3));
    // What is held back takes a place of its own: nothing is in flight below when it is submitted.
    let mut engine =
        Fault::new(Null::new(Arc::clone(&test.files), 3), Arc::clone(&test.files), settings);
    let mut reads: VecDeque<Read> = (1..6).map(|tag| test.read(0, PAGE, tag)).collect();
    engine.submit(&mut reads);
    assert_eq!(ended(&mut engine, Wait::No), []);
    engine.submit(&mut reads);
    assert_eq!((reads.len(), engine.in_flight()), (2, 3));
}
