//! One suite for every engine × destination × consumer: each block once, with its bytes, whatever is
//! resident and whatever fails; nothing in flight after an error, a cancel or a drop.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{PAGE, TestFile, byte_at};
use tiergraph_cache::{BlockCache, BlockFile, BlockKey};
use tiergraph_core::metrics::Totals;
use tiergraph_core::trace::Trace;
use tiergraph_core::{Cancel, Error, ErrorKind, Result, ThreadPool};
use tiergraph_io::engine::{
    Fault, FaultSettings, ModelledDrive, Null, Nvme, Posix, ReaderThreads, Retry, RetrySettings,
    Throttle, Uring, uring,
};
use tiergraph_io::pipeline::{
    Block, Buffers, Consumer, NextPass, Pass, Plan, ReadWorkers, Request, Surroundings, Worker,
};
use tiergraph_io::{EngineFactory, EnginePool, EngineReport, FileSet, ReadEngine};
use tiergraph_mem::AlignedBuf;
use tiergraph_nvme::{Faults, SoftwareOptions};

const BLOCK: usize = 8 * PAGE;
const BLOCKS: usize = 37;
const BUFFERS: usize = 3;

/// The engines: what reads, and what is wrapped around it.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Posix,
    PosixPool,
    Uring,
    Null,
    /// Queue pairs of software controllers.
    Nvme,
    /// The same, which fail, are late and complete in any order; and what mends that.
    NvmeMended,
    /// A modelled drive.
    Throttled,
    /// Faults that pass, short reads, disorder, delays; and what mends them.
    Mended,
    /// Pages that are lost.
    Broken,
}

fn kinds() -> Vec<Kind> {
    use Kind::{Mended, Null, Nvme, NvmeMended, Posix, PosixPool, Throttled, Uring};
    let mut kinds = vec![Posix, PosixPool, Null, Nvme, NvmeMended, Throttled, Mended];
    match uring::probe() {
        Ok(()) => kinds.push(Uring),
        Err(reason) => println!("skipped uring: {reason}"),
    }
    kinds
}

fn pool(test: &TestFile, kind: Kind) -> Arc<EnginePool> {
    let drives = match kind {
        Kind::Nvme => Some(test.drives(SoftwareOptions::default())),
        Kind::NvmeMended => Some(test.drives(SoftwareOptions {
            block_bytes: 512,
            most_bytes: 8192,
            faults: Faults {
                seed: 7,
                failed: 0.05,
                late: 0.1,
                delay: Duration::from_micros(100),
                shuffled: true,
                ..Faults::default()
            },
            ..SoftwareOptions::default()
        })),
        _ => None,
    };
    let nvme = move || drives.as_ref().map(|drives| Nvme::new(drives, 6)).unwrap();
    let factory: EngineFactory = Arc::new(move |files: &Arc<FileSet>| {
        let of = || Arc::clone(files);
        let retry = RetrySettings { attempts: 8, first_pause: Duration::from_micros(10) };
        let broken = |settings| {
            let settings = FaultSettings { seed: 7, ..settings };
            let fault = Fault::new(Posix::new(of(), 6), of(), settings);
            Box::new(Retry::new(fault, of(), retry))
        };
        let engine: Box<dyn ReadEngine> = match kind {
            Kind::Posix => Box::new(Posix::new(of(), 6)),
            Kind::PosixPool => Box::new(ReaderThreads::posix(files, 6)?),
            Kind::Uring => Box::new(Uring::new(of(), 6)?),
            Kind::Null => Box::new(Null::new(of(), 6)),
            Kind::Nvme => Box::new(nvme()?),
            Kind::NvmeMended => Box::new(Retry::new(nvme()?, of(), retry)),
            Kind::Throttled => {
                let drive = ModelledDrive::new(4e9, 1e5, Duration::from_micros(20))?;
                Box::new(Throttle::new(Posix::new(of(), 6), drive))
            }
            Kind::Mended => broken(FaultSettings {
                transient: 0.1,
                short: 0.2,
                reorder: true,
                delay_polls: 3,
                ..FaultSettings::default()
            }),
            Kind::Broken => broken(FaultSettings { lasting: 0.01, ..FaultSettings::default() }),
        };
        let report = EngineReport { engine: engine.name(), why: String::new(), depth: 6 };
        Ok((engine, report))
    });
    EnginePool::new(Arc::clone(&test.files), factory, 8)
}

/// How a consumer treats blocks.
#[derive(Debug, Clone, Copy)]
enum Manner {
    /// Gives each back at once: a CPU's visitor.
    AtOnce,
    /// Holds on to the last few: a device's copies.
    Later,
    /// As `Later`, and takes some of the pass after.
    Ahead,
}

/// What a worker got, and what fails.
struct Taker<'a> {
    manner: Manner,
    /// The blocks of the pass's requests.
    blocks: &'a [usize],
    got: Vec<usize>,
    held: VecDeque<Block>,
    /// Blocks of the pass after this.
    ahead: usize,
    is_over: bool,
    /// The block at which a consumer fails, counted by all.
    fail: &'a AtomicUsize,
}

impl Consumer for Taker<'_> {
    const ACTIVITY: &'static str = "test";

    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()> {
        let first = (self.blocks[block.number] * BLOCK) as u64;
        let is_right = |(at, &byte): (u64, &u8)| byte == byte_at(at);
        assert_eq!(block.len, BLOCK);
        assert!((first..).zip(&block.as_ref()[..BLOCK]).all(is_right), "block at {first}");
        self.ahead += usize::from(self.is_over);
        self.got.push(self.blocks[block.number]);
        match self.manner {
            Manner::AtOnce => back.push(block),
            Manner::Later | Manner::Ahead => self.held.push_back(block),
        }
        match self.fail.fetch_sub(1, Ordering::Relaxed) {
            1 => Err(Error::new(ErrorKind::Device, "compute")),
            _ => Ok(()),
        }
    }

    fn give_back(&mut self, back: &mut Vec<Block>, wait: bool) -> Result<()> {
        while self.held.len() > if wait { 0 } else { 2 } {
            back.extend(self.held.pop_front());
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.is_over = true;
        Ok(())
    }

    fn has_room_ahead(&self) -> bool {
        matches!(self.manner, Manner::Ahead) && self.ahead < 2
    }

    fn forget(&mut self, back: &mut Vec<Block>) -> Result<()> {
        self.got.clear();
        back.extend(self.held.drain(..));
        Ok(())
    }
}

struct Setting {
    test: TestFile,
    workers: ReadWorkers,
    engines: Arc<EnginePool>,
    threads: usize,
    cache: BlockCache,
    totals: Totals,
    trace: Trace,
    cancel: Cancel,
}

impl Setting {
    fn new(kind: Kind, threads: usize, resident: usize) -> Self {
        let test = TestFile::new(BLOCKS * BLOCK, 1, BLOCK);
        let engines = pool(&test, kind);
        let buffers = |_| Buffers::of_blocks(BLOCK, BUFFERS, 0, BUFFERS);
        let workers =
            ReadWorkers::new(Arc::new(ThreadPool::new(threads)), Arc::clone(&engines), buffers);
        Self {
            workers,
            test,
            engines,
            threads,
            cache: BlockCache::new((resident * BLOCK) as u64),
            totals: Totals::default(),
            trace: Trace::off(),
            cancel: Cancel::default(),
        }
    }

    fn takers<'a>(
        &self,
        manner: Manner,
        blocks: &'a [usize],
        fail: &'a AtomicUsize,
    ) -> Vec<Mutex<Taker<'a>>> {
        let taker = |_| {
            let (got, held) = (Vec::new(), VecDeque::new());
            Mutex::new(Taker { manner, blocks, got, held, ahead: 0, is_over: false, fail })
        };
        (0..self.threads).map(taker).collect()
    }

    /// The blocks that the consumers of a pass got, ascending, and how many bytes were read.
    fn pass(
        &mut self,
        blocks: &[usize],
        next: NextPass,
        takers: &mut [Mutex<Taker<'_>>],
    ) -> Result<(Vec<usize>, u64)> {
        let (file, len) = (self.test.file, BLOCK);
        let request = |&block: &usize| {
            let key = Some(BlockKey { file: BlockFile::Tiles, block: block as u64 });
            Request { file, offset: (block * BLOCK) as u64, len, key }
        };
        let requests: Vec<Request> = blocks.iter().map(request).collect();
        takers.iter_mut().for_each(|taker| {
            let taker = taker.get_mut().unwrap();
            (taker.is_over, taker.ahead) = (false, 0);
        });
        let before = self.totals.get().bytes_read;
        let around = Surroundings {
            cancels: [&self.cancel; 2],
            totals: &self.totals,
            trace: &self.trace,
            residency: Some(&self.cache),
            held: 0,
            op: "finish the pass",
        };
        self.workers.pass(&requests, next, around, |number| takers[number].lock().unwrap())?;
        let mut got = Vec::new();
        for taker in takers.iter_mut() {
            let taker = taker.get_mut().unwrap();
            let of_this = taker.got.len() - taker.ahead;
            got.extend(taker.got.drain(..of_this));
            assert!(taker.held.len() <= taker.ahead, "blocks of this pass are held");
        }
        got.sort_unstable();
        Ok((got, self.totals.get().bytes_read - before))
    }
}

#[test]
fn every_consumer_of_every_engine_gets_each_block_once() {
    use NextPass::{Same, Unknown};
    let all: Vec<usize> = (0..BLOCKS).collect();
    let some: Vec<usize> = (0..BLOCKS).filter(|block| block % 5 == 0).collect();
    let reversed: Vec<usize> = (0..BLOCKS).rev().collect();
    let manners =
        [(Manner::AtOnce, 1), (Manner::AtOnce, 3), (Manner::Later, 2), (Manner::Ahead, 2)];
    for kind in kinds() {
        for (manner, threads) in manners {
            for resident in [0, BLOCKS / 3, BLOCKS] {
                let what = format!("{kind:?} {manner:?} {threads} {resident}");
                let mut set = Setting::new(kind, threads, resident);
                let never = AtomicUsize::new(0);
                let mut takers = set.takers(manner, &all, &never);
                for (pass, next) in [Unknown, Same, Same, Unknown].into_iter().enumerate() {
                    let (got, bytes) = set.pass(&all, next, &mut takers).unwrap();
                    assert_eq!(got, all, "{what}, pass {pass}");
                    let here = if pass == 0 { 0 } else { resident };
                    assert_eq!(bytes, ((BLOCKS - here) * BLOCK) as u64, "{what}, pass {pass}");
                }
                assert_eq!(set.cache.resident_bytes(), (resident * BLOCK) as u64, "{what}");
                // What was resident when the next pass began is read again where it is so no more.
                set.pass(&all, Same, &mut takers).unwrap();
                set.cache.set_capacity(0);
                assert_eq!(set.pass(&all, Unknown, &mut takers).unwrap().0, all, "{what}");
                // What was begun for a pass that does not come is forgotten.
                set.pass(&all, Same, &mut takers).unwrap();
                for taker in &mut takers {
                    taker.get_mut().unwrap().blocks = &some;
                }
                let (got, _) = set.pass(&some, Unknown, &mut takers).unwrap();
                assert_eq!(got, some, "{what}");
                // Another order, in which as many must be read.
                let mut set = Setting::new(kind, threads, 0);
                let mut takers = set.takers(manner, &all, &never);
                set.pass(&all, Same, &mut takers).unwrap();
                takers.iter_mut().for_each(|taker| taker.get_mut().unwrap().blocks = &reversed);
                assert_eq!(set.pass(&reversed, Unknown, &mut takers).unwrap().0, all, "{what}");
            }
        }
    }
}

#[test]
fn a_pass_whose_consumer_fails_leaves_nothing_behind() {
    let all: Vec<usize> = (0..BLOCKS).collect();
    for kind in kinds() {
        for manner in [Manner::AtOnce, Manner::Later, Manner::Ahead] {
            let mut set = Setting::new(kind, 2, BLOCKS / 4);
            for at in [1, 2, 5, BLOCKS / 2, BLOCKS] {
                let fail = AtomicUsize::new(at);
                let mut takers = set.takers(manner, &all, &fail);
                let error = set.pass(&all, NextPass::Same, &mut takers).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Device, "{kind:?} {manner:?} {at}");
                // Whatever a consumer had came back, of the pass after too.
                assert!(takers.iter_mut().all(|taker| taker.get_mut().unwrap().held.is_empty()));
                drop(takers);
                let never = AtomicUsize::new(0);
                let mut takers = set.takers(manner, &all, &never);
                for next in [NextPass::Same, NextPass::Unknown] {
                    let (got, _) = set.pass(&all, next, &mut takers).unwrap();
                    assert_eq!(got, all, "{kind:?} {manner:?} after a failure at {at}");
                }
            }
        }
    }
}

#[test]
fn a_lost_page_is_an_error_that_names_it_and_other_blocks_are_read_again() {
    let all: Vec<usize> = (0..BLOCKS).collect();
    let mut set = Setting::new(Kind::Broken, 2, 0);
    let never = AtomicUsize::new(0);
    for _ in 0..3 {
        let mut takers = set.takers(Manner::AtOnce, &all, &never);
        let error = set.pass(&all, NextPass::Same, &mut takers).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("stripe0.blocks"), "{error}");
    }
    // A block without a lost page.
    let whole = |block: usize| {
        let mut set = Setting::new(Kind::Broken, 1, 0);
        let blocks = [block];
        let never = AtomicUsize::new(0);
        let mut takers = set.takers(Manner::AtOnce, &blocks, &never);
        set.pass(&blocks, NextPass::Unknown, &mut takers).is_ok()
    };
    let good: Vec<usize> = (0..BLOCKS).filter(|&block| whole(block)).collect();
    assert!(!good.is_empty() && good.len() < BLOCKS);
    let mut takers = set.takers(Manner::Later, &good, &never);
    assert_eq!(set.pass(&good, NextPass::Unknown, &mut takers).unwrap().0, good);
}

#[test]
fn a_cancelled_pass_ends_and_its_engines_can_be_leased_again() {
    let all: Vec<usize> = (0..BLOCKS).collect();
    for kind in kinds() {
        let mut set = Setting::new(kind, 2, 0);
        let never = AtomicUsize::new(0);
        let mut takers = set.takers(Manner::Later, &all, &never);
        set.pass(&all, NextPass::Same, &mut takers).unwrap();
        set.cancel.cancel();
        let error = set.pass(&all, NextPass::Same, &mut takers).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{kind:?}");
        let Setting { workers, engines, test, .. } = set;
        drop(workers);
        let mut leased = engines.lease().unwrap();
        assert_eq!(leased.in_flight(), 0, "{kind:?}");
        let done = common::run(&mut leased, vec![test.read(0, BLOCK, 3)], tiergraph_io::Wait::All);
        assert_eq!(done.len(), 1);
    }
}

#[test]
fn workers_that_are_dropped_with_reads_ahead_wait_for_them() {
    let all: Vec<usize> = (0..BLOCKS).collect();
    for kind in kinds() {
        for _ in 0..4 {
            let mut set = Setting::new(kind, 3, 0);
            let never = AtomicUsize::new(0);
            let mut takers = set.takers(Manner::AtOnce, &all, &never);
            set.pass(&all, NextPass::Same, &mut takers).unwrap();
            drop(set);
        }
    }
}

/// A reader of pages, which does other work while reads are in flight.
struct Pages<'a> {
    plan: &'a Plan,
    got: Vec<u64>,
    pieces: usize,
}

impl Consumer for Pages<'_> {
    const ACTIVITY: &'static str = "pages";

    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()> {
        let first = self.plan.request(block.number).offset;
        let is_right = |(at, &byte): (u64, &u8)| byte == byte_at(at);
        assert!((first..).zip(&block.as_ref()[..block.len]).all(is_right));
        self.got.push(first / PAGE as u64);
        back.push(block);
        Ok(())
    }

    fn idle(&mut self) -> Result<bool> {
        self.pieces = self.pieces.saturating_sub(1);
        Ok(self.pieces > 0)
    }
}

#[test]
fn one_worker_reads_pages_and_works_meanwhile() {
    let test = TestFile::new(BLOCKS * BLOCK, 1, BLOCK);
    for kind in kinds() {
        let bytes = 2 * PAGE;
        let buffers = Buffers::of_pages(AlignedBuf::batch(4, bytes).unwrap(), bytes);
        assert_eq!(buffers.free_bytes(), 4 * bytes as u64);
        let mut worker = Worker::new(0, Box::new(pool(&test, kind).lease().unwrap()), buffers);
        let (totals, trace, cancel) = (Totals::default(), Trace::off(), Cancel::default());
        for call in 1..4 {
            let offset = |i: usize| (i * 3 * PAGE) as u64;
            let request = |i| Request { file: test.file, offset: offset(i), len: bytes, key: None };
            let plan = Plan::all(call, (0..30).map(request).collect(), 1);
            let around = Surroundings {
                cancels: [&cancel; 2],
                totals: &totals,
                trace: &trace,
                residency: None,
                held: 0,
                op: "read pages",
            };
            let mut pages = Pages { plan: &plan, got: Vec::new(), pieces: 5 };
            worker.run(&Pass::of_one(&plan, around), &mut pages).unwrap();
            assert!(worker.is_idle(), "{kind:?}");
            pages.got.sort_unstable();
            assert_eq!(pages.got, (0..30).map(|i| 3 * i).collect::<Vec<u64>>(), "{kind:?}");
            assert_eq!(plan.into_requests().len(), 30);
            assert_eq!(worker.buffers().free_bytes(), 4 * bytes as u64, "{kind:?}");
        }
        assert_eq!(totals.get().reads, 90, "{kind:?}");
    }
}

#[test]
fn a_pool_gives_idle_engines_again_and_keeps_no_more_than_it_was_told() {
    let test = TestFile::new(BLOCK, 1, BLOCK);
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let factory: EngineFactory = Arc::new(move |files: &Arc<FileSet>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let report = EngineReport { engine: "posix", why: String::new(), depth: 2 };
        Ok((Box::new(Posix::new(Arc::clone(files), 2)) as _, report))
    });
    let engines = EnginePool::new(Arc::clone(&test.files), factory, 2);
    assert_eq!(engines.prepare(1).unwrap().engine, "posix");
    let count = || made.load(Ordering::Relaxed);
    let leases: Vec<_> = (0..3).map(|_| engines.lease().unwrap()).collect();
    assert_eq!(count(), 3);
    drop(leases);
    let again: Vec<_> = (0..3).map(|_| engines.lease().unwrap()).collect();
    assert_eq!(count(), 4, "one of three was let go");
    drop(again);
    let mut busy = engines.lease().unwrap();
    busy.submit(&mut [test.read(0, BLOCK, 1)].into());
    drop(busy);
    let mut other = engines.lease().unwrap();
    assert_eq!(other.in_flight(), 0, "an engine with reads in flight does not come back");
    assert_eq!((other.capacity(), other.name()), (2, "posix"));
    let mut done = Vec::new();
    other.poll(&mut done, tiergraph_io::Wait::All).unwrap();
    assert!(done.is_empty());
}
