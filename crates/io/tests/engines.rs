//! Every engine over real files: the right bytes, once for each read, whatever the order.

mod common;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use common::{PAGE, TestFile, check, check_bytes, run};
use proptest::prelude::*;
use tiergraph_core::ErrorKind;
use tiergraph_io::engine::{Posix, ReaderThreads, uring};
use tiergraph_io::{
    Access, Destination, EngineChoice, EngineFactory, EnginePool, Extent, FileSet, Opening,
    ReadEngine, StripeSource, Wait, open_engine,
};
use tiergraph_mem::AlignedBuf;

const CHOICES: [EngineChoice; 4] =
    [EngineChoice::Auto, EngineChoice::Posix, EngineChoice::PosixPool, EngineChoice::Null];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_reads_bring_the_files_bytes(
        len in 0usize..150_000,
        stripes in 1usize..=3,
        unit_pages in 1usize..=4,
        depth in 1usize..=9,
        wait in prop_oneof![Just(Wait::No), Just(Wait::One), Just(Wait::All)],
        asked in prop::collection::vec((0usize..42, 1usize..=6), 0..24),
    ) {
        let test = TestFile::new(len, stripes, unit_pages * PAGE);
        // A striped read stays in its unit.
        let inside = |page: usize, pages: usize| match stripes {
            1 => pages,
            _ => pages.min(unit_pages - page % unit_pages),
        };
        let places: Vec<(usize, usize)> =
            asked.iter().map(|&(page, n)| (page * PAGE, inside(page, n) * PAGE)).collect();
        for mut engine in test.all_engines(depth) {
            let reads = places.iter().zip(0..).map(|(&(at, len), tag)| test.read(at, len, tag));
            let mut done = run(&mut *engine, reads.collect(), wait);
            done.sort_by_key(|d| d.tag);
            prop_assert_eq!(done.len(), places.len());
            for (i, (completion, &(at, len))) in done.iter().zip(&places).enumerate() {
                prop_assert_eq!(completion.tag, i as u64);
                check(&test, at, len, completion);
            }
        }
    }
}

#[test]
fn the_files_end_is_short_and_padded_with_zeros() {
    let test = TestFile::new(5000, 1, PAGE);
    for choice in CHOICES {
        let (mut engine, _) = open_engine(choice, &test.files, 2).unwrap();
        let done = run(&mut *engine, vec![test.read(PAGE, 2 * PAGE, 0)], Wait::One);
        assert_eq!(*done[0].result.as_ref().unwrap(), 5000 - PAGE);
        check_bytes(PAGE, &done[0].to.bytes()[..5000 - PAGE]);
        assert!(done[0].to.bytes()[5000 - PAGE..].iter().all(|&b| b == 0));
        let done = run(&mut *engine, vec![test.read(8 * PAGE, PAGE, 0)], Wait::One);
        assert_eq!(*done[0].result.as_ref().unwrap(), 0);
    }
}

#[test]
fn buffered_files_are_read_as_well_and_reported() {
    let test = TestFile::opened(100_000, 2, PAGE, Opening::Buffered);
    assert!(test.files.accesses().all(|(_, a)| *a == Access::Buffered("as asked".into())));
    for mut engine in test.all_engines(4) {
        let reads = (0..24).map(|page| test.read(page * PAGE, PAGE, page as u64)).collect();
        for done in run(&mut *engine, reads, Wait::One) {
            check(&test, done.tag as usize * PAGE, PAGE, &done);
        }
    }
}

#[test]
fn a_file_system_without_direct_reads_falls_back_and_says_so() {
    let path = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
    if !path.exists() {
        println!("skipped: sysfs is not mounted");
        return;
    }
    let mut files = FileSet::new();
    files.open(path).unwrap();
    let access: Vec<Access> = files.accesses().map(|(_, access)| access.clone()).collect();
    assert_eq!(
        access,
        [Access::Buffered("the file system refuses `O_DIRECT` (EINVAL)".to_owned())]
    );
}

#[test]
fn a_full_engine_gives_the_read_back_and_a_polled_one_takes_it() {
    let test = TestFile::new(64 * PAGE, 1, PAGE);
    for mut engine in test.all_engines(2) {
        let mut reads: VecDeque<_> =
            (0..3).map(|i| test.read(i * PAGE, PAGE, i as u64 + 1)).collect();
        engine.submit(&mut reads);
        engine.submit(&mut reads);
        let refused = &reads[0];
        assert_eq!((reads.len(), refused.tag, refused.to.len()), (1, 3, PAGE), "{}", engine.name());
        let mut done = Vec::new();
        engine.poll(&mut done, Wait::All).unwrap();
        assert_eq!((done.len(), engine.in_flight()), (2, 0));
        engine.submit(&mut reads);
        assert!(reads.is_empty());
        engine.poll(&mut done, Wait::One).unwrap();
        assert_eq!(done[2].tag, 3);
        engine.poll(&mut done, Wait::All).unwrap();
        engine.poll(&mut done, Wait::One).unwrap();
        assert_eq!(done.len(), 3, "an idle engine waits for nothing");
    }
}

#[test]
fn a_read_that_cannot_be_done_completes_with_its_error_and_its_buffer() {
    let test = TestFile::new(64 * PAGE, 2, 4 * PAGE);
    for mut engine in test.all_engines(4) {
        let misaligned = test.read(512, PAGE, 1);
        let across = test.read(3 * PAGE, 2 * PAGE, 2);
        let mut long = test.read(0, PAGE, 3);
        long.len = 2 * PAGE;
        let good = test.read(3 * PAGE, PAGE, 4);
        let done = run(&mut *engine, vec![misaligned, across, long, good], Wait::All);
        for completion in done {
            assert!(!completion.to.is_empty());
            match completion.tag {
                4 => check(&test, 3 * PAGE, PAGE, &completion),
                _ => assert_eq!(completion.result.unwrap_err().kind(), ErrorKind::Input),
            }
        }
    }
}

#[test]
fn what_the_system_says_of_a_read_is_told_with_the_place() {
    // A directory can be opened, and not be read; this one is there whatever temporary files are on.
    let mut files = FileSet::with_opening(Opening::Buffered);
    let file = files.open(Path::new("/proc")).unwrap();
    let directory = TestFile { files: Arc::new(files), file, ..TestFile::new(PAGE, 1, PAGE) };
    // A drive has no directories.
    let asks_none = ["null", "nvme", "passthrough"];
    let engines = directory.all_engines(2).into_iter();
    for mut engine in engines.filter(|engine| !asks_none.contains(&engine.name())) {
        let done = run(&mut *engine, vec![directory.read(PAGE, PAGE, 0)], Wait::One).remove(0);
        assert_eq!(
            done.result.unwrap_err().to_string(),
            "cannot read `/proc`: expected `4096` bytes at offset `4096`: Is a directory (os error 21)"
        );
    }
}

#[test]
fn dropping_an_engine_with_reads_in_flight_is_safe() {
    let test = TestFile::new(16 << 20, 1, PAGE);
    for round in 0..8 {
        for mut engine in test.all_engines(16) {
            for tag in 0..16 {
                engine.submit(&mut [test.read((tag << 20) as usize, 1 << 20, tag)].into());
            }
            let mut done = Vec::new();
            if round % 2 == 0 {
                engine.poll(&mut done, Wait::No).unwrap();
            }
            for completion in &done {
                check(&test, (completion.tag << 20) as usize, 1 << 20, completion);
            }
            drop(engine);
            // Memory that a late read would write into.
            let fresh: Vec<_> = (0..16).map(|tag| test.read(0, 1 << 20, tag)).collect();
            assert!(fresh.iter().all(|read| read.to.bytes().iter().all(|&byte| byte == 0x55)));
        }
    }
}

#[test]
fn an_idle_engine_moves_between_threads() {
    let test = TestFile::new(64 * PAGE, 1, PAGE);
    for mut engine in test.all_engines(4) {
        for round in 0..3 {
            let reads: Vec<_> = (0..16).map(|p| test.read(p * PAGE, PAGE, p as u64)).collect();
            let moved = std::thread::spawn(move || {
                let done = run(&mut *engine, reads, Wait::One);
                (engine, done)
            });
            let (back, done) = moved.join().unwrap();
            done.iter().for_each(|d| check(&test, d.tag as usize * PAGE, PAGE, d));
            engine = back;
            assert_eq!(done.len(), 16, "round {round}");
        }
    }
}

#[test]
fn engines_are_named_in_reports() {
    let test = TestFile::new(PAGE, 1, PAGE);
    let (_, report) = open_engine(EngineChoice::Posix, &test.files, 7).unwrap();
    assert_eq!(
        (report.engine, report.why.as_str(), report.depth),
        ("posix", "it was asked for", 7)
    );
    for (choice, depth, why) in [
        ("modelled:p5510*2", 7, "2 drives `p5510` are modelled by software controllers"),
        ("modelled:p5510*2:posix", 1, "`posix` is held back to 2 modelled drives `p5510`"),
    ] {
        let (mut engine, report) = open_engine(choice.parse().unwrap(), &test.files, 7).unwrap();
        assert_eq!((report.engine, report.depth, &*report.why), ("modelled", depth, why));
        let done = run(&mut *engine, vec![test.read(0, PAGE, 0)], Wait::All);
        check(&test, 0, PAGE, &done[0]);
    }
    let (_, report) = open_engine(EngineChoice::Auto, &test.files, 7).unwrap();
    match uring::probe() {
        Ok(()) => assert_eq!(report.why, "io_uring works here"),
        Err(reason) => assert_eq!((report.engine, report.why), ("posix-pool", reason)),
    }
    for engine in test.all_engines(2) {
        let reads_when_polled = engine.name() == "posix";
        assert_eq!(engine.reads_when_polled(), reads_when_polled, "{}", engine.name());
        assert_eq!(Box::new(engine).reads_when_polled(), reads_when_polled);
    }
    for (choice, reads_when_polled) in [(EngineChoice::Posix, true), (EngineChoice::Null, false)] {
        let factory: EngineFactory = choice.clone().factory(2);
        let engines = EnginePool::new(Arc::clone(&test.files), factory, 1);
        assert!(Arc::ptr_eq(engines.files(), &test.files));
        assert_eq!(engines.lease().unwrap().reads_when_polled(), reads_when_polled);
    }
    assert_eq!(Posix::new(Arc::clone(&test.files), 0).capacity(), 1);
    let threads = ReaderThreads::posix(&test.files, 12).unwrap();
    assert_eq!((threads.capacity(), threads.name()), (12, "posix-pool"));
    assert_eq!(format!("{threads:?}"), "ReaderThreads(posix-pool, 0 in flight)");
}

#[test]
fn extents_of_a_device_are_read_as_one_file() {
    // The file stands for a raw device; the extents lie in it in another order.
    let device = TestFile::new(16 * PAGE, 1, PAGE);
    let extent = |page: usize, pages: usize| Extent {
        start: (page * PAGE) as u64,
        len: (pages * PAGE) as u64,
    };
    let source = |extents: &[Extent]| StripeSource {
        path: device.paths[0].clone(),
        extents: extents.to_vec(),
    };
    let mut files = FileSet::new();
    let file = files.open_extents(&[source(&[extent(8, 2), extent(1, 3)])], PAGE as u64).unwrap();
    assert_eq!(files.len(file), 5 * PAGE as u64);
    let (mut engine, _) = open_engine(EngineChoice::Auto, &Arc::new(files), 4).unwrap();
    let read = |page: usize, pages: usize| {
        let read = device.read(page * PAGE, pages * PAGE, page as u64);
        tiergraph_io::Read { file, ..read }
    };
    let reads = vec![read(0, 2), read(2, 3), read(1, 2)];
    for done in run(&mut *engine, reads, Wait::All) {
        match done.tag {
            0 => check_bytes(8 * PAGE, done.to.bytes()),
            2 => check_bytes(PAGE, done.to.bytes()),
            _ => {
                let error = done.result.unwrap_err().to_string();
                assert!(error.contains("a read inside one extent"), "{error}");
            }
        }
    }
    let half = Extent { start: 512, len: PAGE as u64 };
    for wrong in [&[extent(15, 2)][..], &[half], &[Extent { start: 0, len: 100 }, extent(2, 1)]] {
        let error = FileSet::new().open_extents(&[source(wrong)], PAGE as u64).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "{wrong:?}");
    }
}

#[test]
fn a_destination_without_bytes_is_empty() {
    let destination = |bytes| Destination::from(AlignedBuf::zeroed(bytes).unwrap());
    assert!(destination(0).is_empty() && !destination(PAGE).is_empty());
}

#[test]
fn reader_threads_have_ended_when_their_engine_is_dropped() {
    let test = TestFile::new(16 << 20, 1, PAGE);
    let mut engine = ReaderThreads::posix(&test.files, 16).unwrap();
    engine.submit(&mut (0..16).map(|i| test.read((i << 20) as usize, 1 << 20, i)).collect());
    assert!(Arc::strong_count(&test.files) > 1);
    drop(engine);
    assert_eq!(Arc::strong_count(&test.files), 1, "a thread has the files");
}
