//! The loop of every worker: fill the engine → process what is resident → process what arrived.
//!
//! Thread-per-core (RealGraphGPU++'s asynchronous CPU threads): each worker owns an engine and its
//! buffers, takes reads from its own share of the pass and then from the others', and never waits
//! for another worker's reads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tiergraph_cache::BlockKey;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_io::{Done, FileId, Read, ReadEngine, Wait};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::Graph;

/// Reads up to this size use small buffers.
pub(crate) const SMALL_READ: usize = 64 << 10;

/// Large buffers are made this many at a time.
const LARGE_BATCH: usize = 2;

/// Bytes of a file that a pass wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Want {
    pub file: FileId,
    pub offset: u64,
    pub len: usize,
    /// The block that this is, where it may be or become resident.
    pub key: Option<BlockKey>,
}

/// A worker's engine and buffers, kept from pass to pass.
pub(crate) struct Worker {
    engine: Box<dyn ReadEngine>,
    small: Vec<AlignedBuf>,
    large: Vec<AlignedBuf>,
    /// Large buffers that may exist; small ones are as many as the engine takes.
    large_left: usize,
    done: Vec<Done>,
    /// The engine failed with reads in flight, which may still complete.
    pub(crate) broken: bool,
}

impl Worker {
    pub(crate) fn new(engine: Box<dyn ReadEngine>, large: usize) -> Self {
        let (small, large, large_left) = (Vec::new(), Vec::new(), large);
        Self { engine, small, large, large_left, done: Vec::new(), broken: false }
    }

    /// A buffer for `len` bytes; `None` while all are in flight.
    fn buffer(&mut self, len: usize, block_bytes: usize) -> Result<Option<AlignedBuf>> {
        if len <= SMALL_READ {
            return match self.small.pop() {
                Some(buffer) => Ok(Some(buffer)),
                // A block's own size where that is smaller, so that it can become resident.
                None => AlignedBuf::zeroed(SMALL_READ.min(block_bytes)).map(Some),
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
        self.large = AlignedBuf::batch(count, block_bytes.next_multiple_of(PAGE_BYTES))?;
        self.large_left -= count;
        Ok(self.large.pop())
    }

    fn give_back(&mut self, buffer: AlignedBuf) {
        if buffer.len() <= SMALL_READ { self.small.push(buffer) } else { self.large.push(buffer) }
    }

    /// Waits for every read in flight and takes all buffers back, so that the worker can be used
    /// again after an error: what is left of one pass must not arrive in the next.
    fn drain(&mut self) {
        loop {
            while let Some(done) = self.done.pop() {
                self.give_back(done.buffer);
            }
            if self.engine.in_flight() == 0 {
                return;
            }
            if self.engine.poll(&mut self.done, Wait::All).is_err() {
                self.broken = true;
                return;
            }
        }
    }
}

/// Shares of a list, one a worker; who has finished its own takes from the others.
struct Shares(Vec<(AtomicUsize, usize)>);

impl Shares {
    fn new(len: usize, workers: usize) -> Self {
        let bound = |w: usize| len * w / workers;
        Self((0..workers).map(|w| (AtomicUsize::new(bound(w)), bound(w + 1))).collect())
    }

    fn next(&self, worker: usize) -> Option<usize> {
        let workers = self.0.len();
        (0..workers).map(|i| &self.0[(worker + i) % workers]).find_map(|(next, end)| {
            if next.load(Ordering::Relaxed) >= *end {
                return None;
            }
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| i < end)
        })
    }
}

/// What the workers of a pass share.
struct Pass<'a> {
    graph: &'a Graph,
    wants: &'a [Want],
    missing: Vec<usize>,
    /// Held until the pass ends, whatever another run makes the cache give up.
    resident: Vec<(usize, Arc<AlignedBuf>)>,
    missing_shares: Shares,
    resident_shares: Shares,
    stop: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl Pass<'_> {
    fn fail(&self, error: Error) {
        self.stop.store(true, Ordering::Relaxed);
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

impl Graph {
    /// Hands the bytes of every want to `visit`, once each: `visit(state, number of the want,
    /// bytes, whether they were just read and so must be checked)`.
    ///
    /// Each worker makes its state by `begin` and ends it by `end`.
    pub(crate) fn read_all<W>(
        &self,
        wants: &[Want],
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, usize, &[u8], bool) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let (mut resident, mut missing) = (Vec::new(), Vec::new());
        for (i, want) in wants.iter().enumerate() {
            match want.key.and_then(|key| self.cache().get(key)) {
                Some(block) => resident.push((i, block)),
                None => missing.push(i),
            }
        }
        let workers = self.threads();
        let pass = Pass {
            graph: self,
            wants,
            missing_shares: Shares::new(missing.len(), workers),
            resident_shares: Shares::new(resident.len(), workers),
            missing,
            resident,
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        let mut taken = self.take_workers()?;
        std::thread::scope(|scope| {
            for (number, worker) in taken.iter_mut().enumerate() {
                let (pass, begin, visit, end) = (&pass, &begin, &visit, &end);
                let mut run = move || {
                    let mut state = begin(number);
                    let result = work(pass, number, worker, &mut state, visit);
                    if let Err(e) = result.and_then(|()| end(state)) {
                        pass.fail(e);
                    }
                    worker.drain();
                };
                if number + 1 == workers {
                    run();
                } else {
                    scope.spawn(run);
                }
            }
        });
        taken.retain(|worker| !worker.broken);
        self.give_workers(taken);
        match pass.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

fn work<W>(
    pass: &Pass<'_>,
    number: usize,
    worker: &mut Worker,
    state: &mut W,
    visit: &impl Fn(&mut W, usize, &[u8], bool) -> Result<()>,
) -> Result<()> {
    let (graph, totals) = (pass.graph, pass.graph.totals());
    let mut next = pass.missing_shares.next(number);
    loop {
        graph.cancel().check("finish the pass")?;
        if pass.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        next = fill(pass, number, worker, next)?;
        worker.engine.poll(&mut worker.done, Wait::No)?;
        if worker.done.is_empty() {
            if let Some(i) = pass.resident_shares.next(number) {
                let (i, block) = &pass.resident[i];
                let since = Instant::now();
                visit(state, *i, block, false)?;
                totals.computed(since);
                totals.resident(block.len() as u64);
                graph.trace().span("compute", "resident block", number as u32, since);
                continue;
            }
            if worker.engine.in_flight() == 0 {
                return if next.is_none() { Ok(()) } else { Err(stuck()) };
            }
            let since = Instant::now();
            worker.engine.poll(&mut worker.done, Wait::One)?;
            totals.waited(since);
            graph.trace().span("wait", "read", number as u32, since);
        }
        // In the order of completion; what an error leaves is for `drain`.
        while !worker.done.is_empty() {
            let done = worker.done.remove(0);
            let is_large = done.buffer.len() > SMALL_READ;
            arrived(pass, number, worker, state, done, visit)?;
            next = fill(pass, number, worker, next)?;
            // Reads start at a poll: the drive would idle while the rest of a burst is processed,
            // and then answer in bursts for ever. Small reads are worth one call for many.
            if is_large {
                worker.engine.poll(&mut worker.done, Wait::No)?;
            }
        }
    }
}

/// A worker that can neither read nor end would leave a part of the pass out.
fn stuck() -> Error {
    Error::new(ErrorKind::Io, "finish the pass")
        .expected("a buffer and an engine that takes a read")
        .got("neither, with nothing in flight")
}

/// Submits reads while there are buffers and room; gives back the want that did not fit.
fn fill(
    pass: &Pass<'_>,
    number: usize,
    worker: &mut Worker,
    mut next: Option<usize>,
) -> Result<Option<usize>> {
    while let Some(share) = next {
        let want = &pass.wants[pass.missing[share]];
        if worker.engine.in_flight() == worker.engine.capacity() {
            break;
        }
        let Some(buffer) = worker.buffer(want.len, pass.graph.block_bytes())? else { break };
        let Want { file, offset, len, .. } = *want;
        let tag = pass.missing[share] as u64;
        if let Err(refused) = worker.engine.submit(Read { file, offset, len, buffer, tag }) {
            worker.give_back(refused.buffer);
            break;
        }
        next = pass.missing_shares.next(number);
    }
    Ok(next)
}

fn arrived<W>(
    pass: &Pass<'_>,
    number: usize,
    worker: &mut Worker,
    state: &mut W,
    done: Done,
    visit: &impl Fn(&mut W, usize, &[u8], bool) -> Result<()>,
) -> Result<()> {
    let Done { tag, buffer, result } = done;
    let i = tag as usize;
    let want = &pass.wants[i];
    let count = match result {
        Ok(count) => count,
        Err(e) => {
            worker.give_back(buffer);
            return Err(e);
        }
    };
    pass.graph.totals().read(count as u64);
    let since = Instant::now();
    let visited = if count == 0 {
        Err(Error::new(ErrorKind::Format, "read a block").expected("bytes").got("the file's end"))
    } else {
        visit(state, i, &buffer[..want.len], true)
    };
    pass.graph.totals().computed(since);
    pass.graph.trace().span("compute", "block", number as u32, since);
    if let Err(e) = visited {
        worker.give_back(buffer);
        return Err(e);
    }
    match want.key {
        Some(key) if buffer.len() == want.len => match pass.graph.cache().offer(key, buffer) {
            Ok(_) if want.len > SMALL_READ => worker.large_left += 1,
            Ok(_) => {}
            Err(buffer) => worker.give_back(buffer),
        },
        _ => worker.give_back(buffer),
    }
    Ok(())
}
