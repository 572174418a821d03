//! The workers of a graph's passes: threads that stay, each with an engine and buffers of its own.
//!
//! Reads belong to the thread that began them (io_uring says so), and those of the next pass begin
//! before a pass ends, so that the drive works while vertices are updated.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};
use tiergraph_cache::BlockKey;
use tiergraph_core::{Error, Result};
use tiergraph_io::{Done, FileId, Read, ReadEngine, Wait};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::Totals;

/// Reads up to this size use small buffers.
pub(crate) const SMALL_READ: usize = 64 << 10;

/// Blocks in flight a worker.
pub(crate) const BLOCKS_IN_FLIGHT: usize = 8;

/// Large buffers are made this many at a time.
const LARGE_BATCH: usize = 2;

/// Bytes of a file that a pass wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Want {
    pub file: FileId,
    pub offset: u64,
    pub len: usize,
    /// The block that this is, where it may be or become resident.
    pub key: Option<BlockKey>,
}

/// The reads of a pass, and who takes which: shares, one a worker, who takes from the others'
/// when it has finished its own.
pub(crate) struct Plan {
    /// Tells the reads of one pass from those of the next.
    number: u32,
    wants: Vec<Want>,
    /// Those that are not resident.
    missing: Vec<usize>,
    shares: Shares,
}

impl Plan {
    fn new(number: u32, wants: Vec<Want>, missing: Vec<usize>, workers: usize) -> Arc<Self> {
        let shares = Shares::new(missing.len(), workers);
        Arc::new(Self { number, wants, missing, shares })
    }

    pub(crate) fn want(&self, number: usize) -> &Want {
        &self.wants[number]
    }

    /// The number of the next want to read.
    pub(crate) fn next(&self, worker: usize) -> Option<usize> {
        self.shares.next(worker).map(|i| self.missing[i])
    }

    fn tag(&self, want: usize) -> u64 {
        u64::from(self.number) << 32 | want as u64
    }

    /// Whether a read with this tag is of this pass.
    fn has(&self, tag: u64) -> bool {
        tag >> 32 == u64::from(self.number)
    }
}

/// The want that a read with this tag is for.
fn want_of(tag: u64) -> usize {
    tag as u32 as usize
}

/// Shares of a list, one a worker.
pub(crate) struct Shares(Vec<(AtomicUsize, usize)>);

impl Shares {
    pub(crate) fn new(len: usize, workers: usize) -> Self {
        let bound = |w: usize| len * w / workers;
        Self((0..workers).map(|w| (AtomicUsize::new(bound(w)), bound(w + 1))).collect())
    }

    pub(crate) fn next(&self, worker: usize) -> Option<usize> {
        let workers = self.0.len();
        (0..workers).map(|i| &self.0[(worker + i) % workers]).find_map(|(next, end)| {
            if next.load(Ordering::Relaxed) >= *end {
                return None;
            }
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| i < end)
        })
    }
}

/// The reads of one pass that a worker has taken.
#[derive(Default)]
struct Taken {
    /// The want that there was no room to read yet.
    waiting: Option<usize>,
    in_flight: usize,
    /// What arrived, in the order of completion.
    arrived: VecDeque<Done>,
}

/// A worker's engine and buffers.
pub(crate) struct Worker {
    engine: Box<dyn ReadEngine>,
    block_bytes: usize,
    small: Vec<AlignedBuf>,
    large: Vec<AlignedBuf>,
    /// Large buffers that may exist; small ones are as many as the engine takes.
    large_left: usize,
    done: Vec<Done>,
    now: Taken,
    /// Of the pass after this.
    later: Taken,
    /// The engine failed with reads in flight, which may still complete.
    broken: bool,
}

impl Worker {
    fn new(engine: Box<dyn ReadEngine>, block_bytes: usize) -> Self {
        Self {
            engine,
            block_bytes,
            small: Vec::new(),
            large: Vec::new(),
            large_left: BLOCKS_IN_FLIGHT,
            done: Vec::new(),
            now: Taken::default(),
            later: Taken::default(),
            broken: false,
        }
    }

    /// What was begun for the next pass is this pass's.
    pub(crate) fn begin(&mut self) {
        self.now = std::mem::take(&mut self.later);
    }

    /// Begins reads while there are buffers and room: of `plan`, and once those are all begun, of
    /// the pass after it. Whether all of `plan` are begun.
    pub(crate) fn fill(&mut self, number: usize, plan: &Plan, next: Option<&Plan>) -> Result<bool> {
        let mut now = std::mem::take(&mut self.now);
        let begun = self.begin_reads(number, plan, &mut now);
        self.now = now;
        if !begun? {
            return Ok(false);
        }
        if let Some(next) = next {
            let mut later = std::mem::take(&mut self.later);
            let begun = self.begin_reads(number, next, &mut later);
            self.later = later;
            begun?;
        }
        Ok(true)
    }

    fn begin_reads(&mut self, number: usize, plan: &Plan, taken: &mut Taken) -> Result<bool> {
        while let Some(want) = taken.waiting.take().or_else(|| plan.next(number)) {
            if !self.read(plan, want)? {
                taken.waiting = Some(want);
                return Ok(false);
            }
            taken.in_flight += 1;
        }
        Ok(true)
    }

    /// Begins a read; false where there is no buffer or no room for it.
    fn read(&mut self, plan: &Plan, want: usize) -> Result<bool> {
        let Want { file, offset, len, .. } = *plan.want(want);
        if self.engine.in_flight() == self.engine.capacity() {
            return Ok(false);
        }
        let Some(buffer) = self.buffer(len)? else { return Ok(false) };
        let read = Read { file, offset, len, buffer, tag: plan.tag(want) };
        let refused = self.engine.submit(read).err();
        let begun = refused.is_none();
        refused.into_iter().for_each(|read| self.give_back(read.buffer));
        Ok(begun)
    }

    /// Looks for completions.
    pub(crate) fn poll(&mut self, plan: &Plan, wait: Wait) -> Result<()> {
        let polled = self.engine.poll(&mut self.done, wait);
        for done in self.done.drain(..) {
            let taken = if plan.has(done.tag) { &mut self.now } else { &mut self.later };
            taken.in_flight -= 1;
            taken.arrived.push_back(done);
        }
        polled
    }

    /// What arrived next of this pass: its want, its buffer, how many bytes were read.
    pub(crate) fn arrived(&mut self) -> Option<(usize, AlignedBuf, Result<usize>)> {
        let Done { tag, buffer, result } = self.now.arrived.pop_front()?;
        Some((want_of(tag), buffer, result))
    }

    /// Whether reads of this pass are in flight.
    pub(crate) fn is_reading(&self) -> bool {
        self.now.in_flight > 0
    }

    /// A buffer for `len` bytes; `None` while all are in flight.
    fn buffer(&mut self, len: usize) -> Result<Option<AlignedBuf>> {
        if len <= SMALL_READ {
            return match self.small.pop() {
                Some(buffer) => Ok(Some(buffer)),
                // A block's own size where that is smaller, so that it can become resident.
                None => AlignedBuf::zeroed(SMALL_READ.min(self.block_bytes)).map(Some),
            };
        }
        if let Some(buffer) = self.large.pop() {
            return Ok(Some(buffer));
        }
        // Several at a time, because they then lie on huge pages, which reads are faster into.
        if self.large_left < LARGE_BATCH && self.engine.in_flight() > 0 || self.large_left == 0 {
            return Ok(None);
        }
        let count = self.large_left.min(LARGE_BATCH);
        self.large = AlignedBuf::batch(count, self.block_bytes.next_multiple_of(PAGE_BYTES))?;
        self.large_left -= count;
        Ok(self.large.pop())
    }

    pub(crate) fn give_back(&mut self, buffer: AlignedBuf) {
        if buffer.len() <= SMALL_READ { self.small.push(buffer) } else { self.large.push(buffer) }
    }

    /// A buffer of `len` bytes stays with the cache: another may be made.
    pub(crate) fn gave_away(&mut self, len: usize) {
        self.large_left += usize::from(len > SMALL_READ);
    }

    fn is_idle(&self) -> bool {
        let is_empty = |taken: &Taken| taken.waiting.is_none() && taken.arrived.is_empty();
        self.engine.in_flight() == 0 && is_empty(&self.now) && is_empty(&self.later)
    }

    /// Waits for every read in flight and takes all buffers back: what is left of one pass must
    /// not arrive in another.
    fn drain(&mut self, totals: &Totals) {
        let mut left: Vec<Done> = self.done.drain(..).collect();
        for taken in [&mut self.now, &mut self.later] {
            left.extend(std::mem::take(taken).arrived);
        }
        while self.engine.in_flight() > 0 && !self.broken {
            self.broken = self.engine.poll(&mut left, Wait::All).is_err();
        }
        for done in left {
            totals.read(done.result.unwrap_or(0) as u64);
            self.give_back(done.buffer);
        }
    }
}

/// The workers, and what they have begun to read.
pub(crate) struct Crew {
    /// Started by the first pass: most loaders need none.
    threads: Option<ThreadPool>,
    size: usize,
    block_bytes: usize,
    workers: Vec<Mutex<Worker>>,
    /// What the reads in flight are for.
    ahead: Option<Arc<Plan>>,
    passes: u32,
}

impl Crew {
    /// `size` workers, of which some have their engines.
    pub(crate) fn new(size: usize, block_bytes: usize, engines: Vec<Box<dyn ReadEngine>>) -> Self {
        let worker = |engine| Mutex::new(Worker::new(engine, block_bytes));
        let workers = engines.into_iter().map(worker).collect();
        Self { threads: None, size, block_bytes, workers, ahead: None, passes: 0 }
    }

    /// Gives engines to workers that have none yet, or whose engines failed.
    pub(crate) fn complete(
        &mut self,
        engine: impl Fn() -> Result<Box<dyn ReadEngine>>,
    ) -> Result<()> {
        let worker = || Ok(Worker::new(engine()?, self.block_bytes));
        for own in &mut self.workers {
            let own = own.get_mut().unwrap_or_else(PoisonError::into_inner);
            if own.broken {
                *own = worker()?;
            }
        }
        while self.workers.len() < self.size {
            self.workers.push(Mutex::new(worker()?));
        }
        Ok(())
    }

    /// The plan of a pass over `wants`, of which `missing` must be read: the one that is begun, if
    /// it is the same.
    pub(crate) fn plan(
        &mut self,
        wants: &[Want],
        missing: Vec<usize>,
        totals: &Totals,
    ) -> Result<Arc<Plan>> {
        match self.ahead.take() {
            Some(plan) if plan.wants == wants && plan.missing == missing => Ok(plan),
            _ => {
                self.drain(totals)?;
                Ok(self.numbered(wants.to_vec(), missing))
            }
        }
    }

    /// The plan of another pass like `plan`'s.
    pub(crate) fn again(&mut self, plan: &Plan) -> Arc<Plan> {
        self.numbered(plan.wants.clone(), plan.missing.clone())
    }

    fn numbered(&mut self, wants: Vec<Want>, missing: Vec<usize>) -> Arc<Plan> {
        self.passes = self.passes.wrapping_add(1);
        Plan::new(self.passes, wants, missing, self.workers.len())
    }

    /// Keeps the reads that were begun for `plan`; without one, there must be none.
    pub(crate) fn keep(&mut self, plan: Option<Arc<Plan>>) {
        self.ahead = plan;
    }

    /// Ends all reads in flight.
    pub(crate) fn drain(&mut self, totals: &Totals) -> Result<()> {
        self.ahead = None;
        if self.workers.iter().all(|w| lock(w).is_idle()) {
            return Ok(());
        }
        self.on_all(|_, worker| worker.drain(totals))
    }

    /// Calls `work` with every worker, each on its thread.
    pub(crate) fn on_all(&mut self, work: impl Fn(usize, &mut Worker) + Sync) -> Result<()> {
        let threads = match self.threads.take() {
            Some(threads) => threads,
            None => start(self.workers.len())?,
        };
        let workers = &self.workers;
        self.threads.insert(threads).broadcast(|thread| {
            work(thread.index(), &mut lock(&workers[thread.index()]));
        });
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // An engine that is dropped on another thread leaks what it reads into.
        let _ = self.drain(&Totals::default());
    }
}

/// A worker that panicked has ended its run; the next one drains it.
fn lock(worker: &Mutex<Worker>) -> MutexGuard<'_, Worker> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(threads: usize) -> Result<ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|number| format!("tiergraph-pass-{number}"))
        .build()
        .map_err(|e| Error::io("start", "the workers' threads", std::io::Error::other(e)))
}
