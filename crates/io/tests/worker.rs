//! What a worker asks of its engine and its consumer, call by call.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};

use common::{PAGE, TestFile};
use tiergraph_cache::{BlockCache, BlockFile, BlockKey};
use tiergraph_core::metrics::Totals;
use tiergraph_core::trace::Trace;
use tiergraph_core::{Cancel, Error, ErrorKind, Result, ThreadPool};
use tiergraph_io::pipeline::{
    Block, Buffers, Consumer, NextPass, ReadWorkers, Request, Room, SMALL_READ_BYTES, Surroundings,
};
use tiergraph_io::{
    Done, EngineFactory, EnginePool, EngineReport, FileSet, Read, ReadEngine, Wait,
};
use tiergraph_mem::AlignedBuf;

/// The calls, in order, as words.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn push(&self, call: impl Into<String>) {
        self.0.lock().unwrap().push(call.into());
    }

    /// The calls since the last time.
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap()).join(", ")
    }
}

/// When a scripted engine completes reads.
#[derive(Clone, Copy, PartialEq)]
enum Completes {
    /// All of them, at any poll.
    AtOnce,
    /// The first at [`Wait::One`], all at [`Wait::All`].
    Awaited,
    /// Never: any poll fails.
    Never,
}

/// What a scripted engine does.
#[derive(Clone, Copy)]
struct Script {
    completes: Completes,
    capacity: usize,
    /// Reads after so many find the file's end.
    ends_after: usize,
}

/// An engine that writes its calls down, and reads nothing.
struct Scripted {
    script: Script,
    calls: Calls,
    reads: VecDeque<Read>,
    /// Reads that ended.
    ended: usize,
}

impl ReadEngine for Scripted {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        let count = reads.len().min(self.script.capacity - self.reads.len());
        if count > 0 {
            self.calls.push(format!("submit {count}"));
        }
        self.reads.extend(reads.drain(..count));
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        self.calls.push(match wait {
            Wait::No => "poll",
            Wait::One => "wait",
            Wait::All => "wait for all",
        });
        let count = match (self.script.completes, wait) {
            (Completes::Never, _) => return Err(Error::new(ErrorKind::Io, "poll")),
            (Completes::AtOnce, _) | (_, Wait::All) => self.reads.len(),
            (Completes::Awaited, Wait::One) => 1.min(self.reads.len()),
            (Completes::Awaited, Wait::No) => 0,
        };
        for Read { tag, to, len, .. } in self.reads.drain(..count) {
            let is_there = self.ended < self.script.ends_after;
            self.ended += 1;
            done.push(Done { tag, to, result: Ok(if is_there { len } else { 0 }) });
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.reads.len()
    }

    fn capacity(&self) -> usize {
        self.script.capacity
    }

    fn name(&self) -> &'static str {
        "scripted"
    }
}

/// A consumer that writes its calls down.
struct Holder {
    calls: Calls,
    held: VecDeque<Block>,
    /// Blocks that it holds while nobody waits for one.
    keeps: usize,
    /// Whether it gives one to who waits.
    gives: bool,
    /// Fails at its nth block, and gives it back.
    fails_at: usize,
    /// Blocks of the next pass that it has room for.
    ahead: usize,
    is_over: bool,
    /// Where the blocks' bytes were, in the order in which they came.
    addresses: Vec<usize>,
}

impl Consumer for Holder {
    const ACTIVITY: &'static str = "hold";

    fn room(&mut self, number: usize) -> Result<Room> {
        self.calls.push(format!("room {number}"));
        Ok(Room::Buffer)
    }

    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()> {
        self.calls.push(format!("take {}", block.number));
        self.addresses.push(block.as_ref().as_ptr() as usize);
        self.ahead -= usize::from(self.is_over);
        self.fails_at = self.fails_at.wrapping_sub(1);
        if self.fails_at == 0 {
            back.push(block);
            return Err(Error::new(ErrorKind::Device, "compute"));
        }
        self.held.push_back(block);
        Ok(())
    }

    fn give_back(&mut self, back: &mut Vec<Block>, wait: bool) -> Result<()> {
        let must = usize::from(wait && self.gives).min(self.held.len());
        let count = self.held.len().saturating_sub(self.keeps).max(must);
        self.calls.push(format!("{} {count}", if wait { "must give" } else { "give" }));
        back.extend(self.held.drain(..count));
        Ok(())
    }

    fn idle(&mut self) -> Result<bool> {
        self.calls.push("idle");
        Ok(false)
    }

    fn finish(&mut self) -> Result<()> {
        self.calls.push("finish");
        self.is_over = true;
        Ok(())
    }

    fn has_room_ahead(&self) -> bool {
        self.ahead > 0
    }

    fn forget(&mut self, back: &mut Vec<Block>) -> Result<()> {
        self.calls.push(format!("forget {}", self.held.len()));
        back.extend(self.held.drain(..));
        Ok(())
    }
}

/// One worker over a scripted engine.
struct Scene {
    test: TestFile,
    calls: Calls,
    engines: Arc<EnginePool>,
    workers: ReadWorkers,
    cache: BlockCache,
    totals: Totals,
    /// Bytes of a block.
    len: usize,
}

impl Scene {
    fn new(
        script: Script,
        len: usize,
        buffers: impl Fn() -> Buffers + Send + Sync + 'static,
    ) -> Self {
        let (test, calls) = (TestFile::new(PAGE, 1, PAGE), Calls::default());
        let written = calls.clone();
        let factory: EngineFactory = Arc::new(move |_: &Arc<FileSet>| {
            let engine =
                Scripted { script, calls: written.clone(), reads: VecDeque::new(), ended: 0 };
            let report = EngineReport { engine: "scripted", why: String::new(), depth: 1 };
            Ok((Box::new(engine) as _, report))
        });
        let engines = EnginePool::new(Arc::clone(&test.files), factory, 1);
        let workers =
            ReadWorkers::new(Arc::new(ThreadPool::new(1)), Arc::clone(&engines), move |_| {
                buffers()
            });
        let (cache, totals) = (BlockCache::new(0), Totals::default());
        Self { test, calls, engines, workers, cache, totals, len }
    }

    fn holder(&self, keeps: usize) -> Holder {
        Holder {
            calls: self.calls.clone(),
            held: VecDeque::new(),
            keeps,
            gives: true,
            fails_at: 0,
            ahead: 0,
            is_over: false,
            addresses: Vec::new(),
        }
    }

    fn key(block: usize) -> BlockKey {
        BlockKey { file: BlockFile::Tiles, block: block as u64 }
    }

    /// Makes the first blocks resident.
    fn keep(&self, blocks: usize) {
        self.cache.set_capacity((blocks * self.len) as u64);
        for block in 0..blocks {
            self.cache.offer(Self::key(block), AlignedBuf::zeroed(self.len).unwrap()).unwrap();
        }
    }

    /// A pass over the first blocks, to a holder.
    fn pass(&mut self, blocks: usize, next: NextPass, holder: &mut Holder) -> Result<()> {
        holder.is_over = false;
        self.pass_to(blocks, next, holder)
    }

    fn pass_to<C: Consumer + Send>(
        &mut self,
        blocks: usize,
        next: NextPass,
        consumer: &mut C,
    ) -> Result<()> {
        let (file, len) = (self.test.file, self.len);
        let request = |block| Request {
            file,
            offset: (block * len) as u64,
            len,
            key: Some(Self::key(block)),
        };
        let requests: Vec<Request> = (0..blocks).map(request).collect();
        let (cancel, trace) = (Cancel::default(), Trace::off());
        let around = Surroundings {
            cancels: [&cancel; 2],
            totals: &self.totals,
            trace: &trace,
            residency: Some(&self.cache),
            held: 0,
            op: "read",
        };
        let consumer = Mutex::new(consumer);
        self.workers.pass(&requests, next, around, |_| Lent(consumer.lock().unwrap()))
    }

    /// The calls of a pass that goes well.
    fn calls(&mut self, blocks: usize, next: NextPass, holder: &mut Holder) -> String {
        self.pass(blocks, next, holder).unwrap();
        self.calls.take()
    }
}

/// A consumer behind a lock and a reference.
struct Lent<'a, 'b, C>(MutexGuard<'a, &'b mut C>);

impl<C> Deref for Lent<'_, '_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C> DerefMut for Lent<'_, '_, C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.0
    }
}

const LARGE: usize = SMALL_READ_BYTES + PAGE;

fn script(completes: Completes, capacity: usize) -> Script {
    Script { completes, capacity, ends_after: usize::MAX }
}

fn buffers(count: usize) -> impl Fn() -> Buffers + Send + Sync {
    move || Buffers::of_blocks(LARGE, count, 0, count)
}

/// The calls of a pass over `count` blocks of `len` bytes, with `free` buffers, to a consumer that keeps
/// `keeps` of them.
fn calls(script: Script, (len, count): (usize, usize), free: usize, keeps: usize) -> String {
    let mut scene = Scene::new(script, len, buffers(free));
    let mut holder = scene.holder(keeps);
    scene.calls(count, NextPass::Unknown, &mut holder)
}

#[test]
fn further_reads_start_after_each_large_block_and_after_a_burst_of_small_ones() {
    assert_eq!(
        calls(script(Completes::AtOnce, 4), (SMALL_READ_BYTES, 3), 4, 0),
        "forget 0, room 0, room 1, room 2, submit 3, poll, take 2, give 1, take 1, give 1, \
         take 0, give 1, poll, finish"
    );
    assert_eq!(
        calls(script(Completes::AtOnce, 4), (LARGE, 3), 4, 0),
        "forget 0, room 0, room 1, room 2, submit 3, poll, take 2, give 1, poll, take 1, give 1, \
         poll, take 0, give 1, poll, poll, finish"
    );
}

#[test]
fn a_worker_with_nothing_to_do_waits_for_a_read_or_for_a_buffer() {
    // The engine takes two reads, and the consumer holds one block: there are buffers.
    assert_eq!(
        calls(script(Completes::Awaited, 2), (LARGE, 3), 4, 1),
        "forget 0, room 0, room 1, submit 2, poll, idle, give 0, wait, take 0, give 0, room 2, \
         submit 1, poll, poll, idle, give 0, wait, take 1, give 1, poll, poll, idle, give 0, wait, \
         take 2, give 1, poll, poll, finish, must give 1"
    );
    // The consumer holds all buffers.
    assert_eq!(
        calls(script(Completes::Awaited, 4), (LARGE, 3), 2, 2),
        "forget 0, room 0, room 1, room 2, submit 2, poll, idle, give 0, wait, take 0, give 0, \
         room 2, poll, room 2, poll, idle, give 0, wait, take 1, give 0, room 2, poll, room 2, poll, \
         idle, must give 1, room 2, submit 1, poll, idle, give 0, wait, take 2, give 0, poll, poll, \
         finish, must give 1, must give 1"
    );
    // A single buffer is enough.
    assert_eq!(
        calls(script(Completes::Awaited, 4), (LARGE, 2), 1, 0),
        "forget 0, room 0, room 1, submit 1, poll, idle, give 0, wait, take 0, give 1, room 1, \
         submit 1, poll, poll, idle, give 0, wait, take 1, give 1, poll, poll, finish"
    );
}

#[test]
fn a_worker_whose_consumer_gives_nothing_back_says_so() {
    let mut scene = Scene::new(script(Completes::AtOnce, 2), LARGE, buffers(2));
    let mut holder = Holder { gives: false, ..scene.holder(4) };
    let error = scene.pass(3, NextPass::Unknown, &mut holder).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot finish the pass: expected a buffer and an engine that takes a read, got neither, \
         with nothing in flight"
    );
    assert!(holder.held.is_empty());
}

#[test]
fn resident_blocks_go_out_while_one_is_read_sixteen_at_a_time() {
    let mut scene = Scene::new(script(Completes::Awaited, 2), LARGE, buffers(4));
    scene.keep(18);
    let mut holder = scene.holder(30);
    let first: String = (0..16).map(|block| format!("take {block}, give 0, ")).collect();
    let given = vec!["must give 1"; 17].join(", ");
    assert_eq!(
        scene.calls(19, NextPass::Unknown, &mut holder),
        format!(
            "forget 0, room 18, submit 1, poll, {first}poll, idle, must give 1, poll, take 16, give 0, \
             poll, idle, must give 1, poll, take 17, give 0, poll, idle, give 0, wait, take 18, \
             give 0, poll, poll, finish, {given}"
        )
    );
    let read = scene.totals.get();
    assert_eq!((read.bytes_resident, read.bytes_read), (18 * LARGE as u64, LARGE as u64));
    // Those that come back at once go out one by one, with a look at the reads between.
    let mut scene = Scene::new(script(Completes::Awaited, 2), LARGE, buffers(4));
    scene.keep(2);
    let mut holder = scene.holder(0);
    assert_eq!(
        scene.calls(3, NextPass::Unknown, &mut holder),
        "forget 0, room 2, submit 1, poll, take 0, give 1, poll, take 1, give 1, poll, idle, give 0, \
         wait, take 2, give 1, poll, poll, finish"
    );
}

#[test]
fn the_next_pass_is_read_before_this_one_ends_and_its_first_blocks_go_out() {
    let mut scene = Scene::new(script(Completes::AtOnce, 2), LARGE, buffers(4));
    let mut holder = Holder { ahead: 1, ..scene.holder(0) };
    assert_eq!(
        scene.calls(2, NextPass::Same, &mut holder),
        "forget 0, room 0, room 1, submit 2, poll, take 1, give 1, room 0, room 1, submit 2, poll, \
         take 0, give 1, poll, poll, finish, poll, take 0, idle"
    );
    assert_eq!((holder.held.len(), scene.totals.get().reads), (1, 2));
    assert_eq!(
        scene.calls(2, NextPass::Unknown, &mut holder),
        "poll, take 1, give 2, poll, poll, finish"
    );
    assert_eq!((holder.held.len(), scene.totals.get().reads), (0, 4));
}

#[test]
fn a_read_of_the_next_pass_that_finds_nothing_is_the_next_passs_to_report() {
    let script = Script { ends_after: 2, ..script(Completes::AtOnce, 2) };
    let mut scene = Scene::new(script, LARGE, buffers(4));
    let mut holder = Holder { ahead: 2, ..scene.holder(0) };
    scene.pass(2, NextPass::Same, &mut holder).unwrap();
    assert_eq!((holder.addresses.len(), holder.held.len()), (2, 0));
    assert_eq!(
        scene.pass(2, NextPass::Unknown, &mut holder).unwrap_err().to_string(),
        "cannot read a block: expected bytes, got the file's end"
    );
    assert_eq!(holder.addresses.len(), 2);
}

#[test]
fn workers_wait_for_reads_of_the_next_pass_when_they_are_dropped() {
    let mut scene = Scene::new(script(Completes::Awaited, 2), LARGE, buffers(4));
    let mut holder = scene.holder(0);
    scene.pass(2, NextPass::Same, &mut holder).unwrap();
    scene.calls.take();
    drop(scene.workers);
    assert_eq!(scene.calls.take(), "wait for all");
}

#[test]
fn an_engine_that_fails_is_asked_no_more_and_another_is_leased() {
    let mut scene = Scene::new(script(Completes::Never, 2), LARGE, buffers(4));
    let mut holder = scene.holder(0);
    for _ in 0..2 {
        let error = scene.pass(2, NextPass::Same, &mut holder).unwrap_err();
        assert_eq!(error.to_string(), "cannot poll");
        assert_eq!(
            scene.calls.take(),
            "forget 0, room 0, room 1, submit 2, poll, finish, wait for all, forget 0"
        );
    }
}

#[test]
fn a_block_that_a_consumer_fails_at_does_not_stay_in_memory() {
    let mut scene = Scene::new(script(Completes::AtOnce, 2), LARGE, buffers(4));
    scene.cache.set_capacity(1 << 30);
    let mut holder = Holder { fails_at: 2, ..scene.holder(0) };
    scene.pass(3, NextPass::Unknown, &mut holder).unwrap_err();
    let resident = |scene: &Scene| -> Vec<usize> {
        (0..3).filter(|&block| scene.cache.contains(Scene::key(block))).collect()
    };
    assert_eq!(resident(&scene), [1], "the first that was taken, and no other");
    scene.pass(3, NextPass::Unknown, &mut holder).unwrap();
    assert_eq!(resident(&scene), [0, 1, 2]);
}

/// Locked buffers of a block each, which lie one after the other.
fn locked(count: usize, spare: usize) -> impl Fn() -> Buffers + Send + Sync {
    move || {
        let spares = Mutex::new(AlignedBuf::batch(spare, LARGE).unwrap());
        let next = move || spares.lock().unwrap().pop();
        let replacements = (spare > 0).then(|| Arc::new(next) as _);
        Buffers::locked(AlignedBuf::batch(count, LARGE).unwrap(), replacements)
    }
}

#[test]
fn locked_buffers_are_filled_in_the_order_of_their_addresses() {
    let mut scene = Scene::new(script(Completes::AtOnce, 4), LARGE, locked(4, 0));
    scene.cache.set_capacity(1 << 30);
    let mut holder = scene.holder(0);
    for next in [NextPass::Unknown; 3] {
        holder.addresses.clear();
        scene.pass(4, next, &mut holder).unwrap();
        // The last that was read is the first that is taken.
        assert!(holder.addresses.is_sorted_by(|a, b| a > b), "{:?}", holder.addresses);
    }
    assert_eq!(scene.cache.resident_bytes(), 0, "there is nothing in place of a locked buffer");
}

#[test]
fn as_many_locked_buffers_become_resident_as_there_are_others_in_their_place() {
    let mut scene = Scene::new(script(Completes::AtOnce, 4), LARGE, locked(2, 3));
    scene.cache.set_capacity(1 << 30);
    let mut holder = scene.holder(0);
    for resident in [3, 3] {
        holder.addresses.clear();
        scene.pass(6, NextPass::Unknown, &mut holder).unwrap();
        assert_eq!(scene.cache.resident_bytes(), resident * LARGE as u64);
        assert_eq!(holder.addresses.len(), 6);
    }
    // Resident neighbours go out in the order of their addresses.
    assert!(holder.addresses[..3].is_sorted() || holder.addresses[3..].is_sorted());
}

/// Reads that were given to the engine.
fn submitted(calls: &str) -> usize {
    calls.split(", ").filter_map(|call| call.strip_prefix("submit ")?.parse::<usize>().ok()).sum()
}

#[test]
fn the_next_pass_is_read_ahead_once_no_more_blocks_become_resident() {
    for (room, submits) in [(0, [6, 3, 3]), (1, [3, 4, 2]), (3, [3, 0, 0])] {
        let mut scene = Scene::new(script(Completes::Awaited, 4), LARGE, buffers(4));
        scene.cache.set_capacity((room * LARGE) as u64);
        let mut holder = scene.holder(0);
        let calls = [(); 3].map(|()| submitted(&scene.calls(3, NextPass::Same, &mut holder)));
        assert_eq!(calls, submits, "{room} blocks may become resident");
    }
    // Room that no buffer can be spared for keeps nothing.
    let mut scene = Scene::new(script(Completes::Awaited, 4), LARGE, locked(4, 0));
    scene.cache.set_capacity(1 << 30);
    let mut holder = scene.holder(0);
    assert_eq!(submitted(&scene.calls(3, NextPass::Same, &mut holder)), 6);
    let mut scene = Scene::new(script(Completes::Awaited, 4), LARGE, locked(4, 1));
    scene.cache.set_capacity(1 << 30);
    let mut holder = scene.holder(0);
    assert_eq!(submitted(&scene.calls(3, NextPass::Same, &mut holder)), 3);
}

#[test]
fn an_engine_that_failed_does_not_come_back_to_its_pool() {
    for (completes, idle) in [(Completes::AtOnce, 1), (Completes::Never, 0)] {
        let scene = Scene::new(script(completes, 2), LARGE, buffers(2));
        let mut engine = scene.engines.lease().unwrap();
        let polls = [Wait::No, Wait::No].map(|wait| engine.poll(&mut Vec::new(), wait).is_ok());
        assert_eq!(polls, [idle == 1; 2]);
        drop(engine);
        assert_eq!(format!("{:?}", scene.engines), format!("EnginePool({idle} idle)"));
    }
}

/// A consumer that has only what every consumer must have; counts blocks.
struct Counter(usize);

impl Consumer for Counter {
    const ACTIVITY: &'static str = "count";

    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()> {
        self.0 += 1;
        back.push(block);
        Ok(())
    }
}

#[test]
fn a_consumer_has_no_other_work_and_no_room_ahead_unless_it_says_so() {
    let mut counter = Counter(0);
    // Other work without end would leave no time to wait for a read.
    let mut scene = Scene::new(script(Completes::Awaited, 2), LARGE, buffers(2));
    scene.pass_to(3, NextPass::Unknown, &mut counter).unwrap();
    assert_eq!(counter.0, 3);
    let mut scene = Scene::new(script(Completes::AtOnce, 2), LARGE, buffers(2));
    scene.pass_to(3, NextPass::Same, &mut counter).unwrap();
    assert_eq!(counter.0, 6);
}

/// A consumer that gives blocks back four at a time.
#[derive(Default)]
struct Fours {
    held: Vec<Block>,
    addresses: Vec<usize>,
}

impl Consumer for Fours {
    const ACTIVITY: &'static str = "hold";

    fn take(&mut self, block: Block, _back: &mut Vec<Block>) -> Result<()> {
        self.addresses.push(block.as_ref().as_ptr() as usize);
        self.held.push(block);
        Ok(())
    }

    fn give_back(&mut self, back: &mut Vec<Block>, _wait: bool) -> Result<()> {
        if self.held.len() == 4 {
            back.append(&mut self.held);
        }
        Ok(())
    }
}

#[test]
fn locked_buffers_that_came_back_together_are_filled_in_the_order_of_their_addresses() {
    let mut scene = Scene::new(script(Completes::AtOnce, 4), LARGE, locked(4, 0));
    let mut fours = Fours::default();
    scene.pass_to(8, NextPass::Unknown, &mut fours).unwrap();
    // The last that was read is the first that is taken.
    for four in fours.addresses.chunks(4) {
        assert!(four.len() == 4 && four.is_sorted_by(|a, b| a > b), "{:?}", fours.addresses);
    }
}
